"""Commands and questions of the runner to hosts: fenced, claimed under the step's name, looked up if an answer is lost.
Standard library only, nothing newer than Python 3.8: a part of the one file that runs on hosts.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from console.execution.runner_base import (
    ABSENT,
    ASIDE,
    DONE,
    FAILED,
    LOOK,
    LOST,
    ONCE,
    RUNNING,
    SHORT,
    STOPPED,
    WAIT,
    Attempt,
    Clock,
    Done,
    Fenced,
    Halted,
    Transport,
    asking,
    ended,
    first_line,
    keys_of,
    last_line,
    spread,
)

PROBE_LIMIT = LOOK_LIMIT = 10.0
FENCE_LIMIT = 5.0
LONG_POLL, WATCHED_POLL = 8, 2
"""Seconds that a host waits for a unit's end before it says that it still runs; the second where it is watched."""
QUICK = 30.0
"""Seconds after its beginning in which the end of a unit is seen within 0.02 s, later within 0.5 s."""
ADOPTION = 5.0
"""Seconds in which whoever took the lease over may tell a fenced operation to go on under the new epoch."""
JOINED = 0.3
"""Seconds for which a question to the head's fence that is under way serves others that would ask the same."""
STOP_GRACE = 20
TOGETHER = 6
"""sshd drops logins when more come at once."""
LAST_BYTES = 2000
"""Of a unit's log, in which its last words are looked for."""


class Asked:
    """One question that several may wait for."""

    def __init__(self, since: float) -> None:
        """`since` by the clock that only grows."""
        self.since, self.over = since, threading.Event()
        self.said = Done(None, "", "the head was not asked")
        self.raised: Fenced | Halted | None = None


class Hosts:
    """The hosts of one operation."""

    def __init__(
        self, operation: dict[str, Any], transport: Transport, clock: Clock, reload: Callable[[], dict[str, Any]]
    ) -> None:
        """`reload` reads the operation anew: who takes it over writes another operator and a newer epoch there."""
        self.operation, self.transport, self.clock, self.reload = operation, transport, clock, reload
        self.epoch, self.operator = operation["epoch"], str(operation["operator"])
        self.halt = threading.Event()
        self.took_over: Callable[[str], None] = lambda before: None
        self._adopting, self._sharing = threading.Lock(), threading.Lock()
        self._asked: Asked | None = None
        self._known: dict[str, list[str]] = {}
        """By host: what its starter said of itself, as it takes it back."""

    # -- the lease

    def fence_all(self, hosts: Sequence[str]) -> None:
        """Our epoch on each of these hosts, so that no older one acts there once we do, and what a unit's start needs.
        Raises Fenced."""

        def one(host: str) -> None:
            modes = ["sh", "-c", self.operation["starter"], "laneswap", "modes", self._folder(host), "path"]
            found = keys_of(self.acted(host, lambda _: modes, "", FENCE_LIMIT).out)
            if found.get("path", "").startswith("/"):
                self._known[host] = ["", found.get("boot", ""), found.get("mode", ""), found["path"]]

        with pool(len(hosts)) as threads:
            threads.map(one, hosts)

    def ours(self, left: Callable[[], float]) -> str:
        """'' if the head knows no newer lease. Raises Fenced. Break-glass goes on without the head."""
        while True:
            done = self._heads_fence()
            if done.status == 0 or self.epoch == "-" or not self.operation.get("ledgered", True):
                return ""
            if done.status is not None:
                return "not begun: " + (first_line(done.err) or f"the head's fence says {done.status}")
            if left() <= 0:
                return "not begun: the head does not say who holds the lease"
            self.pause(1.0)

    def _heads_fence(self) -> Done:
        """What the head's fence says; steps that begin side by side ask it once. Raises Fenced, and Halted."""
        now = self.clock.mono()
        with self._sharing:
            asked = self._asked
            joined = asked is not None and now - asked.since <= JOINED and not asked.over.is_set()
            if asked is None or not joined:
                asked = self._asked = Asked(now)
        if joined:
            asked.over.wait()
        else:
            try:
                asked.said = self.acted(self.operation["head"], lambda _: ["true"], "", FENCE_LIMIT)
            except (Fenced, Halted) as raised:
                asked.raised = raised
            finally:
                asked.over.set()
        if asked.raised is not None:
            raise asked.raised
        return asked.said

    def acted(
        self, host: str, argv: Callable[[str], list[str]], stdin: str, limit: float, *, fences: bool = False
    ) -> Done:
        """Run a command that acts, made for our epoch, through the host's fence; one that `fences` asks it by itself,
        under the lock under which it begins. Raises Fenced."""
        while True:
            # what was seen in the place of a broken folder, in some other incident, is no lease of this lane
            epoch: Any = "-" if host in self.operation.get("dirs", {}) else self.epoch
            fence = ["sh", "-c", self.operation["fence"], "laneswap", self._folder(host), str(epoch), "--"]
            command = argv(str(epoch)) if fences else [*fence, *argv(str(epoch))]
            done = self.transport.run(host, command, stdin, limit)
            newest = re.match(r"epoch=([0-9]+)\s", done.out)
            if done.status != 4 or newest is None or epoch == "-" or int(newest[1]) <= epoch:
                return done
            self._adopt(int(epoch), done.out)

    def _adopt(self, refused: int, words: str) -> None:
        """A newer lease was seen: go on under it if its holder has told us so in time. Raises Fenced."""
        until = self.clock.mono() + ADOPTION
        while self.epoch <= refused:
            with self._adopting:
                fresh = self.reload()
                if self.epoch <= refused and isinstance(fresh["epoch"], int) and fresh["epoch"] > refused:
                    before, self.operator = self.operator, str(fresh["operator"])
                    self.took_over(before)
                    self.epoch = fresh["epoch"]
                    return
            if self.clock.mono() >= until:
                raise Fenced(self._holder(words))
            self.pause(0.5)

    def _holder(self, words: str) -> str:
        keys = spread(words)
        if not keys.get("operator"):
            lease = self.operation["dir"] + "/lease"
            found = keys_of(self._question(self.operation["head"], ["cat", lease], "", FENCE_LIMIT).out)
            keys = {**found, "since": found.get("acquired", ""), "epoch": keys["epoch"]}
        since = keys.get("since", "")
        at = time.strftime(" since %H:%M:%SZ", time.gmtime(float(since))) if re.fullmatch(r"\d{1,11}", since) else ""
        return "{} holds the lease{} (epoch {})".format(first_line(keys.get("operator", "")) or "?", at, keys["epoch"])

    # -- the command of a step

    def send(self, a: Attempt) -> dict[str, str] | None:
        """The command leaves; None: it has to be looked up what became of it. Raises Fenced, and Halted."""
        if self.halt.is_set():
            raise Halted
        left = max(1.0, a.deadline - self.clock.mono())
        limit = LOOK_LIMIT + SHORT if a.detached else left
        command, stdin = (lambda epoch: self._command(a, epoch, left)), a.step["stdin"]
        done = self.acted(a.host, command, stdin, limit, fences=a.detached)
        if self.halt.is_set() and (done.status or 0) > 128:
            a.ended = not a.detached
            raise Halted
        if done.status is None and a.here:  # nothing is lost on the way to ourselves: its time was up
            return {"state": FAILED, "words": f"{done.err}; it was ended"}
        if done.status is None or done.status == 3:
            return None
        return {"state": RUNNING} if a.detached and done.status == 0 else ended(done.status, done)

    def _command(self, a: Attempt, epoch: str, left: float) -> list[str]:
        argv = [str(word) for word in a.step["argv"]]
        if not a.detached:
            return ["sh", "-c", ONCE, "laneswap", *self._place(a), *argv]
        options = [epoch, "auto", "1" if a.step["keeps"] else "0", f"{left + 1:.0f}", a.step["memory_max"] or "-"]
        return self._starter("start", a, *options, *self._known.get(a.host, ()), "--", *argv)

    def look(self, a: Attempt) -> dict[str, str] | None:
        """What became of the command: `state`, `words`, `up` (the host's uptime); None where nothing answers."""
        if not a.detached:
            done = self._question(a.host, ["sh", "-c", LOOK, "laneswap", *self._place(a)], "", LOOK_LIMIT)
            found = keys_of(done.out)
            if found.get("state") == "ended":
                code = found.get("code", "")
                words = Done(None, "", found.get("said", ""))
                if found.get("boot") == "changed" and re.fullmatch(r"129|137|143", code):  # it went down with its host
                    return {**found, "state": LOST}
                return ended(int(code), words) if re.fullmatch(r"\d{1,3}", code) else {"state": LOST}
            return found if found.get("state") else None
        quick, left = self.clock.wall() - a.since < QUICK, a.deadline - self.clock.mono()
        poll = int(max(1, min(left, WATCHED_POLL if a.step["watch"] else LONG_POLL)))
        times, rest = (poll * 50, "0.02") if quick else (poll * 2, "0.5")
        told = (str(times), rest, str(poll))
        wait = ["sh", "-c", WAIT, "laneswap", self.operation["starter"], *self._place(a), *told]
        after = a.step["after"]
        questions = asking(after) if all(probe["host"] == a.host for probe in after) else ""
        found = keys_of(self._question(a.host, wait, questions, poll + LOOK_LIMIT).out)
        return found if found.get("state") else None

    def last_words(self, a: Attempt, found: dict[str, str]) -> str:
        """Why a command failed: what its host says of it, and the last line that it wrote itself."""
        words, size = found.get("words", ""), found.get("size", "")
        if not a.detached or not re.fullmatch(r"\d{1,15}", size):
            return words
        log = self._starter("log", a, str(max(0, int(size) - LAST_BYTES)), str(LAST_BYTES))
        said = last_line(self._question(a.host, log, "", LOOK_LIMIT).out)
        return f"{words}: {said}" if words and said else words or said

    def end(self, a: Attempt, why: str) -> tuple[str, str]:
        """End the step's unit: its state, and what was seen of that. Raises Fenced."""
        stop = self._starter("stop", a, str(STOP_GRACE))
        done = self.acted(a.host, lambda _: stop, "", STOP_GRACE + LOOK_LIMIT)
        if keys_of(done.out).get("state", "") in (DONE, FAILED, STOPPED, LOST):
            return FAILED, why + "; it was ended"
        return "unknown", why + "; it could not be ended: " + (first_line(done.err) or f"no answer from {a.host}")

    def restarted(self, a: Attempt, found: dict[str, str] | None) -> bool:
        """Whether the host came up after the step was begun: then it may have forgotten that it was."""
        up = (found or {}).get("up", "")
        return re.fullmatch(r"\d+(\.\d*)?", up) is not None and float(up) < self.clock.wall() - a.since

    def cut_short(self, a: Attempt, found: dict[str, str]) -> bool:
        """Whether a restart of its host ended it: nothing of it runs any more, and it never came to its own end."""
        state = found["state"]
        if not a.detached:
            # by the number of its start: how long a host is up is, in a container, what its machine says
            return state in (ABSENT, RUNNING, LOST) and (found.get("boot") == "changed" or self.restarted(a, found))
        if state == ABSENT:
            return self.restarted(a, found)
        by_hand = "operator" in found.get("words", "")
        return found.get("boot") == "changed" and state in (LOST, FAILED, STOPPED) and not by_hand

    def put_aside(self, a: Attempt) -> str:
        """'' once the step can be begun there as if it never had been, else why not. Raises Fenced."""
        aside = ["sh", "-c", ASIDE, "laneswap", *self._place(a)]
        done = self.acted(a.host, lambda _: aside, "", LOOK_LIMIT)
        return "" if done.status == 0 else first_line(done.err) or f"no answer from {a.host}"

    # -- questions

    def ask(self, probes: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Done]]:
        """All of them at once. Raises Halted."""
        if not probes:
            return []

        def one(probe: dict[str, Any]) -> tuple[dict[str, Any], Done]:
            argv = [str(word) for word in probe["argv"]]
            return probe, self._question(probe["host"], argv, probe["stdin"], PROBE_LIMIT)

        with pool(len(probes)) as threads:
            answers: list[tuple[dict[str, Any], Done]] = threads.map(one, probes)
        if self.halt.is_set():
            raise Halted
        return answers

    def pause(self, seconds: float) -> None:
        """Raises Halted when told to stop."""
        self.clock.pause(self.halt, seconds)
        if self.halt.is_set():
            raise Halted

    def _question(self, host: str, argv: Sequence[str], stdin: str, limit: float) -> Done:
        return self.transport.run(host, argv, stdin, limit, True)

    def _folder(self, host: str) -> str:
        """The state folder there; under break-glass another one, where that cannot be used."""
        return str(self.operation.get("dirs", {}).get(host, self.operation["dir"]))

    def _place(self, a: Attempt) -> list[str]:
        return [self._folder(a.host), self.operation["id"], a.id]

    def _starter(self, verb: str, a: Attempt, *more: str) -> list[str]:
        return ["sh", "-c", self.operation["starter"], "laneswap", verb, *self._place(a), *more]


class Pool:
    """Threads for one piece of work. `concurrent.futures` would be the larger part of the runner's own start."""

    def __init__(self, workers: int) -> None:
        """At most TOGETHER at once; one alone is the caller's own thread."""
        self._workers = max(1, min(workers, TOGETHER))

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, act: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """What `act` makes of each, in order, once all have ended; then raises what the first of them raised."""
        todo = list(enumerate(items))
        found: dict[int, Any] = {}
        raised: dict[int, BaseException] = {}
        left = iter(todo)
        turn = threading.Lock()

        def work() -> None:
            while True:
                with turn:
                    index, item = next(left, (-1, None))
                if index < 0:
                    return
                try:
                    found[index] = act(item)
                except BaseException as error:  # handed to the caller, which raises it
                    raised[index] = error

        helpers = [threading.Thread(target=work) for _ in range(min(self._workers, len(todo)) - 1)]
        for helper in helpers:
            helper.start()
        work()
        for helper in helpers:
            helper.join()
        if raised:
            raise raised[min(raised)]
        return [found[index] for index, _ in todo]


def pool(workers: int) -> Pool:
    """Threads for that many pieces of work at most."""
    return Pool(workers)
