"""`Rehearsal`: the embedded fleet as the console sees it, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import console
from console.fleet.inventory import Fleet
from console.readings.boot import BootRecord
from console.readings.recorded import Pool, Rates, Recorded, add_rate
from console.rehearsal.faults import FAULT, Fault
from console.rehearsal.scenario import Scenario, load_scenario

if TYPE_CHECKING:
    import asyncssh

START_LIMIT = 30.0
ANSWER_LIMIT = 15.0
END_LIMIT = 8.0
USUAL_POINTS = 600
USER = "ops"


class RehearsalError(Exception):
    """The embedded fleet did not start, or would not do what it was asked."""


class Rehearsal:
    """`async with Rehearsal("spark4") as r:` starts the fleet; leaving ends it and leaves nothing behind.

    `r.fleet` is what the operator would have written, `r.overrides` the asyncssh arguments of each host. Rates stay
    true to the scenario whatever `speed` is; boots and the timeline run `speed` times as fast, and so do the usual
    boot times that the fleet states. Raises ScenarioError, RehearsalError.
    """

    def __init__(self, scenario: Scenario | str | Path = "spark4", speed: float = 1.0) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if not 0.01 <= speed <= 1000:
            raise RehearsalError(f"clock factor {speed:g}: must be between 0.01 and 1000")
        self.speed = speed
        self.fleet = _scaled(self.scenario.fleet, speed)
        self.overrides: dict[str, dict[str, Any]] = {}
        self.records: Mapping[str, list[BootRecord]] = _records(self.scenario, speed)
        """Earlier boots of each lane, oldest first, as a console that had been there would have kept them."""
        self.remembered: Mapping[str, Recorded] = {lane: self._remembered(lane) for lane in self.fleet.lanes}
        """All that such a console would remember of each lane."""
        self.root: Path | None = None
        """Where the simulated files of each host lie, while it runs."""
        self.played: list[Fault] = []
        """What of the scenario's story has happened so far; the end of a fault is an entry too."""
        self.failed: list[str] = []
        """What of the story could not be played, in words."""
        self._process: asyncio.subprocess.Process | None = None
        self._said: deque[str] = deque(maxlen=40)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._orders = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(START_LIMIT):
                await self._start()
        except TimeoutError:
            await self._end()
            raise RehearsalError(f"the embedded fleet did not start within {START_LIMIT:.0f} s; {self.said}") from None
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    @property
    def pid(self) -> int:
        """The process that plays the fleet; 0 while there is none."""
        return self._process.pid if self._process is not None else 0

    @property
    def said(self) -> str:
        """The last words that process wrote to stderr."""
        return "\n".join(self._said) or "it said nothing"

    async def inject(self, kind: str, **fields: Any) -> Fault:
        """Make a fault happen now, for example `inject("engine", lane="dsv41", fault="hang")`. Returns it.

        Kinds and fields are those of a scenario's [[faults]]; times are ignored. Raises RehearsalError.
        """
        try:
            fault = FAULT.validate_python({"kind": kind, **fields})
        except ValueError as error:
            raise RehearsalError(str(error)) from error
        await self._order({"fault": fault.model_dump()})
        return fault

    async def truth(self, lane: str) -> dict[str, Any]:
        """What the lane's engine knows about itself: counters, rates, requests. Raises RehearsalError if it is down."""
        answer: dict[str, Any] = (await self._order({"truth": lane}))["truth"]
        return answer

    def _remembered(self, lane: str) -> Recorded:
        boots = self.records.get(lane, [])
        pools = tuple(Pool(boot.started, boot.kv_tokens) for boot in boots if boot.kv_tokens is not None)
        port, rates = self.fleet.lanes[lane].port, Rates()
        for container in self.scenario.containers.values():
            engine = self.scenario.engines.get(container.engine)
            if engine is not None and container.port == port and self.fleet.lanes[lane].head in container.hosts:
                for point in range(USUAL_POINTS if engine.usual else 0):
                    low, high = engine.usual or (0.0, 0.0)
                    add_rate(rates, engine.running, low + (high - low) * point / (USUAL_POINTS - 1))
        return Recorded(tuple(boots), pools, rates)

    def _models(self) -> set[str]:
        """Lanes whose ranks see a checkpoint of the scenario that the embedded Hub knows."""
        known = {
            host
            for checkpoint in self.scenario.checkpoints.values()
            if checkpoint.layout == "hub"
            for host in (checkpoint.host, *checkpoint.mounted_on)
        }
        return {name for name, lane in self.fleet.lanes.items() if known.intersection(lane.rank_hosts)}

    async def _start(self) -> None:
        import asyncssh  # 0.2 s: only who rehearses pays for it

        key = asyncssh.generate_private_key("ssh-ed25519")
        places = [str(Path(console.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "console.rehearsal.server",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
            start_new_session=True,  # a ctrl+c or a closed terminal is the console's to answer
            limit=1 << 20,
        )
        self._tasks.append(asyncio.create_task(self._listen(self._process)))
        scenario = self.scenario.model_dump(mode="json")
        with contextlib.suppress(RehearsalError):  # it ended already: the missing answer below says so, with its words
            await self._send(
                {"scenario": scenario, "speed": self.speed, "client_key": key.export_public_key().decode()}
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            await asyncio.gather(*self._tasks)
            raise RehearsalError(f"the embedded fleet did not start: {self.said}")
        self._found(json.loads(line), key)
        self._tasks.append(asyncio.create_task(self._take_answers(self._process)))

    def _found(self, ready: dict[str, Any], key: asyncssh.SSHKey) -> None:
        """Where everything of a started fleet is."""
        self.root = Path(ready["root"])
        self.fleet = _with_hub(self.fleet, str(ready["hub"]), self._models())
        self.overrides = {name: _override(place, key) for name, place in ready["hosts"].items()}

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            for act in (process.terminate, process.kill, None):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(END_LIMIT):
                        await process.wait()
                        break
                if act is not None:
                    with contextlib.suppress(ProcessLookupError):
                        act()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.overrides = {}
        if self.root is not None:
            await asyncio.to_thread(shutil.rmtree, self.root, ignore_errors=True)
            self.root = None

    async def _send(self, message: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise RehearsalError("the embedded fleet does not run")
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
        except ConnectionError:
            raise RehearsalError(f"the embedded fleet ended: {self.said}") from None

    async def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        self._orders += 1
        number = self._orders
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, **order})
            async with asyncio.timeout(ANSWER_LIMIT):
                said: dict[str, Any] = await answer
        except TimeoutError:
            raise RehearsalError(f"no answer from the embedded fleet within {ANSWER_LIMIT:.0f} s") from None
        finally:
            self._answers.pop(number, None)
        if "error" in said:
            raise RehearsalError(str(said["error"]))
        return said

    async def _take_answers(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            said = json.loads(line)
            self._hear(said)
            waiting = self._answers.get(said.get("id"))
            if waiting is not None and not waiting.done():
                waiting.set_result(said)
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(RehearsalError(f"the embedded fleet ended: {self.said}"))

    def _hear(self, said: dict[str, Any]) -> None:
        """What of the story was played, or could not be."""
        if "played" in said:
            self.played.append(FAULT.validate_python(said["played"]))
        if "failed" in said:
            self.failed.append(f"{said['failed']}: {said['error']}")

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            self._said.append(line.decode("utf-8", "replace").rstrip())


def _override(place: dict[str, Any], key: Any) -> dict[str, Any]:
    port = int(place["port"])
    return {
        "host": "127.0.0.1",
        "port": port,
        "username": USER,
        "client_keys": [key],
        "agent_path": None,
        "known_hosts": f"[127.0.0.1]:{port} {place['key']}\n".encode(),
        "config": None,
    }


def _records(scenario: Scenario, speed: float) -> dict[str, list[BootRecord]]:
    now = time.time()
    return {
        lane: sorted(
            (
                BootRecord(
                    started=now - boot.age_s,
                    total=boot.total_s / speed,
                    phases=tuple((name, seconds / speed) for name, seconds in boot.phases.items()),
                    kv_tokens=boot.kv_tokens,
                    revision=boot.revision,
                    free_at_start=None if boot.free_gib is None else int(boot.free_gib * (1 << 30)),
                )
                for boot in boots
            ),
            key=lambda record: record.started,
        )
        for lane, boots in scenario.boots.items()
    }


def _with_hub(fleet: Fleet, hub: str, lanes: set[str]) -> Fleet:
    """The fleet with the embedded Hub as the one to ask, for lanes whose checkpoint it knows and that name no other."""
    changed = {
        name: lane.model_copy(update={"download": lane.download.model_copy(update={"hub": hub})})
        for name, lane in fleet.lanes.items()
        if name in lanes and not lane.download.hub
    }
    return fleet.model_copy(update={"lanes": {**fleet.lanes, **changed}})


def _scaled(fleet: Fleet, speed: float) -> Fleet:
    lanes = {
        name: lane.model_copy(update={"usual_boot_s": lane.usual_boot_s / speed}) if lane.usual_boot_s else lane
        for name, lane in fleet.lanes.items()
    }
    return fleet.model_copy(update={"lanes": lanes, "rehearsal": True})
