"""Recipes are data: every shipped one is whole, every mistake in one's own names file, key and the way out."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from console.fleet.inventory import FleetError, parse
from console.fleet.recipe import apply_recipes, build_recipe, lane_recipes, load_recipe, shipped
from console.fleet.recipe_model import Recipe
from console.fleet.schema import SCHEMAS, descriptions, models, schema
from console.fleet.sitefile import parse_site

DATA = Path(__file__).parent / "data" / "fleet"
OWN = """
name = "own"
title = "Own"
[vars.base]
help = "folder of it all"
[site]
path = "{base}/site.env"
[checkpoint]
repo = "{site.MODEL}"
[rows]
path = "{home}/rows"
[rows.tables]
1 = 10
"""
FLEET = """
name = "f"
[hosts]
a = {{ ssh = "a" }}
[lanes.l]
recipe = "{recipe}"
url = "http://127.0.0.1:1"
head = "a"
{rest}
"""


def raw(name: str) -> dict[str, Any]:
    """A shipped recipe as it is written."""
    return tomllib.loads((resources.files("console.fleet.recipes") / f"{name}.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_recipe_is_read_whole_and_named_as_its_file(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert set(recipe.model_fields_set) == set(raw(name))
    assert recipe.title and not recipe.title.endswith(".")


@pytest.mark.parametrize(
    ("name", "sample"), [("sglang-fleet-env", "fleet.env.sample"), ("vllm-cluster-env", "cluster.env.sample")]
)
def test_every_key_of_a_shipped_site_table_is_one_of_the_real_file(name: str, sample: str) -> None:
    recipe = load_recipe(name)
    assert recipe.site is not None
    file = parse_site((DATA / sample).read_bytes(), recipe.site.kind)
    optional = {"IMAGE"} if name == "sglang-fleet-env" else set()
    assert {key for key in recipe.site.keys.values() if file.get(key) is None} == optional


def test_the_tables_of_both_engines_are_the_models_own() -> None:
    for name in ("sglang-fleet-env", "vllm-cluster-env"):
        rows = load_recipe(name).rows
        assert rows is not None
        assert rows.tables == {1: 384_006_168, 14: 384_016_682}
        assert (rows.tp, rows.manifest) == ("ranks", "engram-local.json")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('title = "Own"', "", ["title: missing; add it"]),
        ("[checkpoint]", "[chekpoint]", ["chekpoint: unknown key; did you mean 'checkpoint'?"]),
        ('repo = "{site.MODEL}"', 'rep = ""', ["checkpoint.rep: unknown key; did you mean 'repo'?"]),
        ('path = "{base}/site.env"', 'path = ""', ["site.path: "]),
        ('path = "{base}/site.env"', 'path = "{bse}/x"', ["site.path: {bse} is not declared; add [vars.bse]"]),
        ('path = "{base}/site.env"', 'path = "{site.X}"', ["site.path: cannot depend on the site file"]),
        ('path = "{home}/rows"', 'path = "{home}/{}"', ["rows.path: {} is not declared"]),
        ("[site]", '[site]\nkind = "yaml"', ["site.kind: must be 'bash', 'docker' or 'json' (got 'yaml')"]),
        ("[checkpoint]", '[site.keys]\nhost = "X"\n[checkpoint]', ["site.keys.host", "'hosts'"]),
        ('repo = "{site.MODEL}"', 'layout = "flat"', ["checkpoint.layout: must be 'hub' or 'folder'"]),
        ("1 = 10", "1 = 0", ["rows.tables: layer = rows"]),
        ("[rows.tables]", 'manifest = "../x"\n[rows.tables]', ["rows.manifest"]),
        ("[rows.tables]", "tp = 0\n[rows.tables]", ['rows.tp: "ranks", or a number from 1']),
        ('help = "folder of it all"', "", ["vars.base.help: missing; add it"]),
        ("[rows]", '[watchdog]\nkind = "log"\n[rows]', ["watchdog: kind 'log' needs log and process"]),
        ("[rows]", "[reads]\nstall_after = 0\n[rows]", ["reads.stall_after: "]),
        ('name = "own"', "name = 3", ["name: must be a valid string (got '3')"]),
        ('name = "own"', "name = ", ["not valid TOML"]),
    ],
)
def test_a_mistake_in_a_recipe_names_file_key_and_way_out(
    tmp_path: Path, before: str, after: str, words: list[str]
) -> None:
    assert before in OWN
    (tmp_path / "own.toml").write_text(OWN.replace(before, after, 1))
    with pytest.raises(FleetError) as caught:
        load_recipe("own.toml", tmp_path)
    for word in ("own.toml", *words):
        assert word in str(caught.value), str(caught.value)


def test_a_recipe_without_a_site_table_cannot_speak_of_a_site_file() -> None:
    with pytest.raises(FleetError, match=r"checkpoint\.repo: \{site\.X\} needs a \[site\] table"):
        build_recipe({"name": "x", "title": "x", "checkpoint": {"repo": "{site.X}"}}, "x.toml")


def test_a_variable_that_the_recipe_does_not_know_is_refused(tmp_path: Path) -> None:
    text = FLEET.format(recipe="sglang-fleet-env", rest='[lanes.l.vars]\nrot = "x"')
    with pytest.raises(FleetError, match=r"lanes\.l\.vars: rot: .* has no such variable; did you mean 'root'\?"):
        apply_recipes(parse(text))
    with pytest.raises(FleetError, match="it takes none"):
        (tmp_path / "bare.toml").write_text('name = "bare"\ntitle = "Bare"\n')
        apply_recipes(parse(FLEET.format(recipe="bare.toml", rest='[lanes.l.vars]\nx = "x"')), tmp_path)


def test_bad_recipes_of_several_lanes_are_told_together() -> None:
    text = FLEET.format(recipe="no-such", rest='[lanes.m]\nrecipe = "none"\nurl = "http://h:1"\nhead = "a"')
    with pytest.raises(FleetError) as caught:
        lane_recipes(parse(text))
    assert "lanes.l.recipe: no-such" in str(caught.value)
    assert "lanes.m.recipe: none" in str(caught.value)


def test_the_manifest_of_a_download_lies_beside_the_fleet_file(tmp_path: Path) -> None:
    text = FLEET.format(recipe="vllm-docker", rest='[lanes.l.download]\nrepo = "/m"\nmanifest = "files.tsv"')
    assert apply_recipes(parse(text), tmp_path).lanes["l"].download.manifest == str(tmp_path / "files.tsv")
    absolute = text.replace("files.tsv", "/x/files.tsv")
    assert apply_recipes(parse(absolute), tmp_path).lanes["l"].download.manifest == "/x/files.tsv"


# --- schemas ---------------------------------------------------------------------------------------------------------


def resolve(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """A schema with its reference followed; the first alternative that is no null."""
    while True:
        if "$ref" in part:
            found: Any = whole
            for step in part["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            part = found
        elif "anyOf" in part:
            part = next(item for item in part["anyOf"] if item.get("type") != "null")
        else:
            return part


def mismatches(value: Any, part: dict[str, Any], whole: dict[str, Any], where: str = "") -> list[str]:
    """Where a value is not what a schema says: types, required and additional keys, enumerations, bounds."""
    options = [item for item in part.get("anyOf", []) if item.get("type") != "null"] or [part]
    found = [_against(value, resolve(item, whole), whole, where) for item in options]
    return min(found, key=len)


def _against(value: Any, part: dict[str, Any], whole: dict[str, Any], where: str) -> list[str]:
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if "enum" in part or "const" in part:
        return [] if value in part.get("enum", [part.get("const")]) else [f"{where}: {value!r} is not allowed"]
    if not isinstance(value, kinds[part["type"]]) or (part["type"] != "boolean" and isinstance(value, bool)):
        return [f"{where}: {value!r} is no {part['type']}"]
    if isinstance(value, dict):
        wrong = [f"{where}.{key}: missing" for key in part.get("required", []) if key not in value]
        for key, item in value.items():
            inner = part.get("properties", {}).get(key) or _by_pattern(key, part) or part.get("additionalProperties")
            if inner is False or inner is None:
                wrong.append(f"{where}.{key}: not allowed")
            elif isinstance(inner, dict):
                wrong += mismatches(item, inner, whole, f"{where}.{key}")
        return wrong
    if isinstance(value, list):
        return [
            row for at, item in enumerate(value) for row in mismatches(item, part["items"], whole, f"{where}[{at}]")
        ]
    if isinstance(value, int | float) and value < part.get("minimum", value):
        return [f"{where}: {value} is too small"]
    return []


def _by_pattern(key: str, part: dict[str, Any]) -> Any:
    return next((item for pattern, item in part.get("patternProperties", {}).items() if re.search(pattern, key)), None)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_is_valid_by_the_schema(name: str) -> None:
    whole = schema("recipe")
    assert mismatches(raw(name), whole, whole) == []


def test_fleet_files_are_valid_by_the_schema_and_mistakes_are_not() -> None:
    whole = schema("fleet")
    good = tomllib.loads(FLEET.format(recipe="docker-generic", rest="stall_after = 20\n[lanes.l.next]\nrows = 'x'"))
    assert mismatches(good, whole, whole) == []
    for key, value in (("name", 3), ("hosts", []), ("hots", {}), ("lanes", {"l": {"recipe": "x"}})):
        assert mismatches({**good, key: value}, whole, whole), key
    assert mismatches({**good, "notify": {"min_severity": "loud"}}, whole, whole)
    assert mismatches({**good, "rates": {"node": 0.1}}, whole, whole)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_has_every_key_with_its_description_and_no_other(kind: str) -> None:
    whole = schema(kind)
    parts = {SCHEMAS[kind].__name__: whole, **whole["$defs"]}
    assert whole["$schema"].endswith("2020-12/schema")
    for model in models(SCHEMAS[kind]):
        wanted = {key for key, item in model.model_fields.items() if not item.exclude}
        properties = parts[model.__name__]["properties"]
        assert set(properties) == wanted, model.__name__
        assert parts[model.__name__]["additionalProperties"] is False
        undescribed = [key for key in wanted if not properties[key].get("description")]
        assert not undescribed, f"{model.__name__}: {undescribed}"


def test_descriptions_are_the_docstrings_below_the_keys() -> None:
    said = descriptions(Recipe)
    assert said["title"] == "One line about it."
    assert "name" in said and "templates" not in said
