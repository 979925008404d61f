"""What the head is asked for to know what is under way, how often, and what comes of its answers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "readings"))
sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))

import pictures
from acting_files import OP, begin, done, lease, line, plan, window

from console.actions.underway import head_now
from console.feed.acting import AT_REST_S, ENDED_S, LEDGER_S, RUNNING_S, ActingFeed
from console.feed.host import HostFeed
from console.fleet.inventory import Host, Rates
from console.reach.link import Frame, Link
from console.readings.acting import LEASE, WINDOW, lease_text
from console.readings.acting_ledger import LedgerSays
from console.readings.acting_operation import begun_at
from console.readings.acting_types import Acting, OperationState
from console.readings.ledger import ZERO, Kind, Record, encode
from console.readings.link import LinkState, LinkStatus
from console.readings.look import Look, LookKind
from console.readings.quality import Quality
from console.snapshot import Severity

FOLDER = "/var/tmp/laneswap/spark4.dsv41"
OTHER = OP.replace("3f9ac1", "aaaaaa")


@dataclass
class Wire:
    """A link that is up, and what it was told to look at."""

    state: LinkState = field(default_factory=lambda: LinkState(LinkStatus.UP, time.monotonic()))
    asked: list[Sequence[Look]] = field(default_factory=list)

    def look(self, looks: Sequence[Look]) -> None:
        self.asked.append(looks)


def note(subject: str, text: str, severity: Severity, wall: float | None = None, deed: str = "") -> None:
    raise AssertionError(f"{subject}: {text}")


class Head:
    """A head whose answers are given by hand."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.feed = HostFeed("spark-0", Host(ssh="spark-0", docker=""), Rates(), cast(Link, self.wire), note)
        self.acting = ActingFeed("dsv41", FOLDER, self.feed)

    def asked(self) -> dict[str, Look]:
        return {look.key.removeprefix("dsv41:acting."): look for look in self.wire.asked[-1]}

    def answer(self, **files: str | None) -> None:
        """The host's answers by what was asked; None: not there."""
        now = time.monotonic()
        texts = {
            f"dsv41:acting.{what}": "missing" if text is None else f"ok size={len(text)} mtime=1.0 inode=1\n{text}"
            for what, text in files.items()
        }
        self.feed._take_look(Frame("look", 1, now, time.time(), now, texts))

    def runner(self, rows: str, status: str = "ok clock=100 boot=5") -> None:
        now = time.monotonic()
        (key,) = [look.key for look in self.wire.asked[-1] if look.kind is LookKind.PROCESSES]
        self.feed._take_look(Frame("look", 1, now, time.time(), now, {key: f"{status}\n{rows}"}))


def rest() -> Head:
    head = Head()
    head.answer(lease=None, window=None, debts=None, current=None)
    return head


def test_a_lane_at_rest_costs_a_few_small_looks() -> None:
    head = rest()
    asked = head.asked()
    assert {what: look.arguments[0] for what, look in asked.items()} == {
        "lease": f"{FOLDER}/lease",
        "window": f"{FOLDER}/window.json",
        "debts": f"{FOLDER}/debts.json",
        "current": f"{FOLDER}/current",
        "ledger": f"{FOLDER}/ledger.jsonl",
    }
    paces = {what: (look.kind, look.every) for what, look in asked.items()}
    assert paces.pop("ledger") == (LookKind.FILE, LEDGER_S)
    assert set(paces.values()) == {(LookKind.FILE, AT_REST_S)}
    now = time.monotonic()
    found = head.acting.view(now)
    assert found.quality(now) is Quality.LIVE
    assert found.value is not None and found.value.folder == FOLDER
    assert (found.value.lease, found.value.window, found.value.debts, found.value.operation) == (None, None, (), None)
    assert len(head.wire.asked) == 1


def test_nothing_is_said_before_all_of_it_was_read() -> None:
    head = Head()
    head.answer(lease=lease(), window=None, debts=None)
    now = time.monotonic()
    found = head.acting.view(now)
    assert (found.value, found.quality(now)) == (None, Quality.ABSENT)


def test_an_operation_is_followed_from_its_name_on() -> None:
    head = rest()
    head.acting.view(time.monotonic())
    head.answer(current=OP + "\n", window=window())
    found = head.acting.view(time.monotonic()).value
    assert found is not None and found.operation is not None and found.operation.unread
    asked = head.asked()
    assert asked["plan"].arguments[:3] == (f"{FOLDER}/ops/{OP}/plan.json", "first", "190000")
    assert asked["journal"].arguments[:3] == (f"{FOLDER}/ops/{OP}/journal.jsonl", "last", "65536")
    assert asked["journal"].every == asked["current"].every == RUNNING_S
    assert asked[f"runner.{OP}"].arguments == (f"run {FOLDER}/ops/{OP}",)
    head.answer(plan=plan(), journal=begin() + done("disarm"))
    head.runner(f"41\t1\tS\t5.00\t0\t-\t-\tpython3 -I runner.py run {FOLDER}/ops/{OP}")
    found = head.acting.view(time.monotonic()).value
    assert found is not None and found.operation is not None
    assert (found.operation.state, found.operation.unread) == (OperationState.RUNNING, False)
    assert found.window is not None and found.window.operator == "ana"
    assert head.asked()["plan"].every == ENDED_S, "a plan that was read does not change"


def with_operation(journal: str) -> Head:
    head = rest()
    head.answer(current=OP + "\n")
    head.acting.view(time.monotonic())
    head.answer(plan=plan(), journal=journal)
    return head


def state(head: Head) -> OperationState:
    found = head.acting.view(time.monotonic()).value
    assert found is not None and found.operation is not None
    return found.operation.state


def test_a_runner_that_is_gone_is_noticed_and_looked_for_less_often() -> None:
    head = with_operation(begin() + done("disarm"))
    head.runner("")
    assert state(head) is OperationState.HALF_DONE
    asked = head.asked()
    assert (asked["journal"].every, asked[f"runner.{OP}"].every) == (AT_REST_S, 2 * AT_REST_S)


def test_others_processes_may_be_hidden() -> None:
    head = with_operation(begin() + done("disarm"))
    head.runner("", "ok clock=100 boot=5 hidden=1")
    assert state(head) is OperationState.UNKNOWN
    head.runner(f"41\t1\tZ\t5.00\t0\t-\t-\tpython3 run {FOLDER}/ops/{OP}")
    assert state(head) is OperationState.HALF_DONE, "a zombie carries nothing on"


def test_what_has_ended_is_left_in_peace_until_there_is_another() -> None:
    head = with_operation(begin() + done("disarm") + line(9, "end", state="done", words=""))
    assert state(head) is OperationState.DONE
    asked = head.asked()
    assert (asked["journal"].every, asked["current"].every) == (ENDED_S, AT_REST_S)
    assert not any(look.kind is LookKind.PROCESSES for look in asked.values())
    head.answer(current=OTHER + "\n")
    found = head.acting.view(time.monotonic()).value
    assert found is not None and found.operation is not None
    assert (found.operation.id, found.operation.steps, found.operation.unread) == (OTHER, (), True)
    assert f"runner.{OTHER}" in head.asked()


def test_a_head_that_is_away_still_says_what_was_owed() -> None:
    head = rest()
    head.answer(debts='[{"what": "watchdog", "since": 5.0, "deadline": 9.0, "operator": "ana"}]')
    head.wire.state = LinkState(LinkStatus.DOWN, time.monotonic(), error="no route")
    now = time.monotonic()
    found = head.acting.view(now)
    assert found.quality(now) is Quality.UNREACHABLE
    assert found.current(now) is None
    assert found.value is not None and found.value.debts[0].what == "watchdog"
    assert abs(found.value.clock - time.time()) < 60, "its deadline still comes nearer"


def record(op: str, kind: Kind, result: str, at: float, host: str = "", text: str = "") -> str:
    entry = Record(
        "c" * 16, int(at), at, 1.0, "", 7, "ben", "spark4", "dsv41", host, op, kind, (), "p", result, text, ZERO
    )
    return encode(entry)[1].decode()


def test_the_ledger_tells_what_other_consoles_did() -> None:
    head = with_operation(begin() + done("disarm") + line(9, "end", state="done", words=""))
    head.answer(plan=plan(ledgered=False))
    found = head.acting.view(time.monotonic()).value
    assert found is not None and found.operation is not None and not found.operation.ledgered
    assert head.acting.ledger() is None
    at = begun_at(OP) + 478
    head.answer(
        ledger="torn line\n"
        + record(OP, Kind.OUTCOME, "done", at)
        + record(OP, Kind.OUTCOME, "done", at + 1, host="n1")
        + record(OTHER, Kind.OUTCOME, "failed", at + 2)
        + record(OTHER.replace("rollback", "stop"), Kind.OUTCOME, "done", at + 3)
        + record(OP, Kind.BREAK_GLASS, "", at + 4)
        + "{"
    )
    says = head.acting.ledger()
    assert says is not None
    assert [(deed.operation, deed.took, deed.operator) for deed in says.deeds] == [(OP, 478.0, "ben")]
    found = head.acting.view(time.monotonic()).value
    assert found is not None and found.operation is not None and found.operation.ledgered, "it was written up"
    head.answer(ledger="no ledger at all")
    assert head.acting.ledger() == LedgerSays()


def test_all_that_lies_in_the_state_folder_is_looked_at_without_following_links() -> None:
    """A group may write there."""
    head = rest()
    head.answer(current=f"{OP}\n")
    head.acting.view(time.monotonic())
    files = {what: look.arguments for what, look in head.asked().items() if look.kind is LookKind.FILE}
    assert set(files) == {"lease", "window", "debts", "current", "ledger", "plan", "journal"}
    assert {arguments[3] for arguments in files.values()} == {"/var/tmp/laneswap"}


@pytest.mark.parametrize(
    ("verb", "where", "result", "told"),
    [
        ("rollback", "89abcde to 0123456", "done", ((20.0, "0123456"),)),
        ("relaunch", "down to 0123456", "done", ((20.0, "0123456"),)),
        ("rollback", "new-BOUND-REF 89abcde to old-RETIRED-REF 0123456", "done", ((20.0, "0123456"),)),
        ("rollback", "89abcde to 0123456", "half done", ()),
        ("relaunch", "down to serving", "done", ()),
        ("stop", "serving to 0123456", "done", ()),
    ],
)
def test_the_ledger_tells_which_revisions_came_up(verb: str, where: str, result: str, told: Any) -> None:
    op = f"20261201T031502Z-{verb}-4c19e0"
    head = Head()
    intent = record(op, Kind.INTENT, "", 10.0, "n1", f"roll back dsv41 on spark4: {where}; confirmed by letter")
    head.answer(ledger=intent + record(op, Kind.OUTCOME, result, 20.0))
    says = head.acting.ledger()
    assert says is not None and says.came_up == told


def test_what_the_head_said_when_this_console_wrote_counts_until_it_is_looked_at() -> None:
    head = rest()
    head.acting.told(LEASE, lease())
    head.acting.told(WINDOW, window())
    now = time.monotonic()
    found = head.acting.view(now)
    assert found.value is not None and found.value.lease is not None and found.value.window is not None
    assert found.value.lease.operator == "ana" and found.quality(now) is Quality.LIVE
    head.answer(lease=lease(operator="ben"), window=None)
    newer = head.acting.view(time.monotonic()).value
    assert newer is not None and newer.lease is not None
    assert (newer.lease.operator, newer.window) == ("ben", None), "what is looked at later is what is so"


def test_an_answer_from_before_this_console_wrote_does_not_take_it_back() -> None:
    head = rest()
    head.acting.told(WINDOW, window())
    before = time.monotonic() - 1.0
    head.feed._take_look(Frame("look", 2, before, time.time(), before, {"dsv41:acting.window": "missing"}))
    seen = head.acting.view(time.monotonic()).value
    assert seen is not None and seen.window is not None
    head.acting.told(WINDOW, None)
    gone = head.acting.view(time.monotonic()).value
    assert gone is not None and gone.window is None


def test_nothing_is_known_by_what_this_console_wrote_alone() -> None:
    head = Head()
    head.acting.told(LEASE, lease())
    assert head.acting.view(time.monotonic()).value is None


def test_a_lease_is_told_as_its_file_has_it() -> None:
    head = rest()
    head.answer(lease=lease())
    read = head.acting.view(time.monotonic()).value
    assert read is not None and read.lease is not None
    head.acting.told(LEASE, lease_text(read.lease))
    told = head.acting.view(time.monotonic()).value
    assert told is not None and told.lease == read.lease


def test_the_heads_clock_never_goes_back_while_nobody_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when this machine's clock is set, nor when a quick frame leaves the window, nor with the link."""
    head = rest()
    now = time.monotonic()
    wall = time.time() + 100.0

    def frame(at: float, late: float = 0.0) -> None:
        head.feed._take_clock(Frame("node", 1, at + 50.0 - late, wall + (at - now) - late, at, {}))

    frame(now)
    shown = [head.feed.host_wall(now)]
    for second in range(1, 60):
        frame(now + second, late=0.8)
        shown.append(head.feed.host_wall(now + second))
    assert shown == sorted(shown)
    assert shown[-1] == pytest.approx(wall + 59, abs=1.0)
    monkeypatch.setattr(time, "time", lambda: 1.0)
    assert head.feed.host_wall(now + 60) >= shown[-1]
    head.wire.state = LinkState(LinkStatus.DOWN, now, "gone")
    assert head.feed.host_wall(now + 61) >= shown[-1]
    head.feed._take_clock(Frame("node", 1, now + 112.0, wall - 500.0, now + 62.0, {}))
    assert head.feed.host_wall(now + 62) == pytest.approx(wall - 500.0, abs=0.01), "the host's own clock was set"


def test_now_by_the_head_counts_from_when_the_clock_was_told() -> None:
    """Not from when its files were looked at: that counted seconds twice, and took them back with the next look."""
    snapshot = pictures.spark4()
    reading = pictures.reading(Acting(1000.0), 2.4, 2.5)
    lane = replace(snapshot.lanes[0], acting=reading, looked=snapshot.now - 0.5)
    assert head_now(snapshot, lane) == pytest.approx(1000.5)
