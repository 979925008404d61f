"""Which tests run: real hosts in CI or where asked for, soaks where asked for; what is left out is said aloud."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: several processes share it with the hosts that they play.
settings.register_profile("laneswap", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laneswap")

# Under nohup SIGHUP is ignored and every child inherits that; the tests of hang-ups mean the usual disposition.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Hundreds of processes are started: where no byte code is kept, each would compile the whole console once more. It goes
# to a folder of the test run, which the processes that share the tests share, too.
CODE = "LANESWAP_TEST_CODE"
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ[CODE] = tempfile.mkdtemp(prefix="laneswap-test-code-")
    atexit.register(shutil.rmtree, os.environ[CODE], ignore_errors=True)
if CODE in os.environ:
    os.environ["PYTHONPYCACHEPREFIX"] = os.environ[CODE]

# What a console remembers of a lane goes to a folder of the test run, never to that of whoever runs the tests.
os.environ["LANESWAP_STATE"] = tempfile.mkdtemp(prefix="laneswap-test-state-")
atexit.register(shutil.rmtree, os.environ["LANESWAP_STATE"], ignore_errors=True)

BED_HELP = "run the tests that need real hosts (root on Debian or Ubuntu; `make bed` installs what they need)"
SOAK_HELP = "run the tests that are slow by nature (`make soak`)"
SLOW_LIMIT = 600
"""Seconds for a test on real hosts or a soak: the first one may have to build the hosts."""
LEFT_OUT = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("laneswap")
    group.addoption("--bed", action="store_true", help=BED_HELP)
    group.addoption("--bed-hosts", type=int, choices=(2, 3, 4), default=3, help="how many real hosts to bring up")
    group.addoption("--soak", action="store_true", help=SOAK_HELP)


def _spread(config: pytest.Config) -> bool:
    """True where several processes share the tests: real hosts then want a run of their own, in which each process
    brings up its own ones."""
    return hasattr(config, "workerinput") or bool(config.getoption("numprocesses", None))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Slow tests first, spread over the processes; those on real hosts stay in their files."""
    if config.getoption("dist") != "loadfile" or config.getoption("--bed"):
        return None
    from sharing import SlowFirst

    return SlowFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what was not asked for, and remember what to say about it."""
    in_ci = os.environ.get("CI", "").lower() == "true"
    unwanted = {
        "bed": not (config.getoption("--bed") or (in_ci and not _spread(config))),
        "soak": not config.getoption("--soak"),
    }
    reasons = {
        "bed": "{} tests on real hosts (systemd, OpenSSH, Docker): they need root and Debian packages; sudo make bed",
        "soak": "{} soak tests, slow by nature: make soak",
    }
    if in_ci:
        reasons["bed"] = "{} tests on real hosts in this run: they have one of their own"
    left_out: list[str] = []
    for name, unwanted_here in unwanted.items():
        found = [item for item in items if unwanted_here and item.get_closest_marker(name)]
        if found:
            config.hook.pytest_deselected(items=found)
            items[:] = [item for item in items if item not in found]
            left_out.append(reasons[name].format(len(found)))
    config.stash[LEFT_OUT] = left_out
    for item in items:
        if not item.get_closest_marker("timeout") and (
            item.get_closest_marker("bed") or item.get_closest_marker("soak")
        ):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that shares the tests hands what it left out to the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process left out the same tests: one word of them is enough."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One loud line about what was not run, why, and how to run it."""
    if left_out := config.stash.get(LEFT_OUT, []):
        terminalreporter.write_line(f"NOT RUN: {' | '.join(left_out)}", yellow=True, bold=True)
