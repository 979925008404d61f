"""A start whose answer was lost: whether it began is found out from the head; one that has not never will."""

from __future__ import annotations

from enum import StrEnum

from console.execution import detached, files
from console.execution.detached import Phase
from console.execution.sequence_head import UNIT, newest_run
from console.reach.link import Link
from console.readings.acting import CURRENT


class Cleared(StrEnum):
    """What became of a start."""

    BEGAN = "began"
    PASSED = "began, and another one followed"
    NEVER = "never began"
    """And cannot any more, should what was sent still arrive."""
    UNKNOWN = "unknown"
    """The head does not say yet: ask again."""


async def clear_up(link: Link, folder: str, op: str, epoch: int | None, *, late: bool) -> Cleared:
    """Ask the head. `late`: what was sent has had its time; an operation that is not there then is kept from beginning
    by the same mark as one that an operator has stopped before. Raises nothing."""
    _, state = await newest_run(link, folder, op)
    if state.phase is Phase.ABSENT and late:
        mark = f"ops/{op}/{UNIT}@stop"
        if not (await files.put(link, folder, epoch, mark, "its start was lost\n")).ok:
            return Cleared.UNKNOWN
        state = await detached.state(link, folder, op, UNIT)
        if state.phase is Phase.STOPPED and state.began is None:
            return Cleared.NEVER
        if state.phase is not Phase.UNKNOWN:  # it came just before: it is not to be stopped
            await files.drop(link, folder, epoch, mark)
    if state.phase is Phase.STOPPED and state.began is None:
        return Cleared.NEVER
    if state.phase in (Phase.UNKNOWN, Phase.ABSENT, Phase.WAITING):
        return Cleared.UNKNOWN
    return await _named(link, folder, op, epoch)


async def _named(link: Link, folder: str, op: str, epoch: int | None) -> Cleared:
    """Every console is to see it: the name of the newest operation may have been lost with the answer."""
    found = await files.read(link, folder, CURRENT)
    name = found.text.strip()
    if name == op:
        return Cleared.BEGAN
    if not found.unknown and name[:16] > op[:16]:  # a name begins with the time at which it was made
        return Cleared.PASSED
    written = not found.unknown and (await files.put(link, folder, epoch, CURRENT, f"{op}\n")).ok
    return Cleared.BEGAN if written else Cleared.UNKNOWN
