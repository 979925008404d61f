"""The lines that never scroll away: header, lamps, alarm line and keys."""

from __future__ import annotations

import pytest
from pictures import CRIT, PICTURES, STALE, glance, ink_at, nothing_read, spark4, trouble
from rich.cells import cell_len

from console.lamps import Lamp, lamps
from console.snapshot import Severity
from widgets import bars
from widgets.glance import KeyHint, LaneGlance
from widgets.ink import BRIGHT, CHIP_ACT, CHIP_INFO, CHIP_KEY, CHIP_LOOK, LOOK, text_of


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_rehearsal_is_said_in_header_rail_and_key_line(columns: int) -> None:
    shown = glance(spark4(rehearsal=True), columns, 60 if columns == 200 else 40)
    head = bars.header(shown, columns)
    assert ink_at(head, "REHEARSAL") == CHIP_INFO
    assert "PROD" not in text_of(head)
    assert "REHEARSAL" in text_of(bars.rail(shown, columns))
    assert "REHEARSAL" in text_of(bars.key_rows(shown, columns)[1])


def test_the_header_counts_what_is_fresh() -> None:
    assert ink_at(bars.header(glance(spark4()), 120), "10 of 10") == BRIGHT
    assert ink_at(bars.header(glance(trouble()), 120), "8 of 10") == LOOK
    assert bars.fresh(nothing_read()) == (0, 10)


def test_a_paused_screen_says_so_loudly() -> None:
    head = bars.header(glance(spark4(), held=20.0), 120)
    assert ink_at(head, "HELD 20s") == CHIP_LOOK


LANES = (
    LaneGlance("dsv41", Severity.NORMAL),
    LaneGlance("station", Severity.ACT, "DOWN"),
    LaneGlance("idle", Severity.NORMAL),
)


def test_another_lane_in_trouble_is_named_with_its_word() -> None:
    shown = glance(spark4(), lanes=LANES)
    text = text_of(bars.header(shown, 120))
    assert "1 other lane CRIT: station DOWN" in text
    assert "idle" not in text
    assert ink_at(bars.header(shown, 120), "station").fg == "act"


def test_several_lanes_in_trouble_are_counted_worst_first() -> None:
    lanes = (LaneGlance("late", Severity.LOOK, "DRAINING"), *LANES)
    assert "2 other lanes CRIT: station DOWN, late DRAINING" in text_of(bars.header(glance(spark4(), lanes=lanes), 200))
    assert "2 other lanes CRIT: station DOWN +1" in text_of(bars.header(glance(spark4(), lanes=lanes), 120))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("width", range(80, 140, 3))
def test_a_bad_lane_is_on_every_screen_whatever_its_name(width: int, plain: bool, count: int) -> None:
    bad = tuple(LaneGlance(f"deepseek-v4.1-flash-experimental-{n}", Severity.ACT, "STALLED") for n in range(count))
    shown = glance(spark4(rehearsal=True), lanes=(LANES[0], *bad), ascii=plain, no_colour=plain)
    row = bars.header(shown, width)
    assert any(span.ink.fg == "act" and span.text.strip() for span in row), text_of(row)
    assert ("CRIT" in text_of(row)) or ("■" in text_of(row))


def test_the_alarm_line_names_the_worst_and_counts_the_rest() -> None:
    row = bars.alarm_line(glance(trouble(), alarms=(CRIT, STALE)), 120)
    assert ink_at(row, "CRIT") == CHIP_ACT
    assert "not acked   +1 more   a ack" in text_of(row)
    seen = bars.alarm_line(glance(trouble(), alarms=(CRIT, STALE), acknowledged=frozenset({CRIT.key})), 120)
    assert "acked" in text_of(seen)
    assert "a ack" not in text_of(seen)


def test_guarded_keys_are_all_there_and_say_why_they_are_dim() -> None:
    for columns in (80, 120):
        row = bars.key_rows(glance(spark4(), columns, 40), columns)[1]
        assert all(f"{key} " in text_of(row) for key in "DSRB")
        assert "not available yet" in text_of(row)
        assert {span.ink.fg for span in row if span.text.strip()} == {"dim"}


def test_a_key_that_acts_is_a_chip() -> None:
    keys = (KeyHint("R", "≈9m35s", guarded=True),)
    assert ink_at(bars.key_rows(glance(spark4(), keys=keys), 120)[1], " R ") == CHIP_KEY


@pytest.mark.parametrize(
    ("lamp", "small", "boxed"),
    [
        (Lamp("L", "UNKNOWN", "(restart=no)", "not read yet", Severity.INFO), "(restart=no)", "(restart=no)"),
        (Lamp("L", "UNKNOWN", "restart=unless-stopped", "not read yet", Severity.INFO), "not read yet", "UNKNOWN"),
        (Lamp("L", "UNKNOWN", "1 stopped container", "", Severity.INFO), "1 stopped container", "1 stopped"),
        (
            Lamp("L", "DEGRADED 31s", "not serving: n3 gone for ever", "up", Severity.ACT),
            "n3 gone for e…",
            "n3 gone for…",
        ),
    ],
)
def test_words_of_a_lamp_are_whole_but_for_the_reason_of_a_trouble(lamp: Lamp, small: str, boxed: str) -> None:
    row = bars.lamp_rows(glance(spark4(), 80, 24, lamps=(lamp,)), 80)[0]
    assert text_of(row)[:40].rstrip("│ ").endswith(small)
    row = bars.lamp_rows(glance(spark4(), lamps=(lamp,)), 120)[1]
    assert text_of(row)[:29].rstrip("│ ").endswith(boxed)


@pytest.mark.parametrize("picture", PICTURES)
def test_real_lamps_fit_their_places(picture: str) -> None:
    snapshot = PICTURES[picture]()
    for columns, rows in ((80, 24), (120, 40), (200, 60)):
        shown = glance(snapshot, columns, rows, lamps=lamps(snapshot, snapshot.lanes[0]))
        for row in bars.lamp_rows(shown, columns):
            assert cell_len(text_of(row)) == columns
            assert all(span.ink.bg == "surface" for span in row)
