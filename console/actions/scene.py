"""What a plan is made from: the lane as it is seen, its recipe with every name filled in, the hosts to be asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from console import format as fmt
from console.actions.plan import Plan, Verb
from console.fleet.filling import Filling
from console.fleet.inventory import Lane
from console.fleet.places import Places
from console.fleet.recipe_acts import Acts
from console.fleet.recipe_model import Recipe
from console.readings.acting_types import OperationState
from console.readings.answers import HttpAnswer
from console.readings.containers import Container, ContainerState
from console.readings.lights import LaneState
from console.readings.link import LinkStatus
from console.readings.quality import Reading
from console.sanitize import line
from console.snapshot import HostView, LaneView, RankView, Snapshot
from console.wayback.items import STOP_S, WayBack, Word, boot_time

EVIDENCE = "{evidence}"
"""Word of a command that stands for the operation's folder of evidence on the host where it runs: `D/ops/OP/evidence`.
It is put in when the operation is made, as is STATE."""
STATE = "{state}"
STATES = "{states}"
"""The state folder, and before it the one that stands for it on a host where it cannot be used; with `:` between."""
"""Word that stands for the lane's state folder there: `D`."""
STOP_LIMIT = 120.0
"""Seconds for an engine's processes to be gone and its memory to be back, beyond the grace that it is given."""
_ID = re.compile(r"[0-9a-f]{12,64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.@-]{0,200}\.[a-z]{3,12}|[A-Za-z0-9][A-Za-z0-9:_@-]{0,200}")
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,4000}")
_SERVED = re.compile(r"[A-Za-z0-9._:/@ -]{1,200}")


class Refused(ValueError):
    """A plan that is proved impossible; the text is the reason, for the operator."""


def checked_id(container: Container) -> str:
    """Its id, fit for a command. Raises Refused."""
    if not _ID.fullmatch(container.id):
        raise Refused(f"the id of {line(container.name, 80)} is none: {line(container.id, 80)!r}")
    return container.id


def checked_name(name: str) -> str:
    """A container's name, fit for a command. Raises Refused."""
    if not _NAME.fullmatch(name):
        raise Refused(f"no name of a container: {line(name, 80)!r}")
    return name


def checked_unit(name: str) -> str:
    """A unit's name, fit for a command. Raises Refused."""
    if not _UNIT.fullmatch(name):
        raise Refused(f"no name of a systemd unit: {line(name, 80)!r}")
    return name


def checked_word(text: str, what: str) -> str:
    """A word of a command: printable, not a placeholder of ours. Raises Refused."""
    if not _WORD.fullmatch(text) or text in (EVIDENCE, STATE, STATES):
        raise Refused(f"{what} cannot be used in a command: {line(text, 80)!r}")
    return text


@dataclass(frozen=True, slots=True)
class Scene:
    """One lane at one moment, ready to be planned for."""

    snapshot: Snapshot
    view: LaneView
    recipe: Recipe
    places: Places
    frozen: Plan | None = None
    """The way back as it was frozen when the window was opened; it names the target."""
    drain_s: float = 0.0
    """Seconds that running requests are given before the stop."""
    _fill: list[Filling] = field(default_factory=list)

    @property
    def lane(self) -> Lane:
        """What the operator wrote of it."""
        return self.view.lane

    @property
    def acts(self) -> Acts:
        """How the recipe says it is acted upon."""
        return self.recipe.acts

    @property
    def head(self) -> str:
        """The host that serves HTTP."""
        return self.lane.head

    def host(self, name: str) -> HostView:
        """One host as it is seen."""
        return self.snapshot.host(name)

    def socket(self, host: str) -> str:
        """Path of the Docker socket there. Raises Refused where the host has none."""
        path = self.snapshot.fleet.hosts[host].docker
        if not path:
            raise Refused(f"{host} has no Docker: hosts.{host}.docker is empty")
        return checked_word(path, f"hosts.{host}.docker")

    def unreachable(self) -> tuple[str, ...]:
        """The lane's hosts that cannot be asked now."""
        return tuple(
            host for host in dict.fromkeys(self.lane.rank_hosts) if self.host(host).link.status is LinkStatus.DOWN
        )

    def hosts(self) -> tuple[str, ...]:
        """The lane's hosts in rank order, those out of reach left out."""
        away = self.unreachable()
        return tuple(host for host in dict.fromkeys(self.lane.rank_hosts) if host not in away)

    def filled(self, template: str, what: str, rank: int | None = 0) -> str:
        """A text of the recipe with its `{names}`. Raises Refused where one is missing, with the key that fills it."""
        if not self._fill:
            site = self.view.site.value if self.view.site is not None else None
            self._fill.append(Filling(self.recipe, self.lane.vars, site, self.view.name))
        text = self._fill[0].text(what, template, rank)
        if template and not text:
            missing = next((note for note in self._fill[0].unfilled if note.startswith(f"{what}: ")), "")
            if missing:
                raise Refused(missing)
        return text

    def command(self, words: Iterable[str], what: str) -> tuple[str, ...]:
        """A command of the recipe, every word filled in and checked."""
        return tuple(checked_word(self.filled(word, what), what) for word in words)

    def ranks(self) -> tuple[RankView, ...]:
        """The ranks on hosts that can be asked."""
        away = self.unreachable()
        return tuple(rank for rank in self.view.ranks if rank.host not in away)

    def kept(self, container: Container | None) -> bool:
        """Whether there is a container to act on."""
        return container is not None and container.state is not ContainerState.GONE

    @property
    def health(self) -> HttpAnswer | None:
        """The health endpoint's newest answer; None where it is too old or was never read."""
        return self.view.health.current(self.snapshot.now)

    @property
    def booting(self) -> bool:
        """A start is under way."""
        return self.view.boot_progress is not None or self.view.verdict.state is LaneState.BOOTING

    @property
    def up(self) -> bool:
        """Some rank of it runs."""
        return any(rank.container is not None and rank.container.up for rank in self.view.ranks)


def stale(scene: Scene) -> tuple[str, ...]:
    """What the plan would need to know and does not, each naming host or reading."""
    now = scene.snapshot.now
    found = [f"{host}: out of reach" for host in scene.unreachable()]
    for host in scene.hosts():
        if scene.lane.runs_in == "docker":
            found += _age(f"{host} containers", scene.host(host).containers, now)
    found += _age("health", scene.view.health, now)
    return tuple(found)


def _age(what: str, reading: Reading[object] | Reading[HttpAnswer], now: float) -> list[str]:
    if reading.current(now) is not None:
        return []
    age = reading.age(now)
    return [f"{what}: last read {fmt.age(age)} ago" if age is not None else f"{what}: not read"]


def unread(way: WayBack) -> tuple[str, ...]:
    """What was known of a way back and is no longer current: who goes by it has to say so."""
    return tuple(f"{item.name}: {item.text}" for item in way.items if item.word is Word.STALE)


def unproved(way: WayBack) -> tuple[str, ...]:
    """What of a way back nobody can know beforehand: told, and in nobody's way."""
    return tuple(f"{item.name}: {item.text}" for item in way.items if item.word is Word.UNKNOWN)


def cuts(scene: Scene) -> str:
    """What a stop cuts off: requests, and who depends on the lane."""
    flow = scene.view.throughput.current(scene.snapshot.now)
    parts = []
    if flow is not None:
        for count, word in ((flow.running, "running"), (flow.waiting, "waiting")):
            if count:
                parts.append(f"{count:g} {word} request{'' if count == 1 else 's'}")
    elif scene.up and scene.view.verdict.state is not LaneState.DOWN:
        parts.append("requests: not known how many")
    if scene.up and scene.lane.consumers:
        parts.append("used by " + ", ".join(line(name, 60) for name in scene.lane.consumers))
    return "; ".join(parts)


def ends(scene: Scene) -> tuple[str, ...]:
    """What is under way and would be ended: `stop (20261130T...-stop-a1b2c3), step stop-n1`."""
    acting = scene.view.acting.value if scene.view.acting is not None else None
    running = acting.operation if acting is not None else None
    if running is None or running.state is not OperationState.RUNNING:
        return ()
    at = f", step {running.step.title}" if running.step is not None else ""
    return (line(f"{running.verb} by {running.operator} ({running.id}){at}", 200),)


def competing(scene: Scene) -> tuple[str, ...]:
    """Others that may start or end the engine, each a sentence."""
    dog = scene.view.watchdog.value if scene.view.watchdog is not None else None
    return dog.competing if dog is not None else ()


def boot(scene: Scene, revision: str) -> tuple[float | None, str, float]:
    """(usual seconds of a start, where they come from, the most it may take), from the lane's own boots."""
    usual, basis = boot_time(scene.view, revision)
    totals = [record.total for record in scene.view.boots]
    limit = scene.acts.launch.limit_s
    if totals:
        limit = max(limit, 2 * max(totals), 3 * median(totals))
    elif usual is not None:
        limit = max(limit, 3 * usual)
    return usual, basis, limit


def stop_time(running: bool) -> tuple[float, str]:
    """(usual seconds, basis) of one stop."""
    return (STOP_S, "estimate") if running else (1.0, "it has ended already")


def served_name(scene: Scene, container: Container | None = None) -> str:
    """The name that must be among the models; '' where nobody says, and what no command can carry."""
    name = scene.lane.served or (container.served_name if container is not None else "")
    return name if _SERVED.fullmatch(name) else ""


def title(verb: Verb, scene: Scene) -> str:
    """`roll back dsv41 on spark4`."""
    words = {
        Verb.DISARM: "disarm the watchdog of",
        Verb.ARM: "arm the watchdog of",
        Verb.STOP: "stop",
        Verb.RELAUNCH: "relaunch",
        Verb.ROLLBACK: "roll back",
    }
    return f"{words[verb]} {scene.view.name} on {scene.snapshot.fleet.name}"


def container_facts(prefix: str, held: Sequence[tuple[str, Container]]) -> list[tuple[str, str]]:
    """Ids of containers and images, and where their mounts come from, by host."""
    facts: list[tuple[str, str]] = []
    for host, item in held:
        facts.append((f"{prefix} container {host}", item.id))
        facts.append((f"{prefix} image {host}", item.image_id))
        facts += [(f"{prefix} mount {host} {mount.target}", mount.source) for mount in item.mounts]
    return facts
