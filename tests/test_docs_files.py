"""The manual of files and output: fleet file, scenarios, commands, JSON and `inspect`, against models and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from manual import beside, code, default_of, fenced, first_cells, names, page, rows, section
from pydantic import BaseModel

from console import cli, headless
from console.document import document
from console.inspection.kinds import KINDS
from console.readings.containers import Container, Containers, ContainerState, Mount
from console.readings.facts import HostFacts
from console.readings.gpu import Gpu
from console.readings.histogram import Percentiles
from console.readings.kv import KvPool
from console.readings.lights import HttpLight, ProcessLight, ProgressLight, ScrapeLight
from console.readings.memory import Memory, NumaNode, Pressure
from console.readings.speculation import Speculation
from console.readings.throughput import Throughput
from console.rehearsal import faults, stage
from console.rehearsal import scenario as stories
from console.rehearsal.engine import FAULTS, STORIES

pictures = beside("widgets", "pictures")
cases = beside("cases", "case_table")


# --- rehearse.md ----------------------------------------------------------------------------------------


def model_rows(heading: str, model: type[BaseModel], *own: str) -> dict[str, str]:
    """Default by key as a page has it, without keys that are not the model's own."""
    found = [row for row in rows(section("rehearse.md", heading)) if len(row) == 3]
    table = {word: row[1] for row in found for word in code(row[0])}
    return {key: value for key, value in table.items() if key not in own}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("[machines.HOST]", stories.Machine),
        ("[[machines.HOST.gpus]]", stories.Gpu),
        ("[engines.NAME]", stories.EngineModel),
        ("[containers.NAME]", stories.ContainerModel),
        ("[containers.NAME.on.HOST]", stories.ContainerOn),
        ("[checkpoints.NAME]", stage.CheckpointModel),
        ("[[checkpoints.NAME.revisions]]", stage.RevisionModel),
        ("[downloads.NAME]", stage.DownloadModel),
        ("[rows.NAME]", stage.RowsModel),
        ("[rows.NAME.on.HOST]", stage.RowsOn),
        ("[watchdogs.LANE]", stage.WatchdogModel),
        ("[[boots.LANE]]", stage.BootModel),
        ("[files.NAME]", stage.FileModel),
        ("[processes.NAME]", stage.ProcessModel),
        ("[units.NAME]", stage.UnitModel),
        ("[fronts.NAME]", stage.FrontModel),
        ("[leases.LANE]", stage.LeaseModel),
        ("Top level", stories.Scenario),
    ],
)
def test_every_key_of_a_scenario_has_its_row_and_default(heading: str, model: type[BaseModel]) -> None:
    expected = {key: default_of(field) for key, field in model.model_fields.items()}
    if model is stories.Scenario:
        del expected["name"]  # the file's own name
    assert model_rows(heading, model, "extends", "templates", "vars", "like") == expected


KINDS_OF_FAULTS = {
    model.model_fields["kind"].annotation.__args__[0]: model  # type: ignore[union-attr]
    for model in vars(faults).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and "kind" in model.model_fields
}


def test_every_kind_of_fault_has_its_part() -> None:
    text = section("rehearse.md", "[[faults]]")
    assert re.findall(r'^`kind = "(\w+)"`', text, re.MULTILINE) == list(KINDS_OF_FAULTS)


@pytest.mark.parametrize(("kind", "model"), KINDS_OF_FAULTS.items())
def test_every_key_of_a_fault_has_its_row_and_default(kind: str, model: type[BaseModel]) -> None:
    text = section("rehearse.md", "[[faults]]")
    start = text.index(f'`kind = "{kind}"`')
    part = text[start : text.find('`kind = "', start + 1)]
    table = {row[0].strip("`"): row[1] for row in rows(part) if len(row) == 3}
    expected = {
        key: default_of(field)
        for key, field in model.model_fields.items()
        if key not in ("kind", "at", "until", "after")
    }
    assert table == expected
    assert names(text) >= {"kind", "at", "until", "after"}


def test_every_fault_of_an_engine_is_described() -> None:
    table = [row for row in rows(section("rehearse.md", "[[faults]]")) if len(row) == 2]
    assert [row[0] for row in table] == [f"`{fault}`" for fault in FAULTS]


def test_every_story_of_a_boot_and_every_state_of_a_watchdog_is_described() -> None:
    told = [row for row in rows(section("rehearse.md", "[engines.NAME]")) if len(row) == 2]
    assert [row[0] for row in told] == [f"`{story}`" for story in STORIES]
    words = stage.WatchdogModel.model_fields["state"].annotation.__args__  # type: ignore[union-attr]
    assert first_cells(section("rehearse.md", "States of a watchdog")) == list(words)


def test_every_scenario_is_described() -> None:
    assert sorted(first_cells(section("rehearse.md", "Scenarios"))) == sorted(stories.list_scenarios())


def test_the_example_of_a_scenario_is_accepted(tmp_path: Path) -> None:
    (example,) = fenced(section("rehearse.md", "Writing a scenario"), "toml")
    (tmp_path / "mine.toml").write_text(example)
    assert stories.load_scenario(tmp_path / "mine.toml").faults


# --- commands.md and inspect.md --------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its words, those of groups too."""
    for name in (name for name in cli.app if not name.startswith("-")):
        group = cli.app[name]
        inner = [word for word in group if not word.startswith("-")]
        yield from ((f"{name} {word}", group[word]) for word in inner)
        if not inner:
            yield name, group


def test_every_command_and_option_is_there() -> None:
    text = page("commands.md").partition("## config")[0]
    for name, command in commands():
        (line,) = (line for line in text.splitlines() if re.match(rf"\| `laneswap \[?{name}\b", line))
        for argument in command.assemble_argument_collection():
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


OPEN = ("series", "histograms", "labels", "buckets", "keys", "after")
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


EXAMPLES = {"drift": {("C033", "0=inspect.json 1=inspect.json")}}
"""Kinds that no case asks for, with inputs of one that they can read."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_inspect_and_its_keys_are_described(kind: str) -> None:
    text = section("inspect.md", kind)
    asked = {(row.case, row.arguments) for row in cases.pointer_rows() if row.how == kind} | EXAMPLES.get(kind, set())
    assert asked, f"no case asks for {kind}"
    found = {key for case, arguments in asked for key in keys_of(cases.inspect_case(case, kind, arguments))}
    assert found <= names(text) | set(re.findall(r"`(\d)`", text))
    roles = re.findall(r"(\w+)=", KINDS[kind].takes)
    assert all(f"{role}=" in page("inspect.md") for role in roles)
