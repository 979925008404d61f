"""The sampler's own processes: what they send, and that they are gone when they should be."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from sampler_bench import FLAVOURS, MEMINFO, PRESSURE, Bench, counts, program, until, write

from console.fleet.inventory import Rates
from console.reach.limits import Timings

SMI = "0, NVIDIA GB300, GPU-1, 580.10, 256703, 232863, 88, 612.40, 1400.00, 61, 1920"

pytestmark = pytest.mark.parametrize("flavour", FLAVOURS)


async def test_frames_carry_the_files_as_they_are(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        await bench.start()
        await until(lambda: len(bench.kinds("node")) >= 3, "three node frames")
        write(bench.root / "new", MEMINFO.replace("3145728", "2097152"))
        (bench.root / "new").rename(bench.root / "proc/meminfo")
        await until(lambda: "2097152" in bench.kinds("node")[-1].texts["meminfo"], "a replaced file is read anew")
    (facts,) = bench.kinds("facts")
    node = bench.kinds("node")[0]
    assert node.texts == {
        "meminfo": MEMINFO,
        "psi_memory": PRESSURE,
        "numa": "node 0 cpulist 0-19\nNode 0 MemTotal:       4096 kB\nNode 0 MemFree:        4096 kB\n",
    }
    assert facts.texts["hostname"] == "spark-2"
    assert facts.texts["kernel"] == "6.11.0-1016-nvidia"
    assert facts.texts["boot_id"] == "6c9e0d3e-0000-4000-8000-000000000001"
    assert facts.texts["cpus"] == "17"
    assert facts.texts["page_size"] == str(os.sysconf("SC_PAGE_SIZE"))
    assert facts.texts["python"].startswith("python3 3." if flavour == "python" else "sh")
    assert counts([frame.sequence for frame in bench.frames])
    assert bench.reader.lost == 0
    clocks = [frame.host_mono for frame in bench.kinds("node")]
    assert clocks == sorted(clocks)
    assert all(frame.started is not None and frame.started <= frame.host_mono for frame in bench.kinds("node"))
    assert abs(node.host_wall - os.stat(bench.root / "proc/meminfo").st_mtime) < 3600


async def test_zones_come_only_where_the_kernel_does_not_say_what_is_available(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        write(bench.root / "proc/meminfo", "MemTotal: 100 kB\nMemFree: 50 kB\n")
        write(bench.root / "proc/zoneinfo", 'Node 0, zone      DMA\n  pages free     3\n\tper "cpu"\\x\n')
        (bench.root / "proc/pressure/memory").unlink()
        await bench.start()
        await until(lambda: bench.kinds("node"), "a node frame")
    texts = bench.kinds("node")[0].texts
    assert texts["zoneinfo"] == 'Node 0, zone      DMA\n  pages free     3\n\tper "cpu"\\x\n'
    assert "psi_memory" not in texts


async def test_no_memory_figures_is_an_error_and_no_storm(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        (bench.root / "proc/meminfo").unlink()
        await bench.start()
        await until(lambda: bench.kinds("error"), "an error frame")
        write(bench.root / "proc/meminfo", MEMINFO)
        await until(lambda: bench.kinds("node"), "a node frame once it can be read")
    (error,) = bench.kinds("error")
    assert error.source == "/proc/meminfo"
    assert "/proc/meminfo" in error.error


async def test_without_nvidia_smi_there_is_one_note_and_no_frame(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        await bench.start()
        await until(lambda: len(bench.kinds("node")) >= 4, "four node frames")
    assert bench.kinds("facts")[0].texts["gpu"] == "nvidia-smi is not on PATH"
    assert {frame.kind for frame in bench.frames} == {"facts", "node"}


async def test_figures_of_nvidia_smi(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        program(bench.bin / "nvidia-smi", f'#!/bin/sh\necho "$@" >{tmp_path}/asked\necho "{SMI}"\necho \'"\\\'\n')
        await bench.start()
        await until(lambda: len(bench.kinds("gpu")) >= 2, "two gpu frames")
    assert bench.kinds("gpu")[0].texts == {"csv": f'{SMI}\n"\\\n'}
    assert (tmp_path / "asked").read_text() == (
        "--query-gpu=index,name,uuid,driver_version,memory.total,memory.used,utilization.gpu,power.draw,power.limit,"
        "temperature.gpu,clocks.sm --format=csv,noheader,nounits\n"
    )
    assert bench.kinds("error") == []


async def test_a_failing_nvidia_smi_is_quoted(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        program(bench.bin / "nvidia-smi", "#!/bin/sh\necho 'has \"failed\": no driver'\necho more\nexit 9\n")
        await bench.start()
        await until(lambda: bench.kinds("error"), "an error frame")
    error = bench.kinds("error")[0]
    assert (error.source, error.error) == ("nvidia-smi", 'nvidia-smi exited 9: has "failed": no driver')
    assert error.texts == {}


async def test_an_nvidia_smi_that_hangs_delays_nothing_and_is_killed(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        program(bench.bin / "nvidia-smi", f"#!/bin/sh\ntrap '' TERM HUP\necho x >>{tmp_path}/asked\nexec sleep 600\n")
        await bench.start()
        await until(lambda: any("has not answered for" in frame.error for frame in bench.frames), "it is reported")
        asked = (tmp_path / "asked").read_text()
        before = len(bench.kinds("node"))
        await until(lambda: len(bench.kinds("node")) >= before + 3, "node frames go on")
        await until(lambda: any("killed after 2 s" in frame.error for frame in bench.frames), "it is killed")
        await until(lambda: (tmp_path / "asked").read_text() == "x\nx\n", "it is asked again")
        bench.end_of_stdin()
        await until(lambda: bench.processes() == [], "sampler and child are gone")
    assert asked == "x\n", "never two at once"
    assert {frame.source for frame in bench.kinds("error")} == {"nvidia-smi"}
    assert bench.reader.lost == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, None])
async def test_it_ends_with_its_children(tmp_path: Path, flavour: str, number: signal.Signals | None) -> None:
    async with Bench(tmp_path, flavour) as bench:
        program(bench.bin / "nvidia-smi", "#!/bin/sh\ntrap '' TERM HUP\nexec sleep 600\n")
        await bench.start()
        await until(lambda: bench.kinds("node"), "it runs")
        await until(lambda: any(b"600" in command(pid) for pid in bench.processes()), "the child runs")
        assert bench.child is not None
        if number is None:
            bench.end_of_stdin()
        else:
            os.kill(bench.child.pid, number)
        await until(lambda: bench.processes() == [], "all gone")


async def test_without_heartbeats_it_goes(tmp_path: Path, flavour: str) -> None:
    timings = Timings(beat_limit=2.0, slow_after=60.0, slow_limit=60.0)
    async with Bench(tmp_path, flavour, timings=timings) as bench:
        program(bench.bin / "nvidia-smi", "#!/bin/sh\ntrap '' TERM HUP\nexec sleep 600\n")
        await bench.start()
        for _ in range(6):
            await asyncio.sleep(0.5)
            bench.write("beat\n")
        assert bench.processes(), "heartbeats keep it"
        # no end of stdin: as when packets are dropped, nothing tells the host that the console is gone
        await until(lambda: bench.processes() == [], "gone after the last heartbeat")


async def test_it_goes_also_where_its_script_never_came(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour, timings=Timings(beat_limit=2.0)) as bench:
        await bench.start(send=False)
        assert bench.processes(), "it waits for its script"
        # stdin stays open: as when packets are dropped from then on
        await until(lambda: bench.processes() == [], "gone without a script")


async def test_it_goes_also_while_a_write_is_stuck(tmp_path: Path, flavour: str) -> None:
    timings = Timings(beat_limit=2.0, slow_after=60.0, slow_limit=60.0)
    async with Bench(tmp_path, flavour, timings=timings, rates=Rates(node=0.2, gpu=1)) as bench:
        write(bench.root / "proc/meminfo", MEMINFO + "Filler: 1 kB\n" * 3000)
        await bench.start(read=False)
        await until(lambda: stuck(bench), "its output is stuck")
        await until(lambda: bench.processes() == [], "gone after the last heartbeat")


async def test_a_stuck_connection_that_heals_goes_on(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        write(bench.root / "proc/meminfo", MEMINFO + "Filler: 1 kB\n" * 3000)
        await bench.start(read=False)
        await until(lambda: stuck(bench), "its output is stuck")
        await asyncio.sleep(1.0)
        bench.resume()
        await until(lambda: len(bench.kinds("node")) >= 5, "frames flow again")
        assert bench.processes()
    if flavour == "python":
        assert all(frame.texts["meminfo"].endswith("Filler: 1 kB\n") for frame in bench.kinds("node"))


async def test_it_writes_no_file(tmp_path: Path, flavour: str) -> None:
    async with Bench(tmp_path, flavour) as bench:
        before = files(tmp_path)
        await bench.start()
        await until(lambda: len(bench.kinds("node")) >= 2, "it runs")
        labelled = [pid for pid in bench.processes() if b"laneswap-sampler" in command(pid)]
        assert labelled, "ps shows what it is"
        opened = [name for pid in labelled for name in descriptors(pid)]
        assert files(tmp_path) == before
    assert not any(name.startswith("/") and str(tmp_path) not in name for name in opened if name != "/dev/null")


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def descriptors(pid: int) -> list[str]:
    return [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]


def stuck(bench: Bench) -> bool:
    """Whether the pipe of its output is full, as seen from here."""
    assert bench.child is not None and bench.child.stdout is not None
    return bool(bench.child.stdout._paused)  # type: ignore[attr-defined]  # is_reading() came after Python 3.11.2


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
