"""What the memory cases ask of the console's alarms."""

from __future__ import annotations

from case_table import case_file, inspect_case

from console.alarms import FREE_ALARM_GIB, memory_alarms
from console.readings.gpu import parse_gpus
from console.readings.memory import parse_memory
from console.snapshot import Severity

GIB = 1024**3


def test_low_free_with_much_available_warns() -> None:
    """C001: 95 GiB available with 3 GiB free is an alarm where the GPU takes from the same memory, and says both."""
    memory = parse_memory(case_file("C001", "meminfo.txt").read_text())
    unified = parse_gpus(case_file("C007", "nvidia_smi.csv").read_text())[0].unified
    (alarm,) = memory_alarms("spark-2", memory, unified, FREE_ALARM_GIB * GIB)
    assert alarm.severity is Severity.ACT
    assert "free 3.0 of 121.7 GiB" in alarm.text
    assert "93.5 cached" in alarm.text
    assert "drop cache" in alarm.advice
    (warning,) = inspect_case("C001", "memory", "meminfo=meminfo.txt")["warnings"]
    assert warning.startswith("if CPU and GPU share this memory: free 3.0 of 121.7 GiB")


def test_the_same_memory_beside_a_gpu_with_its_own_is_no_alarm() -> None:
    """C001's neighbour: on a host with device memory a full page cache is healthy."""
    memory = parse_memory(case_file("C001", "meminfo.txt").read_text())
    assert list(memory_alarms("h", memory, False, FREE_ALARM_GIB * GIB)) == []


def test_reclaimable_cache_does_not_look_like_running_out() -> None:
    """C006: 94.6 % with cache, 41.1 % without it."""
    answer = inspect_case("C006", "cgroup", "v2")
    assert answer["working_set_percent"] < 50 < answer["current_percent"]
    assert answer["notes"] == ["GPU memory is outside these figures"]
