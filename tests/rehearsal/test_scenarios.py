"""Scenario files: the shipped ones hold together, and a wrong one is told by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.rehearsal.faults import FAULT, ContainerFault, EngineFault, HostFault, MemoryFault, undone
from console.rehearsal.scenario import ScenarioError, list_scenarios, load_scenario

SHIPPED = [
    "spark4", "boot", "boot-autotune-missed", "boot-late", "boot-oom", "boot-stock", "boot-tiling", "cluster4",
    "counter-reset", "dangling-link", "disk-full", "download-cap-not-in-force", "download-done",
    "download-interrupted", "download-oom", "download-stalled", "download-two", "download-waiting", "drift-clock",
    "drift-env", "drift-gpu-latch", "drift-image", "drift-mount", "engine-503", "engine-dead", "engine-empty",
    "engine-html", "engine-hung", "engine-other", "engine-silent", "engine-truncated", "front-down", "host-gone",
    "host-reboots", "image-moved", "memory-low", "mount-hangs", "prepare", "prune-risk", "retired-always",
    "retired-gone", "rows-holes", "rows-rebuilt", "rows-stale", "rows-stop", "rows-wrong-partition",
    "rows-wrong-rank", "shared-blobs", "site-changed", "station", "upstream-moved", "watchdog-busy",
    "watchdog-dead", "watchdog-flag", "watchdog-gaveup", "watchdog-paused", "watchdog-pid-reused",
    "watchdog-recovery", "watchdog-stopped", "watchdog-two", "watchdog-unit-failed", "watchdog-unknown",
    "worker-dead",
]  # fmt: skip


def test_the_default_comes_first_and_every_scenario_has_a_title() -> None:
    listed = list_scenarios()
    assert list(listed) == SHIPPED
    assert all(listed.values())


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_load(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name and scenario.fleet.rehearsal and not scenario.fleet.production
    for lane in scenario.fleet.lanes.values():
        serving = [c for c in scenario.containers.values() if c.port == lane.port and c.state == "running"]
        assert [c.hosts for c in serving] == [lane.rank_hosts]


def test_spark4_is_the_fleet_of_the_documentation() -> None:
    scenario = load_scenario("spark4")
    assert list(scenario.fleet.hosts) == ["spark-0", "spark-1", "spark-2", "spark-3", "station"]
    assert list(scenario.fleet.lanes) == ["dsv41", "station"]
    engine = scenario.engines["dsv41"]
    assert (engine.tps, engine.pool, engine.kv, engine.boot_s) == (66.3, 6198016, 0.4375, 575)
    assert {m.total_gib for name, m in scenario.machines.items() if name != "station"} == {119.7}
    assert (scenario.machines["station"].total_gib, scenario.machines["station"].hbm_gib) == (480.0, 249.8)


def test_boot_differs_in_nothing_but_the_age() -> None:
    boot, plain = load_scenario("boot"), load_scenario("spark4")
    assert boot.containers["sglang"].age_s == 0
    assert boot.containers["sglang"].model_copy(update={"age_s": 273840.0}) == plain.containers["sglang"]
    assert boot.machines == plain.machines and boot.engines == plain.engines


def test_a_file_may_extend_a_shipped_scenario(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "spark4"\ntitle = "mine"\n[engines.dsv41]\ntps = 20.5\n')
    scenario = load_scenario(file)
    assert (scenario.name, scenario.title) == ("mine", "mine")
    assert scenario.engines["dsv41"].tps == 20.5 and scenario.engines["dsv41"].pool == 6198016


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("title = ", "not valid TOML"),
        ('extends = "spark5"', "extends: no such scenario; did you mean 'spark4'?"),
        ('extends = "spark4"\nspeed = 3', "speed: unknown key"),
        ('extends = "spark4"\n[engines.dsv41]\ntps = -1', "engines.dsv41.tps: must be greater than 0"),
        ('extends = "spark4"\n[engines.dsv41]\ntpz = 1', "engines.dsv41.tpz: unknown key"),
        (
            'extends = "spark4"\n[fleet.lanes.dsv41]\nurll = 1',
            "fleet.lanes.dsv41.urll: unknown key; did you mean 'url'?",
        ),
        ('extends = "spark4"\n[fleet.hosts]\nother = {}', "machines.other: missing"),
        ('extends = "spark4"\nfleet = 3', "fleet: must be a table"),
        ('extends = "spark4"\n[machines.spark-0]\nlike = "gb11"', "machines.spark-0.like: no [templates.gb11]"),
        ('extends = "spark4"\n[containers.sglang]\nengine = "dsv4"', "containers.sglang.engine: no [engines.dsv4]"),
        ('extends = "spark4"\n[containers.sglang]\nport = 0', "containers.sglang.port: missing"),
        ('extends = "spark4"\n[[faults]]\nkind = "host"\nhost = "spark-9"', "faults.0.host: no host 'spark-9'"),
        (
            'extends = "spark4"\n[[faults]]\nkind = "engine"\nlane = "dsv"\nfault = "hang"',
            "faults.0.lane: no lane 'dsv'",
        ),
        ('extends = "spark4"\n[[faults]]\nkind = "engine"\nlane = "dsv41"\nfault = "flood"', "faults.0.engine.fault"),
        ('extends = "spark4"\n[[faults]]\nkind = "flood"', "faults.0"),
        (
            'extends = "spark4"\n[[faults]]\nkind = "host"\nhost = "spark-0"\nat = 9\nuntil = 9',
            "faults.0.until: must be later than `at`",
        ),
        (
            'extends = "spark4"\n[[faults]]\nkind = "container"\nhost = "spark-0"\nname = "sgl"',
            "faults.0.name: no container 'sgl' on spark-0",
        ),
    ],
)
def test_a_wrong_file_is_told_by_name_and_key(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as error:
        load_scenario(file)
    assert str(error.value).startswith(str(file)) and told in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such scenario"):
        load_scenario(tmp_path / "none.toml")
    with pytest.raises(ScenarioError, match=r"^spark: no such scenario; did you mean 'spark4'"):
        load_scenario("spark")


def test_scenarios_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(f'extends = "{two}"')
    two.write_text(f'extends = "{one}"')
    with pytest.raises(ScenarioError, match="without a circle"):
        load_scenario(one)


def test_what_ends_a_fault() -> None:
    host = FAULT.validate_python({"kind": "host", "host": "a", "at": 5, "until": 9})
    ended = undone(host)
    assert isinstance(ended, HostFault) and ended.mode == "open" and ended.until is None
    engine = undone(FAULT.validate_python({"kind": "engine", "lane": "a", "fault": "hang"}))
    assert isinstance(engine, EngineFault) and engine.fault == "none"
    container = undone(FAULT.validate_python({"kind": "container", "host": "a", "name": "c"}))
    assert isinstance(container, ContainerFault) and container.action == "start"
    memory = undone(FAULT.validate_python({"kind": "memory", "host": "a", "free_gib": 1, "cached_gib": 2}))
    assert isinstance(memory, MemoryFault) and memory.free_gib is None is memory.cached_gib
