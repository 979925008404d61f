"""Who else may start or end an engine: restart policies, autoheal, timers, other watchdogs, memory guards. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.readings.containers import Container, belongs, serving_container
from console.readings.roles import restart_words, returns_by_itself
from console.readings.units import Unit, Units
from console.readings.watchdog_log import span
from console.sanitize import line, word

_MOST = 12
"""Sentences; more are counted."""


def competitors(
    containers: Mapping[str, Sequence[Container]],
    *,
    port: int,
    glob: str = "",
    units: Units | None = None,
    foreign: Sequence[str] = (),
    guards: Sequence[str] = (),
    now: float | None = None,
) -> tuple[str, ...]:
    """One safe sentence for each, () for none known. `containers` are all of a host, by host in rank order.

    `port` and `glob` say which are the lane's; `units` answers for `foreign` (guards among them); `now` is Unix time.
    """
    found: list[str] = []
    for host, items in containers.items():
        prefix = f"{host}: " if len(containers) > 1 else ""
        found += [prefix + sentence for sentence in _of_host(items, port, glob)]
    found += _of_units(units, foreign, guards, now)
    found = list(dict.fromkeys(line(sentence, 240) for sentence in found))
    more = len(found) - _MOST
    return (*found[:_MOST], *((f"and {more} more",) if more > 0 else ()))


def lane_containers(items: Sequence[Container], port: int, glob: str = "") -> tuple[Container, ...]:
    """Those of one host that are a lane's: by name or port, and a worker rank's, which listens on no port."""
    serving = serving_container(items, port, glob)
    return tuple(item for item in items if item is serving or belongs(item, port, glob))


def _of_host(items: Sequence[Container], port: int, glob: str) -> list[str]:
    found = []
    ours = lane_containers(items, port, glob)
    for item in ours:
        name = word(item.name, 60)
        policy = item.restart_policy.partition(":")[0]
        if item.up and policy not in ("", "no"):
            found.append(f"{name}: Docker starts it again when it ends ({word(restart_words(item), 120)})")
        elif not item.up and returns_by_itself(item):
            found.append(f"{name}: restart={word(item.restart_policy, 40)}, comes back after a daemon restart")
        if item.autoheal:
            found.append(f"{name}: labelled for autoheal, which restarts it when its health check fails")
    healers = [item for item in items if item.up and "autoheal" in item.image.lower()]
    if healers and not any(item.autoheal for item in ours):
        found.append(f"{word(healers[0].name, 60)}: an autoheal container, it may restart any container here")
    return found


def _of_units(units: Units | None, foreign: Sequence[str], guards: Sequence[str], now: float | None) -> list[str]:
    asked = tuple(dict.fromkeys((*foreign, *guards)))
    if not asked or units is None:
        return []
    if units.problem:
        return [f"other watchdogs and guards: unknown, {word(units.problem, 120)}"]
    found = []
    for name in asked:
        unit = units.unit(name)
        if unit is not None and unit.load != "not-found" and unit.active in ("active", "activating", "reloading"):
            found.append(_unit_words(unit, name in guards, now))
    return found


def _unit_words(unit: Unit, guard: bool, now: float | None) -> str:
    name = word(unit.name, 80)
    if name.endswith(".timer"):
        return f"{name}: {_next_run(unit, now)}"
    if guard:
        return f"{name} is {word(unit.active, 20)}: it ends processes when memory runs low, an engine first of all"
    return f"{name} is {word(unit.active, 20)}: it starts its own engine on these GPUs"


def _next_run(unit: Unit, now: float | None) -> str:
    if unit.next_run is None or now is None:
        return "armed, its next run is not known"
    ahead = unit.next_run - now
    return f"runs in {span(ahead)}" if ahead > 0 else f"was due {span(-ahead)} ago, runs at once"
