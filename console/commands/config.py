"""`laneswap config check|print|locate|schema|recipes`."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Literal

from cyclopts import App, Parameter

from console.commands.parts import FleetFile, Json, fleet_file, print_answer
from console.headless import EXIT_GOOD, EXIT_USAGE
from console.sanitize import line

app = App(name="config", help="What fleet file, recipes and keymap come to.", result_action="return_value")


@app.command
def check(fleet: FleetFile = None, *, json: Json = False) -> int:
    """Everything that is wrong with fleet file, recipes and keymap, at once. Asks no host."""
    from console.setup.config import check as look

    file = fleet_file(fleet)
    findings = look(file)
    wrong = sum(item.problem for item in findings)
    if json:
        rows = [{"file": item.file, "text": item.text, "problem": item.problem} for item in findings]
        print_answer({"good": not wrong, "findings": rows}, as_json=True)
    else:
        for item in findings:
            print(f"{'error' if item.problem else 'note '} {item.file}: {item.text}")
        print(line(f"{file}: {f'{wrong} to correct' if wrong else 'good'}"))
    return EXIT_USAGE if wrong else EXIT_GOOD


@app.command(name="print")
def print_values(fleet: FleetFile = None, *, json: Json = False) -> int:
    """Every key with the value in force and who said so: fleet file, recipe, environment or default."""
    from console.setup.config import in_force

    values = in_force(fleet_file(fleet))
    if json:
        rows = [{"key": item.key, "value": item.value, "origin": item.origin} for item in values]
        print_answer({"values": rows}, as_json=True)
        return EXIT_GOOD
    width = max(len(item.key) for item in values)
    for item in values:
        shown = "-" if item.value is None else json_text.dumps(item.value, ensure_ascii=False)
        print(line(f"{item.key:<{width}}  {shown:<32}  {item.origin}", 1000))
    return EXIT_GOOD


@app.command
def locate(fleet: FleetFile = None, *, json: Json = False) -> int:
    """Which files are used, whether they are there, and why these."""
    from console.setup.config import locate as look

    places = look(fleet)
    if json:
        rows = [{"what": item.what, "path": item.path, "there": item.there, "why": item.why} for item in places]
        print_answer({"files": rows}, as_json=True)
        return EXIT_GOOD
    words = {True: "there", False: "not there", None: "-"}
    for item in places:
        print(line(f"{item.what:<12} {words[item.there]:<10} {item.path}  ({item.why})", 1000))
    return EXIT_GOOD


@app.command
def schema(
    kind: Annotated[Literal["fleet", "recipe"], Parameter(help="Of fleet.toml, or of a recipe.")] = "fleet",
) -> int:
    """The JSON schema of fleet.toml or of a recipe, for editors."""
    from console.fleet.schema import schema as made

    print(json_text.dumps(made(kind), indent=2))
    return EXIT_GOOD


@app.command
def recipes(*, json: Json = False) -> int:
    """The recipes that come with laneswap."""
    from console.fleet.recipe import load_recipe, shipped

    found = [load_recipe(name) for name in shipped()]
    if json:
        rows = [{"name": item.name, "title": item.title, "vars": sorted(item.vars)} for item in found]
        print_answer({"recipes": rows}, as_json=True)
        return EXIT_GOOD
    for item in found:
        asks = f" (vars: {', '.join(item.vars)})" if item.vars else ""
        print(f"{item.name:<18} {item.title}{asks}")
    return EXIT_GOOD
