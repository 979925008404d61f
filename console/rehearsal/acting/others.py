"""Another operator of a rehearsal, who holds a lane and renews the lease until it is taken from them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from console.rehearsal.acting import statefiles
from console.rehearsal.acting.playing import Job
from console.rehearsal.stage import LeaseModel

EVERY_S = 10.0
"""Real seconds between renewals, as of a real console: leases run by the clock and not by the scenario's."""
ID = "b0b5c0ffee000001"


async def hold(job: Job, lane: str, model: LeaseModel) -> None:
    """Write the lease down as if it had been taken, and renew it until somebody else has it."""
    folder = job.playing.scenario.fleet.lane_folder(lane)
    place = Path(statefiles.real_folder(job, folder))
    _write(place, model, job.there.wall)
    while model.keeps:
        await asyncio.sleep(EVERY_S)
        status, _, _ = await statefiles.script_of(job, "lease", ["renew", str(place), ID])
        if status:
            return


def _write(place: Path, model: LeaseModel, now: float) -> None:
    place.mkdir(parents=True, exist_ok=True)
    rows = {
        "id": ID,
        "epoch": model.epoch,
        "operator": model.operator,
        "console": model.console,
        "purpose": model.purpose,
        "acquired": int(now - model.age_s),
        "renewed": int(now - model.renewed_s),
        "ttl": int(model.ttl),
        "offered_to": "",
    }
    (place / "lease").write_text("".join(f"{key}={value}\n" for key, value in rows.items()))
    (place / "epoch").write_text(f"{model.epoch}\n")
