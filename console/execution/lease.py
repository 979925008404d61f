"""One operator at a time: the lease on the head, with its growing epoch, and what keeps it alive.

Every time is Unix seconds by the head's clock; this machine's clocks say only how long ago something was.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from console.execution.scripts import Answer, Exit, ask
from console.reach.link import Link
from console.readings.acting_types import Lease
from console.sanitize import line

EVERY = 10.0
"""Seconds between renewals."""
TTL = 60.0
"""Seconds that a lease lives without one."""
LIMIT = 15.0
"""Seconds for one exchange."""
ASLEEP = 5.0
"""Seconds without a tick after which this console counts as having slept."""
_TICK = 1.0


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """What the head said. `unknown`: it did not say, so it is neither granted nor refused."""

    lease: Lease | None
    """Who holds it now, by this answer; None: nobody, or not known."""
    granted: bool = False
    """The lease is ours, or was given back as we asked."""
    now: float | None = None
    """The head's clock."""
    problem: str = ""
    unknown: bool = False
    fenced: bool = False
    """It is another's."""
    gone: bool = False
    """Nobody holds it, though it was to be renewed; or it was not offered to us."""
    damaged: bool = False
    """The lease's file cannot be read: only taking it over helps."""
    highest: int = 0
    """The highest epoch that the head has seen; steps of an older one are refused there."""
    taken_from: str = ""
    """The operator from whom it was taken over, or who handed it over."""

    @property
    def expired(self) -> bool:
        """Whether the lease ran out, by the head's clock."""
        return self.lease is not None and self.now is not None and self.lease.expired(self.now)


def new_id() -> str:
    """A lease's id: made here, so that a take whose answer was lost is recognised."""
    return secrets.token_hex(8)


async def take(
    link: Link,
    folder: str,
    operator: str,
    console: str,
    purpose: str,
    *,
    ttl: float = TTL,
    over: bool = False,
    seen: str = "",
    id: str = "",
) -> LeaseAnswer:
    """Take a lease that nobody holds; with `over` one that ran out or is another's, and with `seen` only from the lease
    of that id. Where the answer got lost it is looked up: sent again with the same `id` it is the same take."""
    id = id or new_id()
    names = [_clean(operator, 80), _clean(console, 120), _clean(purpose, 200)]
    arguments = ["take", folder, *names, str(round(ttl)), "over" if over else "", id, seen]
    return await _surely(link, folder, arguments, id)


async def accept(
    link: Link, folder: str, operator: str, console: str, *, ttl: float = TTL, id: str = ""
) -> LeaseAnswer:
    """Take a lease that was offered to this operator."""
    id = id or new_id()
    arguments = ["accept", folder, _clean(operator, 80), _clean(console, 120), str(round(ttl)), id]
    return await _surely(link, folder, arguments, id)


async def renew(link: Link, folder: str, id: str) -> LeaseAnswer:
    """Say that we are still here. An answer that is `fenced` tells who holds it instead."""
    return read_lease(await ask(link, "lease", ["renew", folder, id], limit=LIMIT))


async def release(link: Link, folder: str, id: str) -> LeaseAnswer:
    """Give it back."""
    return read_lease(await ask(link, "lease", ["release", folder, id], limit=LIMIT))


async def offer(link: Link, folder: str, id: str, to: str) -> LeaseAnswer:
    """Offer it to another operator; '' takes the offer back."""
    return read_lease(await ask(link, "lease", ["offer", folder, id, _clean(to, 80)], limit=LIMIT))


async def show(link: Link, folder: str) -> LeaseAnswer:
    """Who holds it; changes and makes nothing. `granted` is never set."""
    answer = read_lease(await ask(link, "lease", ["show", folder], limit=LIMIT, looks=True))
    return LeaseAnswer(
        answer.lease,
        now=answer.now,
        problem=answer.problem,
        unknown=answer.unknown,
        damaged=answer.damaged,
        highest=answer.highest,
    )


async def _surely(link: Link, folder: str, arguments: list[str], id: str) -> LeaseAnswer:
    """One exchange; where its answer did not come, the head is asked whether the lease of this id is there."""
    answer = read_lease(await ask(link, "lease", arguments, limit=LIMIT))
    if not answer.unknown:
        return answer
    found = await show(link, folder)
    if found.lease is not None and found.lease.id == id:
        return LeaseAnswer(found.lease, granted=True, now=found.now, highest=found.highest)
    # not there is no proof: it may still arrive, and then nobody renews it
    return answer


def _clean(text: str, limit: int) -> str:
    return line(text, limit).strip()


def read_lease(answer: Answer) -> LeaseAnswer:
    """The lines of lease.sh, every value checked."""
    now = answer.number("now")
    if answer.exit is None:
        return LeaseAnswer(None, problem=answer.problem, unknown=True)
    found = _lease(answer)
    holder = answer.values.get("holder", "")
    if answer.exit is Exit.OK and (now is None or (holder == "held" and found is None)):
        return LeaseAnswer(None, problem="the answer about the lease is damaged", unknown=True)
    return LeaseAnswer(
        found,
        granted=answer.exit is Exit.OK,
        now=float(now) if now is not None else None,
        problem=answer.problem,
        fenced=answer.exit is Exit.FENCED,
        gone=answer.exit is Exit.NO,
        damaged=holder == "damaged",
        highest=answer.number("highest") or 0,
        taken_from=answer.text("from", 80),
    )


def _lease(answer: Answer) -> Lease | None:
    numbers = [answer.number(key) for key in ("epoch", "acquired", "renewed", "ttl")]
    epoch, acquired, renewed, ttl = numbers
    id, operator = answer.text("id", 64), answer.text("operator", 80)
    if epoch is None or acquired is None or renewed is None or ttl is None or not id or not operator:
        return None
    console, purpose, offered = answer.text("console", 120), answer.text("purpose", 200), answer.text("offered_to", 80)
    return Lease(operator, console, id, epoch, float(acquired), float(renewed), float(ttl), purpose, offered)


def elapsed() -> float:
    """Seconds by a clock of this machine that goes on while it sleeps."""
    # macOS has no BOOTTIME: there MONOTONIC goes on, and what Python calls monotonic does not
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Keeper:
    """Renews a lease in a task, and knows whether it may be called ours.

    A console that slept (a closed lid, SIGSTOP, a stalled loop) asks the head before it says `mine` again. Once lost,
    it stays lost: a new lease wants a new Keeper.
    """

    def __init__(
        self,
        link: Link,
        folder: str,
        lease: Lease,
        *,
        every: float = EVERY,
        ttl: float = TTL,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self.lease = lease
        self.lost = asyncio.Event()
        """Set when somebody else holds it, or it was given back behind our back."""
        self.words = ""
        """Who holds it since when, or why it could not be renewed; safe."""
        self.holder: Lease | None = None
        """The other's lease once it is lost."""
        self.now: float | None = None
        """The head's clock at the last answer."""
        self._link = link
        self._folder = folder
        self._every = every
        self._ttl = ttl
        self._clock = clock
        self._sure_until = clock() + ttl
        self._ticked = clock()
        self._doubt = False
        self._asking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to renew."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"lease {self.lease.id}")

    async def close(self) -> None:
        """Stop renewing; the lease is kept and runs out unless it is given back."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def release(self) -> LeaseAnswer:
        """Stop renewing and give the lease back."""
        await self.close()
        answer = await release(self._link, self._folder, self.lease.id)
        if answer.granted:
            self.words = "given back"
            self.lost.set()
        elif answer.fenced:
            self._lose(answer)
        return answer

    @property
    def fresh(self) -> bool:
        """Renewed within its time to live, and no sleep since. To show; before an act ask `mine`."""
        asleep = self._doubt or self._clock() - self._ticked > ASLEEP
        return not self.lost.is_set() and not asleep and self._clock() < self._sure_until

    async def mine(self) -> bool:
        """Whether the lease is ours, before an act: asks the head if this console slept or could not renew in time."""
        if not self.fresh and not self.lost.is_set():
            await self.renew()
        return self.fresh

    async def renew(self) -> LeaseAnswer:
        """Renew now. What is unknown changes nothing: the lease stays ours until its time to live is over."""
        async with self._asking:
            asked = self._clock()
            answer = await renew(self._link, self._folder, self.lease.id)
            ours = answer.granted and answer.lease is not None and answer.lease.id == self.lease.id
            if ours and answer.highest <= self.lease.epoch:
                self._renewed(answer, asked)
            elif ours or answer.fenced or answer.gone:
                self._lose(answer)
            else:
                self.words = f"the lease could not be renewed: {answer.problem}"
            return answer

    # -- inside

    def _renewed(self, answer: LeaseAnswer, asked: float) -> None:
        assert answer.lease is not None
        self.now, self.lease, self.words = answer.now, answer.lease, ""
        # counted from before the question: what the answer took is not ours, and one that came late is worth nothing
        self._sure_until = asked + min(self._ttl, answer.lease.ttl)
        self._ticked, self._doubt = self._clock(), False

    def _lose(self, answer: LeaseAnswer) -> None:
        other = answer.lease is not None and answer.lease.id != self.lease.id
        self.now, self.holder = answer.now, answer.lease if other else None
        self.words = holder_words(self.holder, answer.now, answer.highest)
        self.lost.set()

    async def _run(self) -> None:
        while not self.lost.is_set():
            await self._wait()
            if not self.lost.is_set():
                await self.renew()

    async def _wait(self) -> None:
        """Until the next renewal is due, or at once when this console has just woken up."""
        due = self._clock() + self._every
        while not self.lost.is_set() and self._clock() < due:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_TICK, self._every)):
                    await self.lost.wait()
            now = self._clock()
            # an act may be judged before or behind this line: the doubt stays until the head has answered
            self._doubt = self._doubt or now - self._ticked > ASLEEP
            self._ticked = now
            if self._doubt:
                return


def holder_words(holder: Lease | None, now: float | None, highest: int = 0) -> str:
    """Who holds it since when, for people: `ben holds the lease for 3m12s (ben@laptop 812)`."""
    if holder is None:
        return f"the lease is gone: nobody holds it (epoch {highest} was seen)" if highest else "nobody holds the lease"
    since = time.strftime("%H:%M:%S", time.gmtime(holder.acquired))
    ago = f", {_span(now - holder.acquired)} ago" if now is not None and now >= holder.acquired else ""
    where = f" on {holder.console}" if holder.console else ""
    return f"{holder.operator} holds the lease{where} since {since}Z{ago}"


def _span(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"
