"""Files of a lane's folder on its head, as operations write them."""

from __future__ import annotations

import json
from typing import Any

from console.readings.acting import Pulse, Texts, answered, read_acting
from console.readings.acting_types import Acting, Operation
from console.readings.look import Answer, Status

OP = "20261130T215510Z-rollback-3f9ac1"
BEGAN = 1_796_000_000.0
OLD, NEW = "9f2c1a7" + "0" * 33, "1bae0e1" + "0" * 33
LEASE = {
    "id": "f00d",
    "epoch": "7",
    "operator": "ana",
    "console": "ana@laptop 4711",
    "purpose": "switch",
    "acquired": str(int(BEGAN) - 60),
    "renewed": str(int(BEGAN)),
    "ttl": "60",
    "offered_to": "",
}
STEPS = (
    ("evidence-0", "evidence", "save evidence", "spark-0", {"optional": True}),
    ("disarm", "watchdog", "disarm watchdog", "spark-0", {}),
    ("stop-0", "stop", "stop rank 0", "spark-0", {"together": "stop"}),
    ("stop-1", "stop", "stop rank 1", "spark-1", {"together": "stop"}),
    ("start", "boot", "start the lane", "spark-0", {"detached": True, "limit": 900.0, "usual": 460.0}),
    ("arm", "arm", "arm watchdog", "spark-0", {}),
)


def lease(**changes: str) -> str:
    return "".join(f"{key}={value}\n" for key, value in (LEASE | changes).items())


def window(**changes: Any) -> str:
    found = {
        "id": "w1",
        "operator": "ana",
        "reason": "switch to 1bae0e1",
        "opened": BEGAN - 100,
        "deadline": BEGAN + 1400,
        "target": OLD,
        "plan_id": "7f3a01c2be94",
        "epoch": 7,
        "plan": {"verb": "rollback", "steps": []},
    }
    return json.dumps(found | changes)


def debts(*changes: Any) -> str:
    one = {"what": "watchdog", "since": BEGAN - 70, "deadline": BEGAN + 1000, "operator": "ana", "operation": OP}
    return json.dumps([one | change for change in changes or ({},)])


def plan(**changes: Any) -> str:
    steps = [
        {"id": name, "stage": stage, "title": title, "host": host, "argv": ["true"], "limit": 30.0} | more
        for name, stage, title, host, more in STEPS
    ]
    found = {
        "v": 1,
        "id": OP,
        "plan_id": "7f3a01c2be94",
        "verb": "rollback",
        "fleet": "spark4",
        "lane": "dsv41",
        "head": "spark-0",
        "operator": "ana",
        "console": "ana@laptop 4711",
        "epoch": 7,
        "title": "roll back dsv41 on spark4",
        "origin": NEW,
        "target": OLD,
        "created": BEGAN,
        "ledgered": True,
        "steps": steps,
        "rescue": [{"id": "rescue-logs", "stage": "evidence", "title": "save logs", "host": "spark-1"}],
    }
    return json.dumps(found | changes)


def line(at: float, kind: str, **more: Any) -> str:
    return json.dumps({"t": BEGAN + at, "seq": 1, "kind": kind} | more) + "\n"


def begin(**more: Any) -> str:
    return line(0, "begin", op=OP, operator="ana", epoch=7, **({"runs_on": "head"} | more))


def step(at: float, name: str, state: str, words: str = "", kind: str = "step") -> str:
    return line(at, kind, id=name, state=state, words=words)


def done(*names: str, at: float = 1.0) -> str:
    return "".join(step(at, name, "running") + step(at + 1, name, "done") for name in names)


def texts(
    journal: str | None = "", *, name: str | None = OP, planned: str | None = None, **others: str | Answer | None
) -> Texts:
    """A lane's folder; files that are not named are not there."""
    files: dict[str, Answer] = {"plan": answered(planned or plan()), "journal": answered(journal)}
    files["current"] = answered(None if name is None else name + "\n")
    for key in ("lease", "window", "debts"):
        files[key] = Answer(Status.MISSING)
    files |= {key: said if isinstance(said, Answer) else answered(said) for key, said in others.items()}
    return Texts(**files)


def read(journal: str | None = "", at: float = 30.0, pulse: Pulse | None = None, **others: Any) -> Acting:
    """What is read of the folder `at` seconds after the operation began."""
    return read_acting(texts(journal, **others), BEGAN + at, lane="dsv41", folder="/var/tmp/laneswap/s.d", pulse=pulse)


def operation(journal: str | None = "", at: float = 30.0, pulse: Pulse | None = None, **others: Any) -> Operation:
    found = read(journal, at, pulse, **others).operation
    assert found is not None
    return found
