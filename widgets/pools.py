"""The memories of one host as rows: the device memory (HBM, GPU) apart from the host's own. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.alarms import AVAILABLE_ALARM, memory_alarms
from console.readings.gpu import Gpu
from console.readings.link import LinkStatus
from console.readings.memory import Memory
from console.readings.quality import Quality, Reading
from console.snapshot import HostView, Severity
from widgets.ages import NO_AGE, AgeMark, mark, shown


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
    mark: float | None = None
    """Where the threshold stands in the bar, 0..1."""
    short: str = ""
    """The cell that caused a memory alarm: `free` or `available`."""
    problem: str = ""
    fault: str = ""
    """What stands in the place of a GPU's figures."""


def is_station(view: HostView) -> bool:
    """True for a host whose GPU memory is apart: HBM as a NUMA node, or figures from the driver."""
    memory = view.memory.value
    if memory is not None and any(node.is_device_memory for node in memory.numa):
        return True
    return not view.unified and any(gpu.memory_total for gpu in view.gpus.value or ())


def short_cell(view: HostView, memory: Memory | None, threshold: float) -> str:
    """`free` or `available` where that figure raises an alarm now; `threshold` in bytes is for unified memory."""
    if memory is None:
        return ""
    for alarm in memory_alarms(view.name, memory, view.unified, threshold):
        if alarm.severity is Severity.ACT:
            return "free" if alarm.text.startswith("free") else "available"
    return ""


def threshold_mark(view: HostView, memory: Memory, threshold: float) -> float:
    """Where the alarm's threshold stands in a bar of the whole memory, 0..1."""
    return 1 - threshold / max(1, memory.total) if view.unified else 1 - AVAILABLE_ALARM


def host_memory(memory: Memory) -> Memory:
    """The host's own memory: all of it less what belongs to device nodes (total, free and cache only)."""
    device = [node for node in memory.numa if node.is_device_memory]
    if not device:
        return memory
    return replace(
        memory,
        total=memory.total - sum(node.total for node in device),
        free=memory.free - sum(node.free for node in device),
        cached=memory.cached - sum(node.cached for node in device),
    )


def pools_of(view: HostView, now: float, threshold: float, *, several: bool = False) -> tuple[Pool, ...]:
    """The memories of one host, device memory first; with `several` hosts the first row carries the name."""
    memory, dim = shown(view.memory, now)
    if memory is None:
        return (Pool(view.name, age=mark(view.memory, now), dim=True, problem=_problem(view, now)),)
    gpus, gpu_dim = shown(view.gpus, now)
    use, temperature, power, _ = busiest(gpus or ())
    fault = gpu_fault(gpus or ())
    device = _device(memory, gpus or ())
    host = _host_pool(view, memory, now, "" if dim else short_cell(view, memory, threshold))
    host = replace(host, mark=threshold_mark(view, memory, threshold), dim=dim)
    if device is None:
        return (replace(host, busy=use, temperature=temperature, power=power, fault=fault),)
    grace = any(node.is_device_memory for node in memory.numa)
    first, second = ("HBM", "Grace") if grace else (_gpu_label(gpus or ()), "host")
    if several:
        first, second = f"{view.name} {first}", " " * (len(view.name) + 1) + second
    total, free, used = device
    source: Reading[Memory] | Reading[tuple[Gpu, ...]] = view.memory if grace else view.gpus
    pool = Pool(first, total, free, used, busy=use, temperature=temperature, power=power)
    pool = replace(pool, dim=dim if grace else gpu_dim, age=mark(source, now), fault=fault)
    return pool, replace(host, label=second)


def _problem(view: HostView, now: float) -> str:
    if view.link.status is LinkStatus.DOWN or view.memory.quality(now) is Quality.UNREACHABLE:
        return f"UNREACHABLE {view.link.error or 'link lost'}"
    if view.memory.error:
        return f"FAILED {view.memory.error}"
    return "connecting" if view.link.status is LinkStatus.CONNECTING else "not read yet"


def _device(memory: Memory, gpus: tuple[Gpu, ...]) -> tuple[float, float, float] | None:
    """Total, free and used bytes of the device memory: by NUMA, else by the driver."""
    nodes = [node for node in memory.numa if node.is_device_memory]
    if nodes:
        return sum(n.total for n in nodes), sum(n.free for n in nodes), sum(n.used for n in nodes)
    total, used = 0, 0
    for gpu in gpus:
        if gpu.memory_total and gpu.memory_used is not None:
            total, used = total + gpu.memory_total, used + gpu.memory_used
    return (total, total - used, used) if total else None


def _gpu_label(gpus: tuple[Gpu, ...]) -> str:
    return "GPU" if len(gpus) == 1 else f"{len(gpus)} GPU"


def busiest(gpus: tuple[Gpu, ...]) -> tuple[float | None, float | None, float | None, float | None]:
    """Highest use (%) and temperature (°C), summed power (W) and highest clock (MHz) of a host's GPUs."""
    power = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    return (
        max((gpu.utilisation for gpu in gpus if gpu.utilisation is not None), default=None),
        max((gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None), default=None),
        sum(power) if power else None,
        max((gpu.clock_mhz for gpu in gpus if gpu.clock_mhz is not None), default=None),
    )


def gpu_fault(gpus: tuple[Gpu, ...]) -> str:
    """`GPU 3 FAULT`, `2 GPU FAULTS`: the driver says a fault where a figure should stand. '' while all is well."""
    broken = [gpu.index for gpu in gpus if gpu.faults]
    if len(broken) > 1:
        return f"{len(broken)} GPU FAULTS"
    return f"GPU {broken[0]} FAULT" if broken else ""


def _host_pool(view: HostView, memory: Memory, now: float, short: str) -> Pool:
    own = host_memory(memory)
    pinned = max((size for size in (memory.mlocked, memory.unevictable) if size is not None), default=None)
    return Pool(
        view.name,
        own.total,
        own.free,
        max(0, own.total - own.free - own.cached),
        own.cached,
        memory.swap_used,
        pinned=pinned,
        age=mark(view.memory, now),
        history=tuple((point.at, point.free) for point in view.history),
        short=short,
    )
