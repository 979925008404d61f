"""Break-glass where the head answers and its state folder or lease is broken: offered before, carried out, told."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hands_scene import plan, step, typed
from host_bench import full, local

from console.actions.plan import Verb
from console.commands import acting
from console.execution import broken, lease
from console.execution.broken import able, spares
from console.execution.policy import Holder, Need, Refused
from console.execution.situation import holder_of
from console.readings.acting_types import OperationState
from console.readings.ledger import Kind

GUARDED = (Verb.DISARM, Verb.STOP, Verb.RELAUNCH, Verb.ROLLBACK)
REASON = "the disk of the head is full"


@pytest.fixture
def scene(scene: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With a place of its own for what a broken folder does not take."""
    monkeypatch.setattr(broken, "SPARE", f"{tmp_path}/spare-{{uid}}")
    return scene


def in_the_way(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (scene.folder / "state").write_text("a file where the folder should be")


def no_space(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of the state folder can grow any more; what lies elsewhere can."""
    link = scene.feed.links["me"]
    run, state = link.run, str(scene.folder / "state")

    async def bent(argv: Any, **more: Any) -> Any:
        return await run(full(argv) if any(state in word for word in argv) else argv, **more)

    monkeypatch.setattr(link, "run", bent)


def epoch_damaged(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = scene.folder / "state" / "here.lane"
    folder.mkdir(parents=True)
    (scene.folder / "state").chmod(0o700)
    (folder / "epoch").write_text("seven\n")


BREAKS = {"a file in the way": in_the_way, "no space": no_space, "epoch damaged": epoch_damaged}
Break = Callable[[Any, pytest.MonkeyPatch], None]


async def goes(hands: Any, verb: Verb) -> str:
    """Plan, break-glass, begin."""
    made, decision = await hands.plan("lane", verb)
    assert (decision.denied, decision.break_glass, decision.need) == ("", True, Need.NAME_AND_REASON)
    return str((await hands.begin(made, decision, typed(made, reason=REASON))).operation)


@pytest.mark.parametrize("verb", GUARDED)
@pytest.mark.parametrize("how", BREAKS)
async def test_a_broken_head_is_out_of_reach_and_the_action_goes(
    scene: Any, monkeypatch: pytest.MonkeyPatch, how: str, verb: Verb
) -> None:
    async with scene.hands() as hands:
        BREAKS[how](scene, monkeypatch)
        _, decision = await hands.plan("lane", verb)
        assert any("state folder is broken" in words for words in decision.warnings), decision
        op = await goes(hands, verb)
        await scene.until(lambda: scene.lines() == ["a"], "the step was carried out")
        await scene.until(lambda: any(f"{verb.value} done" in words for words in scene.said), "its end is told")
        await scene.until(lambda: not hands.recording.lanes(), "its end is recorded")
        told = [record for record in await hands.ledger() if record.op == op]
        assert told[0].kind is Kind.BREAK_GLASS and told[-1].kind is Kind.OUTCOME and told[-1].result == "done"
        assert scene.lines() == ["a"]


async def test_the_intent_lies_where_it_acts_and_here(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene.hands() as hands:
        in_the_way(scene, monkeypatch)
        op = await goes(hands, Verb.STOP)
        there = scene.folder / f"spare-{os.getuid()}" / "here.lane" / "ops" / op / "plan.json"
        here = scene.folder / "own" / "sequences"
        for file in (there, here / f"{op}.plan.json"):
            meant = json.loads(file.read_text())
            assert (meant["id"], meant["operator"], meant["epoch"]) == (op, "ana", "-")
        assert "do a" in (here / f"{op}.sheet.sh").read_text()
        await scene.until(lambda: scene.lines() == ["a"], "the step was carried out")


async def test_without_a_disk_here_too_it_still_goes(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene.hands() as hands:
        in_the_way(scene, monkeypatch)
        own = scene.folder / "own"
        shutil.rmtree(own, ignore_errors=True)
        own.write_text("a file where the folder should be")
        await goes(hands, Verb.ROLLBACK)
        await scene.until(lambda: scene.lines() == ["a"], "the step was carried out")
        await scene.until(lambda: any("rollback done" in words for words in scene.said), "its end is told")


async def test_a_window_of_ours_is_no_letter_once_the_disk_is_full(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene.hands() as hands:
        await hands.open_window("lane", "swap to the new one", 1500, "lane")
        await scene.until(lambda: scene.acting().window is not None, "the window is seen")
        assert (await hands.plan("lane", Verb.STOP))[1].need is Need.LETTER
        no_space(scene, monkeypatch)
        spare = scene.folder / f"spare-{os.getuid()}"
        (spare / "here.lane").mkdir(parents=True)
        spare.chmod(0o700)
        (spare / "here.lane" / "epoch").write_text("99\n")  # of another incident
        await goes(hands, Verb.STOP)
        await scene.until(lambda: scene.lines() == ["a"], "the step was carried out")


async def test_a_damaged_lease_is_known_before_and_the_sequence_runs_on_the_head(scene: Any) -> None:
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window")).granted
        (scene.folder / "state" / "here.lane" / "lease").write_text("id=f00d\nepo")
        await scene.until(lambda: scene.acting().lease_unknown, "it is seen to be damaged")
        assert holder_of(scene.acting(), hands.own, 0.0)[0] is Holder.UNKNOWN
        made, decision = await hands.plan("lane", Verb.STOP)
        assert decision.break_glass and any("its file is damaged" in words for words in decision.warnings)
        with pytest.raises(Refused, match="reason"):
            await hands.begin(made, decision, typed(made))
        begun = await hands.begin(made, decision, typed(made, reason="nobody answers the phone"))
        assert begun.runs_on == "head"
        found = await scene.ended(begun.operation)
        assert (found.state, scene.lines()) == (OperationState.DONE, ["a"])


@pytest.mark.parametrize("verb", GUARDED)
async def test_a_broken_folder_never_hides_that_another_holds_the_lane(
    scene: Any, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window", ttl=600)).granted
        await scene.until(lambda: scene.acting().lease is not None, "it is seen")
        no_space(scene, monkeypatch)
        _, decision = await hands.plan("lane", verb)
        if verb is not Verb.ROLLBACK:
            assert "held by ben" in decision.denied and not decision.or_break_glass
            return
        assert decision.takes_over and any("from ben" in words for words in decision.warnings)
        await goes(hands, verb)
        await scene.until(lambda: scene.lines() == ["a"], "the way back was carried out")


async def test_one_that_was_taken_meanwhile_is_not_passed_by(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head's disk is full, and what was seen of the lease is old: its own word counts."""
    async with scene.hands() as hands:
        link, folder = hands.tenure.way("lane")
        epoch_damaged(scene, monkeypatch)
        made, decision = await hands.plan("lane", Verb.STOP)
        assert decision.break_glass
        (scene.folder / "state" / "here.lane" / "epoch").unlink()
        assert (await lease.take(link, folder, "ben", "ben@there 1", "a window")).granted
        no_space(scene, monkeypatch)
        with pytest.raises(Refused, match="ben"):
            await hands.begin(made, decision, typed(made, reason=REASON))
        assert scene.lines() == []


async def test_the_way_back_ends_what_this_console_runs_without_its_head(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.plan = plan(step("a", "sh", "-c", f"echo a >>{scene.marks}; sleep 60; echo b >>{scene.marks}", limit=90.0))
    async with scene.hands() as hands:
        in_the_way(scene, monkeypatch)
        first = await goes(hands, Verb.STOP)
        await scene.until(lambda: scene.lines() == ["a"], "it runs")
        again = (await hands.plan("lane", Verb.STOP))[1]
        assert f"{first}) runs already" in again.denied
        scene.plan = plan(step("back", "sh", "-c", f"echo back >>{scene.marks}"), verb=Verb.ROLLBACK)
        made, decision = await hands.plan("lane", Verb.ROLLBACK)
        assert first in decision.ends
        await hands.begin(made, decision, typed(made, reason=REASON))
        await scene.until(lambda: scene.lines() == ["a", "back"], "the way back follows what was ended")


async def test_a_folder_that_can_be_made_or_written_is_not_broken_and_not_made(tmp_path: Path) -> None:
    async with local() as link:
        folder = tmp_path / "state" / "here.lane"
        assert (await able(link, str(folder))).broken == ""
        assert os.listdir(tmp_path) == []
        folder.mkdir(parents=True)
        (tmp_path / "state").chmod(0o770)
        folder.chmod(0o777)
        assert await able(link, str(folder)) == broken.Able("", os.getuid())
        assert os.listdir(folder) == [], "nothing is left behind"
        (tmp_path / "state").chmod(0o777)
        assert "every account" in (await able(link, str(folder))).broken


@pytest.mark.parametrize("name", ["lock", "lease", "epoch"])
async def test_a_link_in_the_place_of_a_file_is_broken(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "state" / "here.lane"
    folder.mkdir(parents=True, mode=0o770)
    (tmp_path / "state").chmod(0o770)
    (folder / name).symlink_to("/etc/hostname")
    async with local() as link:
        assert "symbolic link" in (await able(link, str(folder))).broken


async def test_a_place_in_memory_that_another_account_made_is_not_used(tmp_path: Path) -> None:
    base = Path("/dev/shm", f"laneswap-test-{os.getpid()}")
    async with local() as link:
        assert (await able(link, f"{base}/here.lane")).broken == ""
        os.mkdir(base, 0o755)
        try:
            assert (await able(link, f"{base}/here.lane")).broken == ""
            if os.getuid() == 0:  # nobody else may give a folder away
                os.chown(base, 65534, 65534)
                assert "belongs to another account" in (await able(link, f"{base}/here.lane")).broken
        finally:
            os.rmdir(base)


async def test_a_host_without_any_place_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_text("in the way")
    (tmp_path / "spare").write_text("in the way, too")
    monkeypatch.setattr(broken, "SPARE", f"{tmp_path}/spare")
    async with local() as link:
        assert await spares({"here": link}, ["here", "gone"], f"{tmp_path}/state/here.lane") == {}


async def test_the_command_line_follows_to_the_end_what_its_head_cannot_tell_of(
    scene: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To give up and close would cut it in half."""
    monkeypatch.setattr(acting, "LOST_AFTER_S", 1.0)
    mark = scene.marks
    scene.plan = plan(
        step("a", "sh", "-c", f"echo a >>{mark}; sleep 4", limit=30.0), step("b", "sh", "-c", f"echo b >>{mark}")
    )
    async with scene.hands() as hands:
        in_the_way(scene, monkeypatch)
        op = await goes(hands, Verb.STOP)
        ready = acting.Ready(scene.feed, hands, "lane", asyncio.Event())
        assert await acting.follow(ready, op) == 0
    assert scene.lines() == ["a", "b"]
    assert "do b" in capsys.readouterr().out
