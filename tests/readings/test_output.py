"""What became of a remote command: its own bytes, its end, and what an operator can do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.readings.hostkeys import HostKeyProblem, parse_openssh_warning
from console.readings.memory import parse_memory
from console.readings.output import (
    SHELL_LINE,
    Outcome,
    classify,
    cut_noise,
    describe_error,
    explain_error,
    frame_command,
    last_complete_line,
)

CASES = Path(__file__).parents[1] / "cases/inputs"
NONCE = "0123456789abcdef"
PREFIX = (CASES / "C045/noise_prefix.bin").read_bytes()
SUFFIX = (CASES / "C045/noise_suffix.bin").read_bytes()
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "fish", "csh", "ksh") if shutil.which(shell)]


def framed_output(body: bytes, status: int = 0) -> bytes:
    return b"\nLANESWAP-BEGIN-%s\n%s\nLANESWAP-END-%s %d\n" % (NONCE.encode(), body, NONCE.encode(), status)


def run(
    shell: str, argv: list[str], *, stdin: str = "", env: dict[str, str] | None = None
) -> tuple[bytes, bytes, int, str]:
    framed = frame_command(argv, stdin=stdin)
    done = subprocess.run(
        [shell, "-c", framed.line],
        input=framed.script.encode(),
        capture_output=True,
        timeout=30,
        env={**os.environ, **(env or {})},
    )
    return done.stdout, done.stderr, done.returncode, framed.nonce


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_runs_it_and_only_its_own_bytes_come_back(shell: str) -> None:
    nasty = "a 'quoted' \\ $HOME `id` \"x\" * ; \u00e9"
    out, err, status, nonce = run(shell, ["printf", "%s|%s\n", nasty, "-n"])
    cut = cut_noise(PREFIX + out + SUFFIX, nonce)
    assert cut.body.decode() == f"{nasty}|-n\n"
    assert (cut.began, cut.ended, cut.status, status) == (True, True, 0, 0)
    assert cut_noise(PREFIX + err, nonce).body == b""


@pytest.mark.parametrize("shell", SHELLS)
def test_exit_status_stderr_and_stdin_of_the_command(shell: str) -> None:
    data = "no newline at the end, 'quotes' and \\n\n\nlines"
    out, err, status, nonce = run(shell, ["/bin/sh", "-c", "cat; echo oops >&2; exit 3"], stdin=data)
    found = classify("h", ["x"], stdout=out, stderr=err, exit_status=status, nonce=nonce)
    assert (found.outcome, found.exit_status, found.stdout, found.stderr) == (Outcome.FAILED, 3, data, "oops")
    assert found.hint == "oops"


def test_a_command_cannot_eat_the_script_that_follows_it() -> None:
    out, _, status, nonce = run("sh", ["cat"])
    assert cut_noise(out, nonce).body == b""
    assert cut_noise(out, nonce).status == status == 0


def test_start_up_files_that_print_are_cut_off(tmp_path: Path) -> None:
    noisy = tmp_path / "env.sh"
    noisy.write_bytes(b"cat " + str(CASES / "C045/noise_prefix.bin").encode() + b"\n")
    meminfo = str(CASES / "C001/meminfo.txt")
    out, err, status, nonce = run("bash", ["cat", meminfo], env={"BASH_ENV": str(noisy), "ENV": str(noisy)})
    assert out.startswith(b"\x1b]0;"), "the noise is really there"
    found = classify("h", ["cat"], stdout=out + SUFFIX, stderr=err, exit_status=status, nonce=nonce)
    assert found.ok
    assert found.stdout == Path(meminfo).read_text()
    assert parse_memory(found.stdout).available == 95 * 1024**3


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80), st.integers(0, 255))
def test_whatever_surrounds_it_the_body_comes_back_byte_for_byte(
    before: bytes, body: bytes, after: bytes, status: int
) -> None:
    cut = cut_noise(before + framed_output(body, status) + after, NONCE)
    assert (cut.body, cut.status, cut.ended) == (body, status, True)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 200))
def test_a_stream_cut_anywhere_is_never_taken_for_the_end(length: int) -> None:
    whole = framed_output(b"line 1\nline 2\n", 0)
    found = classify("h", ["x"], stdout=whole[:length], error="ConnectionLost: lost", nonce=NONCE)
    if length >= len(whole):
        assert found.ok
    else:
        assert found.outcome is Outcome.UNKNOWN
        assert found.exit_status is None
        assert whole.decode().find(found.stdout) >= 0


def test_the_end_marker_proves_the_end_also_when_the_exit_status_got_lost() -> None:
    found = classify("h", ["x"], stdout=framed_output(b"done\n", 0), error="ConnectionLost: lost", nonce=NONCE)
    assert (found.outcome, found.exit_status, found.ok) == (Outcome.DONE, 0, True)


def test_another_commands_markers_are_only_text() -> None:
    other = framed_output(b"x", 0)
    assert cut_noise(other, "f" * 24).began is False
    assert cut_noise(framed_output(other, 4), NONCE).status == 4


def test_what_cannot_be_framed_is_refused() -> None:
    for argv in ([], ["a\0b"]):
        with pytest.raises(ValueError, match="NUL"):
            frame_command(argv)
    with pytest.raises(ValueError, match="nonce"):
        frame_command(["x"], nonce="'; rm -rf /; '")
    assert frame_command(["x"]).line == SHELL_LINE
    assert frame_command(["x"]).nonce != frame_command(["x"]).nonce


@pytest.mark.parametrize(
    ("status", "signal", "error", "started", "outcome", "hint"),
    [
        (0, "", "", True, Outcome.DONE, ""),
        (1, "", "", True, Outcome.FAILED, "words"),
        (126, "", "", True, Outcome.FAILED, "not executable"),
        (127, "", "", True, Outcome.FAILED, "command not found"),
        (137, "", "", True, Outcome.FAILED, "signal 9"),
        (-1, "KILL", "", True, Outcome.FAILED, "signal KILL"),
        (None, "", "", True, Outcome.UNKNOWN, "may or may not have run"),
        (None, "", "", False, Outcome.UNREACHABLE, "no connection"),
        (None, "", "ConnectionLost: Connection lost", True, Outcome.UNKNOWN, "look at the host before trying again"),
        (None, "", "TimeoutError", True, Outcome.UNKNOWN, "no answer in time"),
        (None, "", "ConnectionLost: Login timeout expired", False, Outcome.UNREACHABLE, "Login timeout expired"),
        (None, "", "ConnectionRefusedError: [Errno 111] Connect call failed", False, Outcome.UNREACHABLE, "refused"),
        (None, "", "gaierror: [Errno -2] Name or service not known", False, Outcome.UNREACHABLE, "not known"),
        (None, "", "ChannelOpenError: open failed", True, Outcome.OUR_LIMIT, "the host is up"),
        (None, "", "ChannelOpenError: SSH connection closed", True, Outcome.UNREACHABLE, "connection closed"),
        (None, "", "PermissionDenied: Permission denied for user ops", False, Outcome.PERMISSION, "the key"),
        (None, "", "HostKeyNotVerifiable: Host key is not trusted", False, Outcome.HOST_KEY_UNKNOWN, "fingerprint"),
    ],
)
def test_how_it_ended(status: int | None, signal: str, error: str, started: bool, outcome: Outcome, hint: str) -> None:
    found = classify("h", ["x"], stderr=b"words", exit_status=status, signal=signal, error=error, started=started)
    assert found.outcome is outcome
    assert hint.lower() in found.hint.lower()
    assert found.ok is (status == 0)


@pytest.mark.parametrize(
    ("stderr", "status"),
    [
        (b"fish: Unsupported use of '='. In fish, please use 'set v 1'.\nv=1; cat /proc/meminfo\n^~^\n", 127),
        (b"fish: Expected a variable name after this $.\n", 127),
        (b"v=1: Command not found.\n", 1),
        (b"Ambiguous output redirect.\n", 1),
        (b"Error: nu::parser::parse_mismatch\n", 1),
        (b"This account is currently not available.\n", 1),
    ],
)
def test_a_login_shell_that_rejects_the_command_is_named(stderr: bytes, status: int) -> None:
    found = classify("h", ["x"], stderr=stderr, exit_status=status)
    assert found.outcome is Outcome.REJECTED_BY_SHELL
    assert stderr.decode().split("\n")[0] in found.hint
    assert found.exit_status == status


@pytest.mark.parametrize(
    "stderr", [b"sh: 1: foo: not found\n", b"fish: Unknown command: foo\n", b"bash: foo: command not found\n"]
)
def test_a_missing_program_is_not_a_rejecting_shell(stderr: bytes) -> None:
    assert classify("h", ["foo"], stderr=stderr, exit_status=127).outcome is Outcome.FAILED


def test_a_framed_command_that_never_began_was_rejected_whatever_the_words() -> None:
    found = classify("h", ["x"], stdout=b"Please login as the user ubuntu.\n", exit_status=142, nonce=NONCE)
    assert found.outcome is Outcome.REJECTED_BY_SHELL
    assert found.hint == "Please login as the user ubuntu. (exit status 142)"
    assert found.stdout == "", "noise is never taken for an answer"
    silent = classify("h", ["x"], exit_status=0, nonce=NONCE)
    assert (silent.outcome, silent.ok) == (Outcome.REJECTED_BY_SHELL, False)


def test_a_framed_command_without_its_end_says_that_it_is_cut() -> None:
    cut = b"\nLANESWAP-BEGIN-%s\npart" % NONCE.encode()
    found = classify("h", ["x"], stdout=cut, exit_status=0, nonce=NONCE)
    assert (found.outcome, found.stdout, found.hint) == (Outcome.DONE, "part", "output cut off")


@pytest.mark.parametrize(
    ("stderr", "outcome"),
    [
        (b"ops@spark-1: Permission denied (publickey,password).\n", Outcome.PERMISSION),
        (b"ssh: connect to host spark-1 port 22: Connection refused\n", Outcome.UNREACHABLE),
        (b"ssh: Could not resolve hostname spark-9: Name or service not known\n", Outcome.UNREACHABLE),
        (b"kex_exchange_identification: Connection closed by remote host\n", Outcome.UNREACHABLE),
        (b"client_loop: send disconnect: Broken pipe\n", Outcome.UNKNOWN),
        (b"Connection to spark-1 closed by remote host.\n", Outcome.UNKNOWN),
        (b"Timeout, server spark-1 not responding.\n", Outcome.UNKNOWN),
        (
            b"mux_client_request_session: session request failed: Session open refused by peer: open failed\n",
            Outcome.OUR_LIMIT,
        ),
        (
            b"No ED25519 host key is known for spark-9 and you have requested strict checking.\n"
            b"Host key verification failed.\n",
            Outcome.HOST_KEY_UNKNOWN,
        ),
        (b"make: *** failed\n", Outcome.FAILED),
    ],
)
def test_the_openssh_clients_own_failures(stderr: bytes, outcome: Outcome) -> None:
    assert classify("h", ["x"], stderr=stderr, exit_status=255).outcome is outcome


REAL_CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
The fingerprint for the ED25519 key sent by the remote host is
SHA256:0Nq8h1R8mCq6m2yq0pTn3mJm8Zr3yq2mJ1l9dQm4c0o.
Please contact your system administrator.
Add correct host key in /home/ops/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/ops/.ssh/known_hosts:12
Host key for bastion.example has changed and you have requested strict checking.
Host key verification failed.
"""


def test_a_changed_host_key_names_fingerprint_file_line_and_hop() -> None:
    assert parse_openssh_warning(REAL_CHANGED) == HostKeyProblem(
        changed=True,
        key_type="ED25519",
        fingerprint="SHA256:0Nq8h1R8mCq6m2yq0pTn3mJm8Zr3yq2mJ1l9dQm4c0o",
        known_hosts="/home/ops/.ssh/known_hosts",
        line=12,
        hop="bastion.example",
    )
    found = classify("spark-1", ["x"], stderr=REAL_CHANGED.encode(), exit_status=255)
    assert found.outcome is Outcome.HOST_KEY_CHANGED
    for part in ("bastion.example", "SHA256:0Nq8", "known_hosts:12", "not accepted"):
        assert part in found.hint


def test_a_new_host_key_is_not_a_changed_one() -> None:
    text = (
        "The authenticity of host 'spark-9 (192.0.2.9)' can't be established.\nED25519 key fingerprint is SHA256:"
        + "B" * 43
    )
    problem = parse_openssh_warning(text + ".\nHost key verification failed.\n")
    assert problem == HostKeyProblem(False, "ED25519", "SHA256:" + "B" * 43, hop="spark-9")
    assert "not seen before" in problem.describe()


def test_a_revoked_host_key() -> None:
    problem = parse_openssh_warning(
        "ED25519 host key for spark-9 was revoked and you have requested strict checking.\n"
    )
    assert problem is not None and problem.revoked and problem.hop == "spark-9"
    assert "revoked" in problem.describe()


def test_what_a_command_says_about_another_host_is_not_about_this_one() -> None:
    err = framed_output(REAL_CHANGED.encode(), 255)
    found = classify("head", ["ssh", "rank1"], stdout=framed_output(b"", 255), stderr=err, exit_status=255, nonce=NONCE)
    assert (found.outcome, found.host_key) == (Outcome.FAILED, None)


def test_words_of_a_host_are_safe() -> None:
    found = classify(
        "h", ["x"], stdout=b"\x1b]0;pwn\x07ok\n", stderr=b"\x1b[2J\x1b]52;c;AA\x07bad \xff\n", exit_status=1
    )
    assert (found.stderr, found.hint, found.last_line) == ("bad �", "bad �", "ok")


@pytest.mark.parametrize(
    ("data", "last"),
    [
        (b"", ""),
        (b"no end", ""),
        (b"one\ntwo", "one"),
        (b"one\n\n  \nrest", "one"),
        (b"\n\n", ""),
        (b"  kept blanks\n", "  kept blanks"),
        (b"10%\r20%\n30%", "20%"),
    ],
)
def test_the_last_complete_line(data: bytes, last: str) -> None:
    assert last_complete_line(data) == last


def test_the_last_line_of_a_lost_command_is_in_its_hint() -> None:
    data = (CASES / "C053/stdout_partial.bin").read_bytes()
    found = classify("h", ["relaunch"], stdout=data, error="ConnectionLost")
    assert found.last_line == "  rank 3 launched"
    assert found.hint.endswith("last complete line: rank 3 launched")


def test_errors_are_described_with_their_type_and_safely() -> None:
    assert describe_error(TimeoutError()) == "TimeoutError"
    assert describe_error(OSError("bad \x1b[31m\nname")) == "OSError: bad  name"
    assert explain_error(describe_error(TimeoutError()), started=True)[0] is Outcome.UNKNOWN


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=120), st.binary(max_size=200), st.one_of(st.none(), st.integers(-1, 300)), st.text(max_size=40)
)
def test_nothing_a_host_says_makes_it_raise_or_pass_for_done(
    out: bytes, err: bytes, status: int | None, error: str
) -> None:
    found = classify("h", ["x"], stdout=out, stderr=err, exit_status=status, error=error, nonce=NONCE)
    assert not found.ok
    assert all(text.isprintable() for text in (found.hint, found.last_line, *found.stderr.split("\n")))
