"""Faults of the console: one safe line, a private file that cannot grow without bound."""

from __future__ import annotations

import stat
from pathlib import Path

from screens import faults
from screens.faults import FaultLog


def raised(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_a_fault_is_an_alarm_and_a_private_file(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "state" / "faults.log")
    assert log.alarm() is None
    log.record("pane nodes", raised("no \x1b]52;c;aGk=\x07 such"))
    alarm = log.alarm()
    assert alarm is not None
    assert alarm.subject == "console fault:"
    assert alarm.text == "pane nodes: ValueError: no  such"
    assert str(log.file) in alarm.advice
    text = log.file.read_text()
    assert "Traceback" in text and "\x1b" not in text
    assert stat.S_IMODE(log.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.file.parent.stat().st_mode) == 0o700


def test_a_fault_of_every_tick_is_written_once_and_counted(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "faults.log")
    for _ in range(1000):
        log.record("snapshot", raised("again"))
    assert log.file.read_text().count("Traceback") == 1
    alarm = log.alarm()
    assert alarm is not None and alarm.text.endswith(", 1000 times")


def test_many_different_faults_stop_being_written(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "faults.log")
    for number in range(3 * faults.DISTINCT):
        log.record("snapshot", raised(f"number {number}"))
    assert log.file.read_text().count("Traceback") == faults.DISTINCT
    assert log.newest.endswith(f"number {3 * faults.DISTINCT - 1}")


def test_a_full_file_is_put_aside(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "faults.log")
    log.file.write_text("x" * (faults.LIMIT + 1))
    log.record("snapshot", raised("new"))
    assert log.file.stat().st_size < faults.LIMIT
    assert (tmp_path / "faults.log.1").stat().st_size > faults.LIMIT


def test_a_file_that_cannot_be_written_is_said_not_raised(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "a-file" / "faults.log")
    (tmp_path / "a-file").write_text("")
    log.record("snapshot", raised("x"))
    alarm = log.alarm()
    assert alarm is not None and "not written" in alarm.advice
