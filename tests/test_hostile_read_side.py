"""The read side under hostile texts: nothing raises, and no sink gives out anything that a terminal would act on."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "widgets"))
sys.path.insert(0, str(Path(__file__).parent / "screens"))

import pictures
from hostile import TEXTS
from hostile_read_side import RECIPES, Dirt, container, hostile_picture
from rich.cells import cell_len
from test_sanitize import assert_safe, hostile
from test_widget_pictures import drawn

from console.actions.catalog import Place
from console.alarms import Alarm, alarms
from console.alarms.book import AlarmState, Booked, Change
from console.document import document
from console.feed.changes import HostKnown, LaneKnown, container_event, host_changes, lane_changes
from console.fleet.sitetypes import Assignment
from console.headless import text_lines
from console.lamps import lamps
from console.notify import message, notification_sequence, notification_text
from console.readings.exits import parse_event
from console.readings.rows import RowState
from console.readings.watchdog import WatchdogState
from console.snapshot import Event, Severity, Snapshot
from screens.events import EventsScreen
from screens.explaining import PANES, explain
from screens.logs import LogsScreen
from screens.view import Moment, View, glance
from widgets.glance import Glance
from widgets.ink import text_of

SIZES = ((80, 24), (120, 40), (200, 60))
MARKUP = ("[red]", "[/red]", "[link=http://x]", "[@click=app.quit]q[/]", "[bold", "[/]", "\\[x]")

raw = st.one_of(
    hostile,
    st.sampled_from(TEXTS),
    st.sampled_from(MARKUP),
    st.text(max_size=30),
    st.binary(max_size=20).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.sampled_from(["\ud83d", "9" * 400, "-1", "1e999", "nan", "../" * 30, "%n%s", "{0.__class__}", "\t" * 9]),
)  # fmt: skip
slow = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a second each: the case found is small enough
)


def giving(texts: list[str]) -> Dirt:
    """Each of the texts in turn, again and again."""
    source = itertools.cycle(texts)
    return lambda: next(source)


def strings(value: Any) -> Iterator[str]:
    """All texts of JSON-ready data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    else:
        assert value is None or isinstance(value, bool | int | float), type(value)


def looking(snapshot: Snapshot, columns: int, rows: int, *, ascii_only: bool = False) -> Glance:
    """The console's own glance at it; what would be a fault on screen fails."""

    def faulty(where: str, error: Exception) -> None:
        raise AssertionError(where) from error

    view = View(lane="dsv41", ascii=ascii_only, no_colour=ascii_only)
    return glance(Moment(snapshot, snapshot, None, "", ()), view, Place.DASHBOARD, columns, rows, faulty)


def check_words(snapshot: Snapshot) -> None:
    """JSON, plain text, lamps, alarms and explanations."""
    said = document(snapshot)
    json.dumps(said, allow_nan=False).encode("ascii")
    for text in strings(said):
        assert_safe(text)
    for row in text_lines(snapshot):
        assert_safe(row)
    for lamp in lamps(snapshot, snapshot.lanes[0]):
        for text in (lamp.title, lamp.word, lamp.rest, lamp.note):
            assert_safe(text)
    shown = looking(snapshot, 120, 40)
    for number in PANES:
        for part in explain(shown, number):
            for text in (
                part.subject,
                part.origin,
                *(word for fact in part.facts for word in (fact.name, fact.value, fact.how)),
            ):
                assert_safe(text)


def check_calls(found: tuple[Alarm, ...]) -> None:
    """Webhook payloads and terminal notifications of all alarms."""
    for alarm in found:
        for text in (alarm.key, alarm.subject, alarm.text, alarm.advice):
            assert_safe(text)
        item = message("four", Change.RAISED, Booked(alarm, AlarmState.ACTIVE, 1.0, 1.0), 1.0, rehearsal=False)
        for text in strings(json.loads(json.dumps(item.payload(), allow_nan=False))):
            assert_safe(text)
        for environment in ({"TERM": "xterm-256color"}, {"TERM": "foot"}):
            sequence = notification_sequence(notification_text(item), environment)
            assert sequence.count("\x1b") == 2 and sequence.endswith("\x1b\\")
            assert_safe(sequence[2:-2])


def check_rows(snapshot: Snapshot) -> None:
    """Every bar and pane, the events and the log in three sizes: exact cells, nothing but visible characters."""
    for (columns, height), ascii_only in itertools.product(SIZES, (False, True)):
        shown = looking(snapshot, columns, height, ascii_only=ascii_only)
        blocks = drawn(shown, columns)
        for screen in (EventsScreen(), LogsScreen("n1")):
            blocks.append((screen.NAME, columns, screen.reader.draw(shown, columns, height - 8)))
        for name, width, rows in blocks:
            for row in rows:
                assert cell_len(text_of(row)) == width, name
                assert_safe(text_of(row))


def check_events(snapshot: Snapshot) -> None:
    """What the feed would tell, when this comes after all is well and the other way round."""
    well = pictures.spark4()
    told: list[Event] = []
    for host, before in zip(snapshot.hosts, well.hosts, strict=True):
        for first, second in ((before, host), (host, before)):
            known, _ = host_changes(HostKnown(), first)
            told += host_changes(known, second)[1]
    for first, second in ((well.lanes[0], snapshot.lanes[0]), (snapshot.lanes[0], well.lanes[0])):
        lane, _ = lane_changes(LaneKnown(), first, now=well.now, wall=well.wall)
        told += lane_changes(lane, second, now=well.now, wall=well.wall)[1]
    assert len(told) > 8
    for event in told:
        assert_safe(event.subject)
        assert_safe(event.text)
        assert event.severity in Severity


@pytest.mark.parametrize("recipe", RECIPES)
@slow
@given(st.lists(raw, min_size=1, max_size=9))
@example(["\ud9b6 half of a character"])
@example(list(TEXTS))
@example(list(MARKUP))
def test_whatever_hosts_say_no_sink_gives_out_more_than_visible_text(recipe: str, texts: list[str]) -> None:
    snapshot = hostile_picture(giving(texts), recipe)
    check_words(snapshot)
    check_calls(alarms(snapshot))
    check_rows(snapshot)
    check_events(snapshot)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_hostile_picture_has_something_to_say_in_every_part(recipe: str) -> None:
    """Else the test above would prove nothing about it."""
    picture = hostile_picture(giving(list(TEXTS)), recipe)
    view = picture.lanes[0]
    for reading in (view.site, view.download, view.rows, view.next_rows, view.watchdog, view.boot, view.front):
        assert reading is not None and reading.value is not None
    assert view.drift is not None and len(view.drift.differences) > 3
    assert view.download is not None and view.download.value is not None and len(view.download.value.warnings) >= 3
    assert "links that lead nowhere: " in " ".join(view.download.value.warnings)
    said = " ".join(strings(document(picture)))
    for word in ("after OSC 52", "[bold", "$(reboot)", "evil", "[@click=app.quit]", "MARK", "\u5bbd\u5b57"):
        assert said.count(word) > 2, (word, said.count(word))
    if recipe == "sglang-fleet-env":
        assert view.watchdog is not None and view.watchdog.value is not None
        assert view.watchdog.value.state is WatchdogState.TWO and view.watchdog.value.last_act
    assert view.rows is not None and view.rows.value is not None
    assert any(copy.state is not RowState.UNREADABLE and copy.manifest for copy in view.rows.value.copies)


def test_what_looks_like_markup_is_shown_as_it_stands() -> None:
    snapshot = hostile_picture(giving(["[red]a[/red]", "[link=http://x]b[/link]", "[@click=app.quit]c[/]"]))
    said = "\n".join(strings(document(snapshot)))
    shown = "\n".join(
        text_of(row)
        for columns, rows in SIZES
        for _, _, drawn_rows in drawn(looking(snapshot, columns, rows), columns)
        for row in drawn_rows
    )
    for text in ("[red]a[/red]", "[link=http://x]b[/link]", "[@click=app.quit]c[/]"):
        assert text in said
        assert text in shown
    assert "[red]a[/red]" in "\n".join(text_lines(snapshot))


@settings(max_examples=60, deadline=None)
@given(raw, raw, raw, st.integers(-5, 1 << 40))
def test_events_of_docker_in_words(action: str, name: str, health: str, code: int) -> None:
    attributes = {"name": name, "exitCode": str(code), "signal": health}
    for verb in (action, "die", "kill", "oom", "destroy", f"health_status: {health}"):
        event = parse_event({"Type": "container", "Action": verb, "Actor": {"ID": name, "Attributes": attributes}})
        if event is not None:
            told = container_event(event, (event, event), container(giving([name]), 1, 8210))
            assert_safe(told.text)
            assert_safe(told.subject)


@slow
@given(st.lists(raw, min_size=1, max_size=6))
def test_keys_of_a_site_file_are_told_as_safe_names(texts: list[str]) -> None:
    """What a file assigns is kept raw, as its own shell has it: only what is shown of it is made safe."""
    dirt = giving(texts)
    view = hostile_picture(dirt).lanes[0]
    assert view.site is not None and view.site.value is not None
    known, _ = lane_changes(LaneKnown(), view, now=pictures.NOW, wall=pictures.WALL)
    site = view.site.value
    odd = tuple(Assignment(dirt(), (dirt(),), False, 1) for _ in range(3))
    changed = replace(site, file=replace(site.file, assignments=(*site.file.assignments, *odd)))
    after = replace(view, site=replace(view.site, value=changed))
    for event in lane_changes(known, after, now=pictures.NOW, wall=pictures.WALL)[1]:
        assert_safe(event.text)
