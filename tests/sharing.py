"""How several processes share the tests: what waits on real processes comes first and one at a time, quick files last.

xdist's own order by the number of tests of a file leaves the slowest files, which have few, to the end, where one
process works on them and the others have nothing to do.
"""

from __future__ import annotations

from collections import OrderedDict

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SLOW = ("tests/rehearsal/", "tests/pty/")
"""Tests of many seconds each, which mostly wait."""
EARLY = ("tests/execution/", "tests/reach/", "tests/feed/", "tests/actions/", "tests/screens/", "tests/test_counts.py")
"""Those with real processes, hosts or screens, ahead of those that only compute."""
SINGLY = SLOW + EARLY
"""Shared one by one: a file of twenty that wait for seconds would be the last that runs, in one process."""
WHOLE = (
    "tests/actions/test_told_by_runner.py",
    "tests/feed/test_feed.py",
    "tests/feed/test_scale.py",
    "tests/rehearsal/test_acting_hostile.py",
    "tests/rehearsal/test_embedded_fleet.py",
    "tests/rehearsal/test_read_side_faults.py",
)
"""Files among them whose tests share what one process started for all of them."""


def unit_of(nodeid: str) -> str:
    """What one process runs in one piece: a file, or one test."""
    file = nodeid.partition("::")[0]
    return nodeid if file.startswith(SINGLY) and file not in WHOLE else file


def turn_of(unit: str, tests: int) -> tuple[int, int]:
    """Sorts units of so many tests: slow ones first, those with most tests before others of their kind."""
    return (0 if unit.startswith(SLOW) else 1 if unit.startswith(EARLY) else 2), -tests


class SlowFirst(LoadFileScheduling):
    """`--dist loadfile` in that order."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not any(self.assigned_work.values()):  # the first one of all
            turns = {unit: turn_of(unit, len(tests)) for unit, tests in self.workqueue.items()}
            self.workqueue = OrderedDict(sorted(self.workqueue.items(), key=lambda item: turns[item[0]]))
        super()._assign_work_unit(node)
