"""How a host is reached; the only package that runs remote commands."""
