"""Connections, hosts and disks that give way in the middle of a rollback, and consoles that sleep through it."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from acting_console import GOOD, LIMIT, NEEDS_OPERATOR, REFUSED, UNKNOWN
from acting_docker import RETIRED, SERVING, ActingDocker
from acting_operator import DockerEvents, Head, Operator
from acting_parts import NEW, OLD, STATE
from bed.client import Bed, BedHost
from bed.system import wait_for

pytestmark = [pytest.mark.bed, pytest.mark.timeout(240)]

PARTS = "/usr/lib/python3.11/json"
"""What the runner needs of python3 and nothing else on a host does."""


@pytest.fixture
def lane(lane: ActingDocker) -> ActingDocker:
    """The lane, serving NEW, with OLD kept, whose boot takes long enough to be cut off in."""
    lane.fault(OLD, boot=4.0)
    return lane


def serves(lane: ActingDocker, revision: str) -> None:
    """The lane serves this revision."""
    lane.until_healthy()
    found = lane.standing()
    assert found is not None and found.revision == revision


def swapped_once(lane: ActingDocker, events: DockerEvents) -> None:
    """OLD serves, and Docker stopped the one and started the other once."""
    serves(lane, OLD)
    counts = events.counts()
    assert counts[f"die {lane.id_of(NEW)[:12]}"] == counts[f"start {lane.id_of(OLD)[:12]}"] == 1, counts


@contextlib.contextmanager
def sessions_killed(host: BedHost) -> Iterator[None]:
    """Every connection is ended; new ones are taken at once."""
    assert host.kill_ssh_sessions() >= 1
    yield


@contextlib.contextmanager
def sshd_gone(host: BedHost) -> Iterator[None]:
    """No connection, and none to be had."""
    with host.ssh_stopped():
        assert host.kill_ssh_sessions() >= 1
        yield


CUTS = {"killed": sessions_killed, "refused": sshd_gone, "dropped": BedHost.dropped}


@pytest.mark.parametrize(
    "cut", ["killed", *(pytest.param(name, marks=pytest.mark.soak) for name in ("refused", "dropped"))]
)
def test_a_rollback_goes_on_while_its_console_is_cut_off(lane: ActingDocker, ana: Operator, cut: str) -> None:
    head, events = Head(lane.host, "station"), DockerEvents(lane.host)
    child = ana.begin_do("rollback")
    head.until_step("start", "running", child)
    with CUTS[cut](lane.host):
        assert head.until_ended() == "done"
    done = ana.finish(child)
    assert done.code == GOOD and "rollback DONE" in done.out, done.text
    swapped_once(lane, events)
    ana.ledger_good()
    assert ana.outcomes() == [(head.current(), "done")]


@pytest.mark.soak
def test_a_console_that_hears_nothing_for_long_says_that_it_does_not_know(lane: ActingDocker, ana: Operator) -> None:
    head = Head(lane.host, "station")
    child = ana.begin_do("rollback")
    head.until_step("start", "running", child)
    with lane.host.dropped():
        done = ana.finish(child)
    assert done.code == UNKNOWN and "is not known" in done.err, done.text
    assert not ana.outcomes(), "nothing is made up"
    followed = ana.run("attach", "station")
    assert followed.code == GOOD and "DONE" in followed.out, followed.text
    assert ana.outcomes() == [(head.current(), "done")]
    ana.ledger_good()


@pytest.mark.soak
def test_a_head_that_is_restarted_in_the_middle_is_told_and_carried_on(
    lane: ActingDocker, ana: Operator, bed: Bed
) -> None:
    lane.fault(OLD, boot=60.0)
    head = Head(lane.host, "station")
    child = ana.begin_do("rollback")
    head.until_step("start", "running", child)
    wait_for(lambda: lane.running() == [lane_name(lane, OLD)], "it boots", limit=LIMIT)
    lane.host.root("systemctl", "reboot", "--force", "--force", check=False)
    bed.restart(lane.host)
    lane.fault(OLD)
    cut = ana.finish(child)
    assert cut.code in (NEEDS_OPERATOR, UNKNOWN) and "HALF DONE" in cut.out, cut.text
    alarms = [text for text in ana.alarms() if "rollback by ana" in text]
    assert alarms and "HALF DONE after stop" in alarms[0] and "next: start" in alarms[0], alarms
    told = ana.run("attach", "station")
    assert told.code in (NEEDS_OPERATOR, UNKNOWN) and "next: start" in told.out, told.text
    went_on = ana.run("attach", "station", "--carry-on", "--yes-lane", "station")
    assert went_on.code == GOOD and "DONE" in went_on.out, went_on.text
    serves(lane, OLD)
    ana.ledger_good()
    assert ana.outcomes()[-1] == (head.current(), "done")
    assert SERVING not in lane.containers(), "the steps behind it were done too"


def lane_name(lane: ActingDocker, revision: str) -> str:
    """What the container of a revision is called now."""
    identity = lane.id_of(revision)
    return next(name for name, seen in lane.containers().items() if seen.id == identity)


# --- disks


NO_ROOM_IN_JOURNALS = f"""
find {STATE} -name journal.jsonl | while read -r one; do
  head -c $((4096 - $(stat -c %s "$one") % 4096)) /dev/zero | tr '\\0' '\\n' >>"$one"
done
"""
"""A full disk still has what is left of each file's last page: empty lines use it up, and say nothing."""


@contextlib.contextmanager
def small_disk(host: BedHost, size: str) -> Iterator[None]:
    """The state folder on a disk of its own."""
    owner = host.root("id", "-u", host.user).strip()
    host.root("mkdir", "-p", STATE)
    host.root("mount", "-t", "tmpfs", "-o", f"size={size},mode=0755,uid={owner}", "tmpfs", STATE)
    try:
        yield
    finally:
        host.root("umount", "--lazy", STATE)
        host.root("rmdir", STATE)


def test_a_head_without_room_refuses_and_nothing_is_half_written(lane: ActingDocker, ana: Operator) -> None:
    head, before = Head(lane.host, "station"), lane.containers()
    with small_disk(lane.host, "64k"):
        refused = ana.do("rollback")
        assert refused.code == REFUSED and "No space left" in refused.err, refused.text
        assert "a lease was taken and given back; rollback did not begin: " in refused.err
        assert not head.current() and not head.lease()
        files = lane.host.root("find", STATE, "-name", "plan.json", "-o", "-name", "*.new*", "-o", "-name", "journal*")
        assert not files.split(), "neither an operation nor a part of one"
    assert lane.containers() == before
    ana.ledger_good()
    assert [result for _, result in ana.outcomes()] == ["not begun"]
    assert ana.do("rollback").code == GOOD
    serves(lane, OLD)


@pytest.mark.soak
def test_a_disk_that_fills_up_in_the_middle(lane: ActingDocker, ana: Operator) -> None:
    head, events = Head(lane.host, "station"), DockerEvents(lane.host)
    with small_disk(lane.host, "3m"):
        child = ana.begin_do("rollback")
        head.until_step("start", "running", child)
        lane.host.root(
            "sh", "-c", f"dd if=/dev/zero of={STATE}/full bs=4k 2>/dev/null; {NO_ROOM_IN_JOURNALS}", check=False
        )
        done = ana.finish(child)
        assert done.code not in (GOOD, REFUSED), done.text
        wait_for(lambda: any("rollback by ana" in text for text in ana.alarms()), "it is told", limit=LIMIT)
        lane.host.root("rm", f"{STATE}/full")
        went_on = ana.run("attach", "station", "--carry-on", "--yes-lane", "station")
        assert went_on.code == GOOD and head.ended() == "done", went_on.text
    swapped_once(lane, events)
    ana.ledger_good()


# --- consoles that sleep


class AtTheTerminal:
    """A command that somebody types at."""

    def __init__(self, who: Operator, *words: str) -> None:
        self.master, slave = pty.openpty()
        argv = [sys.executable, "-m", "console", *words, "-f", str(who.file)]
        self.process = subprocess.Popen(argv, env=who.environment(), stdin=slave, stdout=slave, stderr=slave, text=True)
        os.close(slave)
        self.text = ""

    def until(self, words: str) -> None:
        """Read until these words were printed."""
        end = time.monotonic() + LIMIT
        while words not in self.text:
            assert time.monotonic() < end and self._read(), f"never said {words!r}: {self.text}"

    def _read(self) -> bool:
        """What has come within a second; False once it has ended."""
        if not select.select([self.master], [], [], 1.0)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self.master, f"{text}\n".encode())

    def ended(self) -> int:
        """Its exit code; all that it said is in `text`."""
        end = time.monotonic() + LIMIT
        while self._read():
            assert time.monotonic() < end, f"it does not end: {self.text}"
        os.close(self.master)
        return self.process.wait(LIMIT)


@pytest.mark.parametrize("verb", ["stop", pytest.param("rollback", marks=pytest.mark.soak)])
def test_a_console_that_slept_while_the_lane_was_taken_over_does_nothing(
    lane: ActingDocker, ana: Operator, ben: Operator, verb: str
) -> None:
    before = lane.containers()
    assert ana.run("window", "open", "station", "--reason", "swap", "--yes-lane", "station").code == GOOD
    first = AtTheTerminal(ana, "do", "station", verb)
    first.until("type the lane's name")
    first.process.send_signal(signal.SIGSTOP)
    taken = ben.run("window", "take", "station", "--yes-lane", "station")
    assert taken.code == GOOD and "taken from ana" in taken.out, taken.text
    first.process.send_signal(signal.SIGCONT)
    first.type("station")
    assert first.ended() == REFUSED, first.text
    assert "ben" in first.text and "Nothing was sent" in first.text, first.text
    assert lane.containers() == before and not Head(lane.host, "station").operations()
    both = [one["text"] for one in ben.records() if one["kind"] == "takeover"]
    assert len(both) == 1 and "ana" in both[0] and "ben" in both[0]
    ana.ledger_good()
    ben.ledger_good()


@contextlib.contextmanager
def no_runner(host: BedHost) -> Iterator[None]:
    """The host cannot carry a sequence out: the console has to."""
    host.root("mv", PARTS, f"{PARTS}.aside")
    try:
        yield
    finally:
        host.root("mv", f"{PARTS}.aside", PARTS)


def test_a_sequence_in_a_console_that_slept_is_fenced_off_at_its_next_step(
    lane: ActingDocker, ana: Operator, ben: Operator
) -> None:
    head = Head(lane.host, "station")
    with no_runner(lane.host):
        child = ana.begin_do("rollback")
        head.until_step("start", "running", child)
        child.send_signal(signal.SIGSTOP)
        taken = ben.run("window", "take", "station", "--yes-lane", "station")
        assert taken.code == GOOD, taken.text
        lane.until_healthy()
        child.send_signal(signal.SIGCONT)
        done = ana.finish(child)
        assert done.code not in (GOOD, REFUSED) and "ben took the lane over" in done.text, done.text
        assert "in this console, keep it open" in done.out
        assert lane.containers()[SERVING].id == lane.id_of(NEW), "the names were not swapped any more"
        went_on = ben.run("attach", "station", "--carry-on", "--yes-lane", "station")
        assert went_on.code == GOOD and "DONE" in went_on.out, went_on.text
        assert SERVING not in lane.containers()
    ana.ledger_good()
    ben.ledger_good()


@pytest.mark.soak
def test_a_sequence_in_a_console_that_is_killed_says_what_is_next(lane: ActingDocker, ana: Operator) -> None:
    head, events = Head(lane.host, "station"), DockerEvents(lane.host)
    with no_runner(lane.host):
        assert ana.killed_when(lambda: head.told("stop", "done"), "rollback")
        told = ana.run("attach", "station")
        assert "HALF DONE after stop" in told.out and "next: start" in told.out, told.text
        went_on = ana.run("attach", "station", "--carry-on", "--yes-lane", "station")
        assert went_on.code == GOOD and "DONE" in went_on.out, went_on.text
    swapped_once(lane, events)
    assert not head.begun_twice()
    ana.ledger_good()


@pytest.mark.soak
def test_a_rollback_that_is_half_done_though_its_target_serves_is_not_led_away_from(
    lane: ActingDocker, ana: Operator
) -> None:
    """Its console is killed while the retired one boots, which comes up all the same: B goes on, not the other way."""
    head, events = Head(lane.host, "station"), DockerEvents(lane.host)
    with no_runner(lane.host):
        assert ana.killed_when(lambda: head.told("start", "running") and RETIRED in lane.running(), "rollback")
        serves(lane, OLD)
        told = ana.run("attach", "station")
        assert "HALF DONE" in told.out, told.text
        again = ana.do("rollback")
        assert again.code == REFUSED and f"{OLD[:7]} serves" in again.text, again.text
        assert "laneswap attach station --carry-on" in again.text and "rollback --forward" in again.text, again.text
        assert ana.document("plan", "station", "rollback", "--forward")["to"].endswith(NEW[:7]), (
            "for the asking it goes"
        )
        went_on = ana.run("attach", "station", "--carry-on", "--yes-lane", "station")
        assert went_on.code == GOOD and "DONE" in went_on.out, went_on.text
    swapped_once(lane, events)
    assert not head.begun_twice()
    forward = ana.do("rollback")
    assert forward.code == GOOD, forward.text
    serves(lane, NEW)
    ana.ledger_good()
