"""Logs as an operator sees them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.readings.logtext import Progress, control_characters, loading_progress, read_log


def test_a_bar_is_one_line_with_its_last_step() -> None:
    log = read_log(b"\rshards: 0/3\rshards: 1/3\rshards: 3/3\nINFO done\n")
    assert log.lines == ("shards: 3/3", "INFO done")
    assert (log.segments, log.complete, log.verbatim) == (3, True, 1)


def test_the_line_that_has_not_ended_is_shown_and_said() -> None:
    log = read_log(b"one\n\rLoading 1/9\rLoading 2/9")
    assert (log.lines, log.complete, log.segments) == (("one", "Loading 2/9"), False, 2)


def test_what_was_replaced_is_counted() -> None:
    log = read_log(b"ok\n\xff\xfe\n\x00\x1b[31mred\x1b[0m\t\xe9\n")
    assert log.replacements == 3
    assert log.controls == 3
    assert log.lines == ("ok", "��", "␀red    �")
    assert log.verbatim == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Loading safetensors checkpoint shards:  65% Completed | 31/48 [04:18<02:21,  8.33s/it]", (31, 48)),
        ("(Worker_TP0 pid=77) Loading safetensors checkpoint shards:   0% Completed | 0/48 [00:00<?, ?it/s]", (0, 48)),
        ("[2026-10-18 09:01:02 TP0] Multi-thread loading shards: 100%|██████████| 48/48 [06:24<00:00]", (48, 48)),
        ("Fetching 12 files:  65%|██████▌   | 8/12 [04:18<02:21]", None),
        ("Loading safetensors checkpoint shards: done", None),
        ("shards:  65% Completed | 49/48 [", None),
        ("shards:  65% Completed | 0/0 [", None),
        ("Capturing batches (bs=1 avail_mem=5.06 GB): 100%|##########| 23/23", None),
    ],
)
def test_shards_loaded(text: str, wanted: tuple[int, int] | None) -> None:
    found = loading_progress([text, "INFO next"])
    assert ((found.done, found.total) if found else None) == wanted


def test_the_newest_bar_counts() -> None:
    bars = [f"Loading shards:  {n}% Completed | {n}/48 [" for n in range(49)]
    assert loading_progress(bars) == Progress("Loading shards", 48, 48)
    assert loading_progress([]) is None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_make_a_safe_log(data: bytes) -> None:
    log = read_log(data)
    assert sum(control_characters(text) for text in log.lines) == 0
    assert log.verbatim <= len(log.lines)
    assert loading_progress(log.lines) is None or data


def test_control_characters_are_counted_where_there_are_some() -> None:
    assert control_characters("a\x1b[0m\r\n\x9b") == 4
    assert control_characters("plain\ttext") == 0
