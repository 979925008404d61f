"""Files in the state folder on this machine: whole or not at all, fenced, and never outside of it."""

from __future__ import annotations

import asyncio
import grp
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from host_bench import Bent, full, local, lost, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.execution import files
from console.execution.files import Found, Written
from console.execution.scripts import script
from console.reach.local import LocalLink


@dataclass
class Place:
    """A folder on this machine."""

    link: LocalLink
    path: Path

    async def put(self, name: str, text: str, epoch: int | None = 1, link: Any = None) -> Written:
        return await files.put(link or self.link, str(self.path), epoch, name, text)

    async def append(self, name: str, lines: str, epoch: int | None = 1, link: Any = None, **options: Any) -> Written:
        return await files.append(link or self.link, str(self.path), epoch, name, lines, **options)

    async def drop(self, name: str, epoch: int | None = 1) -> Written:
        return await files.drop(self.link, str(self.path), epoch, name)

    async def read(self, name: str, **options: Any) -> Found:
        return await files.read(self.link, str(self.path), name, **options)

    def content(self) -> dict[str, bytes]:
        """Every file there, by name."""
        found = (file for file in self.path.rglob("*") if file.is_file() and file.name != "lock")
        return {str(file.relative_to(self.path)): file.read_bytes() for file in found}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with local() as link:
        yield Place(link, tmp_path / "state" / "bed.lane")


# -- the folder


async def test_the_folder_is_for_this_account_or_for_those_who_may_use_docker(place: Place) -> None:
    """What lies in it is run with the operator's rights: nobody else may write there, whatever the umask is."""
    mask = os.umask(0)
    try:
        assert (await files.make_folder(place.link, str(place.path))).ok
        assert (await place.put("ops/OP/plan.json", "{}")).ok
    finally:
        os.umask(mask)
    try:
        group = grp.getgrnam("docker").gr_gid
    except KeyError:
        group = None
    allowed = group is not None and (os.geteuid() == 0 or group in os.getgroups())
    found = place.path.parent.stat()
    assert oct(found.st_mode) == oct(0o42770 if allowed else 0o40700)
    assert not allowed or found.st_gid == group


async def test_a_folder_that_everybody_may_write_to_is_refused(place: Place) -> None:
    place.path.parent.mkdir(parents=True)
    place.path.parent.chmod(0o777)
    for written in (await files.make_folder(place.link, str(place.path)), await place.put("x", "y")):
        assert not written.ok and "chmod o-w" in written.problem, written
    assert not place.path.exists()


async def test_a_folder_that_an_admin_made_stays_as_it_is(place: Place) -> None:
    place.path.parent.mkdir(parents=True)
    place.path.parent.chmod(0o2770)
    assert (await place.put("x", "y")).ok
    assert oct(place.path.parent.stat().st_mode)[-4:] == "2770"
    assert oct(place.path.stat().st_mode)[-4:] == "2777"


@pytest.mark.parametrize("mode", [0o755, 0o751, 0o2775])
async def test_where_everybody_may_pass_the_lanes_own_folder_keeps_them_out(place: Place, mode: int) -> None:
    """`mkdir /srv/laneswap` by hand is 0755: what lies below is run with the operator's rights, and its files are 0666
    for the group's sake."""
    place.path.parent.mkdir(parents=True)
    place.path.parent.chmod(mode)
    assert (await place.put("x", "y")).ok
    assert place.path.stat().st_mode & 0o777 == 0o770
    place.path.chmod(0o777)
    assert (await files.make_folder(place.link, str(place.path))).ok
    assert place.path.stat().st_mode & 0o777 == 0o770


@pytest.mark.parametrize(
    "folder",
    ["", "relative/x", "/", "/x", "/tmp/../x", "/tmp//x", "/tmp/x/", "/tmp/a b/x", "/tmp/$(id)/x", "/tmp/\n/x"],
)
async def test_folders_that_cannot_be_meant_are_refused(place: Place, folder: str) -> None:
    for answer in (
        await files.make_folder(place.link, folder),
        await files.put(place.link, folder, 1, "x", "y"),
        await files.append(place.link, folder, 1, "x", "y\n"),
        await files.drop(place.link, folder, 1, "x"),
    ):
        assert not answer.ok and not answer.unknown and answer.problem
    assert (await files.read(place.link, folder, "x")).unknown


@pytest.mark.parametrize("level", [0, 1, 2])
async def test_links_in_the_way_are_refused(place: Place, tmp_path: Path, level: int) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    way = [place.path.parent, place.path, place.path / "ops"][level]
    way.parent.mkdir(parents=True, exist_ok=True)
    way.symlink_to(elsewhere)
    (elsewhere / "plan.json").write_text("precious")
    name = "plan.json" if level == 1 else "ops/plan.json"
    for answer in (await place.put(name, "x"), await place.append(name, "x\n"), await place.drop(name)):
        assert not answer.ok and "symbolic link" in answer.problem
    assert (await place.read(name)).unknown
    assert [file.name for file in elsewhere.iterdir()] == ["plan.json"]
    assert (elsewhere / "plan.json").read_text() == "precious"


async def test_a_link_in_place_of_the_file_is_refused(place: Place, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    place.path.mkdir(parents=True)
    (place.path / "x").symlink_to(victim)
    assert not (await place.put("x", "y")).ok
    assert not (await place.append("x", "y\n")).ok
    assert (await place.read("x")).unknown
    assert (await place.drop("x")).ok  # the link, not what it leads to
    assert victim.read_text() == "precious\n"


NAMES = ["", "..", "../x", "a/../../x", "/etc/x", "a//b", "./x", "a b", "lease", "epoch", "lock", "x\ny", "$x"]


@pytest.mark.parametrize("name", NAMES)
async def test_names_that_lead_elsewhere_are_refused(place: Place, name: str) -> None:
    for answer in (await place.put(name, "x"), await place.append(name, "x\n"), await place.drop(name)):
        assert not answer.ok and not answer.unknown and "not a file of the state folder" in answer.problem
    assert place.content() == {}


# -- writing


@given(text=st.text(st.characters(exclude_characters="\0", codec="utf-8")))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back(tmp_path: Path, text: str) -> None:
    async def there_and_back() -> None:
        async with local() as link:
            place = Place(link, tmp_path / "state" / "bed.lane")
            assert (await place.put("x", text)).ok
            found = await place.read("x")
            assert found.there and found.data == text.encode() and found.size == len(text.encode())

    asyncio.run(there_and_back())


async def test_an_older_epoch_writes_nothing(place: Place) -> None:
    await place.put("x", "new", epoch=5)
    before = place.content()
    for answer in (
        await place.put("x", "old", epoch=4),
        await place.append("x", "old\n", epoch=4),
        await place.drop("x", epoch=4),
    ):
        assert answer.fenced and not answer.ok and not answer.unknown and "epoch 5" in answer.problem
    assert place.content() == before
    assert (await place.put("x", "same", epoch=5)).ok
    assert (await place.put("x", "broken glass", epoch=None)).ok
    assert place.content() == {"x": b"broken glass", "epoch": b"5\n"}


async def test_what_was_cut_off_on_the_way_is_not_written(place: Place) -> None:
    await place.put("x", "whole")
    for name, content in (("put", "half"), ("append", "half\n")):
        arguments = [str(place.path), "1", "x", "50"]
        output = await place.link.run(["sh", "-c", script(name), "laneswap", *arguments], stdin=content)
        assert output.exit_status == 5 and "cut off" in output.stderr
    assert place.content() == {"x": b"whole", "epoch": b"1\n"}


async def test_a_full_disk_leaves_the_old_file_and_nothing_half_written(place: Place) -> None:
    await place.put("x", "old\n")
    before = place.content()
    broken = Bent(place.link, before=full)
    for answer in (await place.put("x", "new\n", link=broken), await place.append("x", "more\n", link=broken)):
        assert not answer.ok and not answer.unknown and "File too large" in answer.problem
    assert place.content() == before


async def test_an_append_that_does_not_fit_is_taken_back(place: Place) -> None:
    """Only 1 KiB may be written to a file: the first line fits, the second does so in part."""
    await place.append("x", "a" * 700 + "\n")
    before = place.content()

    def nearly(argv: Any) -> list[str]:
        return ["bash", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "full", *argv]

    answer = await place.append("x", "b" * 700 + "\n", link=Bent(place.link, before=nearly))
    assert not answer.ok and "nothing was added" in answer.problem
    assert place.content() == before


async def test_a_lost_answer_is_unknown(place: Place) -> None:
    answer = await place.put("x", "y", link=Bent(place.link, after=lost))
    assert answer.unknown and not answer.ok
    assert place.content()["x"] == b"y"


async def test_appending_twice_after_a_lost_answer_adds_once(place: Place) -> None:
    await place.append("x", "one\n", at=0)
    assert (await place.append("x", "two\n", at=4, link=Bent(place.link, after=lost))).unknown
    again = await place.append("x", "two\n", at=4)
    assert again.moved and not again.ok and again.size == 8
    assert place.content()["x"] == b"one\ntwo\n"


async def test_a_torn_line_does_not_swallow_the_next(place: Place) -> None:
    await place.put("x", '{"seq":1}\n{"se')
    assert (await place.append("x", '{"seq":2}\n')).size == 25
    assert place.content()["x"] == b'{"seq":1}\n{"se\n{"seq":2}\n'


async def test_appends_at_once_are_all_there_and_whole(place: Place) -> None:
    lines = [f"{number}:" + "x" * 5000 + "\n" for number in range(6)]
    answers = await asyncio.gather(*(place.append("x", line) for line in lines))
    assert all(answer.ok for answer in answers)
    assert sorted(place.content()["x"].decode().splitlines(keepends=True)) == lines


async def test_dropping_what_is_not_there_is_fine_and_a_folder_is_refused(place: Place) -> None:
    assert (await place.drop("a/b/c")).ok
    await place.put("a/b", "x")
    refused = await place.drop("a")
    assert not refused.ok and "is a folder" in refused.problem
    assert (await place.drop("a/b")).ok and set(place.content()) == {"epoch"}
    assert not (await place.put("a", "x")).ok


async def test_a_command_that_is_killed_leaves_no_temporary_file(place: Place) -> None:
    await place.put("x", "old")
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", script("put"), "laneswap", str(place.path), "1", "x", stdin=subprocess.PIPE
    )
    await until(lambda: list(place.path.glob(".new.*")), "it has begun to write")
    child.terminate()
    assert child.stdin is not None
    child.stdin.close()
    assert await child.wait() == 143
    assert place.content() == {"x": b"old", "epoch": b"1\n"}


# -- reading


async def test_reading_by_offset(place: Place) -> None:
    assert await place.read("x") == Found(there=False)
    assert not place.path.parent.exists()
    await place.put("x", "0123456789")
    assert (await place.read("x", offset=3, most=4)) == Found(True, b"3456", 10)
    assert (await place.read("x", offset=10)).data == b""
    assert (await place.read("x", offset=99)).data == b""


async def test_a_pipe_in_place_of_a_file_does_not_hold_us_up(place: Place) -> None:
    place.path.mkdir(parents=True)
    os.mkfifo(place.path / "x")
    assert (await place.read("x")).unknown
    assert not (await place.append("x", "y\n")).ok


async def test_a_read_whose_answer_is_lost_is_unknown_not_absent(place: Place) -> None:
    await place.put("x", "y")
    found = await files.read(Bent(place.link, after=lost), str(place.path), "x")
    assert found.unknown and not found.there
