"""This machine as a host for the scripts, and links that lose answers or break on purpose."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.execution import detached
from console.execution.detached import DetachedState, Mode, Phase, Started
from console.fleet.inventory import Rates
from console.reach.local import LocalLink
from console.readings.output import Outcome, Output

PATIENCE = 60.0
"""Seconds after which a wait has failed; nothing is asserted about how long it took."""


@asynccontextmanager
async def local() -> AsyncIterator[LocalLink]:
    """A link to this machine."""
    link = LocalLink("here", Rates())
    await link.start()
    try:
        yield link
    finally:
        await link.close()


class Bent:
    """A link whose commands or answers are changed on the way; everything else is the real one's."""

    def __init__(
        self,
        link: LocalLink,
        *,
        before: Callable[[Sequence[str]], Sequence[str]] = lambda argv: argv,
        after: Callable[[Output], Output] = lambda output: output,
    ) -> None:
        self._link = link
        self._before = before
        self._after = after
        self.asked: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    async def run(self, argv: Sequence[str], *, stdin: str = "", limit: float = 10.0, operator: bool = False) -> Output:
        """Run it, bent."""
        self.asked.append(tuple(argv))
        output = await self._link.run(self._before(argv), stdin=stdin, limit=limit, operator=operator)
        return self._after(output)


def lost(output: Output) -> Output:
    """The command ran, its answer did not come."""
    return replace(output, outcome=Outcome.UNKNOWN, exit_status=None, stdout="", stderr="", hint="connection lost")


def full(argv: Sequence[str]) -> Sequence[str]:
    """No file can grow any more, as on a full disk: writes fail, and so does whoever writes."""
    return ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "full", *argv]


def lacking(folder: Path, *missing: str) -> Callable[[Sequence[str]], Sequence[str]]:
    """A host without some programs: the search path leads to links to all others."""
    programs = folder / "programs"
    programs.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name not in missing and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    return lambda argv: ["env", f"PATH={programs}", *argv]


def operation() -> str:
    """A new operation's id."""
    return f"20261201T120000Z-stop-{secrets.token_hex(3)}"


class Steps:
    """Steps of one operation in one folder, without a service manager."""

    def __init__(self, link: LocalLink | Bent, folder: Path) -> None:
        self.link: Any = link
        self.folder = str(folder)
        self.op = operation()

    def path(self, step: str) -> Path:
        """The step's own folder."""
        return Path(self.folder, "ops", self.op, step)

    async def start(self, step: str, *argv: str, epoch: int | None = 1, link: Any = None, **options: Any) -> Any:
        """`detached.start` there."""
        options.setdefault("mode", Mode.NONE)
        options.setdefault("limit", 60.0)
        return await detached.start(link or self.link, self.folder, self.op, step, epoch, argv, **options)

    async def started(self, step: str, *argv: str, **options: Any) -> DetachedState:
        """Start it; anything but a fresh start fails the test."""
        answer = await self.start(step, *argv, **options)
        assert isinstance(answer, Started) and not answer.joined, answer
        return answer.state

    async def state(self, step: str) -> DetachedState:
        """What became of it."""
        return await detached.state(self.link, self.folder, self.op, step)

    async def until(self, step: str, right: Callable[[DetachedState], object], what: str) -> DetachedState:
        """Ask until its state is right. Fails the test after PATIENCE seconds."""
        found = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.state(step)
                    if right(found):
                        return found
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{what}: not so after {PATIENCE:.0f} s, but {found}") from None

    async def ended(self, step: str) -> DetachedState:
        """Its state once it is over."""
        return await self.until(step, lambda found: found.over, f"{step} is over")

    async def running(self, step: str) -> DetachedState:
        """Its state once its command runs."""
        return await self.until(step, lambda found: found.phase is Phase.RUNNING and found.pid, f"{step} runs")


async def until(ready: Callable[[], object], what: str) -> None:
    """Ask `ready` until it is true. Fails the test after PATIENCE seconds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not ready():  # noqa: ASYNC110 - it is true or not in another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what}: not so after {PATIENCE:.0f} s") from None
