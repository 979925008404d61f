"""What each guarded key would do to a lane now and what it costs, for the key line. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from console import format as fmt
from console.actions.disarm import guard_verb
from console.actions.plan import Verb
from console.actions.underway import acting_of, head_now, transfer
from console.readings.acting_types import OperationState
from console.readings.lights import LaneState
from console.readings.link import LinkStatus
from console.readings.throughput import Throughput
from console.readings.watchdog import WatchdogState
from console.snapshot import LaneView, Snapshot
from console.wayback import way_back
from console.wayback.items import STOP_S, Word, boot_time
from console.wayback.standing import unfinished


def verb_of(ident: str, snapshot: Snapshot, lane: LaneView) -> Verb:
    """What a guarded action of the catalog does to this lane now: `disarm` is also the way to arm it again."""
    if ident == "disarm":
        return Verb.ARM if _disarmed(snapshot, lane) else Verb.DISARM
    return Verb(ident)


class Price(NamedTuple):
    """What a guarded key costs now."""

    words: str
    short: str
    """The same at 80 columns."""
    goes: bool = True
    """False where the key would be denied, whatever is typed."""
    grave: bool = False
    """That it does not go is bad news: `NO WAY BACK`."""


def prices(snapshot: Snapshot, lane: LaneView, *, mine: bool) -> Mapping[str, Price]:
    """Action id -> its price; `mine`: the lane's lease is this operator's on this machine.

    What is not known costs its name, never nothing. Times are seconds until the lane serves again.
    """
    found = {
        "disarm": _watchdog(snapshot, lane),
        "stop": _stop(snapshot, lane),
        "relaunch": _relaunch(snapshot, lane),
        "rollback": _rollback(snapshot, lane),
    }
    running = _running(lane)
    if running:
        found = {ident: _beside(ident, running, price) for ident, price in found.items()}
    if _held_by_another(snapshot, lane, mine=mine):
        found |= {ident: price._replace(goes=False) for ident, price in found.items() if ident != "rollback"}
    return {**found, "hand-over": _hand_over(snapshot, lane, mine=mine)}


def asks(snapshot: Snapshot, lane: LaneView, *, mine: bool) -> str:
    """What the keys that go ask for: `in the window: one letter`. Only what holds for each of them."""
    acting = acting_of(lane)
    current = lane.acting.current(snapshot.now) if lane.acting is not None else None
    if snapshot.host(lane.lane.head).link.status is not LinkStatus.UP or current is None:
        return "head not read: the lane's name and a reason"
    if current.lease_unknown:
        return "holder not known: the lane's name and a reason"
    if _held_by_another(snapshot, lane, mine=mine):
        return f"held by {current.lease.operator if current.lease is not None else '-'}: H takes over, B too"
    window = acting.window if acting is not None else None
    if window is None or not mine:
        return "no window: the lane's name is typed" if window is None else "lease ran out: the lane's name is typed"
    price = prices(snapshot, lane, mine=mine)
    going = [(ident, key) for ident, key in _KEYS.items() if price[ident].goes]
    letters = [key for ident, key in going if not _wants_name(ident, snapshot, lane)]
    if len(letters) == len(going):
        return "in the window: one letter"
    if not letters:
        return "not all is read: the lane's name is typed"
    return f"one letter for {' '.join(letters)}, else the lane's name"


_KEYS = {"disarm": "D", "stop": "S", "relaunch": "R", "rollback": "B"}


def _running(lane: LaneView) -> str:
    """What the operation under way does: `rollback`; '' where none is. One that was just begun may not be read yet."""
    acting = acting_of(lane)
    found = acting.operation if acting is not None else None
    return found.verb if found is not None and found.state in _MAY_RUN else ""


_MAY_RUN = (OperationState.RUNNING, OperationState.UNKNOWN)


def _beside(ident: str, running: str, price: Price) -> Price:
    """While something runs: S and B end it, unless they are what runs; the others wait."""
    if ident in ("stop", "rollback") and ident != running:
        if not price.goes:
            return price
        time = f", {price.words}" if ident == "rollback" and price.words.startswith("≈") else ""
        return Price(f"ends {running}{time}", f"ends {running}")
    if ident == running:
        return Price(f"{running} runs", f"{running} runs", goes=False)
    return Price(f"after {running}", "waits", goes=False)


def _held_by_another(snapshot: Snapshot, lane: LaneView, *, mine: bool) -> bool:
    """Somebody else, or this operator at another machine, and their lease has not run out."""
    acting = acting_of(lane)
    lease = acting.lease if acting is not None else None
    return lease is not None and not mine and not lease.expired(head_now(snapshot, lane))


def _hand_over(snapshot: Snapshot, lane: LaneView, *, mine: bool) -> Price:
    acting = acting_of(lane)
    lease = acting.lease if acting is not None else None
    if acting is not None and acting.lease_unknown:
        return Price("take over", "take over")
    if lease is None:
        return Price("hand over", "hand over", False)
    words = transfer(lease, snapshot.fleet.operator_name(), head_now(snapshot, lane), mine=mine).value
    return Price(words, words)


def _unread(snapshot: Snapshot, lane: LaneView) -> bool:
    """A host is out of reach, its containers or the lane's health are not current: what a plan would call unknown."""
    hosts = [snapshot.host(name) for name in lane.lane.rank_hosts]
    if any(host.link.status is LinkStatus.DOWN for host in hosts):
        return True
    docker = lane.lane.runs_in == "docker" and any(host.containers.current(snapshot.now) is None for host in hosts)
    return docker or lane.health.current(snapshot.now) is None


def _wants_name(ident: str, snapshot: Snapshot, lane: LaneView) -> bool:
    """Whether a key of ours, in a window of ours, wants the lane's name for what is not known."""
    if ident == "disarm":
        return _disarmed(snapshot, lane) and lane.health.current(snapshot.now) is None
    if ident != "rollback":
        return _unread(snapshot, lane)
    # Down or stalled, it warns and goes.
    if lane.verdict.state in (LaneState.DOWN, LaneState.STALLED, LaneState.BOOTING):
        return False
    lost = any(item.word is Word.STALE for item in way_back(snapshot, lane).items)
    return lost or _unread(snapshot, lane)


def _disarmed(snapshot: Snapshot, lane: LaneView) -> bool:
    """A debt says so, or the watchdog itself; one that was not read is taken for armed."""
    acting = lane.acting.value if lane.acting is not None else None
    if acting is not None and any(debt.what == "watchdog" for debt in acting.debts):
        return True
    found = lane.watchdog.current(snapshot.now) if lane.watchdog is not None else None
    return guard_verb(found) is Verb.ARM


def _watchdog(snapshot: Snapshot, lane: LaneView) -> Price:
    off = _disarmed(snapshot, lane)
    found = lane.watchdog.value if lane.watchdog is not None else None
    if not off and (lane.watchdog is None or (found is not None and found.state is WatchdogState.NONE)):
        return Price("no watchdog", "no watchdog", False)
    word = "arm" if off else "disarm"
    return Price(word, word)


def _stop(snapshot: Snapshot, lane: LaneView) -> Price:
    found = lane.throughput.current(snapshot.now)
    count = _requests(found) if found is not None else None
    if count is None:
        # A closed port answers no question: then nothing runs that could be cut.
        count = 0 if lane.verdict.state.value == "down" else None
    if count is None:
        return Price("stop", "stop")
    return Price(f"cuts {count} request{'' if count == 1 else 's'}", f"cuts {count}")


def _requests(found: Throughput) -> int | None:
    """Running and waiting ones; None where the engine does not say."""
    if found.running is None:
        return None
    return round(found.running + (found.waiting or 0))


def _relaunch(snapshot: Snapshot, lane: LaneView) -> Price:
    """Stop and boot: the whole time until it serves again."""
    goes = not _unread(snapshot, lane)
    boot, _ = boot_time(lane, "")
    if boot is None:
        return Price("relaunch", "relaunch", goes)
    up = any(rank.container is not None and rank.container.up for rank in lane.ranks)
    text = f"≈{fmt.duration(boot + (STOP_S if up else 0.0))}"
    return Price(text, text, goes)


def _rollback(snapshot: Snapshot, lane: LaneView) -> Price:
    if unfinished(lane) is not None:
        return Price("not finished", "unfinished", goes=False)
    back = way_back(snapshot, lane)
    if back.possible is False:
        acting = acting_of(lane)
        # What a window has frozen may go all the same; the strip says so.
        frozen = acting is not None and acting.window is not None
        return Price("NO WAY BACK", "NO WAY BACK", goes=frozen, grave=True)
    if back.total is None:
        return Price("roll back", "back")
    time = f"≈{fmt.duration(back.total)}"
    where = f" to {fmt.revision(back.revision)}" if back.revision else ""
    return Price(time + where, time + where)
