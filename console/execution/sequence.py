"""A plan as the file that the runner carries out, and the one file that the runner is on a host. Nothing here runs it.

`sequence_head` starts it on the head node, `sequence_console` runs it here, `sequence_sheet` writes it for a person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import Any

from console.actions.plan import Plan, Stage, Step
from console.actions.probes import whole
from console.execution.runner_base import groups
from console.execution.scripts import script

Operation = dict[str, Any]
"""The operation file, `plan.json`."""
VERSION = 1
PARTS = ("runner_base.py", "runner_hosts.py", "runner.py", "runner_docker.py", "runner_ssh.py", "runner_head.py")
"""In the order in which they need each other."""
_BETWEEN_PARTS = re.compile(r"^from console\.execution\.\w+ import (\([^)]*\)|[^\n(]+)\n", re.MULTILINE)
_FUTURE = "from __future__ import annotations\n"
_STEP_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")
_OPERATION_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
SSH_OPTIONS = (
    *("-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "StrictHostKeyChecking=yes"),
    *("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes"),
    *("-o", "LogLevel=ERROR", "-a", "-x", "-T"),
)
"""No question, no forwarded agent, no unknown host; a connection that died is noticed within six seconds."""
MARGIN = 180.0
"""Seconds that a sequence may take beyond the limits of its steps: questions, lost connections, adoption."""


def ssh_way(target: str, *more: str) -> list[str]:
    """What stands before a command that the head runs on another host. Raises ValueError for what is no host."""
    if not target or target.startswith("-") or not re.fullmatch(r"[\w@.:%\[\]-]+", target):
        raise ValueError(f"not a host to ssh to: {target!r}")
    return ["ssh", *SSH_OPTIONS, *more, target]


@cache
def runner_text() -> str:
    """The runner as one file: its parts import each other here and are one there."""
    folder = resources.files("console.execution")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in PARTS]
    bare = [_BETWEEN_PARTS.sub("", part).replace(_FUTURE, "") for part in parts]
    return f"#!/usr/bin/env python3\n# {' '.join(PARTS)} of laneswap, as one file\n{_FUTURE}\n" + "\n\n".join(bare)


def compile_operation(
    plan: Plan,
    *,
    op: str,
    operator: str,
    console: str,
    epoch: int | str | None,
    folder: str,
    reach: Mapping[str, Sequence[str]],
    created: float,
    ledgered: bool = True,
    spare: Mapping[str, str] | None = None,
) -> Operation:
    """The operation file of a plan.

    `folder`: the lane's state folder on every host; `spare`: by host where that cannot be used, what is used instead.
    `reach`: what stands before a command for each host, nothing for the head itself, and nothing at all where a console
    carries it out. `epoch`: that of the lease, None or `-` for break-glass without one. `created` in Unix seconds.
    Raises ValueError for a plan that cannot be carried out.
    """
    _check(plan, op, reach)
    return {
        "v": VERSION,
        "id": op,
        "plan_id": plan.id,
        "verb": str(plan.verb),
        "fleet": plan.fleet,
        "lane": plan.lane,
        "head": plan.head,
        "operator": operator,
        "console": console,
        "epoch": "-" if epoch is None else epoch,
        "title": plan.title,
        "origin": plan.origin,
        "target": plan.target,
        "created": created,
        "dir": folder,
        "dirs": dict(spare or {}),
        "ledgered": ledgered,
        "outline": {"steps": _outline(plan.steps), "rescue": _outline(plan.rescue)},
        "reach": {host: list(way) for host, way in reach.items()},
        "steps": [_plain(step) for step in plan.steps],
        "rescue": [_plain(step) for step in plan.rescue],
        "fence": script("fence"),
        "starter": script("starter"),
    }


def _check(plan: Plan, op: str, reach: Mapping[str, Sequence[str]]) -> None:
    if plan.refused or not plan.steps:
        raise ValueError(plan.refused or "the plan has no steps")
    if not _OPERATION_ID.fullmatch(op):
        raise ValueError(f"not the name of an operation: {op!r}")
    steps = (*plan.steps, *plan.rescue)
    seen: set[str] = set()
    for step in steps:
        if not _STEP_ID.fullmatch(step.id) or step.id in seen or step.id.startswith("sequence"):
            raise ValueError(f"a step's name has to be its own, of a-z 0-9 . and -: {step.id!r}")
        seen.add(step.id)
    probes = [probe for step in steps for probe in (*step.before, *step.already, *step.after, *step.watch)]
    hosts = {plan.head, *(step.host for step in steps), *(probe.host for probe in probes)}
    if missing := sorted(hosts - set(reach)):
        raise ValueError(f"no way is known to {', '.join(missing)}")


def _plain(step: Step) -> dict[str, Any]:
    found = asdict(step)
    found["stage"] = str(step.stage)
    found["light"] = step.stdin in _light()
    return found


@cache
def _light() -> frozenset[str]:
    """Scripts with limits of their own that leave no process behind: where the runner is a unit they need no other."""
    return frozenset(whole(name) for name in ("stop_container.sh", "start_container.sh"))


BOOKS = ("owe-", "settle-")
"""How the steps begin that write down or strike out a debt."""
OUTLINE = ("id", "stage", "title", "host", "usual", "limit", "together", "detached", "optional")
"""What a console shows of a step."""


def _outline(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The steps without their commands, ahead of them in the file: of a long one only the beginning is looked at."""
    plain = [(step, _plain(step)) for step in steps]
    return [{**{key: row[key] for key in OUTLINE}, "acts": _acts(step)} for step, row in plain]


def _acts(step: Step) -> bool:
    """Whether its command does something to the lane: one that only waits, or keeps books, does not."""
    return bool(step.argv) and step.stage is not Stage.EVIDENCE and not step.id.startswith(BOOKS)


def time_limit(operation: Operation) -> float:
    """Seconds that the whole may take: steps that run together counted once, rescue and a margin added."""
    steps = [*groups(operation["steps"]), *groups(operation["rescue"])]
    return sum(max(float(step["limit"]) for step in group) for group in steps) + MARGIN


def epoch_of(operation: Operation) -> int | None:
    """The epoch under which it acts; None for break-glass without a lease."""
    found = operation["epoch"]
    return found if isinstance(found, int) else None


def taken_over(operation: Operation, *, operator: str, console: str, epoch: int) -> Operation:
    """The same operation, carried on by somebody else under a newer epoch."""
    return {**operation, "operator": operator, "console": console, "epoch": epoch}


def read_operation(text: str) -> Operation:
    """An operation file. Raises ValueError for what is none, or one of another version."""
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("v") != VERSION:
        raise ValueError("not an operation file of this version of laneswap")
    kinds = {"id": str, "dir": str, "head": str, "steps": list, "rescue": list, "reach": dict, "fence": str}
    for key, kind in {**kinds, "starter": str, "operator": str, "lane": str}.items():
        if not isinstance(found.get(key), kind):
            raise ValueError(f"an operation file without {key}")
    return found
