"""What may happen while a site file is edited: it is the old one or the new one, whole, whatever does."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from site_hosts import CLEAN, beside, carry_out, carry_out_hooked

from console.actions.plan import Step
from console.actions.site_steps import site_edit_step

OLD = "snapshots/0123456789abcdef0123456789abcdef01234567"
NEW = "snapshots/89abcdef0123456789abcdef0123456789abcdef"
OTHER = "snapshots/" + "7" * 40
SAMPLE = Path(__file__).parents[1] / "data" / "fleet" / "fleet.env.sample"
CHANGING = "open,write,fsync,rename,unlink,utime,fchmod,pread,lstat"
"""Functions of `os` between whose calls the edit is killed."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The site file, with a mode that no default gives."""
    found = tmp_path / "launch" / "fleet.env"
    found.parent.mkdir()
    shutil.copy(SAMPLE, found)
    found.chmod(0o640)
    return found


def edit(path: Path, revision: str = NEW) -> Step:
    """The edit of the file as it is now."""
    return site_edit_step("h", str(path), path.read_bytes(), {"SNAP": revision})


def test_killed_between_any_two_calls_the_file_is_old_or_new_and_the_next_run_finishes(path: Path) -> None:
    before = path.read_bytes()
    step = edit(path)
    seen = []
    for number in range(1, 200):
        path.write_bytes(before)
        for name in beside(path):
            (path.parent / name).unlink()
        done = carry_out_hooked(step, "kill", number, CHANGING)
        now = path.read_bytes()
        assert now in (before, before.replace(OLD.encode(), NEW.encode())), f"call {number}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        seen.append(now == before)
        if done.returncode != -9:
            assert (done.returncode, seen[-1]) == (0, False), done.stderr
            break
        again = carry_out(step)
        assert again.returncode == 0, again.stderr
        assert path.read_bytes() == before.replace(OLD.encode(), NEW.encode())
        names = beside(path)
        assert not [name for name in names if name.endswith(".tmp")]
        whole = [name for name in names if (path.parent / name).read_bytes() == before]
        assert whole, "the old file is kept"
    assert number > 12 and seen == sorted(seen, reverse=True)
    assert seen.count(False) > 1, "also killed after the swap"


def test_a_full_disk_leaves_all_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    step = edit(path)
    for number in range(1, 20):
        done = carry_out_hooked(step, "full", number, "write,fsync")
        if done.returncode == 0:
            break
        assert done.returncode == 5
        if path.read_bytes() != before:
            break
        assert done.stderr.endswith("the disk is full: nothing was changed\n")
        assert beside(path) == []
    assert number == 6, "two files with two calls each, and the folder before the swap"
    assert done.stderr.startswith(f"{path} is the new one, unproved (No space left on device); the old one is {path}.2")


def test_of_two_edits_at_once_one_wins_and_the_other_says_so(path: Path) -> None:
    before = path.read_bytes()
    for _ in range(6):
        path.write_bytes(before)
        steps = {revision: edit(path, revision) for revision in (NEW, OTHER)}
        with ThreadPoolExecutor(2) as pool:
            done = dict(zip(steps, pool.map(carry_out, steps.values()), strict=True))
        assert sorted(one.returncode for one in done.values()) == [0, 1]
        (winner,) = (revision for revision, one in done.items() if one.returncode == 0)
        (loser,) = (one for one in done.values() if one.returncode == 1)
        assert path.read_bytes() == before.replace(OLD.encode(), winner.encode())
        assert f"{path} is not the file that this edit was made for: " in loser.stderr
        assert loser.stderr.endswith("nothing was changed\n")


def test_two_of_the_same_edit_at_once_are_one(path: Path) -> None:
    step = edit(path)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(carry_out, [step, step]))
    assert [one.returncode for one in done] == [0, 0]
    assert sorted("so already" in one.stdout for one in done) == [False, True]
    assert len(beside(path)) == 1


def test_an_editor_before_the_edit_stands(path: Path) -> None:
    step = edit(path)
    path.write_bytes(path.read_bytes() + b"# mine\n")
    theirs = path.read_bytes()
    done = carry_out(step)
    assert done.returncode == 1 and "nothing was changed" in done.stderr
    assert path.read_bytes() == theirs and beside(path) == []


@pytest.mark.parametrize(
    ("calls", "action", "words"),
    [
        (
            "utime",
            "open({path!r} + '.x', 'w').write('theirs'); os.replace({path!r} + '.x', {path!r})",
            "was replaced while this edit was made ready: nothing was changed",
        ),
        ("utime", "open({path!r}, 'w').write('theirs')", "is not the file that this edit was made for"),
        ("rename", "open({path!r}, 'w').write('theirs')", "was written to while it was swapped: that edit stands"),
    ],
    ids=["renamed before the last look", "written to before the last look", "written to after the last look"],
)
def test_an_editor_in_the_middle_stands(path: Path, calls: str, action: str, words: str) -> None:
    done = carry_out_hooked(edit(path), "act", 1, calls, action.format(path=str(path)))
    assert done.returncode == 1
    assert words in done.stderr
    assert path.read_text() == "theirs"
    assert not [name for name in beside(path) if name.endswith(".tmp")]


def test_an_edit_that_waits_for_another_one_gives_up_in_words(path: Path) -> None:
    import fcntl

    step = edit(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        done = carry_out(step)
    finally:
        os.close(folder)
    assert (done.returncode, done.stderr) == (1, f"another edit is under way in {path.parent}\n")
    assert path.read_bytes() == SAMPLE.read_bytes()


def test_no_file_a_folder_and_a_link_to_nothing(path: Path) -> None:
    step = edit(path)
    path.unlink()
    done = carry_out(step)
    assert (done.returncode, done.stderr) == (5, f"{path}: No such file or directory: nothing was changed\n")
    path.mkdir()
    done = carry_out(step)
    assert (done.returncode, done.stderr) == (1, f"{path} is no plain file\n")
    path.rmdir()
    path.symlink_to("nothing")
    done = carry_out(step)
    assert (done.returncode, done.stderr) == (
        5,
        f"{path.parent / 'nothing'}: No such file or directory: nothing was changed\n",
    )
    assert beside(path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make files of other accounts; the bed has them too")
def test_owner_and_group_stay_and_where_they_cannot_nothing_is_changed(path: Path) -> None:
    os.chown(path, 1234, 5678)
    step = edit(path)
    assert carry_out(step).returncode == 0
    (backup,) = beside(path)
    for name in (path, path.parent / backup):
        found = name.stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 5678, 0o640)

    os.chown(path, 0, 0)
    path.chmod(0o644)
    step, before = edit(path, OTHER), path.read_bytes()
    path.parent.chmod(0o777)
    for folder in path.parents:
        if folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    done = subprocess.run(
        ["/usr/bin/python3", *step.argv[1:]],
        input=step.stdin,
        capture_output=True,
        text=True,
        env=CLEAN,
        user=65534,
        group=65534,
        timeout=60,
    )
    words = f"{path} belongs to root (group 0), which nobody cannot keep: nothing was changed\n"
    assert (done.returncode, done.stderr) == (1, words)
    assert path.read_bytes() == before and beside(path) == [backup]


def test_an_attribute_is_kept(path: Path) -> None:
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert carry_out(edit(path)).returncode == 0
    assert os.getxattr(path, "user.note") == b"mine"


def test_a_damaged_text_is_never_put_in_place(path: Path) -> None:
    step = edit(path)
    text = step.stdin.rsplit("main(sys.argv[1:], '", 1)
    assert len(text) == 2
    broken = text[0] + "main(sys.argv[1:], '" + "QUJD" + text[1]
    done = subprocess.run(
        [sys.executable, *step.argv[1:]], input=broken, capture_output=True, text=True, env=CLEAN, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, "the new text was damaged on its way here\n")
    assert path.read_bytes() == SAMPLE.read_bytes()
