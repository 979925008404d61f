"""The action table: no two actions of a screen share a key, guarded keys stay, commands parse."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.actions.catalog import (
    ACTIONS,
    ANYWHERE,
    BY_ID,
    GUARDED_KEYS,
    Group,
    Place,
    Scope,
    available,
    guarded,
    key_line,
    palette,
)
from console.actions.command_line import CommandError, complete, parse_command
from console.actions.keymap import KeymapError, load_keymap, validate_keymap

SAFE_REMAPPABLE = [a for a in ACTIONS if a.scope is Scope.SAFE and not a.fixed]


def test_ids_are_unique() -> None:
    assert len(BY_ID) == len(ACTIONS)


@pytest.mark.parametrize("place", list(Place))
def test_no_key_and_no_command_means_two_things_on_one_screen(place: Place) -> None:
    for one, other in combinations(available(place), 2):
        assert not set(one.keys) & set(other.keys), (one.id, other.id)
        assert not set(one.commands) & set(other.commands), (one.id, other.id)


def test_capitals_are_guarded_and_guarded_actions_are_capitals() -> None:
    capitals = {key for a in ACTIONS for key in a.keys if len(key) == 1 and key.isupper()}
    assert capitals == GUARDED_KEYS == {"D", "S", "R", "B", "H"}
    assert all(a.scope is Scope.GUARDED and a.fixed and a.places == ANYWHERE for a in guarded())


def test_no_safe_action_lies_one_shift_away_from_a_guarded_one() -> None:
    beside = {a.id for a in ACTIONS if a.scope is Scope.SAFE for key in a.keys if key.upper() in GUARDED_KEYS}
    # A slip from `D` to `d` shows what would be done; one from `H` to `h` shows another log.
    assert beside == {"dry-run", "next-host"}


def test_palette_and_key_line_hold_safe_actions_that_work() -> None:
    assert {a.id for a in palette()} >= {a.id for a in guarded()} | {"window", "ledger", "dry-run", "quit"}
    for place in Place:
        assert all(a.scope is Scope.SAFE for a in key_line(place))
        assert "quit" in [a.id for a in key_line(place)]
    assert all(not a.argument or a.keys for a in palette())


def test_every_action_says_what_it_does_and_every_group_is_used() -> None:
    assert {a.group for a in ACTIONS} == set(Group)
    for action in ACTIONS:
        assert action.help.strip() and action.title.strip() and action.places
        assert action.keys or action.commands


def test_commands_with_and_without_argument() -> None:
    assert parse_command("zoom nodes", Place.DASHBOARD) == (BY_ID["zoom"], "nodes")
    assert parse_command(":q", Place.HELP) == (BY_ID["quit"], "")
    assert parse_command("  filter  n1 x ", Place.DASHBOARD) == (BY_ID["filter"], "n1 x")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "no command ''"),
        ("quti", "did you mean 'quit'?"),
        ("pause now", "takes nothing"),
        ("xyzzy-plugh", "? lists the keys"),
    ],
)
def test_a_wrong_command_says_the_way_out(line: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_command(line, Place.DASHBOARD)
    assert words in str(caught.value)


def test_a_command_of_another_screen_is_unknown_here() -> None:
    with pytest.raises(CommandError):
        parse_command("zoom", Place.HELP)


def test_completion_of_names_and_arguments() -> None:
    assert complete("fi", Place.DASHBOARD) == ("filter",)
    assert "pause" in complete("", Place.DASHBOARD)
    assert complete("lane s", Place.DASHBOARD, {"LANE": ["station", "dsv41"]}) == ("lane station",)
    assert complete("nothing s", Place.DASHBOARD, {"LANE": ["station"]}) == ()


@given(st.text(max_size=40))
def test_any_line_is_a_command_or_a_command_error(line: str) -> None:
    try:
        action, _ = parse_command(line, Place.DASHBOARD)
    except CommandError as error:
        assert str(error)
    else:
        assert action.commands


def test_a_good_keymap() -> None:
    assert validate_keymap({"zoom": "f2", "pause": ["p", "f3"]}) == {"zoom": ("f2",), "pause": ("p", "f3")}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"zoom": "R"}, "'R' is the guarded key of 'relaunch the lane' and cannot be taken"),
        ({"rollback": "f9"}, "rollback: is guarded and keeps its key B"),
        ({"hand-over": "f8"}, "hand-over: is guarded and keeps its key H"),
        ({"zoom": "H"}, "'H' is the guarded key of 'hand the lane over' and cannot be taken"),
        ({"rollback": []}, "rollback: is guarded and keeps its key B"),
        ({"stop": ""}, "stop: is guarded and keeps its key S"),
        ({"zoom": []}, "zoom: needs at least one key"),
        ({"zoom": ""}, "'' is not a key name"),
        ({"zoom": 3}, "zoom: a key such as"),
        ({"zoom": "Q"}, "capital letters are kept for guarded actions"),
        ({"zoom": "ctrl+c"}, "ctrl+c never acts"),
        ({"quit": "escape"}, "Esc always goes back"),
        ({"zoom": "p"}, "zoom and pause both want 'p'"),
        ({"zoom": "l", "logs": "l"}, "logs and zoom both want 'l'"),
        ({"zooom": "f2"}, "did you mean 'zoom'?"),
        ({"back": "b"}, "back: keeps its key Esc"),
        ({"zoom": "hyper+x"}, "is not a key name"),
    ],
)
def test_a_wrong_keymap_names_file_action_and_reason(raw: dict[str, object], words: str) -> None:
    with pytest.raises(KeymapError) as caught:
        validate_keymap(raw, "keys.toml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("keys.toml: ")


def test_swapping_two_keys_is_no_clash() -> None:
    assert validate_keymap({"zoom": "p", "pause": "z"}) == {"zoom": ("p",), "pause": ("z",)}


@given(
    st.dictionaries(
        st.sampled_from([a.id for a in ACTIONS]),
        st.one_of(
            st.text(max_size=3), st.lists(st.sampled_from(["D", "S", "R", "B", "H", "f2", "p", "escape"]), max_size=3)
        ),
        max_size=6,
    )
)
def test_no_keymap_takes_a_guarded_key_or_drops_one(raw: dict[str, object]) -> None:
    try:
        keymap = validate_keymap(raw)
    except KeymapError:
        return
    assert not {key for keys in keymap.values() for key in keys} & GUARDED_KEYS
    assert not {a.id for a in guarded()} & set(keymap)
    assert all(keymap.values())


def test_a_keymap_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    assert load_keymap(file) == {}
    file.write_text('zoom = "f2"\n')
    assert load_keymap(file) == {"zoom": ("f2",)}
    file.write_text("zoom = \n")
    with pytest.raises(KeymapError, match="not valid TOML"):
        load_keymap(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KeymapError, match="cannot be read"):
        load_keymap(file)
