"""A lane's start as it is read: when which log is read and for how long, what is kept of it, and what is said of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.feed import boots
from console.feed.boot_start import phrase
from console.feed.boots import BootFeed, BootHost
from console.feed.records import LaneRecords
from console.fleet.inventory import build
from console.fleet.recipe import load_recipe
from console.readings.boot import Boot, BootRecord, PhaseName
from console.readings.boot_reader import BootReader, read_boot
from console.readings.boot_words import BootWords
from console.readings.containers import Container, Containers, ContainerState, parse_inspect
from console.readings.health import HttpLight, HttpVerdict, Lights, ProcessLight
from console.readings.quality import Reading
from console.readings.recorded import Recorded
from console.rehearsal import engine
from console.snapshot import Severity

P = PhaseName
LOGS = Path(__file__).parents[1] / "data" / "boots"
SGLANG = (LOGS / "sglang-boot-gb10.log").read_text().split("\n")
HOSTS = ("spark-0", "spark-1", "spark-2")
GIB = 1 << 30


class Scan:
    def __init__(self, take: Any, follow: bool) -> None:
        self.take, self.following = take, follow
        self.done = self.at_end = self.closed = self.skipped = False
        self.problem = ""

    async def close(self) -> None:
        self.closed = True

    def say(self, now: float, rows: Sequence[str]) -> None:
        """Lines of the log, a second apart, the last one now."""
        first = now - len(rows) + 1
        self.done = self.take([(first + number, row) for number, row in enumerate(rows)], "") or self.done


class Docker:
    def __init__(self) -> None:
        self.scans: list[Scan] = []
        self.asked: list[tuple[str, float | None, bool]] = []

    def scan_log(self, container_id: str, take: Any, *, since: float | None, follow: bool) -> Scan:
        self.asked.append((container_id, since, follow))
        self.scans.append(Scan(take, follow))
        return self.scans[-1]

    @property
    def scan(self) -> Scan:
        return self.scans[-1]

    @property
    def running(self) -> list[Scan]:
        return [scan for scan in self.scans if not scan.closed]


class Host:
    """A host as the feed knows it."""

    def __init__(self) -> None:
        self.docker: Docker | None = Docker()
        self.containers: Reading[Containers] = Reading("docker", 5.0)
        self.free: int | None = 120 * GIB

    def view_containers(self) -> Reading[Containers]:
        return self.containers

    def drift(self) -> float | None:
        return 0.0

    def view(self) -> Any:
        memory = None if self.free is None else SimpleNamespace(free=self.free)
        return SimpleNamespace(memory=Reading("memory", 1.0, cast(Any, memory)))

    def has(self, *items: Container, problem: str = "") -> None:
        self.containers = Reading("docker", 5.0, Containers(items, problem))


def box(number: int, started: float, **changes: Any) -> Container:
    raw = {"Id": f"{number:064x}", "Name": f"/c{number}", "State": {"Status": "running", "Running": True}}
    raw |= {"Path": "sglang", "Args": ["serve", "--port", "9"], "HostConfig": {"NetworkMode": "host"}}
    return replace(parse_inspect(raw), started_at=started, revision="1bae0e10" * 5, **changes)


def gone(number: int, started: float, code: int, **changes: Any) -> Container:
    ended = {"state": ContainerState.EXITED, "exit_code": code, "finished_at": time.time(), **changes}
    return box(number, started, **ended)


class Lane:
    """A lane of three ranks and its boot feed."""

    def __init__(self, ranks: Sequence[str] = HOSTS, *, earlier: Sequence[BootRecord] = (), **lane: Any) -> None:
        self.hosts = {name: Host() for name in HOSTS}
        raw = {"recipe": "docker-generic", "url": "http://127.0.0.1:9", "head": "spark-0", "ranks": list(ranks), **lane}
        fleet = build({"name": "f", "hosts": {name: {"ssh": name} for name in HOSTS}, "lanes": {"lane": raw}})
        self.said: list[str] = []
        self.records = LaneRecords(lambda text, _: self.said.append(text), None, Recorded(tuple(earlier)))
        self.feed = BootFeed(
            fleet.lanes["lane"],
            cast("dict[str, BootHost]", self.hosts),
            BootWords(),
            self.records,
            self.note,
            name="lane",
        )
        self.feed._began -= 60.0

    def note(self, subject: str, text: str, severity: Severity, wall: float | None = None, deed: str = "") -> None:
        assert subject == "lane"
        self.said.append(text)

    def start(self, age: float, number: int = 1) -> float:
        """All ranks were started so many seconds ago."""
        started = time.time() - age
        for name in HOSTS:
            self.hosts[name].has(box(number, started))
        return started

    def docker(self, host: str) -> Docker:
        found = self.hosts[host].docker
        assert found is not None
        return found

    @property
    def head(self) -> Docker:
        return self.docker("spark-0")

    @property
    def running(self) -> int:
        return sum(len(self.docker(host).running) for host in HOSTS)

    def health(self, ok: bool | None, host: str = "spark-0") -> None:
        verdict = HttpVerdict.UNKNOWN if ok is None else HttpVerdict.OK if ok else HttpVerdict.REFUSED
        containers = self.hosts[host].containers.value
        item = containers.items[0] if containers and containers.items else None
        process = ProcessLight(id=item.id if item else "", started_at=item.started_at if item else None)
        self.feed.tell(Lights(process=process, http=HttpLight(verdict, ever_ok=bool(ok))))

    async def look(self, ok: bool | None = None) -> Boot | None:
        self.health(ok)
        await self.feed.look()
        reading = self.feed.reading(None)
        assert reading is not None
        return None if reading.error else reading.value

    @property
    def error(self) -> str:
        reading = self.feed.reading(None)
        assert reading is not None
        return reading.error


async def test_a_boot_from_its_container_to_the_first_answer() -> None:
    lane = Lane()
    started = lane.start(5.0)
    assert await lane.look(False) is None
    assert [docker.asked for docker in map(lane.docker, HOSTS)] == [[(f"{1:064x}", started, True)]] * 3
    lane.head.scan.say(time.time(), SGLANG[:18])
    boot = await lane.look(False)
    assert boot is not None and (boot.now, boot.lines) == (P.DRAFT, 18)
    assert lane.feed.phrase().startswith("draft weights 0m0")
    lane.head.scan.say(time.time(), SGLANG[18:])
    assert lane.head.scan.done
    boot = await lane.look(True)
    assert boot is not None and (boot.now, boot.kv_tokens) == (None, 2_999_808)
    assert lane.running == 0
    (kept,) = lane.records.boots
    assert (kept.kv_tokens, kept.revision, kept.free_at_start) == (2_999_808, "1bae0e10" * 5, 120 * GIB)
    assert [name for name, _ in kept.phases][:3] == ["start", "weights", "post-process"]
    assert lane.records.pools == (2_999_808,)
    (said,) = lane.said
    assert said.startswith("up 0m0") and said.endswith("after its start, KV pool 3.00 M tokens")
    for _ in range(3):
        assert await lane.look(True) == boot
    assert (len(lane.records.boots), len(lane.said), lane.running) == (1, 1, 0)
    assert (lane.feed.phrase(), lane.feed.progress()) == ("", None)


async def test_a_console_that_comes_in_the_middle_of_a_boot_knows_it_whole() -> None:
    lane = Lane()
    lane.start(300.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG[:10])
    boot = await lane.look(False)
    assert boot is not None and boot.now is P.DRAFT
    found = lane.feed.progress()
    assert found is not None and 300.0 <= found.elapsed < 330.0


async def test_a_lane_that_serves_is_read_back_once_and_only_its_head() -> None:
    lane = Lane()
    lane.start(3600.0)
    await lane.look(True)
    assert [docker.asked for docker in map(lane.docker, HOSTS)][1:] == [[], []]
    assert lane.head.asked[0][2] is False
    lane.head.scan.say(time.time() - 2900.0, SGLANG)
    boot = await lane.look(True)
    assert boot is not None and boot.ready is not None
    (kept,) = lane.records.boots
    assert kept.total == pytest.approx(3600.0 - 2900.0, abs=10.0)
    assert lane.said == []  # nobody has watched it come up
    assert (lane.running, len(lane.head.scans)) == (0, 1)


async def test_a_lane_that_serves_for_days_is_left_alone() -> None:
    lane = Lane()
    lane.start(3 * 86400.0)
    for _ in range(3):
        assert await lane.look(True) is None
    assert lane.error == "up for 3d00h: the log of its start is not read back"
    assert lane.head.asked == [] and lane.records.boots == ()


async def test_a_container_of_hours_that_never_answered_is_read() -> None:
    lane = Lane()
    lane.start(5 * 3600.0)
    assert await lane.look(None) is None
    assert lane.head.asked == [] and "not read back" in lane.error
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG[:3])
    boot = await lane.look(False)
    assert boot is not None and boot.now is P.WEIGHTS


async def test_a_container_of_days_is_no_boot_though_it_does_not_answer() -> None:
    lane = Lane()
    lane.start(3 * 86400.0)
    for ok in (None, False, False):
        assert await lane.look(ok) is None
        assert (lane.feed.progress(), lane.feed.phrase()) == (None, "")
    assert lane.head.asked == []


async def test_at_the_consoles_start_the_first_answer_is_awaited_for_a_moment() -> None:
    lane = Lane()
    lane.start(600.0)
    lane.feed._began = time.monotonic()
    await lane.look(None)
    assert lane.running == 0
    lane.feed._began -= boots.HOLD_S
    await lane.look(None)
    assert lane.running == 3


async def test_a_log_that_does_not_go_back_to_the_start() -> None:
    lane = Lane()
    lane.start(3600.0)
    await lane.look(True)
    lane.head.scan.say(time.time(), ["Decode batch, #running-req: 3"] * 50)
    lane.head.scan.done = True
    await lane.look(True)
    assert await lane.look(True) is None
    assert lane.error == "its log does not go back to its start"
    assert lane.records.boots == ()


async def test_an_answer_without_a_word_in_the_log_ends_the_boot() -> None:
    lane = Lane()
    started = lane.start(50.0)
    await lane.look(False)
    lane.head.scan.problem, lane.head.scan.done = "its log driver keeps nothing that could be read", True
    await lane.look(False)
    assert lane.error == "its log driver keeps nothing that could be read"
    found = lane.feed.progress()
    assert found is not None and found.phase is None
    boot = await lane.look(True)
    assert boot is not None and boot.ready is not None and boot.now is None
    (kept,) = lane.records.boots
    assert kept.started == started and kept.total == pytest.approx(50.0, abs=10.0)


async def test_a_rank_that_cannot_come_up_is_named() -> None:
    lane = Lane()
    lane.start(60.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG[:5])
    failing = (LOGS / "engram-boot-errors.rendered.txt").read_text().split("\n")[:1]
    lane.docker("spark-2").scan.say(time.time(), failing)
    boot = await lane.look(False)
    assert boot is not None and boot.failure is not None and boot.now is P.POST_PROCESS
    assert boot.failure.cause == "spark-2: row ranges of layer 1 do not tile"
    assert [host for host, _ in lane.feed.failures()] == ["spark-2"]
    assert lane.feed.phrase() == "will not come up: spark-2: row ranges of layer 1 do not tile"


async def test_a_head_that_ends_without_a_word_because_of_another_rank() -> None:
    lane = Lane()
    started = lane.start(60.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG[:5])
    lane.head.scan.at_end = True
    lane.hosts["spark-0"].has(gone(1, started, 1))
    boot = await lane.look(None)
    assert boot is not None and boot.failure is not None
    assert boot.failure.cause == "ended in post-process without saying why"
    lane.docker("spark-1").scan.say(time.time(), ["torch.OutOfMemoryError: CUDA out of memory."])
    boot = await lane.look(None)
    assert boot is not None and boot.failure is not None
    assert boot.failure.cause == "spark-1: out of GPU memory"


@pytest.mark.parametrize(
    ("code", "unasked", "cause"),
    [
        (1, True, "KeyError: 'x'"),
        (1, None, "KeyError: 'x'"),
        (137, True, "KeyError: 'x'"),
        (0, None, "KeyError: 'x'"),
        (143, None, None),
        (137, False, None),
    ],
)
async def test_the_end_of_a_container_in_the_middle_of_a_boot(
    code: int, unasked: bool | None, cause: str | None
) -> None:
    lane = Lane()
    started = lane.start(60.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), [*SGLANG[:5], "Traceback (most recent call last):", "KeyError: 'x'"])
    boot = await lane.look(False)
    assert boot is not None and boot.failure is None
    lane.hosts["spark-0"].has(gone(1, started, code, exit_unasked=unasked))
    await lane.look(None)
    assert not lane.head.scan.closed  # its last lines may still be on their way
    lane.head.scan.at_end = True
    boot = await lane.look(None)
    assert lane.head.scan.closed
    assert boot is not None
    assert (boot.failure.cause if boot.failure else None) == cause
    assert lane.feed.progress() is None


async def test_last_lines_are_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boots, "LAST_WORDS_S", 0.0)
    lane = Lane()
    started = lane.start(60.0)
    await lane.look(False)
    lane.hosts["spark-0"].has(gone(1, started, 1))
    await lane.look(None)
    assert lane.head.scan.closed


async def test_a_console_that_comes_after_a_failed_boot_says_why() -> None:
    lane = Lane()
    lane.hosts["spark-0"].has(gone(1, time.time() - 700.0, 1, exit_unasked=True, finished_at=time.time() - 60.0))
    await lane.look(None)
    assert lane.head.asked[0][2] is False
    lane.head.scan.say(time.time() - 60.0, [*SGLANG[:5], "ValueError: No common block size for 64."])
    lane.head.scan.done = True
    boot = await lane.look(None)
    assert boot is not None and boot.failure is not None and boot.failure.cause == "no common block size for 64."


async def test_a_boot_that_failed_long_ago_is_not_read_back() -> None:
    lane = Lane()
    lane.hosts["spark-0"].has(gone(1, time.time() - 90_000.0, 1, finished_at=time.time() - 80_000.0))
    assert await lane.look(None) is None
    assert lane.error.startswith("ended for 22h")
    assert lane.head.asked == []


async def test_another_container_or_a_restart_begins_anew() -> None:
    lane = Lane()
    lane.start(60.0)
    await lane.look(False)
    first = lane.head.scan
    first.say(time.time(), SGLANG[:20])
    assert await lane.look(False) is not None
    lane.start(2.0, number=2)
    assert await lane.look(False) is None
    assert first.closed and lane.head.scan is not first
    lane.head.scan.say(time.time(), SGLANG[:3])
    boot = await lane.look(False)
    assert boot is not None and boot.now is P.WEIGHTS
    lane.start(1.0, number=2)  # the same container, started again
    assert await lane.look(False) is None
    assert len(lane.head.scans) == 3


async def test_health_of_the_start_before_says_nothing_about_this_one() -> None:
    lane = Lane()
    lane.start(3600.0)
    await lane.look(True)
    lane.head.scan.done = True
    await lane.look(True)
    lane.start(1.0, number=2)  # and what the lane told last is still of the container before
    await lane.feed.look()
    assert lane.feed._healthy is None
    assert [docker.asked[-1][2] for docker in map(lane.docker, HOSTS)] == [True, True, True]


async def test_a_container_that_was_removed() -> None:
    lane = Lane()
    lane.start(60.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG[:5])
    assert await lane.look(False) is not None
    for host in lane.hosts.values():
        host.has()
    assert await lane.look(None) is None
    assert (lane.error, lane.running) == ("its container is gone", 0)
    reading = lane.feed.reading(None)
    assert reading is not None and reading.value is None


async def test_a_host_or_docker_that_is_away_ends_nothing() -> None:
    lane = Lane()
    started = lane.start(60.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG[:5])
    known = await lane.look(False)
    lane.hosts["spark-0"].has(problem="cannot read Docker: it is down")
    await lane.feed.look()
    lane.hosts["spark-0"].containers = Reading("docker", 5.0, None, error="unreachable")
    await lane.feed.look()
    reading = lane.feed.reading(5.0)
    assert reading is not None and reading.value == known and reading.down_since == 5.0
    assert lane.running == 3
    lane.head.scan.problem = "log lost, asking again: closed"
    await lane.feed.look()
    assert lane.error == "log lost, asking again: closed"
    lane.head.scan.problem = ""
    lane.hosts["spark-0"].has(box(1, started))
    assert await lane.look(False) == known


async def test_an_autotune_that_missed_its_cache_is_said_once() -> None:
    lane = Lane()
    lane.start(600.0)
    await lane.look(False)
    begins = "(EngineCore pid=1) 2026-09-20 17:10:22,436 - INFO - a.py:1 - flashinfer.jit: Autotuning process starts"
    lane.head.scan.say(time.time() - 120.0, [*SGLANG[:9], begins])
    for _ in range(3):
        boot = await lane.look(False)
        assert boot is not None and boot.autotune == "missed"
    assert lane.said == ["autotune cache missed: tuning anew takes an hour or more"]
    assert lane.feed.phrase() == "autotune 2m00s, cache missed"


async def test_progress_is_told_against_what_is_remembered() -> None:
    earlier = [BootRecord(started=100.0 * number, total=500.0 + number) for number in range(1, 4)]
    lane = Lane(earlier=earlier, usual_boot_s=900.0)
    lane.start(100.0)
    assert lane.feed.progress() is None
    await lane.look(False)
    found = lane.feed.progress()
    assert found is not None
    assert (found.usual, found.median, found.late) == ((501.0, 503.0), 502.0, False)
    assert found.left == pytest.approx(402.0, abs=10.0)


async def test_free_memory_is_that_of_the_start_or_none() -> None:
    for age, free, wanted in ((5.0, 9 * GIB, 9 * GIB), (60.0, 9 * GIB, None), (5.0, None, None)):
        lane = Lane()
        lane.start(age)
        lane.hosts["spark-1"].free = free
        await lane.look(False)
        lane.hosts["spark-1"].free = None if free is None else GIB
        lane.head.scan.say(time.time(), SGLANG)
        await lane.look(True)
        assert [kept.free_at_start for kept in lane.records.boots] == [wanted]


async def test_a_lane_outside_containers_has_no_log() -> None:
    lane = Lane(["spark-0"], runs_in="host")
    assert lane.feed.reading(None) is None
    bare = Lane(["spark-0"])
    bare.hosts["spark-0"].docker = None
    await bare.feed.look()
    assert bare.feed.reading(None) is None


async def test_the_end_of_the_console_ends_every_reading() -> None:
    lane = Lane()
    lane.start(60.0)
    task = asyncio.create_task(lane.feed.run())
    async with asyncio.timeout(20):
        while lane.running < 3:
            lane.health(False)
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await lane.feed.close()
    assert lane.running == 0


async def test_a_start_that_is_known_is_not_read_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane()
    lane.start(60.0)
    await lane.look(False)
    lane.head.scan.say(time.time(), SGLANG)
    await lane.look(True)
    await lane.look(True)
    reading = lane.feed.reading(None)
    monkeypatch.setattr(boots, "serving_container", lambda *_: pytest.fail("chosen again"))
    monkeypatch.setattr(BootFeed, "failures", lambda _: pytest.fail("asked again"))
    await lane.look(True)
    assert lane.feed.reading(None) is reading


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (3, "weights 10m00s, files 37 of 48"),
        (5, "post-process 10m00s, weights read"),
        (17, "draft weights 10m00s, files 48 of 48"),
        (22, "KV pool 10m00s"),
        (31, "graphs 10m00s"),
        (len(SGLANG), ""),
    ],
)
def test_a_phrase_for_the_verdict(rows: int, words: str) -> None:
    text = "\n".join(SGLANG[:rows])
    boot = read_boot(text)
    began = boot.phases[-1].began
    assert began is not None
    assert phrase(boot, began + 600.0) == words


STORIES = [
    ("sglang", "usual", True, "done", None),
    ("sglang", "tiling", False, "", "row ranges of layer 1 do not tile"),
    ("sglang", "out-of-memory", False, "", "out of GPU memory"),
    ("sglang", "stock-image", True, "done", None),
    ("vllm", "usual", True, "hit", None),
    ("vllm", "autotune-missed", True, "missed", None),
]


@pytest.mark.parametrize(("kind", "story", "ready", "tune", "cause"), STORIES)
def test_the_boots_of_the_rehearsal_are_read_as_what_they_are(
    kind: str, story: str, ready: bool, tune: str, cause: str | None
) -> None:
    options = [
        f"--kind={kind}",
        f"--story={story}",
        "--boot=600",
        "--ranks=4",
        "--rows=/engram-local",
        "--port-shown=1",
    ]
    words = load_recipe("sglang-fleet-env" if kind == "sglang" else "vllm-cluster-env").boot.words(kind)
    began = time.time() - 700.0
    reader = BootReader(words, started=began)
    for into, text in engine.boot_lines(engine.parse(options), began, 7):
        reader.take(began + into, text)
    boot = reader.boot(time.time())
    assert (boot.engine, boot.ready is not None, boot.autotune, boot.missing) == (kind, ready, tune, boot.missing)
    assert (boot.failure.cause if boot.failure else None) == cause
    assert bool(boot.missing) is (story == "stock-image")
