"""What a strip is opened for: how it is prepared, what it asks, and how it is carried out once it goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from console.actions.plan import Plan, Verb
from console.actions.strip import By, Fingerprint, Kind, Phase, Question, Strip
from console.execution.policy import SHORTEST_REASON, Confirmation, Decision, How, Need, clock
from screens.base import Hands
from widgets.strip import HEADINGS

_HOWS = {By.LETTER: How.LETTER, By.COUNTDOWN: How.COUNTDOWN, By.TYPED: How.NAME}


@dataclass(frozen=True, slots=True)
class Ready:
    """What a strip shows and asks, once that is known."""

    by: By = By.TYPED
    seconds: float = 0.0
    questions: tuple[Question, ...] = ()
    plan: Plan | None = None
    decision: Decision | None = None
    told: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    frozen: str = ""
    denied: str = ""
    """Why there is nothing to confirm; '' if there is."""
    rests_on: Fingerprint = ()
    """What else of it must stay as it was."""

    @property
    def shows(self) -> Fingerprint:
        """What of it must stay as it was while it is read."""
        needs = f"{self.by.value} {self.seconds:g}" if self.decision is None else self.decision.need.value
        plan = self.plan.id if self.plan is not None else ""
        return ("the plan", plan), ("what is asked for", needs), *self.rests_on

    def aged(self, now: Ready) -> Ready:
        """The same with what is told as it is now: ages go on. Of a decision nothing is replaced."""
        return self if self.decision is not None else replace(self, told=now.told, warnings=now.warnings)


@dataclass(frozen=True, slots=True)
class Errand:
    """One thing that a strip is opened for."""

    key: str
    heading: str
    lane: str
    prepare: Callable[[], Awaitable[Ready]]
    carry_out: Callable[[Ready, Strip], Awaitable[str]]
    begins: bool = False
    """What it carries out is seen on the screen as it goes on, so that what is said of it may soon make room."""


def guarded_errand(key: str, verb: Verb, lane: str, hands: Hands, frozen: Callable[[Plan], str]) -> Errand:
    """A strip for one of D, S, R and B."""

    async def prepare() -> Ready:
        plan, decision = await hands.plan(lane, verb)
        if decision.denied or plan.refused:
            return Ready(plan=plan, decision=decision, denied=decision.denied or plan.refused)
        by, questions = asked_for(decision)
        return Ready(by, decision.seconds, questions, plan, decision, frozen=frozen(plan))

    async def carry_out(ready: Ready, strip: Strip) -> str:
        if ready.plan is None or ready.decision is None:
            return "nothing was planned. Nothing was sent."
        return await hands.act(ready.plan, ready.decision, confirmation_of(strip, ready.plan))

    return Errand(key, HEADINGS[verb], lane, prepare, carry_out, begins=True)


def asked_for(decision: Decision) -> tuple[By, tuple[Question, ...]]:
    """What a decision asks of the operator, as a strip asks it."""
    if decision.need is Need.LETTER:
        return By.LETTER, ()
    if decision.need is Need.COUNTDOWN:
        # Nothing but a rollback ever goes by itself, whatever a decision says.
        return (By.COUNTDOWN if decision.verb is Verb.ROLLBACK else By.LETTER), ()
    name = Question("lane name", Kind.EXACT, decision.lane, f"exactly: {decision.lane}")
    if decision.need is Need.NAME:
        return By.TYPED, (name,)
    hint = "break-glass: it is kept on the host and has to be written up"
    return By.TYPED, (name, Question("reason", Kind.TEXT, hint=hint, least=SHORTEST_REASON))


def confirmation_of(strip: Strip, plan: Plan) -> Confirmation:
    """What the operator did, in the policy's words. Only for a strip that goes."""
    if strip.phase is not Phase.GO or strip.went is None:
        raise ValueError("this strip does not go")
    name, reason = (*strip.answers, "", "")[:2]
    return Confirmation(_HOWS[strip.went], plan.id, clock(), name, reason, strip.counted)
