"""A sequence on the head node: put there, started as a unit of its own, found again, followed, stopped, carried on.

`links` and folders are those of the lane's head. Nothing here raises for what a host does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.execution import detached, files
from console.execution.detached import DetachedState, Modes, Phase
from console.execution.runner_head import parsed
from console.execution.sequence import Operation, epoch_of, read_operation, runner_text, time_limit
from console.execution.sequence_sheet import by_hand
from console.reach.link import Link
from console.readings.output import Outcome

UNIT = "sequence"
"""The step name of the runner itself; `sequence-2` is the second one that carries the same operation on."""
MOST_RUNS = 20
SHORT_STOP, LONG_STOP = 15, 45
"""Seconds that a runner has to end: its short command; units on other hosts, too."""
_PYTHON = (
    "import fcntl, json, os, re, shlex, signal, socket, subprocess, sys, threading, typing\n"
    "sys.exit(sys.version_info < (3, 8))\n"
)


@dataclass(frozen=True, slots=True)
class OnHead:
    """What became of a start. Not started and no `cannot`: nothing may be done in its place."""

    started: bool
    problem: str = ""
    """Safe words; with `started` what went wrong beside it."""
    cannot: bool = False
    """The head cannot carry it out, and has begun nothing: the console may."""
    fenced: bool = False
    """A newer lease was seen."""
    unknown: bool = False
    """It may or may not run: look it up before anything else is done."""
    unit: str = ""
    """Step name of the runner."""


def place(operation: Operation, name: str) -> str:
    """A file of the operation's folder, relative to the state folder."""
    return f"ops/{operation['id']}/{name}"


async def can_run(link: Link) -> str:
    """'' if the head can carry a sequence out, else why not. Raises nothing."""
    output = await link.run(["python3", "-I", "-S", "-"], stdin=_PYTHON, limit=15.0, operator=True)
    if output.ok:
        return ""
    if output.outcome is Outcome.FAILED:
        return f"{link.name} has no python3 (3.8 or newer, with its standard library)"
    return f"{link.name}: {output.hint or output.outcome}"


async def publish(link: Link, operation: Operation) -> files.Written:
    """Operation file and by-hand sheet on the head, then the name of the newest operation; what failed first."""
    written = await _put(link, operation, {"plan.json": json.dumps(operation), "sheet.sh": by_hand(operation)})
    return await _name(link, operation) if written.ok else written


async def _put(link: Link, operation: Operation, texts: Mapping[str, str]) -> files.Written:
    """Files of the operation's folder; what failed first."""
    folder, epoch = operation["dir"], epoch_of(operation)
    puts = [files.put(link, folder, epoch, place(operation, name), text) for name, text in texts.items()]
    done = await asyncio.gather(*puts)
    return next((written for written in done if not written.ok), done[0])


async def _name(link: Link, operation: Operation) -> files.Written:
    return await files.put(link, operation["dir"], epoch_of(operation), "current", f"{operation['id']}\n")


async def start_on_head(
    link: Link, operation: Operation, *, checked: bool = False, known: Modes | None = None
) -> OnHead:
    """Put it there and start it, in one exchange; a second start joins the first. `checked`: `can_run` has said yes
    before. `known`: what `detached.modes` said of the head not long ago."""
    if not checked and (cannot := await can_run(link)):
        written = await publish(link, operation)
        return OnHead(False, written.problem, fenced=True) if written.fenced else OnHead(False, cannot, cannot=True)
    texts = {"plan.json": json.dumps(operation), "runner.py": runner_text(), "sheet.sh": by_hand(operation)}
    put = {place(operation, name): text for name, text in texts.items()}
    return await _start(link, operation, UNIT, {**put, "current": f"{operation['id']}\n"}, known)


async def carry_on(link: Link, operation: Operation) -> OnHead:
    """Go on with an operation that nobody carries out any more, or have its runner act under a newer epoch.

    `operation` holds who carries it on now and under which epoch (see `taken_over`). A runner that lives reads it when
    it is fenced off, and goes on; else a new one is started, which looks first what became of the step under way.
    """
    folder, op = operation["dir"], operation["id"]
    unit, state = await newest_run(link, folder, op)
    if state.phase is Phase.UNKNOWN:
        return OnHead(False, state.words or "the head does not answer", unknown=True)
    lives = state.phase in (Phase.RUNNING, Phase.WAITING)
    if not lives and (cannot := await can_run(link)):
        return OnHead(False, cannot, cannot=True)
    texts = {"plan.json": json.dumps(operation)}
    if not lives:
        texts["runner.py"] = runner_text()  # not there where a console carried it out until now
    for name, text in texts.items():
        written = await files.put(link, folder, epoch_of(operation), place(operation, name), text)
        if not written.ok:
            return OnHead(False, written.problem, fenced=written.fenced)
    if lives:
        return OnHead(True, unit=unit)
    await files.drop(link, folder, epoch_of(operation), place(operation, "stop"))
    return await _start(link, operation, unit if state.phase is Phase.ABSENT else _next(unit))


async def _start(
    link: Link,
    operation: Operation,
    unit: str,
    written: Mapping[str, str] | None = None,
    known: Modes | None = None,
) -> OnHead:
    folder = f"{operation['dir']}/{place(operation, '')}".rstrip("/")
    argv = ["python3", "-I", "-S", f"{folder}/runner.py", "run", folder]
    limit = time_limit(operation)
    given: Any = {"keeps": True, "limit": limit, "written": written, "known": known}
    found = await detached.start(link, operation["dir"], operation["id"], unit, epoch_of(operation), argv, **given)
    if isinstance(found, detached.Started):
        return OnHead(True, unit=unit)
    if isinstance(found, detached.Fenced):
        return OnHead(False, found.problem, fenced=True)
    cannot = not found.unknown and not found.files
    return OnHead(False, found.problem, unknown=found.unknown, cannot=cannot, unit=unit)


async def newest_run(link: Link, folder: str, op: str) -> tuple[str, DetachedState]:
    """Step name and state of the newest runner of an operation; ABSENT if it never had one."""
    unit, state = UNIT, await detached.state(link, folder, op, UNIT)
    while state.over and unit != f"{UNIT}-{MOST_RUNS}":
        later = await detached.state(link, folder, op, _next(unit))
        if later.phase is Phase.ABSENT:
            break
        unit, state = _next(unit), later
    return unit, state


def _next(unit: str) -> str:
    number = int(unit.partition("-")[2] or "1")
    return f"{UNIT}-{number + 1}"


async def stop(link: Link, operation: Operation, *, operator: str, epoch: int | None, steps: bool) -> str:
    """End its runner; with `steps` what runs as units on hosts, too. '' once it is gone, else why it may still act."""
    folder, op = operation["dir"], operation["id"]
    words = f"{'steps' if steps else 'runner'} {files.stamp(epoch)} {operator}\n"
    written = await files.put(link, folder, epoch, place(operation, "stop"), words)
    if not written.ok:
        return written.problem
    unit, state = await newest_run(link, folder, op)
    if state.phase in (Phase.RUNNING, Phase.WAITING, Phase.UNKNOWN):
        seconds = LONG_STOP if steps else SHORT_STOP
        state = await detached.stop(link, folder, op, unit, epoch=epoch, seconds=seconds)
    if state.over or state.phase is Phase.ABSENT:
        return ""
    return state.words or f"the runner is {state.phase}"


async def stored(link: Link, folder: str, op: str) -> Operation | None:
    """The operation file of an operation; None where there is none that can be used, or the head does not answer."""
    found = await files.read(link, folder, f"ops/{op}/plan.json")
    if not found.there or found.size > len(found.data):
        return None
    try:
        return read_operation(found.text)
    except ValueError:
        return None


@dataclass(slots=True)
class Journal:
    """The journal of an operation on the head, read as it grows."""

    link: Link
    folder: str
    op: str
    offset: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)
    """All that were read; texts in them are not safe to show before they went through `sanitize`."""
    _rest: bytes = b""

    async def read(self) -> Sequence[dict[str, Any]] | None:
        """The lines that have come since; None where the head does not answer."""
        found = await files.read(self.link, self.folder, f"ops/{self.op}/journal.jsonl", offset=self.offset)
        if found.unknown:
            return None
        self.offset += len(found.data)
        whole, mark, self._rest = (self._rest + found.data).rpartition(b"\n")
        newest = self.lines[-1]["seq"] if self.lines else 0
        new = [line for line in parsed((whole + mark).decode("utf-8", "replace")) if line["seq"] > newest]
        self.lines += new
        return new

    @property
    def end(self) -> dict[str, Any] | None:
        """Its last line, once it has ended."""
        return self.lines[-1] if self.lines and self.lines[-1].get("kind") == "end" else None
