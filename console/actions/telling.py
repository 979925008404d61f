"""A plan in words and as JSON, for `laneswap plan`, `laneswap do` and the by-hand sheet's head. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from console import format as fmt
from console.actions.plan import Plan, Probe, Step, groups
from console.sanitize import line

_MOST_COMMAND = 200


def as_json(plan: Plan) -> dict[str, Any]:
    """Stable keys, see docs/commands.md. Times in seconds."""
    return {
        "plan": plan.id,
        "verb": plan.verb.value,
        "fleet": plan.fleet,
        "lane": plan.lane,
        "head": plan.head,
        "title": plan.title,
        "from": plan.origin,
        "to": plan.target,
        "seconds": plan.total,
        "cuts": plan.cuts,
        "ends": list(plan.ends),
        "owes": plan.owes,
        "pays": plan.pays,
        "refused": plan.refused,
        "unknown": list(plan.unknown),
        "left_out": list(plan.left_out),
        "warnings": list(plan.warnings),
        "notes": list(plan.notes),
        "facts": dict(plan.facts),
        "steps": [_step(step, number) for number, group in enumerate(groups(plan.steps), 1) for step in group],
        "if_a_step_fails": [_step(step, 0) for step in plan.rescue],
    }


def _step(step: Step, number: int) -> dict[str, Any]:
    return {
        "number": number or None,
        "id": step.id,
        "stage": step.stage.value,
        "title": step.title,
        "host": step.host,
        "argv": list(step.argv),
        "script": step.stdin,
        "runs": "detached" if step.detached else "at once",
        "leaves_daemons": step.keeps,
        "optional": step.optional,
        "usual_s": step.usual,
        "basis": step.basis,
        "limit_s": step.limit,
        "before": [_probe(probe) for probe in step.before],
        "satisfied_if": [_probe(probe) for probe in step.already],
        "after": [_probe(probe) for probe in step.after],
        "watched": [_probe(probe) for probe in step.watch],
        "undo": step.undo,
    }


def _probe(probe: Probe) -> dict[str, Any]:
    return {"host": probe.host, "words": probe.words, "argv": list(probe.argv)}


def as_text(plan: Plan) -> list[str]:
    """Plain lines, safe: what, from, to, what it cuts, the steps with their commands and times, what is not known."""
    rows = [f"{plan.title}   plan {plan.id}"]
    if plan.refused:
        return [line(row, 400) for row in (*rows, f"  IMPOSSIBLE: {plan.refused}")]
    rows += [f"  from     {plan.origin}", f"  to       {plan.target}"]
    rows += [f"  cuts     {plan.cuts}"] if plan.cuts else []
    rows += [f"  ends     {words}" for words in plan.ends]
    total = plan.total
    rows.append(f"  takes    {f'≈{fmt.duration(total)}' if total is not None else 'how long is not known'}")
    for label, words in (("warning", plan.warnings), ("unknown", plan.unknown), ("note", plan.notes)):
        rows += [f"  {label:<8} {text}" for text in words]
    rows += [f"  left out {host}: out of reach" for host in plan.left_out]
    rows += _steps(plan)
    return [line(row, 400) for row in rows]


def _steps(plan: Plan) -> Iterator[str]:
    for number, group in enumerate(groups(plan.steps), 1):
        for step in group:
            time = f"≈{fmt.duration(step.usual)}" if step.usual is not None else f"within {fmt.duration(step.limit)}"
            yield f"  {number:>2} {step.host:<14} {step.title}   {time}{' (optional)' if step.optional else ''}"
            if step.argv:
                yield f"       runs   {command_words(step)}"
            yield from (f"       needs  {probe.words}" for probe in step.before)
            yield from (f"       until  {probe.words}" for probe in step.after)
    for step in plan.rescue:
        yield f"  if a step fails: {step.host} {step.title}"


def command_words(step: Step) -> str:
    """A step's command on one line, for eyes: a script of ours is named by its size, not shown."""
    words = line(shlex.join(word if len(word) < _MOST_COMMAND else "(script)" for word in step.argv), _MOST_COMMAND)
    return f"{words} <script of {len(step.stdin.splitlines())} lines" if step.stdin else words
