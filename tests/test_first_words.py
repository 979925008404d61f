"""What somebody reads who does not know the program yet: no fleet file, a typing error, a file with mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.cli import run
from console.headless import EXIT_GOOD, EXIT_USAGE

LANE = '[lanes.l]\nrecipe = "vllm-docker"\nurl = "http://127.0.0.1:9"\nhead = "a"\n'
GOOD = f'name = "x"\n[hosts]\na = {{ ssh = "local", docker = "" }}\n{LANE}'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LANESWAP_FLEET", raising=False)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(words) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_without_a_fleet_file_both_places_and_the_way_out_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words in ((), ("status",)):
        text = said(capsys, *words)
        assert "neither ./fleet.toml nor " + str(tmp_path / "config" / "laneswap" / "fleet.toml") in text
        assert "-f FILE" in text and "laneswap rehearse" in text


def test_a_file_named_by_the_environment_is_said_to_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANESWAP_FLEET", "/nowhere/f.toml")
    assert said(capsys, "status") == "laneswap: /nowhere/f.toml: no such file, though LANESWAP_FLEET names it\n"


def test_a_mistyped_command_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "staus") == "laneswap: staus: no such file; did you mean the command `status`?\n"
    assert said(capsys, "mine.toml") == "laneswap: mine.toml: no such file\n"


def test_inspect_alone_lists_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect"]) == EXIT_GOOD
    assert capsys.readouterr().out.startswith("memory ")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('{ ssh = "local", docker = "" }', '"local"', "f.toml: hosts.a: must be a table of keys (got 'local')"),
        ("a = {", '"a b" = {', "f.toml: hosts.a b: a name is up to 63 letters, digits"),
        ('name = "x"', 'name = "x"\nrates = { node = 0 }', "f.toml: rates.node: must be greater than or equal to 0.2"),
        ("vllm-docker", "vllm", "f.toml: lanes.l.recipe: vllm: no recipe of that name; shipped: docker-generic,"),
    ],
)
def test_a_mistake_is_told_in_words_of_the_file(
    capsys: pytest.CaptureFixture[str], old: str, new: str, told: str
) -> None:
    assert old in GOOD
    Path("f.toml").write_text(GOOD.replace(old, new, 1))
    assert told in said(capsys, "status", "-f", "f.toml")


def test_keys_tells_where_a_key_works_and_what_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys"]) == EXIT_GOOD
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows if "next lane" in row or "next match" in row] == ["n", "n"]
    assert sum(row.startswith("n ") and row.endswith("(on: events, ledger, logs)") for row in rows) == 1
    assert next(row for row in rows if "show a lane" in row).startswith(":lane LANE ")


def test_a_theme_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rehearse", "--theme", "pink"]) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert all(word in out + err for word in ("pink", "dark", "light", "safe"))
