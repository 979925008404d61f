"""Logs of starts for the tests, and readers over them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from console.fleet.recipe import load_recipe
from console.readings.boot import Boot, PhaseName
from console.readings.boot_reader import NO_WORDS, BootReader
from console.readings.boot_words import BootWords

LOGS = Path(__file__).parents[1] / "data" / "boots"
SGLANG_LOG = (LOGS / "sglang-boot-gb10.log").read_text()
SGLANG_BEGAN = 1_789_169_642.0
"""2026-09-11 23:34:02 UTC."""
OPENING = "[2026-09-11 23:33:55] server_args=ServerArgs(model_path='/models/repo', tp_size=4)\n"
OVERLAY = (LOGS / "sgl-overlay-boot-lines.rendered.log").read_text()


def log(name: str) -> str:
    return (LOGS / name).read_text()


def words(recipe: str) -> BootWords:
    found = load_recipe(recipe)
    return found.boot.words(found.reads.engine)


def fed(text: str | Iterable[str], words: BootWords = NO_WORDS, *, started: float | None = None) -> BootReader:
    """A reader that was given the lines without any stamp of a log keeper."""
    reader = BootReader(words, started=started)
    for row in text.split("\n") if isinstance(text, str) else text:
        reader.take(None, row)
    return reader


def stamped(
    rows: Iterable[tuple[float, str]], words: BootWords = NO_WORDS, *, started: float | None = None
) -> BootReader:
    """A reader that was given (Unix seconds, line)."""
    reader = BootReader(words, started=started)
    for wall, row in rows:
        reader.take(wall, row)
    return reader


def names(boot: Boot) -> list[PhaseName]:
    return [phase.name for phase in boot.phases]


def texts(boot: Boot) -> list[str]:
    """Every text that a boot shows."""
    failure = () if boot.failure is None else (boot.failure.cause, boot.failure.line, boot.failure.advice)
    return [*failure, *boot.missing, *boot.warnings, *(phase.detail for phase in boot.phases), boot.engine]
