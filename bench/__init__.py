"""Measures the console's budgets on this machine: `python -m bench` prints one table."""
