"""The real hosts, brought up once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bed.client import Bed, running_bed


@pytest.fixture(scope="session")
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Real systemd hosts with OpenSSH and Docker. A bed that does not come up is a failure."""
    with running_bed(request.config.getoption("--bed-hosts")) as hosts:
        yield hosts
