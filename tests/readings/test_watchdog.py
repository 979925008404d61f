"""Watchdogs: what the log, the lock, the process, the unit and the flags come to, taken together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.inventory import FleetError
from console.fleet.recipe import load_recipe
from console.readings.look import Answer, Status
from console.readings.processes import Process, parse_processes
from console.readings.units import Unit, Units
from console.readings.watchdog import Says, Watchdog, WatchdogSpec, WatchdogState, read_watchdog
from console.readings.watchdog_log import parse_stamp, zone_between
from console.sanitize import line

DATA = Path(__file__).parents[1] / "data" / "fleet"
LOG = (DATA / "sgl-watchdog.rendered.log").read_text()
GAVE_UP = (DATA / "sgl-watchdog.GAVEUP.rendered.log").read_text()
COMMAND = "bash launch/watchdog.sh"
PID = 48211
TWO_HOURS = 7200.0
"""The wall clock of these hosts is ahead of UTC by so much, in seconds."""


def spec_of(recipe: str) -> WatchdogSpec:
    found = load_recipe(recipe).watchdog
    assert found is not None
    return found.spec(found.place("spark-0"))


SGLANG, VLLM = spec_of("sglang-fleet-env"), spec_of("vllm-cluster-env")
MISSING = Answer(Status.MISSING)


def wall(text: str) -> float:
    """The host's wall clock counted as UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def unix(text: str) -> float:
    return wall(text) - TWO_HOURS


STARTED = unix("2026-10-17 22:10:41")


def file(text: str, mtime: float | None = None) -> Answer:
    values = {"size": str(len(text.encode()))} | ({"mtime": str(mtime)} if mtime is not None else {})
    return Answer(Status.OK, "", values, text)


def log_until(last: str, text: str = LOG) -> Answer:
    """The log as it stood when the line with `last` had just been written."""
    rows = text.splitlines(keepends=True)
    at = next(number for number, row in enumerate(rows) if last in row)
    stamp = parse_stamp(rows[at])
    return file("".join(rows[: at + 1]), stamp.seconds - TWO_HOURS if stamp else STARTED)


def process(
    pid: int = PID, command: str = COMMAND, state: str = "S", ppid: int = 1, started: float = STARTED
) -> Process:
    return Process(pid, ppid, state, command, started)


LOCK = file(f"{PID}\n")


def seen(log: Answer | None, after: float = 5.0, **more: object) -> Watchdog:
    """The watchdog `after` seconds after its log was written, alive and holding its lock unless told otherwise."""
    mtime = float(log.values["mtime"]) if log is not None and "mtime" in log.values else STARTED
    given_: dict[str, object] = {"lock": LOCK, "processes": (process(),), "now": mtime + after} | more
    return read_watchdog(SGLANG, log=log, **given_)  # type: ignore[arg-type]


# --- what the log says -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "state", "short", "protecting", "attempt"),
    [
        ("watchdog started", WatchdogState.STARTING, "starting, not armed yet", False, None),
        ("22:10:42 armed", WatchdogState.ARMED, "armed", True, None),
        ("busy 0s of 600s", WatchdogState.BUSY, "busy grace", True, None),
        ("busy cleared", WatchdogState.ARMED, "armed", True, None),
        ("check failed 2/3", WatchdogState.CHECKING, "check failed 2 of 3", True, (2, 3)),
        ("RECOVERY attempt 1/3", WatchdogState.RECOVERY, "in recovery, attempt 1 of 3", True, (1, 3)),
        ("evidence captured", WatchdogState.RECOVERY, "in recovery, attempt 1 of 3", True, (1, 3)),
        ("running launch", WatchdogState.RECOVERY, "in recovery, attempt 1 of 3", True, (1, 3)),
        ("booting: 303s", WatchdogState.RECOVERY, "in recovery, attempt 1 of 3", True, (1, 3)),
        ("fleet healthy", WatchdogState.STARTING, "starting, not armed yet", False, None),
        ("05:55:46 armed", WatchdogState.ARMED, "armed", True, None),
    ],
)
def test_every_line_of_the_script_has_its_state(
    last: str, state: WatchdogState, short: str, protecting: bool, attempt: tuple[int, int] | None
) -> None:
    found = seen(log_until(last))
    assert (found.state, found.short, found.protecting, found.attempt) == (state, short, protecting, attempt)
    assert (found.pid, found.may_signal, found.instances, found.next_check) == (PID, True, 1, 60.0)
    assert (found.kind, found.host) == ("log", "spark-0")


@pytest.mark.parametrize(
    ("text", "state", "short"),
    [
        ("healthy again after 2 failed check(s); counter reset", WatchdogState.ARMED, "armed"),
        (
            "busy for 605s, past BUSY_GRACE 600s: failure 1/3 (3-token chat probe unanswered)",
            WatchdogState.CHECKING,
            "check failed 1 of 3",
        ),
        ("healthy but busy, not armed yet: chat probe unanswered", WatchdogState.STARTING, "starting, not armed yet"),
        (
            "not healthy, not armed (check 20): /health answered HTTP 503",
            WatchdogState.STARTING,
            "starting, not armed yet",
        ),
        ("launch/production.sh exited 1 — read relaunch.log", WatchdogState.RECOVERY, "in recovery"),
        ("head container exited 61s into the boot: head container exited", WatchdogState.RECOVERY, "in recovery"),
        ("not healthy 3601s after relaunch attempt 2 (READY_TIMEOUT 3600s)", WatchdogState.RECOVERY, "in recovery"),
        (
            "lock /home/alice/.sgl-watchdog.lock no longer carries pid 48211 (removed or taken over): standing down",
            WatchdogState.STANDING_DOWN,
            "standing down",
        ),
        (
            "lock /home/alice/.sgl-watchdog.lock no longer mine while waiting for the boot: standing down",
            WatchdogState.STANDING_DOWN,
            "standing down",
        ),
    ],
)
def test_lines_that_the_sample_does_not_have(text: str, state: WatchdogState, short: str) -> None:
    rows = LOG.splitlines(keepends=True)
    log = file("".join(rows[:3]) + f"2026-10-18 07:00:00 {text}\n", unix("2026-10-18 07:00:00"))
    found = seen(log)
    assert (found.state, found.short) == (state, short)


def test_one_that_gave_up_stays_so_while_it_says_that_it_is_not_armed() -> None:
    """It keeps probing: `not healthy, not armed` after `GIVING UP` is no new start, `armed` is."""
    began = LOG.splitlines(keepends=True)[0]
    text = began + GAVE_UP + "2026-10-18 07:02:40 not healthy, not armed (check 1): /health gave no answer\n"
    found = seen(file(text, unix("2026-10-18 07:02:40")))
    assert (found.state, found.short) == (WatchdogState.GAVE_UP, "gave up, not protecting")
    assert found.protecting is False
    assert found.since == unix("2026-10-18 07:01:12")
    assert "arms itself again once the fleet is healthy" in found.words
    assert found.last_act.startswith("GIVING UP after 3 relaunch attempts")
    again = file(text + "2026-10-18 09:00:00 armed: /health 200\n", unix("2026-10-18 09:00:00"))
    assert seen(again).state is WatchdogState.ARMED


def test_the_newest_recovery_and_its_time_are_kept() -> None:
    found = seen(log_until("05:55:46 armed"))
    assert found.last_act.startswith("fleet healthy 580s after relaunch attempt 1")
    assert found.last_act_at == unix("2026-10-18 05:54:45")
    assert found.since == unix("2026-10-18 05:55:46")


def test_a_new_run_begins_anew() -> None:
    later = LOG + LOG.splitlines(keepends=True)[0].replace("48211", "777").replace("2026-10-17 22", "2026-10-19 08")
    started = unix("2026-10-19 08:10:41")
    found = seen(file(later, started), lock=file("777\n"), processes=(process(777, started=started),))
    assert (found.state, found.pid, found.since) == (WatchdogState.STARTING, 777, started)


def test_last_words_of_another_run_do_not_end_this_one() -> None:
    rows = LOG.splitlines(keepends=True)
    text = "".join(rows[:3]) + "2026-10-18 00:00:00 watchdog stopped (pid 5, signal): no automatic recovery\n"
    assert seen(file(text, unix("2026-10-18 00:00:00"))).state is WatchdogState.ARMED


def test_the_line_restated_after_a_trim_keeps_state_and_pid() -> None:
    text = (
        "2026-10-18 05:55:46 armed: /health 200 and the chat probe answered\n"
        "2026-10-20 00:00:00 log trimmed from 20001 to 5000 lines; watchdog started (pid 48211, 2026-10-20 00:00:00, "
        "port 8210, check every 60s) [restated after the trim]\n"
    )
    found = seen(file(text, unix("2026-10-20 00:00:00")))
    assert (found.state, found.pid) == (WatchdogState.ARMED, PID)


def test_a_tail_that_begins_in_the_middle_of_a_line_loses_that_line_only() -> None:
    text = LOG.split("\n", 1)[1][30:]  # `...armed: ...` may not be read from a torn line
    answer = Answer(Status.OK, "", {"size": str(len(LOG)), "mtime": str(STARTED)}, "armed: torn\n" + "nothing known\n")
    assert seen(answer).state is WatchdogState.UNKNOWN
    whole = Answer(Status.OK, "", {"size": "10"}, text)
    assert seen(whole, processes=()).state is WatchdogState.DEAD_LOCK


def test_the_interval_is_the_logs_own() -> None:
    log = log_until("22:10:42 armed", LOG.replace("check every 60s", "check every 20s"))
    assert seen(log).next_check == 20.0


# --- is it that process? ---------------------------------------------------------------------------------------------


def test_a_stopped_watchdog_is_disarmed_and_says_since_when() -> None:
    found = seen(log_until("watchdog stopped"), lock=MISSING, processes=())
    assert (found.state, found.short, found.protecting) == (WatchdogState.OFF, "disarmed", False)
    assert found.words.startswith("disarmed: watchdog stopped (pid 48211, signal)")
    assert found.since == unix("2026-10-18 09:41:03")
    assert (found.may_signal, found.instances) == (False, 0)


def test_a_pid_that_another_program_has_now_is_never_to_be_signalled() -> None:
    other = process(command="rsync --server -vlogDtpre.iLsfxC . /models/stage", started=unix("2026-10-19 08:00:00"))
    found = seen(log_until("22:10:42 armed"), lock=MISSING, processes=(other,))
    assert (found.state, found.protecting, found.may_signal) == (WatchdogState.REUSED_PID, False, False)
    assert "never signal it" in found.words and "rsync" in found.words


@pytest.mark.parametrize(
    "command",
    [
        "vim launch/watchdog.sh",
        "tail -F launch/watchdog.sh",
        "grep started launch/watchdog.sh",
        "ssh n launch/watchdog.sh",
    ],
)
def test_an_editor_that_shows_the_script_is_no_watchdog(command: str) -> None:
    viewer = process(999, command)
    found = seen(log_until("22:10:42 armed"), processes=(viewer,))
    assert (found.state, found.instances) == (WatchdogState.DEAD_LOCK, 0)
    assert seen(log_until("22:10:42 armed"), processes=(process(), viewer)).instances == 1


@pytest.mark.parametrize(
    "command",
    [
        "/bin/bash /home/alice/recipes/launch/watchdog.sh",
        "launch/watchdog.sh",
        "/home/alice/recipes/launch/watchdog.sh --foreground",
        "nohup setsid bash launch/watchdog.sh",
        "-bash launch/watchdog.sh",
    ],
)
def test_every_way_to_run_the_script_is_a_watchdog(command: str) -> None:
    assert seen(log_until("22:10:42 armed"), processes=(process(command=command),)).state is WatchdogState.ARMED


def test_started_from_inside_the_folder_it_is_armed_but_relaunch_does_not_find_it() -> None:
    found = seen(log_until("22:10:42 armed"), processes=(process(command="bash watchdog.sh"),))
    assert (found.state, found.may_signal) == (WatchdogState.ARMED, True)
    assert found.words == "armed: started by hand: its command line lacks launch/watchdog.sh"
    stranger = process(999, "bash watchdog.sh")
    assert seen(log_until("22:10:42 armed"), processes=(stranger,)).state is WatchdogState.DEAD_LOCK


def test_a_dead_process_with_its_lock_is_a_dead_lock() -> None:
    found = seen(log_until("22:10:42 armed"), processes=())
    assert (found.state, found.short) == (WatchdogState.DEAD_LOCK, "dead lock, not protecting")
    assert "names 48211, which is gone" in found.words


def test_one_that_has_just_begun_is_not_dead_because_processes_were_listed_before() -> None:
    """Files are looked at every 5 s, processes every 15 s: a lock that is that new proves nothing yet."""
    log = log_until("watchdog started")
    fresh = file("48211\n", STARTED)
    found = seen(log, 10.0, lock=fresh, processes=())
    assert (found.state, found.protecting) == (WatchdogState.UNKNOWN, None)
    assert found.short == "unknown: just begun, its process is not looked for yet"
    assert seen(log, 10.0, lock=MISSING, processes=()).state is WatchdogState.UNKNOWN
    assert seen(log, 31.0, lock=fresh, processes=()).state is WatchdogState.DEAD_LOCK
    assert seen(log_until("22:10:42 armed"), 40.0, lock=fresh, processes=()).state is WatchdogState.DEAD_LOCK


def test_a_zombie_watches_nothing() -> None:
    assert seen(log_until("22:10:42 armed"), processes=(process(state="Z"),)).state is WatchdogState.DEAD_LOCK


def test_a_process_that_a_signal_stopped_protects_nothing() -> None:
    found = seen(log_until("22:10:42 armed"), processes=(process(state="T"),))
    assert (found.state, found.protecting, found.may_signal) == (WatchdogState.PAUSED, False, True)


def test_where_others_processes_are_hidden_one_that_is_not_seen_is_unknown() -> None:
    row = f"900\t1\tS\t{STARTED:.0f}\t1000\t1\t1\tless launch/watchdog.sh\n"
    for flag, why in (("hidden", "others' processes are hidden from this user"), ("truncated", "only 1 of those")):
        listed = parse_processes(f"ok clock=100 boot=1 {flag}=1\n{row}")
        found = seen(log_until("22:10:42 armed"), processes=listed, after=600.0)
        assert (found.state, found.protecting, found.may_signal) == (WatchdogState.UNKNOWN, None, False)
        assert why in found.words and found.words.endswith("its log says armed")
    shown = parse_processes(f"ok clock=100 boot=1\n{row}")
    assert seen(log_until("22:10:42 armed"), processes=shown, after=600.0).state is WatchdogState.DEAD_LOCK
    own = f"{PID}\t1\tS\t{STARTED:.0f}\t1000\t1\t1\t{COMMAND}\n"
    listed = parse_processes(f"ok clock=100 boot=1 hidden=1\n{own}")
    assert seen(log_until("22:10:42 armed"), processes=listed).state is WatchdogState.ARMED


def test_gone_without_a_last_word_is_off() -> None:
    found = seen(log_until("22:10:42 armed"), lock=MISSING, processes=())
    assert (found.state, found.words) == (WatchdogState.OFF, "disarmed: pid 48211 is gone without a last word")
    restarted = seen(log_until("22:10:42 armed"), lock=MISSING, processes=(), booted=STARTED + 1000)
    assert restarted.words == "disarmed: the host was started since pid 48211 wrote its log"


def test_never_started_is_off() -> None:
    found = seen(MISSING, lock=MISSING, processes=())
    assert (found.state, found.words) == (WatchdogState.OFF, "disarmed: no process of it runs, no log of one")


def test_two_of_them_are_named() -> None:
    found = seen(log_until("22:10:42 armed"), processes=(process(), process(777)))
    assert (found.state, found.instances, found.pid, found.protecting) == (WatchdogState.TWO, 2, PID, True)
    assert found.words == "two of them: pids 777, 48211; the lock names 48211"
    unclear = seen(log_until("watchdog started"), processes=(process(), process(777)))
    assert unclear.protecting is None


def test_children_of_its_own_shell_are_not_a_second_one() -> None:
    """`$(...)` in a script forks a shell with the same command line, for as long as the command inside takes."""
    child = process(48300, ppid=PID)
    grandchild = process(48301, ppid=48300)
    found = seen(log_until("22:10:42 armed"), processes=(grandchild, process(), child))
    assert (found.state, found.instances, found.pid) == (WatchdogState.ARMED, 1, PID)


def test_a_lock_that_is_gone_or_names_another_makes_it_stand_down() -> None:
    gone = seen(log_until("22:10:42 armed"), lock=MISSING)
    assert (gone.state, gone.protecting) == (WatchdogState.STANDING_DOWN, False)
    assert gone.words == "standing down: its lock is gone: it ends at its next check"
    assert seen(log_until("22:10:42 armed"), lock=file("5\n")).state is WatchdogState.STANDING_DOWN


@pytest.mark.parametrize("lock", [None, Answer(Status.DENIED), Answer(Status.ERROR, "too slow"), file(""), file("x\n")])
def test_a_lock_that_cannot_be_read_proves_nothing(lock: Answer | None) -> None:
    assert seen(log_until("22:10:42 armed"), lock=lock).state is WatchdogState.ARMED


def test_a_live_one_that_the_log_does_not_know_is_unknown() -> None:
    found = seen(log_until("22:10:42 armed"), lock=file("777\n"), processes=(process(777),))
    assert (found.state, found.short) == (WatchdogState.UNKNOWN, "unknown: pid 777 runs, the log tells of 48211")
    assert found.protecting is None


def test_one_that_is_younger_than_the_log_is_not_the_one_of_the_log() -> None:
    log = log_until("22:10:42 armed")
    found = seen(log, processes=(process(started=STARTED + 4000.0),))
    assert found.short == "unknown: pid 48211 is younger than the log's first line"
    assert seen(log, processes=(process(started=STARTED - 4000.0),)).state is WatchdogState.ARMED


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (None, "unknown: pid 48211 runs, its log: not read yet"),
        (MISSING, "unknown: pid 48211 runs, its log: missing"),
        (Answer(Status.DENIED), "unknown: pid 48211 runs, its log: no permission"),
        (Answer(Status.ERROR, "stale handle"), "unknown: pid 48211 runs, its log: stale handle"),
    ],
)
def test_a_live_one_without_a_log_is_unknown(log: Answer | None, words: str) -> None:
    assert seen(log).words == words


@pytest.mark.parametrize("log", [None, Answer(Status.DENIED), Answer(Status.ERROR, "io")])
def test_without_its_log_nobody_can_say_that_none_runs(log: Answer | None) -> None:
    assert seen(log, processes=()).state is WatchdogState.UNKNOWN


def test_processes_that_were_not_read_leave_it_unknown() -> None:
    found = seen(log_until("22:10:42 armed"), processes=None)
    assert found.words == "unknown: processes not read: its log says armed"


# --- silence and clocks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "after", "state"),
    [
        ("22:10:42 armed", 40 * 86400.0, WatchdogState.ARMED),  # it has nothing to say while all is well
        ("busy 0s", 479.0, WatchdogState.BUSY),
        ("busy 0s", 481.0, WatchdogState.UNKNOWN),
        ("check failed 1/3", 481.0, WatchdogState.UNKNOWN),
        ("booting: 303s", 899.0, WatchdogState.RECOVERY),
        ("booting: 303s", 901.0, WatchdogState.UNKNOWN),
        ("running launch", 3599.0, WatchdogState.RECOVERY),
    ],
)
def test_silence_where_a_line_was_due_is_unknown(last: str, after: float, state: WatchdogState) -> None:
    found = seen(log_until(last), after)
    assert found.state is state
    if state is WatchdogState.UNKNOWN:
        assert found.short.startswith(f"unknown: silent for {'8' if after < 500 else '15'} min while ")
        assert found.protecting is None


def test_a_slow_interval_allows_longer_silence() -> None:
    log = log_until("check failed 1/3", LOG.replace("check every 60s", "check every 900s"))
    assert seen(log, 2699.0).state is WatchdogState.CHECKING
    assert seen(log, 2701.0).state is WatchdogState.UNKNOWN


def test_times_are_told_only_where_the_zone_is_known() -> None:
    """The script writes local time. The file's own time gives the zone away, unless it does not fit one."""
    log = log_until("05:55:46 armed")
    assert seen(log).since == unix("2026-10-18 05:55:46")
    mtime = float(log.values["mtime"])
    odd = Answer(Status.OK, "", {"mtime": str(mtime + 400)}, log.body)
    assert seen(odd, processes=(process(started=STARTED + 33),)).since is None
    assert seen(odd).since == unix("2026-10-18 05:55:46")  # the process's start fits the first line
    summer = Answer(Status.OK, "", {"mtime": str(mtime + 3600)}, log.body)
    assert seen(summer).since is None  # one hour between both: some line lies on the other side of a clock change
    given_ = seen(odd, processes=(process(started=STARTED + 33),), offset=TWO_HOURS)
    assert given_.since == unix("2026-10-18 05:55:46")


@pytest.mark.parametrize(
    ("ahead", "zone"),
    [
        *((zone, zone) for zone in (0.0, 7200.0, -18000.0, 19800.0, 20700.0)),
        *((7203.0, 7200.0), (450.0, None), (7220.0, None), (60 * 3600.0, None)),
    ],
)
def test_zones_are_quarters_of_an_hour(ahead: float, zone: float | None) -> None:
    assert zone_between(1_000_000.0 + ahead, 1_000_000.0) == zone


@pytest.mark.parametrize(
    ("text", "seconds", "zoned"),
    [
        ("2026-10-18 05:42:09 x", wall("2026-10-18 05:42:09"), False),
        ("2026-10-18T05:42:09Z x", wall("2026-10-18 05:42:09"), True),
        ("2026-10-18T05:42:09+02:00", wall("2026-10-18 03:42:09"), True),
        ("2026-10-18 05:42:09,123 x", wall("2026-10-18 05:42:09"), False),
        ("10-17 21:00:00 x", wall("2026-10-17 21:00:00"), False),
        ("12-31 21:00:00 x", wall("2025-12-31 21:00:00"), False),
        ("02-29 21:00:00 x", wall("2024-02-29 21:00:00"), False),
    ],
)
def test_stamps(text: str, seconds: float, zoned: bool) -> None:
    found = parse_stamp(text, wall("2026-10-18 09:00:00" if "02-29" not in text else "2025-03-01 00:00:00"))
    assert found is not None
    assert (found.seconds, found.zoned) == (seconds, zoned)


@pytest.mark.parametrize(
    "text", ["", "2026-13-01 00:00:00", "2026-10-18 25:00:00", "10-17 21:00:00x", "99999-01-01 00:00:00"]
)
def test_what_is_no_stamp(text: str) -> None:
    assert parse_stamp(text, wall("2026-10-18 09:00:00")) is None
    assert parse_stamp("10-17 21:00:00") is None


# --- the systemd kind ------------------------------------------------------------------------------------------------

UNIT = "dsv41-fleet.service"
NOW = wall("2026-10-18 10:00:00")


def unit(active: str = "active", sub: str = "running", load: str = "loaded", result: str = "success") -> Units:
    return Units((Unit(UNIT, load, active, sub, result, 4711 if active == "active" else None, NOW - 60),))


def fleet(units: Units | None = None, **more: object) -> Watchdog:
    given_: dict[str, object] = {"units": units, "pause": MISSING, "gaveup": MISSING, "now": NOW} | more
    return read_watchdog(VLLM, **given_)  # type: ignore[arg-type]


PAUSE = file("manual down 2026-10-18T09:00:00Z\n", NOW - 10)
GAVEUP = file("gave up at 2026-10-18T03:12:44Z after 3 failed relaunches\n", NOW - 10)


@pytest.mark.parametrize(
    ("units", "state", "short", "protecting"),
    [
        (unit(), WatchdogState.ARMED, "armed", True),
        (unit("inactive", "dead"), WatchdogState.OFF, "disarmed", False),
        (unit("activating", "auto-restart"), WatchdogState.IN_FLIGHT, "in flight", None),
        (unit("deactivating", "stop-sigterm"), WatchdogState.IN_FLIGHT, "in flight", None),
        (unit("failed", "failed", result="exit-code"), WatchdogState.FAILED, "not protecting: unit failed", False),
        (unit("inactive", "dead", "not-found"), WatchdogState.UNKNOWN, "unknown: no such unit", None),
        (unit("active", "exited"), WatchdogState.UNKNOWN, "unknown: unit is active (exited)", None),
        (unit("maintenance", ""), WatchdogState.UNKNOWN, "unknown: unit is maintenance", None),
        (unit("", ""), WatchdogState.UNKNOWN, "unknown: unit is in no state", None),
        (Units((), problem="no user bus"), WatchdogState.UNKNOWN, "unknown: no user bus", None),
        (Units((), problem="wrong user bus"), WatchdogState.UNKNOWN, "unknown: wrong user bus", None),
        (Units(()), WatchdogState.UNKNOWN, "unknown: unit not answered for", None),
        (None, WatchdogState.UNKNOWN, "unknown: unit not read yet", None),
    ],
)
def test_only_an_inactive_unit_that_is_there_is_disarmed(
    units: Units | None, state: WatchdogState, short: str, protecting: bool | None
) -> None:
    found = fleet(units)
    assert (found.state, found.short, found.protecting) == (state, short, protecting)
    assert (found.kind, found.may_signal) == ("systemd", False)


def test_flags_say_paused_and_gave_up_and_the_second_wins() -> None:
    paused = fleet(unit(), pause=PAUSE)
    assert (paused.state, paused.short, paused.protecting) == (WatchdogState.PAUSED, "paused", False)
    assert paused.words == "paused: manual down 2026-10-18T09:00:00Z"
    assert paused.since == wall("2026-10-18 09:00:00")
    for pause in (MISSING, PAUSE, Answer(Status.DENIED), None):
        found = fleet(unit(), gaveup=GAVEUP, pause=pause)
        assert (found.state, found.short) == (WatchdogState.GAVE_UP, "gave up, not protecting")
        assert found.since == wall("2026-10-18 03:12:44")
        assert "a successful `cluster.sh up` does not" in found.words


def test_a_flag_without_a_time_is_as_old_as_its_file() -> None:
    assert fleet(unit(), pause=file("ana: benchmark\n", NOW - 10)).since == NOW - 10
    assert fleet(unit(), pause=file("")).since is None


@pytest.mark.parametrize("flag", [None, Answer(Status.DENIED), Answer(Status.ERROR, "io error")])
def test_a_flag_that_cannot_be_read_is_no_missing_flag(flag: Answer | None) -> None:
    assert fleet(unit(), gaveup=flag).state is WatchdogState.UNKNOWN
    assert fleet(unit(), pause=flag).state is WatchdogState.UNKNOWN
    assert fleet(unit(), pause=PAUSE, gaveup=flag).state is WatchdogState.PAUSED


def test_a_stopped_unit_tells_of_the_flag_that_is_left() -> None:
    found = fleet(unit("inactive", "dead"), gaveup=GAVEUP)
    assert found.state is WatchdogState.OFF
    assert found.words.endswith("it gave up before: its flag is still there")


UTC_LOG = (
    "2026-10-18T09:00:00Z watchdog started: http://10.0.0.1:8000/health every 60s, threshold 3, max recoveries 3\n"
    "2026-10-18T09:55:00Z probe failed (canary) 1/3\n"
)


def test_an_active_unit_says_more_in_its_log() -> None:
    found = fleet(unit(), log=file(UTC_LOG, NOW - 300))
    assert (found.state, found.attempt, found.since) == (WatchdogState.CHECKING, (1, 3), NOW - 300)
    assert found.words == "check failed 1 of 3: probe failed (canary) 1/3"
    recovery = UTC_LOG + "2026-10-18T09:58:00Z === RECOVERY: 3 consecutive failures (canary)\nspark-1: stopped\n"
    acting = fleet(unit(), log=file(recovery, NOW - 60))
    assert (acting.state, acting.protecting) == (WatchdogState.RECOVERY, True)
    assert acting.last_act_at == wall("2026-10-18 09:58:00")
    done = fleet(unit(), log=file(recovery + "2026-10-18T09:59:00Z === RECOVERY OK\n", NOW - 60))
    assert (done.state, done.last_act) == (WatchdogState.ARMED, "=== RECOVERY OK")


def test_a_flag_that_was_removed_counts_more_than_the_log() -> None:
    log = UTC_LOG + "2026-10-18T09:59:00Z === GIVING UP after 3 failed relaunches; remove the flag to re-arm\n"
    assert fleet(unit(), log=file(log, NOW - 60)).state is WatchdogState.ARMED
    assert fleet(unit(), log=file(log, NOW - 60), gaveup=GAVEUP).state is WatchdogState.GAVE_UP


def test_an_active_unit_that_went_silent_in_the_middle_of_a_check_is_unknown() -> None:
    found = fleet(unit(), log=file(UTC_LOG, NOW - 1000))
    assert found.short == "unknown: silent for 16 min while check failed 1 of 3"


# --- anything at all -------------------------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from([*LOG.splitlines(), *GAVE_UP.splitlines(), "\x1b]0;x\x07armed: y", "2026-10-18 00:00:00 "]),
        max_size=8,
    ).map("\n".join),
)
ANSWERS = st.one_of(
    st.none(),
    st.builds(
        Answer,
        st.sampled_from(Status),
        st.text(max_size=20).map(line),
        st.fixed_dictionaries({}, optional={"size": st.text(max_size=25), "mtime": st.text(max_size=25)}),
        TEXTS,
    ),
)
PROCESSES = st.one_of(
    st.none(),
    st.lists(
        st.builds(
            Process,
            st.sampled_from([1, 5, PID]),
            st.sampled_from([0, 1, PID]),
            st.sampled_from(["S", "Z", "T", ""]),
            st.one_of(st.text(max_size=40).map(line), st.just(COMMAND), st.just("bash watchdog.sh")),
            st.one_of(st.none(), st.floats()),
        ),
        max_size=4,
    ),
)
UNITS = st.one_of(
    st.none(),
    st.builds(
        Units, st.lists(st.builds(Unit, st.just(UNIT), st.text(max_size=9), st.text(max_size=9)), max_size=2).map(tuple)
    ),
)


@given(ANSWERS, ANSWERS, ANSWERS, ANSWERS, PROCESSES, UNITS, st.floats(), st.sampled_from([SGLANG, VLLM]))
def test_nothing_that_a_host_says_can_do_harm(
    log: Answer | None,
    lock: Answer | None,
    pause: Answer | None,
    gaveup: Answer | None,
    processes: Sequence[Process] | None,
    units: Units | None,
    now: float,
    spec: WatchdogSpec,
) -> None:
    found = read_watchdog(
        spec, log=log, lock=lock, pause=pause, gaveup=gaveup, processes=processes, units=units, now=now
    )
    for text in (found.words, found.short, found.last_act):
        assert line(text, 1000) == text
    assert found.words.startswith(found.short[:250])
    assert not (found.may_signal and found.state in (WatchdogState.REUSED_PID, WatchdogState.DEAD_LOCK))
    if found.protecting:
        assert found.kind == "systemd" or found.instances >= 1


# --- recipes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("says", [*SGLANG.says, *VLLM.says], ids=lambda says: says.pattern.pattern[:30])
def test_no_pattern_repeats_a_repetition(says: Says) -> None:
    """Such a one can take for ever on a line that a host makes up."""
    assert not re.search(r"[*+]\)[*+{]", says.pattern.pattern)
    for text in (
        "lock " + "no longer mine" * 28,
        "probe failed (" + ")" * 380,
        "watchdog started (pid 1, " + "c" * 370,
    ):
        says.pattern.match(text[:400])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "log"', "needs log and process"),
        ('kind = "systemd"', "needs unit"),
        ('kind = "systemd"\nunit = "x"\nintervall = 3', "unknown key"),
        ('kind = "systemd"\nunit = "x"\n[[watchdog.says]]\npattern = "("', "no regular expression"),
        ('kind = "systemd"\nunit = "x"\n[[watchdog.says]]\npattern = "(?P<who>x)"', "unknown group 'who'"),
        ('kind = "systemd"\nunit = "x"\n[[watchdog.says]]\npattern = "x"\nstate = "asleep"', "armed"),
    ],
)
def test_a_recipe_that_cannot_be_used_says_why(tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'name = "own"\ntitle = "t"\n[watchdog]\n{text}\n')
    with pytest.raises(FleetError) as caught:
        load_recipe(str(own))
    assert "watchdog" in str(caught.value)
    assert words in str(caught.value) or words == "unknown key"


def test_an_own_recipe_names_its_own_places(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "own"\ntitle = "t"\n[vars.state]\nhelp = "h"\n[watchdog]\nkind = "log"\n'
        'log = "{state}/w.log"\nprocess = "guardian.py"\n'
        "[[watchdog.says]]\npattern = 'up as (?P<pid>[0-9]+)'\nstate = 'armed'\n"
    )
    found = load_recipe(str(own)).watchdog
    assert found is not None
    place = found.place("n1", lambda path: path.replace("{state}", "~/state"))
    assert (place.host, place.log, place.lock, place.foreign) == ("n1", "~/state/w.log", "", ())
    answer = read_watchdog(
        found.spec(place),
        log=file("2026-10-18 05:42:09 up as 77\n"),
        processes=(process(77, "/usr/bin/python3.12 /opt/guardian.py"),),
        now=0.0,
    )
    assert (answer.state, answer.pid, answer.host) == (WatchdogState.ARMED, 77, "n1")
