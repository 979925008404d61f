"""Pane 1: every node's memory, GPU, container and clock, worst first where not all fit."""

from __future__ import annotations

from dataclasses import dataclass

from console.alarms import DRIFT_ALARM_S, FREE_ALARM_GIB, free_alarm_bytes
from console.readings.link import LinkStatus
from console.readings.memory import Memory
from console.readings.quality import Quality
from console.snapshot import HostView, LaneView, RankView
from widgets import format as fmt
from widgets.ages import mark, oldest, shown
from widgets.bar import Parts, bar
from widgets.cells import Line, cut_middle, measure
from widgets.containers import crashed
from widgets.glance import Glance, Layout
from widgets.ink import BOLD, BRIGHT, CHIP_ACT, DIM, LOOK, TEXT, Ink, Row
from widgets.nodes_grid import Grid, grid_for
from widgets.nodes_history import history_line, second_line
from widgets.pane import Pane, beat
from widgets.pools import busiest, gpu_fault, host_memory, is_station, short_cell, threshold_mark
from widgets.sheet import Sheet, Title
from widgets.station import station_rows


@dataclass(frozen=True, slots=True)
class Node:
    """One host as this pane sees it."""

    view: HostView
    lane: LaneView | None
    rank: RankView | None
    threshold: float
    """Bytes of free memory under which the node is critical."""


class NodesPane(Pane):
    """Pane 1."""

    NUMBER = 1
    NAME = "nodes"

    def slice(self, glance: Glance) -> tuple[object, ...]:
        """See `Drawn.slice`."""
        snapshot = glance.snapshot
        ranks = tuple(lane.ranks for lane in snapshot.lanes)
        return snapshot.hosts, ranks, glance.lane.name, glance.wide and glance.wall // 1, beat(glance.now)

    def draw(self, glance: Glance, width: int, height: int) -> tuple[Row, ...]:
        """See `rows`."""
        return rows(glance, width, height)


def rows(glance: Glance, width: int, height: int) -> tuple[Row, ...]:
    """The nodes of the fleet, those of the lane in view first."""
    nodes = [node for node in _nodes(glance) if glance.matches(node.view.name)]
    title = Title(1, "nodes", oldest((node.view.memory for node in nodes), glance.now), _filter_note(glance))
    sheet = Sheet(glance, title, width, height)
    if not nodes:
        sheet.say("No host matches the filter." if glance.filter else "The fleet file names no host.")
        return sheet.done()
    if any(is_station(node.view) for node in nodes if node.lane is glance.lane):
        if 2 * len(nodes) > sheet.room:
            nodes = [node for _, node in _ranked(nodes, glance.now)]
        return station_rows(sheet, [(node.view, node.threshold) for node in nodes])
    return _standard(sheet, nodes)


def _filter_note(glance: Glance) -> str:
    return f"/{glance.filter}" if glance.filter else ""


def _nodes(glance: Glance) -> list[Node]:
    """Hosts of the lane in view in rank order, then the others in the order of the fleet file."""
    lanes = [glance.lane, *(lane for lane in glance.snapshot.lanes if lane.name != glance.lane.name)]
    found: dict[str, tuple[LaneView, RankView]] = {}
    for lane in lanes:
        for rank in lane.ranks:
            found.setdefault(rank.host, (lane, rank))
    own = [rank.host for rank in glance.lane.ranks]
    order = {name: place for place, name in enumerate(own)}
    views = sorted(glance.snapshot.hosts, key=lambda view: order.get(view.name, len(order)))
    nodes = []
    for view in views:
        lane_of, rank_of = found.get(view.name, (None, None))
        nodes.append(Node(view, lane_of, rank_of, free_alarm_bytes(glance.snapshot, view.name)))
    return nodes


def _badness(node: Node, now: float) -> int:
    """How far up a node goes where not all fit."""
    memory, dim = shown(node.view.memory, now)
    if not dim and short_cell(node.view, memory, node.threshold):
        return 4
    quality = node.view.memory.quality(now)
    if quality is Quality.UNREACHABLE:
        return 3
    if dim:
        return 2
    return 1 if quality is Quality.LATE else 0


def _standard(sheet: Sheet, nodes: list[Node]) -> tuple[Row, ...]:
    glance = sheet.glance
    wide = glance.layout is Layout.WIDE and sheet.width >= 190
    names = max(measure(node.view.name) for node in nodes)
    grid = grid_for(glance.layout, sheet.width, names)
    each = 2 if wide and len(nodes) * 2 + 2 <= sheet.room else 1
    if sheet.boxed:
        _heads(sheet.line(), grid, glance, _totals(nodes, glance.now))
    visible, hidden = _fit(nodes, sheet.left_over // each, glance)
    for node in visible:
        first = sheet.line()
        _host(first, grid, node, glance)
        second = sheet.line() if each == 2 else None
        if second is not None:
            second_line(second, grid, node.view, node.rank, glance)
        if wide:
            history_line(first, second, grid, node.view, glance)
    if hidden:
        _hidden(sheet, hidden)
    elif wide and sheet.left_over:
        _fleet(sheet, nodes)
    done = sheet.done()
    if sheet.boxed or not done:
        return done
    head = sheet.head_line(to=grid.free - 5)
    _heads(head, grid, glance, "")
    return (head.build(), *done[1:])


def _ranked(nodes: list[Node], now: float) -> list[tuple[int, Node]]:
    """Worst first, else in order."""
    return sorted(((_badness(node, now), node) for node in nodes), key=lambda pair: -pair[0])


def _fit(nodes: list[Node], room: int, glance: Glance) -> tuple[list[Node], list[int]]:
    """Nodes that are shown, in order while all fit, else worst first; and how bad each of those is that are not."""
    if len(nodes) <= room:
        return nodes, []
    ranked = _ranked(nodes, glance.now)
    room = max(1, room - 1)
    skip = min(glance.scrolled(1), len(ranked) - room)
    badness = [bad for bad, _ in ranked]
    return [node for _, node in ranked[skip : skip + room]], badness[:skip] + badness[skip + room :]


def _hidden(sheet: Sheet, hidden: list[int]) -> None:
    bad = sum(1 for badness in hidden if badness)
    line = sheet.line()
    after = line.put(sheet.left, f"{len(hidden)} more, worst first:", DIM, to=sheet.right)
    text, ink = (f"{bad} not in order", LOOK) if bad else ("all of them in order", DIM)
    line.put(after + 1, text, ink, to=sheet.right)


def _totals(nodes: list[Node], now: float) -> str:
    """The size that all bars stand for; nothing where they differ."""
    memories = [host_memory(memory) for memory, _ in (shown(node.view.memory, now) for node in nodes) if memory]
    totals = [fmt.gib(memory.total) for memory in sorted(memories, key=lambda m: m.total)]
    if not totals:
        return "of - GiB"
    return f"of {totals[0]} GiB" if totals[0] == totals[-1] else ""


def _heads(line: Line, grid: Grid, glance: Glance, totals: str) -> None:
    if glance.boxed:
        line.put(grid.host, "host", DIM, to=grid.bar - 1)
        _legend(line, grid, glance, totals)
    else:
        line.right(grid.age, "age", DIM)
    for edge, word in (
        (grid.free, "free"),
        (grid.avail, "avail"),
        (grid.cache, "cache"),
        (grid.swap, "swap"),
        (grid.gpu, "gpu%"),
        (grid.temperature, "°C"),
        (grid.watt, "W"),
        (grid.clock, "GHz"),
        (grid.drift, "drift"),
        (grid.age, "age"),
    ):
        if edge and not (edge == grid.age and not glance.boxed):
            line.right(edge, "C" if glance.ascii and word == "°C" else word, DIM)
    line.put(grid.container, "container", DIM, to=grid.rank - 1)
    line.put(grid.rank, "rank", DIM)
    if grid.history:
        line.put(grid.history, "free, last 10 min, from 0", DIM, to=grid.age - 5)


def _legend(line: Line, grid: Grid, glance: Glance, totals: str) -> None:
    limit = grid.free - 5
    after = line.put(grid.bar, totals, DIM, to=limit) if totals else grid.bar - 1
    used, cache = ("#", "=") if glance.ascii or glance.no_colour else ("▌", "▌")
    if after + 14 <= limit:
        after = line.put(after + 1, used, Ink("fill"))
        after = line.put(after, "used", DIM)
        after = line.put(after + 1, cache, Ink("fill2"))
        after = line.put(after, "cache", DIM, to=limit)
        if after + 6 <= limit:
            line.words(after + 1, ("│", DIM), (f"{FREE_ALARM_GIB:.1f}", DIM), to=limit)


def _host(line: Line, grid: Grid, node: Node, glance: Glance) -> None:
    now = glance.now
    memory, dim = shown(node.view.memory, now)
    base, strong = (DIM, DIM) if dim else (TEXT, BOLD)
    name = cut_middle(glance.signs.words(node.view.name), grid.bar - 1 - grid.host, glance.signs.dots)
    line.put(grid.host, name, strong, to=grid.bar)
    _memory(line, grid, node, memory, dim=dim, glance=glance)
    age = mark(node.view.memory, now)
    start = line.right(grid.age, age.text, age.ink, start=grid.free, age=True)
    line.put(start - 1, " ")
    if memory is None:
        _why_not(line, grid, node, glance)
        return
    _gpu_cells(line, grid, node, glance, base)
    _container_cells(line, grid, node, glance, base)
    drift = None if dim else node.view.drift
    off = drift is not None and abs(drift) > DRIFT_ALARM_S
    line.right(grid.drift, fmt.drift(drift, 7), Ink("look") if off else DIM)


def _memory(line: Line, grid: Grid, node: Node, memory: Memory | None, *, dim: bool, glance: Glance) -> None:
    short = "" if dim else short_cell(node.view, memory, node.threshold)
    own = host_memory(memory) if memory is not None else None
    _memory_bar(line, grid, node, own, short=short, dim=dim, glance=glance)
    base, strong = (DIM, DIM) if dim else (TEXT, BRIGHT)
    free = fmt.gib(own.free if own else None, 5)
    if short == "free":
        line.right(grid.free, free.rjust(4), CHIP_ACT)
    else:
        line.right(grid.free, free, strong)
    available = fmt.gib(own.available if own else None, 6)
    line.right(grid.avail, available, CHIP_ACT if short == "available" else base)
    line.right(grid.cache, fmt.gib(own.cached if own else None, 5), BRIGHT if short else base)
    if grid.swap:
        line.right(grid.swap, fmt.gib(own.swap_used if own else None, 5), base)


def _memory_bar(
    line: Line, grid: Grid, node: Node, own: Memory | None, *, short: str, dim: bool, glance: Glance
) -> None:
    parts = Parts(None, quiet=True)
    if own is not None:
        total, used = max(1, own.total), max(0, own.total - own.free - own.cached)
        at = threshold_mark(node.view, own, node.threshold)
        parts = Parts(used / total, own.cached / total, at, bool(short), dim)
    line.spans(grid.bar, bar(parts, grid.bar_end - grid.bar, plain=glance.ascii or glance.no_colour))


def _why_not(line: Line, grid: Grid, node: Node, glance: Glance) -> None:
    """Why a node has no values: in the place of the cells to the right of the memory."""
    view = node.view
    start = (grid.swap or grid.cache) + 2
    if view.memory.quality(glance.now) is Quality.UNREACHABLE or view.link.status is LinkStatus.DOWN:
        words = (("UNREACHABLE", LOOK), (view.link.error or "link lost", TEXT), (view.link.hint, DIM))
    elif view.link.status is LinkStatus.CONNECTING:
        tries = f"attempt {view.link.attempts}" if view.link.attempts > 1 else ""
        words = (("connecting", TEXT), (tries, DIM), (view.link.error, DIM))
    else:
        words = (("" if view.memory.error else "not read yet", DIM), (view.memory.error, TEXT), ("", DIM))
    line.words(start, *words, to=grid.age - 13)


def _gpu_cells(line: Line, grid: Grid, node: Node, glance: Glance, base: Ink) -> None:
    gpus, dim = shown(node.view.gpus, glance.now)
    ink = DIM if dim else base
    if fault := gpu_fault(gpus or ()):
        line.right(grid.clock, fault, DIM if dim else CHIP_ACT, start=grid.swap or grid.cache)
        return
    use, temperature, power, clock = busiest(gpus or ())
    line.right(grid.gpu, fmt.number(use, 0, 4), ink)
    line.right(grid.temperature, fmt.number(temperature, 0, 3), ink)
    if grid.watt:
        line.right(grid.watt, fmt.number(power, 0, 5), ink)
    line.right(grid.clock, fmt.ghz(clock, 5), ink)


def _container_cells(line: Line, grid: Grid, node: Node, glance: Glance, base: Ink) -> None:
    if node.rank is None:
        line.put(grid.container, fmt.NONE, DIM)
        line.put(grid.rank, fmt.NONE, DIM)
        return
    containers, dim = shown(node.view.containers, glance.now)
    ink = DIM if dim else base
    if containers is not None and containers.problem:
        ink = DIM
    elif node.rank.container is not None and not dim and crashed(node.rank.container):
        ink = Ink("look")
    word = _SHORT.get(node.rank.word, node.rank.word) if grid.short_rank else node.rank.word
    # `exited 137` takes the one cell more that is blank before its column.
    line.put(min(grid.container, grid.rank - 1 - measure(word)), word, ink, to=grid.rank - 1)
    head = node.lane is not None and node.lane.lane.head == node.view.name and len(node.lane.ranks) > 1
    suffix = ("h" if grid.short_rank else " head") if head else ""
    line.put(grid.rank, f"{node.rank.rank}{suffix}", base, to=grid.drift - 5)


_SHORT = {"no container": "none", "on the host": "on host"}


def _fleet(sheet: Sheet, nodes: list[Node]) -> None:
    """The last row of the wide pane: what the rows add up to."""
    now = sheet.glance.now
    current = [(node, memory) for node in nodes if (memory := node.view.memory.current(now)) is not None]
    line = sheet.line()
    line.put(sheet.left, "fleet", DIM)
    text = f"{len(nodes)} hosts, {len(current)} fresh."
    if current:
        node, memory = min(current, key=lambda pair: pair[1].free)
        text += f"  Lowest free {fmt.gib(memory.free)} GiB on {node.view.name}."
    line.put(9, text, DIM, to=sheet.right)
