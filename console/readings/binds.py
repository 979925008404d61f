"""What is bound into a container, held against what was there when it was first seen; deeds that are remembered. Pure.

A container keeps paths, not what lies there: another folder in its place serves another checkpoint without an error,
and `docker start` makes an empty folder of a source that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from console.readings.look import Status
from console.readings.paths import PathSeen
from console.readings.quality import Reading

UNREADABLE_VOLUME = "/volumes/"
VOLUME_END = "/_data"


class BindState(StrEnum):
    """How a bind source stands to what it was."""

    SAME = "same"
    NEW = "new"
    """Seen, and nothing to hold it against but itself: it was seen for the first time by this console."""
    VOLUME = "volume"
    """A volume that Docker keeps for as long as the container is there; others may not look into it."""
    MISSING = "missing"
    EMPTY = "empty"
    REPLACED = "replaced"
    """Another thing lies at the same path."""
    CHANGED = "changed"
    """The same thing with another content."""
    UNKNOWN = "unknown"


GOOD = (BindState.SAME, BindState.NEW, BindState.VOLUME)
BAD = (BindState.MISSING, BindState.EMPTY, BindState.REPLACED, BindState.CHANGED)


@dataclass(frozen=True, slots=True)
class BindMark:
    """What a source was when a container was first seen with it: kept on the operator's machine."""

    container: str
    """The container's id."""
    source: str
    real: str
    device: int
    inode: int
    sentinel: str
    sha256: str
    at: float
    """Unix seconds by the host's clock."""


@dataclass(frozen=True, slots=True)
class BindSource:
    """One source of one container, now and then."""

    host: str
    container: str
    """Its id."""
    source: str
    now: Reading[PathSeen]
    mark: BindMark | None = None
    state: BindState = BindState.UNKNOWN
    words: str = ""
    """`another folder than on 12 Nov`; '' where it is what it was."""
    since: float | None = None
    """Unix seconds by the host's clock at which it was first found otherwise than it was."""


@dataclass(frozen=True, slots=True)
class Deed:
    """A way back that was really gone."""

    operation: str
    began: float
    """Unix seconds by the head's clock."""
    took: float
    """Seconds until the lane served again."""
    target: str
    operator: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A way back that was whole."""

    at: float
    """Unix seconds at which it was last seen so."""
    revision: str
    by: str
    subject: str
    """Name of the container that is gone back to; '' for none."""
    container: str = ""
    """Its id."""
    items: tuple[str, ...] = field(default=())
    """Names of the items that held."""


def mark_of(container: str, source: str, seen: PathSeen, at: float) -> BindMark:
    """What is to be remembered of a source."""
    return BindMark(container, source, seen.real, seen.device, seen.inode, seen.sentinel, seen.sha256, at)


def is_volume(source: str) -> bool:
    """Whether Docker itself keeps what lies there: `.../volumes/NAME/_data`."""
    return UNREADABLE_VOLUME in source and source.endswith(VOLUME_END)


def judge(source: str, seen: PathSeen | None, mark: BindMark | None) -> tuple[BindState, str]:
    """How a source stands to its mark, in words where that is not as it was."""
    if seen is None:
        return BindState.UNKNOWN, "not read yet"
    if seen.status is Status.MISSING:
        return BindState.MISSING, "is gone"
    if seen.status is not Status.OK:
        if is_volume(source):
            return BindState.VOLUME, ""
        why = "may not be looked at by this user" if seen.status is Status.DENIED else seen.words
        return BindState.UNKNOWN, why
    if seen.entries == 0:
        return BindState.EMPTY, "is empty"
    if mark is None:
        return BindState.NEW, ""
    return _held_against(seen, mark)


def _held_against(seen: PathSeen, mark: BindMark) -> tuple[BindState, str]:
    """Devices are numbered anew by a remount and a restart: alone another number says nothing."""
    told = bool(mark.sha256 and seen.sha256 and mark.sentinel == seen.sentinel)
    same_content = told and mark.sha256 == seen.sha256
    what = "the file" if seen.kind == "f" else "the folder"
    if seen.inode != mark.inode:
        if same_content:
            return BindState.NEW, f"{what} is another one with the same {_content(seen)}"
        if seen.real != mark.real:
            return BindState.REPLACED, f"leads to {seen.real} now, not to {mark.real}"
        if seen.kind == "f" and not told:
            return BindState.CHANGED, "was written anew"
        other = f"and its {_content(seen)} differs" if told else "at the same path"
        return BindState.REPLACED, f"{what} is another one {other}"
    if told and not same_content:
        return BindState.CHANGED, f"its {_content(seen)} has changed"
    if mark.sentinel not in ("", ".") and mark.sentinel != seen.sentinel:
        return BindState.CHANGED, f"its {mark.sentinel} is gone"
    if mark.sha256 and not seen.sha256 and seen.sentinel not in ("", "."):
        return BindState.CHANGED, f"its {seen.sentinel} leads nowhere or cannot be read"
    return BindState.SAME, ""


def _content(seen: PathSeen) -> str:
    return "beginning" if seen.sentinel == "." else seen.sentinel
