"""Colours: the three palettes of the product and the user's own, checked before they are used. Data, no effects.

`laneswap/themes/NAME.toml` in the user's config folder: `base` (dark, light or safe) and any of the roles as `#rrggbb`;
what is not named is that of the base.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from console.fleet.tomlfile import FileError, TomlUnreadable, read_toml, suggest

DARK: Mapping[str, str] = {
    "background": "#0e1113",
    "surface": "#161a1d",
    "panel": "#2a3137",
    "line": "#323a40",
    "faint": "#5d6870",
    "dim": "#8b969e",
    "text": "#c3cbd1",
    "bright": "#f3f6f8",
    "accent": "#5cc8b8",
    "info": "#7db2ff",
    "look": "#f2a33c",
    "act": "#ff5f5a",
    "band": "#1d2429",
    "track": "#1f262b",
    "fill": "#69757e",
    "fill2": "#3f4a51",
}
LIGHT: Mapping[str, str] = {
    "background": "#fbfbf9",
    "surface": "#f0f1ef",
    "panel": "#dbe0e2",
    "line": "#c6cdd0",
    "faint": "#868f95",
    "dim": "#59646b",
    "text": "#2b343a",
    "bright": "#0a0e11",
    "accent": "#08695e",
    "info": "#1c5bb8",
    "look": "#9c5200",
    "act": "#b3002d",
    "band": "#e7ecec",
    "track": "#e4e8e9",
    "fill": "#78838b",
    "fill2": "#b2bcc1",
}
SAFE: Mapping[str, str] = {**DARK, "accent": "#ffffff", "info": "#56b4e9", "look": "#f0e442", "act": "#ff7a2f"}
SHIPPED: Mapping[str, Mapping[str, str]] = {"dark": DARK, "light": LIGHT, "safe": SAFE}
"""By the name that `--theme` takes."""

LEAST_TEXT, LEAST_BAR = 4.5, 3.0
"""Contrast (WCAG 2 ratio) that words, and the value in a bar, need on their ground."""
_WORDS = ("dim", "text", "bright", "accent", "info", "look", "act")
_PAIRS: tuple[tuple[str, str, float], ...] = (
    *((word, ground, LEAST_TEXT) for ground in ("background", "surface") for word in _WORDS),
    *((word, "panel", LEAST_TEXT) for word in ("text", "bright")),
    ("fill", "track", LEAST_BAR),
)
"""(colour, ground, least ratio): everything that has to be read."""
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class ThemeError(FileError):
    """A theme that cannot be used: names the file, and for each problem the key and the fix."""


@dataclass(frozen=True, slots=True)
class ThemeColours:
    """One theme, whole."""

    name: str
    colours: Mapping[str, str]
    dark: bool


def themes_folder() -> Path:
    """Where the user's own themes lie."""
    return Path(platformdirs.user_config_dir("laneswap")) / "themes"


def own_themes(folder: Path) -> tuple[str, ...]:
    """Names of the files there, whether they can be used or not."""
    try:
        return tuple(sorted(file.stem for file in folder.iterdir() if file.suffix == ".toml"))
    except OSError:
        return ()


def find_theme(name: str, folder: Path) -> ThemeColours:
    """A shipped theme or one's own by name. Raises ThemeError."""
    if name in SHIPPED:
        return ThemeColours(name, SHIPPED[name], name != "light")
    if not _NAME.fullmatch(name) or name not in own_themes(folder):
        raise ThemeError(folder, [f"no theme {name!r}{suggest(name, (*SHIPPED, *own_themes(folder)))}"])
    return load_theme(folder / f"{name}.toml")


def load_theme(file: Path) -> ThemeColours:
    """Read and check one theme file. Raises ThemeError with every problem."""
    try:
        raw = read_toml(file)
    except (FileNotFoundError, TomlUnreadable) as error:
        raise ThemeError(file, ["is not there" if isinstance(error, FileNotFoundError) else str(error)]) from error
    if file.stem in SHIPPED:
        raise ThemeError(file, [f"the name {file.stem!r} is that of a shipped theme; give the file another one"])
    return check_theme(raw, file)


def check_theme(raw: Mapping[str, object], file: Path) -> ThemeColours:
    """Checks keys, colours and contrast of one theme. Raises ThemeError with every problem."""
    base = raw.get("base", "dark")
    problems: list[str] = []
    if not isinstance(base, str) or base not in SHIPPED:
        problems.append(f"base: {base!r} is no theme{suggest(str(base), SHIPPED)}")
        base = "dark"
    colours = dict(SHIPPED[base])
    for role, value in raw.items():
        if role == "base":
            continue
        if role not in colours:
            problems.append(f"{role}: no such colour{suggest(role, (*colours, 'base'))}")
        elif not isinstance(value, str) or not _COLOUR.fullmatch(value):
            problems.append(f'{role}: {value!r} is no colour; write it as "#rrggbb"')
        else:
            colours[role] = value.lower()
    if not problems:
        problems = _unreadable(colours)
    if problems:
        raise ThemeError(file, problems)
    return ThemeColours(file.stem, colours, luminance(colours["background"]) < luminance(colours["text"]))


def _unreadable(colours: Mapping[str, str]) -> list[str]:
    found = []
    for role, ground, least in _PAIRS:
        ratio = contrast(colours[role], colours[ground])
        if ratio < least:
            said = f"{role}: {colours[role]} on {ground} {colours[ground]} has a contrast of {ratio:.1f}"
            found.append(f"{said}, {least:g} at least: move them further apart")
    return found


def contrast(one: str, other: str) -> float:
    """The WCAG 2 ratio of two colours `#rrggbb`: 1 to 21."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` by WCAG 2: 0 to 1."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
