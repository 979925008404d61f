"""Formats live in `console.format`, so that lamps, alarms and the headless twin share them with the panes."""

from console.format import *  # noqa: F403
