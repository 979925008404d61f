"""The strip that a guarded key opens: what of all that is typed, pasted, clicked or left alone lets an action go. Pure.

It has no clock of its own. Times are monotonic seconds; a key's is the moment at which it was read from the terminal,
not the one at which somebody got round to it, so that what was typed ahead of the strip never confirms it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

DEAD_S = 0.7
"""After its first paint no key counts for so long."""
GAP_S = 1.0
"""Longer between two painted ticks, and nobody saw what the strip said meanwhile."""
HUSH_S = 1.0
"""Once a strip has ended, keys are dropped until none was made for so long: they were typed for the strip."""
CREDIT_S = 0.25
"""The most that one painted tick counts for: a loop that stumbles makes the strip slower, never quicker."""
LONGEST = 200
"""Characters of an answer."""
LETTERS = "cfgjkmtu"
"""None of the guarded keys in either case, none that is pressed by habit (`y`, `n`, `q`), and none that does more than
scroll on the dashboard: pressed twice, the second one must not quit, hold or acknowledge anything."""
_NAMES = {"escape": "Esc", "enter": "Enter", " ": "space", "ctrl+c": "ctrl+c", "pageup": "PgUp", "pagedown": "PgDn"}


class By(StrEnum):
    """What lets it go."""

    LETTER = "letter"
    COUNTDOWN = "countdown"
    """The letter at once, or by itself at zero."""
    TYPED = "typed"
    """Answers, each closed by Enter."""


class Phase(StrEnum):
    """Where a strip is."""

    PLANNING = "planning"
    """What it would do is being worked out, or was not painted yet."""
    DEAD_TIME = "dead time"
    ARMED = "armed"
    TYPING = "typing"
    GO = "go"
    CANCELLED = "cancelled"


class Kind(StrEnum):
    """What an answer has to be."""

    EXACT = "exact"
    TEXT = "text"
    """Anything but blanks."""
    MINUTES = "minutes"
    """`25`, `25m` or `1h30m`."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to be typed."""

    label: str
    """`lane name`, `reason`, `deadline`."""
    kind: Kind = Kind.TEXT
    exact: str = ""
    hint: str = ""
    """Beside the field: `minutes, 25 or 1h30m`."""
    least: int = 1
    """Characters of a TEXT, minutes of MINUTES."""
    default: str = ""
    """What Enter alone answers, shown in the field; '' for a question that has to be answered."""

    def problem(self, text: str) -> str:
        """Why Enter does not take this answer; '' if it does."""
        if self.kind is Kind.EXACT:
            return "" if self.exact and text == self.exact else f"that is not {self.exact}"
        if self.kind is Kind.MINUTES:
            seconds = seconds_of(text)
            if seconds is None:
                return "minutes, such as 25 or 1h30m"
            return "" if seconds >= 60 * self.least else f"at least {self.least} minutes are needed"
        if len(text.strip()) < self.least:
            return f"a {self.label} of at least {self.least} characters is needed"
        return ""


Fingerprint = tuple[tuple[str, str], ...]
"""(what, value) of the state that a strip shows: where one flips, what was read on it is no longer so."""


class Strip:
    """One strip, from the key that opened it to GO or CANCELLED; after either nothing changes it any more."""

    __slots__ = (
        "_armed_at", "_credit_from", "_painted", "_quiet", "_shows", "_tick",
        "answers", "by", "key_name", "left", "letter", "note", "phase", "questions", "seconds", "typed", "went", "why",
    )  # fmt: skip

    def __init__(self, key: str, letter: str) -> None:
        self.key_name = key
        self.letter = letter
        self.by = By.TYPED
        self.seconds = self.left = 0.0
        self.questions: tuple[Question, ...] = ()
        self.answers: tuple[str, ...] = ()
        self.typed = ""
        self.note = ""
        """What is wrong with the answer just given."""
        self.phase = Phase.PLANNING
        self.went: By | None = None
        """Once it goes: by what."""
        self.why = ""
        """Once CANCELLED: the words that say so."""
        self._shows: Fingerprint | None = None
        self._painted = False
        self._quiet = 0.0
        self._tick = self._armed_at = self._credit_from = 0.0

    # --- what happens to it ----------------------------------------------------------------------------------------

    def planned(
        self, by: By, shows: Fingerprint, *, seconds: float = 0.0, questions: tuple[Question, ...] = ()
    ) -> None:
        """It is known what it would do. A typed strip without a question never goes."""
        if self.phase is Phase.PLANNING and self._shows is None:
            self.by, self.seconds, self.questions, self._shows = by, seconds, questions, shows
            self.left = seconds

    def painted(self, now: float) -> None:
        """The strip with its plan is on the terminal for the first time: the dead time begins."""
        if self.phase is Phase.PLANNING and self._shows is not None:
            self.phase = Phase.DEAD_TIME
            self._tick = self._credit_from = now

    def tick_painted(self, now: float) -> None:
        """What it last showed is on the terminal at `now`."""
        if not self.counting:
            return
        if self._gap(now):
            return
        credit = min(CREDIT_S, max(0.0, now - max(self._tick, self._credit_from)))
        self._tick = max(self._tick, now)
        if self.phase is Phase.DEAD_TIME:
            self._quiet += credit
            if self._quiet >= DEAD_S - 1e-9:
                self.phase = Phase.TYPING if self.by is By.TYPED else Phase.ARMED
                self._armed_at = now
        elif self.phase is Phase.ARMED and self.by is By.COUNTDOWN:
            # It goes on the tick after the one that showed zero: what was pressed until then still cancels.
            if self.left <= 0.0:
                self.phase, self.went = Phase.GO, By.COUNTDOWN
            self.left = max(0.0, self.left - credit)
            self.left = 0.0 if self.left < 1e-9 else self.left

    def looked_at(self, now: float) -> None:
        """Before a key is judged: whether what it answers to was painted lately, however early the key was made."""
        if self.counting:
            self._gap(now)

    def key(self, name: str, made_at: float) -> None:
        """A key; `name` is the character, or the terminal's name of the key, and `made_at` when it was read."""
        if not self.open:
            return
        if self.counting and self._gap(made_at):
            return
        if not self.counting or self.phase is Phase.DEAD_TIME or made_at < self._armed_at:
            self._too_early(name, made_at)
        elif self.phase is Phase.TYPING:
            self._type(name)
        elif name == self.letter:
            self.phase, self.went = Phase.GO, By.LETTER
        else:
            self._cancel_by(shown(name))

    def paste(self) -> None:
        """A paste only cancels."""
        self._cancel_by("a paste")

    def click(self) -> None:
        """A click only cancels."""
        self._cancel_by("a click")

    def focus(self) -> None:
        """The terminal has come into focus or lost it: no key."""

    def mouse(self) -> None:
        """The mouse moved or its wheel turned: no key."""

    def resize(self) -> None:
        """The terminal has another size: what stood on it may not have been seen."""
        self.cancel("the terminal was resized")

    def suspended(self, words: str = "the console was away from its terminal") -> None:
        """The process, the machine or the terminal was away."""
        self.cancel(words)

    def state_changed(self, shows: Fingerprint) -> None:
        """The state that the strip shows, as it is now; where it flipped, the strip cancels and says what did."""
        if not self.open or self._shows is None:
            return
        before = dict(self._shows)
        for what, value in shows:
            if before.get(what, value) != value:
                self.cancel(f"{what} was {before[what] or '-'} and is {value or '-'}")
                return

    def cancel(self, why: str) -> None:
        """It does not go; `why` is a clause."""
        if self.open:
            self.phase, self.why = Phase.CANCELLED, f"CANCELLED: {why}. Nothing was sent."

    @property
    def counted(self) -> float:
        """Seconds of the countdown that were painted."""
        return self.seconds - self.left

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Neither gone nor cancelled."""
        return self.phase not in (Phase.GO, Phase.CANCELLED)

    @property
    def counting(self) -> bool:
        """It was painted and is open, so that ticks and gaps count."""
        return self.open and self.phase is not Phase.PLANNING

    @property
    def question(self) -> Question | None:
        """The one to be answered now."""
        return self.questions[len(self.answers)] if len(self.answers) < len(self.questions) else None

    def _gap(self, at: float) -> bool:
        if at - self._tick <= GAP_S:
            return False
        self.cancel(f"the screen stood still for {at - self._tick:.1f} s")
        return True

    def _cancel_by(self, what: str) -> None:
        if self.open:
            self.phase, self.why = Phase.CANCELLED, f"CANCELLED by {what}. Nothing was sent."

    def _too_early(self, name: str, made_at: float) -> None:
        if name != self.key_name:
            self._cancel_by(shown(name))
        elif self.counting:
            self.phase, self.left, self._quiet = Phase.DEAD_TIME, self.seconds, 0.0
            self.answers, self.typed, self.note = (), "", ""
            self._credit_from = max(self._credit_from, made_at)

    def _type(self, name: str) -> None:
        if len(name) == 1 and name.isprintable():
            self.typed, self.note = (self.typed + name)[:LONGEST], ""
        elif name == "backspace":
            self.typed, self.note = self.typed[:-1], ""
        elif name == "enter":
            self._answer()
        else:
            self._cancel_by(shown(name))

    def _answer(self) -> None:
        question = self.question
        if question is None:
            self.cancel("nothing was asked")
            return
        answer = self.typed or question.default
        self.note = question.problem(answer)
        if self.note:
            return
        self.answers, self.typed = (*self.answers, answer), ""
        if self.question is None:
            self.phase, self.went = Phase.GO, By.TYPED


class Hush:
    """After a strip: keys go nowhere until none was made for HUSH_S. Times are those at which keys were made."""

    __slots__ = ("_last", "_on", "_said", "words")

    def __init__(self) -> None:
        self.words = ""
        """What became of the strip, to be said again for as long as keys are dropped; '' once it went."""
        self._last = self._said = 0.0
        self._on = False

    def begin(self, now: float, words: str) -> None:
        """The strip has ended; keys made before this were made for it."""
        self._last, self._said, self._on, self.words = now, now - HUSH_S, True, words

    def takes(self, made_at: float) -> bool:
        """Whether a key made then is dropped."""
        if self.holds(made_at):
            self._last = max(self._last, made_at)
            return True
        self._on = False
        return False

    def holds(self, now: float) -> bool:
        """Whether a key made now would be dropped."""
        return self._on and now - self._last < HUSH_S

    def says(self, now: float, key: str) -> str:
        """What is to be said of a dropped key, at most once a second; '' for nothing. Of a strip that went others say
        what became of it: then the key alone is told of."""
        if now - self._said < HUSH_S:
            return ""
        self._said = now
        words = f"{self.words} Keys are dropped" if self.words else f"{shown(key)} was dropped, as keys are"
        return f"{words} until none came for {HUSH_S:g} s."


def shown(name: str) -> str:
    """A key as the words about it write it: `j`, `Esc`, `Enter`."""
    return _NAMES.get(name, name)


_TIME = re.compile(r"(?:(\d{1,2})h)?(?:(\d{1,4})m?)?")


def seconds_of(text: str) -> float | None:
    """Seconds of `25`, `25m`, `1h`, `1h30m`, from a minute to a day; None for anything else."""
    found = _TIME.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    minutes = int(found[1] or 0) * 60 + int(found[2] or 0)
    return minutes * 60.0 if 1 <= minutes <= 1440 else None
