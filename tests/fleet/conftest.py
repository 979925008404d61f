"""The real hosts, brought up once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from acting_docker import ActingDocker
from acting_operator import Operator, operator
from bed.client import Bed, BedHost, running_bed
from bed.engines import BedEngine, run_engine


@pytest.fixture(scope="session")
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Real systemd hosts with OpenSSH and Docker. A bed that does not come up is a failure."""
    with running_bed(request.config.getoption("--bed-hosts")) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def three(bed: Bed) -> tuple[BedHost, BedHost, BedHost]:
    """Three hosts for what needs as many: the last one with python3-minimal alone."""
    if len(bed.hosts) < 3:
        pytest.skip("needs three hosts: --bed-hosts 3")
    return bed.hosts[0], bed.hosts[1], bed.minimal


@pytest.fixture(scope="session")
def vllm(bed: Bed) -> Iterator[BedEngine]:
    """A vLLM engine in a container with a published port, on a host with the whole of python3."""
    engine = run_engine(bed.full, "dsv41-vllm-serving", "vllm", 30006, "--model", "dsv41-flash-uva")
    yield engine
    engine.remove()


@pytest.fixture(scope="session")
def sglang(bed: Bed) -> Iterator[BedEngine]:
    """An SGLang engine with host networking, on the host with python3-minimal."""
    engine = run_engine(bed.minimal, "dsv41-sglang-0", "sglang", 8210, network="host")
    yield engine
    engine.remove()


@pytest.fixture(scope="module")
def station(bed: Bed) -> Iterator[ActingDocker]:
    """The Docker lane to act on, on one host; its boots are short."""
    found = ActingDocker(bed.spare, boot=1.0)
    try:
        yield found
    finally:
        found.clear()


@pytest.fixture
def lane(station: ActingDocker) -> ActingDocker:
    """The same, serving NEW, with OLD kept."""
    station.reset()
    return station


@pytest.fixture
def ana(lane: ActingDocker, tmp_path: Path) -> Iterator[Operator]:
    """Ana's laneswap for the Docker lane."""
    with operator(lane, tmp_path / "ana") as found:
        yield found


@pytest.fixture
def ben(lane: ActingDocker, tmp_path: Path) -> Iterator[Operator]:
    """Ben's, on a machine of his own."""
    with operator(lane, tmp_path / "ben", "ben") as found:
        yield found


@pytest.fixture(autouse=True)
def _healed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test begins and ends with engines that run and have no fault. One that asks for none may have restarted the
    host of one, so that it is looked at before as well."""
    names = [name for name in ("vllm", "sglang") if name in request.fixturenames]
    engines: list[BedEngine] = [request.getfixturevalue(name) for name in names]
    for engine in engines:
        if not engine.answers():
            engine.heal()
    yield
    for engine in engines:
        engine.heal()
