"""Processes of hosts, in our rows and as `ps` prints them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.processes import Process, parse_processes, safe_command, unseen

PS = """\
  PID  PPID STAT     ELAPSED COMMAND
 7001     1 Sl      01:12:09 /home/ops/venv/bin/python3 /home/ops/venv/bin/hf download org/m --revision abc
 7444     1 Sl      00:09:30 /home/ops/venv/bin/python3 /home/ops/venv/bin/hf download org/m --revision abc
 7450     1 S       00:09:28 sh -c while :; do cat /proc/meminfo; sleep 2; done
 7502  7444 Z       00:03:00 [python3] <defunct>
 7600  7599 R+      00:00:00 ps -eo pid,ppid,stat,etime,args
"""
LSTART = """\
  PID                  STARTED COMMAND
 5151 Sun Oct 18 08:10:31 2026 rsync --server -vlogDtpre.iLsfxC . /models/stage
"""


def test_rows_of_ours() -> None:
    text = (
        "ok clock=100 boot=1761000000\n"
        "41\t1\tS\t1761000012.34\t1000\t4096\t-\tbash /opt/sgl-watchdog.sh --every 60\n"
        "42\t41\tZ\t-\t0\t-\t-\t[hf] <defunct>\n"
        "x\t1\tS\t1\t1\t1\t1\tno number\n\nshort\n"
    )
    first, second = parse_processes(text) or ()
    assert first == Process(
        41, 1, "S", "bash /opt/sgl-watchdog.sh --every 60", started=1761000012.34, uid=1000, read=4096
    )
    assert (second.started, second.uid, second.read, second.alive, first.alive) == (None, 0, None, False, True)


def test_none_found_is_not_the_same_as_not_asked() -> None:
    assert parse_processes("ok clock=100 boot=1761000000\n") == ()
    assert parse_processes("ok clock=100 boot=1761000000 hidden=1\n") is None
    assert parse_processes("ok clock=100 boot=1 hidden=1\n1\t0\tS\t1\t0\t-\t-\tinit\n") == (
        Process(1, 0, "S", "init", started=1.0, uid=0),
    )
    for text in ("denied", "missing\n", "error no /proc"):
        assert parse_processes(text) is None


def test_processes_that_may_be_there_unseen_are_said() -> None:
    row = "1\t0\tS\t1\t0\t-\t-\tinit\n"
    assert unseen(parse_processes(f"ok clock=1 boot=1\n{row}")) == ""
    assert (
        unseen(parse_processes(f"ok clock=1 boot=1 hidden=1\n{row}")) == "others' processes are hidden from this user"
    )
    assert unseen(parse_processes(f"ok clock=1 boot=1 truncated=1\n{row}")) == "only 1 of those that fit were told"
    assert unseen(parse_processes(PS)) == "" and unseen(()) == "" and unseen(None) == ""


def test_a_table_with_elapsed_times() -> None:
    found = parse_processes(PS) or ()
    assert [(item.pid, item.ppid, item.state, item.elapsed, item.alive) for item in found] == [
        (7001, 1, "Sl", 4329.0, True),
        (7444, 1, "Sl", 570.0, True),
        (7450, 1, "S", 568.0, True),
        (7502, 7444, "Z", 180.0, False),
        (7600, 7599, "R+", 0.0, True),
    ]
    assert found[0].command == "/home/ops/venv/bin/python3 /home/ops/venv/bin/hf download org/m --revision abc"
    assert found[2].command == "sh -c while :; do cat /proc/meminfo; sleep 2; done"
    assert all(item.started is None for item in found)
    assert (parse_processes("PID ELAPSED COMMAND\n1 12-03:04:05 init\n") or ())[0].elapsed == 1047845.0


def test_a_table_with_start_times() -> None:
    (process,) = parse_processes(LSTART) or ()
    assert process.pid == 5151
    assert process.command == "rsync --server -vlogDtpre.iLsfxC . /models/stage"
    assert process.started == datetime(2026, 10, 18, 8, 10, 31, tzinfo=UTC).timestamp()
    (odd,) = parse_processes("PID STARTED COMMAND\n12 08:10:31 sleep 5\n") or ()
    assert (odd.started, odd.command) == (None, "sleep 5"), "the short form of another ps names no day"
    assert parse_processes("PID STARTED COMMAND\n12 Sun Feb 31 08:10:31 2026 sleep 5") == (
        Process(12, 0, "", "sleep 5"),
    )


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("hf download org/m --token hf_abc", "hf download org/m --token ***"),
        ("hf download --token=hf_abc org/m", "hf download --token=*** org/m"),
        ("sh -c HF_TOKEN=abc hf download", "sh -c HF_TOKEN=*** hf download"),
        ("sh -c export OPENAI_API_KEY=sk-1; x", "sh -c export OPENAI_API_KEY=*** x"),
        ("curl https://ops:pass@host/x", "curl https://ops:***@host/x"),
        ("curl -H Authorization: Bearer abc", "curl -H Authorization: Bearer ***"),
        ("x hf_AbCdEfGhIjKlMnOpQrStUv y", "x hf_*** y"),
        ("rsync a:/b c", "rsync a:/b c"),
        ("a\x1b]0;t\x07b", "ab"),
    ],
)
def test_secrets_are_hidden(command: str, shown: str) -> None:
    assert safe_command(command) == shown


words = st.one_of(
    st.sampled_from(["PID", "COMMAND", "STARTED", "1", "-", "Z", "9" * 40, "01:02"]), st.text(max_size=20)
)


@given(st.lists(st.lists(words, max_size=10), max_size=6), st.sampled_from(["\t", " "]), st.booleans())
def test_hostile_text(rows: list[list[str]], between: str, answered: bool) -> None:
    text = "\n".join(between.join(row) for row in rows)
    for process in parse_processes("ok clock=1\n" + text if answered else text) or ():
        assert process.command.isprintable() and process.state.isprintable()
        assert process.pid >= 0
