"""A sequence across real hosts: carried out by the head over its own ssh while the console is gone, killed, cut off."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from bed.client import Bed, BedHost
from bed_links import linked, until

from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.execution import deadman, detached
from console.execution.detached import Phase
from console.execution.runner_head import parsed
from console.execution.sequence import compile_operation, ssh_way, taken_over
from console.execution.sequence_head import carry_on, newest_run, start_on_head, stop
from console.execution.sequence_reach import reach_from_head
from console.reach.ssh import SshLink

pytestmark = pytest.mark.bed
IMAGE = "laneswap/busybox:bed"
RUNS = '[ "$(docker inspect --format "{{.State.Running}}" "$1")" = "$2" ]'
TRACED = 'echo "$1" >>/var/tmp/laneswap-ran; shift; exec "$@"'


class Lane:
    """Three hosts with a container that serves and one that is retired; the head has a key of its own."""

    def __init__(self, bed: Bed, hosts: tuple[BedHost, ...]) -> None:
        self.bed, self.hosts, self.head = bed, hosts, hosts[0]
        self.folder = f"/var/tmp/laneswap-{secrets.token_hex(3)}/bed.lane"
        self.op = f"20261201T021500Z-rollback-{secrets.token_hex(3)}"
        self.ways = {host.name: [] if host is self.head else ssh_way(f"{host.user}@{host.address}") for host in hosts}

    def bring_up(self) -> None:
        for host in self.hosts:
            for name, command in (("new", "sh -c 'trap exit TERM; while :; do sleep 1; done'"), ("old", "sleep 9999")):
                host.root("sh", "-c", f"docker run -d --name {name} {IMAGE} busybox {command}")
            host.docker("stop", "--time", "0", "old")

    def give_key(self) -> None:
        """The head may log in on the other hosts."""
        home = f"/home/{self.head.user}/.ssh"
        self.head.write(f"{home}/id_ed25519", self.head.key.read_text())
        self.head.write(f"{home}/known_hosts", self.head.known_hosts.read_text())
        self.head.root("chmod", "600", f"{home}/id_ed25519")
        self.head.root("chown", "-R", f"{self.head.user}:", home)

    def take_key(self) -> None:
        self.head.root(
            "rm", "-f", f"/home/{self.head.user}/.ssh/id_ed25519", f"/home/{self.head.user}/.ssh/known_hosts"
        )

    def clear(self) -> None:
        self.take_key()
        for host in self.hosts:
            host.undrop()
            host.root("docker", "rm", "--force", "new", "old", check=False)
            host.root("rm", "-rf", self.folder.rpartition("/")[0], "/var/tmp/laneswap-ran", check=False)

    def probe(self, host: BedHost, name: str, runs: bool) -> Probe:
        words = f"{name} on {host.name} {'runs' if runs else 'has exited'}"
        return Probe(host.name, words, ("sh", "-c", RUNS, "probe", name, str(runs).lower()))

    def step(self, id: str, host: BedHost, *argv: str, limit: float = 60.0, **more: Any) -> Step:
        words = ("sh", "-c", TRACED, "step", id, *argv) if argv else ()
        given = {"stage": Stage.STOP, "title": id, **more}
        return Step(id=id, host=host.name, argv=words, limit=limit, **given)

    def swap(self, pause: str = "3") -> Plan:
        """Stop on all hosts together, a pause on the last one, the retired ones started, one after the other."""
        stops = [
            self.step(
                f"stop-{host.name}",
                host,
                *("docker", "stop", "--time", "5", "new"),
                already=(self.probe(host, "new", False),),
                after=(self.probe(host, "new", False),),
                together="stop",
            )
            for host in self.hosts
        ]
        starts = [
            self.step(
                f"start-{host.name}",
                host,
                *("docker", "start", "old"),
                limit=9.0 if host is self.hosts[1] else 60.0,
                stage=Stage.BOOT,
                after=(self.probe(host, "old", True),),
            )
            for host in self.hosts
        ]
        pause_there = self.step("pause", self.hosts[-1], "sleep", pause, detached=True)
        return Plan(Verb.ROLLBACK, "bed", "lane", self.head.name, "roll back lane", (*stops, pause_there, *starts))

    def operation(self, plan: Plan, **changes: Any) -> dict[str, Any]:
        given = {"op": self.op, "operator": "ana", "epoch": 1, "created": time.time(), "reach": self.ways, **changes}
        return compile_operation(plan, console="ana@desk 1", folder=self.folder, **given)

    def lines(self) -> list[dict[str, Any]]:
        """The journal, read past every connection of the console."""
        text = self.head.root("cat", f"{self.folder}/ops/{self.op}/journal.jsonl", check=False)
        return list(parsed(text))

    def states(self) -> dict[str, str]:
        return {line["id"]: line["state"] for line in self.lines() if line["kind"] == "step"}

    def ended(self) -> bool:
        lines = self.lines()
        return bool(lines) and lines[-1]["kind"] == "end"

    def ran(self) -> list[str]:
        """Every command that ran, on any host."""
        texts = [host.root("cat", "/var/tmp/laneswap-ran", check=False) for host in self.hosts]
        return sorted("".join(texts).split())

    def assert_swapped(self) -> None:
        lines = self.lines()
        assert (lines[-1]["kind"], lines[-1].get("state")) == ("end", "done"), lines
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        names = [host.name for host in self.hosts]
        assert self.ran() == sorted(
            ["pause", *(f"stop-{name}" for name in names), *(f"start-{name}" for name in names)]
        )
        for host in self.hosts:
            assert host.docker("ps", "--format", "{{.Names}}", "--filter", "name=new", "--filter", "name=old") == "old"


@pytest.fixture
def lane(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[Lane]:
    made = Lane(bed, three)
    made.clear()
    made.bring_up()
    try:
        yield made
    finally:
        made.clear()


async def test_the_head_is_tried_from_inside_a_unit_and_says_why_not(lane: Lane) -> None:
    others = {host.name: [lane.ways[host.name]] for host in lane.hosts[1:]}
    async with linked(lane.head) as link:
        found = await reach_from_head(link, lane.folder, others)
        assert not found.ways and len(found.problems) == 2
        assert all("verification failed" in one or "ermission denied" in one for one in found.problems), found.problems
        lane.give_key()
        wrong = ssh_way(f"{lane.head.user}@no-such-host.invalid")
        found = await reach_from_head(link, lane.folder, {name: [wrong, *ways] for name, ways in others.items()})
        assert found.problems == () and found.ways == {name: ways[0] for name, ways in others.items()}


async def test_a_swap_goes_on_with_the_console_gone_after_its_first_step(lane: Lane) -> None:
    lane.give_key()
    async with linked(lane.head) as link:
        begun = await start_on_head(link, lane.operation(lane.swap()))
        assert begun.started, begun
        await until(lambda: "running" in lane.states().values(), "its first step runs")
    await until(lane.ended, "it has ended without the console")
    lane.assert_swapped()


async def test_a_killed_runner_is_seen_as_gone_and_carried_on_by_another_operator(lane: Lane) -> None:
    lane.give_key()
    operation = lane.operation(lane.swap("8"))
    async with linked(lane.head) as link:
        assert (await start_on_head(link, operation)).started
        await until(lambda: lane.states().get("pause") == "running", "the pause runs")
        _, state = await newest_run(link, lane.folder, lane.op)
        assert state.phase is Phase.RUNNING and state.mode == "user" and state.pid
        lane.head.root("kill", "-9", str(state.pid))
        unit, state = await over(link, lane)
        assert unit == "sequence" and state.phase is Phase.FAILED and state.signal == "KILL"
        assert not lane.ended()
        begun = await carry_on(link, taken_over(operation, operator="ben", console="ben@desk 2", epoch=2))
        assert begun.started and begun.unit == "sequence-2"
        await until(lane.ended, "it has ended")
    lane.assert_swapped()
    assert [line["operator"] for line in lane.lines() if line["kind"] == "takeover"] == ["ben"]
    for host in lane.hosts:
        assert host.root("cat", f"{lane.folder}/epoch") == "2\n"


async def over(link: SshLink, lane: Lane) -> tuple[str, detached.DetachedState]:
    async with asyncio.timeout(60):
        while True:
            found = await newest_run(link, lane.folder, lane.op)
            if found[1].over:
                return found
            await asyncio.sleep(0.1)


async def test_a_rank_that_loses_every_packet_in_the_middle_of_its_step_and_comes_back(lane: Lane) -> None:
    lane.give_key()
    rank = lane.hosts[-1]
    async with linked(lane.head) as link:
        assert (await start_on_head(link, lane.operation(lane.swap("6")))).started
        await until(lambda: lane.states().get("pause") == "running" and "pause" in lane.ran(), "the pause runs")
        with rank.dropped():
            words = f"no answer from {rank.name}, asked again"
            await until(lambda: any(line.get("words") == words for line in lane.lines()), "the runner says so")
        await until(lane.ended, "it has ended")
    lane.assert_swapped()


async def test_its_ssh_sessions_killed_again_and_again_no_step_runs_twice(lane: Lane) -> None:
    lane.give_key()
    killed = 0
    async with linked(lane.head) as link:
        assert (await start_on_head(link, lane.operation(lane.swap("2")))).started
        for _ in range(8):
            killed += sum([await asyncio.to_thread(host.kill_ssh_sessions) for host in lane.hosts[1:]])
            await asyncio.sleep(0.5)
        await until(lane.ended, "it has ended")
    assert killed
    lane.assert_swapped()


async def test_the_head_restarted_in_the_middle_is_lost_and_carried_on(lane: Lane) -> None:
    lane.give_key()
    operation = lane.operation(lane.swap("6"))
    async with linked(lane.head) as link:
        assert (await start_on_head(link, operation)).started
        await until(lambda: lane.states().get("pause") == "running", "the pause runs")
    lane.head.root("systemctl", "reboot", check=False)
    await asyncio.to_thread(lane.bed.restart, lane.head)
    async with linked(lane.head) as link:
        _, state = await over(link, lane)
        assert state.over and state.phase is not Phase.DONE, state
        assert not lane.ended()
        assert (await carry_on(link, operation)).started
        await until(lane.ended, "it has ended")
    lane.assert_swapped()


async def test_stopped_with_its_units_it_leaves_nothing_running(lane: Lane) -> None:
    lane.give_key()
    operation = lane.operation(lane.swap("45"))
    async with linked(lane.head) as link:
        assert (await start_on_head(link, operation)).started
        await until(lambda: lane.states().get("pause") == "running" and "pause" in lane.ran(), "the pause runs")
        assert await stop(link, operation, operator="ben", epoch=2, steps=True) == ""
    assert lane.lines()[-1]["state"] == "stopped" and "stopped by ben" in lane.lines()[-1]["words"]
    assert lane.states()["pause"] == "stopped"
    rank = lane.hosts[-1]
    await until(lambda: not [row for row in rank.remote_processes() if "sleep 45" in row], "nothing of it runs")


class Hook:
    """A webhook on the machine that the hosts' network belongs to."""

    def __init__(self, address: str) -> None:
        self.posted: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


async def test_a_timer_of_systemd_tells_of_a_debt_with_no_console_anywhere(bed: Bed, lane: Lane) -> None:
    hook = Hook(bed.gateway)
    row = {"what": "watchdog", "since": 1000, "deadline": 2000, "operator": "ana", "operation": lane.op}
    try:
        async with linked(lane.head) as link:
            armed = await deadman.arm(link, lane.folder, webhook=hook.url, fleet="bed", lane="lane", period=2)
            assert armed.armed and armed.mode == "user", armed
        lane.head.write(f"{lane.folder}/debts.json", json.dumps([row]) + "\n")
        await until(lambda: hook.posted, "people are told")
        assert hook.posted[0]["event"] == "debt overdue" and hook.posted[0]["operator"] == "ana"
        lane.head.root("rm", f"{lane.folder}/debts.json")
        await until(lambda: armed.unit not in lane.head.ssh("systemctl --user list-timers --all"), "it is gone")
        assert len(hook.posted) == 1
    finally:
        hook.server.shutdown()
        hook.server.server_close()
