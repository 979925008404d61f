"""`inspect watchdog`: what it takes, what it refuses, and that everything comes out as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.inspection.arguments import InspectError, parse_argument
from console.inspection.kinds import inspect

LOG = Path(__file__).parents[1] / "data" / "fleet" / "sgl-watchdog.rendered.log"
PS = (
    "    PID    PPID S                  STARTED COMMAND\n"
    "  48211       1 S Sat Oct 17 22:10:40 2026 bash launch/watchdog.sh\n"
)
SHOW = (
    "Id=dsv41-fleet.service\nLoadState=loaded\nActiveState=active\nSubState=running\nMainPID=77\n\n"
    "Id=dsv41-night.timer\nLoadState=loaded\nActiveState=active\nSubState=waiting\n"
    "NextElapseUSecRealtime=Mon 2026-10-19 01:00:00 UTC\n\n"
    "Id=glm53-fleet.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\n"
)


def answer(*words: str) -> Any:
    return json.loads(json.dumps(inspect("watchdog", [parse_argument(word) for word in words]), allow_nan=False))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rows = LOG.read_text().splitlines(keepends=True)
    texts = {
        "armed.log": "".join(rows[:3]),
        "lock": "48211\n",
        "ps": PS,
        "nobody": PS.splitlines(keepends=True)[0],
        "now": "2026-10-18 10:00:00\n",
        "show": SHOW,
        "flag": "ana: benchmark until noon\n",
        "inactive": "inactive\n",
        "three": "3\n",
        "four": "4\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def test_a_log_a_lock_and_a_process_are_an_armed_watchdog(files: dict[str, str]) -> None:
    found = answer(f"log={files['armed.log']}", f"lock={files['lock']}", f"ps={files['ps']}")
    assert (found["recipe"], found["kind"], found["state"]) == ("sglang-fleet-env", "log", "armed")
    assert (found["armed"], found["pid"], found["may_signal"], found["instances"]) == (1, 48211, True, 1)
    assert found["next_check_s"] == 60
    assert found["since"] == 1792275042.0
    assert (found["attempt"], found["last_act"], found["competing"], found["samples"]) == (None, None, [], [])


def test_the_whole_sample_ends_disarmed(files: dict[str, str]) -> None:
    found = answer(f"log={LOG}", f"ps={files['nobody']}")
    assert (found["state"], found["verdict"], found["armed"]) == ("off", "disarmed", 0)
    assert found["last_act"].startswith("fleet healthy 580s after relaunch attempt 1")


def test_without_a_look_at_the_processes_nothing_is_known(files: dict[str, str]) -> None:
    found = answer(f"log={files['armed.log']}")
    assert (found["state"], found["protecting"]) == ("unknown", None)


def test_shown_units_tell_watchdog_and_competitors(files: dict[str, str]) -> None:
    found = answer(f"unit={files['show']}", f"now={files['now']}")
    assert (found["recipe"], found["state"], found["pid"]) == ("vllm-cluster-env", "armed", 77)
    assert found["competing"] == ["dsv41-night.timer: runs in 15 h"]
    paused = answer(f"unit={files['show']}", f"pause={files['flag']}")
    assert paused["words"] == "paused: ana: benchmark until noon"


def test_inactive_needs_its_exit_status(files: dict[str, str]) -> None:
    assert answer(f"is_active={files['inactive']}", f"code={files['three']}")["verdict"] == "disarmed"
    assert answer(f"is_active={files['inactive']}", f"code={files['four']}")["verdict"] == "unknown: no such unit"
    assert answer(f"is_active={files['inactive']}")["verdict"] == "unknown: no exit status given"


def test_one_can_name_the_recipe(files: dict[str, str]) -> None:
    found = answer("recipe=vllm-cluster-env", f"log={files['armed.log']}")
    assert (found["kind"], found["verdict"]) == ("systemd", "unknown: unit not read yet")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "name a file"),
        (["watch={lock}"], "unknown role 'watch'"),
        (["log={lock}", "recipe=vllm-docker"], "has no watchdog"),
        (["log={lock}", "recipe=nothing"], "no recipe of that name"),
        (["is_active={inactive}", "recipe=sglang-fleet-env"], "has no unit"),
        (["is_active={inactive}", "code={flag}"], "expected an exit status"),
        (["log={lock}", "now={flag}"], "expected Unix seconds"),
    ],
)
def test_what_does_not_fit_says_so(files: dict[str, str], words: list[str], problem: str) -> None:
    with pytest.raises(InspectError, match=problem):
        answer(*(word.format(**files) for word in words))


def test_a_torn_table_names_its_line(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("sample\trc\tstdout\tstderr\ns1\t0\tactive\t\ns2\n")
    with pytest.raises(InspectError, match=r"t\.tsv:3"):
        answer(f"is_active={table}")
