"""The embedded fleet's own process: ssh servers, engines, simulated files and the scenario's timeline.

Started by `Rehearsal` as `python -m console.rehearsal.server`. It speaks JSON lines: on stdin first what to play, then
orders; on stdout first where everything is, then one answer an order. It ends, and cleans up, when stdin ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fnmatch
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from console.reach.private import PrivateFolder
from console.rehearsal.acting.host import ActingHosts
from console.rehearsal.acting.playing import Playing
from console.rehearsal.box import Box
from console.rehearsal.boxes import Boxes
from console.rehearsal.checks import check_fault
from console.rehearsal.faults import (
    FAULT,
    ClockFault,
    ContainerFault,
    EngineFault,
    Fault,
    FolderFault,
    FrontFault,
    GpuFault,
    HostFault,
    ImageFault,
    LaunchFault,
    MemoryFault,
    PortFault,
    RebootFault,
    undone,
)
from console.rehearsal.fronts import FrontProxy
from console.rehearsal.hosts import played_host
from console.rehearsal.hubserver import HubServer
from console.rehearsal.machine import SimulatedMachine
from console.rehearsal.scenario import Scenario
from console.rehearsal.sshd import RehearsalHost
from console.rehearsal.world import World

PREFIX = "laneswap-rehearsal-"
TICK = 1.0
CLOSE_LIMIT = 5.0
PR_SET_PDEATHSIG = 1
ORDER_LIMIT = 1 << 20
OPERATOR_GRACE_S = 10.0
"""Docker's own, of whoever stops a container by hand."""
PORT_PID = 200_000
"""Numbers of foreign programs begin here, by port."""
Tell = Callable[[dict[str, object]], None]


class RehearsalFleet:
    """Every host of one scenario, played at a clock factor."""

    def __init__(
        self, scenario: Scenario, speed: float, root: Path, client_key: asyncssh.SSHKey, tell: Tell | None = None
    ) -> None:
        """`tell` hears what of the story was played or failed; None: whoever reads this process's stdout."""
        self.scenario, self.speed, self.root = scenario, speed, root
        self._say = tell or say
        self.began = time.monotonic()
        self.hosts: dict[str, RehearsalHost] = {}
        self.machines: dict[str, SimulatedMachine] = {}
        self.boxes: dict[str, Boxes] = {}
        for name in scenario.fleet.hosts:
            place = root / name
            place.mkdir(mode=0o700)
            self.machines[name] = SimulatedMachine(place, name, scenario.machines[name])
            self.boxes[name] = Boxes(name, speed)
            self.hosts[name] = RehearsalHost(name, place, self.boxes[name], client_key)
        played = {name: played_host(name, machine) for name, machine in self.machines.items()}
        self.world = World(scenario, played)
        gates = {name: host.gate for name, host in self.hosts.items()}
        playing = Playing(scenario, speed, self.boxes, played, self.world, gates, self.triggered)
        self.acting = ActingHosts(playing)
        for server in self.hosts.values():
            server.acting = self.acting
        self._waiting = [fault for fault in scenario.faults if fault.after]
        """What befalls once a step begins."""
        self.web = HubServer(self.world.checkpoints)
        self.fronts: dict[str, FrontProxy] = {}
        self._background: set[asyncio.Task[None]] = set()
        now = time.time()
        for model in scenario.containers.values():
            for rank, host in enumerate(model.hosts):
                self.boxes[host].add(model, rank, scenario.engines.get(model.engine), now)

    @property
    def clock(self) -> float:
        """Scenario seconds since the start."""
        return (time.monotonic() - self.began) * self.speed

    async def start(self) -> None:
        """Everything up: files written, engines started, ports open."""
        for machine in self.machines.values():
            machine.install()
        await self.web.start()
        for name, model in self.scenario.fronts.items():
            boxes, lane = self.boxes[model.host], self.scenario.fleet.lanes[model.lane]
            front = self.fronts[name] = FrontProxy(model.port, partial(boxes.port_of, lane.port))
            await front.start()
            boxes.fronts.append(front)
        await asyncio.gather(*(boxes.start_all(booting=False) for boxes in self.boxes.values()))
        self.world.install()  # while these processes start; the clock of a boot runs from its own start
        await asyncio.gather(*(boxes.start_all(booting=True) for boxes in self.boxes.values()))
        self.step()
        self.acting.begin()
        for host in self.hosts.values():
            await host.start()
        await asyncio.gather(*(boxes.settled() for boxes in self.boxes.values()))
        self.began = time.monotonic()

    def addresses(self) -> dict[str, dict[str, object]]:
        """Port and public host key of each host."""
        return {
            name: {"port": host.gate.port, "key": host.key.export_public_key().decode().strip()}
            for name, host in self.hosts.items()
        }

    def ready(self) -> dict[str, object]:
        """Where everything is."""
        return {"hosts": self.addresses(), "root": str(self.root), "hub": self.web.url}

    def step(self) -> None:
        """Write every machine's files as they stand now."""
        self.world.step(self.clock)
        for name, machine in self.machines.items():
            load = replace(self.boxes[name].load(), other_gib=self.world.memory_gib(name))
            machine.step(self.clock, load)

    async def tick(self) -> None:
        """Step for ever, once a second."""
        while True:
            await asyncio.sleep(TICK)
            self.step()

    async def play(self) -> None:
        """Carry out the scenario's faults, each in its time."""
        await self._tell([fault for fault in self.scenario.faults if not fault.after], 0.0)

    def triggered(self, host: str, step: str) -> None:
        """A step begins on a host: what waits for it is told from now on."""
        due = [fault for fault in self._waiting if fnmatch.fnmatchcase(step, fault.after)]
        self._waiting = [fault for fault in self._waiting if fault not in due]
        if due:
            self._keep(self._tell(due, self.clock))

    async def _tell(self, faults: list[Fault], start: float) -> None:
        """These faults in their order; their times count from scenario time `start`."""
        story: list[tuple[float, int, Fault]] = []
        for number, fault in enumerate(faults):
            story.append((start + fault.at, number, fault))
            if fault.until is not None:
                story.append((start + fault.until, number, undone(fault)))
        for at, _, fault in sorted(story, key=lambda item: item[:2]):
            await asyncio.sleep(max(0.0, (at - self.clock) / self.speed))
            try:
                await self.inject(fault)
            except (ValueError, OSError) as error:
                self._say({"failed": fault.model_dump(), "error": str(error)})
            else:
                self._say({"played": fault.model_dump()})

    async def inject(self, fault: Fault) -> None:
        """Carry out one fault now, whatever its times say. Raises ValueError for one that does not fit the fleet."""
        if problems := check_fault(self.scenario, fault):
            raise ValueError("; ".join(problems))
        if isinstance(fault, HostFault):
            await self.hosts[fault.host].gate.set_mode(fault.mode)
        elif isinstance(fault, EngineFault):
            box = self.head(fault.lane)
            await self.boxes[box.host].command(box, {"fault": fault.fault, "seconds": fault.seconds})
        elif isinstance(fault, ContainerFault):
            await self._container(fault)
        elif isinstance(fault, ImageFault):
            await self.boxes[fault.host].befall_image(fault.image, fault.what)
        elif isinstance(fault, PortFault):
            self._port(fault)
        elif isinstance(fault, FolderFault):
            self.machines[fault.host].files.befall_folder(fault.path, fault.what)
        elif isinstance(fault, LaunchFault):
            self.acting.foreign_launch(fault.lane, fault.by)
        elif isinstance(fault, FrontFault):
            await self.fronts[fault.name].set_mode(fault.what)
        elif isinstance(fault, RebootFault):
            self._keep(self._reboot(fault))
        elif not self._machine(fault):
            self.world.inject(fault)

    def _machine(self, fault: Fault) -> bool:
        """Faults of a machine; False for any other."""
        if isinstance(fault, MemoryFault):
            self.machines[fault.host].set_fault(fault, self.clock)
        elif isinstance(fault, GpuFault):
            self.machines[fault.host].set_gpu(fault)
        elif isinstance(fault, ClockFault):
            self.machines[fault.host].files.set_clock(fault.seconds)
            self.boxes[fault.host].ahead = fault.seconds
        else:
            return False
        self.step()
        return True

    def _port(self, fault: PortFault) -> None:
        boxes, processes = self.boxes[fault.host], self.world.hosts[fault.host].processes
        if fault.taken:
            boxes.taken.add(fault.port)
            command = ["python3", "-m", "http.server", str(fault.port)]
            processes.start(PORT_PID + fault.port, command, self.world.hosts[fault.host].wall)
        else:
            boxes.taken.discard(fault.port)
            processes.end(PORT_PID + fault.port)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _reboot(self, fault: RebootFault) -> None:
        gate, boxes = self.hosts[fault.host].gate, self.boxes[fault.host]
        await gate.set_mode("refused")
        self.acting.host_goes_down(fault.host)
        await boxes.host_goes_down()
        self.world.host_goes_down(fault.host)
        await asyncio.sleep(fault.seconds / self.speed)
        self.machines[fault.host].reboot()
        self.world.host_comes_back(fault.host, mounts=fault.mounts)
        await boxes.host_comes_back()
        self.step()
        await gate.set_mode("open")

    async def _container(self, fault: ContainerFault) -> None:
        boxes = self.boxes[fault.host]
        if fault.action == "create":
            return await boxes.create(fault.name)
        box = boxes.find(fault.name)
        if box is None:
            raise ValueError(f"no container {fault.name!r} on {fault.host}")
        if fault.action == "start":
            await boxes.start(box)
        elif fault.action == "stop":
            self._keep(boxes.stop(box, OPERATOR_GRACE_S))
        elif fault.action in ("hang", "heed"):
            box.hangs = fault.action == "hang"
        elif fault.action == "remove":
            await boxes.remove(box)
        else:
            await boxes.end(box, fault.code, oom=fault.oom)

    def head(self, lane: str) -> Box:
        """The container that serves the lane's port on its head. Raises ValueError if there is none."""
        wanted = self.scenario.fleet.lanes[lane]
        found = [
            box for box in self.boxes[wanted.head].items if box.model.port == wanted.port and box.engine is not None
        ]
        if found:
            return next((box for box in found if box.state == "running"), found[0])
        raise ValueError(f"lane {lane!r} has no engine in this scenario")

    async def truth(self, lane: str) -> object:
        """What the lane's engine knows about itself. Raises OSError while it does not listen."""
        port = self.head(lane).port
        if port is None:
            raise ConnectionRefusedError(f"the engine of {lane} does not listen")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /__truth HTTP/1.1\r\nHost: rehearsal\r\nConnection: close\r\n\r\n")
            async with asyncio.timeout(CLOSE_LIMIT):
                _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        answer: object = json.loads(body)
        return answer

    async def close(self) -> None:
        """Everything down; returns when processes and connections are gone."""
        for task in tuple(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.acting.close()
        await asyncio.gather(self.web.close(), *(front.close() for front in self.fronts.values()))
        await asyncio.gather(*(host.close() for host in self.hosts.values()))
        await asyncio.gather(*(boxes.close() for boxes in self.boxes.values()))


def die_with_parent() -> None:
    """Linux: SIGTERM when the starting process dies, in case another process still holds our stdin open."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def say(message: dict[str, object]) -> None:
    """One JSON line to the starting process."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


async def obey(fleet: RehearsalFleet, stdin: asyncio.StreamReader) -> None:
    """Carry out orders until stdin ends."""
    while line := await stdin.readline():
        say(await answered(fleet, json.loads(line)))


async def answered(fleet: RehearsalFleet, order: dict[str, Any]) -> dict[str, object]:
    """One order, carried out; what could not be stands in the answer."""
    answer: dict[str, object] = {"id": order.get("id")}
    try:
        if "fault" in order:
            await fleet.inject(FAULT.validate_python(order["fault"]))
        if "truth" in order:
            answer["truth"] = await fleet.truth(str(order["truth"]))
    except (ValueError, OSError, KeyError, TimeoutError) as error:
        answer["error"] = str(error) or type(error).__name__
    return answer


async def serve() -> None:
    """Read what to play, play it until told to end, clean up."""
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader(limit=ORDER_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    first = await stdin.readline()
    if not first:
        return
    start = json.loads(first)
    scenario = Scenario.model_validate(start["scenario"])
    folder = PrivateFolder(PREFIX)
    main = asyncio.current_task()
    assert main is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, main.cancel)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # ctrl+c is the starting process's business
    try:
        fleet = RehearsalFleet(
            scenario, float(start["speed"]), folder.path, asyncssh.import_public_key(start["client_key"])
        )
        try:
            await fleet.start()
            say(fleet.ready())
            await _until_told(fleet, stdin)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_LIMIT):
                    await fleet.close()
    finally:
        folder.remove()


async def _until_told(fleet: RehearsalFleet, stdin: asyncio.StreamReader) -> None:
    work = [asyncio.create_task(one) for one in (obey(fleet, stdin), fleet.tick(), _play_and_wait(fleet))]
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _play_and_wait(fleet: RehearsalFleet) -> None:
    await fleet.play()
    await asyncio.Event().wait()


def main() -> None:
    """Entry point of the process."""
    die_with_parent()
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(serve())


if __name__ == "__main__":
    main()
