"""Who is on duty: the name that ledger and leases carry. One name is one person, so it is never changed on the way."""

from __future__ import annotations

import os

from console.sanitize import line

VARIABLE = "LANESWAP_OPERATOR"
LONGEST = 80
"""Characters: what a lease keeps."""


def trouble(name: str) -> str:
    """Why `name` cannot be an operator's, and the fix; '' if it can. Cut or cleaned it would be somebody else's."""
    if len(name) > LONGEST:
        return f"{len(name)} characters, at most {LONGEST} are kept; write a shorter name"
    if line(name, LONGEST) != name:
        return f"control or invisible characters in {line(name, LONGEST)!r}; write it in plain text"
    if name != name.strip() or not name:
        return f"blanks around it, or nothing else, in {name!r}; write the name alone"
    return ""


def variable_trouble() -> str:
    """What is wrong with the name in the environment, naming the variable; '' where it is none or not set."""
    name = os.environ.get(VARIABLE, "")
    why = trouble(name) if name else ""
    return f"{VARIABLE} in the environment: {why}" if why else ""


def on_duty(written: str) -> tuple[str, str]:
    """The operator and what says so: the environment, which is nearer to who sits here than a file that many share,
    else `written` in that file, else the login name."""
    if named := os.environ.get(VARIABLE, ""):
        beats = f", over {written!r} in the fleet file" if written and written != named else ""
        return named, f"environment: {VARIABLE}{beats}"
    if written:
        return written, ""
    user = os.environ.get("USER", "")
    return (user, "environment: USER") if user and not trouble(user) else ("-", "nobody is named")
