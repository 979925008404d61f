"""Containers as the Docker Engine API describes them (docs.docker.com/reference/api/engine, 1.24 to 1.47). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from console import sanitize
from console.readings import launch
from console.readings.exits import ContainerEvent, Exit, explain_exit, last_run, rfc3339
from console.readings.revision import Revision, mounted_revision
from console.readings.throughput import EngineKind

MAX_MOUNTS, MAX_ARGS, MAX_LABELS, MAX_ENV = 64, 512, 64, 256
"""What is kept of one container; the rest is cut."""


class ContainerState(StrEnum):
    """The one word for a container's state; `paused` wins over `running`."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    REMOVING = "removing"
    EXITED = "exited"
    DEAD = "dead"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mount:
    """One bind or volume mount."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Container:
    """One container, from `inspect` (whole) or `list` (what a list row says; the rest None or empty)."""

    id: str
    name: str
    image: str
    image_id: str
    state: ContainerState
    started_at: float | None
    """Unix seconds; None if never started."""
    finished_at: float | None
    exit_code: int | None
    oom_killed: bool | None
    exit_meaning: str
    """Words for the operator, '' while running: `stopped by SIGTERM`, `OOM-killed`, ..."""
    restart_policy: str
    restart_count: int
    auto_remove: bool
    health: str
    """Docker's own health verdict: healthy, unhealthy, starting or '' where no check is set."""
    mounts: tuple[Mount, ...]
    args: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    network_mode: str
    ports: tuple[int, ...]
    """Host ports: published ones, and with host networking those of `--port` arguments."""
    revision: str
    """40-hex commit of the snapshot really mounted or named in the arguments; '' if it cannot be read."""
    revision_source: str
    """Where `revision` was read: `mount /models/...` or `argument --model-path`; '' if unknown."""
    served_name: str
    autoheal: bool
    """A third party (docker-autoheal label) may restart this container."""
    pid: int | None = None
    created_at: float | None = None
    """Unix seconds."""
    engine: EngineKind = EngineKind.UNKNOWN
    """A guess by command and image."""
    error: str = ""
    """Docker's own words on why it did not start or could not be removed."""
    inspected: bool = True
    """False where only a list row is known."""
    exit_unasked: bool | None = None
    """True: it ended and nobody had asked for that; False: somebody had; None: not on record, or it is up."""
    env: tuple[tuple[str, str], ...] = ()
    """Its environment as safe pairs, in the order of its configuration; values of secrets are `***`."""
    tag_moved: bool = False
    """The name that it was started from means another image now, or none: the next start takes that one."""

    @property
    def up(self) -> bool:
        """It has processes: running, or paused."""
        return self.state in (ContainerState.RUNNING, ContainerState.PAUSED)

    def age(self, now: float) -> float | None:
        """Seconds since it last started, while it is up, at Unix time `now` of its host; None if it is not up."""
        return max(0.0, now - self.started_at) if self.up and self.started_at is not None else None


@dataclass(frozen=True, slots=True)
class Containers:
    """All containers of one host, or why they cannot be read (never an empty list instead)."""

    items: tuple[Container, ...]
    problem: str = ""
    """Safe words: `permission: docker group not active in this session, reconnect`."""
    hint: str = ""
    api_version: str = ""
    total: int | None = None
    """Containers on the host, where that is more than `items` holds; None when all are there."""


class ContainersUnreadable(ValueError):
    """What should describe a container does not; the text says in safe words what came instead."""


def parse_inspect(raw: Mapping[str, Any], events: Iterable[ContainerEvent] = ()) -> Container:
    """One object of `/containers/{id}/json`. Missing parts become None or ''. Raises ContainersUnreadable."""
    state_part, config, host = part(raw, "State"), part(raw, "Config"), part(raw, "HostConfig")
    if not raw.get("Id") and not raw.get("Name"):
        raise ContainersUnreadable(f"no container: {sanitize.word(str(raw.get('message', 'neither Id nor Name')))}")
    argv = _argv(raw, config)
    image = text(config.get("Image"))
    kind = launch.engine_kind(image, argv)
    mounts = parse_mounts(raw.get("Mounts"), host.get("Binds"))
    revision = read_revision(argv, kind, mounts)
    labels = parse_labels(config.get("Labels"))
    policy = part(host, "RestartPolicy")
    state = parse_state(state_part)
    container = Container(
        id=text(raw.get("Id")),
        name=text(raw.get("Name")).lstrip("/"),
        image=image,
        image_id=text(raw.get("Image")),
        state=state,
        started_at=rfc3339(state_part.get("StartedAt")),
        finished_at=rfc3339(state_part.get("FinishedAt")),
        exit_code=None if state in ALIVE else _integer(state_part.get("ExitCode")),
        oom_killed=_boolean(state_part.get("OOMKilled")),
        exit_meaning="",
        restart_policy=_policy(policy),
        restart_count=_integer(raw.get("RestartCount")) or 0,
        auto_remove=host.get("AutoRemove") is True,
        health=_health(state_part),
        mounts=mounts,
        args=tuple(sanitize.line(word, 1000) for word in launch.without_secrets(argv)),
        labels=labels,
        network_mode=text(host.get("NetworkMode")),
        ports=_ports(raw, host, argv, kind),
        revision=revision.commit,
        revision_source=sanitize.line(revision.source, 300),
        served_name=sanitize.word(launch.served_name(argv)),
        autoheal=has_autoheal(labels),
        pid=_integer(state_part.get("Pid")) or None,
        created_at=rfc3339(raw.get("Created")),
        engine=kind,
        error=sanitize.line(str(state_part.get("Error") or ""), 300),
        env=parse_env(config.get("Env")),
    )
    return with_exit(container, events)


ALIVE = (ContainerState.RUNNING, ContainerState.PAUSED)


def gone(name: str) -> Container:
    """What is left to say of a container that its daemon no longer knows."""
    return Container(
        id="",
        name=text(name),
        image="",
        image_id="",
        state=ContainerState.GONE,
        started_at=None,
        finished_at=None,
        exit_code=None,
        oom_killed=None,
        exit_meaning="",
        restart_policy="",
        restart_count=0,
        auto_remove=False,
        health="",
        mounts=(),
        args=(),
        labels=(),
        network_mode="",
        ports=(),
        revision="",
        revision_source="",
        served_name="",
        autoheal=False,
        inspected=False,
    )


_NEVER_RAN = (ContainerState.CREATED, ContainerState.UNKNOWN, ContainerState.GONE)


def with_exit(container: Container, events: Iterable[ContainerEvent]) -> Container:
    """The same container with what its exit means in the light of `events`."""
    meaning = classify_exit(container, events)
    if meaning is None:
        return replace(container, exit_meaning="", exit_unasked=None)
    return replace(container, exit_meaning=meaning.words, exit_unasked=meaning.crash)


def classify_exit(container: Container, events: Iterable[ContainerEvent] = ()) -> Exit | None:
    """Why a container ended; None while it is up or before it ever ran."""
    if container.state in ALIVE or container.state in _NEVER_RAN:
        return None
    run = last_run(events, container.id, container.name, container.finished_at)
    engine = container.engine is not EngineKind.UNKNOWN
    return explain_exit(container.exit_code, container.oom_killed, engine=engine, events=run, error=container.error)


def parse_state(state: Mapping[str, Any]) -> ContainerState:
    """The one word for inspect's `State`; `Paused` wins over `Running`. Daemons before API 1.21 send no `Status`."""
    if state.get("Paused") is True:
        return ContainerState.PAUSED
    status = state.get("Status")
    if (named := named_state(status)) is not None:
        return named
    for key, word in _FLAGS:
        if state.get(key) is True:
            return word
    if not state or status:
        return ContainerState.UNKNOWN
    never = "StartedAt" in state and rfc3339(state.get("StartedAt")) is None
    return ContainerState.CREATED if never else ContainerState.EXITED


def named_state(word: object) -> ContainerState | None:
    """The state that Docker's (or podman's) own word names; None for any other word."""
    return _STATES.get(word.lower()) if isinstance(word, str) else None


_STATES = {
    **{word.value: word for word in ContainerState if word not in (ContainerState.GONE, ContainerState.UNKNOWN)},
    "configured": ContainerState.CREATED,
    "initialized": ContainerState.CREATED,
    "stopping": ContainerState.RUNNING,
    "stopped": ContainerState.EXITED,
}
_FLAGS = (
    ("Dead", ContainerState.DEAD),
    ("RemovalInProgress", ContainerState.REMOVING),
    ("Restarting", ContainerState.RESTARTING),
    ("Running", ContainerState.RUNNING),
)


def part(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`; {} where there is none or something else."""
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """Safe text of one name; '' for what is no text."""
    return sanitize.word(value, 300) if isinstance(value, str) else ""


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence):
        return ()
    return tuple(item for item in value[:MAX_ARGS] if isinstance(item, str))


def _argv(raw: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, ...]:
    """The whole command, raw: `Path` and `Args`, else what the configuration would run."""
    path, args = _texts(raw.get("Path")), _texts(raw.get("Args"))
    if not path and not args:
        path, args = _texts(config.get("Entrypoint")), _texts(config.get("Cmd"))
    return launch.words((*path, *args))[:MAX_ARGS]


def parse_mounts(mounts: object, binds: object) -> tuple[Mount, ...]:
    """The API's `Mounts`, or where a daemon sends none `HostConfig.Binds` (`source:target:options`)."""
    found: list[Mount] = []
    for item in mounts[:MAX_MOUNTS] if isinstance(mounts, list) else ():
        if isinstance(item, Mapping):
            source, target = str(item.get("Source") or item.get("Name") or ""), str(item.get("Destination") or "")
            found.append(Mount(sanitize.line(source), sanitize.line(target), item.get("RW") is False))
    if not found and isinstance(binds, list):
        for bind in _texts(binds):
            source, _, rest = bind.partition(":")
            target, _, options = rest.partition(":")
            found.append(Mount(sanitize.line(source), sanitize.line(target), "ro" in options.split(",")))
    return tuple(found)


def read_revision(argv: Sequence[str], kind: EngineKind, mounts: Sequence[Mount]) -> Revision:
    """The revision behind a container, from its raw command and its mounts."""
    model, flag = launch.model_argument(argv, kind)
    named = launch.flag(argv, "--revision") or ""
    return mounted_revision(model, flag, named, [(mount.source, mount.target) for mount in mounts])


def parse_labels(labels: object) -> tuple[tuple[str, str], ...]:
    """Labels as safe pairs, at most MAX_LABELS."""
    if not isinstance(labels, Mapping):
        return ()
    pairs = list(labels.items())[:MAX_LABELS]
    return tuple((sanitize.word(str(key)), sanitize.line(str(value), 200)) for key, value in pairs)


def parse_env(env: object) -> tuple[tuple[str, str], ...]:
    """`Config.Env` (`NAME=value` texts) as safe pairs, secrets hidden, at most MAX_ENV of them."""
    found = []
    for item in env[:MAX_ENV] if isinstance(env, list) else ():
        if isinstance(item, str):
            name, _, value = item[: sanitize.LOOKED_AT].partition("=")
            found.append((sanitize.word(name), sanitize.line(launch.without_secret(name, value), 1000)))
    return tuple(found)


def has_autoheal(labels: Sequence[tuple[str, str]]) -> bool:
    """The label that willfarrell/docker-autoheal acts on by default."""
    return any(key == "autoheal" and value.strip().lower() in ("true", "1", "yes") for key, value in labels)


def _health(state: Mapping[str, Any]) -> str:
    status = text(part(state, "Health").get("Status"))
    return "" if status == "none" else status


def _policy(policy: Mapping[str, Any]) -> str:
    name, most = text(policy.get("Name")) or ("no" if policy else ""), _integer(policy.get("MaximumRetryCount"))
    return f"{name}:{most}" if most and name == "on-failure" else name


def _ports(raw: Mapping[str, Any], host: Mapping[str, Any], argv: Sequence[str], kind: EngineKind) -> tuple[int, ...]:
    if host.get("NetworkMode") == "host":
        return launch.listen_ports(argv, kind)
    published = part(part(raw, "NetworkSettings"), "Ports") or part(host, "PortBindings")
    found: set[int] = set()
    for bindings in published.values():
        for binding in bindings if isinstance(bindings, list) else ():
            if isinstance(binding, Mapping) and (port := launch.port_number(binding.get("HostPort"))):
                found.add(port)
    return tuple(sorted(found))


def belongs(container: Container, port: int, glob: str = "") -> bool:
    """Whether a container is one of a lane's: by the lane's glob over names, without one by its port."""
    return fnmatchcase(container.name, glob) if glob else port in container.ports


RETIRED_MARK = "retired"
"""Part of the name of one that is kept as the way back, in any case."""


def serving_container(containers: Iterable[Container], port: int, glob: str = "") -> Container | None:
    """The container behind a lane on this host: the one that is up and owns `port`, else the newest of the lane's own.

    Roles are observed. Where none of the lane's is up, the one that ended last speaks for the lane, so that its
    exit is shown; None where nothing on the host belongs to the lane.
    """
    everything = list(containers)
    owners = [item for item in everything if item.up and port in item.ports]
    if owners:
        return max(
            owners, key=lambda item: (belongs(item, port, glob), item.engine is not EngineKind.UNKNOWN, _born(item))
        )
    own = [item for item in everything if belongs(item, port, glob)] or _portless(everything)
    return max(own, key=_standing, default=None)


def _portless(containers: Sequence[Container]) -> list[Container]:
    """A worker rank listens on no port of its own: the only engine without a port that is up there, if there is one."""
    found = [item for item in containers if item.up and not item.ports and item.engine is not EngineKind.UNKNOWN]
    return found if len(found) == 1 else []


def _standing(container: Container) -> tuple[bool, bool, bool, float]:
    """Up before restarting before the rest, what is named retired last of all: a way back that was begun and did not
    come up has not taken the lane's place. Among equals the one that lived last."""
    lived = max(container.finished_at or 0.0, _born(container))
    named = RETIRED_MARK in container.name.lower()
    return container.up, container.state is ContainerState.RESTARTING, not named, lived


def _born(container: Container) -> float:
    return container.started_at or container.created_at or 0.0
