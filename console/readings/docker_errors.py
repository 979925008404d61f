"""Why a Docker cannot be read, in words, and which API version two sides share. Pure.

An unreadable Docker is never an empty one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console import sanitize

OLDEST_API, NEWEST_API = "1.24", "1.47"
"""Versions of the Docker Engine API that the console can speak (what it reads did not change between them)."""

MAX_ERROR = 65_536


@dataclass(frozen=True, slots=True)
class DockerProblem:
    """Why containers cannot be read. Both texts are safe."""

    problem: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ApiChoice:
    """The API version to use; '' where the two ranges do not meet, and then `problem` names both."""

    version: str
    problem: DockerProblem | None = None


def negotiate(answer: Mapping[str, Any], oldest: str = OLDEST_API, newest: str = NEWEST_API) -> ApiChoice:
    """The highest API version that a server (its `/version`) and a client that knows oldest..newest share."""
    most, least = _version(answer.get("ApiVersion")), _version(answer.get("MinAPIVersion")) or (1, 0)
    low, high = _version(oldest), _version(newest)
    if low is None or high is None:
        raise ValueError(f"not an API version range: {oldest}-{newest}")
    if most is None:
        return ApiChoice("", DockerProblem("cannot read Docker: its answer names no API version", _PODMAN_HINT))
    use = min(most, high)
    if use >= max(least, low):
        return ApiChoice(_dotted(use))
    words = f"incompatible: Docker speaks API {_dotted(least)}-{_dotted(most)}, this client {oldest}-{newest}"
    side = "the client" if high < least else "Docker"
    return ApiChoice("", DockerProblem(words, f"upgrade {side}"))


_PODMAN_HINT = "is it Docker that listens there?"


def _version(value: object) -> tuple[int, int] | None:
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", value) if isinstance(value, str) else None
    return (int(match[1]), int(match[2])) if match else None


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


_TOO_OLD = re.compile(r"client version ([0-9.]+) is too old\. Minimum supported API version is ([0-9.]+)")
_TOO_NEW = re.compile(r"client version ([0-9.]+) is too new\. Maximum supported API version is ([0-9.]+)")


def explain_answer(status: int, body: str) -> DockerProblem:
    """What an error answer (status 400 and above) of the daemon means."""
    message = error_message(body)
    if found := _TOO_OLD.search(message):
        words = f"cannot read Docker: this client speaks API {found[1]}, Docker wants {found[2]} or newer"
        return DockerProblem(words, "upgrade the client")
    if found := _TOO_NEW.search(message):
        words = f"cannot read Docker: this client speaks API {found[1]}, Docker at most {found[2]}"
        return DockerProblem(words, "negotiate a lower version, or upgrade Docker")
    if status == 403:
        return DockerProblem(
            f"cannot read Docker: refused by the daemon: {message}", "an authorisation plugin or proxy"
        )
    return DockerProblem(f"cannot read Docker: the daemon answers {status}: {message or 'without a message'}")


def error_message(body: str) -> str:
    """The safe message of an error answer: `{"message": ...}`, else the start of the text."""
    body = body[:MAX_ERROR]
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        raw = None
    text = raw["message"] if isinstance(raw, dict) and isinstance(raw.get("message"), str) else body
    return sanitize.line(text.strip(), 300)


PROBE = r"""
p=$1
if [ -S "$p" ]; then k=socket; elif [ -e "$p" ]; then k=other; else k=none; fi
echo "kind=$k"
if [ -w "$p" ] && [ -r "$p" ]; then echo writable=yes; else echo writable=no; fi
g=$(stat -L -c %G "$p" 2>/dev/null)
echo "group=$g"
echo "id=$(id 2>/dev/null)"
echo "getent=$(getent group "${g:-docker}" 2>/dev/null)"
for s in "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/podman/podman.sock" /run/podman/podman.sock; do
  if [ -S "$s" ]; then echo "podman=$s"; break; fi
done
for c in docker podman; do if command -v $c >/dev/null 2>&1; then echo "command=$c"; fi; done
exit 0
"""
"""Run as `sh -c PROBE sh SOCKET`: why a socket refuses; its output goes to `explain_probe`."""


def probe_facts(output: str) -> dict[str, str]:
    """The `key=value` lines of the probe; a key that comes again is joined by a blank."""
    facts: dict[str, str] = {}
    for row in sanitize.lines(output, most=64):
        key, equals, value = row.partition("=")
        if equals:
            facts[key] = f"{facts[key]} {value}" if key in facts else value
    return facts


def explain_probe(output: str, path: str) -> DockerProblem:
    """Why the Docker socket at `path` gave no answer, from the probe's output."""
    facts = probe_facts(output)
    if "kind" not in facts:
        return DockerProblem(
            "cannot read Docker: connection closed without an answer", "the host could not be probed either"
        )
    if facts["kind"] == "none":
        return _no_socket(facts, path)
    if facts["kind"] == "other":
        return DockerProblem(f"cannot read Docker: {path} is not a socket", "set `docker` of this host in fleet.toml")
    if facts.get("writable") == "no":
        return explain_permission(facts.get("id", ""), facts.get("getent", ""), facts.get("group", "") or "docker")
    return DockerProblem(
        f"Docker is down: its socket {path} is there but nothing answers", "systemctl status docker on that host"
    )


def _no_socket(facts: Mapping[str, str], path: str) -> DockerProblem:
    if podman := facts.get("podman"):
        words = f"no Docker socket at {path}, but podman listens at {podman}"
        return DockerProblem(words, "set `docker` of this host in fleet.toml to that path")
    if "docker" in facts.get("command", "").split():
        return DockerProblem(f"no Docker socket at {path}", "Docker is installed there but its daemon does not run")
    if "podman" in facts.get("command", "").split():
        return DockerProblem(f"no Docker socket at {path}", "podman is there: systemctl enable --now podman.socket")
    return DockerProblem(f"no Docker socket at {path}", 'no Docker on that host; set docker = "" in fleet.toml')


def explain_permission(id_text: str, getent_text: str, group: str = "docker") -> DockerProblem:
    """Why a socket refuses a user: from `id` (this session's groups) and `getent group` (the accounts')."""
    user, groups = _session(id_text)
    members = _members(getent_text)
    group = sanitize.word(group)
    if user and user in members and group not in groups:
        words = f"permission: {group} group not active in this session, reconnect"
        return DockerProblem(words, "group membership is read at login; close every open session to that host first")
    if user and group in groups:
        words = f"permission: {user} is in group {group}, yet the socket refuses"
        return DockerProblem(words, "check mode and group of the socket, and security modules")
    who = user or "this user"
    return DockerProblem(
        f"permission: {who} is not in group {group}", f"sudo usermod -aG {group} {who} there, then reconnect"
    )


def needs_reconnect(problem: DockerProblem) -> bool:
    """Whether a new login is all that is missing."""
    return problem.problem.startswith("permission:") and problem.problem.endswith("reconnect")


def is_permission(error: str) -> bool:
    """Whether an error text (of the docker command or the system) is a refused permission."""
    lowered = error[:MAX_ERROR].lower()
    return "permission denied" in lowered or "eacces" in lowered


def _session(id_text: str) -> tuple[str, frozenset[str]]:
    user = re.search(r"uid=[0-9]+\(([^)\s]{1,64})\)", id_text)
    groups = re.search(r"groups=(\S+)", id_text)
    names = re.findall(r"\(([^)\s]{1,64})\)", groups[1]) if groups else []
    return (user[1] if user else "", frozenset(names))


def _members(getent_text: str) -> frozenset[str]:
    members: set[str] = set()
    for row in sanitize.lines(getent_text, most=64):
        fields = row.split(":")
        if len(fields) == 4:
            members.update(name.strip() for name in fields[3].split(",") if name.strip())
    return frozenset(members)
