"""Reads `laneswap rehearse --headless --json` on standard input and says what is wrong; exit code 1 if anything is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

QUALITIES = {"LIVE", "LATE", "STALE", "UNREACHABLE", "ABSENT"}
LANE_READINGS = ("health", "throughput", "served")
HOST_READINGS = ("memory", "gpus", "facts", "containers")
LOOKED_AT = ("site_file", "download", "row_copies", "next_row_copies", "watchdog")
"""Readings of a lane that are null where there is no such thing."""
PREPARING = "dsv41"
"""The lane whose next revision is fetched in the scenario `prepare`."""
LAMPS = {"serving", "revision", "watchdog", "rollback"}


def readings(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every dated value of one line, with its place."""
    for group, names in (("lanes", LANE_READINGS), ("hosts", HOST_READINGS)):
        for key, item in document[group].items():
            for name in names:
                yield f"{group}.{key}.{name}", item[name]
    for key, item in document["lanes"].items():
        for name in LOOKED_AT:
            if item[name] is not None:
                yield f"lanes.{key}.{name}", item[name]


def faults_of_line(document: dict[str, Any]) -> Iterator[str]:
    """What a single line must say: where it comes from, four lamps a lane, age and quality of every value."""
    if document.get("rehearsal") is not True:
        yield "is not marked as a rehearsal"
    if not document["lanes"] or not document["hosts"]:
        yield "has no lanes or no hosts"
    for name, lane in document["lanes"].items():
        if set(lane["lamps"]) != LAMPS or not all(lamp["word"] for lamp in lane["lamps"].values()):
            yield f"lane {name} does not show four lamps, each with a word"
    for place, reading in readings(document):
        if reading["quality"] not in QUALITIES:
            yield f"{place} has no quality"
        if not reading["source"]:
            yield f"{place} has no source"
        if reading["value"] is not None and not isinstance(reading["age_s"], int | float):
            yield f"{place} has a value without an age"


def faults_of_run(documents: list[dict[str, Any]], expected: int) -> Iterator[str]:
    """What the lines together must show: one a second, and values that move."""
    if len(documents) != expected:
        yield f"{len(documents)} lines, expected {expected}"
    sequences = [document["sequence"] for document in documents]
    if sequences != sorted(set(sequences)):
        yield "sequence numbers do not grow"
    half = expected // 2
    moving = {
        "memory": moved(documents, "hosts", "memory", "free"),
        "tokens": moved(documents, "lanes", "throughput", "generation_total"),
    }
    yield from (
        f"{what} moved in {times} lines only, expected {half}" for what, times in moving.items() if times < half
    )
    if not any(lane["throughput"]["value"] for lane in documents[-1]["lanes"].values()):
        yield "the last line has no current throughput"
    if PREPARING in documents[-1]["lanes"]:
        yield from faults_of_preparation([document["lanes"][PREPARING] for document in documents])


def faults_of_preparation(lanes: list[dict[str, Any]]) -> Iterator[str]:
    """What the read side must show while a revision is prepared: where all stands, and that it comes nearer."""
    last = {name: (lanes[-1][name] or {}).get("value") for name in LOOKED_AT}
    yield from (f"{name} is not read at the end" for name, value in last.items() if value is None)
    fetched = [value["done"] for lane in lanes if (value := (lane["download"] or {}).get("value"))]
    copied = [
        sum(copy["present"] or 0 for copy in value["copies"])
        for lane in lanes
        if (value := (lane["next_row_copies"] or {}).get("value"))
    ]
    for what, counts in (("the download", fetched), ("the row copies", copied)):
        if len(set(counts)) < 3 or counts != sorted(counts):
            yield f"{what} did not come nearer: {sorted(set(counts))}"
    if last["download"] and last["download"]["state"] != "running":
        yield f"the download is {last['download']['state']}"
    if last["watchdog"] and last["watchdog"]["state"] != "armed":
        yield f"the watchdog is {last['watchdog']['state']}"


def moved(documents: list[dict[str, Any]], group: str, name: str, key: str) -> int:
    """In how many lines a value differs from that of the line before, in whichever member it moves most."""
    counts = []
    for member in documents[0][group]:
        values = [(document[group][member][name]["value"] or {}).get(key) for document in documents]
        counts.append(sum(a is not None and b is not None and a != b for a, b in pairwise(values)))
    return max(counts, default=0)


def main() -> int:
    """Check standard input; the argument is the number of lines to expect."""
    documents = [json.loads(line) for line in sys.stdin]
    faults = [f"line {n}: {fault}" for n, line in enumerate(documents, 1) for fault in faults_of_line(line)]
    faults += list(faults_of_run(documents, int(sys.argv[1]))) if documents else ["no line at all"]
    for fault in faults[:20]:
        print(f"rehearsal: {fault}", file=sys.stderr)
    if not faults:
        print(f"rehearsal: {len(documents)} lines, every value dated, values moving")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
