"""ssh host keys: a key never seen, one that changed and one that was revoked. Nothing here accepts one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from console.sanitize import word


@dataclass(frozen=True, slots=True)
class HostKeyProblem:
    """Why a host's key was not trusted. Never accepted by the console: the operator compares fingerprints."""

    changed: bool
    """True when known_hosts holds another key for this host; False when it holds none."""
    key_type: str = ""
    """Type of the key offered now."""
    fingerprint: str = ""
    """`SHA256:...` of the key offered now."""
    known_hosts: str = ""
    """The file with the old entry, or the one where an entry is missing."""
    line: int | None = None
    """Line of the old entry, from 1."""
    known: tuple[str, ...] = ()
    """Fingerprints of the old entries."""
    hop: str = ""
    """The host or jump host whose key it is."""
    revoked: bool = False

    def describe(self) -> str:
        """One safe sentence for the operator."""
        offered = " ".join(part for part in (self.key_type, self.fingerprint) if part)
        whose = f"{self.hop} " if self.hop else ""
        where = self.known_hosts + (f":{self.line}" if self.line else "")
        if self.revoked:
            return f"{whose}offers a revoked key {offered} ({where})".strip()
        if not self.changed:
            return f"{whose}offers a key not seen before: {offered}; compare it, then add it to known_hosts".strip()
        old = f", old {' '.join(self.known)}" if self.known else ""
        return f"{whose}offers another key than {where or 'known_hosts'}: now {offered or '?'}{old}".strip()


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One known_hosts entry that matches a host."""

    line: int
    key_type: str
    fingerprint: str
    marker: str = ""
    """`@cert-authority`, `@revoked` or ''."""


def fingerprint(key: bytes) -> str:
    """`SHA256:...` as OpenSSH prints it, of a key's wire bytes."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def known_keys(text: str, host: str, port: int = 22) -> tuple[KnownKey, ...]:
    """The entries of a known_hosts text (sshd(8): plain, patterns, hashed) for host:port; broken lines are left out."""
    name = host.lower() if port == 22 else f"[{host.lower()}]:{port}"
    found = []
    for number, entry in enumerate(text.splitlines(), 1):
        fields = entry.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#") or not _matches(fields[0], name):
            continue
        try:
            blob = base64.b64decode(fields[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        found.append(KnownKey(number, word(fields[1], 60), fingerprint(blob), word(marker, 20)))
    return tuple(found)


def judge_host_key(
    text: str, host: str, *, port: int = 22, key_type: str, key: bytes, file: str = "", hop: str = ""
) -> HostKeyProblem | None:
    """What is wrong with the offered `key` (wire bytes) by a known_hosts text; None if it is listed."""
    offered = fingerprint(key)
    entries = known_keys(text, host, port)
    plain = [entry for entry in entries if not entry.marker]
    revoked = [entry for entry in entries if entry.marker == "@revoked" and entry.fingerprint == offered]
    if not revoked and any(entry.fingerprint == offered for entry in plain):
        return None
    old = revoked or [entry for entry in plain if entry.key_type == key_type] or plain
    return HostKeyProblem(
        changed=bool(plain) or bool(revoked),
        key_type=word(key_type, 60),
        fingerprint=offered,
        known_hosts=word(file, 300),
        line=old[0].line if old else None,
        known=tuple(entry.fingerprint for entry in old),
        hop=word(hop or host, 200),
        revoked=bool(revoked),
    )


def parse_openssh_warning(text: str) -> HostKeyProblem | None:
    """OpenSSH's own words about a host key on stderr (sshconnect.c); None if there are none."""
    changed = "REMOTE HOST IDENTIFICATION HAS CHANGED" in text
    if not changed and "Host key verification failed" not in text and "authenticity of host" not in text:
        return None
    offered = re.search(r"^(?:The fingerprint for the )?(\S+) key (?:sent by|fingerprint is|for)", text, re.MULTILINE)
    value = re.search(r"\b(SHA256:[A-Za-z0-9+/]{20,64}|MD5:[0-9a-f:]{47})", text)
    offending = re.search(r"^(?:Offending|Matching) (?:\S+ )?key (?:for \S+ )?in (.+):(\d+)\s*$", text, re.MULTILINE)
    hop = re.search(r"^Host key for (\S+) has changed", text, re.MULTILINE) or re.search(
        r"authenticity of host '([^' ]+)", text
    )
    return HostKeyProblem(
        changed=changed,
        key_type=word(offered[1], 60) if offered else "",
        fingerprint=value[1] if value else "",
        known_hosts=word(offending[1], 300) if offending else "",
        line=int(offending[2][:9]) if offending else None,
        hop=word(hop[1], 200) if hop else "",
        revoked="revoked" in text.lower(),
    )


def _matches(patterns: str, name: str) -> bool:
    if patterns.startswith("|1|"):
        return _matches_hash(patterns, name)
    hit = False
    for pattern in patterns.lower().split(","):
        # fnmatch knows [sets] that known_hosts has not: brackets are part of [host]:port
        wanted = pattern.lstrip("!").replace("[", "[[]")
        if fnmatchcase(name, wanted):
            if pattern.startswith("!"):
                return False
            hit = True
    return hit


def _matches_hash(field: str, name: str) -> bool:
    try:
        _, _, salt, digest = field.split("|")
        wanted = base64.b64decode(digest, validate=True)
        made = hmac.new(base64.b64decode(salt, validate=True), name.encode(), hashlib.sha1).digest()
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(made, wanted)
