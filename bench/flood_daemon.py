"""A Docker daemon that says little until it floods: `python -m bench.flood_daemon SOCKET`.

One running container; its log has a line a second. A line on stdin, the number of lines, makes the log write as many as
fast as they are taken; when stdin ends, so does this. stdout says `ready` once the socket is there.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import struct
import sys
import time
from collections.abc import Iterator

IDENT = "f" * 64
WORDS = "decode batch, #running-req: 3, #token: 2711632, token usage: 0.44, accept len: 2.75, gen throughput: 66.31"
TOGETHER = 500
"""Lines in one piece of the stream."""
STARTED = "2026-10-18T09:00:00Z"
CONTAINER = {
    "Id": IDENT,
    "Name": "/flood",
    "Created": STARTED,
    "Path": "python3",
    "Args": ["-m", "sglang.launch_server", "--port", "8210"],
    "Image": "sha256:" + "d" * 64,
    "State": {"Status": "running", "Running": True, "Pid": 4242, "ExitCode": 0, "StartedAt": STARTED},
    "Mounts": [],
    "Config": {"Image": "sglang", "Labels": {}, "Tty": False},
    "HostConfig": {"RestartPolicy": {"Name": "no"}, "NetworkMode": "host"},
}
ROW = {
    "Id": IDENT,
    "Names": ["/flood"],
    "Image": "sglang",
    "ImageID": CONTAINER["Image"],
    "State": "running",
    "Status": "Up 5 minutes",
    "Labels": {},
    "Ports": [],
    "HostConfig": {"NetworkMode": "host"},
    "Mounts": [],
}


def log_line(number: int) -> bytes:
    """One framed, dated line of stdout."""
    moment = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e9):09d}Z"
    payload = f"{stamp} line {number}: {WORDS}\n".encode()
    return struct.pack(">BxxxL", 1, len(payload)) + payload


class Daemon:
    """Answers GET; every open log gets every line."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._logs: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                path = request.split(b" ")[1].decode().partition("?")[0]
                if path.endswith(("/events", "/logs")):
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    if path.endswith("/logs"):
                        self._logs.add(writer)
                    await reader.read()
                    return
                body = json.dumps(self._answer(path)).encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._logs.discard(writer)
            writer.close()

    def _answer(self, path: str) -> object:
        if path.endswith("/version"):
            return {"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"}
        if path.endswith("/containers/json"):
            return [ROW]
        return CONTAINER

    async def write(self, count: int) -> None:
        """So many lines to every log, as fast as they are taken."""
        for some in batched(count, TOGETHER):
            piece = b"".join(log_line(next(self._numbers)) for _ in range(some))
            for log in list(self._logs):
                log.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await log.drain()

    async def trickle(self) -> None:
        """A line a second."""
        while True:
            await self.write(1)
            await asyncio.sleep(1.0)


def batched(count: int, most: int) -> Iterator[int]:
    """`count` in parts of at most `most`."""
    while count > 0:
        yield min(count, most)
        count -= most


async def main(path: str) -> None:
    """Until stdin ends."""
    daemon = Daemon()
    server = await asyncio.start_unix_server(daemon.serve, path)
    stdin = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    trickle = asyncio.create_task(daemon.trickle())
    print("ready", flush=True)
    while wanted := await stdin.readline():
        await daemon.write(int(wanted))
    trickle.cancel()
    server.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
