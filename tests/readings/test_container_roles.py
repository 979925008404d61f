"""Roles, restart policies, ways back and booting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.readings.boot import container_word, loading
from console.readings.containers import Container, ContainerState, gone, parse_inspect
from console.readings.roles import Role, restart_words, returns_by_itself, role_of, warnings, way_back


def made(name: str = "c", **changes: Any) -> Container:
    """A running engine on port 30006, changed as named."""
    base = parse_inspect(
        {
            "Id": name.encode().hex(),
            "Name": f"/{name}",
            "Path": "vllm",
            "Args": ["serve", "/model", "--port", "30006"],
            "State": {"Status": "running", "StartedAt": "2026-10-18T09:00:00Z"},
            "HostConfig": {"NetworkMode": "host", "RestartPolicy": {"Name": "no"}},
        }
    )
    return replace(base, **changes)


EXITED = {"state": ContainerState.EXITED, "exit_code": 0}
GLOB = "dsv41-*"


def test_roles_are_observed() -> None:
    serving = made("dsv41-v21-RETIRED-REF")
    retired = made("dsv41-1017-BOUND-REF", **EXITED)
    tried = made("dsv41-v19-EXP", **EXITED)
    failed = made("dsv41-v20-BOOT-FAIL", **EXITED)
    ready = made("dsv41-next", state=ContainerState.CREATED)
    beside = made("dsv41-second", ports=(30007,))
    other = made("glm", ports=(30001,))
    roles = {
        item.name: role_of(item, serving, 30006, GLOB)
        for item in (serving, retired, tried, failed, ready, beside, other)
    }
    assert roles == {
        "dsv41-v21-RETIRED-REF": Role.SERVING,
        "dsv41-1017-BOUND-REF": Role.RETIRED,
        "dsv41-v19-EXP": Role.CANDIDATE,
        "dsv41-v20-BOOT-FAIL": Role.CANDIDATE,
        "dsv41-next": Role.CANDIDATE,
        "dsv41-second": Role.CANDIDATE,
        "glm": Role.UNRELATED,
    }


def test_a_label_may_name_the_role() -> None:
    item = made("dsv41-a", **EXITED, labels=(("ops.role", "candidate"),))
    assert role_of(item, None, 30006, GLOB) is Role.CANDIDATE


def test_the_lanes_own_dead_container_keeps_its_role_but_a_retired_one_does_not_serve() -> None:
    dead = made("dsv41-BOUND-REF", **EXITED)
    assert role_of(dead, dead, 30006, GLOB) is Role.SERVING
    kept = made("dsv41-RETIRED-REF", **EXITED)
    assert role_of(kept, kept, 30006, GLOB) is Role.RETIRED


@pytest.mark.parametrize(
    ("policy", "changes", "returns"),
    [
        ("no", EXITED, False),
        ("no", {}, False),
        ("always", EXITED, True),
        ("always", {}, True),
        ("unless-stopped", EXITED, False),
        ("unless-stopped", {}, True),
        ("on-failure", {"state": ContainerState.EXITED, "exit_code": 137}, True),
        ("on-failure:5", {"state": ContainerState.EXITED, "exit_code": 137}, True),
        ("on-failure", EXITED, False),
        ("on-failure", {}, None),
        ("always", {**EXITED, "auto_remove": True}, False),
        ("", EXITED, None),
        ("newfangled", EXITED, None),
    ],
)
def test_what_returns_after_a_daemon_restart(policy: str, changes: dict[str, Any], returns: bool | None) -> None:
    item = made(restart_policy=policy, **changes)
    assert returns_by_itself(item) is returns
    words = restart_words(item)
    assert ("returns by itself after a daemon restart" in words) is (returns is True)
    assert ("unknown" in words or "unless" in words.partition(":")[2]) is (returns is None)


@pytest.mark.parametrize(
    ("item", "possible", "word"),
    [
        (made(**EXITED), True, ""),
        (made(), True, ""),
        (made(state=ContainerState.CREATED), True, ""),
        (made(state=ContainerState.DEAD, error="marked for removal"), False, "marked for removal"),
        (made(state=ContainerState.REMOVING), False, "removing"),
        (made(auto_remove=True, **EXITED), False, "--rm"),
        (made(state=ContainerState.UNKNOWN), None, "unknown"),
        (gone("x"), False, "removed"),
        (None, False, "removed"),
    ],
)
def test_ways_back(item: Container | None, possible: bool | None, word: str) -> None:
    found = way_back(item)
    assert found.possible is possible
    assert word in found.why
    assert bool(found.why) is (possible is not True)


def test_warnings() -> None:
    assert warnings(made()) == ()
    assert "autoheal" in warnings(made(autoheal=True))[0]
    healer = made("healer", image="willfarrell/autoheal:1.2")
    assert "autoheal container runs" in warnings(made(), [healer])[0]
    assert warnings(made(), [replace(healer, **EXITED)]) == ()
    assert "--rm" in warnings(made(auto_remove=True))[0]
    assert "restart=always" in warnings(made(restart_policy="always", **EXITED))[0]
    assert warnings(made(restart_policy="always")) == ()


VLLM_BAR = "Loading safetensors checkpoint shards:  65% Completed | 31/48 [04:18<02:21,  8.33s/it]"
SGLANG_BAR = "Multi-thread loading shards:  77% Completed | 37/48 [00:53<00:16,  1.48s/it]"


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        (VLLM_BAR, "31 of 48"),
        (SGLANG_BAR, "37 of 48"),
        (VLLM_BAR + "\r" + VLLM_BAR.replace("31/", "32/") + "\n", "32 of 48"),
        (VLLM_BAR + "\nINFO:     Application startup complete.\n", None),
        (VLLM_BAR + "\nThe server is fired up and ready to roll!\n", None),
        ("INFO:     Application startup complete.\n" + VLLM_BAR, "31 of 48"),
        ("GET /health 200\n", None),
        ("", None),
    ],
)
def test_the_newest_loading_bar(tail: str, found: str | None) -> None:
    bar = loading(tail)
    assert (bar.text if bar else None) == found


def test_booting_is_said_only_of_what_runs() -> None:
    assert container_word(made(health="unhealthy"), VLLM_BAR) == "booting"
    assert container_word(made(**EXITED), VLLM_BAR) == "exited"
    assert container_word(made(state=ContainerState.PAUSED), VLLM_BAR) == "paused"
    assert container_word(made()) == "running"
