"""Steps that outlive connections, played: starter.sh as a unit of the host, and short commands that run once.

Their folders lie in the host's state folder as the real ones do, so that what reads them finds log and result there."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.rehearsal.acting import statefiles
from console.rehearsal.acting.known import Known, starter_text
from console.rehearsal.acting.playing import Job
from console.rehearsal.commands import REFUSAL

Recognised = Callable[[Sequence[str], str], Known | None]
Execute = Callable[[Job], Awaitable[int]]
_OPERATION = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_STEP = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")
STOP_S = 10
MOST_LOG = 1 << 20
"""Bytes that are handed out at once."""


@dataclass(slots=True)
class Unit:
    """One detached step."""

    operation: str
    step: str
    folder: str
    """Where it lies on this machine."""
    boot: str
    pid: int
    began: int
    limit: float
    mode: str = "user"
    state: str = "running"
    code: str = ""
    signal: str = ""
    ended: str = ""
    words: str = ""
    asked: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    halt: Callable[[], None] | None = None
    """How it is asked to end, where that is not simply done."""

    @property
    def log(self) -> Path:
        """What it said."""
        return Path(self.folder, "log")


class Units:
    """Those of one host."""

    def __init__(self, execute: Execute, recognised: Recognised) -> None:
        """`execute` plays a command on this host; `recognised` says which it is."""
        self._execute, self._recognised = execute, recognised
        self._units: dict[tuple[str, str], Unit] = {}

    # --- starter.sh

    async def starter(self, job: Job) -> int:
        """`start|state|follow|log|stop|modes D ...`."""
        verb, *rest = job.args or ("",)
        if not rest:
            return _cannot(job, f"no such verb: {verb[:40]}")
        if verb == "modes":
            statefiles.real_folder(job, rest[0])
            rows = ("mode=user", "user=", "system=ops has no sudo without a password", "account=ops")
            job.out += rows
            return 0
        if len(rest) < 3 or not _OPERATION.fullmatch(rest[1]) or not _STEP.fullmatch(rest[2]):
            return _cannot(job, f"not a step: {' '.join(rest)[:100]}")
        place = Path(statefiles.real_folder(job, rest[0]), "ops", rest[1], rest[2])
        unit = self._units.get((rest[1], rest[2]))
        if verb == "start":
            return await self._start(job, place, rest)
        if verb == "stop":
            return await self._stop(job, place, unit, rest[3:])
        if verb in ("state", "follow"):
            self._answer(job, place, unit)
            if verb == "follow":
                job.out.append(f"data={base64.b64encode(_bytes(place / 'log', rest[3:])).decode()}")
            return 0
        if verb == "log":
            job.out += _bytes(place / "log", rest[3:]).decode("utf-8", "replace").splitlines()
            return 0
        return _cannot(job, f"no such verb: {verb[:40]}")

    async def _start(self, job: Job, place: Path, rest: list[str]) -> int:
        folder, operation, step, epoch, _, _, limit, _, *more = rest
        files, argv = started(more)
        texts, stdin = parted(files, job.known.stdin)
        wanted = self._recognised(argv, stdin)
        if wanted is None or not limit.isdecimal():
            return _cannot(job, REFUSAL)
        if status := await statefiles.fenced(job, folder, epoch):
            return status
        unit = self._units.get((operation, step))
        if unit is not None:
            self._answer(job, place, unit)
            job.err.append(f"{operation}/{step} was started already")
            return 3
        if _marked(place):
            self._answer(job, place, None)
            return 3
        for name, text in texts.items():
            if await statefiles.put(job, folder, epoch, name, text):
                return 1
        try:
            if statefiles.full(job, folder):
                raise OSError(28, statefiles.FULL)
            unit = self._begin(job, place, operation, step, float(limit), wanted, list(argv))
        except OSError as error:
            return _cannot(job, f"{place.name} cannot be written: {error.strerror}")
        self._answer(job, place, unit)
        return 0

    def _begin(
        self, job: Job, place: Path, operation: str, step: str, limit: float, wanted: Known, argv: list[str]
    ) -> Unit:
        place.mkdir(parents=True)
        boot = _boot_id(job)
        pid = job.playing.next_pid()
        unit = Unit(operation, step, str(place), boot, pid, int(job.there.wall), limit)
        (place / "log").touch()
        (place / "cmd").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        (place / "boot").write_text(boot + "\n")
        self._units[operation, step] = unit
        below = Job(job.playing, job.host, wanted, hear=lambda words: _log(unit, words))
        unit.task = job.playing.keep(self._carry_out(below, unit))
        job.playing.heard(job.host, step)
        return unit

    async def _carry_out(self, job: Job, unit: Unit) -> None:
        job.unit = unit
        try:
            async with asyncio.timeout(unit.limit):
                code = await self._execute(job)
        except TimeoutError:
            unit.state, unit.words = "failed", "ended at its time limit"
        except asyncio.CancelledError:
            unit.state, unit.signal, unit.words = "stopped", "TERM", "ended by signal TERM"
        else:
            for row in job.err:
                _log(unit, row)
            unit.code, unit.state = str(code), "done" if code == 0 else "failed"
            unit.words = f"exit status {code}" if code else ""
        if unit.over.is_set():
            unit.state = "lost"  # its host was restarted: nothing was written any more
            return
        if unit.asked:
            unit.state, unit.words = "stopped", f"stopped by an operator{unit.words and ', ' + unit.words}"
        unit.ended = str(int(job.there.wall))
        _keep(Path(unit.folder, "result"), f"{unit.state} {unit.code or '-'} {unit.ended}\n")
        unit.over.set()

    async def _stop(self, job: Job, place: Path, unit: Unit | None, more: list[str]) -> int:
        seconds = int(more[0]) if more and more[0].isdecimal() else STOP_S
        if unit is None or not unit.over.is_set():
            _mark(place)
        if unit is not None and not unit.over.is_set():
            unit.asked = True
            if unit.halt is not None:
                unit.halt()
            elif unit.task is not None:
                unit.task.cancel()
            try:
                async with asyncio.timeout(seconds + 5):
                    await unit.over.wait()
            except TimeoutError:
                return _cannot(job, f"{unit.operation}/{unit.step} does not end")
        self._answer(job, place, unit)
        return 0

    def _answer(self, job: Job, place: Path, unit: Unit | None) -> None:
        state, words = "absent", ""
        if _marked(place):
            state, words = "stopped", "stopped by an operator before it began"
        size = (place / "log").stat().st_size if (place / "log").exists() else 0
        name = f"laneswap-{place.parent.name}-{place.name}.service"
        if unit is None:
            rows = {"state": state, "unit": name, "boot": "unknown", "size": size, "words": words}
        else:
            same = _boot_id(job) == unit.boot
            if not same and unit.state == "running":
                unit.state, unit.words = "lost", "the host was restarted while it ran"
            rows = {
                "state": unit.state,
                "code": unit.code,
                "signal": unit.signal,
                "began": unit.began,
                "ended": unit.ended,
                "unit": name,
                "mode": unit.mode,
                "pid": unit.pid,
                "boot": "same" if same else "changed",
                "loadstate": "loaded" if unit.state == "running" else "not-found",
                "size": size,
                "words": unit.words,
            }
        job.out += [f"{key}={value}" for key, value in rows.items()]
        job.out.append(f"log={str(place).removeprefix(job.files.root)}/log")

    # --- short commands, and looks

    async def once(self, job: Job) -> int:
        """D OP STEP ARGV...: a command that nobody can begin twice, its exit status kept."""
        folder, operation, step, *argv = job.args
        wanted = self._recognised(argv, job.known.stdin)
        if wanted is None or not _OPERATION.fullmatch(operation) or not _STEP.fullmatch(step):
            return _cannot(job, REFUSAL)
        place = Path(statefiles.real_folder(job, folder), "ops", operation, step)
        if statefiles.full(job, folder):
            return _cannot(job, f"cannot make {folder}/ops/{operation}/{step}")
        if not _claimed(place):
            job.err.append("this step was begun here before")
            return 3
        (place / "boot").write_text(_boot_id(job) + "\n")
        job.playing.heard(job.host, step)
        below = Job(job.playing, job.host, wanted)
        code = await self._execute(below)
        job.out += below.out
        job.err += below.err
        _keep(place / "out", "".join(f"{row}\n" for row in below.out))
        _keep(place / "err", "".join(f"{row}\n" for row in below.err))
        _keep(place / "code", f"{code}\n")
        return code

    async def look(self, job: Job) -> int:
        """D OP STEP: what became of it."""
        folder, operation, step = job.args
        place = Path(statefiles.real_folder(job, folder), "ops", operation, step)
        job.out += _short_state(place)
        job.out.append(f"up={_up(job)}")
        return 0

    async def aside(self, job: Job) -> int:
        """D OP STEP: puts aside what is left of a step that a restart of its host cut short."""
        folder, operation, step = job.args
        place = Path(statefiles.real_folder(job, folder), "ops", operation, step)
        if not _put_aside(place, _boot_id(job)):
            job.err.append("the host was not restarted since it was begun")
            return 1
        self._units.pop((operation, step), None)
        return 0

    async def wait(self, job: Job) -> int:
        """STARTER D OP STEP TIMES PAUSE SECONDS: the state of a unit, told as soon as it has ended. Questions on its
        standard input are left unanswered: then they are asked by themselves."""
        text, folder, operation, step, times, pause, _ = job.args
        if text != starter_text():
            return _cannot(job, REFUSAL)
        unit = self._units.get((operation, step))
        most = min(60.0, float(times) * float(pause)) if _decimals(times, pause) else 0.0
        if unit is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(most):
                    await unit.over.wait()
        below = Job(job.playing, job.host, Known("starter", ("state", folder, operation, step)))
        code = await self.starter(below)
        job.out += [*below.out, f"up={_up(job)}"]
        job.err += below.err
        return code

    # --- the host

    def host_goes_down(self) -> None:
        """Whatever runs ends, and leaves no result."""
        for unit in self._units.values():
            if not unit.over.is_set():
                unit.state, unit.words = "lost", "the host was restarted while it ran"
                unit.over.set()
                if unit.task is not None:
                    unit.task.cancel()


def started(words: Sequence[str]) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
    """What follows MEMORY of a start: names and sizes of the files that come with it, and its command; no command where
    it is told otherwise than the console tells it."""
    if tuple(words[:1]) == ("--",):
        return [], tuple(words[1:])
    if tuple(words[4:5]) != ("--",):
        return [], ()
    files = [
        (name, int(size)) for name, _, size in (one.partition(":") for one in words[0].split()) if size.isdecimal()
    ]
    return files, tuple(words[5:])


def parted(files: Sequence[tuple[str, int]], stdin: str) -> tuple[dict[str, str], str]:
    """Each file's part of the standard input, and the command's own, which is the rest."""
    data, found = stdin.encode(), {}
    for name, size in files:
        found[name], data = data[:size].decode("utf-8", "replace"), data[size:]
    return found, data.decode("utf-8", "replace")


def _cannot(job: Job, words: str) -> int:
    job.err.append(words)
    return 5


def _marked(place: Path) -> bool:
    """Whether somebody told the step to stop."""
    return Path(f"{place}@stop").exists()


def _mark(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{place}@stop").write_text(f"{int(time.time())}\n")


def _keep(file: Path, text: str) -> None:
    """A small file, as a whole or not at all; nothing where the rehearsal has ended."""
    with contextlib.suppress(OSError):
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(text)
        os.replace(fresh, file)


def _claimed(place: Path) -> bool:
    """Whether this command is the first of its name."""
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def _put_aside(place: Path, boot: str) -> bool:
    """Moves a step's folder out of the way; False where it belongs to this start of the host."""
    if not place.is_dir():
        return True
    if (place / "boot").read_text().strip() == boot:
        return False
    place.rename(f"{place}@{next(at for at in itertools.count(1) if not Path(f'{place}@{at}').exists())}")
    return True


def _short_state(place: Path) -> list[str]:
    try:
        code, said = (place / "code").read_text().strip(), (place / "err").read_text().splitlines()
        return ["state=ended", f"code={code}", f"said={said[-1] if said else ''}"]
    except FileNotFoundError:
        return ["state=running" if place.exists() else "state=absent"]


def _log(unit: Unit, words: str) -> None:
    with contextlib.suppress(OSError), open(unit.log, "a", encoding="utf-8") as file:
        file.write(f"{words}\n")


def _bytes(path: Path, told: list[str]) -> bytes:
    offset, most = (int(word) if word.isdecimal() else 0 for word in (*told, "0", "0")[:2])
    try:
        return path.read_bytes()[offset : offset + min(most, MOST_LOG)]
    except FileNotFoundError:
        return b""


def _boot_id(job: Job) -> str:
    return (job.read("/proc/sys/kernel/random/boot_id") or "").strip()


def _up(job: Job) -> str:
    return (job.read("/proc/uptime") or "0").split(" ")[0]


def _decimals(*words: str) -> bool:
    return all(re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", word) for word in words)
