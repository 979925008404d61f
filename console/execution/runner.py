"""Carries an operation out, step by step, across hosts: on the head node, where it outlives every console, or in the
console where the head cannot reach a rank.

Standard library only, nothing newer than Python 3.8: with the other `runner_` modules this is one file, run as
`python3 -I -S runner.py run FOLDER` (see `sequence.py:runner_text`). Whatever it does is in its journal, on the disk,
before a command leaves. Every command that acts goes through its host's fence and is claimed there under the names of
operation and step: it runs once, however often it is sent. An answer that is lost is looked up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from console.execution.runner_base import (
    ABSENT,
    DONE,
    FAILED,
    FENCED,
    FINE,
    HALF_DONE,
    LOST,
    MOST_WORDS,
    RUNNING,
    SATISFIED,
    SKIPPED,
    STOPPED,
    UNKNOWN,
    Attempt,
    Clock,
    Fenced,
    Halted,
    JournalLost,
    Log,
    Transport,
    all_yes,
    down_with_its_host,
    groups,
    half_done,
    missing,
    said,
)
from console.execution.runner_hosts import Hosts, pool

WATCH_EVERY = 2.0
SOONEST = 0.02
"""Seconds before what must be seen is asked for again, the first time; later it is up to a second."""
LEAST_ON_RESUME = 5.0
"""Seconds that a step has at least when it is looked up after a break."""
FRESH = 1.0
"""Seconds: an answer that had to wait longer than this for the head's fence is asked for anew before a step begins."""
UNSURE = 20.0
"""Seconds in which a host that cannot tell whether a step may begin is asked again: a busy docker, a lock."""
COMING_UP = 90.0
"""Seconds that a host which was restarted has until what must hold before a step can be asked there."""
LEAVE = 1.0
"""Seconds at most for which evidence beside a stop lets the stop's commands leave first. Begun together, each holds the
other up; while the engine ends, its host has nothing else to do."""
EVIDENCE = "evidence"
GENTLE = (EVIDENCE, "watchdog")
"""Stages that leave the lane as it runs: when they fail there is nothing to rescue."""


class Runner:
    """Carries one operation out; `run` returns how it ended, as `OperationState` words it."""

    def __init__(
        self,
        operation: dict[str, Any],
        transport: Transport,
        journal: Log,
        *,
        runs_on: str = "head",
        clock: Clock | None = None,
        reload: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        """`reload` reads the operation anew, for whoever took it over while it runs."""
        self.operation, self.journal, self.runs_on = operation, journal, runs_on
        self.clock = clock or Clock()
        self.hosts = Hosts(operation, transport, self.clock, reload or (lambda: operation))
        self.hosts.took_over = self._took_over
        self.ends_steps, self.why = False, "told to stop"
        self._steps: list[dict[str, Any]] = list(operation["steps"])
        self._lines: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._lock = threading.RLock()
        self._beside: list[threading.Thread] = []
        self._to_leave: set[str] = set()
        self._all_left = threading.Event()
        self._raised: list[BaseException] = []
        for line in journal.lines:
            self._remember(line)

    def stop(self, why: str = "told to stop", *, steps: bool = False, epoch: int | None = None) -> None:
        """Begin no further step; `steps`: also end what runs as a unit of its own, under the epoch of who says so."""
        self.why, self.ends_steps = why, steps
        self.hosts.halt.set()  # nothing begins from here on, so a newer epoch can serve for ending alone
        if epoch is not None and self.hosts.epoch != "-":
            self.hosts.epoch = max(self.hosts.epoch, epoch)
        self.hosts.transport.interrupt()

    def run(self) -> str:
        """Carry it out, or go on with it. Raises JournalLost, and Fenced where not even that can be written."""
        told = [line for line in self.journal.lines if line.get("kind") in ("begin", "takeover", "end")]
        if told and told[-1]["kind"] == "end":
            return str(told[-1]["state"])
        self._introduce(told)
        try:
            hosts = {str(step["host"]) for step in self._steps} | {self.operation["head"]}
            # the head has our epoch from whoever started us there under it
            self.hosts.fence_all(sorted(hosts - {self.operation["head"]} if self.runs_on == "head" else hosts))
        except Fenced as fenced:
            return self._end(FENCED, str(fenced))
        except Halted:
            return self._end(STOPPED, self.why)
        for group in groups(self._steps):
            waited_for = self._begin_beside(group)
            self._together(waited_for, "step")
            if (bad := self._bad(waited_for)) is not None:
                return self._give_up(bad)
            if self.hosts.halt.is_set():
                break
        self._join()
        if (bad := self._bad(self._steps)) is not None:
            return self._give_up(bad)
        return self._end(STOPPED if self.hosts.halt.is_set() else DONE, self.why if self.hosts.halt.is_set() else "")

    def _bad(self, steps: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """The first step that ends the whole."""
        for step in steps:
            state = self._state(step)
            if state not in FINE and (not step["optional"] or state == FENCED):
                return step
        return None

    def _begin_beside(self, group: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Begin what holds nothing up, evidence beside a stop; what of the group has to be waited for."""
        waited_for = [step for step in group if not (step["optional"] and step["stage"] == EVIDENCE)]
        if not waited_for or self.hosts.halt.is_set():
            return list(group)
        beside = [step for step in group if step not in waited_for]
        if beside:
            self._to_leave, self._all_left = {step["id"] for step in waited_for}, threading.Event()
            thread = threading.Thread(target=self._quietly, args=(beside, self._all_left))
            self._beside.append(thread)
            thread.start()
        return waited_for

    def _quietly(self, group: Sequence[dict[str, Any]], all_left: threading.Event) -> None:
        try:
            self.clock.pause(all_left, LEAVE)
            self._together(group, "step")
        except BaseException as error:  # raised by `_join`
            self._raised.append(error)

    def _left_us(self, step: dict[str, Any]) -> None:
        """The step's command has left, or never will."""
        with self._lock:
            self._to_leave.discard(step["id"])
            if not self._to_leave:
                self._all_left.set()

    def _join(self) -> None:
        """Wait for what went on beside. Raises what ended it."""
        while self._beside:
            self._beside.pop().join()
        if self._raised:
            raise self._raised[0]

    # -- beginning and end

    def _introduce(self, told: Sequence[dict[str, Any]]) -> None:
        """Who carries it out; and from whom, where that was somebody else."""
        if told and told[-1]["operator"] != self.hosts.operator:
            self._took_over(str(told[-1]["operator"]))
        who = {"operator": self.hosts.operator, "epoch": self.hosts.epoch}
        self._write(kind="begin", op=self.operation["id"], **who, runs_on=self.runs_on)

    def _took_over(self, before: str) -> None:
        self._write(kind="takeover", operator=self.hosts.operator, **{"from": before})

    def _give_up(self, step: dict[str, Any]) -> str:
        """A step did not end well: rescue what can be, then say where it stands."""
        self._join()
        state = self._state(step)
        words = str(self._lines["step", step["id"]][-1].get("words", "")) if state else self.why
        if state == FAILED and self._needs_rescue():
            for group in groups(self.operation.get("rescue") or []):
                self._together(group, "rescue")
        return self._end(STOPPED if not state or self.hosts.halt.is_set() else state, words)

    def _needs_rescue(self) -> bool:
        """Whether a command has left that changes what serves."""
        acting = [one for one in self._steps if one["argv"] and not one["optional"] and one["stage"] not in GENTLE]
        return any(line["state"] == RUNNING for one in acting for line in self._lines.get(("step", one["id"]), ()))

    def _end(self, why: str, words: str) -> str:
        """The last line: how it ended; what was not begun is skipped."""
        for step in self._steps:
            if not self._state(step):
                self._tell(step, "step", SKIPPED, "")
        changed = any(self._state(one) in FINE and one["argv"] and not one["optional"] for one in self._steps)
        state = why if why in (DONE, STOPPED) else HALF_DONE if changed or why == UNKNOWN else FAILED
        if why != DONE and (changed or why == UNKNOWN):
            where = half_done(self._steps, {one["id"]: self._state(one) for one in self._steps})
            words = where + (f": {words}" if words else "")
        self._write(kind="end", state=state, words=words)
        return state

    # -- one step

    def _together(self, group: Sequence[dict[str, Any]], kind: str) -> None:
        with pool(len(group)) as threads:
            list(threads.map(lambda step: self._one(step, kind), group))

    def _one(self, step: dict[str, Any], kind: str) -> None:
        lines = self._lines.get((kind, step["id"]), [])
        if (lines and lines[-1]["state"] != RUNNING) or (self.hosts.halt.is_set() and not lines):
            return
        attempt = self._attempt(step, kind, lines)
        try:
            state, words = self._resume(attempt) if lines else self._begin(attempt)
        except Fenced as fenced:
            state, words = FENCED, str(fenced)
        except Halted:
            state, words = self._halted(attempt)
        finally:
            self._left_us(step)
        self._tell(step, kind, state, words)

    def _attempt(self, step: dict[str, Any], kind: str, lines: Sequence[dict[str, Any]]) -> Attempt:
        now = self.clock.wall()
        since = min(float(lines[-1]["t"]), now) if lines else now
        left = max(step["limit"] - (now - since), LEAST_ON_RESUME if lines else 0.0)
        here = self.runs_on == "head" and step["host"] == self.operation["head"]
        attempt = Attempt(step, kind, since, self.clock.mono() + left, here)
        attempt.begun = bool(lines)
        return attempt

    def _begin(self, a: Attempt) -> tuple[str, str]:
        """From the start: is it ours, is it needed, may it begin; then the line, then the command."""
        trouble, already, before = self._first_look(a)
        if trouble:
            return FAILED, trouble
        if already and all(done.status == 0 for _, done in already):
            return SATISFIED, said(already)
        trouble = self._before(a, before)
        if trouble:
            return FAILED, trouble
        self._tell(a.step, a.kind, RUNNING, "")
        a.begun = True
        if not a.detached:
            self._left_us(a.step)  # its answer comes when it has ended
        found = self.hosts.send(a) if a.step["argv"] else {"state": DONE}
        self._left_us(a.step)
        return self._follow(a, found)

    def _resume(self, a: Attempt) -> tuple[str, str]:
        """It was begun by a runner that is gone: look it up before anything is done."""
        a.resumed = True
        if not a.step["argv"]:
            return self._observe(a)
        found = self.hosts.look(a)
        while found is None and self._left(a) > 0:
            self._no_answer(a)
            self.hosts.pause(1.0)
            found = self.hosts.look(a)
        if found is not None and found["state"] == ABSENT and not self.hosts.restarted(a, found):
            return self._begin(self._attempt(a.step, a.kind, []))
        if found is not None and a.step.get("again") and self.hosts.cut_short(a, found):
            return self._once_more(a)
        return self._follow(a, found)

    def _once_more(self, a: Attempt) -> tuple[str, str]:
        """Its host was restarted under it, and doing it again does no harm: it holds by now, or it is begun anew."""
        why = f"{a.host} was restarted"
        state, words = self._by_deed(a, why)
        if state == DONE:
            return state, words
        if trouble := self.hosts.put_aside(a):
            return UNKNOWN, f"{why}; its outcome is not known, and it was not begun once more: {trouble}"
        anew = self._attempt(a.step, a.kind, [])
        self._seen(anew, f"{why} under it: it is begun once more")
        self._until_up(anew)
        return self._begin(self._attempt(a.step, a.kind, []))

    def _until_up(self, a: Attempt) -> None:
        """What a host that has just come up cannot answer yet (Docker still starts) is no answer to what must hold."""
        until = self.clock.mono() + COMING_UP
        while any(done.status not in (0, 1) for _, done in self.hosts.ask(a.step["before"])):
            if self.clock.mono() >= until:
                return
            self.hosts.pause(1.0)

    def _follow(self, a: Attempt, found: dict[str, str] | None) -> tuple[str, str]:
        """Until the command has ended, one way or another."""
        while True:
            state = found["state"] if found else ""
            restarted = state == ABSENT and self.hosts.restarted(a, found)
            if state == DONE:
                return self._observe(a, found)
            if state in (FAILED, STOPPED) and not down_with_its_host(found):
                a.ended = True
                return state, self.hosts.last_words(a, found or {}) or state
            if state in (LOST, FAILED, STOPPED) or restarted:
                why = f"{a.host} was restarted" if restarted else (found or {}).get("words") or "it left no result"
                return self._by_deed(a, why)
            if state == RUNNING and a.resumed and (found or {}).get("seen") == "no":
                done = self._by_deed(a, "")  # nobody may be left to say how it ended: what it was for may be there
                if done[0] == DONE:
                    return done
            if self._left(a) <= 0:
                return self._overdue(a)
            trouble = self._watch(a)
            if trouble:
                return self.hosts.end(a, trouble) if a.detached else (FAILED, trouble)
            if state == ABSENT:  # it never arrived; the host takes it only once, should the first one still come
                found = self.hosts.send(a) or {"state": ""}
                continue
            if not state and found is None:
                self._no_answer(a)
            looks_long = a.detached and state  # a look at a unit waits by itself
            self.hosts.pause(0.0 if looks_long else 0.2 if state else 1.0)
            found = self.hosts.look(a)

    def _observe(self, a: Attempt, found: dict[str, str] | None = None) -> tuple[str, str]:
        """The command has ended well: until all that must be so is seen; it may have been with its end."""
        a.ended = True
        rest = SOONEST
        answers = all_yes(a.step["after"], found)
        while True:
            asked = self.clock.mono()
            answers = answers or self.hosts.ask(a.step["after"])
            unseen = [pair for pair in answers if pair[1].status != 0]
            if not unseen:
                return DONE, said(answers)
            answers = []
            self._seen(a, missing(unseen[:1]))
            if self._left(a) <= 0:
                state = FAILED if any(done.status == 1 for _, done in unseen) else UNKNOWN
                return state, "not seen in {:.0f} s: {}".format(a.step["limit"], missing(unseen))
            trouble = self._watch(a)
            if trouble:
                return FAILED, trouble
            # never more than half of the time at it, and less and less
            self.hosts.pause(min(1.0, max(rest, self.clock.mono() - asked)))
            rest *= 1.7

    def _by_deed(self, a: Attempt, why: str) -> tuple[str, str]:
        """Nothing tells how the command ended: only what can be observed does."""
        for probes in (a.step["after"], a.step["already"]):
            answers = self.hosts.ask(probes)
            if answers and all(done.status == 0 for _, done in answers):
                return DONE, said(answers)
        return UNKNOWN, f"{why}; its outcome is not known"

    def _overdue(self, a: Attempt) -> tuple[str, str]:
        late = "no end after {:.0f} s".format(a.step["limit"])
        return self.hosts.end(a, late) if a.detached else self._by_deed(a, late)

    def _halted(self, a: Attempt) -> tuple[str, str]:
        """What to say of a step at which we were told to stop."""
        if not a.begun:
            return SKIPPED, self.why
        if a.ended or not a.step["argv"]:
            return STOPPED, self.why
        if not (a.detached and self.ends_steps):
            return UNKNOWN, f"{self.why}; left running on {a.host}" if a.detached else self.why
        try:
            state, words = self.hosts.end(a, self.why)
        except (Fenced, Halted) as fenced:
            return UNKNOWN, f"{self.why}; left running on {a.host}: {fenced}"
        return (STOPPED if state == FAILED else state), words

    # -- questions

    def _first_look(self, a: Attempt) -> tuple[str, list[Any], list[Any]]:
        """Why it is not ours to begin, '' if it is, with what `already` and `before` say: asked side by side, for only
        the fence may forbid, and questions change nothing. Raises Fenced."""
        already, both = len(a.step["already"]), [*a.step["already"], *a.step["before"]]
        asked = self.clock.mono()
        late: list[bool] = []

        def ours() -> str:
            trouble = self.hosts.ours(lambda: self._left(a))
            late.append(self.clock.mono() - asked > FRESH)
            return trouble

        if a.here and a.step["argv"]:  # its own fence is the head's, and comes later than this would
            answers = self.hosts.ask(both)
            return "", answers[:already], answers[already:]
        with pool(2) as threads:
            trouble, answers = threads.map(lambda one: one(), (ours, lambda: self.hosts.ask(both)))
        if late[0] and not trouble:
            answers = self.hosts.ask(both)
        return trouble, answers[:already], answers[already:]

    def _before(self, a: Attempt, answers: list[Any]) -> str:
        """'' if all that must hold does. A no is final; a lost answer is asked for again until the step's time is up,
        and a host that answers and does not know for as long as a busy one may take."""
        began = self.clock.mono()
        while True:
            bad = [pair for pair in answers if pair[1].status != 0]
            asked = self.clock.mono() - began
            if not bad:
                a.deadline += min(asked, UNSURE)  # what a host needed to know its own mind is not taken from the step
                return ""
            unsure = any(done.status is not None for _, done in bad)
            over = asked >= UNSURE if unsure else self._left(a) <= 0
            if over or any(done.status == 1 for _, done in bad):
                again = f", asked again for {asked:.0f} s" if asked >= 1 else ""
                return f"not begun: {missing(bad)}{again}"
            self.hosts.pause(1.0)
            answers = self.hosts.ask(a.step["before"])

    def _watch(self, a: Attempt) -> str:
        """What has gone wrong meanwhile, asked every two seconds; '' if nothing."""
        if not a.step["watch"] or self.clock.mono() - a.watched < WATCH_EVERY:
            return ""
        a.watched = self.clock.mono()
        return missing([pair for pair in self.hosts.ask(a.step["watch"]) if pair[1].status == 1])

    def _left(self, a: Attempt) -> float:
        return a.deadline - self.clock.mono()

    # -- the journal

    def _state(self, step: dict[str, Any]) -> str:
        lines = self._lines.get(("step", step["id"]), [])
        return str(lines[-1]["state"]) if lines else ""

    def _no_answer(self, a: Attempt) -> None:
        self._seen(a, f"no answer from {a.host}, asked again")

    def _seen(self, a: Attempt, words: str) -> None:
        """What it waits for, once a change; in a long wait every five seconds at most."""
        now = self.clock.mono()
        least = 1.0 if self.clock.wall() - a.since < 60 else 5.0
        if words != a.told[0] and now - a.told[1] >= least:
            a.told = (words, now)
            self._write(kind="seen", id=a.id, words=words)

    def _tell(self, step: dict[str, Any], kind: str, state: str, words: str) -> None:
        self._write(kind=kind, id=step["id"], state=state, words=words)

    def _write(self, **line: Any) -> None:
        with self._lock:
            newest = self.journal.lines[-1].get("seq", 0) if self.journal.lines else 0
            line = {"t": round(self.clock.wall(), 3), "seq": newest + 1, **line}
            if "words" in line:
                line["words"] = str(line["words"])[:MOST_WORDS]
            try:
                self.journal.write(line)
            except (JournalLost, Fenced):
                self.hosts.halt.set()
                raise
            self._remember(line)

    def _remember(self, line: dict[str, Any]) -> None:
        if line.get("kind") in ("step", "rescue"):
            self._lines.setdefault((line["kind"], line["id"]), []).append(line)
