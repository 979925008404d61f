"""`laneswap init`: reads a launcher's file, here or on its host, and writes fleet.toml beside nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from console.fleet.inventory import FleetError, Host, Rates
from console.fleet.recipe import load_recipe
from console.fleet.sitefile import MOST_BYTES
from console.sanitize import line
from console.setup.newfleet import plain_found, write_fleet
from console.setup.origin import ADDRESSES, Found, FoundHost, beside, is_address, recognise
from console.wholefile import write_whole

READ_LIMIT_S = 40.0
"""Seconds for connection, login and reading."""
_REMOTE = re.compile(r"(?P<host>[^/:\s][^/:\s]*):(?P<path>[^:].*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Made:
    """A new fleet file, and what to say about it."""

    text: str
    taken: tuple[str, ...]
    """What was taken from where."""
    open: tuple[str, ...]
    """What could not be told, with the key that says it."""


def from_site(source: str, name: str, lane: str, root: str = "", folder: Path | None = None) -> Made:
    """The fleet file of a site file, FILE or HOST:PATH. Raises FleetError where it cannot be read or is none."""
    data, path, host = _read(source)
    found = _recognised(data, path, source)
    if host:
        _reached_as(found, host)
    elif found.root and not root and found.root == path[: len(found.root)]:
        found.open.append(f"vars.root: {found.root} is taken to be the same on the head as here")
    if root:
        found.root = root
        found.open = [row for row in found.open if not row.startswith("vars.root:")]
    return _made(found, name, lane, source, folder)


def from_words(
    hosts: list[str], url: str, recipe: str, name: str, lane: str, root: str = "", folder: Path | None = None
) -> Made:
    """The fleet file of what the command line says; without hosts it is this machine alone. Raises FleetError."""
    found = plain_found(hosts, url, recipe)
    found.root = root
    with contextlib.suppress(FleetError):  # one that cannot be read is told by the check of what is written
        found.variables = tuple(load_recipe(recipe, folder).vars)
    said = ", ".join(host.name for host in found.hosts)
    found.taken.append(f"hosts: {said}" + ("" if hosts else " (this machine; name others with --host)"))
    found.taken.append(f"url: {url}")
    found.taken.append(f"recipe: {recipe}")
    return _made(found, name, lane, "", folder)


def _recognised(data: bytes, path: str, source: str) -> Found:
    try:
        return recognise(data, path)
    except FleetError as error:
        raise FleetError(source, list(error.problems)) from None


def _made(found: Found, name: str, lane: str, source: str, folder: Path | None) -> Made:
    text = write_fleet(found, name, lane, line(source, 200), folder)
    return Made(text, tuple(line(row, 400) for row in found.taken), tuple(line(row, 400) for row in found.open))


def _reached_as(found: Found, host: str) -> None:
    """The host that the file was read from is the head, under the name that ssh knows it by."""
    name = host.rpartition("@")[2]
    first = found.hosts[0]
    free = all(name != other.name for other in found.hosts[1:])
    found.open = [row for row in found.open if not row.startswith(f"hosts.{first.name}.ssh:")]
    if not any(is_address(other.ssh) for other in (FoundHost(name, host), *found.hosts[1:])):
        found.open = [row for row in found.open if row != ADDRESSES]
    fits = free and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name)
    found.hosts[0] = FoundHost(name if fits else first.name, host)
    found.taken.append(f"head: reached as {host}, since the file was read from there; the file has {first.ssh}")


def _read(source: str) -> tuple[bytes, str, str]:
    """The file's bytes, its path, and the host it lies on ('' for this machine)."""
    match = _REMOTE.fullmatch(source)
    if match and not os.path.exists(source):
        return asyncio.run(_remote(match["host"], match["path"])), match["path"], match["host"]
    path = Path(source).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise FleetError(source, [f"cannot be read: {getattr(error, 'strerror', None) or error}"]) from error
    return data, beside(str(path.absolute()), os.path.expanduser("~")), ""


async def _remote(host: str, path: str) -> bytes:
    """One file of a host, read and nothing else."""
    from console.reach.limits import HandshakeLimits
    from console.reach.links import make_link
    from console.reach.onefile import FileUnread, read_file

    if host.startswith("-"):
        raise FleetError(f"{host}:{path}", ["a host alias, user@host or user@host:port, without a leading dash"])
    link = make_link("head", Host(ssh=host), Rates(), limits=HandshakeLimits())
    try:
        await link.start()
        return await read_file(link, path, most=MOST_BYTES + 1, limit=READ_LIMIT_S)
    except FileUnread as error:
        raise FleetError(f"{host}:{path}", [str(error)]) from error
    finally:
        await link.close()


def save(text: str, path: Path, *, force: bool) -> None:
    """Write a file whole or not at all; one that exists only with `force`. Raises FleetError."""
    if not force and os.path.lexists(path):
        raise FleetError(path, ["exists already; choose another --output, or overwrite it with --force"])
    target = Path(os.path.realpath(path)) if force else path
    try:
        write_whole(target, text.encode(), mode=0o666 & ~_umask(), over=force)
    except FileExistsError:
        raise FleetError(path, ["has come into being meanwhile; it was left as it is"]) from None
    except OSError as error:
        raise FleetError(path, [f"cannot be written: {error.strerror or error}"]) from error


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
