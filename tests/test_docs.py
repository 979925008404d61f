"""The manual says what the program does: its tables against those of the code, its examples, links and references."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from manual import PAGES, ROOT, anchors, beside, code, fenced, first_cells, links, names, page, rows, section
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from console import alarms, cli, headless, lamps
from console.actions.catalog import ACTIONS, Action, Place
from console.actions.keymap import validate_keymap
from console.document import document
from console.fleet import inventory, recipe
from console.inspection.kinds import KINDS
from console.readings.containers import Container, Containers, ContainerState, Mount
from console.readings.facts import HostFacts
from console.readings.gpu import Gpu
from console.readings.histogram import Percentiles
from console.readings.kv import KvPool
from console.readings.lights import (
    HttpLight,
    HttpVerdict,
    LaneState,
    LaneVerdict,
    ProcessLight,
    Progress,
    ProgressLight,
    ScrapeLight,
)
from console.readings.memory import Memory, NumaNode, Pressure
from console.readings.quality import LATE_AFTER, STALE_AFTER, Quality
from console.readings.scrape import ScrapeVerdict
from console.readings.speculation import Speculation
from console.readings.throughput import Throughput
from console.rehearsal import scenario as stories
from console.rehearsal.engine import FAULTS
from console.snapshot import Severity
from screens.framed import PANE_NUMBERS
from widgets.ink import WORDS

pictures = beside("widgets", "pictures")
cases = beside("cases", "case_table")
WORDS_FOR = {2: "two", 5: "five"}
COLOURS = {Severity.NORMAL: "grey", Severity.INFO: "blue", Severity.LOOK: "orange", Severity.ACT: "red"}


# --- screen.md -------------------------------------------------------------------------------------------------------


def row_of(action: Action) -> list[str]:
    """The row that the manual must have for an action."""
    keys = "`1`-`9`" if action.id == "focus" else " ".join(f"`{key}`" for key in action.keys)
    commands = " ".join(f"`:{name}{' ' + action.argument if action.argument else ''}`" for name in action.commands)
    does = action.help + (f" Now: {action.unavailable}" if action.unavailable else "")
    where = "everywhere" if len(action.places) == len(Place) else ", ".join(sorted(action.places))
    return [f"`{action.id}`", keys or "-", commands or "-", does, where]


def test_the_table_of_keys_is_the_table_of_actions() -> None:
    assert rows(section("screen.md", "Keys")) == [row_of(action) for action in ACTIONS]


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
    ],
)
def test_every_word_has_its_row_and_no_other(heading: str, kind: type[StrEnum]) -> None:
    found = first_cells(section("screen.md", heading))
    assert sorted(found) == sorted(word.value for word in kind)


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
    for file in ("console/alarms.py", "screens/faults.py", "screens/view.py"):
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
    assert f"for {alarms.PRESSURE_ALARM:g} % or more" in text
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
        assert named == {state for state, kind in alarms._LANE_SEVERITY.items() if kind is severity}


def test_every_pane_has_its_heading() -> None:
    headings = " ".join(re.findall(r"^### (\d.*)$", section("screen.md", "Panes"), re.MULTILINE)).lower()
    spoken = {"rows": "row copies", "kv": "kv pool"}
    assert all(f"{number} {spoken.get(name, name)}" in headings for name, number in PANE_NUMBERS.items())


# --- fleet.md and rehearse.md ----------------------------------------------------------------------------------------


def default_of(field: FieldInfo) -> str:
    """A default as TOML writes it; '' where it is none, computed or empty."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{list(value)}`" if isinstance(value, tuple) else f"`{value}`"


def model_rows(heading: str, model: type[BaseModel], *own: str) -> dict[str, str]:
    """Default by key as a page has it, without keys that are not the model's own."""
    table = {word: row[1] for row in rows(section("rehearse.md", heading)) for word in code(row[0])}
    return {key: value for key, value in table.items() if key not in own}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("[machines.HOST]", stories.Machine),
        ("[[machines.HOST.gpus]]", stories.Gpu),
        ("[engines.NAME]", stories.EngineModel),
        ("[containers.NAME]", stories.ContainerModel),
        ("Top level", stories.Scenario),
    ],
)
def test_every_key_of_a_scenario_has_its_row_and_default(heading: str, model: type[BaseModel]) -> None:
    expected = {key: default_of(field) for key, field in model.model_fields.items()}
    if model is stories.Scenario:
        del expected["name"]  # the file's own name
    assert model_rows(heading, model, "extends", "templates", "like") == expected


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("host", stories.HostFault),
        ("engine", stories.EngineFault),
        ("container", stories.ContainerFault),
        ("memory", stories.MemoryFault),
    ],
)
def test_every_key_of_a_fault_has_its_row_and_default(kind: str, model: type[BaseModel]) -> None:
    text = section("rehearse.md", "[[faults]]")
    start = text.index(f'`kind = "{kind}"`')
    part = text[start : text.find('`kind = "', start + 1)]
    table = {row[0].strip("`"): row[1] for row in rows(part) if len(row) == 3}
    expected = {
        key: default_of(field) for key, field in model.model_fields.items() if key not in ("kind", "at", "until")
    }
    assert table == expected
    assert names(text) >= {"kind", "at", "until"}


def test_every_fault_of_an_engine_is_described() -> None:
    table = [row for row in rows(section("rehearse.md", "[[faults]]")) if len(row) == 2]
    assert [row[0] for row in table] == [f"`{fault}`" for fault in FAULTS]


def test_every_scenario_is_described() -> None:
    assert sorted(first_cells(section("rehearse.md", "Scenarios"))) == sorted(stories.list_scenarios())


def test_the_example_of_a_scenario_is_accepted(tmp_path: Path) -> None:
    (example,) = fenced(section("rehearse.md", "Writing a scenario"), "toml")
    (tmp_path / "mine.toml").write_text(example)
    assert stories.load_scenario(tmp_path / "mine.toml").faults


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Top level", inventory.Fleet),
        ("[rates]", inventory.Rates),
        ("[hosts]", inventory.Host),
        ("[lanes.NAME]", inventory.Lane),
    ],
)
def test_every_key_of_the_fleet_file_has_its_row_and_default(heading: str, model: type[BaseModel]) -> None:
    table = {
        key: row for row in rows(section("fleet.md", heading)) for key in re.findall(r"\w+", " ".join(code(row[0])))
    }
    known = {key for key in model.model_fields if key != "rehearsal"}
    assert known <= set(table)
    assert set(table) - known <= {"lanes", "NAME"}
    for key in known:
        default = default_of(model.model_fields[key]).strip('`"')
        if model.model_fields[key].is_required() or default not in ("none", "", "[]", "{}", "()"):
            said = " ".join(table[key][1:])
            assert default.removesuffix(".0") in said or key in ("rates", "hosts", "lanes"), f"{key}: {default}"


def test_every_key_and_name_of_recipes_is_there() -> None:
    text = section("fleet.md", "Recipes")
    assert set(recipe.shipped()) <= set(code(text))
    (example,) = fenced(text, "toml")
    written = recipe.Recipe.model_validate(tomllib.loads(example))
    assert written.reads.model_fields_set == set(recipe.Reads.model_fields)


def test_the_readmes_fleet_file_is_accepted() -> None:
    (example,) = (re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in indented_toml(page("README.md")))
    assert recipe.apply_recipes(inventory.parse(example)).lanes


def indented_toml(text: str) -> list[str]:
    """Code blocks inside list items."""
    return re.findall(r"^ {3}```toml\n(.*?)^ {3}```$", text, re.MULTILINE | re.DOTALL)


# --- commands.md and inspect.md --------------------------------------------------------------------------------------


def test_every_command_and_option_is_there() -> None:
    text = page("commands.md").partition("## Exit codes")[0]
    for name in (name for name in cli.app if not name.startswith("-")):
        (line,) = (line for line in text.splitlines() if re.match(rf"\| `laneswap \[?{name}\b", line))
        for argument in cli.app[name].assemble_argument_collection():
            known = argument.names[-1]
            placeholder = known.removeprefix("--").upper().removesuffix("S")
            assert known in line or placeholder in line, f"{name} {known}"


def test_every_exit_code_is_there() -> None:
    codes = {value for key, value in vars(headless).items() if key.startswith("EXIT_")}
    assert {int(row[0]) for row in rows(section("commands.md", "Exit codes"))} >= codes | {130}


CARRIED: dict[str, tuple[type[Any], ...]] = {
    "lanes.NAME": (ProcessLight, HttpLight, ScrapeLight, ProgressLight),
    "throughput": (Throughput, KvPool, Speculation, Percentiles),
    "hosts.NAME": (Memory, NumaNode, Pressure, Gpu, HostFacts, Containers),
    "containers.items[]": (Container, Mount),
}


@pytest.mark.parametrize("heading", CARRIED)
def test_every_field_that_json_carries_is_named(heading: str) -> None:
    said = names(section("commands.md", heading))
    for kind in CARRIED[heading]:
        assert is_dataclass(kind)
        assert {field.name for field in fields(kind)} <= said, kind.__name__


@pytest.mark.parametrize("picture", pictures.PICTURES)
def test_every_key_of_the_document_is_named(picture: str) -> None:
    said = names(page("commands.md"))
    found = document(pictures.PICTURES[picture]())
    members = {key: found.pop(key) for key in ("lanes", "hosts")}
    top = set(found) | {key for row in (*found["alarms"], *found["events"]) for key in row}
    inner = {key for group in members.values() for member in group.values() for key in member}
    ranks = {key for lane in members["lanes"].values() for rank in lane["ranks"] for key in rank}
    lit = {key for lane in members["lanes"].values() for part in ("lamps", "lights") for key in lane[part]}
    dated = {key for lane in members["lanes"].values() for key in (*lane["health"], *(lane["health"]["value"] or {}))}
    spoken = {word for chunk in code(page("commands.md")) for word in re.findall(r"\w+", chunk)}
    assert top | inner | ranks | dated | {"lanes", "hosts"} <= said | spoken
    assert lit <= spoken


def test_words_of_a_containers_state_are_all_there() -> None:
    assert {state.value for state in ContainerState} <= names(section("commands.md", "containers.items[]"))


OPEN = ("series", "histograms", "labels", "buckets")
"""Objects whose keys are data."""


def keys_of(value: Any) -> Iterator[str]:
    """Every key of an answer, however deep."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in OPEN:
                yield from keys_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys_of(item)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_inspect_and_its_keys_are_described(kind: str) -> None:
    text = section("inspect.md", kind)
    asked = {(row.case, row.arguments) for row in cases.pointer_rows() if row.how == kind}
    assert asked, f"no case asks for {kind}"
    found = {key for case, arguments in asked for key in keys_of(cases.inspect_case(case, kind, arguments))}
    assert found <= names(text)
    roles = re.findall(r"(\w+)=", KINDS[kind].takes)
    assert all(f"{role}=" in page("inspect.md") for role in roles)


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
    *("/proc", "/sys", "/etc", "/bin/sh", "/var/run/docker.sock", "/var/tmp/laneswap-bed"),
    *("/health", "/metrics", "/v1/", "/server_info", "/version", "/model"),
)
"""Paths of every Linux host, of an engine's HTTP and of Docker's API."""


@pytest.mark.parametrize("name", PAGES)
def test_pages_speak_of_the_program_alone(name: str) -> None:
    text = page(name)
    for path in re.findall(r"(?<![\w./:~\-\]$}*])/[a-z][\w./-]*", text):
        assert path.startswith(ALLOWED), f"{path}: a path of one machine?"
    assert not re.search(r"\b(?:issues?|helpers?|todo|tbd)\b", text, re.IGNORECASE)
    assert not re.search(r"(?<!ssh )\bsessions?\b", text, re.IGNORECASE), "say `ssh session`, or who did what"
