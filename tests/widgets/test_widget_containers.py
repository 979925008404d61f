"""The containers of a lane: who serves, who ended and why, in the table, in one line and in the nodes pane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pictures import WALL, container, glance, ink_at, nothing_read, reading, spark4, station, texts

from console.readings.containers import Container, Containers, ContainerState
from console.snapshot import Snapshot
from widgets import containers, nodes
from widgets.ink import LOOK, TEXT, Ink, Row, text_of


def with_rank(found: Container | None, word: str, number: int = 2) -> Snapshot:
    """The four ranks, one of them with another container."""
    base = spark4()
    items = (found,) if found is not None else ()
    view = replace(base.hosts[number], containers=reading(Containers(items), 1, 5.0))
    ranks = tuple(replace(r, container=found, word=word) if r.rank == number else r for r in base.lanes[0].ranks)
    hosts = (*base.hosts[:number], view, *base.hosts[number + 1 :])
    return replace(base, hosts=hosts, lanes=(replace(base.lanes[0], ranks=ranks),))


def one_line(snapshot: Snapshot) -> Row:
    """The pane at 80 columns."""
    (row,) = containers.rows(glance(snapshot, 80, 24), 80, 1)
    return row


def test_containers_say_who_serves_and_who_is_retired() -> None:
    rows = containers.rows(glance(station()), 120, 6)
    assert "serves :30006  running 12 d       1bae0e1" in text_of(rows[2])
    assert "retired        exited 0 12 d ago  df42c10" in text_of(rows[3])


def test_containers_that_cannot_be_read_say_why() -> None:
    base = station()
    shut = Containers((), "permission denied", "add the user to group docker")
    view = replace(base.hosts[0], containers=reading(shut, 1, 5.0))
    text = " ".join(texts(containers.rows(glance(replace(base, hosts=(view,))), 120, 6)))
    assert "station: permission denied (add the user to group docker)" in text


def test_an_oom_kill_stands_out() -> None:
    base = station()
    killed = container("dsv41-vllm-1017", ContainerState.EXITED, exit_code=137, oom_killed=True)
    view = replace(base.hosts[0], containers=reading(Containers((killed,)), 1, 5.0))
    row = containers.rows(glance(replace(base, hosts=(view,))), 120, 6)[2]
    assert ink_at(row, "exited 137") == LOOK


def test_a_rank_that_is_down_comes_first_and_is_never_up() -> None:
    base = spark4()
    dead = container("sglang-2", ContainerState.EXITED, exit_code=137, exit_meaning="killed", id="dead")
    view = replace(base.hosts[2], containers=reading(Containers((dead,)), 1, 5.0))
    ranks = tuple(replace(r, container=dead, word="exited 137") if r.host == "n3" else r for r in base.lanes[0].ranks)
    hosts = (*base.hosts[:2], view, base.hosts[3])
    broken = replace(base, hosts=hosts, lanes=(replace(base.lanes[0], ranks=ranks),))
    row = containers.rows(glance(broken), 120, 5)[2]
    assert "n3 sglang-2" in text_of(row)
    assert ink_at(row, "rank is down") == Ink()
    assert ink_at(row, "exited 137") == LOOK
    assert ink_at(nodes.rows(glance(broken), 120, 7)[4], "exited 137") == Ink("look")
    wide = texts(nodes.rows(glance(broken, 200, 60), 200, 12))
    assert "1m ago killed" in wide[7]
    assert "up" not in wide[7].replace("cache", "")


@pytest.mark.parametrize(
    ("unasked", "ink"), [(True, Ink("look")), (None, Ink("look")), (False, TEXT)], ids=["crash", "unknown", "asked"]
)
def test_exit_0_of_a_rank_is_orange_unless_somebody_asked_for_it(unasked: bool | None, ink: Ink) -> None:
    ended = container("sglang-2", ContainerState.EXITED, exit_code=0, exit_unasked=unasked, id="ended")
    shown = with_rank(ended, "exited 0")
    assert ink_at(nodes.rows(glance(shown), 120, 7)[4], "exited 0") == ink
    row = containers.rows(glance(shown), 120, 8)[2]
    assert "rank is down" in text_of(row)
    assert ink_at(row, "exited 0") == LOOK


def test_a_retired_container_is_quiet_whatever_docker_remembers_of_its_stop() -> None:
    row = containers.rows(glance(station()), 120, 6)[3]
    assert ink_at(row, "exited 0") == TEXT


def test_a_table_without_room_still_shows_the_first() -> None:
    rows = texts(containers.rows(glance(spark4(), 80, 24), 80, 2))
    assert "n1 sglang-head" in rows[1]
    assert not any("0 shown" in row for row in rows)


def test_one_line_says_how_many_are_up_and_what_they_share() -> None:
    text = text_of(one_line(spark4()))
    assert text.startswith(" containers 4 of 4 up  9f2c1a7  restart unless-stopped ")
    assert text.rstrip().endswith("0.4s")


@pytest.mark.parametrize(
    ("found", "word", "said"),
    [
        (
            container("c", ContainerState.EXITED, exit_code=137, exit_meaning="SIGKILL, cause not recorded: log"),
            "exited 137",
            "3 of 4 up  n3 exited 137 1m ago SIGKILL, cause not recorded",
        ),
        (None, "no container", "3 of 4 up  n3 no container"),
        (container("c", ContainerState.PAUSED), "paused", "3 of 4 up  n3 paused 3d04h"),
        (container("c", health="unhealthy"), "up", "4 of 4 up  n3 unhealthy 3d04h"),
        (None, "unknown", "3 of 4 up  n3 unknown"),
    ],
    ids=["exited", "none", "paused", "unhealthy", "unknown"],
)
def test_one_line_names_the_first_rank_that_is_not_well(found: Any, word: str, said: str) -> None:
    assert f" containers {said} " in text_of(one_line(with_rank(found, word)))


def test_one_line_counts_the_others_and_says_what_cannot_be_read() -> None:
    two = with_rank(None, "no container")
    ranks = tuple(replace(r, container=None, word="no container") if r.rank == 3 else r for r in two.lanes[0].ranks)
    two = replace(two, lanes=(replace(two.lanes[0], ranks=ranks),))
    assert "2 of 4 up  n3 no container +1" in text_of(one_line(two))
    base = spark4()
    shut = replace(base.hosts[1], containers=reading(Containers((), "permission denied", "group docker"), 1, 5.0))
    row = one_line(replace(base, hosts=(base.hosts[0], shut, *base.hosts[2:])))
    assert ink_at(row, "n2: permission denied") == LOOK


def test_a_rank_without_a_container_has_a_row_of_its_own() -> None:
    rows = containers.rows(glance(with_rank(None, "no container")), 120, 8)
    assert text_of(rows[2]).split("│")[1].split() == ["n3", *"rank is down no container - - 1s".split()]
    assert ink_at(rows[2], "no container") == LOOK
    assert "n1 sglang-head" in text_of(rows[3])


def test_what_was_not_read_is_not_counted_as_down() -> None:
    assert " containers - of 4 up " in text_of(one_line(nothing_read()))


def test_times_are_by_the_clock_of_the_host() -> None:
    base = station()
    young = container("dsv41-vllm-1", started_at=WALL + 3600 - 250, ports=(30006,))
    box = replace(base.hosts[0], drift=3600.0, containers=reading(Containers((young,)), 1, 5.0))
    assert "running 4m10s" in text_of(containers.rows(glance(replace(base, hosts=(box,))), 120, 6)[2])


def test_exited_137_is_whole_at_80_columns() -> None:
    rows = texts(nodes.rows(glance(with_rank(container("c", ContainerState.EXITED), "exited 137"), 80, 24), 80, 5))
    assert " exited 137 2 " in rows[3]
    assert " none " in nodes_row("no container")
    assert " on host " in nodes_row("on the host")


def nodes_row(word: str) -> str:
    """The row of n3 at 80 columns."""
    return texts(nodes.rows(glance(with_rank(None, word), 80, 24), 80, 5))[3]
