"""What a host says about processes and units, read back by the parsers: real processes, a played systemctl."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from sampler_bench import program, write

from console.reach import files_host, survey_host
from console.readings.look import parse_answer
from console.readings.processes import Process, parse_processes
from console.readings.units import UnitMemory, parse_units

SHOW = (
    "Id=hf.service\nLoadState=loaded\nActiveState=active\nMainPID=41\nMemoryMax=4294967296\n"
    "ControlGroup=/user.slice/user@1000.service/hf.service\n\nId=t.timer\nActiveState=active\nControlGroup=\n"
)
GROUP = "user.slice/user@1000.service/hf.service"


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that stands for the root of a host."""
    root = tmp_path / "root"
    for module in (files_host, survey_host):
        monkeypatch.setattr(module, "ROOT", str(root))
    monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
    write(root / "proc/stat", "cpu 1 2 3\nintr 5\nbtime 1761000000\nprocesses 9\n")
    yield root


def found(*parts: str) -> tuple[Process, ...]:
    processes = parse_processes(survey_host.processes(list(parts)))
    assert processes is not None
    return processes


@contextmanager
def sleeping(*argv: str) -> Iterator[int]:
    program = "import sys; print(flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", program, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    try:
        assert child.stdout is not None
        child.stdout.read(1)  # a process that is only being started has no command line yet
        yield child.pid
    finally:
        child.communicate()


def test_processes_by_a_part_of_their_command_line() -> None:
    with sleeping("hf", "download", "org/laneswap-test-model") as pid, sleeping("another") as other:
        (process,) = found("hf download org/laneswap-test-model")
        both = found("laneswap-test-model", f"pid:{other}", "pid:0", "pid:x")
    real = psutil.Process()
    assert process.pid == pid
    assert (process.ppid, process.uid, process.alive) == (real.pid, os.getuid(), True)
    assert process.command.endswith(
        " import sys; print(flush=True); sys.stdin.read() hf download org/laneswap-test-model"
    )
    assert process.started is not None and abs(process.started - time.time()) < 60
    assert process.read is not None and process.read > 0
    assert {item.pid for item in both} == {pid, other}
    assert not found("hf download org/laneswap-test-model"), "it is gone"


def test_it_does_not_find_itself() -> None:
    mine = Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    pids = {process.pid for process in found(mine)}
    assert os.getpid() not in pids
    with sleeping() as pid:
        assert pid in {process.pid for process in found(mine)}
        skipped = parse_processes(survey_host.processes([mine], (pid,)))
        assert skipped is None or pid not in {process.pid for process in skipped}


def test_a_zombie_is_one() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        (process,) = found(f"pid:{pid}")
        assert not process.alive
        assert process.command.endswith("<defunct>")
    finally:
        os.waitpid(pid, 0)


def test_played_processes(below: Path) -> None:
    stat = "41 (odd) name) S 7 41 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 250 1 2"
    write(below / "proc/41/stat", stat)
    write(below / "proc/41/cmdline", "bash\0/opt/sgl-watchdog.sh\0a\tb\0")
    write(below / f"proc/{os.getpid()}/stat", stat)
    write(below / f"proc/{os.getpid()}/cmdline", "another watchdog\0")
    write(below / "proc/50/stat", "garbage")
    write(below / "proc/50/cmdline", "watchdog\0")
    first, second = found("watchdog")
    assert first == Process(
        41, 7, "S", "bash /opt/sgl-watchdog.sh a\\tb", started=1761000000 + 250 / os.sysconf("SC_CLK_TCK"),
        uid=os.getuid(),
    )  # fmt: skip
    assert second.pid == os.getpid(), "a played number is nobody's own"
    values = parse_answer(survey_host.processes(["watchdog"])).values
    assert values == {"clock": str(os.sysconf("SC_CLK_TCK")), "boot": "1761000000"}
    (below / "proc/stat").unlink()
    assert survey_host.processes(["watchdog"]) == "missing"


def test_hidden_processes_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """hidepid is a mount option of the whole machine: the kernel's refusal is played."""
    real_open = os.open

    def refuse(path: str, *more: int) -> int:
        if path == "/proc/1/cmdline":
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, *more)

    monkeypatch.setattr(os, "open", refuse)
    text = survey_host.processes(["no such process, laneswap"])
    assert parse_answer(text).values["hidden"] == "1"
    assert parse_processes(text) is None


def test_many_processes_are_bounded(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_host, "MOST_PROCESSES", 3)
    for pid in range(10, 15):
        write(below / f"proc/{pid}/stat", f"{pid} (x) S 1 " + "0 " * 40)
        write(below / f"proc/{pid}/cmdline", "watchdog\0" + "y" * 9000)
    text = survey_host.processes(["watchdog"])
    assert parse_answer(text).values["truncated"] == "1"
    assert [len(item.command) for item in parse_processes(text) or ()] == [2000] * 3


def test_units_are_asked_in_one_language_and_zone(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(
        below / "bin/systemctl",
        f"#!/bin/sh\nprintf '%s|' \"$@\" >{below}/asked\n"
        f'echo "$LC_ALL $TZ $XDG_RUNTIME_DIR" >>{below}/asked\ncat {below}/show\necho "odd" >&2\n',
    )
    write(below / "show", SHOW)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    units = parse_units(survey_host.units("user", ["hf.service", "-t.timer"]))
    assert [unit.name for unit in units.items] == ["hf.service", "t.timer"]
    assert (units.code, units.said, units.problem) == (0, "odd", "")
    arguments, _, environment = (below / "asked").read_text().rpartition("|")
    assert arguments == f"--user|--no-pager|show|-p|{survey_host.PROPERTIES}|--|hf.service|-t.timer"
    assert environment == f"C UTC /run/user/{os.getuid()}\n"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/mine")
    survey_host.units("system", ["hf.service"])
    asked = (below / "asked").read_text()
    assert "--user" not in asked
    assert asked.endswith("|C UTC /run/mine\n")


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        (
            {"cgroup.controllers": "cpu memory\n", f"{GROUP}/cgroup.controllers": "memory pids\n",
             f"{GROUP}/memory.max": "4294967296\n", f"{GROUP}/memory.current": "1000\n",
             f"{GROUP}/memory.events": "low 0\noom_kill 2\n"},
            UnitMemory(1000, None, 4 << 30, 4 << 30, True, "", 2),
        ),
        (
            {"cgroup.controllers": "cpu memory\n", f"{GROUP}/cgroup.controllers": "\n"},
            UnitMemory(None, None, 4 << 30, None, False, "the memory controller is not delegated"),
        ),
        (
            {f"memory/{GROUP}/memory.limit_in_bytes": "4294967296\n", f"memory/{GROUP}/memory.usage_in_bytes": "7\n",
             f"memory/{GROUP}/memory.max_usage_in_bytes": "9\n"},
            UnitMemory(7, 9, 4 << 30, 4 << 30, True),
        ),
        ({}, UnitMemory(None, None, 4 << 30, None, False, "cgroup v1 enforces no cap of a user's unit")),
    ],
)  # fmt: skip
def test_the_memory_groups_of_units(below: Path, files: dict[str, str], memory: UnitMemory) -> None:
    program(below / "bin/systemctl", f"#!/bin/sh\ncat {below}/show\n")
    write(below / "show", SHOW)
    for name, text in files.items():
        write(below / "sys/fs/cgroup" / name, text)
    assert parse_units(survey_host.units("user", ["hf.service"])).memory == (("hf.service", memory),)


def test_a_systemctl_that_fails(below: Path) -> None:
    program(below / "bin/systemctl", "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
    units = parse_units(survey_host.units("user", ["hf.service"]))
    assert (units.items, units.problem, units.code) == ((), "no user bus", 1)
    program(below / "bin/systemctl", "#!/bin/sh\nkill -KILL $$\n")
    assert parse_units(survey_host.units("user", ["hf.service"])).code == 137


def test_without_systemctl(below: Path) -> None:
    program(below / "bin/systemctl", "#!/no/such/shell\n")
    assert survey_host.units("system", ["hf.service"]) == "missing"
    (below / "bin/systemctl").unlink()
    assert survey_host.units("system", ["hf.service"]) == "error no systemctl", "this machine's own does not count"
    program(below / "bin/systemctl", "#!/bin/sh\n")
    assert survey_host.units("system", []) == "error no unit is named"


def test_a_systemctl_that_hangs_is_ended(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_host, "UNITS_LIMIT", 1.0)
    program(below / "bin/systemctl", f"#!/bin/sh\necho $$ >{below}/pid\nexec sleep 600\n")
    assert survey_host.units("user", ["hf.service"]) == "error systemctl has not answered for 1 s"
    assert not psutil.pid_exists(int((below / "pid").read_text()))


def test_where_there_is_no_posix_spawn(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.6 and 3.7 have none."""
    monkeypatch.delattr(os, "posix_spawn")
    test_a_systemctl_that_fails(below)
    test_units_are_asked_in_one_language_and_zone(below, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("tree", ["/"]), ("tree", ["/", "x", "1"]), ("file", ["/x", "first", "-"]), ("units", []), ("run", ["reboot"])],
)
def test_what_cannot_be_looked_at(kind: str, arguments: list[str]) -> None:
    assert survey_host.answer(kind, arguments).startswith("error cannot look at ")


def test_a_long_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log", "x" * 300_000)
    assert survey_host.answer("file", [f"{tmp_path}/log", "last", "262144"]) == (
        "error the answer has 256 KiB, more than 192"
    )
    assert survey_host.answer("file", [f"{tmp_path}/log", "last", "1000"]).startswith("ok size=300000 ")
    assert survey_host.answer("tree", [str(tmp_path), "1", "10"]).startswith("ok free=")
    assert survey_host.answer("processes", ["pid:1"]).startswith("ok clock=")
