"""Which hosts the head reaches by its own ssh, tried where it counts: in a detached unit, without a forwarded agent."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.execution import detached
from console.execution.detached import Phase
from console.execution.sequence import ssh_way
from console.fleet.inventory import Host, Lane
from console.reach.link import Link
from console.sanitize import line

UNIT = "reach"
EACH = 12
"""Seconds for one try; ssh gives up by itself after five without an answer."""
_QUIET = ("-o", "UpdateHostKeys=no", "-o", "ControlPath=none")
"""ssh writes nothing: no keys that it learns, no socket of a shared connection."""
_TRY = """
limit=
! command -v timeout >/dev/null 2>&1 || limit="timeout $1"
try() {
  host=$1 number=$2
  shift 2
  said=$($limit "$@" true </dev/null 2>&1)
  code=$?
  said=$(printf %s "$said" | tail -n 1 | tr -d '\\t' | cut -c1-200)
  printf '%s\\t%s\\t%s\\t%s\\n' "$host" "$number" "$code" "$said"
  return "$code"
}
"""


@dataclass(frozen=True, slots=True)
class Reach:
    """What was found out."""

    ways: dict[str, list[str]]
    """What stands before a command for each host that the head reaches."""
    problems: tuple[str, ...]
    """Why it does not reach the others, in safe words: `spark-2: Permission denied (publickey).`"""
    unit: str = ""
    """`OPERATION/STEP` whose log keeps the answers on the head; '' if nothing was tried."""


def ways_to_try(lane: Lane, hosts: Mapping[str, Host], site: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
    """What may stand before a command for each other host of a lane, the site file's own address first. `site`: its
    values under laneswap's names."""
    addresses, users = site.get("hosts", ()), site.get("users", ())
    found: dict[str, list[list[str]]] = {}
    for rank, host in enumerate(lane.rank_hosts):
        if host == lane.head or host in found:
            continue
        targets: list[str] = []
        if rank < len(addresses):
            targets += [f"{users[rank]}@{addresses[rank]}"] if rank < len(users) else []
            targets.append(addresses[rank])
        targets.append(hosts[host].ssh.removeprefix("ssh://"))
        found[host] = list(_ways(dict.fromkeys(targets)))
    return found


def _ways(targets: Iterable[str]) -> Iterator[list[str]]:
    for target in targets:
        try:
            yield ssh_way(target)
        except ValueError:
            continue


async def reach_from_head(
    link: Link,
    folder: str,
    candidates: Mapping[str, Sequence[Sequence[str]]],
    *,
    op: str = "",
    epoch: int | None = None,
    unit: str = UNIT,
) -> Reach:
    """Try the ways to each host in their order until one works; hosts at the same time. All that is run is `true`."""
    if not candidates:
        return Reach({}, ())
    op = op or f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-reach-{secrets.token_hex(3)}"
    limit = EACH * max(len(ways) for ways in candidates.values()) + 15.0
    script = "".join([_TRY, *_calls(candidates), "wait\n"])
    argv = ["sh", "-s", "--", str(EACH)]
    found = await detached.start(link, folder, op, unit, epoch, argv, stdin=script, limit=limit)
    if not isinstance(found, detached.Started):
        return Reach({}, tuple(f"{host}: {found.problem}" for host in candidates), f"{op}/{unit}")
    text = await _log(link, folder, op, unit, limit)
    return _read(text, candidates, f"{op}/{unit}")


async def reach_by_login(link: Link, candidates: Mapping[str, Sequence[Sequence[str]]]) -> Reach:
    """The same from a login on the head instead of a unit: nothing is made or written there, known_hosts neither."""
    if not candidates:
        return Reach({}, ())
    quiet = {host: [[way[0], *_QUIET, *way[1:]] for way in ways] for host, ways in candidates.items()}
    script = "".join(["unset SSH_AUTH_SOCK\n", _TRY, *_calls(quiet), "wait\n"])
    limit = EACH * max(len(ways) for ways in candidates.values()) + 15.0
    output = await link.run(["sh", "-s", "--", str(EACH)], stdin=script, limit=limit)
    if not output.ok and not output.stdout:
        why = output.hint or line(output.stderr, 200) or output.outcome.value
        return Reach({}, tuple(f"{host}: {why}" for host in candidates))
    return _read(output.stdout, candidates, "")


def _calls(candidates: Mapping[str, Sequence[Sequence[str]]]) -> Iterator[str]:
    for host, ways in candidates.items():
        tries = [f"try {shlex.join([host, str(number), *way])}" for number, way in enumerate(ways)]
        yield f"({' || '.join(tries) or ':'}) &\n"


async def _log(link: Link, folder: str, op: str, unit: str, limit: float) -> str:
    """What the unit has said once it is over, or until its time is up."""
    data, offset = b"", 0
    loop = asyncio.get_running_loop()
    until = loop.time() + limit
    while True:
        followed = await detached.follow(link, folder, op, unit, offset)
        data, offset = data + followed.data, followed.next
        over = followed.state.over or followed.state.phase is Phase.ABSENT
        if (over and offset >= followed.state.size) or loop.time() > until:
            return data.decode("utf-8", "replace")
        if not followed.data:
            await asyncio.sleep(0.2)


def _read(text: str, candidates: Mapping[str, Sequence[Sequence[str]]], unit: str) -> Reach:
    ways: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    for row in text.splitlines():
        host, _, rest = row.partition("\t")
        number, _, rest = rest.partition("\t")
        code, _, said = rest.partition("\t")
        if host not in candidates or not number.isdigit() or int(number) >= len(candidates[host]):
            continue
        if code == "0":
            ways[host] = list(candidates[host][int(number)])
        else:
            problems[host] = line(said, 200) or ("no answer in time" if code == "124" else f"exit {line(code, 10)}")
    for host in candidates:
        if host in ways:
            problems.pop(host, None)
        else:
            problems.setdefault(host, "the head did not say")
    return Reach(ways, tuple(f"{host}: {why}" for host, why in problems.items()), unit)
