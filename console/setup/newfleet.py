"""The text of a new fleet file. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from console.fleet.inventory import parse
from console.fleet.recipe import apply_recipes
from console.setup.origin import Found, FoundHost

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def write_fleet(found: Found, name: str, lane: str, source: str, beside: Path | None = None) -> str:
    """fleet.toml for what was found, comments included; it has been read back. Raises FleetError for a bad name."""
    text = "\n".join([*_head(name, source), *_hosts(found.hosts), *_lane(found, lane), *_rest(lane), ""])
    apply_recipes(parse(text, "the new fleet file"), beside)
    return text


def plain_found(hosts: Sequence[str], url: str, recipe: str) -> Found:
    """What the words of the command line come to: hosts in rank order, the first one is the head."""
    found = Found(recipe=recipe, url=url)
    for number, target in enumerate(hosts or ("local",)):
        bare = re.sub(r":[0-9]+$", "", target.rpartition("@")[2])
        fits = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", bare) and all(bare != host.name for host in found.hosts)
        found.hosts.append(FoundHost(bare if fits else f"node-{number}", target))
    return found


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _head(name: str, source: str) -> Iterator[str]:
    if source:
        yield f"# Made by `laneswap init` from {source}. Every key: `laneswap config print`, docs/fleet.md"
    else:
        yield "# Made by `laneswap init`. Every key: `laneswap config print`, docs/fleet.md"
    yield f"name = {_quoted(name)}"
    yield '# operator = "..."           # who is on duty, unless LANESWAP_OPERATOR says; else the login name'
    yield ""


def _hosts(hosts: Sequence[FoundHost]) -> Iterator[str]:
    yield "[hosts]   # in rank order; ssh: a name of your ssh config, user@host, user@host:port, or local"
    for host in hosts:
        yield f"{_key(host.name)} = {{ ssh = {_quoted(host.ssh)} }}"
    yield ""


def _lane(found: Found, lane: str) -> Iterator[str]:
    yield f"[lanes.{_key(lane)}]"
    yield f"recipe = {_quoted(found.recipe)}"
    yield f"url = {_quoted(found.url)}   # as seen from the head, asked through ssh"
    yield f"head = {_quoted(found.hosts[0].name)}"
    if len(found.hosts) > 1:
        yield f"ranks = [{', '.join(_quoted(host.name) for host in found.hosts)}]"
    if found.engine:
        yield f"engine = {_quoted(found.engine)}"
    else:
        yield '# engine = "sglang"          # or "vllm", "llamacpp"; left out: told by the series present'
    if found.containers:
        yield f"containers = {_quoted(found.containers)}"
    else:
        yield '# containers = "vllm-*"      # a glob; left out: observed by the port they own'
    yield '# served = "..."             # the name that clients use'
    yield '# consumers = ["..."]        # who depends on the lane'
    yield '# front = "http://..."       # a proxy in front of the engine'
    yield ""
    yield from _vars(found, lane)


def _vars(found: Found, lane: str) -> Iterator[str]:
    """One table: what is known of it, and as comments what the recipe may be told besides."""
    more = [name for name in found.variables if name != "root" or not found.root]
    if not found.root and not more:
        return
    yield f"[lanes.{_key(lane)}.vars]" if found.root else f"# [lanes.{_key(lane)}.vars]"
    if found.root:
        yield f"root = {_quoted(found.root)}"
    yield from (f'# {name} = "..."' for name in more)
    yield ""


def _rest(lane: str) -> Iterator[str]:
    yield f"# [lanes.{_key(lane)}.next]          # what is being prepared for the next switch"
    yield '# revision = "<40 hex digits>"'
    yield '# rows = "dsv41-engram-local-next"'
    yield ""
    yield f"# [lanes.{_key(lane)}.download]      # the checkpoint's download, where the recipe does not tell"
    yield '# host = "..."'
    yield '# repo = "~/.cache/huggingface/hub/models--org--name"'
    yield ""
    yield "# [notify]   # alarms reach people: bell, terminal, and a webhook whose URL is in the environment"
    yield '# webhook_env = "LANESWAP_WEBHOOK"'
