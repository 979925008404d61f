"""Faults of hosts, Docker, Hub and front on the embedded fleet, as a client of its servers finds them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from console.readings.boot_reader import read_boot
from console.readings.expected import parse_expected
from console.rehearsal import Rehearsal, RehearsalError
from console.rehearsal import engine as engine_module
from console.rehearsal.hub import TOTAL

LIMIT = 90.0
IMAGE = "aidendle94/sparkrun-sglang-dsv41-gb10:production-1.7.1"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet() -> AsyncIterator[Rehearsal]:
    async with Rehearsal("front-down", speed=0.01) as rehearsal:  # its own story begins after 1500 s
        yield rehearsal


async def until(true: Callable[[], Awaitable[object]], what: str) -> Any:
    end = time.monotonic() + LIMIT
    while not (answer := await true()):
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}"
        await asyncio.sleep(0.05)
    return answer


async def through(fleet: Rehearsal, host: str, port: int, path: str) -> tuple[int, bytes]:
    """GET through an ssh channel of its own. Raises asyncssh.ChannelOpenError where the port is closed."""
    async with asyncio.timeout(LIMIT), asyncssh.connect(**fleet.overrides[host]) as connection:
        reader, writer = await connection.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: lane\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    return int(head.split(b" ", 2)[1]), body


async def docker(fleet: Rehearsal, host: str, path: str) -> Any:
    async with asyncio.timeout(LIMIT), asyncssh.connect(**fleet.overrides[host]) as connection:
        reader, writer = await connection.open_unix_connection("/var/run/docker.sock")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n".encode())
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    return json.loads(body)


# Docker


async def test_ranks_differ_where_the_scenario_says_so(fleet: Rehearsal) -> None:
    found = {}
    for host in ("spark-0", "spark-3"):
        (row,) = await docker(fleet, host, "/containers/json?all=1")
        found[host] = await docker(fleet, host, f"/containers/{row['Id']}/json")
    sources = {host: [mount["Destination"] for mount in item["Mounts"]] for host, item in found.items()}
    assert "/engram-local" in sources["spark-0"] and "/engram-local" not in sources["spark-3"]
    assert "SPARK_ENGRAM_DIR=/engram-local" in found["spark-0"]["Config"]["Env"]
    assert "SPARK_ENGRAM_ROWS=1:288004626:384006168,14:288012511:384016682" in found["spark-3"]["Config"]["Env"]
    assert found["spark-0"]["Image"] == found["spark-3"]["Image"]


async def test_an_image_that_moved_takes_its_name_along(fleet: Rehearsal) -> None:
    path = f"/images/{IMAGE.replace('/', '%2F')}/json"
    (before,) = await docker(fleet, "spark-1", "/containers/json")
    assert before["Image"] == IMAGE and (await docker(fleet, "spark-1", path))["Id"] == before["ImageID"]
    await fleet.inject("image", host="spark-1", image=IMAGE)
    (after,) = await docker(fleet, "spark-1", "/containers/json")
    assert after["Image"] == after["ImageID"] == before["ImageID"]
    assert (await docker(fleet, "spark-1", path))["Id"] != before["ImageID"]
    await fleet.inject("image", host="spark-1", image=IMAGE, what="back")
    assert (await docker(fleet, "spark-1", "/containers/json"))[0]["Image"] == IMAGE
    assert "No such image" in (await docker(fleet, "spark-1", "/images/x/json"))["message"]


async def test_a_removed_container_is_gone_and_may_come_back(fleet: Rehearsal) -> None:
    name = "dsv41-vllm-v21-fused-split-RETIRED-REF"
    await fleet.inject("container", host="station", name=name, action="remove")
    assert [row["Names"] for row in await docker(fleet, "station", "/containers/json?all=1")] == [
        ["/dsv41-vllm-1017-v21cfg-BOUND-REF"]
    ]
    with pytest.raises(RehearsalError, match="no container"):
        await fleet.inject("container", host="station", name=name, action="remove")
    await fleet.inject("container", host="station", name=name, action="create")
    rows = await docker(fleet, "station", "/containers/json?all=1")
    assert [row["State"] for row in rows if row["Names"] == [f"/{name}"]] == ["exited"]
    with pytest.raises(RehearsalError, match="was not removed"):
        await fleet.inject("container", host="station", name=name, action="create")
    until_now = f"/events?since=1&until={int(time.time())}"
    events = await docker_events(fleet, "station", until_now)
    assert [event["Action"] for event in events] == ["destroy", "create"]


async def docker_events(fleet: Rehearsal, host: str, path: str) -> list[dict[str, Any]]:
    async with asyncio.timeout(LIMIT), asyncssh.connect(**fleet.overrides[host]) as connection:
        reader, writer = await connection.open_unix_connection("/var/run/docker.sock")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: docker\r\n\r\n".encode())
        body = (await reader.read()).decode()
        writer.close()
    return [json.loads(row) for row in body.splitlines() if row.startswith("{")]


# front and Hub


async def test_a_front_passes_on_refuses_and_says_502(fleet: Rehearsal) -> None:
    assert (await through(fleet, "spark-0", 4000, "/v1/models"))[0] == 200
    await fleet.inject("front", name="proxy", what="502")
    status, body = await through(fleet, "spark-0", 4000, "/v1/models")
    assert status == 502 and b"502 Bad Gateway" in body
    assert (await through(fleet, "spark-0", 8210, "/v1/models"))[0] == 200
    await fleet.inject("front", name="proxy", what="refused")
    with pytest.raises(asyncssh.ChannelOpenError):
        await through(fleet, "spark-0", 4000, "/v1/models")
    await fleet.inject("front", name="proxy", what="well")
    assert (await through(fleet, "spark-0", 4000, "/v1/models"))[0] == 200


async def test_a_front_cuts_what_it_had_taken(fleet: Rehearsal) -> None:
    async with asyncio.timeout(LIMIT), asyncssh.connect(**fleet.overrides["spark-0"]) as connection:
        reader, writer = await connection.open_connection("127.0.0.1", 4000)
        writer.write(b"GET /v1/models HTTP/1.1\r\nHost: lane\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await fleet.inject("front", name="proxy", what="refused")
        await reader.read()  # to its end: the connection is not kept alive
        writer.close()
    await fleet.inject("front", name="proxy", what="well")


def ask(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=LIMIT) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


async def test_the_hub_knows_revisions_and_where_main_stands(fleet: Rehearsal) -> None:
    hub = fleet.fleet.lanes["dsv41"].download.hub
    assert hub.startswith("http://127.0.0.1:") and fleet.fleet.lanes["station"].download.hub == ""
    model = f"{hub}/api/models/deepseek-ai/DeepSeek-V4.1-Flash"
    newest = "1bae0e1088993b9b82de08f59de5be5a34e42170"

    async def answer(url: str) -> tuple[int, Any]:
        status, body = await asyncio.to_thread(ask, url)
        return status, json.loads(body)

    assert (await answer(model))[1]["sha"] == newest
    listing = await asyncio.to_thread(ask, f"{model}/revision/{newest}?blobs=true")
    assert parse_expected(listing[1].decode(), "hub").total == TOTAL
    assert (await answer(f"{model}/revision/{'3' * 40}"))[0] == 404
    assert (await answer(f"{hub}/api/models/other/model"))[0] == 404
    await fleet.inject("upstream", checkpoint="dsv41", revision="3" * 40)
    assert (await answer(model))[1]["sha"] == "3" * 40
    await fleet.inject("upstream", checkpoint="dsv41")
    assert (await answer(model))[1]["sha"] == newest


# hosts


def simulated(fleet: Rehearsal, host: str, path: str) -> str:
    assert fleet.root is not None
    return (fleet.root / host / path).read_text()


async def test_files_change_and_are_as_they_were(fleet: Rehearsal) -> None:
    path = "~/sparkrun-recipes/recipes/deepseek-v4.1-flash/sglang/launch/fleet.env"
    file = "home/ops" + path[1:]
    before = simulated(fleet, "spark-0", file)
    await fleet.inject("file", host="spark-0", path=path, old="MODEL_HOST_RANK=3", new="MODEL_HOST_RANK=2")
    assert "MODEL_HOST_RANK=2\n" in simulated(fleet, "spark-0", file)
    with pytest.raises(RehearsalError, match="does not stand in"):
        await fleet.inject("file", host="spark-0", path=path, old="MODEL_HOST_RANK=3", new="x")
    await fleet.inject("file", host="spark-0", path=path, what="remove")
    with pytest.raises(RehearsalError, match="no file"):
        await fleet.inject("file", host="spark-0", path=path, what="remove")
    await fleet.inject("file", host="spark-0", path=path, what="back")
    assert simulated(fleet, "spark-0", file) == before


async def test_clock_disk_and_gpu_move_and_come_back(fleet: Rehearsal) -> None:
    await fleet.inject("clock", host="spark-1", seconds=95.0)
    await fleet.inject("disk", host="spark-1", free_gib=0.4)
    assert simulated(fleet, "spark-1", "bin/sizes.tsv").startswith("clock\t95.000\n")
    assert f"fs\t/\t{3667 << 30}\t{int(0.4 * 2**30)}\n" in simulated(fleet, "spark-1", "bin/sizes.tsv")
    await fleet.inject("gpu", host="spark-1", mhz=850.0, watts=20.0)
    assert abs(int(simulated(fleet, "spark-1", "gpu/0/clocks.sm")) - 850) <= 6
    await fleet.inject("clock", host="spark-1")
    await fleet.inject("disk", host="spark-1")
    await fleet.inject("gpu", host="spark-1")

    async def well() -> bool:
        table = simulated(fleet, "spark-1", "bin/sizes.tsv")
        return "clock" not in table and f"\t{1200 << 30}\n" in table

    await until(well, "clock and disk as before")
    assert int(simulated(fleet, "spark-1", "gpu/0/clocks.sm")) > 2300


async def test_a_reboot_ends_all_there_is_and_begins_anew(fleet: Rehearsal) -> None:
    boot_id = simulated(fleet, "spark-2", "proc/sys/kernel/random/boot_id")
    await fleet.inject("reboot", host="spark-2", seconds=0.01, mounts=False)  # scenario seconds: one of ours

    async def refused() -> bool:
        try:
            async with asyncssh.connect(**fleet.overrides["spark-2"]):
                return False
        except OSError:
            return True

    await until(refused, "the host down")

    async def back() -> Any:
        try:
            return await docker(fleet, "spark-2", "/containers/json?all=1")
        except OSError:
            return None

    (row,) = await until(back, "the host back")
    assert row["State"] == "exited" and row["Status"].startswith("Exited (255)")
    assert simulated(fleet, "spark-2", "proc/sys/kernel/random/boot_id") != boot_id
    assert float(simulated(fleet, "spark-2", "proc/uptime").split()[0]) < LIMIT
    assert "nfs4" not in simulated(fleet, "spark-2", "proc/self/mountinfo")
    assert "mount\t" not in simulated(fleet, "spark-2", "bin/sizes.tsv")
    await fleet.inject("snapshot", checkpoint="dsv41", host="spark-2", what="back")
    assert "nfs4" in simulated(fleet, "spark-2", "proc/self/mountinfo")


async def test_a_watchdog_fault_of_the_other_kind_is_refused_in_words(fleet: Rehearsal) -> None:
    with pytest.raises(RehearsalError, match="a watchdog of kind 'log' is one of"):
        await fleet.inject("watchdog", lane="dsv41", state="paused")
    with pytest.raises(RehearsalError, match="no watchdog of lane 'station'"):
        await fleet.inject("watchdog", lane="station", state="dead")


# boots


def log_of(kind: str, story: str, *options: str) -> str:
    parsed = engine_module.parse([f"--kind={kind}", f"--story={story}", "--boot=575", "--boot-shown=575", *options])
    return "\n".join(line for _, line in engine_module.boot_lines(parsed, 1_796_100_000.0, 83))


@pytest.mark.parametrize(("kind", "options"), [("sglang", ("--ranks=4", "--rows=/engram-local")), ("vllm", ())])
async def test_a_usual_boot_shows_every_phase(kind: str, options: tuple[str, ...]) -> None:
    boot = read_boot(log_of(kind, "usual", *options))
    names = [phase.name.value for phase in boot.phases]
    wanted = {"start", "weights", "post-process", "KV pool", "autotune", "graphs", "http up", "ready"}
    wanted |= {"draft weights", "distributed"} if kind == "sglang" else set()
    assert set(names) == wanted and boot.ready is not None and boot.failure is None
    assert boot.kv_tokens == 6_198_016 and boot.autotune in ("hit", "done")


async def test_a_missed_autotune_takes_nearly_all_of_its_time() -> None:
    for kind in ("sglang", "vllm"):
        boot = read_boot(log_of(kind, "autotune-missed"))
        (tuning,) = (phase for phase in boot.phases if phase.name.value == "autotune")
        assert boot.autotune == "missed" and tuning.began is not None and tuning.ended is not None
        assert tuning.ended - tuning.began > 0.8 * 575


async def test_the_stock_image_says_nothing_of_rows() -> None:
    usual, stock = (log_of("sglang", story, "--ranks=4", "--rows=/e") for story in ("usual", "stock-image"))
    assert "engram" in usual and "import hooks armed" in usual
    assert "engram" not in stock and "import hooks armed" not in stock


async def test_each_rank_names_its_own_rows() -> None:
    owned: list[tuple[str, str]] = []
    for rank in range(4):
        log = log_of("sglang", "usual", f"--rank={rank}", "--ranks=4", "--rows=/e")
        owned += re.findall(r"engram layer 1: rank \d/4 owns rows \[(\d+), (\d+)\)", log)
    bounds = ["0", "96001542", "192003084", "288004626", "384006168"]
    assert owned == list(pairwise(bounds))


@pytest.mark.parametrize(("story", "cause"), [("tiling", "do not tile"), ("out-of-memory", "out of GPU memory")])
async def test_a_boot_that_fails_ends_with_code_1(story: str, cause: str) -> None:
    command = [
        sys.executable,
        "-I",
        "-S",
        str(Path(engine_module.__file__)),
        f"--story={story}",
        "--ranks=4",
        "--boot=1.5",
    ]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=LIMIT)
    boot = read_boot(done.stderr.replace("\r", "\n"))
    assert done.returncode == 1 and boot.failure is not None and cause in boot.failure.cause and not boot.failure.heals
