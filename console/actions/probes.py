"""Builders of probes: questions to a host, answered by the exit status of a constant script. Pure."""

from __future__ import annotations

from functools import cache

from console.actions.plan import Probe
from console.actions.scene import EVIDENCE, Scene, checked_id, checked_name, checked_word, served_name
from console.actions.scripts import script
from console.readings.containers import Container


@cache
def whole(name: str) -> str:
    """A script with what all of them share in front."""
    return script("lib.sh") + script(name)


def scripted(name: str, *words: str) -> tuple[tuple[str, ...], str]:
    """(command, standard input) that run a script with these words."""
    return ("sh", "-s", "--", *words), whole(name)


def ask(name: str, host: str, words: str, *arguments: str) -> Probe:
    """A probe by a script."""
    argv, stdin = scripted(name, *arguments)
    return Probe(host, words, argv, stdin)


def pattern(part: str) -> str:
    """A part of a command line as a shell pattern that matches it and does not hold it: `[l]aunch/[w]atchdog.sh`.

    Our own command lines hold the pattern, so no look at the host's processes takes them for what is looked for.
    """
    found, inside = [], False
    for one in part:
        word = one.isalnum()
        found.append("?" if one in "*?[]\\" else f"[{one}]" if word and not inside else one)
        inside = word
    return "".join(found)


def container_stopped(host: str, socket: str, container: Container) -> Probe:
    """It has ended, or is gone."""
    return ask("container_stopped.sh", host, f"{container.name} has ended", socket, checked_id(container))


def container_up(host: str, socket: str, container: Container) -> Probe:
    """It runs."""
    return ask("container_up.sh", host, f"{container.name} runs", socket, checked_id(container))


def runs_still(host: str, socket: str, container: Container) -> Probe:
    """It runs, or this operation did not start it yet; for watching."""
    words = f"{container.name} on {host} runs"
    return ask("container_runs.sh", host, words, socket, checked_id(container), EVIDENCE)


def processes_gone(host: str, container: Container) -> Probe:
    """The processes that it had are gone; else STUCK with the process."""
    words = f"processes of {container.name} are gone"
    return ask("processes_gone.sh", host, words, EVIDENCE, checked_id(container))


def port_closed(host: str, port: int) -> Probe:
    """Nobody listens there."""
    return ask("port_closed.sh", host, f"port {port} is closed", str(port))


def startable(host: str, socket: str, container: Container) -> Probe:
    """It is there and can be started, from the same image."""
    words = f"{container.name} can be started"
    image = container.image_id if _is_image(container.image_id) else "-"
    return ask("container_startable.sh", host, words, socket, checked_id(container), image)


def _is_image(text: str) -> bool:
    digest = text.removeprefix("sha256:")
    return text.startswith("sha256:") and len(digest) == 64 and all(one in "0123456789abcdef" for one in digest)


def container_named(host: str, socket: str, container: Container, name: str) -> Probe:
    """It has that name."""
    words = f"{checked_id(container)[:12]} is called {name}"
    return ask("container_named.sh", host, words, socket, checked_id(container), checked_name(name))


def serving(scene: Scene, container: Container | None = None) -> Probe:
    """Health answers 200, and the served name is among the models."""
    name = served_name(scene, container)
    words = f"health is 200 and {name} is served" if name else "health is 200"
    return ask("serving.sh", scene.head, words, scene.lane.url, scene.lane.health_path, name)


def file_there(host: str, path: str, words: str) -> Probe:
    """A file is there."""
    return ask("file_there.sh", host, words, checked_word(path, "a flag's path"))


def file_absent(host: str, path: str, words: str) -> Probe:
    """A file is not there."""
    return ask("file_absent.sh", host, words, checked_word(path, "a flag's path"))


def unit_is(host: str, manager: str, unit: str, state: str) -> Probe:
    """A systemd unit is `active` or `inactive`; a bus that does not answer leaves it unknown."""
    return ask("unit_is.sh", host, f"{unit} is {state}", manager, unit, state)
