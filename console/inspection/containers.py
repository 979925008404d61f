"""`laneswap inspect containers`: captured Docker answers through the parsers that read live hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from console import sanitize
from console.inspection.arguments import Argument, InspectError, moment, one, reject_unknown
from console.readings import boot, docker_errors, roles
from console.readings.container_rows import parse_list_row
from console.readings.containers import Container, ContainersUnreadable, classify_exit, gone, parse_inspect
from console.readings.exits import ContainerEvent, parse_events

ROLES = ("inspect", "list", "events", "version", "client", "error", "id", "group", "models", "log", "now", "status")


def containers(arguments: Sequence[Argument]) -> dict[str, Any]:
    """What the console makes of Docker's answers. Keys:

    `state`: `read`, or why nothing could be read (`problem` and `hint` in words), and then `containers` is null;
    `containers`: one object each; `api`: the version that `version` and `client` (a file with `1.40-1.47`) share;
    `served_name`: what `/v1/models` answers to clients, never the checkpoint; `boot`: of the first container, by
    `log` and `now`. `error` is an error's text, explained with `id` (of the user) and `group` (its `getent` line).
    """
    reject_unknown(arguments, ROLES)
    if not arguments:
        raise InspectError("containers: name a file, for example inspect=inspect.json")
    answer: dict[str, Any] = {"state": "read", "problem": "", "hint": "", "containers": None, "api": _api(arguments)}
    events = parse_events(source.text()) if (source := one(arguments, "events")) else ()
    problem = _problem(arguments, answer["api"])
    found = _containers(arguments, events, answer) if problem is None else []
    if problem is not None:
        answer.update(state=_state(problem), problem=problem.problem, hint=problem.hint)
    now, log = moment(arguments, "now"), _text(arguments, "log")
    if answer["state"] == "read" and (one(arguments, "inspect", default=True) or one(arguments, "list")):
        answer["containers"] = [describe(item, found, events, now, log) for item in found]
        answer["boot"] = _boot(found, log, now)
    answer["served_name"] = _served_name(arguments)
    return answer


def describe(
    item: Container, others: Sequence[Container], events: Sequence[ContainerEvent], now: float | None, log: str
) -> dict[str, Any]:
    """One container as JSON-ready data; times in Unix seconds, ages in seconds, null for unknown."""
    back = roles.way_back(item)
    return {
        "id": item.id,
        "name": item.name,
        "image": item.image,
        "image_id": item.image_id,
        "engine": item.engine.value,
        "state": item.state.value,
        "word": boot.container_word(item, log),
        "health": item.health or None,
        "pid": item.pid,
        "created_at": item.created_at,
        "started_at": item.started_at,
        "finished_at": item.finished_at,
        "age_s": item.age(now) if now is not None else None,
        "exit": _exit(item, events),
        "restart": {
            "policy": item.restart_policy or None,
            "words": roles.restart_words(item),
            "returns_after_daemon_restart": roles.returns_by_itself(item),
            "count": item.restart_count,
        },
        "auto_remove": item.auto_remove,
        "network": item.network_mode,
        "ports": list(item.ports),
        "mounts": [{"source": m.source, "target": m.target, "read_only": m.read_only} for m in item.mounts],
        "args": list(item.args),
        "labels": dict(item.labels),
        "revision": item.revision or None,
        "revision_source": item.revision_source or None,
        "checkpoint": item.revision or "checkpoint unknown",
        "served_name": item.served_name or None,
        "autoheal": item.autoheal,
        "rollback": {"possible": back.possible, "why": back.why},
        "warnings": list(roles.warnings(item, others)),
    }


def _exit(item: Container, events: Sequence[ContainerEvent]) -> dict[str, Any] | None:
    meaning = classify_exit(item, events)
    if meaning is None:
        return None
    return {
        "code": item.exit_code,
        "cause": meaning.cause,
        "words": meaning.words,
        "crash": meaning.crash,
        "grace_s": meaning.grace,
        "advice": meaning.advice,
        "oom_killed": item.oom_killed,
    }


def _boot(found: Sequence[Container], log: str, now: float | None) -> dict[str, Any] | None:
    if not found:
        return None
    bar = boot.loading(log)
    return {
        "state": boot.container_word(found[0], log),
        "shards": bar.text if bar else None,
        "age_s": found[0].age(now) if now is not None else None,
    }


def _text(arguments: Sequence[Argument], role: str) -> str:
    source = one(arguments, role)
    return source.text() if source else ""


def _json(source: Argument) -> Any:
    try:
        return json.loads(source.text())
    except (ValueError, RecursionError) as error:
        raise InspectError(f"{source.path}: not JSON: {sanitize.line(str(error), 200)}") from error


def _containers(
    arguments: Sequence[Argument], events: Sequence[ContainerEvent], answer: dict[str, Any]
) -> list[Container]:
    found: list[Container] = []
    for role, default in (("inspect", True), ("list", False)):
        source = one(arguments, role, default=default)
        if source is None:
            continue
        raw = _json(source)
        if isinstance(raw, Mapping) and "message" in raw:
            found.extend(_message(raw, answer))
            continue
        for row in raw if isinstance(raw, list) else [raw]:
            found.append(_container(row, role, source, events))
    return found


def _container(row: Any, role: str, source: Argument, events: Sequence[ContainerEvent]) -> Container:
    if not isinstance(row, Mapping):
        raise InspectError(f"{source.path}: expected container objects, found {type(row).__name__}")
    try:
        return parse_inspect(row, events) if role == "inspect" else parse_list_row(row)
    except ContainersUnreadable as error:
        raise InspectError(f"{source.path}: {error}") from error


_NO_SUCH = re.compile(r"No such container: (\S+)")


def _message(raw: Mapping[str, Any], answer: dict[str, Any]) -> list[Container]:
    """An error answer in place of containers: one that is gone, or a Docker that cannot be read."""
    message = docker_errors.error_message(json.dumps(raw))
    if match := _NO_SUCH.search(message):
        return [gone(match[1])]
    problem = docker_errors.explain_answer(400, json.dumps(raw))
    answer.update(state=_state(problem), problem=problem.problem, hint=problem.hint)
    return []


def _api(arguments: Sequence[Argument]) -> dict[str, Any] | None:
    source = one(arguments, "version")
    if source is None:
        return None
    raw = _json(source)
    span = _text(arguments, "client").strip() or f"{docker_errors.OLDEST_API}-{docker_errors.NEWEST_API}"
    oldest, _, newest = span.partition("-")
    try:
        choice = docker_errors.negotiate(raw if isinstance(raw, Mapping) else {}, oldest, newest)
    except ValueError as error:
        raise InspectError(f"client: {error}; expected a range such as 1.40-1.47") from error
    state = "compatible" if choice.version else "incompatible"
    problem = choice.problem
    return {
        "state": state,
        "use": choice.version or None,
        "client": span,
        "problem": problem.problem if problem else "",
        "hint": problem.hint if problem else "",
    }


def _problem(arguments: Sequence[Argument], api: Mapping[str, Any] | None) -> docker_errors.DockerProblem | None:
    if source := one(arguments, "error"):
        error = source.text()
        if docker_errors.is_permission(error):
            return docker_errors.explain_permission(_text(arguments, "id"), _text(arguments, "group"))
        status = _text(arguments, "status").strip()
        return docker_errors.explain_answer(int(status) if re.fullmatch(r"[1-5][0-9]{2}", status) else 400, error)
    if api and not api["use"]:
        return docker_errors.DockerProblem(api["problem"], api["hint"])
    return None


def _state(problem: docker_errors.DockerProblem) -> str:
    if docker_errors.needs_reconnect(problem):
        return "permission, reconnect needed"
    if problem.problem.startswith("permission:"):
        return "permission"
    return "incompatible" if problem.problem.startswith("incompatible") else "cannot read"


def _served_name(arguments: Sequence[Argument]) -> str | None:
    """The first model that /v1/models lists."""
    source = one(arguments, "models")
    if source is None:
        return None
    raw = _json(source)
    rows = raw.get("data") if isinstance(raw, Mapping) else None
    first = rows[0] if isinstance(rows, list) and rows else None
    name = first.get("id") if isinstance(first, Mapping) else None
    return sanitize.word(name) if isinstance(name, str) else None
