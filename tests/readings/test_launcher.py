"""What became of a launch: the truth behind a launcher's exit code, log and last line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.launcher import LaunchKind, LaunchOutcome, WatchdogAfter, read_launcher

FLEET = Path(__file__).parents[1] / "data" / "fleet"
LOG = "/home/alice/sgl-dsv41-logs/dsv41-sgl-relaunch-094103.log"
DOWN = f"— the fleet is DOWN and the watchdog is DISARMED; fix the cause, then run relaunch.sh again (log: {LOG})"
BEGIN = "relaunch start 09:41:03\nwatchdog 48211 disarmed\n"
PREFLIGHT = "== preflight\n" + "".join(f"  rank {rank}: image + overlay + engram rows OK\n" for rank in range(4))
FREE = "".join(f"  rank {rank}: GPU free\n" for rank in range(4))
LAUNCHED = "".join(f"  rank {rank} launched\n" for rank in (3, 2, 1, 0))
UP = "== launched: head API http://192.0.2.11:8210 (health: /health); follow: docker logs -f sgldsv41\n"
KEYS = ("kind", "touched", "watchdog", "launched", "failed")


def text(name: str) -> str:
    return (FLEET / name).read_text()


def facts(found: LaunchOutcome) -> tuple[object, ...]:
    return tuple(getattr(found, key) for key in KEYS)


def test_a_relaunch_that_serves() -> None:
    log = text("relaunch.rendered.log")
    rows = log.splitlines()
    terminal = "\n".join([*rows[:2], *rows[-4:]])
    wanted = LaunchOutcome(
        LaunchKind.SERVING,
        "healthy after 575 s; the watchdog was started and arms itself at its first good check",
        True,
        WatchdogAfter.STARTED,
        0,
        (3, 2, 1, 0),
        seconds=575.0,
    )
    assert read_launcher(0, terminal, log) == wanted
    assert read_launcher(0, log) == wanted


def test_a_preflight_that_failed_stopped_nothing_whatever_the_last_line_says() -> None:
    log = text("relaunch.FAIL-preflight.rendered.log")
    terminal = BEGIN + f"launch failed {DOWN}\n"
    assert read_launcher(1, terminal, log) == LaunchOutcome(
        LaunchKind.REFUSED,
        "the preflight failed (rank 2: rows-MISSING): nothing was stopped or started, so the engine that served before "
        "still does; the watchdog is disarmed (its last line says that the fleet is DOWN: it is not)",
        False,
        WatchdogAfter.DISARMED,
        1,
        failed=("rank 2: rows-MISSING",),
        log=LOG,
        says=f"launch failed {DOWN}",
    )


def test_without_the_log_the_terminal_does_not_tell_whether_anything_was_stopped() -> None:
    found = read_launcher(1, BEGIN + f"launch failed {DOWN}\n")
    assert facts(found) == (LaunchKind.UNKNOWN, None, WatchdogAfter.DISARMED, (), ())
    words = f"the launch failed: its log {LOG} says whether anything was stopped; the watchdog is disarmed"
    assert (found.words, found.log) == (words, LOG)


def test_what_the_preflight_names() -> None:
    log = BEGIN + (
        "== preflight\n"
        "  rank 0: image-MISSING overlay-MISMATCH rows-ok — image x (docker pull it) / engram rows /y\n"
        "  rank 3: unreachable (bob@192.0.2.14): ssh: No route to host\n"
        "ABORT preflight (nothing was stopped or started)\n"
    )
    found = read_launcher(1, "", log)
    assert found.failed == (
        "rank 0: image-MISSING, overlay-MISMATCH",
        "rank 3: unreachable (bob@192.0.2.14): ssh: No route to host",
    )


def test_a_former_stack_that_was_stopped_first_may_be_what_served() -> None:
    log = BEGIN + "Stopping glm53 ... done\n" + text("relaunch.FAIL-preflight.rendered.log").split("\n", 2)[2]
    found = read_launcher(1, "", log)
    assert facts(found) == (
        LaunchKind.REFUSED,
        None,
        WatchdogAfter.DISARMED,
        (),
        ("rank 2: rows-MISSING",),
    )
    assert "PREVIOUS_STACK_STOP ran before" in found.words and found.says == ""


@pytest.mark.parametrize(
    ("code", "terminal", "log", "wanted", "words"),
    [
        (
            1,
            "ABORT: cannot write to LOG_DIR=/x (fleet.env)\n",
            "",
            (LaunchKind.REFUSED, False, WatchdogAfter.UNTOUCHED, (), ()),
            "it gave up at once (cannot write to LOG_DIR=/x (fleet.env)): nothing was stopped or started, "
            "so the engine that served before still does",
        ),
        (
            1,
            BEGIN + f"launch failed {DOWN}\n",
            BEGIN + "ABORT: rank 2: cannot ssh to bob@192.0.2.13: no route\n" + f"launch failed {DOWN}\n",
            (LaunchKind.REFUSED, False, WatchdogAfter.DISARMED, (), ()),
            "it gave up at once (rank 2: cannot ssh to bob@192.0.2.13: no route): nothing was stopped or started, so "
            "the engine that served before still does; the watchdog is disarmed (its last line says that the fleet is "
            "DOWN: it is not)",
        ),
        (
            1,
            "",
            BEGIN
            + PREFLIGHT
            + "  rank 0: GPU busy (1 ), waiting\nABORT: rank 0 GPU still busy\n"
            + f"launch failed {DOWN}",
            (LaunchKind.CLEARED, True, WatchdogAfter.DISARMED, (), ("rank 0: GPU still busy",)),
            "the old containers are removed, rank 0: GPU still busy; none of the new ones was started; "
            "the watchdog is disarmed",
        ),
        (
            1,
            "",
            BEGIN + PREFLIGHT + FREE + "  rank 3 launched\nrank 2 launch FAILED\n" + f"launch failed {DOWN}",
            (LaunchKind.CLEARED, True, WatchdogAfter.DISARMED, (3,), ("rank 2: could not be started",)),
            "the old containers are removed, rank 2: could not be started; launched and left running: rank 3; "
            "the watchdog is disarmed",
        ),
        (
            2,
            "",
            BEGIN
            + PREFLIGHT
            + FREE
            + LAUNCHED
            + UP
            + f"not healthy after 40 min (docker logs sgldsv41 on each node) {DOWN}",
            (LaunchKind.TIMED_OUT, True, WatchdogAfter.DISARMED, (3, 2, 1, 0), ()),
            "not healthy after 40 min; the containers still run: their logs say how far they came; "
            "the watchdog is disarmed",
        ),
        (
            3,
            "",
            BEGIN + PREFLIGHT + FREE + LAUNCHED + UP + f"head container exited 09:44:01 (docker logs sgldsv41) {DOWN}",
            (LaunchKind.DIED, True, WatchdogAfter.DISARMED, (3, 2, 1, 0), ("rank 0: exited",)),
            "the head's container ended during the boot; those of the other ranks may still run; "
            "the watchdog is disarmed",
        ),
        (
            None,
            BEGIN,
            BEGIN + PREFLIGHT + FREE + LAUNCHED + UP,
            (LaunchKind.UNKNOWN, True, WatchdogAfter.DISARMED, (3, 2, 1, 0), ()),
            "all ranks were launched and nothing tells whether they came up; the watchdog is disarmed",
        ),
    ],
    ids=["no log folder", "a rank out of reach", "GPU busy", "a rank not started", "exit 2", "exit 3", "cut off"],
)
def test_ends_of_a_relaunch(code: int | None, terminal: str, log: str, wanted: tuple[object, ...], words: str) -> None:
    found = read_launcher(code, terminal, log)
    assert facts(found) == wanted
    assert (found.words, found.exit_code) == (words, code)
    assert bool(found.says) == (found.touched is False and "DOWN" in terminal + log)


def test_a_container_that_ended_while_cluster_sh_waited() -> None:
    found = read_launcher(1, text("cluster-up-FAILED.tsw2k.log"))
    assert facts(found) == (
        LaunchKind.DIED,
        True,
        WatchdogAfter.UNTOUCHED,
        (),
        (
            "node-b: exited",
            "node-b: memguard, MemAvailable 6117 MiB < floor 6 GiB at t+159 s",
            "node-c: memguard, MemAvailable 5871 MiB < floor 6 GiB at t+169 s",
            "node-d: memguard, MemAvailable 6059 MiB < floor 6 GiB at t+166 s",
        ),
    )
    assert found.words == (
        "vllm_dsv41 on node-b ended during the boot: memguard ended the engine on node-b, node-c, node-d; "
        "cluster.sh leaves the other ranks' containers as they are"
    )


def test_cluster_sh_down_and_up() -> None:
    whole = text("cluster-up-down.tsw2k.log")
    found = read_launcher(0, whole)
    assert facts(found) == (LaunchKind.SERVING, True, WatchdogAfter.UNPAUSED, (3, 2, 1, 0), ())
    assert (found.seconds, found.words) == (300.0, "serving after 5 min; the watchdog is no longer paused")
    down = read_launcher(0, "".join(whole.splitlines(keepends=True)[:5]))
    assert facts(down) == (LaunchKind.STOPPED, True, WatchdogAfter.PAUSED, (), ())
    assert down.words == (
        "stopped: node-a, node-d, node-c, node-b, logs in /var/tmp/dsv41-logs/20260918T230005Z; the watchdog is paused"
    )


def test_cluster_sh_that_serves_with_rows_from_elsewhere_leaves_the_watchdog_paused() -> None:
    whole = text("cluster-up-down.tsw2k.log").replace("node-c rank 2: 2 tables", "node-c rank 2: 1 tables")
    found = read_launcher(1, whole)
    failed = ("rank 2 (node-c): rows not read from its own disk",)
    assert facts(found) == (LaunchKind.SERVING, True, WatchdogAfter.PAUSED, (3, 2, 1, 0), failed)
    assert found.words == (
        "serving after 5 min, but rows are not read from the node's own disk on rank 2 (node-c); the watchdog is paused"
    )


@pytest.mark.parametrize(
    ("code", "said", "wanted", "words"),
    [
        (
            3,
            "node-a still has vllm_dsv41; run cluster.sh down first\n",
            (LaunchKind.REFUSED, False, WatchdogAfter.UNTOUCHED, (), ("node-a: still has vllm_dsv41",)),
            "refused: node-a still has vllm_dsv41; nothing was stopped or started",
        ),
        (
            1,
            "PREFLIGHT FAIL [rank 2 node-c]: image x is missing\nrecipe revisions differ across nodes: a b\n",
            (
                LaunchKind.REFUSED,
                False,
                WatchdogAfter.UNTOUCHED,
                (),
                ("rank 2 (node-c): image x is missing", "recipe revisions differ across nodes"),
            ),
            "the preflight failed (rank 2 (node-c): image x is missing; recipe revisions differ across nodes): "
            "nothing was started",
        ),
        (
            5,
            "started vllm_dsv41 rank=3 gid=3\nPREFLIGHT FAIL [rank 2 node-c]: no RoCE GID\n",
            (LaunchKind.CLEARED, True, WatchdogAfter.UNTOUCHED, (3,), ("rank 2 (node-c): no RoCE GID",)),
            "rank 2 (node-c): no RoCE GID: launched and left running: rank 3",
        ),
        (
            1,
            "started vllm_dsv41 rank=3\nwaiting for http://192.0.2.11:8000/health (weights)\nno /health after 60 min\n",
            (LaunchKind.TIMED_OUT, True, WatchdogAfter.UNTOUCHED, (3,), ()),
            "not healthy after 60 min; the containers still run",
        ),
    ],
)
def test_ends_of_cluster_sh_up(code: int, said: str, wanted: tuple[object, ...], words: str) -> None:
    found = read_launcher(code, said)
    assert facts(found) == wanted
    assert found.words == words


def test_a_restore_script_that_serves_and_one_whose_checks_failed() -> None:
    whole = text("vllm-restore-tp4-gb10.log")
    found = read_launcher(0, whole)
    assert facts(found) == (LaunchKind.SERVING, True, WatchdogAfter.UNKNOWN, (2, 0), ())
    assert (found.seconds, found.words) == (672.0, "serving 672 s after it began")
    ended = whole.split("=== prelaunch-quick done")[0] + "=== prelaunch-quick done 02:16:17: FAIL NODE2 burn\n"
    found = read_launcher(1, ended)
    assert facts(found) == (LaunchKind.CLEARED, True, WatchdogAfter.UNKNOWN, (), ())
    assert found.words == (
        "the checks before the launch failed (FAIL NODE2 burn); stopped before that: head, node1, node2, node3"
    )


def test_a_stop_names_its_ranks_and_an_armed_watchdog() -> None:
    note = "NOTE: the fleet watchdog (pid 12) is armed and will relaunch production within minutes; kill it first\n"
    found = read_launcher(0, note + "  stopped rank 0\n  rank 1: nothing to stop\n  stopped rank 2\n  stopped rank 3\n")
    assert facts(found) == (LaunchKind.STOPPED, True, WatchdogAfter.UNTOUCHED, (), ())
    assert found.words == "stopped: rank 0, 2, 3; an armed watchdog will start it again within minutes"
    found = read_launcher(1, "ABORT: rank 2: cannot ssh to bob@192.0.2.13: timed out\n")
    assert (found.kind, found.touched) == (LaunchKind.REFUSED, False)


def test_words_that_nobody_knows() -> None:
    found = read_launcher(7, "segfault\x1b[31m at 0\n")
    assert found.kind is LaunchKind.UNKNOWN
    assert found.words == "what the launcher did is not known: it ended with exit 7, its last line: segfault at 0"
    assert read_launcher(None, "").words == (
        "what the launcher did is not known: its exit code is not known and it said nothing"
    )


PARTS = [*text("relaunch.rendered.log").splitlines(), *text("relaunch.FAIL-preflight.rendered.log").splitlines()]
PARTS += [*text("cluster-up-down.tsw2k.log").splitlines()[:22], *text("cluster-up-FAILED.tsw2k.log").splitlines()]
PARTS += ["=== restore boot 1 01:02:03", "SERVING 99:99:99", "\x1b[2J", "ABORT: \x07", "rank 9 launch FAILED"]


@given(
    st.one_of(st.none(), st.integers(-15, 255)),
    st.lists(st.sampled_from(PARTS), max_size=12),
    st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=20)), max_size=12),
)
def test_no_text_is_too_odd_and_untouched_is_never_said_of_a_launch(
    code: int | None, terminal: list[str], log: list[str]
) -> None:
    found = read_launcher(code, "\n".join(terminal), "\n".join(log))
    assert found.words.isprintable() and "\n" not in found.words
    assert all(word.isprintable() for word in (*found.failed, found.log, found.says))
    if found.touched is False:
        assert not found.launched
