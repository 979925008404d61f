"""Alarms over time: active, acknowledged, returned to normal without anybody having seen them. Pure: time comes in.

An alarm that goes and comes again within CLEAR_AFTER_S is the same alarm: nobody is called twice for a figure that
swings around its threshold. One that nobody acknowledged stays listed as returned until somebody does (the three
states of ISA-18.2 and of IMO's alarm code).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from console.alarms.alarm import Alarm
from console.snapshot import Severity

CLEAR_AFTER_S = 10.0
"""Seconds without its cause after which an alarm has returned to normal."""
MOST_RETURNED = 50
"""Returned alarms that are kept for somebody to see; the oldest go first."""
QUIET = (Severity.NORMAL, Severity.INFO)
"""Severities that call nobody and leave nothing to acknowledge."""


class AlarmState(StrEnum):
    """Where an alarm stands."""

    ACTIVE = "active"
    ACKNOWLEDGED = "acknowledged"
    RETURNED = "returned"


class Change(StrEnum):
    """What became of an alarm."""

    RAISED = "raised"
    WORSE = "worse"
    """Its severity rose while it was active: an acknowledgement of the milder one does not count for it."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Booked:
    """One alarm with its story. Times in Unix seconds."""

    alarm: Alarm
    state: AlarmState
    raised: float
    seen: float
    """Monotonic seconds at which its cause was last there."""
    ended: float | None = None
    expected: str = ""
    """The planned step that brings it along: it is shown and calls nobody; '' for none."""


class AlarmBook:
    """Keeps the alarms of one console."""

    def __init__(self) -> None:
        self._booked: dict[str, Booked] = {}

    def update(
        self, found: Iterable[Alarm], now: float, wall: float, expected: Mapping[str, str] | None = None
    ) -> tuple[tuple[Change, Booked], ...]:
        """Take what is wrong at monotonic time `now`; what changed, in the order found, ends last.

        `expected` names the planned step by the beginning of a key (`state:dsv41`).
        """
        changes: list[tuple[Change, Booked]] = []
        present: set[str] = set()
        for alarm in found:
            present.add(alarm.key)
            change = self._take(alarm, now, wall, _step(alarm.key, expected or {}))
            if change is not None:
                changes.append((change, self._booked[alarm.key]))
        changes += [(Change.ENDED, booked) for booked in self._end(present, now, wall)]
        return tuple(changes)

    def _take(self, alarm: Alarm, now: float, wall: float, expected: str) -> Change | None:
        known = self._booked.get(alarm.key)
        if known is None or known.state is AlarmState.RETURNED:
            self._booked[alarm.key] = Booked(alarm, AlarmState.ACTIVE, wall, now, None, expected)
            return Change.RAISED
        worse = _LOUD[alarm.severity] > _LOUD[known.alarm.severity]
        state = AlarmState.ACTIVE if worse else known.state
        self._booked[alarm.key] = replace(known, alarm=alarm, state=state, seen=now, expected=expected)
        return Change.WORSE if worse else None

    def _end(self, present: Collection[str], now: float, wall: float) -> list[Booked]:
        ended: list[Booked] = []
        for key, booked in list(self._booked.items()):
            if key in present or booked.state is AlarmState.RETURNED or now - booked.seen < CLEAR_AFTER_S:
                continue
            gone = replace(booked, state=AlarmState.RETURNED, ended=wall)
            ended.append(gone)
            nobody_saw = booked.state is AlarmState.ACTIVE and not booked.expected
            if nobody_saw and booked.alarm.severity not in QUIET:
                self._booked[key] = gone
            else:
                del self._booked[key]
        for booked in self.returned()[:-MOST_RETURNED]:
            del self._booked[booked.alarm.key]
        return ended

    def acknowledge(self, key: str) -> bool:
        """Somebody has seen it: an active one stays until its cause is gone, a returned one goes. False if unknown."""
        booked = self._booked.get(key)
        if booked is None:
            return False
        if booked.state is AlarmState.RETURNED:
            del self._booked[key]
        else:
            self._booked[key] = replace(booked, state=AlarmState.ACKNOWLEDGED)
        return True

    def acknowledged(self) -> frozenset[str]:
        """Keys of the active alarms that somebody has seen."""
        return frozenset(k for k, booked in self._booked.items() if booked.state is AlarmState.ACKNOWLEDGED)

    def returned(self) -> tuple[Booked, ...]:
        """What came and went unseen, oldest first."""
        gone = [booked for booked in self._booked.values() if booked.state is AlarmState.RETURNED]
        return tuple(sorted(gone, key=lambda booked: booked.ended or 0.0))

    def booked(self) -> tuple[Booked, ...]:
        """Everything kept, as it was raised."""
        return tuple(self._booked.values())


_LOUD = {Severity.NORMAL: 0, Severity.INFO: 1, Severity.LOOK: 2, Severity.ACT: 3}


def loud(severity: Severity, least: Severity) -> bool:
    """Whether a severity is at least as loud as `least`."""
    return _LOUD[severity] >= _LOUD[least]


def worst_returned(returned: Iterable[Booked]) -> Booked | None:
    """The one to see first: the worst, of these the one that went last; None if there is none."""
    return max(returned, key=lambda booked: (_LOUD[booked.alarm.severity], booked.ended or 0.0), default=None)


def _step(key: str, expected: Mapping[str, str]) -> str:
    return next((step for start, step in expected.items() if key.startswith(start)), "")
