"""Builders of steps and their parts. A script of ours goes in on standard input, what it is told stands in the command.

Three words of a command are put in when the operation is made, wherever a whole word of `argv` (step or probe) is just
that: `{evidence}` becomes the operation's folder of evidence on that host (`D/ops/OP/evidence`), `{state}` the lane's
state folder (`D`), `{states}` that one and, where another one stands for it, both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from console.actions.plan import Stage, Step
from console.actions.probes import (
    container_named,
    container_stopped,
    container_up,
    port_closed,
    processes_gone,
    runs_still,
    scripted,
    serving,
    startable,
)
from console.actions.scene import (
    EVIDENCE,
    STATE,
    STATES,
    STOP_LIMIT,
    Scene,
    boot,
    checked_id,
    checked_name,
    served_name,
    stop_time,
)
from console.readings.containers import Container

ROLLBACK_EVIDENCE_S = 5
"""Seconds that evidence may take on the way back."""
FULL_EVIDENCE_S = 120
STUCK_S = "60"
"""Seconds after which a process that outlives its container is called stuck."""
LOG_LINES = "20000"
"""Newest lines of a log that are kept on the way back; elsewhere all are."""
BETWEEN = ".laneswap"
"""Marks the name of a container that is being renamed."""
MOST_ID = 80
_UNSAFE = re.compile(r"[^a-z0-9.-]+")
_MARKED = re.compile(r"-[0-9a-f]{8}")


def step_id(*parts: str) -> str:
    """`stop-spark-0`: fit for file and unit names, and another one for every host.

    A name that cannot be taken as it is (`spark_0`, `Spark-0`, one that is too long) gets eight digits of its hash, so
    that it never meets the one it would look like; so does a name that ends in such digits by itself.
    """
    whole = "-".join(parts)
    plain = _UNSAFE.sub("-", whole.lower()).strip("-.")
    if plain == whole and len(plain) <= MOST_ID and not _MARKED.fullmatch(plain[-9:]):
        return plain
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{plain[: MOST_ID - 9]}-{mark}"


def evidence(
    scene: Scene, host: str, containers: Sequence[str], *, quick: bool, required: bool = False, together: str = ""
) -> Step:
    """Keeps memory, inspect and logs of these containers (ids or names); `quick`: 5 s, the way back never waits."""
    seconds, lines = (ROLLBACK_EVIDENCE_S, LOG_LINES) if quick else (FULL_EVIDENCE_S, "all")
    argv, stdin = scripted("evidence.sh", EVIDENCE, str(seconds), lines, scene.socket(host), *containers)
    return Step(
        step_id("save", host),
        Stage.EVIDENCE,
        f"keep logs, inspect and memory of {host}",
        host,
        argv,
        limit=float(seconds) if quick else seconds * 2.0,
        stdin=stdin,
        usual=1.0,
        basis="estimate",
        optional=not required,
        together=together,
    )


def stop_container(
    scene: Scene, host: str, container: Container, *, policy: str = "-", together: str = "", head: bool = False
) -> Step:
    """Stops a container by its id; observed: it has ended, its processes are gone, on the head the port is closed."""
    identity, socket = checked_id(container), scene.socket(host)
    grace = scene.acts.stop.grace_s
    argv, stdin = scripted("stop_container.sh", socket, identity, str(grace), policy, STUCK_S, EVIDENCE, STATE)
    usual, basis = stop_time(container.up)
    ended = container_stopped(host, socket, container)
    after = [ended, processes_gone(host, container)]
    if head:
        after.append(port_closed(host, scene.lane.port))
    return Step(
        step_id("stop", host),
        Stage.STOP,
        f"stop {container.name}",
        host,
        argv,
        limit=grace + STOP_LIMIT,
        stdin=stdin,
        already=(ended,) if policy == "-" else (),
        after=tuple(after),
        usual=usual,
        basis=basis,
        undo=f"docker start {container.name}",
        together=together,
        detached=True,
        again=True,
    )


def start_container(
    scene: Scene,
    host: str,
    container: Container,
    *,
    policy: str = "-",
    instead: Container | None = None,
    serves: bool = True,
    together: str = "",
    stage: Stage = Stage.BOOT,
    others: Sequence[tuple[str, Container]] = (),
) -> Step:
    """Starts a container by its id; with `serves` it is done when the lane answers under its name.

    `instead` served before: the restart policy that a stop by laneswap set aside of it is this one's then.
    `others` are the lane's containers on other hosts: one that ends while this one starts ends the step.
    """
    identity, socket = checked_id(container), scene.socket(host)
    usual, basis, limit = boot(scene, container.revision)
    former = checked_id(instead) if instead is not None else "-"
    words = ["start_container.sh", socket, identity, policy, former, EVIDENCE, STATES]
    up = container_up(host, socket, container)
    name = served_name(scene, container)
    watch = tuple(runs_still(other, scene.socket(other), item) for other, item in others) if serves else ()
    answers = serving(scene, container)
    if serves:
        words += [scene.lane.url, scene.lane.health_path, name, str(int(limit))]
    argv, stdin = scripted(words[0], *words[1:])
    return Step(
        step_id("start", host),
        stage,
        f"start {container.name}" + (" and wait until it serves" if serves else ""),
        host,
        argv,
        limit=limit + 30 if serves else 180.0,
        stdin=stdin,
        before=(startable(host, socket, container),),
        after=(up, answers) if serves else (up,),
        watch=watch,
        usual=usual if serves else 2.0,
        basis=basis if serves else "estimate",
        undo=f"docker stop {container.name}",
        together=together,
        detached=True,
        again=True,
    )


def between(scene: Scene, name: str) -> str:
    """What a container is called for a moment on its way to a name: one that the lane's own containers have, should it
    stay so."""
    names = scene.acts.names
    stem = names.stem(name) if names is not None else name
    marked = (stem + BETWEEN + name.removeprefix(stem), name + BETWEEN, BETWEEN.strip(".") + "-" + name)
    glob = scene.lane.containers
    return checked_name(next((one for one in marked if fnmatchcase(one, glob)), marked[0]))


def rename_pair(
    scene: Scene, host: str, first: Container, first_name: str, second: Container, second_name: str
) -> Step:
    """Gives two containers of a host their new names; nothing is removed."""
    socket = scene.socket(host)
    pairs = [(first, checked_name(first_name)), (second, checked_name(second_name))]
    words = [word for item, wanted in pairs for word in (checked_id(item), checked_name(item.name), wanted)]
    argv, stdin = scripted("rename_containers.sh", socket, *words, between(scene, second_name))
    named = tuple(container_named(host, socket, item, wanted) for item, wanted in pairs)
    return Step(
        step_id("rename", host),
        Stage.BOOT,
        f"rename: {first_name} serves, {second_name} is kept",
        host,
        argv,
        limit=60.0,
        stdin=stdin,
        already=named,
        after=named,
        usual=1.0,
        basis="estimate",
        undo=f"docker rename {first_name} {first.name}; docker rename {second_name} {second.name}",
        optional=True,
        again=True,
    )
