"""What the site file cases ask of the reading and of the edit."""

from __future__ import annotations

from case_table import case_file, inspect_case

from console.fleet.proposal import propose
from console.fleet.recipe import load_recipe
from console.fleet.sitefile import SiteKind, parse_site, read_site


def test_crlf_line_ends_are_told_and_never_taken_for_the_clean_value() -> None:
    """C062: a warning, the return made visible, and no revision: the path with a return in it is another one."""
    answer = inspect_case("C062", "sitefile", "fleet.env")
    assert answer["warnings"][0].startswith("CRLF line ends in 3 lines")
    assert answer["warnings"][1] == "line 2: runs '␍'"
    assert answer["keys"]["SNAP"]["shown"].endswith("42170␍")
    site = read_site(case_file("C062", "fleet.env").read_bytes(), "fleet.env", load_recipe("sglang-fleet-env"))
    assert site.revision == ""
    assert "revision (SNAP): ends in a carriage return (CRLF line ends)" in site.unread
    assert not set(site.values) & {"revision", "rows"}


def test_an_edit_changes_the_effective_assignments_and_no_other_byte() -> None:
    """C064: the result is the expected file, byte for byte; CRLF files keep their line ends."""
    before = case_file("C064", "fleet.env").read_bytes()
    wanted = parse_site(case_file("C064", "change.txt").read_bytes(), SiteKind.DOCKER)
    made = propose(before, {item.key: item.value for item in wanted.assignments})
    assert made.data == case_file("C064", "expected_after.env").read_bytes()
    assert (made.lines, made.refusals) == ((5, 6), ())


def test_two_readings_that_differ_are_told() -> None:
    """C066: the keys that bash would take in another way, with what it would do instead."""
    answer = inspect_case("C066", "sitefile", "docker=container.env")
    assert {row["key"]: row["bash"] for row in answer["differs"]} == {
        "A": "quoted value",
        "B": "plain",
        "C": "single",
        "E": "error: runs 'words'",
        "F": "$HOME/x (expanded)",
    }
    assert "D" not in answer["keys"]
