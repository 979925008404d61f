"""From a snapshot to the plan of an action: the one door to the four verbs. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from console.actions.disarm import arm_plan, disarm_plan, guard_verb
from console.actions.plan import Plan, Verb
from console.actions.relaunch import relaunch_plan
from console.actions.rollback import BACK, rollback_plan
from console.actions.scene import Refused, Scene, competing, ends, title
from console.actions.site_back import REVISION
from console.actions.stop import stop_plan
from console.fleet.places import Places
from console.fleet.recipe_model import Recipe
from console.readings.lights import LaneState
from console.snapshot import LaneView, Snapshot
from console.wayback.standing import Unfinished, unfinished

_MAKERS: Mapping[Verb, Callable[[Scene], Plan]] = {
    Verb.DISARM: disarm_plan,
    Verb.ARM: arm_plan,
    Verb.STOP: stop_plan,
    Verb.RELAUNCH: relaunch_plan,
    Verb.ROLLBACK: rollback_plan,
}

_WELL = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY, LaneState.READY)


def plan_of(
    verb: Verb,
    snapshot: Snapshot,
    lane_view: LaneView,
    recipe: Recipe,
    places: Places,
    *,
    frozen: Plan | None = None,
    drain_s: float = 0.0,
    forward: bool = False,
) -> Plan:
    """What the action would do to the lane now; a plan that is `refused` has no steps and says why.

    `frozen`: the way back of the open window; it names the target of a rollback. `drain_s`: seconds that running
    requests are given before a stop. `forward`: away from where an unfinished rollback led, which otherwise is refused.
    Never raises for what a host, a recipe or the operator wrote.
    """
    left = unfinished(lane_view) if verb is Verb.ROLLBACK else None
    if frozen is not None and (reached(frozen, lane_view) or (left is not None and forward)):
        frozen = None  # it was gone back to: the same key rolls forward now
    scene = Scene(snapshot, lane_view, recipe, places, frozen=frozen, drain_s=drain_s)
    try:
        if left is not None and not forward:
            raise Refused(_to_finish(left, lane_view))
        return _MAKERS[verb](scene)
    except Refused as reason:
        return refusal(verb, scene, str(reason))


def _to_finish(left: Unfinished, lane_view: LaneView) -> str:
    """Why no rollback is planned from where an unfinished one led, and what there is to do."""
    if left.carried_on:
        finish = f"laneswap attach {lane_view.name} --carry-on finishes it, then B rolls forward"
    elif left.owed:
        finish = "D arms its watchdog, which is owed, then B rolls forward"
    else:
        finish = "nothing else of it is left"
    return f"{left.words}. {finish}; at once: laneswap do {lane_view.name} rollback --forward"


def reached(frozen: Plan, lane_view: LaneView) -> bool:
    """Whether the target of a frozen way back is what every rank of the lane runs now, and serves with. One that runs
    and does not serve is still the target."""
    if lane_view.verdict.state not in _WELL:
        return False
    facts = dict(frozen.facts)
    containers = {name.removeprefix(BACK): value for name, value in facts.items() if name.startswith(BACK)}
    ranks = [(rank.host, rank.container) for rank in lane_view.ranks]
    if containers:
        up = {host: box.id for host, box in ranks if box is not None and box.up}
        return all(up.get(host) == identity for host, identity in containers.items())
    wanted = facts.get(REVISION, "")
    return bool(wanted) and all(
        rank.revision == wanted and rank.container is not None and rank.container.up for rank in lane_view.ranks
    )


def refusal(verb: Verb, scene: Scene, why: str) -> Plan:
    """A plan without steps that says why."""
    return Plan(
        verb,
        scene.snapshot.fleet.name,
        scene.view.name,
        scene.head,
        title(verb, scene),
        (),
        ends=ends(scene),
        refused=why,
        notes=competing(scene),
    )


def toggled(lane_view: LaneView) -> Verb:
    """What `D` does now, by the watchdog's reading: DISARM, or ARM for one that is known to be off."""
    return guard_verb(lane_view.watchdog.value if lane_view.watchdog is not None else None)


def way_back_id(plan: Plan) -> str:
    """First 12 hex digits of a hash over what a way back rests on, the live engine left out: equal as long as a frozen
    rollback still leads to the same containers, images, mounts, revision and rows."""
    facts = sorted(fact for fact in plan.facts if not fact[0].startswith("now "))
    text = json.dumps([plan.verb, plan.fleet, plan.lane, facts])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
