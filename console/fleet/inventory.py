"""fleet.toml: hosts, lanes and how they are reached. Strict: an unknown key is an error that names the way out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, StringConstraints, ValidationError, ValidationInfo, field_validator

from console.fleet.operator import on_duty, trouble, variable_trouble
from console.fleet.tomlfile import FileError, Strict, TomlUnreadable, parse_toml, read_toml, suggest
from console.fleet.wording import (
    NAME_PATTERN,
    OPTIONAL_COMMIT,
    OPTIONAL_NAME,
    UNIT_PATTERN,
    VARIABLE_PATTERN,
    explain,
)
from console.readings.throughput import EngineKind
from console.sanitize import line

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Host and lane names: letters, digits, dot, dash and underscore; they appear in commands and file names."""

SGLANG_HEALTH_INTERVAL = 10.0
VLLM_HEALTH_INTERVAL = 2.0


class FleetError(FileError):
    """A fleet file that cannot be used: names the file, the key and the fix."""


class Host(Strict):
    """One machine: reached over ssh under a name that ssh_config knows, or `local`."""

    ssh: str = Field(min_length=1, max_length=255)
    """A name that ssh_config knows, `user@host`, `user@host:port`, or `local` for this machine."""
    docker: str = "/var/run/docker.sock"
    """Path of the Docker socket on the host; an empty string means the host has no Docker."""
    known_hosts: str = ""
    """A known_hosts file to use instead of the user's own."""
    identity: str = ""
    """A private key file to use instead of what ssh_config and the agent offer."""
    config: str = ""
    """An ssh_config file to use instead of the user's own."""

    @field_validator("ssh")
    @classmethod
    def _plain_target(cls, value: str) -> str:
        if value.startswith("-") or any(c.isspace() or ord(c) < 33 for c in value):
            raise ValueError("a host alias, user@host or user@host:port, without spaces or a leading dash")
        return value

    @property
    def is_local(self) -> bool:
        """True for this machine, read with psutil instead of ssh."""
        return self.ssh == "local"


class NextRevision(Strict):
    """What is being prepared for the next switch."""

    revision: str = Field(default="", pattern=OPTIONAL_COMMIT)
    """Commit of the next checkpoint: 40 hex digits."""
    rows: str = ""
    """Folder of the row copies being built for it; relative: below each rank's home folder."""


class PreviousRevision(Strict):
    """What served before the last switch, for the way back."""

    revision: str = Field(default="", pattern=OPTIONAL_COMMIT)
    """Commit of the checkpoint to go back to: 40 hex digits."""
    rows: str = ""
    """Folder of its row copies, where they were kept; relative: below each rank's home folder."""


class DownloadWish(Strict):
    """Where a checkpoint is fetched to, and what there should be."""

    host: str = Field(default="", pattern=OPTIONAL_NAME)
    """Host that downloads; default: the one that holds the checkpoint, else the head."""
    repo: str = ""
    """Folder there, as `hf download` makes it: `.../models--org--name`; default: the checkpoint's own."""
    revision: str = Field(default="", pattern=OPTIONAL_COMMIT)
    """Commit that is fetched; default: `next.revision`, else the newest that no rank serves."""
    manifest: str = ""
    """A file beside fleet.toml with the expected files: a Hub listing (JSON) or `path<TAB>bytes<TAB>sha256` lines."""
    hub: str = ""
    """Base URL of a Hub to ask for expected files and for its main branch; empty: nobody is asked."""
    model: str = ""
    """`org/name`; default: from the folder's name."""
    unit: str = Field(default="", pattern=UNIT_PATTERN)
    """The downloader's systemd unit, for its memory and cap."""
    manager: Literal["user", "system"] = "user"
    """Who manages that unit."""

    @field_validator("hub")
    @classmethod
    def _base_url(cls, value: str) -> str:
        return _http(value, "https://huggingface.co") if value else ""


def _http(value: str, example: str) -> str:
    """The URL without a slash at its end. Raises ValueError for what is none, or says more than host, port and path."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"an http:// or https:// URL with a host, for example {example}")
    if parts.port == 0 or parts.query or parts.fragment:  # `port` raises for what is no port at all
        raise ValueError("host, port and perhaps a path; nothing behind them")
    if parts.username or parts.password:
        raise ValueError("no user or password in the URL")
    return value.rstrip("/")


class Lane(Strict):
    """One endpoint that clients use, and the hosts behind it."""

    recipe: str
    """Name of a shipped recipe, or path to a `.toml` beside the fleet file."""
    url: str
    """The endpoint, as seen from `head`."""
    head: Name
    """The host that serves HTTP."""
    served: str = ""
    """The name that clients use."""
    engine: Literal["", "sglang", "vllm", "llamacpp"] = ""
    """Empty means: told by the series present."""
    ranks: tuple[Name, ...] = ()
    """Hosts in rank order; without it the head is the only rank."""
    via: Literal["ssh", "direct"] = "ssh"
    """`direct`: asked from this machine, not through the head."""
    front: str = ""
    """URL of a proxy in front of the engine that clients really use; checked beside the engine's own."""
    runs_in: Literal["docker", "host"] = "docker"
    """`host`: the engine runs outside containers, so none is looked for."""
    containers: str = ""
    """Glob over container names that belong to this lane; empty means: observed by port and image."""
    consumers: tuple[str, ...] = ()
    """Who depends on the lane, in words."""
    health_path: str = "/health"
    """Path of the health endpoint."""
    metrics_path: str = "/metrics"
    """Path of the metrics."""
    health_interval: float | None = Field(default=None, ge=0.2, le=300)
    """Seconds between two health probes; default 10 for SGLang, whose probe is a real generation, else 2."""
    stall_after: float = Field(default=15.0, ge=1, le=3600)
    """Seconds with work present and a frozen step counter before the lane is STALLED."""
    free_alarm_gib: float | None = Field(default=None, ge=0)
    """MemFree in GiB below which a unified-memory node is CRITICAL; default 4."""
    usual_boot_s: float | None = Field(default=None, gt=0)
    """Seconds from start to healthy, shown until the lane has boots of its own to compare with."""
    next: NextRevision = NextRevision()
    """What is being prepared."""
    previous: PreviousRevision = PreviousRevision()
    """What served before."""
    download: DownloadWish = DownloadWish()
    """The checkpoint's download."""
    vars: dict[str, str] = Field(default_factory=dict)
    """Values for the recipe's `{names}`."""

    @field_validator("url", "front")
    @classmethod
    def _http_url(cls, value: str, info: ValidationInfo) -> str:
        return _http(value, "http://127.0.0.1:8210") if value or info.field_name == "url" else ""

    @field_validator("health_path", "metrics_path")
    @classmethod
    def _absolute_path(cls, value: str) -> str:
        if not re.fullmatch(r"/[A-Za-z0-9._~/?=&%-]*", value):
            raise ValueError("a path that starts with /")
        return value

    @property
    def port(self) -> int:
        """TCP port of the endpoint."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def rank_hosts(self) -> tuple[str, ...]:
        """Hosts in rank order; a lane without `ranks` is its head alone."""
        return self.ranks or (self.head,)

    @property
    def kind(self) -> EngineKind:
        """The declared engine; UNKNOWN where the file leaves it to observation."""
        return EngineKind(self.engine) if self.engine else EngineKind.UNKNOWN

    @property
    def health_every(self) -> float:
        """Seconds between health probes: SGLang's probe is a real generation, so it is asked less often."""
        if self.health_interval is not None:
            return self.health_interval
        return SGLANG_HEALTH_INTERVAL if self.engine == "sglang" else VLLM_HEALTH_INTERVAL


class Rates(Strict):
    """Seconds between readings."""

    node: float = Field(default=1.0, ge=0.2, le=60)
    """Memory of the hosts."""
    gpu: float = Field(default=5.0, ge=1, le=600)
    """nvidia-smi."""
    scrape: float = Field(default=1.0, ge=0.2, le=60)
    """The engine's metrics."""
    containers: float = Field(default=5.0, ge=1, le=600)
    """Docker; its events show at once besides."""


class Notify(Strict):
    """How alarms reach people who do not look at the screen."""

    bell: bool = True
    """Ring the terminal's bell."""
    terminal: bool = True
    """Let the terminal show a notification of its own, where it can."""
    webhook_env: str = Field(default="LANESWAP_WEBHOOK", pattern=VARIABLE_PATTERN)
    """Environment variable that holds the URL to post alarms to; not set: nothing is posted. Never a URL itself."""
    min_severity: Literal["act", "look"] = "act"
    """`act`: only what needs an operator now; `look`: also what wants looking at."""


class Fleet(Strict):
    """Everything the operator wrote."""

    name: Name
    """Name of the fleet."""
    operator: str = ""
    """Who is on duty, where LANESWAP_OPERATOR does not say; default: the login name."""
    production: bool = True
    """Shows PROD on every screen."""
    rates: Rates = Rates()
    """Seconds between readings."""
    notify: Notify = Notify()
    """How alarms reach people."""
    state: str = "/var/tmp/laneswap"  # noqa: S108 - it has to be one path for all accounts; scripts refuse a shared one
    """Folder on every host in which leases, windows, operations and their logs are kept: the same for all accounts."""
    hosts: dict[Name, Host]
    """Machines by name, in rank order."""
    lanes: dict[Name, Lane]
    """Endpoints by name."""
    rehearsal: bool = Field(default=False, exclude=True)

    @field_validator("operator")
    @classmethod
    def _one_person(cls, value: str) -> str:
        if value and (why := trouble(value)):
            raise ValueError(why)
        return value

    @field_validator("state")
    @classmethod
    def _plain_folder(cls, value: str) -> str:
        if not re.fullmatch(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", value) or len(value) > 200:
            raise ValueError("an absolute path of letters, digits, '.', '-' and '_', for example /var/tmp/laneswap")
        return value

    def lane_folder(self, lane: str) -> str:
        """Where the head, and every host that runs a step, keeps what is under way on `lane`."""
        return f"{self.state}/{self.name}.{lane}"

    def operator_name(self) -> str:
        """Who the ledger names: LANESWAP_OPERATOR, else the file, else the login name. A rehearsal has its own cast."""
        return self.operator if self.rehearsal and self.operator else on_duty(self.operator)[0]


def default_path() -> Path:
    """Where fleet.toml is looked for without -f: LANESWAP_FLEET, ./fleet.toml, then the user's config folder."""
    if named := os.environ.get("LANESWAP_FLEET"):
        return Path(named)
    here = Path("fleet.toml")
    return here if here.exists() else Path(platformdirs.user_config_dir("laneswap")) / "fleet.toml"


def load(path: Path) -> Fleet:
    """Read and check a fleet file. Raises FleetError that names file, key and fix."""
    try:
        return build(read_toml(path), path)
    except FileNotFoundError:
        raise FleetError(path, ["no such file; write one, or point at it with -f FILE"]) from None
    except TomlUnreadable as error:
        raise FleetError(path, [str(error)]) from error


def parse(text: str, path: Path | str = "fleet.toml") -> Fleet:
    """Check the text of a fleet file. Raises FleetError."""
    try:
        return build(parse_toml(text), path)
    except TomlUnreadable as error:
        raise FleetError(path, [str(error)]) from error


def build(raw: Mapping[str, Any], path: Path | str = "fleet.toml") -> Fleet:
    """Check what a fleet file says, once its text is read. Raises FleetError."""
    if odd := list(_unsafe(raw)):
        raise FleetError(path, odd)
    try:
        fleet = Fleet.model_validate(raw)
    except ValidationError as error:
        raise FleetError(path, [explain(item, Fleet) for item in error.errors()]) from error
    if why := variable_trouble():
        raise FleetError(path, [why])
    if problems := _cross_check(fleet):
        raise FleetError(path, problems)
    return fleet


def _unsafe(value: object, where: str = "") -> Iterator[str]:
    """Keys and texts with control, invisible or direction characters: a fleet file is copied from others, and drawn."""
    if isinstance(value, str) and line(value, len(value) + 1) != value:
        yield f"{where}: control or invisible characters in {line(value, 80)!r}; write it in plain text"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            safe = line(str(key), 80)
            name = f"{where}.{safe}" if where else safe
            if safe != key:
                yield f"{name}: control or invisible characters in this key; write it in plain text"
            yield from _unsafe(item, name)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _unsafe(item, f"{where}[{at}]")


def _cross_check(fleet: Fleet) -> list[str]:
    problems = [] if fleet.hosts else ["hosts: empty; name at least one host"]
    if not fleet.lanes:
        problems.append("lanes: empty; name at least one lane")
    for name, lane in fleet.lanes.items():
        download = (lane.download.host,) if lane.download.host else ()
        for key, hosts in (("head", (lane.head,)), ("ranks", lane.ranks), ("download.host", download)):
            for host in hosts:
                if host not in fleet.hosts:
                    problems.append(
                        f"lanes.{name}.{key}: no host {host!r} in [hosts]{suggest(host, list(fleet.hosts))}"
                    )
        if len(set(lane.ranks)) != len(lane.ranks):
            problems.append(f"lanes.{name}.ranks: a host stands there twice")
        if lane.ranks and lane.head not in lane.ranks:
            problems.append(f"lanes.{name}.head: {lane.head!r} is not one of its ranks")
    return problems
