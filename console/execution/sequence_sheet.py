"""The by-hand sheet: an operation as plain commands in their order, for an operator who has to finish without laneswap.

It can be pasted block by block, or carried out as a whole with `sh -e`, which ends at the first thing that fails.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from console.execution.runner_base import groups
from console.execution.sequence import Operation

_CLEAN = 'env -i HOME="$HOME" USER="$USER" LOGNAME="$LOGNAME" PATH="$PATH" LANG=C.UTF-8'
"""A variable that happens to be set in the operator's shell must not leak into a relaunch."""
_HEADING = """\
# {title}
# from: {origin}   to: {target}
# lane {lane} of fleet {fleet}; operation {id}, begun by {operator}
#
# Run this {where}. Paste one block after the other; go on only when a block came back without an error and what it
# waits for was seen (ctrl+c leaves a wait). As a whole: sh -e sheet.sh
# Steps that are done already do no harm where the sheet asks for it ("not needed where"); the others run ONCE only:
# read journal.jsonl beside this file, or the list in laneswap, for how far it got.
# Nobody else may act meanwhile: {folder}/lease says who holds the lane.
"""


def by_hand(operation: Operation) -> str:
    """The sheet's text."""
    head, reach = operation["head"], operation["reach"]
    from_head = all(way or host == head for host, way in reach.items())
    if not from_head:  # it runs in a console: only that knows how the hosts are reached
        reach = {host: ["ssh", host] for host in reach}
    where = f"on {head}, the head" if from_head else "where every host can be reached by ssh under its name"
    words = {
        key: _flat(operation.get(key) or "?") for key in ("title", "origin", "target", "lane", "fleet", "operator")
    }
    text = _HEADING.format(**words, id=operation["id"], where=where, folder=operation["dir"])
    steps = operation["steps"]
    blocks = [_block(step, number, len(steps), reach) for number, step in enumerate(steps, 1)]
    for group in groups(steps):
        if len(group) > 1:
            number = steps.index(group[0])
            together = f"# The next {len(group)} steps may run at the same time, each in a terminal of its own.\n"
            blocks[number] = together + blocks[number]
    if operation["rescue"]:
        blocks.append("# ---- only if a step failed: what can be rescued, commented out\n")
        for number, step in enumerate(operation["rescue"], 1):
            block = _block(step, number, len(operation["rescue"]), reach)
            blocks.append("".join(f"# {row}\n" for row in block.splitlines()))
    return "\n".join([text, *blocks])


def _block(step: dict[str, Any], number: int, of: int, reach: dict[str, list[str]]) -> str:
    body = list(_body(step, reach))
    if step["optional"]:
        body = ["{", *body, "} || echo 'it failed; go on all the same'"]
    return "\n".join([*_comments(step, number, of), *body]) + "\n"


def _comments(step: dict[str, Any], number: int, of: int) -> Iterator[str]:
    yield f"# {number} of {of}: {_flat(step['title'])} ({step['host']}; {_times(step)})"
    if step["undo"]:
        yield f"# undone by: {_flat(step['undo'])}"
    if step["keeps"]:
        yield "# it leaves a daemon behind that has to live on: look for it afterwards"
    if step["detached"] or step["limit"] > 60:
        yield "# it may take long: in tmux or screen it outlives a lost connection"
    for probe in step["watch"]:
        yield f"# meanwhile, in another terminal; give up at once when it is no longer so: {_flat(probe['words'])}"


def _body(step: dict[str, Any], reach: dict[str, list[str]]) -> Iterator[str]:
    command = list(_command(step, reach)) if step["argv"] else []
    for probe in step["before"]:
        command = [f"# has to hold first: {_flat(probe['words'])}", *_question(probe, reach), *command]
    if command and step["already"]:
        yield "# not needed where: " + "; ".join(_flat(probe["words"]) for probe in step["already"])
        yield from ("if", *_all(step["already"], reach), "then echo 'already so'", "else", *command, "fi")
    else:
        yield from command
    for probe in step["after"]:
        yield from (f"# wait until: {_flat(probe['words'])}", "until", *_question(probe, reach), "do sleep 1; done")


def _times(step: dict[str, Any]) -> str:
    usual = f"usually {step['usual']:.0f} s, " if step["usual"] is not None else ""
    return f"{usual}at most {step['limit']:.0f} s"


def _all(probes: Sequence[dict[str, Any]], reach: dict[str, list[str]]) -> Iterator[str]:
    """Commands of a condition; all of them have to say yes."""
    for number, probe in enumerate(probes):
        rows = list(_question(probe, reach))
        if number + 1 < len(probes):
            rows[0] += " &&"  # a here-document's text begins behind the whole line
        yield from rows


def _question(probe: dict[str, Any], reach: dict[str, list[str]]) -> Iterator[str]:
    yield from _line(reach[probe["host"]], shlex.join(probe["argv"]), probe["stdin"])


def _command(step: dict[str, Any], reach: dict[str, list[str]]) -> Iterator[str]:
    way = reach[step["host"]]
    words = shlex.join(step["argv"])
    clean = step["detached"] and not way
    yield from _line(way, f"{_CLEAN} {words}" if clean else words, step["stdin"])


def _line(way: Sequence[str], words: str, stdin: str) -> Iterator[str]:
    """One command, here or over ssh, with its standard input as a here-document."""
    command = f"{shlex.join(way)} {shlex.quote(words)}" if way else words
    if not stdin:
        yield f"{command} </dev/null"
    elif not stdin.endswith("\n"):
        yield f"printf %s {shlex.quote(stdin)} | {command}"  # a here-document would end it with a line break
    else:
        mark = _mark(stdin)
        yield f"{command} <<'{mark}'"
        yield f"{stdin}{mark}"


def _mark(text: str) -> str:
    """A delimiter that no line of the text is."""
    rows, number = set(text.split("\n")), 0
    while (mark := f"END{number or ''}") in rows:
        number += 1
    return mark


def _flat(text: object) -> str:
    """One line without control characters: it stands in a comment."""
    return " ".join(re.sub(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]", " ", str(text)).split())[:300]
