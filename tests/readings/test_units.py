"""systemd's units: state, memory and cap, and every way of not being able to say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.units import Unit, UnitMemory, parse_units, stamp, unit_state

GIB = 1 << 30
SHOWN = """\
Id=hf-download.service
LoadState=loaded
ActiveState=active
SubState=running
Result=success
MainPID=4711
ExecMainCode=0
ExecMainStatus=0
StateChangeTimestamp=Sun 2026-10-18 08:10:31 UTC
Description=/home/ops/venv/bin/hf download org/m
ControlGroup=/user.slice/user-1000.slice/user@1000.service/app.slice/hf-download.service
MemoryMax=4294967296
MemoryCurrent=1073741824
MemoryPeak=[not set]
"""
TIMER = """\
Id=fleet-watchdog.timer
LoadState=loaded
ActiveState=active
SubState=waiting
Result=success
StateChangeTimestamp=Sun 2026-10-18 08:00:00 UTC
Description=Fleet watchdog
ControlGroup=
NextElapseUSecRealtime=Sun 2026-10-18 10:05:00 UTC
"""
V2 = {
    "cgroup.version": "2",
    "cgroup.controllers": "cpu memory pids",
    "memory.max": "4294967296",
    "memory.current": "2147483648",
    "memory.peak": "3221225472",
    "memory.events": "low 0\\nhigh 0\\nmax 12\\noom 1\\noom_kill 1",
}


def groups(files: dict[str, str]) -> str:
    return "".join(f"@hf-download.service/{name}={value}\n" for name, value in files.items())


def memory(shown: str, files: dict[str, str]) -> UnitMemory:
    ((name, found),) = parse_units(f"ok code=0\n{shown}\n{groups(files)}").memory
    assert name == "hf-download.service"
    return found


def test_an_answer_in_full() -> None:
    answer = parse_units(f"ok code=0\n{SHOWN}\n{TIMER}\n{groups(V2)}! Warning: unit changed on disk\n")
    assert answer.items == (
        Unit(
            "hf-download.service", "loaded", "active", "running", "success", 4711,
            datetime(2026, 10, 18, 8, 10, 31, tzinfo=UTC).timestamp(), "/home/ops/venv/bin/hf download org/m",
            main_code=0, main_status=0,
        ),
        Unit(
            "fleet-watchdog.timer", "loaded", "active", "waiting", "success", None,
            datetime(2026, 10, 18, 8, 0, tzinfo=UTC).timestamp(), "Fleet watchdog",
            datetime(2026, 10, 18, 10, 5, tzinfo=UTC).timestamp(),
        ),
    )  # fmt: skip
    assert answer.memory == (("hf-download.service", UnitMemory(2 * GIB, 3 * GIB, 4 * GIB, 4 * GIB, True, "", 1)),), (
        "a timer has none"
    )
    assert (answer.problem, answer.code, answer.said) == ("", 0, "Warning: unit changed on disk")
    assert answer.unit("fleet-watchdog.timer") is answer.items[1]
    assert answer.unit("other.service") is None


@pytest.mark.parametrize(
    ("files", "in_force", "why"),
    [
        (V2, True, ""),
        (V2 | {"memory.max": "max"}, False, "the kernel has no limit for its group"),
        (V2 | {"memory.max": "8589934592"}, False, "the kernel has 8589934592 bytes, not 4294967296"),
        (V2 | {"memory.max": "4294901761"}, True, ""),
        (V2 | {"memory.max": "4294901760"}, False, "the kernel has 4294901760 bytes, not 4294967296"),
        ({"cgroup.version": "2", "cgroup.controllers": "cpu pids"}, False, "the memory controller is not delegated"),
        ({"cgroup.version": "2", "cgroup.controllers": ""}, False, "the memory controller is not delegated"),
        ({"cgroup.version": "2", "cgroup.controllers": "memory"}, None, "its cgroup's files cannot be read"),
        ({"cgroup.version": "2"}, None, "its cgroup's files cannot be read"),
        ({"cgroup.version": "1"}, False, "cgroup v1 enforces no cap of a user's unit"),
        ({"cgroup.version": "1", "memory.limit_in_bytes": "4294967296"}, True, ""),
        (
            {"cgroup.version": "1", "memory.limit_in_bytes": "9223372036854771712"},
            False,
            "the kernel has no limit for its group",
        ),
        ({}, None, ""),
    ],
)
def test_whether_the_cap_is_in_force(files: dict[str, str], in_force: bool | None, why: str) -> None:
    found = memory(SHOWN, files)
    assert (found.cap_asked, found.in_force, found.why) == (4 * GIB, in_force, why)


@pytest.mark.parametrize("cap", ["infinity", "[not set]", "", "18446744073709551615"])
def test_no_cap_asked(cap: str) -> None:
    found = memory(SHOWN.replace("MemoryMax=4294967296", f"MemoryMax={cap}"), V2 | {"memory.max": "max"})
    assert (found.cap_asked, found.cap, found.in_force) == (None, None, None)


def test_what_is_not_set_is_unknown() -> None:
    shown = SHOWN.replace("MemoryCurrent=1073741824", "MemoryCurrent=[not set]")
    assert memory(shown, {"cgroup.version": "1"}) == UnitMemory(
        None, None, 4 * GIB, None, False, "cgroup v1 enforces no cap of a user's unit"
    )
    assert memory(SHOWN, {}).current == GIB, "systemd's own figure where the group is not there"
    assert memory(SHOWN.replace("1073741824", str(2**64 - 1)), {}).current is None


def test_version_1_of_a_system_unit() -> None:
    shown = SHOWN.replace("/user.slice/user-1000.slice/user@1000.service/app.slice", "/system.slice")
    files = {
        "cgroup.version": "1",
        "memory.limit_in_bytes": "4294967296",
        "memory.usage_in_bytes": "1000",
        "memory.max_usage_in_bytes": "2000",
        "memory.oom_control": "oom_kill_disable 0\\nunder_oom 0\\noom_kill 3",
    }
    assert memory(shown, files) == UnitMemory(1000, 2000, 4 * GIB, 4 * GIB, True, "", 3)
    assert memory(shown, {"cgroup.version": "1"}).why == "no memory group of its own (cgroup v1)"


def test_a_unit_that_was_killed_at_its_cap() -> None:
    text = (
        "Id=hf-download.service\nActiveState=failed\nSubState=failed\nResult=oom-kill\nExecMainCode=2\n"
        "ExecMainStatus=9\nMemoryMax=4294967296\nMemoryPeak=4294967296\n"
    )
    found = parse_units(text)
    (unit,) = found.items
    assert (unit.active, unit.result, unit.main_code, unit.main_status) == ("failed", "oom-kill", 2, 9)
    assert unit.load == "", "not said"
    assert found.memory == (("hf-download.service", UnitMemory(None, 4 * GIB, 4 * GIB, None, None)),)


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "state"),
    [
        (0, "active", "", "active"),
        (1, "", "Failed to connect to user scope bus via local transport: $DBUS_SESSION_BUS_ADDRESS and "
                "$XDG_RUNTIME_DIR not defined", "unknown: no user bus"),
        (3, "inactive", "", "inactive"),
        (4, "inactive", "", "unknown: no such unit"),
        (3, "activating", "", "in flight"),
        (3, "failed", "", "failed"),
        (255, "", "ssh: connect to host spark-1 port 22: Connection timed out", "unknown: ssh"),
        (1, "", "Failed to connect to bus: No medium found", "unknown: no user bus"),
        (1, "", "Failed to connect to bus: Permission denied", "unknown: wrong user bus"),
        (1, "", "Failed to connect to bus: Operation not permitted", "unknown: wrong user bus"),
        (1, "", "Failed to connect to bus: No such file or directory", "unknown: no user bus"),
        (1, "", "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
                "Failed to connect to bus: Host is down", "unknown: no systemd"),
        (1, "", "Failed to connect to system scope bus via local transport: Connection refused",
         "unknown: no system bus"),
        (1, "", "Failed to get properties: Connection timed out", "unknown: systemd does not answer"),
        (127, "", "sh: 1: systemctl: not found", "unknown: no systemctl"),
        (None, "", "", "unknown: ssh"),
        (0, "", "", "unknown: exit 0"),
        (1, "inactive", "", "unknown: exit 1, inactive"),
        (0, "inactive", "", "unknown: exit 0, inactive"),
        (3, "active", "", "unknown: exit 3, active"),
        (1, "", "something \x1b[31mnew\nmore", "unknown: something new"),
    ],
)  # fmt: skip
def test_only_inactive_with_status_3_is_inactive(code: int | None, stdout: str, stderr: str, state: str) -> None:
    assert unit_state(code, stdout, stderr) == state
    assert unit_state(code, f"{stdout}\n", f"{stderr}\n") == state


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("error no systemctl", "no systemctl"),
        ("error systemctl has not answered for 15 s", "systemctl has not answered for 15 s"),
        ("denied", "denied"),
        ("ok code=1\n\n! Failed to connect to bus: No medium found\n", "no user bus"),
        ("ok code=1\n\n! Failed to connect to bus: Permission denied\n", "wrong user bus"),
        ("ok code=1\n\n! something else\n! more\n", "something else"),
        ("ok code=0\n\n", "systemctl said nothing"),
        ("", "systemctl said nothing"),
    ],
)
def test_no_answer_says_why(text: str, problem: str) -> None:
    units = parse_units(text)
    assert (units.items, units.memory, units.problem) == ((), (), problem)


def test_times() -> None:
    assert stamp("Sun 2026-10-18 08:10:31 UTC") == datetime(2026, 10, 18, 8, 10, 31, tzinfo=UTC).timestamp()
    assert stamp("2026-10-18 08:10:31.5 UTC") == datetime(2026, 10, 18, 8, 10, 31, tzinfo=UTC).timestamp()
    assert stamp("@1761000000") == 1761000000.0
    for text in ("n/a", "", "0", "Sun 2026-10-18 08:10:31 CEST", "Sun 2026-02-31 08:10:31 UTC", "infinity"):
        assert stamp(text) is None


rows = st.one_of(
    st.sampled_from(["Id=a.service", "ActiveState=active", "MemoryMax=1", "@a.service/memory.max=1", "! x", "",
                     "@a.service/cgroup.version=1", "ControlGroup=/user@1", "MainPID=" + "9" * 50]),
    st.text(),
)  # fmt: skip


@given(st.lists(rows, max_size=12).map("\n".join), st.booleans())
def test_hostile_text(text: str, answered: bool) -> None:
    units = parse_units(f"ok code=0\n{text}" if answered else text)
    assert units.problem.isprintable() and units.said.isprintable()
    for unit in units.items:
        for shown in (unit.name, unit.load, unit.active, unit.sub, unit.result, unit.description):
            assert shown.isprintable()
    assert all(name.isprintable() and item.why.isprintable() for name, item in units.memory)


@given(st.one_of(st.none(), st.integers(-2, 300)), st.text(), st.text())
def test_hostile_states(code: int | None, stdout: str, stderr: str) -> None:
    state = unit_state(code, stdout, stderr)
    assert state.isprintable()
    assert state in ("active", "inactive", "failed", "in flight") or state.startswith("unknown: ")
