"""The `[boot]` table of a recipe: what the log of its starts always shows, and what it shows when they fail."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from console.fleet.tomlfile import Strict
from console.readings.boot import PhaseName
from console.readings.boot_lines import needle, pieces
from console.readings.boot_words import BootWords, Fails, Mark, Shows, Silence

SHORTEST = 4
"""Characters that a pattern must have in one piece: less would match half the log."""
_MOST = 100

Text = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Words = Annotated[str, StringConstraints(max_length=300)]


class Pattern(Strict):
    """A line of the log."""

    line: Text
    """As it stands in the log, in whole or in part; `*` for what varies."""

    @field_validator("line")
    @classmethod
    def _telling(cls, value: str) -> str:
        if len(needle(pieces(value))) < SHORTEST:
            raise ValueError(f"needs at least {SHORTEST} characters in one piece, between its *")
        return value


class AlwaysRecipe(Pattern):
    """A line that every start of this family shows."""

    name: Text
    """What is missing without it."""
    by: PhaseName
    """The phase before which it must have come."""
    cause: Words = ""
    """Where its absence means that the start is a wrong one: why."""
    advice: Words = ""
    """What to do then."""


class MarkRecipe(Pattern):
    """A line that tells which phase a start is in."""

    phase: PhaseName
    """The phase that begins with it."""
    detail: Words = ""
    """What is shown beside the phase; `{1}` is what the first `*` held."""


class FailsRecipe(Pattern):
    """A line after which the start will not come up."""

    cause: Text
    """In the operator's words; `{1}` is what the first `*` held."""
    advice: Words = ""
    """What to do about it."""
    heals: bool = False
    """Another try may work as things are."""
    stops: bool = True
    """False: only a warning."""


class SilenceRecipe(Strict):
    """A phase in which nothing may be silent for long."""

    phase: PhaseName
    """The phase that is meant."""
    after: float = Field(gt=0, le=86400)
    """Seconds."""
    cause: Text
    """What the silence means, in the operator's words."""
    advice: Words = ""
    """What to do about it."""
    heals: bool = False
    """Another try may work as things are."""


class BootRecipe(Strict):
    """What is known of this family's starts, beyond what the engines always write."""

    always: tuple[AlwaysRecipe, ...] = Field(default=(), max_length=_MOST)
    """Lines that every start shows."""
    marks: tuple[MarkRecipe, ...] = Field(default=(), max_length=_MOST)
    """Lines that tell the phase, besides those of the engine itself."""
    failures: tuple[FailsRecipe, ...] = Field(default=(), max_length=_MOST)
    """Lines after which it will not come up."""
    silences: tuple[SilenceRecipe, ...] = Field(default=(), max_length=_MOST)
    """Phases that are never silent for long."""

    def words(self, engine: str = "") -> BootWords:
        """For the reader; `engine` is the declared one, '' where the log tells it."""
        return BootWords(
            engine=engine,
            marks=tuple(Mark(item.line, item.phase, detail=item.detail) for item in self.marks),
            failures=tuple(
                Fails(item.line, item.cause, item.advice, item.heals, item.stops, loud=True) for item in self.failures
            ),
            always=tuple(Shows(item.name, item.line, item.by, item.cause, item.advice) for item in self.always),
            silences=tuple(
                Silence(item.phase, item.after, item.cause, item.advice, item.heals) for item in self.silences
            ),
        )
