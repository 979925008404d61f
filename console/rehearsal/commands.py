"""The only things that a rehearsal host runs: the sampler and a table of probes. Client text is compared with our own
scripts, byte for byte, and never reaches a shell or an interpreter otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from console.reach.sampler import IMPORTS, LABEL, LOADER, script
from console.reach.shell import GRACE, guarded
from console.readings.docker_errors import PROBE
from console.readings.gpu import QUERY_FIELDS
from console.readings.look import LookKind
from console.rehearsal.acting.asking import ENDING

SCRIPT_LIMIT = 65536
REFUSAL = "rehearsal host: only the console's own sampler, probes and scripts run here"
BEAT = b"beat\n"
LINE_LIMIT = 65536
_COMPLETE = (ENDING.decode(), 'exec /bin/sh -s "$@" $!\n')
_ORDER = re.compile(rb"look ([0-9]{1,3})")
_EVERY = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_NONCE = re.compile(r"LANESWAP-BEGIN-([0-9a-zA-Z]{8,64})")
_LIMIT = re.compile(r" laneswap (\d{1,5}) ")
_ARGUMENTS = re.compile(
    rf"{LABEL} ((?:[0-9a-f]{{8,64}})(?: [0-9]+(?:\.[0-9]+)?){{5}} {re.escape(','.join(QUERY_FIELDS))})\n"
)

PROBES: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
    # (what the console asks, what runs instead: a laptop's own answers would be about the laptop)
    (("true",), ("true",)),
    (("uname", "-r"), ("cat", "proc/sys/kernel/osrelease")),
    (("hostname",), ("cat", "proc/sys/kernel/hostname")),
    (("cat", "/proc/meminfo"), ("cat", "proc/meminfo")),
    (("sh", "-c", PROBE, "sh", "/var/run/docker.sock"), ("true",)),
)


@dataclass(frozen=True, slots=True)
class Played:
    """What to feed /bin/sh; `sampler` if the sampler's script and heartbeats may follow."""

    script: bytes
    sampler: bool


def recognise(data: bytes) -> Played | None:
    """What this stdin of `exec /bin/sh` is, once it has arrived whole; None: not (yet) anything we know."""
    text = data.decode("utf-8", "replace")
    if arguments := _ARGUMENTS.search(text):
        size = len(script("python").encode())
        known = LOADER.format(imports=IMPORTS, size=size, label=LABEL, arguments=arguments[1])
        return Played(data, sampler=True) if text == known else None
    nonce, limit = _NONCE.search(text), _LIMIT.search(text)
    if nonce is None or limit is None:
        return None
    seconds = int(limit[1]) - GRACE
    for asked, played in PROBES:
        if text == _framed(asked, nonce[1], seconds):
            return Played(_framed(played, nonce[1], seconds).encode(), sampler=False)
    return None


def hopeless(data: bytes) -> bool:
    """True for a whole script that is not one of ours: no byte that could still come would make it one."""
    return data.decode("utf-8", "replace").endswith(_COMPLETE)


class SamplerFeed:
    """Lets the sampler's own script through, then heartbeats and sets of looks, and nothing else."""

    def __init__(self) -> None:
        self._scripts = [script("python").encode(), script("sh").encode()]
        self._held = b""
        self._passed = False
        self._rows = 0
        """Lines of a set that are still to come."""

    def take(self, data: bytes) -> bytes:
        """What of `data` may go on. Raises ValueError for anything that is not ours."""
        self._held += data
        out = b""
        if not self._passed:
            for known in self._scripts:
                if self._held.startswith(known):
                    out, self._held, self._passed = known, self._held[len(known) :], True
                    break
            else:
                if any(known.startswith(self._held) for known in self._scripts):
                    return b""
                raise ValueError("not the sampler's script")
        *lines, self._held = self._held.split(b"\n")
        for line in lines:
            self._check(line)
            out += line + b"\n"
        if len(self._held) > LINE_LIMIT:
            raise ValueError("a line without end")
        return out

    def _check(self, line: bytes) -> None:
        """Raises ValueError for a line that is neither a heartbeat nor of a set of looks."""
        if self._rows:
            self._rows -= 1
            if not _is_look(line.decode("utf-8", "replace")):
                raise ValueError("not a look that may be taken here")
        elif order := _ORDER.fullmatch(line):
            self._rows = int(order[1])
        elif line + b"\n" != BEAT:
            raise ValueError("neither a heartbeat nor a look")


def _is_look(row: str) -> bool:
    """`ID KEY KIND EVERY ARGUMENT...`: of a known kind, and with no path that leads out of the host's folder."""
    fields = row.split("\t")
    if len(fields) < 5 or not all(field.isprintable() for field in fields):
        return False
    number, _, kind, every, *arguments = fields
    known = number.isdecimal() and kind in tuple(LookKind) and _EVERY.fullmatch(every) is not None
    return known and not any(".." in argument.split("/") for argument in arguments)


def _framed(argv: Sequence[str], nonce: str, seconds: float) -> str:
    framed = guarded(argv, limit=seconds)
    return framed.script.replace(framed.nonce, nonce)
