"""`inspect containers`: what it takes, what it refuses, and that everything comes out as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.inspection.arguments import InspectError, parse_argument
from console.inspection.kinds import inspect

DATA = Path(__file__).parents[1] / "data" / "containers"


def answer(*words: str) -> Any:
    return json.loads(json.dumps(inspect("containers", [parse_argument(word) for word in words]), allow_nan=False))


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_without_a_role_is_an_inspect_answer() -> None:
    shown = answer(str(DATA / "station_serving.json"))["containers"][0]
    assert shown["checkpoint"] == "1bae0e1088993b9b82de08f59de5be5a34e42170"
    assert shown["rollback"] == {"possible": True, "why": ""}
    assert shown["restart"]["words"] == "no: stays down after a daemon restart"
    assert (shown["state"], shown["exit"], shown["age_s"]) == ("running", None, None)


def test_one_container_alone_and_several_are_read(tmp_path: Path) -> None:
    one = json.loads((DATA / "station_serving.json").read_text())[0]
    two = json.loads((DATA / "station_retired.json").read_text())[0]
    alone = written(tmp_path, "one.json", json.dumps(one))
    both = written(tmp_path, "two.json", json.dumps([one, two]))
    assert len(answer(f"inspect={alone}")["containers"]) == 1
    assert [item["state"] for item in answer(f"inspect={both}")["containers"]] == ["running", "exited"]


def test_an_empty_docker_is_empty_and_was_read(tmp_path: Path) -> None:
    found = answer(f"list={written(tmp_path, 'list.json', '[]')}")
    assert (found["state"], found["containers"]) == ("read", [])


def test_a_version_alone_uses_our_own_range(tmp_path: Path) -> None:
    version = written(tmp_path, "v.json", '{"ApiVersion": "1.52", "MinAPIVersion": "1.44"}')
    found = answer(f"version={version}")
    assert found["api"]["use"] == "1.47"
    assert found["containers"] is None


def test_a_user_outside_the_group_is_not_told_to_reconnect(tmp_path: Path) -> None:
    error = written(tmp_path, "e", "Got permission denied while trying to connect")
    who = written(tmp_path, "id", "uid=1000(ops) gid=1000(ops) groups=1000(ops)")
    group = written(tmp_path, "group", "docker:x:988:")
    found = answer(f"error={error}", f"id={who}", f"group={group}")
    assert (found["state"], found["containers"]) == ("permission", None)


def test_now_may_be_a_number(tmp_path: Path) -> None:
    now = written(tmp_path, "now", "1792289479.5\n")
    shown = answer(str(DATA / "station_serving.json"), f"now={now}")
    assert shown["containers"][0]["age_s"] == pytest.approx(10.017, abs=0.001)


@pytest.mark.parametrize(
    ("role", "text", "complaint"),
    [
        ("inspect", "{", "not JSON"),
        ("inspect", "[5]", "expected container objects"),
        ("inspect", "{}", "neither Id nor Name"),
        ("list", '[{"State": "running"}]', "without Id and Names"),
        ("now", "soon", "expected Unix seconds"),
        ("client", "new", "expected a range"),
        ("odd", "", "unknown role"),
    ],
)
def test_what_cannot_be_inspected_is_named(tmp_path: Path, role: str, text: str, complaint: str) -> None:
    version = written(tmp_path, "v.json", '{"ApiVersion": "1.41"}')
    with pytest.raises(InspectError, match=complaint):
        answer(f"{role}={written(tmp_path, 'file', text)}", f"version={version}")


def test_nothing_to_inspect() -> None:
    with pytest.raises(InspectError, match="name a file"):
        answer()
