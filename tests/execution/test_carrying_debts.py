"""What is owed is written down by the sequence itself, before it is owed, and struck out by it once it is paid."""

from __future__ import annotations

from console.actions.plan import Plan, Stage, Step, Verb
from console.execution.placing import with_debts

FOLDER = "/var/tmp/laneswap/spark4.dsv41"
DEBT = '[{"what": "watchdog"}]\n'


def step(name: str, stage: Stage) -> Step:
    return Step(name, stage, name, "n1", ("true",), limit=5.0)


def plan(verb: Verb, *steps: Step, **more: str) -> Plan:
    return Plan(verb, "spark4", "dsv41", "n1", f"{verb.value} dsv41", steps, **more)  # type: ignore[arg-type]


SAVE, OFF, STOP, ON = (
    step(name, stage)
    for name, stage in (
        ("save", Stage.EVIDENCE),
        ("disarm", Stage.WATCHDOG),
        ("stop", Stage.STOP),
        ("arm", Stage.ARM),
    )
)


def names(made: Plan) -> list[str]:
    return [one.id for one in made.steps]


def test_what_is_owed_is_written_down_before_the_watchdog_is_switched_off() -> None:
    made = with_debts(plan(Verb.DISARM, OFF, owes="watchdog"), FOLDER, DEBT)
    assert names(made) == ["owe-watchdog", "disarm"]
    owe = made.steps[0]
    assert (owe.stdin, owe.host, owe.optional) == (DEBT, "n1", False), "without it nothing is switched off"
    back = with_debts(plan(Verb.ROLLBACK, SAVE, OFF, STOP, ON), FOLDER, DEBT)
    assert names(back) == ["save", "owe-watchdog", "disarm", "stop", "arm", "settle-watchdog"]
    assert back.steps[1].optional, "nothing holds the way back up"


def test_what_is_owed_is_struck_out_once_the_watchdog_is_armed() -> None:
    assert names(with_debts(plan(Verb.ARM, ON, pays="watchdog"), FOLDER, DEBT)) == ["arm", "settle-watchdog"]
    assert names(with_debts(plan(Verb.STOP, OFF, STOP, owes="watchdog"), FOLDER, DEBT))[-1] == "stop"


def test_what_is_owed_already_keeps_its_beginning() -> None:
    assert names(with_debts(plan(Verb.STOP, OFF, STOP, owes="watchdog"), FOLDER, "")) == ["disarm", "stop"]
