"""Containers as Docker describes them: states, ports, mounts, and which one stands behind a lane."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.container_rows import freshness, parse_list_row
from console.readings.containers import (
    Container,
    ContainerState,
    ContainersUnreadable,
    Mount,
    classify_exit,
    gone,
    parse_inspect,
    parse_state,
    serving_container,
    with_exit,
)
from console.readings.exits import ContainerEvent
from console.readings.throughput import EngineKind

DATA = Path(__file__).parents[1] / "data" / "containers"
STARTED = 1_792_289_469.482915


def captured(name: str) -> Container:
    return parse_inspect(json.loads((DATA / name).read_text())[0])


def made(name: str, **changes: Any) -> Container:
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


def test_the_serving_container_of_a_station() -> None:
    found = captured("station_serving.json")
    assert found.name == "dsv41-vllm-1017-v21cfg-BOUND-REF"
    assert (found.state, found.up, found.pid) == (ContainerState.RUNNING, True, 13260)
    assert found.started_at == pytest.approx(STARTED, abs=1e-6)
    assert (found.finished_at, found.exit_code, found.exit_meaning) == (None, None, "")
    assert found.revision == "1bae0e1088993b9b82de08f59de5be5a34e42170"
    assert found.revision_source == f"mount /models/DeepSeek-V4.1-Flash-1017-{found.revision} at /model"
    assert found.served_name == "dsv41-flash-uva"
    assert found.ports == (30006,)
    assert found.engine is EngineKind.VLLM
    assert found.mounts[0] == Mount(f"/models/DeepSeek-V4.1-Flash-1017-{found.revision}", "/model", True)
    assert found.mounts[1].read_only is False
    assert found.age(STARTED + 100) == pytest.approx(100, abs=1e-5)


def test_a_retired_container_of_a_station() -> None:
    found = captured("station_retired.json")
    assert (found.state, found.up, found.exit_code, found.pid) == (ContainerState.EXITED, False, 0, None)
    assert found.ports == (30006,)
    assert found.age(STARTED + 100) is None
    assert "no stop on record" in found.exit_meaning
    assert found.exit_unasked is None


def test_ranks_of_a_spark_fleet() -> None:
    for name in ("spark_rank0.json", "spark_rank1.json"):
        found = captured(name)
        assert found.revision == "0123456789abcdef0123456789abcdef01234567"
        assert found.revision_source == "argument --model-path"
        assert found.engine is EngineKind.SGLANG
        assert found.ports == (8210,)
        assert found.served_name == "deepseek-v4.1-flash"
        assert serving_container([found], 8210) is found


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({"Status": "running", "Running": True}, "running"),
        ({"Status": "running", "Running": True, "Paused": True}, "paused"),
        ({"Running": True, "Paused": True}, "paused"),
        ({"Running": True, "Restarting": True}, "restarting"),
        ({"Running": True}, "running"),
        ({"Dead": True}, "dead"),
        ({"RemovalInProgress": True}, "removing"),
        ({"Running": False, "StartedAt": "0001-01-01T00:00:00Z"}, "created"),
        ({"Running": False, "StartedAt": "2026-10-18T09:00:00Z"}, "exited"),
        ({"Running": False}, "exited"),
        ({"Status": "Exited"}, "exited"),
        ({"Status": "brand-new-word"}, "unknown"),
        ({"Status": "brand-new-word", "Running": True}, "running"),
        ({"Status": "stopped"}, "exited"),
        ({"Status": "initialized"}, "created"),
        ({}, "unknown"),
    ],
)
def test_states(state: dict[str, Any], word: str) -> None:
    assert parse_state(state) == word


@pytest.mark.parametrize(
    ("row", "state", "code", "health"),
    [
        ({"State": "running", "Status": "Up 5 minutes (healthy)"}, "running", None, "healthy"),
        ({"State": "running", "Status": "Up 3 seconds (health: starting)"}, "running", None, "starting"),
        ({"State": "paused", "Status": "Up 6 minutes (Paused)"}, "paused", None, ""),
        ({"Status": "Up 6 minutes (Paused)"}, "paused", None, ""),
        ({"Status": "Up 6 minutes"}, "running", None, ""),
        ({"State": "exited", "Status": "Exited (137) 3 hours ago"}, "exited", 137, ""),
        ({"Status": "Exited (0) 5 minutes ago"}, "exited", 0, ""),
        ({"State": "restarting", "Status": "Restarting (1) 5 seconds ago"}, "restarting", 1, ""),
        ({"Status": "Created"}, "created", None, ""),
        ({"Status": "Dead"}, "dead", None, ""),
        ({"Status": "Removal In Progress"}, "removing", None, ""),
        ({"State": "brand-new-word"}, "unknown", None, ""),
        ({}, "unknown", None, ""),
    ],
)
def test_list_rows(row: dict[str, Any], state: str, code: int | None, health: str) -> None:
    found = parse_list_row({"Id": "a" * 64, "Names": ["/c"], **row})
    assert (found.state, found.exit_code, found.health, found.inspected) == (state, code, health, False)


def test_a_station_listed_as_it_was_seen() -> None:
    rows = [line.split("\t") for line in (DATA / "station_ps.txt").read_text().splitlines()]
    found = [parse_list_row({"Id": str(n), "Names": [f"/{name}"], "Status": s}) for n, (name, s) in enumerate(rows)]
    assert [(item.state, item.exit_code) for item in found] == [("running", None)] + [("exited", 0)] * 4


def test_a_row_is_fresh_while_only_its_ages_grow() -> None:
    rows = [{"State": "running", "Status": f"Up {age} (healthy)", "Names": ["/c"]} for age in ("5 minutes", "2 hours")]
    assert freshness(rows[0]) == freshness(rows[1])
    assert freshness(rows[0]) != freshness({**rows[0], "Status": "Up 5 minutes (unhealthy)"})
    assert freshness(rows[0]) != freshness({**rows[0], "Names": ["/renamed"]})
    exited = {"State": "exited", "Status": "Exited (0) 1 second ago"}
    assert freshness(exited) != freshness({**exited, "Status": "Exited (1) 1 second ago"})
    assert freshness(exited) == freshness({**exited, "Status": "Exited (0) 2 days ago"})


@pytest.mark.parametrize(
    ("more", "ports"),
    [
        ({"NetworkSettings": {"Ports": {"8000/tcp": [{"HostIp": "::", "HostPort": "30006"}]}}}, (30006,)),
        ({"NetworkSettings": {"Ports": {"8000/tcp": None}}}, ()),
        ({"NetworkSettings": {"Ports": {}}, "HostConfig": {"PortBindings": {"8000/tcp": [{"HostPort": "9"}]}}}, (9,)),
        ({"HostConfig": {"PortBindings": {"8000/tcp": [{"HostPort": ""}]}}}, ()),
        ({"HostConfig": {"NetworkMode": "bridge"}}, ()),
        ({"HostConfig": {"NetworkMode": "host"}}, (8000,)),
        ({"NetworkSettings": {"Ports": {"1/tcp": [{"HostPort": "7"}, {"HostPort": "7"}], "2/udp": "x"}}}, (7,)),
    ],
)
def test_host_ports(more: dict[str, Any], ports: tuple[int, ...]) -> None:
    raw = {"Id": "a", "Name": "/c", "Config": {"Image": "vllm/vllm-openai"}, **more}
    assert parse_inspect(raw).ports == ports


def test_mounts_of_a_daemon_that_sends_only_binds() -> None:
    found = parse_inspect({"Name": "/c", "HostConfig": {"Binds": ["/a b:/model:ro,z", "/c:/d"]}})
    assert found.mounts == (Mount("/a b", "/model", True), Mount("/c", "/d", False))


def test_policies_labels_and_health() -> None:
    raw = {
        "Name": "/c",
        "RestartCount": 4,
        "State": {"Status": "running", "Health": {"Status": "unhealthy"}},
        "Config": {"Labels": {"autoheal": "true", "x": "y"}},
        "HostConfig": {"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 5}, "AutoRemove": True},
    }
    found = parse_inspect(raw)
    assert (found.restart_policy, found.restart_count, found.auto_remove) == ("on-failure:5", 4, True)
    assert (found.health, found.autoheal) == ("unhealthy", True)
    assert ("x", "y") in found.labels
    plain = parse_inspect({"Name": "/c", "HostConfig": {"RestartPolicy": {"Name": ""}}})
    assert (plain.restart_policy, plain.autoheal) == ("no", False)
    assert parse_inspect({"Name": "/c"}).restart_policy == ""
    off = parse_inspect({"Name": "/c", "Config": {"Labels": {"autoheal": "false"}}})
    assert off.autoheal is False


def test_secrets_in_arguments_are_not_kept() -> None:
    found = parse_inspect({"Name": "/c", "Args": ["--api-key", "s3cret", "--port", "1"]})
    assert "s3cret" not in repr(found)


def test_exits_are_explained_again_when_events_come() -> None:
    dead = made("c", state=ContainerState.EXITED, exit_code=137, finished_at=71.0)
    assert "not recorded" in with_exit(dead, ()).exit_meaning
    events = [
        ContainerEvent(61.0, "kill", dead.id, "c", None, 15),
        ContainerEvent(71.0, "kill", dead.id, "c", None, 9),
        ContainerEvent(71.1, "die", dead.id, "c", 137),
    ]
    assert "stop timeout" in with_exit(dead, events).exit_meaning
    assert with_exit(dead, events).exit_unasked is False
    assert with_exit(replace(dead, exit_code=139), events[2:]).exit_unasked is True
    assert classify_exit(made("c")) is None
    assert classify_exit(gone("x")) is None
    assert classify_exit(made("c", state=ContainerState.CREATED)) is None
    again = classify_exit(made("c", state=ContainerState.RESTARTING, exit_code=1))
    assert again is not None and again.cause == "failed with exit 1"


EXITED = {"state": ContainerState.EXITED}


def test_who_owns_the_port_serves_whatever_the_names_say() -> None:
    old = made("dsv41-BOUND-REF", **EXITED, finished_at=9e9)
    new = made("dsv41-RETIRED-REF")
    other = made("other", ports=(30001,))
    assert serving_container([old, other, new], 30006, "dsv41-*") is new
    assert serving_container([old, other, new], 30006) is new


def test_an_owner_outside_the_glob_is_still_the_owner() -> None:
    stranger = made("stranger")
    assert serving_container([made("dsv41-x", **EXITED), stranger], 30006, "dsv41-*") is stranger


def test_a_paused_owner_is_the_owner() -> None:
    paused = made("c", state=ContainerState.PAUSED)
    assert serving_container([paused, made("d", **EXITED)], 30006) is paused


def test_of_two_owners_the_engine_before_the_proxy() -> None:
    proxy = made("proxy", engine=EngineKind.UNKNOWN, started_at=9e9)
    engine = made("engine")
    assert serving_container([proxy, engine], 30006) is engine


def test_with_none_up_the_one_that_lived_last() -> None:
    first = made("a", **EXITED, finished_at=1e9, started_at=5e8)
    last = made("b", **EXITED, finished_at=2e9, started_at=6e8)
    fresh = made("c", state=ContainerState.CREATED, started_at=None, created_at=1.5e9)
    assert serving_container([first, last, fresh], 30006) is last
    crashing = made("d", state=ContainerState.RESTARTING, finished_at=1e9)
    assert serving_container([first, last, crashing], 30006) is crashing


def test_a_way_back_that_did_not_come_up_has_not_taken_the_lanes_place() -> None:
    """It ended last, and what served before is still what the lane is: relaunched, it comes again; rolled back, not."""
    served = made("dsv41-v21-BOUND-REF", **EXITED)
    tried = replace(made("dsv41-v20-RETIRED-REF", **EXITED), finished_at=(served.finished_at or 0.0) + 60)
    assert serving_container([served, tried], 30006) is served
    up = replace(tried, state=ContainerState.RUNNING)
    assert serving_container([served, up], 30006) is up, "once it is up it serves, whatever it is called"


def test_another_lane_on_the_host_is_not_this_lane() -> None:
    assert serving_container([made("glm", ports=(30001,))], 30006) is None
    assert serving_container([made("glm", ports=(30001,))], 30006, "dsv41-*") is None
    assert serving_container([], 30006) is None


def test_a_worker_rank_without_a_port() -> None:
    worker = made("vllm_dsv41", ports=())
    assert serving_container([worker, made("nginx", ports=(), engine=EngineKind.UNKNOWN)], 8000) is worker
    assert serving_container([worker, made("second", ports=())], 8000) is None


@pytest.mark.parametrize("raw", [{}, {"message": "No such container: x"}, {"State": {}}])
def test_what_is_no_container(raw: dict[str, Any]) -> None:
    with pytest.raises(ContainersUnreadable):
        parse_inspect(raw)
    with pytest.raises(ContainersUnreadable):
        parse_list_row(raw)


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
KEYS = "State Mounts Args Path Config HostConfig NetworkSettings Image Created Names Ports".split()


@given(st.dictionaries(st.sampled_from(KEYS), HOSTILE), st.text(min_size=1, max_size=40), HOSTILE)
def test_any_shape_is_read_and_every_text_is_safe(raw: dict[str, Any], name: str, status: Any) -> None:
    for found in (
        parse_inspect({**raw, "Id": "a" * 64, "Name": name, "State": status}),
        parse_list_row({**raw, "Id": "a" * 64, "State": status, "Labels": raw, "Status": name}),
    ):
        texts = [found.name, found.image, found.exit_meaning, found.error, found.served_name, found.revision_source]
        texts += [*found.args, *(text for mount in found.mounts for text in (mount.source, mount.target))]
        texts += [text for pair in found.labels for text in pair]
        assert all(text.isprintable() for text in texts)


@given(st.text(max_size=200), st.text(max_size=200))
def test_control_characters_never_reach_a_field(name: str, argument: str) -> None:
    raw = {"Id": "a", "Name": f"/{name}", "Args": [argument, "\x1b]52;c;x\x07--port"], "Config": {"Image": name}}
    found = parse_inspect(raw)
    assert "\x1b" not in repr((found.name, found.args, found.image))


def test_the_environment_is_safe_bounded_and_without_secrets() -> None:
    env = ["NCCL_IB_HCA=rocep1s0f0", "HF_TOKEN=hf_abc", "ODD=\x1b[31mred", "EMPTY=", "BARE", 7, "A=b=c"]
    found = parse_inspect({"Id": "1", "Config": {"Env": env}})
    assert found.env == (
        ("NCCL_IB_HCA", "rocep1s0f0"),
        ("HF_TOKEN", "***"),
        ("ODD", "red"),
        ("EMPTY", ""),
        ("BARE", ""),
        ("A", "b=c"),
    )
    assert len(parse_inspect({"Id": "1", "Config": {"Env": ["A=b"] * 999}}).env) == 256
    assert parse_inspect({"Id": "1", "Config": {"Env": "A=b"}}).env == ()
    assert parse_inspect({"Id": "1"}).env == ()
