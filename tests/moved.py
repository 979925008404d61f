"""Pictures some time on, every reading as fresh as before."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from console.readings.quality import Reading
from console.snapshot import Snapshot


def later(picture: Snapshot, seconds: float) -> Snapshot:
    """The same picture so many seconds later; nothing in it has grown old."""
    hosts = tuple(_fresh(host, seconds) for host in picture.hosts)
    lanes = tuple(_fresh(lane, seconds) for lane in picture.lanes)
    return replace(picture, now=picture.now + seconds, wall=picture.wall + seconds, hosts=hosts, lanes=lanes)


def _fresh(view: Any, seconds: float) -> Any:
    readings = {field.name: getattr(view, field.name) for field in fields(view)}
    return replace(view, **{name: _again(item, seconds) for name, item in readings.items()})


def _again(item: Any, seconds: float) -> Any:
    if isinstance(item, Reading) and item.taken_mono is not None:
        return replace(item, taken_mono=item.taken_mono + seconds, taken_wall=(item.taken_wall or 0.0) + seconds)
    if isinstance(item, tuple):
        return tuple(_again(part, seconds) for part in item)
    return item
