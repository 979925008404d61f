"""A lane's memory across sittings: boots, KV pools, decode rates and its way back, in a file on the operator's machine.

Several consoles may look at one lane: each keeps what it has seen since its last write and adds that to the file under
a lock. Nothing here is needed to work: where it cannot write, the console forgets at its end, and says so once.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import platformdirs

from console.plainfile import read_plain
from console.readings.binds import BindMark, Deed, Ready
from console.readings.boot import BootRecord
from console.readings.recorded import (
    NOTHING,
    Pool,
    Rates,
    Recorded,
    RecordsNewer,
    RecordsUnreadable,
    add_rate,
    bands,
    decode,
    encode,
    merged,
)
from console.snapshot import Severity
from console.wholefile import write_whole

SAVE_EVERY_S = 60.0
"""Seconds between two writes of what came little by little; a boot is written at once."""
LOCK_S = 2.0
"""Seconds to wait for another console that writes."""
LOCK_POLL_S = 0.02
MOST_BYTES = 4 << 20
BANDS_EVERY = 30
"""Points between two looks at the bands: they move slowly and cost a sort."""


class Tell(Protocol):
    """Says something to the operator, about the lane."""

    def __call__(self, text: str, severity: Severity) -> None: ...


def state_folder() -> Path:
    """Where laneswap keeps what it remembers: LANESWAP_STATE, else the user's state folder."""
    if named := os.environ.get("LANESWAP_STATE"):
        return Path(named)
    return Path(platformdirs.user_state_dir("laneswap"))


def record_file(fleet: str, lane: str) -> Path:
    """The file of one lane; both names are names as fleet.toml has them, so they hold no slash."""
    return state_folder() / "records" / fleet / f"{lane}.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of reading or writing the file."""

    recorded: Recorded | None
    """What the file holds now; None where that is not known."""
    said: str = ""
    """Something that happened to it."""
    problem: str = ""
    """Why it could not be read or written."""
    newer: bool = False
    """It is of a newer laneswap: to be left alone."""


class LaneRecords:
    """One lane's records: what is in the file, and what has come since. Everything is called on the event loop."""

    def __init__(self, tell: Tell, file: Path | None = None, recorded: Recorded = NOTHING) -> None:
        """Without a `file` nothing is ever read or written: a rehearsal begins with `recorded` and keeps to itself."""
        self._tell = tell
        self._file = file
        self._kept = recorded
        self._new_boots: list[BootRecord] = []
        self._new_pools: list[Pool] = []
        self._new_rates: Rates = {}
        self._new_marks: list[BindMark] = []
        self._new_deeds: list[Deed] = []
        self._new_ready: Ready | None = None
        self._all: Recorded | None = recorded
        self._bands: tuple[tuple[int, float, float, int], ...] = bands(recorded.rates)
        self._points = 0
        self._read_only = False
        self._was_read = False
        self._marks_of: tuple[BindMark, ...] = ()
        self._marks: dict[tuple[str, str], BindMark] = {}
        self._urgent = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self.problem = ""
        """Why nothing is kept on disk at present; '' while it is."""

    # What is known

    @property
    def boots(self) -> tuple[BootRecord, ...]:
        """Oldest first."""
        return self._sum().boots

    @property
    def pools(self) -> tuple[int, ...]:
        """KV pools by start, tokens, oldest first."""
        return tuple(pool.tokens for pool in self._sum().pools)

    @property
    def usual_by_running(self) -> tuple[tuple[int, float, float, int], ...]:
        """(running requests, 10th percentile, 90th percentile, points) of decode tok/s; the same object for a while."""
        return self._bands

    @property
    def deeds(self) -> tuple[Deed, ...]:
        """Ways back that were gone, oldest first."""
        return self._sum().deeds

    @property
    def ready(self) -> Ready | None:
        """The way back when it was last whole."""
        return self._sum().ready

    @property
    def read(self) -> bool:
        """Whether the file was read, or there is none to read."""
        return self._was_read or self._file is None

    def mark(self, container: str, source: str) -> BindMark | None:
        """What a bind source was when that container was first seen; None if it never was."""
        marks = self._sum().marks
        if marks is not self._marks_of:
            self._marks_of = marks
            self._marks = {(item.container, item.source): item for item in marks}
        return self._marks.get((container, source))

    def add_mark(self, mark: BindMark) -> None:
        """A bind source that was seen for the first time."""
        self._new_marks.append(mark)
        self._all = None

    def add_deed(self, deed: Deed) -> None:
        """A way back that was gone."""
        if any(known.operation == deed.operation for known in self.deeds):
            return
        self._new_deeds.append(deed)
        self._all = None
        self._urgent.set()

    def set_ready(self, ready: Ready) -> None:
        """The way back is whole now."""
        self._new_ready = ready
        self._all = None

    def add_boot(self, record: BootRecord) -> None:
        """A boot that came up."""
        self._new_boots.append(record)
        self._all = None
        self._urgent.set()

    def add_pool(self, at: float, tokens: int) -> None:
        """The KV pool of the start at Unix time `at` (host's clock)."""
        pool = Pool(at, tokens)
        if tokens < 1 or pool in self._sum().pools[-8:]:
            return
        self._new_pools.append(pool)
        self._all = None

    def add_rate(self, running: int, tps: float) -> None:
        """One point of decode rate, tok/s, with so many requests running throughout."""
        if not add_rate(self._new_rates, running, tps):
            return
        self._points += 1
        if self._points % BANDS_EVERY == 0:
            self._all = None
            self._bands = bands(self._sum().rates)

    def _sum(self) -> Recorded:
        if self._all is None:
            self._all = merged(self._kept, self._new())
        return self._all

    def _new(self) -> Recorded:
        rates = {running: dict(counts) for running, counts in self._new_rates.items()}
        marks, deeds = tuple(self._new_marks), tuple(self._new_deeds)
        return Recorded(tuple(self._new_boots), tuple(self._new_pools), rates, marks, deeds, self._new_ready)

    # The file

    async def run(self) -> None:
        """Read the file, then write what comes, until cancelled."""
        if self._file is None:
            await asyncio.Event().wait()
            return
        self._read(await asyncio.to_thread(read_records, self._file))
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SAVE_EVERY_S):
                    await self._urgent.wait()
            self._urgent.clear()
            await self.save()

    async def close(self) -> None:
        """Write what has come since the last time."""
        if self._writing is not None:
            await self._writing
        await self.save()

    async def save(self) -> None:
        """Add what has come to the file; goes on when the caller is cancelled, so that nothing counts twice."""
        if self._file is None or self._read_only or self._new() == NOTHING:
            return
        if self._writing is None:
            self._writing = asyncio.create_task(self._save(self._file))
        await asyncio.shield(self._writing)

    async def _save(self, file: Path) -> None:
        new = self._new()
        try:
            outcome = await asyncio.to_thread(add_records, file, new)
            if outcome.recorded is not None:
                self._subtract(new)
            self._read(outcome)
        finally:
            self._writing = None

    def _read(self, outcome: Outcome) -> None:
        if outcome.said:
            self._tell(outcome.said, Severity.LOOK)
        if outcome.problem and not self.problem:
            self._tell(outcome.problem, Severity.LOOK)
        self.problem = outcome.problem
        self._read_only = outcome.newer
        self._was_read = True
        if outcome.recorded is not None:
            self._kept = outcome.recorded
        self._all = None
        self._bands = bands(self._sum().rates)

    def _subtract(self, new: Recorded) -> None:
        """What was written is no longer new; what came meanwhile still is."""
        del self._new_boots[: len(new.boots)]
        del self._new_pools[: len(new.pools)]
        del self._new_marks[: len(new.marks)]
        del self._new_deeds[: len(new.deeds)]
        self._new_ready = None if self._new_ready is new.ready else self._new_ready
        for running, counts in new.rates.items():
            into = self._new_rates[running]
            for step, count in counts.items():
                into[step] -= count
            self._new_rates[running] = {step: count for step, count in into.items() if count}
        self._new_rates = {running: counts for running, counts in self._new_rates.items() if counts}
        self._all = None


def read_records(file: Path) -> Outcome:
    """What the file holds; a damaged one is moved aside. Blocks; never raises because of what is there."""
    try:
        return Outcome(*_taken(file))
    except RecordsNewer as error:
        return _newer(file, error)
    except OSError as error:
        return Outcome(None, problem=f"records of earlier boots cannot be read: {_words(error, file)}")


def add_records(file: Path, new: Recorded) -> Outcome:
    """Add to the file, whole or not at all, under a lock. Blocks; never raises because of what is there."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(file.with_suffix(".lock")):
            kept, said = _taken(file)
            whole = merged(kept, new)
            write_whole(file, encode(whole))
    except RecordsNewer as error:
        return _newer(file, error)
    except OSError as error:
        return Outcome(None, problem=f"records of boots cannot be kept: {_words(error, file)}")
    return Outcome(whole, said)


def _newer(file: Path, error: RecordsNewer) -> Outcome:
    return Outcome(None, problem=f"{file} is of a newer laneswap ({error}): left alone, nothing is kept", newer=True)


def _words(error: OSError, file: Path) -> str:
    return f"{error.filename or file}: {error.strerror or error}"


def _taken(file: Path) -> tuple[Recorded, str]:
    """What the file holds, and what had to be done with it. Raises OSError and RecordsNewer."""
    try:
        _, data = read_plain(file, MOST_BYTES + 1)
    except FileNotFoundError:
        return NOTHING, ""
    try:
        if len(data) > MOST_BYTES:
            raise RecordsUnreadable(f"larger than {MOST_BYTES >> 20} MiB")
        return decode(data), ""
    except RecordsNewer:
        raise
    except RecordsUnreadable as error:
        aside = file.with_suffix(".json.damaged")
        os.replace(file, aside)
        return NOTHING, f"records of earlier boots are damaged ({error}): moved to {aside}, begun anew"


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock while the block runs. Raises OSError where it cannot be had in time."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LOCK_S
        while not _try(descriptor):
            if time.monotonic() >= until:
                raise TimeoutError(None, "another console holds it", str(file))
            time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
