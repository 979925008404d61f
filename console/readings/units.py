"""systemd units as `systemctl show` and `is-active` describe them, and the memory cap that is really in force. Pure.

A host's answer: blocks of `NAME=VALUE` as `systemctl show` prints them, an empty line between two units; then rows
`@UNIT/FILE=VALUE` of each unit's cgroup (`cgroup.version` is 1 or 2, the others are the kernel's files); then rows
`! TEXT` of what systemctl said on stderr. Times are asked for in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from console.readings.look import Status, number, parse_answer
from console.readings.timers import calendar_of, first_missed
from console.sanitize import line, word

PAGE = 65_536
"""Bytes of the largest page of a kernel: memory.max holds whole pages, a cap in between is rounded down."""
NO_LIMIT = 2**63 - 2**20
"""From here on a number of v1, or of systemd, means no limit."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit at one time."""

    name: str
    load: str
    """LoadState: `loaded`, `not-found`..., '' if not said. A unit that is not found reads `Result=success`."""
    active: str
    """ActiveState: `active`, `inactive`, `activating`, `failed`..."""
    sub: str = ""
    result: str = ""
    main_pid: int | None = None
    since: float | None = None
    """Unix seconds at which it became what it is."""
    description: str = ""
    next_run: float | None = None
    """Of a timer: Unix seconds at which it fires next."""
    main_code: int | None = None
    """ExecMainCode: 1 exited, 2 killed, 3 dumped core; 0 while it runs."""
    main_status: int | None = None
    """ExecMainStatus: exit status or signal number, as main_code says."""
    due: float | None = None
    """Of a timer that stands still: Unix seconds of the first run that it missed, as far as that can be told."""


@dataclass(frozen=True, slots=True)
class UnitMemory:
    """Memory of a unit against its cap. Bytes; None where it cannot be read."""

    current: int | None
    peak: int | None
    cap_asked: int | None
    """MemoryMax as systemd has it; None for no cap."""
    cap: int | None
    """What the kernel enforces: memory.max of the unit's cgroup; None where there is none."""
    in_force: bool | None
    """Whether the asked cap is the enforced one; None without one asked, or where it cannot be told."""
    why: str = ""
    """Why not: `the memory controller is not delegated`."""
    oom_kills: int | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """One answer of systemd: units by name, or why it could not be asked."""

    items: tuple[Unit, ...]
    memory: tuple[tuple[str, UnitMemory], ...] = ()
    problem: str = ""
    """`no user bus`, `wrong user bus`, `no systemctl`...; '' where it answered."""
    code: int | None = None
    """Exit status of systemctl; None where it did not run."""
    said: str = ""
    """What it said on stderr; safe text."""

    def unit(self, name: str) -> Unit | None:
        """The unit of that name; None if it was not answered for."""
        return next((item for item in self.items if item.name == name), None)


_FOUND_ON_STDERR = (
    (re.compile(r"^ssh: ", re.MULTILINE), "ssh"),
    (re.compile(r"not been booted with systemd|host is down", re.IGNORECASE), "no systemd"),
    (re.compile(r"system scope bus", re.IGNORECASE), "no system bus"),
    (re.compile(r"permission denied|access denied|operation not permitted", re.IGNORECASE), "wrong user bus"),
    (
        re.compile(r"not defined|no medium found|no such file or directory|connection refused", re.IGNORECASE),
        "no user bus",
    ),
    (re.compile(r"timed out|timeout|no reply", re.IGNORECASE), "systemd does not answer"),
    (re.compile(r"not found", re.IGNORECASE), "no systemctl"),
)
_STAMP = re.compile(r"(?:[A-Za-z]{3} )?(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d+)? (?:UTC|GMT|Z)", re.ASCII)
_UNIX = re.compile(r"@([0-9]{1,12}(?:\.[0-9]{1,9})?)")
_ROW = re.compile(r"@([^/\s]{1,300})/([a-z._]{1,60})=(.*)", re.DOTALL)


def bus_problem(stderr: str) -> str:
    """Why systemctl could not ask, from what it said; '' if it said nothing that is known."""
    return next((words for pattern, words in _FOUND_ON_STDERR if pattern.search(stderr)), "")


def unit_state(code: int | None, stdout: str, stderr: str) -> str:
    """One word from `systemctl is-active`: `active`, `inactive`, `failed`, `in flight`, or `unknown: WHY`.

    WHY is `ssh`, `no user bus`, `wrong user bus`, `no such unit`... Only status 3 with `inactive` is inactive.
    """
    said = word(stdout.partition("\n")[0], 40).lower()
    if code is None or code == 255:
        return "unknown: ssh"
    if code == 4:
        return "unknown: no such unit"
    if said in ("active", "reloading", "refreshing") and code == 0:
        return "active"
    if said in ("activating", "deactivating", "maintenance", "reloading", "refreshing"):
        return "in flight"
    if said in ("inactive", "failed") and code == 3:
        return said
    why = bus_problem(stderr) or word(stderr.partition("\n")[0], 100) or f"exit {code}" + f", {said}" * bool(said)
    return f"unknown: {why}"


def parse_units(text: str) -> Units:
    """A host's answer, or plain text of `systemctl show`. Never raises."""
    first = text.partition("\n")[0].partition(" ")[0]
    if first not in {status.value for status in Status}:
        return _units(None, text, (), "")
    answer = parse_answer(text)
    if answer.status is not Status.OK:
        return Units((), problem=answer.words or answer.status.value)
    rows = answer.body.split("\n")
    said = "\n".join(row[2:] for row in rows if row.startswith("! "))
    shown = "\n".join(row for row in rows if not row.startswith(("! ", "@")))
    return _units(number(answer.values.get("code", "")), shown, [row for row in rows if row.startswith("@")], said)


def _units(code: int | None, shown: str, groups: Sequence[str], said: str) -> Units:
    blocks = _blocks(shown)
    files = _files(groups)
    memory = ((_unit(block).name, _memory(block, files.get(block.get("Id", ""), {}))) for block in blocks)
    problem = ""
    if not blocks:
        problem = bus_problem(said) or line(said.partition("\n")[0], 200) or "systemctl said nothing"
    return Units(
        tuple(_unit(block) for block in blocks),
        tuple((name, item) for name, item in memory if item is not None),
        problem,
        code,
        line(" ".join(said.split("\n")), 400).strip(),
    )


def _blocks(text: str) -> list[Mapping[str, str]]:
    """NAME=VALUE rows, parted by empty lines; only what has a name and a state is a unit."""
    blocks: list[dict[str, str]] = [{}]
    for row in text.split("\n")[:20_000]:
        name, equals, value = row.rstrip("\r").partition("=")
        if equals:
            blocks[-1].setdefault(name, value)
        elif not name and blocks[-1]:
            blocks.append({})
    return [block for block in blocks if block.keys() & {"Id", "ActiveState"}]


def _unit(block: Mapping[str, str]) -> Unit:
    return Unit(
        name=line(block.get("Id", ""), 300),
        load=word(block.get("LoadState", ""), 40),
        active=word(block.get("ActiveState", ""), 40),
        sub=word(block.get("SubState", ""), 40),
        result=word(block.get("Result", ""), 40),
        main_pid=number(block.get("MainPID", "")) or None,
        since=stamp(block.get("StateChangeTimestamp", "")),
        description=line(block.get("Description", ""), 200),
        next_run=stamp(block.get("NextElapseUSecRealtime", "")),
        main_code=number(block.get("ExecMainCode", "")),
        main_status=number(block.get("ExecMainStatus", "")),
        due=_due(block),
    )


def _due(block: Mapping[str, str]) -> float | None:
    last = stamp(block.get("LastTriggerUSec", ""))
    shown = block.get("TimersCalendar") or block.get("OnCalendar", "")
    if last is None or not shown or block.get("ActiveState") != "inactive":
        return None
    return first_missed(calendar_of(shown), last)


def stamp(text: str) -> float | None:
    """Unix seconds of `Sun 2026-10-18 08:10:31 UTC` or `@1761000000`; None for another zone, `n/a` and nothing."""
    if unix := _UNIX.fullmatch(text):
        return float(unix[1])
    parts = _STAMP.fullmatch(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in parts.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _files(rows: Sequence[str]) -> dict[str, dict[str, str]]:
    files: dict[str, dict[str, str]] = {}
    for row in rows:
        if match := _ROW.fullmatch(row):
            files.setdefault(match[1], {})[match[2]] = match[3].replace("\\n", "\n").strip()
    return files


def _memory(block: Mapping[str, str], files: Mapping[str, str]) -> UnitMemory | None:
    """None for a unit of which nothing speaks of memory: a timer."""
    if not files and not block.keys() & {"MemoryMax", "MemoryCurrent", "MemoryPeak"}:
        return None
    old = files.get("cgroup.version") == "1"
    asked = _limit(block.get("MemoryMax", ""))
    current = _size(files, "memory.usage_in_bytes" if old else "memory.current")
    peak = _size(files, "memory.max_usage_in_bytes" if old else "memory.peak")
    cap = _limit(files.get("memory.limit_in_bytes" if old else "memory.max", ""))
    in_force, why = _in_force(asked, cap, files, old, "/user@" in block.get("ControlGroup", ""))
    return UnitMemory(
        current=_size(block, "MemoryCurrent") if current is None else current,
        peak=_size(block, "MemoryPeak") if peak is None else peak,
        cap_asked=asked,
        cap=cap,
        in_force=in_force,
        why=why,
        oom_kills=_kills(files.get("memory.oom_control" if old else "memory.events", "")),
    )


def _in_force(
    asked: int | None, cap: int | None, files: Mapping[str, str], old: bool, of_a_user: bool
) -> tuple[bool | None, str]:
    if asked is None or not files:
        return None, ""
    if ("memory.limit_in_bytes" if old else "memory.max") in files:
        if cap is None:
            return False, "the kernel has no limit for its group"
        if 0 <= asked - cap < PAGE:
            return True, ""
        return False, f"the kernel has {cap} bytes, not {asked}"
    if old:
        return (
            False,
            "cgroup v1 enforces no cap of a user's unit" if of_a_user else "no memory group of its own (cgroup v1)",
        )
    controllers = files.get("cgroup.controllers")
    if controllers is None or "memory" in controllers.split():
        return None, "its cgroup's files cannot be read"
    return False, "the memory controller is not delegated"


def _size(values: Mapping[str, str], name: str) -> int | None:
    """Bytes; None for `[not set]`, nothing, and the number that stands for it."""
    size = number(values.get(name, ""))
    return None if size is None or size >= NO_LIMIT else size


def _limit(text: str) -> int | None:
    """Bytes; None for `infinity`, `max`, `[not set]` and the numbers that stand for no limit."""
    size = number(text)
    return None if size is None or size >= NO_LIMIT else size


def _kills(text: str) -> int | None:
    found = re.search(r"^oom_kill ([0-9]{1,18})$", text, re.MULTILINE)
    return int(found[1]) if found else None
