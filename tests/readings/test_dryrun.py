"""Dry runs of a launcher, compared: expected lines, site drift, surprises, ranks that are missing or did not change."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings import dryrun
from console.readings.dryrun import Difference, Differences, DryRun, Expected, compare, parse_dry_run

FLEET = Path(__file__).parents[1] / "data" / "fleet"
CURRENT, CANDIDATE, ABORT = (
    (FLEET / f"dry-run.{name}.rendered.txt").read_text() for name in ("current", "candidate", "abort")
)
OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
SWITCH = Expected(OLD, NEW, "dsv41-engram-local", "dsv41-engram-local-1017", 4, 1)
PATHS = (f"/models/repo/snapshots/{OLD}", f"/models/repo/snapshots/{NEW}")
ABORTED = (
    "rank 2: cannot ssh to bob@192.0.2.13: ssh: connect to host 192.0.2.13 port 22: No route to host "
    "(check NODES/USERS in /home/alice/recipes/launch/fleet.env and key-based ssh from this node)"
)


def compared(current: str, candidate: str, expected: Expected = SWITCH) -> Differences:
    return compare(parse_dry_run(current), parse_dry_run(candidate), expected)


def test_each_rank_has_its_command_in_words() -> None:
    found = parse_dry_run(CURRENT)
    assert (sorted(found.ranks), found.aborted) == ([0, 1, 2, 3], "")
    assert found.ranks[2][:6] == ("mkdir", "-p", "/home/bob/sgl-dsv41-cache", ";", "docker", "run")
    assert found.ranks[2][-2:] == ("--default-chat-template-kwargs", '{"thinking":true}')


def test_a_switch_changes_the_model_path_and_the_rows_and_nothing_else() -> None:
    found = compared(CURRENT, CANDIDATE)
    homes = {0: "alice", 2: "bob", 3: "bob"}
    rows = "/home/{}/dsv41-engram-local"
    wanted = []
    for rank in range(4):
        if rank == 1:
            wanted.append(Difference(1, "-e SPARK_ENGRAM_DIR", *PATHS))
        else:
            before = rows.format(homes[rank])
            wanted.append(Difference(rank, "-v /engram-local", f"{before}:ro", f"{before}-1017:ro"))
        wanted.append(Difference(rank, "--model-path", *PATHS))
    assert found == Differences(expected=tuple(wanted))
    assert found.fine
    assert found.lines()[1] == f"expected rank 0: --model-path: {PATHS[0]} -> {PATHS[1]}"


def test_an_abort_has_its_words_and_is_no_comparison() -> None:
    assert parse_dry_run(ABORT) == DryRun({}, ABORTED)
    found = compared(CURRENT, ABORT)
    assert found == Differences(aborted=f"candidate: {ABORTED}")
    assert not found.fine
    assert compared(CURRENT + "\nABORT: rank 3: no RoCE v2 GID for x", CANDIDATE).aborted == (
        "present site file: rank 3: no RoCE v2 GID for x"
    )
    assert parse_dry_run("").aborted == "no rank's command in it"
    assert parse_dry_run("bash: x: No such file\n").aborted == "no rank's command in it: bash: x: No such file"


def test_a_gid_that_moved_is_site_drift() -> None:
    parts = CANDIDATE.split("== rank 3")
    moved = parts[0] + "== rank 3" + parts[1].replace("GID_INDEX=3", "GID_INDEX=5")
    found = compared(CURRENT, moved)
    assert found.site_drift == (
        Difference(3, "-e B12X_ROCE_GID_INDEX", "3", "5"),
        Difference(3, "-e NCCL_IB_GID_INDEX", "3", "5"),
    )
    assert found.fine and len(found.expected) == 8


@pytest.mark.parametrize(
    ("old", "new", "surprise"),
    [
        ("--mem-fraction-static 0.80", "--mem-fraction-static 0.85", ("--mem-fraction-static", "0.80", "0.85")),
        ("-e SPARK_ROCE_AR=1", "-e SPARK_ROCE_AR=1 -e KNOB=2", ("-e KNOB", "", "2")),
        ("--trust-remote-code ", "", ("--trust-remote-code", "(set)", "")),
        (":/models/repo:ro", ":/models/repo", ("-v /models/repo", "/mnt/dsv41:ro", "/mnt/dsv41")),
        ("-1017:/engram-local:ro", "-1017:/engram-local", None),
        ("production-1.7.1 ", "production-1.8 ", None),
        ('{"thinking":true}', '{"thinking":false}', None),
        ("GID_INDEX=3", "GID_INDEX=", ("-e B12X_ROCE_GID_INDEX", "3", "")),
        (
            "-e HOST_IP=192.0.2.14 ",
            "-e HOST_IP=192.0.2.14\x1b[2J ",
            ("-e HOST_IP", "192.0.2.14", "192.0.2.14\ufffd[2J"),
        ),
    ],
)
def test_anything_else_is_a_surprise(old: str, new: str, surprise: tuple[str, str, str] | None) -> None:
    parts = CANDIDATE.split("== rank 3")
    assert old in parts[1]
    found = compared(CURRENT, parts[0] + "== rank 3" + parts[1].replace(old, new))
    assert not found.fine
    assert found.surprises and {item.rank for item in found.surprises} == {3}
    if surprise is not None:
        assert Difference(3, *surprise) in found.surprises
    assert found.lines()[0].startswith("SURPRISE rank 3: ")


def test_rows_in_another_folder_or_of_another_rank_are_surprises() -> None:
    found = compared(CURRENT, CANDIDATE.replace("/home/bob/dsv41-engram-local-1017", "/data/dsv41-engram-local-1017"))
    assert [item.rank for item in found.surprises] == [2, 3]
    holder = SWITCH._replace(holder=2)
    found = compared(CURRENT, CANDIDATE, holder)
    assert [(item.rank, item.name) for item in found.surprises] == [
        (1, "-e SPARK_ENGRAM_DIR"),
        (2, "-v /engram-local"),
    ]


def test_words_in_another_order_are_a_surprise() -> None:
    swapped = CANDIDATE.replace("--ipc host --cap-add IPC_LOCK", "--cap-add IPC_LOCK --ipc host")
    assert {item.name for item in compared(CURRENT, swapped).surprises} == {"order of the words"}


def test_a_rank_that_is_missing_or_that_the_edit_does_not_reach_is_told() -> None:
    ranks = CANDIDATE.split("== rank ")
    found = compared(CURRENT, "== rank ".join(ranks[:-1]))
    assert (found.missing_ranks, found.fine) == ((3,), False)
    stays = CURRENT.split("== rank ")
    found = compared(CURRENT, "== rank ".join([*ranks[:3], stays[3], ranks[4]]))
    assert found.unchanged == (
        f"rank 2: --model-path is {PATHS[0]}, not of {NEW}",
        "rank 2: -v /engram-local is /home/bob/dsv41-engram-local:ro, not of dsv41-engram-local-1017",
    )
    assert not found.fine and not found.surprises


def test_a_file_that_is_as_wanted_already_differs_in_nothing() -> None:
    found = compared(CANDIDATE, CANDIDATE)
    assert found == Differences() and found.fine
    assert not compared(CURRENT, CURRENT).fine


def test_rows_with_an_absolute_folder() -> None:
    before = CURRENT.replace("/home/bob/dsv41-engram-local", "/data/a").replace(
        "/home/alice/dsv41-engram-local", "/data/a"
    )
    after = CANDIDATE.replace("/home/bob/dsv41-engram-local-1017", "/data/b").replace(
        "/home/alice/dsv41-engram-local-1017", "/data/b"
    )
    found = compared(before, after, SWITCH._replace(rows_old="/data/a", rows_new="/data/b"))
    assert found.fine and len(found.expected) == 8


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8), max_size=8))
def test_words_are_split_as_a_shell_does(words: list[str]) -> None:
    text = "== rank 0\n" + shlex.join(["docker", *words])
    assert parse_dry_run(text).ranks[0] == ("docker", *words)


@given(st.text(max_size=300))
def test_no_text_is_too_odd(text: str) -> None:
    for found in (compared(text, text), compared(f"== rank 0\n{text}", f"== rank 0\n{text[::-1]}")):
        assert all(row.isprintable() for row in found.lines())


# --- the same file on a host ------------------------------------------------------------------------------------------


def sent(tmp_path: Path, current: str, candidate: str, statuses: tuple[str, str] = ("0", "0")) -> tuple[int, str]:
    """Exit status and words of the module as it runs on a head, without the rest of laneswap."""
    script, one, other = tmp_path / "check.py", tmp_path / "present", tmp_path / "candidate"
    script.write_text(Path(dryrun.__file__).read_text())
    one.write_text(current)
    other.write_text(candidate)
    expected = [str(word) for word in SWITCH]
    command = [sys.executable, "-I", str(script), str(one), statuses[0], str(other), statuses[1], *expected]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("candidate", "status"),
    [
        (CANDIDATE, 0),
        (CANDIDATE.replace("0.80", "0.85"), 1),
        (CURRENT, 1),
        (ABORT, 2),
        (CANDIDATE.replace("GID_INDEX=4", "GID_INDEX=6"), 0),
    ],
)
def test_the_head_comes_to_the_same_answer(tmp_path: Path, candidate: str, status: int) -> None:
    found = compared(CURRENT, candidate)
    assert sent(tmp_path, CURRENT, candidate) == (status, "\n".join(found.lines()) + "\n")
    assert found.fine == (status == 0)


def test_a_dry_run_that_failed_without_an_abort_is_aborted(tmp_path: Path) -> None:
    assert sent(tmp_path, CURRENT, CANDIDATE, ("0", "127")) == (2, "ABORTED candidate: ended with exit 127\n")
    assert sent(tmp_path, CANDIDATE, CANDIDATE) == (0, "nothing differs, as wanted\n")


def test_the_file_that_is_sent_needs_nothing_of_laneswap() -> None:
    tree = ast.parse(Path(dryrun.__file__).read_text(), feature_version=(3, 8))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported == {"__future__", "collections.abc", "re", "sys", "typing"}
