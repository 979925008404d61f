"""The one place where remote text becomes safe text."""

from __future__ import annotations
