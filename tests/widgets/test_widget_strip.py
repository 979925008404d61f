"""The strip, the rail, NEXT, the keys' prices and the window's chip, beside files that were looked at once.

Run this file to write them anew.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pictures
import pytest
from rich.cells import cell_len

sys.path.insert(0, str(Path(__file__).parents[1] / "screens"))

import strips

from console.actions.catalog import Place
from console.actions.plan import Plan, Stage, Verb
from console.actions.prices import Price, asks
from console.actions.strip import By, Phase
from console.execution.policy import Situation, decide
from console.lamps import lamps
from console.readings.acting_types import OperationState, StepState
from console.snapshot import Severity, Snapshot
from screens.view import hints
from widgets import bars, said, strip, stripsteps
from widgets.glance import Glance, StripGlance
from widgets.header import window_words
from widgets.ink import CHIP, CHIP_ACT, CHIP_KEY, Row, text_of
from widgets.stripfacts import Fact, fitted, wrapped

GOLDEN = Path(__file__).parent / "golden"
SIZES = {80: (80, 24, 15), 120: (120, 40, 16), 200: (200, 60, 18)}
COSTS = {
    "disarm": Price("arm", "arm"),
    "stop": Price("cuts 7 requests", "cuts 7"),
    "relaunch": Price("≈17m46s", "≈17m46s"),
    "rollback": Price("≈17m35s to 9f2c1a7", "≈17m35s to 9f2c1a7"),
}


def opened(plan: Plan, situation: Situation = strips.IN_WINDOW, **extra: Any) -> StripGlance:
    """A strip over that plan, after its dead time."""
    decision = decide(plan.verb, situation)
    by = {"letter": By.LETTER, "countdown": By.COUNTDOWN}.get(decision.need.value, By.TYPED)
    values: dict[str, Any] = {
        "heading": strip.HEADINGS[plan.verb],
        "lane": "dsv41",
        "phase": Phase.TYPING if by is By.TYPED else Phase.ARMED,
        "by": by,
        "letter": "k",
        "left": 2.4 if by is By.COUNTDOWN else 0.0,
        "seconds": 3.0 if by is By.COUNTDOWN else 0.0,
        "plan": plan,
        "decision": decision,
        "asked": "lane name" if by is By.TYPED else "",
        "hint": "exactly: dsv41" if by is By.TYPED else "",
        "typed": "dsv4" if by is By.TYPED else "",
    }
    return StripGlance(**{**values, **extra})


LEFT_OUT = strips.stopping(
    left_out=("n4",),
    unknown=("n4: containers, no answer for 14 s",),
    warnings=("restart policy of sglang-1 would bring it back: set aside",),
)
NO_TIMES = replace(
    strips.way_back(), steps=tuple(replace(step, usual=None) for step in strips.way_back().steps), ends=(), notes=()
)
SHOWN: dict[str, StripGlance] = {
    "rollback counts down": opened(strips.way_back(), frozen="frozen 21:48:58Z, still holds"),
    "rollback in its dead time": opened(strips.way_back(), phase=Phase.DEAD_TIME, left=3.0),
    "stop leaves a host out": opened(LEFT_OUT),
    "name typed": opened(strips.way_back(), strips.NO_WINDOW, note="that is not dsv41"),
    "break-glass": opened(strips.way_back(), strips.GLASS, count=2),
    "times not known": opened(NO_TIMES),
    "being planned": StripGlance("ROLL BACK", "dsv41", Phase.PLANNING),
    "window": opened(strips.way_back(ends=()), strips.NO_WINDOW, heading="OPEN A WINDOW FOR", decision=None,
        told=(("window", "the lane is yours; B has this way back, frozen"),), asked="deadline", typed="",
        hint="from now; Enter alone takes 25m", default="25m", number=3, count=3),
    "window without a way back": StripGlance(
        "OPEN A WINDOW FOR", "dsv41", Phase.TYPING, told=(("window", "it opens without a way back"),),
        asked="lane name", typed="", count=3,
        warnings=("no way back: container removed; the window opens without one",),
    ),
    "stop says who uses it": opened(strips.stopping(
        cuts="2 running requests; used by Milo custom[dsv41], Alyx custom[alyx-local], Echo on Forge", owes="watchdog",
        notes=("station: restart policy unless-stopped of dsv41-vllm-1017-v21cfg-BOUND-REF is set aside, "
               "its next start by laneswap sets it again",)), strips.NO_WINDOW),
    "hand over": StripGlance(
        "HAND OVER", "dsv41", Phase.TYPING, told=(("from", "you (ana)"), ("then", "it stays yours until they accept")),
        asked="name of the operator who takes it", typed="ben", warnings=("watchdog is still off, for 1m10s: D first",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["rollback counts down", "name typed", "break-glass", "stop says who uses it"])
def test_the_smallest_strip_says_from_and_to(name: str) -> None:
    shown = SHOWN[name]
    assert shown.plan is not None
    drawn = [text_of(row) for row in strip.rows(glance_of(80, shown), 80, 15)]
    told = " ".join(drawn)
    assert any(row.strip().startswith("to ") and shown.plan.target in row for row in drawn), drawn
    assert "from" in told.split() and shown.plan.origin.split(",")[0] in told, drawn


@pytest.mark.parametrize("left", [3.0, 2.4, 0.3])
@pytest.mark.parametrize("columns", SIZES)
def test_strip_and_next_row_name_one_time_of_serving(columns: int, left: float) -> None:
    glance = glance_of(columns, replace(SHOWN["rollback counts down"], left=left))
    assert glance.strip is not None
    drawn = "\n".join(text_of(row) for row in strip.rows(glance, columns, 16))
    (of_strip,) = re.findall(r"serving +≈([0-9:]+)", drawn)
    (of_next,) = re.findall(r"serving +≈([0-9:]+)", text_of(bars.next_line(glance, columns)))
    assert of_strip == of_next


def test_rows_that_are_over_go_to_warnings_first() -> None:
    to = Fact("to", "c0ffee1", "from " + "df42c10 " * 12)
    warning = Fact("warning", "", "no start of df42c10 tells whether it hits its autotune cache", Severity.LOOK)
    assert fitted([to, warning], 40, 2) == [to, warning]
    three = fitted([to, warning], 40, 4)
    assert three[0] == to and " ".join(fact.rest for fact in three[1:]) == warning.rest, "all of the warning"
    assert len(fitted([to, warning], 40, 9)) == len(wrapped([to, warning], 40))


LONG = (
    "DENIED: dsv41 is held by ben since 21:40, who may be typing: call ben first, or take the lane over "
    "from them with H. Nothing was sent."
)


@pytest.mark.parametrize("columns", [80, 120])
def test_what_has_no_room_on_the_next_row_is_said_to_its_end_above_it(columns: int) -> None:
    glance = replace(glance_of(columns, None), notice=LONG)
    height = said.said_height(glance, columns, 15)
    short = replace(glance, notice=LONG[: columns - 10])
    assert said.said_height(short, columns, 15) == 0 and short.notice in text_of(bars.next_line(short, columns))
    assert height == 3
    drawn = [text_of(row) for row in said.rows(glance, columns, height)]
    assert " ".join(" ".join(drawn[1:]).split()) == LONG
    assert LONG[:20] not in text_of(bars.next_line(glance, columns)), "said once"
    assert said.said_height(replace(glance, strip=SHOWN["name typed"]), columns, 15) == 0, "a strip says its own"


def glance_of(
    columns: int, shown: StripGlance | None, snapshot: Snapshot | None = None, *, plain: bool = False, acts: bool = True
) -> Glance:
    """What a console that acts has to draw from."""
    snapshot = snapshot or strips.under_way()
    keys = hints(Place.DASHBOARD, COSTS if acts else None)
    made = pictures.glance(snapshot, columns, SIZES.get(columns, (0, 24))[1], ascii=plain, no_colour=plain, keys=keys)
    said = asks(snapshot, snapshot.lanes[0], mine=True) if acts else ""
    return replace(made, strip=shown, acts=acts, lamps=lamps(snapshot, snapshot.lanes[0]), asks=said)


def drawn(columns: int, shown: StripGlance, *, plain: bool) -> tuple[Row, ...]:
    """The strip, then NEXT and the keys below it."""
    glance = glance_of(columns, shown, plain=plain)
    return (
        *strip.rows(glance, columns, SIZES[columns][2]),
        bars.next_line(glance, columns),
        *bars.key_rows(glance, columns),
    )


OPERATIONS: dict[str, dict[str, Any]] = {
    "stop runs": {},
    "nothing runs": {"operation": None},
    "overdue": {"operation": None, "window": replace(strips.WINDOW, deadline=strips.CLOCK - 133)},
    "half done": {
        "operation": replace(
            strips.SWITCH, state=OperationState.HALF_DONE, words="HALF DONE after stop-n4, next: rebuild rows on n3"
        )
    },
    "half done, long names": {
        "operation": replace(
            strips.SWITCH,
            state=OperationState.HALF_DONE,
            steps=strips.BROKEN,
            words="HALF DONE after stop dsv41-vllm-1017-v21cfg-BOUND-REF, next: start "
            "dsv41-vllm-v21-fused-split-RETIRED-REF and wait until it serves on n1 (failed): exited 1",
        )
    },
    "lost": {"operation": replace(strips.SWITCH, state=OperationState.LOST, words="its runner is gone, no result")},
    "done": {"operation": replace(strips.SWITCH, state=OperationState.DONE, ended=strips.CLOCK - 10), "debts": ()},
    "in the console": {"operation": replace(strips.SWITCH, runs_on="console")},
}


def around(columns: int, *, plain: bool) -> list[str]:
    """Header, rail, NEXT and keys of every state that an operation can be in."""
    lines = []
    for name, extra in OPERATIONS.items():
        glance = glance_of(columns, None, strips.under_way(**extra), plain=plain)
        rows = (bars.header(glance, columns), bars.rail(glance, columns), bars.next_line(glance, columns))
        lines += [f"# {name}", *(text_of(row) + "¶" for row in (*rows, *bars.key_rows(glance, columns)))]
    return lines


def as_text(columns: int, *, plain: bool) -> str:
    """Every strip under its name, then what stands around it."""
    lines = []
    for name, shown in SHOWN.items():
        lines += [f"# {name}", *(text_of(row) + "¶" for row in drawn(columns, shown, plain=plain))]
    return "\n".join([*lines, *around(columns, plain=plain)]) + "\n"


def file_of(columns: int, plain: bool) -> Path:
    return GOLDEN / f"strip-{columns}-{'ascii' if plain else 'unicode'}.txt"


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("columns", SIZES)
def test_every_row_is_as_it_was_looked_at(columns: int, plain: bool) -> None:
    text = as_text(columns, plain=plain)
    assert text == file_of(columns, plain).read_text(encoding="utf-8")
    assert not plain or text.replace("¶", "").isascii()
    for lie in ("nan", "None", "inf "):
        assert lie not in text


@pytest.mark.parametrize("columns", [20, 40, 60, 79, 80, 99, 100, 119, 120, 137, 160, 199, 240, 300])
@pytest.mark.parametrize("name", SHOWN)
def test_every_row_is_exactly_as_wide_as_the_terminal(name: str, columns: int) -> None:
    glance = glance_of(columns, SHOWN[name])
    for height in (1, 2, 3, 5, 6, 8, 11, 15, 16, 22):
        rows = strip.rows(glance, columns, height)
        assert len(rows) == height
        assert {cell_len(text_of(row)) for row in rows} == {columns}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize(("columns", "height"), [(80, 15), (80, 9), (60, 8), (40, 6), (20, 3), (20, 2)])
def test_how_it_goes_and_what_it_is_stay_where_there_is_little_room(name: str, columns: int, height: int) -> None:
    shown = SHOWN[name]
    text = "\n".join(text_of(row) for row in strip.rows(glance_of(columns, shown), columns, height))
    assert shown.heading[:8] in text
    if shown.phase is Phase.ARMED:
        assert f"{shown.letter} goes" in text
    if shown.phase is Phase.TYPING and columns >= 40:
        assert "type the" in text


@pytest.mark.parametrize("columns", SIZES)
def test_what_to_cuts_time_and_cancel_are_always_there(columns: int) -> None:
    for name in ("rollback counts down", "stop leaves a host out", "name typed"):
        shown = SHOWN[name]
        assert shown.plan is not None
        text = "\n".join(text_of(row) for row in drawn(columns, shown, plain=False))
        for words in (shown.heading, shown.plan.target, shown.plan.cuts or "nothing, down", "cancels", shown.plan.id):
            assert words in text, (name, words)
        assert "22:12:4" in text or "≈0m23s" in text


def test_left_out_unknown_and_stale_hosts_are_named() -> None:
    text = "\n".join(text_of(row) for row in drawn(120, SHOWN["stop leaves a host out"], plain=False))
    assert "n4 ▲ LEFT OUT" in text and "UNKNOWN n4: containers, no answer for 14 s" in text
    assert "set aside" in text
    calm = "\n".join(text_of(row) for row in drawn(120, SHOWN["rollback counts down"], plain=False))
    assert "n4 ▲ STALE 14s" in calm


def test_what_has_no_room_is_counted() -> None:
    many = strips.way_back(warnings=tuple(f"warning {n}" for n in range(9)), ends=())
    text = "\n".join(text_of(row) for row in drawn(120, opened(many), plain=False))
    assert "MORE Esc, then d shows all" in text and "serving" in text


def test_the_letters_chip_is_the_accent_and_dim_in_the_dead_time() -> None:
    live = strip.rows(glance_of(120, SHOWN["rollback counts down"]), 120, 16)
    assert [span.ink.bg for row in live for span in row if "    k    " in span.text] == ["accent"]
    dead = strip.rows(glance_of(120, SHOWN["rollback in its dead time"]), 120, 16)
    assert not any(span.ink.bg == "accent" and "k" in span.text for row in dead for span in row)
    assert "no key counts yet" in "".join(text_of(row) for row in dead)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0, 7.0, -1.0])
@pytest.mark.parametrize("plain", [False, True])
def test_bars_are_as_wide_as_asked(share: float, plain: bool) -> None:
    for width in (1, 2, 12, 59):
        assert cell_len(text_of(strip.countdown_bar(share, width, plain=plain))) == width
        for start in (0.0, 0.3, 0.999, 1.0):
            assert cell_len(text_of(stripsteps.span_bar(start, min(1.0, start + 0.1), width, plain=plain))) == width


def test_a_span_is_seen_however_short() -> None:
    for start in (0.0, 0.37, 0.5, 0.99):
        row = stripsteps.span_bar(start, start, 35, plain=False)
        assert any(span.ink.fg == "fill" or span.ink.bg == "fill" for span in row), start


def test_parts_of_a_plan_begin_where_the_one_before_ends() -> None:
    found = stripsteps.parts(strips.way_back())
    assert [part.stage for part in found] == [Stage.STOP, Stage.ROWS, Stage.SITE, Stage.BOOT, Stage.ARM]
    assert [part.ends for part in found[:-1]] == [part.begins for part in found[1:]]
    assert found[0].ends == 11.0 and stripsteps.serving_after(strips.way_back()) == found[3].ends
    assert stripsteps.serving_after(NO_TIMES) is None and stripsteps.serving_after(strips.stopping()) is None


def test_many_hosts_are_counted_where_they_have_no_column() -> None:
    hosts = [f"host-{n}" for n in range(12)]
    steps = tuple(strips.step(f"stop-{host}", Stage.STOP, host, 9.0, together="stop") for host in hosts)
    plan = Plan(Verb.STOP, "spark4", "dsv41", "host-0", "stop", steps, target="stopped")
    for columns, height in ((80, 15), (120, 16), (200, 18)):
        head = next(row for row in strip.rows(glance_of(columns, opened(plan)), columns, height) if "+" in text_of(row))
        assert "host-" in text_of(head) or "n1" in text_of(head)


# --- rail, NEXT, header, keys -----------------------------------------------------------------------------------------


def test_the_stage_now_is_a_chip_with_its_usual_time() -> None:
    row = bars.rail(glance_of(120, None), 120)
    assert pictures.ink_at(row, "3 STOP 2/4  0m41s of 0m52s") == CHIP
    assert "4 rows 8m00s" in text_of(row) and "6 boot 9m35s" in text_of(row)
    assert pictures.ink_at(row, "1 evidence").fg == "dim"
    plain = text_of(bars.rail(glance_of(80, None, plain=True), 80))
    assert "[3 STOP 2/4 0m41s]" in plain


def test_a_broken_stage_is_red_with_its_word() -> None:
    steps = (
        *strips.SWITCH.steps[:2],
        replace(strips.SWITCH.steps[2], state=StepState.FAILED),
        *strips.SWITCH.steps[3:],
    )
    glance = glance_of(120, None, strips.under_way(operation=replace(strips.SWITCH, steps=tuple(steps))))
    assert pictures.ink_at(bars.rail(glance, 120), "3 STOP FAILED") == CHIP_ACT


@pytest.mark.parametrize("columns", SIZES)
def test_half_done_is_said_with_what_is_next(columns: int) -> None:
    glance = glance_of(columns, None, strips.under_way(**OPERATIONS["half done"]))
    assert "HALF DONE  after stop-n4, next: rebuild rows on n3" in text_of(bars.rail(glance, columns))
    assert "it stays HALF DONE" in text_of(bars.next_line(glance, columns))


def test_one_that_was_just_begun_is_not_called_unknown() -> None:
    fresh = replace(strips.SWITCH, state=OperationState.UNKNOWN, operator="", steps=(), unread=True)
    row = bars.rail(glance_of(120, None, strips.under_way(operation=fresh)), 120)
    assert "rollback was begun  its steps are not read yet" in text_of(row) and "UNKNOWN" not in text_of(row)
    known = replace(fresh, unread=False, words="its files cannot be read")
    assert "UNKNOWN" in text_of(bars.rail(glance_of(120, None, strips.under_way(operation=known)), 120))


def test_the_window_counts_and_then_is_overdue() -> None:
    assert window_words(glance_of(120, None)) == ("WINDOW 06:12 of 25:00", CHIP)
    assert window_words(glance_of(120, None, strips.under_way(**OPERATIONS["overdue"]))) == ("OVERDUE 02:13", CHIP_ACT)
    assert window_words(glance_of(120, None, pictures.spark4()))[0] == ""
    later = strips.under_way()
    later = replace(later, now=later.now + 60)
    assert window_words(glance_of(120, None, later))[0] == "WINDOW 07:12 of 25:00", "by the head's clock, going on"


def test_the_lanes_name_goes_before_the_length_of_the_window() -> None:
    base = strips.under_way()
    named = replace(base, rehearsal=True, lanes=(replace(base.lanes[0], name="station"),))
    row = text_of(bars.header(glance_of(80, None, named), 80))
    assert "spark4/station" in row and "WINDOW 06:12 " in row and " of 25:00" not in row
    assert "WINDOW 06:12 of 25:00" in text_of(bars.header(glance_of(80, None), 80))


def test_next_says_when_it_serves_and_what_is_to_spare() -> None:
    text = text_of(bars.next_line(glance_of(120, None), 120))
    assert "if you do nothing: stop done 21:55:21 › rows 22:03:21 › boot › serving ≈22:12:56, 1m01s to spare" in text
    assert "serving ≈22:12:56" in text_of(bars.next_line(glance_of(80, None), 80))
    tight = strips.under_way(window=replace(strips.WINDOW, deadline=strips.CLOCK + 600))
    assert "late" in text_of(bars.next_line(glance_of(120, None, tight), 120))


def test_keys_carry_their_price_and_are_dim_under_a_strip() -> None:
    glance = glance_of(120, None)
    row = bars.key_rows(glance, 120)[1]
    assert pictures.ink_at(row, " B ") == CHIP_KEY and "cuts 7 requests" in text_of(row)
    assert "in the window: one letter" in text_of(row)
    assert pictures.ink_at(row, "H").bg == "surface", "handing over changes nothing on a host: no chip"
    under = bars.key_rows(glance_of(120, SHOWN["rollback counts down"]), 120)
    assert {span.ink.fg for line in under for span in line if span.text.strip()} == {"dim"}
    assert "every key but k cancels" in text_of(under[1])
    outside = glance_of(120, None, strips.under_way(pictures.spark4(), lease=None, window=None, operation=None))
    assert "no window: the lane's name is typed" in text_of(bars.key_rows(outside, 120)[1])


@pytest.mark.parametrize("columns", [80, 120])
def test_a_key_that_does_not_go_is_no_chip_and_no_way_back_is_red(columns: int) -> None:
    glance = glance_of(columns, None)
    gone = {**COSTS, "disarm": Price("no watchdog", "no watchdog", goes=False),
            "rollback": Price("NO WAY BACK", "NO WAY BACK", goes=False, grave=True)}  # fmt: skip
    row = bars.key_rows(replace(glance, keys=hints(Place.DASHBOARD, gone)), columns)[1]
    assert pictures.ink_at(row, "D").fg == pictures.ink_at(row, "no watchdog").fg == "dim"
    assert pictures.ink_at(row, "NO WAY BACK").fg == "act" and not pictures.ink_at(row, "NO WAY BACK").bold
    assert pictures.ink_at(row, "B").fg == "dim" and pictures.ink_at(row, " S ") == CHIP_KEY


def test_how_to_cancel_goes_before_rehearsal_while_a_strip_is_open() -> None:
    snapshot = replace(strips.under_way(), rehearsal=True)
    shown = text_of(bars.key_rows(glance_of(80, SHOWN["name typed"], snapshot), 80)[1])
    assert "Esc cancels" in shown and "REHEARSAL" not in shown
    assert "REHEARSAL" in text_of(strip.rows(glance_of(80, SHOWN["name typed"], snapshot), 80, 15)[0])


def test_the_key_line_says_that_hosts_are_simulated_in_whole_words() -> None:
    glance = glance_of(80, None, replace(strips.under_way(), rehearsal=True))
    rows = []
    for words in ("cuts 7", "ends relaunch", "cuts 123456789 now"):
        costs = {**COSTS, "stop": Price(words, words), "hand-over": Price("take over", "take over")}
        rows.append(text_of(bars.key_rows(replace(glance, keys=hints(Place.DASHBOARD, costs)), 80)[1]))
    assert not [row for row in rows if "…" in row], rows
    assert [row.split("take over")[1].strip() for row in rows] == ["REHEARSAL", "DRILL", ""]


@pytest.mark.parametrize("columns", SIZES)
def test_the_rail_says_rehearsal_whole_or_not_at_all(columns: int) -> None:
    row = text_of(bars.rail(glance_of(columns, None, replace(strips.under_way(), rehearsal=True)), columns))
    assert "…" not in row and ("REHEARSAL" in row or columns < 200)


def test_what_comes_after_it_serves_again_is_not_said_before() -> None:
    steps = tuple(replace(step, usual=60.0) if step.stage == "arm" else step for step in strips.SWITCH.steps)
    glance = glance_of(200, None, strips.under_way(operation=replace(strips.SWITCH, steps=steps)))
    text = text_of(bars.next_line(glance, 200))
    assert "boot › serving ≈22:12:56" in text and "arm" not in text


def test_half_done_says_the_keys_that_lead_out_with_their_times() -> None:
    glance = glance_of(80, None, strips.under_way(**OPERATIONS["half done"]))
    assert "it stays HALF DONE, R ≈17m46s or B ≈17m35s to 9f2c1a7" in text_of(bars.next_line(glance, 80))
    shut = {**COSTS, "relaunch": Price("≈17m46s", "≈17m46s", goes=False)}
    text = text_of(bars.next_line(replace(glance, keys=hints(Place.DASHBOARD, shut)), 80))
    assert "it stays HALF DONE, B ≈17m35s" in text and "R ≈" not in text


def test_what_would_be_cut_names_everybody_also_where_it_is_narrow() -> None:
    for columns in SIZES:
        text = "\n".join(text_of(row) for row in drawn(columns, SHOWN["stop says who uses it"], plain=False))
        for words in ("Milo", "custom[alyx-local]", "Echo on", "Forge", "stays off until D arms it again"):
            assert words in text, (columns, words)


@pytest.mark.parametrize(
    ("text", "width", "found"),
    [
        ("keep logs, inspect and memory", 14, "keep logs"),
        ("compare the launcher's dry runs", 14, "compare"),
        ("arm", 14, "arm"),
        ("incomprehensibilities", 14, "incomprehensibilities"),
        ("wait until no launch is under way", 12, "wait"),
    ],
)
def test_a_cell_holds_whole_words(text: str, width: int, found: str) -> None:
    assert stripsteps.whole_words(text, width) == found


def test_a_dry_run_is_called_so_and_only_long_stages_are_named() -> None:
    compare = strips.step("dry-run", Stage.SITE, "n1", 0.2, "compare the launcher's dry runs")
    plan = replace(strips.way_back(), steps=(compare, *strips.way_back().steps))
    assert [stripsteps.name_of(part) for part in stripsteps.parts(plan)][:2] == ["dry run", "stop"]
    assert stripsteps.long_parts(plan, stripsteps.serving_after(plan)) == "rows, boot"
    assert stripsteps.long_parts(strips.stopping()) == "stop"


def _write() -> None:
    for columns in SIZES:
        for plain in (False, True):
            file_of(columns, plain).write_text(as_text(columns, plain=plain), encoding="utf-8")


if __name__ == "__main__":
    _write()
