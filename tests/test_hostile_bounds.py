"""The largest answers that a host can send: bounded in what is kept of them and in the time that they take."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "widgets"))

import pictures
from hostile_read_side import NOW, WALL, survey

from console.document import document
from console.feed.changes import MOST_IMAGES, HostKnown, host_changes
from console.feed.feed import EVENTS_KEPT, Feed
from console.fleet.inventory import build
from console.fleet.recipe import load_recipe
from console.fleet.sitefile import SiteKind, parse_site
from console.reach.framing import MOST_TEXT, FrameReader
from console.reach.looking import MOST_ANSWER, Looking
from console.readings.boot_reader import read_boot
from console.readings.containers import MAX_ARGS, MAX_ENV, MAX_LABELS, MAX_MOUNTS, Containers, parse_inspect
from console.readings.download import DownloadSample, read_download
from console.readings.hubcache import read_repo
from console.readings.listing import MOST_ENTRIES, parse_listing
from console.readings.look import Look, LookKind, parse_answer
from console.readings.processes import MOST_PROCESSES, parse_processes
from console.readings.row_manifest import ManifestUnreadable, parse_manifest
from console.readings.units import parse_units
from console.readings.watchdog import read_watchdog
from console.snapshot import Severity

T = TypeVar("T")
CPU_S = 8.0
"""Seconds of processor time for one answer of the largest size, on a slow and busy machine; what grows with the square
of an answer takes minutes."""
HEAD = "ok free=1 total=1 device=1 fstype=x mount=/\n"
SERVING = f"{1:040x}"


def within(work: Callable[[], T]) -> T:
    began = time.process_time()
    found = work()
    assert time.process_time() - began < CPU_S
    return found


def full(head: str, row: Callable[[int], str], most: int = MOST_ANSWER) -> str:
    """As many rows as go into an answer of the largest size."""
    rows, size = [head], len(head)
    for number in count():
        text = row(number)
        size += len(text)
        if size > most:
            return "".join(rows)
        rows.append(text)
    raise AssertionError


TREES: dict[str, Callable[[int], str]] = {
    "partials of one file": lambda n: f"f\t9\t9\t1\t7\t{n}\t1\tblobs/{'a' * 64}.{n:08x}.incomplete\n",
    "partials": lambda n: f"f\t9\t9\t1\t7\t{n}\t1\tblobs/{n:x}.incomplete\n",
    "snapshots": lambda n: f"l\t9\t9\t1\t7\t{n}\t1\tsnapshots/{n:040x}/a\t../b\tgone\t-\t-\t-\t-\n",
    "files": lambda n: f"l\t9\t9\t1\t7\t{n}\t1\tsnapshots/{SERVING}/{n}\t../../blobs/{n}\tin\t9\t9\t7\t{n}\n",
    "shards": lambda n: (
        f"l\t9\t9\t1\t7\t{n}\t1\tsnapshots/{SERVING}/m-{n % 99999:05}-of-99999.safetensors"
        f"\t../../blobs/{n}\tin\t9\t9\t7\t{n}\n"
    ),
    "refs": lambda n: f"f\t40\t9\t1\t7\t{n}\t1\trefs/{n}\t{n:040x}\t-\t-\t-\t-\t-\n",
    "short rows": lambda _: "1 1 a\n",
    "deep folders": lambda _: f"f\t1\t1\t1\t1\t1\t1\t{'a/' * 400}\n",
    "escapes": lambda _: "f\t1\t1\t1\t1\t1\t1\t" + "\x1b" * 200 + "\u202e" * 200 + "\n",
    "tabs": lambda _: "\t" * 500 + "\n",
    "one line": lambda _: "a",
}


@pytest.mark.parametrize("kind", TREES)
def test_the_largest_tree(kind: str) -> None:
    text = full(HEAD, TREES[kind])
    listing = within(lambda: parse_listing(text))
    assert len(listing.entries) <= MOST_ENTRIES
    repo = within(lambda: read_repo(listing))
    samples = [DownloadSample(float(at), repo) for at in range(150)]
    found = within(lambda: read_download(samples, revision=SERVING, now=150.0))
    within(lambda: read_download(samples, revision=SERVING, now=151.0))
    assert all(len(warning) <= 400 for warning in (*found.warnings, *found.notes))


def test_a_listing_without_end_is_cut_and_says_so() -> None:
    listing = within(lambda: parse_listing("1 1 a\n" * (MOST_ENTRIES + 9)))
    assert len(listing.entries) <= MOST_ENTRIES and listing.truncated


def test_a_million_processes() -> None:
    text = "ok clock=1 boot=1\n" + "".join(f"{n}\t1\tS\t1\t1\t1\t1\tx\n" for n in range(1_000_000))
    assert len(within(lambda: parse_processes(text))) == MOST_PROCESSES
    assert len(
        within(lambda: parse_processes(full("ok clock=1 boot=1\n", lambda n: f"{n}\t1\tS\t1\t1\t1\t1\tTOKEN=\n")))
    )
    within(lambda: parse_processes("ok clock=1 boot=1\n7\t1\tS\t1\t1\t1\t1\t" + "TOKEN=" * 40_000))


@pytest.mark.parametrize(
    "row",
    [lambda n: f"Id=a{n}\nActiveState=x\n\n", lambda n: f"@u{n}/memory.max=1\n", lambda n: "! x\n", lambda n: "Id=\n"],
)
def test_the_largest_answer_of_systemd(row: Callable[[int], str]) -> None:
    within(lambda: parse_units(full("ok code=0\n", row)))


@pytest.mark.parametrize(
    "text",
    [
        '{"layers":{' + ",".join(f'"{n}":[0,{n}]' for n in range(9000)) + "}}", "[" * MOST_ANSWER,
        '{"a":' * 40_000, '{"layers":{"1":[0,' + "9" * 200_000 + "]}}",
    ],
    ids=["layers", "brackets", "objects", "digits"],
)  # fmt: skip
def test_the_largest_manifest(text: str) -> None:
    with pytest.raises(ManifestUnreadable) as error:
        within(lambda: parse_manifest(text))
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "part", ["A='", 'A="$(', "A=1\n", "A=(1\n", "\\\n", "${A:-", "<<E\n", "((", "`", "A=$'\\x1b'\n"]
)
def test_the_largest_site_file(part: str) -> None:
    data = (part * (MOST_ANSWER // len(part) + 1)).encode()[:MOST_ANSWER]
    found = within(lambda: parse_site(data, SiteKind.BASH))
    assert all(len(warning) < 1000 for warning in found.warnings) and len(found.warnings) < 1000


@pytest.mark.parametrize(
    "row",
    [
        lambda n: "Multi-thread loading shards:  77% Completed | 37/48 [00:53<00:16,  1.51s/it]\n",
        lambda n: "[" * 500 + " " * 500 + "[2026-11-29 21:54:00 TP0] " * 20 + "\n",
        lambda n: f"RuntimeError: {n}\n",
        lambda n: "x" * 100_000,
    ],
    ids=["bars", "brackets", "errors", "one line"],
)
def test_a_long_boot_log(row: Callable[[int], str]) -> None:
    boot = within(lambda: read_boot(full("", row, 2_000_000)))
    assert len(boot.phases) < 50 and len(boot.warnings) < 50


@pytest.mark.parametrize(
    "row",
    [
        lambda n: "2026-10-17 22:10:42 armed: x\n",
        lambda n: "2026-10-17 22:10:42 " + "watchdog started (pid 1, " * 20 + "\n",
        lambda n: "check failed 1/",
        lambda n: f"2026-10-17 22:10:42 watchdog started (pid {n}, interval 5)\n",
    ],
    ids=["armed", "starts", "one line", "pids"],
)
def test_the_largest_watchdog_log(row: Callable[[int], str]) -> None:
    recipe = load_recipe("sglang-fleet-env").watchdog
    assert recipe is not None
    _, lane, _ = survey(lambda: "x", "sglang-fleet-env")
    place = lane.places.watchdog
    assert place is not None
    answer = parse_answer(full("ok size=1 mtime=1 inode=1\n", row))
    spec = recipe.spec(place)
    found = within(lambda: read_watchdog(spec, log=answer, lock=answer, processes=(), now=WALL))
    assert len(found.words) < 1000 and len(found.last_act) < 2001


def test_a_container_that_says_too_much_is_cut() -> None:
    many = [f"X{n}={'y' * 5000}" for n in range(5000)]
    found = within(
        lambda: parse_inspect(
            {
                "Id": "a" * 64,
                "Name": "/" + "n" * 100_000,
                "Args": many,
                "State": {"Status": "running"},
                "Config": {"Env": many, "Labels": {text: text for text in many}, "Image": "i" * 100_000},
                "Mounts": [{"Source": text, "Destination": text} for text in many],
            }
        )
    )
    counts = (len(found.args), len(found.env), len(found.labels), len(found.mounts))
    assert counts <= (MAX_ARGS, MAX_ENV, MAX_LABELS, MAX_MOUNTS)
    assert len(found.name) <= 300 and len(found.image) <= 300


# --- the way in ------------------------------------------------------------------------------------------------------


def frame(**values: Any) -> bytes:
    return b"MARK " + json.dumps({"k": "look", "n": 1, "m": 1.0, "w": WALL, **values}).encode() + b"\n"


def test_an_answer_that_is_too_long_or_was_not_asked_for_is_not_taken() -> None:
    looking = Looking()
    looking.ask([Look("l:site", LookKind.FILE, ("/x", "first", "100"))])
    (number,) = looking.looks
    assert looking.answers({number: "x" * MOST_ANSWER}) == {"l:site": "x" * MOST_ANSWER}
    assert looking.answers({number: "y" * (MOST_ANSWER + 1)}) == {}
    assert looking.answers({"999": "z", "": "z"}) == {}
    assert looking.answers({number: {"a": 1}}) == looking.answers([1, 2]) == {}


def test_frames_of_anything_are_read_or_dropped() -> None:
    reader = FrameReader("MARK")
    for part in (
        frame(t={"1": "a" * (MOST_TEXT + 9)}), frame(t=[1]), frame(n="x"), frame(m="x"), frame(k=["look"]),
        frame(k="node", t={"meminfo": "x" * (MOST_TEXT + 9)}), b"MARK " + b"[" * 100_000 + b"\n",
        b"MARK {" + b'"k":' * 9 + b"\n", b"\xff" * 100_000 + b"\n", b"MARK " + b"9" * 100_000 + b"\n",
    ):  # fmt: skip
        reader.feed(part, NOW)
    for found in reader.take():
        assert all(len(text) <= MOST_TEXT for text in found.texts.values())


def test_a_flood_of_events_is_bounded_and_the_newest_stay() -> None:
    lane = {"recipe": "vllm-docker", "url": "http://127.0.0.1:9", "head": "n1"}
    feed = Feed(build({"name": "f", "hosts": {"n1": {"ssh": "n1"}}, "lanes": {"x": lane}}))
    feed.note("n1", "x" * 9000, Severity.NORMAL)
    within(lambda: [feed.note("n1", f"event {number} of many", Severity.NORMAL) for number in range(20_000)])
    feed.note("n1", "y" * 9000, Severity.NORMAL)
    snapshot = feed.snapshot()
    assert len(snapshot.events) == EVENTS_KEPT
    assert snapshot.events[-2].text == "event 19999 of many" and len(snapshot.events[-1].text) == 2000
    assert len(document(snapshot)["events"]) == 50


def test_what_is_remembered_of_images_is_bounded() -> None:
    known, view = HostKnown(), pictures.spark4().hosts[0]
    for turn in range(40):
        names = [f"{turn}-{number}" for number in range(40)]
        items = tuple(pictures.container(f"c{name}", image=f"i{name}", image_id=f"sha256:{name}") for name in names)
        known, _ = host_changes(known, replace(view, containers=pictures.reading(Containers(items), 1, 5.0)))
    assert len(known.images) == MOST_IMAGES
