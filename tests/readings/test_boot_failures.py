"""Why a start will not come up: named by its lines, by an exception, or by silence; and what is no failure."""

from __future__ import annotations

import pytest
from boot_logs import OPENING, SGLANG_BEGAN, SGLANG_LOG, fed, log, stamped, texts

from console.readings.boot import PhaseName
from console.readings.boot_reader import BootReader, read_boot
from console.readings.boot_words import FAILURES, BootWords, Fails, Silence

P = PhaseName
TILING, NO_MANIFEST, NO_SHARD, OUTSIDE = log("engram-boot-errors.rendered.txt").strip().split("\n")
VLLM = "(EngineCore pid=362) ERROR 09-28 15:22:47 [core.py:1] "
INFO = "(EngineCore pid=362) INFO 09-28 15:22:47 [core.py:1] "
LOADING = ["[2026-09-11 23:34:13 TP0 EP0] Load weight begin. avail mem=111.47 GB"]

NAMED = [
    (TILING, "row ranges of layer 1 do not tile", False),
    (NO_MANIFEST, "rank 2: no engram-local.json in /engram-local", False),
    (NO_SHARD, "rank 3: shard /engram-local/model-00047-of-00048.safetensors is missing", False),
    (OUTSIDE, "rank 0: row range [96001542, 392003084) lies outside [0, 384006168]", False),
    (
        "RuntimeError: engram layer 1: /x holds 384006168 rows but the model config says 384016682; the shards do not",
        "the copy's shards do not belong to this checkpoint: 384006168 rows",
        False,
    ),
    (INFO + "Available KV cache memory: -6.96 GiB", "the KV cache does not fit: -6.96 GiB", False),
    (VLLM + "ValueError: No available memory for the cache blocks. Try increasing", "the KV cache does not fit", False),
    (
        VLLM + "ValueError: To serve at least one request with the model's max seq len (1048576), (9.1 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (4.9 GiB).",
        "the KV cache is too small for one request of full length",
        False,
    ),
    (
        VLLM + "ValueError: Free memory on device cuda:0 (12.5/119.6 GiB) on startup is less than desired GPU memory",
        "the GPU is not free: 12.5/119.6 GiB at the start",
        True,
    ),
    ("Not enough memory. Please try to increase --mem-fraction-static.", "the KV cache does not fit", False),
    (VLLM + "ValueError: No common block size for 64.", "no common block size for 64.", False),
    (
        "(EngineCore pid=362) PIN_HOT abort layer 9 after: MemAvailable 9.68 GiB < 10 GiB",
        "PIN_HOT aborted at layer 9: MemAvailable 9.68 GiB < 10 GiB",
        True,
    ),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out of GPU memory", False),
    ("RuntimeError: CUDA error: out of memory", "out of GPU memory", False),
    ("NVRM: failed with NV_ERR_NO_MEMORY", "the driver has no memory to give", True),
    ("torch.distributed.DistBackendError: NCCL error in: P.cpp:1, unhandled system error (run with NCCL_DEBUG=INFO)",
     "NCCL: unhandled system error", True),
    (
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/4 clients joined.",
        "distributed init: only 1/4 ranks came",
        True,
    ),
    (
        "The client socket has timed out after 600000ms while trying to connect to (192.0.2.11, 29541).",
        "distributed init: no head at (192.0.2.11, 29541). within 600000ms",
        True,
    ),
    (
        "[rank1]:[W926 09:43:35.405743739 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=46): Failed to "
        "recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
        "the head's rendezvous is gone: the head died or was started again",
        True,
    ),
    ("RuntimeError: CUDA error: an illegal memory access was encountered",
     "CUDA error: an illegal memory access was encountered", True),
    ("OSError: [Errno 98] Address already in use", "a port is taken: another engine, or the old one, still runs", True),
    (
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8210): address already in use",
        "a port is taken: another engine, or the old one, still runs",
        True,
    ),
    ("OSError: /model does not appear to have a file named config.json.", "the checkpoint lacks config.json", False),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: '/model/engram/config.json'",
        "the checkpoint lacks /model/engram/config.json",
        False,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "cause", "heals"), NAMED)
def test_failures_with_a_name(line: str, cause: str, heals: bool) -> None:
    failure = fed([*LOADING, line]).boot().failure
    assert failure is not None
    assert (failure.cause, failure.heals) == (cause, heals)
    assert failure.line == line[:300] or (failure.line.endswith("…") and line.startswith(failure.line[:-1]))
    assert failure.advice


def test_every_pattern_of_a_failure_is_tried_here() -> None:
    said = "\n".join(line for line, _, _ in NAMED)
    untried = [item.line for item in FAILURES if item.stops and item.sure and not item.sums_up]
    missed = [line for line in untried if not all(part in said for part in line.split("*"))]
    assert (
        missed
        == [
            "engram layer *: shard * is missing",
            "memguard TRIPPED on *: MemAvailable * < floor *;*killed *",
            "Repo id must be in the form *: '*'",
        ][1:]
    )


def test_a_guard_that_killed_the_container() -> None:
    failure = read_boot(log("cluster-up-FAILED.tsw2k.log")).failure
    assert failure is not None
    assert failure.cause == (
        "memguard killed vllm_dsv41 (pid 187430) on node-b: MemAvailable 6117 MiB, floor 6 GiB at t+159 s"
    )
    assert failure.advice == "this checkpoint does not fit while it loads"


def test_a_model_folder_that_is_not_there() -> None:
    boot = read_boot(log("vllm_badpath.log"))
    assert boot.failure is not None
    assert boot.failure.cause == "no such model folder in the container: /mnt/llm/no-such-model"
    assert (boot.now, boot.ready, boot.engine) == (P.START, None, "vllm")


@pytest.mark.parametrize(
    "name", ["vllm_boot.log", "sglang-boot-gb10.log", "vllm-worker-boot-gb10.log", "gb300-boot-facts.txt"]
)
def test_real_boots_show_no_failure(name: str) -> None:
    reader = BootReader()
    for row in log(name).split("\n"):
        reader.take(None, row)
        assert reader.boot().failure is None
    assert reader.boot().warnings == ()


# What is no failure

WARNINGS = [
    "(APIServer pid=737) WARNING 11-30 21:42:57 [s.py:255] This can cause errors like `OSError: [Errno 24] Too many",
    "(Worker pid=7330) WARNING 11-30 21:44:23 [utils.py:597] Exception: CUDA out of memory; falling back",
    "(Worker pid=7330) INFO 11-30 21:44:23 [utils.py:597] port 29541: Address already in use, taking the next one",
    "[W1130 21:44:22.554683077 socket.cpp:68] [c10d] The server socket has failed to bind: Address already in use",
    "2026-09-20 17:10:22,436 - WARNING - tuner.py:1 - flashinfer.jit: CUDA error: out of memory in one tactic, skipped",
    "[2026-09-11 23:34:05] Ignore import error when loading x: No module named 'torchcodec'",
    '[2026-09-11 23:34:05] INFO:     127.0.0.1:1 - "GET /x?q=CUDA+out+of+memory:+Address+already+in+use HTTP/1.1" 404',
    "ModuleNotFoundError: No module named 'deep_ep'",
]


@pytest.mark.parametrize("line", WARNINGS)
def test_what_the_engine_itself_does_not_call_an_error(line: str) -> None:
    reader = fed([*LOADING, line])
    assert reader.boot().failure is None
    reader.over()
    assert reader.boot().failure is None


TRACE = [
    "Traceback (most recent call last):",
    '  File "/x.py", line 1, in <module>',
    "    report_usage()",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='stats', port=443)",
]


def test_an_exception_counts_when_the_process_ends_and_not_before() -> None:
    reader = fed([*LOADING, *TRACE])
    assert reader.boot().failure is None
    reader.take(None, "Multi-thread loading shards: 100% Completed | 48/48 [00:56<00:00,  1.18s/it]")
    reader.ended()
    boot = reader.boot()
    assert boot.failure is not None  # it went on after that exception: its end has another cause
    assert boot.failure.cause == "ended in post-process without saying why"
    died = fed([*LOADING, *TRACE])
    died.ended()
    failure = died.boot().failure
    assert failure is not None and failure.cause == TRACE[-1]
    assert died.boot().ended


def test_the_first_of_several_exceptions_is_the_root() -> None:
    rows = [
        *LOADING,
        "[2026-09-11 23:44:02 TP0 EP0] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/sgl/scheduler.py", line 2546, in run_scheduler_process',
        "KeyError: 'layers.3.mlp'",
        "",
        "[2026-09-11 23:44:03] Received sigquit from a child process. It usually means the child failed.",
        "Traceback (most recent call last):",
        '  File "/sgl/engine.py", line 1, in x',
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).",
    ]
    failure = fed(rows).boot().failure
    assert failure is not None
    assert failure.cause == "KeyError: 'layers.3.mlp'"


def test_a_summary_stands_where_no_exception_says_more() -> None:
    failure = fed([*LOADING, VLLM + "EngineCore failed to start."]).boot().failure
    assert failure is not None and failure.cause == "the engine core did not start"


def test_what_a_settings_check_says_stands_on_its_next_line() -> None:
    rows = [
        "INFO 09-28 17:24:40 [model.py:692] Resolved architecture: DeepseekV41ForCausalLM",
        "Traceback (most recent call last):",
        '  File "/usr/local/bin/vllm", line 10, in <module>',
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig",
        "  Value error, num_speculative_tokens:7 must be divisible by n_predict=5 [type=value_error]",
        "    For further information visit https://errors.pydantic.dev/2.13/v/value_error",
    ]
    failure = read_boot("\n".join(rows)).failure
    assert failure is not None and "num_speculative_tokens:7 must be divisible by n_predict=5" in failure.cause


def test_a_captured_log_that_goes_on_after_an_exception() -> None:
    assert read_boot("\n".join([*LOADING, *TRACE, *["still here"] * 10])).failure is not None
    assert read_boot("\n".join([*LOADING, *TRACE, *["still here"] * 100])).failure is None


def test_a_named_failure_that_the_engine_survives_becomes_a_warning() -> None:
    at = SGLANG_LOG.split("\n")
    reader = fed(
        [*at[:8], "[2026-09-11 23:43:15 TP0 EP0] torch.OutOfMemoryError: CUDA out of memory, retrying", *at[8:9]]
    )
    assert reader.boot().failure is not None
    for row in at[9:13]:
        reader.take(None, row)
    boot = reader.boot()
    assert (boot.failure, boot.warnings, boot.now) == (None, ("out of GPU memory",), P.DRAFT)
    reader.ended()
    failure = reader.boot().failure
    assert failure is not None and failure.cause == "out of GPU memory"


def test_another_rank_that_goes_on_does_not_heal_the_one_that_failed() -> None:
    rows = [
        "[2026-09-11 23:34:13 TP0] Load weight begin. avail mem=111.47 GB",
        "[2026-09-11 23:34:20 TP1] torch.OutOfMemoryError: CUDA out of memory",
        "[2026-09-11 23:34:21 TP0] Finished streaming dequant fp8 wo_a",
    ]
    boot = fed(rows).boot()
    assert boot.now is P.POST_PROCESS
    assert boot.failure is not None and boot.warnings == ()


def test_warnings_do_not_stop_a_boot() -> None:
    rows = [
        "SPARK_ENGRAM_ROWS=1:0:5 disagrees with /engram-local/engram-local.json; the manifest wins",
        "(Worker_TP1 pid=186) WARNING 09-28 15:20:11 [engram.py:7] Engram layer 1: rows [0, 5), this rank needs [5, 9)",
        "(Worker_TP1 pid=186) WARNING 09-28 15:20:11 [engram.py:7] DSV41_ENGRAM_DIR=/x unusable: no manifest",
    ]
    boot = fed([*LOADING, *rows, *rows]).boot()
    assert boot.failure is None
    assert boot.warnings == (
        "SPARK_ENGRAM_ROWS disagrees with the copy's manifest: the manifest wins",
        "a row copy does not cover its rank: rows are read over NFS, slower",
        "the row copy is not used: rows are read over NFS, slower",
    )


# After it was up


def test_an_exception_of_one_request_is_no_failure_of_a_boot() -> None:
    reader = fed([*SGLANG_LOG.split("\n"), *TRACE, "torch.OutOfMemoryError: CUDA out of memory"])
    assert reader.boot().failure is None
    reader.over()
    assert reader.boot().failure is None


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("vllm_boot_2api.log", "RuntimeError: Process ApiServer_1 (PID: 1881) died with exit code -9"),
        ("vllm_boot_dp2.log", "RuntimeError: Engine core process EngineCore_DP1 died unexpectedly."),
        ("vllm_boot_spec.log", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."),
    ],
)
def test_the_end_of_a_process_that_was_up_has_a_cause(name: str, cause: str) -> None:
    boot = read_boot(log(name))
    assert boot.failure is not None and boot.failure.cause.startswith(cause)
    assert (boot.now, boot.phases[-1].name) == (None, P.READY)


def test_a_process_that_was_up_and_ended_without_a_word() -> None:
    reader = fed(SGLANG_LOG)
    reader.ended()
    assert (reader.boot().failure, reader.boot().ended) == (None, True)


# Silence


def test_a_rendezvous_that_nobody_joins() -> None:
    rows = [(1000.0, OPENING.strip()), (1010.0, "[2026-09-11 23:34:11 TP0 EP0] Init torch distributed begin.")]
    reader = stamped(rows, started=990.0)
    assert reader.boot(1189.0).failure is None
    failure = reader.boot(1190.0).failure
    assert failure is not None
    assert failure.cause == "distributed init hangs: silent for 180 s"
    assert failure.heals and "stop every rank" in failure.advice
    reader.take(1195.0, "[2026-09-11 23:37:16 TP0 EP0] Init torch distributed ends. elapsed=1.33 s")
    assert reader.boot(2000.0).failure is None


def test_other_phases_may_be_silent_for_long() -> None:
    reader = fed(SGLANG_LOG.split("\n")[:7])
    assert reader.boot(SGLANG_BEGAN + 6000).failure is None


def test_a_recipe_adds_its_own() -> None:
    words = BootWords(
        failures=(Fails("fan * stopped", "fan {1} is broken", "replace it", loud=True),),
        silences=(Silence(P.WEIGHTS, 30.0, "the disk hangs"),),
    )
    broken = fed([*LOADING, INFO + "fan 7\x1b[31m stopped"], words).boot().failure
    assert broken is not None and (broken.cause, broken.advice) == ("fan 7 is broken", "replace it")
    reader = stamped([(1000.0, LOADING[0])], words)
    silent = reader.boot(1031.0).failure
    assert silent is not None and silent.cause == "the disk hangs: silent for 31 s"


def test_what_a_pattern_holds_is_cut_and_safe() -> None:
    line = f"RuntimeError: engram layer {'1' * 5000}: the TP ranks' row ranges do not tile\x1b]0;x\x07"
    boot = fed(
        [*LOADING, line, "RuntimeError: engram layer \x1b[31m7\u202e: the TP ranks' row ranges do not tile"]
    ).boot()
    assert boot.failure is not None and boot.failure.cause == "row ranges of layer 7 do not tile"
    assert all(text.isprintable() and len(text) <= 300 for text in texts(boot))
