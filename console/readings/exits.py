"""Why a container ended: its exit code, its OOM flag and what Docker's events say happened just before. Pure.

Codes above 128 are 128 + signal (shells and runc); 125 to 127 are Docker's own (docs.docker.com, "exit status").
An engine that exits 0 without being asked has crashed: vLLM does so after a fatal error (vllm-project/vllm#48966).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from console import sanitize

SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}
"""Linux signal numbers: the numbers of the hosts, whatever machine reads them."""

ASKED_SIGNALS = frozenset({1, 2, 3, 15})
"""Signals by which somebody asks a process to end."""

DIE_SLACK = 5.0
"""Seconds by which a `die` event may differ from the finish time that inspect reports for the same end."""

MAX_EVENTS = 10_000

LAST_TIME = 253_402_300_000.0
"""Unix seconds at the end of the year 9999: nothing beyond can be written as a date."""


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """One event of Docker's stream; `time` is Unix seconds of the host's clock. All texts are safe."""

    time: float
    action: str
    """`start`, `die`, `kill`, `stop`, `oom`, `pause`, `health_status`, `destroy`..."""
    id: str
    name: str
    exit_code: int | None = None
    signal: int | None = None
    health: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """What an exit means."""

    cause: str
    """Stable words: `OOM-killed`, `killed after stop timeout`, `stopped by SIGTERM`, ..."""
    words: str
    """One sentence for the operator."""
    crash: bool | None
    """True: nobody asked for it; False: somebody did; None: not on record."""
    grace: float | None = None
    """Seconds between the request to stop and SIGKILL, where both are on record."""
    advice: str = ""


def rfc3339(text: object) -> float | None:
    """Unix seconds; None for Docker's zero time (year 1) and for what is no time."""
    if not isinstance(text, str) or not text or len(text) > 64:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.year < 1971:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def explain_exit(
    code: int | None, oom_killed: bool | None, *, engine: bool, events: Sequence[ContainerEvent] = (), error: str = ""
) -> Exit:
    """What an exit means. `events` are those of this container's last run (see `last_run`), oldest first.

    `engine`: the container is a serving engine, which never ends by itself when all is well.
    """
    if oom_killed or any(event.action == "oom" for event in events):
        return Exit(
            "OOM-killed",
            f"OOM-killed (container limit), exit {_number(code)}",
            True,
            advice="raise its memory limit or load less",
        )
    if code is None:
        return Exit("cause not recorded", "ended, exit code not recorded", None)
    if code == 0:
        return _zero(engine, events)
    if code == 137:
        return _sigkill(events)
    if 128 < code <= 128 + 64:
        return _signal(code, events)
    return _plain(code, error, events)


def _number(code: int | None) -> str:
    return "unknown" if code is None else str(code)


def _asked(events: Sequence[ContainerEvent]) -> bool:
    return any(e.action in ("stop", "restart") or (e.action == "kill" and e.signal in ASKED_SIGNALS) for e in events)


def _zero(engine: bool, events: Sequence[ContainerEvent]) -> Exit:
    if _asked(events):
        return Exit("stopped", "stopped on request, exit 0", False)
    if not engine:
        return Exit("finished", "finished, exit 0", False)
    if any(event.action == "die" for event in events):
        words = "exit 0 with no stop asked: crash or unasked exit, engine exits 0 on fatal error"
        return Exit("crash or unasked exit", words, True, advice="read its log")
    words = "exit 0, no stop on record: crash or unasked exit (engine exits 0 on fatal error), or an older stop"
    return Exit("exit 0, no stop on record", words, None, advice="read its log")


def _sigkill(events: Sequence[ContainerEvent]) -> Exit:
    kills = [event for event in events if event.action == "kill" and event.signal == 9]
    asked = [event for event in events if event.action == "kill" and event.signal in ASKED_SIGNALS]
    if kills and asked and asked[-1].time <= kills[-1].time:
        grace = round(kills[-1].time - asked[-1].time, 3)
        words = f"killed after stop timeout: {_seconds(grace)} s after the stop it had not ended"
        return Exit("killed after stop timeout", words, False, grace, "give the stop more time")
    if kills:
        return Exit("killed by docker kill", "killed by docker kill (SIGKILL)", False)
    if any(event.action == "stop" for event in events):
        return Exit("killed after stop timeout", "killed after stop timeout", False, advice="give the stop more time")
    words = "SIGKILL, cause not recorded: check kernel log (host OOM kill, or killed from outside Docker)"
    return Exit("SIGKILL, cause not recorded", words, None, advice="check kernel log")


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _signal(code: int, events: Sequence[ContainerEvent]) -> Exit:
    number = code - 128
    name = SIGNALS.get(number, f"signal {number}")
    if number in ASKED_SIGNALS:
        return Exit(f"stopped by {name}", f"stopped by {name}, exit {code}", False if _asked(events) else None)
    asked = _asked(events)
    words = f"crashed: {name}, exit {code}" + (", while stopping" if asked else "")
    return Exit(f"crashed by {name}", words, True, advice="read its log")


_PLAIN = {
    125: (
        "Docker could not run it",
        "docker could not run it, exit 125",
        "docker inspect it: device, mount or option refused",
    ),
    126: (
        "command cannot be executed",
        "its command cannot be executed, exit 126",
        "check entrypoint and its permissions",
    ),
    127: ("command not found", "its command was not found, exit 127", "check entrypoint and image"),
    128: ("start failed", "its start failed, exit 128", "docker inspect it: device, mount or runtime refused"),
    255: ("exit 255", "exit 255: the daemon or host went down under it, or the engine returned 255", "read its log"),
}


def _plain(code: int, error: str, events: Sequence[ContainerEvent]) -> Exit:
    cause, words, advice = _PLAIN.get(code, (f"failed with exit {code}", f"failed, exit {code}", "read its log"))
    if _asked(events):
        words += ", while stopping"
    if error:
        words += f": {error}"
    return Exit(cause, words, None if code == 255 else True, advice=advice)


def last_run(
    events: Iterable[ContainerEvent], container_id: str, name: str, finished_at: float | None = None
) -> tuple[ContainerEvent, ...]:
    """The events of the container's last run that has ended, oldest first; () if its end is not on record.

    Events of an older end than `finished_at` (Unix seconds, host's clock) are of another run and left out.
    """
    own = sorted((e for e in events if _same(e, container_id, name)), key=lambda event: event.time)
    dies = [index for index, event in enumerate(own) if event.action == "die"]
    if not dies:
        return tuple(event for event in own if event.action in ("kill", "stop", "oom")) if finished_at is None else ()
    last = dies[-1]
    if finished_at is not None and abs(own[last].time - finished_at) > DIE_SLACK:
        return ()
    starts = [index for index, event in enumerate(own[:last]) if event.action == "start"]
    begin = starts[-1] if starts else 0
    after = [event.action in ("start", "create") for event in own[last:]]
    end = last + after.index(True) if True in after else len(own)
    return tuple(own[begin:end])


def _same(event: ContainerEvent, container_id: str, name: str) -> bool:
    if event.id and container_id:
        return event.id == container_id or (len(event.id) >= 12 and container_id.startswith(event.id))
    return bool(name) and event.name == name


def parse_event(raw: Mapping[str, Any]) -> ContainerEvent | None:
    """One JSON object of `/events`; None for other objects' events and for the noise of health checks (`exec_*`)."""
    if raw.get("Type", "container") != "container":
        return None
    action_text = raw.get("Action") or raw.get("status")
    if not isinstance(action_text, str) or action_text.startswith("exec_"):
        return None
    actor = raw.get("Actor")
    actor = actor if isinstance(actor, Mapping) else {}
    attributes = actor.get("Attributes")
    attributes = attributes if isinstance(attributes, Mapping) else {}
    action, _, health = action_text.partition(":")
    return ContainerEvent(
        _event_time(raw),
        sanitize.word(action),
        sanitize.word(str(actor.get("ID") or raw.get("id") or "")),
        sanitize.word(str(attributes.get("name", ""))),
        _integer(attributes.get("exitCode")),
        _signal_number(attributes.get("signal")),
        sanitize.word(health.strip()),
    )


def _event_time(raw: Mapping[str, Any]) -> float:
    """Unix seconds; 0 where it is absent or no time that a calendar holds."""
    for key, scale in (("timeNano", 1e9), ("time", 1.0)):
        value = raw.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LAST_TIME * scale:
            return float(value) / scale
    return 0.0


def _integer(value: object) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _signal_number(value: object) -> int | None:
    """A signal as Docker writes it: `15`, `SIGTERM` or `TERM`."""
    if (number := _integer(value)) is not None:
        return number
    name = str(value).upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    return next((number for number, known in SIGNALS.items() if known == name), None)


_TEXT_EVENT = re.compile(
    r"^(?P<time>\S+) container (?P<action>[a-z_]+)(?:: (?P<health>[a-z]+))? (?P<who>\S+)(?P<rest>.*)$"
)
_ATTRIBUTE = re.compile(r"([A-Za-z_.]+)=([^,)\s]*)")


def parse_events(text: str) -> tuple[ContainerEvent, ...]:
    """Captured events: `docker events` text or JSON objects, one a line. Lines that are neither are left out."""
    found: list[ContainerEvent] = []
    for line in text.splitlines()[:MAX_EVENTS]:
        event = _json_event(line) if line.lstrip().startswith("{") else _text_event(line)
        if event is not None:
            found.append(event)
    return tuple(found)


def _json_event(line: str) -> ContainerEvent | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parse_event(raw) if isinstance(raw, Mapping) else None


def _text_event(line: str) -> ContainerEvent | None:
    match = _TEXT_EVENT.match(line.strip())
    if match is None or (moment := rfc3339(match["time"])) is None or match["action"].startswith("exec_"):
        return None
    attributes = dict(_ATTRIBUTE.findall(match["rest"]))
    who = sanitize.word(match["who"])
    is_id = re.fullmatch(r"[0-9a-f]{12,64}", who) is not None
    name = sanitize.word(attributes.get("name", "" if is_id else who))
    code, signal = _integer(attributes.get("exitCode")), _signal_number(attributes.get("signal"))
    return ContainerEvent(moment, match["action"], who if is_id else "", name, code, signal, match["health"] or "")
