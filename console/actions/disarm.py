"""Disarm and arm the watchdog, each verified by reading afterwards. A disarmed watchdog is a debt until it is armed.

A process is signalled only by a script that finds the watchdog's command line behind that number in the same breath.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console import format as fmt
from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.actions.probes import ask, file_absent, file_there, pattern, scripted, serving, unit_is
from console.actions.scene import (
    EVIDENCE,
    Refused,
    Scene,
    checked_unit,
    checked_word,
    competing,
    ends,
    title,
)
from console.actions.steps import step_id
from console.fleet.places import WatchdogPlace
from console.fleet.recipe_acts import GuardActs
from console.readings.lights import LaneState
from console.readings.watchdog import Watchdog, WatchdogState

OFF = (
    WatchdogState.OFF,
    WatchdogState.PAUSED,
    WatchdogState.GAVE_UP,
    WatchdogState.DEAD_LOCK,
    WatchdogState.REUSED_PID,
    WatchdogState.FAILED,
    WatchdogState.STANDING_DOWN,
)
"""States in which the key arms."""
TERM_LIMIT = 120.0
"""Seconds: one that waits for its own sleep to end stands down within its interval once its lock is gone."""
QUIET_LIMIT = 240.0
"""Seconds that the way back waits for a launch that is under way: its checks, six tries of ten seconds for a GPU."""
SETTLE_S = 6
"""Seconds after which a watchdog that was started is looked for again: well after the unit that started it is gone."""


def guard_verb(watchdog: Watchdog | None) -> Verb:
    """What `D` does: arm what is known not to watch, disarm everything else."""
    return Verb.ARM if watchdog is not None and watchdog.state in OFF else Verb.DISARM


def disarm_plan(scene: Scene) -> Plan:
    """Switch the watchdog off, and see that it is. Raises Refused."""
    return _plan(scene, Verb.DISARM, disarm_steps(scene), owes="watchdog")


def arm_plan(scene: Scene) -> Plan:
    """Switch the watchdog on again, and see that it runs. Raises Refused while a boot runs or health is not 200."""
    _guard(scene)
    if scene.booting:
        raise Refused("a start is under way: a watchdog that is armed now may end it and launch once more")
    answer = scene.health
    if answer is not None and answer.status != 200:
        said = f"answers {answer.status}" if answer.status is not None else "does not answer"
        raise Refused(f"health {said}: its next check would fail{_due(scene)}")
    if scene.view.verdict.state is LaneState.DOWN:
        raise Refused(f"the lane is down: its next check would fail{_due(scene)}")
    steps = tuple(arm_steps(scene))
    unknown = () if answer is not None else ("health: not read lately; asked again before anything is armed",)
    return replace(_plan(scene, Verb.ARM, steps, pays="watchdog"), unknown=unknown)


def _due(scene: Scene) -> str:
    """`, was due 17m30s ago, runs at once`: timers that are overdue, as the reading has them."""
    dog = scene.view.watchdog.value if scene.view.watchdog is not None else None
    own = (dog.words,) if dog is not None else ()
    late = [words for words in (*own, *competing(scene)) if "runs at once" in words]
    return f"; {late[0]}" if late else ""


def _plan(scene: Scene, verb: Verb, steps: tuple[Step, ...], owes: str = "", pays: str = "") -> Plan:
    dog = scene.view.watchdog.value if scene.view.watchdog is not None else None
    short = dog.short or dog.state.value if dog is not None else "not read"
    warnings = tuple(_warnings(scene, verb, dog))
    return Plan(
        verb,
        scene.snapshot.fleet.name,
        scene.view.name,
        scene.head,
        title(verb, scene),
        steps,
        origin=f"watchdog {short}",
        target="watchdog off" if verb is Verb.DISARM else "watchdog armed",
        facts=(("watchdog kind", _guard(scene)[1].kind), ("watchdog way", _guard(scene)[0].disarm)),
        ends=ends(scene),
        warnings=warnings,
        owes=owes,
        pays=pays,
        notes=competing(scene),
    )


def _warnings(scene: Scene, verb: Verb, dog: Watchdog | None) -> Iterator[str]:
    if dog is None:
        yield "the watchdog was not read"
    elif dog.state is WatchdogState.TWO:
        yield f"{dog.words}: only the one that lock or log name is ended"
    elif dog.state is WatchdogState.RECOVERY and verb is Verb.DISARM:
        yield "it is in recovery: it is ended only if no launch is under way on any rank"
    elif dog.state is WatchdogState.REUSED_PID:
        yield dog.words
    if verb is Verb.ARM and (due := _due(scene)):
        yield due.removeprefix("; ")


def _guard(scene: Scene) -> tuple[GuardActs, WatchdogPlace]:
    """How the recipe says it is switched, and where it lies. Raises Refused where there is none."""
    acts, place = scene.acts.watchdog, scene.places.watchdog
    if place is None:
        raise Refused("this lane has no watchdog: restart policies are all there is")
    if acts is None:
        raise Refused(f"recipe {scene.recipe.name} does not say how its watchdog is switched: [acts.watchdog]")
    return acts, place


def has_guard(scene: Scene) -> bool:
    """Whether there is a watchdog that laneswap may switch."""
    return scene.acts.watchdog is not None and scene.places.watchdog is not None


def disarm_steps(scene: Scene) -> tuple[Step, ...]:
    """What switches it off. Raises Refused."""
    acts, place = _guard(scene)
    flight = tuple(no_launch(scene)) if _recovers(scene) or acts.disarm == "term" else ()
    off = off_probes(scene)
    base = Step(
        step_id("disarm"),
        Stage.WATCHDOG,
        "disarm the watchdog",
        place.host,
        (),
        limit=30.0,
        before=flight,
        already=off,
        after=off,
        usual=2.0,
        basis="estimate",
        undo="arm the watchdog (D)",
        again=True,
    )
    if acts.disarm == "flag":
        path = checked_word(place.pause_flag, "watchdog.pause_flag")
        who = checked_word(f"paused by {scene.snapshot.fleet.operator_name()} with laneswap", "operator")
        argv, stdin = scripted("flag_set.sh", path, who)
        return (replace(base, argv=argv, stdin=stdin, limit=10.0),)
    if acts.disarm == "unit":
        argv, stdin = scripted("unit.sh", "stop", place.manager, checked_unit(place.unit))
        return (replace(base, argv=argv, stdin=stdin, limit=TERM_LIMIT, detached=True),)
    argv, stdin = scripted("watchdog_end.sh", *_process_words(scene, place), EVIDENCE)
    return (replace(base, argv=argv, stdin=stdin, limit=TERM_LIMIT, detached=True),)


def _process_words(scene: Scene, place: WatchdogPlace) -> tuple[str, ...]:
    """Its pid as it was read (`-`: not known), its lock, its command's pattern and the one for a pid that is named."""
    dog = scene.view.watchdog.value if scene.view.watchdog is not None else None
    pid = str(dog.pid) if dog is not None and dog.pid and dog.may_signal else "-"
    return pid, place.lock or "-", *_patterns(place)


def _patterns(place: WatchdogPlace) -> tuple[str, str]:
    """Of its command, and of how it is called from inside its folder."""
    return pattern(place.process), pattern(place.process_also[0] if place.process_also else place.process)


def _recovers(scene: Scene) -> bool:
    dog = scene.view.watchdog.value if scene.view.watchdog is not None else None
    return dog is None or dog.state in (WatchdogState.RECOVERY, WatchdogState.UNKNOWN, WatchdogState.CHECKING)


def no_launch(scene: Scene) -> Iterator[Probe]:
    """No launch is under way, rank by rank: what it ends half-way leaves containers that nobody looks after."""
    parts = [scene.filled(part, "launch.processes") for part in scene.acts.launch.processes]
    if not parts:
        return
    for host in scene.hosts():
        yield ask("no_launch.sh", host, f"no launch is under way on {host}", *(pattern(part) for part in parts))


def off_probes(scene: Scene) -> tuple[Probe, ...]:
    """It is off, by reading; () for a lane that has none."""
    if not has_guard(scene):
        return ()
    acts, place = _guard(scene)
    if acts.disarm == "flag":
        return (file_there(place.host, place.pause_flag, "the watchdog's pause flag is there"),)
    if acts.disarm == "unit":
        return (unit_is(place.host, place.manager, checked_unit(place.unit), "inactive"),)
    lock = place.lock or "-"
    words = "no watchdog runs, its lock is gone"
    return (ask("watchdog_gone.sh", place.host, words, lock, *_patterns(place)),)


def on_probes(scene: Scene) -> tuple[Probe, ...]:
    """It runs and nothing holds it back, by reading."""
    acts, place = _guard(scene)
    if acts.disarm == "term":
        words = "the watchdog runs, its lock names it"
        return (ask("watchdog_runs.sh", place.host, words, place.lock or "-", *_patterns(place)),)
    flags = [file_absent(place.host, path, f"{path} is gone") for path in (place.pause_flag, place.gaveup_flag) if path]
    unit = (unit_is(place.host, place.manager, checked_unit(place.unit), "active"),) if place.unit else ()
    return (*unit, *flags)


def before_stop(scene: Scene, *, back: bool = False) -> tuple[Step, ...]:
    """Its disarm, as part of a stop or a relaunch; () for a lane without one.

    Raises Refused for one that laneswap cannot switch and that is not known to be off: it would launch again within
    minutes. On the way `back` that is a warning.
    """
    if has_guard(scene):
        return disarm_steps(scene)
    if (words := unswitched(scene)) and not back:
        raise Refused(words)
    return ()


def quiet_first(disarm: Step) -> list[Step]:
    """The same disarm for the way back: a launch that is just being ended, or that a watchdog began, is waited for."""
    if not disarm.before:
        return [disarm]
    quiet = Step(
        "quiet",
        Stage.WATCHDOG,
        "wait until no launch is under way",
        disarm.host,
        (),
        limit=QUIET_LIMIT,
        after=disarm.before,
        usual=1.0,
        basis="estimate",
    )
    return [quiet, disarm]


def acts_after(interval: float, failures: int, since_check: float | None = None) -> float:
    """Seconds from a stop until an armed watchdog launches again: what is left until its next check, then
    `failures` - 1 whole intervals. Without `since_check` (seconds between its last check and the stop) the soonest."""
    left = 0.0 if since_check is None else interval - since_check % interval
    return left + (failures - 1) * interval


def unswitched(scene: Scene) -> str:
    """Why a watchdog that may be armed cannot be switched off; '' where there is none, or it is off."""
    dog = scene.view.watchdog.value if scene.view.watchdog is not None else None
    if scene.places.watchdog is None or has_guard(scene) or (dog is not None and dog.state in OFF):
        return ""
    short = dog.short or dog.state.value if dog is not None else "not read"
    soon = ""
    if dog is not None and dog.next_check and dog.attempt is not None:
        soon = f" {fmt.duration(acts_after(dog.next_check, dog.attempt[1]))} after the stop at the soonest"
    return (
        f"its watchdog ({short}) would launch it again{soon}, and recipe {scene.recipe.name} does not say how to "
        "switch it off: add [acts.watchdog], or switch it off by hand first"
    )


def arm_steps(scene: Scene, *, limit: float = 60.0) -> Iterator[Step]:
    """What switches it on, and a look well after that it is still on."""
    acts, place = _guard(scene)
    healthy, on = serving(scene), on_probes(scene)
    base = Step(
        "arm",
        Stage.ARM,
        "arm the watchdog",
        place.host,
        (),
        limit=limit,
        before=(healthy,),
        already=on,
        after=on,
        usual=2.0,
        basis="estimate",
        undo="disarm the watchdog (D)",
        again=True,
    )
    if acts.disarm == "term":
        start = scene.command(acts.start, "watchdog.start")
        folder = scene.filled(acts.folder, "watchdog.folder") or "~"
        argv, stdin = scripted("watchdog_start.sh", *_patterns(place), folder, *start)
        yield replace(base, argv=argv, stdin=stdin, detached=True, keeps=True)
    else:
        flags = [path for path in (place.pause_flag, place.gaveup_flag) if path]
        unit = checked_unit(place.unit) if place.unit else "-"
        argv, stdin = scripted("watchdog_on.sh", place.manager, unit, *flags)
        yield replace(base, argv=argv, stdin=stdin)
    yield still_armed(scene)


def still_armed(scene: Scene) -> Step:
    """Looks again a while after the unit that started it is gone: with the wrong kill mode it ends with that unit."""
    _, place = _guard(scene)
    return Step(
        "armed-still",
        Stage.ARM,
        "see that the watchdog is still armed",
        place.host,
        ("sleep", str(SETTLE_S)),
        limit=60.0,
        after=on_probes(scene),
        usual=float(SETTLE_S),
        basis="estimate",
        detached=True,
        again=True,
    )
