"""Files of a lane's state folder on a host: written as a whole or not at all, and only under the newest lease.

A folder is `Fleet.state`/FLEET.LANE, a name is relative to it. An epoch of None is break-glass: the host is not asked
whether a newer lease was seen.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from console.execution.scripts import Answer, Exit, ask
from console.reach.link import Link

MOST = 4 << 20
"""Bytes of a file that are read at once: the operation file of 12 ranks has more than 1 MiB."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write. Neither ok nor unknown: it was refused, and nothing was changed."""

    ok: bool
    problem: str = ""
    """Safe words, '' if ok."""
    unknown: bool = False
    """The answer was lost: it may or may not have been written."""
    fenced: bool = False
    """A newer lease was seen there."""
    moved: bool = False
    """The file had not the length that was expected: nothing was added."""
    size: int | None = None
    """Of the file now, in bytes; None where it was not said."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was read. Neither there nor unknown: there is no such file."""

    there: bool
    data: bytes = b""
    """From the offset that was asked for; may hold anything."""
    size: int = 0
    """Of the whole file, in bytes."""
    problem: str = ""
    unknown: bool = False
    """It could not be asked, or it cannot be read."""

    @property
    def text(self) -> str:
        """As UTF-8, anything else replaced; not safe to show before it went through `sanitize`."""
        return self.data.decode("utf-8", "replace")


def stamp(epoch: int | None) -> str:
    """How a script is told the epoch."""
    return "-" if epoch is None else str(epoch)


async def make_folder(link: Link, folder: str) -> Written:
    """Make the state folder on a host, or say why it cannot be used."""
    return _written(await ask(link, "statedir", [folder]))


async def sharing(link: Link, folder: str) -> str:
    """Who besides this account could act there, in words; '' if the host did not say. Makes the folder."""
    answer = await ask(link, "statedir", [folder])
    if answer.exit is not Exit.OK:
        return ""
    group, members = answer.text("group", 60), answer.text("members", 200)
    if not group:
        return "nobody but this account (and root) could take over"
    return f"the group {group} could take over{f': {members.replace(chr(44), chr(44) + chr(32))}' if members else ''}"


async def put(link: Link, folder: str, epoch: int | None, name: str, text: str) -> Written:
    """Replace a file. What stood there stays if anything goes wrong."""
    arguments = [folder, stamp(epoch), name, str(len(text.encode()))]
    return _written(await ask(link, "put", arguments, stdin=text))


async def append(
    link: Link, folder: str, epoch: int | None, name: str, lines: str, *, at: int | None = None
) -> Written:
    """Add lines, all or none. With `at`, the length in bytes that the file must have, a repeat after a lost answer is
    harmless: it is refused as `moved`, and `size` says what is there."""
    arguments = [folder, stamp(epoch), name, str(len(lines.encode())), *([str(at)] if at is not None else [])]
    return _written(await ask(link, "append", arguments, stdin=lines))


async def drop(link: Link, folder: str, epoch: int | None, name: str) -> Written:
    """Remove a file; one that is not there is fine."""
    return _written(await ask(link, "drop", [folder, stamp(epoch), name]))


async def read(link: Link, folder: str, name: str, *, offset: int = 0, most: int = MOST) -> Found:
    """At most `most` bytes of a file from a byte offset."""
    answer = await ask(link, "read", [folder, name, str(offset), str(most)], looks=True)
    if answer.exit is Exit.NO:
        return Found(there=False)
    data, size = unpacked(answer.values.get("data", "")), answer.number("size")
    if answer.exit is not Exit.OK or data is None or size is None:
        return Found(there=False, problem=answer.problem or "its answer is damaged", unknown=True)
    return Found(True, data, size)


def unpacked(text: str) -> bytes | None:
    """The bytes of a base64 text; None if it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _written(answer: Answer) -> Written:
    return Written(
        ok=answer.exit is Exit.OK,
        problem=answer.problem,
        unknown=answer.unknown,
        fenced=answer.exit is Exit.FENCED,
        moved=answer.exit is Exit.THERE,
        size=answer.number("size"),
    )
