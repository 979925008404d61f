"""A step that outlives every connection: a systemd unit on its host, or a session of its own where there is none.

Whatever started it, it is found again by operation and step. A start whose answer was lost is looked up, and what was
sent twice runs once: the host lets a step begin a single time. Times are Unix seconds by that host's clock.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from console.execution.files import stamp, unpacked
from console.execution.scripts import Answer, Exit, ask, read_answer, script
from console.reach.link import Link
from console.sanitize import lines

START_LIMIT = 45.0
"""Seconds for a start, all in: a login shell, the wait for the lock and systemd-run have limits of their own."""
LOOK_LIMIT = 25.0
BLOCK = 64 << 10
"""Bytes of a log that are asked for at once."""
_LONGEST = 64 << 10
"""Bytes of a line without an end that are waited for."""
_LONGEST_PATH = 8000
_LOOKS = 3
_PAUSE = 1.0


class Phase(StrEnum):
    """What a host says of a detached step."""

    WAITING = "waiting"
    """Another command starts it right now."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    """Ended on purpose."""
    LOST = "lost"
    """It began, is gone, and nothing says how it ended."""
    ABSENT = "absent"
    """It never began."""
    UNKNOWN = "unknown"
    """The host did not say."""


class Mode(StrEnum):
    """What keeps a step."""

    AUTO = "auto"
    USER = "user"
    """A unit of the account's own manager, which lingers."""
    SYSTEM = "system"
    """A unit of the machine, by root or sudo."""
    NONE = "none"
    """A session of its own: no systemd, or no right to it."""


@dataclass(frozen=True, slots=True)
class DetachedState:
    """What became of a step. All texts are safe."""

    phase: Phase
    code: int | None = None
    """Exit status, where it ended by itself."""
    signal: str = ""
    """`TERM`: what ended it."""
    began: int | None = None
    ended: int | None = None
    unit: str = ""
    mode: str = ""
    pid: int | None = None
    same_boot: bool | None = None
    """False: the host was restarted since; None: nothing says."""
    load_state: str = ""
    """`loaded`, `not-found`, where its manager was asked."""
    size: int = 0
    """Of its log, in bytes."""
    log: str = ""
    """Path of its log on the host."""
    words: str = ""
    """Why it is so: `ended at its time limit`."""

    @property
    def over(self) -> bool:
        """Nothing of it runs any more, and nothing will."""
        return self.phase in (Phase.DONE, Phase.FAILED, Phase.STOPPED, Phase.LOST)


@dataclass(frozen=True, slots=True)
class Started:
    """The step is there. `joined`: it was started before, by whomever."""

    state: DetachedState
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Fenced:
    """A newer lease was seen on that host: nothing was done."""

    epoch: int | None
    operator: str
    """Who holds it, '' where that host does not know."""
    since: int | None
    problem: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It was not started; with `unknown` nobody can say, and it has to be looked up before anything else is done."""

    problem: str
    unknown: bool = False
    files: bool = False
    """The files that go with it could not be written."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The state, and what the log holds from the offset on."""

    state: DetachedState
    data: bytes = b""
    next: int = 0
    """The offset to go on from."""


class LogLines:
    """Safe lines out of what `follow` brings, whatever the offsets cut through."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        """Where to go on reading."""
        self._rest = b""

    def take(self, followed: Followed) -> list[str]:
        """The lines that are complete now; a last one without an end counts once the step is over and all was read."""
        self.offset = followed.next
        whole, mark, rest = (self._rest + followed.data).rpartition(b"\n")
        if len(rest) > _LONGEST or (rest and followed.state.over and followed.next >= followed.state.size):
            whole, mark, rest = whole + mark + rest, b"\n", b""
        self._rest = rest
        return lines(whole + mark)


@dataclass(frozen=True, slots=True)
class Modes:
    """Where steps of this account can run on a host."""

    mode: Mode | None
    """What `auto` takes; None where it is not known."""
    why_not_user: str = ""
    why_not_system: str = ""
    account: str = ""
    problem: str = ""
    boot: str = ""
    """The boot of the host in which it said so; with it `path`, what a login there finds its programs by. Raw words,
    which that host alone gets back; '' where they were not asked for."""
    path: str = ""


def read_state(answer: Answer) -> DetachedState:
    """The state lines of an answer, every value checked."""
    if answer.exit not in (Exit.OK, Exit.THERE):
        return DetachedState(Phase.UNKNOWN, words=answer.problem)
    said = answer.values.get("state", "")
    if said not in set(Phase):
        return DetachedState(Phase.UNKNOWN, words="its answer is damaged")
    boot = {"same": True, "changed": False}.get(answer.values.get("boot", ""))
    return DetachedState(
        phase=Phase(said),
        code=answer.number("code"),
        signal=answer.text("signal", 20),
        began=answer.number("began"),
        ended=answer.number("ended"),
        unit=answer.text("unit"),
        mode=answer.text("mode", 20),
        pid=answer.number("pid"),
        same_boot=boot,
        load_state=answer.text("loadstate", 40),
        size=answer.number("size") or 0,
        log=answer.text("log", 500),
        words=answer.text("words"),
    )


async def start(
    link: Link,
    folder: str,
    op: str,
    step: str,
    epoch: int | None,
    argv: Sequence[str],
    *,
    stdin: str = "",
    keeps: bool = False,
    limit: float = 3600.0,
    memory: str = "",
    mode: Mode = Mode.AUTO,
    written: Mapping[str, str] | None = None,
    known: Modes | None = None,
) -> Started | Fenced | Refused:
    """Start a step, or join the one that is there. `keeps`: the daemons that it leaves behind live on. `limit` in
    seconds from its beginning. `memory` as systemd writes a cap, `4G`; '' for none. `written`: files of the state
    folder that are on the host's disk before it starts, none of them empty. `known`: what `modes` said before."""
    places = ["start", folder, op, step, stamp(epoch), mode.value, "1" if keeps else "0"]
    texts = {name: text.encode() for name, text in (written or {}).items()}
    more: list[str] = []
    if texts or known is not None:
        before = known if known is not None and known.mode is not None else Modes(None)
        sizes = " ".join(f"{name}:{len(text)}" for name, text in texts.items())
        more = [sizes, before.boot, before.mode.value if before.mode is not None else "", before.path]
    arguments = [*places, str(max(1, math.ceil(limit))), memory or "-", *more, "--", *argv]
    given = b"".join(texts.values()).decode() + stdin
    answer = await ask(link, "starter", arguments, stdin=given, limit=START_LIMIT)
    if answer.exit is Exit.NO:
        return Refused(answer.problem, files=True)
    if answer.exit is Exit.FENCED:
        since, operator = answer.number("since"), answer.text("operator", 80)
        return Fenced(answer.number("epoch"), operator, since, answer.problem)
    if answer.exit in (Exit.OK, Exit.THERE):
        found = read_state(answer)
        return Started(found, joined=answer.exit is Exit.THERE) if found.phase is not Phase.UNKNOWN else _lost(found)
    if not answer.unknown:
        return Refused(answer.problem)
    return await _look_up(link, folder, op, step, answer.problem)


async def _look_up(link: Link, folder: str, op: str, step: str, problem: str) -> Started | Refused:
    """What became of a start whose answer did not come. It is never sent again from here."""
    found = DetachedState(Phase.UNKNOWN, words=problem)
    for attempt in range(_LOOKS):
        if attempt:
            await asyncio.sleep(_PAUSE)
        found = await state(link, folder, op, step)
        if found.phase not in (Phase.UNKNOWN, Phase.ABSENT, Phase.WAITING):
            return Started(found)
    # even `absent` is no proof: what a dead connection holds may still arrive
    return _lost(found if found.words else DetachedState(found.phase, words=problem))


def _lost(found: DetachedState) -> Refused:
    return Refused(f"whether it was started is not known: {found.words}", unknown=True)


async def state(link: Link, folder: str, op: str, step: str) -> DetachedState:
    """What became of a step; changes nothing."""
    return read_state(await ask(link, "reader", ["state", folder, op, step], limit=LOOK_LIMIT, looks=True))


async def follow(link: Link, folder: str, op: str, step: str, offset: int = 0, *, most: int = BLOCK) -> Followed:
    """The state and at most `most` bytes of the log from a byte offset, in one exchange. Feed `next` to the next call;
    a step is read to its end when it is over and `next` has reached `state.size`."""
    arguments = ["follow", folder, op, step, str(offset), str(most)]
    answer = await ask(link, "reader", arguments, limit=LOOK_LIMIT, looks=True)
    found, data = read_state(answer), unpacked(answer.values.get("data", ""))
    if found.phase is Phase.UNKNOWN or data is None:
        return Followed(found, next=offset)
    return Followed(found, data, offset + len(data))


async def log(link: Link, folder: str, op: str, step: str, offset: int = 0, *, most: int = BLOCK) -> bytes | None:
    """Bytes of the log from an offset; None where they could not be read."""
    followed = await follow(link, folder, op, step, offset, most=most)
    return None if followed.state.phase is Phase.UNKNOWN else followed.data


async def stop(
    link: Link, folder: str, op: str, step: str, *, epoch: int | None = None, seconds: int = 10
) -> DetachedState:
    """End a step: TERM, and KILL `seconds` later. What has not begun never will. An older epoch is refused by the host,
    which answers UNKNOWN with the words; without one it is not asked."""
    arguments = ["stop", folder, op, step, str(seconds)]
    limit = LOOK_LIMIT + seconds + 25.0
    if epoch is None:
        return read_state(await ask(link, "starter", arguments, limit=limit))
    fenced = ["sh", "-c", script("fence"), "laneswap", folder, str(epoch), "--"]
    output = await link.run(
        [*fenced, "sh", "-c", script("starter"), "laneswap", *arguments], limit=limit, operator=True
    )
    return read_state(read_answer(output))


async def modes(link: Link, folder: str, *, path: bool = False) -> Modes:
    """Where steps can run on a host, and why not elsewhere; `path`: for a start that comes soon. Makes and changes
    nothing."""
    answer = await ask(link, "starter", ["modes", folder, *(["path"] if path else [])], looks=True)
    said = answer.values.get("mode", "")
    if answer.exit is not Exit.OK or said not in set(Mode):
        return Modes(None, problem=answer.problem or "its answer is damaged")
    boot, way = answer.values.get("boot", ""), answer.values.get("path", "")
    reasons = answer.text("user"), answer.text("system"), answer.text("account", 80)
    return Modes(Mode(said), *reasons, boot=boot, path=way if len(way) <= _LONGEST_PATH else "")
