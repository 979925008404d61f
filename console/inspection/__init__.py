"""`laneswap inspect`: captured files through the same parsers that read live hosts."""
