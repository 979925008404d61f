"""The manual of fleet.toml and of recipes, against their models."""

from __future__ import annotations

import re
import tomllib
from typing import get_args

import pytest
from manual import code, default_of, fenced, names, page, rows, section
from pydantic import BaseModel

from console.fleet import inventory, recipe, recipe_acts
from console.fleet.recipe_model import SiteName


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Top level", inventory.Fleet),
        ("[rates]", inventory.Rates),
        ("[hosts]", inventory.Host),
        ("[lanes.NAME]", inventory.Lane),
        ("[lanes.NAME.next]", inventory.NextRevision),
        ("[lanes.NAME.previous]", inventory.PreviousRevision),
        ("[lanes.NAME.download]", inventory.DownloadWish),
        ("[notify]", inventory.Notify),
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
        field = model.model_fields[key]
        if isinstance(field.get_default(call_default_factory=True), BaseModel):
            continue  # a table of its own
        default = default_of(field).strip('`"')
        if field.is_required() or default not in ("none", "", "[]", "{}", "()"):
            said = " ".join(table[key][1:])
            assert default.removesuffix(".0") in said or key in ("hosts", "lanes"), f"{key}: {default}"


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Top level", recipe.Recipe),
        ("[reads]", recipe.Reads),
        ("[vars.NAME]", recipe.Variable),
        ("[site]", recipe.SiteRecipe),
        ("[checkpoint]", recipe.CheckpointRecipe),
        ("[rows]", recipe.RowsRecipe),
        ("[acts]", recipe_acts.Acts),
        ("[acts.stop]", recipe_acts.StopActs),
        ("[acts.launch]", recipe_acts.LaunchActs),
        ("[acts.watchdog]", recipe_acts.GuardActs),
        ("[acts.names]", recipe_acts.NameActs),
        ("[acts.rows]", recipe_acts.RowsActs),
    ],
)
def test_every_key_of_a_recipe_has_its_row_and_default(heading: str, model: type[BaseModel]) -> None:
    table = {
        key: row
        for row in rows(section("recipes.md", heading))
        for word in code(row[0])
        for key in [word.strip("[]").split(".")[-1 if word.startswith(("[site", "[rows", "[acts.")) else 0]]
    }
    assert set(table) == set(model.model_fields)
    for key, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        said = " ".join(table[key][1:])
        if field.is_required():
            assert table[key][1] == "required", key
        elif isinstance(default, tuple):
            assert code(table[key][1]) == list(default), key
        elif isinstance(default, str | int | float) and default:
            assert f"{default:g}" in said if isinstance(default, float) else str(default) in said, f"{key}: {default}"


def test_shipped_recipes_are_listed_with_their_vars() -> None:
    table = {code(row[0])[0]: code(row[2]) for row in rows(page("recipes.md").partition("## Writing one")[0])}
    assert table == {name: sorted(recipe.load_recipe(name).vars) for name in recipe.shipped()}


def test_the_example_of_a_recipe_is_accepted_and_has_every_key() -> None:
    (example,) = fenced(section("recipes.md", "Writing one"), "toml")
    written = recipe.build_recipe(tomllib.loads(example), "example")
    assert written.reads.model_fields_set == set(recipe.Reads.model_fields)
    assert written.site and written.site.model_fields_set == set(recipe.SiteRecipe.model_fields)
    assert written.checkpoint and written.checkpoint.model_fields_set == set(recipe.CheckpointRecipe.model_fields)
    assert written.rows and written.rows.model_fields_set == set(recipe.RowsRecipe.model_fields)
    acts = written.acts
    assert acts.watchdog and acts.names and acts.rows
    for table in (acts, acts.stop, acts.launch, acts.watchdog, acts.names, acts.rows):
        assert table.model_fields_set == set(type(table).model_fields), type(table).__name__


def test_every_name_of_a_site_file_is_there() -> None:
    assert set(get_args(SiteName)) <= names(section("recipes.md", "[site]"))


def test_the_readmes_fleet_file_is_accepted() -> None:
    (example,) = (re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in indented_toml(page("README.md")))
    assert recipe.apply_recipes(inventory.parse(example)).lanes


def indented_toml(text: str) -> list[str]:
    """Code blocks inside list items."""
    return re.findall(r"^ {3}```toml\n(.*?)^ {3}```$", text, re.MULTILINE | re.DOTALL)
