"""Scenario files of the embedded fleet: machines, engines, containers and the faults that befall them.

A scenario is TOML. `extends = "spark4"` starts from another scenario: tables are merged key by key (this file's keys
stand first), lists are replaced.

    title, summary          words for the operator
    [fleet]                 what an operator would write in fleet.toml; `ssh` of each host is filled in
    [vars]                  `{NAME}` in any text of the scenario stands for its value here
    [machines.HOST]         memory, NUMA, GPU and disk of one host; `like = "TEMPLATE"` starts from [templates.TEMPLATE]
    [engines.LANE]          the engine's truth: rates, pool, speculation, boot time
    [containers.ANY]        one container on each of `hosts`; with `engine` a real process serves behind it
    [checkpoints.ANY], [downloads.ANY], [rows.ANY], [watchdogs.LANE], [boots], [files.ANY], [processes.ANY],
    [units.ANY], [fronts.ANY], [leases.LANE]   what lies on disks and runs beside engines: `console/rehearsal/stage.py`
    [[faults]]              what goes wrong, `at` seconds, optional `until`: `console/rehearsal/faults.py`

Seconds are scenario seconds: with a clock factor N, `at`, `until`, `over` and boots run N times as fast. Tokens a
second, log lines a second, bytes a second and the ages of what was already there at the start are not scaled: the
console measures them with its own clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from console.fleet import inventory
from console.fleet.inventory import Fleet, Name
from console.fleet.tomlfile import FileError, Strict, TomlUnreadable, read_toml, suggest
from console.fleet.wording import plain
from console.rehearsal.engine import STORIES
from console.rehearsal.faults import Fault
from console.rehearsal.stage import (
    BootModel,
    CheckpointModel,
    DownloadModel,
    FileModel,
    FrontModel,
    Gib,
    LeaseModel,
    ProcessModel,
    RowsModel,
    Seconds,
    UnitModel,
    WatchdogModel,
)

SHIPPED = resources.files("console.rehearsal") / "scenarios"
_VARIABLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class ScenarioError(FileError):
    """A scenario that cannot be used: names the file, the key and the fix."""


class Gpu(Strict):
    """One GPU as nvidia-smi shows it; without memory figures it is a unified-memory one."""

    name: str
    memory_mib: int | None = None
    busy: float = 0.0
    """Percent while an engine works."""
    celsius: float = 45.0
    watts: float = 12.0
    limit_w: float | None = None
    mhz: float = 2411.0
    driver: str = "580.173.02"


class Machine(Strict):
    """One host's hardware and what its memory holds besides engines."""

    total_gib: Gib
    system_gib: Gib = 5.5
    """Used by everything that is no engine."""
    cached_gib: Gib = 7.4
    growth_mib_s: float = Field(default=0.0, ge=0)
    """Page cache grows so fast; it is dropped again after `growth_span_gib`."""
    growth_span_gib: Gib = 1.5
    swap_gib: Gib = 0.0
    hbm_gib: Gib = 0.0
    """Device memory that shows as a NUMA node without CPUs; 0: none."""
    cpus: int = Field(default=20, ge=1, le=4096)
    kernel: str = "6.17.0-1031-nvidia"
    page_size: int = 4096
    disk_gib: Gib = 3667.0
    disk_free_gib: Gib = 1200.0
    uptime_s: Seconds = 1_058_400.0
    """Since the host's own start, at the start of the rehearsal."""
    gpus: tuple[Gpu, ...] = ()


class EngineModel(Strict):
    """What one engine truly does; the options of `engine.py`."""

    kind: Literal["sglang", "vllm"]
    model: str
    model_path: str = "/model"
    tps: float = Field(gt=0)
    prefill_tps: float = Field(default=0.0, ge=0)
    pool: int = Field(gt=0)
    kv: float = Field(ge=0, le=1)
    running: int = Field(default=1, ge=0)
    waiting: int = Field(default=0, ge=0)
    context: int = Field(default=524288, gt=0)
    drafts: int = Field(default=0, ge=0, le=64)
    accepted: float = Field(default=0.0, ge=0)
    hit_rate: float = Field(default=0.4, ge=0, lt=1)
    ttft: float = Field(default=1.2, gt=0)
    length: int = Field(default=900, gt=0)
    boot_s: Seconds = 575.0
    boot: Literal[STORIES] = "usual"  # type: ignore[valid-type]
    """How its boots go."""
    stop_s: Seconds = 9.0
    """From the request to end until it has ended."""
    rows: str = ""
    """Folder, in its container, of the Engram rows that its log names; empty: it names none."""
    memory_gib: Gib = 90.0
    """Host memory of one rank once it is loaded."""
    hbm_gib: Gib = 0.0
    log_every: float = Field(default=2.0, ge=0.1)
    usual: tuple[float, float] | None = None
    """Lowest and highest decode rate that the console remembers, at `running` requests; none: it remembers none."""


class ContainerOn(Strict):
    """What differs on one host."""

    mounts: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    more_args: tuple[str, ...] = ()
    """Behind the others."""
    env: dict[str, str] = Field(default_factory=dict)
    """Set there, or set otherwise."""
    image_id: str = ""
    """Another image than the name's."""


class ContainerModel(Strict):
    """One container on each of `hosts`, in rank order."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]+$")]
    hosts: tuple[Name, ...] = Field(min_length=1)
    image: str
    engine: str = ""
    """Key of [engines]; empty: no process behind it."""
    state: Literal["running", "exited", "created"] = "running"
    age_s: Seconds = 273600.0
    """Since its start, at the start of the rehearsal; less than the engine's boot_s: it is still booting."""
    ended_s: Seconds = 0.0
    """Since it exited."""
    exit_code: int = 0
    port: int = Field(default=0, ge=0, le=65535)
    restart: Literal["no", "always", "unless-stopped", "on-failure"] = "no"
    mounts: tuple[str, ...] = ()
    """`source:target` or `source:target:ro`."""
    args: tuple[str, ...] = ()
    """`{rank}` stands for the rank."""
    env: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    on: dict[Name, ContainerOn] = Field(default_factory=dict)


class Scenario(Strict):
    """One embedded fleet and its story."""

    name: str
    title: str
    summary: str = ""
    fleet: Fleet
    machines: dict[Name, Machine]
    engines: dict[str, EngineModel] = Field(default_factory=dict)
    containers: dict[str, ContainerModel] = Field(default_factory=dict)
    checkpoints: dict[str, CheckpointModel] = Field(default_factory=dict)
    downloads: dict[str, DownloadModel] = Field(default_factory=dict)
    rows: dict[str, RowsModel] = Field(default_factory=dict)
    watchdogs: dict[Name, WatchdogModel] = Field(default_factory=dict)
    boots: dict[Name, tuple[BootModel, ...]] = Field(default_factory=dict)
    files: dict[str, FileModel] = Field(default_factory=dict)
    processes: dict[str, ProcessModel] = Field(default_factory=dict)
    units: dict[str, UnitModel] = Field(default_factory=dict)
    fronts: dict[str, FrontModel] = Field(default_factory=dict)
    leases: dict[Name, LeaseModel] = Field(default_factory=dict)
    """By lane."""
    deaf: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    """By host: the hosts that it does not get to by its own ssh."""
    faults: tuple[Fault, ...] = ()


def list_scenarios() -> dict[str, str]:
    """Names of the shipped scenarios and their titles, `spark4` first."""
    names = sorted(
        (item.name.removesuffix(".toml") for item in SHIPPED.iterdir() if item.name.endswith(".toml")),
        key=lambda name: (name != "spark4", name),
    )
    return {name: str(_merged(name)[1].get("title", "")) for name in names}


def load_scenario(name: str | Path) -> Scenario:
    """A shipped scenario by name, or a file by path (anything with a slash or .toml). Raises ScenarioError."""
    file, raw = _merged(name)
    return parse_scenario(raw, file, Path(str(name)).stem)


def parse_scenario(raw: Mapping[str, Any], file: Path | str, name: str) -> Scenario:
    """Check what a scenario says. Raises ScenarioError."""
    raw = _filled(raw, _variables(raw, file))
    data = {key: value for key, value in raw.items() if key not in ("templates", "extends", "vars")}
    data["name"] = name
    data["machines"] = _machines(raw, file)
    fleet = dict(_table(data.pop("fleet", {}), "fleet", file))
    hosts = _table(fleet.get("hosts", {}), "fleet.hosts", file)
    fleet["hosts"] = {host: {"ssh": host, **_table(keys, f"fleet.hosts.{host}", file)} for host, keys in hosts.items()}
    try:
        data["fleet"] = inventory.build({**fleet, "rehearsal": True}, file)
    except inventory.FleetError as error:
        raise ScenarioError(file, [f"fleet.{problem}" for problem in error.problems]) from error
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(file, [_explain(item) for item in error.errors()]) from error
    from console.rehearsal.checks import cross_check

    if problems := cross_check(scenario):
        raise ScenarioError(file, problems)
    return scenario


def _variables(raw: Mapping[str, Any], file: Path | str) -> dict[str, str]:
    table = _table(raw.get("vars", {}), "vars", file)
    if odd := [key for key, value in table.items() if not isinstance(value, str) or not re.fullmatch(r"[a-z]\w*", key)]:
        raise ScenarioError(file, [f"vars.{odd[0]}: a name of small letters, digits and '_', and a text"])
    return table


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """`value` with every `{NAME}` of a known name replaced, in keys too; other braces stay as they are."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: known.get(match[1], match[0]), value)
    if isinstance(value, dict):
        return {_filled(key, known): _filled(item, known) for key, item in value.items()}
    return [_filled(item, known) for item in value] if isinstance(value, list) else value


def _machines(raw: Mapping[str, Any], file: Path | str) -> dict[str, Any]:
    templates = _table(raw.get("templates", {}), "templates", file)
    machines: dict[str, Any] = {}
    for host, keys in _table(raw.get("machines", {}), "machines", file).items():
        own = dict(_table(keys, f"machines.{host}", file))
        like = own.pop("like", None)
        if like is not None and like not in templates:
            raise ScenarioError(file, [f"machines.{host}.like: no [templates.{like}]{suggest(str(like), templates)}"])
        machines[host] = _merge(templates[like], own) if like else own
    return machines


def _merged(name: str | Path, seen: tuple[str, ...] = ()) -> tuple[Path | str, dict[str, Any]]:
    text = str(name)
    file: Path | str = text
    if "/" in text or text.endswith(".toml"):
        source: Any = Path(text)
    else:
        source, file = SHIPPED / f"{text}.toml", f"{text}.toml"
    try:
        raw = read_toml(source)
    except FileNotFoundError:
        known = [item.name.removesuffix(".toml") for item in SHIPPED.iterdir() if item.name.endswith(".toml")]
        raise ScenarioError(text, [f"no such scenario{suggest(text, sorted(known))}"]) from None
    except TomlUnreadable as error:
        raise ScenarioError(file, [str(error)]) from error
    base = raw.get("extends")
    if base is None:
        return file, raw
    if not isinstance(base, str) or base in seen or len(seen) > 8:
        raise ScenarioError(file, ["extends: must name another scenario, without a circle"])
    if "/" in base or base.endswith(".toml"):
        base = str(Path(text).parent / base)
    try:
        return file, _merge(_merged(base, (*seen, base))[1], raw)
    except ScenarioError as error:
        if error.problems[0].startswith("no such scenario"):
            raise ScenarioError(file, [f"extends: {error.problems[0]}"]) from None
        raise


def _merge(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    both = {key: _merge(base[key], value) if key in base else value for key, value in over.items()}
    return both | {key: value for key, value in base.items() if key not in over}


def _table(value: object, key: str, file: Path | str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScenarioError(file, [f"{key}: must be a table (got {str(value)[:40]!r})"])
    return value


def _explain(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"]) or "(top level)"
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown key; remove it"
    if item["type"] == "missing":
        return f"{where}: missing; add it"
    return f"{where}: {plain(item)} (got {str(item['input'])[:80]!r})"
