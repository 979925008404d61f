"""Roll back: by the container that was kept (stop the serving one, start that one by id), or by the site file.

Afterwards the same key rolls forward: roles are observed, and what served until then is the one that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from console import format as fmt
from console.actions.disarm import arm_steps, before_stop, has_guard, off_probes, quiet_first, unswitched
from console.actions.plan import Plan, Probe, Step, Verb
from console.actions.probes import startable as can_start
from console.actions.scene import (
    Refused,
    Scene,
    checked_id,
    checked_name,
    competing,
    container_facts,
    cuts,
    ends,
    stale,
    title,
    unproved,
    unread,
)
from console.actions.steps import BETWEEN, evidence, rename_pair, start_container, stop_container
from console.fleet.recipe_acts import NameActs
from console.readings.containers import Container, belongs
from console.readings.roles import Role, returns_by_itself, role_of
from console.readings.roles import way_back as startable
from console.wayback import WayBack, way_back
from console.wayback.by_container import kept_containers
from console.wayback.standing import meant, stands_for

_POLICY = re.compile(r"no|always|unless-stopped|on-failure(:[1-9][0-9]{0,5})?")
BACK = "back container "
"""A fact of a frozen way back: the container of a host."""


def rollback_plan(scene: Scene) -> Plan:
    """The way back as steps. Raises Refused where it is proved impossible."""
    way = way_back(scene.snapshot, scene.view)
    if way.by == "site":
        from console.actions.site_back import site_plan  # it builds on the relaunch, which this does not need

        return site_plan(scene, way)
    if way.possible is False and not _frozen_ids(scene):
        raise Refused(way.why)
    if way.by != "container":
        raise Refused(way.why or "no way back is known")
    return _Pairs(scene, way).plan()


def _frozen_ids(scene: Scene) -> dict[str, str]:
    """Container by host of the way back that was frozen when the window was opened."""
    facts = scene.frozen.facts if scene.frozen is not None else ()
    return {name.removeprefix(BACK): value for name, value in facts if name.startswith(BACK)}


def _stem(names: NameActs, container: Container) -> str:
    """What its name begins with, without the mark of a renaming that was cut off."""
    return names.stem(container.name.removesuffix(BETWEEN)).removesuffix(BETWEEN)


class _Pairs:
    """On every rank: the container that serves (None where none does), and the one to go back to."""

    def __init__(self, scene: Scene, way: WayBack) -> None:
        self.scene, self.way = scene, way
        if away := scene.unreachable():
            raise Refused(f"{', '.join(away)} cannot be reached, and every rank is needed")
        frozen = _frozen_ids(scene)
        head_boxes = self._boxes(scene.head)
        self.back: dict[str, Container] = {scene.head: self._target(scene.head, head_boxes, frozen, way.subject)}
        revision = self.back[scene.head].revision
        for host in scene.hosts():
            if host != scene.head:
                self.back[host] = self._target(host, self._boxes(host), frozen, "", revision)
        self.serving = {host: self._serving(host) for host in scene.hosts()}

    def _boxes(self, host: str) -> tuple[Container, ...]:
        reading = self.scene.host(host).containers
        if reading.value is None or reading.value.problem:
            why = reading.value.problem if reading.value is not None else reading.error
            raise Refused(f"{host}: containers: {why or 'not read'}")
        return reading.value.items

    def _serving(self, host: str) -> Container | None:
        found = stands_for(self.scene.view, host, self._boxes(host))
        return None if found is None or found.id == self.back[host].id else found

    def _target(
        self, host: str, boxes: Sequence[Container], frozen: dict[str, str], name: str, revision: str = ""
    ) -> Container:
        if host in frozen:
            found = [item for item in boxes if item.id == frozen[host]]
            if not found:
                raise Refused(f"{host}: container removed: {frozen[host][:12]}, frozen as the way back")
        else:
            lane = self.scene.lane
            serving = stands_for(self.scene.view, host, boxes)
            kept = [item for item in boxes if role_of(item, serving, lane.port, lane.containers) is Role.RETIRED]
            found = [item for item in kept if (item.name == name if name else item.revision == revision)]
            found.sort(key=lambda item: (startable(item).possible is True, item.finished_at or 0.0), reverse=True)
        if not found:
            raise Refused(f"{host}: no stopped container of {fmt.revision(revision) if revision else name} is kept")
        if startable(found[0]).possible is False:
            raise Refused(f"{host}: {found[0].name}: {startable(found[0]).why}")
        return found[0]

    def plan(self) -> Plan:
        """Watchdog off, evidence and stop side by side, then the kept ones by id, then names, watchdog on."""
        scene = self.scene
        owes = "watchdog" if has_guard(scene) else ""
        back = tuple((host, self.back[host]) for host in scene.hosts())
        steps = [*self._disarms(), *self._stops(), *self._starts(), *self._renames()]
        if owes:
            steps += arm_steps(scene)
        serving = self.serving[scene.head]
        now = serving.revision if serving is not None else ""
        return Plan(
            Verb.ROLLBACK,
            scene.snapshot.fleet.name,
            scene.view.name,
            scene.head,
            title(Verb.ROLLBACK, scene),
            tuple(steps),
            origin=f"{serving.name} {fmt.revision(now)}".strip() if serving is not None else "nothing serves",
            target=f"{self.back[scene.head].name} {fmt.revision(self.back[scene.head].revision)}".strip(),
            facts=tuple(container_facts("back", back)),
            rescue=tuple(self._rescue()),
            cuts=cuts(scene),
            ends=ends(scene),
            warnings=tuple(self._warnings()),
            unknown=(*stale(scene), *self._unread()),
            owes=owes,
            pays=owes,
            notes=(*self._chosen(), *self._policy_notes(), *competing(scene)),
        )

    def _proofs(self) -> tuple[Probe, ...]:
        """The kept ones can be started: asked before anything that serves, or guards it, is touched."""
        return tuple(can_start(host, self.scene.socket(host), item) for host, item in self.back.items())

    def _disarms(self) -> Iterator[Step]:
        """The watchdog first: it would launch again what is stopped here, or end what is started."""
        for step in before_stop(self.scene, back=True):
            *waits, disarm = quiet_first(step)
            yield from waits
            yield replace(disarm, before=(*disarm.before, *self._proofs()))

    def _stops(self) -> Iterator[Step]:
        scene = self.scene
        for host in scene.hosts():
            ids = [checked_id(item) for item in (self.serving[host],) if item is not None]
            if ids:
                # what removes itself takes its logs along: they come first then, in the few seconds that they may take
                gone = any(item.auto_remove for item in self.serving.values() if item is not None)
                yield evidence(scene, host, ids, quick=True, together="save" if gone else "stop")
        proofs = (*self._proofs(), *off_probes(scene))
        for host, item in self.serving.items():
            if item is None or not scene.kept(item):
                continue
            policy = self._policy_of_retired(host, item)
            step = stop_container(scene, host, item, policy=policy, together="stop", head=host == scene.head)
            yield replace(step, before=proofs)

    def _starts(self) -> Iterator[Step]:
        scene = self.scene
        others = [(host, item) for host, item in self.back.items() if host != scene.head]
        for host, item in others:
            policy = self._policy_of_serving(host)
            yield start_container(
                scene, host, item, policy=policy, instead=self.serving[host], serves=False, together="start-workers"
            )
        policy, head = self._policy_of_serving(scene.head), self.back[scene.head]
        yield start_container(scene, scene.head, head, policy=policy, instead=self.serving[scene.head], others=others)

    def _policy_of_retired(self, host: str, item: Container) -> str:
        """The restart policy of what is kept from now on: the other's, where that one stays down by it."""
        others = self.back[host].restart_policy.partition(":")[0]
        wanted = "unless-stopped" if others == "unless-stopped" else "no"
        return "-" if item.restart_policy in ("", wanted) else wanted

    def _policy_of_serving(self, host: str) -> str:
        """The restart policy of what serves from now on: that of the one that served."""
        serving = self.serving[host]
        policy = serving.restart_policy if serving is not None else ""
        return policy if _POLICY.fullmatch(policy) else "-"

    def _renames(self) -> Iterator[Step]:
        for host, wanted in self._wanted().items():
            serving, back = self.serving[host], self.back[host]
            if serving is not None and (wanted[0], wanted[1]) != (back.name, serving.name):
                yield rename_pair(self.scene, host, back, wanted[0], serving, wanted[1])

    def _wanted(self) -> dict[str, tuple[str, str]]:
        """By host: the new names of the one that serves then and of the one that is kept, where names carry the state
        and nobody else holds one of them."""
        names = self.scene.acts.names
        found: dict[str, tuple[str, str]] = {}
        if names is None:
            return found
        for host, back in self.back.items():
            serving = self.serving[host]
            if serving is None or names.retired not in back.name:
                continue
            wanted = (_stem(names, back) + names.serving, _stem(names, serving) + names.retired)
            if not self._holders(host, wanted) and wanted[0] != wanted[1]:
                found[host] = (checked_name(wanted[0]), checked_name(wanted[1]))
        return found

    def _holders(self, host: str, wanted: Sequence[str]) -> list[Container]:
        ours = {item.id for item in (self.serving[host], self.back[host]) if item is not None}
        return [item for item in self._boxes(host) if item.name in wanted and item.id not in ours]

    def _rescue(self) -> Iterator[Step]:
        for host, item in self.back.items():
            step = evidence(self.scene, host, [checked_id(item)], quick=True, together="rescue")
            yield replace(step, id=f"rescue-{step.id}")

    def _warnings(self) -> Iterator[str]:
        names = self.scene.acts.names
        if words := unswitched(self.scene):
            yield words
        for host, back in self.back.items():
            serving = self.serving[host]
            if serving is not None and serving.auto_remove:
                yield f"{host}: {serving.name} removes itself when it stops (--rm): no rolling forward to it"
            if names is not None and serving is not None and names.retired in back.name:
                wanted = (_stem(names, back) + names.serving, _stem(names, serving) + names.retired)
                for holder in self._holders(host, wanted):
                    state = holder.state.value
                    yield (
                        f"{host}: name in use: {holder.name} is held by {holder.id[:12]} ({state}); "
                        "names stay as they are"
                    )
            lane = self.scene.lane
            if serving is not None and serving.up and not belongs(serving, lane.port, lane.containers):
                yield f"{host}: {serving.name} holds the port and is stopped, though its name is none of this lane's"
            if back.tag_moved:
                yield f"{host}: the image name of {back.name} means another image now; its own is kept by id"
        for item in self.way.items:
            if item.word.value == "FAIL" and not item.shuts:
                yield f"{item.name}: {item.text}"
        yield from unproved(self.way)

    def _chosen(self) -> Iterator[str]:
        """Which of several that are kept is gone back to, why, and how another one is chosen."""
        scene, boxes = self.scene, self._boxes(self.scene.head)
        frozen = scene.head in _frozen_ids(scene)
        if meant(scene.view) is not None and not frozen:
            yield f"B starts {self.way.why}"
        kept = kept_containers(boxes, stands_for(scene.view, scene.head, boxes), scene.lane)
        others = [item for item in kept if item.id != self.back[scene.head].id]
        if others and not frozen:
            named = ", ".join(f"{item.name} {fmt.revision(item.revision)}".strip() for item in others[:4])
            yield f"kept too: {named}; of several one whose name holds 'retired' is taken first"

    def _unread(self) -> tuple[str, ...]:
        return unread(self.way)

    def _policy_notes(self) -> Iterator[str]:
        for host, back in self.back.items():
            serving = self.serving[host]
            if returns_by_itself(back):
                yield f"{host}: {back.name} has restart={back.restart_policy}: it comes back after a daemon restart"
            if serving is None:
                continue
            if (policy := self._policy_of_retired(host, serving)) != "-":
                yield f"{host}: restart policy of {serving.name} goes from {serving.restart_policy} to {policy}"
            if (policy := self._policy_of_serving(host)) not in ("-", back.restart_policy):
                yield f"{host}: restart policy of {back.name} goes from {back.restart_policy or 'unknown'} to {policy}"
