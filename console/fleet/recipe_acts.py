"""The `[acts]` tables of a recipe: how its lanes are stopped, launched, guarded again and named, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator

from console.fleet.tomlfile import Strict

Argv = tuple[str, ...]
"""A command as an argument list; words may hold `{names}`, and `~/` at a word's start is the home folder there."""

_NAME_PART = re.compile(r"[A-Za-z0-9_.-]*")


def _command(value: Argv) -> Argv:
    if any(not word or not word.isprintable() for word in value):
        raise ValueError("words of one command, none of them empty")
    return value


class StopActs(Strict):
    """How an engine is stopped."""

    by: Literal["docker", "launcher", "unit"] = "docker"
    """`docker`: each rank's container by its id; `launcher`: `argv` on the head; `unit`: its unit `acts.unit`."""
    argv: Argv = ()
    """The launcher's own stop."""
    removes: bool = False
    """It removes the containers, so their logs have to be kept first, and none is left to go back to."""
    order: Literal["together", "head first", "head last"] = "together"
    """Of the ranks, where each is stopped by its id."""
    grace_s: int = Field(default=120, ge=1, le=3600)
    """Seconds between the request to end and the kill: memory that is pinned takes its time."""
    memory_share: float = Field(default=0.5, ge=0, le=1)
    """Part of the memory that has to be available again afterwards, where CPU and GPU share it, and of each GPU that
    was in use; 0 asks for none."""

    _words = field_validator("argv")(_command)


class LaunchActs(Strict):
    """How an engine is started."""

    by: Literal["docker", "launcher", "unit"] = "docker"
    """`docker`: the container that served is started by its id, workers before the head; `launcher`: `argv` on the
    head; `unit`: `acts.unit`."""
    argv: Argv = ()
    """The launcher, which ends by itself when the lane serves, or fails."""
    folder: str = ""
    """Where it is run; may hold `{names}`. Left out: the home folder."""
    preflight: Argv = ()
    """Its own checks alone, which change nothing."""
    dry_run: Argv = ()
    """What shows what it would do and is known to change nothing; left out where its flags are ignored."""
    candidate: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]*)?$")
    """Environment variable that makes it read another site file."""
    log: str = ""
    """Glob of its own log on the head; may hold `{names}`."""
    processes: tuple[str, ...] = ()
    """Parts of the command lines of a launch that is under way, on the head or on a rank."""
    clear: Argv = ()
    """What has to run before it, on the head: it refuses to start where containers are left."""
    removes: bool = False
    """It removes the former containers itself, after its own checks."""
    arms: bool = False
    """It starts the watchdog again by itself."""
    limit_s: float = Field(default=3600.0, gt=0, le=86_400)
    """Seconds that a start may take where the lane has no boots of its own to tell."""
    exits: dict[int, str] = Field(default_factory=dict)
    """What its exit codes mean, in words."""

    _words = field_validator("argv", "preflight", "dry_run", "clear")(_command)

    @field_validator("exits")
    @classmethod
    def _codes(cls, value: dict[int, str]) -> dict[int, str]:
        if any(not 0 < code < 256 or not words for code, words in value.items()):
            raise ValueError('code = "what it means", codes from 1 to 255')
        return value


class GuardActs(Strict):
    """How the watchdog is switched off and on."""

    disarm: Literal["term", "flag", "unit"]
    """`term`: its process is asked to end and its lock removed; `flag`: its pause flag is written; `unit`: its unit is
    stopped."""
    start: Argv = ()
    """What starts it; needed for `term`."""
    folder: str = ""
    """Where it is started; may hold `{names}`. Left out: the home folder."""

    _words = field_validator("start")(_command)

    @model_validator(mode="after")
    def _startable(self) -> GuardActs:
        if self.disarm == "term" and not self.start:
            raise ValueError("disarm 'term' needs start: what starts it again")
        return self


class NameActs(Strict):
    """Ends of container names that say what a container is; they change with the roles."""

    serving: str = Field(min_length=1)
    """Of the one that serves: `-BOUND-REF`."""
    retired: str = Field(min_length=1)
    """Of the one that is kept stopped: `-RETIRED-REF`."""
    candidate: str = ""
    """Of one that was only tried: `-EXP`."""

    @field_validator("serving", "retired", "candidate")
    @classmethod
    def _part(cls, value: str) -> str:
        if not _NAME_PART.fullmatch(value):
            raise ValueError("letters, digits, '.', '-' and '_'")
        return value

    def stem(self, name: str) -> str:
        """The name without such an end."""
        for end in (self.serving, self.retired, self.candidate):
            if end and name.endswith(end) and len(name) > len(end):
                return name.removesuffix(end)
        return name


class RowsActs(Strict):
    """How a rank's row copy is built anew."""

    copier: Argv
    """The recipe's copier; `{source}`, `{dest}`, `{ranges}` are filled in, else they come behind it in this order."""
    memory_max: str = Field(default="4G", pattern=r"^[1-9][0-9]*[KMGT]$")
    """Cap of its memory, as systemd writes it."""

    _words = field_validator("copier")(_command)


class Acts(Strict):
    """How a lane of this family is acted upon."""

    container: str = ""
    """Name of each rank's container where none is seen; may hold `{names}`."""
    unit: str = ""
    """The engine's systemd unit on the head; may hold `{names}`."""
    manager: Literal["system", "user"] = "system"
    """Who manages `unit`."""
    box_ledger: str = ""
    """A Markdown file on the head in which operators keep their own record; may hold `{names}`."""
    stop: StopActs = StopActs()
    """How it is stopped."""
    launch: LaunchActs = LaunchActs()
    """How it is started."""
    watchdog: GuardActs | None = None
    """How its watchdog is switched off and on; left out: laneswap leaves it alone."""
    names: NameActs | None = None
    """Names that carry the state; left out: names stay as they are."""
    rows: RowsActs | None = None
    """How row copies are built anew; left out: they cannot be."""

    @model_validator(mode="after")
    def _complete(self) -> Acts:
        for what, act in (("stop", self.stop), ("launch", self.launch)):
            if act.by == "launcher" and not act.argv:
                raise ValueError(f"{what}: by 'launcher' needs argv")
            if act.by == "unit" and not self.unit:
                raise ValueError(f"{what}: by 'unit' needs acts.unit")
        return self

    def templates(self) -> Iterator[tuple[str, str]]:
        """Every text that may hold `{names}`, with its key."""
        for key in ("container", "unit", "box_ledger"):
            yield f"acts.{key}", getattr(self, key)
        launch, guard = self.launch, self.watchdog
        yield from (("acts.launch.folder", launch.folder), ("acts.launch.log", launch.log))
        commands = [("stop.argv", self.stop.argv), ("launch.argv", launch.argv), ("launch.preflight", launch.preflight)]
        commands += [("launch.dry_run", launch.dry_run), ("launch.clear", launch.clear)]
        commands.append(("launch.processes", launch.processes))
        if guard is not None:
            yield "acts.watchdog.folder", guard.folder
            commands.append(("watchdog.start", guard.start))
        if self.rows is not None:
            own = ("{source}", "{dest}", "{ranges}")
            commands.append(("rows.copier", tuple(word for word in self.rows.copier if word not in own)))
        for key, words in commands:
            yield from ((f"acts.{key}", word) for word in words)
