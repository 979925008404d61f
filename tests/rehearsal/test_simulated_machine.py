"""Simulated machines: figures that add up, files as the kernel writes them, and an nvidia-smi that answers as asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.gpu import QUERY_FIELDS, parse_gpus
from console.readings.memory import parse_memory
from console.rehearsal.faults import MemoryFault
from console.rehearsal.machine import GIB, Load, SimulatedMachine
from console.rehearsal.scenario import Machine, load_scenario

SCENARIO = load_scenario("spark4")
GB10, GB300 = SCENARIO.machines["spark-0"], SCENARIO.machines["station"]
SERVING = Load(memory_gib=94.9, busy=True)


def installed(root: Path, machine: Machine) -> SimulatedMachine:
    simulated = SimulatedMachine(root, "node", machine)
    simulated.install()
    return simulated


def numa(root: Path) -> str:
    """As the sampler sends it."""
    text = ""
    for node in sorted((root / "sys/devices/system/node").glob("node*")):
        text += f"node {node.name[4:]} cpulist {(node / 'cpulist').read_text()}{(node / 'meminfo').read_text()}"
    return text


def test_a_serving_gb10_reads_as_one(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB10)
    machine.step(0.0, SERVING)
    memory = parse_memory(
        (tmp_path / "proc/meminfo").read_text(),
        psi=(tmp_path / "proc/pressure/memory").read_text(),
        numa=numa(tmp_path),
    )
    assert memory.total / GIB == pytest.approx(119.7, abs=0.001)
    assert memory.free / GIB == pytest.approx(119.7 - 94.9 - 5.6 - 7.4, abs=0.001)
    assert memory.cached / GIB == pytest.approx(7.4, abs=0.001)
    assert memory.available is not None and memory.free < memory.available < memory.free + memory.cached
    assert memory.pressure is not None and memory.pressure.some_avg10 == 0
    assert [(n.cpus, n.is_device_memory) for n in memory.numa] == [(20, False)]


def test_free_memory_falls_as_the_page_cache_grows(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB10)
    first, later = machine.figures(0, SERVING), machine.figures(300, SERVING)
    assert later.free < first.free and later.cached > first.cached
    assert first.free - later.free == pytest.approx(later.cached - first.cached) == pytest.approx(300 * 2 / 1024)


def test_the_station_has_hbm_as_a_node_without_cpus(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB300)
    machine.step(0.0, Load(memory_gib=122.8, hbm_gib=242.4, busy=True))
    memory = parse_memory((tmp_path / "proc/meminfo").read_text(), numa=numa(tmp_path))
    grace, hbm = memory.numa
    assert (grace.cpus, hbm.cpus, hbm.is_device_memory) == (72, 0, True)
    assert grace.total / GIB == pytest.approx(480.0, abs=0.001)
    assert hbm.total / GIB == pytest.approx(249.8, abs=0.001)
    assert hbm.free / GIB == pytest.approx(7.4, abs=0.001)
    assert memory.total == pytest.approx(grace.total + hbm.total, abs=4096)
    assert memory.free == pytest.approx(grace.free + hbm.free, abs=4096)


def test_a_memory_fault_ramps_there_and_back(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB10)
    load = Load(memory_gib=48.4, busy=True)
    machine.step(10.0, load)
    start = machine.figures(10.0, load)
    machine.set_fault(MemoryFault(kind="memory", host="node", free_gib=2.9, cached_gib=61.0, over=15.0), 10.0)
    half, there = machine.figures(17.5, load), machine.figures(26.0, load)
    assert half.free == pytest.approx((start.free + 2.9) / 2)
    assert (there.free, there.cached) == pytest.approx((2.9, 61.0))
    machine.step(26.0, load)
    assert "some avg10=4.95" in (tmp_path / "proc/pressure/memory").read_text()
    machine.set_fault(MemoryFault(kind="memory", host="node", over=10.0), 30.0)
    back = machine.figures(40.0, load)
    machine._fault = None
    assert back.free == pytest.approx(machine.figures(40.0, load).free)


@given(
    now=st.floats(0, 1e7),
    memory=st.floats(0, 200),
    loading=st.floats(0, 1),
    machine=st.builds(
        Machine, total_gib=st.floats(1, 2000), cached_gib=st.floats(0, 2000), growth_mib_s=st.floats(0, 100)
    ),
)
def test_figures_always_add_up(now: float, memory: float, loading: float, machine: Machine) -> None:
    figures = SimulatedMachine(Path("unused"), "node", machine).figures(now, Load(memory, 0.0, loading, True))
    assert min(figures.used, figures.cached, figures.free) >= 0
    assert figures.used + figures.cached + figures.free == pytest.approx(machine.total_gib)


def smi(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "bin/nvidia-smi", *arguments], capture_output=True, text=True, timeout=20)


FORMAT = "--format=csv,noheader,nounits"


def test_nvidia_smi_of_a_gb10_has_no_memory_figures(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB10)
    machine.step(0.0, SERVING)
    answer = smi(tmp_path, f"--query-gpu={','.join(QUERY_FIELDS)}", FORMAT)
    assert (answer.returncode, answer.stderr) == (0, "")
    (gpu,) = parse_gpus(answer.stdout)
    assert gpu.unified and gpu.memory_total is None and gpu.name == "NVIDIA GB10"
    assert (gpu.utilisation, gpu.temperature_c, gpu.clock_mhz) == (96, 71, 2411)
    machine.step(1.0, Load())
    (idle,) = parse_gpus(smi(tmp_path, f"--query-gpu={','.join(QUERY_FIELDS)}", FORMAT).stdout)
    assert idle.utilisation == 0


def test_nvidia_smi_of_the_station_lists_the_display_card_first(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB300)
    machine.step(0.0, Load(memory_gib=122.8, hbm_gib=242.4, busy=True))
    display, gb300 = parse_gpus(smi(tmp_path, f"--query-gpu={','.join(QUERY_FIELDS)}", FORMAT).stdout)
    assert (display.index, gb300.index, gb300.name) == (0, 1, "NVIDIA GB300")
    assert gb300.memory_total == 255810 << 20 and gb300.memory_used == 248217 << 20
    assert display.utilisation == 0 and not gb300.unified


def test_nvidia_smi_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    machine = installed(tmp_path, GB10)
    machine.step(0.0, SERVING)
    unknown = smi(tmp_path, "--query-gpu=index,fan.speed", FORMAT)
    assert unknown.returncode == 2 and 'Field "fan.speed" is not a valid field' in unknown.stderr
    assert smi(tmp_path, "-q", "-x").returncode == 2
