"""What the commands share: options, the fleet file to use, and how an answer is printed."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from console.fleet.inventory import default_path
from console.sanitize import line

if TYPE_CHECKING:
    from console.feed import Feed

FleetFile = Annotated[
    Path | None,
    Parameter(
        name=["--fleet", "-f"],
        help="Fleet file (default: LANESWAP_FLEET, ./fleet.toml, then the user's config folder).",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="JSON with stable, documented keys.")]


MOST_SECONDS = 86_400.0


class UsageError(Exception):
    """A command line that cannot be carried out; the text says the way out."""


def some_seconds(_: object, value: float) -> None:
    """Of `--wait`: with none at all nothing is read, and what is not read can be told nothing of."""
    if not 0 < value <= MOST_SECONDS:  # also NaN
        raise UsageError(f"--wait: more than 0 seconds, at most {MOST_SECONDS:.0f}")


def any_seconds(_: object, value: float) -> None:
    """Of `--drain`."""
    if not 0 <= value <= MOST_SECONDS:
        raise UsageError(f"--drain: from 0 to {MOST_SECONDS:.0f} seconds")


def fleet_file(given: Path | None, commands: Iterable[str] = ()) -> Path:
    """The fleet file to read. Raises UsageError where there is none; `commands` may have been meant instead."""
    file = given or default_path()
    if not file.exists():
        raise UsageError(no_fleet(given, file, commands))
    return file


def no_fleet(given: Path | None, file: Path, commands: Iterable[str] = ()) -> str:
    """What a newcomer, a typist or a script needs to hear where the fleet file is not there."""
    if given is not None:
        close = difflib.get_close_matches(str(given), list(commands), n=1)
        return f"{given}: no such file" + (f"; did you mean the command `{close[0]}`?" if close else "")
    if os.environ.get("LANESWAP_FLEET"):
        return f"{file}: no such file, though LANESWAP_FLEET names it"
    return (
        f"no fleet file: neither ./fleet.toml nor {file} is there; write one (`laneswap init` begins it), "
        "or point at it with -f FILE (`laneswap rehearse` needs none)"
    )


def live_source(path: Path | None, commands: Iterable[str] = ()) -> Feed:
    """The feed over a fleet file; asks nobody yet. Raises UsageError, FleetError."""
    from console.feed import Feed
    from console.fleet.inventory import FleetError, load
    from console.fleet.recipe import apply_recipes

    file = fleet_file(path, commands)
    fleet = load(file)
    try:
        return Feed(apply_recipes(fleet, file.parent), beside=file.parent)
    except FleetError as error:
        raise FleetError(file, [f"{error.file}: {problem}" for problem in error.problems]) from error


def print_answer(answer: dict[str, Any], *, as_json: bool) -> None:
    """JSON, or one `key: value` a line."""
    if as_json:
        print(json.dumps(answer, indent=2, allow_nan=False))
        return
    for row in _flat(answer):
        print(line(row, len(row) + 1))


def _flat(value: Any, prefix: str = "") -> list[str]:
    if isinstance(value, dict):
        return [row for key, item in value.items() for row in _flat(item, f"{prefix}.{key}" if prefix else str(key))]
    if isinstance(value, list):
        return [row for at, item in enumerate(value) for row in _flat(item, f"{prefix}[{at}]")]
    return [f"{prefix}: {'-' if value is None else value}"]
