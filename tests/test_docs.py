"""The manual says what the program does: the page of the screen against its tables, and what holds for all pages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

import pytest
from manual import PAGES, ROOT, anchors, beside, code, fenced, first_cells, links, names, page, rows, section

from console import alarms, lamps
from console.actions.catalog import ACTIONS, Action, Place
from console.actions.keymap import validate_keymap
from console.actions.themes import DARK, LEAST_BAR, LEAST_TEXT, check_theme
from console.fleet import inventory
from console.readings.download import DownloadState
from console.readings.lights import HttpVerdict, LaneState, LaneVerdict, Progress
from console.readings.quality import LATE_AFTER, STALE_AFTER, Quality
from console.readings.rows import RowState
from console.readings.scrape import ScrapeVerdict
from console.readings.watchdog import WatchdogState
from console.snapshot import Severity
from console.wayback import Word
from widgets import containers, download, nodes, rowcopies, watchdog
from widgets.glance import Glance
from widgets.ink import WORDS, Row, text_of
from widgets.slots import LAST_DIGIT, NUMBERS

Draw = Callable[[Glance, int, int], tuple[Row, ...]]
pictures = beside("widgets", "pictures")
WORDS_FOR = {2: "two", 5: "five"}
COLOURS = {Severity.NORMAL: "grey", Severity.INFO: "blue", Severity.LOOK: "orange", Severity.ACT: "red"}


# --- screen.md -------------------------------------------------------------------------------------------------------


def row_of(action: Action) -> list[str]:
    """The row that the manual must have for an action."""
    keys = "`1`-`9`" if action.id == "focus" else " ".join(f"`{key}`" for key in action.keys)
    commands = " ".join(f"`:{name}{' ' + action.argument if action.argument else ''}`" for name in action.commands)
    where = "everywhere" if len(action.places) == len(Place) else ", ".join(sorted(action.places))
    return [f"`{action.id}`", keys or "-", commands or "-", action.help, where]


def test_the_table_of_keys_is_the_table_of_actions() -> None:
    assert rows(section("screen.md", "Keys")) == [row_of(action) for action in ACTIONS]


def test_the_example_of_a_theme_is_accepted_and_every_colour_is_explained() -> None:
    text = section("screen.md", "Sizes, colours, characters")
    (example,) = fenced(text, "toml")
    assert check_theme(tomllib.loads(example), ROOT / "mine.toml").dark
    assert sorted(first_cells(text[text.index("| key | for |") :])) == sorted(DARK)
    assert f"contrast of {LEAST_TEXT:g} on" in text and f"`fill` needs {LEAST_BAR:g} on" in text


def test_the_example_of_a_keymap_is_accepted() -> None:
    (example,) = fenced(section("screen.md", "Keys"), "toml")
    assert validate_keymap(tomllib.loads(example))


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Lane states and what to do", LaneState),
        ("http", HttpVerdict),
        ("scrape", ScrapeVerdict),
        ("How old a value is", Quality),
        ("2 download", DownloadState),
        ("3 row copies", RowState),
        ("9 way back", Word),
        ("watchdog", WatchdogState),
    ],
)
def test_every_word_has_its_row_and_no_other(heading: str, kind: type[StrEnum]) -> None:
    found = first_cells(section("screen.md", heading))
    assert sorted(found) == sorted(word.value for word in kind)


@pytest.mark.parametrize(
    ("heading", "severities"),
    [
        ("2 download", download.SEVERITY),
        ("3 row copies", rowcopies.SERVING),
        ("watchdog", watchdog.SEVERITY),
    ],
)
def test_every_state_has_the_colour_that_its_pane_draws(heading: str, severities: Mapping[StrEnum, Severity]) -> None:
    for word, _, colour in rows(section("screen.md", heading)):
        (state,) = code(word)
        found = {kind.value: severity for kind, severity in severities.items()}
        assert colour == COLOURS[found.get(state, Severity.NORMAL)], state


def test_every_word_of_progress_is_named() -> None:
    assert [code(row[1]) for row in rows(section("screen.md", "progress"))] == [[word.value] for word in Progress]


@pytest.mark.parametrize("state", LaneState)
def test_the_serving_lamp_of_every_state_is_there_with_its_colour(state: LaneState) -> None:
    snapshot = pictures.spark4()
    view = replace(snapshot.lanes[0], verdict=LaneVerdict(state, "why"))
    shown = lamps.serving(snapshot, view)
    word = re.split(r" (?=[0-9])", shown.word)[0] if not shown.word[0].isdigit() else "tok/s"
    table = rows(section("screen.md", "SERVING"))
    assert [row for row in table if any(word in cell for cell in code(row[0])) and COLOURS[shown.severity] in row[2]], (
        f"no row for {shown.word!r} in {COLOURS[shown.severity]}"
    )


def test_a_rate_that_no_step_stands_behind_is_in_the_table() -> None:
    snapshot = pictures.spark4()
    lane = snapshot.lanes[0]
    lights = replace(lane.lights, progress=replace(lane.lights.progress, frozen_for=3.0))
    shown = lamps.serving(snapshot, replace(lane, lights=lights))
    assert f"| `{shown.word}` |" in section("screen.md", "SERVING")


def test_severities_have_their_words_and_colours() -> None:
    expected = [[COLOURS[kind], f"`{WORDS[kind]}`" if WORDS[kind] else "none", f"`{kind}`"] for kind in Severity]
    table = rows(page("screen.md").partition("## The rows")[0])
    assert [row[:3] for row in table] == expected


def kinds_of_alarms() -> Iterator[str]:
    """The part before the colon of every alarm's key, from the source that makes them."""
    files = [f"console/alarms/{file.name}" for file in sorted((ROOT / "console/alarms").glob("*.py"))]
    for file in (*files, "screens/faults.py", "screens/view.py"):
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Alarm":
                named = {keyword.arg: keyword.value for keyword in node.keywords}
                key = node.args[0] if node.args else named["key"]
                first = key.values[0] if isinstance(key, ast.JoinedStr) else key
                assert isinstance(first, ast.Constant), f"{file}:{node.lineno}"
                yield str(first.value).partition(":")[0]


def test_every_alarm_has_its_row_and_no_other() -> None:
    found = [word.partition(":")[0] for word in first_cells(section("screen.md", "Alarms"))]
    assert sorted(found) == sorted(set(kinds_of_alarms()))


def test_thresholds_are_those_of_the_code() -> None:
    text = section("screen.md", "Alarms")
    assert f"under {alarms.FREE_ALARM_GIB:g} GiB" in text
    assert f"under {alarms.AVAILABLE_ALARM:.0%}".replace("%", " %") in text
    assert f"for {alarms.hosts.PRESSURE_ALARM:g} % or more" in text
    assert f"more than {alarms.DRIFT_ALARM_S:g} s off" in text
    ages = section("screen.md", "How old a value is")
    assert f"older than {WORDS_FOR[int(LATE_AFTER)]} intervals" in ages
    assert f"over {WORDS_FOR[int(STALE_AFTER)]} intervals" in ages
    assert f"over {lamps.BOOT_OVERDUE:g} times the usual" in section("screen.md", "SERVING")
    assert f"{inventory.Lane.model_fields['stall_after'].default:g} s unless" in section("screen.md", "progress")


def test_severities_of_lane_states_are_those_of_the_code() -> None:
    (row,) = (row for row in rows(section("screen.md", "Alarms")) if row[0] == "`state:LANE`")
    for severity, part in ((Severity.ACT, row[1].split(";")[0]), (Severity.LOOK, row[1].split(";")[1])):
        named = {state for state in LaneState if re.search(rf"\b{state}\b", part)}
        assert named == {state for state, kind in alarms.lanes._LANE_SEVERITY.items() if kind is severity}


def test_roles_of_containers_are_explained() -> None:
    shown = pictures.glance(pictures.PICTURES["station"](), 120, 40)
    words = {entry.role.partition(" :")[0] for entry in containers.entries_of(shown)} | {containers.RANK_DOWN}
    text = " ".join(code(section("screen.md", "containers")))
    assert len(words) > 2
    assert all(word in text for word in words)


def test_every_pane_has_its_heading() -> None:
    headings = " ".join(re.findall(r"^### (.*)$", section("screen.md", "Panes"), re.MULTILINE)).lower()
    spoken = {"rows": "row copies", "kv": "kv pool", "wayback": "way back"}
    for name, number in NUMBERS.items():
        spoken_name = spoken.get(name, name)
        assert (f"{number} {spoken_name}" if number <= LAST_DIGIT else spoken_name) in headings


@pytest.mark.parametrize("picture", pictures.PICTURES)
def test_words_of_the_other_lamps_are_there(picture: str) -> None:
    snapshot = pictures.PICTURES[picture]()
    for lamp in lamps.lamps(snapshot, snapshot.lanes[0])[1:]:
        capitals = re.match(r"[A-Z][A-Z, ]*", lamp.word)
        word = capitals[0].strip(" ,") if capitals else "9f2c1a7"
        assert f"`{word}" in section("screen.md", lamp.title), lamp.word


@pytest.mark.parametrize(
    ("heading", "draw", "picture"),
    [
        ("1 nodes", nodes.rows, "spark4"),
        ("1 nodes", nodes.rows, "station"),
        ("containers", containers.rows, "station"),
    ],
)
def test_every_column_is_explained(heading: str, draw: Draw, picture: str) -> None:
    shown = pictures.glance(pictures.PICTURES[picture](), 120, 40)
    heads = re.split(r"\s{2,}|[│▌]", text_of(draw(shown, 120, 7)[1]))
    told = names(section("screen.md", heading)) | {"host", "used", "age"}
    columns = {word.strip() for word in heads if word.strip() and "GiB " not in word and " GiB" not in word}
    assert len(columns) > 4
    assert columns - {"4.0"} <= told


# --- all pages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for target in links(page(name)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = (PAGES[name].parent / file) if file else PAGES[name]
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target


def test_every_page_is_linked_from_the_readme() -> None:
    linked = set(links(page("README.md")))
    assert {f"docs/{name}" for name in PAGES if PAGES[name].parent.name == "docs"} <= linked


PLACE = re.compile(r"`((?:console|widgets|screens|tests|bench|docs|\.ci)(?:/[\w.]+)+|console\.tcss)(?::(\w+))?`")


@pytest.mark.parametrize("name", PAGES)
def test_files_and_names_that_are_mentioned_exist(name: str) -> None:
    for file, member in PLACE.findall(page(name)):
        path = ROOT / file
        assert path.exists(), file
        if member:
            text = path.read_text(encoding="utf-8")
            assert re.search(rf"^\s*(?:async )?(?:def|class) {member}\b|^{member}\b", text, re.MULTILINE), (
                f"{file}:{member}"
            )


def test_make_targets_that_are_mentioned_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name in PAGES:
        lines = re.findall(r"(?:^|`)make ((?:[a-z-]+ ?)+)", page(name), re.MULTILINE)
        assert {word for line in lines for word in line.split()} <= targets, name


ALLOWED = (
    *("/proc", "/sys", "/etc", "/bin/sh", "/var/run/docker.sock", "/var/tmp/laneswap", "/var/tmp/dsv41-"),
    "/dev/shm/laneswap-UID",
    *("/health", "/metrics", "/v1/", "/server_info", "/version", "/model", "/api/models/"),
)
"""Paths of every Linux host, of an engine's and a Hub's HTTP, of Docker's API, and of a published watchdog."""


@pytest.mark.parametrize("name", PAGES)
def test_pages_speak_of_the_program_alone(name: str) -> None:
    text = page(name)
    for path in re.findall(r"(?<![\w./:~\-\]$}*])/[a-z][\w./-]*", text):
        assert path.startswith(ALLOWED), f"{path}: a path of one machine?"
    assert not re.search(r"\b(?:issues?|helpers?|todo|tbd)\b", text, re.IGNORECASE)
    assert not re.search(r"(?<!ssh )\bsessions?\b", text, re.IGNORECASE), "say `ssh session`, or who did what"
