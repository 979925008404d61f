"""Makes the link of a host: ssh, or this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.fleet.inventory import Host, Rates
from console.reach.limits import HandshakeLimits, Timings
from console.reach.link import Link
from console.reach.local import LocalLink
from console.reach.ssh import SshLink

__all__ = ["HandshakeLimits", "Timings", "make_link"]


def make_link(
    name: str,
    host: Host,
    rates: Rates,
    *,
    limits: HandshakeLimits,
    overrides: Mapping[str, Any] | None = None,
    timings: Timings | None = None,
) -> Link:
    """The link of one host; contacts nothing before `start`.

    `limits` is one object for the whole fleet. `overrides` are arguments of asyncssh.connect that go before
    ssh_config (`config=None`: no ssh_config at all; `known_hosts`: bytes or a path, checked in any case).
    """
    if host.is_local:
        return LocalLink(name, rates, timings=timings)
    return SshLink(name, host, rates, limits=limits, timings=timings, overrides=overrides)
