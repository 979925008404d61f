"""A boot against earlier ones: elapsed, usual, what is left, late; and what is kept of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from boot_logs import SGLANG_BEGAN, SGLANG_LOG, fed
from hypothesis import given
from hypothesis import strategies as st

from console.readings.boot import Boot, BootFailure, BootRecord, Phase, PhaseName
from console.readings.boot_progress import COMPARED, progress, record
from console.readings.boot_reader import read_boot

P = PhaseName
STARTED = SGLANG_BEGAN - 12


def earlier(number: int, *phases: tuple[str, float], autotune: str = "") -> BootRecord:
    """A boot of as many seconds as its phases take."""
    total = sum(seconds for _, seconds in phases)
    return BootRecord(started=1000.0 * number, total=total, phases=phases, autotune=autotune)


def running(*phases: tuple[PhaseName, float]) -> Boot:
    """A boot whose phases began at these times."""
    ends = [at for _, at in phases[1:]] + [None]
    found = tuple(Phase(name, at, end) for (name, at), end in zip(phases, ends, strict=True))
    return Boot(engine="sglang", phases=found, now=phases[-1][0], began=phases[0][1])


FAST = earlier(1, ("start", 20), ("weights", 60), ("post-process", 400), ("KV pool", 10), ("graphs", 30))
SLOW = earlier(2, ("start", 30), ("weights", 70), ("post-process", 500), ("KV pool", 20), ("graphs", 50))
MIDDLE = earlier(3, ("start", 25), ("weights", 65), ("post-process", 450), ("KV pool", 15), ("graphs", 40))
ALL = [FAST, SLOW, MIDDLE]


def test_against_three_earlier_boots() -> None:
    boot = running((P.START, 10_012.0), (P.WEIGHTS, 10_030.0), (P.POST_PROCESS, 10_090.0))
    found = progress(boot, started=10_000.0, now=10_190.0, earlier=ALL, usual_boot_s=100.0)
    assert (found.elapsed, found.usual, found.median) == (190.0, (520.0, 670.0), 595.0)
    assert (found.phase, found.phase_elapsed, found.phase_usual) == (P.POST_PROCESS, 100.0, 450.0)
    # what each took from here: 300 + 40, 400 + 70, 350 + 55
    assert (found.left, found.late, len(found.earlier)) == (405.0, False, 3)


def test_a_phase_that_takes_longer_than_ever_leaves_what_follows() -> None:
    boot = running((P.START, 10_012.0), (P.WEIGHTS, 10_030.0), (P.POST_PROCESS, 10_090.0))
    found = progress(boot, started=10_000.0, now=10_690.0, earlier=ALL)
    assert (found.left, found.late) == (55.0, False)
    late = progress(boot, started=10_000.0, now=11_006.0, earlier=ALL)
    assert (late.left, late.late) == (None, True)


def test_a_boot_that_will_not_come_up_has_no_rest() -> None:
    boot = replace(running((P.WEIGHTS, 10_030.0)), failure=BootFailure("out of GPU memory", "", False))
    assert progress(boot, started=10_000.0, now=10_050.0, earlier=ALL).left is None


def test_the_first_phase_begins_with_the_container() -> None:
    found = progress(running((P.START, 10_012.0)), started=10_000.0, now=10_015.0, earlier=ALL)
    assert (found.phase_elapsed, found.phase_usual, found.left) == (15.0, 25.0, 580.0)


def test_a_phase_that_comes_twice_is_compared_with_its_turn() -> None:
    before = earlier(1, ("graphs", 5), ("KV pool", 2), ("graphs", 30), ("http up", 3))
    first = progress(running((P.GRAPHS, 100.0)), started=100.0, now=101.0, earlier=[before])
    again = running((P.GRAPHS, 100.0), (P.KV_POOL, 105.0), (P.GRAPHS, 107.0))
    assert (first.phase_usual, first.left) == (5.0, 39.0)
    assert progress(again, started=100.0, now=117.0, earlier=[before]).left == 23.0


def test_without_earlier_boots_the_recipes_usual_is_an_estimate_without_a_band() -> None:
    found = progress(running((P.WEIGHTS, 10.0)), started=0.0, now=100.0, usual_boot_s=480.0)
    assert (found.usual, found.median, found.left, found.late, found.phase_usual) == (None, 480.0, 380.0, False, None)
    over = progress(None, started=0.0, now=600.0, usual_boot_s=480.0)
    assert (over.left, over.late, over.phase, over.phase_elapsed) == (None, False, None, None)
    assert progress(None, started=0.0, now=721.0, usual_boot_s=480.0).late


def test_with_nothing_to_compare_nothing_is_said() -> None:
    found = progress(running((P.WEIGHTS, 10.0)), started=0.0, now=100.0)
    assert (found.usual, found.median, found.left, found.late) == (None, None, None, False)
    assert progress(None, started=50.0, now=10.0).elapsed == 0.0


def test_boots_that_tuned_anew_are_no_measure_unless_there_are_no_others() -> None:
    hour = earlier(9, ("weights", 60), ("autotune", 4800), ("graphs", 40), autotune="missed")
    assert progress(None, started=0.5, now=100.0, earlier=[*ALL, hour]).usual == (520.0, 670.0)
    assert progress(None, started=0.5, now=100.0, earlier=[hour]).usual == (4900.0, 4900.0)


def test_the_boot_itself_and_absurd_ones_are_not_among_the_earlier() -> None:
    itself = replace(SLOW, started=10_003.0)
    absurd = [replace(SLOW, total=-5.0), replace(SLOW, total=9e9), replace(SLOW, total=0.0)]
    found = progress(None, started=10_000.0, now=10_100.0, earlier=[FAST, itself, *absurd])
    assert found.earlier == (FAST,)


def test_only_the_newest_are_compared() -> None:
    many = [replace(FAST, started=1000.0 * number, total=float(number)) for number in range(1, 40)]
    found = progress(None, started=0.0, now=1.0, earlier=many)
    assert (len(found.earlier), found.usual) == (COMPARED, (30.0, 39.0))


def test_a_phase_none_of_the_earlier_had() -> None:
    found = progress(running((P.AUTOTUNE, 10_100.0)), started=10_000.0, now=10_200.0, earlier=ALL)
    assert (found.phase_usual, found.left) == (None, 395.0)


# What is kept


def test_what_is_kept_of_a_boot_adds_up_to_the_whole() -> None:
    kept = record(read_boot(SGLANG_LOG), started=STARTED, healthy=STARTED + 805, revision="1bae0e10", free_at_start=7)
    assert kept is not None
    assert (kept.started, kept.total, kept.kv_tokens, kept.autotune) == (STARTED, 799.0, 2_999_808, "done")
    assert kept.phases == (
        ("start", 23.0),
        ("weights", 60.0),
        ("post-process", 565.0),
        ("draft weights", 93.0),
        ("KV pool", 7.0),
        ("autotune", 12.0),
        ("graphs", 22.0),
        ("http up", 17.0),
    )
    assert sum(seconds for _, seconds in kept.phases) == kept.total
    assert (kept.revision, kept.free_at_start) == ("1bae0e10", 7)


def test_a_boot_of_which_only_the_first_answer_is_known() -> None:
    kept = record(None, started=100.0, healthy=675.0)
    assert kept == BootRecord(started=100.0, total=575.0)
    part = fed(SGLANG_LOG.split("\n")[:5]).boot()
    answered = record(part, started=STARTED, healthy=STARTED + 600)
    assert answered is not None
    assert (answered.total, [name for name, _ in answered.phases]) == (600.0, ["start", "weights", "post-process"])


@pytest.mark.parametrize(("started", "healthy"), [(100.0, None), (100.0, 100.0), (100.0, 50.0), (100.0, 1e6)])
def test_a_boot_of_unknown_length_is_not_kept(started: float, healthy: float | None) -> None:
    assert record(None, started=started, healthy=healthy) is None


TIMES = st.floats(0, 1e9)
RECORDS = st.builds(
    BootRecord,
    started=TIMES,
    total=st.floats(allow_nan=False),
    phases=st.lists(st.tuples(st.sampled_from([*P, "else"]).map(str), TIMES), max_size=6).map(tuple),
)


@given(st.lists(RECORDS, max_size=12), TIMES, TIMES, st.integers(0, 42))
def test_whatever_is_kept_a_boot_has_a_sane_rest(
    records: list[BootRecord], started: float, now: float, rows: int
) -> None:
    boot = fed(SGLANG_LOG.split("\n")[:rows]).boot()
    found = progress(boot, started=started, now=now, earlier=records, usual_boot_s=480.0)
    assert found.elapsed >= 0
    assert found.left is None or found.left >= 0
    assert not (found.late and found.left is not None)
