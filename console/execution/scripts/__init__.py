"""Scripts that hosts run under a plain POSIX /bin/sh: nothing is installed, no python is needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources

from console.reach.link import Link
from console.readings.output import Outcome, Output
from console.sanitize import line

NAMES = (
    "statedir",
    "fence",
    "starter",
    "reader",
    "lease",
    "put",
    "append",
    "drop",
    "read",
    "able",
    "deadman",
    "box",
    "prune",
)
"""What there is; `common` is the head of each, `step` what `starter` and `reader` share."""


class Exit(IntEnum):
    """What an exit status of a script means; any other one means that it is not known."""

    OK = 0
    NO = 1
    THERE = 3
    """Already there, or held."""
    FENCED = 4
    CANNOT = 5


@cache
def script(name: str) -> str:
    """The text of one script, its common head included: run it as `sh -s -- ARGS`, or as `sh -c TEXT laneswap ARGS`.

    Raises ValueError for a name that is not in NAMES; `starter` and `starter.sh` are the same.
    """
    bare = name.removesuffix(".sh")
    if bare not in NAMES:
        raise ValueError(f"no script {name!r}: there are {', '.join(NAMES)}")
    folder = resources.files(__name__)
    parts = ("common", "step", bare) if bare in ("starter", "reader") else ("common", bare)
    rows = "".join(folder.joinpath(f"{part}.sh").read_text(encoding="utf-8") for part in parts).split("\n")
    # a third less to send; no text in them spans lines that begin with blanks or a #
    return "".join(f"{kept}\n" for row in rows if (kept := row.strip()) and not kept.startswith("#"))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a script said. `exit` is None where it is not known whether or how it ran."""

    exit: Exit | None
    values: dict[str, str]
    """Its `key=value` lines; the values are as the host sent them."""
    problem: str
    """Why it is not OK, in safe words; '' if it is."""
    sent: bool = True
    """False: it certainly never ran."""

    @property
    def unknown(self) -> bool:
        """Whether nobody can say what it did."""
        return self.exit is None and self.sent

    def text(self, key: str, limit: int = 300) -> str:
        """A value as one safe line; '' if there is none."""
        return line(self.values.get(key, ""), limit)

    def number(self, key: str) -> int | None:
        """A value that is a decimal of at most 15 digits, else None."""
        return decimal(self.values.get(key, ""))


_KEYED = re.compile(r"([a-z_]{1,20})=(.*)")
_DECIMAL = re.compile(r"[0-9]{1,15}")


def decimal(text: str) -> int | None:
    """The number that a text is, if it is one of at most 15 ASCII digits."""
    return int(text) if _DECIMAL.fullmatch(text) else None


def read_answer(output: Output) -> Answer:
    """What the output of a script means. What never ran for want of a connection has no exit, as what got lost."""
    values: dict[str, str] = {}
    for row in output.stdout.split("\n"):
        match = _KEYED.fullmatch(row.removesuffix("\r"))
        if match:
            values.setdefault(match[1], match[2])
    status = output.exit_status if output.outcome in (Outcome.DONE, Outcome.FAILED) and not output.signal else None
    known = Exit(status) if status is not None and status in set(Exit) else None
    if known is Exit.OK:
        return Answer(known, values, "")
    said = next((row for row in output.stderr.split("\n") if row.strip()), "")
    words = said if known is not None else output.hint or said
    sent = output.outcome in (Outcome.DONE, Outcome.FAILED, Outcome.UNKNOWN)
    return Answer(known, values, line(words or f"the script ended with status {output.exit_status}", 300), sent)


async def ask(
    link: Link,
    name: str,
    arguments: Sequence[str],
    *,
    stdin: str | None = None,
    limit: float = 25.0,
    looks: bool = False,
) -> Answer:
    """Run one script on a host; `stdin` is the script's own. Never raises for a remote failure. One that only `looks`
    leaves the session free that is kept for acting."""
    text = script(name)
    argv = ["sh", "-s", "--", *arguments] if stdin is None else ["sh", "-c", text, "laneswap", *arguments]
    output = await link.run(argv, stdin=text if stdin is None else stdin, limit=limit, operator=not looks)
    return read_answer(output)
