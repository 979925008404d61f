"""Looks through the sampler's own processes: answers, changes, hangs, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from sampler_bench import FLAVOURS, Bench, counts, program, until, write

from console.fleet.inventory import Rates
from console.reach.limits import Timings
from console.readings.listing import parse_listing
from console.readings.look import Look, LookKind, parse_answer
from console.readings.processes import parse_processes
from console.readings.units import parse_units

SHELLS = [flavour for flavour in FLAVOURS if flavour != "python"]
HANGING = "#!/bin/sh\ntrap '' TERM HUP\necho x >>{0}/asked\nexec sleep 600\n"


def file(key: str, path: str, every: float = 0.2) -> Look:
    return Look(key, LookKind.FILE, (path, "last", "65536"), every)


def hang(key: str = "main:watchdog.units", every: float = 0.2) -> Look:
    """Waits in the middle of an answer, as on a dead mount: a systemctl that never comes back."""
    return Look(key, LookKind.UNITS, ("user", "hf.service"), every)


def texts(bench: Bench, key: str) -> list[str]:
    return [frame.texts[key] for frame in bench.kinds("look") if key in frame.texts]


def errors(bench: Bench) -> list[str]:
    return [frame.error for frame in bench.kinds("error") if frame.source == "look"]


def word(pid: int, name: str) -> str:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(row.split()[1] for row in rows if row.startswith(f"{name}:"))


def looker(bench: Bench) -> int:
    """The child that looks: a python, whose parent is one of ours too."""
    assert bench.child is not None
    (pid,) = [pid for pid in bench.processes() if int(word(pid, "PPid")) == bench.child.pid]
    return pid


async def test_every_kind_is_answered(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "models/refs/main", "1bae0e10")
        write(bench.root / "home/dsv41.pause", "manual down\n")
        write(bench.root / "proc/stat", "btime 1761000000\n")
        write(bench.root / "proc/41/stat", "41 (bash) S 1 " + "0 " * 17 + "250 0")
        write(bench.root / "proc/41/cmdline", "bash\0/opt/watchdog.sh\0")
        program(bench.bin / "systemctl", "#!/bin/sh\nexit 9\n")
        await bench.start()
        bench.looking.ask(
            [
                Look("main:repo", LookKind.TREE, ("/models", "4", "100"), 0.2),
                file("main:pause", "~/home/dsv41.pause"),
                file("main:gaveup", "~/home/dsv41.gaveup"),
                Look("main:processes", LookKind.PROCESSES, ("watchdog.sh",), 0.2),
                Look("main:units", LookKind.UNITS, ("user", "hf.service"), 0.2),
            ]
        )
        keys = {"main:repo", "main:pause", "main:gaveup", "main:processes", "main:units"}
        await until(lambda: keys <= {key for frame in bench.kinds("look") for key in frame.texts}, "all answers")
    entries = {entry.path: entry for entry in parse_listing(texts(bench, "main:repo")[0]).entries}
    assert (entries["refs/main"].target, list(entries)) == ("1bae0e10", ["refs", "refs/main"])
    assert parse_answer(texts(bench, "main:pause")[0]).body == "manual down\n"
    assert texts(bench, "main:gaveup")[0] == "missing"
    (process,) = parse_processes(texts(bench, "main:processes")[0]) or ()
    assert (process.pid, process.command) == (41, "bash /opt/watchdog.sh")
    assert parse_units(texts(bench, "main:units")[0]).problem == "no systemctl", "only one of this host would count"
    assert errors(bench) == []


async def test_what_does_not_change_is_the_same_object_and_costs_nothing(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "log", "x" * 50_000)
        await bench.start()
        bench.looking.ask([file("log", "/log")])
        await until(lambda: len(texts(bench, "log")) >= 4, "four answers")
        sizes: list[int] = []
        feed = bench.reader.feed
        bench.reader.feed = lambda data, at: (sizes.append(len(data)), feed(data, at))[1]  # type: ignore[method-assign]
        before = len(texts(bench, "log"))
        await until(lambda: len(texts(bench, "log")) >= before + 3, "three more")
        assert sum(sizes) < 20_000
        same = texts(bench, "log")
        write(bench.root / "log", "x" * 50_000 + "more")
        await until(lambda: texts(bench, "log")[-1].endswith("more"), "the change")
        assert bench.reader.lost == 0
    assert all(text is same[0] for text in same)
    assert counts([frame.sequence for frame in bench.frames])


async def test_a_set_is_replaced_and_what_stays_keeps_its_answer(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        for name in ("a", "b", "c"):
            write(bench.root / name, name)
        await bench.start()
        bench.looking.ask([file("a", "/a"), file("b", "/b")])
        await until(lambda: texts(bench, "a") and texts(bench, "b"), "both")
        kept = texts(bench, "b")[0]
        bench.looking.ask([file("b", "/b"), file("a", "/c")])
        await until(lambda: texts(bench, "a")[-1].endswith("\nc"), "the key's new file")
        seen = len(bench.kinds("look"))
        await until(lambda: len(bench.kinds("look")) > seen + 3, "more")
        late = [frame for frame in bench.kinds("look")[seen:]]
        assert all(frame.texts.get("a", "\nc").endswith("\nc") for frame in late), "no late answer to the old question"
        assert texts(bench, "b")[-1] is kept
        bench.looking.ask([])
        seen = len(bench.kinds("node"))
        await until(lambda: len(bench.kinds("node")) > seen + 3, "time goes on")
        quiet = len(bench.kinds("look"))
        await until(lambda: len(bench.kinds("node")) > seen + 8, "time goes on")
        assert len(bench.kinds("look")) == quiet, "nothing is asked for"


async def test_each_has_its_own_clock(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "a", "a")
        await bench.start()
        bench.looking.ask([file("quick", "/a", 0.2), file("slow", "/a", 60.0)])
        await until(lambda: len(texts(bench, "quick")) >= 5, "five answers")
        assert len(texts(bench, "slow")) == 1


async def test_large_answers_pass_and_larger_ones_are_refused(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        for number in range(6):
            write(bench.root / f"log{number}", str(number) * 150_000)
        write(bench.root / "huge", "x" * 300_000)
        (bench.root / "zeros").write_bytes(bytes(150_000))
        await bench.start()
        looks = [Look(f"log{number}", LookKind.FILE, (f"/log{number}", "last", "262144")) for number in range(6)]
        more = [Look(name, LookKind.FILE, (f"/{name}", "last", "262144")) for name in ("huge", "zeros")]
        bench.looking.ask(looks + more)
        await until(lambda: {look.key for look in looks + more} <= {
            key for frame in bench.kinds("look") for key in frame.texts
        }, "all answers")  # fmt: skip
        assert bench.reader.lost == 0
    for number in range(6):
        assert parse_answer(texts(bench, f"log{number}")[0]).body == str(number) * 150_000
    assert texts(bench, "huge")[0] == "error the answer has 256 KiB, more than 192"
    assert texts(bench, "zeros")[0].startswith("error the answer is no text: ")


async def test_the_child_gives_way(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        program(bench.root / "bin/systemctl", HANGING.format(tmp_path))
        bench.path = f"{bench.root}/bin"
        await bench.start()
        bench.looking.ask([hang()])
        await until(lambda: (tmp_path / "asked").exists(), "it looks")
        pid = looker(bench)
        assert bench.child is not None
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, bench.child.pid) + 10)
        channel = {os.readlink(f"/proc/{bench.child.pid}/fd/{number}") for number in (0, 1)}
        held = {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)}
        assert not channel & held, "it does not hold the channel"


async def test_a_look_that_hangs_delays_no_memory_figure_and_is_killed(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "a", "a")
        program(bench.root / "bin/systemctl", HANGING.format(tmp_path))
        bench.path = f"{bench.root}/bin"
        await bench.start()
        bench.looking.ask([file("first", "/a"), hang(), file("behind", "/a")])
        await until(lambda: any("has not answered for" in words for words in errors(bench)), "it is reported")
        assert (tmp_path / "asked").read_text() == "x\n", "never two at once"
        assert texts(bench, "first"), "what came before it is good"
        assert not texts(bench, "behind")
        before = len(bench.kinds("node"))
        await until(lambda: len(bench.kinds("node")) >= before + 3, "node frames go on")
        await until(lambda: any("killed after 2 s" in words for words in errors(bench)), "it is killed")
        await until(lambda: texts(bench, "behind"), "the others go on")
        await until(lambda: len((tmp_path / "asked").read_text().split()) == 2, "it is asked again")
        answered = len(texts(bench, "behind"))
        await until(lambda: any("killed after 1 s" in words for words in errors(bench)), "and ended sooner")
        await until(lambda: len(texts(bench, "behind")) > answered + 2, "the others go on")
        bench.end_of_stdin()
        await until(lambda: bench.processes() == [], "sampler and children are gone")
    named = [frame.texts for frame in bench.kinds("error")]
    assert all(texts == {"key": "main:watchdog.units"} for texts in named)
    assert errors(bench)[0].startswith("main:watchdog.units (units user hf.service) has not answered for 1 s")
    assert bench.reader.lost == 0


async def test_one_that_hung_and_heals_is_answered_again(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        program(bench.root / "bin/systemctl", HANGING.format(tmp_path))
        bench.path = f"{bench.root}/bin"
        await bench.start()
        bench.looking.ask([hang()])
        await until(lambda: any("killed" in words for words in errors(bench)), "it is killed")
        program(bench.root / "new", "#!/bin/sh\necho Id=hf.service; echo ActiveState=active\n")
        (bench.root / "new").rename(bench.root / "bin/systemctl")
        await until(lambda: len(texts(bench, "main:watchdog.units")) >= 2, "it answers, and goes on")
    assert parse_units(texts(bench, "main:watchdog.units")[0]).items[0].active == "active"


async def test_a_stopped_child_is_killed(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "a", "a")
        program(
            bench.root / "bin/systemctl",
            f"#!/bin/sh\n[ -e {tmp_path}/go ] && exit\necho x >{tmp_path}/asked\nsleep 600",
        )
        bench.path = f"{bench.root}/bin"
        await bench.start()
        bench.looking.ask([hang(), file("behind", "/a")])
        await until(lambda: (tmp_path / "asked").exists(), "it looks")
        os.kill(looker(bench), signal.SIGSTOP)
        write(tmp_path / "go", "")
        await until(lambda: any("killed after 2 s" in words for words in errors(bench)), "it is killed")
        await until(lambda: texts(bench, "behind"), "and followed by another")


async def test_a_child_that_is_killed_from_outside_is_told(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        program(bench.root / "bin/systemctl", HANGING.format(tmp_path))
        bench.path = f"{bench.root}/bin"
        await bench.start()
        bench.looking.ask([hang()])
        await until(lambda: (tmp_path / "asked").exists(), "it looks")
        os.kill(looker(bench), signal.SIGKILL)
        await until(lambda: errors(bench), "it is told")
    assert errors(bench)[0] == "main:watchdog.units (units user hf.service): the look ended by signal 9"


async def test_one_child_stays_and_another_takes_its_place(tmp_path: Path) -> None:
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "a", "a")
        await bench.start()
        bench.looking.ask([file("a", "/a")])
        await until(lambda: len(texts(bench, "a")) >= 3, "answers")
        first = looker(bench)
        seen = len(texts(bench, "a"))
        await until(lambda: len(texts(bench, "a")) > seen + 2, "answers")
        assert looker(bench) == first
        bench.looking.ask([])
        seen = len(bench.kinds("node"))
        await until(lambda: len(bench.kinds("node")) > seen + 3, "it has nothing to do")
        os.kill(first, signal.SIGKILL)
        await until(lambda: first not in bench.processes(), "it is gone")
        bench.looking.ask([file("a", "/a")])
        seen = len(texts(bench, "a"))
        await until(lambda: len(texts(bench, "a")) > seen + 2, "another answers")
        assert looker(bench) != first
        assert errors(bench) == [], "nothing was asked for meanwhile: nobody needs to know"
        assert bench.child is not None
        os.kill(bench.child.pid, signal.SIGKILL)
        await until(lambda: bench.processes() == [], "it does not outlive the sampler")


@pytest.mark.parametrize("how", ["stdin", "kill", "term"])
async def test_nothing_is_left_behind(tmp_path: Path, how: str) -> None:
    """`kill` is kill -9 of the sampler itself, whose child then ends by its alarm, and systemctl by its own limit."""
    timings = Timings(beat_limit=30.0, slow_after=1.0, slow_limit=1.0)
    async with Bench(tmp_path, "python", timings=timings) as bench:
        write(bench.root / "a", "a")
        program(bench.root / "bin/systemctl", f"#!/bin/sh\necho x >>{tmp_path}/asked\nexec sleep 12\n")
        bench.path = f"{bench.root}/bin"
        await bench.start()
        bench.looking.ask([hang()])
        await until(lambda: (tmp_path / "asked").exists(), "it looks")
        assert bench.child is not None
        if how == "stdin":
            bench.end_of_stdin()
        else:
            os.kill(bench.child.pid, signal.SIGKILL if how == "kill" else signal.SIGTERM)
        await until(lambda: bench.processes() == [], "all gone", limit=40.0)


async def test_a_connection_that_is_behind_loses_nothing_and_blames_nobody(tmp_path: Path) -> None:
    """What nobody takes waits in the child; that it then takes longer than a look may is no fault of the look."""
    async with Bench(tmp_path, "python", rates=Rates(node=0.2, gpu=1)) as bench:
        for number in range(6):
            write(bench.root / f"log{number}", str(number) * 150_000)
        await bench.start(read=False)
        while not bench.frames:
            await bench.read_once()
        bench.looking.ask([Look(f"log{n}", LookKind.FILE, (f"/log{n}", "last", "150000"), 0.2) for n in range(6)])
        await asyncio.sleep(4.0)
        bench.resume()
        await until(lambda: all(texts(bench, f"log{n}") for n in range(6)), "all of it, after it healed")
        for number in range(6):
            write(bench.root / f"log{number}", "new")
        await until(lambda: all(texts(bench, f"log{n}")[-1].endswith("\nnew") for n in range(6)), "changes pass")
    assert list(bench.looking.looks) == list("123456"), "none was lost, or all would have been asked for anew"
    assert errors(bench) == []
    assert [len(texts(bench, "log0")[0]), texts(bench, "log5")[0][-9:]] == [len(texts(bench, "log1")[0]), "5" * 9]


async def test_a_lost_answer_is_asked_for_again(tmp_path: Path) -> None:
    """A frame that never arrived must not leave an old answer standing as the present one."""
    async with Bench(tmp_path, "python") as bench:
        write(bench.root / "a", "old")
        await bench.start()
        bench.looking.ask([file("a", "/a")])
        await until(lambda: texts(bench, "a"), "an answer")
        feed = bench.reader.feed
        dropped: list[bytes] = []

        def drop(data: bytes, at: float) -> None:
            if b"fresh" in data and not dropped:
                dropped.append(data)
                return
            feed(data, at)

        bench.reader.feed = drop  # type: ignore[method-assign]
        write(bench.root / "a", "fresh")
        await until(lambda: dropped, "the frame is lost")
        await until(lambda: texts(bench, "a")[-1].endswith("fresh"), "it comes again")
        assert bench.reader.lost >= 1


@pytest.mark.parametrize("flavour", SHELLS)
async def test_without_python_it_says_so_and_goes_on(tmp_path: Path, flavour: str) -> None:
    timings = Timings(beat_limit=10.0, slow_after=60.0, slow_limit=60.0)
    async with Bench(tmp_path, flavour, timings=timings) as bench:
        await bench.start()
        bench.looking.ask([file("a", "/a b\tc\\d"), hang()])
        await until(lambda: errors(bench), "it is refused")
        for _ in range(6):
            bench.write("beat\n")
        await until(lambda: len(errors(bench)) >= 2, "and again, later")
        bench.looking.ask([])
        first = bench.frames[-1].received
        while bench.frames[-1].received < first + 1.2 * timings.beat_limit:
            bench.write("beat\n")
            seen = len(bench.kinds("node"))
            await until(lambda seen=seen: len(bench.kinds("node")) > seen, "node frames go on")
        assert bench.processes(), "its heartbeats were seen"
        assert len(errors(bench)) == 2
        assert bench.reader.lost == 0
    assert errors(bench)[0] == "folders, files, processes and units: needs python3 on the host"


@pytest.mark.parametrize("row", ["1\ta\tfile", "1\ta\tfile\tx\t/a", "garbage", ""])
async def test_a_row_that_is_none_is_told(tmp_path: Path, row: str) -> None:
    async with Bench(tmp_path, "python") as bench:
        await bench.start()
        await until(lambda: bench.kinds("facts"), "it runs")
        bench.write(f"noise\nlook 1\n{row}\nbeat\n")
        await until(lambda: errors(bench), "it is told")
        seen = len(bench.kinds("node"))
        await until(lambda: len(bench.kinds("node")) > seen + 1, "it goes on")
    assert errors(bench)[0].startswith("cannot be looked at:")
