"""`laneswap inspect watchdog`: captured logs, locks, processes, units and flags through the live parsers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from console.fleet.inventory import FleetError
from console.fleet.recipe import load_recipe
from console.inspection.arguments import Argument, InspectError, one, reject_unknown
from console.readings.competing import competitors
from console.readings.look import Answer, Status
from console.readings.processes import Process, parse_processes
from console.readings.units import Unit, Units, parse_units, unit_state
from console.readings.watchdog import Watchdog, WatchdogSpec, WatchdogState, read_watchdog
from console.readings.watchdog_log import parse_stamp
from console.readings.watchdog_unit import overdue_words
from console.sanitize import line, word

ROLES = ("log", "lock", "ps", "booted", "uptime", "is_active", "code", "unit", "pause", "gaveup", "recipe", "now")
_UNIT_ROLES = ("is_active", "code", "unit", "pause", "gaveup")
_MOST_SAMPLES = 10_000
_NUMBER = re.compile(r"[0-9]{1,11}(?:\.[0-9]{1,9})?")


def watchdog(arguments: Sequence[Argument]) -> dict[str, Any]:
    """What the console makes of a watchdog's traces. Keys: `state`, `verdict` (a few words), `words`, `protecting`,
    `armed` (how many that would act), `pid`, `may_signal`, `since`, `last_act`, `last_act_at`, `attempt`,
    `next_check_s`, `instances`, `competing`, `overdue`, `recipe`, `kind`; `samples` where `is_active` is a table.

    A flag that is not given is not there; anything else that is not given was not looked at. All times are taken to be
    of one time zone.
    """
    reject_unknown(arguments, ROLES)
    if not arguments:
        raise InspectError("watchdog: name a file, for example log=sgl-watchdog.log ps=ps.txt")
    name, spec = _spec(arguments)
    samples = _samples(one(arguments, "is_active"), _code(arguments))
    units = _units(arguments) or (_as_units(samples[-1][1], spec) if samples else None)
    found = _read(arguments, spec, units)
    answer = {"recipe": name, "kind": spec.kind} | describe(found)
    asked = units if one(arguments, "unit") else None
    now = _time(arguments, "now")
    others = competitors({}, port=0, units=asked, foreign=spec.foreign, guards=spec.guards, now=now)
    answer["competing"] = list(others)
    answer["overdue"] = [_overdue(unit, now) for unit in (asked.items if asked else ()) if unit.due is not None]
    answer["samples"] = [
        {"sample": sample} | _brief(_read(arguments, spec, _as_units(state, spec)))
        for sample, state in samples
        if sample
    ]
    return answer


def describe(found: Watchdog) -> dict[str, Any]:
    """A watchdog as JSON-ready data; times in Unix seconds, null for unknown."""
    return {
        "state": found.state.value,
        "verdict": found.short,
        "words": found.words,
        "protecting": found.protecting,
        "armed": int(found.protecting is True),
        "pid": found.pid,
        "may_signal": found.may_signal,
        "since": found.since,
        "last_act": found.last_act or None,
        "last_act_at": found.last_act_at,
        "attempt": list(found.attempt) if found.attempt else None,
        "next_check_s": found.next_check,
        "instances": found.instances,
    }


def _overdue(unit: Unit, now: float | None) -> dict[str, Any]:
    """A timer that stands still, and since when it is due."""
    assert unit.due is not None
    return {
        "unit": unit.name,
        "first_missed": datetime.fromtimestamp(unit.due, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "overdue_s": None if now is None else max(0.0, now - unit.due),
        "words": "" if now is None else overdue_words(unit, now),
    }


def _brief(found: Watchdog) -> dict[str, Any]:
    return {"state": found.state.value, "verdict": found.short, "protecting": found.protecting}


def _spec(arguments: Sequence[Argument]) -> tuple[str, WatchdogSpec]:
    given = one(arguments, "recipe")
    of_a_unit = any(item.role in _UNIT_ROLES for item in arguments)
    name = str(given.path) if given else "vllm-cluster-env" if of_a_unit else "sglang-fleet-env"
    try:
        recipe = load_recipe(name).watchdog
    except FleetError as error:
        raise InspectError(str(error)) from error
    if recipe is None:
        raise InspectError(f"recipe {name} has no watchdog")
    spec = recipe.spec(recipe.place(""))
    if spec.kind == "log" and of_a_unit:
        raise InspectError(f"recipe {name} has no unit: its watchdog is known by log=, lock= and ps=")
    return name, spec


def _read(arguments: Sequence[Argument], spec: WatchdogSpec, units: Units | None) -> Watchdog:
    source = one(arguments, "ps")
    processes = parse_processes(source.text()) if source else None
    booted = _time(arguments, "booted") or _time(arguments, "uptime")
    log = _answer(arguments, "log")
    return read_watchdog(
        spec,
        log=log,
        lock=_answer(arguments, "lock"),
        pause=_answer(arguments, "pause") or Answer(Status.MISSING),
        gaveup=_answer(arguments, "gaveup") or Answer(Status.MISSING),
        processes=processes,
        units=units,
        now=_time(arguments, "now") or _newest(log, processes or (), booted),
        booted=booted,
        offset=0.0,
    )


def _answer(arguments: Sequence[Argument], role: str) -> Answer | None:
    source = one(arguments, role)
    return Answer(Status.OK, body=source.text()) if source else None


def _newest(log: Answer | None, processes: Sequence[Process], booted: float | None) -> float:
    """The newest time that the files name: what they show is read as it was then."""
    stamps = (parse_stamp(row) for row in log.body.split("\n")[-2000:]) if log else ()
    times = [stamp.seconds for stamp in stamps if stamp is not None]
    times += [item.started for item in processes if item.started is not None]
    return max([*times, booted or 0.0])


def _time(arguments: Sequence[Argument], role: str) -> float | None:
    """Unix seconds, or a date and time as `uptime -s` prints it."""
    source = one(arguments, role)
    if source is None:
        return None
    text = source.text().strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if (stamp := parse_stamp(text)) is None:
        raise InspectError(f"{source.path}: expected Unix seconds or YYYY-MM-DD HH:MM:SS, not {line(text, 60)!r}")
    return stamp.seconds


def _code(arguments: Sequence[Argument]) -> int | None:
    source = one(arguments, "code")
    text = source.text().strip() if source else ""
    if source and not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise InspectError(f"{source.path}: expected an exit status, not {line(text, 60)!r}")
    return int(text) if text else None


def _samples(source: Argument | None, code: int | None) -> list[tuple[str, str]]:
    """(sample, state) of each row of a table `sample rc stdout stderr`; of plain text one without a name."""
    if source is None:
        return []
    rows = source.text().split("\n")
    if not rows[0].startswith("sample\t"):
        return [("", _state(code, rows[0].strip()))]
    found = []
    for number, row in enumerate(rows[1 : _MOST_SAMPLES + 1], 2):
        fields = row.split("\t")
        if not row.strip():
            continue
        if len(fields) < 3:
            raise InspectError(f"{source.path}:{number}: expected `sample rc stdout stderr` parted by tabs")
        rc = int(fields[1]) if fields[1].isascii() and fields[1].isdigit() and len(fields[1]) <= 3 else None
        found.append((word(fields[0], 60), unit_state(rc, fields[2], "\t".join(fields[3:]))))
    return found


def _state(code: int | None, said: str) -> str:
    if code is None and said in ("active", "activating", "deactivating", "failed"):
        code = 0 if said == "active" else 3
    # `inactive` comes with 3 and, where there is no such unit, with 4
    return "unknown: no exit status given" if code is None else unit_state(code, said, "")


def _as_units(state: str, spec: WatchdogSpec) -> Units:
    if state.startswith("unknown: "):
        return Units((), problem=state.removeprefix("unknown: "))
    active = "activating" if state == WatchdogState.IN_FLIGHT.value else state
    return Units((Unit(spec.unit, "loaded", active),))


def _units(arguments: Sequence[Argument]) -> Units | None:
    source = one(arguments, "unit")
    return parse_units(source.text()) if source else None
