"""Operators at their consoles who are cut short: commands that are killed, and what stands on the head without them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from acting_console import LIMIT, Console, Done
from acting_docker import ActingDocker
from acting_fleet import ActingFleet
from acting_parts import STATE
from bed.client import BedHost
from bed.system import wait_for

SLOW, QUICK = "scrape = 5", "scrape = 0.5"
"""The bed's feeds scrape seldom; a command line that waits for a rate does not want to."""
STARTED = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
"""systemd's own mark of a unit that was started."""
LOOK_S = 0.002
"""Seconds between two looks for the moment at which to kill."""


class Operator(Console):
    """An operator of a lane, with a machine of their own."""

    def __init__(self, lane: ActingDocker | ActingFleet, folder: Path, name: str = "ana", more: str = "") -> None:
        """`more`: keys of the lane beyond the usual ones."""
        folder.mkdir(exist_ok=True)
        file = lane.fleet_file(folder, more)
        text = file.read_text().replace(SLOW, QUICK).replace('operator = "ana"', f'operator = "{name}"')
        assert QUICK in text and f'"{name}"' in text
        file.write_text(text)
        super().__init__(file, folder / "state", lane.name, name)
        self.children: list[subprocess.Popen[str]] = []

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A command that is left running; `end_all` sees to what is left of it."""
        argv = [sys.executable, "-m", "console", *words, "-f", str(self.file)]
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            argv, env=self.environment(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )
        self.children.append(child)
        return child

    def begin_do(self, verb: str, *more: str) -> subprocess.Popen[str]:
        """`laneswap do`, left running."""
        return self.begin("do", self.lane, verb, "--yes-lane", self.lane, *more)

    def killed_when(self, ready: Callable[[], bool], verb: str, *more: str) -> bool:
        """`laneswap do`, killed with -9 as soon as `ready`; False where it ended before that."""
        child = self.begin_do(verb, *more)
        with contextlib.suppress(Exception):
            wait_for(lambda: ready() or child.poll() is not None, "the moment to kill", limit=LIMIT, pause=LOOK_S)
        in_time = child.poll() is None
        child.kill()
        child.communicate(timeout=LIMIT)
        return in_time

    @staticmethod
    def finish(child: subprocess.Popen[str], limit: float = LIMIT) -> Done:
        """Wait for a command that was left running."""
        out, err = child.communicate(timeout=limit)
        return Done(child.returncode, out, err)

    def end_all(self) -> None:
        """No command is left."""
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGCONT)
                child.kill()
                child.communicate(timeout=LIMIT)

    # --- what it says

    def document(self, *words: str) -> dict[str, Any]:
        """The JSON of a command."""
        done = self.run(*words, "--json")
        assert done.out.startswith("{"), done.text
        found: dict[str, Any] = json.loads(done.out)
        return found

    def alarms(self) -> list[str]:
        """The texts of all alarms."""
        return [str(one["text"]) for one in self.document("status")["alarms"]]

    def lamp(self, title: str) -> str:
        """One of the lane's four lamps in its words."""
        found = self.status()["lamps"][title]
        return " ".join(str(found[key]) for key in ("word", "rest", "note") if found.get(key))

    def intents(self) -> list[str]:
        """Operations that were meant, oldest first."""
        return [str(one["op"]) for one in self.records() if one["kind"] in ("intent", "break-glass")]

    def outcomes(self) -> list[tuple[str, str]]:
        """(operation, result) of every outcome, oldest first."""
        return [(str(one["op"]), str(one["result"])) for one in self.records() if one["kind"] == "outcome"]


@contextlib.contextmanager
def operator(lane: ActingDocker | ActingFleet, folder: Path, name: str = "ana") -> Iterator[Operator]:
    """One, none of whose commands outlives the test."""
    found = Operator(lane, folder, name)
    try:
        yield found
    finally:
        found.end_all()


class Head:
    """What the console keeps on a head, read past every connection and without a process: fast enough to kill by."""

    def __init__(self, host: BedHost, lane: str) -> None:
        self.host, self.lane = host, lane

    @property
    def folder(self) -> Path:
        """The lane's state folder as this machine sees it; another one after a restart of the host."""
        return Path(f"/proc/{self.host.init}/root{STATE}/bed.{self.lane}")

    def text(self, name: str) -> str:
        """A file there; '' where it is not."""
        try:
            return (self.folder / name).read_text(errors="replace")
        except OSError:
            return ""

    def lease(self) -> dict[str, str]:
        """Who holds the lane; {} for nobody."""
        return dict(line.split("=", 1) for line in self.text("lease").splitlines() if "=" in line)

    def operations(self) -> list[str]:
        """Names of all operations that left something here, oldest first."""
        try:
            return sorted(path.name for path in (self.folder / "ops").iterdir() if "-reach-" not in path.name)
        except OSError:
            return []

    def current(self) -> str:
        """The newest operation; '' for none."""
        return self.text("current").strip()

    def journal(self, op: str = "") -> list[dict[str, Any]]:
        """Lines of an operation's journal; of the newest one by default."""
        name = op or self.current()
        rows = self.text(f"ops/{name}/journal.jsonl").split("\n")[:-1] if name else []
        return [json.loads(row) for row in rows]

    def ended(self, op: str = "") -> str:
        """How an operation ended; '' while it has not."""
        lines = self.journal(op)
        return str(lines[-1]["state"]) if lines and lines[-1]["kind"] == "end" else ""

    def until_ended(self, op: str = "", limit: float = LIMIT) -> str:
        """Wait until the journal says how it ended."""
        wait_for(lambda: bool(self.ended(op)), "the operation has ended", limit=limit)
        return self.ended(op)

    def told(self, step: str, state: str) -> bool:
        """Whether the newest operation's journal has such a line; `step` is the begin of a step's id."""
        lines = [one for one in self.journal() if one["kind"] == "step" and one["state"] == state]
        return any(str(one["id"]).startswith(step) for one in lines)

    def until_step(self, step: str, state: str, child: subprocess.Popen[str]) -> None:
        """Wait for such a line while a command runs, which must not have ended before."""

        def so() -> bool:
            return self.told(step, state) or child.poll() is not None

        wait_for(so, f"{step} {state}", limit=LIMIT, pause=LOOK_S)
        assert self.told(step, state), (self.journal(), *child.communicate(timeout=LIMIT))

    def begun_twice(self) -> list[str]:
        """`OPERATION STEP` of steps that were begun more than once: by their claims and units on this host, and by one
        carrier's own words. That whoever carries a step on tells of it again is none: it looks it up."""
        started = self._claims() | self._units()
        return sorted(step for step, count in (started | self._told_by_one()).items() if count > 1)

    def _claims(self) -> Counter[str]:
        """How often a step's command was claimed here: in its folder, and in those that a restart has put aside."""
        folders = {path.parent for name in ("begun", "code") for path in self.folder.glob(f"ops/*/*/{name}")}
        return Counter(f"{one.parts[-2]} {one.name.partition('@')[0]}" for one in folders)

    def _units(self) -> Counter[str]:
        """How often each step's unit was started, as the service managers told the host's journal."""
        argv = ("journalctl", "--no-pager", "-q", "-o", "json", "--output-fields=UNIT,USER_UNIT", STARTED)
        rows = [json.loads(row) for row in self.host.root(*argv).splitlines()]
        names = [str(row.get("UNIT") or row.get("USER_UNIT") or "") for row in rows]
        prefix = {f"laneswap-{op}-": op for op in self.operations()}
        found: Counter[str] = Counter()
        for name in names:
            ours = next((begin for begin in prefix if name.startswith(begin)), "")
            if ours:
                found[f"{prefix[ours]} {name.removeprefix(ours).removesuffix('.service')}"] += 1
        return found

    def _told_by_one(self) -> Counter[str]:
        """How often one carrier says that a step's command began, the most."""
        most: Counter[str] = Counter()
        for op in self.operations():
            lines: Counter[str] = Counter()
            for one in self.journal(op):
                if one["kind"] in ("begin", "takeover"):
                    lines.clear()
                elif one["kind"] == "step" and one["state"] == "running":
                    lines[f"{op} {one['id']}"] += 1
                    most |= lines
        return most


class DockerEvents:
    """What Docker did to containers since it was made, by the host's clock."""

    def __init__(self, host: BedHost) -> None:
        self.host, self.since = host, host.root("date", "+%s.%N").strip()

    def counts(self) -> Counter[str]:
        """`start ID`, `die ID`, `rename ID`, by the short id: how often."""
        until = self.host.root("date", "+%s.%N").strip()
        words = ("--since", self.since, "--until", until, "--filter", "type=container")
        text = self.host.docker("events", *words, "--format", "{{.Action}} {{.Actor.ID}}")
        rows = [row.split() for row in text.splitlines()]
        kept = ("start", "die", "rename")
        return Counter(f"{row[0]} {row[1][:12]}" for row in rows if len(row) == 2 and row[0] in kept)
