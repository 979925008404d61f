"""Tokens, queues, KV pool and speculation out of two or more scrapes of one engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from console import sanitize
from console.readings.histogram import Percentiles as Percentiles
from console.readings.histogram import percentiles
from console.readings.kv import NO_POOL, kv_pool
from console.readings.kv import KvPool as KvPool
from console.readings.quality import Basis
from console.readings.rates import QUIET_S, Increase, forget, increase, new_process, window
from console.readings.scrape import Scrape as Scrape
from console.readings.scrape import ScrapeVerdict as ScrapeVerdict
from console.readings.scrape import read_scrape as read_scrape
from console.readings.series import (
    DRAFTS,
    GEN_THROUGHPUT,
    GENERATION,
    ITL,
    PREEMPTIONS,
    PREFIX_HITS,
    PREFIX_QUERIES,
    PROCESS_START,
    PROMPT,
    PROMPT_BY_SOURCE,
    REALTIME,
    RUNNING,
    SGLANG_CACHED,
    SLEEP_STATE,
    STEPS,
    TTFT,
    WAITING,
    Index,
    has_pid,
    total,
)
from console.readings.series import EngineKind as EngineKind
from console.readings.speculation import Speculation as Speculation
from console.readings.speculation import speculation


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a window of scrapes says about the lane. None is unknown, never 0."""

    engine: EngineKind
    window: float
    """Seconds between the first and the last scrape used; 0 for a single one."""
    decode_tps: float | None
    prefill_tps: float | None
    running: int | None
    waiting: int | None
    preemptions: float | None
    """Per window."""
    kv: KvPool
    speculation: Speculation | None
    ttft: Percentiles | None
    """Over all scrapes given, not the rate's window alone: a few seconds rarely hold 20 observations."""
    itl: Percentiles | None
    itl_is_per_step: bool
    """True for vLLM under speculation: one observation per engine step, not per token."""
    prefix_hit_rate: float | None
    """Over all scrapes given, 0..1."""
    steps: float | None
    """Engine step counter (heartbeat), as summed over series at the newest scrape."""
    step_delta: float | None
    """Movement of the heartbeat in the window."""
    restarted: bool
    """A counter fell or the process start time changed inside the window."""
    series: int
    model_name: str = ""
    generation_total: float | None = None
    """Raw sum of the generation counter at the newest scrape, tokens."""
    notes: tuple[str, ...] = ()
    """What is missing or suspect, in words: `series vllm:kv_cache_usage_perc missing`."""
    decode_basis: Basis = Basis.MEASURED
    """ENGINE_REPORTED where only the engine's own gauge tells the rate, ESTIMATE where counters move at request end."""
    steps_live: bool = True
    """The heartbeat moves with every step; False where its counters move only when a request ends."""
    process_started: float | None = None
    """Unix seconds at which the answering process says it started, by its host's clock."""


def throughput(scrapes: Sequence[Scrape]) -> Throughput:
    """What the scrapes (oldest first) say about the lane; pure, never raises.

    Rates are taken over the last 5 to 10 s of them, latencies and the prefix hit rate over all. If the newest scrape
    failed, everything is None and the notes say why: the last value is never shown as the current one.
    """
    run = same_engine(scrapes)
    if not run:
        detail = f"{scrapes[-1].verdict}: {scrapes[-1].detail}" if scrapes else "no scrape yet"
        return _nothing(detail)
    found = _Window(run)
    forget(found.all[: -len(found.recent)])
    return found.read()


def same_engine(scrapes: Sequence[Scrape]) -> list[Scrape]:
    """The good scrapes of the engine that answered last, oldest first; empty if the newest scrape is bad."""
    if not scrapes or scrapes[-1].verdict is not ScrapeVerdict.OK:
        return []
    good: list[Scrape] = []
    for item in reversed(scrapes):
        if item.verdict is not ScrapeVerdict.OK:
            continue
        if item.engine is not scrapes[-1].engine:
            break
        good.append(item)
    return good[::-1]


def _nothing(why: str) -> Throughput:
    return Throughput(
        engine=EngineKind.UNKNOWN,
        window=0.0,
        decode_tps=None,
        prefill_tps=None,
        running=None,
        waiting=None,
        preemptions=None,
        kv=NO_POOL,
        speculation=None,
        ttft=None,
        itl=None,
        itl_is_per_step=False,
        prefix_hit_rate=None,
        steps=None,
        step_delta=None,
        restarted=False,
        series=0,
        notes=(why,),
    )


def count(index: Index, names: Sequence[str]) -> int | None:
    """A gauge of requests as a whole number, summed over data-parallel ranks; None if absent or not a number."""
    found = total(index, tuple(names))
    return None if found is None else round(found)


def heartbeat(scrape: Scrape) -> tuple[float | None, bool]:
    """The step counter of one scrape and whether it moves with every step."""
    engine, index = scrape.engine, scrape.index
    if STEPS[engine] and (steps := total(index, STEPS[engine])) is not None:
        return steps, True
    if engine is EngineKind.SGLANG:
        moved = [total(index, REALTIME, mode=mode) for mode in ("decode", "prefill_compute")]
        if any(value is not None for value in moved):
            return sum(value for value in moved if value is not None), True
    parts = [total(index, GENERATION[engine]), total(index, PROMPT[engine])]
    if all(value is None for value in parts):
        return None, engine is EngineKind.VLLM
    return sum(value for value in parts if value is not None), engine is EngineKind.VLLM


class _Window:
    """One pass over a window of good scrapes of one engine; collects notes on the way."""

    def __init__(self, run: Sequence[Scrape]) -> None:
        self.all = run
        self.recent = window(run)
        self.newest = run[-1]
        self.engine = self.newest.engine
        self.index = self.newest.index
        self.notes: list[str] = [self.newest.detail] if self.newest.detail else []
        self.running = count(self.index, RUNNING[self.engine])
        self.restarted = False

    def read(self) -> Throughput:
        waiting = count(self.index, WAITING[self.engine])
        steps, live = heartbeat(self.newest)
        step_delta = self._step_delta()
        decode, basis = self._decode()
        prefill = self._prefill()
        preempted = self._moved(PREEMPTIONS[self.engine])
        pool, kv_notes = kv_pool(self.newest)
        idle = self.running == 0 and not decode
        drafts, spec_notes = speculation(self.recent, idle=idle)
        per_step = self.engine is EngineKind.VLLM and f"vllm:{DRAFTS}" in self.index
        self.notes += [*kv_notes, *spec_notes]
        self._remarks(waiting, idle, pool)
        return Throughput(
            engine=self.engine,
            window=self.newest.at - self.recent[0].at,
            decode_tps=decode,
            prefill_tps=prefill,
            running=self.running,
            waiting=waiting,
            preemptions=preempted.amount if preempted else None,
            kv=pool,
            speculation=drafts,
            ttft=percentiles(self.all, TTFT[self.engine]),
            itl=percentiles(self.all, ITL[self.engine]),
            itl_is_per_step=per_step,
            prefix_hit_rate=self._prefix_hits(),
            steps=steps,
            step_delta=step_delta,
            restarted=self.restarted or self._new_process(),
            series=len(self.newest.samples),
            model_name=self._model_name(),
            generation_total=self._generated(),
            notes=tuple(dict.fromkeys(self.notes)),
            decode_basis=basis,
            steps_live=live,
            process_started=total(self.index, PROCESS_START),
        )

    def _moved(self, names: tuple[str, ...] | str, **only: str) -> Increase | None:
        found = increase(self.recent, names, **only)
        if found is not None and found.resets:
            self.restarted = True
        return found

    def _rate(self, names: tuple[str, ...] | str, **only: str) -> float | None:
        found = self._moved(names, **only)
        if found is None:
            return None
        if found.resets > 1:
            self.notes.append("counters jump to and fro: several processes may answer in turn, no rate is taken")
            return None
        if found.since is not None:
            # Two scrapes of the new process say its rate; the time in which it was not there would only dilute it.
            found = increase([item for item in self.recent if item.at >= found.since], names, **only) or found
        return found.per_second

    def _decode(self) -> tuple[float | None, Basis]:
        names = GENERATION[self.engine]
        if self.engine is EngineKind.VLLM:
            self._missing(names[0])
            return self._live_rate(names), Basis.MEASURED
        if self.engine is EngineKind.SGLANG and total(self.index, REALTIME, mode="decode") is not None:
            return self._live_rate(REALTIME, mode="decode"), Basis.MEASURED
        return self._decode_at_end(names)

    def _live_rate(self, names: tuple[str, ...] | str, **only: str) -> float | None:
        """The rate of a counter that moves with every step: 0 once it has stood still for a few seconds.

        The mean over the window would go on showing tokens for ten seconds after the last one.
        """
        rate = self._rate(names, **only)
        late = next((n for n, item in reversed(list(enumerate(self.recent))) if self.newest.at - item.at >= QUIET_S), 0)
        found = increase(self.recent[late:], names, **only)
        return 0.0 if rate and found is not None and not found.amount else rate

    def _decode_at_end(self, names: tuple[str, ...]) -> tuple[float | None, Basis]:
        """Engines whose token counter moves only when a request ends: SGLang before 0.5.9, llama.cpp."""
        rate = self._rate(names)
        idle = self.running == 0 and all(count(item.index, RUNNING[self.engine]) == 0 for item in self.recent)
        if rate is not None and idle:
            return rate, Basis.MEASURED
        if self.engine is EngineKind.SGLANG:
            self._missing(REALTIME)
            gauge = total(self.index, GEN_THROUGHPUT)
            if gauge is not None and self.running:
                self.notes.append("decode tok/s is the engine's own gauge, which may lag or stick")
                return gauge, Basis.ENGINE_REPORTED
        else:
            self._missing(names[0])
        if rate:
            self.notes.append(f"{names[0]} moves only when a request ends: the rate comes in jumps")
            return rate, Basis.ESTIMATE
        if rate is not None:
            self.notes.append(f"{names[0]} moves only when a request ends: no rate while requests run")
        return None, Basis.MEASURED

    def _prefill(self) -> float | None:
        if self.engine is EngineKind.SGLANG and REALTIME in self.index:
            return self._rate(REALTIME, mode="prefill_compute")
        computed = self._rate(PROMPT_BY_SOURCE, source="local_compute") if PROMPT_BY_SOURCE in self.index else None
        if computed is not None:
            return computed
        names = PROMPT[self.engine]
        self._missing(names[0])
        rate = self._rate(names)
        if self.engine is not EngineKind.VLLM and rate is not None:
            self.notes.append(f"{names[0]} moves only when a request ends")
            return rate or (0.0 if self.running == 0 else None)
        return rate

    def _step_delta(self) -> float | None:
        engine = self.engine
        if STEPS[engine] and STEPS[engine][0] in self.index:
            moved = [self._moved(STEPS[engine])]
        elif engine is EngineKind.SGLANG and REALTIME in self.index:
            moved = [self._moved(REALTIME, mode=mode) for mode in ("decode", "prefill_compute")]
        else:
            moved = [self._moved(GENERATION[engine]), self._moved(PROMPT[engine])]
        known = [item.amount for item in moved if item is not None]
        return sum(known) if known else None

    def _generated(self) -> float | None:
        return total(self.index, GENERATION[self.engine])

    def _prefix_hits(self) -> float | None:
        # The ends alone: counters move too little in a few seconds, and minutes of scrapes are not read each second.
        ends = (self.all[0], self.newest)
        if self.engine is EngineKind.LLAMACPP:
            return None
        if self.engine is EngineKind.SGLANG and REALTIME in self.index:
            hits = increase(ends, REALTIME, mode="prefill_cache")
            computed = increase(ends, REALTIME, mode="prefill_compute")
            asked = (hits.amount if hits else 0.0) + computed.amount if computed else None
        else:
            sglang = self.engine is EngineKind.SGLANG
            hits = increase(ends, SGLANG_CACHED if sglang else PREFIX_HITS)
            queries = increase(ends, PROMPT[self.engine] if sglang else PREFIX_QUERIES)
            asked = queries.amount if queries else None
        return hits.amount / asked if hits is not None and asked else None

    def _new_process(self) -> bool:
        pairs = pairwise(self.recent)
        return any(new_process(before, after) or _pool_changed(before, after) for before, after in pairs)

    def _missing(self, name: str) -> None:
        if name not in self.index:
            self.notes.append(f"series {name} missing")

    def _model_name(self) -> str:
        for sample in self.newest.samples:
            if name := sample.label("model_name"):
                return sanitize.word(name)
        return ""

    def _remarks(self, waiting: int | None, idle: bool, pool: KvPool) -> None:
        for value, names in ((self.running, RUNNING[self.engine]), (waiting, WAITING[self.engine])):
            if value is None:
                word = "is not a number" if names[0] in self.index else "missing"
                self.notes.append(f"series {names[0]} {word}")
        if has_pid(self.index):
            self.notes.append("several processes report the same gauge (pid label): the largest is shown")
        if idle and not waiting and pool.used_fraction:
            self.notes.append("no request runs: KV use is the engine's last report")
        asleep = [item.label("sleep_state") for item in self.index.get(SLEEP_STATE, ()) if item.value == 1.0]
        if asleep and "awake" not in asleep:
            self.notes.append("the engine sleeps: " + ", ".join(sanitize.word(state or "") for state in asleep))


def _pool_changed(before: Scrape, after: Scrape) -> bool:
    old, new = kv_pool(before)[0], kv_pool(after)[0]
    return None not in (old.tokens, new.tokens) and old.tokens_basis is new.tokens_basis and old.tokens != new.tokens


def live_series(scrape: Scrape) -> bool:
    """Whether a scrape holds a live gauge of requests; a SGLang rank above 0 exports start-up constants alone."""
    return total(scrape.index, RUNNING[scrape.engine]) is not None
