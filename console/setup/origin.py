"""What a launcher's own file says of a fleet: hosts, ranks, endpoint, recipe. Pure; it says what it could not tell.

Forms known: the site file of every shipped recipe; `.env` kits with HEAD_IP and workers; JSON with workers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from console.fleet.inventory import FleetError
from console.fleet.recipe import load_recipe, shipped
from console.fleet.recipe_model import Recipe, SiteName
from console.fleet.sitefile import parse_site
from console.fleet.sitetypes import SiteFile, SiteKind, unusable
from console.fleet.wording import NAME_PATTERN
from console.sanitize import line

_HEAD_KEYS = ("HEAD_IP", "HEAD_HOST")
_WORKER_KEYS = ("WORKER_HOSTS", "WORKER_IPS", "WORKER_IP", "WORKER_SSH")
_PORT_KEYS = ("API_PORT", "PORT")
ADDRESSES = (
    "hosts: these addresses are those that the nodes use among themselves; where they cannot be reached from here, "
    "write names of your ssh config"
)
"""What is said of hosts that a file names by address alone."""
_EVERYWHERE = ("", "0.0.0.0", "::", "localhost")  # noqa: S104 (what a file says, not what is listened on)
"""Addresses under which the head reaches itself on loopback."""
ENGINES = ("sglang", "vllm")


@dataclass(frozen=True, slots=True)
class FoundHost:
    """One machine: its name in fleet.toml and how ssh reaches it."""

    name: str
    ssh: str


@dataclass(slots=True)
class Found:
    """What was found, with the words for the report."""

    recipe: str = "docker-generic"
    hosts: list[FoundHost] = field(default_factory=list)
    url: str = "http://127.0.0.1:8000"
    engine: str = ""
    containers: str = ""
    root: str = ""
    variables: tuple[str, ...] = ()
    """Names of the recipe's variables."""
    taken: list[str] = field(default_factory=list)
    """`hosts: 4, from NODES and USERS (lines 2, 3)`."""
    open: list[str] = field(default_factory=list)
    """What it could not tell, and which key says it."""


class Source:
    """The file's keys; every one that is used is noted with its line."""

    def __init__(self, file: SiteFile, found: Found) -> None:
        self.file = file
        self._found = found

    def get(self, *keys: str) -> tuple[str, ...]:
        """Values of the first key that is set and can be taken as it stands; () if none is."""
        for key in keys:
            item = self.file.get(key)
            if item is None or not any(item.values):
                continue
            if reason := unusable(item):
                self._found.open.append(f"{key}: {reason}")
                continue
            return item.values
        return ()

    def words(self, *keys: str) -> tuple[str, ...]:
        """The same, a scalar taken apart at blanks."""
        values = self.get(*keys)
        return tuple(values[0].split()) if len(values) == 1 else values

    def one(self, *keys: str) -> str:
        """The same as one text."""
        return next(iter(self.get(*keys)), "")

    def where(self, *keys: str) -> str:
        """`NODES and USERS (lines 2, 3)`."""
        items = [item for key in keys if (item := self.file.get(key)) is not None and any(item.values)]
        lines = [str(item.line) for item in items if item.line]
        tail = f" (line{'s' if len(lines) > 1 else ''} {', '.join(lines)})" if lines else ""
        return " and ".join(item.key for item in items) + tail


def recognise(data: bytes, path: str) -> Found:
    """What the file says. Raises FleetError where it is none of the known forms."""
    kind = SiteKind.JSON if path.endswith(".json") or data.lstrip()[:1] == b"{" else SiteKind.BASH
    file = parse_site(data, kind)
    found = Found()
    source = Source(file, found)
    found.open += [f"{line(path, 200)}: {warning}" for warning in file.warnings[:5]]
    for reader in _readers(file):
        if reader(source, found, path):
            if not found.hosts:
                raise FleetError(path, ["it names no hosts that could be taken", *found.open])
            return found
    raise FleetError(path, [_unknown(file)])


def _readers(file: SiteFile) -> Sequence[Callable[[Source, Found, str], bool]]:
    if file.kind is SiteKind.JSON:
        return (_cluster_json,)
    return (_of_recipe, _head_and_workers)


def _unknown(file: SiteFile) -> str:
    keys = list(dict.fromkeys(item.key for item in file.assignments))[:12]
    seen = f"; it sets {', '.join(line(key, 40) for key in keys)}" if keys else "; it sets nothing"
    return (
        "not recognised: neither the site file of a shipped recipe (fleet.env: NODES and SNAP; cluster.env: NODES and "
        f"MODEL_REVISION), nor HEAD_IP with WORKER_IPS, nor JSON with workers{seen}"
    )


# --- the site file of a recipe ---------------------------------------------------------------------------------------


def _of_recipe(source: Source, found: Found, path: str) -> bool:
    """A file that has the hosts and the revision under the keys of a shipped recipe."""
    for name in shipped():
        recipe = load_recipe(name)
        keys = recipe.site.keys if recipe.site else {}
        wanted = [key for part in ("hosts", "revision") if (key := keys.get(_name(part)))]
        if len(wanted) == 2 and all(source.file.get(key) for key in wanted):
            _take_recipe(source, found, recipe, path)
            return True
    return False


def _name(part: str) -> SiteName:
    return part  # type: ignore[return-value]


def _take_recipe(source: Source, found: Found, recipe: Recipe, path: str) -> None:
    assert recipe.site is not None
    site = recipe.site

    def key(name: str) -> str:
        return site.keys.get(_name(name), "")

    found.recipe, found.engine = recipe.name, recipe.reads.engine
    found.variables = tuple(recipe.vars)
    found.taken.append(f"recipe: {recipe.name}, from its keys {source.where(key('hosts'), key('revision'))}")
    hosts, users = source.words(key("hosts")), source.words(key("users")) if key("users") else ()
    _hosts(found, hosts, users, source.where(key("hosts"), key("users")))
    port = source.one(key("port"), *_PORT_KEYS) or str(site.port or 8000)
    _endpoint(found, source.one(key("address")), port, source.where(key("address"), key("port")) or "the recipe")
    container = source.one(key("container"))
    found.containers = container or site.container
    if found.containers:
        found.taken.append(f"containers: {found.containers}, from {source.where(key('container')) or 'the recipe'}")
    _root(found, source, key("root"), site.path, path)
    holder = source.one(key("holder"))
    if holder.isdecimal() and int(holder) < len(found.hosts):
        held = found.hosts[int(holder)].name
        found.taken.append(f"checkpoint: held by {held}, from {source.where(key('holder'))}; read from the file itself")


def _root(found: Found, source: Source, key: str, template: str, path: str) -> None:
    """The variable of the site file's path: from a key of the file, else from where the file lies."""
    if "{root}" not in template:
        return
    if named := source.one(key):
        found.root = named
        found.taken.append(f"vars.root: {named}, from {source.where(key)}")
        return
    tail = template.removeprefix("{root}")
    if path.endswith(tail) and len(path) > len(tail):
        found.root = path.removesuffix(tail)
        found.taken.append(f"vars.root: {found.root}, from where the file lies")
    else:
        found.open.append(f"vars.root: the file is not called {tail.lstrip('/')}; set it to the folder on the head")


# --- kits with a head and workers, JSON ------------------------------------------------------------------------------


def _head_and_workers(source: Source, found: Found, path: str) -> bool:
    head = source.words(*_HEAD_KEYS)[:1]
    workers = source.words(*_WORKER_KEYS)
    if not head or not workers:
        return False
    user = source.one("WORKER_USER")
    used = next(key for key in _WORKER_KEYS if source.file.get(key) and source.words(key) == workers)
    head_key = next(key for key in _HEAD_KEYS if source.file.get(key))
    found.taken.append(f"recipe: {found.recipe}: no shipped recipe drives this kit, so it is read and not driven")
    _hosts(found, (*head, *workers), (user,) * (1 + len(workers)), source.where(head_key, used, "WORKER_USER"))
    if user:
        found.open.append(
            f"hosts.{found.hosts[0].name}.ssh: WORKER_USER is taken for the head too; correct it if not so"
        )
    _endpoint(found, "", source.one(*_PORT_KEYS) or "8000", source.where(*_PORT_KEYS) or "a usual port")
    _engine(found, source, ("IMAGE", "BASE_IMAGE", "EXTRA_SGLANG_ARGS", "EXTRA_VLLM_ARGS"))
    return True


def _cluster_json(source: Source, found: Found, path: str) -> bool:
    hosts = source.get("workers.host") or source.get("workers.ip")
    if not hosts:
        return False
    ranks = source.get("workers.rank")
    if len(ranks) == len(hosts) and all(rank.isdecimal() for rank in ranks):
        hosts = tuple(host for _, host in sorted(zip(map(int, ranks), hosts, strict=True)))
    found.taken.append(f"recipe: {found.recipe}: no shipped recipe drives this kit, so it is read and not driven")
    _hosts(found, hosts, (), source.where("workers.host", "workers.rank"))
    _endpoint(found, source.one("api_host"), source.one("api_port") or "8000", source.where("api_host", "api_port"))
    _engine(found, source, ("image",))
    return True


def _engine(found: Found, source: Source, keys: Sequence[str]) -> None:
    for key in keys:
        item = source.file.get(key)
        text = f"{key} {' '.join(item.values)}".lower() if item and any(item.values) else ""
        if named := next((engine for engine in ENGINES if engine in text), ""):
            found.engine = named
            found.taken.append(f"engine: {named}, from {source.where(key)}")
            return
    found.open.append("engine: told by the series present; write it if you know it")


# --- parts -----------------------------------------------------------------------------------------------------------


def _hosts(found: Found, hosts: Sequence[str], users: Sequence[str], where: str) -> None:
    names: list[str] = []
    for number, host in enumerate(hosts):
        user = users[number] if number < len(users) else ""
        target = f"{user}@{host}" if user and "@" not in host else host
        if any(mark.isspace() for mark in target) or "-" in (target[:1], host[:1]) or not host:
            found.open.append(f"hosts: {line(target, 80)!r} is no target for ssh; left out")
            continue
        names.append(_host_name(host, number, names))
        found.hosts.append(FoundHost(names[-1], target))
    if len(users) not in (0, len(hosts)):
        found.open.append(f"hosts: {len(hosts)} hosts, but {len(users)} users")
    found.taken.append(f"hosts: {len(found.hosts)} in rank order, from {where}")
    if any(is_address(host.ssh) for host in found.hosts):
        found.open.append(ADDRESSES)


def _host_name(host: str, number: int, taken: Sequence[str]) -> str:
    """The host's own name where it has one, else `node-0`, `node-1`..."""
    bare = host.rpartition("@")[2]
    fits = re.match(NAME_PATTERN, bare) and not is_address(bare) and bare not in taken
    return bare if fits else f"node-{number}"


def is_address(target: str) -> bool:
    """Whether a target of ssh is an IP address, with or without a user."""
    bare = target.rpartition("@")[2]
    return bool(re.fullmatch(r"[0-9.]+|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*", bare))


def _endpoint(found: Found, address: str, port: str, where: str) -> None:
    host = "127.0.0.1" if address in _EVERYWHERE else address
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host):
        found.open.append(f"url: {line(address, 80)!r} is no host name; 127.0.0.1 is taken")
        host = "127.0.0.1"
    if not port.isdecimal() or not 0 < int(port) < 65536:
        found.open.append(f"url: {line(port, 40)!r} is no port; 8000 is taken")
        port = "8000"
    found.url = f"http://{host}:{port}"
    found.taken.append(f"url: {found.url}, from {where}")


def beside(path: str, home: str) -> str:
    """A path of this machine with `~` for the home folder, as it would be on a host of the same layout."""
    clean = posixpath.normpath(path)
    return f"~{clean.removeprefix(home)}" if home != "/" and clean.startswith(f"{home}/") else clean
