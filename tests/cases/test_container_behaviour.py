"""What the container cases ask of the console's behaviour."""

from __future__ import annotations

import json
from typing import Any

from case_table import case_file, inspect_case

from console.readings.containers import parse_inspect, serving_container
from console.readings.roles import way_back

SERVED = "dsv41-flash-uva"


def test_served_name_is_never_the_checkpoint() -> None:
    """C033: one name and one mount point serve either checkpoint; only the mount's source tells which."""
    answer = inspect_case("C033", "containers", "inspect=inspect.json models=v1_models.json")
    shown = answer["containers"][0]
    assert shown["checkpoint"] == "1bae0e1088993b9b82de08f59de5be5a34e42170"
    assert SERVED not in (shown["checkpoint"], shown["revision"], shown["revision_source"])
    raw = json.loads(case_file("C033", "inspect.json").read_text())[0]
    raw["Mounts"][1]["Source"] = "/models/current"
    hidden = parse_inspect({**raw, "Args": ["--model", "/model", "--served-model-name", SERVED]})
    assert (hidden.revision, hidden.revision_source, hidden.served_name) == ("", "", SERVED)


def test_a_dead_way_back_is_known_while_the_engine_still_runs() -> None:
    """C039: the refusal rests on the retired container alone, so it comes before anything is stopped."""
    live = parse_inspect(
        {
            "Id": "b" * 64,
            "Name": "/dsv41-vllm-1017-v21cfg-BOUND-REF",
            "State": {"Status": "running", "Running": True, "StartedAt": "2026-10-18T09:00:00Z"},
            "Config": {"Image": "vllm/vllm-openai:x"},
            "HostConfig": {"NetworkMode": "host"},
            "Args": ["--port", "30006"],
        }
    )
    for name in ("dead.json", "removing.json"):
        retired = parse_inspect(json.loads(case_file("C039", name).read_text())[0])
        assert serving_container((live, retired), 30006, "dsv41-vllm-*") == live
        refused = way_back(retired)
        assert refused.possible is False
        assert "cannot be started" in refused.why
    gone = inspect_case("C039", "containers", "inspect=gone_404.json")["containers"]
    assert [(item["state"], item["name"]) for item in gone] == [("gone", "dsv41-vllm-v21-fused-split-RETIRED-REF")]
    assert gone[0]["rollback"] == {"possible": False, "why": "container removed"}


def _unread(answer: dict[str, Any]) -> None:
    assert answer["containers"] is None
    assert answer["state"] != "read"
    assert answer["problem"]


def test_a_refused_api_version_is_not_an_empty_docker() -> None:
    """C041: a 400 is "cannot read", never an empty list; both sides' versions are named."""
    old = inspect_case("C041", "containers", "list=too_old.json")
    _unread(old)
    assert "1.43" in old["problem"] and "1.44" in old["problem"]
    _unread(inspect_case("C041", "containers", "error=too_old.json"))
    new = inspect_case("C041", "containers", "error=too_new.json")
    _unread(new)
    assert "1.52" in new["problem"] and "1.41" in new["problem"]
    ranges = inspect_case("C041", "containers", "version=version_29.json client=../../clients/api-1.30-1.43.txt")
    _unread(ranges)
    assert "1.44-1.52" in ranges["problem"] and "1.30-1.43" in ranges["problem"]


def test_a_refused_socket_is_not_an_empty_docker() -> None:
    """C042: the group is there but not in this session: reconnect; not down, not empty, no sudo."""
    answer = inspect_case("C042", "containers", "error=stderr.txt id=id.txt group=getent_group_docker.txt")
    _unread(answer)
    assert answer["problem"] == "permission: docker group not active in this session, reconnect"
    assert "sudo" not in answer["hint"]
    assert "down" not in answer["problem"]


def test_autoheal_is_warned_about_while_loading() -> None:
    """C044: booting, with Docker's verdict beside it and a word about who else may restart it."""
    shown = inspect_case("C044", "containers", "inspect=inspect.json log=log_tail.txt now=now.txt")["containers"][0]
    assert shown["autoheal"] is True
    assert shown["word"] == "booting"
    assert any("autoheal" in warning and "restart" in warning for warning in shown["warnings"])
