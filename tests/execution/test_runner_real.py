"""The one file that hosts get, run by a real python with real scripts: kill -9 anywhere, TERM, cut connections."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from runner_real import PATIENCE, RealWorld, until
from runner_world import FakeClock

from console.actions.plan import Probe
from console.execution.runner_base import ASIDE, LOOK, ONCE, WAIT, Attempt, Fenced, JournalLost, keys_of
from console.execution.runner_head import FileJournal, Shell
from console.execution.runner_hosts import Hosts
from console.execution.scripts import script
from console.execution.sequence import runner_text

KILLED = -signal.SIGKILL
HARNESS = """
import os, runpy, sys
names = runpy.run_path({runner!r})
Journal, at, torn = names["FileJournal"], {at}, {torn}
write, count = Journal.write, 0
def dying(self, line):
    global count
    count += 1
    if count == at and torn:
        os.write(self._file, b'{{"t": 17, "se')
    if count == at:
        os.kill(os.getpid(), 9)
    write(self, line)
Journal.write = dying
sys.exit(names["carry_out"]({folder!r}))
"""
"""The runner's own code, that dies just before its journal is written for the n-th time."""


@pytest.fixture
def real(tmp_path: Path) -> RealWorld:
    return RealWorld(tmp_path)


def test_it_is_one_file_of_python_3_8_and_the_standard_library() -> None:
    tree = ast.parse(runner_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith("console")}
    newer = {"removeprefix", "removesuffix", "StrEnum", "slots", "pairwise", "to_thread", "UTC"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))


def test_what_must_be_seen_of_a_unit_comes_with_its_end(real: RealWorld) -> None:
    down = real.probe("spark-1", "new-spark-1", "down")
    odd = Probe("spark-1", "odd words", ("sh", "-s", "--", "it's", "$HOME"), 'echo "$1 = $2"\necho more\n')
    made = real.step("a", "spark-1", "stop", "new-spark-1", limit=60.0, after=(down, odd))
    real.ssh.write_text(real.ssh.read_text().replace("shift\n", f'shift\necho x >>"{real.root}/calls"\n'))
    real.write(real.plan(made))
    assert real.run() == 0, real.log
    told = [line for line in real.lines if line["kind"] == "step"][-1]
    assert told["words"] == "new-spark-1 is down; it's = $HOME"
    calls = (real.root / "calls").read_text().splitlines()
    assert len(calls) <= 4, "the fence, the start, and one that waits, sees and tells (it may be asked twice)"


def test_a_unit_that_goes_on_is_told_as_running_and_its_end_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "ops" / "op" / "a"
    folder.mkdir(parents=True)
    sleeping = subprocess.Popen(["sleep", "600"])
    (folder / "begun").write_text(f"{sleeping.pid} 1 1\n")
    starter = 'test -e "$2/ops/$3/$4/result" && echo state=done || echo state=running; printf "%s\\\\n" "words=a\\\\cb"'
    argv = ["sh", "-c", WAIT, "laneswap", starter, str(tmp_path), "op", "a", "3000", "0.02"]
    try:
        running = subprocess.run([*argv, "1"], capture_output=True, text=True, input="echo asked", timeout=60)
        waiting = subprocess.Popen([*argv, "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        sleeping.kill()
        sleeping.wait()
        (folder / "result").write_text("success exited 0 1 no\n")
        out, _ = waiting.communicate("echo asked", timeout=PATIENCE)
    finally:
        sleeping.kill()
        sleeping.wait()
    assert running.stdout.startswith("state=running\nwords=a\\cb\nup=") and "asked" not in running.stdout
    assert out.startswith("state=done\nwords=a\\cb\nup=") and out.endswith("\nasked\n")


def test_a_whole_sequence_over_three_hosts(real: RealWorld) -> None:
    real.write(real.swap())
    assert real.run() == 0, real.log
    assert real.end == ("done", "")
    assert real.up == {"old", "noted"}
    assert real.container("noted").read_text() == "it's noted\n"
    assert set(real.ran().values()) == {1}
    assert (real.op / "journal.jsonl").stat().st_mode & 0o777 == 0o666


def test_killed_before_each_of_its_writes_it_goes_on_and_no_step_runs_twice(tmp_path: Path) -> None:
    at, finished = 0, False
    while not finished:
        at += 1
        real = RealWorld(tmp_path / str(at))
        real.write(real.swap())
        harness = HARNESS.format(runner=str(real.runner), folder=str(real.op), at=at, torn=at % 2 == 0)
        first = real.run("-c", harness)
        assert first in (KILLED, 0), real.log
        finished = first == 0
        assert real.run() == 0, real.log
        assert real.end == ("done", ""), at
        assert real.up == {"old", "noted"}, at
        assert set(real.ran().values()) == {1}, at
        assert [line["seq"] for line in real.lines] == list(range(1, len(real.lines) + 1)), at
    assert at > 12


@pytest.mark.parametrize("name", ["stop-spark-0", "stop-spark-1", "stop-spark-2", "start", "note", "serves"])
def test_killed_at_each_step_by_kill_9_it_goes_on(real: RealWorld, name: str) -> None:
    real.write(real.swap())
    running = real.start()
    until(lambda: name in real.states or running.poll() is not None, f"{name} has begun")
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert real.run() == 0, real.log
    assert real.end[0] == "done"
    assert real.up == {"old", "noted"}
    assert set(real.ran().values()) == {1}


@pytest.mark.parametrize("limit", [9.0, 40.0])
def test_a_command_that_kills_the_runner_under_which_it_runs_has_run_once(real: RealWorld, limit: float) -> None:
    real.write(real.plan(real.step("a", "spark-0", "kill", limit=limit), real.step("b", "spark-1", "start", "old")))
    assert real.run() == KILLED
    assert real.run() == 0, real.log
    assert real.ran() == {"kill ": 1, "start old": 1}


@pytest.mark.parametrize("host", ["spark-0", "spark-1"])
def test_a_command_that_speaks_after_its_runner_was_killed_is_not_ended_by_that(real: RealWorld, host: str) -> None:
    made = real.step("a", host, "x", limit=9.0)
    script = 'kill -9 "$(cat "$1/runner")"; sleep 0.3; echo spoken; echo louder >&2; : >"$1/up/old"'
    real.write(real.plan(replace(made, argv=("sh", "-c", script, "x", str(real.world)))))
    assert real.run() == KILLED
    assert real.run() == 0, real.log
    assert real.states == {"a": "done"} and "old" in real.up


def test_on_the_head_a_long_command_is_a_child_of_the_runner(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-0", "slow", "1", limit=60.0), real.step("b", "spark-0", "fail", "7")))
    assert real.run() == 1, real.log
    assert not (real.op / "a" / "run").exists() and (real.op / "a" / "code").read_text() == "0\n"
    assert real.states == {"a": "done", "b": "failed"}


def killed(real: RealWorld) -> Path:
    """The runner and its child `a`, as it runs. The file in which the child is noted."""
    running = real.start()
    begun = real.op / "a" / "begun"
    until(lambda: begun.exists() and begun.read_text().count(" ") == 2 and real.ran(), "it runs")
    running.send_signal(signal.SIGKILL)
    running.wait()
    os.killpg(int(begun.read_text().split()[0]), signal.SIGKILL)
    return begun


def test_a_child_that_was_killed_with_its_runner_is_lost_not_running(real: RealWorld) -> None:
    made = real.plan(real.step("a", "spark-0", "slow", "600", limit=900.0), real.step("b", "spark-0", "start", "x"))
    real.write(made)
    killed(real)
    assert real.run() == 1, real.log
    assert real.states == {"a": "unknown", "b": "skipped"} and real.ran() == {"slow 600": 1}
    assert "it left no result" in real.end[1]


@pytest.mark.parametrize("left", ["", "nothing"])
def test_a_child_of_which_a_full_disk_kept_no_trace_is_told_by_its_deed(real: RealWorld, left: str) -> None:
    """Whoever carries on must not wait for a process that nobody can name, where what it was for is there."""
    made = replace(real.step("a", "spark-0", "slow", "600", limit=900.0), after=(real.probe("spark-0", "old", "up"),))
    real.write(real.plan(made, real.step("b", "spark-0", "start", "x")))
    begun = killed(real)
    begun.write_text("") if left else begun.unlink()
    (real.world / "up" / "old").touch()
    assert real.run() == 0, real.log
    assert real.states == {"a": "done", "b": "done"} and real.ran() == {"slow 600": 1, "start x": 1}


@pytest.mark.parametrize("code", ["", "143"])
def test_a_child_that_went_down_with_its_host_is_begun_once_more(real: RealWorld, code: str) -> None:
    """By the number of the host's start; its shell may have come to write how the command was ended."""
    script = 'echo ran >>"$1/twice"; [ -e "$1/second" ] || { : >"$1/second"; exec sleep 600; }; : >"$1/up/old"'
    step = real.step("a", "spark-0", "x", limit=60.0)
    real.write(real.plan(replace(step, argv=("sh", "-c", script, "x", str(real.world)), again=True)))
    running = real.start()
    begun = real.op / "a" / "begun"
    until(lambda: (real.world / "second").exists() and begun.read_text().count(" ") == 2, "it runs")
    running.send_signal(signal.SIGKILL)
    running.wait()
    os.killpg(int(begun.read_text().split()[0]), signal.SIGKILL)
    (begun.parent / "boot").write_text("0\n")
    if code:
        (begun.parent / "code").write_text(f"{code}\n")
    assert real.run() == 0, real.log
    assert real.states == {"a": "done"} and (real.world / "twice").read_text() == "ran\nran\n"
    assert (real.op / "a@1" / "begun").exists()


def starter(real: RealWorld, *words: str) -> dict[str, str]:
    """What starter.sh says of a step."""
    verb, *more = words
    argv = ["sh", "-c", script("starter"), "laneswap", verb, str(real.folder), real.id, *more]
    return keys_of(subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout)


def test_a_child_whose_runner_is_gone_is_found_and_ended_like_a_unit(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-0", "slow", "600", limit=900.0)))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    assert starter(real, "state", "a")["state"] == "running"
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert starter(real, "state", "a")["state"] == "running"
    assert starter(real, "stop", "a", "5")["state"] == "stopped"
    assert real.run() == 1, real.log
    assert real.states == {"a": "failed"}


def test_a_child_that_was_stopped_before_it_began_never_begins(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-0", "start", "x")))
    assert starter(real, "stop", "a", "5")["state"] == "stopped"
    assert real.run() == 1, real.log
    assert not real.ran() and "stopped by an operator before it began" in real.end[1]


@pytest.mark.parametrize("host", ["spark-0", "spark-1"])
def test_a_unit_that_fails_says_why_in_its_own_last_words(real: RealWorld, host: str) -> None:
    said = ("sh", "-c", "echo waiting; echo 'it is exited with 1 after 3 s'; exit 7")
    real.write(real.plan(replace(real.step("a", host, "x", limit=60.0, detached=True), argv=said)))
    assert real.run() != 0
    (ended,) = [line for line in real.lines if line["kind"] == "step" and line["state"] == "failed"]
    assert ended["words"] == "exit status 7: it is exited with 1 after 3 s"


def test_a_second_runner_is_refused_while_the_first_one_lives(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-1", "slow", "30", limit=60.0)))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    assert real.run() == 3
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == -signal.SIGTERM
    assert real.ran() == {"slow 30": 1}


@pytest.mark.parametrize("steps", [False, True])
def test_term_ends_the_sequence_and_a_unit_only_if_told_so(real: RealWorld, steps: bool) -> None:
    real.write(real.plan(real.step("a", "spark-1", "slow", "7", limit=60.0), real.step("b", "spark-1", "start", "x")))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    (real.op / "stop").write_text("steps 1 ben\n" if steps else "runner 1 ben\n")
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == -signal.SIGTERM
    assert real.end[0] == "stopped" and "stopped by ben" in real.end[1]
    assert real.states == {"a": "stopped" if steps else "unknown", "b": "skipped"}
    result = real.op / "a" / "result"
    assert result.exists() == steps
    until(result.exists, "the unit has ended by itself")


def test_term_ends_a_short_command_on_the_head(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-0", "slow", "9"), real.step("b", "spark-1", "start", "x")))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == -signal.SIGTERM
    assert real.states == {"a": "stopped", "b": "skipped"}
    assert not (real.op / "a" / "code").exists()


def test_a_rank_out_of_reach_in_the_middle_and_back(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-1", "slow", "1", limit=60.0), real.step("b", "spark-1", "start", "old")))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    cut = real.world / "cut-spark-1"
    cut.touch()
    until(lambda: any(line["kind"] == "seen" for line in real.lines), "it says so")
    assert "no answer from spark-1" in next(line["words"] for line in real.lines if line["kind"] == "seen")
    cut.unlink()
    assert running.wait(60) == 0
    assert real.ran() == {"slow 1": 1, "start old": 1}


def test_an_older_epoch_is_fenced_off_by_the_hosts_own_scripts(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-1", "slow", "2", limit=60.0), real.step("b", "spark-1", "start", "old")))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    lease = "id=ab\nepoch=8\noperator=ben\nconsole=c\npurpose=p\nacquired=1796000700\nrenewed=1796000700\nttl=60\n"
    (real.folder / "lease").write_text(lease)
    assert running.wait(60) == 4 or running.returncode == 1
    assert real.states == {"a": "done", "b": "fenced"}
    assert real.end == (
        "half done",
        "HALF DONE after a, next: b on spark-1 (fenced): ben holds the lease since 01:05:00Z (epoch 8)",
    )
    assert real.ran() == {"slow 2": 1}


def test_a_unit_of_an_older_epoch_is_fenced_off_by_its_own_start(real: RealWorld) -> None:
    """Also where the head did not know of the newer lease yet."""
    operation = real.write(real.plan(real.step("a", "spark-1", "start", "old", limit=60.0)))
    (real.folder / "epoch").write_text("8\n")
    clock = FakeClock()
    hosts = Hosts(operation, Shell({"spark-0": [], "spark-1": []}), clock, lambda: operation)
    attempt = Attempt(operation["steps"][0], "step", clock.wall(), clock.mono() + 60.0)
    assert attempt.detached
    with pytest.raises(Fenced, match="epoch 8"):
        hosts.send(attempt)
    assert not real.ran() and not (real.op / "a").exists()


def test_a_full_disk_keeps_the_command_from_leaving_and_the_journal_whole(real: RealWorld) -> None:
    real.write(real.plan(real.step("a", "spark-0", "start", "old")))
    limited = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150)); "
    limited += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += f"sys.exit(runpy.run_path({str(real.runner)!r})['carry_out']({str(real.op)!r}))"
    assert real.run("-c", limited) == 5
    assert not real.ran()
    assert [line["kind"] for line in real.lines] == ["begin"]
    assert "the journal cannot be written" in real.log
    assert real.run() == 0, real.log
    assert real.ran() == {"start old": 1}


def test_commands_of_the_head_have_no_lock_and_no_signal_of_the_runner(real: RealWorld) -> None:
    script = (
        'ls -l /proc/self/fd >"$1/fds"; grep -E \'Sig(Ign|Blk)\' /proc/self/status >"$1/signals"; umask >"$1/umask"'
    )
    step = real.step("a", "spark-0", "x")
    real.write(real.plan(replace(step, argv=("sh", "-c", script, "x", str(real.world)))))
    assert real.run() == 0
    held = (real.world / "fds").read_text()
    assert "running" not in held and "journal" not in held and "lock" not in held
    blocked, ignored = (int(row.split()[1], 16) for row in (real.world / "signals").read_text().splitlines())
    assert not blocked and not ignored & (1 << (signal.SIGTERM - 1) | 1 << (signal.SIGPIPE - 1))
    assert int((real.world / "umask").read_text(), 8) == 0o022


ONCE_BEGUN = 'echo begun >>"$1/ran"; [ -e "$1/calm" ] || exec sleep 60; : >"$1/up/old"'


def test_a_unit_that_its_hosts_restart_ended_is_begun_once_more_by_whoever_carries_on(real: RealWorld) -> None:
    """The number of the host's start is the only thing here that is made up: nobody restarts this machine."""
    up = (real.probe("spark-1", "old", "up"),)
    made = real.step("a", "spark-1", "x", limit=60.0, detached=True, again=True, after=up)
    made = replace(made, argv=("sh", "-c", ONCE_BEGUN, "x", str(real.world)))
    real.write(real.plan(made, real.step("b", "spark-0", "start", "new")))
    running = real.start()
    until(lambda: real.ran(), "it runs")
    running.send_signal(signal.SIGKILL)
    running.wait()
    os.kill(int((real.op / "a" / "begun").read_text().split()[0]), signal.SIGKILL)
    until((real.op / "a" / "result").exists, "it has ended")
    (real.op / "a" / "boot").write_text("00000000-0000-0000-0000-000000000000\n")
    (real.world / "calm").touch()
    assert real.run() == 0, real.log
    assert real.end == ("done", "") and real.ran() == {"begun": 2, "start new": 1}
    assert (real.op / "a@1" / "log").exists() and (real.op / "a" / "result").exists(), "the first try is kept beside it"


@pytest.mark.parametrize(
    ("boot", "status", "words"), [("same", 1, "was not restarted"), ("other", 0, ""), ("", 5, "is not known")]
)
def test_only_what_an_earlier_start_of_the_host_ran_is_put_aside(
    tmp_path: Path, boot: str, status: int, words: str
) -> None:
    place = tmp_path / "ops" / "op" / "a"
    for name in ("a", "a@1"):
        place.with_name(name).mkdir(parents=True)
    now = Path("/proc/sys/kernel/random/boot_id").read_text()
    if boot:
        (place / "boot").write_text(now if boot == "same" else "0\n")
    argv = ["sh", "-c", ASIDE, "laneswap", str(tmp_path), "op", "a"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert (done.returncode, words in done.stderr) == (status, True), done.stderr
    assert place.exists() == (status != 0) and (tmp_path / "ops/op/a@2").exists() == (status == 0)
    gone = subprocess.run([*argv[:-1], "never"], capture_output=True, text=True, timeout=30)
    assert gone.returncode == 0, "what is not there need not be put aside"


def test_a_short_command_that_is_sent_again_does_not_run_again(tmp_path: Path) -> None:
    """A copy that a dead connection held and that arrives late finds the step's folder."""
    words = ("sh", "-c", ONCE, "laneswap", str(tmp_path), "op", "step", "sh", "-c", f"echo ran >>{tmp_path}/ran")
    done = [subprocess.run(words, capture_output=True, text=True, check=False) for _ in range(3)]
    assert [one.returncode for one in done] == [0, 3, 3]
    assert "begun here before" in done[1].stderr
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_line_is_on_the_disk_when_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced = tmp_path / "journal.jsonl", []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(file.read_text())

    monkeypatch.setattr(os, "fsync", fsync)
    journal = FileJournal(str(file))
    for number in (1, 2):
        journal.write({"seq": number})
        assert synced and synced[-1] == file.read_text() and len(synced[-1].splitlines()) == number


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up in the middle of a line takes the beginning of it."""
    file = tmp_path / "journal.jsonl"
    journal = FileJournal(str(file))
    journal.write({"seq": 1})
    before, real = file.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[: len(data) // 2]))
    with pytest.raises(JournalLost, match="No space left on device"):
        journal.write({"seq": 2, "words": "x" * 100})
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["running", "plan.json", "journal.jsonl"])
def test_a_link_in_the_place_of_a_file_is_neither_followed_nor_written_through(real: RealWorld, name: str) -> None:
    """A group may write to the folder; the runner has the rights of whoever began."""
    real.write(real.swap())
    elsewhere = real.root / "elsewhere"
    elsewhere.write_text((real.op / name).read_text() if (real.op / name).exists() else "mine\n")
    before = elsewhere.read_text()
    (real.op / name).unlink(missing_ok=True)
    (real.op / name).symlink_to(elsewhere)
    assert real.run() == 5
    assert elsewhere.read_text() == before and real.ran() == {}
    assert "symbolic links" in real.log


def test_who_stops_it_is_not_read_through_a_link(real: RealWorld) -> None:
    real.write(real.plan(real.step("slow", "spark-0", "slow", "30", limit=60.0)))
    secret = real.root / "secret"
    secret.write_text("steps 1 s3cret\n")
    (real.op / "stop").symlink_to(secret)
    running = real.start()
    until(lambda: real.ran(), "it runs")
    running.send_signal(signal.SIGTERM)
    running.wait(60)
    assert "s3cret" not in (real.op / "journal.jsonl").read_text()


def test_what_a_step_left_is_not_read_through_a_link_and_is_its_account_s_own(real: RealWorld) -> None:
    real.write(real.plan(real.step("one", "spark-0", "read", "noted", stdin="x\n")))
    assert real.run() == 0, real.log
    assert (real.op / "one").stat().st_mode & 0o022 == 0
    (real.op / "one" / "err").unlink(missing_ok=True)
    (real.op / "one" / "err").symlink_to("/etc/hostname")
    look = ["sh", "-c", LOOK, "laneswap", str(real.folder), real.id, "one"]
    said = subprocess.run(look, capture_output=True, text=True, check=True).stdout
    assert "state=lost" in said and "symbolic link" in said and "said=" not in said
