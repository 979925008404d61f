"""Disarm and arm, as plans: who is signalled, what must hold before, what counts as off, when arming is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import scenes
from scenes import HOSTS, ids, spark, step, watchdog

from console.actions.plan import Probe, Verb
from console.actions.plans import toggled
from console.readings.answers import HttpAnswer, Transport
from console.readings.boot import BootProgress
from console.readings.health import LaneState, LaneVerdict
from console.readings.watchdog import WatchdogState

FLIGHT = [f"no launch is under way on {host}" for host in HOSTS]


def words_of(probes: Sequence[Probe]) -> list[str]:
    return [probe.words for probe in probes]


def health(status: int | None, transport: Transport = Transport.ANSWERED) -> object:
    return scenes.pictures.reading(HttpAnswer(scenes.NOW - 1, 0.1, transport, status), 1.0, 10.0)


@pytest.mark.parametrize(
    ("state", "verb"),
    [
        (WatchdogState.ARMED, Verb.DISARM),
        (WatchdogState.STARTING, Verb.DISARM),
        (WatchdogState.BUSY, Verb.DISARM),
        (WatchdogState.CHECKING, Verb.DISARM),
        (WatchdogState.RECOVERY, Verb.DISARM),
        (WatchdogState.UNKNOWN, Verb.DISARM),
        (WatchdogState.TWO, Verb.DISARM),
        (WatchdogState.IN_FLIGHT, Verb.DISARM),
        (WatchdogState.OFF, Verb.ARM),
        (WatchdogState.PAUSED, Verb.ARM),
        (WatchdogState.GAVE_UP, Verb.ARM),
        (WatchdogState.DEAD_LOCK, Verb.ARM),
        (WatchdogState.REUSED_PID, Verb.ARM),
        (WatchdogState.FAILED, Verb.ARM),
    ],
)
def test_the_key_arms_only_what_is_known_not_to_watch(state: WatchdogState, verb: Verb) -> None:
    assert toggled(spark(watchdog=watchdog(state)).view) is verb


def test_the_key_disarms_what_was_never_read() -> None:
    assert toggled(spark(watchdog=scenes.pictures.unread()).view) is Verb.DISARM
    assert toggled(spark(watchdog=None).view) is Verb.DISARM


def test_a_disarm_makes_a_debt_and_an_arm_pays_it() -> None:
    off, on = spark().plan(Verb.DISARM), spark().plan(Verb.ARM)
    assert (off.owes, off.pays, off.target) == ("watchdog", "", "watchdog off")
    assert (on.owes, on.pays, on.target) == ("", "watchdog", "watchdog armed")


def test_a_process_is_ended_by_its_number_lock_and_command_line_together() -> None:
    end = step(spark().plan(Verb.DISARM), "disarm")
    assert end.argv[3:] == (
        "4711", "~/.sgl-watchdog.lock", "[l]aunch/[w]atchdog.[s]h", "[w]atchdog.[s]h", "{evidence}",
    )  # fmt: skip
    assert words_of(end.after) == words_of(end.already) == ["no watchdog runs, its lock is gone"]


def test_a_number_that_is_not_proved_to_be_the_watchdog_is_not_passed_on() -> None:
    """C057: the pid of the log belongs to a weight copy."""
    reused = watchdog(WatchdogState.REUSED_PID, pid=5151, may_signal=False)
    plan = spark(watchdog=reused).plan(Verb.DISARM)
    assert step(plan, "disarm").argv[3] == "-"
    assert not any("5151" in one.argv for one in plan.steps)


@pytest.mark.parametrize("state", [WatchdogState.RECOVERY, WatchdogState.ARMED, WatchdogState.UNKNOWN])
def test_it_is_ended_only_while_no_launch_is_under_way_on_any_rank(state: WatchdogState) -> None:
    plan = spark(watchdog=watchdog(state)).plan(Verb.DISARM)
    assert words_of(step(plan, "disarm").before) == FLIGHT
    told = any("in recovery: it is ended only if no launch is under way" in text for text in plan.warnings)
    assert told is (state is WatchdogState.RECOVERY)


def test_a_pause_flag_says_who_and_needs_no_quiet_launch_but_in_recovery() -> None:
    lane = spark("vllm-cluster-env", watchdog=watchdog(kind="systemd"))
    plan = lane.plan(Verb.DISARM)
    flag = step(plan, "disarm")
    assert flag.argv[3:] == ("/var/tmp/dsv41-watchdog.pause", "paused by ana with laneswap")
    assert flag.before == ()
    assert words_of(flag.after) == ["the watchdog's pause flag is there"]
    recovers = lane.but(watchdog=watchdog(WatchdogState.RECOVERY, kind="systemd")).plan(Verb.DISARM)
    assert words_of(step(recovers, "disarm").before) == FLIGHT


def test_two_of_them_are_told_apart_before_one_is_ended() -> None:
    plan = spark(watchdog=watchdog(WatchdogState.TWO)).plan(Verb.DISARM)
    assert any("only the one that lock or log name is ended" in text for text in plan.warnings)


def test_a_unit_without_a_flag_is_stopped_and_started() -> None:
    lane = spark("vllm-cluster-env", watchdog=watchdog(kind="systemd"))
    guard = lane.recipe.acts.watchdog
    assert guard is not None
    own = lane.recipe_but(watchdog=guard.model_copy(update={"disarm": "unit"}))
    off = step(own.plan(Verb.DISARM), "disarm")
    assert off.argv[3:] == ("stop", "system", "dsv41-fleet.service")
    assert words_of(off.after) == ["dsv41-fleet.service is inactive"]
    assert "dsv41-fleet.service is active" in words_of(step(own.plan(Verb.ARM), "arm").after)


# --- arming ----------------------------------------------------------------------------------------------------------


def test_arming_asks_health_again_right_before_it() -> None:
    plan = spark(watchdog=watchdog(WatchdogState.OFF)).plan(Verb.ARM)
    assert ids(plan) == ["arm", "armed-still"]
    assert words_of(step(plan, "arm").before) == ["health is 200 and deepseek-v4.1-flash is served"]
    assert step(plan, "arm").argv[4:] == (
        "[w]atchdog.[s]h",
        "/home/alice/sglang",
        "bash",
        "/home/alice/sglang/launch/watchdog.sh",
    )
    assert (step(plan, "arm").detached, step(plan, "arm").keeps) == (True, True)


def test_arming_is_refused_while_a_start_is_under_way() -> None:
    booting = BootProgress(10.0, None, None, None, None, None, None, None)
    lane = spark(watchdog=watchdog(WatchdogState.OFF))
    for one in (
        lane.but(boot_progress=booting),
        lane.but(verdict=LaneVerdict(LaneState.BOOTING, "weights")),
    ):
        assert one.plan(Verb.ARM).refused.startswith("a start is under way")
        assert not one.plan(Verb.DISARM).refused


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (health(503), "health answers 503"),
        (health(None, Transport.REFUSED), "health does not answer"),
    ],
)
def test_arming_is_refused_where_its_next_check_would_fail(answer: object, why: str) -> None:
    """C059: a timer whose time has passed fires at once."""
    late = watchdog(WatchdogState.OFF, competing=("dog.timer: was due 17m30s ago, runs at once",))
    plan = spark(watchdog=late, health=answer).plan(Verb.ARM)
    assert plan.refused == f"{why}: its next check would fail; dog.timer: was due 17m30s ago, runs at once"
    down = spark(watchdog=late, verdict=LaneVerdict(LaneState.DOWN, "x")).plan(Verb.ARM)
    assert down.refused.startswith("the lane is down")


def test_arming_with_an_old_health_reading_is_asked_on_the_host() -> None:
    old = scenes.pictures.reading(HttpAnswer(scenes.NOW - 900, 0.1, Transport.ANSWERED, 200), 900, 10.0)
    plan = spark(watchdog=watchdog(WatchdogState.OFF), health=old).plan(Verb.ARM)
    assert not plan.refused
    assert plan.unknown == ("health: not read lately; asked again before anything is armed",)


def test_both_flags_go_when_a_unit_gave_up() -> None:
    """C060: a pause flag alone does not say why nothing watches."""
    lane = spark("vllm-cluster-env", watchdog=watchdog(WatchdogState.GAVE_UP, kind="systemd"))
    assert toggled(lane.view) is Verb.ARM
    arm = step(lane.plan(Verb.ARM), "arm")
    assert arm.argv[3:] == (
        "system", "dsv41-fleet.service", "/var/tmp/dsv41-watchdog.pause", "/var/tmp/dsv41-watchdog.gaveup",
    )  # fmt: skip
    assert len(arm.after) == 3


# --- recipes without -------------------------------------------------------------------------------------------------


def test_a_recipe_that_does_not_say_how_leaves_the_watchdog_alone() -> None:
    lane = spark().recipe_but(watchdog=None)
    for verb in (Verb.DISARM, Verb.ARM):
        assert "does not say how its watchdog is switched" in lane.plan(verb).refused
    for verb in (Verb.STOP, Verb.RELAUNCH):
        assert "would launch it again" in lane.plan(verb).refused
    back = lane.plan(Verb.ROLLBACK)
    assert not back.refused and back.owes == ""
    assert any("would launch it again" in text for text in back.warnings)
    off = lane.but(watchdog=watchdog(WatchdogState.OFF))
    assert not off.plan(Verb.STOP).refused
    assert "disarm" not in ids(off.plan(Verb.STOP))


def test_who_else_acts_is_told_with_every_plan() -> None:
    other = ("glm53-fleet.service is active: it starts its own engine on these GPUs",)
    lane = spark(watchdog=watchdog(competing=other))
    for verb in (Verb.DISARM, Verb.STOP, Verb.RELAUNCH, Verb.ROLLBACK):
        assert other[0] in lane.plan(verb).notes


def test_a_pid_of_another_host_is_never_asked() -> None:
    plan = spark().plan(Verb.DISARM)
    assert {one.host for one in plan.steps} == {"n1"}
    assert replace(plan, steps=()).steps == ()
