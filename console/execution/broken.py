"""State folders that are there and cannot be used: a full disk, a read-only file system, a file in the way, a damaged
epoch. They count as out of reach. And where break-glass keeps what it must keep on such a host instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from console.execution.scripts import Exit, ask
from console.reach.link import Link

LIMIT_S = 5.0
"""Seconds for the question: nothing is held up for longer, and no answer proves nothing."""
SPARE = "/dev/shm/laneswap-{uid}"  # noqa: S108 - scripts refuse one that belongs to another account
"""In memory: the one place of a host that neither a full nor a read-only disk takes away; a restart does."""


@dataclass(frozen=True, slots=True)
class Able:
    """What a host says of its state folder."""

    broken: str = ""
    """Why it cannot be used, in safe words; '' where it can, or where the host did not say."""
    uid: int | None = None
    """Of the account there."""


async def able(link: Link, folder: str) -> Able:
    """Whether a lease and files could be written in a folder. Changes nothing, raises nothing."""
    answer = await ask(link, "able", [folder], limit=LIMIT_S, looks=True)
    return Able(answer.problem if answer.exit is Exit.CANNOT else "", answer.number("uid"))


async def spares(links: Mapping[str, Link], hosts: Iterable[str], folder: str) -> dict[str, str]:
    """By host whose state folder cannot be used: where its steps are claimed and logged instead, the same folder for
    all of an operation. Hosts that do not answer, or have no such place, are left out."""

    async def one(host: str) -> tuple[str, str]:
        found = await able(links[host], folder)
        if not found.broken or found.uid is None:
            return host, ""
        spare = f"{SPARE.format(uid=found.uid)}/{folder.rpartition('/')[2]}"
        there = await able(links[host], spare)
        return host, "" if there.broken or there.uid is None else spare

    asked = await asyncio.gather(*(one(host) for host in sorted(hosts) if host in links))
    return {host: spare for host, spare in asked if spare}
