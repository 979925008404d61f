"""Answers questions of our scripts on the runner's own host about its containers, so that no docker program has to be
started for each of them. Standard library only, nothing newer than Python 3.8: a part of the one file for hosts.

A script (lib.sh) writes one line into descriptor FD, with tabs between its words: socket, `look` or `top`, container,
and for `look` what it wants to know, written as for `docker inspect --format`. It reads one line: `0 TEXT`, `1 ` for no
such container, `2 WHY` where it is not known, `-` where it has to ask docker itself. Nothing here changes anything.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

FD = 7
"""A plain shell can name descriptors of one digit alone."""
SAYS = "LANESWAP_DOCKER"
"""The variable that tells a script so; scripts that do not know it get no descriptor."""
DOCKER_LIMIT = 20.0
"""Seconds for one answer, as scripts give the docker program."""
MOST_DOCKER = 4 << 20
"""Bytes of one answer."""
_FIELD = re.compile(r"\{\{((?:\.\w+)+)\}\}")


class Answers:
    """Begins children, with a way to ask where they know one."""

    def __init__(self) -> None:
        """Keeps FD free for it from now on; where something else has it, children ask docker themselves."""
        self._spawning = threading.Lock()
        empty = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._kept = fcntl.fcntl(empty, fcntl.F_DUPFD_CLOEXEC, FD)
        self._empty = empty

    def begin(self, argv: Sequence[str], stdin: str) -> subprocess.Popen[bytes]:
        """Start a child in a session of its own, its three streams piped. Raises OSError."""
        pipe = subprocess.PIPE
        given: Any = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "start_new_session": True}
        if self._kept != FD or SAYS not in stdin:
            return subprocess.Popen(list(argv), **given)  # noqa: S603
        ours, theirs = socket.socketpair()
        with self._spawning, theirs:
            try:
                os.dup2(theirs.fileno(), FD, inheritable=True)
                environment = {**os.environ, SAYS: str(FD)}
                child = subprocess.Popen(list(argv), pass_fds=(FD,), env=environment, **given)  # noqa: S603
            except OSError:
                ours.close()
                raise
            finally:
                os.dup2(self._empty, FD, inheritable=False)
        threading.Thread(target=_serve, args=(ours,), daemon=True).start()
        return child


def _serve(end: socket.socket) -> None:
    """Until nobody is left to ask."""
    with end, contextlib.suppress(OSError), end.makefile("rb") as lines:
        for line in lines:
            end.sendall((told(line.decode("utf-8", "replace").rstrip("\n")) + "\n").encode())


def told(request: str) -> str:
    """The answer to one line."""
    path, verb, container, *rest = [*request.split("\t"), "", ""]
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", container) or verb not in ("look", "top"):
        return "-"
    question = "json" if verb == "look" else "top?ps_args=-eo%20pid"
    try:
        status, body = _get(path, f"/containers/{container}/{question}")
        found = json.loads(body) if status == 200 else {}
        if status == 404:
            return "1 "
        if status != 200:
            return f"2 docker says {status}"
        said = _filled(rest[0], found) if verb == "look" else " ".join(row[0] for row in found["Processes"])
    except socket.timeout:  # noqa: UP041 - one name only since Python 3.10
        return "2 docker does not answer"
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return "-"
    return "0 " + re.sub(r"[\x00-\x1f]", " ", said)[:2000]


def _filled(form: str, found: dict[str, Any]) -> str:
    """As `--format` fills it in. Raises KeyError and TypeError for what is not there."""

    def value(match: Any) -> str:
        one: Any = found
        for key in match[1].split(".")[1:]:
            one = one[key]
        if not isinstance(one, (str, int)):
            raise TypeError(match[1])
        return str(one).lower() if isinstance(one, bool) else str(one)

    text = _FIELD.sub(value, form)
    if "{{" in _FIELD.sub("", form):
        raise KeyError(form)
    return text


def _get(path: str, url: str) -> tuple[int, bytes]:
    """Status and body of one GET on a unix socket. Raises OSError and ValueError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.settimeout(DOCKER_LIMIT)
        server.connect(path)
        # of version 1.0: the answer ends with the connection, and comes in one piece
        server.sendall(f"GET {url} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        data = b""
        while len(data) < MOST_DOCKER:
            part = server.recv(1 << 16)
            if not part:
                break
            data += part
    head, mark, body = data.partition(b"\r\n\r\n")
    if not mark or not head.startswith(b"HTTP/1.") or b"chunked" in head.lower():
        raise ValueError("not an answer")
    return int(head.split(b" ", 2)[1]), body
