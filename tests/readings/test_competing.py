"""Who else may start or end an engine: policies, autoheal, timers, former watchdogs, memory guards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from console.readings.competing import competitors, lane_containers
from console.readings.containers import Container, ContainerState, parse_inspect
from console.readings.units import Unit, Units

DATA = Path(__file__).parents[1] / "data" / "containers"
SERVING = parse_inspect(json.loads((DATA / "station_serving.json").read_text())[0])
RETIRED = parse_inspect(json.loads((DATA / "station_retired.json").read_text())[0])
WORKER = parse_inspect(json.loads((DATA / "spark_rank1.json").read_text())[0])
PORT = SERVING.ports[0]
NOW = 1_792_000_000.0


def found(*items: Container, **more: object) -> tuple[str, ...]:
    return competitors({"station": items}, port=PORT, **more)  # type: ignore[arg-type]


def timer(next_run: float | None, active: str = "active") -> Units:
    return Units((Unit("dsv41-night.timer", "loaded", active, next_run=next_run),))


def test_nothing_competes_with_a_container_that_stays_down() -> None:
    assert SERVING.restart_policy == "no"
    assert found(SERVING, RETIRED) == ()


@pytest.mark.parametrize("policy", ["always", "unless-stopped", "on-failure:3"])
def test_a_restart_policy_is_a_competitor_of_every_stop(policy: str) -> None:
    (sentence,) = found(replace(SERVING, restart_policy=policy))
    assert sentence.startswith(f"{SERVING.name}: Docker starts it again when it ends ({policy}")


def test_a_stopped_one_competes_only_if_it_comes_back() -> None:
    down = replace(RETIRED, ports=(PORT,), state=ContainerState.EXITED)
    assert found(replace(down, restart_policy="unless-stopped")) == ()
    (sentence,) = found(replace(down, restart_policy="always"))
    assert sentence == f"{RETIRED.name}: restart=always, comes back after a daemon restart"


def test_containers_of_others_do_not_compete() -> None:
    assert found(replace(SERVING, ports=(1,), restart_policy="always"), SERVING) == ()


def test_autoheal_is_named_by_label_or_by_its_own_container() -> None:
    healer = replace(
        SERVING, id="h", name="healer", image="willfarrell/autoheal:1.2", ports=(), restart_policy="always"
    )
    assert found(SERVING, healer) == ("healer: an autoheal container, it may restart any container here",)
    assert found(replace(SERVING, autoheal=True), healer) == (
        f"{SERVING.name}: labelled for autoheal, which restarts it when its health check fails",
    )
    assert found(SERVING, replace(healer, state=ContainerState.EXITED)) == ()


def test_hosts_are_named_where_there_are_several() -> None:
    worker = replace(WORKER, restart_policy="always")
    sentences = competitors({"n0": (), "n1": (worker,)}, port=8210)
    assert len(sentences) == 1
    assert sentences[0].startswith(f"n1: {WORKER.name}: Docker starts it again")
    assert lane_containers((worker,), 8210) == (worker,)


@pytest.mark.parametrize(
    ("next_run", "words"),
    [
        (NOW + 7800, "dsv41-night.timer: runs in 2 h"),
        (NOW - 1050, "dsv41-night.timer: was due 17 min ago, runs at once"),
        (None, "dsv41-night.timer: armed, its next run is not known"),
    ],
)
def test_a_timer_says_when_it_runs(next_run: float | None, words: str) -> None:
    assert found(units=timer(next_run), foreign=("dsv41-night.timer",), now=NOW) == (words,)


def test_stopped_and_missing_units_do_not_compete() -> None:
    assert found(units=timer(NOW + 5, "inactive"), foreign=("dsv41-night.timer",), now=NOW) == ()
    gone = Units((Unit("glm53-fleet.service", "not-found", "inactive"),))
    assert found(units=gone, foreign=("glm53-fleet.service",)) == ()
    assert found(units=timer(NOW), now=NOW) == ()


def test_other_watchdogs_start_and_guards_end() -> None:
    units = Units(
        (Unit("glm53-fleet.service", "loaded", "active"), Unit("earlyoom.service", "loaded", "active")),
    )
    names = ("glm53-fleet.service", "earlyoom.service")
    assert found(units=units, foreign=names, guards=("earlyoom.service",)) == (
        "glm53-fleet.service is active: it starts its own engine on these GPUs",
        "earlyoom.service is active: it ends processes when memory runs low, an engine first of all",
    )


def test_units_that_could_not_be_asked_are_not_none() -> None:
    assert found(units=Units((), problem="no user bus"), foreign=("x.timer",)) == (
        "other watchdogs and guards: unknown, no user bus",
    )


def test_hundreds_are_counted_not_listed() -> None:
    many = [replace(SERVING, id=str(n), name=f"c{n}", restart_policy="always") for n in range(20)]
    sentences = found(*many)
    assert len(sentences) == 13
    assert sentences[-1] == "and 8 more"
