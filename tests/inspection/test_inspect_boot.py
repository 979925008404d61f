"""`laneswap inspect boot`, and the words of recipes that it takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from console.fleet.recipe import shipped
from console.fleet.recipe_boot import BootRecipe
from console.inspection.arguments import Argument, InspectError, parse_argument
from console.inspection.kinds import inspect
from console.readings.boot import BootRecord, PhaseName
from console.readings.recorded import Recorded, encode

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "data" / "boots"
SGLANG = LOGS / "sglang-boot-gb10.log"


def boot(*words: str | Argument) -> dict[str, Any]:
    return inspect("boot", [parse_argument(word) if isinstance(word, str) else word for word in words])


def kept(path: Path, *totals: float) -> str:
    boots = tuple(BootRecord(1000.0 * number, total) for number, total in enumerate(totals, 1))
    path.write_bytes(encode(Recorded(boots)))
    return f"earlier={path}"


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_whole_boot() -> None:
    answer = boot(str(SGLANG))
    assert (answer["engine"], answer["phase"], answer["is_ready"], answer["seconds"]) == ("sglang", None, True, 787.0)
    assert (answer["kv_budget_tokens"], answer["kv_tokens"], answer["autotune"]) == (5_491_200, 2_999_808, "done")
    assert [phase["name"] for phase in answer["phases"]] == [
        "start",
        "weights",
        "post-process",
        "draft weights",
        "KV pool",
        "autotune",
        "graphs",
        "http up",
        "ready",
    ]
    assert (answer["failure"], answer["missing"], answer["warnings"], answer["shards"]) == (None, [], [], None)


def test_against_earlier_boots_of_the_lane(tmp_path: Path) -> None:
    half = put(tmp_path / "half.log", "\n".join(SGLANG.read_text().split("\n")[:5]))
    started = put(tmp_path / "started", "2026-09-11T23:33:50Z")
    now = put(tmp_path / "now", "1789169950.5\n")
    answer = boot(str(half), kept(tmp_path / "lane.json", 575.0, 604.0, 508.0), f"started={started}", f"now={now}")
    assert answer["phase"] == "post-process"
    assert answer["against_earlier"] == {
        "elapsed_s": 320.5,
        "shortest_s": 508.0,
        "longest_s": 604.0,
        "median_s": 575.0,
        "phase_elapsed_s": 297.5,
        "phase_usual_s": None,
        "left_s": 254.5,
        "late": False,
        "compared_with": 3,
    }
    late = boot(str(SGLANG), kept(tmp_path / "lane.json", 500.0))
    assert late["against_earlier"]["late"] is True and late["against_earlier"]["left_s"] is None


def test_with_the_words_of_a_recipe(tmp_path: Path) -> None:
    opening = "[2026-09-11 23:33:55] server_args=ServerArgs()\n"
    log = put(tmp_path / "boot.log", opening + SGLANG.read_text())
    assert boot(str(log))["missing"] == []
    assert boot(str(log), "recipe=sglang-fleet-env")["missing"] == ["overlay hooks", "Engram rows"]
    own = put(
        tmp_path / "own.toml",
        'name = "own"\ntitle = "Own"\n[reads]\nusual_boot_s = 400\n'
        '[[boot.failures]]\nline = "Memory pool end"\ncause = "a trap"\n',
    )
    part = put(tmp_path / "part.log", "\n".join(SGLANG.read_text().split("\n")[:23]))
    answer = boot(str(part), f"recipe={own}")
    assert answer["failure"]["cause"] == "a trap"
    assert answer["against_earlier"]["median_s"] == 400.0 and answer["against_earlier"]["late"] is True


def test_a_log_that_shows_trouble_is_no_error() -> None:
    answer = boot(str(LOGS / "engram-boot-errors.rendered.txt"))
    assert answer["failure"]["cause"] == "row ranges of layer 1 do not tile"
    assert answer["failure"]["heals"] is False
    assert answer["against_earlier"] is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "no log file"),
        (("x.log",), "No such file"),
        (("{log}", "recipe=nowhere"), "nowhere: no recipe of that name"),
        (("{log}", "earlier={log}"), "no JSON"),
        (("{log}", "now={log}"), "expected Unix seconds"),
        (("{log}", "later={log}"), "unknown role 'later'"),
    ],
)
def test_what_cannot_be_inspected_says_why(words: tuple[str, ...], error: str) -> None:
    with pytest.raises(InspectError, match=re.escape(error)):
        boot(*(word.format(log=SGLANG) for word in words))


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys(item)}
    return {key for item in value for key in keys(item)} if isinstance(value, list) else set()


def test_every_key_of_an_answer_is_described(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "inspect.md").read_text()
    section = text[text.index("\n## boot\n") :].partition("\n## rows\n")[0]
    said = set(re.findall(r"`([a-z_]+)`", section))
    half = put(tmp_path / "half.log", SGLANG.read_text()[:700] + "\nValueError: No common block size for 64.")
    for answer in (boot(str(SGLANG)), boot(str(half))):
        assert keys(answer) <= said


# The [boot] table


def test_the_example_of_the_docs_is_a_whole_one() -> None:
    text = (ROOT / "docs" / "recipes.md").read_text()
    section = text[text.index("## [boot]") :]
    example = tomllib.loads(section.partition("```toml\n")[2].partition("```")[0])
    recipe = BootRecipe.model_validate(example["boot"])
    assert recipe.model_fields_set == set(BootRecipe.model_fields)
    for table in (recipe.always, recipe.marks, recipe.failures, recipe.silences):
        assert table[0].model_fields_set == set(type(table[0]).model_fields)
    words = recipe.words("sglang")
    assert (words.engine, words.always[0].by, words.silences[0].after) == ("sglang", PhaseName.WEIGHTS, 180.0)
    assert all(f"`{phase.value}`" in section for phase in PhaseName)
    assert set(shipped()) >= {"sglang-fleet-env", "vllm-cluster-env"}


@pytest.mark.parametrize(
    "table",
    [
        {"always": [{"name": "x", "line": "a*b", "by": "weights"}]},
        {"always": [{"name": "x", "line": "overlay", "by": "wieghts"}]},
        {"always": [{"line": "overlay", "by": "weights"}]},
        {"marks": [{"line": "****", "phase": "start"}]},
        {"failures": [{"line": "it stopped"}]},
        {"failures": [{"line": "it stopped", "cause": "x" * 400}]},
        {"silences": [{"phase": "start", "after": 0, "cause": "x"}]},
        {"never": []},
        {"marks": [{"line": "a line", "phase": "start"}] * 101},
    ],
)
def test_a_table_that_makes_no_sense_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BootRecipe.model_validate(table)
