"""Setting up: `laneswap init` writes a fleet file, `laneswap config` tells what the operator's files come to."""
