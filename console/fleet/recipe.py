"""Recipes: data files that say how one family of lanes is driven. Adding one needs no code.

What a recipe says is a default: a key that the operator wrote in fleet.toml wins.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from console.fleet.inventory import Fleet, FleetError, Lane
from console.fleet.recipe_model import CheckpointRecipe, Reads, Recipe, RowsRecipe, SiteRecipe, Variable
from console.fleet.tomlfile import TomlUnreadable, read_toml, suggest
from console.fleet.wording import explain, plain

__all__ = [
    "CheckpointRecipe",
    "Reads",
    "Recipe",
    "RowsRecipe",
    "SiteRecipe",
    "Variable",
    "apply_recipes",
    "lane_recipes",
    "load_recipe",
    "shipped",
]

_SHIPPED = "console.fleet.recipes"


@lru_cache(maxsize=1)
def shipped() -> tuple[str, ...]:
    """Names of the recipes that come with laneswap."""
    files = resources.files(_SHIPPED).iterdir()
    return tuple(sorted(item.name.removesuffix(".toml") for item in files if item.name.endswith(".toml")))


def load_recipe(name: str, beside: Path | None = None) -> Recipe:
    """A shipped recipe by name, or one's own by path (relative to the fleet file). Raises FleetError."""
    if name in shipped():
        return _shipped(name)
    path = Path(name).expanduser()
    if beside is not None and not path.is_absolute():
        path = beside / path
    if not name.endswith(".toml"):
        close = "".join(f"; did you mean {item!r}?" for item in difflib.get_close_matches(name, shipped(), n=1))
        raise FleetError(
            name, [f"no recipe of that name{close}; shipped: {', '.join(shipped())}; or give a path to a .toml"]
        )
    return _read(path, str(path))


@lru_cache(maxsize=16)
def _shipped(name: str) -> Recipe:
    """Read once, also for a fleet of hundreds of lanes."""
    source = f"{name}.toml"
    return _read(resources.files(_SHIPPED) / source, source)


def _read(file: Path | Traversable, source: str) -> Recipe:
    try:
        return build_recipe(read_toml(file), source)
    except FileNotFoundError as error:
        raise FleetError(source, [f"recipe cannot be read: {error.strerror}"]) from error
    except TomlUnreadable as error:
        raise FleetError(source, [f"recipe {error}"]) from error


def build_recipe(raw: Mapping[str, Any], source: str) -> Recipe:
    """Check what a recipe says, once its text is read. Raises FleetError."""
    try:
        return Recipe.model_validate(raw)
    except ValidationError as error:
        raise FleetError(source, [_problem(item) for item in error.errors()]) from error


def _problem(item: Any) -> str:
    return explain(item, Recipe) if item["loc"] else plain(item)  # of the whole file: its text names the key


def lane_recipes(fleet: Fleet, beside: Path | None = None) -> dict[str, Recipe]:
    """The recipe of every lane, by the lane's name. Raises FleetError with the problems of all of them."""
    found: dict[str, Recipe] = {}
    bad: list[FleetError] = []
    for name, lane in fleet.lanes.items():
        try:
            found[name] = _recipe_of(name, lane, beside)
        except FleetError as error:
            bad.append(error)
    if len(bad) == 1:
        raise bad[0]
    if bad:
        raise FleetError("recipes", [f"{error.file}: {problem}" for error in bad for problem in error.problems])
    return found


def apply_recipes(fleet: Fleet, beside: Path | None = None) -> Fleet:
    """The fleet with every key that the operator left out filled from the lane's recipe. Raises FleetError."""
    recipes = lane_recipes(fleet, beside)
    lanes = {name: _beside(_fill(lane, recipes[name]), beside) for name, lane in fleet.lanes.items()}
    return fleet.model_copy(update={"lanes": lanes})


def _recipe_of(name: str, lane: Lane, beside: Path | None) -> Recipe:
    try:
        recipe = load_recipe(lane.recipe, beside)
    except FleetError as error:
        raise FleetError(f"lanes.{name}.recipe: {error.file}", list(error.problems)) from error
    if unknown := [key for key in lane.vars if key not in recipe.vars]:
        knows = suggest(unknown[0], recipe.vars) if recipe.vars else "; it takes none"
        raise FleetError(
            f"lanes.{name}.vars", [f"{key}: recipe {recipe.name} has no such variable{knows}" for key in unknown]
        )
    return recipe


def _beside(lane: Lane, beside: Path | None) -> Lane:
    """With the path of the operator's manifest as it stands from here."""
    given = lane.download.manifest
    if not given:
        return lane
    path = Path(given).expanduser()
    if beside is not None and not path.is_absolute():
        path = beside / path
    return lane.model_copy(update={"download": lane.download.model_copy(update={"manifest": str(path)})})


def _fill(lane: Lane, recipe: Recipe) -> Lane:
    given = lane.model_fields_set
    missing = {key: value for key, value in recipe.reads.model_dump().items() if key not in given and value is not None}
    try:  # by the rules that hold for what the operator writes: a path may come from one's own recipe
        Lane.model_validate({**lane.model_dump(), **missing})
    except ValidationError as error:
        raise FleetError(recipe.name, [f"reads.{item['loc'][0]}: {plain(item)}" for item in error.errors()]) from error
    return lane.model_copy(update=missing)
