"""Names of steps: they become file and unit names, so each host has its own, whatever its name."""

from __future__ import annotations

import re
from dataclasses import replace

import scenes
from hypothesis import given
from hypothesis import strategies as st

from console.actions.plan import Verb
from console.actions.steps import MOST_ID, step_id
from console.execution.sequence import compile_operation
from console.fleet.wording import NAME_PATTERN
from console.readings.containers import Containers
from console.snapshot import RankView

ALIKE = ("spark-0", "spark_0", "Spark-0", "SPARK_0", "spark.0")
"""Five hosts, as far as fleet.toml goes."""
FIT = re.compile(r"[a-z0-9][a-z0-9.-]*")
NAMES = st.from_regex(NAME_PATTERN, fullmatch=True).filter(lambda name: not name.endswith("\n"))


def test_names_that_are_fit_stay_as_they_are() -> None:
    assert step_id("stop", "spark-0") == "stop-spark-0"
    assert step_id("stop", "10.0.0.1") == "stop-10.0.0.1"


def test_hosts_that_differ_by_case_and_marks_alone_have_steps_of_their_own() -> None:
    assert len({step_id("stop", name) for name in ALIKE}) == len(ALIKE)


def test_a_name_made_to_look_like_a_marked_one_is_marked_itself() -> None:
    marked = step_id("stop", "spark_0")
    assert step_id("stop", marked.removeprefix("stop-")) != marked


@given(st.sets(NAMES, min_size=2, max_size=8))
def test_no_two_hosts_share_a_step(names: set[str]) -> None:
    made = [step_id("stop", name) for name in names]
    assert len(set(made)) == len(names)
    assert all(FIT.fullmatch(one) and len(one) <= MOST_ID for one in made)


@given(st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=3))
def test_any_text_gives_a_name_that_files_and_units_can_have(parts: list[str]) -> None:
    made = step_id("stop", *parts)
    assert FIT.fullmatch(made) and len(made) <= MOST_ID


def test_a_lane_on_such_hosts_can_be_stopped_and_rolled_back() -> None:
    """Once the second `stop-spark-0` was refused as a name that has to be its own."""
    lane = _on(ALIKE)
    for verb in (Verb.STOP, Verb.RELAUNCH, Verb.ROLLBACK):
        plan = lane.plan(verb)
        assert not plan.refused, plan.refused
        given = {"op": "20261201T000000Z-x-000000", "operator": "ana", "console": "here", "epoch": 1, "created": 1.0}
        made = compile_operation(plan, folder="/s/f.l", reach={name: [] for name in ALIKE}, **given)  # type: ignore[arg-type]
        assert len({one["id"] for one in made["steps"]}) == len(made["steps"])


def _on(hosts: tuple[str, ...]) -> scenes.Lane:
    """A Docker lane with a rank on each of these hosts, each with one that serves and one that is kept."""
    made = scenes.docker()
    one, (view,) = made.snapshot.hosts[0], made.snapshot.lanes
    held = Containers((scenes.SERVING, scenes.RETIRED))
    views = tuple(replace(one, name=name, containers=scenes.pictures.reading(held, 1.0, 5.0)) for name in hosts)
    fleet = made.snapshot.fleet
    fleet = fleet.model_copy(update={"hosts": {name: fleet.hosts["station"] for name in hosts}})
    lane = view.lane.model_copy(update={"ranks": hosts, "head": hosts[0]})
    ranks = tuple(RankView(at, name, scenes.SERVING, "serving", scenes.NEW) for at, name in enumerate(hosts))
    snapshot = replace(made.snapshot, fleet=fleet, hosts=views, lanes=(replace(view, lane=lane, ranks=ranks),))
    return scenes.Lane(snapshot, made.recipe, made.places)
