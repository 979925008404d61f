"""The ledger file: on the disk before it says so, whole lines or none, one chain whoever writes, nothing secret."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.cli import run
from console.execution import ledger as ledger_module
from console.execution import lockedfile
from console.execution.ledger import Clock, Entry, Ledger, LedgerError, ledger_file
from console.headless import EXIT_GOOD, EXIT_NEEDS_OPERATOR, EXIT_UNKNOWN, EXIT_USAGE
from console.readings.ledger import MOST_LINE, MOST_WORDS, ZERO, Kind, read_ledger

ENTRY = Entry(
    "dsv41", "stop rank 0", "spark-0", "20261130T031200Z-stop-3f9ac1", 3, ("docker", "stop", "sgldsv41"), "0123456789ab"
)
TIMES = Clock(wall=lambda: 1_790_000_000.0, mono=lambda: 77.5, boot=lambda: "b00t")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger" / "spark4" / "ledger.jsonl"


@pytest.fixture
def kept(file: Path) -> Ledger:
    return Ledger(file, "spark4", "ana", known={}, times=TIMES)


def torn_file(file: Path) -> Path:
    return file.with_name("ledger.jsonl.torn")


# Writing


def test_records_follow_from_each_other(kept: Ledger, file: Path) -> None:
    first = kept.intent(ENTRY)
    second = kept.outcome(Entry("dsv41", host="spark-0", result="done"))
    text = read_ledger(file.read_bytes())
    assert text.problem == "" and text.records == (first, second)
    assert (first.seq, first.prev, second.seq, second.prev) == (1, ZERO, 2, first.h)
    assert (first.ts, first.mono, first.boot, first.epoch, first.operator) == (1_790_000_000.0, 77.5, "b00t", 3, "ana")
    assert (first.fleet, first.lane, first.host, first.op) == ("spark4", "dsv41", "spark-0", ENTRY.op)
    assert (first.kind, first.argv, first.plan) == (Kind.INTENT, ENTRY.argv, ENTRY.plan)
    assert kept.verify().head == second


def test_every_kind_has_its_call(kept: Ledger) -> None:
    calls = (kept.intent, kept.start, kept.outcome, kept.note, kept.takeover, kept.waiver, kept.break_glass)
    told = [call(Entry("dsv41", result="done")).kind for call in calls]
    assert told == list(Kind)


def test_an_outcome_says_what_it_was(kept: Ledger, file: Path) -> None:
    with pytest.raises(ValueError, match="without a result"):
        kept.outcome(ENTRY)
    assert not file.exists()


def test_the_file_and_its_folders_are_the_owner_s_alone(kept: Ledger, file: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept.intent(ENTRY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file.parent.parent)} == {0o700}
    file.chmod(0o644)
    kept.intent(ENTRY)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_record_is_on_the_disk_before_the_call_returns(file: Path) -> None:
    synced: list[tuple[str, int]] = []

    def sync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((name, os.fstat(descriptor).st_size if name == str(file) else 0))
        os.fsync(descriptor)

    kept = Ledger(file, "spark4", known={}, sync=sync)
    kept.intent(ENTRY)
    assert [name for name, _ in synced[:3]] == [str(file.parents[3]), str(file.parents[2]), str(file.parents[1])]
    assert (str(file.parent), 0) in synced, "the new file's name is on the disk too"
    assert synced[-1] == (str(file), file.stat().st_size)
    synced.clear()
    kept.intent(ENTRY)
    assert synced == [(str(file), file.stat().st_size)]


def test_what_cannot_be_put_onto_the_disk_is_not_left_there(kept: Ledger, file: Path) -> None:
    kept.intent(ENTRY)
    before = file.read_bytes()

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(LedgerError, match="Input/output error"):
        Ledger(file, "spark4", known={}, sync=fails).intent(ENTRY)
    assert file.read_bytes() == before
    kept.intent(ENTRY)
    assert kept.verify().problem == ""


FULL = """
import resource, signal, sys
from pathlib import Path
from console.execution.ledger import Entry, Ledger, LedgerError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = Path(sys.argv[1])
kept = Ledger(file, "spark4", "ana", known={})
kept.intent(Entry("dsv41", "the first"))
size = file.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    kept.intent(Entry("dsv41", "one that does not fit"))
except LedgerError as error:
    print("refused:", error)
print(file.stat().st_size == size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
kept.intent(Entry("dsv41", "the second"))
print([record.text for record in kept.verify().text.records], repr(kept.verify().problem))
"""


def test_a_disk_that_is_full_in_the_middle_of_a_line_leaves_nothing_of_it(file: Path) -> None:
    """A limit on the size of files cuts a write short just as a full disk does."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, timeout=60)
    refused, same, records = done.stdout.splitlines()
    assert refused.startswith("refused: the ledger cannot be written")
    assert (same, records) == ("True", "['the first', 'the second'] ''"), done.stderr


def test_where_no_folder_can_be_made_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"cannot be written: .*file"):
        Ledger(tmp_path / "file" / "x" / "ledger.jsonl", "spark4", known={}).intent(ENTRY)


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_what_is_no_file_is_not_written_to(what: str, kept: Ledger, file: Path, tmp_path: Path) -> None:
    file.parent.mkdir(parents=True)
    other = tmp_path / "other"
    other.write_text("")
    make: dict[str, Callable[[], None]] = {
        "link": lambda: file.symlink_to(other),
        "folder": lambda: file.mkdir(),
        "pipe": lambda: os.mkfifo(file),
    }
    make[what]()
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: (it is a link|Is a directory|not a file)"):
        kept.intent(ENTRY)
    assert other.read_text() == ""


def test_whether_it_could_be_written_is_asked_without_writing(kept: Ledger, file: Path, tmp_path: Path) -> None:
    kept.check()
    assert kept.verify().text.lines == 0
    kept.intent(ENTRY)
    before = file.read_bytes()
    kept.check()
    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name]
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "file" / "x" / "ledger.jsonl", "spark4", known={}).check()
    file.write_bytes(before[:-10] + b'00000000"}\n')
    with pytest.raises(LedgerError, match="last line is damaged"):
        kept.check()


ROOM = """
import resource, sys
from pathlib import Path
from console.execution.ledger import Ledger, LedgerError
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    Ledger(Path(sys.argv[1]), "spark4", known={}).check()
except LedgerError as error:
    print("refused:", error)
print(sorted(path.name for path in Path(sys.argv[1]).parent.iterdir()))
"""


def test_a_disk_without_room_is_told_before_anything_is_meant(file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ROOM, str(file)], capture_output=True, text=True, timeout=60)
    refused, left = done.stdout.splitlines()
    assert refused.startswith("refused: the ledger cannot be written") and left == "['ledger.jsonl']", done.stderr


# Bounds and secrets


def test_whatever_is_recorded_can_be_read_again_and_the_next_one_follows(file: Path) -> None:
    kept = Ledger(file, "spark4", known={})
    words = ("docker", "run", "\x1b]0;x\x07", "a\nb", "\ud800", "é" * 5000, *("x" * 300 for _ in range(2000)))
    kept.intent(Entry("dsv41", "t" * 100_000, argv=words, result="r" * 100_000))
    kept.intent(ENTRY)
    found = kept.verify()
    assert found.problem == "" and len(found.text.records) == 2
    assert len(found.text.records[0].argv) == MOST_WORDS
    assert max(map(len, file.read_bytes().splitlines())) < MOST_LINE


def test_what_could_not_be_read_again_is_not_recorded(kept: Ledger, file: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be recorded: epoch"):
        kept.intent(Entry("dsv41", epoch=-1))
    with pytest.raises(LedgerError, match="cannot be recorded"):
        Ledger(file, "spark4", known={}, times=Clock(wall=lambda: float("inf"))).intent(ENTRY)
    kept.intent(ENTRY)
    assert kept.verify().text.lines == 1


texts = st.text(max_size=60)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(texts, texts, texts, st.lists(texts, max_size=4), st.integers(0, 2**53)), min_size=1, max_size=4)
)
def test_any_words_make_a_chain(tmp_path_factory: pytest.TempPathFactory, told: list[Any]) -> None:
    kept = Ledger(tmp_path_factory.mktemp("l") / "ledger.jsonl", "spark4", known={})
    for text, host, result, argv, epoch in told:
        kept.write(Kind.NOTE, Entry(host, text, host, text, epoch, tuple(argv), text, result, host))
    found = kept.verify()
    assert (found.problem, found.text.lines) == ("", len(told))


SECRETS = {
    "a token": "hf_AbCdEfGhIjKlMnOp",
    "a bearer": "Authorization: Bearer Zq8r7t6y5u",
    "a key": "VLLM_API_KEY=Zq8r7t6y5u",
    "a password": "http://ana:Zq8r7t6y5u@10.0.0.1/",
    "a variable": "plain-Zq8r7t6y5u-value",
}


@pytest.mark.parametrize("what", SECRETS)
def test_no_secret_reaches_the_file(what: str, file: Path) -> None:
    kept = Ledger(file, "spark4", known={"WEBHOOK": "plain-Zq8r7t6y5u-value"})
    secret = SECRETS[what]
    kept.intent(Entry("dsv41", f"ran {secret} then", argv=("env", secret, "sh"), result=f"failed: {secret}"))
    data = file.read_bytes()
    assert b"Zq8r7t6y5u" not in data and b"AbCdEfGhIjKlMnOp" not in data
    assert data.count(b"secret:") == 3


def test_the_environment_s_secrets_are_known_by_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "correct horse battery")
    Ledger(file, "spark4").note(Entry("dsv41", "he typed correct horse battery"))
    assert b"he typed secret:MY_PASSWORD" in file.read_bytes()


# A last line that was never finished


def test_every_cut_of_the_last_line_is_put_aside_and_noted(kept: Ledger, file: Path) -> None:
    first, second = kept.intent(ENTRY), kept.intent(ENTRY)
    whole = file.read_bytes()
    start = whole.index(b"\n") + 1
    for cut in range(start + 1, len(whole)):
        file.write_bytes(whole[:cut])
        torn_file(file).unlink(missing_ok=True)
        assert kept.verify().text.torn == cut - start
        after = kept.intent(ENTRY)
        found = kept.verify()
        assert found.problem == "" and found.text.records[0] == first and found.text.records[2] == after
        note = found.text.records[1]
        assert note.kind is Kind.NOTE and f"torn: the last line was never finished; its {cut - start}" in note.text
        assert torn_file(file).read_bytes() == whole[start:cut] + b"\n"
    assert second.seq == 2


def test_zeros_where_a_crash_left_a_hole_are_torn(kept: Ledger, file: Path) -> None:
    first = kept.intent(ENTRY)
    good = file.read_bytes()
    for hole in (b"\0" * 4096, b"\0" * 4096 + b'tail"}\n', b"\0\n\0\0\n"):
        file.write_bytes(good + hole)
        kept.intent(ENTRY)
        found = kept.verify()
        assert found.problem == "" and found.text.records[0] == first and found.text.lines == 3
        assert torn_file(file).read_bytes().endswith(hole + b"\n")


@pytest.mark.parametrize(
    "torn", [b'{"v":1,"chain":"' + b"x" * 2000, b"\0" * 50 + b"x" * 2000 + b'"}\n'], ids=("text", "zeros")
)
def test_a_crash_while_the_torn_line_is_put_aside_stops_nothing(
    torn: bytes, kept: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off while the note is written over the torn line, early and late."""
    kept.intent(ENTRY)
    good = file.read_bytes()
    real = os.pwrite

    for most in (0, 1, 100, 400):

        def cut_off(descriptor: int, data: bytes, offset: int, most: int = most) -> int:
            if most:
                real(descriptor, data[:most], offset)
            raise KeyboardInterrupt

        file.write_bytes(good + torn)
        monkeypatch.setattr(os, "pwrite", cut_off)
        with pytest.raises(KeyboardInterrupt):
            kept.intent(ENTRY)
        monkeypatch.setattr(os, "pwrite", real)
        assert torn in torn_file(file).read_bytes()
        kept.intent(ENTRY)
        found = kept.verify()
        assert found.problem == ""
        said = [record.text.partition(":")[0] for record in found.text.records]
        noted = 1 if most or b"\n" not in torn else 0
        assert said == ["stop rank 0", *["torn"] * noted, "stop rank 0"]


def test_a_whole_last_line_that_was_changed_stops_the_ledger(kept: Ledger, file: Path) -> None:
    kept.intent(ENTRY)
    kept.intent(ENTRY)
    changed = file.read_bytes()[:-10] + b'00000000"}\n'
    file.write_bytes(changed)
    with pytest.raises(LedgerError, match=r"last line is damaged.*--verify.*move the file aside"):
        kept.intent(ENTRY)
    assert file.read_bytes() == changed
    file.rename(file.with_suffix(".old"))
    assert kept.intent(ENTRY).seq == 1


def test_a_file_without_any_line_in_reach_is_no_ledger(kept: Ledger, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x" * (2 * MOST_LINE + 1))
    with pytest.raises(LedgerError, match="no whole line at its end"):
        kept.intent(ENTRY)


# Two consoles

WRITER = """
import sys
from pathlib import Path
from console.execution.ledger import Entry, Ledger
kept = Ledger(Path(sys.argv[1]), "spark4", sys.argv[2], known={}, sync=lambda descriptor: None)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    kept.note(Entry("dsv41", f"{number}"))
"""


def test_consoles_that_write_at_once_make_one_chain(file: Path) -> None:
    names, count = ("ana", "ben", "ana2", "ben2"), 60
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(file), name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.communicate("go\n", timeout=90)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0] * len(names)
    found = Ledger(file, "spark4", known={}).verify()
    assert (found.problem, found.text.lines) == ("", len(names) * count)
    for name in names:
        assert [record.text for record in found.text.records if record.operator == name] == [
            str(n) for n in range(count)
        ]


def test_threads_make_one_chain_too(kept: Ledger) -> None:
    threads = [threading.Thread(target=lambda: [kept.note(ENTRY) for _ in range(25)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = kept.verify()
    assert (found.problem, found.text.lines) == ("", 100)


def test_a_lock_that_is_never_given_back_is_told(kept: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.intent(ENTRY)
    monkeypatch.setattr(lockedfile, "LOCK_S", 0.05)
    with open(file, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="another console holds its lock"):
            kept.intent(ENTRY)
        with pytest.raises(LedgerError, match="another console holds its lock"):
            kept.verify()
    kept.intent(ENTRY)
    assert kept.verify().text.lines == 2


def test_a_file_that_is_moved_aside_while_its_lock_is_waited_for_gets_nothing_more(kept: Ledger, file: Path) -> None:
    kept.intent(ENTRY)
    old = file.with_suffix(".old")
    done = threading.Event()

    def write() -> None:
        kept.intent(ENTRY)
        done.set()

    with open(file, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = threading.Thread(target=write)
        writer.start()
        assert not done.wait(0.1)
        file.rename(old)
    writer.join(60)
    assert done.is_set()
    assert [len(read_ledger(path.read_bytes()).records) for path in (old, file)] == [1, 1]


# What the heads have


def test_lines_wait_until_their_head_has_acknowledged_them(kept: Ledger, file: Path) -> None:
    assert kept.pending("dsv41").lines == ()
    kept.acknowledge("dsv41", kept.pending("dsv41"))
    kept.intent(ENTRY)
    kept.intent(Entry("station"))
    kept.note(Entry("", "about the file itself"))
    waiting = kept.pending("dsv41")
    rows = file.read_text().splitlines(keepends=True)
    assert waiting.lines == (rows[0], rows[2])
    assert kept.pending("station").lines == (rows[1], rows[2])
    kept.acknowledge("dsv41", waiting)
    assert kept.pending("dsv41").lines == ()
    assert kept.pending("station").lines == (rows[1], rows[2])
    kept.intent(ENTRY)
    assert kept.pending("dsv41").lines == (file.read_text().splitlines(keepends=True)[3],)
    assert kept.verify().problem == ""
    assert stat.S_IMODE(file.with_name("acknowledged.json").stat().st_mode) == 0o600


def test_what_came_while_the_head_was_written_to_waits(kept: Ledger) -> None:
    kept.intent(ENTRY)
    first = kept.pending("dsv41")
    kept.intent(ENTRY)
    second = kept.pending("dsv41")
    kept.acknowledge("dsv41", second)
    kept.acknowledge("dsv41", first)  # two consoles, the slower one last
    assert kept.pending("dsv41").lines == ()
    kept.intent(ENTRY)
    assert len(kept.pending("dsv41").lines) == 1


def test_a_damaged_mark_means_that_all_is_sent_again(kept: Ledger, file: Path) -> None:
    kept.intent(ENTRY)
    kept.acknowledge("dsv41", kept.pending("dsv41"))
    mark = file.with_name("acknowledged.json")
    whole = json.loads(mark.read_text())
    row = whole["lanes"]["dsv41"]
    for odd in ("", "[]", '{"lanes": 3}', '{"lanes": {"dsv41": [1]}}', '{"lanes": {"dsv41": ["a", true, "b", -1]}}'):
        mark.write_text(odd)
        assert len(kept.pending("dsv41").lines) == 1
        assert "is damaged" in kept.verify().notes[0] and kept.verify().problem == ""
    whole["lanes"]["dsv41"] = [*row[:3], row[3] - 1]
    mark.write_text(json.dumps(whole))
    assert len(kept.pending("dsv41").lines) == 1


def test_lines_that_a_head_has_and_the_file_has_not_are_missed(kept: Ledger, file: Path) -> None:
    kept.intent(ENTRY)
    first = file.read_bytes()
    kept.intent(ENTRY)
    kept.acknowledge("dsv41", kept.pending("dsv41"))
    file.write_bytes(first)
    assert "the head of dsv41 has acknowledged record 2, which is gone" in kept.verify().problem
    kept.intent(Entry("dsv41", "another second record"))
    assert "record 2 is another than the one that the head of dsv41" in kept.verify().problem
    assert len(kept.pending("dsv41").lines) == 2
    file.unlink()
    assert "which is gone" in kept.verify().problem
    kept.intent(ENTRY)
    assert kept.verify().problem == "" and "an earlier file" in kept.verify().notes[0]


def test_lines_that_were_removed_stay_missed_whatever_is_written_after_them(kept: Ledger, file: Path) -> None:
    kept.intent(ENTRY)
    first = file.read_bytes()
    kept.intent(ENTRY)
    kept.acknowledge("dsv41", kept.pending("dsv41"))
    file.write_bytes(first)
    for _ in range(3):
        kept.intent(Entry("dsv41", "another record"))
        kept.acknowledge("dsv41", kept.pending("dsv41"))
    assert "record 2 is another than the one that the head of dsv41" in kept.verify().problem
    assert kept.pending("dsv41").lines == ()
    file.unlink()
    kept.intent(ENTRY)
    kept.acknowledge("dsv41", kept.pending("dsv41"))
    assert kept.verify().problem == "" and "an earlier file" in kept.verify().notes[0]


def test_the_file_of_a_fleet_is_where_the_state_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path))
    assert ledger_file("spark4") == tmp_path / "ledger" / "spark4" / "ledger.jsonl"
    monkeypatch.delenv("LANESWAP_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert tmp_path / "xdg" in ledger_file("spark4").parents


def test_the_machine_has_a_boot_id() -> None:
    assert ledger_module._boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


# The command

FLEET = """
name = "spark4"
[hosts]
a = { ssh = "local" }
[lanes.dsv41]
recipe = "sglang-fleet-env"
url = "http://127.0.0.1:1"
head = "a"
[lanes.station]
recipe = "vllm-docker"
url = "http://127.0.0.1:2"
head = "a"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A folder with a fleet file, and that fleet's ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("LANESWAP_FLEET", raising=False)
    Path("fleet.toml").write_text(FLEET)
    return Ledger(ledger_file("spark4"), "spark4", "ana", known={}, times=TIMES)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = EXIT_GOOD) -> tuple[str, str]:
    assert run(["ledger", *words]) == code
    out, err = capsys.readouterr()
    assert all(row.isprintable() for row in (out + err).split("\n"))
    return out, err


def test_the_record_is_printed_oldest_first(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing is recorded yet" in said(capsys)[0]
    here.intent(ENTRY)
    here.outcome(Entry("station", result="unknown: connection lost"))
    out = said(capsys)[0].splitlines()
    assert out[0] == (
        "2026-09-21 14:13:20Z  dsv41  ana  intent  spark-0  stop rank 0  docker stop sgldsv41"
        f"  [{ENTRY.op}]  [plan 0123456789ab]  [epoch 3]"
    )
    assert out[1] == "2026-09-21 14:13:20Z  station  ana  outcome  -  unknown: connection lost"
    assert said(capsys, "station")[0].splitlines() == out[1:]


def test_a_lane_that_nobody_knows_is_a_usage_error(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'station'" in said(capsys, "statoin", code=EXIT_USAGE)[1]
    here.note(Entry("gone"))
    assert "gone" in said(capsys, "gone")[0]


def test_verify_says_that_it_is_good_and_by_which_hash(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--verify")[0].startswith("good: 0 lines")
    here.intent(ENTRY)
    last = here.intent(ENTRY)
    out = said(capsys, "--verify")[0].splitlines()
    assert out[0] == "good: 2 lines"
    assert out[-1] == f"head: {last.h} (record 2 of chain {last.chain})"
    assert "not on the head of dsv41 yet: 2 lines" in out


def test_verify_names_the_first_broken_line(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        here.intent(ENTRY)
    data = here.file.read_bytes().replace(b"stop rank 0", b"stop rank 1", 2)
    here.file.write_bytes(data)
    out = said(capsys, "--verify", code=EXIT_NEEDS_OPERATOR)[0].splitlines()
    assert out[0] == "NOT WHOLE: line 1: its hash does not match: the line was changed"
    _, err = said(capsys, code=EXIT_NEEDS_OPERATOR)
    assert "NOT WHOLE" in err and "line 1" in err
    assert here.file.read_bytes() == data


def test_json_has_documented_keys(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    record = here.intent(ENTRY)
    answer = json.loads(said(capsys, "--json")[0])
    assert answer["good"] is True and answer["problem"] is None
    assert answer["head"] == {"chain": record.chain, "seq": 1, "h": record.h}
    assert answer["unsynced"] == {"dsv41": 1, "station": 0}
    (told,) = answer["records"]
    assert (told["argv"], told["at"], told["kind"]) == (list(ENTRY.argv), "2026-09-21T14:13:20.000Z", "intent")
    assert "records" not in json.loads(said(capsys, "--json", "--verify")[0])


def test_a_ledger_that_cannot_be_read_is_unknown(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    here.file.mkdir(parents=True)
    assert "not a file" in said(capsys, "--verify", code=EXIT_UNKNOWN)[1]


def test_what_was_put_there_by_others_reaches_no_terminal(here: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    here.intent(Entry("dsv41", "a\x1b]52;c;eA==\x07\u202e[bold]", argv=("\x1b[2J",)))
    assert "[bold]" in said(capsys)[0]
    here.file.write_bytes(here.file.read_bytes() + b"\x1b]0;title\x07\n")
    said(capsys, code=EXIT_NEEDS_OPERATOR)
    said(capsys, "--verify", code=EXIT_NEEDS_OPERATOR)
    said(capsys, "--json", code=EXIT_NEEDS_OPERATOR)
