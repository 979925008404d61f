"""Pane 4: the four lights of the lane apart, its requests and its boot."""

from __future__ import annotations

from typing import NamedTuple

from console.lamps import NO_STEP_SHOWN_S
from console.readings.answers import HttpAnswer, Transport
from console.readings.health import HttpVerdict, LaneState, Progress
from console.readings.quality import Quality, Reading
from console.readings.throughput import ScrapeVerdict
from console.snapshot import LaneView
from widgets import boots
from widgets import format as fmt
from widgets.ages import AgeMark, age_room, in_lane, mark, oldest, pulse, shown
from widgets.cells import Line
from widgets.glance import Glance
from widgets.ink import ACT, BOLD, BRIGHT, DIM, INFO, LOOK, TEXT, Ink, Row
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section

Pieces = tuple[tuple[str, Ink], ...]

_QUIET_STATES = (LaneState.SERVING, LaneState.IDLE, LaneState.BUSY)


class Light(NamedTuple):
    """One of the four lights in words."""

    name: str
    word: str
    ink: Ink
    rest: Pieces
    age: AgeMark


class LanePane(Pane):
    """Pane 4."""

    NUMBER = 4
    NAME = "lane"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        lane, containers = glance.lane, _container_readings(glance)
        readings = (lane.health, lane.throughput, lane.served, *containers, *_front_reading(lane))
        boot = lane.boot_progress
        told = None if boot is None else (fmt.duration(boot.elapsed), fmt.duration(boot.phase_elapsed), boot.late)
        seen = (lane.lane, lane.lights, lane.verdict, lane.boot, lane.boots, told)
        held = fmt.duration(glance.now - lane.state_since)
        return *seen, *readings, _up(glance), held, pulse(glance.now, *readings)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """Process, http, scrape, progress, requests, boot; one line where there is but one."""
    lane = glance.lane
    readings = (lane.health, lane.throughput)
    title = Title(4, f"lane {lane.name} :{lane.lane.port}", in_lane(oldest(readings, glance.now), lane))
    if not glance.boxed and height == 1:
        return (_one_line(glance, width),)
    sheet = Sheet(glance, title, width, height)
    front = _front(glance)
    apart = front is not None and sheet.room > 6
    for light in lights(glance):
        _light(sheet, light if apart or light.name != "http" else _with_front(light, front))
        if apart and front is not None and light.name == "http":
            _light(sheet, front)
    boot = boots.booting(lane) or boots.failure_of(lane) is not None
    taken = boots.phase_row(sheet, lane) if boot else False
    if not boot:
        _requests(sheet, glance)
    quiet = lane.verdict.state in _QUIET_STATES or boots.booting(lane)
    state_first = not quiet and sheet.left_over > 4
    if not taken and (boot or state_first or sheet.left_over <= boots.LEAST_ROWS + 1):
        _boot(sheet, glance)
    if state_first:
        _state(sheet, glance)
    boots.notes(sheet, lane)
    if sheet.left_over > boots.LEAST_ROWS:
        sheet.line()
        boots.history(sheet, glance)
    if quiet and sheet.left_over >= 2:
        _state(sheet, glance)
    return sheet.done()


def _light(sheet: Sheet, light: Light) -> None:
    line = sheet.line()
    line.put(sheet.left, light.name, DIM)
    line.right(sheet.right, light.age.text, light.age.ink, start=sheet.left + 15, age=True)
    edge = sheet.right - age_room(light.age.text) - 1
    after = line.put(sheet.left + 10, light.word, light.ink, to=edge)
    line.words(max(sheet.left + 15, after + 1), *light.rest, to=edge)


def _with_front(light: Light, front: Light | None) -> Light:
    """Where there is no row for the proxy, it stands in the engine's own row as soon as it is not well."""
    if front is None or front.ink in (BRIGHT, DIM):
        return light
    return light._replace(rest=(("front", DIM), (front.word, front.ink)))


def lights(glance: Glance) -> tuple[Light, Light, Light, Light]:
    """Process, http, scrape and progress, each by itself."""
    return (_process(glance), _http(glance), _scrape(glance), _progress(glance))


def _process(glance: Glance) -> Light:
    lane = glance.lane
    light = lane.lights.process
    age = oldest(_container_readings(glance), glance.now, word=False)
    noun = "ranks" if light.expected != 1 else "container"
    how_many: Pieces = ((str(light.running), TEXT), ("of", DIM), (f"{light.expected} {noun}", TEXT))
    if light.dead:
        more = f"+{len(light.dead) - 1}" if len(light.dead) > 1 else ""
        word = "dead" if not light.running else f"{light.running} of {light.expected}"
        return Light("process", word, LOOK, ((light.dead[0], TEXT), (more, DIM)), age)
    if light.paused:
        return Light("process", "paused", LOOK, ((", ".join(light.paused), TEXT),), age)
    if light.unknown or not light.expected:
        reason = light.unknown[0] if light.unknown else "not read yet"
        running = f"{light.running} of {light.expected}" if light.running else "unknown"
        return Light("process", running, TEXT, ((reason, DIM),), age)
    if light.running == light.expected:
        return Light("process", "up", BRIGHT, how_many, age)
    return Light("process", "down" if not light.running else "part", LOOK, how_many, age)


def _container_readings(glance: Glance) -> list[Reading[object]]:
    views = (glance.host(rank.host) for rank in glance.lane.ranks)
    return [view.containers for view in views if view is not None]


def _http(glance: Glance) -> Light:
    lane = glance.lane
    light, age = lane.lights.http, in_lane(mark(lane.health, glance.now), lane)
    said = _beyond(light.verdict.value, light.detail.removeprefix("status ").removeprefix(str(light.status)))
    often = f"{light.misses} in a row" if light.misses > 1 else ""
    misses: Pieces = ((said, DIM), (often, DIM))
    if light.verdict is HttpVerdict.OK:
        took: Pieces = () if light.took is None else (("in", DIM), *_took(light.took))
        return Light("http", str(light.status or 200), BRIGHT, took, age)
    if light.verdict in (HttpVerdict.UNKNOWN, HttpVerdict.UNREACHABLE):
        return Light("http", light.verdict.value, TEXT, ((light.detail or lane.health.error, DIM),), age)
    word = str(light.status) if light.status is not None else light.verdict.value
    return Light("http", word, _not_yet(lane), misses, age)


def _front_reading(lane: LaneView) -> tuple[Reading[HttpAnswer], ...]:
    return () if lane.front is None else (lane.front,)


def _front(glance: Glance) -> Light | None:
    """The proxy that clients come through, where the lane names one."""
    reading = glance.lane.front
    if reading is None:
        return None
    age = mark(reading, glance.now)
    answer, dim = shown(reading, glance.now)
    if answer is None:
        word = "unknown" if reading.error or reading.down_since is not None else "not read"
        return Light("front", word, LOOK if reading.error else TEXT, ((reading.error, DIM),), age)
    if answer.transport is not Transport.ANSWERED or answer.status is None:
        return Light("front", answer.transport.value, ACT, ((answer.detail, DIM),), age)
    good = answer.status < 500
    return Light("front", str(answer.status), (DIM if dim else BRIGHT) if good else ACT, (), age)


def _took(seconds: float) -> Pieces:
    if seconds < 0.095:
        return ((fmt.number(seconds * 1000), TEXT), ("ms", DIM))
    return ((fmt.seconds(seconds), TEXT), ("s", DIM))


def _scrape(glance: Glance) -> Light:
    lane = glance.lane
    light, age = lane.lights.scrape, in_lane(mark(lane.throughput, glance.now), lane)
    if light.verdict is ScrapeVerdict.OK:
        return Light("scrape", "ok", BRIGHT, ((fmt.count(light.series), TEXT), ("series", DIM)), age)
    if light.verdict is ScrapeVerdict.UNREACHABLE and lane.throughput.quality(glance.now) is Quality.ABSENT:
        return Light("scrape", "unknown", TEXT, ((light.detail or lane.throughput.error, DIM),), age)
    if light.verdict is ScrapeVerdict.UNREACHABLE:
        return Light("scrape", "unreachable", TEXT, ((light.detail or lane.throughput.error, DIM),), age)
    return Light(
        "scrape", light.verdict.value, _not_yet(lane), ((_beyond(light.verdict.value, light.detail), DIM),), age
    )


def _beyond(word: str, detail: str) -> str:
    """What the detail says that the light's own word does not."""
    said = detail.strip(" ,")
    return "" if said in (word, f"connection {word}") else said


def _not_yet(lane: LaneView) -> Ink:
    """A boot that answers nothing is as it should be."""
    return TEXT if lane.verdict.state is LaneState.BOOTING else LOOK


def _progress(glance: Glance) -> Light:
    lane = glance.lane
    light, age = lane.lights.progress, in_lane(mark(lane.throughput, glance.now), lane)
    steps: Pieces = () if light.steps is None else (("step", DIM), (fmt.count(light.steps), TEXT))
    held = light.frozen_for
    if light.progress is not Progress.FROZEN and held is not None and held >= NO_STEP_SHOWN_S:
        return Light("progress", f"no step {fmt.duration(held)}", LOOK, (), age)
    if light.progress is Progress.MOVING:
        return Light("progress", "yes", BRIGHT, steps, age)
    if light.progress is Progress.FROZEN:
        word = f"frozen {fmt.duration(held)}" if held is not None else "frozen"
        return Light("progress", word, LOOK, (), age)
    if light.progress is Progress.UNKNOWN:
        return Light("progress", "unknown", TEXT, (), age)
    return Light("progress", light.progress.value, TEXT, steps, age)


def _requests(sheet: Sheet, glance: Glance) -> None:
    value, dim = shown(glance.lane.throughput, glance.now)
    ink = DIM if dim else BRIGHT
    line = sheet.line()
    line.put(sheet.left, "requests", DIM)
    running, waiting = (value.running, value.waiting) if value else (None, None)
    after = line.words(sheet.left + 10, (fmt.count(running), ink), ("running", DIM), to=sheet.right)
    after = line.words(after + 3, (fmt.count(waiting), ink), ("queued", DIM), to=sheet.right)
    if value is not None and value.preemptions:
        line.words(after + 3, (fmt.count(value.preemptions), LOOK), ("preempted", DIM), to=sheet.right)


def _boot(sheet: Sheet, glance: Glance) -> None:
    lane = glance.lane
    line = sheet.line()
    line.put(sheet.left, "boot", DIM)
    process = lane.lights.process
    if boots.booting(lane):
        edge = line.words_right(sheet.right, *boots.left_pieces(glance), start=sheet.left + 40) - 2
        line.words(sheet.left + 10, *boots.elapsed_pieces(lane, _elapsed(glance)), to=edge)
        return
    if process.running == 0 and process.expected and not process.unknown:
        up: Pieces = (("not running", DIM),)
    elif process.started_at is None:
        up = (("start unknown", DIM),)
    else:
        up = (("up", DIM), (_up(glance), TEXT))
    after = line.words(sheet.left + 10, *up, to=sheet.right)
    usual, _ = boots.usual_words(lane)
    if after + 8 + len(usual) > sheet.right:
        usual = usual.partition("–")[0]
    words = (("usual", DIM), (usual, TEXT)) if usual else (("usual not known", DIM), ("", DIM))
    line.words(after + 2, *words, to=sheet.right)


def _elapsed(glance: Glance) -> float | None:
    """Seconds since the head's container was started."""
    started = glance.lane.lights.process.started_at
    return None if started is None else glance.host_wall(glance.lane.lane.head) - started


def _up(glance: Glance) -> str:
    return fmt.duration(_elapsed(glance))


def _state(sheet: Sheet, glance: Glance) -> None:
    """Where there is room: the verdict with its reason, and how long it has held."""
    lane = glance.lane
    sheet.line()
    line = sheet.line()
    line.put(sheet.left, "state", DIM)
    ink = BOLD if lane.verdict.state in _QUIET_STATES else INFO if lane.verdict.state in _CALM else LOOK
    after = line.put(sheet.left + 10, lane.verdict.word, ink, to=sheet.right)
    held = fmt.duration(glance.now - lane.state_since)
    line.words(after + 1, ("for", DIM), (held, TEXT), to=sheet.right)
    sheet.say(lane.verdict.why)
    if sheet.left_over:
        _model(sheet, lane, glance)


_CALM = (LaneState.BOOTING, LaneState.READY, LaneState.DRAINING, LaneState.UNKNOWN)


def _model(sheet: Sheet, lane: LaneView, glance: Glance) -> None:
    """The name that clients ask for, and who they are."""
    served, dim = shown(lane.served, glance.now)
    line = sheet.line()
    line.put(sheet.left, "serves", DIM)
    line.put(sheet.left + 10, served or fmt.NONE, DIM if dim else TEXT, to=sheet.right)
    if lane.lane.consumers and sheet.left_over:
        sheet.say("for " + ", ".join(lane.lane.consumers))


def _one_line(glance: Glance, width: int) -> Row:
    lane = glance.lane
    readings = (lane.health, lane.throughput)
    line = section(glance, Title(4, "engine", in_lane(oldest(readings, glance.now), lane)), width)
    process, http, scrape, progress = lights(glance)
    light = lane.lights.process
    unread = bool(light.unknown) and not light.running  # then nobody knows of any: that is not 0
    proc = process.word if unread else f"{light.running}/{light.expected}" if light.expected else fmt.NONE
    pieces: list[tuple[str, Ink]] = []
    steps = lane.lights.progress.steps
    step = fmt.count(steps) if lane.lights.progress.progress is Progress.MOVING else progress.word
    for name, word, ink in (
        ("proc", proc, process.ink),
        ("http", http.word, http.ink),
        ("scrape", scrape.word, scrape.ink),
        ("steps", step, progress.ink),
    ):
        pieces += [(name, DIM), (word, ink), (" ", DIM)]
    if boots.booting(lane) or boots.failure_of(lane) is not None:
        return _boot_line(line, glance, pieces[:6], width - 9)
    after = line.words(11, *pieces[:-1], to=width - 9)
    usual, _ = boots.usual_words(lane)
    if usual and after + 13 + len(usual) < width - 9:
        line.words(after + 2, ("boot usual", DIM), (usual, TEXT), to=width - 9)
    return line.build()


def _boot_line(line: Line, glance: Glance, pieces: list[tuple[str, Ink]], edge: int) -> Row:
    """Processes and http, then the boot in place of what cannot move yet."""
    lane = glance.lane
    after = line.words(11, *pieces[:-1], to=edge)
    failure = boots.failure_of(lane)
    if failure is not None:
        ink = LOOK if failure.heals else ACT
        line.words(after + 2, ("boot", DIM), ("FAILS" if failure.heals else "FAILED", ink), (failure.cause, TEXT),
                   to=edge)  # fmt: skip
    else:
        elapsed = boots.elapsed_pieces(lane, _elapsed(glance))
        short = tuple((text.partition("–")[0], ink) for text, ink in elapsed)
        line.words(after + 2, *boots.phase_pieces(lane)[:1], ("boot", DIM), *short, to=edge)
    return line.build()
