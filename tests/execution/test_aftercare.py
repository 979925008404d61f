"""Once an operation has ended: one entry in the ledger that people keep, and old operations gone. Real shells."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hands_scene
import pytest
from hands_scene import Scene, go, plan, step
from host_bench import Bent, full, lacking, local, lost

from console.execution import aftercare
from console.execution.aftercare import KEEP, KEEP_DAYS, NOT_BOXED, add_entry, prune, zone_of
from console.execution.boxledger import BoxEntry
from console.execution.scripts import Answer, Exit, ask
from console.reach.local import LocalLink
from console.readings.acting_types import Operation, OperationState, StepState, StepView

OP = "20261130T031200Z-rollback-3f9ac1"
TOLD = BoxEntry(1_796_008_365.0, "dsv41 rolled back to c0ffee1", f"laneswap {OP}", "ana", "It serves again.")
WRITTEN = "# ledger\n\n## 2026-11-29 10:00 UTC — before\nworker: hand · approved by ben\ntext\n"


@dataclass
class Place:
    """A state folder and a ledger of people on this machine."""

    link: LocalLink
    state: Path
    box: Path

    async def add(self, op: str = OP, path: str = "", link: Any = None, **more: Any) -> aftercare.Boxed:
        told = replace(TOLD, worker=f"laneswap {op}")
        return await add_entry(link or self.link, str(self.state), op, path or str(self.box), told, **more)

    async def prune(self, epoch: int = 1, link: Any = None) -> Answer:
        return await prune(link or self.link, str(self.state), epoch)

    def operation(self, days: float, verb: str = "stop", number: int = 0, *, named_days: float | None = None) -> Path:
        """An operation that began `days` ago, all of its files of that time."""
        named = time.gmtime(time.time() - (days if named_days is None else named_days) * 86400)
        made = self.state / "ops" / f"{time.strftime('%Y%m%dT%H%M%SZ', named)}-{verb}-{number:06x}"
        (made / "a-step").mkdir(parents=True)
        (made / "plan.json").write_text("{}")
        (made / "a-step" / "log").write_text("words\n")
        self.age(made, days)
        return made

    @staticmethod
    def age(folder: Path, days: float) -> None:
        at = time.time() - days * 86400
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (at, at), follow_symlinks=False)

    def filled(self, count: int = KEEP) -> list[Path]:
        """As many newer operations as are kept in any case."""
        return [self.operation(1 + number / 1000, number=number) for number in range(count)]

    def left(self) -> set[str]:
        return {path.name for path in (self.state / "ops").iterdir()}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    box = tmp_path / "ledger.md"
    box.write_text(WRITTEN)
    (tmp_path / "state").mkdir(0o700)
    async with local() as link:
        yield Place(link, tmp_path / "state" / "bed.lane", box)


# --- the ledger that people keep


async def test_an_entry_is_appended_once_whoever_sees_the_end(place: Place) -> None:
    found = await asyncio.gather(*(place.add() for _ in range(5)))
    assert all(one.written for one in found), found
    assert sum(not one.already for one in found) == 1
    text = place.box.read_text()
    assert text.startswith(WRITTEN) and text.count(OP) == 1
    assert f"\nworker: laneswap {OP} · approved by ana\nIt serves again.\n" in text
    assert (await place.add()).already
    place.box.write_text("moved elsewhere by its people\n")
    assert (await place.add()).already
    assert place.box.read_text() == "moved elsewhere by its people\n"


async def test_an_entry_without_its_mark_is_found_by_its_own_words(place: Place) -> None:
    await place.add()
    (place.state / "ops" / OP / "boxed").unlink()
    assert (await place.add()).already
    assert place.box.read_text().count(OP) == 1


async def test_entries_of_several_lanes_stand_one_behind_the_other(place: Place) -> None:
    ops = [f"20261130T03120{number}Z-stop-00000{number}" for number in range(8)]
    lanes = [replace(place, state=place.state.with_name(f"bed.l{number}")) for number in range(8)]
    found = await asyncio.gather(*(lane.add(op) for lane, op in zip(lanes, ops, strict=True)))
    assert all(one.written and not one.already for one in found)
    entries = re.findall(
        r"\n\n## [^\n]+\nworker: laneswap (\S+) · approved by ana\nIt serves again\.(?=\n)", place.box.read_text()
    )
    assert sorted(entries) == ops


async def test_a_last_line_without_its_end_is_not_run_into(place: Place) -> None:
    place.box.write_text("torn")
    assert (await place.add()).written
    assert place.box.read_text().startswith("torn\n\n## ")


async def test_its_time_is_that_of_the_host(place: Place) -> None:
    zoned = Bent(place.link, before=lambda argv: ["env", "TZ=CST6CDT", *argv])
    assert (await place.add(link=zoned)).written
    at = datetime.fromtimestamp(TOLD.at, UTC)
    assert (at.hour, at.minute) == (3, 12)
    assert "## 2026-11-29 21:12 CST — dsv41 rolled back" in place.box.read_text()


@pytest.mark.parametrize(
    ("offset", "name", "hours"), [("-0600", "CST", -6.0), ("+0530", "IST", 5.5), ("", "x", 0.0), ("+9900", "x", 0.0)]
)
def test_a_zone_is_read_or_is_utc(offset: str, name: str, hours: float) -> None:
    shift = zone_of(offset, name).utcoffset(None)
    assert shift is not None and shift.total_seconds() == hours * 3600


async def test_a_home_folder_is_that_of_the_account_there(place: Place) -> None:
    at_home = Bent(place.link, before=lambda argv: ["env", f"HOME={place.box.parent}", *argv])
    assert (await place.add(path="~/ledger.md", link=at_home)).written
    assert OP in place.box.read_text()


def spoil(box: Path, how: str) -> None:
    target = box.with_name("target")
    box.rename(target)
    if how == "link":
        box.symlink_to(target)
    elif how == "folder":
        box.mkdir()
    elif how == "pipe":
        os.mkfifo(box)


@pytest.mark.parametrize(
    ("how", "words"),
    [("none", "is not there"), ("link", "symbolic link"), ("folder", "not a plain file"), ("pipe", "not a plain file")],
)
async def test_what_is_no_file_is_told_and_nothing_is_made(place: Place, how: str, words: str) -> None:
    spoil(place.box, how)
    before = sorted(path.name for path in place.box.parent.iterdir())
    found = await place.add()
    assert not found.written and not found.again and words in found.problem
    assert sorted(path.name for path in place.box.parent.iterdir()) == before
    assert place.box.with_name("target").read_text() == WRITTEN
    late = await ask(place.link, "box", ["add", str(place.state), OP, str(place.box), "6"], stdin="\n## x\n")
    assert late.exit is Exit.CANNOT and words in late.problem, "it changed after it was looked at"
    assert place.box.with_name("target").read_text() == WRITTEN


@pytest.mark.parametrize("path", ["relative.md", ""])
async def test_a_path_that_leads_nowhere_is_refused(place: Place, path: str) -> None:
    told = await ask(place.link, "box", ["look", str(place.state), OP, path, "0"])
    assert told.exit is Exit.CANNOT and "not a path" in told.problem


async def test_a_full_disk_is_told_and_leaves_the_ledger_as_it_was(place: Place) -> None:
    found = await place.add(link=Bent(place.link, before=lambda argv: full(argv) if "add" in argv else argv))
    assert not found.written and "cannot be written" in found.problem
    assert place.box.read_text() == WRITTEN
    assert (await place.add()).written


async def test_a_lost_answer_is_asked_again_and_written_once(place: Place) -> None:
    found = await place.add(link=Bent(place.link, after=lost))
    assert found.again and not found.written
    broken = Bent(place.link, after=lambda output: lost(output) if "add" in output.command else output)
    assert (await place.add(link=broken)).again
    assert (await place.add()).already
    assert place.box.read_text().count(OP) == 1


async def test_secrets_are_references(place: Place) -> None:
    found = await place.add(known={"CODE": "c0ffee1"})
    assert found.written and "rolled back to secret:CODE\n" in place.box.read_text()


# --- as the console does it


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operators of the scene's lane keep a ledger on its head."""
    vars_ = f'[lanes.lane.vars]\nbox_ledger = "{tmp_path}/ledger.md"\n'
    monkeypatch.setattr(hands_scene, "FLEET", hands_scene.FLEET + vars_)


async def test_what_ended_is_told_to_those_who_keep_a_ledger(scene: Scene) -> None:
    box = scene.folder / "ledger.md"
    box.write_text(WRITTEN)
    async with scene.hands() as hands, scene.hands():
        op = await go(hands)
        await scene.ended(op)
        await scene.until(lambda: op in box.read_text(), "the entry was written")
        await scene.until(lambda: not hands.recording.lanes(), "the outcome was recorded")
    text = box.read_text()
    assert text.startswith(WRITTEN) and text.count(op) == 1
    assert " — stop lane on here: done\n" in text
    assert f"worker: laneswap {op} · approved by ana\nserving to x: done after " in text


async def test_a_failed_step_is_named_there(scene: Scene) -> None:
    box = scene.folder / "ledger.md"
    box.write_text("")
    scene.plan = plan(step("a", "true"), step("b", "sh", "-c", "exit 3"))
    async with scene.hands() as hands:
        op = await go(hands)
        assert (await scene.ended(op)).state is OperationState.HALF_DONE
        await scene.until(lambda: op in box.read_text(), "the entry was written")
    assert "stop lane on here: half done" in box.read_text() and "do b on me: failed." in box.read_text()


async def test_a_ledger_that_is_not_there_is_told_and_noted_and_holds_nothing_up(scene: Scene) -> None:
    async with scene.hands() as hands:
        op = await go(hands)
        assert (await scene.ended(op)).state is OperationState.DONE
        await scene.until(lambda: any("box ledger" in words for words in scene.said), "it was told")
        await scene.until(lambda: scene.acting().lease is None, "the lease was given back")  # type: ignore[union-attr]
        (note,) = [record for record in await hands.ledger() if record.result == NOT_BOXED]
    assert note.op == op and "ledger.md is not there" in note.text
    assert not (scene.folder / "ledger.md").exists()


async def test_what_ends_with_its_console_is_still_written(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.execution.recording.EVERY_S", 3600.0)
    box = scene.folder / "ledger.md"
    box.write_text("")
    async with scene.hands() as hands:
        op = await go(hands)
        await scene.ended(op)
    assert box.read_text().count(op) == 1


async def test_a_console_that_cannot_wait_says_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftercare, "FINISH_S", 0.05)
    monkeypatch.setattr(aftercare, "PAUSES_S", (3600.0,))
    async with scene.hands() as hands:
        op = await go(hands)
        await scene.ended(op)
        await scene.until(lambda: not hands.recording.lanes(), "the outcome was recorded")
    (note,) = [record for record in await hands.ledger() if record.result == NOT_BOXED]
    assert note.op == op and "this console ended before it was written" in note.text


async def test_old_operations_go_once_one_has_ended(scene: Scene) -> None:
    place = Place(scene.feed.links["me"], scene.folder / "state" / "here.lane", scene.folder / "ledger.md")  # type: ignore[arg-type]
    async with scene.hands() as hands:
        await hands.tenure.hold(scene.feed.snapshot().lane("lane"), "make the folder")
        gone, kept = place.operation(2, "reach"), place.operation(40)
        op = await go(hands)
        await scene.ended(op)
        await scene.until(lambda: not gone.exists(), "what is old was removed")
    assert kept.exists() and (place.state / "ops" / op).exists()


def test_a_step_that_failed_stands_in_the_entry() -> None:
    failed = StepView("b", "boot", "launch", "spark-0", StepState.FAILED, words="exit 3")
    ended = Operation(
        OP,
        "relaunch",
        "dsv41",
        "ana",
        "p",
        "relaunch dsv41",
        OperationState.HALF_DONE,
        100.0,
        590.0,
        (failed,),
        origin="c0ffee1",
        target="c0ffee1",
        words="HALF DONE after stop, next: launch",
        ledgered=False,
    )
    found = aftercare.told(ended, "dsv41")
    assert (found.at, found.title, found.approved_by) == (590.0, "relaunch dsv41: half done", "ana")
    assert found.text.split("\n") == [
        "c0ffee1 to c0ffee1: half done after 8m10s.",
        "HALF DONE after stop, next: launch",
        "launch on spark-0: failed. exit 3",
        "UNLEDGERED when it was begun.",
    ]


# --- old operations


async def test_old_operations_go_and_the_newest_stay_whatever_their_age(place: Place) -> None:
    old = [place.operation(100 + number, number=number) for number in range(KEEP + 3)]
    answer = await place.prune()
    assert answer.exit is Exit.OK and answer.number("removed") == 3, answer
    assert place.left() == {path.name for path in old[:KEEP]}


async def test_what_is_young_stays_however_many_there_are(place: Place) -> None:
    young = [place.operation(KEEP_DAYS - 1 - number / 100, number=number) for number in range(KEEP + 5)]
    assert (await place.prune()).number("removed") == 0
    assert place.left() == {path.name for path in young}


async def test_age_is_that_of_the_name_and_of_all_that_lies_in_it(place: Place) -> None:
    place.filled()
    touched, restored, old = place.operation(50, number=1), place.operation(50, named_days=5), place.operation(51)
    (touched / "a-step" / "log").write_text("a daemon still writes here\n")
    assert (await place.prune()).number("removed") == 1
    assert touched.exists() and restored.exists() and not old.exists()


async def test_tries_of_the_head_s_ssh_go_after_a_day_and_do_not_count(place: Place) -> None:
    kept = place.filled()
    old, fresh, last = place.operation(1.1, "reach"), place.operation(0.5, "reach", 1), place.operation(60)
    assert (await place.prune()).number("removed") == 2
    assert not old.exists() and fresh.exists() and not last.exists()
    assert all(path.exists() for path in kept)


@contextmanager
def running(operation: Path) -> Iterator[None]:
    """As a runner does it."""
    descriptor = os.open(operation / "running", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        Place.age(operation, 90)
        yield
    finally:
        os.close(descriptor)


async def test_what_runs_is_current_or_is_named_stays(place: Place) -> None:
    place.filled()
    runs, current, owed, windowed = (place.operation(90, number=number) for number in range(4))
    ended = place.operation(91)
    (ended / "running").write_text("")
    place.age(ended, 91)
    (place.state / "current").write_text(f"{current.name}\n")
    (place.state / "debts.json").write_text(f'[{{"what": "watchdog", "operation": "{owed.name}"}}]\n')
    (place.state / "window.json").write_text(f'{{"id": "{windowed.name}"}}\n')
    with running(runs):
        assert (await place.prune()).number("removed") == 1
    assert runs.exists() and current.exists() and owed.exists() and windowed.exists() and not ended.exists()
    (place.state / "pruned").unlink()
    assert (await place.prune()).number("removed") == 1
    assert not runs.exists()


async def test_nothing_but_operations_is_touched_and_no_link_is_followed(place: Place, tmp_path: Path) -> None:
    place.filled()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    ops = place.state / "ops"
    odd = ["notes", "20200101T000000Z", "20200101-stop-abcdef", "20200101T000000Z-a_b", "x20200101T000000Z-stop-abcdef"]
    for name in odd:
        (ops / name).mkdir()
    (ops / "20200101T000000Z-stop-aaaaaa").symlink_to(precious)
    inside = place.operation(90)
    (inside / "evidence").symlink_to(precious)
    for name in (*odd, "20200101T000000Z-stop-aaaaaa"):
        Place.age(ops / name, 900) if not (ops / name).is_symlink() else None
    Place.age(inside, 90)
    assert (await place.prune()).number("removed") == 1
    assert not inside.exists() and (precious / "file").read_text() == "x"
    assert {*odd, "20200101T000000Z-stop-aaaaaa"} < place.left()
    assert not any(name.startswith(".pruned") for name in place.left())


async def test_once_a_day_and_only_under_the_newest_lease(place: Place) -> None:
    place.filled()
    old = place.operation(90)
    (place.state / "epoch").write_text("7\n")
    fenced = await place.prune(epoch=6)
    assert fenced.exit is Exit.FENCED and old.exists() and not (place.state / "pruned").exists()
    assert (await place.prune(epoch=7)).exit is Exit.OK and not old.exists()
    again = place.operation(90)
    assert (await place.prune(epoch=7)).exit is Exit.THERE and again.exists()
    Place.age(place.state / "pruned", 1.1)
    assert (await place.prune(epoch=7)).exit is Exit.OK and not again.exists()


async def test_a_host_without_a_state_folder_is_left_without(place: Place) -> None:
    assert (await place.prune()).exit is Exit.NO
    assert not place.state.exists()


async def test_a_link_in_place_of_the_folder_is_refused(place: Place, tmp_path: Path) -> None:
    elsewhere = replace(place, state=tmp_path / "state" / "other.lane")
    old = elsewhere.operation(90)
    place.state.mkdir(parents=True)
    (place.state / "ops").symlink_to(elsewhere.state / "ops")
    answer = await place.prune()
    assert answer.exit is Exit.CANNOT and "symbolic link" in answer.problem and old.exists()


async def test_without_find_nothing_is_removed(place: Place, tmp_path: Path) -> None:
    place.filled()
    old = place.operation(90)
    answer = await place.prune(link=Bent(place.link, before=lacking(tmp_path, "find")))
    assert answer.exit is Exit.CANNOT and "findutils" in answer.problem and old.exists()


async def test_what_was_begun_to_be_removed_goes_the_next_time(place: Place) -> None:
    left = place.operation(90)
    left.rename(left.with_name(f".pruned-{left.name}"))
    assert (await place.prune()).exit is Exit.OK
    assert place.left() == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two accounts")
async def test_what_another_account_has_to_remove_stays_whole(place: Place) -> None:
    place.filled()
    theirs, ours = place.operation(90), place.operation(91)
    for path in (place.state.parent, place.state.parent.parent, place.state, place.state / "ops", theirs, ours):
        path.chmod(0o777)
    (ours / "a-step").chmod(0o777)
    (theirs / "a-step").chmod(0o755)
    for path in (place.state / "epoch", place.state / "lock"):
        path.touch()
        path.chmod(0o666)
    (place.state / "epoch").write_text("1\n")
    place.state.parent.chmod(0o775)
    Place.age(theirs, 90)
    Place.age(ours, 91)
    way = [path for path in place.state.parents if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001]
    before = [(path, path.stat().st_mode) for path in way]
    for path in way:
        path.chmod(path.stat().st_mode | 0o011)
    try:
        nobody = Bent(
            place.link, before=lambda argv: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv]
        )
        answer = await place.prune(link=nobody)
    finally:
        for path, mode in before:
            path.chmod(mode)
    assert answer.exit is Exit.OK and answer.number("removed") == 1, answer
    assert not ours.exists() and (theirs / "a-step" / "log").exists() and (theirs / "plan.json").exists()


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
async def test_every_shell_carries_both_out(place: Place, shell: str) -> None:
    words = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}[shell]
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]} here")
    other = Bent(place.link, before=lambda argv: [*words, *argv[1:]] if argv[0] == "sh" else argv)
    place.filled()
    old = place.operation(90)
    assert (await place.prune(link=other)).number("removed") == 1 and not old.exists()
    assert (await place.add(link=other)).written and place.box.read_text().count(OP) == 1
