"""Carries steps and probes out on this machine, as a host would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from console.actions.plan import Probe, Step

CLEAN = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}

HOOKED = """
import errno, os, signal, sys
what, number, calls, action = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4]
count = 0
def hooked(call):
    def inner(*words, **more):
        global count
        count += 1
        if count == number:
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "full":
                raise OSError(errno.ENOSPC, "No space left on device")
            exec(action)
        return call(*words, **more)
    return inner
text = sys.stdin.read()
for name in calls:
    setattr(os, name, hooked(getattr(os, name)))
sys.argv = ["-", *sys.argv[5:]]
exec(compile(text, "site_edit.py", "exec"), {"__name__": "sent"})
"""
"""Runs what comes on standard input; at the given call of the named functions it is killed, or has an error."""


def carry_out(step: Step | Probe, *, limit: float = 60.0) -> subprocess.CompletedProcess[str]:
    """The command of a step or probe, in a clean environment."""
    return subprocess.run(
        [*_python(step.argv)], input=step.stdin, capture_output=True, text=True, env=CLEAN, timeout=limit
    )


def carry_out_hooked(
    step: Step, what: str, number: int, calls: str, action: str = ""
) -> subprocess.CompletedProcess[str]:
    """A step whose script is python, with a fault at the given call (from 1) of some functions of `os`."""
    assert step.argv[:3] == ("python3", "-I", "-")
    command = [sys.executable, "-c", HOOKED, what, str(number), calls, action, *step.argv[3:]]
    return subprocess.run(command, input=step.stdin, capture_output=True, text=True, env=CLEAN, timeout=60)


def answers(probes: tuple[Probe, ...]) -> list[int]:
    """Exit statuses."""
    return [carry_out(probe).returncode for probe in probes]


def _python(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The python of the tests, which starts without a wrapper of the machine's."""
    return (sys.executable, *argv[1:]) if argv[0] == "python3" else argv


def beside(path: Path) -> list[str]:
    """Names in the file's folder but its own."""
    return sorted(entry.name for entry in path.parent.iterdir() if entry.name != path.name)
