"""A screen with the bars that never scroll away, a typed line, and something in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult

from console.actions.command_line import complete
from screens.base import ConsoleScreen
from screens.grid import Place, Wish, grid
from screens.prompt import Candidates, Prompt
from widgets.bars import AlarmBar, HeaderBar, KeyBar, LampsBar, NextBar, RailBar
from widgets.glance import Glance, StripGlance
from widgets.pane import Drawn
from widgets.said import SaidPane, said_height
from widgets.strip import StripPane, strip_height


class FramedScreen(ConsoleScreen, inherit_bindings=False):
    """Bars above and below, drawn from the same glance as what stands between them."""

    DEFAULT_CSS = """
    FramedScreen { layout: vertical; overflow: hidden; background: $ls-background; }
    FramedScreen > Drawn { position: absolute; }
    """
    MIDDLE: ClassVar[str] = ""
    """The name of what takes the whole middle; '' for several panes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.drawn: dict[str, Drawn] = {}
        self.places: dict[str, Place] = {}
        self.strip = StripPane(id="strip")
        self.said = SaidPane(id="said")
        self.candidates = Candidates()
        self.prompt = Prompt()
        self._last: Glance | None = None

    def middle(self) -> Iterator[tuple[str, Drawn]]:
        """What stands between the bars, by name."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """All bars and panes; which are shown, and where, follows from size and lane."""
        bars: dict[str, Drawn] = {
            "header": HeaderBar(),
            "lamps": LampsBar(),
            "rail": RailBar(),
            "alarm": AlarmBar(),
            "next": NextBar(),
            "keys": KeyBar(),
        }
        self.drawn = {**bars, **dict(self.middle())}
        yield from self.drawn.values()
        yield self.said
        yield self.strip
        yield self.candidates
        yield self.prompt

    def wish(self, glance: Glance) -> Wish:
        """What the middle holds."""
        return Wish((), 0)

    def arranged(self, glance: Glance) -> dict[str, Place]:
        """The place of everything for this glance."""
        return grid(*self.size, self.wish(glance), self.MIDDLE)

    def show(self, glance: Glance) -> None:
        """Arrange anew where the layout changed, then let every bar and pane repaint what changed."""
        if not self.drawn or not self.size:
            return
        places = self.arranged(glance)
        if places != self.places:
            self._arrange(places)
        # While a strip is open it alone is in the accent, so that no pane shows the focus.
        quiet = glance if glance.strip is None else replace(glance, focus=0)
        for name, place in places.items():
            try:
                self.drawn[name].show(self.glance_for(name, quiet), (place.width, place.height))
            except Exception as error:
                self.console_app.fault(f"pane {name}", error)
        self._last = glance
        self._lay_said(glance)
        self._lay_strip(glance)

    def show_strip(self, strip: StripGlance) -> None:
        """Paint the strip, and what the NEXT row and the keys say of it; nothing else."""
        if self._last is None:
            return
        glance = self._last = replace(self._last, strip=strip)
        self._lay_said(glance)
        self._lay_strip(glance)
        for name in ("next", "keys"):
            if name in self.places:
                self.drawn[name].show(self.glance_for(name, glance))

    def _lay_strip(self, glance: Glance) -> None:
        """Over the lower panes, right above the NEXT row."""
        self.strip.display = glance.strip is not None
        if glance.strip is None:
            return
        place = self.strip_place()
        _put(self.strip, place)
        self.strip.show(glance, (place.width, place.height))

    def _lay_said(self, glance: Glance) -> None:
        """What has no room on the NEXT row stands right above it."""
        top, bottom = self._middle_rows()
        height = said_height(glance, self.size.width, bottom - top)
        self.said.display = height > 0
        if height:
            _put(self.said, Place(0, bottom - height, self.size.width, height))
            self.said.show(glance, (self.size.width, height))

    def _middle_rows(self) -> tuple[int, int]:
        """The row below the bars on top, and that of NEXT."""
        top = max((p.y + p.height for name, p in self.places.items() if name in _ABOVE), default=0)
        bottom = min((p.y for name, p in self.places.items() if name in ("next", "keys")), default=self.size.height)
        return top, bottom

    def strip_place(self) -> Place:
        """Where the strip stands on this terminal: full width, between the alarm line and NEXT."""
        columns, rows = self.size
        top, bottom = self._middle_rows()
        height = strip_height(columns, rows, bottom - top)
        return Place(0, bottom - height, columns, height)

    def glance_for(self, name: str, glance: Glance) -> Glance:
        """The glance for one bar or pane."""
        return glance

    def on_resize(self, event: events.Resize) -> None:
        """A new size is shown at once."""
        self.console_app.redraw()

    def on_screen_resume(self) -> None:
        """Come to the front with the newest picture."""
        self.console_app.redraw()

    def _arrange(self, places: dict[str, Place]) -> None:
        self.places = places
        for name, widget in self.drawn.items():
            place = places.get(name)
            widget.display = place is not None
            if place is not None:
                _put(widget, place)
        row = places["next"] if "next" in places else Place(0, max(0, self.size.height - 1), self.size.width, 1)
        _put(self.prompt, row)
        _put(self.candidates, Place(row.x, max(0, row.y - 1), row.width, 1))

    # --- the typed line --------------------------------------------------------------------------------------------

    @property
    def typing(self) -> bool:
        """Whether a line is being typed."""
        return bool(self.prompt.kind)

    def do_command(self, _: str) -> None:
        """Begin a `:` line."""
        self.prompt.open(":", "", lambda text: complete(text, self.PLACE, self.words()))
        self._suggest("")

    def do_back(self, argument: str) -> None:
        """Esc: leave the typed line, else what the screen has open."""
        if self.prompt.kind:
            self.prompt.close(kept=False)
        else:
            self.close_one()

    def close_one(self) -> None:
        """Close the uppermost thing that is open on this screen."""
        self.app.pop_screen()

    @on(Prompt.Typed)
    def _line_typed(self, event: Prompt.Typed) -> None:
        if event.kind == ":":
            self._suggest(event.text)
        else:
            self.text_typed(event.text)

    @on(Prompt.Closed)
    def _line_closed(self, event: Prompt.Closed) -> None:
        self.candidates.display = False
        if event.kind == ":":
            if event.kept:
                self.console_app.command(event.text)
        else:
            self.text_closed(event.text, event.kept)
        self.console_app.redraw()

    def text_typed(self, text: str) -> None:
        """The text after `/` changed."""

    def text_closed(self, text: str, kept: bool) -> None:
        """The `/` line was left."""

    def _suggest(self, text: str) -> None:
        self.candidates.found = self.prompt.completions(text)
        self.candidates.display = bool(self.candidates.found)
        picture = self.console_app.picture()
        if picture is not None:
            self.candidates.show(picture)


_ABOVE = ("header", "lamps", "rail", "alarm")


def _put(widget: Drawn | Prompt, place: Place) -> None:
    widget.styles.offset = (place.x, place.y)
    widget.styles.width = place.width
    widget.styles.height = place.height
