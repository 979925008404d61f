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

from console.actions.themes import DARK, LIGHT, SHIPPED, ThemeColours
from widgets.ink import Ink

_GROUNDS = frozenset({"background", "surface", "panel", "band", "track"})
PLAIN: Mapping[str, str] = {name: "#000000" if name in _GROUNDS else "#d0d0d0" for name in DARK}

DEFAULT_THEME = "laneswap-dark"
PLAIN_THEME = "laneswap-plain"
COLOURS: dict[str, Mapping[str, str]] = {
    **{f"laneswap-{name}": colours for name, colours in SHIPPED.items()},
    PLAIN_THEME: PLAIN,
}
"""By the name under which Textual knows the theme; the user's own is added when it is chosen."""


def _theme(name: str, colours: Mapping[str, str], *, dark: bool) -> Theme:
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
        dark=dark,
        variables={f"ls-{role}": colour for role, colour in colours.items()},
    )


THEMES: tuple[Theme, ...] = tuple(_theme(name, colours, dark=colours is not LIGHT) for name, colours in COLOURS.items())
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


def register_own(app: Any, own: ThemeColours) -> str:
    """Register a checked theme of the user's. Returns the name under which Textual knows it."""
    name = f"laneswap-own-{own.name}"
    COLOURS[name] = own.colours
    palette_for.cache_clear()
    app.register_theme(_theme(name, own.colours, dark=own.dark))
    return name
