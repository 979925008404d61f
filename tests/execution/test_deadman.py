"""The dead-man timer on this machine, against a local HTTP server: who is told what, once, and nothing else is done."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from host_bench import Bent, full, lacking, local, until

from console.execution import deadman
from console.execution.scripts import script
from console.readings.output import Outcome


class Server:
    """A webhook and a lane's health check."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.healthy, self.refuses, self.asked = True, 0, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(200 if outer.healthy else 503)
                self.end_headers()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.refuses:
                    outer.refuses -= 1
                    self.send_response(500)
                else:
                    assert self.path == "/hook?token=s3cret"
                    outer.posted.append(json.loads(body))
                    self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Lane:
    """A state folder with a timer that is looked at by hand."""

    def __init__(self, link: Any, folder: Path, server: Server) -> None:
        self.link, self.path, self.server = link, folder, server
        self.folder = str(folder)

    async def arm(self, link: Any = None, **changes: Any) -> deadman.Deadman:
        given: dict[str, Any] = {
            "webhook": f"{self.server.url}/hook?token=s3cret",
            "health": f"{self.server.url}/health",
        }
        given |= {"fleet": "spark4", "lane": "dsv41", "period": 600, **changes}
        return await deadman.arm(link or self.link, self.folder, **given)

    def check(self, *before: str) -> None:
        argv = [*before, "sh", "-c", script("deadman"), "laneswap", "check", self.folder]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr

    def debt(self, deadline: float, **more: Any) -> None:
        row = {
            "what": "watchdog",
            "since": 1000.0,
            "deadline": deadline,
            "operator": "ana",
            "operation": "op-1",
            **more,
        }
        (self.path / "debts.json").write_text(json.dumps([row]) + "\n")

    def lease(self, renewed: int, operator: str = "ana") -> None:
        keys = {"id": "ab12", "epoch": 3, "operator": operator, "console": "c", "purpose": "p", "acquired": 1000}
        rows = {**keys, "renewed": renewed, "ttl": 60, "offered_to": ""}
        (self.path / "lease").write_text("".join(f"{key}={value}\n" for key, value in rows.items()))

    @property
    def armed(self) -> bool:
        return any(self.path.glob("deadman-*/config"))


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
async def lane(server: Server, tmp_path: Path) -> AsyncIterator[Lane]:
    async with local() as link:
        made = Lane(link, tmp_path / "state" / "spark4.dsv41", server)
        yield made
        await deadman.disarm(link, made.folder)
    for process in psutil.process_iter(["cmdline"]):
        if made.folder in " ".join(process.info["cmdline"] or []):
            process.kill()


async def test_an_overdue_debt_is_told_once_and_stays_owed(lane: Lane) -> None:
    assert (await lane.arm()).armed
    lane.debt(time.time() + 500)
    lane.check()
    assert lane.server.posted == []
    lane.debt(time.time() - 5)
    lane.check()
    lane.check()
    (told,) = lane.server.posted
    assert told["event"] == "debt overdue" and told["operator"] == "ana" and told["operation"] == "op-1"
    assert told["text"].startswith("[spark4] ACT dsv41: watchdog is off and overdue since ")
    assert told["text"].endswith("(ana); it is not armed by itself")
    assert json.loads((lane.path / "debts.json").read_text())[0]["what"] == "watchdog" and lane.armed
    lane.debt(time.time() - 3, since=2000.0)
    lane.check()
    assert len(lane.server.posted) == 2, "another debt is another message"


async def test_a_lease_that_ran_out_is_told_only_with_the_lane_down(lane: Lane) -> None:
    await lane.arm()
    lane.lease(int(time.time()))
    lane.server.healthy = False
    lane.check()
    assert lane.server.posted == [] and lane.server.asked == 0, "while it is held the lane is not asked"
    lane.lease(int(time.time()) - 120, 'ana "the \\ operator"')
    lane.server.healthy = True
    lane.check()
    assert lane.server.posted == [] and lane.server.asked == 1
    lane.server.healthy = False
    lane.check()
    lane.check()
    (told,) = lane.server.posted
    assert told["event"] == "lease ran out with the lane down" and told["operator"] == 'ana "the \\ operator"'
    assert "nothing is done by itself" in told["text"]


async def test_without_a_health_check_a_lease_is_not_watched(lane: Lane) -> None:
    await lane.arm(health="")
    lane.lease(1000)
    lane.check()
    assert lane.server.posted == [] and lane.armed


async def test_a_webhook_that_fails_is_tried_again_at_the_next_look(lane: Lane) -> None:
    await lane.arm()
    lane.debt(5.0)
    lane.server.refuses = 1
    lane.check()
    assert lane.server.posted == []
    lane.check()
    assert len(lane.server.posted) == 1


@pytest.mark.parametrize("poster", ["curl", "python3"])
async def test_on_a_full_disk_the_right_words_are_told(lane: Lane, tmp_path: Path, poster: str) -> None:
    """What an earlier version left there is not what is owed today."""
    await lane.arm()
    lane.debt(time.time() - 5, operator='ana "the \\ operator"')
    for own in lane.path.glob("deadman-*"):
        (own / "message").write_text('{"text": "yesterday, another debt"}')
    lane.check(*full(lacking(tmp_path, "curl")([]) if poster == "python3" else []))
    (told,) = lane.server.posted
    assert told["event"] == "debt overdue" and told["operator"] == 'ana "the \\ operator"'
    assert not (lane.path / "deadman.said").exists() or not (lane.path / "deadman.said").read_text()


def taken_from_memory(folder: str) -> list[str]:
    """What the timer noted of this folder outside it; gone then."""
    path = Path(f"/dev/shm/laneswap-{os.getuid()}", "deadman.said" + folder.replace("/", "_"))
    rows = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return rows


async def test_where_the_folder_cannot_be_written_memory_says_what_was_told(lane: Lane) -> None:
    await lane.arm()
    (lane.path / "deadman.said").mkdir()
    lane.debt(time.time() - 300)
    lane.check()
    lane.check()
    rows = taken_from_memory(lane.folder)
    assert len(lane.server.posted) == 1
    assert len([row for row in rows if row.startswith("debt watchdog ")]) == 1, rows


async def test_where_nothing_can_be_remembered_it_is_told_once_a_quarter_of_an_hour(lane: Lane) -> None:
    await lane.arm()
    lane.debt(time.time() - 450)
    lane.check(*full([]))
    assert lane.server.posted == []
    lane.debt(time.time() - 905)
    lane.check(*full([]))
    assert len(lane.server.posted) == 1


async def test_without_curl_python_tells_it(lane: Lane, tmp_path: Path) -> None:
    await lane.arm()
    lane.debt(5.0)
    lane.lease(1000)
    lane.server.healthy = False
    lane.check(*lacking(tmp_path, "curl")([]))
    assert [told["event"] for told in lane.server.posted] == ["debt overdue", "lease ran out with the lane down"]


async def test_where_nobody_could_be_told_it_is_not_armed(lane: Lane, tmp_path: Path) -> None:
    bare = Bent(lane.link, before=lacking(tmp_path, "curl", "python3"))
    found = await lane.arm(link=bare)
    assert not found.armed and "neither curl nor python3" in found.problem and not lane.armed


@pytest.mark.parametrize("url", ["", "ftp://x/y", "http://", 'http://x/"\nurl = y', "http://x/$(id)", "file:///etc"])
async def test_what_is_no_webhook_is_refused(lane: Lane, url: str) -> None:
    found = await lane.arm(webhook=url)
    assert not found.armed and found.problem and not lane.armed


async def test_the_webhook_is_in_a_file_of_this_account_and_in_no_argument_list(lane: Lane) -> None:
    seen: list[str] = []
    bent = Bent(lane.link, before=lambda argv: seen.extend(argv) or argv)  # type: ignore[func-returns-value]
    assert (await lane.arm(link=bent)).armed
    assert not any("s3cret" in word for word in seen)
    (config,) = lane.path.glob("deadman-*/config")
    assert config.stat().st_mode & 0o777 == 0o600 and "s3cret" in config.read_text()
    assert config.parent.stat().st_mode & 0o022 == 0
    config.chmod(0o644)
    lane.debt(5.0)
    lane.check()
    assert lane.server.posted == [], "a file that others could have written is not believed"


async def test_once_nothing_is_left_to_watch_it_takes_itself_away(lane: Lane) -> None:
    await lane.arm()
    (lane.path / "window.json").write_text("{}")
    lane.check()
    assert lane.armed
    (lane.path / "window.json").unlink()
    lane.check()
    assert not lane.armed
    assert not (await deadman.state(lane.link, lane.folder)).armed


async def test_a_sleeper_looks_by_itself_and_a_second_arming_replaces_it(lane: Lane) -> None:
    lane.path.mkdir(parents=True)
    lane.debt(5.0)
    first = await lane.arm(period=1)
    if first.mode != "none":
        pytest.skip("this machine has systemd: the bed tests its timers")
    await until(lambda: lane.server.posted, "it is told")
    await lane.arm(period=1)

    def sleepers() -> int:
        words = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
        return sum("watch" in line and lane.folder in line for line in words)

    await until(lambda: sleepers() == 1, "one sleeper is left")
    await deadman.disarm(lane.link, lane.folder)
    await until(lambda: sleepers() == 0, "none is left")
    assert len(lane.server.posted) == 1


async def test_a_head_out_of_reach_is_unknown(lane: Lane) -> None:
    away = Bent(lane.link, after=lambda output: replace(output, outcome=Outcome.UNREACHABLE, exit_status=None))
    found = await deadman.state(away, lane.folder)
    assert not found.armed and found.unknown
