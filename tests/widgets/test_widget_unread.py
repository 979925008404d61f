"""What nobody could read is not shown as none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pictures import glance, spark4

from console.readings.lights import ProcessLight
from widgets import lane
from widgets.ink import text_of

AWAY = ("n1: host unreachable", "n2: host unreachable")


@pytest.mark.parametrize(
    ("light", "shown"),
    [
        (ProcessLight(4, 0, (), AWAY), "proc unknown"),
        (ProcessLight(4, 0, ("n3 exited 137",), AWAY), "proc dead"),
        (ProcessLight(4, 0, ("n1 exited 1", "n2 exited 1", "n3 exited 1", "n4 exited 1")), "proc 0/4"),
        (ProcessLight(4, 2, (), AWAY), "proc 2/4"),
        (ProcessLight(4, 4), "proc 4/4"),
    ],
)
def test_ranks_that_cannot_be_read_are_not_none_that_run(light: ProcessLight, shown: str) -> None:
    snapshot = spark4()
    view = snapshot.lanes[0]
    changed = replace(view, lights=replace(view.lights, process=light))
    rows = lane.rows(glance(replace(snapshot, lanes=(changed, *snapshot.lanes[1:])), 80, 24), 80, 1)
    assert shown in text_of(rows[0])
