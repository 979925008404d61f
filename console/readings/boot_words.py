"""The lines by which a start is told, as data: what vLLM and SGLang write, and what a recipe adds.

A line is written as it stands in the log, with `*` for what varies; it need not begin or end there. `{1}`, `{2}` stand
for what the first and second `*` held. Lines are of vLLM 0.28 to 0.32 and SGLang 0.5, from logs of GB10 and GB300.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from console.readings.boot import PhaseName

SGLANG, VLLM = "sglang", "vllm"


class Says(StrEnum):
    """What else a line tells, beyond the phase."""

    NOTHING = ""
    OPENS = "opens"
    """An engine starts: a second one in the same log is a restart."""
    WEIGHTS_READ = "weights read"
    """This rank's weights are done: what it loads next is the draft's."""
    LOADS = "loads"
    """Loading begins: of the weights, or of the draft's once this rank's weights are done."""
    DRAFT = "draft"
    """Speaks of the draft before its turn too: counts only once this rank's weights are done."""
    LISTENS = "listens"
    """The server listens: vLLM's opens its port last, so that it is ready; SGLang's still warms up."""
    KV_TOKENS = "kv tokens"
    KV_BUDGET = "kv budget"
    TUNE_LOADED = "tune loaded"
    TUNE_BEGINS = "tune begins"
    TUNE_ENDS = "tune ends"
    TUNE_ANEW = "tune anew"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that a good start shows."""

    line: str
    phase: PhaseName | None = None
    """The phase that it belongs to; None: it belongs to whichever runs."""
    says: Says = Says.NOTHING
    detail: str = ""
    """What the phase is said with."""
    ends: bool = False
    """The phase's own work is done; it does not begin the phase."""
    engine: str = ""
    """The engine that alone writes it; '' where several may."""


@dataclass(frozen=True, slots=True)
class Fails:
    """A line after which the start will not come up, or (`stops` False) that something is wrong with it."""

    line: str
    cause: str
    """In the operator's words."""
    advice: str = ""
    heals: bool = False
    """Another try may work as things are."""
    stops: bool = True
    sure: bool = True
    """False: it may be caught, so that it counts only once the process ends."""
    loud: bool = False
    """Counts also where the log calls it INFO or WARNING."""
    sums_up: bool = False
    """Says only that it failed: the exception before it says why."""


@dataclass(frozen=True, slots=True)
class Shows:
    """A line that every start of a recipe shows."""

    name: str
    line: str
    by: PhaseName
    """It must have come before this phase."""
    cause: str = ""
    """Where its absence means that the start is a wrong one: why, in the operator's words."""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Silence:
    """A phase in which nothing may be silent for long."""

    phase: PhaseName
    after: float
    """Seconds."""
    cause: str
    advice: str = ""
    heals: bool = False


TUNE_LIMIT_S = 60.0
"""Seconds of tuning after which its cache was missed: a hit is over within seconds, a miss takes 74 to 90 minutes."""


@dataclass(frozen=True, slots=True)
class BootWords:
    """What a recipe adds to the words of the engines."""

    engine: str = ""
    """The declared engine; '' where it is told by the log."""
    marks: tuple[Mark, ...] = ()
    failures: tuple[Fails, ...] = ()
    always: tuple[Shows, ...] = ()
    silences: tuple[Silence, ...] = ()


_P = PhaseName

SGLANG_MARKS = tuple(
    Mark(line, phase, says, detail, ends, SGLANG)
    for line, phase, says, detail, ends in (
        ("server_args=", _P.START, Says.OPENS, "", False),
        ("Auto-detected *expert layout", _P.START, Says.NOTHING, "", False),
        ("Init torch distributed begin", _P.DISTRIBUTED, Says.NOTHING, "", False),
        ("Init torch distributed ends", _P.DISTRIBUTED, Says.NOTHING, "", True),
        ("Load weight begin", _P.WEIGHTS, Says.LOADS, "", False),
        ("Multi-thread loading shards", None, Says.NOTHING, "", False),
        ("Finished streaming dequant", _P.POST_PROCESS, Says.NOTHING, "", False),
        ("Preparing * experts for ", _P.POST_PROCESS, Says.NOTHING, "", False),
        ("Load weight end", None, Says.WEIGHTS_READ, "", True),
        ("loading draft arch ", _P.DRAFT, Says.DRAFT, "", False),
        ("SWA sizing: mode=", _P.KV_POOL, Says.NOTHING, "", False),
        ("memory calculation: bytes_per", _P.KV_POOL, Says.NOTHING, "", False),
        (", full_token=*", None, Says.KV_BUDGET, "", False),
        ("pool sizes: full=*", _P.KV_POOL, Says.KV_TOKENS, "", False),
        ("KV Cache is allocated. #tokens: *", _P.KV_POOL, Says.KV_TOKENS, "", False),
        ("Memory pool end.", _P.KV_POOL, Says.NOTHING, "", False),
        ("max_total_num_tokens=*, chunked", None, Says.KV_TOKENS, "", False),
        ("FlashInfer autotune: per-rank caches disagree", _P.AUTOTUNE, Says.TUNE_ANEW, "", False),
        ("Running FlashInfer autotune", _P.AUTOTUNE, Says.TUNE_BEGINS, "", False),
        ("FlashInfer autotune completed", _P.AUTOTUNE, Says.TUNE_ENDS, "", True),
        ("Capture *graph begin", _P.GRAPHS, Says.NOTHING, "", False),
        ("Capturing batches (", _P.GRAPHS, Says.NOTHING, "", False),
        ("Capture *graph end", _P.GRAPHS, Says.NOTHING, "", True),
        ("The server is fired up and ready to roll!", _P.READY, Says.NOTHING, "", False),
    )
)

VLLM_MARKS = tuple(
    Mark(line, phase, says, detail, ends, VLLM)
    for line, phase, says, detail, ends in (
        ("non-default args: ", _P.START, Says.OPENS, "", False),
        ("vLLM API server version ", _P.START, Says.OPENS, "", False),
        ("Resolved architecture: ", _P.START, Says.NOTHING, "", False),
        ("Launching vLLM (*headless", _P.START, Says.NOTHING, "", False),
        ("Initializing a V1 LLM engine", _P.START, Says.NOTHING, "", False),
        ("distributed_init_method=", _P.DISTRIBUTED, Says.NOTHING, "", False),
        ("rank * in world size * is assigned", _P.DISTRIBUTED, Says.NOTHING, "", True),
        ("Starting to load model", _P.WEIGHTS, Says.NOTHING, "", False),
        ("Loading model from scratch", _P.WEIGHTS, Says.NOTHING, "", False),
        ("Loading weights took ", _P.POST_PROCESS, Says.NOTHING, "", False),
        ("Model loading took * and *", None, Says.NOTHING, "{1}", True),
        ("Loading drafter model", _P.DRAFT, Says.NOTHING, "", False),
        ("Available KV cache memory: *", _P.KV_POOL, Says.NOTHING, "{1}", False),
        ("KV cache size: * tokens", _P.KV_POOL, Says.KV_TOKENS, "", False),
        ("[Autotuner]: Loaded * configs", _P.AUTOTUNE, Says.TUNE_LOADED, "", False),
        ("Autotuning process starts", _P.AUTOTUNE, Says.TUNE_BEGINS, "", False),
        ("Autotuning process ends", _P.AUTOTUNE, Says.TUNE_ENDS, "", True),
        ("Capturing CUDA graphs", _P.GRAPHS, Says.NOTHING, "", False),
        ("Graph capturing finished in * secs", _P.GRAPHS, Says.NOTHING, "", False),
        ("init engine (profile, create kv cache, warmup model) took", None, Says.NOTHING, "", True),
        ("Starting vLLM server on ", _P.HTTP, Says.NOTHING, "", False),
        ("Starting vLLM API server", _P.HTTP, Says.NOTHING, "", False),
    )
)

COMMON_MARKS = (
    Mark("Loaded * configs", _P.AUTOTUNE, Says.TUNE_LOADED),
    Mark("Started server process [", _P.HTTP),
    Mark("Application startup complete", _P.HTTP, Says.LISTENS),
    Mark("Uvicorn running on ", _P.HTTP),
)

_REBUILD = "rebuild that rank's row copy for this checkpoint and this partition; no other try will help"
_TOGETHER = "stop every rank, then start all of them again, the workers first"
_SMALLER = "this model does not fit as it is asked for: less context, fewer sequences or more offload"

FAILURES = (
    # Row copies of the Engram tables
    Fails("engram layer *: the TP ranks' row ranges do not tile", "row ranges of layer {1} do not tile", _REBUILD),
    Fails("rank *: * has no engram-local.json", "rank {1}: no engram-local.json in {2}", _REBUILD),
    Fails("rank *: * shard * is missing", "rank {1}: shard {3} is missing", _REBUILD),
    Fails("engram layer *: shard * is missing", "layer {1}: shard {2} is missing", _REBUILD),
    Fails("rank *: engram layer *: row range * is outside *", "rank {1}: row range {3} lies outside {4}", _REBUILD),
    Fails(
        "holds * rows but the model config says *",
        "the copy's shards do not belong to this checkpoint: {1} rows",
        _REBUILD,
    ),
    Fails(
        "SPARK_ENGRAM_ROWS=* disagrees with *",
        "SPARK_ENGRAM_ROWS disagrees with the copy's manifest: the manifest wins",
        stops=False,
        loud=True,
    ),
    Fails(
        "Engram*this rank needs",
        "a row copy does not cover its rank: rows are read over NFS, slower",
        stops=False,
        loud=True,
    ),
    Fails(
        "DSV41_ENGRAM_DIR*unusable", "the row copy is not used: rows are read over NFS, slower", stops=False, loud=True
    ),
    # Memory
    Fails(
        "Available KV cache memory: -*",
        "the KV cache does not fit: -{1}",
        _SMALLER,
        loud=True,
    ),
    Fails("No available memory for the cache blocks", "the KV cache does not fit", _SMALLER),
    Fails(
        "is larger than the available KV cache memory",
        "the KV cache is too small for one request of full length",
        _SMALLER,
    ),
    Fails(
        "Free memory on device*(*GiB) on startup is less than desired",
        "the GPU is not free: {2} GiB at the start",
        "another process still holds it: end that one first",
        heals=True,
    ),
    Fails("Not enough memory. Please try to increase --mem-fraction-static", "the KV cache does not fit", _SMALLER),
    Fails("No common block size for *", "no common block size for {1}", "pin one with --block-size"),
    Fails(
        "PIN_HOT abort layer * after: MemAvailable *",
        "PIN_HOT aborted at layer {1}: MemAvailable {2}",
        "drop the page cache on that host, then start again",
        heals=True,
    ),
    Fails(
        "memguard TRIPPED on *: MemAvailable * < floor *;*killed *",
        "memguard killed {5} on {1}: MemAvailable {2}, floor {3}",
        "this checkpoint does not fit while it loads",
        loud=True,
    ),
    Fails("OutOfMemoryError", "out of GPU memory", _SMALLER),
    Fails("CUDA error: out of memory", "out of GPU memory", _SMALLER),
    Fails("CUDA out of memory", "out of GPU memory", _SMALLER),
    Fails("NV_ERR_NO_MEMORY", "the driver has no memory to give", "drop the page cache on that host", heals=True),
    # Between ranks
    Fails(
        "NCCL*unhandled * error",
        "NCCL: unhandled {2} error",
        "GID index, cable or a rank that is gone; NCCL_DEBUG=INFO says which",
        heals=True,
    ),
    Fails(
        "Timed out after * seconds waiting for clients. * clients joined",
        "distributed init: only {2} ranks came",
        f"a rank is not up, or joined an old head: {_TOGETHER}",
        heals=True,
    ),
    Fails(
        "client socket has timed out after * while trying to connect to *",
        "distributed init: no head at {2} within {1}",
        f"the head is not up, or this rank has another address for it: {_TOGETHER}",
        heals=True,
    ),
    Fails(
        "Did the remote server shutdown or crash",
        "the head's rendezvous is gone: the head died or was started again",
        _TOGETHER,
        heals=True,
        loud=True,
    ),
    # The rest
    Fails("CUDA error: *", "CUDA error: {1}", "nvidia-smi and dmesg of that host", heals=True),
    Fails(
        "ddress already in use",
        "a port is taken: another engine, or the old one, still runs",
        "end what holds it, then start again",
        heals=True,
    ),
    Fails(
        "Repo id must be in the form *: '*'",
        "no such model folder in the container: {2}",
        "compare the model argument with the mounts",
    ),
    Fails(
        "does not appear to have a file named *.json",
        "the checkpoint lacks {1}.json",
        "finish the download: small files are part of it",
    ),
    Fails(
        "No such file or directory: '*config.json'",
        "the checkpoint lacks {1}config.json",
        "finish the download: small files are part of it",
    ),
    Fails(
        "ModuleNotFoundError: No module named *",
        "the image lacks the Python module {1}",
        "the image is the wrong one",
        sure=False,
    ),
    Fails("Engine core initialization failed", "the engine core did not start", sums_up=True),
    Fails("EngineCore failed to start", "the engine core did not start", sums_up=True),
    Fails("WorkerProc initialization failed", "a worker did not start", sums_up=True),
    Fails("Scheduler hit an exception", "the scheduler died", sums_up=True),
    Fails("Received sigquit from a child process", "a child process died", sums_up=True),
)

ENDINGS = (
    "[shutdown]",
    "Parent process exited, terminating worker queues",
    "Application shutdown complete",
    "Received sigquit from a child process",
)
"""Lines of a process that is on its way out."""

SILENCES = (
    Silence(
        _P.DISTRIBUTED,
        180.0,
        "distributed init hangs",
        f"a rank is missing, joined an old head, or a GID index moved: {_TOGETHER}",
        heals=True,
    ),
)

MARKS = (*SGLANG_MARKS, *VLLM_MARKS, *COMMON_MARKS)
