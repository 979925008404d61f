"""Files that the operator names and that are none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from console import headless
from console.feed.hub import HubFeed
from console.fleet.places import DownloadPlace
from console.fleet.tomlfile import TomlUnreadable, read_toml
from console.plainfile import read_plain
from console.snapshot import Snapshot, Source


def test_the_beginning_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    info, data = read_plain(file, 4)
    assert (info.st_size, data) == (5, b"1234")


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "fleet.toml"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a pipe, not a file"):
        read_plain(pipe, 100)
    with pytest.raises(TomlUnreadable, match="a pipe, not a file"):
        read_toml(pipe)


def test_a_folder_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(IsADirectoryError, match="a folder, not a file") as caught:
        read_plain(tmp_path, 100)
    assert caught.value.filename == str(tmp_path)
    assert set(os.listdir("/proc/self/fd")) == before


async def test_a_manifest_that_is_a_pipe_says_so(tmp_path: Path) -> None:
    pipe = tmp_path / "manifest"
    os.mkfifo(pipe)
    known = asyncio.Event()
    hub = HubFeed(DownloadPlace("n1", "/repo", manifest=str(pipe)), changed=known.set)
    task = asyncio.create_task(hub.run())
    try:
        async with asyncio.timeout(60):
            await known.wait()
    finally:
        task.cancel()
    assert hub.expected is not None
    assert "a pipe, not a file" in hub.expected.problem


class Stuck(Source):
    """A source that never stops."""

    async def start(self) -> None:
        """At once."""

    async def stop(self) -> None:
        await asyncio.Event().wait()

    def snapshot(self) -> Snapshot:
        raise NotImplementedError

    def follow(self, lane: str, host: str) -> None:
        raise NotImplementedError


async def test_an_answer_does_not_wait_for_a_source_that_never_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless, "STOP_LIMIT_S", 0.1)
    async with asyncio.timeout(60):
        async with headless.running(Stuck()) as asked:
            assert not asked.is_set()
