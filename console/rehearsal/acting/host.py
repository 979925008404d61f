"""A rehearsal host that can be acted on: which command this is, and what it does here. Anything else is refused."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence

from console.execution.runner_base import Done
from console.rehearsal.acting import (
    containers,
    guards,
    launch,
    launchers,
    launching,
    node,
    others,
    sites,
    statefiles,
    web,
)
from console.rehearsal.acting.headrunner import HeadRunners
from console.rehearsal.acting.known import Known, known
from console.rehearsal.acting.playing import Ended, Job, Playing, Twin
from console.rehearsal.acting.units import Units, parted, started
from console.rehearsal.commands import REFUSAL
from console.rehearsal.watching import LogWatchdog, PlayedWatchdog

REFUSED = 126
REAL = ("statedir", "lease", "put", "append", "drop", "read", "able", "box", "prune")
"""Scripts of the state folder, and of a file of the host's, which run for real in the host's own."""
TRY_S = 0.6
"""Seconds for one try of the head's ssh."""
DEEPEST = 6
"""Of commands within commands: a fence, a claim, and the script itself."""
_RUNNER = re.compile(r"(/[A-Za-z0-9._/-]+)/runner\.py")


class ActingHosts:
    """All hosts of a rehearsal, as those who act reach them."""

    def __init__(self, playing: Playing) -> None:
        self.playing = playing
        self.runners = HeadRunners(self)
        self._units = {name: Units(self.execute, self.recognised) for name in playing.hosts}

    def begin(self) -> None:
        """What goes on by itself: other operators hold their lanes."""
        for lane, model in self.playing.scenario.leases.items():
            head = self.playing.scenario.fleet.lanes[lane].head
            self.playing.keep(others.hold(Job(self.playing, head, Known("lease")), lane, model))

    async def carry_out(self, host: str, argv: Sequence[str], stdin: str) -> Done:
        """One command on one host. Never raises for what it is."""
        found = self.recognised(argv, stdin)
        if found is None:
            return Done(REFUSED, "", f"{REFUSAL}\n")
        job = Job(self.playing, host, found)
        status = await self.execute(job)
        return Done(status, _text(job.out), _text(job.err))

    def recognised(self, argv: Sequence[str], stdin: str, depth: int = 0) -> Known | None:
        """The command, if it and every command within it is one of the console's own."""
        found = known(argv, stdin) or _runner(argv, stdin)
        if found is None or depth > DEEPEST:
            return None
        inner: tuple[str, ...] | None = None
        given = found.stdin
        if found.name == "fence":
            inner = found.args[3:] if found.args[2:3] == ("--",) else ()
        elif found.name == "once":
            inner = found.args[3:]
        elif found.name == "starter" and found.args[:1] == ("start",):
            files, inner = started(found.args[9:])
            given = parted(files, given)[1]
        if inner is None:
            return found
        return found if self.recognised(inner, given, depth + 1) is not None else None

    async def execute(self, job: Job) -> int:
        """Play it; what it says is in the job."""
        twin = self._twin(job)
        try:
            return await twin(job)
        except Ended as ended:
            return ended.status
        except (ValueError, IndexError) as error:
            # a number of arguments or a word that our own scripts never get
            job.err.append(f"rehearsal: {job.known.name} was told something else than the console tells it: {error}")
            return 5

    def _twin(self, job: Job) -> Twin:
        units = self._units[job.host]
        own: dict[str, Twin] = {
            "fence": self._fence,
            "starter": units.starter,
            "reader": units.starter,
            "once": units.once,
            "look": units.look,
            "wait": units.wait,
            "aside": units.aside,
            "reach": self._reach,
            "runner": self._runner,
            "deadman": _deadman,
        }
        name = job.known.name
        return own.get(name) or (statefiles.run if name in REAL else TWINS[name])

    async def _fence(self, job: Job) -> int:
        """fence.sh D EPOCH -- ARGV...: asked for real; then the command is played."""
        folder, epoch, _, *argv = job.args
        if status := await statefiles.fenced(job, folder, epoch):
            return status
        inner = self.recognised(argv, job.known.stdin, 1)
        if inner is None:
            job.err.append(REFUSAL)
            return REFUSED
        below = Job(job.playing, job.host, inner)
        status = await self.execute(below)
        job.out += below.out
        job.err += below.err
        return status

    async def _reach(self, job: Job) -> int:
        """Which hosts the head gets to: the first way to each that works."""
        calls = [shlex.split(call) for call in job.args]
        names = {words[0] for words in calls}
        for host in self.playing.hosts:
            if host not in names:
                continue
            tries = [words for words in calls if words[0] == host]
            await asyncio.sleep(TRY_S / self.playing.speed)
            words = self.playing.reaches(job.host, host)
            for _, number, *_way in tries if words else tries[:1]:
                job.say(f"{host}\t{number}\t{255 if words else 0}\t{words}")
        return 0

    async def _runner(self, job: Job) -> int:
        return await self.runners.run(job, job.args[0])

    def foreign_launch(self, lane: str, by: str) -> None:
        """Somebody else runs the lane's own launcher. Raises ValueError where the recipe has none."""
        found = self.playing.scenario.fleet.lanes[lane]
        scripts = {launch.SGLANG: ("relaunch.sh",), launch.CLUSTER: ("cluster.sh", "up")}
        if found.recipe not in scripts:
            raise ValueError(f"lane: {found.recipe} has no launcher")
        script, *words = scripts[found.recipe]
        dog = self.playing.world.watchdogs.get(lane)
        if by == "watchdog" and isinstance(dog, LogWatchdog):
            dog.become("recovery")
            script, words = "production.sh", []
        job = Job(self.playing, found.head, Known("launcher.sh"))
        command = [f"{found.vars.get('root', '~')}/launch/{script}", *words]
        self.playing.keep(_foreign(job, command, found.url + found.health_path, dog))

    def host_goes_down(self, host: str) -> None:
        """It restarts: its runners die, its steps are lost."""
        self.runners.host_goes_down(host)
        self._units[host].host_goes_down()

    async def close(self) -> None:
        """End all that goes on."""
        await self.runners.close()
        await self.playing.close()


async def _foreign(job: Job, command: Sequence[str], health: str, dog: PlayedWatchdog | None) -> None:
    """A launcher that somebody else runs; a watchdog that ran it is armed again once the lane answers."""
    await launchers.run(job, command)
    while isinstance(dog, LogWatchdog) and dog.pid and not dog.watches:
        await job.playing.sleep(launch.POLL_S)
        code, _ = await web.get(job, health, web.HEALTH_S)
        if code == 200 and dog.pid:
            dog.become("armed")


def _runner(argv: Sequence[str], stdin: str) -> Known | None:
    """`python3 -I -S FOLDER/runner.py run FOLDER`: the runner that the console put there."""
    words = tuple(argv)
    match = _RUNNER.fullmatch(words[3]) if len(words) == 6 and words[:3] == ("python3", "-I", "-S") else None
    if match is None or stdin or words[4:] != ("run", match[1]):
        return None
    return Known("runner", (match[1],))


async def _deadman(job: Job) -> int:
    """deadman.sh: a rehearsal tells nobody."""
    if job.args[:1] == ("state",) or job.args[:1] == ("disarm",):
        job.out.append("state=off")
        return 0
    job.err.append("a rehearsal tells nobody")
    return 5


def _text(rows: list[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


TWINS: Mapping[str, Twin] = {
    **containers.TWINS,
    **guards.TWINS,
    **launching.TWINS,
    **node.TWINS,
    **sites.TWINS,
    **web.TWINS,
}
