"""Full-terminal views built from widgets."""
