"""What is under way on a lane, out of the files that its head keeps: lease, window, debts, the newest operation. Pure.

Every file may be damaged, cut short, huge or somebody else's: what cannot be read is said in `Acting.problem`, and
nothing here raises. Times are Unix seconds by the head's clock.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from console.readings.acting_types import Acting, Debt, Lease, Operation, OperationState, WindowState
from console.readings.exits import LAST_TIME
from console.readings.look import Answer, Status
from console.sanitize import line, word

LEASE, WINDOW, DEBTS, CURRENT = "lease", "window.json", "debts.json", "current"
"""Files of a lane's folder."""
PLAN, JOURNAL = "plan.json", "journal.jsonl"
"""Files of an operation's folder."""
WHOLE_FILE = 190_000
"""Bytes that are asked of a file that is read from its beginning; a host's answer may have 192 KiB."""
JOURNAL_TAIL = 64 * 1024
"""Bytes of the newest lines of a journal."""
OPERATION = re.compile(r"(\d{8}T\d{6}Z)-([a-z]+)-([0-9A-Za-z]{1,16})")
"""An operation's name: `20261130T215510Z-rollback-3f9ac1`."""
MOST_DEBTS = 16
MOST_EPOCH = 10**15
MOST_PROBLEM = 300


@dataclass(frozen=True, slots=True)
class Texts:
    """The head's answers; None where it was not asked, or has not answered yet."""

    lease: Answer | None = None
    window: Answer | None = None
    debts: Answer | None = None
    current: Answer | None = None
    plan: Answer | None = None
    journal: Answer | None = None


@dataclass(frozen=True, slots=True)
class Pulse:
    """Whether an operation is still carried on, by what was seen beside its journal."""

    alive: bool | None = None
    """Its runner was seen as a process or unit of the head; None where that is not known."""
    booted: float | None = None
    """Unix seconds at which the head was started, by its own clock; None before it was heard."""


def answered(text: str | None) -> Answer:
    """The answer that stands for a file's text; None: there is no such file."""
    return Answer(Status.MISSING) if text is None else Answer(Status.OK, "", {"size": str(len(text))}, text)


def read_acting(texts: Texts, clock: float, *, lane: str = "", folder: str = "", pulse: Pulse | None = None) -> Acting:
    """Everything at `clock`, which is Unix time by the head's clock. Never raises."""
    return judged(read_texts(texts, lane, folder), clock, pulse or Pulse())


def read_texts(texts: Texts, lane: str = "", folder: str = "") -> Acting:
    """What the files say, whatever the time: an operation that never said how it ended is RUNNING here."""
    troubles: list[str] = []
    text = _text(texts.lease, LEASE, troubles)
    unread = troubles[-1] if troubles else ""
    lease = _lease(text, troubles)
    damaged = "its file is damaged" if text is not None and lease is None else ""
    window = _window(_text(texts.window, WINDOW, troubles), troubles)
    debts = _debts(_text(texts.debts, DEBTS, troubles), troubles)
    name = current_operation(texts.current, troubles)
    return Acting(
        clock=0.0,
        lease=lease,
        lease_unknown=unread or damaged,
        window=window,
        debts=debts,
        operation=_operation(texts, name, lane, troubles) if name else None,
        problem=line("; ".join(troubles), MOST_PROBLEM),
        folder=folder,
    )


def judged(acting: Acting, clock: float, pulse: Pulse) -> Acting:
    """The same at `clock`, and whether somebody still carries its operation on."""
    operation = acting.operation
    if operation is not None and operation.state is OperationState.RUNNING:
        from console.readings.acting_operation import judged_operation

        operation = judged_operation(operation, clock, acting.lease, pulse, told=not acting.lease_unknown)
    return replace(acting, clock=clock, operation=operation)


def current_operation(answer: Answer | None, troubles: list[str] | None = None) -> str:
    """The name of the newest operation; '' if there is none, or what stands there is no name."""
    said = troubles if troubles is not None else []
    text = _text(answer, CURRENT, said)
    if text is None:
        return ""
    name = text.strip()
    if OPERATION.fullmatch(name) is None:
        # not quoted: a link in its place would show what this account may read and others may not
        said.append(f"{CURRENT} names no operation" if name else f"{CURRENT} is empty")
        return ""
    return name


def _operation(texts: Texts, name: str, lane: str, troubles: list[str]) -> Operation:
    from console.readings.acting_operation import begun_at, read_operation  # a lane at rest has no operation to read

    plan = _text(texts.plan, PLAN, troubles)
    journal = _text(texts.journal, JOURNAL, troubles)
    if texts.plan is None:
        verb, state, began = name.split("-")[1], OperationState.UNKNOWN, begun_at(name)
        return Operation(name, verb, lane, "", "", verb, state, began, None, (), words="not read yet", unread=True)
    if texts.plan.status is Status.MISSING:
        troubles.append(f"{name}: {PLAN} is not there")
    whole = texts.journal is None or _size(texts.journal) <= len(texts.journal.body.encode("utf-8", "replace"))
    found = read_operation(name, lane, plan, journal, whole, troubles)
    if texts.journal is None:
        return replace(found, state=OperationState.UNKNOWN, words=f"{JOURNAL} was not read yet", unread=True)
    # a journal that is not there was never begun; one that cannot be read says nothing of what was done
    told = texts.journal.status in (Status.OK, Status.MISSING)
    return found if told else replace(found, whole=False)


def _size(answer: Answer) -> int:
    text = answer.values.get("size", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _text(answer: Answer | None, name: str, troubles: list[str]) -> str | None:
    """The file's text; None where there is none, with words where that is a trouble."""
    if answer is None or answer.status is Status.MISSING:
        return None
    if answer.status is Status.OK:
        return answer.body
    troubles.append(f"{name} may not be read" if answer.status is Status.DENIED else f"{name}: {answer.words}")
    return None


# --- values ----------------------------------------------------------------------------------------------------------


def text_of(value: Any, limit: int = 200) -> str:
    """Safe words of a JSON value; '' for what is no text."""
    return line(value, limit) if isinstance(value, str) else ""


def time_of(value: Any) -> float | None:
    """Unix seconds; None for what is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and 0 < seconds < LAST_TIME else None


def whole_of(value: Any) -> int | None:
    """A whole number >= 0, also one written as text; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_EPOCH:
        return None
    return value


def prefix_object(text: str) -> tuple[dict[str, Any], bool]:
    """The keys of a JSON object as far as they are whole, and whether all of it is there. Never raises.

    Of a list that is cut short the items before the cut are kept: a plan may be longer than an answer of a host.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return dict(_whole_keys(text)), False
    return (found, True) if isinstance(found, dict) else ({}, False)


_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


def _whole_keys(text: str) -> Iterator[tuple[str, Any]]:
    at = _after(text, 0, "{")
    while at is not None:
        key, at = _value(text, at)
        at = None if at is None or not isinstance(key, str) else _after(text, at, ":")
        if at is None:
            return
        value, end = _value(text, at)
        if end is None:
            if text[at : at + 1] == "[":
                yield key, list(_whole_items(text, at))
            return
        yield key, value
        at = _after(text, end, ",")


def _whole_items(text: str, at: int | None) -> Iterator[Any]:
    at = _after(text, at or 0, "[")
    while at is not None:
        value, end = _value(text, at)
        if end is None:
            return
        yield value
        at = _after(text, end, ",")


def _after(text: str, at: int, mark: str) -> int | None:
    """The place behind a mark and the blanks around it; None where something else stands."""
    match = _BLANKS.match(text, at)
    at = match.end() if match is not None else at
    if text[at : at + 1] != mark:
        return None
    match = _BLANKS.match(text, at + 1)
    return match.end() if match is not None else at + 1


def _value(text: str, at: int) -> tuple[Any, int | None]:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, None


# --- lease, window, debts --------------------------------------------------------------------------------------------


_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")
_LEASE_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
"""As the scripts on the hosts read them (`read_lease` in common.sh): what is damaged there is no lease here."""


def _lease(text: str | None, troubles: list[str]) -> Lease | None:
    if text is None:
        return None
    pairs = dict(row.partition("=")[::2] for row in text.split("\n") if "=" in row)
    numbers = [pairs.get(key, "") for key in ("epoch", "acquired", "renewed", "ttl")]
    whole = all(map(_NUMBER.fullmatch, numbers)) and _LEASE_ID.fullmatch(pairs.get("id", ""))
    epoch, (acquired, renewed, ttl) = whole_of(numbers[0]), map(_decimal, numbers[1:])
    operator = word(pairs.get("operator", ""), 80)
    if not whole or not operator or epoch is None or acquired is None or renewed is None or ttl is None:
        troubles.append(f"{LEASE} is damaged: somebody may hold the lane")
        return None
    return Lease(
        operator=operator,
        console=word(pairs.get("console", ""), 120),
        id=pairs["id"],
        epoch=epoch,
        acquired=acquired,
        renewed=renewed,
        ttl=ttl,
        purpose=word(pairs.get("purpose", ""), 200),
        offered_to=word(pairs.get("offered_to", ""), 80),
    )


def lease_text(lease: Lease) -> str:
    """A lease as its file has it."""
    pairs = {
        "id": lease.id,
        "operator": lease.operator,
        "console": lease.console,
        "epoch": lease.epoch,
        "acquired": int(lease.acquired),
        "renewed": int(lease.renewed),
        "ttl": int(lease.ttl),
        "purpose": lease.purpose,
        "offered_to": lease.offered_to,
    }
    return "".join(f"{key}={value}\n" for key, value in pairs.items())


def _decimal(text: str) -> float | None:
    return time_of(float(text)) if _NUMBER.fullmatch(text) else None


def _window(text: str | None, troubles: list[str]) -> WindowState | None:
    if text is None:
        return None
    found, _ = prefix_object(text)
    opened, deadline = time_of(found.get("opened")), time_of(found.get("deadline"))
    name = text_of(found.get("id"), 80)
    if not name or opened is None or deadline is None:
        troubles.append(f"{WINDOW} is damaged: a window may be open")
        return None
    return WindowState(
        id=name,
        operator=text_of(found.get("operator"), 80),
        reason=text_of(found.get("reason")),
        opened=opened,
        deadline=deadline,
        target=text_of(found.get("target"), 120),
        plan_id=text_of(found.get("plan_id"), 40),
        fleet_wide=found.get("fleet_wide") is True,
    )


def _debts(text: str | None, troubles: list[str]) -> tuple[Debt, ...]:
    if text is None:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        troubles.append(f"{DEBTS} is damaged: something may be owed")
        return ()
    debts = [_debt(item) for item in found[:MOST_DEBTS]]
    if any(debt is None for debt in debts) or len(found) > MOST_DEBTS:
        troubles.append(f"{DEBTS} is damaged in part")
    return tuple(debt for debt in debts if debt is not None)


def _debt(item: Any) -> Debt | None:
    found: Mapping[str, Any] = item if isinstance(item, dict) else {}
    what, since, deadline = text_of(found.get("what"), 60), time_of(found.get("since")), time_of(found.get("deadline"))
    if not what or since is None or deadline is None:
        return None
    return Debt(what, since, deadline, text_of(found.get("operator"), 80), text_of(found.get("operation"), 80))
