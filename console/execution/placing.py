"""What a plan lacks before it is compiled: folders of its operation, and what is owed written down on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from console.actions.plan import Plan, Probe, Stage, Step, Verb
from console.execution.scripts import script
from console.execution.tenure import DEBTS


def filled(plan: Plan, folder: str, op: str, spare: Mapping[str, str] | None = None) -> Plan:
    """The plan with `{state}`, `{states}` and `{evidence}`, where they are whole words of a command, put in: those of
    the host on which it runs. `spare`: by host whose own folder cannot be used."""

    def put(host: str, argv: Sequence[str]) -> tuple[str, ...]:
        there = (spare or {}).get(host, folder)
        both = there if there == folder else f"{there}:{folder}"
        words = {"{state}": there, "{states}": both, "{evidence}": f"{there}/ops/{op}/evidence"}
        return tuple(words.get(word, word) for word in argv)

    def probes(given: tuple[Probe, ...]) -> tuple[Probe, ...]:
        return tuple(replace(probe, argv=put(probe.host, probe.argv)) for probe in given)

    def step(given: Step) -> Step:
        return replace(
            given,
            argv=put(given.host, given.argv),
            before=probes(given.before),
            already=probes(given.already),
            after=probes(given.after),
            watch=probes(given.watch),
        )

    return replace(plan, steps=tuple(map(step, plan.steps)), rescue=tuple(map(step, plan.rescue)))


def with_debts(plan: Plan, folder: str, debt: str, *, must: bool = True) -> Plan:
    """The plan with what is owed written down on the head before the watchdog is switched off, and struck out once it
    is armed again; without a `debt` only that: by the sequence itself, so that no console has to live for it. `must`
    is False where the head's folder is known to be broken: the step says so, and break-glass goes on."""
    steps: list[Step] = []
    owes = bool(debt) and plan.verb is not Verb.ARM
    for step in plan.steps:
        if owes and step.stage is Stage.WATCHDOG and step.argv:
            steps.append(
                _debt_step(
                    "owe-watchdog",
                    plan.head,
                    "write down that the watchdog is owed",
                    debt,
                    folder,
                    # nothing holds the way back up; a watchdog that is only switched off must not go unowed
                    optional=plan.verb is not Verb.DISARM or not must,
                )
            )
            owes = False
        steps.append(step)
    if plan.pays or any(step.stage is Stage.ARM for step in plan.steps):
        steps.append(_debt_step("settle-watchdog", plan.head, "strike out the debt", "", folder))
    return replace(plan, steps=tuple(steps))


def _debt_step(name: str, head: str, title: str, debt: str, folder: str, *, optional: bool = True) -> Step:
    put = script("put" if debt else "drop")
    size = [str(len(debt.encode()))] if debt else []
    # the runner's own fence stands before it; under a newer epoch, once taken over, this one would refuse
    argv = ("sh", "-c", put, "laneswap", folder, "-", DEBTS, *size)
    stage = Stage.WATCHDOG if debt else Stage.ARM
    return Step(
        name, stage, title, head, argv,
        limit=10.0, stdin=debt, usual=0.2, basis="estimate", optional=optional, again=True,
    )  # fmt: skip
