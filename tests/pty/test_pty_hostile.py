"""Every byte that the console writes to a terminal while hosts, logs and files are hostile: its own and no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pty_console import PtyConsole
from sequences import Malformed, Token, odd, tokens

pytestmark = pytest.mark.pty
Start = Callable[..., PtyConsole]
OSC9 = {"osc": re.compile(r"9;[^\x00-\x1f\x7f-\x9f]+")}

HOSTILE = """
extends = "spark4"
title = "a fleet that is hostile"

[engines.dsv41]
model = "MARK-model \\u001b]52;c;aGFja2Vk\\u0007\\u001b]0;evil\\u0007\\u009b2J\\u202e[red]\\u001b[c"

[containers.sglang.env]
NCCL_MARK = "MARK-env \\u001b]8;;http://192.0.2.1/\\u001b\\\\link\\u001b]8;;\\u001b\\\\ \\u001bP+q544e\\u001b\\\\"
[containers.sglang.on.spark-1.env]
NCCL_MARK = "MARK-env2 \\u001b]9;call\\u0007\\u001b]777;notify;a;b\\u0007"
[containers.sglang.labels]
"MARK-label" = "\\u001b[c\\u001b[6n\\u001b[>q \\u001b[201~ [red]"

[processes.second]
hosts = ["spark-0"]
pid = 5150
command = ["bash", "launch/watchdog.sh", "MARK-process\\u001b[2J\\u001b[?1049l\\u009d0;x\\u009c"]

[files.name]
hosts = ["spark-3"]
path = "{held}/snapshots/{serving}/MARK-name\\u009d52;c;eA==\\u009c\\u009b2J\\u202e\\u007f.json"
text = "x"

[[faults]]
kind = "file"
host = "spark-0"
path = "{site}"
old = "LOG_DIR="
new = "MARK_KEY='\\u001b]52;c;eA==\\u0007\\u001b[31m'\\nMARK_RUN\\u001b[2J=1\\nLOG_DIR="
at = 3

[[faults]]
kind = "file"
host = "spark-0"
path = "~/sgl-watchdog.log"
old = "armed: "
new = "RECOVERY attempt 1/3 MARK-watchdog \\u001b]52;c;eA==\\u0007\\u001b[?1000h\\u0090q\\u009c "
at = 3

[[faults]]
kind = "file"
host = "spark-0"
path = "~/dsv41-engram-local-1017/engram-local.json"
old = "source"
new = "\\u001b]52;c;eA==\\u0007MARK-manifest"
at = 3
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[PtyConsole] = []

    def begin(*arguments: str, environment: dict[str, str] | None = None, **options: object) -> PtyConsole:
        home = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
        console = PtyConsole(*arguments, environment=home | (environment or {}), **options)  # type: ignore[arg-type]
        started.append(console)
        return console

    yield begin
    for console in started:
        console.finish()


def walk(console: PtyConsole) -> None:
    """Every pane zoomed, every screen, explanations, search, command line and a paste."""
    esc = b"\x1b"
    for digit in b"123456789":
        for keys in (bytes([digit]), b"z", b"x", esc, b"z"):
            console.type(keys)
            console.read(0.1)
    pasted = b"\x1b[200~\x1b]52;c;eA==\x07\x1b[2Jq\x1b[201~"
    for keys in (
        b"?",
        esc,
        b"l",
        b"/MARK\r",
        esc,
        b":events\r",
        b"/MARK\r",
        esc,
        b"/MARK\r",
        esc,
        b"a",
        b":",
        pasted,
        esc,
    ):
        console.type(keys)
        console.settle()


@pytest.mark.parametrize("picture", ["hostile", "hostile-reads"])
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60)])
def test_nothing_but_our_own_sequences_comes_of_hostile_pictures(
    start: Start, tmp_path: Path, picture: str, columns: int, rows: int
) -> None:
    notes = tmp_path / "notes"
    console = start("--picture", picture, "--notes", str(notes), columns=columns, rows=rows)
    console.until(lambda: notes.exists() and "follow" in notes.read_text(), "the start of the source")
    console.settle()
    walk(console)
    assert console.quit() == 0
    assert b"MARK" in console.output, "or nothing hostile was shown"
    assert odd(bytes(console.output)) == []


def test_nothing_but_our_own_sequences_comes_of_a_hostile_fleet(start: Start, tmp_path: Path) -> None:
    """From the hosts' own bytes, through ssh, Docker, HTTP and files, to the terminal."""
    scenario = tmp_path / "hostile.toml"
    scenario.write_text(HOSTILE, encoding="utf-8")
    program = ("-m", "console", "rehearse", str(scenario), "--speed", "1")
    console = start(columns=200, rows=60, program=program)
    console.until_output(b"MARK-watchdog")
    for mark in (b"MARK-env2", b"MARK-model"):
        walk(console)
        console.until(lambda mark=mark: mark in console.output or bool(console.type(b"x")), mark.decode())  # type: ignore[misc]
    assert console.quit() == 0
    allowed = odd(bytes(console.output), OSC9)
    assert allowed == []


# --- calls ----------------------------------------------------------------------------------------------------------


def called(console: PtyConsole) -> tuple[int, list[str]]:
    """Bells that rang, and notifications: bytes of their own, not the ends of other sequences."""
    found = list(tokens(bytes(console.output)))
    bells = sum(token == Token("control", "\x07") for token in found)
    return bells, [token.value for token in found if token.kind == "osc" and token.value.startswith(("9;", "777;"))]


CALLS = ("--step", "2.5", "--ticks", "40", "--tick", "0.05", "--turn", "30")


def done(console: PtyConsole, notes: Path) -> None:
    console.until(lambda: notes.exists() and "tick 40" in notes.read_text(), "forty ticks")
    console.settle()
    assert console.quit() == 0


@pytest.mark.parametrize(
    ("environment", "start_of_it"),
    [
        ({"TERM": "xterm-256color"}, "9;laneswap spark4: CRIT n3 free 2.9 of 119.7 GiB"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, "777;notify;laneswap;laneswap spark4: CRIT n3 free 2.9"),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, ""),
    ],
    ids=["xterm", "vte", "tmux"],
)
def test_each_new_critical_alarm_rings_once_and_notifies_once(
    start: Start, tmp_path: Path, environment: dict[str, str], start_of_it: str
) -> None:
    """Two hosts, one after the other: each once, however often it is read again."""
    notes = tmp_path / "notes"
    console = start("--notes", str(notes), *CALLS, environment=environment, columns=120, rows=40)
    done(console, notes)
    bells, notifications = called(console)
    assert bells == 2
    if not start_of_it:
        assert notifications == []
        return
    assert [text for text in notifications if text.startswith(start_of_it)] == notifications[:1]
    assert len(notifications) == 2 and "n1 free 2.9" in notifications[1]
    more = {"osc": re.compile(r"(?:9|777);[^\x00-\x1f\x7f-\x9f]+"), "control": re.compile("\x07")}
    assert odd(bytes(console.output), more) == []


def test_what_is_wrong_at_the_start_rings_nobody(start: Start, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    calls = (*CALLS[:-1], "2")
    console = start("--notes", str(notes), *calls, columns=120, rows=40)
    console.until_output(b"CRIT")
    done(console, notes)
    assert called(console) == (0, [])


# --- the reader itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b]52;c;eA==\x07", b"\x1b]0;title\x1b\\", b"\x1b[2J\x1b[6n", b"\x1b[c", b"\x1bP+q544e\x1b\\", b"\x07",
        "\u009b2J".encode(), "\u202e".encode(), "a\u200bb".encode(), b"\x1bc", b"\x1b[?47h", b"\x1b]9;x\x07",
        b"\x1b[201~", b"\x1b]8;;http://x\x1b\\", b"\x00", b"\x1b[>q",
    ],
)  # fmt: skip
def test_the_reader_sees_what_must_not_come(data: bytes) -> None:
    assert odd(b"before" + data + b"after") != []


@pytest.mark.parametrize("data", [b"\x1b]0;never ends", b"\x1b[31", b"\x1b", b"\x1b]9;a\x1b]9;b\x07"])
def test_the_reader_takes_nothing_that_is_not_whole(data: bytes) -> None:
    with pytest.raises(Malformed):
        odd(data)


def test_the_reader_lets_our_own_through() -> None:
    ours = b"\x1b[?1049h\x1b[?25l\x1b[1;31;48;2;1;2;3mtext\x1b[0m\x1b[12;40H\x1b]22;default\x1b\\\x1b[?2026h\r\n"
    assert odd(ours + "宽 é ■".encode()) == []
