"""One command on 4 and on 32 warm hosts, beside ssh with ControlMaster on the same sshd in the same run."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from bench.figures import Figure, not_run
from bench.openssh import NoSshd, Sshd, own_sshd
from console.fleet.inventory import Host, Rates
from console.reach.limits import HandshakeLimits
from console.reach.link import Link
from console.reach.links import make_link
from console.readings.link import LinkStatus
from console.readings.output import Outcome

ROUNDS = 15
BUDGETS = {4: 35.0, 32: 120.0}
LIMIT = 30.0


def commands() -> list[Figure]:
    """The rows, or why they are missing."""
    with tempfile.TemporaryDirectory(prefix="laneswap-bench-ssh-") as folder:
        try:
            with own_sshd(Path(folder)) as sshd:
                return asyncio.run(_all(sshd, Path(folder)))
        except NoSshd as error:
            return [not_run("one command on 4 / 32 hosts, warm, OpenSSH", str(error))]


async def _all(sshd: Sshd, folder: Path) -> list[Figure]:
    return [await _row(sshd, folder, count) for count in BUDGETS]


async def _row(sshd: Sshd, folder: Path, count: int) -> Figure:
    ours, theirs = [], []
    async with _links(sshd, count) as links, _masters(sshd, folder, count) as sockets:
        for _ in range(ROUNDS):
            ours.append(await _ours(links))
            theirs.append(await asyncio.to_thread(_theirs, sshd, sockets))
    return Figure(
        f"one command on {count} hosts, warm, OpenSSH",
        median(ours),
        "ms",
        BUDGETS[count],
        f"`true` through the console's links on {count} kept connections to one {sshd.version} on loopback, all at "
        f"once, until the last answer; median of {ROUNDS}, each beside its peer",
        0,
        f"ssh with ControlMaster {median(theirs):.0f} ms ({median(ours) / median(theirs):.2f} of it)",
    )


@asynccontextmanager
async def _links(sshd: Sshd, count: int) -> AsyncIterator[Sequence[Link]]:
    host = Host(
        ssh=f"{sshd.user}@127.0.0.1:{sshd.port}",
        identity=str(sshd.key),
        known_hosts=str(sshd.known_hosts),
        config="/dev/null",
    )
    limits = HandshakeLimits()
    links = [make_link(f"host-{number}", host, Rates(), limits=limits) for number in range(count)]
    try:
        for link in links:
            await link.start()
        async with asyncio.timeout(LIMIT):
            while any(link.state.status is not LinkStatus.UP for link in links):  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.05)
        await _ours(links)
        yield links
    finally:
        await asyncio.gather(*(link.close() for link in links))


async def _ours(links: Sequence[Link]) -> float:
    began = time.perf_counter()
    answers = await asyncio.gather(*(link.run(["true"]) for link in links))
    took = 1000 * (time.perf_counter() - began)
    if any(answer.outcome is not Outcome.DONE for answer in answers):
        raise RuntimeError(f"a command failed: {next(a for a in answers if a.outcome is not Outcome.DONE)}")
    return took


@asynccontextmanager
async def _masters(sshd: Sshd, folder: Path, count: int) -> AsyncIterator[Sequence[Path]]:
    sockets = [folder / f"m{count}-{number}" for number in range(count)]
    masters = []
    try:
        for socket in sockets:
            argv = [*_ssh(sshd, socket), "-M", "-N", "127.0.0.1"]
            masters.append(await asyncio.create_subprocess_exec(*argv, stdin=subprocess.DEVNULL))
            async with asyncio.timeout(LIMIT):
                while not socket.exists():  # noqa: ASYNC110 - ssh says nothing when it is ready
                    await asyncio.sleep(0.01)
        await asyncio.to_thread(_theirs, sshd, sockets)
        yield sockets
    finally:
        for master in masters:
            master.terminate()
        await asyncio.gather(*(master.wait() for master in masters))


def _theirs(sshd: Sshd, sockets: Sequence[Path]) -> float:
    began = time.perf_counter()
    running = [
        subprocess.Popen([*_ssh(sshd, socket), "127.0.0.1", "true"], stdin=subprocess.DEVNULL) for socket in sockets
    ]
    codes = [process.wait(timeout=LIMIT) for process in running]
    took = 1000 * (time.perf_counter() - began)
    if any(codes):
        raise RuntimeError(f"ssh ended with {codes}")
    return took


def _ssh(sshd: Sshd, socket: Path) -> list[str]:
    options = [
        f"ControlPath={socket}",
        f"UserKnownHostsFile={sshd.known_hosts}",
        f"IdentityFile={sshd.key}",
        "IdentitiesOnly=yes",
        "BatchMode=yes",
        "LogLevel=ERROR",
    ]
    pairs = [part for option in options for part in ("-o", option)]
    return ["ssh", "-F", "/dev/null", "-p", str(sshd.port), "-l", sshd.user, *pairs]
