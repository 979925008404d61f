"""One remote command from its script to its Output: what was sent, what came back, and what that proves."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from console.reach.connection import load_asyncssh
from console.reach.faults import Fault
from console.readings.output import FramedCommand, Outcome, Output, classify

if TYPE_CHECKING:
    import asyncssh

    Process = asyncssh.SSHClientProcess[bytes]

MOST_BYTES = 8 << 20
"""Of stdout, and of stderr; what is beyond is read and dropped."""
_CHUNK = 65_536
_AFTERMATH = 0.5
"""Seconds that a finished command's session may stay open (a child that it left holds its stdout)."""


class Exchange:
    """The state of one command while it is under way; every way out gives an Output."""

    def __init__(self, host: str, argv: tuple[str, ...], framed: FramedCommand) -> None:
        self.framed = framed
        self.queued = False
        self._host = host
        self._argv = argv
        self._sent = False
        self._out = bytearray()
        self._err = bytearray()
        self._began = time.monotonic()

    async def carry_out(self, process: Process) -> Output:
        """Send the script, read both outputs, say how it ended."""
        with suppress(OSError):  # the session ended already: what came and its status say why
            process.stdin.write(self.framed.script.encode())
            self._sent = True
        ended = asyncio.Event()
        readers = [
            asyncio.create_task(self._collect(process.stdout, self._out, ended)),
            asyncio.create_task(self._collect(process.stderr, self._err, None)),
        ]
        finished = asyncio.gather(*readers)
        marked = asyncio.create_task(ended.wait())
        try:
            either: set[asyncio.Future[Any]] = {finished, marked}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            try:
                async with asyncio.timeout(_AFTERMATH if ended.is_set() else None):
                    await asyncio.shield(finished)
                    await process.wait_closed()
            except TimeoutError:
                if not ended.is_set():
                    raise
        finally:
            for task in (*readers, marked):
                task.cancel()
            await asyncio.gather(*readers, marked, finished, return_exceptions=True)
        return self._outcome(process)

    def out_of_time(self, limit: float) -> Output:
        """The limit passed: UNKNOWN if the command was sent, otherwise it certainly did not run."""
        if self._sent:
            return self._classified("TimeoutError")
        if self.queued:
            words = f"not sent: no free session within {limit:g} s"
            return self.not_sent(Fault(Outcome.OUR_LIMIT, words, "MaxSessions of sshd, or long commands before it"))
        return self.not_sent(Fault(Outcome.UNREACHABLE, f"not sent: still connecting after {limit:g} s"))

    def not_sent(self, fault: Fault) -> Output:
        """The command did not run, because of `fault`."""
        hint = f"{fault.problem}; {fault.hint}" if fault.hint else fault.problem
        took = time.monotonic() - self._began
        return Output(self._host, self._argv, fault.outcome, None, "", "", "", took, hint=hint, host_key=fault.host_key)

    def _outcome(self, process: Process) -> Output:
        status, signal = process.exit_status, process.exit_signal
        if signal is not None:
            return self._classified("", signal=str(signal[0]))
        if status is None and not self._sent:
            return self.not_sent(Fault(Outcome.UNREACHABLE, "connection lost before the command was sent"))
        if status is None:
            return self._classified("ConnectionLost")
        return self._classified("", status=status)

    def _classified(self, error: str, *, status: int | None = None, signal: str = "") -> Output:
        return classify(
            self._host,
            self._argv,
            stdout=bytes(self._out),
            stderr=bytes(self._err),
            exit_status=status,
            signal=signal,
            error=error,
            started=True,
            nonce=self.framed.nonce,
            took=time.monotonic() - self._began,
        )

    async def _collect(self, reader: Any, into: bytearray, ended: asyncio.Event | None) -> None:
        asyncssh = load_asyncssh()
        mark, tail = f"\nLANESWAP-END-{self.framed.nonce} ".encode(), b""
        while True:
            try:
                chunk = await reader.read(_CHUNK)
            except (asyncssh.Error, OSError):
                return  # the missing exit status says that the connection went
            if not chunk:
                return
            into += chunk[: max(0, MOST_BYTES - len(into))]
            if ended is not None:
                if mark in tail + chunk:
                    ended.set()
                tail = chunk[-len(mark) :]
