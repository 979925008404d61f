"""Detached steps on this machine, without a service manager: begun once, found again, ended whole, told truthfully."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from host_bench import Bent, Steps, full, lacking, local, lost, operation, until
from hypothesis import given
from hypothesis import strategies as st

from console.execution import detached
from console.execution.detached import Fenced, Followed, LogLines, Mode, Phase, Refused, Started, read_state
from console.execution.scripts import NAMES, Answer, Exit, read_answer, script
from console.readings.output import Outcome, Output, classify


@pytest.fixture
async def steps(tmp_path: Path) -> AsyncIterator[Steps]:
    """Steps in a new folder; whatever of them still runs is ended."""
    async with local() as link:
        mine = Steps(link, tmp_path / "state" / "bed.lane")
        yield mine
    for process in marked(mine.op):
        process.kill()


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has collected yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ignored(pid: int) -> set[str]:
    """The signals that a process ignores."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = int(next(row.split()[1] for row in rows if row.startswith("SigIgn")), 16)
    return {one.name for one in signal.Signals if mask & 1 << (one - 1)}


def remembered(steps: Steps) -> str:
    """The newest epoch that the folder has."""
    return Path(steps.folder, "epoch").read_text()


def by_hand(steps: Steps, file: str) -> int:
    """Run one of the step's own files once more; its exit status."""
    return subprocess.run(["sh", f"./{file}"], cwd=steps.path("one"), capture_output=True, timeout=30).returncode


def has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


def marked(op: str, step: str = "") -> list[psutil.Process]:
    """The processes that carry a step's mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("LANESWAP_STEP", "").startswith(f"{op}/{step}"):
                found.append(process)
        except psutil.Error:
            continue
    return found


# -- a step from beginning to end


async def test_a_step_has_its_arguments_its_stdin_its_log_and_its_exit_status(steps: Steps) -> None:
    awkward = ["it's", "$HOME `id` $$", "two\nlines\n", "", "%s %%", '"', "-x", "a=b", "\\", "*"]
    text = "first\nlast without an end"
    begun = await steps.started("one", "sh", "-c", 'cat; printf "<%s>" "$@" >&2; exit 7', "sh", *awkward, stdin=text)
    assert (begun.phase, begun.mode, begun.same_boot) in [(phase, "none", True) for phase in Phase]

    found = await steps.ended("one")

    assert (found.phase, found.code, found.signal, found.words) == (Phase.FAILED, 7, "", "exit status 7")
    assert found.began is not None and found.ended is not None and found.began <= found.ended
    said = await detached.log(steps.link, steps.folder, steps.op, "one")
    assert said == (text + "".join(f"<{word}>" for word in awkward)).encode()
    assert steps.path("one").joinpath("cmd").read_bytes().split(b"\0")[5:-1] == [word.encode() for word in awkward][1:]
    assert found.log == str(steps.path("one") / "log") and found.size == len(said)


async def test_a_step_without_stdin_reads_an_empty_one(steps: Steps) -> None:
    await steps.started("one", "sh", "-c", "cat; echo end")
    assert (await steps.ended("one")).phase is Phase.DONE
    assert await detached.log(steps.link, steps.folder, steps.op, "one") == b"end\n"


async def test_no_exported_knob_reaches_a_step(steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHUNK", "SSH_AUTH_SOCK", "LD_PRELOAD_X", "LC_ALL", "ENV", "BASH_ENV"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".local" / "bin").mkdir(parents=True)

    await steps.started("one", "sh", "-c", "env -0; umask; pwd")
    await steps.ended("one")

    said = await detached.log(steps.link, steps.folder, steps.op, "one")
    assert said is not None and b"leaked" not in said
    *rows, rest = said.split(b"\0")
    found = dict(row.decode().split("=", 1) for row in rows)
    found.pop("XDG_RUNTIME_DIR", None)  # where there is one
    assert set(found) - {"PWD", "OLDPWD", "_", "SHLVL"} == {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANESWAP_STEP",
    }
    assert found["PATH"].split(":")[0] == f"{os.environ['HOME']}/.local/bin"
    assert {"/usr/bin", "/usr/local/bin", "/sbin"} <= set(found["PATH"].split(":"))
    mask = os.umask(0)
    os.umask(mask)
    assert rest.decode().split() == [f"{mask:04o}", os.environ["HOME"]]


async def test_a_step_heeds_interrupts_though_background_commands_of_a_shell_do_not(steps: Steps) -> None:
    link = Bent(steps.link, before=lambda argv: ["sh", "-c", '"$@" & wait $!', "sh", *argv])
    assert isinstance(await steps.start("one", "sleep", "600", link=link), Started)
    running = await steps.running("one")
    assert running.pid is not None
    assert not {"SIGINT", "SIGQUIT", "SIGPIPE", "SIGHUP"} & ignored(running.pid)


async def test_it_lives_on_when_the_link_that_started_it_is_closed(tmp_path: Path) -> None:
    async with local() as link:
        first = Steps(link, tmp_path / "state" / "bed.lane")
        await first.started("one", "sh", "-c", "sleep 1; echo done")
    async with local() as link:
        first.link = link
        assert (await first.ended("one")).phase is Phase.DONE
        assert await detached.log(link, first.folder, first.op, "one") == b"done\n"


async def test_it_is_no_part_of_the_group_that_started_it(steps: Steps) -> None:
    """Whoever ends the command that started it, with all that is its own, does not end the step."""
    words = ["start", steps.folder, steps.op, "one", "1", "none", "0", "60", "-", "--", "sleep", "50"]
    child = await asyncio.create_subprocess_exec(
        *("sh", "-c", script("starter"), "laneswap", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    found = await steps.running("one")
    with contextlib.suppress(ProcessLookupError):  # nothing of it is left
        os.killpg(child.pid, signal.SIGKILL)
    await child.wait()
    assert found.pid is not None and os.getsid(found.pid) != child.pid
    assert (await steps.state("one")).phase is Phase.RUNNING
    await detached.stop(steps.link, steps.folder, steps.op, "one", seconds=1)


async def test_a_missing_program_is_a_failure_with_its_words_in_the_log(steps: Steps) -> None:
    await steps.started("one", "no-such-program")
    found = await steps.ended("one")
    assert (found.phase, found.code) == (Phase.FAILED, 127)
    assert b"no-such-program" in (await detached.log(steps.link, steps.folder, steps.op, "one") or b"")


# -- once


async def test_two_starts_at_once_are_one_step(steps: Steps, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    answers = await asyncio.gather(
        *(steps.start("one", "sh", "-c", f"echo x >>{counter}; sleep 600") for _ in range(4))
    )
    assert all(isinstance(answer, Started) for answer in answers)
    assert sorted(answer.joined for answer in answers) == [False, True, True, True]
    running = await steps.running("one")
    assert {answer.state.pid for answer in answers} <= {running.pid, None}
    await until(counter.exists, "the step has counted")
    assert counter.read_text() == "x\n"


async def test_a_start_that_was_cut_off_is_absent_and_can_be_sent_again(steps: Steps, tmp_path: Path) -> None:
    def cut(argv: list[str]) -> list[str]:
        return [word.replace("setsid -f", "false") if "setsid -f" in word else word for word in argv]

    answer = await steps.start("one", "true", link=Bent(steps.link, before=cut))  # type: ignore[arg-type]
    assert isinstance(answer, Refused) and not answer.unknown
    found = await steps.state("one")
    assert (found.phase, found.words) == (Phase.ABSENT, "its start was cut off before it began")

    await steps.started("one", "echo", "now")
    assert (await steps.ended("one")).phase is Phase.DONE


async def test_late_copies_of_a_start_do_not_run_it_again(steps: Steps, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    await steps.started("one", "sh", "-c", f"echo x >>{counter}; sleep 600")
    running = await steps.running("one")
    for late in ("supervise", "run"):
        assert by_hand(steps, late) == 97
    assert (await steps.state("one")) == running
    assert counter.read_text() == "x\n"


async def test_a_second_manager_with_the_same_step_does_not_run_it_again(steps: Steps, tmp_path: Path) -> None:
    """Two accounts may reach two service managers, which know nothing of each other: the folder decides."""
    await steps.started("one", "sleep", "600")
    running = await steps.running("one")
    own = steps.path("one")
    (own / "run").write_text(
        (own / "run").read_text().replace("ready.none", "ready.user").replace("second.none", "second.user")
    )
    (own / "ready.user").write_text("ready\n")
    assert by_hand(steps, "run") == 97
    assert (own / "second.user").exists() and await steps.state("one") == running


async def test_a_lost_answer_is_looked_up_and_never_sent_again(steps: Steps, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    times = 0

    def once(output: Output) -> Output:
        nonlocal times
        times += 1
        return lost(output) if times == 1 else output

    link = Bent(steps.link, after=once)
    answer = await steps.start("one", "sh", "-c", f"echo x >>{counter}", link=link)
    assert isinstance(answer, Started)
    await steps.ended("one")
    assert counter.read_text() == "x\n"
    assert ["start" in argv for argv in link.asked] == [True, False]


async def test_a_start_of_which_nothing_is_found_is_unknown_not_refused(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "_PAUSE", 0.01)
    link = Bent(steps.link, before=lambda argv: ["true"] if "start" in argv else argv, after=lambda output: (
        lost(output) if output.command == ("true",) else output
    ))  # fmt: skip
    answer = await steps.start("one", "true", link=link)
    assert isinstance(answer, Refused) and answer.unknown


async def test_what_never_left_is_refused_and_known(steps: Steps) -> None:
    def down(output: Output) -> Output:
        return classify(output.host, output.command, error="ConnectionRefusedError: refused", started=False)

    answer = await steps.start("one", "true", link=Bent(steps.link, after=down))
    assert isinstance(answer, Refused) and not answer.unknown


# -- ended


@pytest.mark.parametrize("keeps", [False, True])
async def test_what_a_step_leaves_behind_lives_on_only_where_it_keeps_it(
    steps: Steps, tmp_path: Path, keeps: bool
) -> None:
    pidfile = tmp_path / "pid"
    launcher = f"nohup setsid sh -c 'echo $$ >{pidfile}; exec sleep 600' </dev/null >/dev/null 2>&1 & sleep 0.5"
    await steps.started("one", "sh", "-c", launcher, keeps=keeps)
    assert (await steps.ended("one")).phase is Phase.DONE
    pid = int(pidfile.read_text())
    assert alive(pid) is keeps
    if keeps:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("keeps", [False, True])
async def test_stop_ends_all_that_is_under_way_and_says_stopped(steps: Steps, tmp_path: Path, keeps: bool) -> None:
    pidfile = tmp_path / "pid"
    launcher = f"nohup setsid sh -c 'echo $$ >{pidfile}; exec sleep 600' </dev/null >/dev/null 2>&1 & sleep 601 & wait"
    await steps.started("one", "sh", "-c", launcher, keeps=keeps)
    await until(lambda: pidfile.exists() and pidfile.read_text().strip(), "the daemon runs")
    daemon = int(pidfile.read_text())

    found = await detached.stop(steps.link, steps.folder, steps.op, "one")

    assert (found.phase, found.signal) == (Phase.STOPPED, "TERM")
    assert found.words.startswith("stopped by an operator")
    assert alive(daemon) is keeps
    left = [process for process in marked(steps.op) if process.pid != daemon]
    assert not left
    assert await steps.state("one") == found
    if keeps:
        os.kill(daemon, signal.SIGKILL)


async def test_stop_kills_what_does_not_heed_it(steps: Steps) -> None:
    await steps.started("one", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    await steps.running("one")
    found = await detached.stop(steps.link, steps.folder, steps.op, "one", seconds=1)
    assert (found.phase, found.signal) == (Phase.STOPPED, "KILL")
    assert not marked(steps.op)


async def test_a_step_that_was_stopped_before_it_began_never_begins(steps: Steps, tmp_path: Path) -> None:
    found = await detached.stop(steps.link, steps.folder, steps.op, "one")
    assert (found.phase, found.words) == (Phase.STOPPED, "stopped by an operator before it began")
    answer = await steps.start("one", "touch", str(tmp_path / "ran"))
    assert isinstance(answer, Started) and answer.joined and answer.state.phase is Phase.STOPPED
    assert not (tmp_path / "ran").exists()


async def test_stop_of_what_is_over_changes_nothing(steps: Steps) -> None:
    await steps.started("one", "true")
    before = await steps.ended("one")
    assert await detached.stop(steps.link, steps.folder, steps.op, "one") == before
    assert before.phase is Phase.DONE


async def test_an_exit_after_a_stop_is_stopped_not_done(steps: Steps) -> None:
    await steps.started("one", "sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait")
    await steps.running("one")
    found = await detached.stop(steps.link, steps.folder, steps.op, "one")
    assert (found.phase, found.code) == (Phase.STOPPED, 0)


async def test_a_term_from_elsewhere_is_stopped_and_a_kill_is_failed(steps: Steps) -> None:
    for step, number, phase in (("one", signal.SIGTERM, Phase.STOPPED), ("two", signal.SIGKILL, Phase.FAILED)):
        await steps.started(step, "sleep", "600")
        running = await steps.running(step)
        assert running.pid is not None
        os.kill(running.pid, number)
        found = await steps.ended(step)
        assert (found.phase, found.signal) == (phase, number.name.removeprefix("SIG"))


async def test_the_time_limit_ends_it_with_words(steps: Steps) -> None:
    await steps.started("one", "sh", "-c", "sleep 600 & sleep 601", limit=1.0)
    found = await steps.ended("one")
    assert (found.phase, found.words) == (Phase.FAILED, "ended at its time limit")
    await until(lambda: not marked(steps.op), "nothing of it runs")


# -- lost


async def test_a_killed_supervisor_is_not_yet_the_end_of_its_step(steps: Steps) -> None:
    await steps.started("one", "sleep", "600")
    running = await steps.running("one")
    assert running.pid is not None
    os.kill(int(steps.path("one").joinpath("unit").read_text().split()[1]), signal.SIGKILL)
    assert (await steps.state("one")).phase is Phase.RUNNING
    os.kill(running.pid, signal.SIGKILL)
    found = await steps.ended("one")
    assert found.phase is Phase.LOST and "left no result" in found.words
    assert (found.code, found.signal, found.same_boot) == (None, "", True)


async def test_a_step_of_another_boot_is_lost_whoever_has_its_pid_now(steps: Steps) -> None:
    await steps.started("one", "sleep", "600")
    await steps.running("one")
    steps.path("one").joinpath("boot").write_text("00000000-0000-0000-0000-000000000000\n")
    found = await steps.state("one")
    assert (found.phase, found.same_boot, found.words) == (Phase.LOST, False, "the host was restarted while it ran")


async def test_a_pid_that_was_given_to_another_process_is_not_the_step(steps: Steps) -> None:
    await steps.started("one", "sleep", "600")
    running = await steps.running("one")
    supervisor = int(steps.path("one").joinpath("unit").read_text().split()[1])
    for pid in (supervisor, running.pid):
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    await steps.until("one", lambda found: found.phase is Phase.LOST, "it is lost")
    unrelated = os.getpid()
    for name in ("begun", "unit"):
        old = steps.path("one").joinpath(name).read_text()
        pids = {str(running.pid), old.split()[1] if name == "unit" else "x"}
        steps.path("one").joinpath(name).write_text(" ".join(str(unrelated) if w in pids else w for w in old.split()))
    assert (await steps.state("one")).phase is Phase.LOST


# -- fenced


async def test_an_older_epoch_is_refused_and_a_newer_one_remembered(steps: Steps, tmp_path: Path) -> None:
    await steps.started("one", "true", epoch=5)
    answer = await steps.start("two", "touch", str(tmp_path / "ran"), epoch=4)
    assert answer == Fenced(5, "", None, answer.problem) and "epoch 5" in answer.problem
    assert (await steps.state("two")).phase is Phase.ABSENT
    await steps.started("three", "true", epoch=9)
    assert remembered(steps) == "9\n"
    again = await steps.start("one", "true", epoch=5)
    assert isinstance(again, Fenced)  # joining is an act, too
    await steps.started("four", "true", epoch=None)
    assert remembered(steps) == "9\n"
    assert not (tmp_path / "ran").exists()


async def test_an_older_epoch_stops_nothing(steps: Steps) -> None:
    await steps.started("one", "sleep", "600", epoch=5)
    running = await steps.running("one")
    refused = await detached.stop(steps.link, steps.folder, steps.op, "one", epoch=4)
    assert refused.phase is Phase.UNKNOWN and "fenced off" in refused.words
    assert await steps.state("one") == running
    assert (await detached.stop(steps.link, steps.folder, steps.op, "one", epoch=6)).phase is Phase.STOPPED


async def test_the_fence_hands_stdin_umask_and_locale_on_and_no_lock(steps: Steps) -> None:
    command = "cat; umask; echo ${LC_ALL-unset}; ls /proc/self/fd | wc -l; exit 9"
    plain = await steps.link.run(["sh", "-c", command], stdin="to be read\n")
    fenced = await steps.link.run(
        ["sh", "-c", script("fence"), "laneswap", steps.folder, "3", "--", "sh", "-c", command], stdin="to be read\n"
    )
    assert (fenced.stdout, fenced.exit_status) == (plain.stdout, 9)


# -- the log


async def test_the_log_is_followed_by_byte_offsets(steps: Steps, tmp_path: Path) -> None:
    text = "zähler ⚙ 1\nzweite".encode() + b"\xff\xfe\n" + "ende ä".encode()
    source = tmp_path / "text"
    source.write_bytes(text)
    await steps.started("one", "cat", str(source))
    await steps.ended("one")
    lines, got = LogLines(), b""
    shown: list[str] = []
    while True:
        followed = await detached.follow(steps.link, steps.folder, steps.op, "one", len(got), most=5)
        assert followed.next == len(got) + len(followed.data)
        if not followed.data:
            break
        got += followed.data
        shown += lines.take(followed)
    assert shown == ["zähler ⚙ 1", "zweite\ufffd\ufffd", "ende ä"]
    assert got == text and lines.offset == len(text)


def test_lines_are_whole_whatever_the_offsets_cut_through() -> None:
    text = "grün\nrot \x1b[31mx\nende".encode()
    running = detached.DetachedState(Phase.RUNNING, size=len(text))
    over = detached.DetachedState(Phase.DONE, size=len(text))
    for size in range(1, len(text) + 1):
        lines, seen = LogLines(), []
        for at in range(0, len(text), size):
            seen += lines.take(Followed(running, text[at : at + size], min(at + size, len(text))))
        assert seen == ["grün", "rot x"]
        assert lines.take(Followed(over, b"", len(text))) == ["ende"]
        assert lines.take(Followed(over, b"", len(text))) == []


async def test_following_what_is_not_there_brings_nothing(steps: Steps) -> None:
    followed = await detached.follow(steps.link, steps.folder, steps.op, "one", 17)
    assert (followed.state.phase, followed.data, followed.next) == (Phase.ABSENT, b"", 17)


# -- hostile and broken hosts


HOSTILE = [
    "",
    "\n",
    "* * * * *\n",
    "$(touch OWNED) `touch OWNED` ; touch OWNED\n",
    "-1 -1 -1\n",
    "1 1 1\n",
    "999999999999999999999 1 1\n",
    "0x10 010 08\n",
    "success exited 0 1\n",
    "success exited 0 1 yes no\n",
    "success exited 0 1 maybe\n",
    "success killed \x1b[2J 5 no\n",
    "../../../../etc/passwd\n",
    "pid 1 1\n",
    "\0\0\0\0",
    "x" * 100_000,
    "state=done\n",
]


@pytest.mark.parametrize("name", ["result", "begun", "unit", "mode", "boot"])
async def test_nothing_in_the_folder_is_believed_unread(steps: Steps, name: str) -> None:
    await steps.started("one", "sleep", "600")
    await steps.running("one")
    file = steps.path("one") / name
    for content in HOSTILE:
        file.write_bytes(content.encode())
        found = await steps.state("one")
        assert found.phase in (Phase.RUNNING, Phase.LOST, Phase.ABSENT), content
        assert all(text.isprintable() for text in (found.words, found.signal, found.mode, found.load_state))
    assert not list(Path.cwd().glob("OWNED")) and not list(steps.path("one").glob("OWNED"))
    file.unlink()
    os.mkfifo(file)
    found = await steps.state("one")
    assert found.phase in (Phase.RUNNING, Phase.LOST, Phase.ABSENT)


async def test_a_damaged_result_is_lost_with_words(steps: Steps) -> None:
    await steps.started("one", "true")
    await steps.ended("one")
    steps.path("one").joinpath("result").write_text("success exited 0 17 perhaps\n")
    found = await steps.state("one")
    assert (found.phase, found.words) == (Phase.LOST, "its result file is damaged")


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
async def test_links_in_the_way_are_refused(steps: Steps, tmp_path: Path, level: int) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    way = [steps.path("one")]
    while len(way) < 5:
        way.append(way[-1].parent)
    link = list(reversed(way))[level - 1]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    answer = await steps.start("one", "touch", str(tmp_path / "ran"))
    assert isinstance(answer, Refused) and "symbolic link" in answer.problem
    assert (await steps.state("one")).phase is Phase.UNKNOWN
    assert not list(elsewhere.iterdir()) and not (tmp_path / "ran").exists()


async def test_a_folder_put_in_place_of_the_steps_own_runs_nothing(steps: Steps, tmp_path: Path) -> None:
    """A step's files are read behind `cd` into a folder that is ours: see the words that the unit gets."""
    await steps.started("one", "true")
    await steps.ended("one")
    assert "test -O . && test -O ./$1 && test ! -L ./$1 && exec /bin/sh ./$1" in script("starter")
    assert oct(steps.path("one").stat().st_mode)[-3:] == "755"
    assert {oct(file.stat().st_mode)[-3:] for file in steps.path("one").iterdir()} == {"644"}


SLOW_SETSID = """#!/bin/sh
(
    left=1200
    while [ ! -e {folder}/go ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
    {setsid} "$@"
    : >{folder}/came
) >/dev/null 2>&1 &
"""
"""Says that all is well and comes to it later, as a service manager under load does after systemd-run has given up."""


async def test_what_was_told_not_to_have_begun_never_begins_and_may_be_started_again(
    steps: Steps, tmp_path: Path
) -> None:
    """Else the console carries out what the head begins, too: two runners of one sequence."""
    programs = tmp_path / "programs"
    programs.mkdir()
    slow = SLOW_SETSID.format(setsid=shutil.which("setsid"), folder=tmp_path)
    (programs / "setsid").write_text(slow)
    (programs / "setsid").chmod(0o755)
    late = Bent(steps.link, before=lambda argv: ["env", f"PATH={programs}:{os.environ['PATH']}", *argv])
    command = ("sh", "-c", f"echo ran >>{tmp_path}/ran")
    answer = await steps.start("one", *command, link=late)
    assert isinstance(answer, Refused) and not answer.unknown, answer
    (tmp_path / "go").touch()
    await until((tmp_path / "came").exists, "the manager has come to it")
    await steps.until("one", lambda found: found.phase is Phase.ABSENT, "what came late has ended")
    assert not (tmp_path / "ran").exists()
    await steps.started("one", *command)
    assert (await steps.ended("one")).phase is Phase.DONE
    assert (tmp_path / "ran").read_text() == "ran\n"


async def test_a_full_disk_starts_nothing(steps: Steps, tmp_path: Path) -> None:
    await steps.started("zero", "true")
    await steps.ended("zero")
    answer = await steps.start("one", "touch", str(tmp_path / "ran"), link=Bent(steps.link, before=full))
    assert isinstance(answer, Refused) and not answer.unknown and "cannot be written" in answer.problem
    assert (await steps.state("one")).phase is Phase.ABSENT
    assert not (tmp_path / "ran").exists()
    await steps.started("one", "true")
    assert (await steps.ended("one")).phase is Phase.DONE


async def test_a_host_without_flock_says_so(steps: Steps, tmp_path: Path) -> None:
    link = Bent(steps.link, before=lacking(tmp_path, "flock"))
    answer = await steps.start("one", "true", link=link)
    assert isinstance(answer, Refused) and "flock is not installed" in answer.problem


async def test_no_python_is_needed(steps: Steps, tmp_path: Path) -> None:
    names = {name for place in ("/usr/bin", "/bin", "/usr/local/bin") for name in os.listdir(place)}
    without = lacking(tmp_path, *(name for name in names if name.startswith(("python", "perl", "busybox", "awk"))))
    link = Bent(steps.link, before=without)
    assert isinstance(await steps.start("one", "echo", "x", link=link), Started)
    await steps.ended("one")
    followed = await detached.follow(link, steps.folder, steps.op, "one")
    assert (followed.state.phase, followed.data) == (Phase.DONE, b"x\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": "4G; reboot"}, "not a memory cap"),
        ({"memory": "G"}, "not a memory cap"),
        ({"mode": Mode.USER}, ""),
    ],
)
async def test_what_cannot_be_meant_is_refused(steps: Steps, options: dict[str, Any], words: str) -> None:
    if options.get("mode") is Mode.USER and has_systemd():
        pytest.skip("this machine has systemd; the real hosts' tests cover it")
    answer = await steps.start("one", "true", **options)
    assert isinstance(answer, Refused) and words in answer.problem and answer.problem
    assert (await steps.state("one")).phase is Phase.ABSENT


@pytest.mark.parametrize("op", ["", "../x", "a/b", "-x", "a b", "x" * 65, "a\nb"])
async def test_names_that_lead_elsewhere_are_refused(steps: Steps, op: str) -> None:
    steps.op = op
    assert isinstance(await steps.start("one", "true"), Refused)
    assert (await steps.state("one")).phase is Phase.UNKNOWN


@pytest.mark.parametrize("step", ["", ".", "..", "../x", "A", "a_b", "-x", "a@stop", "x" * 101])
async def test_step_names_that_lead_elsewhere_are_refused(steps: Steps, step: str) -> None:
    assert isinstance(await steps.start(step, "true"), Refused)
    assert (await steps.state(step)).phase is Phase.UNKNOWN


async def test_modes_say_why_not(steps: Steps) -> None:
    found = await detached.modes(steps.link, steps.folder)
    assert found.mode is not None
    assert (found.mode is Mode.NONE) == bool(found.why_not_user and found.why_not_system)


# -- answers


@given(st.text(), st.text(), st.one_of(st.none(), st.integers(-1, 300)), st.sampled_from(Outcome))
def test_any_answer_is_read(stdout: str, stderr: str, status: int | None, outcome: Outcome) -> None:
    output = Output("h", ("sh",), outcome, status, "", stdout, stderr, 0.1)
    answer = read_answer(output)
    found = read_state(answer)
    assert found.phase is Phase.UNKNOWN or answer.exit in (Exit.OK, Exit.THERE)
    assert answer.exit is None or outcome in (Outcome.DONE, Outcome.FAILED)
    assert answer.problem.isprintable() and found.words.isprintable()


@given(
    st.dictionaries(
        st.sampled_from(["state", "code", "signal", "began", "boot", "size", "words", "log", "unit", "pid"]),
        st.one_of(st.text(), st.sampled_from([*Phase, "0", "17", "-1", "0x1", "٣", "same", "changed"])),
    )
)
def test_any_values_are_checked(values: dict[str, str]) -> None:
    found = read_state(Answer(Exit.OK, values, ""))
    assert found.phase in Phase
    assert all(number is None or 0 <= number < 10**15 for number in (found.code, found.began, found.pid, found.size))
    texts = (found.signal, found.words, found.log, found.unit, found.mode, found.load_state)
    assert all(text.isprintable() for text in texts)


def test_a_lost_answer_has_no_exit_even_with_a_status() -> None:
    for outcome in Outcome:
        answer = read_answer(Output("h", ("sh",), outcome, 0, "", "state=done\n", "", 0.1))
        assert (answer.exit is Exit.OK) == (outcome in (Outcome.DONE, Outcome.FAILED))
        assert answer.unknown == (outcome is Outcome.UNKNOWN)


def test_every_script_is_plain_shell() -> None:
    for name in NAMES:
        for shell in ("dash", "bash --posix", "sh"):
            done = subprocess.run([*shell.split(), "-n"], input=script(name), text=True, capture_output=True)
            assert done.returncode == 0, done.stderr
    with pytest.raises(ValueError, match="no script"):
        script("reboot")
    assert script("starter.sh") is not None and script("starter.sh") == script("starter")


def test_an_operation_is_named_as_the_contract_has_it() -> None:
    assert operation().count("-") == 2
