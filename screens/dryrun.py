"""The dry-run view: what each guarded action would do now, host by host, with its commands. Nothing is sent."""

from __future__ import annotations

from console.actions.catalog import Place
from console.actions.plan import Plan, Step, groups
from console.actions.telling import command_words
from console.execution.policy import Decision, Need
from screens.base import bindings_for
from screens.reader import ReadingScreen, Text, table_rows
from widgets import format as fmt
from widgets.ages import AgeMark
from widgets.glance import Glance
from widgets.ink import BOLD, DIM, LOOK, STRONG
from widgets.sheet import Title

_LABEL, _VALUE, _HOST, _WORDS = 2, 12, 5, 20
"""Columns."""
_ASKS = {
    Need.LETTER: "the letter that the strip shows",
    Need.COUNTDOWN: "the letter, or by itself at the end of the countdown",
    Need.NAME: "the lane's name, typed",
    Need.NAME_AND_REASON: "break-glass: the lane's name and a reason, typed",
}


class DryRunScreen(ReadingScreen, inherit_bindings=False):
    """Plans of one lane, one under the other, in the order in which they were made."""

    PLACE = Place.DRY_RUN
    BINDINGS = bindings_for(Place.DRY_RUN)

    def __init__(self, lane: str) -> None:
        super().__init__()
        self.lane = lane
        self._plans: list[tuple[Plan, Decision]] = []

    def take(self, plan: Plan, decision: Decision) -> None:
        """One more plan to show."""
        self._plans.append((plan, decision))

    def body(self, glance: Glance, width: int) -> tuple[Title, list[Text]]:
        """All plans made until now."""
        title = Title(0, f"dry run {self.lane}", AgeMark("", DIM), "nothing is sent; Esc goes back")
        if not self._plans:
            return title, [((0, "The plans are being made from the newest readings.", DIM),)]
        rows: list[Text] = []
        for plan, decision in self._plans:
            rows += [*plan_rows(plan, decision, width - 4), ()]
        return title, rows


def plan_rows(plan: Plan, decision: Decision, width: int) -> list[Text]:
    """One plan: what it is, what it takes to go, its steps in order with what undoes them."""
    rows: list[Text] = [((0, plan.title, BOLD), (max(34, len(plan.title) + 2), f"plan {plan.id}", DIM))]
    for label, text in _facts(plan, decision):
        rows += table_rows(((_LABEL, label, LOOK if label in _LOUD else DIM),), _VALUE, text, width)
    for number, group in enumerate(groups(plan.steps), 1):
        for step in group:
            rows += _step_rows(number, step, width)
    for step in plan.rescue:
        rows += table_rows(((_LABEL, "fails", DIM),), _VALUE, f"if a step fails: {step.title} on {step.host}", width)
    return rows


_LOUD = ("warning", "unknown", "left out", "denied", "ends")


def _facts(plan: Plan, decision: Decision) -> list[tuple[str, str]]:
    refused = decision.denied or plan.refused
    if refused:
        return [("denied", refused)]
    took = plan.total
    found = [
        ("goes by", _ASKS[decision.need]),
        ("from", plan.origin or fmt.NONE),
        ("to", plan.target or fmt.NONE),
        ("cuts", plan.cuts or "nothing"),
        ("takes", f"≈{fmt.duration(took)}" if took is not None else "how long is not known"),
    ]
    for label, words in (("ends", plan.ends), ("left out", plan.left_out), ("warning", decision.warnings)):
        found += [(label, text) for text in words]
    for label, words in (("warning", plan.warnings), ("unknown", plan.unknown), ("note", plan.notes)):
        found += [(label, text) for text in words]
    return found


def _step_rows(number: int, step: Step, width: int) -> list[Text]:
    time = f"≈{fmt.duration(step.usual)}" if step.usual is not None else f"within {fmt.duration(step.limit)}"
    words = f"{step.title}, {time}" + (" (optional)" if step.optional else "")
    rows = table_rows(((_LABEL, str(number), DIM), (_HOST, step.host, STRONG)), _WORDS, words, width)
    said = [("runs", command_words(step))] if step.argv else []
    said += [("needs", probe.words) for probe in step.before]
    said += [("until", probe.words) for probe in step.after]
    said += [("undo", step.undo)] if step.undo else []
    for label, text in said:
        rows += table_rows(((_HOST, label, DIM),), _VALUE, text, width)
    return rows
