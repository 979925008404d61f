"""The sampler stream: a script sent on stdin, one long-lived session a host, frames as JSON lines; nothing installed.

The login shell gets `exec /bin/sh` alone. On its stdin comes the loader, which finds out what python3 can import
(not only that it exists) and answers `MARK python` or `MARK sh`; then comes that script, then a heartbeat line every
few seconds. Whatever a start-up file prints in between lacks the random mark and is skipped.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING

from console.fleet.inventory import Rates
from console.reach.connection import load_asyncssh
from console.reach.framing import FrameReader
from console.reach.limits import Timings
from console.reach.link import Frame
from console.reach.looking import Looking
from console.reach.sessions import Sessions
from console.readings.gpu import QUERY_FIELDS
from console.readings.output import SHELL_LINE
from console.sanitize import lines

if TYPE_CHECKING:
    import asyncssh

    Process = asyncssh.SSHClientProcess[bytes]

LABEL = "laneswap-sampler"
"""Stands in the command line of every sampler process, so that `ps` and tests find it."""
IMPORTS = "os, select, signal, sys, time"
"""What the script for python3 needs; the loader tries exactly these."""
MOST_RATE, MOST_BURST = 1 << 20, 8 << 20
"""Bytes a second, and at once, that are taken from one host: twenty times what the largest sends. More would hold up
the operator's keys; and a reader that only waits is no way out, as asyncssh opens the window anew for each piece."""
_CHUNK = 65_536

LOADER = """\
LC_ALL=C; export LC_ALL
set -- {label} {arguments}
if python3 -ISBc 'import {imports}' >/dev/null 2>&1; then
printf '\\n%s python\\n' "$2"
exec python3 -ISBuc 'import signal, sys; signal.alarm(int(float(sys.argv[6])))
for part in sys.stdin.buffer.read(int(sys.argv[1])).split(b"\\f"): exec(part)' {size} "$@"
fi
printf '\\n%s sh\\n' "$2"
(trap 'kill $s' TERM; sleep "${{5%.*}}" & s=$!; wait $s && kill -KILL $$) </dev/null >/dev/null 2>&1 &
exec /bin/sh -s "$@" $!
"""
"""One part of the script is compiled after the other: all at once would take 3 MB that the host never gets back. Both
ways end by themselves after BEAT_LIMIT seconds where packets are dropped before the script has come."""


class StreamEnded(Exception):
    """The stream ended though the link may be up; says why in safe words."""


_PARTS = {
    "python": ("files_host.py", "survey_host.py", "child_host.py", "looks_host.py", "sampler_host.py"),
    "sh": ("sampler_host.sh",),
}
_BETWEEN_PARTS = re.compile(r"^from console\.reach\.\w+ import [^\n(]+\n", re.MULTILINE)


@cache
def script(flavour: str) -> str:
    """The script that runs on the host: `sh`, or `python`, whose parts import each other here and are one there."""
    folder = resources.files("console.reach")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in _PARTS[flavour]]
    return _BETWEEN_PARTS.sub("", "\f".join(parts))


def loader(mark: str, rates: Rates, timings: Timings) -> str:
    """What /bin/sh reads first. `mark` is random for each stream."""
    arguments = " ".join(
        [
            mark,
            *(f"{value:g}" for value in (rates.node, rates.gpu, timings.beat_limit)),
            *(f"{value:g}" for value in (timings.slow_after, timings.slow_limit)),
            ",".join(QUERY_FIELDS),
        ]
    )
    size = len(script("python").encode())
    return LOADER.format(imports=IMPORTS, size=size, label=LABEL, arguments=arguments)


async def sample(
    sessions: Sessions, rates: Rates, timings: Timings, looking: Looking | None = None
) -> AsyncGenerator[Frame, None]:
    """One stream on one connection, until it ends. Raises StreamEnded, LinkLost or SessionRefused; never just returns.

    Closing the generator closes the session: the sampler sees its stdin end and goes, with its children. `looking` is
    told to the host at once and whenever it changes.
    """
    mark = secrets.token_hex(8)
    looking = looking or Looking()
    reader = FrameReader(mark, looking)
    silence = max(timings.beat_limit, 10 * rates.node)
    pace = _Pace()
    beating: asyncio.Task[None] | None = None
    async with AsyncExitStack() as stack:
        process = await _opened(stack, sessions, timings.hello_limit)
        try:
            await _send(process, loader(mark, rates, timings))
            await _started(process, reader, pace, timings.hello_limit)
            await _send(process, script(reader.flavour))
            beating = sessions.background(_beat(process, timings.beat))
            while True:
                for frame in reader.take():
                    if looking.send is None:  # what follows the script at once may be read along with it, and lost
                        looking.send = partial(_write, process)
                        looking.tell()
                    yield frame
                data = await _read(process, silence, "no frame")
                reader.feed(data, time.monotonic())
                pace.took(len(data))
        finally:
            looking.send = None
            if beating is not None:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)


async def _opened(stack: AsyncExitStack, sessions: Sessions, limit: float) -> Process:
    """The session. A server that answers keepalives but opens none would otherwise leave us waiting in silence."""
    try:
        async with asyncio.timeout(limit):
            return await stack.enter_async_context(sessions.process(SHELL_LINE))
    except TimeoutError:
        raise StreamEnded(f"no session for the sampler within {limit:.0f} s: sshd opens none") from None


class _Pace:
    """A bucket that leaks MOST_RATE bytes a second."""

    def __init__(self) -> None:
        self._full, self._at = 0.0, time.monotonic()

    def took(self, size: int) -> None:
        """Count `size` bytes. Raises StreamEnded when the bucket runs over."""
        now = time.monotonic()
        self._full = max(0.0, self._full - (now - self._at) * MOST_RATE) + size
        self._at = now
        if self._full > MOST_BURST:
            raise StreamEnded(f"the host floods the sampler stream: over {MOST_RATE >> 20} MiB a second")


async def _started(process: Process, reader: FrameReader, pace: _Pace, limit: float) -> None:
    end = time.monotonic() + limit
    while not reader.flavour:
        try:
            if time.monotonic() > end:  # bytes that never cease give a time limit no chance
                raise StreamEnded(f"the sampler did not start within {limit:.0f} s")
            data = await _read(process, end - time.monotonic(), "the sampler did not start")
        except StreamEnded as ended:
            raise StreamEnded(f"{ended}: {reader.noise}" if reader.noise else str(ended)) from ended
        reader.feed(data, time.monotonic())
        pace.took(len(data))


async def _send(process: Process, text: str) -> None:
    """Raises StreamEnded where the session has ended already: a login shell that refuses does so at once."""
    try:
        process.stdin.write(text.encode())
    except OSError as error:
        raise StreamEnded(await _last_words(process)) from error


async def _read(process: Process, limit: float, silent: str) -> bytes:
    """The next bytes. Raises StreamEnded when the stream ends, or stays silent for `limit` seconds."""
    asyncssh = load_asyncssh()
    try:
        async with asyncio.timeout(max(0.0, limit)):
            data: bytes = await process.stdout.read(_CHUNK)
    except TimeoutError:
        raise StreamEnded(f"{silent} within {limit:.0f} s") from None
    except (asyncssh.Error, OSError) as error:
        raise StreamEnded("connection lost") from error
    if not data:
        raise StreamEnded(await _last_words(process))
    return data


async def _last_words(process: Process) -> str:
    said = b""
    try:
        async with asyncio.timeout(0.5):
            await process.wait_closed()
            said = await process.stderr.read(_CHUNK) or await process.stdout.read(_CHUNK)
    except (TimeoutError, OSError, load_asyncssh().Error):
        said = b""
    status = "" if process.exit_status is None else f" with exit status {process.exit_status}"
    last = next((row for row in reversed(lines(said, 200, most=50)) if row.strip()), "")
    return f"the remote shell ended it{status}" + (f": {last.strip()}" if last else "")


async def _beat(process: Process, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        _write(process, b"beat\n")


def _write(process: Process, data: bytes) -> None:
    with suppress(OSError):  # the reader sees the end of the stream
        process.stdin.write(data)
