"""`laneswap doctor`: are this machine, every host and every lane set up for the console? It only looks."""
