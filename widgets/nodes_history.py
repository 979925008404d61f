"""What the wide nodes pane adds: a second row a host and ten minutes of free memory."""

from __future__ import annotations

from console.readings.containers import Container, ContainerState
from console.snapshot import HostView, RankView
from widgets import format as fmt
from widgets.ages import shown
from widgets.cells import Line
from widgets.glance import Glance
from widgets.ink import DIM, TEXT
from widgets.nodes_grid import Grid
from widgets.plot import plot, resample, top_of

HISTORY = 600.0
"""Seconds of history."""


def second_line(line: Line, grid: Grid, view: HostView, rank: RankView | None, glance: Glance) -> None:
    """Where the memory went, pressure, and which container and kernel these are."""
    memory, dim = shown(view.memory, glance.now)
    ink = DIM if dim else TEXT
    if memory is not None:
        pressure = memory.pressure.some_avg10 if memory.pressure else None
        column = line.words(
            grid.bar,
            *(("locked", DIM), (fmt.gib(memory.mlocked).rjust(5), ink)),
            *(("shmem", DIM), (fmt.gib(memory.shmem).rjust(5), ink)),
        )
        line.words(
            max(column + 2, grid.avail - 5),
            *(("page cache: dirty", DIM), (fmt.gib(memory.dirty).rjust(4), ink)),
            *(("pressure", DIM), (fmt.number(pressure, 1).rjust(4), ink), ("%", DIM)),
            to=grid.container - 1,
        )
    if rank is not None and rank.container is not None:
        words = (rank.container.id[:8], DIM), (_since(rank.container, glance.host_wall(view.name)), DIM)
        line.words(grid.container, *words, to=grid.history - 2)


def _since(container: Container, wall: float) -> str:
    """`up 3d04h`, or what its end means and how long ago that was."""
    if container.state in (ContainerState.RUNNING, ContainerState.PAUSED):
        return "" if container.started_at is None else f"up {fmt.duration(wall - container.started_at)}"
    ago = "" if container.finished_at is None else f"{fmt.age(wall - container.finished_at)} ago"
    return " ".join(part for part in (ago, container.exit_meaning) if part)


def history_line(first: Line, second: Line | None, grid: Grid, view: HostView, glance: Glance) -> None:
    """Free memory over the last ten minutes, in the host's two rows."""
    width = grid.history_end - grid.history
    height = 1 if second is None else 2
    step = HISTORY / (2 * width)
    samples = resample([(point.at, point.free) for point in view.history], glance.now, step, 2 * width)
    _, dim = shown(view.memory, glance.now)
    drawn = plot(samples, width, height, top_of(samples, None, height), plain=glance.ascii, quiet=dim)
    first.spans(grid.history, drawn[0])
    if second is not None:
        second.spans(grid.history, drawn[1])
