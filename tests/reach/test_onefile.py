"""One file of a host: whole, cut at its bound, missing, unreadable, or not known."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from console.fleet.inventory import Rates
from console.reach.local import LocalLink
from console.reach.onefile import FileUnread, read_file


async def read(path: str, most: int = 100, limit: float = 20.0) -> bytes:
    link = LocalLink("here", Rates())
    await link.start()
    try:
        return await read_file(link, path, most=most, limit=limit)
    finally:
        await link.close()


async def test_a_file_comes_as_it_is_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a b'$(touch pwned)\"; x"
    await asyncio.to_thread((tmp_path / name).write_bytes, b"\xef\xbb\xbfA=1\r\nB='x'\r\n\xff")
    monkeypatch.setenv("HOME", str(tmp_path))
    whole = b"\xef\xbb\xbfA=1\r\nB='x'\r\n" + "\ufffd".encode()
    assert await read(f"{tmp_path}/{name}") == await read(f"~/{name}") == whole
    assert await read(f"~/{name}", most=6) == b"\xef\xbb\xbfA=1"
    assert [entry.name for entry in await asyncio.to_thread(lambda: list(tmp_path.iterdir()))] == [name]


@pytest.mark.parametrize(("path", "words"), [("none", "no such file"), ("", "no regular file"), ("fifo", "no regular")])
async def test_what_is_no_file_says_so(tmp_path: Path, path: str, words: str) -> None:
    await asyncio.to_thread(os.mkfifo, tmp_path / "fifo")
    with pytest.raises(FileUnread, match=words) as caught:
        await read(f"{tmp_path}/{path}")
    assert not caught.value.unknown


async def test_a_host_that_does_not_answer_leaves_it_unknown(tmp_path: Path) -> None:
    with pytest.raises(FileUnread) as caught:
        await read(str(tmp_path / "x"), limit=0.0)
    assert caught.value.unknown and str(caught.value)
