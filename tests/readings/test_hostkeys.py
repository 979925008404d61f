"""known_hosts entries found as sshd(8) describes them; asyncssh is the oracle."""

from __future__ import annotations

import base64
import hashlib
import hmac

import asyncssh
import pytest

from console.readings.hostkeys import HostKeyProblem, KnownKey, fingerprint, known_keys

KEY = asyncssh.generate_private_key("ssh-ed25519")
LINE = KEY.export_public_key().decode().strip()
PRINT = KEY.get_fingerprint()


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def test_fingerprints_are_those_of_openssh() -> None:
    assert fingerprint(KEY.public_data) == PRINT


@pytest.mark.parametrize(
    ("patterns", "host", "port", "found"),
    [
        ("spark-1", "spark-1", 22, True),
        ("Spark-1", "SPARK-1", 22, True),
        ("spark-1", "spark-10", 22, False),
        ("spark-1,192.0.2.1", "192.0.2.1", 22, True),
        ("spark-*", "spark-12", 22, True),
        ("spark-?", "spark-12", 22, False),
        ("spark-*,!spark-1", "spark-1", 22, False),
        ("!spark-1,spark-*", "spark-2", 22, True),
        ("[spark-1]:2222", "spark-1", 2222, True),
        ("[spark-1]:2222", "spark-1", 22, False),
        ("spark-1", "spark-1", 2222, False),
        ("[spark-*]:2222", "spark-7", 2222, True),
        (hashed("spark-1"), "spark-1", 22, True),
        (hashed("spark-1"), "spark-2", 22, False),
        (hashed("[spark-1]:2222"), "spark-1", 2222, True),
        ("|1|bad", "spark-1", 22, False),
        ("|1|@@|@@", "spark-1", 22, False),
        ("2001:db8::1", "2001:db8::1", 22, True),
    ],
)
def test_entries(patterns: str, host: str, port: int, found: bool) -> None:
    text = f"# a comment\n\n{patterns} {LINE}\n"
    assert known_keys(text, host, port) == ((KnownKey(3, "ssh-ed25519", PRINT),) if found else ())


@pytest.mark.parametrize("name", ["spark-1", "spark-2", "192.0.2.1", "other"])
def test_asyncssh_finds_the_same_entries(name: str) -> None:
    text = "\n".join([f"spark-1 {LINE}", f"spark-*,!spark-2 {LINE}", f"{hashed('192.0.2.1')} {LINE}"])
    trusted, *_ = asyncssh.match_known_hosts(text.encode(), name, "", None)
    assert len(known_keys(text, name)) == len(trusted)


def test_markers_and_broken_lines() -> None:
    rows = [f"@revoked spark-1 {LINE}", f"@cert-authority *.example {LINE}", "spark-1 ssh-ed25519 !!!", "spark-1"]
    text = "\n".join([*rows, f"spark-1 {LINE} note"])
    assert known_keys(text, "spark-1") == (
        KnownKey(1, "ssh-ed25519", PRINT, "@revoked"),
        KnownKey(5, "ssh-ed25519", PRINT),
    )
    assert known_keys(text, "a.example")[0].marker == "@cert-authority"


def test_every_problem_describes_itself() -> None:
    changed = HostKeyProblem(True, "ssh-ed25519", "SHA256:new", "~/.ssh/known_hosts", 47, ("SHA256:old",), "bastion")
    assert changed.describe() == (
        "bastion offers ssh-ed25519 SHA256:new, but ~/.ssh/known_hosts:47 holds SHA256:old: not accepted"
    )
    assert HostKeyProblem(False, "ssh-rsa", "SHA256:x").describe() == (
        "the host offers ssh-rsa SHA256:x, not seen before: compare it, then add it to known_hosts"
    )
