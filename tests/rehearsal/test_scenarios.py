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
    "drift-env", "drift-gpu-latch", "drift-image", "drift-mount", 
    "drill-bind-replaced", "drill-exits-at-once", "drill-head-deaf",
    "drill-head-full", "drill-head-reboots", "drill-host-lost",
    "drill-image-removed", "drill-lease-held", "drill-port-taken",
    "drill-preflight", "drill-relaunch-underneath", "drill-stop-hangs",
    "drill-stop-underneath", "drill-watchdog-fires", "drill-worker-dies",
    "engine-503", "engine-dead", "engine-empty",
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
        ('extends = "spark4"\n[vars]\nserving = 3', "vars.serving: a name of small letters"),
        ('extends = "spark4"\n[checkpoints.dsv41]\nfolder = "x"', "checkpoints.dsv41.folder: "),
        (
            'extends = "spark4"\n[checkpoints.dsv41]\nhost = "spark-0"',
            "checkpoints.dsv41.mounted_on: 'spark-0'",
        ),
        ('extends = "spark4"\n[checkpoints.dsv41]\nmount = ""', "checkpoints.dsv41.mount: missing"),
        ('extends = "prepare"\n[downloads.next]\ncheckpoint = "d"', "downloads.next.checkpoint: no checkpoint 'd'"),
        ('extends = "prepare"\n[downloads.next]\nrevision = "%s"' % ("0" * 40), "downloads.next.revision: no revision"),
        (
            'extends = "spark4"\n[rows.serving]\nhosts = ["station"]',
            "rows.serving.hosts: no rank of dsv41",
        ),
        ('extends = "spark4"\n[rows.former.on.spark-3]\nshare = 0.5', "rows.former.on: no host 'spark-3'"),
        ('extends = "spark4"\n[watchdogs.dsv41]\nstate = "paused"', "watchdogs.dsv41.state: a watchdog of kind 'log'"),
        ('extends = "spark4"\n[watchdogs.station]\nhost = "spark"', "watchdogs.station.host: no host 'spark'"),
        ('extends = "spark4"\n[[boots.dsv4]]\nage_s = 1\ntotal_s = 2', "boots.dsv4: no lane 'dsv4'; did you mean"),
        ('extends = "spark4"\n[files.x]\nhosts = ["x"]\npath = "/x"', "files.x.hosts: no host 'x'"),
        ('extends = "spark4"\n[fronts.x]\nlane = "x"\nhost = "spark-0"\nport = 1', "fronts.x.lane: no lane 'x'"),
        (
            'extends = "spark4"\n[engines.station]\nboot = "tiling"',
            "engines.station.boot: 'tiling' is a story",
        ),
        ('extends = "spark4"\n[[faults]]\nkind = "download"\nname = "x"', "faults.0.name: no download 'x'"),
        (
            'extends = "spark4"\n[[faults]]\nkind = "rows"\nname = "former"\nhost = "spark-2"',
            "faults.0.host: no copy of 'former'",
        ),
        (
            'extends = "spark4"\n[[faults]]\nkind = "watchdog"\nlane = "station"\nstate = "dead"',
            "faults.0.lane: no watchdog",
        ),
        (
            'extends = "spark4"\n[[faults]]\nkind = "watchdog"\nlane = "dsv41"\nstate = "off"',
            "faults.0.state: a watchdog of",
        ),
        (
            'extends = "spark4"\n[[faults]]\nkind = "snapshot"\ncheckpoint = "dsv41"\nhost = "spark-3"\nwhat = "hang"',
            "faults.0.host: spark-3 holds the checkpoint",
        ),
        (
            'extends = "spark4"\n[[faults]]\nkind = "reboot"\nhost = "spark-0"\nuntil = 9',
            "faults.0.until: a reboot",
        ),
        ('extends = "spark4"\n[[faults]]\nkind = "gpu"\nhost = "spark-0"\nindex = 1', "faults.0.index: no GPU 1"),
        (
            'extends = "spark4"\n[[faults]]\nkind = "image"\nhost = "spark-0"\nimage = "x"',
            "faults.0.image: no image",
        ),
        ('extends = "spark4"\n[[faults]]\nkind = "front"\nname = "x"', "faults.0.name: no front 'x'"),
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


@pytest.mark.parametrize(
    ("fault", "ended"),
    [
        ({"kind": "container", "host": "a", "name": "c", "action": "remove"}, {"action": "create"}),
        ({"kind": "download", "name": "d", "what": "stall"}, {"what": "go"}),
        ({"kind": "download", "name": "d", "what": "kill"}, {"what": "resume"}),
        ({"kind": "rows", "name": "r", "host": "a", "what": "stop"}, {"what": "go"}),
        ({"kind": "rows", "name": "r", "host": "a", "what": "holes"}, {"what": "done"}),
        ({"kind": "watchdog", "lane": "l", "state": "failing", "attempt": 2}, {"state": "armed", "attempt": 1}),
        ({"kind": "snapshot", "checkpoint": "c", "host": "a"}, {"what": "back"}),
        ({"kind": "file", "host": "a", "path": "/x", "old": "1", "new": "2"}, {"what": "back"}),
        ({"kind": "image", "host": "a", "image": "i"}, {"what": "back"}),
        ({"kind": "clock", "host": "a", "seconds": 95}, {"seconds": 0.0}),
        ({"kind": "gpu", "host": "a", "mhz": 850}, {"mhz": None}),
        ({"kind": "disk", "host": "a", "free_gib": 1}, {"free_gib": None}),
        ({"kind": "upstream", "checkpoint": "c", "revision": "1" * 40}, {"revision": None}),
        ({"kind": "front", "name": "f"}, {"what": "well"}),
    ],
    ids=lambda value: value.get("kind"),
)
def test_what_ends_a_fault_of_the_read_side(fault: dict[str, object], ended: dict[str, object]) -> None:
    begun = FAULT.validate_python({**fault, "at": 5, "until": 9})
    assert undone(begun) == begun.model_copy(update={"at": 0.0, "until": None, **ended})


def test_variables_stand_in_every_text() -> None:
    scenario = load_scenario("prepare")
    new, old = "1bae0e1088993b9b82de08f59de5be5a34e42170", "df42c109a4c0d8e1f75b3629d40e8c17ab96f25d"
    assert scenario.engines["dsv41"].model_path == f"/models/repo/snapshots/{old}"
    assert f"/models/repo/snapshots/{old}" in scenario.containers["sglang"].args
    assert scenario.containers["sglang"].on["spark-3"].env["SPARK_ENGRAM_DIR"] == f"/models/repo/snapshots/{old}"
    assert f"SNAP=snapshots/{old}\n" in scenario.files["site"].text
    assert scenario.fleet.lanes["dsv41"].next.revision == new == scenario.downloads["next"].revision
    assert '"${SERVED_ALIASES:-}"' in scenario.files["site"].text  # no name of ours: left as it is
    assert "{rank}" in scenario.containers["sglang"].args
    assert '{"cpu_offload": true}' in scenario.containers["serving"].args


def test_prepare_differs_in_what_is_served_and_prepared_alone() -> None:
    prepare, plain = load_scenario("prepare"), load_scenario("spark4")
    assert prepare.machines == plain.machines and set(prepare.containers) == set(plain.containers)
    assert prepare.engines["station"] == plain.engines["station"]
    assert set(prepare.rows) == {*plain.rows, "next"} and set(prepare.downloads) == {"next"}
