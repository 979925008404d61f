"""The containers of one rehearsal host: their states, logs and events, and the real engine processes behind them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Coroutine
from pathlib import Path

from console.rehearsal import engine as engine_process
from console.rehearsal.box import Box, LogEntry, engine_options, image_id
from console.rehearsal.fronts import FrontProxy
from console.rehearsal.machine import Load
from console.rehearsal.scenario import ContainerModel, EngineModel

ENGINE = Path(__file__).with_name("engine.py")
BINDS_S = 8.0
"""Seconds after which an engine wants its port."""


class Boxes:
    """All containers of one host."""

    def __init__(self, host: str, speed: float) -> None:
        self.host, self.speed = host, speed
        self.items: list[Box] = []
        self.removed: dict[str, Box] = {}
        self.fronts: list[FrontProxy] = []
        self.moved: dict[str, str] = {}
        """Image names that mean another image now, and which."""
        self.taken: set[int] = set()
        """Ports on which a foreign program listens."""
        self.unnamed: set[str] = set()
        """Images that were removed."""
        self.ahead = 0.0
        """Seconds by which the host's clock is ahead."""
        self._made = 0
        self.events: deque[dict[str, object]] = deque(maxlen=500)
        self.happened = 0
        self.news = asyncio.Condition()

    def add(self, model: ContainerModel, rank: int, engine: EngineModel | None, now: float) -> None:
        """One container as the scenario describes it, not yet started."""
        seed = f"{self.host}/{model.name}".encode()
        booting = engine is not None and model.state == "running" and model.age_s < engine.boot_s
        age = model.age_s / self.speed if booting else model.age_s
        began = None if model.state == "created" else now - age
        ended = now - model.ended_s if model.state == "exited" else None
        box = Box(
            model=model,
            host=self.host,
            rank=rank,
            engine=engine,
            id=hashlib.sha256(seed).hexdigest(),
            state=model.state,
            started=began,
            finished=ended,
            created=(began or now) - 2,
            exit_code=model.exit_code,
        )
        self.items.append(box)

    def find(self, name: str) -> Box | None:
        """A container by name or id (or the first digits of one)."""
        for box in self.items:
            if name in (box.model.name, box.id) or (len(name) >= 12 and box.id.startswith(name)):
                return box
        return None

    def listens(self, port: int) -> bool:
        """Whether anybody on this host listens on that port."""
        return port in self.taken or self.port_of(port) is not None

    def port_of(self, port: int) -> int | None:
        """Where what this host serves on `port` really listens; None: refused."""
        for front in self.fronts:
            if front.port == port:
                return front.listens
        for box in self.items:
            if box.engine is not None and box.engine.kind == "vllm" and box.rank:
                continue  # a worker of vLLM has no HTTP of its own
            if box.model.port == port and box.state == "running":
                return box.port
        return None

    def load(self) -> Load:
        """What the containers hold and do now."""
        memory = hbm = loading = 0.0
        busy = False
        for box in self.items:
            if box.state != "running" or box.engine is None:
                continue
            share = self.progress(box)
            memory += box.engine.memory_gib * min(1.0, share * 1.25)
            hbm += box.engine.hbm_gib * min(1.0, share * 1.25)
            loading = max(loading, share if share < 1 else 0.0)
            busy = busy or (share >= 1 and box.fault.get("fault") not in ("idle", "503", "silent"))
        return Load(memory, hbm, loading, busy)

    def progress(self, box: Box) -> float:
        """How far a container's boot has come, 0..1."""
        if box.engine is None or not box.engine.boot_s:
            return 1.0
        return min(1.0, (time.monotonic() - box.boot_began) * self.speed / box.engine.boot_s)

    async def start_all(self, *, booting: bool) -> None:
        """Start the processes of what the scenario says is running: those that boot, or those that have booted."""
        for box in self.items:
            boots = box.engine is not None and box.model.age_s < box.engine.boot_s
            if box.state == "running" and boots == booting:
                await self._spawn(box, box.model.age_s)

    async def settled(self) -> None:
        """Wait until what has booted already listens, or died."""
        up = [box for box in self.items if box.process is not None and self.progress(box) >= 1]
        async with self.news:
            await self.news.wait_for(lambda: all(box.port is not None or box.process is None for box in up))

    async def start(self, box: Box) -> None:
        """`docker start`: the engine boots anew. Raises ValueError with Docker's words."""
        if box.state == "running":
            return
        if box.model.image in self.unnamed:
            raise ValueError(f"Error response from daemon: No such image: {box.model.image}")
        box.started, box.finished, box.state, box.oom, box.exit_code = time.time(), None, "running", False, 0
        box.fault, box.asked = {}, False
        await self._spawn(box, 0.0)
        await self._tell(box, "start")
        self._keep(box, self._binds(box, box.started))

    async def _binds(self, box: Box, started: float) -> None:
        """Where somebody else has its port it ends, as engines do before they load anything."""
        await asyncio.sleep(BINDS_S / self.speed)
        if box.model.port not in self.taken or box.started != started or box.state != "running":
            return
        words = f"OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', {box.model.port}): "
        box.lines += 1
        box.log.append(LogEntry(box.lines, time.time_ns(), 2, f"{words}address already in use\n".encode()))
        await self.end(box, 1)

    async def stop(self, box: Box, grace: float) -> None:
        """`docker stop`: asked to end, killed after `grace` scenario seconds; returns when it has ended."""
        if box.state != "running":
            return
        box.asked = True
        await self._tell(box, "kill", signal="15")
        takes = grace if box.hangs else min(grace, box.engine.stop_s if box.engine else 0.1)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(takes / self.speed):
                await self.ended(box)
        if box.state == "running" and box.hangs:
            await self._tell(box, "kill", signal="9")
        await self.end(box, 137 if box.hangs else 0)
        await self.ended(box)
        await self._tell(box, "stop")

    async def ended(self, box: Box) -> None:
        """Returns when its process is gone."""
        async with self.news:
            await self.news.wait_for(lambda: box.state != "running")

    async def rename(self, box: Box, name: str) -> None:
        """`docker rename`. Raises ValueError with Docker's words."""
        if holder := self.find(name):
            raise ValueError(f'Conflict. The container name "/{name}" is already in use by container "{holder.id}".')
        former, box.model = box.model.name, box.model.model_copy(update={"name": name})
        await self._tell(box, "rename", oldName=f"/{former}")

    async def update(self, box: Box, policy: str) -> None:
        """`docker update --restart`."""
        box.model = box.model.model_copy(update={"restart": policy.partition(":")[0]})
        await self._tell(box, "update")

    async def run(self, model: ContainerModel, rank: int, engine: EngineModel | None) -> Box:
        """`docker run -d`: a new container, started. Raises ValueError with Docker's words."""
        if holder := self.find(model.name):
            raise ValueError(f'Conflict. The container name "/{model.name}" is already in use by container {holder.id}')
        self._made += 1
        self.add(model, rank, engine, time.time())
        box = self.items[-1]
        box.id = hashlib.sha256(f"{self.host}/{model.name}/{self._made}".encode()).hexdigest()
        box.state, box.started, box.finished, box.created = "created", None, None, time.time()
        await self._tell(box, "create")
        await self.start(box)
        return box

    async def end(self, box: Box, code: int, *, oom: bool = False) -> None:
        """The container's process dies by itself or by a signal, with this exit code."""
        if box.state != "running":
            return
        box.ordered, box.oom = code, oom
        if box.process is None:
            await self._ended(box)
            return
        if oom:
            await self._tell(box, "oom")
        if box.process.returncode is None:
            os.kill(box.process.pid, signal.SIGKILL)

    async def remove(self, box: Box) -> None:
        """`docker rm -f`: it ends and is gone."""
        if box.state == "running":
            box.asked = True
            await self._tell(box, "kill", signal="9")
            await self.end(box, 137)
            await self.ended(box)
        if box in self.items:
            self.items.remove(box)
            self.removed[box.model.name] = box
            await self._tell(box, "destroy")

    async def create(self, name: str) -> None:
        """What was removed is there again, as it was left. Raises ValueError."""
        box = self.removed.pop(name, None)
        if box is None:
            raise ValueError(f"container {name!r} was not removed on {self.host}")
        self.items.append(box)
        await self._tell(box, "create")

    async def host_goes_down(self) -> None:
        """The machine restarts: everything ends at once."""
        for box in self.items:
            await self.end(box, 255)
        async with self.news:
            await self.news.wait_for(lambda: all(box.state != "running" for box in self.items))

    async def host_comes_back(self) -> None:
        """Docker is there again and starts what it was told to keep."""
        for box in self.items:
            if box.model.restart in ("always", "unless-stopped") and box.exit_code == 255 and not box.asked:
                await self.start(box)

    async def befall_image(self, image: str, what: str) -> None:
        """The name means another image from now on (`move`), is gone (`remove`), or is as before (`back`)."""
        self.moved.pop(image, None)
        self.unnamed.discard(image)
        if what == "remove":
            self.unnamed.add(image)
            actor = {"ID": image_id(image), "Attributes": {"name": image}}
            return await self._told({"Type": "image", "Action": "delete", "Actor": actor})
        if what == "move":
            self.moved[image] = image_id(f"{image} pulled again")
        await self._told({"Type": "image", "Action": "pull", "Actor": {"ID": image, "Attributes": {"name": image}}})

    async def command(self, box: Box, order: dict[str, object]) -> None:
        """Send a fault to the engine behind a container."""
        box.fault = order
        if box.process is not None and box.process.stdin is not None and box.process.returncode is None:
            box.process.stdin.write(json.dumps(order).encode() + b"\n")
            await box.process.stdin.drain()

    async def close(self) -> None:
        """End every process and task; returns when they are gone."""
        for box in self.items:
            if box.process is not None and box.process.returncode is None:
                os.kill(box.process.pid, signal.SIGKILL)
        tasks = [task for box in self.items for task in box.tasks]
        for box in self.items:
            if box.process is not None:
                await box.process.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _spawn(self, box: Box, age: float) -> None:
        engine = box.engine
        if engine is None:
            return
        booting = age < engine.boot_s
        boot = engine.boot_s / self.speed
        shown_age = age / self.speed if booting else age
        box.boot_began = time.monotonic() - (shown_age if booting else boot)
        read, write = os.pipe()
        try:
            box.process = await asyncio.create_subprocess_exec(
                *_python(write),
                *engine_options(engine, box, boot, shown_age),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(write,),
                start_new_session=True,
            )
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        if not booting:
            self._remember(box, engine)
        self._keep(box, self._listen(box, read))
        self._keep(box, self._watch(box, box.process))

    def _remember(self, box: Box, engine: EngineModel) -> None:
        """The log of a boot that was over before the rehearsal began, with the times of then."""
        assert box.process is not None and box.started is not None
        options = engine_process.parse(engine_options(engine, box, engine.boot_s, engine.boot_s))
        text = ""
        for into, line in engine_process.boot_lines(options, box.started, box.process.pid):
            text += line
            if line.startswith("\r") and "100%" not in line:
                continue  # a bar is one line of the log once it is full
            box.lines += 1
            moment = int((box.started + into) * 1e9)
            box.log.append(LogEntry(box.lines, moment, 2, text.encode() + b"\n"))
            text = ""

    def _keep(self, box: Box, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        box.tasks.add(task)
        task.add_done_callback(box.tasks.discard)

    async def _listen(self, box: Box, read: int) -> None:
        """The engine writes its port once it listens; the pipe closes when it does or dies."""
        reader = asyncio.StreamReader()
        with os.fdopen(read, "rb") as pipe:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), pipe
            )
            try:
                line = await reader.readline()
            finally:
                transport.close()
        if line.strip().isdigit():
            box.port = int(line)
        async with self.news:
            self.news.notify_all()

    async def _watch(self, box: Box, process: asyncio.subprocess.Process) -> None:
        """Keep the log until the process ends, then say so."""
        assert process.stderr is not None
        while line := await _line(process.stderr):
            box.lines += 1
            box.log.append(LogEntry(box.lines, time.time_ns(), 2, line))
            async with self.news:
                self.news.notify_all()
        code = await process.wait()
        await self._ended(box, code if code >= 0 else 128 - code)

    async def _ended(self, box: Box, code: int = 0) -> None:
        box.exit_code = code if box.ordered is None else box.ordered
        box.port, box.process, box.ordered = None, None, None
        box.state, box.finished = "exited", time.time()
        await self._tell(box, "die", exitCode=str(box.exit_code))

    async def _tell(self, box: Box, action: str, **attributes: str) -> None:
        actor = {"name": box.model.name, "image": box.model.image, **box.model.labels, **attributes}
        event: dict[str, object] = {"status": action, "id": box.id, "from": box.model.image, "Type": "container"}
        await self._told({**event, "Action": action, "Actor": {"ID": box.id, "Attributes": actor}})

    async def _told(self, event: dict[str, object]) -> None:
        now = time.time_ns() + int(self.ahead * 1e9)
        async with self.news:
            self.events.append({**event, "scope": "local", "time": now // 1_000_000_000, "timeNano": now})
            self.happened += 1
            self.news.notify_all()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """One line, newline included; an overlong one comes in parts, as Docker's log driver splits it."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await reader.readexactly(error.consumed)


def _python(announce: int) -> list[str]:
    return [sys.executable, "-I", "-S", str(ENGINE), "--control", f"--announce-fd={announce}"]
