"""`laneswap config`: all that is wrong at once, what is in force and who said so, which files are used, the schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.cli import run
from console.fleet.inventory import Fleet, parse
from console.fleet.recipe import apply_recipes, shipped
from console.fleet.schema import schema
from console.headless import EXIT_GOOD, EXIT_USAGE
from console.setup.config import locate
from screens.faults import default_fault_file

GOOD = """
name = "f"
[hosts]
a = { ssh = "a", known_hosts = "/x/known" }
b = { ssh = "local" }
[lanes.l]
recipe = "sglang-fleet-env"
url = "http://127.0.0.1:1"
head = "a"
stall_after = 20
[lanes.l.vars]
root = "~/r"
[lanes.m]
recipe = "own.toml"
url = "http://127.0.0.1:2"
head = "b"
"""
OWN = 'name = "own"\ntitle = "Own"\n[reads]\nengine = "vllm"\n[vars.x]\nhelp = "x"\ndefault = "d"\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in ("LANESWAP_FLEET", "LANESWAP_STATE", "LANESWAP_OPERATOR"):
        monkeypatch.delenv(name, raising=False)
    Path("fleet.toml").write_text(GOOD)
    Path("own.toml").write_text(OWN)


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = EXIT_GOOD) -> Any:
    assert run(["config", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_good_set_of_files_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    note = "lanes.m: download: lanes.m.download.repo is not set (folder that the checkpoint is fetched to)"
    assert answer(capsys, "check") == {
        "good": True,
        "findings": [{"file": "fleet.toml", "text": note, "problem": False}],
    }
    assert run(["config", "check"]) == EXIT_GOOD
    assert capsys.readouterr().out.endswith("fleet.toml: good\n")


def test_everything_that_is_wrong_is_told_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Path("fleet.toml").write_text(GOOD.replace('root = "~/r"', 'rot = "~/r"'))
    Path("own.toml").write_text(OWN.replace("engine", "engin"))
    keys = tmp_path / "xdg_config_home" / "laneswap" / "keys.toml"
    keys.parent.mkdir(parents=True)
    keys.write_text('nonsense = "x"\nhelp = "D"\n')
    said = answer(capsys, "check", code=EXIT_USAGE)
    problems = [f"{item['file']}: {item['text']}" for item in said["findings"] if item["problem"]]
    assert said["good"] is False
    for words in (
        "fleet.toml: lanes.l.vars: rot: recipe sglang-fleet-env has no such variable; did you mean 'root'?",
        "fleet.toml: lanes.m.recipe: own.toml: reads.engin: unknown key; did you mean 'engine'?",
        f"{keys}: nonsense",
        f"{keys}: help",
    ):
        assert any(row.startswith(words) for row in problems), (words, problems)


def test_all_mistakes_of_the_fleet_file_itself_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fleet.toml").write_text(GOOD.replace("stall_after = 20", "stall_after = 0").replace('ssh = "a"', 'shh = "a"'))
    assert run(["config", "check"]) == EXIT_USAGE
    out = capsys.readouterr().out
    assert "error fleet.toml: hosts.a.shh: unknown key; did you mean 'ssh'?" in out
    assert "error fleet.toml: lanes.l.stall_after" in out
    assert out.endswith("fleet.toml: 3 to correct\n")


def test_a_variable_that_is_not_set_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fleet.toml").write_text(GOOD.replace('[lanes.l.vars]\nroot = "~/r"\n', ""))
    said = answer(capsys, "check")
    assert "lanes.l: site file: lanes.l.vars.root is not set (folder of the recipe" in said["findings"][0]["text"]
    assert said["findings"][0]["problem"] is False


def test_what_is_in_force_says_who_said_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANESWAP_OPERATOR", "kai")
    rows = {row["key"]: (row["value"], row["origin"]) for row in answer(capsys, "print")["values"]}
    assert rows["lanes.l.stall_after"] == (20, "fleet.toml")
    assert rows["lanes.l.engine"] == ("sglang", "recipe sglang-fleet-env")
    assert rows["lanes.m.engine"] == ("vllm", "recipe own")
    assert rows["lanes.m.stall_after"] == (15.0, "default")
    assert rows["lanes.l.vars.root"] == ("~/r", "fleet.toml")
    assert rows["lanes.m.vars.x"] == ("d", "recipe own")
    assert rows["hosts.a.known_hosts"] == ("/x/known", "fleet.toml")
    assert rows["notify.bell"] == (True, "default")
    assert rows["operator"] == ("kai", "environment: LANESWAP_OPERATOR")
    assert rows["lanes.l.next.revision"] == ("", "default")


def test_what_the_file_says_has_the_file_s_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fleet.toml").rename("other.toml")
    rows = {row["key"]: row["origin"] for row in answer(capsys, "print", "-f", "other.toml")["values"]}
    assert rows["lanes.l.stall_after"] == rows["lanes.l.vars.root"] == rows["hosts.a.known_hosts"] == "other.toml"


def test_print_has_every_key_and_its_values_are_those_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["key"]: row["value"] for row in answer(capsys, "print")["values"]}
    fleet = apply_recipes(parse(GOOD), Path())
    for lane in fleet.lanes:
        dumped = fleet.lanes[lane].model_dump(mode="json", exclude={"next", "previous", "download", "vars"})
        assert {key: rows[f"lanes.{lane}.{key}"] for key in dumped} == dumped
    assert {key.split(".")[0] for key in rows} == {key for key in Fleet.model_fields if key != "rehearsal"}
    assert run(["config", "print"]) == EXIT_GOOD
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(rows)


def test_locate_names_every_file_and_why(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {(row["what"], row["path"]): row for row in answer(capsys, "locate")["files"]}
    paths = {what: path for what, path in found}
    assert paths["fleet file"] == str(tmp_path / "fleet.toml")
    assert found["fleet file", paths["fleet file"]]["why"] == "in this folder"
    assert ("recipe", "sglang-fleet-env") in found and found["recipe", str(tmp_path / "own.toml")]["there"] is True
    assert found["known hosts", "/x/known"]["why"] == "hosts a"
    assert paths["keymap"] == str(tmp_path / "xdg_config_home" / "laneswap" / "keys.toml")
    assert paths["faults"] == str(default_fault_file())
    assert paths["records"] == str(tmp_path / "xdg_state_home" / "laneswap" / "records")
    assert paths["ledger"] == str(tmp_path / "xdg_state_home" / "laneswap" / "ledger")
    monkeypatch.setenv("LANESWAP_STATE", "/y")
    monkeypatch.setenv("LANESWAP_FLEET", "/z/fleet.toml")
    moved = {place.what: place for place in locate(None)}
    assert (moved["fleet file"].path, moved["fleet file"].there, moved["fleet file"].why) == (
        "/z/fleet.toml",
        False,
        "LANESWAP_FLEET",
    )
    assert moved["records"].path == "/y/records"
    assert moved["records"].why.startswith("LANESWAP_STATE")
    assert run(["config", "locate"]) == EXIT_GOOD
    assert "not there  /z/fleet.toml  (LANESWAP_FLEET)" in capsys.readouterr().out


def test_the_schemas_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    for words, kind in (((), "fleet"), (("fleet",), "fleet"), (("recipe",), "recipe")):
        assert run(["config", "schema", *words]) == EXIT_GOOD
        assert json.loads(capsys.readouterr().out) == schema(kind)
    assert run(["config", "schema", "none"]) == EXIT_USAGE


def test_recipes_are_listed_with_what_they_want(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "recipes")["recipes"]
    assert [row["name"] for row in rows] == list(shipped())
    assert {row["name"]: row["vars"] for row in rows}["sglang-fleet-env"] == ["box_ledger", "root"]
    assert run(["config", "recipes"]) == EXIT_GOOD
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


@pytest.mark.parametrize("command", ["check", "print"])
def test_without_a_fleet_file_the_way_out_is_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("fleet.toml").unlink()
    assert run(["config", command]) == EXIT_USAGE
    assert "`laneswap init`" in capsys.readouterr().err
    assert run(["config", command, "-f", "x.toml"]) == EXIT_USAGE
    assert "x.toml: no such file" in capsys.readouterr().err


def test_hostile_names_reach_no_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    odd = tmp_path / "a\x1b]0;t\x07\u202eb.toml"
    odd.write_text(GOOD.replace("own.toml", "o\\u001b.toml"))
    for command in ("check", "locate", "print"):
        run(["config", command, "-f", str(odd)])
        out, err = capsys.readouterr()
        assert all(row.isprintable() for row in (out + err).split("\n"))
