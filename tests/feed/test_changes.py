"""Events out of two pictures: exactly what happened, in order, and by whom as far as it can be known."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))

import pictures
import upkeep
from pictures import NOW, WALL, container, reading

from console.feed import changes
from console.feed.changes import HostKnown, LaneKnown, container_event, host_changes, lane_changes
from console.fleet.sitetypes import Assignment, Site
from console.readings.container_rows import parse_list_row, tag_moved
from console.readings.containers import Container, Containers, ContainerState, parse_inspect
from console.readings.download import DownloadState
from console.readings.exits import ContainerEvent
from console.readings.facts import HostFacts
from console.readings.rows import RowState
from console.readings.throughput import EngineKind
from console.readings.watchdog import Watchdog, WatchdogState
from console.snapshot import HostView, LaneView, Severity

ID = "ab" * 32
OLD, NEXT = upkeep.SERVING, upkeep.NEXT


def hosts(*views: HostView, told: tuple[tuple[str, float], ...] = ()) -> list[tuple[float, str, str]]:
    """(time, text, severity) of what happened from the first view to the last."""
    known, found = HostKnown(), []
    for view in views:
        known, events = host_changes(known, view, told)
        assert all(event.subject == view.name for event in events)
        found += [(event.wall, event.text, event.severity.value) for event in events]
    return found


def host(*items: Container, problem: str = "", total: int | None = None, **extra: Any) -> HostView:
    view: HostView = pictures.spark4().hosts[0]
    return replace(view, containers=reading(Containers(items, problem, total=total), 1, 5.0), drift=2.0, **extra)


def box(name: str = "sglang-head", ident: str = ID, **extra: Any) -> Container:
    found: Container = container(name, extra.pop("state", ContainerState.RUNNING), id=ident, **extra)
    return found


def facts(boot: str, name: str = "n1", kernel: str = "6.11") -> HostView:
    view: HostView = pictures.spark4().hosts[0]
    return replace(view, facts=reading(HostFacts(name, kernel, boot, 20, "python3"), 1, 60))


def test_the_first_picture_is_no_news() -> None:
    assert hosts(host(box())) == []
    assert lanes(pictures.spark4().lanes[0], pictures.spark4().lanes[0]) == []


def test_a_restarted_host_is_told_once_by_its_boot_id() -> None:
    assert hosts(facts("b0"), facts("b0"), facts("b1"), facts("b1")) == [(0.0, "the host was restarted", "look")]
    assert hosts(facts("b0"), facts("b1", kernel="6.14")) == [
        (0.0, "the host was restarted, kernel 6.11 -> 6.14", "look")
    ]
    assert hosts(facts("b0"), facts("b1", name="n7")) == [
        (0.0, "another machine answers: n7, before it n1", "look")
    ]  # fmt: skip
    assert hosts(facts("b0"), facts(""), facts("b0")) == [], "a host that does not say its boot id was not restarted"


def test_an_end_that_docker_did_not_tell_is_told_with_its_meaning_and_time() -> None:
    ended = box(state=ContainerState.EXITED, exit_code=143, finished_at=WALL - 30, exit_meaning="stopped by SIGTERM")
    assert hosts(host(box()), host(ended)) == [
        (WALL - 32, "container sglang-head ended: stopped by SIGTERM", "look")
    ]  # fmt: skip
    assert hosts(host(box()), host(ended), told=((ID, WALL - 29),)) == [], "Docker's event told it"
    assert hosts(host(box()), host(ended), told=((ID, WALL - 900),)) != [], "that was an earlier end"


def test_a_container_that_went_away_unseen() -> None:
    gone = [(0.0, "container sglang-head is gone", "look")]
    assert hosts(host(box()), host()) == gone
    assert hosts(host(box()), host(), told=((ID, WALL),)) == []
    assert hosts(host(box()), host(total=400)) == [], "not every container is kept"
    assert hosts(host(box()), host(problem="no permission")) == [], "unreadable is not gone"
    assert hosts(host(box()), host(problem="no permission"), host()) == gone


def test_docker_restarts_by_its_policy() -> None:
    again = box(restart_count=3, started_at=WALL - 5)
    assert hosts(host(box(restart_count=2)), host(again), host(again)) == [
        (
            0.0,
            "container sglang-head was restarted by Docker itself (policy unless-stopped), 3 times so far",
            "look",
        )
    ]


def test_an_image_that_moves_under_the_tag_of_what_runs() -> None:
    assert hosts(host(box()), host(box(tag_moved=True)), host(box(tag_moved=True))) == [
        (
            0.0,
            "the tag engine:1 of sglang-head names another image now: its next start takes that one; not by this"
            " console",
            "look",
        )
    ]


def test_another_image_under_the_same_tag_from_start_to_start() -> None:
    one = box(image_id="sha256:" + "1" * 64, created_at=WALL - 900)
    other = box(ident="cd" * 32, image_id="sha256:" + "2" * 64, created_at=WALL)
    told = [
        (
            0.0,
            "container sglang-head runs another image under the same tag engine:1: 111111111111 -> 222222222222",
            "look",
        )
    ]
    removed = ((ID, WALL),)
    assert hosts(host(one), host(other), told=removed) == told
    assert hosts(host(one), host(), host(other), told=removed) == told, "also with nothing there in between"
    assert hosts(host(one), host(replace(other, image="engine:2")), told=removed) == []
    assert hosts(host(one, replace(other, image_id=one.image_id)), told=removed) == []


@pytest.mark.parametrize(
    ("row", "config", "moved"),
    [
        ("vllm/x:1", "vllm/x:1", False),
        ("sha256:" + "1" * 64, "vllm/x:1", True),
        ("1" * 12, "vllm/x:1", True),
        ("sha256:" + "1" * 64, "sha256:" + "1" * 64, False),
        ("docker.io/vllm/x:1", "vllm/x:1", False),
        ("1" * 4, "vllm/x:1", False),
    ],
)
def test_docker_lists_the_bare_id_where_a_tag_has_moved(row: str, config: str, moved: bool) -> None:
    ident = "sha256:" + "1" * 64
    listed = parse_list_row({"Id": ID, "Names": ["/x"], "Image": row, "ImageID": ident})
    inspected = parse_inspect({"Id": ID, "Name": "/x", "Image": ident, "Config": {"Image": config}})
    assert tag_moved(listed, inspected) is moved


def event(action: str, at: float = WALL, **extra: Any) -> ContainerEvent:
    return ContainerEvent(at, action, ID, "sglang-head", **extra)


def said(*events: ContainerEvent, known: Container | None = None) -> list[str]:
    return [container_event(item, events[:at], known).text for at, item in enumerate(events)]


def test_a_container_stopped_underneath() -> None:
    stop = (event("kill", WALL - 9, signal=15), event("die", exit_code=143), event("stop"))
    assert said(*stop) == [
        "container sglang-head was sent SIGTERM through Docker, not by this console",
        "container sglang-head died, exit 143: stopped by SIGTERM",
        "container sglang-head stop",
    ]


def test_a_stop_that_took_too_long_and_a_plain_kill() -> None:
    slow = (event("kill", WALL - 10, signal=15), event("kill", signal=9), event("die", exit_code=137))
    assert said(*slow)[1:] == [
        "container sglang-head was sent SIGKILL through Docker, not by this console",
        "container sglang-head died, exit 137: killed after stop timeout",
    ]
    assert said(event("kill", signal=9), event("die", exit_code=137))[1].endswith("137: killed by docker kill")


def test_deaths_that_nobody_asked_docker_for() -> None:
    assert said(event("die", exit_code=137)) == [
        "container sglang-head died, exit 137: SIGKILL, cause not recorded"
    ]  # fmt: skip
    engine = box(engine=EngineKind.SGLANG)
    assert said(event("die", exit_code=0), known=engine) == [
        "container sglang-head died, exit 0: crash or unasked exit"
    ]  # fmt: skip
    assert said(event("oom"), event("die", exit_code=137))[1].endswith("exit 137: OOM-killed")
    assert said(event("die")) == ["container sglang-head died: cause not recorded"]


def test_other_events_of_docker() -> None:
    several = [event(action) for action in ("create", "start", "pause", "unpause", "destroy", "rename")]
    assert [text.removeprefix("container sglang-head ") for text in said(*several)] == [
        "was made", "started", "paused, not by this console", "goes on, not by this console",
        "was removed, not by this console", "was renamed",
    ]  # fmt: skip
    assert said(event("health_status", health="unhealthy")) == ["container sglang-head: Docker says unhealthy"]
    assert container_event(event("kill", signal=10), (), None).severity is Severity.NORMAL
    assert container_event(event("kill", 0.0, signal=15), (), None).wall == changes.NOW


# lanes


def lanes(*views: LaneView, step: float = 0.0) -> list[tuple[float, str, str, str]]:
    """(time, subject, text, severity) of what happened; each view is `step` seconds after the one before."""
    known, found = LaneKnown(), []
    for number, view in enumerate(views):
        known, events = lane_changes(known, view, now=NOW, wall=WALL + number * step, ahead=2.0)
        found += [(item.wall, item.subject, item.text, item.severity.value) for item in events]
    return found


def lane(**extra: Any) -> LaneView:
    view: LaneView = pictures.spark4().lanes[0]
    return replace(view, **extra)


def site(revision: str = OLD, at: float | None = WALL - 60, **values: Any) -> LaneView:
    base = upkeep.site()
    assignments = (*base.file.assignments, *(Assignment(key, (value,), False, 9) for key, value in values.items()))
    file = replace(base.file, assignments=assignments)
    return lane(site=reading(Site(base.path, file, revision, mtime=at), 1, 5.0))


def test_the_site_file_names_another_revision() -> None:
    assert lanes(site(), site(NEXT), site(NEXT)) == [
        (
            WALL - 62,
            "dsv41",
            "site file changed: revision 9f2c1a7 -> 1bae0e1, the next launch mounts that one, not by this console",
            "look",
        )
    ]


def test_a_site_file_that_names_no_revision_any_more() -> None:
    ((_, _, text, _),) = lanes(site(), site(""))
    assert text == "site file changed: revision 9f2c1a7 -> none, it names none that can be used, not by this console"


def test_other_keys_of_the_site_file_are_named_without_their_values() -> None:
    before, after = site(PORT="1", HF_TOKEN="hf_a"), site(PORT="2", HF_TOKEN="hf_b", at=None)
    assert lanes(before, after) == [
        (0.0, "dsv41", "site file changed: PORT, HF_TOKEN, not by this console", "look")
    ]  # fmt: skip
    many: dict[str, Any] = {f"KEY{number}": "x" for number in range(6)}
    assert lanes(site(), site(OLD, **many))[0][2] == (
        "site file changed: KEY0, KEY1, KEY2, KEY3 and more, not by this console"
    )


def test_a_site_file_that_cannot_be_read_in_between_is_no_change() -> None:
    unread = lane(site=replace(pictures.unread(), error="is not there"))
    assert lanes(site(), unread, site()) == []
    assert len(lanes(site(), unread, site(NEXT))) == 1


def dog(state: WatchdogState, words: str, **extra: Any) -> LaneView:
    found = replace(upkeep.ARMED, state=state, words=words, **extra)
    return lane(watchdog=reading(found, 3, 5.0))


def test_a_watchdog_acts_in_its_own_words() -> None:
    armed = dog(WatchdogState.ARMED, "armed")
    failing = dog(WatchdogState.CHECKING, "check failed 1 of 3: no answer", attempt=(1, 3))
    again = dog(WatchdogState.CHECKING, "check failed 2 of 3: no answer", attempt=(2, 3))
    acts = dog(
        WatchdogState.RECOVERY,
        "in recovery, attempt 1 of 3",
        attempt=(1, 3),
        last_act="recovery attempt 1/3: relaunching",
        last_act_at=WALL - 5,
    )
    ready = {"last_act": "recovery attempt 1/3: relaunching", "last_act_at": WALL - 5}
    assert lanes(armed, failing, failing, again, acts, dog(WatchdogState.ARMED, "armed", **ready)) == [
        (0.0, "dsv41", "watchdog check failed 1 of 3: no answer", "look"),
        (0.0, "dsv41", "watchdog check failed 2 of 3: no answer", "look"),
        (WALL - 7, "dsv41", "watchdog on n1 says: recovery attempt 1/3: relaunching", "look"),
        (0.0, "dsv41", "watchdog in recovery, attempt 1 of 3", "look"),
        (0.0, "dsv41", "watchdog armed", "normal"),
    ]


def test_a_watchdog_that_cannot_be_read_for_a_while_is_still_known() -> None:
    away = lane(watchdog=reading(upkeep.ARMED, 900, 5.0))
    gave_up = dog(WatchdogState.GAVE_UP, "gave up, not protecting")
    assert lanes(dog(WatchdogState.ARMED, "armed"), away, gave_up) == [
        (0.0, "dsv41", "watchdog gave up, not protecting", "act")
    ]


def test_every_state_of_a_watchdog_has_a_severity() -> None:
    for state in WatchdogState:
        if state is not WatchdogState.ARMED:
            ((_, _, text, severity),) = lanes(dog(WatchdogState.ARMED, "armed"), dog(state, f"words of {state}"))
            assert text == f"watchdog words of {state}" and severity in ("normal", "look", "act")


def fetch(state: DownloadState, **extra: Any) -> LaneView:
    return lane(download=reading(upkeep.download(state, **extra), 0.6, 5.0))


def test_a_download_from_its_beginning_to_its_end() -> None:
    done = upkeep.TOTAL / 2**30
    story = [
        fetch(DownloadState.NONE),
        fetch(DownloadState.RUNNING),
        fetch(DownloadState.WAITING),
        fetch(DownloadState.RUNNING),
        fetch(DownloadState.STALLED, why="no new byte for 40 s"),
        fetch(DownloadState.RUNNING),
        fetch(DownloadState.COMPLETE),
    ]
    assert [(subject, text, loud) for _, subject, text, loud in lanes(*story)] == [
        ("n4", "download of 1bae0e1 began, not by this console", "info"),
        ("n4", "download of 1bae0e1 stands still: no new byte for 40 s", "look"),
        ("n4", "download of 1bae0e1 goes on", "normal"),
        ("n4", f"download of 1bae0e1 is complete, {done:.1f} GiB", "info"),
    ]


def test_a_download_that_fails_or_is_given_up() -> None:
    running = fetch(DownloadState.RUNNING)
    assert lanes(running, fetch(DownloadState.FAILED_CAP))[0][2] == (
        "download of 1bae0e1 failed: memory cap: the kernel ended it at 4.0 GiB, 3 times"
    )
    assert lanes(running, fetch(DownloadState.INCOMPLETE))[0][2] == (
        "download of 1bae0e1 ended before it was whole: 4 shards are missing and nobody fetches them"
    )
    assert lanes(fetch(DownloadState.UNKNOWN), running) == [], "it was not read before: nothing began"
    assert lanes(running, fetch(DownloadState.UNKNOWN)) == []


def test_the_main_branch_moves_on() -> None:
    before, after = fetch(DownloadState.RUNNING, upstream=NEXT), fetch(DownloadState.RUNNING, upstream="77aa001" * 5)
    assert lanes(before, fetch(DownloadState.RUNNING), after) == [
        (0.0, "n4", "the main branch moved on: 1bae0e1 -> 77aa001", "normal")
    ]


def rows(state: RowState, share: float = 1.0, *, coming: bool = True) -> LaneView:
    found = replace(upkeep.NEXT_ROWS, copies=(upkeep.copy(0, state, share=share),), for_next=coming)
    return lane(next_rows=reading(found, 0.7, 5.0))


def test_a_row_copy_that_was_seen_to_be_made_is_done() -> None:
    copying = rows(RowState.COPYING, 0.4)
    size = upkeep.SIZE / 2**30
    assert lanes(rows(RowState.WAITS), copying, copying, rows(RowState.UNKNOWN), rows(RowState.READY), step=30.0) == [
        (0.0, "n1", f"row copy of 1bae0e1 is done, {size:.1f} GiB, seen copying for 1m30s", "info")
    ]
    assert lanes(rows(RowState.READY), rows(RowState.READY)) == []
    assert lanes(copying, rows(RowState.HOLES)) == [], "its alarm says so"


def test_a_rank_that_mounts_another_revision() -> None:
    view = lane()
    other = replace(view, ranks=(replace(view.ranks[0], revision=NEXT), *view.ranks[1:]))
    absent = replace(view, ranks=(replace(view.ranks[0], revision=""), *view.ranks[1:]))
    assert lanes(view, absent, view) == []
    assert lanes(view, absent, other) == [(0.0, "dsv41", "n1 mounts another revision: 9f2c1a7 -> 1bae0e1", "look")]


def test_a_watchdog_seen_for_the_first_time_is_no_news() -> None:
    assert lanes(lane(watchdog=None), dog(WatchdogState.GAVE_UP, "gave up")) == []
    assert isinstance(upkeep.ARMED, Watchdog)
