"""No effect without a Grant: whatever is given in its place, nothing is sent; and nothing else leads there."""

from __future__ import annotations

import ast
import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import console
from console.actions.plan import Plan, Stage, Step, Verb
from console.execution import policy
from console.execution.carrying import Carrying
from console.execution.policy import (
    TAKEN_LIVES_S,
    Confirmation,
    Grant,
    Holder,
    How,
    Refused,
    Situation,
    adopt,
    clock,
    decide,
    ensure,
    grant,
    spend,
    take_up,
)
from console.execution.sequence import compile_operation
from console.execution.situation import Me
from console.readings.acting_types import Lease
from console.readings.output import Outcome, Output

OP = "20261201T120000Z-stop-3f9ac1"
PLAN = Plan(
    Verb.STOP, "here", "lane", "me", "stop lane", (Step("a", Stage.STOP, "do a", "me", ("true",), limit=5.0),),
    origin="x", target="y",
)  # fmt: skip
HELD = Lease("ana", "ana@here 1", "f00d", 4, 1.0, 1.0, 60.0)


class Host:
    """Answers looks with an operation file; anything that acts is noted."""

    def __init__(self) -> None:
        self.acted: list[tuple[str, ...]] = []

    async def run(self, argv: Any, *, stdin: str = "", limit: float = 1.0, operator: bool = False) -> Output:
        if operator:  # only what acts may take the session that is kept for that
            self.acted.append(tuple(argv))
        text = json.dumps(
            {**compile_operation(PLAN, op=OP, operator="ana", console="", epoch=3, folder="/v/here.lane",
                                 reach={"me": []}, created=1.0), "plan_id": PLAN.id}
        )  # fmt: skip
        data = base64.b64encode(text.encode()).decode()
        return Output("me", tuple(argv), Outcome.DONE, 0, f"size={len(text)}\ndata={data}\n", "", "", 0.0)


class Ground:
    """As far as it is needed to be asked for a link."""

    def __init__(self, host: Host) -> None:
        self.links = {"me": host}

    def snapshot(self) -> Any:
        class Fleet:
            def lane_folder(self, lane: str) -> str:
                return f"/v/here.{lane}"

        return type("Snapshot", (), {"fleet": Fleet()})()


class View:
    name, acting, site = "lane", None, None
    lane = type("Lane", (), {"head": "me"})()


def leave(verb: Verb = Verb.STOP, lane: str = "lane", plan: str = PLAN.id, epoch: int = 0) -> Grant:
    decision = decide(verb, Situation(lane, False, Holder.ME if epoch else Holder.NOBODY, epoch=epoch))
    return grant(decision, Confirmation(How.NAME, plan, clock(), name=lane), plan, clock())


def used() -> Grant:
    found = leave()
    spend(found, PLAN.id, Verb.STOP, "lane", clock())
    return found


def used_after_it_was_taken_up() -> Grant:
    found = taken(leave())
    spend(found, PLAN.id, Verb.STOP, "lane", clock(), 4)
    return found


def taken(found: Grant) -> Grant:
    take_up(found, found.plan_id, found.verb, found.lane, clock())
    return found


def renamed() -> Grant:
    found = taken(leave(lane="other"))
    object.__setattr__(found, "lane", "lane")
    return found


IN_ITS_PLACE: dict[str, Any] = {
    "nothing": lambda: None,
    "any object": object,
    "a name": lambda: "grant",
    "an empty one": lambda: object.__new__(Grant),
    "one that was spent": used,
    "one that was spent after it was taken up": used_after_it_was_taken_up,
    "another lane's": lambda: taken(leave(lane="other")),
    "another lane's, renamed": renamed,
    "another verb's": lambda: taken(leave(Verb.ROLLBACK)),
    "another plan's": lambda: taken(leave(plan="0123456789ab")),
    "one of another lease": lambda: leave(epoch=7),
    "one of no lease that was not taken up": leave,
}


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(IN_ITS_PLACE)), st.sampled_from(("begin", "carry on", "end"))), max_size=8
    )
)
def test_whatever_stands_in_place_of_a_grant_nothing_is_sent(tries: list[tuple[str, str]]) -> None:
    host = Host()
    carrying = Carrying(Ground(host), Me("ana", "ana@here 1"))  # type: ignore[arg-type]
    view: Any = View()

    async def all_of_them() -> None:
        for name, what in tries:
            if what == "end" and name in ("another plan's",):
                continue  # what is ended is whatever runs: it is the lane's and the verb's leave
            with pytest.raises(Refused):
                await attempted(carrying, view, IN_ITS_PLACE[name](), what)

    asyncio.run(all_of_them())
    assert host.acted == []


async def attempted(carrying: Carrying, view: Any, leave: Any, what: str) -> None:
    if what == "begin":
        await carrying.begin(view, PLAN, OP, HELD, leave, ledgered=True, deadline=None)
    elif what == "carry on":
        await carrying.carry_on(view, OP, HELD, leave)
    else:
        await carrying.pre_empt(view, HELD.epoch, leave, Verb.STOP)


def test_without_a_lease_only_a_break_glass_grant_begins() -> None:
    host = Host()
    carrying = Carrying(Ground(host), Me("ana", "ana@here 1"))  # type: ignore[arg-type]
    with pytest.raises(Refused, match="break-glass"):
        asyncio.run(carrying.begin(View(), PLAN, OP, None, taken(leave()), ledgered=True, deadline=None))  # type: ignore[arg-type]
    assert host.acted == []


def test_a_grant_is_taken_up_once_lives_long_enough_and_ends() -> None:
    found = leave()
    now = clock()
    take_up(found, PLAN.id, Verb.STOP, "lane", now)
    ensure(found, Verb.STOP, "lane", now + TAKEN_LIVES_S)
    assert spend(found, PLAN.id, Verb.STOP, "lane", now + TAKEN_LIVES_S, 9) is False
    twice = taken(leave())
    with pytest.raises(Refused, match="taken up already"):
        take_up(twice, PLAN.id, Verb.STOP, "lane", clock())
    late = leave()
    take_up(late, PLAN.id, Verb.STOP, "lane", now := clock())
    with pytest.raises(Refused, match="confirm again"):
        spend(late, PLAN.id, Verb.STOP, "lane", now + TAKEN_LIVES_S + 0.1, 9)
    with pytest.raises(Refused, match="not taken up"):
        ensure(leave(), Verb.STOP, "lane", clock())


def test_what_a_grant_says_of_break_glass_is_not_kept_in_the_object() -> None:
    found = taken(leave())
    object.__setattr__(found, "break_glass", True)
    assert spend(found, PLAN.id, Verb.STOP, "lane", clock(), 4) is False


def test_what_runs_is_adopted_under_a_lease_of_ours_alone() -> None:
    found = adopt(Verb.STOP, "lane", PLAN.id, 4, clock(), read_only=False)
    assert spend(found, PLAN.id, Verb.STOP, "lane", clock(), 4) is False
    with pytest.raises(Refused, match="read-only"):
        adopt(Verb.STOP, "lane", PLAN.id, 4, clock(), read_only=True)
    for epoch, plan in ((0, PLAN.id), (4, "")):
        with pytest.raises(Refused, match="lease that is ours"):
            adopt(Verb.STOP, "lane", plan, epoch, clock(), read_only=False)
    other = adopt(Verb.STOP, "lane", PLAN.id, 4, clock(), read_only=False)
    with pytest.raises(Refused, match="changed hands"):
        spend(other, PLAN.id, Verb.STOP, "lane", clock(), 5)


EFFECTS = {"start_on_head", "run_in_console", "InConsole", "sequence_head.carry_on", "sequence_head.stop"} | {
    "detached.start", "detached.stop", "_start", "publish",
}  # fmt: skip
"""What makes something happen on a host in the name of an operation."""
BEHIND_THE_GRANT = ("carrying", "sequence_head", "sequence_console", "detached", "sequence_reach")
"""`sequence_reach` tries the head's ssh with `true`."""


def calls(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name):
                    found.add(name)
                case ast.Attribute(value=ast.Name(id=owner), attr=name):
                    found.add(f"{owner}.{name}")
    return found


def test_nothing_but_carrying_leads_to_an_effect() -> None:
    house = Path(console.__file__).parent
    folders = [house, house.parent / "screens", house.parent / "widgets"]
    files = [file for folder in folders for file in folder.rglob("*.py") if "rehearsal" not in file.parts]
    assert len(files) > 200
    behind = {house / "execution" / f"{name}.py" for name in BEHIND_THE_GRANT}
    for file in files:
        if file not in behind:
            assert not calls(ast.parse(file.read_text())) & (EFFECTS - {"_start", "publish"}), file


def test_every_way_into_carrying_asks_for_the_grant_before_anything_else_happens() -> None:
    tree = ast.parse(Path(console.__file__).parent.joinpath("execution", "carrying.py").read_text())
    (carrying,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Carrying")
    ways = {node.name: node for node in carrying.body if isinstance(node, ast.AsyncFunctionDef) and node.name[0] != "_"}
    acting = {name: node for name, node in ways.items() if "grant" in {one.arg for one in node.args.args}}
    assert set(acting) == {"begin", "carry_on", "pre_empt"}
    assert set(ways) - set(acting) == {"close", "ways"}, "a new way in has to say why it needs no Grant"
    for name, node in acting.items():
        order = [call for one in ast.walk(node) if isinstance(one, ast.Call) for call in [(one.lineno, one)]]
        asked = min(line for line, call in order if calls(call) & {"policy.spend", "policy.ensure"})
        firsts = [line for line, call in order if calls(call) & EFFECTS]
        assert all(asked < line for line in firsts), name


def test_replacing_a_decision_gives_no_leave() -> None:
    decision = replace(decide(Verb.STOP, Situation("lane", False, Holder.OTHER, "ben")), denied="")
    with pytest.raises(Refused, match="not decided"):
        policy.grant(decision, Confirmation(How.NAME, PLAN.id, clock(), name="lane"), PLAN.id, clock())
