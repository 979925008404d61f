"""Starts read from real logs: phases, the KV pool, autotune, restarts, what is missing; and any other text."""

from __future__ import annotations

import random

import pytest
from boot_logs import LOGS, OPENING, OVERLAY, SGLANG_BEGAN, SGLANG_LOG, fed, log, names, stamped, texts, words
from hypothesis import given
from hypothesis import strategies as st

from console.readings import boot_reader
from console.readings.boot import PhaseName
from console.readings.boot_reader import BootReader, read_boot
from console.readings.boot_spans import MOST
from console.readings.boot_words import FAILURES, MARKS

P = PhaseName
ACCESS = 'INFO:     127.0.0.1:45144 - "GET /health HTTP/1.1" 200 OK'
SGLANG_PHASES = [
    (P.START, 11.0, ""),
    (P.WEIGHTS, 60.0, "48 of 48"),
    (P.POST_PROCESS, 565.0, ""),
    (P.DRAFT, 93.0, "48 of 48"),
    (P.KV_POOL, 7.0, "2 999 808 of 5 491 200 tokens"),
    (P.AUTOTUNE, 12.0, "done, tuned anew: the ranks' caches disagree"),
    (P.GRAPHS, 22.0, ""),
    (P.HTTP, 17.0, ""),
    (P.READY, 0.0, ""),
]


def test_a_boot_of_sglang() -> None:
    boot = read_boot(SGLANG_LOG)
    assert [(phase.name, phase.seconds, phase.detail) for phase in boot.phases] == SGLANG_PHASES
    assert (boot.engine, boot.now, boot.failure, boot.warnings) == ("sglang", None, None, ())
    assert (boot.began, boot.ready, boot.seconds) == (SGLANG_BEGAN, SGLANG_BEGAN + 787, 787.0)
    assert (boot.kv_budget, boot.kv_tokens, boot.autotune) == (5_491_200, 2_999_808, "done")
    for before, after in zip(boot.phases, boot.phases[1:], strict=False):
        assert before.ended == after.began


@pytest.mark.parametrize(
    ("last", "phase", "shards"),
    [
        ("37/48", P.WEIGHTS, "37 of 48"),
        ("100% Completed | 48/48 [00:56", P.POST_PROCESS, "48 of 48"),
        ("Load weight end. elapsed=541.76", P.POST_PROCESS, "48 of 48"),
        ("loading draft arch", P.DRAFT, None),
        ("Init torch distributed begin", P.DRAFT, None),
        ("17/48", P.DRAFT, "17 of 48"),
        ("48/48 [01:06", P.DRAFT, "48 of 48"),
        ("pool sizes", P.KV_POOL, "48 of 48"),
        ("Uvicorn running", P.HTTP, "48 of 48"),
        ("ready to roll", None, None),
    ],
)
def test_files_read_are_not_the_boots_progress(last: str, phase: PhaseName | None, shards: str | None) -> None:
    reader = BootReader()
    for row in SGLANG_LOG.split("\n"):
        reader.take(None, row)
        if last in row:
            break
    boot = reader.boot()
    assert boot.now is phase
    assert (boot.shards.text if boot.shards else None) == shards


VLLM = {
    "vllm_boot.log": ([85, 0, 1, 0, 4, 0, 0], 1_048_576, 70),
    "vllm_boot_2api.log": ([57, 0, 1, 1, 0, 5, 1, 0], 1_048_576, 181),
    "vllm_boot_dp2.log": ([96, 1, 0, 2, 0, 2, 0, 0], 10_240, 237),
    "vllm_boot_spec.log": ([38, 1, 0, 1, 0, 1, 0, 0], 3_072, 201),
}


@pytest.mark.parametrize("name", VLLM)
def test_boots_of_vllm(name: str) -> None:
    seconds, tokens, lines = VLLM[name]
    boot = read_boot(log(name))
    draft = [P.DRAFT] if len(seconds) == 8 else []
    wanted = [P.START, P.DISTRIBUTED, P.WEIGHTS, P.POST_PROCESS, *draft, P.KV_POOL, P.HTTP, P.READY]
    assert names(boot) == wanted
    assert [phase.seconds for phase in boot.phases] == seconds
    assert (boot.engine, boot.now, boot.kv_tokens, boot.lines) == ("vllm", None, tokens, lines)
    # its stamps name no year, so that no time is made up
    assert (boot.began, boot.ready, boot.newest) == (None, None, None)
    assert {phase.began for phase in boot.phases} == {None}


def test_a_time_near_by_tells_the_year() -> None:
    near = 1_796_083_200.0  # 2026-12-01
    boot = read_boot(log("vllm_boot.log"), now=near)
    assert (boot.began, boot.ready) == (1_796_074_977.0, 1_796_075_067.0)
    worker = read_boot(log("vllm-worker-boot-gb10.log"), started=1_790_608_770.0)
    assert [phase.began for phase in worker.phases] == [1_790_608_778.0, 1_790_608_788.0, 1_790_608_810.0]
    assert [phase.name for phase in worker.phases] == [P.START, P.DISTRIBUTED, P.WEIGHTS]
    assert (worker.now, worker.newest) == (P.WEIGHTS, 1_790_608_816.0)


@pytest.mark.parametrize("near", [None, 1_798_761_600.0])
def test_a_boot_over_new_year(near: float | None) -> None:
    rows = [
        "INFO 12-31 23:59:50 [m.py:1] Resolved architecture: X",
        "INFO 01-01 00:00:20 [m.py:1] Starting to load model",
    ]
    boot = fed(rows, started=near).boot()
    assert [phase.seconds for phase in boot.phases] == [30.0, 0.0]
    assert boot.began == (None if near is None else 1_798_761_590.0)


def test_lines_picked_from_boots_of_a_gb300() -> None:
    facts = read_boot(log("gb300-boot-facts.txt"), words("vllm-docker"))
    assert (facts.autotune, facts.kv_tokens, facts.engine) == ("hit", 3_179_961, "vllm")
    assert {phase.name: phase.detail for phase in facts.phases}[P.POST_PROCESS] == "62.33GiB of experts in host memory"
    campaign = read_boot(log("gb300-campaign.log"))
    assert campaign.autotune == "hit"
    assert [phase.detail for phase in campaign.phases] == ["hit, 210 configs", "", "4.89 GiB", ""]
    assert names(campaign) == [P.AUTOTUNE, P.GRAPHS, P.KV_POOL, P.GRAPHS]
    restore = read_boot(log("vllm-restore-tp4-gb10.log"))
    assert (restore.kv_tokens, restore.failure) == (1_250_201, None)


def test_the_stamps_of_the_logs_keeper_come_first() -> None:
    rows = SGLANG_LOG.split("\n")
    kept = [(1000.0 + number, row) for number, row in enumerate(rows)]
    boot = stamped(kept, started=999.0).boot()
    assert (boot.began, boot.newest) == (1000.0, 1000.0 + len(rows) - 1)
    assert names(boot) == [name for name, _, _ in SGLANG_PHASES]
    same = read_boot("\n".join(f"2026-09-11T23:40:{number:02}.5Z {row}" for number, row in enumerate(rows)))
    assert same.began == 1_789_170_000.5
    assert names(same) == names(boot)


# Order, repetition, floods


def test_a_boot_never_falls_back() -> None:
    order = {name: number for number, name in enumerate(PhaseName)}
    reader, highest = BootReader(), -1
    rows = SGLANG_LOG.split("\n")
    for number, row in enumerate(rows):
        reader.take(None, row)
        for again in rows[max(0, number - 12) : number]:  # what another rank says a little later
            reader.take(None, again)
        boot = reader.boot()
        assert [phase.name for phase in boot.phases].count(P.WEIGHTS) <= 1
        level = order[P.READY] if boot.now is None and boot.phases else order[boot.now] if boot.now else -1
        assert level >= highest
        highest = level
    assert highest == order[P.READY]


def test_a_flood_of_a_poller_changes_nothing_and_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = BootReader._look
    monkeypatch.setattr(BootReader, "_look", lambda self, at, text: (looked.append(text), look(self, at, text))[1])
    plain = fed(SGLANG_LOG).boot()
    alone = len(looked)
    flooded = fed(row for line in SGLANG_LOG.split("\n") for row in (line, *[ACCESS] * 500)).boot()
    assert len(looked) == 2 * alone
    assert flooded.phases == plain.phases
    assert flooded.newest == plain.newest
    assert flooded.lines == plain.lines * 501


def test_other_lines_cost_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = (
        "[2026-09-11 23:48:02 TP0 EP0] Decode batch, #running-req: 3, #token: 30210, gen throughput (token/s): 66.31"
    )
    reader = fed(SGLANG_LOG)
    monkeypatch.setattr(BootReader, "_look", lambda *_: pytest.fail("looked at"))
    for _ in range(1000):
        reader.take(None, decode)
    assert reader.boot().lines == SGLANG_LOG.count("\n") + 1001


def test_a_line_without_end_is_cut_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    for name in ("held", "read_head", "loading_progress"):
        whole = getattr(boot_reader, name)

        def counted(*arguments: object, whole: object = whole) -> object:
            seen.append(max(len(item) for item in arguments if isinstance(item, str | list)))
            return whole(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(boot_reader, name, counted)
    reader = BootReader()
    reader.take(1.0, "server_args=ServerArgs(" + '{"a": [1, 2]}, ' * 66_667)
    reader.take(2.0, "Load weight begin" + "\rshards: 1% Completed | 1/9 [" * 40_000)
    reader.take(3.0, "Load weight begin")
    boot = reader.boot()
    assert names(boot) == [P.START, P.WEIGHTS]
    assert seen and max(seen) <= boot_reader.LOOKED_AT


def test_a_bar_that_is_drawn_over_and_over() -> None:
    reader = BootReader()
    bar = "\rLoading safetensors checkpoint shards:  {0}% Completed | {1}/48 [00:08<00:00,  8.00s/it]"
    grown = ""
    for number in range(0, 48):
        grown += bar.format(number * 100 // 48, number)
        reader.growing(grown)
        boot = reader.boot()
        assert (boot.now, boot.shards.text if boot.shards else "") == (P.WEIGHTS, f"{number} of 48")
    reader.take(9.0, grown + bar.format(100, 48))
    boot = reader.boot()
    assert (boot.now, boot.lines) == (P.POST_PROCESS, 1)
    assert boot.shards is not None and boot.shards.text == "48 of 48"


def test_ranks_in_one_log_begin_their_draft_each_in_its_turn() -> None:
    rows = [
        "[2026-09-11 23:34:13 TP0] Load weight begin. avail mem=111.47 GB",
        "[2026-09-11 23:34:14 TP0] Load weight end. elapsed=1.0 s",
        "[2026-09-11 23:34:15 TP1] Load weight begin. avail mem=111.47 GB",
        "[2026-09-11 23:34:15 TP1] loading draft arch X",
    ]
    assert fed(rows).boot().now is P.WEIGHTS
    assert fed([*rows, "[2026-09-11 23:34:20 TP0] Load weight begin. avail mem=17 GB"]).boot().now is P.DRAFT
    assert fed([*rows, "[2026-09-11 23:34:20 TP0] loading draft arch X"]).boot().now is P.DRAFT


def test_pools_of_data_parallel_engines_add_up_and_those_of_ranks_do_not() -> None:
    vllm = "(EngineCore_DP{0} pid=9) INFO 11-30 21:58:47 [k.py:1] GPU KV cache size: 5,120 tokens, Maximum"
    assert fed([vllm.format(0), vllm.format(1), vllm.format(1)]).boot().kv_tokens == 10_240
    sglang = "[2026-09-11 23:46:49 TP{0} EP{0}] max_total_num_tokens=2999808, chunked_prefill_size=1024"
    assert fed([sglang.format(0), sglang.format(1)]).boot().kv_tokens == 2_999_808


# Restarts


def test_a_second_start_in_the_same_log_begins_anew() -> None:
    first = OPENING + SGLANG_LOG
    again = first + OPENING.replace("23:33:55", "23:50:00")
    boot = read_boot(again)
    assert (names(boot), boot.now, boot.kv_tokens, boot.ready) == ([P.START], P.START, None, None)
    assert boot.began == SGLANG_BEGAN + 958
    twice = read_boot(first + (OPENING + SGLANG_LOG).replace("23:3", "23:5").replace("23:4", "23:5"))
    assert names(twice) == names(read_boot(first))


def test_a_start_that_failed_and_is_tried_again() -> None:
    failing = OPENING + log("engram-boot-errors.rendered.txt")
    assert read_boot(failing).failure is not None
    boot = read_boot(failing + OPENING)
    assert (boot.failure, boot.now) == (None, P.START)


def test_words_of_an_overlay_before_the_engines_own_belong_to_the_new_start() -> None:
    known = words("sglang-fleet-env")
    whole = OVERLAY + OPENING + SGLANG_LOG
    assert read_boot(whole, known).missing == ()
    again = whole + OVERLAY + OPENING + "\n".join(SGLANG_LOG.split("\n")[:12])
    assert read_boot(again, known).missing == ()
    without = whole + "\n" * 3 + "x\n" * 300 + OPENING + "\n".join(SGLANG_LOG.split("\n")[:12])
    assert read_boot(without, known).missing == ("overlay hooks", "Engram rows")


# What must be there


def test_what_every_start_of_a_recipe_shows_is_missed_when_its_time_has_come() -> None:
    known = words("sglang-fleet-env")
    rows = SGLANG_LOG.split("\n")
    assert fed([OPENING, *rows[:1]], known).boot().missing == ()
    assert fed([OPENING, *rows[:2]], known).boot().missing == ("overlay hooks",)
    assert fed([OPENING, *rows[:5]], known).boot().missing == ("overlay hooks", "Engram rows")
    assert fed([OVERLAY.split("\n")[0], OPENING, *rows[:5]], known).boot().missing == ("Engram rows",)
    assert fed([*OVERLAY.split("\n"), OPENING, *rows[:5]], known).boot().missing == ()


def test_a_stock_engine_is_a_failure_while_it_boots_and_a_gap_afterwards() -> None:
    known = words("sglang-fleet-env")
    boot = fed([OPENING, *SGLANG_LOG.split("\n")[:5]], known).boot()
    assert boot.failure is not None
    assert boot.failure.cause == "stock engine: the overlay's hooks are not in"
    assert not boot.failure.heals and "stop it now" in boot.failure.advice
    ready = read_boot(OPENING + SGLANG_LOG, known)
    assert (ready.failure, ready.missing) == (None, ("overlay hooks", "Engram rows"))


def test_of_a_log_without_its_beginning_nothing_is_missed() -> None:
    known = words("sglang-fleet-env")
    assert read_boot(SGLANG_LOG, known).missing == ()
    kept = [(SGLANG_BEGAN + number, row) for number, row in enumerate(SGLANG_LOG.split("\n"))]
    assert stamped(kept, known, started=SGLANG_BEGAN - 300).boot().missing == ()
    assert stamped(kept, known, started=SGLANG_BEGAN - 20).boot().missing == ("overlay hooks", "Engram rows")


def test_rows_that_are_not_read_from_the_nodes_own_disk() -> None:
    known = words("vllm-cluster-env")
    worker = log("vllm-worker-boot-gb10.log")
    started = 1_790_608_770.0
    loaded = "(Worker_TP1 pid=186) INFO 09-28 15:22:47 [d.py:1] Loading weights took 150.00 seconds\n"
    assert read_boot(worker + loaded, known, started=started).missing == ()
    over_nfs = "\n".join(row for row in (worker + loaded).split("\n") if "node-local" not in row)
    assert read_boot(over_nfs, known, started=started).missing == ("Engram rows from the node's own disk",)


# Autotune

VLLM_TUNE = (
    "(EngineCore pid=362) 2026-09-20 17:{0}:22,436 - INFO - autotuner.py:2789 - flashinfer.jit: [Autotuner]: {1}"
)
BEGINS, ENDS, LOADED = (
    "Autotuning process starts ...",
    "Autotuning process ends",
    "Loaded 189 configs from /root/.cache/",
)


@pytest.mark.parametrize(
    ("said", "later", "word"),
    [
        ([(10, LOADED)], 0, "hit"),
        ([(10, LOADED), (10, BEGINS)], 900, "hit"),
        ([(10, LOADED), (10, BEGINS), (10, ENDS)], 0, "hit"),
        ([(10, BEGINS)], 0, "running"),
        ([(10, BEGINS)], 59, "running"),
        ([(10, BEGINS)], 60, "missed"),
        ([(10, BEGINS), (10, ENDS)], 900, "done"),
        ([(10, BEGINS), (14, ENDS)], 0, "missed"),
        ([], 0, ""),
    ],
)
def test_autotune_hit_or_missed(said: list[tuple[int, str]], later: float, word: str) -> None:
    reader = fed([VLLM_TUNE.format(minute, text) for minute, text in said])
    newest = reader.boot().newest
    boot = reader.boot(None if newest is None else newest + later)
    assert boot.autotune == word
    assert [phase.detail.split(",")[0] for phase in boot.phases] == ([word] if word else [])


# Health, before the log says so


def test_an_answer_is_the_end_of_a_boot_whatever_the_log_says() -> None:
    reader = fed(SGLANG_LOG.split("\n")[:20])
    reader.answered(SGLANG_BEGAN + 900)
    boot = reader.boot()
    assert (boot.now, boot.ready, boot.phases[-1].name) == (None, SGLANG_BEGAN + 900, P.READY)
    reader.answered(SGLANG_BEGAN + 950)
    reader.take(None, "[2026-09-11 23:47:09] The server is fired up and ready to roll!")
    assert reader.boot().ready == SGLANG_BEGAN + 900


# Anything at all

PIECES = [item.line for item in (*MARKS, *FAILURES)]
HOSTILE = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from([*PIECES, "\x1b[31m", "\r", "\u202e", "\x00", "9" * 40, "Traceback (most recent call last):"])
    )
    .map("".join)
    .map(lambda text: text.replace("*", "\x1b]0;x\x07\u202e7")),
    st.sampled_from(SGLANG_LOG.split("\n")),
)


@given(st.lists(st.tuples(st.one_of(st.none(), st.floats()), HOSTILE), max_size=40), st.one_of(st.none(), st.floats()))
def test_no_log_raises_or_gets_through(rows: list[tuple[float | None, str]], now: float | None) -> None:
    reader = BootReader(words("sglang-fleet-env"), started=now)
    for wall, row in rows:
        reader.take(wall, row)
        reader.growing(row)
    reader.ended()
    boot = reader.boot(now)
    assert boot.lines == len(rows)
    assert all(text.isprintable() and len(text) <= 300 for text in texts(boot))
    assert len(boot.phases) <= MOST and len(boot.warnings) <= 20
    assert all(phase.seconds is None or not phase.seconds < 0 for phase in boot.phases)


def test_any_order_of_real_lines_is_read_to_its_end() -> None:
    rows = [row for path in sorted(LOGS.glob("*.log")) for row in path.read_text().split("\n")]
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        boot = fed(rows).boot(SGLANG_BEGAN)
        assert boot.lines == len(rows)
        assert all(text.isprintable() for text in texts(boot))
