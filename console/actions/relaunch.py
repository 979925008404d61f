"""Relaunch: the recipe's own launcher in a detached step, every rank watched, healthy only by the new process.

Where the recipe has no launcher, the container that served is stopped and started again by its id, or its unit is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from console import format as fmt
from console.actions.disarm import arm_steps, before_stop, has_guard, no_launch, off_probes
from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.actions.probes import ask, scripted, serving, unit_is
from console.actions.scene import (
    EVIDENCE,
    Refused,
    Scene,
    boot,
    checked_id,
    competing,
    container_facts,
    cuts,
    ends,
    stale,
    title,
)
from console.actions.steps import evidence, start_container, step_id
from console.actions.stop import (
    Held,
    engine_unit,
    kept_logs,
    known_name,
    lane_containers,
    stop_unit,
    stopping,
    warnings,
)
from console.readings.containers import Container
from console.readings.roles import Role, role_of
from console.wayback import way_back
from console.wayback.standing import former as stood
from console.wayback.standing import meant


def relaunch_plan(scene: Scene) -> Plan:
    """End what runs, start it anew, see that the new process answers. Raises Refused."""
    held = lane_containers(scene)
    chosen: Sequence[Held] = held
    launch = scene.acts.launch
    if away := scene.unreachable():
        raise Refused(f"{', '.join(away)} cannot be reached, and every rank is needed")
    if launch.by == "launcher":
        _names_free(scene)
        steps = [*shown_dry(scene), *launch_steps(scene, held, revision(scene))]
        # where the watchdog is off already nobody has asked yet; a second launcher tears down what the first starts
        alone = tuple(no_launch(scene))
        steps = [replace(one, before=(*one.before, *alone)) if one.id == "launch" else one for one in steps]
    elif launch.by == "unit":
        steps = [*before_stop(scene), *_by_unit(scene)]
    else:
        chosen = started_again(scene, held)
        steps = list(_by_docker(scene, held, chosen))
    if launch.by != "launcher" and has_guard(scene):
        steps += arm_steps(scene)
    return Plan(
        Verb.RELAUNCH,
        scene.snapshot.fleet.name,
        scene.view.name,
        scene.head,
        title(Verb.RELAUNCH, scene),
        tuple(steps),
        origin=scene.view.verdict.state.value,
        target=_target(scene, chosen),
        facts=(*container_facts("serving", held), *_again_facts(held, chosen), *site_facts(scene)),
        rescue=tuple(rescue(scene, held)),
        cuts=cuts(scene),
        ends=ends(scene),
        warnings=(*_leads(scene, chosen), *(row for row in warnings(scene, held) if scene.up or "removes" not in row)),
        unknown=stale(scene),
        owes="watchdog" if has_guard(scene) else "",
        pays="watchdog" if has_guard(scene) else "",
        notes=competing(scene),
    )


def started_again(scene: Scene, held: Sequence[Held]) -> list[Held]:
    """The container that is started again on each rank: what is up, and where nothing is what the newest operation says
    served before it. Raises Refused where a rank has none of that revision: ranks of two revisions are no lane."""
    found = meant(scene.view)
    head = stood(scene.view, found, scene.head, _boxes(scene, scene.head)) if found is not None else None
    if found is None or head is None:
        return list(held)
    chosen = {host: stood(scene.view, found, host, _boxes(scene, host)) for host in scene.hosts()}
    if without := [host for host, item in chosen.items() if item is None and host in dict(held)]:
        raise Refused(
            f"{', '.join(without)}: no container of {found.short} is there, which served until {found.words}: "
            "start the ranks by hand, or roll back (B)"
        )
    return [(host, item) for host, item in chosen.items() if item is not None]


def _boxes(scene: Scene, host: str) -> Sequence[Container]:
    reading = scene.host(host).containers.value
    return reading.items if reading is not None else ()


def _again_facts(held: Sequence[Held], chosen: Sequence[Held]) -> list[tuple[str, str]]:
    """What is started, where that is another one than what is seen."""
    return container_facts("again", [one for one in chosen if one not in held])


def _target(scene: Scene, chosen: Sequence[Held]) -> str:
    """Where it leads to: a container with its revision, the site file's revision, else only `serving`."""
    by = scene.acts.launch.by
    head = next((item for host, item in chosen if host == scene.head), None)
    if by == "docker" and head is not None and head.revision:
        return f"{head.name} {fmt.revision(head.revision)}"
    wanted = revision(scene) if by == "launcher" and site_facts(scene) else ""
    return fmt.revision(wanted) if wanted else "serving"


def _leads(scene: Scene, chosen: Sequence[Held]) -> Iterator[str]:
    """Of a lane that is down: which one is started again and why, and whether the other key leads anywhere else."""
    head = next((item for host, item in chosen if host == scene.head), None)
    found = meant(scene.view)
    if found is not None and head is not None and head.name == found.name:
        yield f"R starts {found.name} {found.short} again: {found.words}"
    if scene.up:
        return
    way = way_back(scene.snapshot, scene.view)
    there = revision(scene) if way.by == "site" else head.revision if head is not None else ""
    if way.revision and way.revision == there:
        yield f"R and B lead to the same revision, {fmt.revision(there)}: {way.why}"


def site_facts(scene: Scene) -> tuple[tuple[str, str], ...]:
    """The site file's text, which the launcher reads."""
    site = scene.view.site.value if scene.view.site is not None else None
    if site is None:
        return ()
    return (("now site sha256", hashlib.sha256(site.data).hexdigest()), ("now site revision", site.revision))


def revision(scene: Scene) -> str:
    """The one that a relaunch serves: the site file's, else what serves now."""
    site = scene.view.site.value if scene.view.site is not None else None
    return (
        site.revision if site is not None else next((rank.revision for rank in scene.view.ranks if rank.revision), "")
    )


def shown_dry(scene: Scene) -> Iterator[Step]:
    """The launcher's dry run, where it really has one; its words are in the step's log."""
    launch = scene.acts.launch
    if not launch.dry_run:
        return
    folder = scene.filled(launch.folder, "launch.folder") or "-"
    argv, stdin = scripted("launcher.sh", folder, *scene.command(launch.dry_run, "launch.dry_run"))
    yield Step(
        "dry-run",
        Stage.EVIDENCE,
        "dry run of the launcher",
        scene.head,
        argv,
        limit=180.0,
        stdin=stdin,
        usual=5.0,
        basis="estimate",
        optional=True,
        detached=True,
    )


def launch_steps(
    scene: Scene, held: Sequence[Held], target: str, between: Sequence[Step] = (), *, back: bool = False
) -> Iterator[Step]:
    """Checks, logs, watchdog off, what has to be cleared, `between` (site file and rows), the launcher, watchdog on."""
    launch = scene.acts.launch
    if launch.preflight and not between:
        # what it says while the engine still runs may be about that engine: shown, never in the way
        step = _plain(
            scene, "preflight", "the launcher's own checks", launch.preflight, "launch.preflight", limit=600.0
        )
        yield replace(step, optional=True)
    yield from kept_logs(scene, held, required=bool(launch.clear or launch.removes))
    yield from before_stop(scene, back=back)
    if launch.clear:
        yield _clear(scene)
    yield from between
    yield _launch(scene, held, target)
    if not has_guard(scene):
        return
    if launch.arms:
        first, *rest = arm_steps(scene)
        yield replace(first, title="see that the launcher armed the watchdog, arm it where it did not")
        yield from rest
    else:
        yield from arm_steps(scene)


def _plain(scene: Scene, name: str, words: str, command: Sequence[str], what: str, *, limit: float) -> Step:
    folder = scene.filled(scene.acts.launch.folder, "launch.folder") or "-"
    argv, stdin = scripted("launcher.sh", folder, *scene.command(command, what))
    return Step(
        name, Stage.EVIDENCE, words, scene.head, argv, limit=limit, stdin=stdin, usual=30.0, basis="estimate",
        detached=True,
    )  # fmt: skip


def _clear(scene: Scene) -> Step:
    step = _plain(scene, "clear", "clear what a launch left", scene.acts.launch.clear, "launch.clear", limit=300.0)
    name = known_name(scene)
    gone = tuple(
        ask("container_gone.sh", host, f"no container {name} is left on {host}", scene.socket(host), name)
        for host in scene.hosts()
        if name
    )
    return replace(step, stage=Stage.STOP, before=off_probes(scene), already=gone, after=gone, usual=20.0)


def _launch(scene: Scene, held: Sequence[Held], target: str) -> Step:
    launch = scene.acts.launch
    usual, basis, limit = boot(scene, target)
    in_docker = scene.lane.runs_in == "docker"
    socket = scene.socket(scene.head) if in_docker else "-"
    name = rank_name(scene, scene.head, held) if in_docker else ""
    folder = scene.filled(launch.folder, "launch.folder") or "~"
    log = scene.filled(launch.log, "launch.log") or "-"
    exits = [f"{code}={words}" for code, words in sorted(launch.exits.items())]
    command = scene.command(launch.argv, "launch.argv")
    argv, stdin = scripted("launch.sh", folder, EVIDENCE, socket, name or "-", log, *exits, "--", *command)
    new = (ask("launched.sh", scene.head, f"a new {name} runs", socket, name, EVIDENCE),) if name else ()
    return Step(
        "launch",
        Stage.BOOT,
        "launch",
        scene.head,
        argv,
        limit=limit,
        stdin=stdin,
        before=off_probes(scene),
        after=(*new, serving(scene)),
        watch=tuple(watch_ranks(scene, held)) if in_docker else (),
        usual=usual,
        basis=basis,
        undo="stop (S), or roll back (B)",
        detached=True,
        keeps=True,
    )


def rank_name(scene: Scene, host: str, held: Sequence[Held]) -> str:
    """Name of a rank's container: as it is seen, else by the recipe; '' where neither says."""
    seen = next((item.name for where, item in held if where == host), "")
    return known_name(scene) or seen


def former(host: str, held: Sequence[Held]) -> str:
    """Id of the container that a rank had before; `-` for none."""
    return next((checked_id(item) for where, item in held if where == host), "-")


def watch_ranks(scene: Scene, held: Sequence[Held]) -> Iterator[Probe]:
    """Every rank's new container lives: one that ends leaves the launcher waiting for the head alone."""
    for host in scene.hosts():
        if name := rank_name(scene, host, held):
            words = f"{name} on {host} has not ended"
            yield ask("rank_alive.sh", host, words, scene.socket(host), name, former(host, held))


def rescue(scene: Scene, held: Sequence[Held]) -> Iterator[Step]:
    """After a launch that failed: every rank's log, then what is left of it is stopped. What ran before stays."""
    if scene.lane.runs_in != "docker":
        return
    launcher = scene.acts.launch.by == "launcher"
    named = {host: rank_name(scene, host, held) for host in scene.hosts()}
    known = [(host, named[host] if launcher else former(host, held)) for host in scene.hosts()]
    known = [(host, name) for host, name in known if name not in ("", "-")]
    for host, name in known:
        step = evidence(scene, host, [name], quick=False, together="rescue-logs")
        yield replace(step, id=f"rescue-{step.id}")
    for host, name in known if launcher else ():
        argv, stdin = scripted(
            "survivors_stop.sh", scene.socket(host), name, former(host, held), str(scene.acts.stop.grace_s)
        )
        yield Step(
            step_id("rescue-stop", host),
            Stage.STOP,
            f"stop what the launch left on {host}",
            host,
            argv,
            limit=scene.acts.stop.grace_s + 120.0,
            stdin=stdin,
            usual=20.0,
            basis="estimate",
            together="rescue-stop",
            detached=True,
            optional=True,
        )


def _names_free(scene: Scene) -> None:
    """The launcher removes whatever has its container's name. Raises Refused where that is a way back."""
    name = known_name(scene)
    lane = scene.lane
    for host in scene.hosts():
        boxes = scene.host(host).containers.value
        for item in boxes.items if boxes is not None else ():
            if item.name == name and _kept_back(item, lane.port, lane.containers):
                raise Refused(
                    f"{host}: name in use: {name} is held by {item.id[:12]} ({item.state.value}/{item.exit_code}), "
                    "which is kept as a way back; the launcher would remove it: rename it first"
                )


def _kept_back(item: Container, port: int, glob: str) -> bool:
    texts = (item.name, *(value for key, value in item.labels if key.endswith("role")))
    marked = any("retired" in text.lower() for text in texts)
    return not item.up and marked and role_of(item, None, port, glob) is not Role.UNRELATED


def _by_docker(scene: Scene, held: Sequence[Held], chosen: Sequence[Held]) -> Iterator[Step]:
    """Ends what is there, starts what was chosen."""
    if not held or all(host != scene.head for host, _ in held):
        raise Refused("no container of this lane is seen on its head: nothing can be started again")
    for host, item in chosen:
        if item.auto_remove:
            raise Refused(f"{host}: {item.name} removes itself when it stops (--rm): it cannot be started again")
    yield from before_stop(scene)
    yield from stopping(scene, held, aside=list(held) != list(chosen))
    others = [(host, item) for host, item in chosen if host != scene.head]
    for host, item in others:
        yield start_container(scene, host, item, serves=False, together="start-workers")
    head = next(item for host, item in chosen if host == scene.head)
    yield start_container(scene, scene.head, head, others=others)


def _by_unit(scene: Scene) -> Iterator[Step]:
    unit, manager = engine_unit(scene), scene.acts.manager
    usual, basis, limit = boot(scene, "")
    yield stop_unit(scene)
    argv, stdin = scripted("unit.sh", "start", manager, unit)
    yield Step(
        "start-unit",
        Stage.BOOT,
        f"start {unit} and wait until it serves",
        scene.head,
        argv,
        limit=limit,
        stdin=stdin,
        after=(unit_is(scene.head, manager, unit, "active"), serving(scene)),
        usual=usual,
        basis=basis,
        undo=f"systemctl stop {unit}",
        detached=True,
        again=True,
    )
