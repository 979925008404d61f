"""What the four lights of a lane add up to: a pure table, first matching row wins."""

from __future__ import annotations

from console.readings.lights import (
    HttpVerdict,
    LaneState,
    LaneVerdict,
    Lights,
    Progress,
)
from console.readings.rates import QUIET_S
from console.readings.scrape import ScrapeVerdict
from console.readings.series import EngineKind

FEW = 3
"""Misses in a row before a busy engine's health endpoint is believed: it is late under load."""
SLOW_503_S = 5.0
"""A 503 that took longer is a health generation that timed out (SGLang: 20 s); a quick one is the server's own word."""
FIRST_STEP_GRACE_S = 600.0
"""A first batch may compile and tune for minutes before it steps."""
BOOT_LIMIT_S = 3600.0
"""A port that is still closed after this long is no boot any more."""
DUMMY_HEALTH_S = 0.05
"""SGLang's true health answer takes a second; a rank above 0 answers at once."""


def judge(
    lights: Lights,
    *,
    stall_after: float,
    engine: EngineKind = EngineKind.UNKNOWN,
    wall: float | None = None,
    booting: str = "",
    boot_limit: float = BOOT_LIMIT_S,
) -> LaneVerdict:
    """The lane's state and one plain sentence why.

    `engine` is the declared or observed kind; `wall` is Unix time now by the head's clock (to tell a boot from a port
    that has been closed for days); `booting` is a boot phase read elsewhere (a log): it makes a silent engine one that
    boots; `boot_limit` is in seconds.
    """
    return _Judge(lights, stall_after, engine, wall, booting, boot_limit).verdict()


def _probes(count: int) -> str:
    return "1 health probe" if count == 1 else f"{count} health probes"


class _Judge:
    def __init__(
        self,
        lights: Lights,
        stall_after: float,
        engine: EngineKind,
        wall: float | None,
        booting: str,
        boot_limit: float,
    ) -> None:
        self.process, self.http = lights.process, lights.http
        self.scrape, self.progress = lights.scrape, lights.progress
        self.stall_after = stall_after
        self.engine = engine
        self.wall = wall
        self.booting = booting
        self.boot_limit = boot_limit

    def verdict(self) -> LaneVerdict:
        if self.http.verdict is HttpVerdict.UNREACHABLE:
            why = self.http.detail or "the link to the head is down"
            return self._say(LaneState.UNKNOWN, f"{why}, the engine is not seen{self._but()}")
        for row in (self._dead, self._paused):
            found = row()
            if found is not None:
                return found
        table = {
            HttpVerdict.OK: self._ok,
            HttpVerdict.REFUSED: self._refused,
            HttpVerdict.RESET: self._reset,
            HttpVerdict.UNAVAILABLE: self._unavailable,
            HttpVerdict.SERVER_ERROR: self._server_error,
            HttpVerdict.TIMEOUT: self._timeout,
            HttpVerdict.OTHER_STATUS: self._other_status,
            HttpVerdict.NOT_HTTP: self._not_http,
        }
        return table.get(self.http.verdict, self._not_asked)()

    # Words

    def _say(self, state: LaneState, why: str) -> LaneVerdict:
        return LaneVerdict(state, why)

    def _but(self) -> str:
        return f"; {', '.join(self.process.dead)}" if self.process.dead else ""

    def _work(self) -> str:
        parts = [
            f"{number} {word}"
            for number, word in ((self.progress.running, "running"), (self.progress.waiting, "waiting"))
            if number
        ]
        return ", ".join(parts) or "requests"

    def _unread(self) -> str:
        hosts = len(self.process.unknown)
        return f"; containers unread on {hosts} host{'s' if hosts > 1 else ''}" if hosts else ""

    @property
    def _moves(self) -> bool:
        return self.progress.progress is Progress.MOVING

    @property
    def _flows(self) -> bool:
        return self._moves and (self.progress.frozen_for or 0.0) < QUIET_S

    @property
    def _frozen(self) -> bool:
        return self.progress.progress is Progress.FROZEN

    # Rows before HTTP

    def _dead(self) -> LaneVerdict | None:
        """A dead rank: never serving, whatever the head says. An exit code of 0 is a crash like any other."""
        dead = self.process.dead
        if not dead:
            return None
        words = ", ".join(dead)
        if dead == self.process.absent and self.http.verdict is HttpVerdict.OK and self.process.running == 0:
            return self._say(LaneState.DEGRADED, f"{words}, though the port answers 200")
        if self.process.running == 0 and not self.process.unknown and not self.process.paused:
            old = ": something else answers on its port" if self.http.verdict is HttpVerdict.OK else ""
            return self._say(LaneState.DOWN, f"no rank runs: {words}{old}")
        if self.http.verdict is HttpVerdict.OK:
            return self._say(LaneState.DEGRADED, f"{words}: not serving, though the head answers 200")
        return self._say(LaneState.DOWN, f"{words}; the head's health: {self._health_word()}")

    def _paused(self) -> LaneVerdict | None:
        if not self.process.paused:
            return None
        return self._say(LaneState.PAUSED, f"container paused on {', '.join(self.process.paused)}")

    def _health_word(self) -> str:
        return self.http.detail or str(self.http.verdict)

    def _not_asked(self) -> LaneVerdict:
        if self.http.old_process:
            why = "the container has just started, and what answers is the engine before it"
            return self._say(LaneState.BOOTING, f"{why} ({self.booting})" if self.booting else why)
        if self.booting:
            return self._say(LaneState.BOOTING, f"loading: {self.booting}")
        if self.http.just_started and not self.http.ever_ok:
            return self._say(LaneState.BOOTING, "the container has just started and was not asked yet")
        return self._say(LaneState.UNKNOWN, f"health unknown: {self.http.detail or 'not asked yet'}")

    # Rows by what HTTP says

    def _boots(self, what: str) -> LaneVerdict | None:
        """BOOTING if a silent engine may still be loading: its container runs and never answered since its start."""
        if self.booting:
            return self._say(LaneState.BOOTING, f"{what}: {self.booting}")
        if self.http.ever_ok or self.process.running == 0:
            return None
        started = self.process.started_at
        if started is not None and self.wall is not None and self.wall - started > self.boot_limit:
            return None
        return self._say(LaneState.BOOTING, f"{what}, and the container has not answered since its start: loading")

    def _closed(self, what: str) -> LaneVerdict:
        boots = self._boots(what)
        if boots is not None:
            return boots
        if self.process.unasked and not self.process.running:
            return self._say(LaneState.UNKNOWN, f"{what}; whether it is down or boots, its container will tell")
        if self.process.running and self.http.ever_ok:
            return self._say(LaneState.DOWN, f"{what} though the container runs and has served: the engine is gone")
        if self.process.running:
            return self._say(LaneState.DOWN, f"{what}, and the container runs for longer than any boot takes")
        unread = f"; containers unread ({self.process.unknown[0]})" if self.process.unknown else ""
        return self._say(LaneState.DOWN, f"{what}{unread}")

    def _refused(self) -> LaneVerdict:
        return self._closed("connection refused")

    def _reset(self) -> LaneVerdict:
        if self.http.misses < 2 and self.http.ever_ok:
            return self._say(LaneState.DEGRADED, "the server reset one health probe: it may be going down")
        return self._closed("connections are reset")

    def _unavailable(self) -> LaneVerdict:
        slow = (self.http.took or 0.0) >= SLOW_503_S
        if self.http.loading:
            return self._say(LaneState.BOOTING, "503: it loads its model")
        if self._warms_up(slow):
            return self._say(LaneState.BOOTING, self._of_start("503 before its first 200"))
        if self._flows:
            return self._while_flowing(slow)
        if self._frozen and self.engine is not EngineKind.VLLM and (slow or self.http.misses < FEW):
            return self._stalled("503")
        if not self.http.ever_ok and self.engine is not EngineKind.VLLM:
            boots = self._boots("503")
            if boots is not None:
                return boots
            if self._starts_by_its_own_word(slow):
                return self._say(LaneState.BOOTING, "503 at once, and no 200 was seen yet: it starts")
        if self.engine is EngineKind.VLLM:
            return self._say(LaneState.DOWN, "503: vLLM's engine process is dead or going down")
        if self.http.misses < FEW and self.http.ever_ok:
            return self._say(LaneState.DEGRADED, f"503 from health, miss {self.http.misses} of {FEW}")
        if slow:
            return self._say(LaneState.STALLED, f"503 after {self.http.took or 0:.0f} s: not even a test token comes")
        return self._say(LaneState.DOWN, f"503 from health {self.http.misses} times and no token moves")

    def _warms_up(self, slow: bool) -> bool:
        """SGLang says 503 at once while it starts, also while the tokens of its warm-up flow."""
        started = self.process.started_at
        if self.http.ever_ok or slow or self.engine is EngineKind.VLLM or started is None or self.wall is None:
            return False
        return self.process.running > 0 and (self._flows or self._frozen) and self.wall - started <= self.boot_limit

    def _of_start(self, what: str) -> str:
        return f"{what}: {self.booting}" if self.booting else f"{what}: it warms up"

    def _starts_by_its_own_word(self, slow: bool) -> bool:
        """Where no container tells its age: SGLang's and llama.cpp's quick 503 is that of a server that starts."""
        starts = self.engine in (EngineKind.SGLANG, EngineKind.LLAMACPP) and not slow
        return starts and self.process.running == 0 and self.progress.progress is Progress.UNKNOWN

    def _while_flowing(self, slow: bool) -> LaneVerdict:
        """503 while the engine steps: behind a long prefill, on its way out, or a health check that is wrong."""
        if self.progress.prefill_only:
            return self._say(LaneState.BUSY, f"prefill moves{self._for()}; health is late behind it (503)")
        if not slow and self.engine is not EngineKind.VLLM and self.http.ever_ok:
            return self._say(LaneState.DRAINING, f"503 while {self._work()} go on: it drains before it stops")
        return self._say(LaneState.DEGRADED, "503 from health although tokens flow")

    def _for(self) -> str:
        return f" for {self.progress.moving_for:.0f} s" if self.progress.moving_for else ""

    def _server_error(self) -> LaneVerdict:
        word = self._health_word()
        if self._flows:
            return self._say(LaneState.DEGRADED, f"{word} from health although tokens flow")
        if self._frozen:
            return self._stalled(word)
        boots = self._boots(f"{word} from health")
        if boots is not None:
            return boots
        if self.http.misses < 2:
            return self._say(LaneState.DEGRADED, f"{word} from health once")
        return self._say(LaneState.DOWN, f"{word} from health {self.http.misses} times and no token moves")

    def _timeout(self) -> LaneVerdict:
        if self._moves and (self.progress.prefill_only or self.http.misses < FEW):
            return self._moving(f"; {_probes(self.http.misses)} late")
        if self._moves:
            return self._say(LaneState.DEGRADED, f"{_probes(self.http.misses)} timed out although tokens flow")
        if self._frozen:
            return self._stalled("late")
        boots = self._boots("no answer in time")
        if boots is not None:
            return boots
        if self.http.misses < FEW:
            return self._say(LaneState.DEGRADED, f"{_probes(self.http.misses)} timed out")
        if not self.http.connected:
            return self._say(LaneState.DOWN, "no connection to the port in time")
        if self.scrape.verdict is ScrapeVerdict.OK:
            return self._say(LaneState.STALLED, f"{self.http.misses} health probes without an answer, metrics answer")
        return self._say(LaneState.STALLED, "connections are taken and nothing is answered")

    def _other_status(self) -> LaneVerdict:
        word = self._health_word()
        if self.http.html and self.scrape.verdict is not ScrapeVerdict.OK:
            return self._say(LaneState.DOWN, f"{word}: another program answers in place of the engine")
        if self._frozen:
            return self._stalled(word)
        if self.scrape.verdict is ScrapeVerdict.OK:
            return self._say(LaneState.DEGRADED, f"{word} from health, metrics say {self.progress.progress}")
        return self._say(LaneState.UNKNOWN, f"{word} from health and no metrics ({self.scrape.verdict})")

    def _not_http(self) -> LaneVerdict:
        return self._say(LaneState.DOWN, "what answers on the port does not speak HTTP")

    def _ok(self) -> LaneVerdict:
        verdict = self.scrape.verdict
        detail = self.scrape.detail or str(verdict)
        if verdict is ScrapeVerdict.OK:
            return self._by_progress()
        if verdict is ScrapeVerdict.OTHER_ENGINE:
            return self._say(LaneState.DEGRADED, f"another engine answers: {detail}")
        if verdict in (ScrapeVerdict.REFUSED, ScrapeVerdict.TIMEOUT, ScrapeVerdict.RESET):
            return self._say(LaneState.DEGRADED, f"health was 200 but metrics fail: {detail}")
        if verdict is ScrapeVerdict.UNREACHABLE:
            told = f"cannot be asked: {self.scrape.detail}" if self.scrape.detail else "are not read yet"
            return self._say(LaneState.UNKNOWN, f"health is 200, metrics {told}")
        if (
            verdict is ScrapeVerdict.OFF
            and self.engine is EngineKind.SGLANG
            and (self.http.took or 1.0) < DUMMY_HEALTH_S
        ):
            return self._say(LaneState.BLIND, f"{detail}; so quick a 200 may be a rank above 0, which always says 200")
        return self._say(LaneState.BLIND, f"health is 200, work unknown: {detail}")

    def _by_progress(self) -> LaneVerdict:
        progress = self.progress
        if not progress.live_gauges:
            return self._say(LaneState.BLIND, "200, but only start-up constants: a rank above 0 answers 200 always")
        if self._frozen:
            return self._stalled("200")
        if self._moves:
            return self._moving("")
        if progress.progress is Progress.NO_WORK:
            return self._say(LaneState.IDLE, f"healthy, no requests{self._unread()}")
        if progress.progress is Progress.NO_STEP_YET:
            return self._first_step()
        if progress.frozen_for is None:
            return self._say(LaneState.UNKNOWN, "healthy; no current reading of its work")
        if not progress.live_steps:
            return self._say(LaneState.BLIND, f"200 with {self._work()}; its counters move only when a request ends")
        return self._say(
            LaneState.UNKNOWN, f"200 with {self._work()}; no step seen in {progress.frozen_for:.0f} s of watching"
        )

    def _moving(self, late: str) -> LaneVerdict:
        progress = self.progress
        if progress.frozen_ranks:
            return self._say(LaneState.DEGRADED, f"stands still: {', '.join(progress.frozen_ranks)}; the others move")
        again = "; its counters started again: the engine was restarted" if progress.restarted else ""
        if progress.prefill_only:
            return self._say(
                LaneState.BUSY, f"prefill moves{self._for()}, no token comes out yet{late}{again}{self._unread()}"
            )
        stood = progress.frozen_for or 0.0
        last = f"the last step was {stood:.0f} s ago" if stood >= QUIET_S else "tokens flow"
        return self._say(LaneState.SERVING, f"{last}{late}{again}{self._unread()}")

    def _first_step(self) -> LaneVerdict:
        waited = self.progress.frozen_for
        if waited is not None and waited >= max(FIRST_STEP_GRACE_S, self.stall_after):
            return self._say(LaneState.STALLED, f"no first step in {waited:.0f} s with {self._work()}")
        if waited is not None:
            return self._say(LaneState.READY, f"200; first batch ({self._work()}), no step yet{self._unread()}")
        return self._say(LaneState.READY, f"200, no step since it started{self._unread()}")

    def _stalled(self, health: str) -> LaneVerdict:
        stood = self.progress.frozen_for or self.stall_after
        return self._say(LaneState.STALLED, f"no step for {stood:.0f} s with {self._work()}, health says {health}")
