"""What the wide nodes pane adds: a second row a host and ten minutes of free memory."""

from __future__ import annotations

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
        started = rank.container.started_at
        up = "" if started is None else f"up {fmt.duration(glance.wall - started)}"
        oom = "OOM-killed" if rank.container.oom_killed else ""
        line.words(grid.container, (rank.container.id[:8], DIM), (up, DIM), (oom, DIM), to=grid.drift + 2)


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
