"""The dead-man timer: the head itself tells people when the console is gone and something is owed.

A timer on the head (a sleeper where there is no systemd) looks at the lane's state folder. When a debt is overdue, or
the lease ran out while the lane does not answer, it posts one short JSON to the webhook, once for each. It re-arms,
starts and stops nothing, and takes itself away once neither lease, window nor debt is left. A reboot ends it.
"""

from __future__ import annotations

from dataclasses import dataclass

from console.execution.scripts import Answer, Exit, ask, script
from console.reach.link import Link

PERIOD = 30
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Deadman:
    """What the head says of its timer."""

    armed: bool
    mode: str = ""
    """`user`, `system` (timers of systemd) or `none` (a sleeper)."""
    unit: str = ""
    problem: str = ""
    """Safe words: why it is not armed, or why that is not known."""
    unknown: bool = False


async def arm(
    link: Link, folder: str, *, webhook: str, fleet: str, lane: str, health: str = "", period: int = PERIOD
) -> Deadman:
    """Arm it, or arm it anew. `webhook` is a secret: it goes to a file that this account alone reads, never to an
    argument list. `health`: a URL that answers 2xx while the lane serves, asked on the head once a lease has run out;
    without one a lease is not watched."""
    values = {"webhook": webhook, "health": health, "fleet": fleet, "lane": lane}
    if any(not value.isprintable() for value in values.values()):
        return Deadman(False, problem="a URL or a name is not one printable line")
    config = "".join(f"{key}={value}\n" for key, value in values.items())
    return _read(await ask(link, "deadman", ["arm", folder, str(period), script("deadman")], stdin=config, limit=45.0))


async def disarm(link: Link, folder: str) -> Deadman:
    """Take it away, whatever is owed."""
    return _read(await ask(link, "deadman", ["disarm", folder], limit=45.0))


async def state(link: Link, folder: str) -> Deadman:
    """Whether this account has armed it there."""
    return _read(await ask(link, "deadman", ["state", folder], looks=True))


def _read(answer: Answer) -> Deadman:
    if answer.exit is not Exit.OK:
        return Deadman(False, problem=answer.problem, unknown=answer.unknown or not answer.sent)
    armed = answer.values.get("state") == "armed"
    return Deadman(armed, answer.text("mode", 20), answer.text("unit", 200))
