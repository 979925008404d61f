"""The containers of a lane: which there are, who serves, what the others are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from console.readings.containers import Container, Containers, ContainerState
from console.readings.quality import Reading
from console.snapshot import RankView
from widgets import format as fmt
from widgets.ages import AgeMark, age_room, mark, oldest, pulse, shown
from widgets.cells import Line, cut_middle
from widgets.glance import Glance
from widgets.ink import BRIGHT, DIM, LOOK, STRONG, TEXT, TITLE_FOCUS, Ink, Row
from widgets.pane import Pane
from widgets.sheet import Sheet, Title, section
from widgets.slots import NUMBERS

_PANE = NUMBERS["containers"]
SERVES = "serves :"
RANK_DOWN = "rank is down"
OTHER = "other"
UP, UNHEALTHY, UNKNOWN, NO_CONTAINER = "up", "unhealthy", "unknown", "no container"
"""Words of a rank's cell, and of Docker's own health check."""
_ONE_LINE_AT = 12
"""The label is too long for values from 11 on."""
_RESTART_WIDER = 8
"""Cells that make `unless-stopped` whole; the first ones over 80 columns."""
_RUNS = (ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.RESTARTING)


@dataclass(frozen=True, slots=True)
class Entry:
    """One container of one host, with what it does."""

    host: str
    container: Container
    role: str
    dim: bool
    age: AgeMark

    @property
    def own(self) -> bool:
        """One of the lane's: it serves, did, or is named like it."""
        return self.role != OTHER


class ContainersPane(Pane):
    """The lane's containers."""

    NUMBER = _PANE
    NAME = "containers"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        lane = glance.lane
        readings = tuple(reading for _, reading in _readings(glance))
        return readings, lane.ranks, lane.lane, glance.wall // 1, pulse(glance.now, *readings)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """The lane's containers first, then what else its hosts hold; one line where there is but one."""
    readings = _readings(glance)
    title = Title(_PANE, "containers", oldest((r for _, r in readings), glance.now))
    if not glance.boxed and height == 1:
        return (_one_line(glance, title, width),)
    sheet = Sheet(glance, title, width, height)
    entries = [e for e in entries_of(glance) if glance.matches(e.container.name, e.host, e.role)]
    grid = _grid(sheet)
    if sheet.boxed:
        _heads(sheet.line(), grid)
    problems = _problems(glance)
    for problem in problems:
        sheet.line().put(sheet.left, problem, LOOK, to=sheet.right)
    for rank in _without_container(glance):
        _missing(sheet.line(), grid, rank, glance)
    left = sheet.left_over
    listed = entries if len(entries) <= left else entries[: max(1, left - 1)]
    several = len(readings) > 1
    for entry in listed:
        _entry(sheet.line(), grid, entry, glance, several=several)
    if sheet.left_over and entries:
        sheet.line().put(sheet.left, _summary(len(listed), len(entries)), DIM, to=sheet.right)
    elif not entries and not problems and not _without_container(glance):
        sheet.say(_why_empty(glance))
    done = sheet.done()
    if sheet.boxed or not done:
        return done
    head = sheet.head_line(to=grid.role - 1)
    _heads(head, grid)
    return (head.build(), *done[1:])


def _why_empty(glance: Glance) -> str:
    hidden = len(entries_of(glance))
    if glance.filter and hidden:
        return f"Nothing here holds /{glance.filter}: {hidden} hidden. Esc drops the filter."
    return "No container was seen. This fills when Docker on the lane's hosts answers."


def _without_container(glance: Glance) -> list[RankView]:
    return [r for r in glance.lane.ranks if r.word == NO_CONTAINER and glance.matches(r.host, RANK_DOWN)]


def _missing(line: Line, grid: _Grid, rank: RankView, glance: Glance) -> None:
    """A rank whose host answered and holds no container of the lane."""
    view = glance.host(rank.host)
    line.put(grid.name, rank.host, TEXT, to=grid.role - 1)
    line.put(grid.role, RANK_DOWN, TEXT, to=grid.state - 1)
    line.put(grid.state, NO_CONTAINER, LOOK, to=grid.revision - 1)
    for column in (grid.revision, grid.restart):
        line.put(column, fmt.NONE, DIM)
    if view is not None:
        age = mark(view.containers, glance.now)
        line.right(line.width - (2 if glance.boxed else 1), age.text, age.ink, start=grid.restart, age=True)


def _one_line(glance: Glance, title: Title, width: int) -> Row:
    """`4 of 4 up  sgldsv41  9f2c1a7  restart no`, or the first rank that is not up and why."""
    line = section(glance, title, width)
    line.put(1, title.name, TITLE_FOCUS if glance.focus == title.number else STRONG)
    edge = width - 1 - age_room(title.age.text) - 1
    ranks = glance.lane.ranks
    bad = [rank for rank in ranks if rank.word != UP or (rank.container and rank.container.health == UNHEALTHY)]
    known = [rank for rank in ranks if rank.word != UNKNOWN]
    up = sum(1 for rank in known if rank.word == UP)
    ink = TEXT if up == len(known) else LOOK
    count = (str(up) if known else fmt.NONE, ink), ("of", DIM), (f"{len(ranks)} up", TEXT)
    after = line.words(_ONE_LINE_AT, *count, to=edge) + 2
    if problems := _problems(glance):
        line.words(after, (problems[0], LOOK), (_more(problems), DIM), to=edge)
    elif bad and known:
        line.words(after, *_why(bad[0], glance), (_more(bad), DIM), to=edge)
    else:
        _alike(line, after, [rank.container for rank in ranks if rank.container], edge)
    return line.build()


def _why(rank: RankView, glance: Glance) -> tuple[tuple[str, Ink], ...]:
    container = rank.container
    if container is None or (container.state is ContainerState.RUNNING and rank.word != UP):
        return ((rank.host, TEXT), (rank.word, TEXT if rank.word == UNKNOWN else LOOK))
    meaning = container.exit_meaning.partition(":")[0]
    return ((rank.host, TEXT), *_state(container, TEXT, glance.host_wall(rank.host), rank_down=True), (meaning, DIM))


def _more(found: Sequence[object]) -> str:
    return f"+{len(found) - 1}" if len(found) > 1 else ""


def _alike(line: Line, column: int, found: list[Container], edge: int) -> None:
    """What all ranks have in common."""
    names = {item.name for item in found}
    revisions = {fmt.revision(item.revision) for item in found}
    policies = sorted({item.restart_policy or "no" for item in found})
    if len(names) == 1:
        column = line.put(column, names.pop(), TEXT, to=edge) + 2
    if len(revisions) == 1:
        column = line.put(column, revisions.pop(), TEXT, to=edge) + 2
    if policies:
        line.words(column, ("restart", DIM), (", ".join(policies), TEXT), to=edge)


def _problems(glance: Glance) -> list[str]:
    return [f"{host}: {words}" for host, reading in _readings(glance) if (words := _problem(reading, glance))]


def entries_of(glance: Glance) -> list[Entry]:
    """All containers of the lane's hosts: ranks that are down, those that serve, the lane's own, the rest."""
    lane = glance.lane
    serving = {rank.container.id for rank in lane.ranks if rank.container is not None}
    found: list[tuple[int, Entry]] = []
    for host, reading in _readings(glance):
        value, dim = shown(reading, glance.now)
        for container in value.items if value is not None else ():
            order, role = _role(container, lane.lane.port, lane.lane.containers, serving)
            found.append((order, Entry(host, container, role, dim, mark(reading, glance.now))))
    return [entry for _, entry in sorted(found, key=lambda pair: pair[0])]


def _role(container: Container, port: int, glob: str, serving: set[str]) -> tuple[int, str]:
    """The role is observed: who owns the port serves."""
    runs = container.state in _RUNS
    if container.id in serving:
        return (1, f"{SERVES}{port}") if runs else (0, RANK_DOWN)
    if glob and fnmatchcase(container.name, glob):
        return 2, "runs" if runs else "retired"
    return 3, OTHER


def crashed(container: Container) -> bool:
    """True for a container that ended, unless with exit 0 after a stop on record: engines exit 0 on fatal errors."""
    ended = container.state in (ContainerState.EXITED, ContainerState.DEAD)
    return ended and bool(container.oom_killed or container.exit_code or container.exit_unasked is not False)


def _readings(glance: Glance) -> list[tuple[str, Reading[Containers]]]:
    hosts = dict.fromkeys(rank.host for rank in glance.lane.ranks)
    views = ((name, glance.host(name)) for name in hosts)
    return [(name, view.containers) for name, view in views if view is not None]


def _problem(reading: Reading[Containers], glance: Glance) -> str:
    value, _ = shown(reading, glance.now)
    if value is None:
        return reading.error or ("UNREACHABLE" if reading.down_since is not None else "")
    problem: str = value.problem
    hint: str = value.hint
    return f"{problem} ({hint})" if problem and hint else problem


@dataclass(frozen=True, slots=True)
class _Grid:
    name: int
    role: int
    state: int
    revision: int
    restart: int


def _grid(sheet: Sheet) -> _Grid:
    if sheet.boxed:
        grow = max(0, min(30, sheet.width - 120))
        return _Grid(2, 43 + grow, 58 + grow, 77 + grow, 88 + grow)
    grow = max(0, min(20, sheet.width - 80 - _RESTART_WIDER))
    return _Grid(1, 24 + grow, 38 + grow, 57 + grow, 66 + grow)


def _heads(line: Line, grid: _Grid) -> None:
    boxed = grid.name == 2
    for column, word in (
        (grid.name, "name" if boxed else ""),
        (grid.role, "role"),
        (grid.state, "state"),
        (grid.revision, "revision"),
        (grid.restart, "restart"),
    ):
        line.put(column, word, DIM)
    line.right(line.width - (2 if boxed else 1), "age", DIM)


def _entry(line: Line, grid: _Grid, entry: Entry, glance: Glance, *, several: bool) -> None:
    container = entry.container
    base = DIM if entry.dim or entry.role == OTHER else TEXT
    name = f"{entry.host} {container.name}" if several else container.name
    name = cut_middle(glance.signs.words(name), grid.role - grid.name - 2, glance.signs.dots)
    line.put(grid.name, name, base, to=grid.role - 1)
    line.put(grid.role, entry.role, BRIGHT if entry.role.startswith("serves") and not entry.dim else base,
             to=grid.state - 1)  # fmt: skip
    state = _state(container, base, glance.host_wall(entry.host), rank_down=entry.role == RANK_DOWN)
    line.words(grid.state, *state, to=grid.revision - 1)
    line.put(grid.revision, fmt.revision(container.revision), base, to=grid.restart - 1)
    edge = line.width - (2 if glance.boxed else 1)
    line.right(edge, entry.age.text, entry.age.ink, start=grid.restart, age=True)
    restart = container.restart_policy or "no"
    if container.restart_count:
        restart += f", {container.restart_count} restarts"
    line.put(grid.restart, restart, DIM, to=edge - age_room(entry.age.text) - 1)


def _state(container: Container, base: Ink, wall: float, *, rank_down: bool) -> tuple[tuple[str, Ink], ...]:
    """`running 12 d`, `exited 0 12 d ago`, `exited 137 OOM-killed`."""
    if container.state in _RUNS:
        bad = container.state is not ContainerState.RUNNING or container.health == UNHEALTHY
        word = UNHEALTHY if container.health == UNHEALTHY else container.state.value
        since = "" if container.started_at is None else fmt.duration(wall - container.started_at)
        return ((word, LOOK if bad else base), (since, DIM))
    code = "" if container.exit_code is None else f" {container.exit_code}"
    ago = "" if container.finished_at is None else f"{fmt.age(wall - container.finished_at)} ago"
    return ((f"{container.state.value}{code}", LOOK if rank_down or container.oom_killed else base), (ago, DIM))


def _summary(listed: int, total: int) -> str:
    count = f"{total} on these hosts" if listed == total else f"{listed} shown of {total} on these hosts"
    return f"{count}. The role is observed: who owns the port serves."
