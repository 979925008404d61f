"""The two rows of keys: safe ones above, guarded ones with their prices below. Pure."""

from __future__ import annotations

from console.actions.strip import By, Phase
from widgets.barparts import SURFACE, chip, exactly
from widgets.cells import Line, measure
from widgets.glance import Glance, KeyHint
from widgets.ink import BOLD, CHIP_KEY, DIM, TEXT, Ink, Row
from widgets.pane import Bar


class KeyBar(Bar):
    """The two rows of keys."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        return glance.keys, glance.asks, glance.snapshot.rehearsal, glance.strip is not None and cancels(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `key_rows`."""
        return exactly(key_rows(glance, width), width, height)


def key_rows(glance: Glance, width: int) -> tuple[Row, Row]:
    """Safe keys above, guarded ones below; those that cannot act are dim and say why."""
    return _safe_keys(glance, width), _guarded_keys(glance, width)


def _safe_keys(glance: Glance, width: int) -> Row:
    line = Line(width, glance.signs, SURFACE)
    hints = [hint for hint in glance.keys if not hint.guarded]
    gap, words = _spacing(hints, width - 2)
    column = 1
    for hint, word in zip(hints, words, strict=True):
        ink = BOLD if hint.available and glance.strip is None else DIM
        column = line.put(column, hint.key, ink.on("surface"), to=width - 1)
        if word:
            column = line.put(column + 1, word, DIM.on("surface"), to=width - 1)
        column += gap
    return line.build()


def _word(hint: KeyHint, *, short: bool) -> str:
    if not short:
        return hint.word
    return "" if hint.short == "-" else hint.short or hint.word


def _spacing(hints: list[KeyHint], room: int) -> tuple[int, list[str]]:
    """The gap and the words at which all hints fit: words are shortened one after the other, those for moving first."""
    words = [hint.word for hint in hints]
    for at in (None, *range(len(hints))):
        if at is not None:
            words[at] = _word(hints[at], short=True)
        taken = sum(measure(h.key) + (1 + measure(w) if w else 0) for h, w in zip(hints, words, strict=True))
        for gap in (2, 1):
            if taken + gap * (len(hints) - 1) <= room and (gap == 2 or at is not None):
                return gap, words
    return 1, words


def _guarded_keys(glance: Glance, width: int) -> Row:
    line = Line(width, glance.signs, SURFACE)
    hints = [hint for hint in glance.keys if hint.guarded]
    said, gap, short = _fitting(glance, hints, width)
    column = 1
    for hint in hints:
        live = hint.available and glance.strip is None
        if live and not hint.plain:
            column = chip(line, column, hint.key, CHIP_KEY, glance) + 1
        else:
            column = line.put(column, hint.key, (BOLD if live else DIM).on("surface")) + 1
        ink = _GRAVE if hint.grave and glance.strip is None else TEXT if live and not hint.plain else DIM
        column = line.put(column, _word(hint, short=short), ink.on("surface"), to=width - 1) + gap
    line.right(width - 1, said, DIM.on("surface"), start=column)
    return line.build()


_GRAVE = Ink("act")
"""Not a chip and not bold: it is bad news, and nothing that a key could do."""


def _fitting(glance: Glance, hints: list[KeyHint], width: int) -> tuple[str, int, bool]:
    """What is said at the right, the gap between keys, and whether the short words are needed."""
    reasons = _reasons(glance, hints)
    wide = width >= 120
    forms = [(short, said, gap) for short in (False, True) for said in reasons for gap in ((3, 2) if wide else (2, 1))]
    for short, said, gap in forms:
        if measure(said) <= width - 1 - _taken(glance, hints, gap, short=short):
            return said, gap, short
    return reasons[-1], 1, True


def _taken(glance: Glance, hints: list[KeyHint], gap: int, *, short: bool) -> int:
    """The column behind the last key and its gap."""
    column = 1
    for hint in hints:
        chipped = hint.available and not hint.plain and glance.strip is None and not glance.no_colour
        word = glance.signs.words(_word(hint, short=short))
        column += measure(hint.key) + (2 if chipped else 0) + 1 + measure(word) + gap
    return column


_DRILL = "DRILL"
"""REHEARSAL where that has no room: a word that is cut off says less than a short one."""


def _reasons(glance: Glance, hints: list[KeyHint]) -> list[str]:
    """What stands at the right, from the longest: what is kept longest is that these hosts are simulated, in whole
    words."""
    kind = "REHEARSAL" if glance.snapshot.rehearsal else ""
    if glance.strip is not None:
        # The strip's own frame says REHEARSAL too: how to cancel goes before it.
        said = cancels(glance)
        return [f"{kind}, {said}" if kind else said, said, ""]
    if any(hint.available for hint in hints):
        words = [glance.asks]
    else:
        why = next((hint.why for hint in hints if hint.why), "")
        words = [why, why.partition(":")[0]]
    found = [", ".join(part for part in (kind, said) if part) for said in (*words, "")]
    return [*found, _DRILL, ""] if kind else found


def cancels(glance: Glance) -> str:
    """What the keys do while the strip is open."""
    strip = glance.strip
    if strip is None:
        return ""
    if strip.phase in (Phase.PLANNING, Phase.DEAD_TIME):
        return "every key cancels"
    return "Esc cancels" if strip.by is By.TYPED else f"every key but {strip.letter} cancels"
