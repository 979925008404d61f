"""Commands over a real ssh server that runs real shells."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ssh_host import SshHost, eventually, up

from console.reach.sessions import Sessions
from console.readings.link import LinkStatus
from console.readings.output import Outcome

SHELLS = [("/bin/bash", "-c"), ("/bin/dash", "-c"), ("/bin/sh", "-c")]

FISH_LIKE = """\
#!/bin/sh
# a login shell that, like fish, knows no POSIX assignment: anything but a plain word or two is refused
case $2 in
*=*|*\\$*|*\\'*|*\\;*) echo "fish: Unsupported use of '='. In fish, please use 'set v 1'." >&2; exit 127 ;;
esac
exec /bin/sh -c "$2"
"""
REFUSING = """\
#!/bin/sh
echo 'This account is currently not available.'
exit 1
"""


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("shell", SHELLS)
async def test_output_status_and_errors_come_back_exactly(shell: tuple[str, str]) -> None:
    async with SshHost(shell=shell) as host, up(host.link()) as link:
        done = await link.run(["printf", "%s\n", "a b", "it's", 'say "x"', "back\\slash", "$HOME `id` !"])
        failed = await link.run(["/bin/sh", "-c", "echo partial; echo oh no >&2; exit 3"])
        missing = await link.run(["no-such-program"])
        fed = await link.run(["cat"], stdin="one\ntwo without end")
    assert done.ok
    assert done.stdout == 'a b\nit\'s\nsay "x"\nback\\slash\n$HOME `id` !\n'
    assert (failed.outcome, failed.exit_status, failed.stdout, failed.stderr) == (
        Outcome.FAILED, 3, "partial\n", "oh no",
    )  # fmt: skip
    assert (missing.outcome, missing.exit_status) == (Outcome.FAILED, 127)
    assert fed.stdout == "one\ntwo without end"
    assert (host.logins, set(host.commands)) == (1, {"exec /bin/sh"})


async def test_any_argument_arrives_as_it_was() -> None:
    words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40)

    async with SshHost(shell=("/bin/dash", "-c")) as host, up(host.link()) as link:
        loop = asyncio.get_running_loop()

        @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(words, min_size=1, max_size=4))
        def check(arguments: list[str]) -> None:
            work = asyncio.run_coroutine_threadsafe(link.run(["printf", "%s|", *arguments], limit=20), loop)
            answer = work.result(30)
            assert answer.ok
            assert answer.stdout == "".join(f"{word}|" for word in arguments)

        await asyncio.to_thread(check)


@pytest.mark.parametrize("argv", [[], ["a\0b"]])
async def test_a_command_that_cannot_be_sent_is_the_callers_fault(argv: list[str]) -> None:
    async with SshHost() as host, up(host.link()) as link:
        with pytest.raises(ValueError, match="command"):
            await link.run(argv)


async def test_a_shell_like_fish_is_survived(tmp_path: Path) -> None:
    shell = program(tmp_path / "fishlike", FISH_LIKE)
    async with SshHost(shell=(shell, "-c")) as host, up(host.link()) as link:
        answer = await link.run(["/bin/sh", "-c", "v=1; echo $v"])
        frame = await anext(aiter(link.frames()))
    assert answer.stdout == "1\n"
    assert frame.kind == "facts"


async def test_a_login_shell_that_refuses_says_so(tmp_path: Path) -> None:
    shell = program(tmp_path / "nologin", REFUSING)
    async with SshHost(shell=(shell, "-c")) as host, up(host.link()) as link:
        answer = await link.run(["true"])
        assert link.state.status is LinkStatus.UP
        frames = link.frames()
        frame = await anext(frames)
        await frames.aclose()
    assert (answer.outcome, answer.exit_status) == (Outcome.REJECTED_BY_SHELL, 1)
    assert "not available" in answer.hint
    assert frame.kind == "error"
    assert frame.source == "sampler"
    assert "not available" in frame.error


async def test_a_session_that_ends_before_anything_is_sent_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Sessions._open

    async def slowly(sessions: Sessions, command: str, operator: bool) -> Any:
        process = await opened(sessions, command, operator)
        await process.wait_closed()
        return process

    monkeypatch.setattr(Sessions, "_open", slowly)
    shell = program(tmp_path / "nologin", REFUSING)
    async with SshHost(shell=(shell, "-c")) as host, up(host.link()) as link:
        answer = await link.run(["true"])
        frames = link.frames()
        frame = await anext(frames)
        await frames.aclose()
        lost = asyncio.create_task(link.run(["true"]))
        await eventually(lambda: len(host.commands) == 3, "a session of the third command")
        host.cut()
        nothing_sent = await lost
    assert (answer.outcome, answer.exit_status) == (Outcome.REJECTED_BY_SHELL, 1)
    assert (frame.kind, frame.source) == ("error", "sampler")
    assert "not available" in frame.error
    assert nothing_sent.outcome in (Outcome.REJECTED_BY_SHELL, Outcome.UNREACHABLE)


async def test_noise_of_start_up_files_is_no_part_of_an_answer(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("echo MemAvailable: 1 kB; echo warning >&2\n")
    env = {"BASH_ENV": str(tmp_path / ".bashrc")}
    async with SshHost(env=env, before=b"\x1b]0;title\x07motd\n", after=b"bye\n") as host, up(host.link()) as link:
        answer = await link.run(["echo", "MemAvailable: 2 kB"])
        frame = await anext(aiter(link.frames()))
    assert (answer.stdout, answer.stderr) == ("MemAvailable: 2 kB\n", "")
    assert frame.kind == "facts"


async def test_a_lost_connection_is_unknown_and_comes_back(tmp_path: Path) -> None:
    started = tmp_path / "started"
    async with SshHost() as host, up(host.link()) as link:
        task = asyncio.create_task(
            link.run(["/bin/sh", "-c", f"echo '  rank 3 launched'; touch {started}; printf '  rank 2 lau'; sleep 60"])
        )
        await eventually(started.exists, "the command runs")
        await link.run(["true"])  # answered on the same connection: what was said before is here by now
        host.cut()
        answer = await task
        await eventually(lambda: link.connections == 2 and link.state.status is LinkStatus.UP, "a new connection")
        after = await link.run(["echo", "again"])
    assert (answer.outcome, answer.exit_status, answer.ok) == (Outcome.UNKNOWN, None, False)
    assert answer.last_line == "  rank 3 launched"
    assert after.stdout == "again\n"
    assert len(host.commands) == 3, "the lost command was not run a second time"


async def test_out_of_time_is_unknown_and_ends_the_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with SshHost() as host, up(host.link()) as link:
        answer = await link.run(["/bin/sh", "-c", f"echo $$ >{pid}; echo begun; exec sleep 60"], limit=1.0)
        await eventually(lambda: not alive(pid), "the program is gone")
        await eventually(lambda: host.open_sessions == 0, "its session is closed")
        assert (await link.run(["true"])).ok
    assert (answer.outcome, answer.stdout, answer.last_line) == (Outcome.UNKNOWN, "begun\n", "begun")


@pytest.mark.parametrize("how", ["cancel", "close", "cut"])
async def test_nothing_is_left_running_on_the_host(tmp_path: Path, how: str) -> None:
    pid = tmp_path / "pid"
    async with SshHost() as host:
        link = host.link()
        await link.start()
        task = asyncio.create_task(link.run(["/bin/sh", "-c", f"echo $$ >{pid}; exec sleep 60"], limit=30.0))
        await eventually(lambda: pid.exists() and pid.read_text().strip(), "the program runs")
        if how == "cancel":
            task.cancel()
        elif how == "close":
            await link.close()
        else:
            host.cut()
        await asyncio.gather(task, return_exceptions=True)
        await eventually(lambda: not alive(pid), "the program is gone")
        await eventually(lambda: host.running == 0, "its shells are gone")
        await link.close()


async def test_a_child_that_keeps_stdout_open_does_not_hold_the_answer_up() -> None:
    async with SshHost() as host, up(host.link()) as link:
        answer = await link.run(["/bin/sh", "-c", "sleep 30 & echo started"], limit=20.0)
    assert answer.ok
    assert answer.stdout == "started\n"


async def test_a_flood_is_cut_and_the_status_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.reach.exchange.MOST_BYTES", 100_000)
    async with SshHost() as host, up(host.link()) as link:
        answer = await link.run([sys.executable, "-c", "print('x' * 3000000)"], limit=30.0)
    assert answer.exit_status == 0
    assert len(answer.stdout) <= 100_000
    assert "cut off" in answer.hint


async def test_a_program_killed_by_a_signal_is_failed() -> None:
    async with SshHost() as host, up(host.link()) as link:
        inner = await link.run(["/bin/sh", "-c", "kill -KILL $$"])
    killed = ("/bin/sh", "-c", "kill -KILL $$")
    async with SshHost(shell=killed) as host, up(host.link()) as link:
        outer = await link.run(["true"])
    assert (inner.outcome, inner.exit_status) == (Outcome.FAILED, 137)
    assert (outer.outcome, outer.exit_status, outer.signal) == (Outcome.FAILED, None, "KILL")


async def test_four_sessions_answer_twelve_requests() -> None:
    async with SshHost(sessions=4) as host, up(host.link()) as link:
        answers = await asyncio.gather(*(link.run(["echo", str(n)], limit=60.0) for n in range(12)))
        assert link.state.status is LinkStatus.UP
    assert [answer.stdout for answer in answers] == [f"{n}\n" for n in range(12)]
    assert host.refused > 0
    assert host.highest == 4
    assert host.logins == 1


async def test_a_server_of_one_session_answers_one_after_another_and_not_beside_a_stream() -> None:
    async with SshHost(sessions=1) as host, up(host.link()) as link:
        answers = await asyncio.gather(*(link.run(["echo", str(n)], limit=60.0) for n in range(4)))
        frames = link.frames()
        assert (await anext(frames)).kind == "facts"
        beside = await link.run(["true"], limit=1.0)
        await frames.aclose()
        after = await link.run(["true"], limit=60.0)
    assert [answer.stdout for answer in answers] == [f"{n}\n" for n in range(4)]
    assert beside.outcome is Outcome.OUR_LIMIT
    assert after.ok
    assert (host.highest, host.logins) == (1, 1)


async def test_one_session_is_kept_for_the_operator(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    wait = ["/bin/sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done"]
    async with SshHost() as host, up(host.link()) as link:
        busy = [asyncio.create_task(link.run(wait, limit=60.0)) for _ in range(12)]
        await eventually(lambda: host.open_sessions == 7, "seven run, five wait")
        refused = await link.run(["echo", "ordinary"], limit=0.5)
        mine = await link.run(["echo", "mine"], limit=30.0, operator=True)
        gate.touch()
        answers = await asyncio.gather(*busy)
    assert refused.outcome is Outcome.OUR_LIMIT
    assert "not sent" in refused.hint
    assert mine.stdout == "mine\n"
    assert all(answer.ok for answer in answers)
    assert host.highest == 8
    assert host.refused == 0


async def test_bytes_that_are_no_text_do_not_end_the_connection() -> None:
    async with SshHost() as host, up(host.link()) as link:
        answer = await link.run(["printf", r"\377\376 ok\n"])
        assert (await link.run(["true"])).ok
    assert answer.stdout == "\ufffd\ufffd ok\n"
    assert host.logins == 1


async def test_before_the_first_login_a_command_waits() -> None:
    async with SshHost() as host:
        link = host.link()
        waiting = asyncio.create_task(link.run(["echo", "late"], limit=30.0))
        await asyncio.sleep(0)
        async with up(link):
            assert (await waiting).stdout == "late\n"


async def test_after_close_everything_answers_unreachable() -> None:
    async with SshHost() as host:
        link = host.link()
        async with up(link):
            assert (await link.run(["true"])).ok
        answer = await link.run(["true"])
        await link.close()
        assert [frame async for frame in link.frames()] == []
    assert answer.outcome is Outcome.UNREACHABLE
    assert len(asyncio.all_tasks()) == 1, "no task is left"


def alive(file: Path) -> bool:
    """Whether the process whose number the file holds runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{int(file.read_text())}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return False
    return state != "Z"


def test_constructing_a_link_imports_no_asyncssh() -> None:
    code = (
        "import sys; from console.reach.links import *; from console.fleet.inventory import Host, Rates;"
        "from console.reach.engine_http import EngineHttp;"
        "make_link('n', Host(ssh='n'), Rates(), limits=HandshakeLimits());"
        "make_link('l', Host(ssh='local'), Rates(), limits=HandshakeLimits());"
        "EngineHttp('http://127.0.0.1:1', None);"
        "print(sorted({'asyncssh', 'httpx', 'httpcore', 'psutil', 'cryptography'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
