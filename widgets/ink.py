"""What a drawn row is made of: text in an ink. Pure data, compared cell by cell; the palette resolves colours later."""

from __future__ import annotations

from typing import NamedTuple

from console.snapshot import SEVERITY_WORDS, Severity


class Ink(NamedTuple):
    """How text is drawn, in the theme's own names (`text`, `dim`, `look`...), never in colours."""

    fg: str = "text"
    bg: str = "background"
    bold: bool = False
    underline: bool = False
    key: bool = False
    """A chip of PROD, REHEARSAL or a guarded key: reverse where there is no colour."""

    def on(self, bg: str) -> Ink:
        """The same ink on another ground."""
        return self._replace(bg=bg)


class Span(NamedTuple):
    """A run of text in one ink. `age` marks the age of a value, which need not be repainted for its own sake."""

    text: str
    ink: Ink
    age: bool = False


Row = tuple[Span, ...]
"""One line of a pane, exactly as wide as the pane."""

TEXT = Ink()
DIM = Ink("dim")
FAINT = Ink("faint")
LINE = Ink("line")
STRONG = Ink("text", bold=True)
BRIGHT = Ink("bright")
BOLD = Ink("bright", bold=True)
LABEL = Ink("dim", bold=True)
ACCENT = Ink("accent")
TITLE_FOCUS = Ink("accent", bold=True, underline=False)
INFO = Ink("info", bold=True)
LOOK = Ink("look", bold=True)
ACT = Ink("act", bold=True)
CHIP = Ink("bright", "panel", bold=True)
CHIP_KEY = Ink("bright", "panel", bold=True, key=True)
CHIP_INFO = Ink("background", "info", bold=True, key=True)
CHIP_LOOK = Ink("background", "look", bold=True)
CHIP_ACT = Ink("background", "act", bold=True)

WORDS = SEVERITY_WORDS
"""The word that goes with each colour."""

_BY_SEVERITY = {Severity.NORMAL: BOLD, Severity.INFO: INFO, Severity.LOOK: LOOK, Severity.ACT: ACT}
_CHIPS = {Severity.NORMAL: CHIP, Severity.INFO: CHIP_INFO, Severity.LOOK: CHIP_LOOK, Severity.ACT: CHIP_ACT}
_ORDER = {Severity.NORMAL: 0, Severity.INFO: 1, Severity.LOOK: 2, Severity.ACT: 3}


def ink_of(severity: Severity) -> Ink:
    """The ink of a word of this severity."""
    return _BY_SEVERITY[severity]


def chip_of(severity: Severity) -> Ink:
    """The ink of a chip of this severity."""
    return _CHIPS[severity]


def loudness(severity: Severity) -> int:
    """0 for normal to 3 for act, for sorting."""
    return _ORDER[severity]


def text_of(row: Row) -> str:
    """The row's characters alone."""
    return "".join(span.text for span in row)
