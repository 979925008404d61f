"""The sequence runner of a head, played: the very runner of the console, in a thread, on played hosts.

It lives on the head and not in the console: a cut between the two does not touch it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from console.execution.runner import Runner
from console.execution.runner_base import DONE, FENCED, STOPPED, Done, Fenced, JournalLost
from console.execution.runner_head import FileJournal, _told
from console.execution.sequence import read_operation
from console.execution.sequence_console import HeadClock
from console.rehearsal.acting import statefiles
from console.rehearsal.acting.playing import Job, Playing

LOST_S = 6.0
"""Seconds after which ssh gives a silent host up."""
MARGIN_S = 15.0
JOIN_S = 3.0
TERMINATED = 128 + 15
"""Exit status of a child that SIGTERM ended."""


class Hosts(Protocol):
    """How played hosts carry commands out."""

    async def carry_out(self, host: str, argv: Sequence[str], stdin: str) -> Done:
        """One command on one host."""
        ...


class HeadTransport:
    """Hosts as the head reaches them."""

    def __init__(self, playing: Playing, hosts: Hosts, head: str, reach: dict[str, Any]) -> None:
        self._playing, self._hosts, self._head = playing, hosts, head
        self._reach = set(reach) | {head}
        self._loop = asyncio.get_running_loop()
        self._open: set[concurrent.futures.Future[Done]] = set()
        self._may_end: set[concurrent.futures.Future[Done]] = set()
        """Questions, and what is a child of the runner: a command on the head itself."""
        self.closed = False

    def run(self, host: str, argv: Sequence[str], stdin: str, limit: float, question: bool = False) -> Done:
        """See `Transport.run`. Raises JournalLost once the head is gone."""
        if self.closed:
            raise JournalLost("the head is gone")
        if host not in self._reach or host not in self._playing.hosts:
            return Done(127, "", f"the head has no way to {host}")
        asked = asyncio.run_coroutine_threadsafe(self._ask(host, argv, stdin, limit), self._loop)
        here = host == self._head
        kept = (self._open, self._may_end) if question or here else (self._open,)
        for one in kept:
            one.add(asked)
        try:
            return asked.result(limit + MARGIN_S)
        except concurrent.futures.CancelledError:
            return Done(TERMINATED if here and not self.closed else None, "", "broken off")
        except concurrent.futures.TimeoutError:
            asked.cancel()
            return Done(None, "", f"no end after {limit:.0f} s")
        finally:
            for one in kept:
                one.discard(asked)

    def interrupt(self) -> None:
        """See `Transport.interrupt`."""
        for asked in tuple(self._may_end):
            asked.cancel()

    def let_go(self) -> None:
        """The head is gone: nothing is sent any more."""
        self.closed = True
        for asked in tuple(self._open):
            asked.cancel()

    async def _ask(self, host: str, argv: Sequence[str], stdin: str, limit: float) -> Done:
        if words := self._playing.reaches(self._head, host):
            if "timed out" in words:
                await asyncio.sleep(min(limit, LOST_S))
            return Done(None, "", words)
        work = self._playing.keep(self._hosts.carry_out(host, argv, stdin))
        until = self._loop.time() + limit
        silent = 0.0
        while not work.done():
            try:
                await asyncio.wait([work], timeout=0.2)
            except asyncio.CancelledError:
                if host == self._head:
                    work.cancel()
                raise
            silent = silent + 0.2 if self._playing.reaches(self._head, host) else 0.0
            if self._loop.time() > until:
                work.cancel()
                return Done(None, "", f"no end after {limit:.0f} s")
            if silent > LOST_S or (silent and not self._playing.gates[host].is_open):
                return Done(None, "", "the connection was lost")
        if self._playing.reaches(self._head, host):
            return Done(None, "", "the connection was lost")
        return work.result()


class PlayedJournal(FileJournal):
    """The journal on the head's own disk, which may be full."""

    def __init__(self, path: str, full: Any) -> None:
        """Raises JournalLost."""
        super().__init__(path)
        self._full = full

    def write(self, line: dict[str, Any]) -> None:
        """Raises JournalLost."""
        if self._full():
            raise JournalLost(f"the journal cannot be written: {statefiles.FULL}")
        super().write(line)


class HeadRunners:
    """The runners of all heads."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._transports: dict[str, list[HeadTransport]] = {}
        self._threads: list[threading.Thread] = []

    async def run(self, job: Job, folder: str) -> int:
        """`python3 -I -S FOLDER/runner.py run FOLDER`: until the sequence has ended."""
        place = Path(statefiles.real_folder(job, folder))
        try:
            operation = read_operation((place / "plan.json").read_text(encoding="utf-8"))
            if operation["head"] != job.host or f"{operation['dir']}/ops/{operation['id']}" != folder:
                raise ValueError("an operation file of another folder")
            journal = PlayedJournal(str(place / "journal.jsonl"), lambda: job.playing.world.full(job.host))
        except (OSError, ValueError, JournalLost) as error:
            job.say(f"{folder}/plan.json: {error}")
            return 5
        transport = HeadTransport(job.playing, self._hosts, job.host, operation["reach"])
        self._transports.setdefault(job.host, []).append(transport)

        def reload() -> dict[str, Any]:
            with contextlib.suppress(OSError, ValueError):
                fresh = json.loads((place / "plan.json").read_text(encoding="utf-8"))
                return fresh if isinstance(fresh, dict) else operation
            return operation

        runner = Runner(operation, transport, journal, clock=HeadClock(job.files.ahead), reload=reload)
        if job.unit is not None:
            job.unit.halt = lambda: _halt(runner, place)
        pid = job.playing.next_pid()
        job.there.processes.start(pid, ["python3", "-I", "-S", f"{folder}/runner.py", "run", folder], job.there.wall)
        try:
            return await self._until_ended(job, runner)
        finally:
            job.there.processes.end(pid)

    async def _until_ended(self, job: Job, runner: Runner) -> int:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str | BaseException] = loop.create_future()

        def tell(result: str | BaseException) -> None:
            if not ended.done():
                ended.set_result(result)

        def work() -> None:
            result: str | BaseException
            try:
                result = runner.run()
            except BaseException as error:  # told by whoever waits
                result = error
            with contextlib.suppress(RuntimeError):  # the rehearsal has ended
                loop.call_soon_threadsafe(tell, result)

        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()
        result = await ended
        if isinstance(result, Fenced):
            job.say(str(result))
            return 4
        if isinstance(result, BaseException):
            job.say(str(result))
            return 5
        job.say(result)
        if result == STOPPED:
            raise asyncio.CancelledError
        return {DONE: 0, FENCED: 4}.get(result, 1)

    def host_goes_down(self, host: str) -> None:
        """Its runners die where they stand."""
        for transport in self._transports.pop(host, []):
            transport.let_go()

    async def close(self) -> None:
        """All of them end; nothing is sent any more."""
        for host in tuple(self._transports):
            self.host_goes_down(host)
        for thread in self._threads:
            await asyncio.to_thread(thread.join, JOIN_S)


def _halt(runner: Runner, place: Path) -> None:
    """TERM for the runner, with what whoever stops it left beside it."""
    why, steps, epoch = _told(str(place))
    runner.stop(why, steps=steps, epoch=epoch)
