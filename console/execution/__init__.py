"""Carrying a plan out: the only effects in the house. Every one of them demands a Grant of `policy`."""
