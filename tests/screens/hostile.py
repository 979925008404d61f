"""A picture in which every text, wherever it stands, is hostile."""

from __future__ import annotations

import dataclasses
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import pictures
from pydantic import BaseModel

from console.snapshot import Snapshot

CLIPBOARD = "\x1b]52;c;aGFja2Vk\x1b\\"
TEXTS = (
    "[/v1/messages] [rank0]: [bold",
    "[@click=app.quit]press[/] [@click=app.perform('quit')]me[/]",
    CLIPBOARD + "after OSC 52",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\x9b2J\x90q\x9c",
    "\u5bbd\u5b57\u7b26\U0001f512\u26a0\ufe0f e\u0301\u0301\u0301\u0301 \u202eevil\u202c \u200b\ufeff",
    "\x1b[c\x1b[6n\x1b[>q\x1bP+q544e\x1b\\\x1b[201~\x1b]8;;http://x\x1b\\link\x1b]9;call\x07\x1b]777;notify;a;b\x07MARK",
    "\r\n\t\x00\x07\x08\x0b\x0c\x7f next",
    "x" * 5000,
    "%s {0} ${x} $(reboot) `reboot` ' \" \\",
)


def hostile_snapshot() -> Snapshot:
    """Texts of hosts, containers, engines, logs and errors replaced; what the operator wrote himself stays."""
    counter = iter(range(1 << 30))
    return _with_texts(pictures.trouble(), lambda: TEXTS[next(counter) % len(TEXTS)], kept=_names(pictures.trouble()))


def hostile_reads() -> Snapshot:
    """The read side as real parsers made it out of hostile answers, with the console's own host and lane names."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from hostile_read_side import hostile_picture

    counter = iter(range(1 << 30))
    return hostile_picture(lambda: TEXTS[next(counter) % len(TEXTS)])


def _names(snapshot: Snapshot) -> frozenset[str]:
    """Names that tie the picture together; they come from the fleet file, which checks them."""
    return frozenset({*snapshot.fleet.hosts, *snapshot.fleet.lanes})


def _with_texts(value: Any, text: Any, kept: frozenset[str]) -> Any:
    if isinstance(value, Enum | BaseModel):
        return value
    if isinstance(value, str):
        return value if value in kept else text()
    if isinstance(value, tuple):
        return tuple(_with_texts(item, text, kept) for item in value)
    if isinstance(value, dict):
        return {text(): _with_texts(item, text, kept) for item in value.values()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _with_texts(getattr(value, f.name), text, kept) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **fields)
    return value
