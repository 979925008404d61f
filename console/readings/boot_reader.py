"""An engine's start read line by line: which phase it is in, what it said, and why it will not come up. Pure.

The highest phase reached is kept: lines that repeat, come late or are of another rank never lead back, and a line costs
the same however long the log is. A line is looked at closely only if it holds a part of one of the patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

from console.readings.boot import Boot, BootFailure, Phase, PhaseName
from console.readings.boot_faults import Faults, Trace
from console.readings.boot_lines import Head, LogClock, filled, held, is_access, needle, pieces, read_head
from console.readings.boot_spans import Span, Spans
from console.readings.boot_words import (
    ENDINGS,
    FAILURES,
    MARKS,
    SGLANG,
    SILENCES,
    TUNE_LIMIT_S,
    VLLM,
    BootWords,
    Fails,
    Mark,
    Says,
    Shows,
)
from console.readings.exits import rfc3339
from console.readings.logtext import Progress, loading_progress
from console.sanitize import line

LOOKED_AT = 2000
"""Characters of a line that are looked at."""
WHOLE_S = 120.0
"""Seconds within which the first line of a whole log comes: an engine's imports take up to 40."""
FRESH_LINES = 200
"""Lines before an engine's opening one that belong to its start too: hooks of an overlay speak first."""
MOST_ENGINES = 64

NO_WORD = "without saying why"
"""Part of the cause where a log names none: another rank's may."""
NO_WORDS = BootWords()
_NUMBER = re.compile(r"\s*([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})")
_TAG = re.compile(r"DP[0-9]{1,4}")
_VLLM_HEAD = re.compile(r"\((?:APIServer|ApiServer|EngineCore|MainProcess|VllmWorker|Worker)[A-Za-z0-9_-]* pid=[0-9]")


@dataclass(frozen=True, slots=True)
class _Compiled:
    marks: tuple[tuple[str, tuple[str, ...], Mark], ...]
    fails: tuple[tuple[str, tuple[str, ...], Fails], ...]
    shows: tuple[tuple[str, tuple[str, ...], Shows], ...]
    needles: tuple[str, ...]
    """Literals of which a line must hold one to be looked at."""
    late: tuple[str, ...]
    """The same, once it is ready."""


@lru_cache(maxsize=32)
def _compiled(words: BootWords) -> _Compiled:
    marks = tuple((needle(parts), parts, item) for item in (*words.marks, *MARKS) if (parts := pieces(item.line)))
    fails = tuple((needle(parts), parts, item) for item in (*words.failures, *FAILURES) if (parts := pieces(item.line)))
    shows = tuple((needle(parts), parts, item) for item in words.always if (parts := pieces(item.line)))
    rest = ("Traceback (most recent call last)", "% Completed", *ENDINGS)
    opens = tuple(literal for literal, _, mark in marks if mark.says is Says.OPENS)
    literals = [literal for part in (marks, fails, shows) for literal, *_ in part]
    wrong = tuple(literal for literal, _, item in fails if item.stops)
    return _Compiled(
        marks,
        fails,
        shows,
        tuple(dict.fromkeys((*literals, *rest))),
        tuple(dict.fromkeys((*opens, *wrong, *rest))),
    )


class BootReader:
    """Takes a log's lines, oldest first; `boot` may be asked at any time."""

    def __init__(self, words: BootWords = NO_WORDS, *, started: float | None = None, near: float | None = None) -> None:
        """`started` is the container's start, `near` any time not half a year off (for stamps without a year); both
        Unix seconds of the host's clock."""
        self._words = words
        self._patterns = _compiled(words)
        self._started = started
        self._clock = LogClock(started if near is None else near)
        self._lines = 0
        self._shown: dict[str, int] = {}
        """Line number at which each thing that must be shown was seen last."""
        self._begin()

    def _begin(self) -> None:
        self._engine = ""
        self._opened = False
        self._first = self._clock.now
        self._spans = Spans()
        self._shards: Progress | None = None
        self._read: set[str] = set()
        """Ranks whose weights are done."""
        self._budget: int | None = None
        self._pools: dict[str, int] = {}
        self._tune = ""
        self._tune_began: float | None = None
        self._tune_anew = False
        self._faults = Faults()
        self._trace = Trace()
        self._ended = False
        self._said = ""
        self._needles = self._patterns.needles

    # Lines

    def take(self, wall: float | None, text: str) -> None:
        """One line, stamped by the log's keeper (Unix seconds) or not. Never raises, whatever the text."""
        self._lines += 1
        if len(text) > LOOKED_AT and "\r" not in text:
            text = text[:LOOKED_AT]
        if is_access(text):
            return
        text = line(text, LOOKED_AT)
        at = self._clock.stamp(wall, text)
        if at is not None:
            self._first = at if self._first is None else self._first
            self._spans.settle(at)
        if text:
            self._said = text
        if self._trace.open or any(map(text.__contains__, self._needles)):
            self._look(at, text)

    def growing(self, text: str) -> None:
        """The line that has not ended yet: a bar that is drawn over and over shows how far it has come."""
        if "% Completed" in text:
            self._bar(None, line(text, LOOKED_AT))

    def answered(self, at: float) -> None:
        """The health endpoint answered 200 at Unix time `at` of the host's clock: it is ready whatever the log says."""
        self._come_up(at)

    def over(self) -> None:
        """No line will come any more, as at the end of a captured file: an exception that stands there counts."""
        if not self.ready:
            self._faults.over(self._lines)

    def ended(self) -> None:
        """The process is over, and nobody asked for that."""
        self._faults.ending = self._ended = True

    # What a line means

    def _look(self, at: float | None, text: str) -> None:
        head = read_head(text)
        if not self._engine and _VLLM_HEAD.match(text):
            self._engine = VLLM
        if (found := self._trace.take(head)) and not head.quiet:
            self._faults.raised(found, text, self._lines)
        if any(ending in text for ending in ENDINGS):
            self._faults.ending = True
        for literal, parts, shows in self._patterns.shows:
            if literal in text and held(parts, text) is not None:
                self._shown[shows.name] = self._lines
        for literal, parts, mark in self._patterns.marks:
            if literal in text and (stars := held(parts, text)) is not None:
                self._mark(at, head, mark, stars)
        if "% Completed" in text:
            self._bar(at, text)
        # last: a line may be the first of a phase and say that it fails
        for literal, parts, fails in self._patterns.fails:
            if literal in text and (stars := held(parts, text)) is not None:
                self._faults.named(fails, stars, head, text)
                break

    def _mark(self, at: float | None, head: Head, mark: Mark, stars: tuple[str, ...]) -> None:
        if mark.says is Says.OPENS:
            self._open()
        elif self.ready:
            return
        if mark.engine and not self._engine:
            self._engine = mark.engine
        phase = self._meant(head, mark)
        if phase is not None and not mark.ends:
            self._enter(phase, at, head.who)
        span = self._spans.last if mark.phase is None else self._spans.of(mark.phase)
        self._tell(at, head, mark, stars)
        if span is not None:
            span.done = span.done or mark.ends
            if mark.detail:
                span.detail = line(filled(mark.detail, stars), 120)

    def _meant(self, head: Head, mark: Mark) -> PhaseName | None:
        """The phase that a line speaks of, in the light of what came before."""
        if mark.says is Says.LOADS and head.who in self._read:
            return PhaseName.DRAFT
        if mark.says is Says.DRAFT and head.who not in self._read:
            return None
        if mark.says is Says.LISTENS and self._named_engine == VLLM:
            return PhaseName.READY
        return mark.phase

    def _tell(self, at: float | None, head: Head, mark: Mark, stars: tuple[str, ...]) -> None:
        number = _number(stars[0]) if stars else None
        if mark.says is Says.WEIGHTS_READ and len(self._read) < MOST_ENGINES:
            self._read.add(head.who)
        elif mark.says is Says.KV_BUDGET:
            self._budget = number if number is not None else self._budget
        elif mark.says is Says.KV_TOKENS and number is not None:
            tag = found[0] if (found := _TAG.search(head.who)) else ""
            if tag in self._pools or len(self._pools) < MOST_ENGINES:
                self._pools[tag] = number
        elif mark.says is Says.TUNE_ANEW:
            self._tune_anew = True
        elif mark.says is Says.TUNE_LOADED and number is not None:
            self._tune, self._tune_detail = "hit", f"hit, {number} configs"
        elif mark.says is Says.TUNE_BEGINS and not self._tune:
            self._tune, self._tune_began = "running", self._clock.now
        elif mark.says is Says.TUNE_ENDS and self._tune == "running":
            self._tune = self._tuned(self._clock.now) or "done"

    def _open(self) -> None:
        """An engine's first words. Behind a start that had come further, or had failed, they are those of a restart."""
        further = self._spans.reached(PhaseName.WEIGHTS) or self._faults.ending or self._faults.found(False)
        if further:
            fresh = {name: at for name, at in self._shown.items() if self._lines - at <= FRESH_LINES}
            self._begin()
            self._shown = fresh
        self._opened = True

    def _enter(self, phase: PhaseName, at: float | None, who: str) -> None:
        if phase is PhaseName.READY:
            self._come_up(at)
        elif self._spans.enter(phase, at):
            self._faults.went_on(who)
            if phase is PhaseName.DRAFT:
                self._shards = None

    def _come_up(self, at: float | None) -> None:
        # where the line has no stamp: nothing is known to happen between the line before and this one
        if not self.ready and self._spans.enter(PhaseName.READY, self._clock.now if at is None else at):
            self._faults.came_up()
            self._needles = self._patterns.late

    def _bar(self, at: float | None, text: str) -> None:
        bar = loading_progress([text])
        phase = self._spans.phase
        if bar is None or self.ready or (phase is not PhaseName.DRAFT and self._spans.reached(PhaseName.POST_PROCESS)):
            return
        if phase is not PhaseName.DRAFT:
            self._enter(PhaseName.WEIGHTS, at, "")
        span = self._spans.last
        self._shards = bar
        if span is not None:
            span.detail = bar.text
        if bar.done == bar.total and phase is not PhaseName.DRAFT:
            self._enter(PhaseName.POST_PROCESS, at, "")

    # What is known

    @property
    def ready(self) -> bool:
        """It is up, and lines tell nothing more but its end."""
        return self._spans.phase is PhaseName.READY

    @property
    def _named_engine(self) -> str:
        return self._engine or self._words.engine

    @property
    def _whole(self) -> bool:
        """The log is known from the start's first line on."""
        soon = self._started is not None and self._first is not None and self._first - self._started <= WHOLE_S
        return self._opened or soon

    def boot(self, now: float | None = None) -> Boot:
        """The start so far. `now` is Unix seconds by the host's clock: with it silence is told from work."""
        now = now if now is not None and isfinite(now) else None
        ready = self.ready
        missing = self._missing()
        absolute = self._clock.absolute
        newest = self._clock.now
        phases = tuple(self._phase(span, span is self._spans.last and not ready, now) for span in self._spans.all)
        return Boot(
            engine=self._named_engine,
            phases=phases,
            now=None if ready else self._spans.phase,
            began=self._first if absolute else None,
            ready=phases[-1].began if ready else None,
            shards=None if ready else self._shards,
            kv_budget=self._budget,
            kv_tokens=sum(self._pools.values()) if self._pools else None,
            autotune=self._autotune(now),
            failure=self._faults.found(ready) or (None if ready else self._other(missing, now)),
            missing=tuple(item.name for item in missing),
            newest=newest if absolute else None,
            lines=self._lines,
            warnings=tuple(self._faults.warnings),
            seconds=None if newest is None or self._first is None else newest - self._first,
            ended=self._ended,
        )

    def _phase(self, span: Span, runs: bool, now: float | None) -> Phase:
        newest = self._clock.now
        began = newest if span.began is None else span.began
        ended = None if runs else began if span.phase is PhaseName.READY else span.ended
        if not runs and ended is None:
            ended = newest
        until = newest if ended is None else ended
        absolute = self._clock.absolute
        return Phase(
            name=span.phase,
            began=began if absolute else None,
            ended=ended if absolute else None,
            detail=self._detail(span, now),
            seconds=None if began is None or until is None else max(0.0, until - began),
        )

    def _detail(self, span: Span, now: float | None) -> str:
        if span.phase is PhaseName.KV_POOL and self._pools:
            room = f" of {_spaced(self._budget)}" if self._budget else ""
            return f"{_spaced(sum(self._pools.values()))}{room} tokens"
        if span.phase is PhaseName.AUTOTUNE:
            tune = self._autotune(now)
            anew = ", tuned anew: the ranks' caches disagree" if self._tune_anew else ""
            return (self._tune_detail if tune == "hit" else tune) + anew
        return span.detail

    def _autotune(self, now: float | None) -> str:
        if self._tune != "running":
            return self._tune
        newest = self._clock.now
        if now is not None and self._clock.absolute:
            newest = now if newest is None else max(now, newest)
        return self._tuned(newest) or "running"

    def _tuned(self, until: float | None) -> str:
        began = self._tune_began
        return "missed" if began is not None and until is not None and until - began >= TUNE_LIMIT_S else ""

    def _missing(self) -> tuple[Shows, ...]:
        if not self._whole:
            return ()
        return tuple(
            item for item in self._words.always if item.name not in self._shown and self._spans.reached(item.by)
        )

    def _other(self, missing: tuple[Shows, ...], now: float | None) -> BootFailure | None:
        """What no line says: something that had to be shown and was not, silence, an end without a word."""
        for item in missing:
            if item.cause:
                return BootFailure(line(item.cause, 300), "", False, line(item.advice, 300))
        if self._ended:
            phase = f" in {self._spans.phase}" if self._spans.phase else ""
            return BootFailure(f"ended{phase} {NO_WORD}", line(self._said, 300), False, "see how it exited")
        span, newest = self._spans.last, self._clock.now
        if now is None or span is None or newest is None or span.done or not self._clock.absolute:
            return None
        for silence in (*self._words.silences, *SILENCES):
            if silence.phase is span.phase:
                if now - newest < silence.after:
                    return None
                cause = f"{silence.cause}: silent for {int(now - newest)} s"
                return BootFailure(line(cause, 300), line(self._said, 300), silence.heals, line(silence.advice, 300))
        return None


def _number(text: str) -> int | None:
    match = _NUMBER.match(text)
    return int(match[1].replace(",", "")) if match else None


def _spaced(number: int | None) -> str:
    return "" if number is None else f"{number:,}".replace(",", " ")


_KEPT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})) ?")
"""What `docker logs --timestamps` puts in front (RFC 3339)."""
_FULL = re.compile(r"(?:^|[\[ ])([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2})", re.MULTILINE)


def read_boot(
    text: str, words: BootWords = NO_WORDS, *, started: float | None = None, now: float | None = None
) -> Boot:
    """A captured log as it stands, with or without Docker's stamps; times as in `BootReader`."""
    near = now if started is None else started
    if near is None and (full := _FULL.search(text)):
        near = rfc3339(f"{full[1]}T{full[2]}Z")
    reader = BootReader(words, started=started, near=near)
    for row in text.split("\n"):
        stamp = _KEPT.match(row)
        wall = rfc3339(stamp[1]) if stamp else None
        if row:
            reader.take(wall, row[stamp.end() :] if stamp and wall is not None else row)
    reader.over()
    return reader.boot(now)


__all__ = ["SGLANG", "VLLM", "BootReader", "read_boot"]
