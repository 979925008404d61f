"""The systemd kind: a unit that runs the watchdog, and flag files that make it pause or say that it gave up. Pure.

Only `inactive` of a unit that is there is disarmed; an unreadable bus is unknown, never off. An active unit with a
flag protects nothing, and gave up goes before paused: removing the pause flag would not arm it.
"""

from __future__ import annotations

import re

from console.readings.look import Answer
from console.readings.units import Unit, Units
from console.readings.watchdog_log import Stamp, Story, overdue, parse_stamp, read_story, span, there, why_not, written
from console.readings.watchdog_types import Watchdog, WatchdogSpec, WatchdogState, protecting, short_of
from console.sanitize import line, word

_MOVING = ("activating", "deactivating", "reloading", "refreshing")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_TOLD = (WatchdogState.BUSY, WatchdogState.CHECKING, WatchdogState.RECOVERY, WatchdogState.STARTING)
"""What the log may add to an active unit without flags; flags and unit say the rest."""


def read(
    spec: WatchdogSpec,
    *,
    units: Units | None,
    pause: Answer | None,
    gaveup: Answer | None,
    log: Answer | None,
    now: float,
    offset: float | None,
) -> Watchdog:
    """See `console/readings/watchdog.py:read_watchdog`."""
    story = read_story(spec.says, log, now) if log is not None else Story()
    unit = units.unit(spec.unit) if units is not None else None
    made = _Maker(spec, story, unit, offset)
    if units is None:
        return made(WatchdogState.UNKNOWN, why="unit not read yet")
    if units.problem:
        return made(WatchdogState.UNKNOWN, why=word(units.problem, 120))
    if unit is None:
        return made(WatchdogState.UNKNOWN, why="unit not answered for")
    if (state := _not_active(unit)) is not None:
        return made(state, why=_why(unit), detail=_unit_words(spec, unit, gaveup, now), since=unit.since)
    return _flagged(made, spec, pause, gaveup) or _active(made, story, log, now)


def _not_active(unit: Unit) -> WatchdogState | None:
    """The state of a unit that is not simply active; None for one that is."""
    if unit.load == "not-found":
        return WatchdogState.UNKNOWN
    if unit.active in _MOVING:
        return WatchdogState.IN_FLIGHT
    if unit.active == "failed":
        return WatchdogState.FAILED
    if unit.active == "inactive":
        return WatchdogState.OFF
    running = unit.active == "active" and unit.sub in ("", "running", "start", "start-post", "reload")
    return None if running else WatchdogState.UNKNOWN


def _why(unit: Unit) -> str:
    """Why the state of a unit is unknown."""
    if unit.load == "not-found":
        return "no such unit"
    sub = f" ({word(unit.sub, 30)})" if unit.sub else ""
    return f"unit is {word(unit.active, 30) or 'in no state'}{sub}"


def _unit_words(spec: WatchdogSpec, unit: Unit, gaveup: Answer | None, now: float) -> str:
    if unit.load == "not-found":
        return word(spec.unit, 80)
    parts = [f"{word(unit.name, 80)} is {word(unit.sub or unit.active, 30)}"]
    if unit.load == "masked":
        parts.append("masked")
    if unit.result not in ("", "success"):
        parts.append(f"result {word(unit.result, 40)}")
    if there(gaveup):
        parts.append("it gave up before: its flag is still there")
    if late := overdue_words(unit, now):
        parts.append(late)
    return ", ".join(parts)


def overdue_words(unit: Unit, now: float) -> str:
    """Of a timer that stands still past its time: `was due 17 min ago, runs at once when it is started`; else ''."""
    if unit.due is None or unit.due > now:
        return ""
    return f"was due {span(now - unit.due)} ago, runs at once when it is started"


def _flagged(made: _Maker, spec: WatchdogSpec, pause: Answer | None, gaveup: Answer | None) -> Watchdog | None:
    """What the flags say about an active unit; None where no flag is there."""
    gave_up = there(gaveup) if spec.gaveup_flag else False
    paused = there(pause) if spec.pause_flag else False
    if gave_up:
        text, since = _flag_text(gaveup)
        detail = "; ".join(part for part in (text, spec.gave_up) if part)
        return made(WatchdogState.GAVE_UP, detail=detail, since=since)
    if paused:
        text, since = _flag_text(pause)
        return made(WatchdogState.PAUSED, detail=text, since=since)
    for path, there_is, answer in ((spec.gaveup_flag, gave_up, gaveup), (spec.pause_flag, paused, pause)):
        if there_is is None:
            return made(WatchdogState.UNKNOWN, why=f"flag {path}: {why_not(answer)}")
    return None


def _flag_text(flag: Answer | None) -> tuple[str, float | None]:
    """What a flag file says, and when: by the time in its text, else by the file's own."""
    if flag is None:
        return "", None
    text = word(flag.body, 160)
    match = _TIME.search(text)
    stamp = parse_stamp(text[match.start() :]) if match else None
    return text, stamp.seconds if stamp is not None and stamp.zoned else written(flag)


def _active(made: _Maker, story: Story, log: Answer | None, now: float) -> Watchdog:
    """An active unit without flags: armed, or what the end of its log adds to that."""
    if story.state not in _TOLD or story.state is None:
        return made(WatchdogState.ARMED)
    last = written(log) or made.unix(story.newest)
    if (silence := overdue(story, last, now, made.spec.interval)) is not None:
        words = f"silent for {span(silence)} while {short_of(story.state, story.attempt)}"
        return made(WatchdogState.UNKNOWN, why=words, detail=story.text)
    return made(story.state, detail=story.text, told=True)


class _Maker:
    """Puts a Watchdog together from what does not change."""

    def __init__(self, spec: WatchdogSpec, story: Story, unit: Unit | None, offset: float | None) -> None:
        self.spec, self.story, self.unit, self.offset = spec, story, unit, offset

    def unix(self, stamp: Stamp | None) -> float | None:
        return stamp.unix(self.offset) if stamp is not None else None

    def __call__(
        self,
        state: WatchdogState,
        *,
        why: str = "",
        detail: str = "",
        since: float | None = None,
        told: bool = False,
    ) -> Watchdog:
        story, unit = self.story, self.unit
        attempt = story.attempt if told else None
        short = short_of(state, attempt, why)
        running = unit is not None and unit.active == "active" and unit.main_pid not in (None, 0)
        return Watchdog(
            state,
            line(f"{short}: {detail}" if detail else short, 300),
            protecting(state),
            kind="systemd",
            host=self.spec.host,
            pid=unit.main_pid if running and unit is not None else None,
            since=self.unix(story.at) if told else since,
            last_act=story.act,
            last_act_at=self.unix(story.act_at),
            attempt=attempt,
            next_check=story.every or self.spec.interval,
            instances=int(running),
            short=short,
        )
