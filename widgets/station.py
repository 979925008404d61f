"""The nodes pane where device memory is apart from the host's: one row for HBM, one for the host (Grace)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.readings.gpu import Gpu
from console.readings.link import LinkStatus
from console.readings.memory import Memory
from console.readings.quality import Reading
from console.snapshot import HostView
from widgets import format as fmt
from widgets.ages import NO_AGE, AgeMark, mark, shown
from widgets.bar import Parts, bar
from widgets.cells import Line, cut_middle, measure
from widgets.glance import Glance
from widgets.ink import BOLD, BRIGHT, DIM, LOOK, TEXT, Ink, Row
from widgets.nodes_history import HISTORY
from widgets.plot import plot, resample, top_of
from widgets.sheet import Sheet

_HISTORY_FROM = 16
"""Cells from the pinned column to the plot."""

HOST_MARK = 0.98
"""Where the host row's threshold stands; the device row has none, its pool is filled on purpose."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One memory of a host. Sizes in bytes, None is unknown."""

    label: str
    total: float | None = None
    free: float | None = None
    used: float | None = None
    cache: float | None = None
    swap: float | None = None
    busy: float | None = None
    temperature: float | None = None
    power: float | None = None
    pinned: float | None = None
    dim: bool = False
    age: AgeMark = NO_AGE
    history: tuple[tuple[float, float], ...] = ()
    """Free bytes of the whole host over time."""
    problem: str = ""


def is_station(view: HostView) -> bool:
    """True for a host whose GPU memory is apart: HBM as a NUMA node, or figures from the driver."""
    memory = view.memory.value
    if memory is not None and any(node.is_device_memory for node in memory.numa):
        return True
    return not view.unified and any(gpu.memory_total for gpu in view.gpus.value or ())


def station_rows(sheet: Sheet, views: list[HostView]) -> tuple[Row, ...]:
    """Header and one row a memory, host by host."""
    now = sheet.glance.now
    several = len(views) > 1
    pools = [pool for view in views for pool in pools_of(view, now, several=several)]
    columns = _columns(sheet, max(measure(pool.label) for pool in pools))
    if sheet.boxed:
        _heads(sheet.line(), columns, sheet.glance)
    room = sheet.left_over
    shown_pools = pools if len(pools) <= room else pools[: max(1, room - 1)]
    for pool in shown_pools:
        _pool(sheet.line(), columns, pool, sheet.glance)
    if len(shown_pools) < len(pools):
        sheet.say(f"{len(pools) - len(shown_pools)} more memories; z shows them all")
    done = sheet.done()
    if sheet.boxed or not done:
        return done
    head = sheet.head_line(to=columns.total - 4)
    _heads(head, columns, sheet.glance)
    return (head.build(), *done[1:])


def pools_of(view: HostView, now: float, *, several: bool = False) -> tuple[Pool, ...]:
    """The memories of one host, device memory first."""
    memory, dim = shown(view.memory, now)
    gpus, gpu_dim = shown(view.gpus, now)
    prefix = f"{view.name} " if several else ""
    if memory is None:
        return (Pool(prefix + "host" if several else view.name, age=mark(view.memory, now), dim=True,
                     problem=_problem(view)),)  # fmt: skip
    past = tuple((point.at, point.free) for point in view.history)
    device = _device(view.memory, view.gpus, now)
    grace = any(node.is_device_memory for node in memory.numa)
    host = _host_pool(memory, prefix + ("Grace" if grace else "host"), dim=dim, age=mark(view.memory, now))
    host = replace(host, history=past)
    if device is None:
        return (host if several or grace else replace(host, label=view.name),)
    label = prefix + ("HBM" if grace else _gpu_label(gpus or ()))
    use, temperature, power = _gpu_figures(gpus or ())
    total, free, used = device
    return (
        Pool(label, total, free, used, None, None, use, temperature, power, None, gpu_dim if not grace else dim,
             mark(view.memory if grace else view.gpus, now)),
        host,
    )  # fmt: skip


def _problem(view: HostView) -> str:
    if view.link.status is LinkStatus.DOWN or view.memory.down_since is not None:
        return f"UNREACHABLE {view.link.error or 'link lost'}"
    return "connecting" if view.link.status is LinkStatus.CONNECTING else f"not read yet {view.memory.error}"


def _device(memory: Reading[Memory], gpus: Reading[tuple[Gpu, ...]], now: float) -> tuple[float, float, float] | None:
    """Total, free and used bytes of the device memory: by NUMA, else by the driver."""
    value, _ = shown(memory, now)
    nodes = [node for node in (value.numa if value else ()) if node.is_device_memory]
    if nodes:
        return sum(n.total for n in nodes), sum(n.free for n in nodes), sum(n.used for n in nodes)
    cards, _ = shown(gpus, now)
    known = [(g.memory_total, g.memory_used) for g in cards or () if g.memory_total and g.memory_used is not None]
    if not known:
        return None
    total = sum(t for t, _ in known if t)
    used = sum(u for _, u in known if u is not None)
    return total, total - used, used


def _gpu_label(gpus: tuple[Gpu, ...]) -> str:
    return "GPU" if len(gpus) == 1 else f"{len(gpus)} GPU"


def _gpu_figures(gpus: tuple[Gpu, ...]) -> tuple[float | None, float | None, float | None]:
    power = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    return (
        max((gpu.utilisation for gpu in gpus if gpu.utilisation is not None), default=None),
        max((gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None), default=None),
        sum(power) if power else None,
    )


def _host_pool(memory: Memory, label: str, *, dim: bool, age: AgeMark) -> Pool:
    """The host's own memory: all of it less what belongs to device nodes."""
    device = [node for node in memory.numa if node.is_device_memory]
    total = memory.total - sum(node.total for node in device)
    free = memory.free - sum(node.free for node in device)
    cache = memory.cached - sum(node.cached for node in device)
    pinned = max((value for value in (memory.mlocked, memory.unevictable) if value is not None), default=None)
    return Pool(label, total, free, total - free - cache, cache, memory.swap_used, pinned=pinned, dim=dim, age=age)


@dataclass(frozen=True, slots=True)
class _Columns:
    label: int
    total: int
    bar: int
    bar_end: int
    free: int
    used: int
    cache: int
    swap: int
    busy: int
    temperature: int
    power: int
    pinned: int
    age: int


def _columns(sheet: Sheet, labels: int) -> _Columns:
    if not sheet.boxed:
        extra = sheet.width - 80
        grow = max(0, min(24, extra // 2))
        shift = max(0, min(labels, 12) - 6)
        bar_at = 14 + shift
        return _Columns(1, 13 + shift, bar_at, max(bar_at, 22 + grow), 28 + grow, 34 + grow, 40 + grow, 0,
                        45 + grow, 49 + grow, 54 + grow, 56 + grow, sheet.right)  # fmt: skip
    grow = max(0, min(36, (sheet.width - 120) // 2))
    shift = max(0, min(labels, 20) - 8)
    return _Columns(2, 16 + shift, 18 + shift, 40 + grow, 47 + grow, 55 + grow, 63 + grow, 70 + grow, 77 + grow,
                    81 + grow, 87 + grow, 91 + grow, sheet.right)  # fmt: skip


def _heads(line: Line, at: _Columns, glance: Glance) -> None:
    if glance.boxed:
        line.put(at.label, "host", DIM)
    line.right(at.total, "GiB", DIM)
    plain = glance.ascii or glance.no_colour
    if at.bar_end - at.bar >= 14:
        after = line.put(at.bar, "#" if plain else "▌", Ink("fill"))
        after = line.put(after, "used", DIM)
        after = line.put(after + 1, "=" if plain else "▌", Ink("fill2"))
        line.put(after, "cache", DIM)
    degree = "C" if glance.ascii else "°C"
    for edge, word in ((at.free, "free"), (at.used, "used"), (at.cache, "cache"), (at.swap, "swap"),
                       (at.busy, "busy%" if glance.boxed else "gpu%"), (at.temperature, degree), (at.power, "W"),
                       (at.age, "age")):  # fmt: skip
        if edge:
            line.right(edge, word, DIM)
    line.put(at.pinned, "pinned", DIM)
    if glance.wide and at.age - at.pinned > _HISTORY_FROM + 20:
        line.put(at.pinned + _HISTORY_FROM, "free of the host, last 10 min", DIM, to=at.age - 5)


def _history(line: Line, at: _Columns, pool: Pool, glance: Glance) -> None:
    start, end = at.pinned + _HISTORY_FROM, at.age - 9
    count = 2 * (end - start)
    samples = resample(pool.history, glance.now, HISTORY / count, count)
    drawn = plot(samples, end - start, 1, top_of(samples, None, 1), plain=glance.ascii, quiet=pool.dim)
    line.spans(start, drawn[0])


def _pool(line: Line, at: _Columns, pool: Pool, glance: Glance) -> None:
    base = DIM if pool.dim else TEXT
    label = cut_middle(glance.signs.words(pool.label), at.bar - 1 - at.label - 6, glance.signs.dots)
    line.put(at.label, label, DIM if pool.dim else BOLD)
    line.right(at.total, fmt.gib(pool.total, 6), DIM)
    share = None if not pool.total or pool.used is None else pool.used / pool.total
    cache = 0.0 if not pool.total or pool.cache is None else pool.cache / pool.total
    parts = Parts(share, cache, HOST_MARK if pool.cache is not None else None, quiet=pool.dim)
    line.spans(at.bar, bar(parts, at.bar_end - at.bar, plain=glance.ascii or glance.no_colour))
    line.right(at.free, fmt.gib(pool.free, 6), DIM if pool.dim else BRIGHT)
    line.right(at.used, fmt.gib(pool.used, 6), base)
    line.right(at.cache, fmt.gib(pool.cache, 6), base)
    line.right(at.age, pool.age.text, pool.age.ink, start=at.pinned, age=True)
    if pool.problem:
        word, _, rest = pool.problem.partition(" ")
        ink = LOOK if word == "UNREACHABLE" else TEXT
        line.words(at.cache + 2, (word, ink), (rest, DIM), to=at.age - 13)
        return
    if glance.wide and at.age - at.pinned > _HISTORY_FROM + 20 and pool.history:
        _history(line, at, pool, glance)
    if at.swap:
        line.right(at.swap, fmt.gib(pool.swap, 5), base)
    line.right(at.busy, fmt.number(pool.busy, 0, 4), base)
    line.right(at.temperature, fmt.number(pool.temperature, 0, 3), base)
    line.right(at.power, fmt.number(pool.power, 0, 5), base)
    line.words(at.pinned, (fmt.gib(pool.pinned), base), ("GiB" if pool.pinned is not None else "", DIM), to=at.age - 6)
