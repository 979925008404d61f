"""Counts in place of times: modules before the first paint, channels a host, tasks left, work a snapshot."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from console import wayback
from console.alarms import alarms
from console.document import document
from console.feed import Feed, host, lane, lane_history, rankfacts, survey, surveyed, watchdogs
from console.fleet.inventory import Fleet
from console.headless import settled
from console.rehearsal import docker_api, sshd
from console.rehearsal.scenario import load_scenario
from console.rehearsal.server import RehearsalFleet

ROOT = Path(__file__).parents[1]
LIMIT = 90.0
HEAVY = ("asyncssh", "httpx", "docker", "psutil", "requests", "cryptography")
"""Imported after the first paint, where something needs them."""
OWN = ("console", "widgets", "screens")
MOST_OWN, MOST_OTHERS = 290, 550
"""Modules at the first paint: 279 of ours and 534 others when this was written. What comes on top costs every start."""
MOST_CHANNELS = {"head": 8, "other": 4}
"""Sampler and Docker (events, questions) on every host; on a head also scrape, health, identity and a log."""

BLOCK_TEXTUAL = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("textual", "widgets", "screens"):
            raise ImportError(f"{name} is blocked in this test")
sys.meta_path.insert(0, Block())
from console.cli import run
code = run(sys.argv[1:])
loaded = [name for name in sys.modules if name.split(".")[0] in ("textual", "widgets", "screens")]
sys.exit(f"loaded: {loaded}" if loaded else code)
"""

AT_FIRST_PAINT = """
import asyncio, json, sys
from console.cli import app
from console.fleet.inventory import build
from console.app import LaneswapApp
from console.feed import Feed
from textual.pilot import Pilot

app.parse_args(["watch", "-f", "fleet.toml"])
fleet = build({"name": "f", "hosts": {"a": {"ssh": "a.invalid"}},
               "lanes": {"l": {"recipe": "vllm-docker", "url": "http://127.0.0.1:9", "head": "a"}}})

class Painted(Feed):
    async def start(self):
        print(json.dumps(sorted(sys.modules)))

async def main():
    async with LaneswapApp(Painted(fleet)).run_test(size=(120, 40)) as pilot:
        await pilot.pause()

asyncio.run(main())
"""


def python(code: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that finds this working copy and nobody's settings."""
    own = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), "HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **own},
        cwd=home,
        timeout=LIMIT,
        check=False,
    )


# modules


def test_nothing_heavy_is_imported_before_the_first_paint(tmp_path: Path) -> None:
    done = python(AT_FIRST_PAINT, home=tmp_path)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout)
    assert [name for name in HEAVY if name in modules] == []
    assert "textual.app" in modules and "console.feed.feed" in modules
    own = sum(name.split(".")[0] in OWN for name in modules)
    assert (own <= MOST_OWN, len(modules) - own <= MOST_OTHERS) == (True, True), (own, len(modules) - own)


def test_the_command_line_loads_neither_screen_nor_network(tmp_path: Path) -> None:
    done = python("import console.cli, json, sys; print(json.dumps(sorted(sys.modules)))", home=tmp_path)
    modules = json.loads(done.stdout)
    assert [name for name in (*HEAVY, "textual", "rich", "widgets", "screens", "ssl") if name in modules] in (
        [],
        ["ssl"],
    )


def test_a_live_fleet_loads_neither_the_rehearsal_nor_what_reads_captures(tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text('name = "gone"\n')
    code = (
        "import console.cli, json, sys; code = console.cli.run(['status', '-f', 'fleet.toml']);"
        "print(json.dumps([code, sorted(sys.modules)]))"
    )
    done = python(code, home=tmp_path)
    exit_code, modules = json.loads(done.stdout)
    assert (exit_code, done.stderr.startswith("laneswap: ")) == (2, True)
    unwanted = ("console.rehearsal", "console.inspection", "console.doctor", "console.setup")
    assert [name for name in modules if name.startswith(unwanted)] == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("keys",), 0, "palette"),
        (("inspect", "kinds"), 0, "memory"),
        (("rehearse", "--list"), 0, "spark4"),
        (("rehearse", "station", "--headless", "--seconds", "2", "--json"), 0, '"rehearsal": true'),
        (("status", "-f", "fleet.toml", "--wait", "5"), 3, "UNREACHABLE"),
        (("status", "-f", "missing.toml"), 2, ""),
        (("watch", "-f", "fleet.toml"), 2, ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_headless_commands_work_without_textual(
    tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    (tmp_path / "fleet.toml").write_text(
        'name = "gone"\nhosts.a.ssh = "ops@127.0.0.1:1"\n'
        '[lanes.l]\nrecipe = "vllm-docker"\nurl = "http://127.0.0.1:9"\nhead = "a"\n'
    )
    done = python(BLOCK_TEXTUAL, *arguments, home=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout
    if code == 2:
        assert done.stdout == "" and done.stderr.startswith("laneswap: ") and "Traceback" not in done.stderr


# channels, tasks, threads, work: on the embedded fleet's servers, in this very process


class Channels:
    """What clients open on the embedded fleet's servers, and what of it is open now, by host and kind."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: Counter[tuple[str, str]] = Counter()
        self.open: Counter[tuple[str, str]] = Counter()
        channels = self

        class Session(sshd._Session):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                channels.opened[self._host.name, "login"] += 1
                super().connection_made(conn)

            def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
                channels.opened[self._host.name, "tcp"] += 1
                channels.open[self._host.name, "tcp"] += 1  # kept alive: those that end are opened anew, and seen
                return super().connection_requested(dest_host, dest_port, orig_host, orig_port)

        def counting(function: Callable[..., Awaitable[None]], kind: str, name: Callable[[Any], str]) -> Any:
            async def serve(own: Any, *arguments: Any) -> None:
                key = name(own), kind
                channels.opened[key] += 1
                channels.open[key] += 1
                try:
                    await function(own, *arguments)
                finally:
                    channels.open[key] -= 1

            return serve

        monkeypatch.setattr(sshd, "_Session", Session)
        process = counting(sshd.RehearsalHost._process, "session", lambda own: own.name)
        monkeypatch.setattr(sshd.RehearsalHost, "_process", process)
        docker = counting(docker_api.DockerApi.serve, "unix", lambda own: own.boxes.host)
        monkeypatch.setattr(docker_api.DockerApi, "serve", docker)

    def on(self, host: str) -> dict[str, int]:
        """Channels that are open on a host, by kind."""
        return {kind: number for (name, kind), number in self.open.items() if name == host and number}


@asynccontextmanager
async def played(root: Path) -> AsyncIterator[tuple[Fleet, dict[str, dict[str, Any]]]]:
    """The shipped fleet of five hosts and two lanes, its servers in this process."""
    scenario = load_scenario("spark4")
    key = asyncssh.generate_private_key("ssh-ed25519")
    servers = RehearsalFleet(scenario, 1.0, root, key)
    await servers.start()
    try:
        overrides = {
            name: {
                "host": "127.0.0.1",
                "port": place["port"],
                "username": sshd.USER,
                "client_keys": [key],
                "agent_path": None,
                "known_hosts": f"[127.0.0.1]:{place['port']} {place['key']}\n".encode(),
                "config": None,
            }
            for name, place in servers.addresses().items()
        }
        yield scenario.fleet, overrides
    finally:
        await servers.close()


async def until_settled(feed: Feed) -> None:
    async with asyncio.timeout(LIMIT):
        while not settled(feed.snapshot()):  # noqa: ASYNC110 - a snapshot has no event
            await asyncio.sleep(0.05)


async def test_channels_a_host_stay_few_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channels = Channels(monkeypatch)
    async with played(tmp_path) as (fleet, overrides):
        often = fleet.rates.model_copy(update={"containers": 1.0})
        feed = Feed(fleet.model_copy(update={"rates": often}), overrides)
        await feed.start()
        try:
            await until_settled(feed)
            await asyncio.sleep(3.0)  # everything has been asked for at least once, what is kept has settled
            opened = channels.opened.copy()
            heads = {lane.head for lane in fleet.lanes.values()}
            for name in fleet.hosts:
                there = channels.on(name)
                assert sum(there.values()) <= MOST_CHANNELS["head" if name in heads else "other"], (name, there)
                assert there["session"] == 1, "the sampler alone"
                assert there["unix"] >= 2, "Docker's events and questions"
                assert bool(there.get("tcp")) == (name in heads), "the engine is asked from the head alone"
                assert opened[name, "login"] == 1, "one connection a host"
            await asyncio.sleep(3.0)
            anew = {key: number for key, number in (channels.opened - opened).items() if key[1] != "tcp"}
            assert anew == {}, "at rest nothing is opened anew: questions reuse what is open"
            assert all(channels.opened[name, "tcp"] <= 3 for name in heads), "scrape, health, identity at the same time"
        finally:
            await feed.stop()


async def test_no_task_and_no_thread_is_left_after_stop(tmp_path: Path) -> None:
    async with played(tmp_path) as (fleet, overrides):
        tasks = asyncio.all_tasks()
        threads = set(threading.enumerate())
        feed = Feed(fleet, overrides)
        await feed.start()
        await until_settled(feed)
        grown = set(threading.enumerate()) - threads
        assert any(thread.name.startswith("docker-") for thread in grown)
        await feed.stop()
        left = {task for task in asyncio.all_tasks() - tasks if not _of_the_servers(task)}
        assert left == set()
        # what remains is asyncio's own: idle workers, which the loop ends, and waits for children of the played hosts
        own = ("asyncio_", "asyncio-waitpid-")
        assert [t.name for t in set(threading.enumerate()) - threads if not t.name.startswith(own)] == []
        assert all(host.link.state.error for host in feed._hosts.values())


def _of_the_servers(task: asyncio.Task[Any]) -> bool:
    """The servers run in the same loop and end their connections a moment later."""
    return "rehearsal" in repr(task.get_coro()) or "rehearsal" in str(getattr(task.get_coro(), "cr_code", ""))


async def test_a_snapshot_parses_nothing_and_judges_at_most_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        function = getattr(module, name)

        def call(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return function(*arguments, **named)

        monkeypatch.setattr(module, name, call)

    reading = [(host, "parse_memory"), (host, "parse_gpus"), (host, "parse_facts"), (lane, "read_scrape")]
    reading += [(lane, "throughput"), (lane, "parse_models"), (lane_history, "usual_band")]
    judging = [(lane, "progress_light"), (lane, "http_light"), (lane, "judge"), (lane, "old_process")]
    async with played(tmp_path) as (fleet, overrides):
        feed = Feed(fleet, overrides)
        await feed.start()
        try:
            await until_settled(feed)
            for module, name in (*reading, *judging):
                counted(module, name)
            for _ in range(40):  # ten seconds of pictures, taken while nothing can come in
                feed.snapshot()
            assert [name for _, name in reading if calls[name]] == []
            assert all(calls[name] <= 2 * len(fleet.lanes) for _, name in judging), calls
            await asyncio.sleep(2.2)
            feed.snapshot()
            assert calls["parse_memory"] and calls["throughput"] and calls["judge"], "the counters do count"
        finally:
            await feed.stop()


LOOKED_FOR_S = 8.0
"""More than the five seconds in which everything is looked at again."""


async def test_looks_that_bring_nothing_new_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come again and again; only what says something new is parsed, and only what rests on it judged anew."""
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        function = getattr(module, name)

        def call(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return function(*arguments, **named)

        monkeypatch.setattr(module, name, call)

    for module, name in (
        (survey, "read_site"),
        (survey, "read_rows"),
        (watchdogs, "read_watchdog"),
        (rankfacts, "compare_ranks"),
    ):
        counted(module, name)
    parsed: Counter[str] = Counter()
    of = surveyed.Parsed.of

    def seen(self: Any, key: object, reading: Any) -> Any:
        before = self._kept.get(key)
        found = of(self, key, reading)
        parsed[str(key)] += self._kept.get(key) is not before
        return found

    monkeypatch.setattr(surveyed.Parsed, "of", seen)
    async with played(tmp_path) as (fleet, overrides):
        feed = Feed(fleet, overrides)
        await feed.start()
        try:
            await until_settled(feed)
            await _until_looked_at(feed)
            heard = _looked(feed, LOOKED_FOR_S)
            calls.clear()
            parsed.clear()
            pictures = 0
            until = asyncio.get_running_loop().time() + LOOKED_FOR_S
            while asyncio.get_running_loop().time() < until:
                feed.snapshot()
                pictures += 1
                await asyncio.sleep(0.25)
            again = _looked(feed, LOOKED_FOR_S)
            assert len(heard) > 8 and all(new > old for new, old in zip(again, heard, strict=True)), "looked at anew"
            still = {key for key in parsed if parsed[key] and ("repo" in key or "rows" in key or "site" in key)}
            assert still == set(), "folders, manifests and site file say what they said before"
            assert calls["read_site"] == 0
            assert calls["read_rows"] <= pictures // 4, "while the pace of a copy is still being told"
            assert calls["read_watchdog"] <= pictures // 4, "when its files change, and as time passes"
            assert calls["compare_ranks"] <= pictures // 4, "when a GPU's figures change"
        finally:
            await feed.stop()


async def _until_looked_at(feed: Feed) -> None:
    async with asyncio.timeout(LIMIT):
        while min(_looked(feed)) <= 0:
            feed.snapshot()
            await asyncio.sleep(0.1)
    for _ in range(20):  # what was asked for last, the download's and the watchdog's processes, is judged
        feed.snapshot()
        await asyncio.sleep(0.1)


def _looked(feed: Feed, every: float = 1e9) -> list[float]:
    """When each look that is due at least that often was last answered, monotonic; 0 for never."""
    known = [item for host in feed._hosts.values() for item in host._looked.values()]
    return [kept.taken_mono or 0.0 for look, kept in known if look.every <= every]


async def test_a_picture_is_judged_once_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    for module in (wayback, __import__("console.alarms", fromlist=["alarms"])):
        function = module._found

        def call(*arguments: Any, name: str = module.__name__, function: Any = function) -> Any:
            calls[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, "_found", call)
    fleet = load_scenario("spark4").fleet
    picture = Feed(fleet).snapshot()
    for _ in range(5):
        alarms(picture)
        document(picture)
        for lane_view in picture.lanes:
            wayback.way_back(picture, lane_view)
    assert calls == {"console.wayback": len(fleet.lanes), "console.alarms": 1}
