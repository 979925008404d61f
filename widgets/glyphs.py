"""The signs of the screen and their ASCII fallbacks; every sign is one cell wide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from console.snapshot import Severity

_TO_ASCII = str.maketrans(
    {
        "●": "",
        "◆": "",
        "▲": "",
        "■": "",
        "→": "->",
        "›": ">",
        "≈": "~",
        "–": "-",
        "—": "-",
        "−": "-",
        "·": ",",
        "°": "",
        "…": "..",
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "×": "x",
        "│": "|",
        "━": "=",
        "─": "-",
    }
)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs."""

    ascii: bool
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    across: str
    down: str
    heavy: str
    """The strip's rule."""
    step: str
    dots: str
    """What stands for the part that was cut off."""
    mark: str
    """A bar's threshold."""
    passed: str
    """A bar's threshold that the value has passed."""
    normal: str
    info: str
    look: str
    act: str

    def of(self, severity: Severity) -> str:
        """The shape that goes with a severity; empty in ASCII, where the word stands alone."""
        shapes = {Severity.INFO: self.info, Severity.LOOK: self.look, Severity.ACT: self.act}
        return shapes.get(severity, self.normal)

    def words(self, text: str) -> str:
        """`text` in signs that this set has."""
        return _ascii_words(text) if self.ascii and not text.isascii() else text


UNICODE = Glyphs(False, "╭", "╮", "╰", "╯", "─", "│", "━", "›", "…", "│", "│", "●", "◆", "▲", "■")
ASCII = Glyphs(True, "+", "+", "+", "+", "-", "|", "=", ">", "..", "|", "!", "", "", "", "")


def glyphs_for(ascii_only: bool) -> Glyphs:
    """The set to draw with."""
    return ASCII if ascii_only else UNICODE


@lru_cache(maxsize=2048)
def _ascii_words(text: str) -> str:
    return "".join(c if c.isascii() else "?" for c in text.translate(_TO_ASCII))
