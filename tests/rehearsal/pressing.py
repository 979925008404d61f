"""Real keys in the real console over the embedded fleet: its feed is that of production, its hands act on its hosts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from drills import OVER
from textual.pilot import Pilot

from console.actions.strip import Phase
from console.app import LaneswapApp
from console.headless import lane_settled
from console.readings.acting_types import Acting, Operation
from console.readings.ledger import Kind, Record
from console.readings.lights import LaneState
from console.rehearsal.scenario import load_scenario
from console.rehearsal.source import RehearsalSource
from console.snapshot import LaneView, Snapshot
from widgets.glance import StripGlance

LIMIT = 120.0
"""Bound of every wait, seconds; long, because machines that run tests are busy."""
TRIES = 4
"""How often a key is pressed whose strip cancels itself because what it shows has moved: as an operator would."""


@dataclass
class Pressing:
    """One console with hands, and the lane that it shows."""

    app: LaneswapApp
    pilot: Pilot[None]
    source: RehearsalSource
    lane: str

    # --- what is shown, and what is so

    def text(self) -> str:
        """The screen."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def view(self) -> LaneView:
        """The lane by the newest reading."""
        return self.source.snapshot().lane(self.lane)

    def painted(self) -> LaneView | None:
        """The lane by the picture that the strip goes by: one whose state flips is cancelled."""
        newest: Snapshot | None = self.app.timeline.newest
        return newest.lane(self.lane) if newest is not None else None

    def acting(self) -> Acting | None:
        """What is under way, by the picture."""
        view = self.painted()
        return view.acting.value if view is not None and view.acting is not None else None

    def strip(self) -> StripGlance | None:
        """The strip that is open."""
        return self.app.desk.glance()

    def running(self) -> list[str]:
        """Names of the lane's containers that run, over all ranks."""
        snapshot = self.source.snapshot()
        held = [snapshot.host(host).containers.value for host in self.view().lane.rank_hosts]
        return sorted(item.name for one in held if one is not None for item in one.items if item.up)

    def ids(self) -> set[str]:
        """Ids of the containers behind the ranks."""
        return {rank.container.id for rank in self.view().ranks if rank.container is not None}

    def records(self, kind: Kind) -> list[Record]:
        """The ledger's records of a kind, oldest first; the whole of it holds together."""
        verified = self.source.ledger().verify()
        assert verified.problem == "" and not verified.text.torn
        return [record for record in verified.text.records if record.kind is kind]

    async def until(self, shows: Callable[[], object], what: str) -> None:
        """Until it is so. Fails after LIMIT with the screen as it is then."""
        end = time.monotonic() + LIMIT
        while not shows():
            assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}\n{self.text()}"
            await self.pilot.pause(0.05)

    # --- what is pressed

    async def ready(self) -> None:
        """Until the lane was read and stands on the screen, chosen by its name: else the worst one is shown."""
        await self.until(lambda: self.app.hands is not None, "there are hands")
        await self.until(lambda: lane_settled(self.source.snapshot(), self.view()), "the lane was read")
        await self.pilot.press(":", *f"lane {self.lane}", "enter")
        await self.until(lambda: f"/ {self.lane} " in self.text(), "the lane is shown")
        await self.until(
            lambda: (view := self.painted()) and view.verdict.state is LaneState.SERVING and "BACK ≈" in self.text(),
            "the screen knows it",
        )

    async def typing(self, *answers: str) -> None:
        """Answer what the strip asks, each question once it takes keys."""
        for answer in answers:
            await self.until(lambda: (strip := self.strip()) and strip.phase is Phase.TYPING, "it asks")
            await self.pilot.press(*answer, "enter")

    async def opened(self, key: str, phase: Phase) -> StripGlance:
        """Press a guarded key until its strip takes keys."""
        for _ in range(TRIES):
            await self.until(lambda: not self.app.desk.hushed and self.strip() is None, "keys count")
            await self.pilot.press(key)
            await self.until(lambda: (strip := self.strip()) is None or strip.phase is phase, f"{key}: {phase.value}")
            if (strip := self.strip()) is not None:
                return strip
        raise AssertionError(f"{key}: its strip cancelled itself {TRIES} times\n{self.text()}")

    async def by_letter(self, key: str) -> Operation:
        """A guarded key and the letter that its strip shows, to the end."""
        strip = await self.opened(key, Phase.ARMED)
        before = self._newest()
        await self.pilot.press(strip.letter)
        return await self._ended(before)

    async def by_name(self, key: str) -> Operation:
        """A guarded key and the lane's name, to the end."""
        await self.opened(key, Phase.TYPING)
        before = self._newest()
        await self.typing(self.lane)
        return await self._ended(before)

    def _newest(self) -> str:
        acting = self.acting()
        return acting.operation.id if acting is not None and acting.operation is not None else ""

    async def _ended(self, before: str) -> Operation:
        """Until it is done, recorded, and the lease is back where no window keeps it."""

        def over() -> bool:
            acting = self.acting()
            found = acting.operation if acting is not None else None
            going = found is None or found.id == before or found.state not in OVER
            return not going and acting is not None and (acting.window is not None or acting.lease is None)

        await self.until(over, "what was begun is over")
        acting = self.acting()
        assert acting is not None and acting.operation is not None
        found = acting.operation
        await self.until(lambda: found.id in [one.op for one in self.records(Kind.OUTCOME)], "its outcome is recorded")
        return found


@asynccontextmanager
async def pressing(scenario: str, lane: str, folder: Path, speed: float = 60.0) -> AsyncIterator[Pressing]:
    """The console on a scenario, from its first reading on; nothing of it goes wrong unnoticed."""
    played = load_scenario(scenario)
    rates = played.fleet.rates.model_copy(update={"containers": 1.0})
    source = RehearsalSource(
        played.model_copy(update={"fleet": played.fleet.model_copy(update={"rates": rates})}), speed
    )
    app = LaneswapApp(
        source,
        keymap=folder / "keys.toml",
        faults=folder / "faults.log",
        hands=lambda tell: source.hands(tell=tell),
    )
    async with app.run_test(size=(120, 40)) as pilot:
        made = Pressing(app, pilot, source, lane)
        await made.ready()
        yield made
        assert source.rehearsal.failed == [] and "oddly" not in source.rehearsal.said
    assert not (folder / "faults.log").exists(), (folder / "faults.log").read_text()
