"""A sequence in the console itself, where the head cannot reach a rank or is out of reach: the same runner, a thread.

It ends with the console. Its journal is on this machine's disk before a command leaves, and on the head as soon as the
head can be reached, so that every console sees how far it got.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from console.execution import broken, files
from console.execution.policy import Refused
from console.execution.runner import Runner
from console.execution.runner_base import SHORT, Clock, Done, Fenced, JournalLost
from console.execution.runner_head import FileJournal
from console.execution.sequence import Operation, epoch_of
from console.execution.sequence_head import LONG_STOP, place, publish
from console.execution.sequence_sheet import by_hand
from console.feed.records import state_folder
from console.reach.link import Link
from console.readings.acting_operation import read_operation
from console.readings.acting_types import Operation as OperationSeen
from console.readings.output import Outcome
from console.sanitize import line

MARGIN = 15.0
"""Seconds beyond a command's limit after which an answer of our own link is no longer waited for."""
LAST_SYNC = 8.0
"""Seconds that the head is given for the rest of the journal once the sequence has ended."""
RETRY, LAST_RETRY = 2.0, 0.5
LONGEST_END = LONG_STOP + LAST_SYNC


class HeadClock(Clock):
    """This machine's clock, set as the head's."""

    def __init__(self, ahead: float) -> None:
        """`ahead`: seconds by which the head's clock is ahead of ours."""
        self._ahead = ahead

    def wall(self) -> float:
        """Unix seconds by the head's clock."""
        return time.time() + self._ahead


class LinkTransport:
    """Hosts as the console reaches them, for a thread beside the event loop."""

    def __init__(self, links: Mapping[str, Link], loop: asyncio.AbstractEventLoop) -> None:
        self._links, self._loop = links, loop
        self._questions: set[concurrent.futures.Future[Done]] = set()
        self._open: set[concurrent.futures.Future[Done]] = set()
        self.closed = False

    def run(self, host: str, argv: Sequence[str], stdin: str, limit: float, question: bool = False) -> Done:
        """See `Transport.run`. Raises JournalLost once the console lets go: nothing may be done any more."""
        if self.closed:
            raise JournalLost("the console has let go")
        link = self._links.get(host)
        if link is None:
            return Done(127, "", f"no host {host}")
        asked = asyncio.run_coroutine_threadsafe(_asked(link, argv, stdin, limit), self._loop)
        kept = (self._open, self._questions) if question else (self._open,)
        for one in kept:
            one.add(asked)
        try:
            return asked.result(limit + MARGIN)
        except concurrent.futures.CancelledError:
            return Done(None, "", "broken off")
        except concurrent.futures.TimeoutError:
            asked.cancel()
            return Done(None, "", f"no end after {limit:.0f} s")
        finally:
            for one in kept:
                one.discard(asked)

    def interrupt(self) -> None:
        """Break off questions; a command is given its time, for nobody could tell how it ended."""
        for asked in tuple(self._questions):
            asked.cancel()

    def let_go(self) -> None:
        """Send nothing more; who waits for an answer is told that there is none."""
        self.closed = True
        for asked in tuple(self._open):
            asked.cancel()


async def _asked(link: Link, argv: Sequence[str], stdin: str, limit: float) -> Done:
    output = await link.run(list(argv), stdin=stdin, limit=limit, operator=True)
    seen = output.outcome in (Outcome.DONE, Outcome.FAILED) and not output.signal
    return Done(output.exit_status if seen else None, output.stdout, output.stderr or output.hint)


class ConsoleJournal(FileJournal):
    """The journal here, whose growth the head's copy follows."""

    def __init__(self, path: str) -> None:
        """Raises JournalLost."""
        super().__init__(path)
        self.grown: Callable[[], None] = lambda: None

    def write(self, line: dict[str, Any]) -> None:
        """On this machine's disk when it returns. Raises JournalLost."""
        super().write(line)
        self.grown()


class InConsole:
    """One operation, carried out by this console."""

    def __init__(
        self, links: Mapping[str, Link], operation: Operation, keep: Path, *, ahead: float = 0.0, resumed: str = ""
    ) -> None:
        """`keep`: a folder of this machine for the journal. `ahead`: seconds that the head's clock is ahead of ours.
        `resumed`: what the head's journal holds, where another console began it. Raises Refused."""
        self.operation = operation
        self._head: Link | None = links.get(operation["head"])
        self._lock = _locked(keep, operation["id"])
        self._path = keep / f"{operation['id']}.jsonl"
        try:
            here = self._path.stat().st_size if self._path.exists() else 0
            if len(resumed.encode()) > here:
                self._path.write_text(resumed, encoding="utf-8")
            self._journal = ConsoleJournal(str(self._path))
        except (JournalLost, OSError) as error:
            os.close(self._lock)
            raise Refused(f"the journal here cannot be written: {line(str(error), 200)}") from error
        self._synced, self._known = 0, False
        self._grown = asyncio.Event()
        self.behind = ""
        """Why the head's copy of the journal is behind, in safe words; '' while it is not."""
        loop = asyncio.get_running_loop()
        self._transport = LinkTransport(links, loop)
        clock = HeadClock(ahead)
        self._runner = Runner(operation, self._transport, self._journal, runs_on="console", clock=clock)
        self._journal.grown = lambda: _soon(loop, self._grown.set)
        self._ended: asyncio.Future[str] = loop.create_future()
        self._task = asyncio.create_task(self._carry_out(), name=f"sequence {operation['id']}")

    @property
    def path(self) -> Path:
        """The journal on this machine."""
        return self._path

    def keep_plan(self) -> None:
        """Operation file and by-hand sheet beside the journal, as far as the disk takes them: should head and console
        both be gone, a person can finish it."""
        for name, text in (("plan.json", json.dumps(self.operation)), ("sheet.sh", by_hand(self.operation))):
            with contextlib.suppress(OSError):
                self._path.with_suffix(f".{name}").write_text(text, encoding="utf-8")

    @property
    def over(self) -> bool:
        """Nothing of it is carried out here any more."""
        return self._task.done()

    @property
    def lines(self) -> Sequence[dict[str, Any]]:
        """Its journal so far."""
        return tuple(self._journal.lines)

    def seen(self) -> OperationSeen:
        """The operation as its journal here tells it, for where the head cannot."""
        journal = "".join(f"{json.dumps(line)}\n" for line in self.lines)
        lane = str(self.operation["lane"])
        return read_operation(self.operation["id"], lane, json.dumps(self.operation), journal, True, [])

    @property
    def unsynced(self) -> int:
        """Bytes of the journal that the head does not have yet."""
        return max(0, self._path.stat().st_size - self._synced)

    async def wait(self) -> str:
        """How it ended, as `OperationState` words it; `lost` if it was let go of before."""
        return await asyncio.shield(self._task)

    async def close(
        self, why: str = "the console that carried it out was closed", *, steps: bool = False, epoch: int | None = None
    ) -> None:
        """Begin no further step, give the command under way its time, write down where it stands. `steps`: also end
        what runs as units of their own, under this epoch if it is a newer one; else they are left running."""
        self._runner.stop(why, steps=steps, epoch=epoch)
        done, _ = await asyncio.wait([self._task], timeout=LONGEST_END if steps else SHORT + LAST_SYNC)
        if not done:
            await self.let_go()

    async def let_go(self) -> None:
        """Send nothing more and write nothing more, as if the console had died; another one may carry it on."""
        self._transport.let_go()
        await asyncio.wait([self._task], timeout=MARGIN)

    async def _carry_out(self) -> str:
        threading.Thread(target=_work, args=(self._runner, self._ended), daemon=True).start()
        syncing = asyncio.create_task(self._keep_synced())
        try:
            return await asyncio.shield(self._ended)
        except (JournalLost, Fenced):
            return "lost"
        finally:
            self._transport.let_go()
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            self._known = False  # what was cut off in the middle may have arrived all the same
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SYNC):
                    await self._sync_the_rest()
            os.close(self._lock)

    # -- the head's copy

    async def _keep_synced(self) -> None:
        while True:
            await self._grown.wait()
            self._grown.clear()
            if not await self._sync():
                await asyncio.sleep(RETRY)
                self._grown.set()

    async def _sync_the_rest(self) -> None:
        while True:  # what was cut off just now is looked up first
            if await self._sync():
                return
            await asyncio.sleep(LAST_RETRY)

    async def _sync(self) -> bool:
        """Whether the head has all of the journal, or never will."""
        if self._head is None:
            self.behind = "no link to the head"
            return True
        if not self._known and not await self._look(self._head):
            return False
        data = await asyncio.to_thread(self._path.read_bytes)
        if self._synced >= len(data):
            return True
        text = data[self._synced : data.rfind(b"\n") + 1].decode()
        name, epoch = place(self.operation, "journal.jsonl"), epoch_of(self.operation)
        written = await files.append(self._head, self.operation["dir"], epoch, name, text, at=self._synced)
        self._known = written.ok
        self.behind = written.problem
        if written.ok:
            self._synced += len(text.encode())
        return written.ok or written.fenced

    async def _look(self, head: Link) -> bool:
        """How much of the journal the head has: an answer may have been lost, or another console may have begun it."""
        found = await files.read(head, self.operation["dir"], place(self.operation, "journal.jsonl"))
        if found.unknown:
            self.behind = found.problem
            return False
        mine = await asyncio.to_thread(self._path.read_bytes)
        if not mine.startswith(found.data):
            self.behind = "the head has another journal of this operation"
            return False
        self._synced, self._known = len(found.data), True
        return True


async def run_in_console(
    links: Mapping[str, Link],
    operation: Operation,
    *,
    keep: Path | None = None,
    ahead: float = 0.0,
    glass: bool = False,
) -> InConsole:
    """Begin it here, or go on with what a console left that is gone. Raises Refused: then nothing was begun.

    The operation file and the by-hand sheet go to the head first; without the head they are kept here alone. `glass`:
    break-glass, which also keeps its intent on every host on which it acts, and its journal in this machine's memory
    where the disk here does not take it.
    """
    head = links.get(operation["head"])
    resumed = ""
    if glass:
        await _intend(links, operation)
    if head is not None:
        written = await publish(head, operation)
        if written.fenced:
            raise Refused(written.problem)
        found = await files.read(head, operation["dir"], place(operation, "journal.jsonl"))
        resumed = found.text if found.there else ""
    keep = keep or kept_here()
    try:
        began = InConsole(links, operation, keep, ahead=ahead, resumed=resumed)
    except Refused:
        if not glass:
            raise
        began = InConsole(links, operation, kept_in_memory(), ahead=ahead, resumed=resumed)
    began.keep_plan()
    return began


async def _intend(links: Mapping[str, Link], operation: Operation) -> None:
    """What is meant, in the operation's folder on every host on which it acts: without head and ledger that is the only
    trace of who did it. Where it cannot be written nothing waits for it."""
    text, dirs = json.dumps(operation), operation["dirs"]
    hosts = {str(step["host"]) for step in (*operation["steps"], *operation["rescue"])} & set(links)
    places = {host: dirs.get(host, operation["dir"]) for host in hosts if host != operation["head"] or host in dirs}
    puts = (
        files.put(links[host], folder, epoch_of(operation), place(operation, "plan.json"), text)
        for host, folder in places.items()
    )
    await asyncio.gather(*puts)


def kept_in_memory() -> Path:
    """Where a journal goes that the disk here does not take. Raises Refused for a folder that another account made."""
    folder = Path(broken.SPARE.format(uid=os.getuid()))
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise Refused(f"{folder}: {error.strerror}") from error
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise Refused(f"{folder} belongs to another account")
    return folder / "sequences"


def kept_here() -> Path:
    """The folder of this account for journals of sequences that run in a console."""
    return state_folder() / "sequences"


def _locked(keep: Path, op: str) -> int:
    """Held while this console carries it out. Raises Refused."""
    try:
        keep.mkdir(parents=True, exist_ok=True)
        lock = os.open(keep / f"{op}.running", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Refused(f"{keep}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise Refused("another console of this machine carries it out") from error
    return lock


def _work(runner: Runner, ended: asyncio.Future[str]) -> None:
    """The thread: the outcome goes back to the event loop, if that is still there."""

    def tell(result: str | BaseException) -> None:
        if ended.done():
            return
        if isinstance(result, BaseException):
            ended.set_exception(result)
        else:
            ended.set_result(result)

    try:
        result: str | BaseException = runner.run()
    except BaseException as error:  # handed to whoever waits for it
        result = error
    _soon(ended.get_loop(), lambda: tell(result))


def _soon(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """In the event loop's thread; not at all once the console has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(act)
