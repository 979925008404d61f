"""What acting costs, on real hosts: a rollback beside bare docker commands, a key's way to the host, a stop of four.

Needs root and the real hosts of the tests. Every figure is paired with its peer in the same run, in turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figure, not_run
from console.actions.plan import Verb
from console.actions.strip import DEAD_S
from console.execution.hands import Hands
from console.execution.policy import Confirmation, How, clock
from console.feed import Feed
from console.fleet.inventory import load
from console.fleet.recipe import apply_recipes

ROUNDS = 5
PATIENCE_S = 120.0
FLEET_TESTS = Path(__file__).resolve().parents[1] / "tests" / "fleet"
BARE = r"""set -e; docker stop "$1" >/dev/null; docker start "$2" >/dev/null
until bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "GET /health HTTP/1.0\r\n\r\n" >&3 &&
  head -n 1 <&3 | grep -q " 200 "' bash "$3" 2>/dev/null; do sleep 0.2; done"""
"""By bash alone: the hosts of the tests have no curl."""
WHAT = "rollback beside bare docker stop, start and poll"
STOP = "stop of 4 ranks beyond the slowest"
RANKS = """
[lanes.four]
recipe = "docker-generic"
url = "http://127.0.0.1:30999"
head = "{head}"
ranks = [{ranks}]
containers = "laneswap-four"
"""
RANK_IMAGE = "laneswap/four:bench"
NAP_S = 1.5
NAP = f"trap '/bin/busybox sleep {NAP_S}; exit 0' TERM; while :; do /bin/busybox sleep 0.05; done"
"""A rank that needs a second and a half to end."""


def rollbacks() -> list[Figure]:
    """A rollback beside bare commands, and how long the key is on its way."""
    return _on_hosts(2, WHAT, _rollbacks)


def stops() -> list[Figure]:
    """A stop of four ranks."""
    return _on_hosts(4, STOP, _stops)


def _on_hosts(hosts: int, what: str, measure: Callable[[Any, Path], Awaitable[list[Figure]]]) -> list[Figure]:
    """What is measured on that many real hosts; what cannot be measured here says so."""
    if os.geteuid() != 0:
        return [not_run(what, "needs root, for the real hosts of the tests")]
    sys.path.insert(0, str(FLEET_TESTS))
    from bed.client import running_bed

    async def run(bed: Any, folder: Path) -> list[Figure]:
        return await measure(bed, folder)

    with tempfile.TemporaryDirectory(prefix="laneswap-bench-") as folder, _own_state(folder), running_bed(hosts) as bed:
        return asyncio.run(run(bed, Path(folder)))


@contextmanager
def _own_state(folder: str) -> Iterator[None]:
    """The ledger of this run is not the operator's."""
    before = os.environ.get("LANESWAP_STATE")
    os.environ["LANESWAP_STATE"] = f"{folder}/state"
    try:
        yield
    finally:
        os.environ.pop("LANESWAP_STATE")
        if before is not None:
            os.environ["LANESWAP_STATE"] = before


@asynccontextmanager
async def _console(file: Path) -> AsyncIterator[tuple[Feed, Hands]]:
    """Feed and hands, as a console has them open."""
    feed = Feed(apply_recipes(load(file), file.parent), beside=file.parent)
    await feed.start()
    hands = Hands(feed, "bench")
    await hands.start()
    try:
        yield feed, hands
    finally:
        await hands.close()
        await feed.stop()


async def _until(seen: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not seen():  # noqa: ASYNC110 - a snapshot is asked for
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise RuntimeError(f"never: {what}") from None


async def _begin(hands: Hands, lane: str, verb: Verb) -> str:
    """Confirmed by name, without a countdown."""
    plan, decision = await hands.plan(lane, verb)
    await asyncio.sleep(DEAD_S)  # no strip is confirmed sooner; what it needs is found out meanwhile
    return (await hands.begin(plan, decision, Confirmation(How.NAME, plan.id, clock(), name=lane))).operation


def _state(feed: Feed, lane: str, op: str) -> str:
    acting = feed.snapshot().lane(lane).acting
    found = acting.value.operation if acting is not None and acting.value is not None else None
    return found.state.value if found is not None and found.id == op else ""


# --- rollback


async def _rollbacks(bed: Any, folder: Path) -> list[Figure]:
    from acting_docker import ActingDocker
    from acting_parts import NEW, OLD

    lane = ActingDocker(bed.full, boot=2.0)
    try:
        await asyncio.to_thread(lane.reset)
        ours: list[float] = []
        bare: list[float] = []
        keys: list[float] = []
        async with _console(lane.fleet_file(folder)) as (feed, hands):
            now, back = NEW, OLD
            for _ in range(ROUNDS):
                await _until(lambda: _serves(feed, lane.name), "the lane serves")
                took, key = await _ours(feed, hands, lane, back)
                ours.append(took)
                keys.append(key)
                now, back = back, now
                bare.append(await _bare(lane, now, back))
                now, back = back, now
    finally:
        await asyncio.to_thread(lane.clear)
    added = statistics.median(ours) - statistics.median(bare)
    how = f"median of {ROUNDS}, in turns: {_all(ours)} s against {_all(bare)} s, until a poll of our own reads 200"
    return [
        Figure(f"{WHAT}: added", added, "s", 0.5, how, 2, f"{statistics.median(bare):.2f} s"),
        Figure("confirmed key to the first byte at the host", 1000 * max(keys), "ms", 150, f"worst of {ROUNDS}", 0),
    ]


def _all(values: list[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def _serves(feed: Feed, name: str) -> bool:
    """Healthy, all read, nothing under way, and the lease given back."""
    view = feed.snapshot().lane(name)
    acting = view.acting.value if view.acting is not None else None
    return view.verdict.state in ("serving", "idle", "ready") and acting is not None and acting.lease is None


async def _ours(feed: Feed, hands: Hands, lane: Any, back: str) -> tuple[float, float]:
    """Seconds from the confirmed key until the other one answers; and until the head's lease file was written."""
    plan, decision = await hands.plan(lane.name, Verb.ROLLBACK)
    if decision.denied:
        raise RuntimeError(decision.denied)
    await asyncio.sleep(DEAD_S)  # no strip is confirmed sooner; what it needs is found out meanwhile
    began, wall = time.monotonic(), time.time()
    polling = asyncio.create_task(asyncio.to_thread(_answers, lane, back))
    begun = await hands.begin(plan, decision, Confirmation(How.NAME, plan.id, clock(), name=lane.name))
    await polling
    took = time.monotonic() - began
    epoch = feed.snapshot().fleet.lane_folder(lane.name) + "/epoch"
    written = float(await asyncio.to_thread(lane.host.root, "stat", "-c", "%.6Y", epoch))
    await _until(lambda: _state(feed, lane.name, begun.operation) == "done", "the operation is done")
    return took, written - wall


async def _bare(lane: Any, now: str, back: str) -> float:
    """The same by a script over a fresh ssh connection that is open before the clock starts."""
    from acting_docker import PORT

    ids = [await asyncio.to_thread(lane.id_of, revision) for revision in (now, back)]
    return await asyncio.to_thread(_script, lane, ids, PORT, back)


def _script(lane: Any, ids: list[str], port: int, back: str) -> float:
    began = time.monotonic()
    lane.host.root("sh", "-c", BARE, "sh", *ids, str(port), limit=PATIENCE_S)
    _answers(lane, back)
    return time.monotonic() - began


def _answers(lane: Any, revision: str) -> None:
    """Until the engine says that it serves this revision."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError, ValueError):
            found = lane.standing()
            if found is not None and found.revision == revision:
                return
        time.sleep(0.02)
    raise RuntimeError(f"{revision} never answered")


# --- stop of four


async def _stops(bed: Any, folder: Path) -> list[Figure]:
    hosts = bed.hosts
    ranks = ", ".join(f'"{host.name}"' for host in hosts)
    from acting_parts import let_in, shut_out
    from bed_watch import fleet_file

    file = fleet_file(folder, hosts, RANKS.format(head=hosts[0].name, ranks=ranks))
    ours: list[float] = []
    bare: list[float] = []
    try:
        await asyncio.to_thread(let_in, hosts[0], hosts[1:])
        async with _console(file) as (feed, hands):
            for _ in range(ROUNDS):
                await _start_ranks(feed, hosts)
                bare.append(max(await asyncio.gather(*(asyncio.to_thread(_stop_rank, host) for host in hosts))))
                await _start_ranks(feed, hosts)
                op = await _begin(hands, "four", Verb.STOP)
                await _until(lambda op=op: _state(feed, "four", op) not in ("", "running", "unknown"), "it ended")  # type: ignore[misc]
                ours.append(_stop_took(feed))
    finally:
        await asyncio.gather(*(asyncio.to_thread(_remove_rank, host) for host in hosts))
        await asyncio.to_thread(shut_out, hosts[0], hosts[1:])
    slowest = statistics.median(bare)
    how = (
        f"median of {ROUNDS}, in turns: the stop stage {_all(ours)} s, carried out on the head, until its end was seen "
        f"on every rank, against the slowest of four docker stop at once {_all(bare)} s; the engine takes {NAP_S} s"
    )
    return [Figure(STOP, statistics.median(ours) - slowest, "s", 0.3, how, 2, f"{slowest:.2f} s")]


async def _start_ranks(feed: Feed, hosts: Any) -> None:
    await asyncio.gather(*(asyncio.to_thread(_start_rank, host) for host in hosts))
    await _until(lambda: _all_up(feed), "all ranks are seen")


def _stop_rank(host: Any) -> float:
    began = time.monotonic()
    host.root("docker", "stop", "--time=120", "laneswap-four", limit=PATIENCE_S)
    return time.monotonic() - began


def _start_rank(host: Any) -> None:
    host.root("docker", "rm", "--force", "laneswap-four", check=False)
    host.docker("import", "/srv/images/busybox.tar", RANK_IMAGE)
    host.docker("run", "-d", "--name=laneswap-four", RANK_IMAGE, "/bin/busybox", "sh", "-c", NAP)


def _remove_rank(host: Any) -> None:
    host.root("docker", "rm", "--force", "laneswap-four", check=False)
    host.root("docker", "image", "rm", "--force", RANK_IMAGE, check=False)


def _all_up(feed: Feed) -> bool:
    view = feed.snapshot().lane("four")
    acting = view.acting.value if view.acting is not None else None
    up = all(rank.container is not None and rank.container.up for rank in view.ranks)
    return up and acting is not None and acting.lease is None


def _stop_took(feed: Feed) -> float:
    """Seconds from the first stop that began to the last one that was seen."""
    acting = feed.snapshot().lane("four").acting
    assert acting is not None and acting.value is not None and acting.value.operation is not None
    operation = acting.value.operation
    if operation.state.value != "done" or operation.runs_on != "head":
        raise RuntimeError(f"{operation.state.value} on {operation.runs_on}: {operation.words}")
    steps = [step for step in operation.steps if step.stage == "stop"]
    began = min(step.began for step in steps if step.began is not None)
    ended = max(step.ended for step in steps if step.ended is not None)
    return ended - began
