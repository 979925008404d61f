"""What a lane's hosts were found to hold, from their raw answers: which are asked for what, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from console.feed import asleep
from console.feed.host import HostFeed
from console.feed.kept import Kept
from console.feed.survey import LaneSurvey
from console.feed.surveyed import Surveyed
from console.fleet.inventory import build
from console.fleet.recipe import apply_recipes, lane_recipes
from console.readings.download import DownloadState
from console.readings.listing import parse_listing
from console.readings.look import Look, LookKind
from console.readings.quality import Reading
from console.readings.rows import RowState
from console.readings.watchdog import WatchdogState

DATA = Path(__file__).parents[1] / "data" / "fleet"
SERVING, OLD = "89abcdef0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef01234567"
HOSTS = ("n0", "n1", "n2", "n3")
NOW = 1_000.0
WALL = 1_760_780_000.0


@dataclass
class Host:
    """What `LaneSurvey` knows of a host: its looks and the answers to them."""

    name: str
    looks: dict[str, Look] = field(default_factory=dict)
    kept: dict[str, Kept[str]] = field(default_factory=dict)
    lost: float | None = None
    booted: float | None = WALL - 86_400 * 9

    def look(self, owner: str, looks: Sequence[Look]) -> None:
        before, self.looks = self.looks, {look.key: look for look in looks}
        for key, look in self.looks.items():  # as `HostFeed`: of another folder nothing is known yet
            if key in before and before[key].kind is LookKind.TREE and before[key].arguments != look.arguments:
                self.kept.pop(key, None)

    def looked(self, key: str) -> Reading[str] | None:
        if key not in self.looks:
            return None
        kept = self.kept.setdefault(key, Kept(f"{self.name}:{key}", self.looks[key].every))
        return kept.reading(self.lost)

    def host_wall(self, now: float) -> float:
        return WALL + (now - NOW)

    def answers(self, key: str, text: str, at: float = NOW) -> None:
        kept = self.kept.setdefault(key, Kept(f"{self.name}:{key}", 5.0))
        kept.put(text, at)


class Fleet:
    """Four hosts of the SGLang family and one lane's survey over them."""

    def __init__(self, **lane: Any) -> None:
        raw: dict[str, Any] = {
            "name": "four",
            "hosts": {name: {"ssh": f"{name}.invalid"} for name in HOSTS},
            "lanes": {
                "dsv41": {
                    "recipe": "sglang-fleet-env",
                    "url": "http://127.0.0.1:8210",
                    "head": "n0",
                    "ranks": list(HOSTS),
                    "vars": {"root": "/home/alice/sglang"},
                    **lane,
                }
            },
        }
        fleet = build(raw)
        self.hosts = {name: Host(name) for name in HOSTS}
        lanes, recipes = apply_recipes(fleet).lanes, lane_recipes(fleet)
        self.survey = LaneSurvey("dsv41", lanes["dsv41"], recipes["dsv41"], cast("dict[str, HostFeed]", self.hosts))

    def view(self, now: float = NOW, serving: str = SERVING) -> Surveyed:
        return self.survey.view(now, dict.fromkeys(HOSTS, serving), {})

    def site(self, text: str | None = None) -> Surveyed:
        raw = (DATA / "fleet.env.sample").read_text() if text is None else text
        self.hosts["n0"].answers("dsv41:site", f"ok size={len(raw)} mtime=1760000000 inode=5\n{raw}")
        return self.view()


def file_answer(text: str, mtime: float = WALL) -> str:
    return f"ok size={len(text)} mtime={mtime:.0f} inode=7\n{text}"


def rows_answer(*, free: int = 200 << 30, present: int = 25_345_200_128, mtime: float = WALL - 90_000) -> str:
    """A copy's folder: both sparse shards, allocated as the ranges of one rank take."""
    head = f"ok free={free} total={4 << 40} device=/dev/nvme0n1p2 fstype=ext4 mount=/\n# root\t/rows\n"
    shards = "".join(
        f"f\t{apparent}\t{present}\t{mtime:.0f}\t66306\t{number}\t1\tmodel-000{number}-of-00048.safetensors\n"
        for number, apparent in ((47, 101_535_150_936), (48, 101_537_926_640))
    )
    return head + shards + f"f\t300\t4096\t{mtime + 1:.0f}\t66306\t9\t1\tengram-local.json\n"


def ready(fleet: Fleet) -> None:
    """Every rank's own copy in place: rank 1 reads the shards."""
    for host, rank in (("n0", 0), ("n2", 2), ("n3", 3)):
        fleet.hosts[host].answers("dsv41:rows", rows_answer())
        manifest = (DATA / f"engram-local.rank{rank}.json").read_text()
        fleet.hosts[host].answers("dsv41:rows.manifest", file_answer(manifest, WALL - 89_000))


def test_before_the_site_file_is_read_only_the_head_is_asked_and_what_is_missing_is_said() -> None:
    fleet = Fleet()
    assert "dsv41:site" in fleet.hosts["n0"].looks
    assert not any("repo" in key or "rows" in key for key in fleet.hosts["n2"].looks)
    found = fleet.view()
    assert found.site is not None and found.site.value is None
    assert any("site file is not read" in words for words in found.unfilled)


def test_the_site_file_says_where_each_rank_has_its_things() -> None:
    fleet = Fleet()
    found = fleet.site()
    assert found.site is not None and found.site.value is not None
    assert found.site.value.revision == OLD
    assert fleet.hosts["n2"].looks["dsv41:repo"].arguments[0] == "/mnt/dsv41"
    assert fleet.hosts["n1"].looks["dsv41:repo"].arguments[0].startswith("/home/alice/.cache/huggingface/hub/models--")
    assert fleet.hosts["n2"].looks["dsv41:rows"].arguments[0] == "/home/bob/dsv41-engram-local"
    assert "dsv41:rows" not in fleet.hosts["n1"].looks
    assert [host for host, _ in found.repos] == list(HOSTS)


def test_a_site_file_that_is_gone_is_said_and_its_places_are_still_looked_at() -> None:
    fleet = Fleet()
    fleet.site()
    fleet.hosts["n0"].answers("dsv41:site", "missing\n", NOW + 5)
    found = fleet.view(NOW + 5)
    assert found.site is not None and found.site.current(NOW + 5) is None
    assert "/home/alice/sglang/launch/fleet.env is not there" in found.site.error
    assert "dsv41:rows" in fleet.hosts["n2"].looks


def test_row_copies_of_all_ranks_tile() -> None:
    fleet = Fleet()
    fleet.site((DATA / "fleet.env.sample").read_text().replace(OLD, SERVING))
    ready(fleet)
    found = fleet.view()
    assert found.rows is not None
    copies = found.rows.current(NOW)
    assert copies is not None
    assert [copy.state for copy in copies.copies] == [RowState.READY, RowState.SHARDS, RowState.READY, RowState.READY]
    assert copies.tiling.ok is True


def test_rows_of_the_old_revision_are_named() -> None:
    fleet = Fleet()
    fleet.site((DATA / "fleet.env.sample").read_text().replace(OLD, SERVING))
    ready(fleet)
    stale = (DATA / "engram-local.rank2.STALE-REVISION.json").read_text()
    fleet.hosts["n2"].answers("dsv41:rows.manifest", file_answer(stale))
    copies = fleet.view().rows
    assert copies is not None and copies.value is not None
    assert copies.value.copies[2].state is RowState.OLD_REVISION
    assert copies.value.copies[2].words == "old revision 01234567, rebuild"


def test_a_rank_whose_host_is_away_is_unknown_and_the_others_stay() -> None:
    fleet = Fleet()
    fleet.site((DATA / "fleet.env.sample").read_text().replace(OLD, SERVING))
    ready(fleet)
    fleet.view()
    fleet.hosts["n3"].lost = NOW + 1
    found = fleet.view(NOW + 2)
    assert found.rows is not None
    copies = found.rows.current(NOW + 2)
    assert copies is not None
    assert [copy.state for copy in copies.copies] == [
        RowState.READY, RowState.SHARDS, RowState.READY, RowState.UNKNOWN,
    ]  # fmt: skip
    assert copies.tiling.ok is None


def test_the_watchdog_of_the_head() -> None:
    fleet = Fleet()
    head = fleet.hosts["n0"]
    log = "\n".join((DATA / "sgl-watchdog.rendered.log").read_text().splitlines()[:3]) + "\n"
    assert fleet.view().watchdog is not None
    head.answers("dsv41:watchdog.log", file_answer(log, WALL - 30))
    head.answers("dsv41:watchdog.lock", file_answer("48211\n"))
    found = fleet.view().watchdog
    assert found is not None and found.value is None, "processes were not looked at yet"
    started = WALL - 7_000
    row = f"48211\t1\tS\t{started:.0f}\t1000\t10\t10\t/bin/bash launch/watchdog.sh\n"
    head.answers("dsv41:watchdog.processes", f"ok clock=100 boot={WALL - 90_000:.0f}\n{row}")
    head.answers("dsv41:watchdog.units", "ok code=0\n")
    for name in ("pause", "gaveup"):
        if f"dsv41:watchdog.{name}" in head.looks:
            head.answers(f"dsv41:watchdog.{name}", "missing\n")
    found = fleet.view().watchdog
    assert found is not None and found.value is not None
    assert found.value.pid == 48211
    assert found.value.state in (WatchdogState.ARMED, WatchdogState.UNKNOWN, WatchdogState.REUSED_PID)
    assert "pid:48211" in head.looks["dsv41:watchdog.processes"].arguments


REPO = "ok free=900000000000 total=4000000000000 device=/dev/sda fstype=ext4 mount=/\n# root\t/r\n"


def repo_answer(size: int) -> str:
    return REPO + f"f\t1000000\t{size}\t{WALL:.0f}\t1\t5\t1\tblobs/{'a' * 64}.0123abcd.incomplete\n"


def test_a_download_is_followed_over_its_looks() -> None:
    fleet = Fleet(next={"revision": SERVING})
    fleet.site()
    holder = fleet.hosts["n1"]
    for step in range(5):
        at = NOW + 5 * step
        holder.answers("dsv41:repo", repo_answer(100_000 * (step + 1)), at)
        holder.answers("dsv41:download.processes", "ok clock=100 boot=1\n", at)
        found = fleet.view(at, OLD)
    assert found.download is not None
    download = found.download.current(NOW + 20)
    assert download is not None
    assert (download.host, download.revision) == ("n1", SERVING)
    assert download.state in (DownloadState.RUNNING, DownloadState.INCOMPLETE)
    assert download.rate == pytest.approx(20_000, rel=0.01)


def test_the_same_answer_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet()
    fleet.site()
    count = 0
    real = parse_listing

    def counted(text: str) -> Any:
        nonlocal count
        count += 1
        return real(text)

    monkeypatch.setattr("console.feed.survey.parse_listing", counted)
    text = repo_answer(100_000)
    for step in range(4):
        fleet.hosts["n1"].answers("dsv41:repo", text, NOW + step)
        fleet.view(NOW + step)
    assert count == 1


def test_a_look_that_failed_is_said_and_its_value_no_longer_counts() -> None:
    fleet = Fleet()
    fleet.site()
    fleet.hosts["n2"].answers("dsv41:repo", REPO)
    assert dict(fleet.view().repos)["n2"].current(NOW) is not None
    fleet.hosts["n2"].kept["dsv41:repo"].fail("looking at /mnt/dsv41 has not answered for 12 s")
    reading = dict(fleet.view(time.monotonic()).repos)["n2"]
    assert reading.current(NOW) is None
    assert "has not answered for 12 s" in reading.error


def test_whether_the_next_copy_fits_is_told_by_the_one_in_use() -> None:
    fleet = Fleet(next={"revision": SERVING, "rows": "dsv41-engram-local-1017"})
    fleet.site()
    ready(fleet)
    for host, free in (("n0", 200 << 30), ("n2", 30 << 30), ("n3", 200 << 30)):
        fleet.hosts[host].answers("dsv41:rows", rows_answer(free=free))
        fleet.hosts[host].answers("dsv41:next", "missing")
        fleet.hosts[host].answers("dsv41:next.manifest", "missing")
    found = fleet.view().next_rows
    assert found is not None and found.value is not None
    copies = {copy.host: copy for copy in found.value.copies}
    assert {host: copy.state for host, copy in copies.items()} == {
        "n0": RowState.WAITS,
        "n1": RowState.SHARDS,
        "n2": RowState.NO_ROOM,
        "n3": RowState.WAITS,
    }
    assert copies["n2"].words == "no room: 48.2 GiB needed, 30.0 free"
    assert copies["n2"].note == "no room for two: delete the old copy (47.2 GiB) at the stop, then build"


def copying(present: int, mtime: float) -> str:
    """A copy's folder while it is being built: no manifest yet."""
    return "\n".join(row for row in rows_answer(present=present, mtime=mtime).split("\n") if "engram-local" not in row)


def rate_of_n2(fleet: Fleet, at: float, present: int) -> float | None:
    host = fleet.hosts["n2"]
    host.answers("dsv41:rows", copying(present, WALL + at - NOW), at)
    host.answers("dsv41:rows.manifest", "missing", at)
    copies = fleet.view(at).rows
    assert copies is not None and copies.value is not None
    return copies.value.copies[2].rate


def test_bytes_of_one_folder_are_no_progress_of_another() -> None:
    fleet = Fleet()
    fleet.site()
    assert rate_of_n2(fleet, NOW, 1 << 30) is None
    assert rate_of_n2(fleet, NOW + 5, 2 << 30) == pytest.approx((2 << 30) / 5)
    fleet.site((DATA / "fleet.env.sample").read_text().replace("dsv41-engram-local", "dsv41-engram-local-1017"))
    assert fleet.hosts["n2"].looks["dsv41:rows"].arguments[0] == "/home/bob/dsv41-engram-local-1017"
    assert rate_of_n2(fleet, NOW + 10, 20 << 30) is None
    assert rate_of_n2(fleet, NOW + 15, 21 << 30) == pytest.approx((2 << 30) / 5)


def test_no_rate_is_told_across_a_sleep_of_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = [0.0]
    monkeypatch.setattr(asleep, "slept_so_far", lambda: slept[0])
    fleet = Fleet(next={"revision": SERVING})
    fleet.site()

    def step(at: float, size: int) -> tuple[float | None, float | None]:
        fleet.hosts["n1"].answers("dsv41:repo", repo_answer(size).replace("\t1000000\t", "\t90000000000\t"), at)
        rows = rate_of_n2(fleet, at, size)
        download = fleet.view(at, OLD).download
        assert download is not None and download.value is not None
        return rows, download.value.rate

    for at in (0, 5, 10):
        step(NOW + at, 100_000 * (at + 5))
    rows, download = step(NOW + 15, 2_000_000)
    assert (rows, download) == pytest.approx((200_000, 100_000))
    slept[0] = 3600.0
    assert step(NOW + 20, 900_000_000) == (None, None), "an hour went by in these five seconds"
    assert step(NOW + 25, 900_100_000)[0] == pytest.approx(2 * 100_000 / 5)
    step(NOW + 30, 900_200_000)
    assert step(NOW + 35, 900_300_000)[1] == pytest.approx(100_000 / 5)


SAMPLE = (DATA / "fleet.env.sample").read_text()
EDITED = SAMPLE.replace(OLD, SERVING).replace("dsv41-engram-local", "dsv41-engram-local-1017")


def previous(fleet: Fleet) -> dict[str, str]:
    """Folders of kept copies that are looked at, by host."""
    looks = {name: host.looks.get("dsv41:previous") for name, host in fleet.hosts.items()}
    return {name: look.arguments[0] for name, look in looks.items() if look is not None}


def test_what_the_site_file_named_before_its_edit_is_still_looked_at() -> None:
    fleet = Fleet()
    fleet.site(SAMPLE)
    assert previous(fleet) == {} and fleet.view().previous_rows is None
    fleet.site(EDITED)
    assert previous(fleet)["n2"] == "/home/bob/dsv41-engram-local" and "n1" not in previous(fleet)
    fleet.hosts["n2"].answers("dsv41:previous", rows_answer())
    fleet.hosts["n2"].answers(
        "dsv41:previous.manifest",
        file_answer((DATA / "engram-local.rank2.STALE-REVISION.json").read_text(), WALL - 89_000),
    )
    found = fleet.view().previous_rows
    assert found is not None and found.value is not None and found.value.revision == OLD
    assert [copy.state for copy in found.value.copies] == [
        RowState.UNKNOWN, RowState.SHARDS, RowState.READY, RowState.UNKNOWN,
    ]  # fmt: skip
    fleet.site(SAMPLE)
    assert previous(fleet)["n2"] == "/home/bob/dsv41-engram-local-1017", "rolled back: now the other way"


@pytest.mark.parametrize(
    "halfway",
    [
        SAMPLE.replace(OLD, SERVING),
        SAMPLE.replace("dsv41-engram-local", "dsv41-engram-local-1017"),
        "# being edited\n",
    ],
)
def test_an_edit_in_two_steps_loses_nothing(halfway: str) -> None:
    fleet = Fleet()
    for text in (SAMPLE, halfway, EDITED):
        fleet.site(text)
    assert previous(fleet)["n2"] == "/home/bob/dsv41-engram-local"


def test_without_an_edit_seen_the_operators_words_tell_what_was_kept() -> None:
    fleet = Fleet(previous={"revision": OLD, "rows": "dsv41-engram-local"})
    fleet.site(EDITED)
    assert previous(fleet)["n2"] == "/home/bob/dsv41-engram-local" and "n1" not in previous(fleet)
    named = Fleet(previous={"revision": OLD, "rows": "dsv41-engram-local"})
    named.site(SAMPLE)
    assert previous(named) == {}, "it is in use, and looked at already"


def beside(*names: str) -> str:
    """The folder of the site file, with these files in it."""
    head = f"ok free={200 << 30} total={4 << 40} device=/dev/sda fstype=ext4 mount=/\n# root\t/launch\n"
    rows = (f"f\t900\t4096\t{WALL:.0f}\t66306\t{at}\t1\t{name}\n" for at, name in enumerate(names, 5))
    return head + "".join(rows)


BAK = "fleet.env.20261130T021500Z.bak"


def test_a_console_that_saw_no_edit_learns_from_the_copy_beside_the_file_where_the_other_rows_lie() -> None:
    """Rolled back by a colleague: to roll forward nothing has to be built that is there."""
    fleet = Fleet()
    fleet.site(SAMPLE)
    head = fleet.hosts["n0"]
    assert head.looks["dsv41:site.beside"].arguments[0] == "/home/alice/sglang/launch"
    assert "dsv41:site.former" not in head.looks and previous(fleet) == {}
    older, odd = "fleet.env.20261129T235959Z.bak", "fleet.env.20261231T000000Z.bak.orig"
    head.answers(
        "dsv41:site.beside", beside("fleet.env", older, BAK, odd, "fleet.env.example", "other.env.20271130T021500Z.bak")
    )
    fleet.view()
    assert head.looks["dsv41:site.former"].arguments[0] == f"/home/alice/sglang/launch/{BAK}"
    head.answers("dsv41:site.former", file_answer(EDITED))
    fleet.view()
    assert previous(fleet) == dict.fromkeys(("n0",), "/home/alice/dsv41-engram-local-1017") | dict.fromkeys(
        ("n2", "n3"), "/home/bob/dsv41-engram-local-1017"
    )
    assert fleet.view().previous_rows is not None
    assert "dsv41:site.beside" not in head.looks, "what is known is not asked for"
    fleet.site(EDITED)
    assert previous(fleet)["n2"] == "/home/bob/dsv41-engram-local", "an edit that is seen goes before it"


@pytest.mark.parametrize("text", [SAMPLE, "# nothing\n", "SNAP=snapshots/zz\n"])
def test_an_earlier_text_that_tells_of_no_other_revision_is_no_help(text: str) -> None:
    fleet = Fleet()
    fleet.site(SAMPLE)
    fleet.hosts["n0"].answers("dsv41:site.beside", beside(BAK))
    fleet.view()
    fleet.hosts["n0"].answers("dsv41:site.former", file_answer(text))
    assert fleet.view().previous_rows is None and previous(fleet) == {}


def test_where_the_operator_says_what_was_before_no_earlier_text_is_looked_for() -> None:
    fleet = Fleet(previous={"revision": OLD, "rows": "dsv41-engram-local"})
    fleet.site(EDITED)
    assert "dsv41:site.beside" not in fleet.hosts["n0"].looks


def test_what_is_all_there_is_looked_at_seldom_and_what_comes_often() -> None:
    fleet = Fleet()
    fleet.site((DATA / "fleet.env.sample").read_text().replace(OLD, SERVING))
    holder, rank = fleet.hosts["n1"], fleet.hosts["n2"]
    assert (holder.looks["dsv41:repo"].every, rank.looks["dsv41:rows"].every) == (5.0, 5.0), "nothing was read yet"
    ready(fleet)
    holder.answers("dsv41:repo", REPO)
    holder.answers("dsv41:download.processes", "ok clock=100 boot=1\n")
    fleet.view()
    assert (holder.looks["dsv41:repo"].every, rank.looks["dsv41:rows"].every) == (15.0, 15.0)
    holder.answers("dsv41:repo", repo_answer(100_000), NOW + 15)
    row = "77\t1\tS\t1760000000\t1000\t10\t10\tpython3 hf download deepseek-ai/DeepSeek-V4.1-Flash\n"
    holder.answers("dsv41:download.processes", f"ok clock=100 boot=1\n{row}", NOW + 15)
    fleet.view(NOW + 15)
    assert (holder.looks["dsv41:repo"].every, rank.looks["dsv41:rows"].every) == (5.0, 5.0)
