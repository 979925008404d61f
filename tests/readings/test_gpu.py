"""nvidia-smi's CSV in all the forms that it comes in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.readings.gpu import MIB, QUERY_FIELDS, Gpu, GpuUnreadable, parse_gpus

ROOT = Path(__file__).parents[1]
H200 = ROOT / "data/hosts/h200"
CASES = ROOT / "cases/inputs"


def test_an_idle_h200_read_off_a_real_machine() -> None:
    assert parse_gpus((H200 / "gpu.csv").read_text()) == (
        Gpu(
            index=0,
            name="NVIDIA H200",
            uuid="GPU-00000000-0000-0000-0000-000000000001",
            unified=False,
            memory_total=143_771 * MIB,
            memory_used=0,
            utilisation=0.0,
            power_w=131.82,
            power_limit_w=None,
            temperature_c=41.0,
            clock_mhz=480.0,
            driver="580.159.04",
        ),
    )


def test_a_busy_h200_read_off_a_real_machine() -> None:
    (gpu,) = parse_gpus((H200 / "gpu_busy.csv").read_text())
    assert (gpu.memory_used, gpu.memory_total) == (41_843 * MIB, 143_771 * MIB)
    assert (gpu.utilisation, gpu.power_w, gpu.temperature_c) == (98.0, 692.40, 57.0)
    assert (gpu.clock_mhz, gpu.uuid, gpu.driver) == (None, "", "")


def row(**cells: str) -> str:
    good = {
        "index": "0",
        "name": "NVIDIA GB10",
        "uuid": "GPU-1",
        "driver_version": "580.95.05",
        "memory.total": "[N/A]",
        "memory.used": "[N/A]",
        "utilization.gpu": "93",
        "power.draw": "61.20",
        "power.limit": "[N/A]",
        "temperature.gpu": "68",
        "clocks.sm": "2418",
    }
    return ", ".join((good | cells)[field] for field in QUERY_FIELDS) + "\n"


def test_the_samplers_form_without_header_and_units() -> None:
    (gpu,) = parse_gpus(row())
    assert gpu.unified
    assert (gpu.memory_total, gpu.memory_used, gpu.power_limit_w) == (None, None, None)
    assert (gpu.utilisation, gpu.power_w, gpu.temperature_c, gpu.clock_mhz) == (93.0, 61.2, 68.0, 2418.0)
    assert (gpu.name, gpu.driver, gpu.faults) == ("NVIDIA GB10", "580.95.05", ())
    (discrete,) = parse_gpus(row(**{"memory.total": "275040", "memory.used": "0", "name": "NVIDIA GB300"}))
    assert (discrete.unified, discrete.memory_total, discrete.memory_used) == (False, 275_040 * MIB, 0)


@pytest.mark.parametrize(
    "words", ["[N/A]", "N/A", "[Not Supported]", "Not Supported", "[NA]", "", "[ N/A ]", "[Not Available]"]
)
def test_every_way_of_not_saying_it_is_none_not_zero(words: str) -> None:
    (gpu,) = parse_gpus(row(**{"memory.total": words, "memory.used": words, "utilization.gpu": words}))
    assert (gpu.memory_total, gpu.memory_used, gpu.utilisation, gpu.unified, gpu.faults) == (None, None, None, True, ())


@pytest.mark.parametrize("words", ["[Unknown Error]", "[GPU requires reset]", "[GPU is lost]", "ERR!"])
def test_a_fault_is_not_unified_memory(words: str) -> None:
    (gpu,) = parse_gpus(row(**{"memory.total": words, "memory.used": words}))
    assert not gpu.unified
    assert gpu.memory_total is None
    assert gpu.faults == tuple(f"memory.{what}: {words.strip('[]')}" for what in ("total", "used"))


def test_units_other_than_mib() -> None:
    header = "memory.used [GiB], memory.total [GiB]\n"
    (gpu,) = parse_gpus(header + "1.5 GiB, 2 GiB\n")
    assert (gpu.memory_used, gpu.memory_total) == (1536 * MIB, 2048 * MIB)


def test_memory_that_was_not_asked_for_is_unknown_not_unified() -> None:
    (gpu,) = parse_gpus("index, temperature.gpu\n3, 50\n")
    assert (gpu.index, gpu.unified, gpu.memory_total) == (3, False, None)


def test_several_gpus_and_a_torn_last_row() -> None:
    gpus = parse_gpus(row(index="0") + row(index="1") + "2, NVIDIA GB10, GPU")
    assert [gpu.index for gpu in gpus] == [0, 1]


def test_names_are_made_safe() -> None:
    (gpu,) = parse_gpus(row(name="NVIDIA\x1b[2J \u202eX[/b]"))
    assert gpu.name == "NVIDIA X[/b]"


@pytest.mark.parametrize("text", ["", "\n\n", "No devices were found\n", "index, name\n"])
def test_no_gpu(text: str) -> None:
    assert parse_gpus(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n",
        "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n",
        "<html>\n",
    ],
)
def test_error_messages_are_errors(text: str) -> None:
    with pytest.raises(GpuUnreadable) as caught:
        parse_gpus(text)
    assert text.split("\n")[0][:40] in str(caught.value)


@pytest.mark.parametrize("cell", ["nan", "inf", "-5", "1e99", "9" * 40, "12 parsecs per hour", "0x10"])
def test_no_wild_number_gets_through(cell: str) -> None:
    (gpu,) = parse_gpus(row(**{"power.draw": cell}))
    assert gpu.power_w is None
    assert gpu.faults == (f"power.draw: {cell}",)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200),
        st.lists(st.sampled_from([row(), "[N/A]", ", ", '"', "\n", "index, name", "5 %"]), max_size=9).map("".join),
    )
)
def test_hostile_csv_is_read_or_refused(text: str) -> None:
    try:
        gpus = parse_gpus(text)
    except GpuUnreadable as error:
        assert str(error).isprintable()
        return
    for gpu in gpus:
        assert gpu.memory_used is None or gpu.memory_used >= 0
        assert gpu.name.isprintable() and gpu.uuid.isprintable()


def test_a_figure_that_this_account_may_not_see_is_neither_a_fault_nor_unified_memory() -> None:
    withheld = "[Insufficient Permissions]"
    cells = ["0", "NVIDIA H200", "GPU-1", "580", withheld, withheld, withheld, "90.1", "700", "35", "1980"]
    (gpu,) = parse_gpus(", ".join(cells))
    assert (gpu.memory_total, gpu.utilisation, gpu.unified, gpu.faults, gpu.power_w) == (None, None, False, (), 90.1)
