"""Alarms over time: raised once, acknowledged, returned; hysteresis; expected ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.alarms import Alarm
from console.alarms.book import CLEAR_AFTER_S, MOST_RETURNED, AlarmBook, AlarmState, Change, loud
from console.snapshot import Severity

WALL = 1_760_000_000.0


def alarm(key: str = "memory:spark-2", severity: Severity = Severity.ACT, text: str = "free 2.9 GiB") -> Alarm:
    return Alarm(key, severity, key.partition(":")[2], text, "")


def test_an_alarm_is_raised_once_and_its_text_kept_up_to_date() -> None:
    book = AlarmBook()
    assert [change for change, _ in book.update([alarm()], 0.0, WALL)] == [Change.RAISED]
    assert book.update([alarm(text="free 2.8 GiB")], 1.0, WALL + 1) == ()
    (booked,) = book.booked()
    assert (booked.alarm.text, booked.raised, booked.state) == ("free 2.8 GiB", WALL, AlarmState.ACTIVE)


def test_what_swings_around_its_threshold_is_one_alarm() -> None:
    book = AlarmBook()
    book.update([alarm()], 0.0, WALL)
    for second in range(1, 60):
        found = [alarm()] if second % 5 == 0 else []
        assert book.update(found, float(second), WALL + second) == ()
    assert [change for change, _ in book.update([], 55 + CLEAR_AFTER_S, WALL + 66)] == [Change.ENDED]


def test_one_that_nobody_saw_stays_as_returned_until_somebody_does() -> None:
    book = AlarmBook()
    book.update([alarm()], 0.0, WALL)
    book.update([], CLEAR_AFTER_S, WALL + 10)
    (gone,) = book.returned()
    assert (gone.state, gone.ended) == (AlarmState.RETURNED, WALL + 10)
    assert book.update([], 99.0, WALL + 99) == ()
    assert book.acknowledge("memory:spark-2")
    assert book.booked() == ()
    assert not book.acknowledge("memory:spark-2")


def test_an_acknowledged_one_stays_until_its_cause_is_gone_and_is_new_if_it_comes_back() -> None:
    book = AlarmBook()
    book.update([alarm()], 0.0, WALL)
    assert book.acknowledge("memory:spark-2")
    assert book.acknowledged() == {"memory:spark-2"}
    assert book.update([alarm()], 5.0, WALL + 5) == ()
    book.update([], 5 + CLEAR_AFTER_S, WALL + 16)
    assert book.booked() == ()
    assert [change for change, _ in book.update([alarm()], 30.0, WALL + 30)] == [Change.RAISED]
    assert book.acknowledged() == frozenset()


def test_a_returned_one_that_comes_back_is_raised_again() -> None:
    book = AlarmBook()
    book.update([alarm()], 0.0, WALL)
    book.update([], CLEAR_AFTER_S, WALL + 10)
    assert [change for change, _ in book.update([alarm()], 20.0, WALL + 20)] == [Change.RAISED]
    assert book.returned() == ()


def test_getting_worse_undoes_an_acknowledgement() -> None:
    book = AlarmBook()
    book.update([alarm(severity=Severity.LOOK)], 0.0, WALL)
    book.acknowledge("memory:spark-2")
    assert [change for change, _ in book.update([alarm()], 1.0, WALL + 1)] == [Change.WORSE]
    assert book.acknowledged() == frozenset()
    assert book.update([alarm(severity=Severity.LOOK)], 2.0, WALL + 2) == ()


def test_good_to_know_leaves_nothing_to_acknowledge() -> None:
    book = AlarmBook()
    book.update([alarm(severity=Severity.INFO)], 0.0, WALL)
    assert [change for change, _ in book.update([], CLEAR_AFTER_S, WALL + 10)] == [Change.ENDED]
    assert book.booked() == ()


def test_what_a_planned_step_brings_along_is_marked_and_leaves_nothing_behind() -> None:
    book = AlarmBook()
    ((change, booked),) = book.update([alarm("state:dsv41")], 0.0, WALL, {"state:dsv41": "stop"})
    assert (change, booked.expected) == (Change.RAISED, "stop")
    book.update([], CLEAR_AFTER_S, WALL + 10, {"state:dsv41": "stop"})
    assert book.booked() == ()
    book.update([alarm("state:dsv41")], 20.0, WALL + 20)
    assert book.booked()[0].expected == ""


def test_returned_alarms_are_bounded_the_oldest_go() -> None:
    book = AlarmBook()
    for number in range(MOST_RETURNED + 7):
        book.update([alarm(f"gpu:{number}")], number * 100.0, WALL + number * 100)
        book.update([], number * 100.0 + CLEAR_AFTER_S, WALL + number * 100 + 10)
    assert [booked.alarm.key for booked in book.returned()] == [f"gpu:{n}" for n in range(7, MOST_RETURNED + 7)]


@given(st.lists(st.lists(st.sampled_from("abc"), unique=True), max_size=60))
def test_every_alarm_ends_as_often_as_it_is_raised_or_is_still_there(seconds: list[list[str]]) -> None:
    book, balance = AlarmBook(), dict.fromkeys("abc", 0)
    for second, names in enumerate(seconds):
        for change, booked in book.update([alarm(name) for name in names], float(second * 4), WALL + second):
            balance[booked.alarm.key] += {Change.RAISED: 1, Change.WORSE: 0, Change.ENDED: -1}[change]
    active = {b.alarm.key for b in book.booked() if b.state is not AlarmState.RETURNED}
    assert {name for name, count in balance.items() if count == 1} == active
    assert set(balance.values()) <= {0, 1}


def test_loudness() -> None:
    assert loud(Severity.ACT, Severity.LOOK) and loud(Severity.LOOK, Severity.LOOK)
    assert not loud(Severity.INFO, Severity.LOOK)
