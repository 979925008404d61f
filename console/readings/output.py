"""What a remote command returned, and what that means: lost is unknown, never success."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from console.readings.hostkeys import HostKeyProblem, parse_openssh_warning
from console.sanitize import line as safe_line
from console.sanitize import lines as safe_lines

SHELL_LINE = "exec /bin/sh"
"""All that a login shell of any kind ever gets to parse; the script itself travels on stdin."""

_STDERR_LINES = 200


class Outcome(StrEnum):
    """How a remote command ended."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The connection died or time ran out: it may or may not have run."""
    REJECTED_BY_SHELL = "remote shell rejected the command"
    HOST_KEY_CHANGED = "host key changed"
    HOST_KEY_UNKNOWN = "host key unknown"
    PERMISSION = "permission"
    UNREACHABLE = "unreachable"
    OUR_LIMIT = "our session limit"


@dataclass(frozen=True, slots=True)
class Output:
    """One command's own output, with shell noise cut off.

    `stdout` is for parsers and may hold anything; whatever is shown of it goes through `sanitize` first.
    `stderr`, `hint` and `last_line` are safe text.
    """

    host: str
    command: tuple[str, ...]
    outcome: Outcome
    exit_status: int | None
    signal: str
    stdout: str
    stderr: str
    took: float
    """Seconds."""
    hint: str = ""
    last_line: str = ""
    """The last complete line of stdout: what is known of a command whose end was not seen."""
    host_key: HostKeyProblem | None = None
    noise: str = ""
    """What start-up files of the login shell printed before the command; one safe line, '' if nothing."""

    @property
    def ok(self) -> bool:
        """True only for an exit status 0 that was really received."""
        return self.outcome is Outcome.DONE and self.exit_status == 0


@dataclass(frozen=True, slots=True)
class FramedCommand:
    """A command between markers: `line` goes to the login shell, `script` to its stdin."""

    line: str
    script: str
    nonce: str


def frame_command(argv: Sequence[str], *, stdin: str = "", nonce: str = "") -> FramedCommand:
    """Put `argv` between markers that no start-up file can know. Raises ValueError for a NUL or an empty command."""
    if not argv or any("\0" in word for word in (*argv, stdin)):
        raise ValueError("a command needs at least one word and no NUL byte")
    nonce = nonce or secrets.token_hex(12)
    begin, end = _markers(nonce)
    feed = f"printf %s {shlex.quote(stdin)} | {shlex.join(argv)}" if stdin else f"{shlex.join(argv)} </dev/null"
    # one compound command: the shell has read all of it before it runs any, and leaves no line of it on the channel
    script = (
        "{\n"
        f"printf '\\n%s\\n' {begin}; printf '\\n%s\\n' {begin} >&2\n"
        f"{feed}\n"
        "laneswap_rc=$?\n"
        f"printf '\\n%s %s\\n' {end} \"$laneswap_rc\"; printf '\\n%s %s\\n' {end} \"$laneswap_rc\" >&2\n"
        'exit "$laneswap_rc"\n'
        "}\n"
    )
    return FramedCommand(SHELL_LINE, script, nonce)


@dataclass(frozen=True, slots=True)
class Cut:
    """What lay between the markers. `status` is the exit status that the end marker carried."""

    body: bytes
    began: bool
    ended: bool
    status: int | None


def cut_noise(raw: bytes, nonce: str) -> Cut:
    """The command's own bytes: everything before the first begin marker and after the last end marker is noise."""
    begin, end = (marker.encode() for marker in _markers(nonce))
    start = raw.find(begin + b"\n")
    if start < 0 or (start > 0 and raw[start - 1 : start] != b"\n"):
        return Cut(b"", began=False, ended=False, status=None)
    body = raw[start + len(begin) + 1 :]
    stop = body.rfind(b"\n" + end + b" ")
    if stop < 0:
        return Cut(body, began=True, ended=False, status=None)
    match = re.match(rb"(\d{1,3})\n", body[stop + len(end) + 2 :])
    if not match:
        return Cut(body[:stop], began=True, ended=False, status=None)
    return Cut(body[:stop], began=True, ended=True, status=int(match[1]))


def classify(
    host: str,
    argv: Sequence[str],
    *,
    stdout: bytes = b"",
    stderr: bytes = b"",
    exit_status: int | None = None,
    signal: str = "",
    error: str = "",
    started: bool = True,
    nonce: str = "",
    took: float = 0.0,
    host_key: HostKeyProblem | None = None,
) -> Output:
    """What became of one remote command.

    `error` is `TypeName: message` of the exception that ended it (see `describe_error`), `started` is False when the
    command was certainly never sent, `nonce` is the one of `frame_command` (empty: the output has no markers).
    """
    out = cut_noise(stdout, nonce) if nonce else Cut(stdout, began=True, ended=False, status=None)
    err = cut_noise(stderr, nonce) if nonce else Cut(stderr, began=False, ended=False, status=None)
    status = out.status if out.ended else exit_status
    words = "\n".join(safe_lines(err.body if err.began else stderr, most=_STDERR_LINES))
    # a framed command that began reached the host: what its own ssh says is about another one
    ours = status == 255 and not (nonce and (out.began or err.began))
    key = host_key or (parse_openssh_warning(words) if ours else None)
    last = last_complete_line(out.body)
    outcome, hint = _judge(_Ending(status, signal, error, started, out, words, stdout, key, bool(nonce)))
    if outcome is Outcome.UNKNOWN and last:
        hint = f"{hint}; last complete line: {last.strip()}"
    return Output(
        host=host,
        command=tuple(argv),
        outcome=outcome,
        exit_status=status,
        signal=safe_line(signal, 40),
        stdout=out.body.decode("utf-8", "replace"),
        stderr=words,
        took=took,
        hint=hint,
        last_line=last,
        host_key=key,
        noise=_noise(stdout, nonce) if nonce and out.began else "",
    )


def _noise(raw: bytes, nonce: str) -> str:
    return " ".join(safe_line(raw[: raw.find(_markers(nonce)[0].encode())][:2000].replace(b"\n", b" "), 200).split())


def describe_error(error: BaseException) -> str:
    """`TypeName: message`, safe and on one line: what `classify` and `explain_error` take."""
    text = str(error)
    name = type(error).__name__
    return safe_line(f"{name}: {text}" if text else name, 500)


def last_complete_line(data: bytes) -> str:
    """The last line that was ended by a newline, as safe text; '' if there is none. A cut-off rest is not a line."""
    end = data.rfind(b"\n")
    while end > 0:
        start = data.rfind(b"\n", 0, end) + 1
        text = safe_line(data[start:end])
        if text.strip():
            return text
        end = start - 1
    return ""


def explain_error(error: str, *, started: bool) -> tuple[Outcome, str]:
    """Outcome and hint for `TypeName: message` of an ssh or socket failure (names as in asyncssh 2.x and Python)."""
    name = error.partition(":")[0].strip()
    for pattern, outcome, hint in _ERRORS:
        if pattern.search(error):
            return outcome, hint
    if started and name != "ChannelOpenError":
        what = "no answer in time" if "Timeout" in name else "connection lost"
        return Outcome.UNKNOWN, f"{what}: it may or may not have run; look at the host before trying again"
    return Outcome.UNREACHABLE, f"no connection: {safe_line(error, 200)}"


@dataclass(frozen=True, slots=True)
class _Ending:
    status: int | None
    signal: str
    error: str
    started: bool
    out: Cut
    words: str
    raw_stdout: bytes
    key: HostKeyProblem | None
    framed: bool


def _judge(end: _Ending) -> tuple[Outcome, str]:
    if end.key is not None:
        changed = end.key.changed
        return (Outcome.HOST_KEY_CHANGED if changed else Outcome.HOST_KEY_UNKNOWN), end.key.describe()
    if end.out.ended:
        return _by_status(end.out.status or 0, end.words)
    if end.error:
        return explain_error(end.error, started=end.started)
    if end.signal:
        return Outcome.FAILED, f"ended by signal {safe_line(end.signal, 40)}"
    if end.status is None:
        return explain_error("ConnectionLost", started=end.started)
    client = _openssh_client(end)
    if client:
        return client
    if not end.out.began or (not end.framed and _SHELL_WORDS.search(end.words)):
        said = end.words or safe_line(end.raw_stdout[-400:], 200)
        return Outcome.REJECTED_BY_SHELL, f"{_first(said) or 'it said nothing'} (exit status {end.status})"
    outcome, hint = _by_status(end.status, end.words)
    if end.framed:
        hint = f"{hint}; output cut off" if hint else "output cut off"
    return outcome, hint


def _openssh_client(end: _Ending) -> tuple[Outcome, str] | None:
    """OpenSSH's client reports its own failures as status 255 on stderr."""
    if end.status != 255 or end.out.ended:
        return None
    for pattern, outcome, hint in _CLIENT:
        if pattern.search(end.words):
            return outcome, hint
    return None


def _by_status(status: int, words: str) -> tuple[Outcome, str]:
    if status == 0:
        return Outcome.DONE, ""
    hint = {126: "not executable", 127: "command not found on that host"}.get(status, "")
    if status > 128 and not hint:
        hint = f"ended by signal {status - 128}"
    return Outcome.FAILED, hint or _first(words)


def _first(words: str) -> str:
    return next((text.strip() for text in words.split("\n") if text.strip()), "")[:200]


def _markers(nonce: str) -> tuple[str, str]:
    if not re.fullmatch(r"[0-9a-zA-Z]{8,64}", nonce):
        raise ValueError("a nonce is 8 to 64 letters and digits")
    return f"LANESWAP-BEGIN-{nonce}", f"LANESWAP-END-{nonce}"


_SHELL_WORDS = re.compile(
    r"^fish: (?!Unknown command)"
    r"|\^~*\^\s*$"
    r"|nu::(?:parser|shell)"
    r"|Missing name for redirect|Ambiguous output redirect|Illegal variable name|Undefined variable"
    r"|^\S+=\S*: Command not found\."
    r"|xonsh: .*syntax error|This account is currently not available",
    re.MULTILINE | re.IGNORECASE,
)

_LIMIT = (
    "sshd refused one more session on this connection (MaxSessions); the host is up and the request is queued again"
)
_LOGIN = "ssh login refused: check the user name, the key and the agent"
_NO_ROUTE = "no connection to the host"
_PROBE = "connection lost: it may or may not have run; look at the host before trying again"

_ERRORS: tuple[tuple[re.Pattern[str], Outcome, str], ...] = (
    (
        re.compile(r"ChannelOpenError: .*(open failed|prohibited|shortage|too many)", re.IGNORECASE),
        Outcome.OUR_LIMIT,
        _LIMIT,
    ),
    (re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED"), Outcome.HOST_KEY_CHANGED, "the host offers another key"),
    (
        re.compile(r"HostKeyNotVerifiable|Host key (is not trusted|verification failed)"),
        Outcome.HOST_KEY_UNKNOWN,
        "the host's key is not the one in known_hosts; compare its fingerprint before accepting it",
    ),
    (re.compile(r"PermissionDenied|Permission denied \((publickey|password|keyboard)"), Outcome.PERMISSION, _LOGIN),
)

_CLIENT: tuple[tuple[re.Pattern[str], Outcome, str], ...] = (
    (re.compile(r"Permission denied \("), Outcome.PERMISSION, _LOGIN),
    (re.compile(r"open failed|no more sessions", re.IGNORECASE), Outcome.OUR_LIMIT, _LIMIT),
    (re.compile(r"kex_exchange_identification|banner exchange"), Outcome.UNREACHABLE, _NO_ROUTE),
    (
        re.compile(r"client_loop: send disconnect|closed by remote host|Timeout, server .* not responding|Broken pipe"),
        Outcome.UNKNOWN,
        _PROBE,
    ),
    (
        re.compile(r"Connection refused|timed out|No route to host|Could not resolve|Network is unreachable"),
        Outcome.UNREACHABLE,
        _NO_ROUTE,
    ),
)
