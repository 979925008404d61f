"""The way back: which one, what it rests on, how long it takes, and what nobody knows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual import beside

from console.fleet.sitetypes import Site, SiteFile, SiteKind
from console.readings.answers import HttpAnswer, Transport
from console.readings.boot import Boot, BootRecord
from console.readings.containers import Container, Containers, ContainerState, Mount
from console.readings.download import Download, DownloadState
from console.readings.health import LaneState, LaneVerdict
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.lights import ProcessLight
from console.readings.quality import Reading
from console.readings.rows import RowCopies, RowCopy, RowManifest, RowRange, RowState, Tiling
from console.snapshot import LaneView, RankView, Snapshot
from console.wayback import Item, WayBack, Word, lamp_words, way_back

pictures = beside("widgets", "pictures")
NOW, WALL = pictures.NOW, pictures.WALL
GIB = 1024**3
NEW, OLD, NEXT = "9f2c1a7" + "0" * 33, "c0ffee1" + "0" * 33, "1bae0e1" + "0" * 33
HOSTS = ("n1", "n2", "n3", "n4")
SHARE = (RowRange(1, 0, 96_001_542), RowRange(14, 0, 96_004_170))
WHOLE = RowManifest(SHARE, "local").bytes


def items(way: WayBack) -> Mapping[str, Item]:
    return {item.name: item for item in way.items}


def words(way: WayBack) -> dict[str, str]:
    return {item.name: item.word.value for item in way.items}


# --- a container that was kept ---------------------------------------------------------------------------------------


def box(name: str, state: ContainerState = ContainerState.EXITED, **changes: Any) -> Container:
    made: Container = pictures.container(name, state)
    given_: dict[str, Any] = {
        "ports": (30006,),
        "served_name": "dsv41-flash-uva",
        "image": "vllm/vllm-openai:deepseekv41-flash-0909",
        "image_id": "sha256:91c7e04b22aa" + "0" * 52,
        "args": ("vllm", "serve", "/model", "--cpu-offload-gb", "60", "--gpu-memory-utilization", "0.97"),
        "mounts": (Mount("/models/" + name, "/model", True), Mount("/home/ops/cache", "/root/.cache/vllm", False)),
        **changes,
    }
    return replace(made, **given_)


SERVING = box("dsv41-1017-BOUND-REF", ContainerState.RUNNING, revision=NEW)
RETIRED = box("dsv41-v21-RETIRED-REF", revision=OLD, id="5be0a1c9d2f4" + "0" * 52, finished_at=WALL - 1_036_800)


CONSUMERS = ("Milo custom[dsv41]", "Alyx custom[alyx-local]", "Echo on Forge")


def station(*boxes: Container, age: float = 4.0, **changes: Any) -> tuple[Snapshot, LaneView]:
    """A station with these containers, and its lane."""
    base: Snapshot = pictures.station()
    held = pictures.reading(Containers(boxes), age, 5.0)
    host = replace(base.hosts[0], containers=held)
    written = base.lanes[0].lane.model_copy(
        update={"containers": "dsv41-*", "consumers": CONSUMERS, "usual_boot_s": 480.0}
    )
    lane = replace(base.lanes[0], lane=written, boots=(), boot=None, site=None, repos=(), **changes)
    return replace(base, hosts=(host,), lanes=(lane,)), lane


def back(*boxes: Container, **changes: Any) -> WayBack:
    return way_back(*station(*boxes, **changes))


def test_a_kept_container_is_the_way_back() -> None:
    way = back(SERVING, RETIRED)
    assert (way.possible, way.by, way.revision, way.subject) == (True, "container", OLD, RETIRED.name)
    assert (way.parts, way.total, way.boot_basis) == ((("stop", 20.0), ("boot", 480.0)), 500.0, "the recipe's usual")
    assert lamp_words(way) == "BACK ≈8m20s to c0ffee1"
    assert way.last_deed is None
    assert words(way) == {
        "container": "OK",
        "image": "OK",
        "bind sources": "UNKNOWN",
        "old snapshot": "UNKNOWN",
        "port": "OK",
        "memory": "OK",
        "autotune": "UNKNOWN",
        "restart": "OK",
        "gpu": "OK",
        "consumers": "OK",
    }
    found = items(way)
    assert found["container"].text == "dsv41-v21-RETIRED-REF exists, id 5be0a1c9d2f4, exited 0"
    assert found["container"].age == pytest.approx(4.0)
    assert found["image"].text == (
        "vllm/vllm-openai:deepseekv41-flash-0909, id 91c7e04b22aa: kept as long as the container is"
    )
    assert found["bind sources"].text == (
        "1 of 2 seen; /models/dsv41-v21-RETIRED-REF: not looked at, docker start makes a missing one empty"
    )
    assert found["port"].text == "30006 is held by the lane itself, free after its stop"
    assert "--cpu-offload-gb 60" in found["memory"].text
    assert found["restart"].text == "unless-stopped: stays down after a daemon restart"
    assert found["consumers"].text == ("Milo custom[dsv41], Alyx custom[alyx-local], Echo on Forge: same name")


def test_boots_of_that_revision_tell_its_time() -> None:
    boots = (
        BootRecord(1.0, 400.0, revision=OLD),
        BootRecord(2.0, 478.0, revision=OLD),
        BootRecord(3.0, 480.0, revision=OLD),
        BootRecord(4.0, 900.0, revision=NEW),
    )
    snapshot, lane = station(SERVING, RETIRED)
    way = way_back(snapshot, replace(lane, boots=boots))
    assert (way.total, way.boot_basis) == (498.0, "median of 3 boots of c0ffee1")
    way = way_back(snapshot, replace(lane, boots=boots[3:]))
    assert (way.total, way.boot_basis) == (920.0, "median of 1 boot")
    unknown = way_back(snapshot, replace(lane, lane=lane.lane.model_copy(update={"usual_boot_s": None})))
    assert (unknown.total, unknown.parts, lamp_words(unknown)) == (None, (("stop", 20.0),), "BACK to c0ffee1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"state": ContainerState.DEAD, "error": "marked for removal"},
            "container is dead, it cannot be started again",
        ),
        ({"state": ContainerState.REMOVING}, "container is removing, it cannot be started again"),
        ({"auto_remove": True}, "container removes itself when it stops (--rm)"),
    ],
)
def test_a_container_that_cannot_be_started_is_no_way_back(changes: dict[str, Any], why: str) -> None:
    way = back(SERVING, replace(RETIRED, **changes))
    assert way.possible is False
    assert way.why.startswith(why)
    assert lamp_words(way).startswith(f"NO WAY BACK: {why}")
    assert items(way)["container"].word is Word.FAIL


def test_without_a_kept_container_there_is_no_way_back() -> None:
    way = back(SERVING)
    assert (way.possible, way.why, way.total) == (False, "no stopped container is kept", None)
    assert back(SERVING, box("other", ports=(1,), revision=OLD)).possible is False
    tried = box("dsv41-v22-BOOT-FAIL", revision=OLD)
    assert back(SERVING, tried).possible is False


def test_what_was_not_read_leaves_the_way_unknown() -> None:
    snapshot, lane = station()
    refused: Reading[Containers] = Reading("docker", 5.0, error="permission denied")
    for held in (refused, pictures.reading(Containers((), problem="permission: not in the docker group"), 4, 5.0)):
        host = replace(snapshot.hosts[0], containers=held)
        way = way_back(replace(snapshot, hosts=(host,)), lane)
        assert (way.possible, lamp_words(way), words(way)) == (None, "UNKNOWN", {"container": "UNKNOWN"})
        assert "permission" in way.why
    way = back(SERVING, replace(RETIRED, state=ContainerState.UNKNOWN))
    assert (way.possible, lamp_words(way)) == (None, "UNKNOWN")


def test_old_readings_make_their_items_stale() -> None:
    way = back(SERVING, RETIRED, age=41 * 86400)
    assert (way.possible, words(way)["container"], words(way)["restart"]) == (True, "STALE", "STALE")
    assert items(way)["container"].age == pytest.approx(41 * 86400)


@pytest.mark.parametrize(
    ("policy", "word", "text"),
    [
        ("no", Word.OK, "no: stays down"),
        ("unless-stopped", Word.OK, "unless-stopped: stays down"),
        ("always", Word.FAIL, "always: returns by itself after a daemon restart"),
        ("", Word.UNKNOWN, "restart policy unknown"),
    ],
)
def test_a_kept_container_that_returns_by_itself(policy: str, word: Word, text: str) -> None:
    """C034: it would fight the serving one for GPU and port. The way back stays open."""
    way = back(SERVING, replace(RETIRED, restart_policy=policy))
    assert way.possible is True
    assert items(way)["restart"].word is word
    assert items(way)["restart"].text.startswith(text)


def test_of_several_the_best_is_taken() -> None:
    older = replace(RETIRED, id="b" * 64, name="dsv41-v20", finished_at=WALL - 10)
    way = back(SERVING, older, RETIRED)
    assert (way.subject, way.why) == (RETIRED.name, "dsv41-v21-RETIRED-REF, the one that ended last of 2 kept")
    dead = replace(RETIRED, state=ContainerState.DEAD)
    assert back(SERVING, dead, older).subject == "dsv41-v20"
    same = replace(older, revision=NEW)
    other = replace(older, id="c" * 64, name="dsv41-v19", finished_at=WALL - 10_000)
    assert back(SERVING, same, other).subject == "dsv41-v19"


def test_a_port_that_another_holds() -> None:
    serving = replace(SERVING, ports=(30006,))
    stranger = box("glm", ContainerState.RUNNING, revision=NEW, started_at=1.0)
    way = back(serving, RETIRED, stranger)
    assert (items(way)["port"].word, items(way)["port"].text) == (Word.FAIL, "30006 is held by glm")
    assert way.possible is True


def test_a_lane_that_is_down_needs_no_stop() -> None:
    ended = replace(SERVING, state=ContainerState.EXITED)
    refused = pictures.reading(HttpAnswer(NOW - 1, 0.0, Transport.REFUSED), 1, 2.0)
    way = back(ended, RETIRED, health=refused)
    assert way.parts == (("boot", 480.0),)
    assert items(way)["port"].text == "nobody listens on 30006"
    assert items(way)["memory"].text == "340.0 GiB to be had, 60 wanted".replace("60 ", "60.0 ")
    assert items(back(ended, RETIRED))["port"].word is Word.UNKNOWN


def test_memory_that_is_not_there() -> None:
    ended = replace(SERVING, state=ContainerState.EXITED)
    wants = replace(RETIRED, args=("vllm", "--cpu-offload-gb", "400"))
    way = back(ended, wants)
    assert (items(way)["memory"].word, way.possible) == (Word.FAIL, True)
    assert items(back(SERVING, wants))["memory"].word is Word.UNKNOWN
    assert items(back(ended, replace(RETIRED, args=("x", "--cpu-offload-gb", "9e9e9"))))["memory"].word is Word.UNKNOWN


def test_consumers_find_it_under_its_name() -> None:
    other = items(back(SERVING, replace(RETIRED, served_name="old-name")))["consumers"]
    assert (other.word, "serves old-name" in other.text) == (Word.FAIL, True)
    assert items(back(SERVING, replace(RETIRED, served_name="")))["consumers"].word is Word.UNKNOWN
    snapshot, lane = station(SERVING, RETIRED)
    none = way_back(snapshot, replace(lane, lane=lane.lane.model_copy(update={"consumers": ()})))
    assert "consumers" not in items(none)


def test_a_cache_that_the_serving_one_hit() -> None:
    hit = pictures.reading(Boot("vllm", (), None, autotune="hit"), 4, 5.0)
    snapshot, lane = station(SERVING, RETIRED)
    assert items(way_back(snapshot, replace(lane, boot=hit)))["autotune"].word is Word.OK
    missed = pictures.reading(Boot("vllm", (), None, autotune="missed"), 4, 5.0)
    assert items(way_back(snapshot, replace(lane, boot=missed)))["autotune"].word is Word.UNKNOWN
    snapshot, lane = station(SERVING, replace(RETIRED, image_id="sha256:other"))
    assert items(way_back(snapshot, replace(lane, boot=hit)))["autotune"].word is Word.UNKNOWN


@pytest.mark.parametrize(("done", "word"), [(48, Word.OK), (40, Word.FAIL)])
def test_a_listing_shows_the_old_snapshot(done: int, word: Word) -> None:
    root = "/models/hub/models--x--y"
    retired = replace(RETIRED, mounts=(Mount(f"{root}/snapshots/{OLD}", "/model", True),))
    repo = HubRepo(root, (files(OLD, done=done),), (), {}, 0, ())
    snapshot, lane = station(SERVING, retired)
    way = way_back(snapshot, replace(lane, repos=(("station", pictures.reading(repo, 2, 5.0)),)))
    assert items(way)["bind sources"].word is Word.OK
    assert (items(way)["old snapshot"].word, items(way)["old snapshot"].text) == (
        word,
        f"c0ffee1, {done} of 48 shards there",
    )
    assert way.possible is (word is Word.OK)


def test_an_engine_on_the_host_has_no_container_to_go_back_to() -> None:
    snapshot, lane = station(SERVING, RETIRED)
    way = way_back(snapshot, replace(lane, lane=lane.lane.model_copy(update={"runs_in": "host"})))
    assert (way.possible, way.items) == (None, ())


def test_a_site_file_that_nobody_can_find_leaves_it_unknown() -> None:
    snapshot, lane = station(SERVING)
    why = "site file: lanes.dsv41.vars.root is not set"
    way = way_back(snapshot, replace(lane, unfilled=("download: x", why)))
    assert (way.possible, way.why, lamp_words(way)) == (None, why, "UNKNOWN")


# --- a site file -----------------------------------------------------------------------------------------------------


def files(revision: str, done: int = 48, newest: float | None = None, **changes: Any) -> SnapshotFiles:
    values: dict[str, Any] = {
        "revision": revision,
        "entries": 88,
        "resolvable": 88,
        "dangling": (),
        "outside": (),
        "present": 510_000_000_000,
        "shards_done": done,
        "shards_total": 48,
        "newest": newest,
    }
    return SnapshotFiles(**{**values, **changes})


def copy(rank: int, revision: str, state: RowState = RowState.READY, **changes: Any) -> RowCopy:
    values: dict[str, Any] = {
        "manifest": RowManifest(SHARE, "local", revision=revision) if revision else None,
        "present": WHOLE if revision else 0,
        "expected": WHOLE,
        "free": 200 * GIB,
        **changes,
    }
    return RowCopy(rank, HOSTS[rank], values.pop("path", "/rows"), state, state.value, **values)


def copies(*held: RowCopy, revision: str = NEW) -> Reading[RowCopies]:
    found: Reading[RowCopies] = pictures.reading(RowCopies(revision, held, Tiling(())), 0.7, 5.0)
    return found


def site(revision: str) -> Reading[Site]:
    found: Reading[Site] = pictures.reading(
        Site("~/launch/fleet.env", SiteFile(SiteKind.BASH, ()), revision=revision), 3, 5.0
    )
    return found


def repos(*revisions: SnapshotFiles, **by_host: HubRepo | None) -> tuple[tuple[str, Reading[HubRepo]], ...]:
    """The same snapshots on every rank, unless one is given for a host; None for one that was never read."""
    usual = HubRepo("/mnt/dsv41", revisions, (), {}, 0, ())
    held = {host: by_host.get(host, usual) for host in HOSTS}
    return tuple(
        (host, pictures.unread() if repo is None else pictures.reading(repo, 2, 5.0)) for host, repo in held.items()
    )


READY = copies(*(copy(rank, NEW) for rank in range(4)))
BOOTS = (BootRecord(1.0, 560.0, revision=OLD), BootRecord(2.0, 575.0, revision=NEW))


def spark(**changes: Any) -> tuple[Snapshot, LaneView]:
    """Four ranks that serve NEW; OLD lies beside it, complete, and served before."""
    base: Snapshot = pictures.spark4()
    given_: dict[str, Any] = {
        "site": site(NEW),
        "repos": repos(files(NEW, newest=200.0), files(OLD, newest=100.0)),
        "rows": READY,
        "next_rows": None,
        "download": None,
        "boots": BOOTS,
        **changes,
    }
    lane = replace(base.lanes[0], **given_)
    return replace(base, lanes=(lane,)), lane


def site_back(**changes: Any) -> WayBack:
    return way_back(*spark(**changes))


def down(lane: LaneView) -> dict[str, Any]:
    """The fields of a lane whose containers are gone."""
    ranks = tuple(RankView(rank.rank, rank.host, None, "no container", "") for rank in lane.ranks)
    return {"ranks": ranks, "verdict": LaneVerdict(LaneState.DOWN, "no container")}


def test_the_old_revision_beside_the_serving_one() -> None:
    old_rows = copies(*(copy(rank, OLD, RowState.OLD_REVISION) for rank in range(4)))
    way = site_back(next_rows=old_rows)
    assert (way.possible, way.by, way.revision) == (True, "site", OLD)
    assert way.why == "c0ffee1 was served by this lane before"
    assert (way.parts, way.total) == ((("stop", 20.0), ("boot", 560.0)), 580.0)
    assert lamp_words(way) == "BACK ≈9m40s to c0ffee1"
    assert words(way) == {
        "old snapshot": "OK",
        "old rows": "OK",
        "image": "OK",
        "site file": "OK",
        "port": "OK",
        "memory": "OK",
        "dry run": "UNKNOWN",
        "gpu": "OK",
    }
    found = items(way)
    assert found["old snapshot"].text == (
        "c0ffee1, 48 of 48 shards on 4 of 4 ranks, each through its own mount; contents not compared"
    )
    assert found["old rows"].text == "4 of 4 ranks have them in the folders that are looked at"
    assert found["site file"].text == "names 9f2c1a7, to be edited: revision and row folder"
    assert found["old snapshot"].age == pytest.approx(2.0)


def test_rows_that_must_be_built_are_counted_whole() -> None:
    way = site_back()
    assert [(name, round(seconds)) for name, seconds in way.parts] == [("stop", 20), ("rows", 90), ("boot", 560)]
    assert way.total == pytest.approx(670, abs=1)
    assert items(way)["old rows"].text.startswith(
        "0 of 4 ranks have them in the folders that are looked at; to be built:"
    )


def test_the_rank_without_room_is_named() -> None:
    """The published window: 17.5 minutes, eight of them one node's copy."""
    held = [copy(rank, OLD, RowState.OLD_REVISION) for rank in range(4)]
    held[2] = copy(2, NEW, free=12 * GIB)
    boots = (BootRecord(1.0, 575.0, revision=OLD),)
    snapshot, lane = spark(rows=copies(*held), boots=boots)
    lane = replace(lane, **down(lane))
    way = way_back(snapshot, lane)
    assert [(host, round(seconds)) for host, seconds in way.slow] == [("n3", 480)]
    assert way.total == pytest.approx(1055, abs=1)
    assert lamp_words(way) == "BACK ≈17m34s (n3 rows 8m)"
    assert items(way)["old rows"].text.endswith("to be built: n3 ≈7m59s at the stop, no room for two")


def test_copies_that_are_no_copies_of_it() -> None:
    torn = [
        copy(0, OLD, RowState.OLD_MANIFEST),
        copy(1, OLD, RowState.HOLES, present=WHOLE - 1),
        copy(2, OLD, RowState.WRONG_RANGES),
        copy(3, OLD, RowState.SHARDS),
    ]
    assert items(site_back(rows=copies(*torn)))["old rows"].text.startswith("1 of 4 ranks have them")
    unread = [*torn[:3], copy(3, "", RowState.UNKNOWN)]
    way = site_back(rows=copies(*unread))
    assert (items(way)["old rows"].word, way.possible) == (Word.UNKNOWN, True)
    assert items(way)["old rows"].text.endswith("not read: n4")
    assert way.total is None  # it may have to be built: no time is better than one that is too short
    assert not lamp_words(way).startswith("BACK ≈")
    assert "old rows" not in items(site_back(rows=None))


@pytest.mark.parametrize(
    ("view", "text"),
    [
        (lambda: HubRepo("/mnt", (files(NEW),), (), {}, 0, ()), "c0ffee1 n3: not there"),
        (lambda: HubRepo("/mnt", (files(OLD, dangling=("a",)),), (), {}, 0, ()), "c0ffee1 n3: 1 file leads nowhere"),
        (lambda: HubRepo("/mnt", (files(OLD, done=47),), (), {}, 0, ()), "c0ffee1 n3: 47 of 48 shards"),
        (lambda: HubRepo("/mnt", (), (), {}, 0, (), problem="missing"), "c0ffee1 n3: missing"),
    ],
)
def test_one_rank_that_cannot_see_it_shuts_the_way(view: Callable[[], HubRepo], text: str) -> None:
    way = site_back(repos=repos(files(NEW), files(OLD), n3=view()))
    assert (way.possible, way.why) == (False, text)
    assert lamp_words(way) == f"NO WAY BACK: {text}"


def test_one_rank_that_was_not_read_leaves_it_unknown() -> None:
    way = site_back(repos=repos(files(NEW), files(OLD), n3=None))
    assert (way.possible, items(way)["old snapshot"].text) == (None, "c0ffee1 n3: not read")
    numberless = files(OLD, done=0, shards_total=None)
    assert site_back(repos=repos(files(NEW), numberless)).possible is None


def test_no_other_revision() -> None:
    way = site_back(repos=repos(files(NEW)), boots=())
    assert (way.possible, way.why) == (False, "no other revision is kept")
    unread = site_back(repos=repos(n1=None, n2=None, n3=None, n4=None))
    assert (unread.possible, unread.why) == (None, "the checkpoint's folder was not read")
    nowhere = site_back(repos=(), unfilled=("repo: vars.root is not set",))
    assert (nowhere.possible, nowhere.why) == (None, "repo: vars.root is not set")


def test_what_is_only_being_prepared_is_no_way_back() -> None:
    snapshot, lane = spark(repos=repos(files(NEW), files(NEXT, newest=900.0)), boots=BOOTS[1:])
    named = lane.lane.model_copy(update={"next": lane.lane.next.model_copy(update={"revision": NEXT})})
    way = way_back(snapshot, replace(lane, lane=named))
    assert (way.possible, way.why) == (False, "no other revision is kept; 1bae0e1 is only being prepared")
    way = site_back(
        repos=repos(files(NEW), files(NEXT, newest=900.0), files(OLD, newest=1.0)),
        next_rows=copies(revision=NEXT),
        boots=(),
    )
    assert (way.revision, way.why) == (OLD, "c0ffee1 is the newest other revision that is there")


def test_without_boots_the_newest_whole_one_is_taken() -> None:
    others = (files("a" * 40, newest=300.0), files("b" * 40, newest=200.0), files("c" * 40, done=3, newest=900.0))
    assert site_back(repos=repos(files(NEW), *others), boots=()).revision == "a" * 40


def test_while_the_lane_is_down_it_goes_back_to_what_served_last() -> None:
    """In the window: ranks stopped, the site file edited already, the new revision never served."""
    snapshot, lane = spark(boots=(BootRecord(1.0, 560.0, revision=OLD),), site=site(NEW))
    way = way_back(snapshot, replace(lane, **down(lane)))
    assert (way.revision, way.why) == (OLD, "c0ffee1 served last")
    assert way.parts[0][0] == "rows"
    assert (items(way)["image"].word, items(way)["memory"].word) == (Word.UNKNOWN, Word.UNKNOWN)
    snapshot, lane = spark(boots=(), site=site(OLD))
    named = lane.lane.model_copy(update={"next": lane.lane.next.model_copy(update={"revision": NEW})})
    way = way_back(snapshot, replace(lane, lane=named, **down(lane)))
    assert (way.revision, way.why) == (OLD, "the site file still names c0ffee1")
    assert items(way)["site file"].text == "names it already"
    snapshot, lane = spark(boots=(), site=site(NEW))
    assert way_back(snapshot, replace(lane, **down(lane))).revision == OLD


def test_a_site_file_that_was_not_read() -> None:
    way = site_back(site=pictures.unread(error="fleet.env is not there"))
    assert (items(way)["site file"].word, items(way)["site file"].text) == (Word.UNKNOWN, "fleet.env is not there")
    assert items(site_back(site=site("")))["site file"].word is Word.FAIL
    assert site_back(site=site("")).possible is True


def test_different_images_on_the_ranks() -> None:
    snapshot, lane = spark()
    first, *others = lane.ranks
    assert first.container is not None
    moved = replace(first, container=replace(first.container, image_id="sha256:moved"))
    item = items(way_back(snapshot, replace(lane, ranks=(moved, *others))))["image"]
    assert (item.word, item.text) == (Word.FAIL, "2 different ones on 4 ranks")


@pytest.mark.parametrize("picture", pictures.PICTURES)
def test_every_picture_has_an_answer(picture: str) -> None:
    snapshot = pictures.PICTURES[picture]()
    for lane in snapshot.lanes:
        for view in (lane, replace(lane, site=site(NEW))):
            way = way_back(snapshot, view)
            assert lamp_words(way)
            assert (way.possible is False) is any(item.shuts for item in way.items)


STATES = st.sampled_from(list(ContainerState))
BOXES = st.builds(
    lambda name, state, revision, policy, remove: box(
        name, state, revision=revision, restart_policy=policy, auto_remove=remove
    ),
    st.sampled_from(["dsv41-a", "dsv41-b-RETIRED", "other", ""]),
    STATES,
    st.sampled_from(["", OLD, NEW]),
    st.sampled_from(["", "no", "always", "on-failure:3"]),
    st.booleans(),
)


@given(st.lists(BOXES, max_size=4))
def test_any_containers_are_judged(held: list[Container]) -> None:
    way = back(*held)
    assert lamp_words(way)
    assert way.possible is not True or (way.total is not None and way.subject)


# --- what was seen long ago, or in part, proves nothing ---------------------------------------------------------------


CUT = "the listing was cut after 6000 entries"


@pytest.mark.parametrize("problem", [CUT, "no permission", "Input/output error"])
def test_a_folder_that_was_not_read_whole_shuts_no_way(problem: str) -> None:
    part = HubRepo("/mnt", (files(NEW),), (), {}, 0, (), problem=problem)
    way = site_back(repos=repos(files(NEW), files(OLD), n3=part))
    assert (way.possible, items(way)["old snapshot"].text) == (None, f"c0ffee1 n3: {problem}")
    alone = site_back(repos=repos(files(NEW), n3=part), boots=())
    assert (alone.possible, alone.why) == (None, f"the checkpoint's folder was not read: n3 {problem}")


def test_a_folder_that_was_away_when_it_was_last_read_shuts_no_way() -> None:
    gone = HubRepo("/mnt", (), (), {}, 0, (), problem="missing")
    seen = dict(repos(files(NEW), files(OLD), n3=gone))
    old = {**seen, "n3": replace(seen["n3"], down_since=NOW - 1)}
    way = site_back(repos=tuple(old.items()))
    assert (way.possible, items(way)["old snapshot"].word) == (None, Word.UNKNOWN)
    assert items(way)["old snapshot"].text == "c0ffee1 n3: missing, when it was last read"
    assert site_back(repos=tuple(seen.items())).possible is False


def test_an_old_list_of_containers_shuts_no_way() -> None:
    long_ago = 3600.0
    way = back(SERVING, age=long_ago)
    assert (way.possible, way.why) == (None, "no stopped container is kept, when it was last read")
    dead = back(SERVING, replace(RETIRED, state=ContainerState.DEAD), age=long_ago)
    assert (dead.possible, words(dead)["container"]) == (None, "UNKNOWN")
    assert dead.why == "container is dead, it cannot be started again, when it was last read"


def test_a_complete_download_of_the_only_other_revision_is_a_way_back_if_it_is_the_older_one() -> None:
    """After a switch the old checkpoint is the newest that nobody serves: it is not being prepared."""
    done = Download(DownloadState.COMPLETE, "", OLD, "n1", "/mnt/dsv41", None, None, 48, 48)
    got = pictures.reading(done, 2, 5.0)
    way = site_back(boots=(), download=got)
    assert (way.possible, way.revision) == (True, OLD)
    newer = repos(files(NEW, newest=100.0), files(OLD, newest=200.0))
    assert site_back(boots=(), download=got, repos=newer).possible is False
    running = pictures.reading(replace(done, state=DownloadState.RUNNING), 2, 5.0)
    assert site_back(boots=(), download=running).possible is False


def test_the_image_of_ranks_that_are_not_up_is_not_known() -> None:
    snapshot, lane = spark()
    last = RankView(3, HOSTS[3], None, "unknown", "")
    item = items(way_back(snapshot, replace(lane, ranks=(*lane.ranks[:3], last))))["image"]
    assert item.word is Word.UNKNOWN and item.text.endswith("the same on 3 ranks that are up; no container seen on 1")


# --- what was kept ---------------------------------------------------------------------------------------------------


def test_rows_that_were_kept_need_not_be_built() -> None:
    """After a switch the site file names the new row folder alone."""
    kept = copies(*(copy(rank, OLD, path="/rows-old") for rank in range(3)), copy(3, OLD, RowState.HOLES), revision=OLD)
    way = site_back(previous_rows=kept)
    assert items(way)["old rows"].text.startswith(
        "3 of 4 ranks have them in the folders that are looked at; to be built: n4"
    )
    assert way.why == "c0ffee1 is named as the previous one"


def test_what_is_named_as_the_previous_one_is_gone_back_to() -> None:
    other = "b" * 40
    snapshot, lane = spark(repos=repos(files(NEW), files(OLD, newest=1.0), files(other, newest=900.0)), boots=())
    named = lane.lane.model_copy(update={"previous": lane.lane.previous.model_copy(update={"revision": OLD})})
    assert way_back(snapshot, replace(lane, lane=named)).revision == OLD
    for revision in (NEW, "c" * 40):
        named = lane.lane.model_copy(update={"previous": lane.lane.previous.model_copy(update={"revision": revision})})
        assert way_back(snapshot, replace(lane, lane=named)).revision == other


def test_what_is_on_record_goes_before_an_earlier_text_of_the_site_file() -> None:
    """The copy beside the file is of an older edit: the one after it was made by hand, and kept none."""
    other = "b" * 40
    boots = tuple(BootRecord(1000.0 * at, 500.0, revision=one) for at, one in enumerate((other, OLD, NEW), 1))
    there = repos(files(NEW), files(OLD), files(other))
    text = copies(*(copy(rank, other) for rank in range(4)), revision=other)
    assert site_back(repos=there, boots=boots, previous_rows=text).revision == OLD
    assert site_back(repos=there, boots=boots[:1], previous_rows=text).revision == other
    assert site_back(repos=there, boots=boots[:2], previous_rows=text).revision == other, "not up to date"


def test_ranks_that_cannot_be_read_are_not_down() -> None:
    snapshot, lane = spark()
    ranks = tuple(replace(rank, word="unknown", container=None) for rank in lane.ranks)
    process = ProcessLight(4, 0, (), tuple(f"{rank.host}: host unreachable" for rank in ranks))
    lane = replace(lane, ranks=ranks, lights=replace(lane.lights, process=process))
    way = way_back(snapshot, lane)
    assert way.revision == OLD  # and not NEW, which a lane that is down would go back to
    unnamed = replace(lane, site=site(""))
    way = way_back(snapshot, unnamed)
    assert (way.possible, way.why) == (None, "which revision serves is not known: no container was read")
    assert way.items[0].word is Word.UNKNOWN
