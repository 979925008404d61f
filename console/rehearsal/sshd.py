"""One rehearsal host's ssh server: a real one on loopback that runs the console's own commands and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh

from console.reach.shell import GRACE
from console.readings.output import SHELL_LINE
from console.rehearsal.acting.asking import BEGINNING, MOST_BYTES, Asked, taken_apart, whole
from console.rehearsal.acting.host import ActingHosts
from console.rehearsal.boxes import Boxes
from console.rehearsal.commands import REFUSAL, SCRIPT_LIMIT, Played, SamplerFeed, hopeless, recognise
from console.rehearsal.docker_api import DockerApi
from console.rehearsal.files import HOME
from console.rehearsal.gate import Gate

if TYPE_CHECKING:
    Process = asyncssh.SSHServerProcess[bytes]

USER = "ops"
DOCKER_SOCKET = "/var/run/docker.sock"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NOT_EXECUTABLE = 126
TERMINATED, TIMED_OUT = 143, 124
CHUNK = 65536


class _Session(asyncssh.SSHServer):
    """The rules of one connection."""

    def __init__(self, host: RehearsalHost) -> None:
        self._host = host
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Remember the connection: forwards are made on it."""
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        """Everyone must show a key."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Keys only."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """The one key of this rehearsal, for the one user."""
        return username == USER and key.public_data == self._host.client_key.public_data

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        """The lane's port on this host leads to where its engine really listens; everything else is refused."""
        port = self._host.boxes.port_of(dest_port) if dest_host in LOOPBACK else None
        if port is None or self._connection is None:
            return False
        return self._connection.forward_connection("127.0.0.1", port)

    def unix_connection_requested(self, dest_path: str) -> Any:
        """Docker's socket, and no other."""
        return self._host.docker.serve if dest_path == DOCKER_SOCKET else False


class RehearsalHost:
    """The ssh server of one host, its gate and the processes that clients started."""

    def __init__(self, name: str, root: Path, boxes: Boxes, client_key: asyncssh.SSHKey) -> None:
        self.name, self.root, self.boxes = name, root, boxes
        self.client_key = client_key
        self.acting: ActingHosts | None = None
        """How it is acted on; None: it is only read."""
        self.docker = DockerApi(boxes)
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.gate = Gate(self._serve)
        self._children: set[asyncio.subprocess.Process] = set()

    async def start(self) -> None:
        """Listen; `gate.port` is known afterwards."""
        await self.gate.start()

    async def close(self) -> None:
        """End connections and every process that a client started; returns when they are gone."""
        await self.gate.close()
        for child in tuple(self._children):
            _kill(child)
            await child.wait()

    @property
    def environment(self) -> Mapping[str, str]:
        """What commands find: simulated files below the prefix, the simulated tools first on PATH."""
        path = f"{self.root / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        return {
            "PATH": path,
            "HOME": HOME,
            "LANG": "C.UTF-8",
            "USER": USER,
            "LANESWAP_SAMPLER_ROOT": str(self.root),
        }

    async def _serve(self, wire: socket.socket) -> None:
        try:
            connection = await asyncssh.run_server(
                wire,
                server_factory=lambda: _Session(self),
                server_host_keys=[self.key],
                process_factory=self._process,
                encoding=None,
                allow_pty=False,
                agent_forwarding=False,
                x11_forwarding=False,
                compression_algs=None,
                line_editor=False,
                server_version="OpenSSH_9.6p1-rehearsal",
                login_timeout=30,
            )
        except (OSError, asyncssh.Error):
            wire.close()  # whoever knocked did not get in: that is theirs to report
            return
        try:
            await connection.wait_closed()
        finally:
            connection.abort()

    async def _process(self, process: Process) -> None:
        command = process.command or ""
        data = await _script(process) if command == SHELL_LINE else b""
        if (played := recognise(data)) is not None:
            return await self._run(process, played)
        asked = taken_apart(data) if self.acting is not None else None
        if (
            asked is not None
            and self.acting is not None
            and self.acting.recognised(asked.argv, asked.stdin) is not None
        ):
            return await self._act(process, self.acting, asked)
        process.stderr.write(f"{REFUSAL}; refused: {command[:200]!r}\n".encode())
        process.exit(NOT_EXECUTABLE)

    async def _act(self, process: Process, acting: ActingHosts, asked: Asked) -> None:
        """One of our own scripts, played; ended when the console lets go of it, or its time is up."""
        work = acting.playing.keep(acting.carry_out(self.name, asked.argv, asked.stdin))
        gone = asyncio.ensure_future(process.stdin.read(1))
        try:
            await asyncio.wait({work, gone}, timeout=asked.limit + GRACE, return_when=asyncio.FIRST_COMPLETED)
            ended = gone.done()
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)
        if work.cancelled():
            status, out, err = TERMINATED if ended else TIMED_OUT, "", ""
        elif (fault := work.exception()) is not None:
            print(f"rehearsal: {asked.argv[:2]} ended oddly: {fault!r}", file=sys.stderr, flush=True)
            return process.exit_with_signal("ABRT")
        else:
            done = work.result()
            status, out, err = done.status or 0, done.out, done.err
        said, complained = asked.framed(out, err, status)
        with contextlib.suppress(OSError, asyncssh.Error):  # the console is gone: nobody is left to be told
            process.stdout.write(said)
            process.stderr.write(complained)
            process.exit(status)

    async def _run(self, process: Process, played: Played) -> None:
        """Run one of our own scripts as the login shell would, and pass bytes until it ends."""
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment,
            cwd=self.root,
            start_new_session=True,
        )
        self._children.add(child)
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        feeding = asyncio.create_task(_feed(process.stdin, child.stdin, played))
        try:
            await asyncio.gather(_pass(child.stdout, process.stdout), _pass(child.stderr, process.stderr))
            code = await child.wait()
            if code >= 0:
                process.exit(code)
            else:
                process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        finally:
            feeding.cancel()
            _kill(child)
            await child.wait()
            await asyncio.gather(feeding, return_exceptions=True)
            self._children.discard(child)


async def _script(process: Process) -> bytes:
    """What came on stdin, once it is one of our scripts or cannot become one any more."""
    data = b""
    while len(data) < (MOST_BYTES if data.startswith(BEGINNING) else SCRIPT_LIMIT):
        more = await process.stdin.read(CHUNK)
        data += more
        framed = data.startswith(BEGINNING)
        if not more or (whole(data) if framed else recognise(data) is not None or hopeless(data)):
            break
    return data


async def _feed(source: asyncssh.SSHReader[bytes], target: asyncio.StreamWriter, played: Played) -> None:
    """The script, then what may follow it; the end of `source` is the end of `target`."""
    rest = SamplerFeed() if played.sampler else None
    try:
        target.write(played.script)
        await target.drain()
        while data := await source.read(CHUNK):
            if rest is not None:
                target.write(rest.take(data))
                await target.drain()
    except (ConnectionError, ValueError, asyncssh.Error):
        return  # an end is gone, or what came is not ours: the script sees the end of its stdin
    finally:
        target.close()


async def _pass(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    try:
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
    except (ConnectionError, asyncssh.Error):
        return  # the client is gone


def _kill(child: asyncio.subprocess.Process) -> None:
    """End a child and what it started: each has a session of its own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
