"""Where every value of a pane comes from: source, time, basis, formula. Pure: a glance in, words out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from console.alarms import free_alarm_bytes
from console.readings.containers import Container
from console.readings.memory import Memory
from console.readings.throughput import EngineKind, Throughput
from console.snapshot import HostView, LaneView
from screens.explained import Explained, Fact, origin
from screens.explaining_upkeep import boots, download, drift, row_copies, watchdog, way_back
from widgets import format as fmt
from widgets.bands import usual_band
from widgets.boots import pool_sizes
from widgets.glance import Glance
from widgets.slots import NUMBERS

PANES: Mapping[int, str] = {
    **{1: "nodes", 2: "download", 3: "row copies", 4: "lane", 5: "decode", 6: "KV pool", 7: "events", 8: "log"},
    **{9: "way back", 10: "containers", 11: "watchdog", 12: "drift"},
}


def explain(glance: Glance, number: int) -> tuple[Explained, ...]:
    """All readings behind the pane of this number."""
    parts = _PARTS.get(number)
    if parts is None:
        return (Explained("pane", f"there is no pane {number}", ()),)
    return tuple(parts(glance))


def _nodes(glance: Glance) -> Iterator[Explained]:
    for host in glance.snapshot.hosts:
        if not glance.matches(host.name):
            continue
        yield Explained(host.name, origin(host.memory, glance.now), tuple(_memory(glance, host)))
        yield Explained(f"{host.name} GPU", origin(host.gpus, glance.now), tuple(_gpus(host)))
        yield Explained(f"{host.name} host", origin(host.facts, glance.now), tuple(_host(host, glance.now)))


def _memory(glance: Glance, host: HostView) -> Iterator[Fact]:
    memory = host.memory.value
    if memory is None:
        return
    yield Fact("total", f"{fmt.gib(memory.total)} GiB", "MemTotal")
    yield Fact("free", f"{fmt.gib(memory.free)} GiB", _free_words(glance, host))
    yield Fact("avail", f"{fmt.gib(memory.available)} GiB", _available_words(memory))
    yield Fact("cache", f"{fmt.gib(memory.cached)} GiB", "Buffers + Cached - Shmem: what the kernel can drop")
    yield Fact("swap", f"{fmt.gib(memory.swap_used)} GiB", "SwapTotal - SwapFree")
    yield Fact("dirty", f"{fmt.gib(memory.dirty)} GiB", "Dirty: written, not yet on disk")
    if memory.pressure is not None:
        full = fmt.number(memory.pressure.full_avg10, 1)
        yield Fact("pressure", f"{full} %", "/proc/pressure/memory, full avg10: every task stalled")
    for node in memory.numa:
        kind = "device memory, no CPU on this NUMA node" if node.is_device_memory else f"{node.cpus} CPUs"
        yield Fact(f"NUMA {node.node}", f"{fmt.gib(node.free)} GiB", f"free of {fmt.gib(node.total)} GiB; {kind}")


def _free_words(glance: Glance, host: HostView) -> str:
    if not host.unified:
        return "MemFree; the alarm here is on MemAvailable"
    threshold = fmt.gib(free_alarm_bytes(glance.snapshot, host.name))
    return f"MemFree: on unified memory all that the GPU driver can allocate; alarm below {threshold} GiB"


def _available_words(memory: Memory) -> str:
    return f"MemAvailable, {memory.available_basis.value}"


def _gpus(host: HostView) -> Iterator[Fact]:
    for gpu in host.gpus.value or ():
        name = f"GPU {gpu.index}"
        yield Fact(name, f"{fmt.number(gpu.utilisation, 0)} %", f"{gpu.name}, nvidia-smi utilization.gpu")
        yield Fact(f"{name} power", f"{fmt.number(gpu.power_w, 0)} W", "nvidia-smi power.draw")
        yield Fact(f"{name} temp", f"{fmt.number(gpu.temperature_c, 0)} °C", "nvidia-smi temperature.gpu")
        yield Fact(f"{name} clock", f"{fmt.ghz(gpu.clock_mhz)} GHz", "nvidia-smi clocks.sm")
        for fault in gpu.faults:
            yield Fact(f"{name} FAULT", "-", f"nvidia-smi says instead of a figure: {fault}")
        if gpu.unified:
            yield Fact(f"{name} memory", "-", "the driver has no memory figures: unified with the node's memory")
        else:
            used = f"{fmt.gib(gpu.memory_used)} GiB"
            yield Fact(f"{name} memory", used, f"nvidia-smi memory.used of {fmt.gib(gpu.memory_total)} GiB")


def _host(host: HostView, now: float) -> Iterator[Fact]:
    link = host.link
    yield Fact("link", str(link.status), f"for {fmt.duration(now - link.since)}; {link.error or 'no error'}")
    yield Fact(
        "drift",
        fmt.drift(host.drift),
        "the host's wall clock less ours, from the least delayed of the newest 30 frames",
    )
    facts = host.facts.value
    if facts is not None:
        yield Fact("kernel", facts.kernel, f"{facts.cpus} CPUs; the sampler runs on {facts.python}")


def _containers(glance: Glance) -> Iterator[Explained]:
    for host in glance.snapshot.hosts:
        reading = host.containers
        found = reading.value
        facts: list[Fact] = []
        for item in found.items if found is not None else ():
            if glance.matches(item.name, item.image):
                facts += _container(item)
        problem = f", {found.problem} {found.hint}" if found is not None and found.problem else ""
        yield Explained(f"{host.name} containers", origin(reading, glance.now) + problem, tuple(facts))


def _container(item: Container) -> Iterator[Fact]:
    yield Fact(item.name, str(item.state), item.exit_meaning or f"image {item.image}")
    source = item.revision_source or "in neither mounts nor arguments"
    yield Fact("  revision", fmt.revision(item.revision), source)
    policy = item.restart_policy or "-"
    yield Fact("  restart", policy, f"restarted {item.restart_count} times; auto-remove {item.auto_remove}")


def _lane(glance: Glance) -> Iterator[Explained]:
    lane, lights = glance.lane, glance.lane.lights
    state = Fact("state", str(lane.verdict.state), lane.verdict.why)
    since = Fact("since", fmt.duration(glance.now - lane.state_since), "time in this state")
    yield Explained(f"lane {lane.name}", "four lights added up; no one of them alone means serving", (state, since))
    process = lights.process
    words = [*process.dead, *(f"{host} unknown" for host in process.unknown), *process.paused]
    up = Fact("process", f"{process.running} of {process.expected}", "; ".join(words) or "containers of all ranks run")
    yield Explained("process", "containers of every rank, see the containers pane and the hosts", (up,))
    http = lights.http
    took = f"{fmt.seconds(http.took)} s; " if http.took is not None else ""
    answer = Fact("http", str(http.verdict), f"{took}{http.misses} misses in a row; {http.detail or 'no detail'}")
    yield Explained("http", f"{lane.lane.url}{lane.lane.health_path}: {origin(lane.health, glance.now)}", (answer,))
    scrape = Fact("scrape", str(lights.scrape.verdict), lights.scrape.detail or f"{lights.scrape.series} series")
    where = f"{lane.lane.url}{lane.lane.metrics_path}"
    yield Explained("scrape", f"{where}: {origin(lane.throughput, glance.now)}", (scrape,))
    progress = lights.progress
    frozen = f"stands still {fmt.duration(progress.frozen_for)}" if progress.frozen_for else "step counter against work"
    moving = Fact("progress", str(progress.progress), f"{frozen}; STALLED after {lane.lane.stall_after:g} s with work")
    yield Explained("progress", "the engine's step counter over the scrapes", (moving,))
    served = Fact("served", lane.served.value or "-", "/v1/models: identity for clients, never the checkpoint")
    yield Explained("name", origin(lane.served, glance.now), (served,))
    if lane.front is not None:
        through = lane.front.value
        said = "-" if through is None else str(through.status or through.transport)
        how = "the proxy that clients come through, asked beside the engine itself"
        yield Explained("front", origin(lane.front, glance.now), (Fact("front", said, how),))
    yield from boots(glance)


def _decode(glance: Glance) -> Iterator[Explained]:
    lane = glance.lane
    value = lane.throughput.value
    facts: list[Fact] = []
    if value is not None:
        window = fmt.number(value.window, 1)
        rate = f"growth of the generation counter over {window} s, resets per series taken out, then summed"
        facts.append(Fact("decode", f"{fmt.tps(value.decode_tps)} tok/s", rate))
        prompt = f"growth of the prompt counter over {window} s"
        facts.append(Fact("prefill", f"{fmt.tps(value.prefill_tps)} tok/s", prompt))
        facts.append(Fact("running", fmt.count(value.running), f"engine-reported, {value.engine.value}"))
        facts.append(Fact("waiting", fmt.count(value.waiting), f"engine-reported, {value.engine.value}"))
        facts += _latency(value)
        facts += [Fact("note", "", note) for note in value.notes]
    facts += _usual(lane, value.running if value is not None else None)
    yield Explained("decode", origin(lane.throughput, glance.now), tuple(facts))


def _usual(lane: LaneView, running: float | None) -> Iterator[Fact]:
    """The bands kept by concurrency, and the one of all together."""
    used = usual_band(lane, None if running is None else round(running))
    for count, low, high, points in lane.usual_by_running:
        band = f"{fmt.tps(low)}–{fmt.tps(high)}"
        chosen = "; the one drawn now" if used is not None and used.running == count else ""
        how = f"10th to 90th percentile with {count} running, {fmt.count(points)} points kept for this lane{chosen}"
        yield Fact(f"usual at {count}", band, how)
    if lane.usual_decode is not None:
        low, high = lane.usual_decode
        how = "10th to 90th percentile while serving, at any number of running requests"
        yield Fact("usual", f"{fmt.tps(low)}–{fmt.tps(high)}", how)


def _latency(value: Throughput) -> Iterator[Fact]:
    if value.ttft is not None:
        how = f"interpolated from histogram growth, {value.ttft.observations} observations of the last minute"
        yield Fact(
            "first token", f"{fmt.seconds(value.ttft.p50)} s", f"p50; p95 {fmt.seconds(value.ttft.p95)} s; {how}"
        )
    if value.itl is not None:
        unit = "per engine step, not per token" if value.itl_is_per_step else "per token"
        yield Fact("between", f"{fmt.seconds(value.itl.p50)} s", f"p50 between tokens, {unit}")


def _kv(glance: Glance) -> Iterator[Explained]:
    lane = glance.lane
    value = lane.throughput.value
    facts: list[Fact] = []
    if value is not None:
        kv = value.kv
        facts.append(Fact("pool", f"{fmt.mtok(kv.tokens)} M tok", f"{kv.tokens_basis.value}: {kv.evidence or '-'}"))
        share, used = _kv_words(value)
        facts.append(Fact("use", f"{fmt.percent(kv.used_fraction)} %", share))
        facts.append(Fact("used", f"{fmt.mtok(kv.used_tokens)} M tok", used))
        hit = f"{fmt.percent(value.prefix_hit_rate)} %"
        facts.append(Fact("prefix", hit, "prompt tokens found in the cache, over the last minute"))
        facts.append(Fact("preempted", fmt.number(value.preemptions, 0), "requests put back over the window"))
        facts += _speculation(value)
    sizes = " ".join(fmt.mtok(pool) for pool in pool_sizes(lane)) or "-"
    facts.append(Fact("boots", sizes, "pool sizes of this lane's earlier boots, M tok, oldest first, this one last"))
    yield Explained("KV pool", origin(lane.throughput, glance.now), tuple(facts))


def _kv_words(value: Throughput) -> tuple[str, str]:
    """How the used share and the used tokens of the pool come about."""
    if value.engine is not EngineKind.SGLANG:
        return "engine-reported, weighted over DP ranks", "pool x use"
    share = f"engine-reported: the {value.kv.binding} pool is the fullest" if value.kv.binding else "used / pool"
    return share, "counted by the engine; pool x use where it gives no count"


def _speculation(value: Throughput) -> Iterator[Fact]:
    spec = value.speculation
    if spec is None:
        yield Fact("accept", "-", "the engine shows no speculative decoding")
        return
    basis = spec.basis.value
    yield Fact("accept", fmt.number(spec.accepted_per_step, 2), f"accepted drafts a step, bonus not counted; {basis}")
    yield Fact("with bonus", fmt.number(spec.length_with_bonus, 2), "tokens a step with the bonus token")
    yield Fact("drafted", fmt.number(spec.drafted_per_step, 2), "drafts a step: which band of a schedule is in force")
    yield Fact("rate", f"{fmt.percent(spec.acceptance)} %", "accepted / drafted over the window")


def _events(glance: Glance) -> Iterator[Explained]:
    count = Fact(
        "events", str(len(glance.snapshot.events)), "links, containers and lane states as this console saw them"
    )
    yield Explained("events", "seen by this console since it began; nothing from before", (count,))


def _log(glance: Glance) -> Iterator[Explained]:
    log = glance.snapshot.log
    if log is None:
        yield Explained("log", "no log is followed", ())
        return
    taken = f"newest line {fmt.age(glance.now - log.taken_mono)} ago" if log.taken_mono is not None else "no line yet"
    facts = (
        Fact("lines", fmt.count(len(log.lines)), "kept, the newest; long lines are cut"),
        Fact("skipped", fmt.count(log.skipped), "dropped to keep up"),
    )
    yield Explained("log", f"{log.host} {log.container}, {log.problem or taken}", facts)


_PARTS: Mapping[int, Callable[[Glance], Iterator[Explained]]] = {
    NUMBERS[name]: part
    for name, part in (
        ("nodes", _nodes),
        ("download", download),
        ("rows", row_copies),
        ("lane", _lane),
        ("decode", _decode),
        ("kv", _kv),
        ("events", _events),
        ("log", _log),
        ("wayback", way_back),
        ("containers", _containers),
        ("watchdog", watchdog),
        ("drift", drift),
    )
}
