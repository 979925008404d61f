"""What `make bench` reads screens and figures with."""

from __future__ import annotations

import asyncio
import itertools
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from bench.figures import MET, MISSED, NOT_RUN, Figure, not_run, quantile, table
from bench.flood_daemon import IDENT, batched, log_line
from bench.metrics_text import body
from bench.openssh import NoSshd, _find
from bench.sampling import ENTRIES, make_tree, order
from bench.screen import Screen
from bench.stage import host_rows, lane_rows
from bench.stall import Stall
from bench.starting import engine_read, nodes_read, rate_true
from console.fleet.inventory import build
from console.reach.docker_log import Demultiplexer, stamped
from console.reach.files_host import tree
from console.readings.listing import parse_listing
from console.rehearsal.scenario import load_scenario

WRITTEN = (
    "\x1b[?1049h\x1b[2J\x1b[1;1H\x1b[38;2;1;2;3mfirst\x1b[0m\x1b[3;4Hthird \x1b[1mrow\x1b[0m"
    "\x1b]0;a title\x07\x1b[2;1Hlong line\x1b[2;5H\x1b[K\r\nx\x1b[1;3H\x1b[1CX\x1b[5;1Houtside\x1b[1;10H日本"
)


def read(*parts: str) -> list[str]:
    screen = Screen(12, 4)
    for part in parts:
        screen.feed(part)
    return screen.lines


def test_a_screen_holds_what_a_terminal_would_show() -> None:
    assert read(WRITTEN) == ["firXt    日 本", "long", "x  third row", ""]


@given(st.lists(st.integers(0, len(WRITTEN)), max_size=8))
def test_output_may_come_in_any_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WRITTEN)]
    assert read(*(WRITTEN[a:b] for a, b in itertools.pairwise(places))) == read(WRITTEN)


def test_values_are_found_on_the_dashboard_and_not_before_they_are_there() -> None:
    screen = Screen(120, 6)
    assert (nodes_read(screen), engine_read(screen), rate_true(screen)) == (0, False, False)
    screen.feed("\x1b[1;1H│ spark-0                        │      -      -      -     -\x1b[2;1H│ - tok/s")
    assert (nodes_read(screen), engine_read(screen), rate_true(screen)) == (0, False, False)
    screen.feed("\x1b[1;1H│ spark-0                   ▌▉ │   11.8   17.9    7.4   0.0    96")
    screen.feed("\x1b[2;1H│ 67.5 tok/s \x1b[3;1H│ 2.71 of 6.20 M tok          44 %")
    assert (nodes_read(screen), engine_read(screen), rate_true(screen)) == (1, True, False)
    screen.feed("\x1b[2;1H│ 66.9 tok/s ")
    assert rate_true(screen)


@pytest.mark.parametrize(
    ("value", "budget", "verdict"),
    [(2.9, 3.0, MET), (3.0, 3.0, MET), (3.04, 3.0, MET), (3.06, 3.0, MISSED), (99.0, None, "-"), (None, 3.0, NOT_RUN)],
)
def test_a_verdict_is_that_of_the_figure_as_printed(value: float | None, budget: float | None, verdict: str) -> None:
    figure = Figure("what", value, "s", budget, "how")
    assert figure.verdict == verdict
    assert table([figure]).splitlines()[2].endswith(verdict)


def test_the_table_says_how_and_what_was_left_out() -> None:
    text = table([Figure("fast", 1.0, "s", 2.0, "with care", 2, "a peer 4 s"), not_run("slow", "no disk")])
    assert "fast  1.00 s     2 s  met" in text and "fast: with care; beside it: a peer 4 s" in text
    assert "slow" in text and "not run" in text and "slow: no disk" in text


def test_quantiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1.0)) == (50.0, 99.0, 100.0)
    assert quantile([7.0], 0.99) == 7.0


def test_the_measured_body_is_metrics_text_of_that_size() -> None:
    text = body()
    assert 287 * 1024 <= len(text) < 300 * 1024
    families = list(text_string_to_metric_families(text.decode()))
    assert len({family.name for family in families}) == len(families), "each family stands together"


def test_without_an_sshd_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSshd, match="no OpenSSH client"):
        _find(tmp_path)


def test_the_fleet_file_of_a_played_fleet_says_all_that_the_scenario_says(tmp_path: Path) -> None:
    lane = load_scenario("spark4").fleet.lanes["dsv41"]
    places = dict.fromkeys(lane.rank_hosts, 22)
    text = 'name = "bench"\n[hosts]\n' + host_rows(tmp_path, places, docker=True) + lane_rows(lane)
    assert build(tomllib.loads(text)).lanes["dsv41"] == lane


def test_the_measured_tree_has_as_many_entries_as_it_is_said_to_have(tmp_path: Path) -> None:
    make_tree(tmp_path)
    listing = parse_listing(tree(str(tmp_path), 4, 2000))
    assert (len(listing.entries), listing.problem, listing.truncated) == (ENTRIES, "", False)
    rows = order(tmp_path).decode().splitlines()
    assert rows[0] == f"look {len(rows) - 1}" and str(tmp_path) in rows[1]


async def test_a_stall_is_as_long_as_the_loop_was_held_up() -> None:
    async with Stall() as stall:
        await asyncio.sleep(0.02)
        time.sleep(0.15)  # noqa: ASYNC251 - what is to be noticed
        await asyncio.sleep(0.02)
    assert stall.longest >= 140.0


def test_a_flood_is_framed_and_dated_as_docker_does_it() -> None:
    ((stream, payload),) = Demultiplexer().feed(log_line(7))
    line = stamped(payload.rstrip(b"\n"))
    assert (stream, line.text.split(b":")[0]) == (1, b"line 7")
    assert line.wall is not None and abs(line.wall - time.time()) < 60
    assert list(batched(1001, 500)) == [500, 500, 1] and len(IDENT) == 64
