"""A live feed over the bed's hosts, and waits for what it says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeVar

from bed.client import BedHost
from bed_links import until

from console.feed import Feed
from console.fleet.inventory import load
from console.fleet.recipe import apply_recipes
from console.snapshot import LaneView, Snapshot

PATIENCE = 90.0
"""Seconds after which a wait has failed; nothing is asserted about how long it took."""
RATES = "rates = { node = 0.5, gpu = 10, scrape = 5, containers = 1 }"

T = TypeVar("T")


def fleet_file(folder: Path, hosts: Sequence[BedHost], lanes: str, *, users: dict[str, str] | None = None) -> Path:
    """fleet.toml in `folder`: these hosts, and lanes as TOML. `users` is the account by host where it is not ops."""
    rows = []
    for host in hosts:
        user = (users or {}).get(host.name, "")
        rows.append(f'{host.name} = {{ ssh = "{user}{"@" * bool(user)}{host.name}", config = "{host.ssh_config}" }}')
    file = folder / "fleet.toml"
    file.write_text("\n".join(['name = "bed"', 'operator = "ana"', RATES, "[hosts]", *rows, lanes]))
    return file


def own_recipe(folder: Path, shipped: str, name: str, *changes: tuple[str, str]) -> None:
    """`NAME.toml` in `folder`: a shipped recipe with some of its lines changed, each of which must be there."""
    source: str = f"{shipped}.toml"
    text = (resources.files("console.fleet.recipes") / source).read_text()
    for before, after in (("name = ", f'name = "{name}" # '), *changes):
        assert before in text, f"{shipped} has no {before!r}"
        text = text.replace(before, after, 1)
    (folder / f"{name}.toml").write_text(text)


@contextlib.asynccontextmanager
async def feeding(file: Path, hosts: Sequence[BedHost]) -> AsyncIterator[Feed]:
    """A feed over a fleet file; after it nothing of the console runs on these hosts."""
    feed = Feed(apply_recipes(load(file), file.parent), beside=file.parent)
    await feed.start()
    try:
        yield feed
    finally:
        await feed.stop()
    for host in hosts:
        await until(lambda host=host: not samplers(host), f"no sampler is left on {host.name}")  # type: ignore[misc]


def samplers(host: BedHost) -> list[str]:
    """Command lines of the console's samplers on a host, whoever runs them."""
    rows = host.root("ps", "-ww", "-e", "-o", "args=", check=False).splitlines()
    return [row for row in rows if "laneswap-sampler" in row]


async def shown(feed: Feed, seen: Callable[[Snapshot], T | None], what: str, tell: Callable[[Snapshot], object]) -> T:
    """What `seen` finds in the first snapshot in which it finds something true; `tell` says what was there instead."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := seen(snapshot := feed.snapshot())):  # noqa: ASYNC110 - a snapshot is asked for
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"never shown: {what}; instead: {tell(snapshot)}") from None
    return found


class LaneWatch:
    """One lane of a feed."""

    def __init__(self, feed: Feed, name: str) -> None:
        self.feed, self.name = feed, name

    def view(self) -> LaneView:
        """The lane now."""
        return self.feed.snapshot().lane(self.name)

    async def until(
        self,
        seen: Callable[[LaneView], T | None],
        what: str,
        tell: Callable[[LaneView], object] = lambda lane: lane.verdict,
    ) -> T:
        """Wait until something is shown of the lane; see `shown`."""
        return await shown(
            self.feed,
            lambda snapshot: seen(snapshot.lane(self.name)),
            f"{self.name}: {what}",
            lambda snapshot: tell(snapshot.lane(self.name)),
        )
