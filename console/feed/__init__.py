"""Asks each source on its own clock and holds the newest readings: the live source of snapshots."""

from console.feed.feed import Feed

__all__ = ["Feed"]
