"""Scripts that steps and probes send to hosts: constants, never put together from what a host said."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def script(name: str) -> str:
    """The text of one of them: `site_edit.py`. Raises FileNotFoundError."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
