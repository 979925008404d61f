"""Pane 2 of a lane in named containers: which there are, who serves, what the others are."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from console.readings.containers import Container, Containers, ContainerState
from console.readings.quality import Reading
from widgets import format as fmt
from widgets.ages import AgeMark, mark, oldest, pulse, shown
from widgets.cells import Line, cut_middle
from widgets.glance import Glance
from widgets.ink import BRIGHT, DIM, LOOK, TEXT, Ink, Row
from widgets.pane import Pane
from widgets.sheet import Sheet, Title

RANK_DOWN = "rank is down"
_RUNS = (ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.RESTARTING)


@dataclass(frozen=True, slots=True)
class Entry:
    """One container of one host, with what it does."""

    host: str
    container: Container
    role: str
    dim: bool
    age: AgeMark


class ContainersPane(Pane):
    """Pane 2 where the lane runs in named containers."""

    NUMBER = 2
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
    """The lane's containers first, then what else its hosts hold."""
    readings = _readings(glance)
    sheet = Sheet(glance, Title(2, "containers", oldest((r for _, r in readings), glance.now)), width, height)
    entries = [e for e in entries_of(glance) if glance.matches(e.container.name, e.host, e.role)]
    problems = [f"{host}: {words}" for host, reading in readings if (words := _problem(reading, glance))]
    grid = _grid(sheet)
    if sheet.boxed:
        _heads(sheet.line(), grid)
    for problem in problems:
        sheet.line().put(sheet.left, problem, LOOK, to=sheet.right)
    room = sheet.left_over
    listed = entries if len(entries) <= room else entries[: max(0, room - 1)]
    several = len(readings) > 1
    for entry in listed:
        _entry(sheet.line(), grid, entry, glance, several=several)
    if sheet.left_over and entries:
        sheet.line().put(sheet.left, _summary(len(listed), len(entries)), DIM, to=sheet.right)
    elif not entries and not problems:
        sheet.say("No container was seen. This fills when Docker on the lane's hosts answers.")
    done = sheet.done()
    if sheet.boxed or not done:
        return done
    head = sheet.head_line(to=grid.role - 1)
    _heads(head, grid)
    return (head.build(), *done[1:])


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
        return (1, f"serves :{port}") if runs else (0, RANK_DOWN)
    if glob and fnmatchcase(container.name, glob):
        return 2, "runs" if runs else "retired"
    return 3, "other"


def crashed(container: Container) -> bool:
    """True for a container that ended, and not by a clean exit."""
    ended = container.state in (ContainerState.EXITED, ContainerState.DEAD)
    return ended and bool(container.oom_killed or container.exit_code)


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
    grow = max(0, min(20, sheet.width - 80))
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
    base = DIM if entry.dim or entry.role == "other" else TEXT
    name = f"{entry.host} {container.name}" if several else container.name
    name = cut_middle(glance.signs.words(name), grid.role - grid.name - 2, glance.signs.dots)
    line.put(grid.name, name, base, to=grid.role - 1)
    line.put(grid.role, entry.role, BRIGHT if entry.role.startswith("serves") and not entry.dim else base,
             to=grid.state - 1)  # fmt: skip
    line.words(
        grid.state, *_state(container, base, glance.wall, rank_down=entry.role == RANK_DOWN), to=grid.revision - 1
    )
    line.put(grid.revision, fmt.revision(container.revision), base, to=grid.restart - 1)
    edge = line.width - (2 if glance.boxed else 1)
    age = line.right(edge, entry.age.text, entry.age.ink, start=grid.restart, age=True)
    restart = container.restart_policy or "no"
    if container.restart_count:
        restart += f", {container.restart_count} restarts"
    line.put(grid.restart, restart, DIM, to=age - 1)


def _state(container: Container, base: Ink, wall: float, *, rank_down: bool) -> tuple[tuple[str, Ink], ...]:
    """`running 12 d`, `exited 0 12 d ago`, `exited 137 OOM-killed`."""
    if container.state in _RUNS:
        bad = container.state is not ContainerState.RUNNING or container.health == "unhealthy"
        word = "unhealthy" if container.health == "unhealthy" else container.state.value
        since = "" if container.started_at is None else fmt.duration(wall - container.started_at)
        return ((word, LOOK if bad else base), (since, DIM))
    code = "" if container.exit_code is None else f" {container.exit_code}"
    ago = "" if container.finished_at is None else f"{fmt.age(wall - container.finished_at)} ago"
    return ((f"{container.state.value}{code}", LOOK if rank_down or container.oom_killed else base), (ago, DIM))


def _summary(listed: int, total: int) -> str:
    count = f"{total} on these hosts" if listed == total else f"{listed} shown of {total} on these hosts"
    return f"{count}. The role is observed: who owns the port serves."
