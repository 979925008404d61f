"""The watchdog's pane: whether it would act if the engine died now, and who else may."""

from __future__ import annotations

from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import Severity
from widgets import format as fmt
from widgets.ages import NO_AGE, AgeMark, age_room, mark, pulse, shown
from widgets.empty import one_line, say_unread, unfilled
from widgets.glance import Glance
from widgets.ink import BRIGHT, DIM, TEXT, Ink, Row, ink_of
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section, wrap
from widgets.slots import NUMBERS

Pieces = tuple[tuple[str, Ink], ...]

SEVERITY = {
    WatchdogState.STARTING: Severity.INFO,
    WatchdogState.BUSY: Severity.INFO,
    WatchdogState.IN_FLIGHT: Severity.INFO,
    WatchdogState.CHECKING: Severity.LOOK,
    WatchdogState.RECOVERY: Severity.LOOK,
    WatchdogState.PAUSED: Severity.LOOK,
    WatchdogState.OFF: Severity.LOOK,
    WatchdogState.STANDING_DOWN: Severity.LOOK,
    WatchdogState.UNKNOWN: Severity.LOOK,
    WatchdogState.GAVE_UP: Severity.ACT,
    WatchdogState.FAILED: Severity.ACT,
    WatchdogState.DEAD_LOCK: Severity.ACT,
    WatchdogState.TWO: Severity.ACT,
    WatchdogState.REUSED_PID: Severity.ACT,
}
"""How loud each state is; what is not here is as it should be."""
PROTECTS = {
    True: "would act if the engine died now",
    False: "would not act if the engine died now",
    None: "not known whether it would act",
}
_PANE = NUMBERS["watchdog"]
_MISSING = "The recipe names no watchdog: nothing of the fleet's own restarts this lane."
_FILLS = "Fills with a `watchdog` table in the lane's recipe."
_KINDS = {"log": "pid, lock and log", "systemd": "systemd unit and flags"}
_LABEL = 10


class WatchdogPane(Pane):
    """Reached by name."""

    NUMBER = _PANE
    NAME = "watchdog"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        lane = glance.lane
        if lane.watchdog is None:
            return lane.unfilled, lane.ranks
        return lane.watchdog, lane.unfilled, pulse(glance.now, lane.watchdog), _since(glance), _last_act(glance)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """State and since when, whether it protects, its last act, its rhythm, and who else may act."""
    reading = glance.lane.watchdog
    age = NO_AGE if reading is None else mark(reading, glance.now, word=True)
    if not glance.boxed and height == 1:
        return (_one_line(glance, age, width),)
    sheet = Sheet(glance, Title(_PANE, "watchdog", age), width, height)
    value, dim = (None, True) if reading is None else shown(reading, glance.now)
    if value is None:
        say_unread(sheet, reading, _MISSING, _FILLS, "watchdog")
        if reading is None and (words := _restarts(glance)):
            sheet.say(words)
        return sheet.done()
    _state(sheet, value, dim=dim)
    if sheet.left_over >= 4 or not value.last_act:
        _labelled(sheet, "protects", ((PROTECTS[value.protecting], DIM if value.protecting else TEXT),))
    _act(sheet, value, dim=dim)
    _rhythm(sheet, value, dim=dim)
    _others(sheet, value.competing)
    for words in unfilled(glance, "watchdog"):
        if sheet.left_over:
            sheet.say(words)
    return sheet.done()


def severity_of(value: Watchdog) -> Severity:
    """Grey, blue, orange or red."""
    return SEVERITY.get(value.state, Severity.NORMAL)


def _state(sheet: Sheet, value: Watchdog, *, dim: bool) -> None:
    """`ARMED` with its words and, at the right, since when. What is too long goes on below."""
    glance = sheet.glance
    severity = severity_of(value)
    line = sheet.line()
    since = _since(glance)
    right: Pieces = (("for", DIM), (since, TEXT)) if since else ()
    edge = line.words_right(sheet.right, *right, start=sheet.left + 20) - 2 if right else sheet.right
    word = f"{glance.signs.of(severity)} {value.state.value.upper()}".strip()
    column = line.put(sheet.left, word, DIM if dim else ink_of(severity), to=edge) + 1
    if value.attempt is not None:
        number, of = value.attempt
        column = line.words(column, (str(number), BRIGHT), ("of", DIM), (str(of), TEXT), to=edge) + 1
    said = value.words.strip()
    if said.lower().startswith(value.state.value):
        said = said[len(value.state.value) :].lstrip(" ,:;")
    parts = wrap(said, edge - column, sheet.right - sheet.left)
    if len(parts) > 1 and sheet.left_over >= 4 + len(parts) - 1:
        line.put(column, parts[0], TEXT, to=edge)
        sheet.say(" ".join(parts[1:]), ink=TEXT)
    else:
        line.put(column, said, TEXT, to=edge)


def _labelled(sheet: Sheet, label: str, pieces: Pieces, right: Pieces = ()) -> None:
    line = sheet.line()
    line.put(sheet.left, label, DIM)
    edge = line.words_right(sheet.right, *right, start=sheet.left + _LABEL + 10) - 2 if right else sheet.right
    line.words(sheet.left + _LABEL, *pieces, to=edge)


def _act(sheet: Sheet, value: Watchdog, *, dim: bool) -> None:
    ago = _last_act(sheet.glance)
    right: Pieces = ((ago, TEXT), ("ago", DIM)) if ago else ()
    if value.last_act:
        _labelled(sheet, "last act", ((value.last_act, DIM if dim else TEXT),), right)
    else:
        _labelled(sheet, "last act", (("none on record", DIM),), right)


def _rhythm(sheet: Sheet, value: Watchdog, *, dim: bool) -> None:
    every = fmt.NONE if value.next_check is None else fmt.seconds(value.next_check)
    who: list[tuple[str, Ink]] = []
    if value.kind:
        who += [(_KINDS.get(value.kind, value.kind), DIM)]
    if value.host:
        who += [("on", DIM), (value.host, TEXT)]
    if value.pid is not None:
        who += [("pid", DIM), (str(value.pid), TEXT)]
        who += [("not its own", Ink("look"))] if value.state is WatchdogState.REUSED_PID else []
    if value.instances > 1:
        who += [(f"{value.instances} instances", Ink("look"))]
    _labelled(sheet, "checks", (("every", DIM), (every, DIM if dim else TEXT), ("s", DIM)), tuple(who))


def _others(sheet: Sheet, competing: tuple[str, ...]) -> None:
    """Restart policies, autoheal, timers: they act whatever this watchdog does."""
    if not sheet.left_over:
        return
    found = [words for words in competing if sheet.glance.matches(words)]
    if not competing:
        _labelled(sheet, "also acts", (("nobody else was seen", DIM),))
        return
    skip = min(sheet.glance.scrolled(_PANE), max(0, len(found) - 1))
    for number, words in enumerate(found[skip:]):
        if not sheet.left_over:
            return
        left = len(found) - skip - number - 1
        more: Pieces = ((f"+{left}", TEXT),) if left and sheet.left_over == 1 else ()
        _labelled(sheet, "" if number else "also acts", ((words, TEXT),), more)


def _restarts(glance: Glance) -> str:
    """What Docker does by itself where there is no watchdog."""
    policies = sorted({rank.container.restart_policy or "no" for rank in glance.lane.ranks if rank.container})
    if not policies:
        return ""
    said = ", ".join(f"restart={policy}" for policy in policies)
    return f"Docker alone acts: {said}." if policies != ["no"] else "Docker does not restart it either: restart=no."


def _since(glance: Glance) -> str:
    """How long it has been in its state, by its host's clock."""
    value = None if glance.lane.watchdog is None else glance.lane.watchdog.value
    if value is None or value.since is None:
        return ""
    return fmt.duration(glance.host_wall(value.host) - value.since)


def _last_act(glance: Glance) -> str:
    value = None if glance.lane.watchdog is None else glance.lane.watchdog.value
    if value is None or value.last_act_at is None:
        return ""
    return fmt.age(glance.host_wall(value.host) - value.last_act_at)


def _one_line(glance: Glance, age: AgeMark, width: int) -> Row:
    line = section(glance, Title(_PANE, "watchdog", age), width)
    edge = width - 1 - age_room(age.text) - 1
    reading = glance.lane.watchdog
    value, dim = (None, True) if reading is None else shown(reading, glance.now)
    if value is None:
        said = _restarts(glance) if reading is None else ""
        line.put(11, said or one_line(glance, reading, _MISSING, "watchdog"), DIM, to=edge)
        return line.build()
    severity = severity_of(value)
    sign = glance.signs.of(severity) if severity is not Severity.NORMAL else ""
    word = f"{sign} {value.state.value.upper()}".strip()
    after = line.put(11, word, DIM if dim else ink_of(severity), to=edge) + 1
    said = value.words if not value.words.lower().startswith(value.state.value) else ""
    pieces: list[tuple[str, Ink]] = [(said, TEXT)]
    if since := _since(glance):
        pieces += [("for", DIM), (since, TEXT)]
    if ago := _last_act(glance):
        pieces += [(" last act", DIM), (ago, TEXT), ("ago", DIM)]
    line.words(after, *pieces, to=edge)
    return line.build()
