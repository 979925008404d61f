"""This machine, through the same interface as a host over ssh: /proc where there is one, psutil elsewhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.reach.link import Frame, ReachError, Reason
from console.reach.local_looks import LocalLooks
from console.reach.local_texts import facts_texts, node_texts
from console.reach.looking import check
from console.readings.gpu import QUERY_FIELDS
from console.readings.link import LinkState, LinkStatus
from console.readings.look import Look
from console.readings.output import Outcome, Output, classify, describe_error
from console.sanitize import line

MOST_BYTES = 8 << 20
_FRAMES_AHEAD = 64


class LocalLink:
    """This machine; see `Link`. Always up until closed."""

    def __init__(self, name: str, rates: Rates, *, timings: Timings | None = None) -> None:
        self.name = name
        self._rates = rates
        self._timings = timings or Timings()
        self._state = LinkState(LinkStatus.CONNECTING, time.monotonic())
        self._closing = asyncio.Event()
        self._children: set[asyncio.subprocess.Process] = set()
        self._sources: set[asyncio.Task[Any]] = set()
        self._sequence = 0
        self._looks = LocalLooks(self._timings)

    @property
    def state(self) -> LinkState:
        """Up from `start` to `close`."""
        return self._state

    async def start(self) -> None:
        """Nothing to connect."""
        if not self._closing.is_set():
            self._state = LinkState(LinkStatus.UP, time.monotonic())

    async def close(self) -> None:
        """End the frames and every child process."""
        self._closing.set()
        self._state = LinkState(LinkStatus.DOWN, time.monotonic(), "the console has closed this link")
        await asyncio.sleep(0)  # lets the iterator see it
        await _cancel(self._sources)  # an iterator that nobody closed does not keep them
        for child in tuple(self._children):
            await _end(child)

    async def run(self, argv: Sequence[str], *, stdin: str = "", limit: float = 10.0, operator: bool = False) -> Output:
        """Run one program in its own process group; see `Link.run`. Raises ValueError for an empty command or a NUL."""
        if not argv or any("\0" in word for word in argv):
            raise ValueError("a command needs at least one word and no NUL byte")
        began = time.monotonic()
        out, err = bytearray(), bytearray()
        error, status, started = "", None, False
        try:
            async with asyncio.timeout(limit), self._child(argv, piped=bool(stdin)) as child:
                started = True
                status = await _exchange(child, stdin, out, err)
        except TimeoutError:
            error = "TimeoutError"
        except OSError as failed:
            return self._not_started(argv, failed, began)
        return classify(
            self.name,
            argv,
            stdout=bytes(out),
            stderr=bytes(err),
            exit_status=status if status is None or status >= 0 else None,
            signal=_signal_name(status),
            error=error,
            started=started,
            took=time.monotonic() - began,
        )

    async def frames(self) -> AsyncIterator[Frame]:
        """The same frames as a host's sampler sends; see `Link.frames`."""
        yield self._frame("facts", await asyncio.to_thread(facts_texts))
        queue: asyncio.Queue[Frame] = asyncio.Queue(_FRAMES_AHEAD)
        closing = asyncio.create_task(self._closing.wait())
        sources = (self._nodes(queue), self._gpus(queue), self._looking(queue))
        mine = {closing, *(asyncio.create_task(source) for source in sources)}
        self._sources |= mine
        try:
            while not self._closing.is_set():
                arrival = asyncio.create_task(queue.get())
                try:
                    await asyncio.wait([arrival, *mine], return_when=asyncio.FIRST_COMPLETED)
                    if arrival.done():
                        yield arrival.result()
                    for ended in (task for task in mine if task.done() and not task.cancelled()):
                        ended.result()  # a source that fails is raised: its silence would look like a host that hangs
                finally:
                    arrival.cancel()
        finally:
            self._sources -= mine
            await _cancel(mine)

    def look(self, looks: Sequence[Look]) -> None:
        """Replace what is looked at; see `Link.look`. Raises ValueError."""
        check(looks)
        self._looks.ask(looks)

    async def open_tcp(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A TCP connection. Raises ReachError."""
        what = f"connect {host}:{port}"
        try:
            return await asyncio.open_connection(host, port)
        except ConnectionRefusedError as error:
            raise ReachError(self.name, what, "connection refused", reason=Reason.REFUSED) from error
        except TimeoutError as error:
            raise ReachError(self.name, what, "no answer in time", reason=Reason.TIMEOUT) from error
        except OSError as error:
            words = line(error.strerror or str(error), 200)
            raise ReachError(self.name, what, words, reason=Reason.UNREACHABLE) from error

    def forward_unix(self, remote_path: str) -> AbstractAsyncContextManager[Path]:
        """The path itself. Raises ReachError where there is no such socket."""
        return self._socket(remote_path)

    @asynccontextmanager
    async def _socket(self, remote_path: str) -> AsyncIterator[Path]:
        path = Path(remote_path)
        if not await asyncio.to_thread(path.is_socket):
            raise ReachError(self.name, f"connect {remote_path}", "no such socket", reason=Reason.NOT_FOUND)
        yield path

    # -- sources

    async def _nodes(self, queue: asyncio.Queue[Frame]) -> None:
        due = time.monotonic()
        while True:
            begun = time.monotonic()
            try:
                frame = self._frame("node", node_texts(), begun)
            except OSError as error:
                frame = self._frame("error", {}, begun, f"/proc/meminfo: {line(str(error), 200)}", "/proc/meminfo")
            await queue.put(frame)
            due = max(due + self._rates.node, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    async def _gpus(self, queue: asyncio.Queue[Frame]) -> None:
        argv = ["nvidia-smi", f"--query-gpu={','.join(QUERY_FIELDS)}", "--format=csv,noheader,nounits"]
        while True:
            if shutil.which(argv[0]) is None:
                await asyncio.sleep(60.0)
                continue
            begun = time.monotonic()
            asking = asyncio.create_task(self.run(argv, limit=self._timings.slow_limit))
            try:
                await self._report_until(asking, queue, begun)
                await queue.put(self._gpu_frame(await asking, begun))
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            await asyncio.sleep(max(0.0, begun + self._rates.gpu - time.monotonic()))

    async def _report_until(self, asking: asyncio.Task[Output], queue: asyncio.Queue[Frame], begun: float) -> None:
        wait = self._timings.slow_after
        while not (await asyncio.wait([asking], timeout=wait))[0]:
            words = f"nvidia-smi has not answered for {time.monotonic() - begun:.0f} s"
            await queue.put(self._frame("error", {}, begun, words, "nvidia-smi"))
            wait = self._rates.gpu

    def _gpu_frame(self, output: Output, begun: float) -> Frame:
        if output.ok:
            return self._frame("gpu", {"csv": output.stdout}, begun)
        if output.outcome is Outcome.UNKNOWN:
            words = f"killed after {self._timings.slow_limit:.0f} s without an answer"
        else:
            said = line(output.stdout.strip().partition("\n")[0], 200) or output.hint
            words = f"exited {output.exit_status}: {said}" if output.exit_status is not None else output.hint
        return self._frame("error", {}, begun, f"nvidia-smi {words}", "nvidia-smi")

    async def _looking(self, queue: asyncio.Queue[Frame]) -> None:
        async for kind, texts, begun, error in self._looks.answers():
            await queue.put(self._frame(kind, texts, begun, error, "look" if error else ""))

    def _frame(
        self, kind: str, texts: dict[str, str], begun: float | None = None, error: str = "", source: str = ""
    ) -> Frame:
        now = time.monotonic()
        self._sequence += 1
        return Frame(kind, self._sequence, now, time.time(), now, texts, error, now if begun is None else begun, source)

    # -- children

    @asynccontextmanager
    async def _child(self, argv: Sequence[str], *, piped: bool) -> AsyncIterator[asyncio.subprocess.Process]:
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        child = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe if piped else null, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self._children.add(child)
        try:
            yield child
        finally:
            await asyncio.shield(_end(child))
            self._children.discard(child)

    def _not_started(self, argv: Sequence[str], error: OSError, began: float) -> Output:
        status = 127 if isinstance(error, FileNotFoundError) else 126
        hint = "command not found on that host" if status == 127 else describe_error(error)
        took = time.monotonic() - began
        return Output(self.name, tuple(argv), Outcome.FAILED, status, "", "", describe_error(error), took, hint=hint)


async def _cancel(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _exchange(child: asyncio.subprocess.Process, stdin: str, out: bytearray, err: bytearray) -> int:
    async def feed() -> None:
        if child.stdin is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                child.stdin.write(stdin.encode())
                await child.stdin.drain()
            child.stdin.close()

    async def collect(reader: asyncio.StreamReader | None, into: bytearray) -> None:
        while reader is not None and (chunk := await reader.read(65_536)):
            into += chunk[: max(0, MOST_BYTES - len(into))]

    await asyncio.gather(feed(), collect(child.stdout, out), collect(child.stderr, err))
    return await child.wait()


async def _end(child: asyncio.subprocess.Process) -> None:
    """End the child's whole process group: TERM, and KILL to whatever is left of it a moment later."""
    if child.returncode is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await child.wait()
                    break
    transport = getattr(child, "_transport", None)
    if transport is not None:
        transport.close()  # closes pipes that a grandchild may still hold


def _signal_name(status: int | None) -> str:
    if status is None or status >= 0:
        return ""
    with suppress(ValueError):
        return signal.Signals(-status).name.removeprefix("SIG")
    return str(-status)
