"""What an exit means: code, OOM flag and the events before it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.exits import (
    SIGNALS,
    ContainerEvent,
    Exit,
    explain_exit,
    last_run,
    parse_event,
    parse_events,
    rfc3339,
)

ID = "ab" * 32


def event(time: float, action: str, *, signal: int | None = None, code: int | None = None) -> ContainerEvent:
    return ContainerEvent(time, action, ID, "c", code, signal)


STOP = (event(10, "kill", signal=15), event(12, "die", code=0), event(12, "stop"))
KILLED_STOP = (event(10, "kill", signal=15), event(70, "kill", signal=9), event(71, "die"), event(71, "stop"))
DEATH = (event(12, "die", code=0),)


@pytest.mark.parametrize(
    ("code", "oom", "events", "cause", "crash"),
    [
        pytest.param(137, False, KILLED_STOP, "killed after stop timeout", False, id="stop timed out"),
        pytest.param(137, False, (event(1, "stop"),), "killed after stop timeout", False, id="stop alone"),
        pytest.param(137, True, KILLED_STOP, "OOM-killed", True, id="oom wins"),
        pytest.param(137, None, (event(1, "oom"),), "OOM-killed", True, id="oom event"),
        pytest.param(1, True, (), "OOM-killed", True, id="a child was oom-killed"),
        pytest.param(137, False, (event(1, "kill", signal=9),), "killed by docker kill", False, id="docker kill"),
        pytest.param(137, False, (event(1, "die"),), "SIGKILL, cause not recorded", None, id="from outside"),
        pytest.param(137, None, (), "SIGKILL, cause not recorded", None, id="nothing known"),
        pytest.param(143, False, STOP, "stopped by SIGTERM", False, id="term asked"),
        pytest.param(143, False, (), "stopped by SIGTERM", None, id="term"),
        pytest.param(130, False, (), "stopped by SIGINT", None, id="int"),
        pytest.param(139, False, (), "crashed by SIGSEGV", True, id="segv"),
        pytest.param(134, False, (), "crashed by SIGABRT", True, id="abort"),
        pytest.param(135, False, (), "crashed by SIGBUS", True, id="bus"),
        pytest.param(165, False, (), "crashed by signal 37", True, id="unnamed signal"),
        pytest.param(1, False, (), "failed with exit 1", True, id="error"),
        pytest.param(125, False, (), "Docker could not run it", True, id="125"),
        pytest.param(126, False, (), "command cannot be executed", True, id="126"),
        pytest.param(127, False, (), "command not found", True, id="127"),
        pytest.param(128, False, (), "start failed", True, id="128"),
        pytest.param(255, False, (), "exit 255", None, id="255"),
        pytest.param(0, False, STOP, "stopped", False, id="engine stopped"),
        pytest.param(0, False, DEATH, "crash or unasked exit", True, id="engine exits 0 by itself"),
        pytest.param(0, False, (), "exit 0, no stop on record", None, id="engine exited 0, nothing known"),
        pytest.param(None, None, (), "cause not recorded", None, id="no code"),
    ],
)
def test_causes_of_an_engine(
    code: int | None, oom: bool | None, events: tuple[ContainerEvent, ...], cause: str, crash: bool | None
) -> None:
    found = explain_exit(code, oom, engine=True, events=events)
    assert (found.cause, found.crash) == (cause, crash)
    assert found.words


def test_exit_0_of_an_engine_always_names_the_crash_unless_a_stop_was_seen() -> None:
    assert "engine exits 0 on fatal error" in explain_exit(0, False, engine=True, events=DEATH).words
    assert "engine exits 0 on fatal error" in explain_exit(0, False, engine=True).words
    assert "crash" not in explain_exit(0, False, engine=True, events=STOP).words


def test_exit_0_of_anything_else_is_an_end() -> None:
    assert explain_exit(0, False, engine=False) == Exit("finished", "finished, exit 0", False)


def test_the_grace_is_measured() -> None:
    assert explain_exit(137, False, engine=True, events=KILLED_STOP).grace == 60.0


def test_docker_words_are_added() -> None:
    found = explain_exit(128, False, engine=True, error="could not select device driver")
    assert found.words == "its start failed, exit 128: could not select device driver"


@given(
    st.none() | st.integers(-(2**31), 2**31),
    st.none() | st.booleans(),
    st.booleans(),
    st.lists(
        st.builds(
            event,
            st.floats(0, 1e10),
            st.sampled_from(["kill", "die", "stop", "oom", "start", "restart"]),
            signal=st.none() | st.sampled_from(sorted(SIGNALS)),
        ),
        max_size=8,
    ),
)
def test_every_exit_has_words_and_no_137_is_oom_without_proof(
    code: int | None, oom: bool | None, engine: bool, events: list[ContainerEvent]
) -> None:
    found = explain_exit(code, oom, engine=engine, events=events)
    assert found.cause and found.words
    if not oom and not any(item.action == "oom" for item in events):
        assert "OOM-killed" not in found.cause
    if found.grace is not None:
        assert found.grace >= 0


def test_only_the_last_run_counts() -> None:
    first = [event(1, "start"), event(2, "oom"), event(3, "die")]
    second = [event(4, "start"), event(9, "kill", signal=15), event(9.5, "die"), event(9.6, "stop")]
    assert [item.time for item in last_run(first + second, ID, "c")] == [4, 9, 9.5, 9.6]
    assert [item.time for item in last_run([*first, event(4, "start")], ID, "c")] == [1, 2, 3]


def test_events_of_another_end_do_not_explain_this_one() -> None:
    events = [event(1, "start"), event(2, "kill", signal=15), event(3, "die")]
    assert last_run(events, ID, "c", finished_at=3.2) == tuple(events)
    assert last_run(events, ID, "c", finished_at=600.0) == ()
    assert last_run(events[:2], ID, "c", finished_at=600.0) == ()


def test_events_of_other_containers_are_left_out() -> None:
    other = ContainerEvent(5, "die", "cd" * 32, "c")
    assert last_run([other], ID, "c") == ()
    assert last_run([ContainerEvent(5, "die", ID[:12], "renamed")], ID, "c") != ()
    assert last_run([ContainerEvent(5, "die", "", "c")], ID, "c") != ()


def test_a_real_event_of_the_api() -> None:
    raw = {
        "status": "die",
        "id": ID,
        "from": "vllm/vllm-openai:x",
        "Type": "container",
        "Action": "die",
        "Actor": {"ID": ID, "Attributes": {"exitCode": "137", "image": "x", "name": "sgldsv41"}},
        "scope": "local",
        "time": 1792314611,
        "timeNano": 1792314611500000000,
    }
    assert parse_event(raw) == ContainerEvent(1792314611.5, "die", ID, "sgldsv41", 137)


@pytest.mark.parametrize(
    "raw",
    [
        {"Type": "network", "Action": "connect"},
        {"Type": "container", "Action": "exec_create: /bin/sh -c curl"},
        {"Type": "container", "Action": "exec_die"},
        {"Type": "container"},
        {"Type": "container", "Action": 3},
        {},
    ],
)
def test_what_is_no_event_of_a_container(raw: dict[str, object]) -> None:
    assert parse_event(raw) is None


def test_health_is_parted_from_its_action() -> None:
    found = parse_event({"Action": "health_status: unhealthy", "Actor": {"ID": ID}, "time": 5})
    assert found is not None
    assert (found.action, found.health, found.time) == ("health_status", "unhealthy", 5.0)


def test_text_of_docker_events() -> None:
    text = (
        f"2026-10-18T09:10:10.123456789+02:00 container kill {ID} (image=vllm/x, name=sgldsv41, signal=9)\n"
        f"2026-10-18T09:10:11Z container exec_start: sh {ID} (name=sgldsv41)\n"
        "2026-10-18T09:10:12Z container health_status: unhealthy sgldsv41\n"
        "2026-10-18T09:10:13Z network connect x\n"
        "no event at all\n"
    )
    found = parse_events(text)
    assert [(item.action, item.name, item.signal) for item in found] == [
        ("kill", "sgldsv41", 9),
        ("health_status", "sgldsv41", None),
    ]
    assert found[0].id == ID
    assert found[0].time == pytest.approx(1_792_307_410.123456)


def test_json_lines_of_docker_events() -> None:
    rows = [
        {"Type": "container", "Action": "kill", "Actor": {"ID": ID, "Attributes": {"signal": "SIGTERM"}}, "time": 1}
    ]
    found = parse_events("\n".join(json.dumps(row) for row in rows) + "\n{broken\n[]\n")
    assert [item.signal for item in found] == [15]


@given(st.text(max_size=300))
def test_any_text_is_read_as_events(text: str) -> None:
    for item in parse_events(text):
        assert item.action.isprintable() and item.name.isprintable()


@given(st.dictionaries(st.sampled_from(["Type", "Action", "Actor", "time", "timeNano", "id"]), st.from_type(object)))
def test_any_object_is_read_as_an_event(raw: dict[str, object]) -> None:
    found = parse_event(raw)
    assert found is None or found.action.isprintable()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-10-18T09:00:00Z", 1_792_314_000.0),
        ("2026-10-18T09:00:00.482915301Z", 1_792_314_000.482915),
        ("2026-10-18T11:00:00+02:00", 1_792_314_000.0),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", 253_402_300_799.0),
        ("yesterday", None),
        ("", None),
        (None, None),
        (5, None),
        ("2" * 100, None),
    ],
)
def test_times(text: object, seconds: float | None) -> None:
    assert rfc3339(text) == (None if seconds is None else pytest.approx(seconds, abs=1e-6))


@pytest.mark.parametrize("time", [1e15, 1e19, -1, True, "5", None])
def test_an_event_time_that_no_calendar_holds_is_unknown(time: object) -> None:
    found = parse_event({"Action": "die", "Actor": {"ID": ID}, "time": time})
    assert found is not None and found.time == 0.0
