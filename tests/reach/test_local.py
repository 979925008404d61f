"""This machine through the same interface: frames, commands, streams, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from sampler_bench import MEMINFO, machine, program, until

from console.fleet.inventory import Host, Rates
from console.reach import local_texts
from console.reach.limits import HandshakeLimits, Timings
from console.reach.link import Frame, ReachError, Reason
from console.reach.links import make_link
from console.reach.local import LocalLink
from console.readings.facts import parse_facts
from console.readings.link import LinkStatus
from console.readings.look import Look, LookKind
from console.readings.memory import parse_memory
from console.readings.output import Outcome

FAST = Rates(node=0.2, gpu=1)


@asynccontextmanager
async def local(timings: Timings | None = None) -> AsyncIterator[LocalLink]:
    link = LocalLink("here", FAST, timings=timings)
    await link.start()
    try:
        yield link
    finally:
        await link.close()


async def collect(link: LocalLink, enough: int, kind: str) -> list[Frame]:
    frames = []
    async with asyncio.timeout(30):
        async for frame in link.frames():
            frames.append(frame)
            if sum(frame.kind == kind for frame in frames) >= enough:
                break
    return frames


def test_a_local_host_is_made_by_name() -> None:
    link = make_link("here", Host(ssh="local"), FAST, limits=HandshakeLimits())
    assert isinstance(link, LocalLink)
    assert link.state.status is LinkStatus.CONNECTING


async def test_frames_are_those_of_a_sampler() -> None:
    async with local() as link:
        frames = await collect(link, 3, "node")
        assert link.state.status is LinkStatus.UP
    facts = parse_facts(frames[0].texts)
    assert (facts.cpus, facts.hostname) == (psutil.cpu_count(), os.uname().nodename)
    assert [frame.sequence for frame in frames] == list(range(1, len(frames) + 1))
    memory = parse_memory(frames[1].texts["meminfo"], numa=frames[1].texts.get("numa", ""))
    assert memory.total == psutil.virtual_memory().total
    await until(lambda: len(asyncio.all_tasks()) == 1, "no task is left")


async def test_texts_come_from_the_files(tmp_path: Path) -> None:
    machine(tmp_path)
    texts = local_texts.node_texts(str(tmp_path))
    assert texts["meminfo"] == MEMINFO
    assert texts["numa"].startswith("node 0 cpulist 0-19\nNode 0 MemTotal:")
    assert "node 1" not in texts["numa"]
    with pytest.raises(OSError, match="meminfo"):
        local_texts.node_texts(str(tmp_path / "nowhere"))


def test_where_there_is_no_proc_psutil_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    texts = local_texts.node_texts()
    memory = parse_memory(texts["meminfo"])
    assert memory.total == psutil.virtual_memory().total // 1024 * 1024
    assert memory.available <= memory.total
    assert "Dirty" not in texts["meminfo"], "what the system does not say is absent"


async def test_commands(tmp_path: Path) -> None:
    async with local() as link:
        done = await link.run(["printf", "%s|", "it's", "$HOME"])
        failed = await link.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"])
        fed = await link.run(["cat"], stdin="a\nb")
        missing = await link.run(["no-such-program"])
        forbidden = await link.run([str(tmp_path)])
        killed = await link.run(["/bin/sh", "-c", "kill -KILL $$"])
        with pytest.raises(ValueError, match="command"):
            await link.run([])
    assert (done.ok, done.stdout) == (True, "it's|$HOME|")
    assert (failed.outcome, failed.exit_status, failed.stdout, failed.stderr) == (Outcome.FAILED, 3, "out\n", "err")
    assert fed.stdout == "a\nb"
    assert (missing.outcome, missing.exit_status) == (Outcome.FAILED, 127)
    assert (forbidden.outcome, forbidden.exit_status) == (Outcome.FAILED, 126)
    assert (killed.outcome, killed.signal, killed.exit_status) == (Outcome.FAILED, "KILL", None)


@pytest.mark.parametrize("how", ["limit", "cancel", "close"])
async def test_nothing_is_left_behind(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 600 & echo $$ $! >{pids}; echo begun; wait"
    link = LocalLink("here", FAST)
    await link.start()
    task = asyncio.create_task(link.run(["/bin/sh", "-c", script], limit=1.0 if how == "limit" else 60.0))
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "it runs")
    numbers = [int(word) for word in pids.read_text().split()]
    if how == "cancel":
        task.cancel()
    elif how == "close":
        await link.close()
    (answer,) = await asyncio.gather(task, return_exceptions=True)
    await until(lambda: not any(psutil.pid_exists(number) for number in numbers), "both are gone")
    await link.close()
    if how == "limit":
        assert not isinstance(answer, BaseException)
        assert (answer.outcome, answer.stdout) == (Outcome.UNKNOWN, "begun\n")


async def test_nvidia_smi_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "nvidia-smi", "#!/bin/sh\necho '0, NVIDIA GB10'\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with local() as link:
        frames = await collect(link, 2, "gpu")
    assert [frame.texts for frame in frames if frame.kind == "gpu"] == [{"csv": "0, NVIDIA GB10\n"}] * 2


async def test_an_nvidia_smi_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "nvidia-smi", f"#!/bin/sh\ntrap '' TERM\necho $$ >>{tmp_path}/pids\nexec sleep 600\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with local(Timings(slow_after=0.5, slow_limit=1.5)) as link:
        frames = await collect(link, 2, "error")
    errors = [frame.error for frame in frames if frame.kind == "error"]
    assert "nvidia-smi has not answered for" in errors[0]
    assert "killed after" in errors[1] or "has not answered" in errors[1]
    assert sum(frame.kind == "node" for frame in frames) >= 3, "it delays nothing"
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    await until(lambda: not any(psutil.pid_exists(pid) for pid in pids), "gone with the link")


async def test_streams_and_sockets(tmp_path: Path) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    async with local() as link:
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await link.open_tcp("127.0.0.1", port)
            assert await reader.read() == b"hello\n"
            writer.close()
        with pytest.raises(ReachError) as refused:
            await link.open_tcp("127.0.0.1", port)
        async with await asyncio.start_unix_server(greet, tmp_path / "s"):
            async with link.forward_unix(str(tmp_path / "s")) as path:
                assert path == tmp_path / "s"
        with pytest.raises(ReachError) as absent:
            async with link.forward_unix(str(tmp_path / "none")):
                pass
    assert refused.value.reason is Reason.REFUSED
    assert absent.value.reason is Reason.NOT_FOUND


async def test_close_ends_the_frames_and_says_so() -> None:
    link = LocalLink("here", FAST)
    await link.start()
    task = asyncio.create_task(collect(link, 1000, "node"))
    await asyncio.sleep(0.3)
    await link.close()
    async with asyncio.timeout(60):
        assert await task
    assert link.state.status is LinkStatus.DOWN
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL


async def test_a_source_that_fails_oddly_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd() -> dict[str, str]:
        raise IndexError("a row without a value")

    monkeypatch.setattr("console.reach.local.node_texts", odd)
    link = LocalLink("here", Rates())
    await link.start()
    async with asyncio.timeout(20):
        with pytest.raises(IndexError, match="a row without a value"):
            async for frame in link.frames():
                assert frame.kind == "facts"
    await link.close()


async def test_looks_at_this_machine(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\n")
    log = Look("log", LookKind.FILE, (str(tmp_path / "log"), "last", "100"), 0.1)
    frames: list[Frame] = []

    def texts(key: str) -> list[str]:
        return [frame.texts[key] for frame in frames if frame.kind == "look" and key in frame.texts]

    async with local() as link:
        link.look([log, Look("tree", LookKind.TREE, (str(tmp_path), "1", "10"), 60.0)])
        task = asyncio.create_task(gather(link, frames))
        await until(lambda: len(texts("log")) >= 3 and texts("tree"), "answers")
        same = texts("log")
        (tmp_path / "log").write_text("two\n")
        await until(lambda: texts("log")[-1].endswith("two\n"), "the change")
        link.look([log])
        with pytest.raises(ValueError, match="a key of its own"):
            link.look([log, log])
        link.look([Look("log", LookKind.FILE, (str(tmp_path / "none"), "last", "100"), 0.1)])
        await until(lambda: texts("log")[-1] == "missing", "another set")
        assert link.state.status is LinkStatus.UP
    await task
    assert same[0].endswith("one\n")
    assert all(text is same[0] for text in same)
    assert len(texts("tree")) == 1, "each has its own clock"


async def gather(link: LocalLink, frames: list[Frame]) -> None:
    async for frame in link.frames():
        frames.append(frame)


async def test_a_look_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread on a dead mount cannot be ended: it is never followed by a second, and holds up nothing but looks."""
    released = threading.Event()
    asked: list[str] = []

    def answer(kind: str, arguments: list[str]) -> str:
        asked.append(arguments[0])
        if arguments[0] == "/dead":
            released.wait(60)
        return "ok size=0"

    monkeypatch.setattr("console.reach.survey_host.answer", answer)
    frames: list[Frame] = []
    looks = [Look(name, LookKind.FILE, (f"/{name}", "last", "100"), 0.1) for name in ("dead", "behind")]
    link = LocalLink("here", FAST, timings=Timings(slow_after=0.3))
    await link.start()
    link.look(looks)
    task = asyncio.create_task(gather(link, frames))
    await until(lambda: sum(frame.source == "look" for frame in frames) >= 2, "it is told, and told again")
    before = sum(frame.kind == "node" for frame in frames)
    await until(lambda: sum(frame.kind == "node" for frame in frames) > before + 2, "memory figures go on")
    errors = [frame for frame in frames if frame.kind == "error"]
    assert errors[0].texts == {"key": "dead"}
    assert errors[0].error.startswith("dead (file /dead last 100) has not answered for 0 s")
    assert asked == ["/dead"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    task = asyncio.create_task(gather(link, frames))
    await until(lambda: len([frame for frame in frames if frame.source == "look"]) > len(errors), "told again")
    assert asked == ["/dead"], "a new stream starts no second one"
    released.set()
    await until(lambda: any("behind" in frame.texts for frame in frames), "the others go on")
    await link.close()
    await task


async def test_a_look_that_fails_oddly_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(kind: str, arguments: list[str]) -> str:
        raise RecursionError("too deep")

    monkeypatch.setattr("console.reach.survey_host.answer", answer)
    async with local() as link:
        link.look([Look("a", LookKind.FILE, ("/a", "last", "100"))])
        frames = await collect(link, 1, "look")
    assert frames[-1].texts == {"a": "error RecursionError: too deep"}
