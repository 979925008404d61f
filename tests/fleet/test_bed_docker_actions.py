"""The Docker lane acted on from the command line, each time judged by the host's own Docker and engine."""

from __future__ import annotations

import pytest
from acting_docker import RETIRED, SERVING, ActingDocker
from acting_operator import DockerEvents, Head, Operator
from acting_parts import NEW, OLD, Seen

pytestmark = [pytest.mark.bed, pytest.mark.timeout(300)]

FORWARD = {NEW: SERVING, OLD: RETIRED}
BACK = {OLD: "dsv41-vllm-v20-nightly-BOUND-REF", NEW: "dsv41-vllm-v21-fused-split-RETIRED-REF"}
"""Names carry the state: who serves and who is kept."""


def serves(lane: ActingDocker, revision: str, names: dict[str, str], ids: dict[str, str]) -> dict[str, Seen]:
    """The lane serves this revision with these very containers, one running; what Docker says of them by name."""
    found = lane.standing()
    assert found is not None and found.revision == revision
    seen = lane.containers()
    assert {names[one]: ids[one] for one in (NEW, OLD)} == {name: one.id for name, one in seen.items()}
    assert lane.running() == [names[revision]]
    return seen


def test_stop_relaunch_back_and_forth_from_the_command_line(lane: ActingDocker, ana: Operator) -> None:
    lane.restart_policy(SERVING, "unless-stopped")
    ids = {revision: lane.id_of(revision) for revision in (NEW, OLD)}
    events, before = DockerEvents(lane.host), lane.containers()

    refused = ana.do("disarm")
    assert refused.code == 4 and "no watchdog" in refused.text, refused.text
    assert lane.containers() == before and not ana.records()

    stopped = ana.do("stop")
    assert stopped.code == 0 and "stop DONE" in stopped.out, stopped.text
    ana.ledger_good()
    assert lane.running() == [] and lane.standing() is None
    seen = lane.containers()[SERVING]
    assert (seen.id, seen.exit_code, seen.restart) == (ids[NEW], 0, "no"), "no daemon starts it again"

    again = ana.do("relaunch")
    assert again.code == 0 and "relaunch DONE" in again.out, again.text
    ana.ledger_good()
    assert serves(lane, NEW, FORWARD, ids)[SERVING].restart == "unless-stopped", "as it was before the stop"

    back = ana.do("rollback")
    assert back.code == 0 and "rollback DONE" in back.out, back.text
    ana.ledger_good()
    seen_back = serves(lane, OLD, BACK, ids)
    assert (seen_back[BACK[OLD]].restart, seen_back[BACK[NEW]].restart) == ("unless-stopped", "no")
    assert OLD[:7] in ana.lamp("revision") and NEW[:7] in ana.lamp("rollback")

    forward = ana.do("rollback")
    assert forward.code == 0 and "rollback DONE" in forward.out, forward.text
    ana.ledger_good()
    seen_now = serves(lane, NEW, FORWARD, ids)
    assert (seen_now[SERVING].restart, seen_now[RETIRED].restart) == ("unless-stopped", "no")

    counts = events.counts()
    new, old = (ids[revision][:12] for revision in (NEW, OLD))
    started = {one: counts[f"start {one}"] for one in (new, old)}
    assert started == {new: 2, old: 1} and counts[f"die {new}"] == 2 and counts[f"die {old}"] == 1, counts
    verified = ana.run("ledger", "--verify")
    assert verified.code == 0 and verified.out.startswith("good: "), verified.text
    assert ana.outcomes() == [(op, "done") for op in ana.intents()] and len(set(ana.intents())) == 4
    assert not Head(lane.host, lane.name).lease(), "given back when all was done"
    copy = Head(lane.host, lane.name).text("ledger.jsonl").splitlines()
    assert copy == (ana.state / "ledger/bed/ledger.jsonl").read_text().splitlines(), "the head has the same record"


def test_a_plan_has_one_id_changes_nothing_and_is_refused_once_the_world_has_moved(
    lane: ActingDocker, ana: Operator
) -> None:
    before = lane.containers()
    shown = ana.plan("rollback")
    assert shown["plan"] == ana.plan("rollback")["plan"] and shown["policy"]["needs"] == "lane name"
    assert lane.containers() == before and not Head(lane.host, lane.name).operations()

    lane.behind("update", "--restart=always", SERVING)
    moved = ana.run("do", "station", "rollback", "--plan", shown["plan"])
    assert moved.code == 4 and "Nothing was sent" in moved.err and shown["plan"] in moved.err, moved.text
    assert lane.running() == [SERVING] and not ana.intents()

    now = ana.plan("rollback")
    assert now["plan"] != shown["plan"]
    done = ana.run("do", "station", "rollback", "--plan", now["plan"])
    assert done.code == 0, done.text
    ana.ledger_good()
    found = lane.standing()
    assert found is not None and found.revision == OLD


def test_what_is_mistyped_is_refused_before_anything_is_sent(lane: ActingDocker, ana: Operator) -> None:
    before = lane.containers()
    assert ana.run("do", "station", "stop").code == 2, "nobody can type here"
    assert ana.run("do", "statoin", "stop", "--yes-lane", "statoin").code == 2
    assert ana.run("do", "station", "restart", "--yes-lane", "station").code == 2
    wrong = ana.run("do", "station", "stop", "--yes-lane", "dsv41")
    assert wrong.code == 4 and "dsv41 was typed, the lane is station" in wrong.err
    assert ana.run("attach", "station").code == 1, "there is nothing to follow"
    assert lane.containers() == before and not Head(lane.host, lane.name).operations()
    assert not ana.records()


def test_a_window_is_opened_shown_used_and_closed(lane: ActingDocker, ana: Operator, ben: Operator) -> None:
    head = Head(lane.host, lane.name)
    assert ana.run("window", "open", "station", "--reason", "x", "--deadline", "soon").code == 2
    unnamed = ana.run("window", "open", "station", "--reason", "swap to v22", "--yes-lane", "dsv41")
    assert unnamed.code == 4 and not head.text("window.json") and not head.lease()

    words = ("--reason", "swap to v22", "--deadline", "25m", "--yes-lane", "station")
    opened = ana.run("window", "open", "station", *words)
    assert opened.code == 0 and "B leads back to" in opened.out, opened.text
    assert head.lease()["operator"] == "ana"
    held = ben.do("stop")  # at once: the lease of a command that has ended runs out after a minute
    assert held.code == 4 and "held by ana" in held.text, held.text
    assert lane.running() == [SERVING]

    shown = ana.document("window", "show", "station")
    assert (shown["window"]["operator"], shown["window"]["reason"]) == ("ana", "swap to v22")
    assert OLD[:7] in shown["window"]["target"] and shown["lease"]["operator"] == "ana"
    text = ana.run("window", "show", "station").out
    assert "swap to v22" in text and "lease      ana" in text

    again = ana.run("window", "open", "station", "--reason", "once more", "--yes-lane", "station")
    assert again.code == 4 and "open on this lane already" in again.err

    back = ana.do("rollback")
    assert back.code == 0, back.text
    assert head.lease()["operator"] == "ana", "the window keeps it"
    closed = ana.run("window", "close", "station")
    assert closed.code == 0, closed.text
    assert not head.text("window.json") and not head.lease()
    assert ana.run("window", "close", "station", "--yes-lane", "station").code == 4, "none is open"
    ana.ledger_good()
    kinds = [one["text"] for one in ana.records() if one["kind"] == "note" and "window" in one["text"]]
    assert len(kinds) == 2 and "opened" in kinds[0] and "swap to v22" in kinds[0] and "closed" in kinds[1], kinds
