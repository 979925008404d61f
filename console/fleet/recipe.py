"""Recipes: data files that say how one family of lanes is driven. Adding one needs no code.

What a recipe says is a default: a key that the operator wrote in fleet.toml wins.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from console.fleet.inventory import Fleet, FleetError, Lane, plain
from console.fleet.recipe_watchdog import WatchdogRecipe
from console.fleet.tomlfile import Strict, TomlUnreadable, read_toml

_SHIPPED = "console.fleet.recipes"


class Reads(Strict):
    """How a lane of this family is read."""

    engine: Literal["", "sglang", "vllm", "llamacpp"] = ""
    runs_in: Literal["docker", "host"] = "docker"
    """`host`: the engine runs outside containers, so none is looked for."""
    containers: str = ""
    """Glob over container names; empty means: observed by the port they own."""
    health_path: str = "/health"
    metrics_path: str = "/metrics"
    health_interval: float | None = Field(default=None, ge=0.2, le=300)
    """Seconds."""
    stall_after: float = Field(default=15.0, ge=1, le=3600)
    """Seconds with work present and a frozen step counter before the lane is STALLED."""
    usual_boot_s: float | None = Field(default=None, gt=0)
    """Seconds from start to healthy that this family is known for."""


class Recipe(Strict):
    """One family of lanes."""

    name: str
    title: str
    reads: Reads = Reads()
    watchdog: WatchdogRecipe | None = None
    """None: restart policies are all there is."""


def shipped() -> tuple[str, ...]:
    """Names of the recipes that come with laneswap."""
    files = resources.files(_SHIPPED).iterdir()
    return tuple(sorted(item.name.removesuffix(".toml") for item in files if item.name.endswith(".toml")))


def load_recipe(name: str, beside: Path | None = None) -> Recipe:
    """A shipped recipe by name, or one's own by path (relative to the fleet file). Raises FleetError."""
    if name in shipped():
        source: str = name + ".toml"
        return _read(resources.files(_SHIPPED) / source, source)
    path = Path(name).expanduser()
    if beside is not None and not path.is_absolute():
        path = beside / path
    if not name.endswith(".toml"):
        raise FleetError(name, [f"no recipe of that name; shipped: {', '.join(shipped())}; or give a path to a .toml"])
    return _read(path, str(path))


def _read(file: Path | Traversable, source: str) -> Recipe:
    try:
        return Recipe.model_validate(read_toml(file))
    except FileNotFoundError as error:
        raise FleetError(source, [f"recipe cannot be read: {error.strerror}"]) from error
    except TomlUnreadable as error:
        raise FleetError(source, [f"recipe {error}"]) from error
    except ValidationError as error:
        problems = [f"{'.'.join(str(p) for p in item['loc'])}: {plain(item)}" for item in error.errors()]
        raise FleetError(source, problems) from error


def apply_recipes(fleet: Fleet, beside: Path | None = None) -> Fleet:
    """The fleet with every key that the operator left out filled from the lane's recipe. Raises FleetError."""
    lanes = {name: _fill(lane, _recipe_of(name, lane, beside)) for name, lane in fleet.lanes.items()}
    return fleet.model_copy(update={"lanes": lanes})


def _recipe_of(name: str, lane: Lane, beside: Path | None) -> Recipe:
    try:
        return load_recipe(lane.recipe, beside)
    except FleetError as error:
        raise FleetError(f"lanes.{name}.recipe: {error.file}", list(error.problems)) from error


def _fill(lane: Lane, recipe: Recipe) -> Lane:
    given = lane.model_fields_set
    missing = {key: value for key, value in recipe.reads.model_dump().items() if key not in given and value is not None}
    try:  # by the rules that hold for what the operator writes: a path may come from one's own recipe
        Lane.model_validate({**lane.model_dump(), **missing})
    except ValidationError as error:
        raise FleetError(recipe.name, [f"reads.{item['loc'][0]}: {plain(item)}" for item in error.errors()]) from error
    return lane.model_copy(update=missing)
