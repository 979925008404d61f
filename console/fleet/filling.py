"""`{names}` in a recipe's texts: variables, keys of the site file and home folders take their places. Pure.

What cannot be filled in is never guessed: the text becomes '' and the reason is kept.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from console.fleet.recipe_model import PLACEHOLDER, Recipe
from console.fleet.sitefile import home_value
from console.fleet.sitetypes import Site, unusable, visible

_SLASHES = re.compile(r"//+")


class Filling:
    """Fills the texts of one lane's recipe; `unfilled` collects what was missing, once each."""

    def __init__(self, recipe: Recipe, values: Mapping[str, str], site: Site | None, lane: str) -> None:
        self._recipe = recipe
        self._values = values
        self._site = site
        self._lane = lane
        self._notes: dict[str, None] = {}

    @property
    def unfilled(self) -> tuple[str, ...]:
        """Each `WHAT: which key would fill it`, in the order in which it was missed."""
        return tuple(self._notes)

    def miss(self, what: str, why: str) -> None:
        """Note that something cannot be told."""
        self._notes[f"{what}: {why}"] = None

    def text(self, what: str, template: str, rank: int | None = None) -> str:
        """The template with its names filled in; '' if one is missing, noted under `what`."""
        found: list[str] = []
        last = 0
        for match in PLACEHOLDER.finditer(template):
            value = self._value(what, match[1], rank)
            if value is None:
                return ""
            found += [template[last : match.start()], value]
            last = match.end()
        return "".join([*found, template[last:]])

    def path(self, what: str, template: str, rank: int | None = None) -> str:
        """A path as a host takes it: absolute, or `~/...`; a relative one lies below the rank's home folder."""
        text = self.text(what, template, rank) if template else ""
        return self.below_home(text, rank)

    def below_home(self, path: str, rank: int | None = None) -> str:
        """The same for a path that needs no filling; slashes at its end or doubled make no difference."""
        bare = _SLASHES.sub("/", path).rstrip("/")
        return bare if not bare or bare.startswith(("/", "~/")) else posixpath.join(self.home(rank), bare)

    def home(self, rank: int | None) -> str:
        """A rank's home folder where the site file names it, else `~`, which its host knows."""
        homes = self.words("homes")
        named = homes[rank or 0] if (rank or 0) < len(homes) else ""
        return named.rstrip("/") if named.startswith("/") else "~"

    def words(self, name: str) -> tuple[str, ...]:
        """What the site file has under one of laneswap's names; a scalar of several words is taken apart."""
        values = self._site.values.get(name, ()) if self._site else ()
        return tuple(values[0].split()) if len(values) == 1 else values

    def _value(self, what: str, name: str, rank: int | None) -> str | None:
        if name == "home":
            return self.home(rank)
        if name.startswith("site."):
            return self._from_site(what, name.removeprefix("site."), rank)
        variable = self._recipe.vars[name]
        value = self._values.get(name, variable.default)
        if value is None:
            self.miss(what, f"lanes.{self._lane}.vars.{name} is not set ({variable.help})")
        return value

    def _from_site(self, what: str, key: str, rank: int | None) -> str | None:
        if self._site is None:
            self.miss(what, "the site file is not read")
            return None
        found = self._site.file.get(key)
        file = visible(posixpath.basename(self._site.path))
        if found is None:
            self.miss(what, f"{key} is not set in {file}")
            return None
        below = home_value(found)
        if below is not None:
            return self.home(0) + below.removeprefix("~")
        if reason := unusable(found):
            self.miss(what, f"{key} in {file} {reason}")
            return None
        values: Sequence[str] = found.values
        if found.array and len(values) > 1:
            return values[rank or 0] if (rank or 0) < len(values) else ""
        return found.value
