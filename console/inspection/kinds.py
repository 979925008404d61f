"""The table of `inspect` kinds; each names the module function that answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from console.inspection.arguments import Argument, InspectError


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: `function` is `module:name`, taking the arguments and returning JSON-ready data."""

    name: str
    function: str
    takes: str
    """The roles and files it takes, for the help text."""


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("memory", "node:memory", "meminfo=M [zoneinfo=Z] [numa=N] [psi=P] [page_size=F] [gpu=CSV]"),
        Kind(
            "cgroup",
            "node:cgroup",
            "DIR-OR-FILES (memory.max, memory.current, memory.stat, memory.limit_in_bytes) [meminfo=M]",
        ),
        Kind("gpu", "node:gpu", "nvidia-smi CSV"),
        Kind("output", "node:output", "[stdout=F] [stderr=F] [exit=F] [error=F] [nonce=F] [sshd_config=F]"),
        Kind("log", "node:log", "LOG"),
        Kind("boot", "boot:boot", "LOG [earlier=RECORDS] [started=F] [now=F] [recipe=NAME-OR-F]"),
        Kind("scrape", "engine:scrape", "0=A@0 1=B@30 [meta_info=JSON] [server_info=JSON] [health=PROBES]"),
        Kind("health", "engine:health", "PROBES [0=A@0 1=B@60]"),
        Kind(
            "containers",
            "containers:containers",
            "[inspect=F] [list=F] [events=F] [version=F [client=F]] [error=F [status=F] [id=F] [group=F]]"
            " [models=F] [log=F] [now=F]",
        ),
        Kind(
            "snapshot",
            "checkpoint_files:snapshot",
            "DIR-OR-LISTING [expected=F] [pin=REV] [upstream=JSON] [serving=REV], or holder=DIR mount=DIR",
        ),
        Kind(
            "download",
            "downloads:download",
            "0=DIR-OR-LISTING@0 1=LISTING@60 [expected=F | expected_bytes=F] [unit=SHOW] [cgroup=DIR] [processes=PS]"
            " [env=F] [stdout=F] [pin=REV] [serving=REV] [upstream=JSON]",
        ),
        Kind("processes", "checkpoint_files:processes", "PS [repo=ORG/NAME]"),
        Kind(
            "watchdog",
            "watchdog:watchdog",
            "[log=F] [lock=F] [ps=F] [booted=F] [now=F] [recipe=NAME], or [is_active=F [code=F]] [unit=F] [pause=F]"
            " [gaveup=F] [log=F]",
        ),
        Kind(
            "rows",
            "rows:rows",
            "0=DIR-OR-LISTING-OR-MANIFEST 1=... [site=F] [revision=REV] [tp=N] [holder_rows=RANGES] [progress=OUTPUT]",
        ),
        Kind(
            "drift",
            "rows:drift",
            "0=INSPECT 1=INSPECT... [gpu0=CSV...] [snapshot0=DIR-OR-LISTING...] [clock0=SECONDS...] [kernel0=WORDS...]"
            " [site=F]",
        ),
        Kind("sitefile", "site:sitefile", "FILE, or bash=FILE | docker=FILE | json=FILE [change=FILE]"),
    )
}


def inspect(kind: str, arguments: Sequence[Argument]) -> dict[str, Any]:
    """Feed captured files through the live parsers. Raises InspectError for an unknown kind or unusable input."""
    if kind not in KINDS:
        raise InspectError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    module, _, name = KINDS[kind].function.partition(":")
    answer: dict[str, Any] = getattr(import_module(f"console.inspection.{module}"), name)(arguments)
    return answer
