"""The line the operator types into: a command after `:`, a text after `/`; on the NEXT row while it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from console import sanitize
from widgets.cells import Line, measure
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, TEXT, Row
from widgets.pane import Bar

LONGEST = 200
"""Characters that can be typed."""


class Prompt(Input):
    """One typed line; tab completes it. What is pasted is safe text before it is drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", show=False),
        Binding("shift+tab,up,down", "nothing", show=False),
    ]
    DEFAULT_CSS = """
    Prompt, Prompt:focus {
        position: absolute; border: none; height: 1; padding: 0 1; display: none;
        background: $ls-surface; color: $ls-bright;
    }
    """

    class Closed(Message):
        """The line was left: by Enter with its text, or by Esc."""

        def __init__(self, kind: str, text: str, kept: bool) -> None:
            super().__init__()
            self.kind = kind
            self.text = text
            self.kept = kept

    class Typed(Message):
        """The text changed."""

        def __init__(self, kind: str, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    def __init__(self) -> None:
        super().__init__(compact=True, id="prompt", select_on_focus=False, max_length=LONGEST)
        self.cursor_blink = False
        self.kind = ""
        self.completions: Callable[[str], tuple[str, ...]] = lambda text: ()

    def open(self, kind: str, text: str, completions: Callable[[str], tuple[str, ...]]) -> None:
        """Begin to type after `:` or `/`."""
        self.kind, self.completions = kind, completions
        self.display = True
        self.value = kind + text
        self.cursor_position = len(self.value)
        self.screen.set_focus(self)

    def close(self, *, kept: bool) -> None:
        """Leave the line, with its text or without."""
        kind, text = self.kind, self.typed
        self.kind = ""
        self.display = False
        self.screen.set_focus(None)
        if kind:
            self.post_message(self.Closed(kind, text, kept))

    @property
    def typed(self) -> str:
        """The text without the mark before it."""
        return self.value.removeprefix(self.kind)

    def validate_value(self, value: str) -> str:
        """Pasted control characters and escape sequences never come as far as the screen."""
        return sanitize.line(value, LONGEST)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the screen; deleting the mark itself closes the line."""
        event.stop()
        if not self.kind:
            return
        if not self.value.startswith(self.kind):
            self.close(kept=False)
        else:
            self.post_message(self.Typed(self.kind, self.typed))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self.close(kept=True)

    def action_complete(self) -> None:
        """The longest start that all completions share."""
        found = self.completions(self.typed)
        if not found:
            return
        start = common_start(found) + (" " if len(found) == 1 else "")
        if len(start) > len(self.typed):
            self.value = self.kind + start
            self.cursor_position = len(self.value)

    def action_nothing(self) -> None:
        """These keys do nothing while a line is typed."""


class Candidates(Bar):
    """What the typed line can become, on the row above it."""

    DEFAULT_CSS = "Candidates { position: absolute; height: 1; display: none; }"

    def __init__(self) -> None:
        super().__init__(id="candidates")
        self.found: tuple[str, ...] = ()

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """The candidates from left to right, as many as have room."""
        ground = TEXT.on("surface")
        line = Line(width, glance.signs, ground)
        column = line.put(1, "tab", BOLD.on("surface")) + 1
        for text in self.found:
            if column + measure(text) >= width:
                line.put(width - 2, glance.signs.dots, DIM.on("surface"))
                break
            column = line.put(column, text, DIM.on("surface")) + 2
        return (line.build(),)


def common_start(texts: tuple[str, ...]) -> str:
    """The longest text that all begin with."""
    first, last = min(texts), max(texts)
    same = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[: min(same, len(last))]
