"""Row 0: fleet and lane, what kind of fleet, the switch window, who, how much is fresh, the clock. Pure."""

from __future__ import annotations

from console.actions.underway import acting_of, head_now
from console.readings.quality import Quality, Reading
from console.snapshot import Severity, Snapshot
from widgets import format as fmt
from widgets.barparts import chip, exactly
from widgets.cells import Line, measure
from widgets.glance import Glance, LaneGlance
from widgets.ink import (
    BOLD,
    BRIGHT,
    CHIP,
    CHIP_ACT,
    CHIP_INFO,
    CHIP_KEY,
    CHIP_LOOK,
    DIM,
    LOOK,
    TEXT,
    WORDS,
    Ink,
    Row,
    ink_of,
    loudness,
)
from widgets.pane import Bar

_FRESH = (Quality.LIVE, Quality.LATE)


class HeaderBar(Bar):
    """Row 0: fleet and lane, what kind of fleet, who, how much is fresh, the clock."""

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        snapshot = glance.snapshot
        lanes = (glance.lanes, glance.lane.name, glance.lane.lane.served)
        state = (snapshot.rehearsal, snapshot.fleet.name, snapshot.fleet.production, _held(glance))
        return *lanes, *state, fresh(snapshot), int(glance.wall), window_words(glance), who(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `header`."""
        return exactly((header(glance, width),), width, height)


def fresh(snapshot: Snapshot) -> tuple[int, int]:
    """How many readings are current, of how many that are asked for: node memory, containers, health and scrape."""
    readings: list[Reading[object]] = []
    for host in snapshot.hosts:
        readings.append(host.memory)
        configured = snapshot.fleet.hosts.get(host.name)
        if configured is None or configured.docker:
            readings.append(host.containers)
    for lane in snapshot.lanes:
        readings += [lane.health, lane.throughput]
    current = sum(1 for r in readings if not r.error and r.quality(snapshot.now) in _FRESH)
    return current, len(readings)


def header(glance: Glance, width: int) -> Row:
    """`spark4 / dsv41  PROD  deepseek-v4.1-flash      no window   by ana   9 of 9 fresh   21:55:10Z`."""
    small = width < 120
    snapshot, fleet = glance.snapshot, glance.snapshot.fleet
    line = Line(width, glance.signs)
    gap = 2 if small else 3
    name = f"{fleet.name}/{glance.lane.name}" if small else f"{fleet.name} / {glance.lane.name}"
    word, ink = _kind(snapshot)
    wanted = measure(name) + len(word) + 5
    current, asked = fresh(snapshot)
    number = f"{current} of {asked}"
    start = line.right(width - 1, fmt.utc(glance.wall), BRIGHT) - (1 if small else gap)
    start = line.words_right(start, (number, BRIGHT if current == asked else LOOK), ("fresh", DIM)) - gap
    operator = who(glance)
    if operator != "-" and start > 50:
        start = line.words_right(start, ("" if small else "by", DIM), (operator, TEXT), start=start - 19) - gap
    if said := _held(glance):
        wide = len(said) + (0 if glance.no_colour else 2)
        chip(line, start - wide, said, CHIP_LOOK, glance)
        start -= wide + gap
    else:
        start = _window(line, glance, start, wanted + gap) - gap
    after = line.put(1, name, BOLD, to=start - len(word) - 4) + (1 if small else 2)
    if word:
        after = chip(line, after, word, ink, glance) + 2
    after = _other_lanes(line, glance, after, start)
    if not small and glance.lane.lane.served:
        line.put(after, glance.lane.lane.served, DIM, to=start)
    return line.build()


def _window(line: Line, glance: Glance, edge: int, wanted: int) -> int:
    """The chip of the switch window, right-aligned before `edge`; its first column. Its whole length gives way to the
    lane's name, which is the target of every key, where there are no `wanted` columns before it."""
    words, ink = window_words(glance)
    if not words:
        return line.right(edge, "no window", DIM)
    if edge - measure(words) - 2 < wanted:
        words = words.partition(" of ")[0]
    start = edge - measure(words) - (0 if glance.no_colour else 2)
    chip(line, start, words, ink, glance)
    return start


def window_words(glance: Glance) -> tuple[str, Ink]:
    """`WINDOW 06:12 of 25:00`, or once its deadline has passed `OVERDUE 02:13`; '' where none is open."""
    acting = acting_of(glance.lane)
    window = acting.window if acting is not None else None
    if window is None:
        return "", DIM
    now = head_now(glance.snapshot, glance.lane)
    if now > window.deadline:
        return f"OVERDUE {_clock(now - window.deadline)}", CHIP_ACT
    return f"WINDOW {_clock(now - window.opened)} of {_clock(window.deadline - window.opened)}", CHIP


def _clock(seconds: float) -> str:
    """`06:12`; from an hour on `1h02m`."""
    whole = int(max(0.0, seconds))
    return f"{whole // 60:02}:{whole % 60:02}" if whole < 3600 else fmt.duration(whole)


def who(glance: Glance) -> str:
    """Who holds the lane; where nobody does, who sits at this console."""
    acting = acting_of(glance.lane)
    lease = acting.lease if acting is not None else None
    return lease.operator if lease is not None else glance.snapshot.fleet.operator_name()


def _held(glance: Glance) -> str:
    """`HELD 12s`: not PAUSED, which is what a lane is whose containers are paused."""
    return "" if glance.held is None else f"HELD {fmt.behind(glance.held)}"


def _kind(snapshot: Snapshot) -> tuple[str, Ink]:
    if snapshot.rehearsal:
        return "REHEARSAL", CHIP_INFO
    return ("PROD", CHIP_KEY) if snapshot.fleet.production else ("", TEXT)


def _other_lanes(line: Line, glance: Glance, column: int, limit: int) -> int:
    """Other lanes that are not in order: `1 other lane CRIT: station DOWN`, or as much of it as there is room for."""
    bad = [lane for lane in glance.lanes if lane.name != glance.lane.name and lane.severity in _BAD]
    if not bad:
        return column
    bad.sort(key=lambda lane: -loudness(lane.severity))
    worst, ink = bad[0], ink_of(bad[0].severity)
    room = limit - column - 2
    for text in _others_in_words(bad, glance.signs.of(worst.severity) or WORDS[worst.severity]):
        if measure(text) <= room:
            return line.put(column, text, ink) + 2
    # The name of the worst one may be cut, that there is one may not.
    return line.put(column, f"{WORDS[worst.severity]} {worst.name}", ink, to=max(column + 4, limit - 2)) + 2


_BAD = (Severity.LOOK, Severity.ACT)


def _others_in_words(bad: list[LaneGlance], sign: str) -> tuple[str, ...]:
    noun = "other lane" if len(bad) == 1 else "other lanes"
    named = ", ".join(f"{lane.name} {lane.word}".strip() for lane in bad)
    worst = f"{bad[0].name} {bad[0].word}".strip()
    more = f" +{len(bad) - 1}" if len(bad) > 1 else ""
    head = f"{len(bad)} {noun} {WORDS[bad[0].severity]}"
    return (f"{head}: {named}", f"{head}: {worst}{more}", f"{sign} {worst}{more}", f"{sign} {bad[0].name}{more}")
