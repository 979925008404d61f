"""`laneswap config`: is everything right, what is in force and who said so, which files are used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import BaseModel

from console.actions.keymap import KeymapError, default_keymap_path, load_keymap
from console.actions.themes import ThemeError, load_theme, own_themes, themes_folder
from console.feed.records import state_folder
from console.fleet.inventory import Fleet, FleetError, default_path, load
from console.fleet.operator import on_duty
from console.fleet.places import places
from console.fleet.recipe import Recipe, apply_recipes, load_recipe, shipped
from console.fleet.tomlfile import FileError
from console.sanitize import line

_SSH_FILES = (("ssh config", "config", "~/.ssh/config"), ("known hosts", "known_hosts", "~/.ssh/known_hosts"))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about the operator's files."""

    file: str
    text: str
    problem: bool
    """False for a note: nothing is wrong, but something cannot be looked at."""


@dataclass(frozen=True, slots=True)
class Value:
    """One key with what is in force."""

    key: str
    value: Any
    origin: str
    """The fleet file, `recipe NAME`, `environment: NAME`, `default`, or that nobody says it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One file or folder that laneswap uses."""

    what: str
    path: str
    there: bool | None
    """None for what is no file."""
    why: str


def check(file: Path) -> list[Finding]:
    """All that is wrong with fleet file, recipes, keymap and themes, and what the recipes lack. Never raises for it."""
    found: list[Finding] = []
    fleet: Fleet | None = None
    try:
        fleet = load(file)
    except FleetError as error:
        found += _problems(error)
    if fleet is not None:
        found += _lanes(fleet, file)
    try:
        load_keymap(default_keymap_path())
    except KeymapError as error:
        found += _problems(error)
    for name in own_themes(themes_folder()):
        try:
            load_theme(themes_folder() / f"{name}.toml")
        except ThemeError as error:
            found += _problems(error)
    return found


def _problems(error: FileError) -> Iterator[Finding]:
    for problem in error.problems:
        yield Finding(line(error.file, 300), line(problem, 400), True)


def _lanes(fleet: Fleet, file: Path) -> Iterator[Finding]:
    """Each lane by itself, so that one bad recipe hides nothing of the others."""
    for name in fleet.lanes:
        alone = fleet.model_copy(update={"lanes": {name: fleet.lanes[name]}})
        try:
            lane = apply_recipes(alone, file.parent).lanes[name]
            recipe = load_recipe(lane.recipe, file.parent)
        except FleetError as error:
            yield from (Finding(line(str(file), 300), line(f"{error.file}: {problem}", 500), True)
                        for problem in error.problems)  # fmt: skip
            continue
        for row in places(name, lane, recipe, None).unfilled:
            if "the site file is not read" not in row:  # that is what a host says
                yield Finding(line(str(file), 300), line(f"lanes.{name}: {row}", 400), False)


def in_force(file: Path) -> list[Value]:
    """Every key with its value and who said so. Raises FleetError."""
    written = load(file)
    fleet = apply_recipes(written, file.parent)
    own: dict[str, str] = {}
    variables: list[Value] = []
    for name, lane in fleet.lanes.items():
        recipe = load_recipe(lane.recipe, file.parent)
        own |= {f"lanes.{name}.{key}": f"recipe {recipe.name}" for key in recipe.reads.model_fields_set}
        variables += _variables(name, recipe, lane.vars, str(file))
    found = [_from_recipe(item, own) for item in _values(fleet, written, "", str(file))]
    return sorted((_operator(item, fleet) for item in found + variables), key=lambda item: item.key.split("."))


def _values(model: BaseModel, written: BaseModel | None, prefix: str, file: str) -> Iterator[Value]:
    for key, item in type(model).model_fields.items():
        if item.exclude:
            continue
        value, before = getattr(model, key), getattr(written, key, None)
        given = written is not None and key in written.model_fields_set
        where = f"{prefix}{key}"
        if isinstance(value, BaseModel):
            yield from _values(value, before if given else None, f"{where}.", file)
        elif isinstance(value, dict) and value and all(isinstance(part, BaseModel) for part in value.values()):
            for name, part in value.items():
                yield from _values(part, before[name] if before else None, f"{where}.{name}.", file)
        elif key != "vars":
            plain = list(value) if isinstance(value, tuple) else value
            yield Value(where, plain, file if given else "default")


def _from_recipe(item: Value, own: Mapping[str, str]) -> Value:
    if item.origin != "default" or item.key not in own:
        return item
    return Value(item.key, item.value, own[item.key])


def _variables(lane: str, recipe: Recipe, given: Mapping[str, str], file: str) -> Iterator[Value]:
    for name, variable in recipe.vars.items():
        where = f"lanes.{lane}.vars.{name}"
        if name in given:
            yield Value(where, given[name], file)
        elif variable.default is not None:
            yield Value(where, variable.default, f"recipe {recipe.name}")
        else:
            yield Value(where, None, f"not set: {variable.help}")


def _operator(item: Value, fleet: Fleet) -> Value:
    if item.key != "operator":
        return item
    name, origin = on_duty(fleet.operator)
    return Value(item.key, name, origin or item.origin)


def locate(file: Path | None) -> list[Place]:
    """Which files are used, whether they are there, and why these."""
    path, why = (file, "named with -f") if file else (default_path(), _why_fleet())
    found = [_file("fleet file", path, why)]
    found += _recipes(path)
    found.append(_file("keymap", default_keymap_path(), "the user's config folder"))
    themes = (themes_folder() / f"{name}.toml" for name in own_themes(themes_folder()))
    found += [_file("theme", file, f"the user's config folder: --theme {file.stem}") for file in themes]
    why_state = "LANESWAP_STATE" if os.environ.get("LANESWAP_STATE") else "the user's state folder"
    found.append(_file("records", state_folder() / "records", f"{why_state}: earlier boots and rates of lanes"))
    found.append(_file("ledger", state_folder() / "ledger", f"{why_state}: what was done, a folder for each fleet"))
    faults = Path(platformdirs.user_state_dir("laneswap")) / "faults.log"
    found.append(_file("faults", faults, "the user's state folder: faults of the console itself"))
    found += _ssh(path)
    return found


def _why_fleet() -> str:
    if os.environ.get("LANESWAP_FLEET"):
        return "LANESWAP_FLEET"
    return "in this folder" if Path("fleet.toml").exists() else "the user's config folder"


def _file(what: str, path: Path, why: str) -> Place:
    return Place(what, line(str(path.expanduser().absolute()), 400), path.expanduser().exists(), why)


def _recipes(path: Path) -> Iterator[Place]:
    try:
        fleet = load(path)
    except FleetError:
        return
    for name, lane in fleet.lanes.items():
        if lane.recipe in shipped():
            yield Place("recipe", lane.recipe, None, f"shipped; lane {name}")
        else:
            own = Path(lane.recipe).expanduser()
            yield _file("recipe", own if own.is_absolute() else path.parent / own, f"lane {name}")


def _ssh(path: Path) -> Iterator[Place]:
    """Files of ssh that are not the user's usual ones are named by fleet.toml."""
    try:
        hosts = load(path).hosts
    except FleetError:
        hosts = {}
    for what, key, usual in _SSH_FILES:
        named: dict[str, list[str]] = {}
        for name, host in hosts.items():
            if not host.is_local:
                named.setdefault(getattr(host, key) or usual, []).append(name)
        for file, users in (named or {usual: []}).items():
            why = "the user's own" if file == usual else f"hosts {', '.join(users)}"
            yield _file(what, Path(file), why)
