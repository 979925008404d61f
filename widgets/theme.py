"""The three themes, the plain one for NO_COLOR, and the palette that turns an ink into a style once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

from widgets.ink import Ink

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
_GROUNDS = frozenset({"background", "surface", "panel", "band", "track"})
PLAIN: Mapping[str, str] = {name: "#000000" if name in _GROUNDS else "#d0d0d0" for name in DARK}

DEFAULT_THEME = "laneswap-dark"
PLAIN_THEME = "laneswap-plain"
COLOURS: Mapping[str, Mapping[str, str]] = {
    DEFAULT_THEME: DARK,
    "laneswap-light": LIGHT,
    "laneswap-safe": SAFE,
    PLAIN_THEME: PLAIN,
}


def _theme(name: str, colours: Mapping[str, str]) -> Theme:
    return Theme(
        name=name,
        primary=colours["info"],
        secondary=colours["dim"],
        warning=colours["look"],
        error=colours["act"],
        success=colours["text"],
        accent=colours["accent"],
        foreground=colours["text"],
        background=colours["background"],
        surface=colours["surface"],
        panel=colours["panel"],
        dark=colours is not LIGHT,
        variables={f"ls-{role}": colour for role, colour in colours.items()},
    )


THEMES: tuple[Theme, ...] = tuple(_theme(name, colours) for name, colours in COLOURS.items())
"""Register each with `App.register_theme`; console.tcss needs their `$ls-...` variables."""


class Palette:
    """Inks of one theme as styles. Without colour: bold, bold underline and reverse, never dim."""

    def __init__(self, colours: Mapping[str, str], plain: bool) -> None:
        self.colours = colours
        self.plain = plain
        self._styles: dict[Ink, Style] = {}

    def style(self, ink: Ink) -> Style:
        """The style of an ink, made once."""
        style = self._styles.get(ink)
        if style is None:
            style = self._styles[ink] = self._attributes(ink) if self.plain else self._coloured(ink)
        return style

    def _coloured(self, ink: Ink) -> Style:
        colours = self.colours
        return Style(color=colours[ink.fg], bgcolor=colours[ink.bg], bold=ink.bold, underline=ink.underline)

    def _attributes(self, ink: Ink) -> Style:
        if ink.bg in ("act", "look") or ink.key or ink.fg == "act":
            return Style(bold=True, reverse=True)
        if ink.fg == "look":
            return Style(bold=True, underline=True)
        if ink.fg == "accent":
            return Style(bold=True, underline=ink.bold)
        return Style(bold=ink.bold or ink.fg in ("info", "bright"))


@lru_cache(maxsize=8)
def palette_for(theme: str, plain: bool) -> Palette:
    """The palette of a theme by name; an unknown theme is drawn with the dark one."""
    return Palette(COLOURS.get(theme, DARK), plain or theme == PLAIN_THEME)


@lru_cache(maxsize=1024)
def _without_colour(style: Style) -> Style:
    return Style(
        bold=style.bold, underline=style.underline, reverse=style.reverse, italic=style.italic, meta=style.meta
    )


class AttributesOnly(LineFilter):
    """For NO_COLOR: sends attributes and no colour code at all, also from stock widgets."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without colours."""
        return [
            Segment(text, None if style is None else _without_colour(style), control)
            for text, style, control in segments
        ]


def register_themes(app: Any) -> None:
    """Register the four themes with a Textual app."""
    for theme in THEMES:
        app.register_theme(theme)
