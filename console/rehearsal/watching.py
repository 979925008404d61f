"""Played watchdogs: what they leave on their host in each of their states.

Lines are those of aidendle94's `launch/watchdog.sh` (pid, lock, log) and the flag files those of tsw2k's
`ops/fleet-watchdog.sh` (systemd). Hosts of a rehearsal keep UTC.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from console.rehearsal.hosts import PlayedHost
from console.rehearsal.processes import cgroup_of
from console.rehearsal.stage import WatchdogModel

LOG_STATES = (
    "armed",
    "starting",
    "busy",
    "failing",
    "recovery",
    "gave-up",
    "standing-down",
    "stopped",
    "dead",
    "two",
    "reused",
)
UNIT_STATES = ("armed", "paused", "gave-up", "off", "failed", "in-flight", "unknown")
ATTEMPTS = 3
SECOND_PID = 1111
BOOTING_EVERY = 300.0
UNIT_LOG = "/var/tmp/dsv41-logs/watchdog.log"  # noqa: S108 - as that watchdog has it
REFUSED = "gave no answer (curl 7: Failed to connect); head container exited (exit code 255, oom killed false)"
NOT_READY = (
    "answered HTTP 503 (SGLang: 503 = starting, shutting down, or scheduler silent for 20 s); head container running "
    "(exit code 0, oom killed false)"
)


class LogWatchdog:
    """The kind with a pid, a lock and a log."""

    def __init__(self, model: WatchdogModel, host: PlayedHost) -> None:
        self.model, self.host = model, host
        self._state = ""
        self._since = 0.0
        self._told = 0.0
        self._pid = model.pid

    def install(self) -> None:
        """A log that tells of its start, and of the run before where that had to act; and what its state leaves."""
        now = self.host.wall
        began = now - self.model.age_s
        if self.model.acted_s is not None and self.model.acted_s > self.model.age_s:
            self._former_run(now - self.model.acted_s, began - 1200)
        self._begin(began)
        if self.model.state != "starting":
            self._armed(began + 1)
        if self.model.acted_s is not None and self.model.acted_s <= self.model.age_s:
            self._acted(now - self.model.acted_s)
        self.become(self.model.state, self.model.attempt)

    def _former_run(self, acted: float, ended: float) -> None:
        """A watchdog before this one, which relaunched the fleet and was stopped for a later relaunch."""
        pid, self._pid = self._pid, self._pid - 4096
        self._begin(acted - 86_400)
        self._armed(acted - 86_399)
        self._acted(acted)
        self._leave(self._stopped(), at=ended)
        self._pid = pid

    def become(self, state: str, attempt: int = 1) -> None:
        """Another state, from now on. Raises ValueError for one that this kind does not have."""
        if state not in LOG_STATES:
            raise ValueError(f"state: a watchdog of kind 'log' is never {state!r}")
        before, self._state, self._since = self._state, state, self.host.wall
        self._told = self._since
        self.host.processes.end(self._pid + SECOND_PID)
        says: dict[str, Callable[[], None]] = {
            "armed": lambda: self._arm_again(before),
            "starting": lambda: self._start_anew(before),
            "busy": lambda: self._say(
                "busy 0s of 600s grace: 3-token chat probe unanswered within 45s while /health is 200 (a long prefill "
                "or a full queue; not a failure yet)"
            ),
            "failing": lambda: self._check_failed(attempt),
            "recovery": lambda: self._recover(attempt),
            "gave-up": self._give_up,
            "standing-down": lambda: self._leave(
                f"lock {self._home(self.model.lock)} no longer carries pid {self._pid}: standing down", lock=True
            ),
            "stopped": lambda: self._leave(self._stopped()),
            "dead": lambda: self.host.processes.end(self._pid),
            "two": lambda: self._run(self._pid + SECOND_PID, self.host.wall),
            "reused": self._reuse,
        }
        says[state]()

    def step(self) -> None:
        """What it writes while it waits."""
        now = self.host.wall
        if self._state == "recovery" and now - self._told >= BOOTING_EVERY:
            self._told = now
            self._say(f"booting: {now - self._since:.0f}s, head container running, /health {self._url} {NOT_READY}")

    def host_restarted(self) -> None:
        """Its process is gone, its files are not."""
        self._state = "dead"

    @property
    def pid(self) -> int:
        """Its process; 0 while none runs."""
        return 0 if self._state in ("stopped", "standing-down", "dead", "reused") else self._pid

    @property
    def watches(self) -> bool:
        """Whether it would relaunch an engine that fails."""
        return self._state in ("armed", "busy", "failing")

    @property
    def newest(self) -> str:
        """The last line of its log; '' for none."""
        try:
            with open(self.host.files.real(self.model.log), encoding="utf-8") as file:
                return ["", *file.read().splitlines()][-1]
        except FileNotFoundError:
            return ""

    def asked_to_end(self, pid: int) -> bool:
        """TERM for one of its processes; False for a number that is none of them."""
        if pid and pid == self.pid:
            self.become("stopped")
        elif self._state == "two" and pid == self._pid + SECOND_PID:
            self.host.processes.end(pid)
            self._state = "armed"
        else:
            return False
        return True

    def unlock(self) -> None:
        """Its lock is removed."""
        self.host.files.remove(self.model.lock)
        if self._state in ("dead", "reused"):
            self._state = "stopped"

    def begin(self) -> None:
        """It is started, as the launcher or an operator starts it; it arms itself at its first good check."""
        if not self.pid:
            self.become("starting")

    @property
    def _url(self) -> str:
        return f"on http://127.0.0.1:{self.model.port}"

    def _home(self, path: str) -> str:
        return "/home/ops" + path[1:] if path.startswith("~/") else path

    def _begin(self, at: float) -> None:
        model = self.model
        self._run(self._pid, at)
        self.host.files.text(model.lock, f"{self._pid}\n", at)
        self.host.files.append(
            model.log,
            f"watchdog started (pid {self._pid}, {_stamp(at)}, port {model.port}, check every {model.every:.0f}s, "
            f"relaunch after {ATTEMPTS} failures, probe timeout 45s, busy grace 600s, ready timeout 3600s, log dir "
            f"{self._home(model.logs)}, fleet {self._home(model.site)})\n",
        )
        self._say("chat probe uses model id 'deepseek-v4.1-flash' (first id on /v1/models; set MODEL to override)", at)

    def _armed(self, at: float) -> None:
        self._say(
            "armed: /health 200 and the chat probe answered (model 'deepseek-v4.1-flash'); checking every "
            f"{self.model.every:.0f}s, relaunch after {ATTEMPTS} consecutive failures",
            at,
        )

    def _acted(self, at: float) -> None:
        """A recovery that went well."""
        every = self.model.every
        for number in range(1, ATTEMPTS + 1):
            words = f"/health {self._url} {REFUSED}" if number == ATTEMPTS else f"/health {NOT_READY}"
            self._say(f"check failed {number}/{ATTEMPTS}: {words}", at - (ATTEMPTS - number) * every)
        self._recover(1, at)
        self._say("fleet healthy 580s after relaunch attempt 1; arming again on the next successful probe", at + 609)
        self._armed(at + 609 + every)

    def _arm_again(self, before: str) -> None:
        if before == "busy":
            self._say("busy cleared after 63s")
        elif before == "recovery":
            took = self.host.wall - self._since
            self._say(f"fleet healthy {took:.0f}s after relaunch attempt 1; arming again on the next successful probe")
        elif before in ("dead", "reused", "stopped", "standing-down"):
            self._start_anew(before)
        if before not in ("", "two"):
            self._armed(self.host.wall)

    def _start_anew(self, before: str) -> None:
        if before:
            self.host.processes.end(self._pid)
            self._pid += 17
            self._begin(self.host.wall)

    def _check_failed(self, attempt: int) -> None:
        words = f"/health {self._url} {REFUSED}" if attempt == ATTEMPTS else f"/health {NOT_READY}"
        self._say(f"check failed {attempt}/{ATTEMPTS}: {words}")

    def _recover(self, attempt: int, at: float | None = None) -> None:
        now = self.host.wall if at is None else at
        folder = f"{self._home(self.model.logs)}/postmortem/{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}"
        self._say(
            f"RECOVERY attempt {attempt}/{ATTEMPTS}: capturing evidence into {folder}, then relaunching the fleet", now
        )
        names = "rank0-dmesg.txt rank0-docker.log rank0-state.txt rank1.txt rank2.txt rank3.txt summary.txt"
        self._say(f"evidence captured in {folder}: {names} ", now + 1)
        tears = "it tears every rank down before starting any"
        self._say(f"running launch/production.sh (log: {folder}/relaunch.log); {tears}", now + 1)

    def _give_up(self) -> None:
        self._say(
            f"GIVING UP after {ATTEMPTS} relaunch attempts: the fleet needs a human. Read the newest directories "
            f"under {self._home(self.model.logs)}/postmortem, fix the cause, then run launch/relaunch.sh. This "
            "watchdog keeps probing and arms itself again once the fleet is healthy"
        )

    def _stopped(self) -> str:
        again = "no automatic recovery until launch/relaunch.sh arms a new one"
        return f"watchdog stopped (pid {self._pid}, signal): {again}"

    def _leave(self, words: str, *, lock: bool = False, at: float | None = None) -> None:
        self._say(words, at)
        self.host.processes.end(self._pid)
        if lock:
            self.host.files.text(self.model.lock, f"{self._pid + SECOND_PID}\n")
        else:
            self.host.files.remove(self.model.lock)

    def _reuse(self) -> None:
        """The number belongs to a copy of weights that somebody runs."""
        command = ["rsync", "-a", "--info=progress2", "/mnt/checkpoints/", "/mnt/backup/"]
        self.host.processes.end(self._pid)
        self.host.processes.start(self._pid, command, self.host.wall)

    def _run(self, pid: int, at: float) -> None:
        self.host.processes.start(pid, self.model.command.split(" "), at)

    def _say(self, words: str, at: float | None = None) -> None:
        self.host.files.append(self.model.log, f"{_stamp(self.host.wall if at is None else at)} {words}\n")


class UnitWatchdog:
    """The kind that systemd runs and flag files rule."""

    def __init__(self, model: WatchdogModel, host: PlayedHost) -> None:
        self.model, self.host = model, host

    def install(self) -> None:
        """What its state leaves."""
        began = self.host.wall - self.model.age_s
        self._say(began - 3600, f"watchdog started: {self.model.unit} every {self.model.every:.0f}s")
        if self.model.acted_s is not None:
            self._acted(self.host.wall - self.model.acted_s)
        self.become(self.model.state, at=began)

    def _acted(self, at: float) -> None:
        for number in range(1, ATTEMPTS + 1):
            self._say(at - (ATTEMPTS - number) * self.model.every, f"probe failed (canary) {number}/{ATTEMPTS}")
        self._say(at, "=== RECOVERY: canary; cluster.sh down, cluster.sh up")
        self._say(at + 540, "=== RECOVERY OK after 9 min")

    def _say(self, at: float, words: str) -> None:
        self.host.files.append(UNIT_LOG, f"{_stamp(at).replace(' ', 'T')}Z {words}\n")

    def become(self, state: str, attempt: int = 1, at: float | None = None) -> None:
        """Another state, from now on. Raises ValueError for one that this kind does not have."""
        if state not in UNIT_STATES:
            raise ValueError(f"state: a watchdog of kind 'systemd' is never {state!r}")
        model, now = self.model, self.host.wall if at is None else at
        self.host.units.set_bus(model.manager, state != "unknown")
        for flag in (model.pause_flag, model.gaveup_flag):
            self.host.files.remove(flag)
        if state == "paused":
            self.host.files.text(model.pause_flag, f"paused by ben {_stamp(now)}Z: cluster.sh down, night run\n", now)
            self._say(now, "paused (by ben: cluster.sh down, night run)")
        elif state == "gave-up":
            self.host.files.text(model.gaveup_flag, f"gave up {_stamp(now)}Z after 3 failed relaunches\n", now)
            self._say(now, "=== GIVING UP after 3 failed relaunches")
        active, sub, pid = {
            "off": ("inactive", "dead", 0),
            "failed": ("failed", "failed", 0),
            "in-flight": ("deactivating", "stop-sigterm", model.pid),
        }.get(state, ("active", "running", model.pid))
        if pid:
            self.host.processes.start(pid, model.command.split(" "), now)
        else:
            self.host.processes.end(model.pid)
        properties = {
            "Description": "watchdog of the serving fleet",
            "ActiveState": active,
            "SubState": sub,
            "Result": "exit-code" if state == "failed" else "success",
            "MainPID": str(pid),
            "ExecMainStatus": "1" if state == "failed" else "0",
            "MemoryCurrent": "[not set]",
            "MemoryPeak": "[not set]",
            "MemoryMax": "infinity",
            "ControlGroup": cgroup_of(model.manager, model.unit) if pid else "",
        }
        times = {"StateChangeTimestamp": now, "ActiveEnterTimestamp": now, "ExecMainStartTimestamp": now}
        self.host.units.put(model.manager, model.unit, properties, times)

    def step(self) -> None:
        """It is silent."""

    def host_restarted(self) -> None:
        """systemd starts it again."""
        self.become("armed")

    @property
    def watches(self) -> bool:
        """Whether it would relaunch an engine that fails."""
        flags = (self.model.pause_flag, self.model.gaveup_flag)
        return not any(self.host.files.has(flag) for flag in flags)

    def paused(self, words: str) -> None:
        """Its pause flag was written by somebody else than itself."""
        self._say(self.host.wall, f"paused ({words})")

    def unpaused(self) -> None:
        """Its flags were removed."""
        self._say(self.host.wall, "healthy again after a pause")


PlayedWatchdog = LogWatchdog | UnitWatchdog


def played_watchdog(model: WatchdogModel, host: PlayedHost) -> PlayedWatchdog:
    """The watchdog of a model."""
    return LogWatchdog(model, host) if model.kind == "log" else UnitWatchdog(model, host)


def _stamp(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
