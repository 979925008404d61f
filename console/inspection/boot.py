"""`laneswap inspect boot`: the log of an engine's start through the reader that follows live ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from console.fleet.inventory import FleetError
from console.fleet.recipe import load_recipe
from console.inspection.arguments import Argument, InspectError, moment, one, reject_unknown
from console.readings.boot import Boot, BootProgress, BootRecord
from console.readings.boot_progress import progress
from console.readings.boot_reader import read_boot
from console.readings.boot_words import BootWords
from console.readings.recorded import RecordsUnreadable, decode

ROLES = ("log", "earlier", "started", "now", "recipe")


def boot(arguments: Sequence[Argument]) -> dict[str, Any]:
    """How far a start has come, what it said on the way, why it will not come up, and how it stands against others."""
    reject_unknown(arguments, ROLES)
    log = one(arguments, "log", default=True)
    if log is None:
        raise InspectError("boot: no log file")
    started, now = moment(arguments, "started"), moment(arguments, "now")
    words, usual = _recipe(one(arguments, "recipe"))
    found = read_boot(log.text(), words, started=started, now=now)
    since = found.began if started is None else started
    until = (found.ready or found.newest) if now is None else now
    against = None
    if since is not None and until is not None:
        earlier = _earlier(one(arguments, "earlier"))
        against = progress(found, started=since, now=until, earlier=earlier, usual_boot_s=usual)
    return {**_boot(found), "against_earlier": None if against is None else _progress(against)}


def _recipe(source: Argument | None) -> tuple[BootWords, float | None]:
    if source is None:
        return BootWords(), None
    try:
        recipe = load_recipe(str(source.path))
    except FleetError as error:
        raise InspectError(str(error)) from error
    return recipe.boot.words(recipe.reads.engine), recipe.reads.usual_boot_s


def _earlier(source: Argument | None) -> tuple[BootRecord, ...]:
    if source is None:
        return ()
    try:
        return decode(source.read()).boots
    except RecordsUnreadable as error:
        raise InspectError(f"{source.path}: {error}") from error


def _boot(found: Boot) -> dict[str, Any]:
    failure, shards = found.failure, found.shards
    return {
        "engine": found.engine or None,
        "phase": None if found.now is None else found.now.value,
        "is_ready": bool(found.phases) and found.now is None,
        "began": found.began,
        "ready": found.ready,
        "newest": found.newest,
        "seconds": found.seconds,
        "phases": [
            {
                "name": phase.name.value,
                "began": phase.began,
                "ended": phase.ended,
                "seconds": phase.seconds,
                "detail": phase.detail or None,
            }
            for phase in found.phases
        ],
        "shards": None if shards is None else {"done": shards.done, "total": shards.total, "text": shards.text},
        "kv_budget_tokens": found.kv_budget,
        "kv_tokens": found.kv_tokens,
        "autotune": found.autotune or None,
        "failure": None
        if failure is None
        else {"cause": failure.cause, "line": failure.line, "heals": failure.heals, "advice": failure.advice or None},
        "missing": list(found.missing),
        "warnings": list(found.warnings),
        "lines": found.lines,
    }


def _progress(found: BootProgress) -> dict[str, Any]:
    shortest, longest = found.usual or (None, None)
    return {
        "elapsed_s": found.elapsed,
        "shortest_s": shortest,
        "longest_s": longest,
        "median_s": found.median,
        "phase_elapsed_s": found.phase_elapsed,
        "phase_usual_s": found.phase_usual,
        "left_s": found.left,
        "late": found.late,
        "compared_with": len(found.earlier),
    }
