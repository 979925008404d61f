"""What plays the parts of a fleet on the real hosts: an engine's ranks, launchers, watchdogs, a checkpoint."""
