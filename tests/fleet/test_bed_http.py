"""The engine's HTTP through ssh on real hosts: what answers, what hangs, what is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import psutil
import pytest
from bed.engines import BedEngine
from bed_links import PATIENCE, linked, until_status

from console.reach.engine_http import EngineHttp
from console.readings.health import HttpAnswer, Transport
from console.readings.link import LinkStatus

pytestmark = pytest.mark.bed


@contextlib.asynccontextmanager
async def asked(engine: BedEngine, port: int = 0) -> AsyncIterator[EngineHttp]:
    """The engine as its own host reaches it, through ssh."""
    async with linked(engine.host) as link:
        await until_status(link, LinkStatus.UP)
        http = EngineHttp(f"http://127.0.0.1:{port or engine.port}", link)
        try:
            yield http
        finally:
            await http.close()


async def get(http: EngineHttp, path: str, limit: float = 5.0) -> HttpAnswer:
    """One answer; the test fails if the call outlives its own limit by far."""
    return await asyncio.wait_for(http.get(path, limit=limit), PATIENCE)


@pytest.fixture(params=["vllm", "sglang"])
def engine(request: pytest.FixtureRequest) -> BedEngine:
    """A published port through Docker's proxy, and host networking."""
    found: BedEngine = request.getfixturevalue(request.param)
    return found


async def test_health_and_metrics_answer_with_no_port_open_here(engine: BedEngine) -> None:
    async with asked(engine) as http:
        assert (await get(http, "/health")).status == 200
        metrics = await get(http, "/metrics")
        assert f"{engine.kind}:" in metrics.body.decode()
        assert not [c for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN]


async def test_a_stopped_engine_is_a_read_timeout_and_answers_after_it_goes_on(engine: BedEngine) -> None:
    async with asked(engine) as http:
        engine.signal("STOP")
        assert (await get(http, "/health", limit=1.0)).transport is Transport.READ_TIMEOUT
        engine.signal("CONT")
        assert (await get(http, "/health")).status == 200


async def test_a_port_with_nobody_behind_it_is_refused(sglang: BedEngine) -> None:
    async with asked(sglang, port=1) as http:
        assert (await get(http, "/health")).transport is Transport.REFUSED


async def test_a_killed_engine_is_refused_and_found_again(engine: BedEngine) -> None:
    async with asked(engine) as http:
        assert (await get(http, "/health")).status == 200
        engine.host.docker("kill", engine.name)
        assert (await get(http, "/health")).transport in (Transport.REFUSED, Transport.RESET)
        engine.heal()
        assert (await get(http, "/health")).status == 200


@pytest.mark.parametrize(
    ("fault", "transport", "status"),
    [
        ("503", Transport.ANSWERED, 503),
        ("html", Transport.ANSWERED, 200),
        ("truncated", Transport.TRUNCATED, 200),
        ("empty", Transport.ANSWERED, 200),
        ("metrics-off", Transport.ANSWERED, 404),
        ("silent", Transport.READ_TIMEOUT, None),
    ],
)
async def test_a_fault_of_the_metrics_is_seen_through_ssh(
    vllm: BedEngine, fault: str, transport: Transport, status: int | None
) -> None:
    path = "/health" if fault == "503" else "/metrics"
    async with asked(vllm) as http:
        vllm.fault(fault)
        answer = await get(http, path, limit=1.0 if fault == "silent" else 5.0)
        assert (answer.transport, answer.status) == (transport, status)
        assert answer.is_html is (fault == "html")


async def test_a_dropped_host_is_no_answer_and_no_verdict_on_the_engine(vllm: BedEngine) -> None:
    async with asked(vllm) as http:
        assert (await get(http, "/health")).status == 200
        with vllm.host.dropped():
            first = await get(http, "/health", limit=1.0)
            assert first.status is None
            async with asyncio.timeout(PATIENCE):
                while (answer := await get(http, "/health", limit=1.0)).transport is not Transport.UNREACHABLE:
                    assert answer.status is None
