"""What the watchdog cases ask of the console."""

from __future__ import annotations

from case_table import inspect_case


def test_a_reused_pid_is_never_signalled() -> None:
    """C057: after a reboot the pid in the log is a weight copy: it is named, and nothing may be sent to it."""
    answer = inspect_case("C057", "watchdog", "log=sgl-watchdog.log ps=ps_5151.txt booted=uptime_since.txt")
    assert (answer["state"], answer["pid"], answer["may_signal"]) == ("pid reused", 5151, False)
    assert "never signal it" in answer["words"]
    assert "rsync" in answer["words"]


def test_no_unreadable_bus_is_off() -> None:
    """C050: of nine answers one means disarmed; whatever cannot be read leaves open whether it protects."""
    samples = inspect_case("C050", "watchdog", "is_active=is_active.tsv")["samples"]
    assert [item["sample"] for item in samples if item["state"] == "off"] == ["s2"]
    assert {item["protecting"] for item in samples if item["state"] == "unknown"} == {None}


def test_an_active_unit_that_gave_up_protects_nothing() -> None:
    """C060: the unit is active in all four; only the flags tell them apart."""
    both = "is_active=both/is_active.txt gaveup=both/dsv41-watchdog.gaveup pause=both/dsv41-watchdog.pause"
    answer = inspect_case("C060", "watchdog", both)
    assert (answer["protecting"], answer["armed"]) == (False, 0)
    assert "gave up at 2026-10-18T03:12:44Z after 3 failed relaunches" in answer["words"]
    assert inspect_case("C060", "watchdog", "is_active=armed/is_active.txt")["protecting"] is True
