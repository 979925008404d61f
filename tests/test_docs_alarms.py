"""The page of alarms, against the code that calls people."""

from __future__ import annotations

from manual import code, page, rows, section

from console import notify
from console.alarms import book
from console.alarms.alarm import Alarm
from console.alarms.book import AlarmState, Booked, Change
from console.fleet.inventory import Notify
from console.snapshot import Severity


def test_every_state_has_its_row() -> None:
    assert {code(row[0])[0] for row in rows(section("alarms.md", "States"))} == {state.value for state in AlarmState}


def test_every_key_of_a_payload_has_its_row() -> None:
    booked = Booked(Alarm("a:b", Severity.ACT, "b", "text", "advice"), AlarmState.ACTIVE, 1.0, 1.0)
    payload = notify.message("spark4", Change.RAISED, booked, 1.0, rehearsal=False).payload()
    assert {word for row in rows(section("alarms.md", "Webhook")) for word in code(row[0])} == set(payload)
    said = section("alarms.md", "Webhook")
    assert all(f"`{change}`" in said for change in Change)


def test_figures_are_those_of_the_code() -> None:
    text = " ".join(page("alarms.md").split())
    assert f"gone for {book.CLEAR_AFTER_S:g} s" in text
    assert f"The newest {book.MOST_RETURNED} are kept" in text
    assert f"in the first {notify.OPENING_S:g} s" in text
    assert f"No answer within {notify.ANSWER_LIMIT_S:g} s" in text
    assert notify.ATTEMPTS == 6 and "six times in all" in text
    assert f"At most {notify.MOST_WAITING} wait" in text
    assert f"cut at {len(notify.redacted('x' * 9999))} characters" in text


def test_every_way_names_the_key_that_switches_it_off() -> None:
    text = section("alarms.md", "Who is called, and when")
    assert all(f"`{key}" in text or f"`{key} = false`" in text for key in Notify.model_fields)
    assert f"`{Notify().webhook_env}`" in text
