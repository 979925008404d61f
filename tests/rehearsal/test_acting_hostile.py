"""What a host that can be acted on refuses: every text but the console's own, and every way out of its folder."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_embedded_fleet import connected, shell

from console.actions.probes import whole
from console.actions.scripts import script as action_script
from console.execution import sequence_reach
from console.execution.runner_base import ONCE
from console.execution.scripts import script
from console.reach.shell import guarded
from console.rehearsal import Rehearsal
from console.rehearsal.acting import host as acting
from console.rehearsal.acting import known as recognising
from console.rehearsal.acting.asking import taken_apart
from console.rehearsal.acting.known import SHARED, known, shipped

D = "/var/tmp/laneswap/station.station"
OP = "20261201T000000Z-stop-abc123"
PLAYED_ELSEWHERE = {
    *acting.REAL,
    "fence",
    "starter",
    "reader",
    "once",
    "look",
    "wait",
    "aside",
    "reach",
    "deadman",
}
"""Scripts of the state folder and of steps: run for real in the host's folder, or played by `Units`."""


@pytest.fixture(scope="module")
async def station() -> AsyncIterator[Rehearsal]:
    async with Rehearsal("station", 60) as rehearsal:
        yield rehearsal


def test_every_script_that_the_console_may_send_has_a_twin() -> None:
    missing = [name for name in shipped() if name not in acting.TWINS and name not in PLAYED_ELSEWHERE]
    assert sorted(missing) == sorted(SHARED)  # parts of others: in front of each, or sent along with the edit
    names = {path.name for path in Path(recognising.__file__).parents[2].joinpath("actions/scripts").iterdir()}
    assert {name for name in names if name.endswith((".sh", ".py")) and name[0] != "_"} < set(shipped())


@pytest.mark.parametrize("name", [name for name in shipped() if name.endswith(".sh") and name not in SHARED])
def test_every_script_of_the_plans_is_recognised_and_not_with_a_byte_more(name: str) -> None:
    text = action_script(name) if name == "site_is.sh" else whole(name)
    if name in ("dry_run.sh", "rows_build.sh"):
        assert known(("sh", "-s", "--", "a"), text) is None  # it comes with data of ours before it, or not at all
        return
    found = known(("sh", "-s", "--", "a", "b"), text)
    assert found is not None and (found.name, found.args) == (name, ("a", "b"))
    assert known(("sh", "-s", "--", "a"), text + "\n") is None
    assert known(("sh", "-s", "--", "a"), " " + text) is None
    assert known(("bash", "-s", "--", "a"), text) is None


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS, st.integers(1, 600))
@settings(max_examples=200, deadline=None)
def test_what_the_console_frames_is_taken_apart_to_the_same_words(argv: list[str], stdin: str, limit: int) -> None:
    framed = guarded(argv, stdin=stdin, limit=float(limit))
    found = taken_apart(framed.script.encode())
    assert found is not None
    assert (found.argv, found.stdin, found.limit, found.nonce) == (tuple(argv), stdin, float(limit), framed.nonce)


@given(st.integers(0, 2000), st.sampled_from([";", "$(id)", "`id`", "\n", "&", "|", "'", "x"]))
@settings(max_examples=300, deadline=None)
def test_a_frame_with_anything_put_into_it_is_never_taken_for_ours(at: int, put: str) -> None:
    text = guarded(["sh", "-s", "--", "a b", "c"], stdin="echo 'x'\n", limit=5).script
    at %= len(text)
    changed = text[:at] + put + text[at:]
    found = taken_apart(changed.encode())
    if found is not None:  # it went into a word of ours: then it is that word, and nothing else
        framed = guarded(found.argv, stdin=found.stdin, limit=found.limit)
        assert framed.script.replace(framed.nonce, found.nonce) == changed


HOSTILE: list[tuple[str, list[str], str]] = [
    ("a program", ["touch", "{mark}"], ""),
    ("a shell line", ["sh", "-c", "touch {mark}"], ""),
    ("a script that is none of ours", ["sh", "-s", "--", "x"], "touch {mark}\n"),
    ("ours with a line more", ["sh", "-s", "--", D], script("statedir") + "touch {mark}\n"),
    ("an interpreter", ["python3", "-I", "-"], "open('{mark}', 'w')"),
    ("a program behind the fence", ["sh", "-c", script("fence"), "laneswap", D, "1", "--", "touch", "{mark}"], ""),
    (
        "a shell behind the fence",
        ["sh", "-c", script("fence"), "laneswap", D, "1", "--", "sh", "-c", "touch {mark}"],
        "",
    ),
    ("a claimed program", ["sh", "-c", ONCE, "laneswap", D, OP, "x", "touch", "{mark}"], ""),
    (
        "a detached program",
        [
            "sh",
            "-c",
            script("starter"),
            "laneswap",
            "start",
            D,
            OP,
            "x",
            "1",
            "auto",
            "0",
            "9",
            "-",
            "--",
            "touch",
            "{mark}",
        ],
        "",
    ),
    (
        "a starter within a fence",
        [
            *("sh", "-c", script("fence"), "laneswap", D, "1", "--"),
            *("sh", "-c", script("starter"), "laneswap", "start", D, OP, "x", "1", "auto", "0", "9", "-", "--"),
            *("sh", "-c", "touch {mark}"),
        ],
        "",
    ),
    ("a try of ssh that is none", ["sh", "-s", "--", "12"], sequence_reach._TRY + "(touch {mark}) &\nwait\n"),
    ("a try with a word more", ["sh", "-s", "--", "12"], sequence_reach._TRY + "(try a 0 ssh; touch {mark}) &\nwait\n"),
    ("data before a script", ["sh", "-s", "--", "x"], "check=$(touch {mark})\n" + action_script("rows_build.sh")),
    ("another check", ["sh", "-s", "--", "x"], "check='touch {mark}'\n" + action_script("rows_build.sh")),
    (
        "an edit with other code",
        ["python3", "-I", "-", "p", "o", "n", "bash", "--"],
        action_script("site_edit.py") + "\n\nimport sys\n\nsys.exit(main(sys.argv[1:], open('{mark}', 'w'), ''))\n",
    ),
    ("another runner", ["python3", "-I", "-S", "/tmp/x/runner.py", "run", "/tmp/y"], ""),
]


@pytest.mark.parametrize(("argv", "stdin"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
async def test_a_command_that_is_not_the_consoles_own_is_refused(
    station: Rehearsal, tmp_path: Path, argv: list[str], stdin: str
) -> None:
    mark = tmp_path / "mark"
    words = [word.replace("{mark}", str(mark)) for word in argv]
    done = await asked(station, words, stdin.replace("{mark}", str(mark)))
    assert done.exit_status in (5, 126) and "only the console's own" in str(done.stderr)
    assert not mark.exists()
    assert not any(str(mark) in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


async def asked(station: Rehearsal, argv: Sequence[str], stdin: str = "") -> Any:
    async with connected(station, "station") as connection:
        return await shell(connection, guarded(argv, stdin=stdin, limit=10).script)


def stdin_script(name: str, *args: str) -> tuple[list[str], str]:
    return ["sh", "-s", "--", *args], whole(name)


OUTSIDE = [
    (["sh", "-c", script("put"), "laneswap", "/tmp/{name}", "1", "x", "1"], "y"),
    (["sh", "-c", script("put"), "laneswap", "/var/tmp/laneswap/../../../../../tmp/{name}", "1", "x", "1"], "y"),
    (["sh", "-c", script("put"), "laneswap", D, "1", "../../../../../../../../tmp/{name}", "1"], "y"),
    (["sh", "-s", "--", "/tmp/{name}/deep"], script("statedir")),
    stdin_script("flag_set.sh", "/../../../../../tmp/{name}", "words"),
    stdin_script("evidence.sh", "/../../../../../../tmp/{name}", "5", "all", "/var/run/docker.sock"),
    (["sh", "-c", script("starter"), "laneswap", "stop", "/tmp/{name}", OP, "x"], ""),
    (["sh", "-c", script("starter"), "laneswap", "stop", D, "../../../../tmp", "x"], ""),
]


@pytest.mark.parametrize(("argv", "stdin"), OUTSIDE, ids=[str(number) for number in range(len(OUTSIDE))])
async def test_no_path_leads_out_of_the_hosts_own_folder(station: Rehearsal, argv: list[str], stdin: str) -> None:
    name = f"laneswap-test-{os.getpid()}"
    words = [word.replace("{name}", name) for word in argv]
    done = await asked(station, words, stdin)
    assert done.exit_status not in (0, None)
    assert name not in os.listdir("/tmp")
    assert station.root is not None and name not in os.listdir(station.root.parent)
    assert not list(station.root.glob(f"**/{name}"))


async def test_a_link_in_the_state_folder_is_not_followed(station: Rehearsal, tmp_path: Path) -> None:
    assert station.root is not None
    state = station.root / "station/var/tmp/laneswap"
    state.mkdir(parents=True, exist_ok=True)
    (state / "station.link").symlink_to(tmp_path)
    done = await asked(station, ["sh", "-c", script("put"), "laneswap", f"{D[:-8]}.link", "1", "x", "1"], "y")
    assert done.exit_status == 5
    assert not os.listdir(tmp_path)


async def test_a_pid_of_this_machine_is_never_signalled(station: Rehearsal) -> None:
    """The script that ends a watchdog is told our own number, and the pattern of our own command line."""
    mine = psutil.Process().name()
    argv, stdin = stdin_script("watchdog_end.sh", str(os.getpid()), "-", mine, mine, f"{D}/ops/{OP}/evidence")
    done = await asked(station, argv, stdin)
    assert done.exit_status == 0 and "none runs" in str(done.stdout)


async def test_the_state_folder_of_a_host_is_its_own(station: Rehearsal) -> None:
    words = "a word's worth; $(id) `id`\n"
    put = ["sh", "-c", script("put"), "laneswap", D, "3", "notes/one", str(len(words))]
    assert (await asked(station, put, words)).exit_status == 0
    assert station.root is not None
    assert (station.root / f"station{D}/notes/one").read_text() == words
    read = await asked(station, ["sh", "-s", "--", D, "notes/one", "0", "100"], script("read"))
    data = next(row for row in str(read.stdout).splitlines() if row.startswith("data="))
    assert base64.b64decode(data.removeprefix("data=")).decode() == words
    older = await asked(station, ["sh", "-c", script("put"), "laneswap", D, "2", "notes/one", "1"], "z")
    assert older.exit_status == 4 and "fenced off" in str(older.stderr)
    assert "/var/tmp/laneswap" not in shlex.join(sorted(os.listdir("/var/tmp")))
