"""A lane's watchdog out of what was looked at, with who else acts on its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from console.feed.host import HostFeed
from console.fleet.inventory import Lane
from console.fleet.places import WatchdogPlace
from console.fleet.recipe_watchdog import WatchdogRecipe
from console.readings.competing import competitors
from console.readings.containers import Container
from console.readings.look import Answer
from console.readings.processes import Process
from console.readings.units import Units
from console.readings.watchdog import Watchdog, read_watchdog


def judged_watchdog(
    lane: Lane,
    place: WatchdogPlace,
    recipe: WatchdogRecipe,
    feed: HostFeed,
    answers: Mapping[str, Answer | None],
    processes: Sequence[Process] | None,
    units: Units | None,
    containers: Mapping[str, Sequence[Container]],
    now: float,
) -> Watchdog:
    """The watchdog at monotonic time `now`. `feed` is that of its host, `answers` are its files by name."""
    wall = feed.host_wall(now)
    found = read_watchdog(
        recipe.spec(place),
        log=answers["log"],
        lock=answers["lock"],
        pause=answers["pause"],
        gaveup=answers["gaveup"],
        processes=processes,
        units=units,
        now=wall,
        booted=feed.booted,
    )
    others = competitors(
        containers,
        port=lane.port,
        glob=lane.containers,
        units=units,
        foreign=place.foreign,
        guards=recipe.guards,
        now=wall,
    )
    return replace(found, competing=others)
