"""Who is on duty: the nearer word wins, and no name is changed on the way into leases and ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual import rows, section

from console.fleet.inventory import FleetError, load, parse
from console.fleet.operator import LONGEST, trouble
from console.sanitize import line, word
from console.setup.config import in_force

FLEET = """
name = "here"
{operator}
[hosts]
me = {{ ssh = "local", docker = "" }}
[lanes.lane]
recipe = "docker-generic"
url = "http://127.0.0.1:9"
head = "me"
"""


def written(operator: str = "") -> str:
    return FLEET.format(operator=f'operator = "{operator}"' if operator else "")


@pytest.mark.parametrize(
    ("variable", "file", "login", "name"),
    [
        ("ana", "ben", "kai", "ana"),
        ("", "ben", "kai", "ben"),
        ("ana", "", "kai", "ana"),
        ("", "", "kai", "kai"),
        ("", "", "", "-"),
        ("", "", "k\x1b[2J", "-"),
    ],
)
def test_the_nearer_word_wins(monkeypatch: pytest.MonkeyPatch, variable: str, file: str, login: str, name: str) -> None:
    """A fleet file is shared by many: who sits here says it in the environment."""
    monkeypatch.setenv("LANESWAP_OPERATOR", variable)
    monkeypatch.setenv("USER", login)
    assert parse(written(file)).operator_name() == name


def test_a_rehearsal_has_its_own_cast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANESWAP_OPERATOR", "ana")
    assert parse(written("ben")).model_copy(update={"rehearsal": True}).operator_name() == "ben"


def test_what_is_in_force_tells_that_the_environment_goes_before_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(written("ben"))
    monkeypatch.setenv("LANESWAP_OPERATOR", "ana")
    (found,) = (item for item in in_force(file) if item.key == "operator")
    assert (found.value, found.origin) == ("ana", "environment: LANESWAP_OPERATOR, over 'ben' in the fleet file")
    monkeypatch.setenv("LANESWAP_OPERATOR", "")
    (found,) = (item for item in in_force(file) if item.key == "operator")
    assert (found.value, found.origin) == ("ben", str(file))


BAD = ["a" * (LONGEST + 1), "ana\tben", "ana\x1b[31m", "an\u200ba", "\u202eana", " ana", "ana ", "   "]


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_would_come_out_different_is_refused_with_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(written("ben"))
    monkeypatch.setenv("LANESWAP_OPERATOR", name)
    with pytest.raises(FleetError) as caught:
        load(file)
    assert "LANESWAP_OPERATOR in the environment: " in str(caught.value)
    assert "\x1b" not in str(caught.value) and "\u202e" not in str(caught.value)


@pytest.mark.parametrize("name", [name.replace("\x1b", "\\u001b").replace("\t", "\\t") for name in BAD])
def test_in_a_fleet_file_it_is_refused_with_file_and_key(tmp_path: Path, name: str) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(written(name), encoding="utf-8")
    with pytest.raises(FleetError) as caught:
        load(file)
    assert str(file) in str(caught.value) and "operator: " in str(caught.value)


@given(st.text(max_size=LONGEST + 5))
def test_what_is_no_trouble_is_kept_as_it_is(name: str) -> None:
    if not trouble(name):
        assert line(name, 80).strip() == name and word(name, 80) == name


def test_the_manual_says_which_one_wins() -> None:
    (row,) = (row for row in rows(section("fleet.md", "Top level")) if row[0] == "`operator`")
    assert "`LANESWAP_OPERATOR`" in row[2] and "goes before" in row[2]
