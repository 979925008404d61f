"""How a recipe says that its lanes are acted upon: as data, checked, every mistake named with its key."""

from __future__ import annotations

import tomllib

import pytest

from console.fleet.inventory import FleetError
from console.fleet.recipe import build_recipe, load_recipe, shipped

OWN = """
name = "own"
title = "Own"
[vars.root]
help = "folder"
[watchdog]
kind = "log"
log = "~/dog.log"
process = "bin/dog.sh"
[acts]
unit = "engine.service"
[acts.stop]
by = "launcher"
argv = ["{root}/stop.sh"]
[acts.launch]
by = "unit"
[acts.watchdog]
disarm = "term"
start = ["{root}/dog.sh"]
[acts.names]
serving = "-A"
retired = "-B"
"""


def test_what_is_written_is_what_is_read() -> None:
    acts = build_recipe(tomllib.loads(OWN), "own.toml").acts
    assert (acts.stop.by, acts.stop.argv, acts.launch.by) == ("launcher", ("{root}/stop.sh",), "unit")
    assert acts.watchdog is not None and acts.watchdog.start == ("{root}/dog.sh",)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('argv = ["{root}/stop.sh"]', "", "acts: stop: by 'launcher' needs argv"),
        ('unit = "engine.service"', "", "acts: launch: by 'unit' needs acts.unit"),
        ('argv = ["{root}/stop.sh"]', 'argv = ["{rot}/stop.sh"]', "acts.stop.argv: {rot} is not declared"),
        ('argv = ["{root}/stop.sh"]', 'argv = [""]', "acts.stop.argv: "),
        ('argv = ["{root}/stop.sh"]', 'argv = "stop.sh"', "acts.stop.argv"),
        ('argv = ["{root}/stop.sh"]', 'argv = ["a\\nb"]', "acts.stop.argv: "),
        ('argv = ["{root}/stop.sh"]', 'argv = ["x"]\norder = "any"', "acts.stop.order: must be"),
        ('argv = ["{root}/stop.sh"]', 'argv = ["x"]\ngrace_s = 0', "acts.stop.grace_s"),
        ('argv = ["{root}/stop.sh"]', 'argv = ["x"]\nmemory_share = 2', "acts.stop.memory_share"),
        ('by = "unit"', 'by = "magic"', "acts.launch.by: must be"),
        ('by = "unit"', 'by = "unit"\ncandidate = "x=1"', "acts.launch.candidate"),
        ('by = "unit"', 'by = "unit"\nexits = { 0 = "x" }', "acts.launch.exits"),
        ('by = "unit"', 'by = "unit"\nlog = "{site.X}"', "acts.launch.log: {site.X} needs a [site] table"),
        ('by = "unit"', 'by = "unit"\ndryrun = ["x"]', "did you mean 'dry_run'?"),
        ('start = ["{root}/dog.sh"]', "", "acts.watchdog: disarm 'term' needs start"),
        ('disarm = "term"', 'disarm = "flag"', "acts.watchdog: disarm 'flag' needs watchdog.pause_flag"),
        ('disarm = "term"', 'disarm = "kill"', "acts.watchdog.disarm: must be"),
        ('kind = "log"', 'kind = "systemd"\nunit = "x"', ""),
        ('serving = "-A"', 'serving = "a b"', "acts.names.serving"),
        ('retired = "-B"', "", "acts.names.retired: missing"),
    ],
)
def test_a_mistake_names_its_key(before: str, after: str, words: str) -> None:
    assert before in OWN
    text = OWN.replace(before, after, 1)
    if not words:
        assert build_recipe(tomllib.loads(text), "own.toml").acts.watchdog is not None
        return
    with pytest.raises(FleetError) as caught:
        build_recipe(tomllib.loads(text), "own.toml")
    assert words in str(caught.value), str(caught.value)


def test_a_watchdog_that_the_recipe_does_not_have_cannot_be_switched() -> None:
    text = 'name = "x"\ntitle = "x"\n[acts.watchdog]\ndisarm = "unit"'
    with pytest.raises(FleetError, match=r"needs watchdog\.unit"):
        build_recipe(tomllib.loads(text), "x.toml")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("x-BOUND-REF", "x"),
        ("x-RETIRED-REF", "x"),
        ("x-EXP", "x"),
        ("x", "x"),
        ("-EXP", "-EXP"),
        ("x-EXP-1", "x-EXP-1"),
    ],
)
def test_the_stem_of_a_name_is_what_is_left_of_it(name: str, stem: str) -> None:
    names = load_recipe("vllm-docker").acts.names
    assert names is not None
    assert names.stem(name) == stem


@pytest.mark.parametrize("name", shipped())
def test_no_shipped_launcher_is_given_a_flag_that_it_ignores(name: str) -> None:
    """`relaunch.sh --dry-run` is a real launch: only what is known to have a dry run is ever asked for one."""
    launch = load_recipe(name).acts.launch
    for command in (launch.argv, launch.dry_run):
        if any("relaunch.sh" in word for word in command):
            assert command == ("bash", "{root}/launch/relaunch.sh")
    if launch.dry_run:
        assert launch.dry_run == ("bash", "{root}/launch/production.sh", "--dry-run")


def test_shipped_recipes_say_how_what_they_read_is_switched() -> None:
    for name in shipped():
        recipe = load_recipe(name)
        assert (recipe.watchdog is None) == (recipe.acts.watchdog is None), name
        assert recipe.acts.launch.by != "launcher" or recipe.acts.launch.processes, name
