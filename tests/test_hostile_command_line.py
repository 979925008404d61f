"""Command lines, fleet files and streams that nobody sane would give: one clear message, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.actions.keymap import KeymapError, load_keymap
from console.cli import run
from console.fleet.inventory import FleetError, load, parse
from console.fleet.recipe import load_recipe
from console.fleet.tomlfile import MOST_BYTES, TomlUnreadable, read_toml
from console.rehearsal.scenario import ScenarioError, load_scenario

GOOD = """
name = "here"
[hosts]
h = { ssh = "local", docker = "" }
[lanes.x]
recipe = "vllm-docker"
url = "http://127.0.0.1:9"
head = "h"
"""
CLIPBOARD = "\\u001b]52;c;ZXZpbA==\\u0007"

ODD_FILES = {
    "nested": b"a = " + b"[" * 5000,
    "a number of 6000 digits": b"a = " + b"9" * 6000,
    "a year too far": b"a = 99999-01-01",
    "not text": b"\xff\xfe\x00\x01",
    "too large": b"#" * (MOST_BYTES + 1),
    "a NUL": b"a = 1\x00",
}


@pytest.mark.parametrize("what", ODD_FILES)
def test_no_file_makes_a_reader_of_toml_raise_anything_but_its_own_error(what: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.toml"
    file.write_bytes(ODD_FILES[what])
    with pytest.raises(FleetError, match=r"odd\.toml: (not valid TOML|cannot be read)"):
        load(file)
    with pytest.raises(FleetError, match=r"odd\.toml: recipe"):
        load_recipe(str(file))
    with pytest.raises(KeymapError):
        load_keymap(file)
    with pytest.raises(ScenarioError):
        load_scenario(str(file))


def test_a_file_that_never_ends_is_not_read_to_its_end() -> None:
    with pytest.raises(TomlUnreadable, match="larger than"):
        read_toml(Path("/dev/zero"))
    with pytest.raises(TomlUnreadable, match="cannot be read: a folder, not a file"):
        read_toml(Path("/"))


@pytest.mark.parametrize(
    "url",
    ["http://h:99999", "http://h:abc", "http://h:-1", "http://h:0", "http://[::1", "http://h/?x", "http://h/#x"],
)
def test_a_url_without_a_usable_port_is_said_at_once(url: str) -> None:
    with pytest.raises(FleetError, match=r"lanes\.x\.url"):
        parse(GOOD.replace("http://127.0.0.1:9", url))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('name = "here"', f'name = "here"\noperator = "{CLIPBOARD}"', "operator"),
        ('head = "h"', f'head = "h"\nserved = "a{CLIPBOARD}"', "lanes.x.served"),
        ('head = "h"', 'head = "h"\nconsumers = ["ok", "\\u202eevil"]', "lanes.x.consumers[1]"),
        ('head = "h"', 'head = "h"\ncontainers = "a\\u200bb"', "lanes.x.containers"),
        ('"local"', '"a\\u009b2Jb"', "hosts.h.ssh"),
        ("[hosts]", f'[hosts]\n"q{CLIPBOARD}" = {{ ssh = "q" }}', "hosts.q"),
    ],
)
def test_texts_of_a_fleet_file_hold_no_control_characters(
    old: str, new: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace(old, new, 1))
    assert run(["status", "-f", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{key}: control or invisible characters" in said
    assert all(row.isprintable() for row in said.splitlines())


def test_brackets_and_other_scripts_stay_allowed() -> None:
    fleet = parse(GOOD.replace('head = "h"', 'head = "h"\nconsumers = ["Milo [@click=app.quit]", "後端 é"]'))
    assert fleet.lanes["x"].consumers == ("Milo [@click=app.quit]", "後端 é")


def test_a_file_name_reaches_the_terminal_as_safe_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "-f", "/nowhere/\x1b]0;x\x07a.toml"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("laneswap: /nowhere/a.toml: no such file") and said.strip().isprintable()


@pytest.mark.parametrize("value", ["nan", "0", "-1", "-inf"])
def test_times_that_are_no_times_are_a_usage_error(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rehearse", "--headless", f"--seconds={value}"]) == 2
    assert run(["status", f"--wait={value}", "-f", "/nowhere/fleet.toml"]) == 2
    assert "more than 0 seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["do", "x", "stop", "--wait=0"], "--wait: more than 0 seconds"),
        (["do", "x", "stop", "--wait=nan"], "--wait: more than 0 seconds"),
        (["attach", "x", "--wait=-1"], "--wait: more than 0 seconds"),
        (["window", "show", "x", "--wait=inf"], "--wait: more than 0 seconds"),
        (["do", "x", "stop", "--drain=nan"], "--drain: from 0 to 86400 seconds"),
        (["plan", "x", "stop", "--drain=inf"], "--drain: from 0 to 86400 seconds"),
        (["do", "x", "stop", "--drain=-1"], "--drain: from 0 to 86400 seconds"),
    ],
)
def test_times_of_what_acts_are_times(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    assert run([*words, "-f", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_what_cannot_be_read_of_a_lane_is_not_told_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged lease is no free lane, a damaged `current` no lane without operations."""
    monkeypatch.setenv("LANESWAP_STATE", str(tmp_path / "own"))
    file, lane = tmp_path / "fleet.toml", tmp_path / "state" / "here.x"
    file.write_text(GOOD.replace('name = "here"', f'name = "here"\nstate = "{lane.parent}"'))
    lane.mkdir(parents=True)
    (lane / "lease").write_text("\x1b]52;c;ZXZpbA==\x07[red]")
    assert run(["window", "show", "x", "-f", str(file)]) == 3
    said = capsys.readouterr().out
    assert "NOT WHOLE" in said and "lease is damaged: somebody may hold the lane" in said
    assert "lease      not known: its file is damaged" in said and said.replace("\n", "").isprintable()
    (lane / "lease").unlink()
    (lane / "current").mkdir()
    assert run(["attach", "x", "-f", str(file)]) == 3
    assert "no operation to follow: none is known on this lane; current: not a file" in capsys.readouterr().err


def started(file: Path, shell: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """`laneswap status` on a fleet of this machine, its streams as the shell words say."""
    command = f'exec "$0" -m console status --wait 20 -f "$1" {shell}'
    arguments = ["/bin/sh", "-c", command, sys.executable, str(file)]
    return subprocess.run(arguments, env=os.environ | env, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("shell", "status", "said"),
    [
        (">&-", 1, b""),
        ("<&- >&- 2>&-", 1, b""),
        (">/dev/full", 1, b"laneswap: [Errno 28] No space left on device"),
        ("<&-", 1, b""),
    ],
)
def test_closed_and_full_streams_are_no_traceback(shell: str, status: int, said: bytes, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    done = started(file, shell)
    assert (done.returncode, done.stderr.strip()) == (status, said)


def test_a_terminal_without_utf_8_gets_escapes_and_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    done = started(file, "", PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and done.stderr == b""
    assert done.stdout.isascii() and b"lane x: DOWN" in done.stdout


def test_what_libraries_log_never_reaches_the_terminal() -> None:
    """asyncio warns of sockets that closed, in a line each; the texts of hosts stand in what it logs of faults."""
    code = (
        "import logging; from console.cli import run; run(['keys']);"
        "[logging.getLogger(name).error('odd') for name in ('asyncio', 'urllib3', 'asyncssh', 'laneswap.feed')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
