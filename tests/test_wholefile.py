"""A file is written whole or not at all, with its permissions, and its name is on the disk too."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from console.wholefile import write_whole


def test_file_and_folder_are_synced_in_this_order(tmp_path: Path) -> None:
    file, synced = tmp_path / "a.json", []

    def sync(descriptor: int) -> None:
        info = os.fstat(descriptor)
        synced.append(("folder" if stat.S_ISDIR(info.st_mode) else f"file of {info.st_size}", file.exists()))

    write_whole(file, b"whole", mode=0o640, sync=sync)
    assert synced == [("file of 5", False), ("folder", True)]
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"whole", 0o640)


@pytest.mark.parametrize("over", [True, False])
def test_a_write_that_breaks_leaves_what_was_there(tmp_path: Path, over: bool) -> None:
    file = tmp_path / "a.json"
    if over:
        file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"half", over=over, sync=full)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({"a.json": b"old"} if over else {})


def test_what_has_the_name_already_stays_unless_it_may_go(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_whole(file, b"new", over=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"] and file.is_symlink()
    write_whole(file, b"new")
    assert not file.is_symlink() and file.read_bytes() == b"new" and stat.S_IMODE(file.stat().st_mode) == 0o600
