"""The recipes that come with laneswap, one TOML file a family."""
