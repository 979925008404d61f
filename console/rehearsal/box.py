"""One container of a rehearsal host: what the scenario says of it, how it stands now, and its engine's options."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from dataclasses import dataclass, field

from console.rehearsal.scenario import ContainerModel, ContainerOn, EngineModel

LOG_LINES = 4000


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a container's log."""

    number: int
    time_ns: int
    stream: int
    text: bytes


@dataclass(slots=True)
class Box:
    """One container. `started` and `finished` are Unix seconds, None if that never happened."""

    model: ContainerModel
    host: str
    rank: int
    engine: EngineModel | None
    id: str
    state: str
    started: float | None
    finished: float | None
    created: float
    exit_code: int
    ordered: int | None = None
    """The exit code that a fault wants instead of the process's own."""
    oom: bool = False
    hangs: bool = False
    """It does not end when it is asked to."""
    asked: bool = False
    """It was asked to end through Docker: no restart policy brings it back."""
    restarts: int = 0
    process: asyncio.subprocess.Process | None = None
    port: int | None = None
    """Where the engine listens on 127.0.0.1; None while it does not."""
    fault: dict[str, object] = field(default_factory=dict)
    log: deque[LogEntry] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    lines: int = 0
    boot_began: float = 0.0
    """Monotonic time at which the present boot began, as if it ran at the clock factor from its start."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def own(self) -> ContainerOn:
        """What differs on this host."""
        return self.model.on.get(self.host, ContainerOn())

    @property
    def args(self) -> list[str]:
        """The container's arguments, with this rank's number."""
        words = (*(self.model.args if self.own.args is None else self.own.args), *self.own.more_args)
        return [word.replace("{rank}", str(self.rank)) for word in words]

    @property
    def mounts(self) -> tuple[str, ...]:
        """`source:target` or `source:target:ro`."""
        return self.model.mounts if self.own.mounts is None else self.own.mounts

    @property
    def env(self) -> list[str]:
        """`NAME=VALUE`, with this rank's number."""
        values = {**self.model.env, **self.own.env}
        return [f"{key}={value.replace('{rank}', str(self.rank))}" for key, value in values.items()]

    @property
    def image_id(self) -> str:
        """Digest of the image that it was made from, whatever its name means now."""
        return self.own.image_id or image_id(self.model.image)

    @property
    def pid(self) -> int:
        """The engine's process id, 0 while none runs."""
        return self.process.pid if self.process is not None and self.state == "running" else 0


def image_id(image: str) -> str:
    """A stable made-up digest of an image."""
    return "sha256:" + hashlib.sha256(image.encode()).hexdigest()


def engine_options(engine: EngineModel, box: Box, boot: float, age: float) -> list[str]:
    """The options of one engine process. `boot` and `age` are real seconds."""
    options: dict[str, object] = {
        "kind": engine.kind,
        "port-shown": box.model.port,
        "model": engine.model,
        "model-path": engine.model_path,
        "rank": box.rank,
        "tps": engine.tps,
        "prefill-tps": engine.prefill_tps,
        "pool": engine.pool,
        "kv": engine.kv,
        "running": engine.running,
        "waiting": engine.waiting,
        "context": engine.context,
        "drafts": engine.drafts,
        "accepted": engine.accepted,
        "hit-rate": engine.hit_rate,
        "ttft": engine.ttft,
        "length": engine.length,
        "boot": boot,
        "boot-shown": engine.boot_s,
        "age": age,
        "log-every": engine.log_every,
        "story": engine.boot,
        "rows": engine.rows,
        "ranks": len(box.model.hosts),
    }
    return [f"--{key}={value}" for key, value in options.items()]
