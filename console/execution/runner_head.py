"""The runner as a program of the head node: its journal on the disk, commands here and over ssh from here, signals.
Standard library only, nothing newer than Python 3.8: a part of the one file that runs on hosts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from console.execution.runner import Runner
from console.execution.runner_base import DONE, FENCED, STOPPED, Done, Fenced, JournalLost, last_line
from console.execution.runner_docker import Answers
from console.execution.runner_ssh import Shared

EXITS = {DONE: 0, FENCED: 4}
ALREADY, CANNOT = 3, 5
"""Exit statuses: another runner carries it out; the journal cannot be written."""
SHELL = "exec /bin/sh"
"""All that a login shell of any kind gets to read; the command travels on its standard input."""


class FileJournal:
    """A journal of one JSON object a line, each on the disk before `write` returns."""

    def __init__(self, path: str) -> None:
        """Reads what is there and cuts off a last line that was never finished. Raises JournalLost."""
        try:
            new = not os.path.exists(path)
            self.path = path
            self._file = _unlinked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if new:
                with contextlib.suppress(OSError):
                    os.fchmod(self._file, 0o666)  # another account may have to go on with it
                _sync_folder(path)
            with open(path, "rb", opener=_unlinked) as file:
                data = file.read()
            whole = data.rfind(b"\n") + 1
            if whole != len(data):
                os.ftruncate(self._file, whole)
        except OSError as error:
            raise JournalLost(f"{path}: {error.strerror}") from error
        self.lines: list[dict[str, Any]] = list(parsed(data[:whole].decode("utf-8", "replace")))
        self._size = whole

    def write(self, line: dict[str, Any]) -> None:
        """All of the line is on the disk, or none of it is there. Raises JournalLost."""
        data = (json.dumps(line) + "\n").encode()
        try:
            if os.write(self._file, data) != len(data):
                raise OSError(28, "No space left on device")
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise JournalLost(f"the journal cannot be written: {error.strerror}") from error
        self._size += len(data)
        self.lines.append(line)


def parsed(text: str) -> Iterator[dict[str, Any]]:
    """The lines of a journal, each once; damaged ones are left out."""
    newest = 0
    for row in text.splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(row)
            if isinstance(line, dict) and isinstance(line.get("seq"), int) and line["seq"] > newest:
                newest = line["seq"]
                yield line


def _unlinked(path: str, flags: int) -> int:
    """An opener for files of a folder that others may write to: a link there is refused. Raises OSError."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Shell:
    """Hosts as the head reaches them: itself, and the others over its own ssh."""

    def __init__(self, reach: dict[str, list[str]]) -> None:
        """`reach`: what stands before a command for each host; empty for this one."""
        self._reach = reach
        self._answers, self._shared = Answers(), Shared()
        self._may_end: set[subprocess.Popen[bytes]] = set()

    def run(self, host: str, argv: Sequence[str], stdin: str, limit: float, question: bool = False) -> Done:
        """Run one command there; a status that was not received is None."""
        if host not in self._reach:
            return Done(127, "", f"the head has no way to {host}")
        prefix = self._reach[host]
        if not prefix:
            return self._run(list(argv), stdin, limit, may_end=True)
        mark = os.urandom(12).hex()
        done = self._run([*self._shared.way(host, prefix), SHELL], framed(argv, stdin, mark), limit, may_end=question)
        return unframed(done, mark)

    def close(self) -> None:
        """Let go of the other hosts."""
        self._shared.close()

    def interrupt(self) -> None:
        """Break off what may be: a remote command is given its time, for nobody could tell how it ended."""
        for child in list(self._may_end):
            _kill(child, signal.SIGTERM)

    def _run(self, argv: list[str], stdin: str, limit: float, *, may_end: bool) -> Done:
        try:
            child = self._answers.begin(argv, stdin)
        except OSError as error:
            return Done(127, "", f"{argv[0]}: {error.strerror}")
        if may_end:
            self._may_end.add(child)
        try:
            out, err = child.communicate(stdin.encode(), timeout=limit)
        except subprocess.TimeoutExpired:
            out, err = _give_up(child)
            return Done(None, _text(out), f"no end after {limit:.0f} s")
        finally:
            self._may_end.discard(child)
        status = child.returncode
        return Done(status if status >= 0 else 128 - status, _text(out), _text(err))


def framed(argv: Sequence[str], stdin: str, mark: str) -> str:
    """A script that runs one command between marks, so that start-up files and lost connections are told apart."""
    command = " ".join(shlex.quote(word) for word in argv)
    feed = f"printf %s {shlex.quote(stdin)} | {command}" if stdin else f"{command} </dev/null"
    return f"echo; echo {mark}\n{feed}\nrc=$?\necho; echo {mark} $rc\nexit $rc\n"


def unframed(done: Done, mark: str) -> Done:
    """The command's own output and status; status None where its end was not seen."""
    start, end = done.out.find(f"\n{mark}\n"), done.out.rfind(f"\n{mark} ")
    if start < 0 or end < 0:
        return Done(None, "", last_line(done.err) or "the connection was lost")
    body = done.out[start + len(mark) + 2 : max(end, start + len(mark) + 2)]
    code = done.out[end + len(mark) + 2 :].split("\n", 1)
    if len(code) < 2 or not code[0].isdigit():
        return Done(None, body, "the connection was lost")
    return Done(int(code[0]), body, done.err)


def _give_up(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """End a command that takes too long, and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _kill(child, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=1.0)
    return b"", b""  # a grandchild in a session of its own still holds the pipes


def _kill(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


# -- the program


def _operation(plan: str) -> dict[str, Any]:
    """The operation file. Raises OSError, and ValueError for what is none."""
    with open(plan, encoding="utf-8", opener=_unlinked) as file:
        found = json.load(file)
    if not isinstance(found, dict):
        raise ValueError("plan.json is no operation file")
    return found


def carry_out(folder: str) -> int:
    """Carry out, or go on with, the operation in a folder. Returns the exit status."""
    plan, before = os.path.join(folder, "plan.json"), os.umask(0)
    try:
        running = _unlinked(os.path.join(folder, "running"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        print(f"{folder}/running: {error.strerror}", file=sys.stderr)
        return CANNOT
    finally:
        os.umask(before)
    try:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("another runner carries it out", file=sys.stderr)
        return ALREADY
    try:
        operation = _operation(plan)
    except (OSError, ValueError) as error:
        print(f"{plan}: {error}", file=sys.stderr)
        return CANNOT

    def reload() -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            return _operation(plan)
        return dict(operation)

    try:
        journal = FileJournal(os.path.join(folder, "journal.jsonl"))
        ways = {host: way for host, way in operation["reach"].items() if way or host == operation["head"]}
        shell = Shell(ways)
        runner = Runner(operation, shell, journal, reload=reload)
        state = _until_ended(runner, folder)
        shell.close()
    except JournalLost as lost:
        print(lost, file=sys.stderr)
        return CANNOT
    print(state)
    if state == STOPPED:  # told by a signal: whoever reads how we ended is to see just that
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    return EXITS.get(state, 1)


def _until_ended(runner: Runner, folder: str) -> str:
    """Run in a thread, so that a signal never interrupts half a write. Raises JournalLost."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    result: list[Any] = []

    def work() -> None:
        try:
            result.append(runner.run())
        except BaseException as error:  # handed to the main thread, which raises it
            result.append(error)
        finally:
            os.write(theirs, b"\0")

    worker = threading.Thread(target=work)
    worker.start()
    while os.read(ours, 1) != b"\0":
        if not os.path.exists(os.path.join(folder, "stop")) and host_goes_down():
            os._exit(CANNOT)  # nobody wants it stopped: it can be carried on once the host is up again
        why, steps, epoch = _told(folder)
        runner.stop(why, steps=steps, epoch=epoch)
    worker.join()
    if isinstance(result[0], Fenced):
        return FENCED
    if isinstance(result[0], BaseException):
        raise result[0]
    return str(result[0])


def host_goes_down() -> bool:
    """Whether the signal came because the head is being shut down or restarted."""
    if os.path.exists("/run/nologin"):
        return True
    asked = Shell({"": []}).run("", ["systemctl", "is-system-running"], "", 2.0)
    return asked.out.strip() == "stopping"


def _told(folder: str) -> tuple[str, bool, int | None]:
    """What whoever stops us left in the file `stop`: `steps 7 ana` ends what runs as units too, under epoch 7;
    `runner 7 ana` leaves that running."""
    words = ""
    stop = os.path.join(folder, "stop")
    with contextlib.suppress(OSError), open(stop, encoding="utf-8", errors="replace", opener=_unlinked) as file:
        words = file.read(1000).strip()[:200]
    what, _, rest = words.partition(" ")
    epoch, _, who = rest.partition(" ")
    return (f"stopped by {who}" if who else "told to stop"), what == "steps", int(epoch) if epoch.isdigit() else None


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "run":
        sys.exit("usage: runner.py run FOLDER")
    sys.exit(carry_out(sys.argv[2]))
