"""An entry for a Markdown ledger that people keep on a host, in the form that they write it themselves. Pure.

A blank line, `## YYYY-MM-DD HH:MM TZ — title`, `worker: ... · approved by NAME`, then free text. Nothing in the text
can begin another entry, and secrets are references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from console.readings.redaction import redacted
from console.sanitize import LOOKED_AT, lines, word

DASH, DOT = " — ", " · "
MOST_TITLE, MOST_NAME, MOST_LINES, MOST_LINE = 160, 80, 40, 2000
_ZONE = re.compile(r"[A-Z]{2,6}|[+-][0-9]{2}(?:[0-9]{2})?")
_MARKUP = re.compile(r"^\s{0,3}(?=#|worker:|```|~~~|---|===|<!--)", re.IGNORECASE)
_BREAKS_OUT = re.compile(r"<!--|-->")


@dataclass(frozen=True, slots=True)
class BoxEntry:
    """What is told to those who read the ledger on the host."""

    at: float
    """Unix seconds."""
    title: str
    """`dsv41 rolled back to c0ffee1`."""
    worker: str
    """What did it: `laneswap 20261130T215510Z-rollback-3f9ac1`."""
    approved_by: str
    """The operator."""
    text: str = ""
    """Free text; its line ends are kept."""


def entry(told: BoxEntry, zone: tzinfo = UTC, known: Mapping[str, str] | None = None) -> str:
    """The lines to append, the blank one before them included; times in `zone`, which should be that of the ledger.

    `known`: values that are secret whatever they look like, by name.
    """
    head = f"## {_time(told.at, zone)}{DASH}{_one(told.title, MOST_TITLE, known) or '(no title)'}"
    worker = _one(told.worker, MOST_NAME, known).replace("·", "-") or "-"
    by = f"worker: {worker}{DOT}approved by {_one(told.approved_by, MOST_NAME, known).replace('·', '-') or '-'}"
    body = [_harmless(row) for row in lines(redacted(told.text[:LOOKED_AT], known), MOST_LINE)]
    while body and not body[-1]:
        body.pop()
    if len(body) > MOST_LINES:
        body = [*body[: MOST_LINES - 1], f"… {len(body) - MOST_LINES + 1} more lines"]
    return "\n".join(["", head, by, *body]) + "\n"


def _time(at: float, zone: tzinfo) -> str:
    moment = datetime.fromtimestamp(at, zone)
    name = moment.tzname() or ""
    return f"{moment:%Y-%m-%d %H:%M} {name if _ZONE.fullmatch(name) else f'{moment:%z}'}"


def _one(text: str, most: int, known: Mapping[str, str] | None) -> str:
    return _BREAKS_OUT.sub("--", word(redacted(text[:LOOKED_AT], known), most))


def _harmless(row: str) -> str:
    r"""A line that Markdown and readers of the ledger take for text: a heading in it becomes `\#...`."""
    return _MARKUP.sub(r"\\", _BREAKS_OUT.sub("--", row.rstrip()))
