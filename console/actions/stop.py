"""Stop: watchdog first, logs kept before anything is removed, ranks in the recipe's order, then observed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from console.actions.disarm import before_stop, off_probes
from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.actions.probes import ask, container_stopped, port_closed, scripted, unit_is
from console.actions.scene import (
    STOP_LIMIT,
    Refused,
    Scene,
    checked_name,
    checked_unit,
    competing,
    container_facts,
    cuts,
    ends,
    stale,
    stop_time,
    title,
)
from console.actions.steps import evidence, stop_container
from console.readings.containers import Container
from console.readings.link import LinkStatus

_SET_ASIDE = ("always", "on-failure", "unless-stopped")
BESIDE = "stop"
"""The word of steps that run while the ranks are stopped."""
Held = tuple[str, Container]
"""A host and the container there."""


def stop_plan(scene: Scene) -> Plan:
    """End the engine on every rank that can be reached, and see that it ended. Raises Refused."""
    held = lane_containers(scene)
    by = scene.acts.stop.by
    if by == "docker" and not held and not scene.unreachable():
        unread = [host for host in scene.hosts() if scene.host(host).containers.current(scene.snapshot.now) is None]
        if unread:
            raise Refused(f"what runs is not known: the containers of {', '.join(unread)} are not read now")
        raise Refused("nothing to stop: no container of this lane is seen on any rank")
    guard = before_stop(scene)
    steps = [*drain(scene), *guard, *stopping(scene, held)]
    return Plan(
        Verb.STOP,
        scene.snapshot.fleet.name,
        scene.view.name,
        scene.head,
        title(Verb.STOP, scene),
        tuple(steps),
        origin=scene.view.verdict.state.value,
        target="stopped",
        facts=tuple(container_facts("serving", held)),
        cuts=cuts(scene),
        ends=ends(scene),
        warnings=tuple(warnings(scene, held)),
        unknown=stale(scene),
        left_out=scene.unreachable(),
        owes="watchdog" if guard else "",
        notes=(*policy_notes(scene, held), *competing(scene)),
    )


def stopping(scene: Scene, held: Sequence[Held], *, aside: bool = True) -> list[Step]:
    """Logs and stop. Side by side where the containers stay; where they are removed the logs come first, or nothing."""
    gone = scene.acts.stop.removes or any(item.auto_remove for _, item in held)
    beside = scene.acts.stop.by == "docker" and scene.acts.stop.order == "together" and not gone
    saves = kept_logs(scene, held, required=gone, together=BESIDE if beside else "save")
    stops = stop_steps(scene, held, aside=aside)
    return [*saves, *(replace(step, before=(*step.before, *off_probes(scene))) for step in stops)]


def lane_containers(scene: Scene) -> tuple[Held, ...]:
    """The lane's own container on each rank that can be reached."""
    return tuple((rank.host, rank.container) for rank in scene.ranks() if rank.container and scene.kept(rank.container))


def drain(scene: Scene) -> Iterator[Step]:
    """Waits until no request runs, at most as long as was asked for; goes on in any case."""
    if scene.drain_s <= 0:
        return
    seconds = int(scene.drain_s)
    argv, stdin = scripted("drain.sh", scene.lane.url + scene.lane.metrics_path, str(seconds))
    yield Step(
        "drain",
        Stage.EVIDENCE,
        f"wait up to {seconds} s for running requests",
        scene.head,
        argv,
        limit=seconds + 30.0,
        stdin=stdin,
        usual=float(seconds),
        basis="at most",
        optional=True,
        detached=True,
    )


def kept_logs(
    scene: Scene, held: Sequence[Held], *, required: bool, quick: bool = False, together: str = "save"
) -> list[Step]:
    """Evidence of every rank: by the containers that are seen, else by the name that the recipe knows."""
    if scene.lane.runs_in != "docker":
        return []
    found = []
    for host in scene.hosts():
        if not scene.snapshot.fleet.hosts[host].docker:
            continue
        ids = [item.id for where, item in held if where == host]
        names = ids or ([name] if (name := known_name(scene)) else [])
        found.append(evidence(scene, host, names, quick=quick, required=required, together=together))
    return found


def known_name(scene: Scene) -> str:
    """Name of a rank's container by the recipe; '' where it has none or it cannot be filled in."""
    try:
        return checked_name(scene.filled(scene.acts.container, "container")) if scene.acts.container else ""
    except Refused:
        return ""


def stop_steps(scene: Scene, held: Sequence[Held], *, aside: bool = True) -> list[Step]:
    """The recipe's way to end the engine, and what must be observed after it; `aside`: with its restart policies."""
    by = scene.acts.stop.by
    if by == "unit":
        return [stop_unit(scene)]
    if by == "launcher":
        return _by_launcher(scene, held)
    steps = []
    for host, item in _in_order(scene, held):
        group = BESIDE if scene.acts.stop.order == "together" else f"stop-{'head' if host == scene.head else 'workers'}"
        policy = "no" if aside and item.restart_policy.partition(":")[0] in _SET_ASIDE else "-"
        step = stop_container(scene, host, item, policy=policy, together=group, head=host == scene.head)
        steps.append(replace(step, after=(*step.after, *memory_back(scene, host))))
    return steps


def _in_order(scene: Scene, held: Sequence[Held]) -> list[Held]:
    if scene.acts.stop.order == "together":
        return list(held)
    first = scene.acts.stop.order == "head first"
    return sorted(held, key=lambda one: (one[0] == scene.head) is not first)


def _by_launcher(scene: Scene, held: Sequence[Held]) -> list[Step]:
    argv, stdin = scripted("launcher.sh", "-", *scene.command(scene.acts.stop.argv, "stop"))
    usual, basis = stop_time(scene.up)
    after = [container_stopped(host, scene.socket(host), item) for host, item in held]
    after += [probe for host, _ in held for probe in memory_back(scene, host)]
    after.append(port_closed(scene.head, scene.lane.port))
    step = Step(
        "stop-lane",
        Stage.STOP,
        "stop every rank by the launcher",
        scene.head,
        argv,
        limit=scene.acts.stop.grace_s + STOP_LIMIT,
        stdin=stdin,
        after=tuple(after),
        usual=usual,
        basis=basis,
        undo="relaunch (R)",
        detached=True,
    )
    return [step]


def stop_unit(scene: Scene) -> Step:
    """Stops the engine's systemd unit; observed: it is inactive, the port is closed."""
    unit, manager = engine_unit(scene), scene.acts.manager
    argv, stdin = scripted("unit.sh", "stop", manager, unit)
    usual, basis = stop_time(True)
    ended = unit_is(scene.head, manager, unit, "inactive")
    return Step(
        "stop-unit",
        Stage.STOP,
        f"stop {unit}",
        scene.head,
        argv,
        limit=scene.acts.stop.grace_s + STOP_LIMIT,
        stdin=stdin,
        already=(ended,),
        after=(ended, port_closed(scene.head, scene.lane.port)),
        usual=usual,
        basis=basis,
        undo=f"systemctl start {unit}",
        detached=True,
        again=True,
    )


def engine_unit(scene: Scene) -> str:
    """The engine's unit. Raises Refused where nobody names it."""
    name = scene.filled(scene.acts.unit, "unit") if scene.acts.unit else ""
    if not name:
        raise Refused(f"the engine's systemd unit is not known: set lanes.{scene.view.name}.vars.unit")
    return checked_unit(name)


def memory_back(scene: Scene, host: str) -> list[Probe]:
    """Memory that the engine held is back: of a host whose CPU and GPU share it, and of each GPU that was in use."""
    share = scene.acts.stop.memory_share
    if not share:
        return []
    view, percent = scene.host(host), str(round(share * 100))
    probes = []
    if view.unified:
        words = f"{percent} % of the memory of {host} is available"
        probes.append(ask("memory_back.sh", host, words, percent))
    used = [gpu.uuid for gpu in view.gpus.value or () if _in_use(gpu.memory_used, gpu.memory_total, share)]
    if used:
        words = f"{percent} % of the GPU memory of {host} is free"
        probes.append(ask("gpu_back.sh", host, words, percent, *used))
    return probes


def _in_use(used: int | None, total: int | None, share: float) -> bool:
    return used is not None and bool(total) and total is not None and used > total * (1 - share)


def policy_notes(scene: Scene, held: Sequence[Held]) -> Iterator[str]:
    """Restart policies that are set aside, by name."""
    for host, item in held:
        if scene.acts.stop.by == "docker" and item.restart_policy.partition(":")[0] in _SET_ASIDE:
            yield (
                f"{host}: restart policy {item.restart_policy} of {item.name} is set aside, "
                f"its next start by laneswap sets it again"
            )


def warnings(scene: Scene, held: Sequence[Held]) -> Iterator[str]:
    """What an operator should know before it."""
    for host, item in held:
        if item.auto_remove:
            yield f"{host}: {item.name} removes itself when it stops (--rm), no way back to it"
        if item.state.value == "paused":
            yield f"{host}: {item.name} is paused and is unpaused first"
        if item.autoheal:
            yield f"{host}: {item.name} is labelled for autoheal, a third party may start it again"
    if scene.acts.stop.removes:
        yield "the launcher's own stop removes the containers: their logs are kept first, none can be started again"
    for host in scene.unreachable():
        yield f"{host} is left out: its rank may go on running"
    connecting = [h for h in scene.hosts() if scene.host(h).link.status is not LinkStatus.UP]
    yield from (f"{host}: its link is not up yet" for host in connecting)
