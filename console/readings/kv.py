"""Size and use of the KV cache pool, by the rules of each engine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from console.readings.exposition import Sample
from console.readings.quality import Basis
from console.readings.scrape import Scrape
from console.readings.series import (
    CACHE_CONFIG,
    LLAMACPP_USAGE,
    SGLANG_EVICTABLE,
    SGLANG_POOL,
    SGLANG_USAGE,
    SGLANG_USAGE_PARTS,
    SGLANG_USED,
    VLLM_USAGE,
    EngineKind,
    present,
    scope,
    total,
    values,
)


@dataclass(frozen=True, slots=True)
class KvPool:
    """The KV cache pool of the lane."""

    tokens: int | None
    tokens_basis: Basis
    used_fraction: float | None
    """0..1, weighted over DP ranks."""
    used_tokens: float | None
    evictable_tokens: float | None
    evidence: str
    """Which series the size came from."""
    binding: str = ""
    """Which pool of a hybrid model is the fullest (`full`, `swa`, `mamba`), where the engine tells them apart."""


MOST_TOKENS = 2.0**48
"""No pool, block or number of blocks is as large; whole numbers beyond it would not fit a float when multiplied."""

NO_POOL = KvPool(None, Basis.MEASURED, None, None, None, "")


def kv_pool(scrape: Scrape) -> tuple[KvPool, tuple[str, ...]]:
    """The pool as of one scrape, and notes on what is missing or suspect."""
    if "kv" not in scrape.memo:
        scrape.memo["kv"] = _kv_pool(scrape)
    found: tuple[KvPool, tuple[str, ...]] = scrape.memo["kv"]
    return found


def _kv_pool(scrape: Scrape) -> tuple[KvPool, tuple[str, ...]]:
    if scrape.engine is EngineKind.VLLM:
        pool, notes = _vllm(scrape)
    elif scrape.engine is EngineKind.SGLANG:
        pool, notes = _sglang(scrape)
    else:
        usage = total(scrape.index, LLAMACPP_USAGE)
        pool, notes = KvPool(None, Basis.MEASURED, usage, None, None, ""), []
        if usage is None:
            notes.append("llama.cpp reports no KV pool")
    if pool.used_fraction is not None and pool.used_fraction > 1.0:
        notes.append(f"KV use of {pool.used_fraction:.2f} of the pool is more than there is: suspect")
    return pool, tuple(notes)


def _number(text: str | None) -> int | None:
    """A positive whole number out of label text; None for `None`, absent, not a number, 0, or more than any pool."""
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return int(number) if 0 < number < MOST_TOKENS else None


def _vllm_sizes(samples: tuple[Sample, ...]) -> tuple[dict[str, int], int | None]:
    """Tokens by engine out of `kv_cache_size_tokens`, and the blocks x block_size product of the whole lane.

    In data-parallel mode `num_gpu_blocks` is the sum over engines already (repeated on each), while
    `kv_cache_size_tokens` is one engine's own.
    """
    sizes: dict[str, int] = {}
    products = []
    for sample in samples:
        engine = scope(sample.labels)
        size = _number(sample.label("kv_cache_size_tokens"))
        blocks, block = _number(sample.label("num_gpu_blocks")), _number(sample.label("block_size"))
        if size is not None:
            sizes[engine] = max(size, sizes.get(engine, 0))
        if blocks is not None and block is not None:
            products.append(blocks * block)
    complete = {scope(sample.labels) for sample in samples} == set(sizes)
    return (sizes if complete else {}), max(products, default=None)


def _vllm(scrape: Scrape) -> tuple[KvPool, list[str]]:
    notes: list[str] = []
    name = present(scrape.index, VLLM_USAGE)
    usage = {scope(key): value for key, value in values(scrape.index, name).items() if math.isfinite(value)}
    if name is None:
        notes.append(f"series {VLLM_USAGE[0]} missing")
    elif not usage:
        notes.append(f"series {name} is not a number")
    sizes, product = _vllm_sizes(scrape.index.get(CACHE_CONFIG, ()))
    weights = [sizes.get(engine, 0) for engine in usage]
    fraction = _weighted(list(usage.values()), weights if all(weights) else [])
    tokens, basis, evidence = None, Basis.MEASURED, ""
    if sizes:
        tokens, evidence = (
            sum(sizes.values()),
            "kv_cache_size_tokens of vllm:cache_config_info (at max length)",
        )
    elif product is not None:
        tokens, basis = product, Basis.ESTIMATE
        evidence = "num_gpu_blocks x block_size of vllm:cache_config_info (wrong for hybrid models)"
    else:
        notes.append("KV pool size unknown: vllm:cache_config_info " + _why_no_size(scrape))
    used = fraction * tokens if fraction is not None and tokens is not None else None
    return KvPool(tokens, basis, fraction, used, None, evidence), notes


def _why_no_size(scrape: Scrape) -> str:
    return "says None" if scrape.index.get(CACHE_CONFIG) else "is missing"


def _weighted(shares: list[float], weights: list[int]) -> float | None:
    if not shares:
        return None
    if not weights:
        return sum(shares) / len(shares)
    return sum(share * weight for share, weight in zip(shares, weights, strict=True)) / sum(weights)


def _sglang(scrape: Scrape) -> tuple[KvPool, list[str]]:
    index = scrape.index
    notes: list[str] = []
    size = total(index, SGLANG_POOL)
    if size is not None and not 0 < size < MOST_TOKENS:
        size = None
    if not size:
        notes.append(f"series {SGLANG_POOL[0]} missing: KV pool size unknown")
    used = total(index, SGLANG_USED)
    told = [value for value in values(index, present(index, SGLANG_USAGE)).values() if math.isfinite(value)]
    engine_fraction = sum(told) / len(told) if told else None
    fraction = used / size if used is not None and size else engine_fraction
    binding = ""
    # token_usage is the fullest of several pools; over the plain pool's share, another pool is the one that binds.
    if fraction is not None and engine_fraction is not None and engine_fraction > fraction + 0.01:
        parts = {part: max(values(index, name).values(), default=0.0) for part, name in SGLANG_USAGE_PARTS.items()}
        fraction, binding = engine_fraction, max(parts, key=lambda part: parts[part])
        notes.append(f"the {binding} pool binds: its use is shown")
    if fraction is None:
        notes.append(f"series {SGLANG_USED[0]} and {SGLANG_USAGE[0]} missing: KV use unknown")
    evidence = SGLANG_POOL[0] if size else ""
    tokens = (int(size) or None) if size else None  # a part of one token is no pool
    if used is None and tokens is not None and fraction is not None and not binding:
        used = fraction * tokens
    return KvPool(tokens, Basis.MEASURED, fraction, used, total(index, SGLANG_EVICTABLE), evidence, binding), notes
