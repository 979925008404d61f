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
    """The file with the old entry."""
    line: int | None = None
    """Line of the old entry, from 1."""
    known: tuple[str, ...] = ()
    """Fingerprints of the old entries."""
    hop: str = ""
    """The host or jump host whose key it is."""
    revoked: bool = False

    def describe(self) -> str:
        """One safe sentence for the operator."""
        offered = " ".join(part for part in (self.key_type, self.fingerprint) if part) or "a key"
        whose = self.hop or "the host"
        where = self.known_hosts + (f":{self.line}" if self.line else "")
        if self.revoked:
            return f"{whose} offers {offered}, which is marked revoked in {where or 'known_hosts'}"
        if not self.changed:
            return f"{whose} offers {offered}, not seen before: compare it, then add it to known_hosts"
        old = " ".join(self.known) or "another key"
        return f"{whose} offers {offered}, but {where or 'known_hosts'} holds {old}: not accepted"


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
    for number, entry in enumerate(text.split("\n"), 1):
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


_TYPE = re.compile(
    r"^(?:The fingerprint for the )?(\S{1,60}) (?:host )?key (?:sent by|fingerprint is|for)", re.MULTILINE
)
_PRINT = re.compile(r"\b(SHA256:[A-Za-z0-9+/]{20,64}|MD5:[0-9a-f:]{47})")
_OFFENDING = re.compile(r"^Offending (?:\S+ )?key (?:for IP )?in (.{1,300}):(\d{1,9})\s*$", re.MULTILINE)
_CHANGED_FOR = re.compile(r"^Host key for (\S+) has changed|^The \S+ host key for (\S+) has changed", re.MULTILINE)
_REVOKED = re.compile(r"^\S+ host key for (\S+) (?:was|is marked as) revoked|REVOKED HOST KEY DETECTED", re.MULTILINE)
_UNKNOWN = re.compile(r"authenticity of host '([^' ]+)|^No \S+ host key is known for (\S+?)(?: and|\.|$)", re.MULTILINE)


def parse_openssh_warning(text: str) -> HostKeyProblem | None:
    """OpenSSH's own words about a host key on stderr (sshconnect.c); None if there are none."""
    changed = "REMOTE HOST IDENTIFICATION HAS CHANGED" in text
    revoked = _REVOKED.search(text)
    unknown = _UNKNOWN.search(text)
    if not (changed or revoked or unknown or "Host key verification failed" in text):
        return None
    offered = _TYPE.search(text)
    printed = _PRINT.search(text)
    offending = _OFFENDING.search(text)
    hop = _CHANGED_FOR.search(text) or revoked or unknown
    return HostKeyProblem(
        changed=changed or bool(revoked),
        key_type=word(offered[1], 60) if offered else "",
        fingerprint=printed[1] if printed else "",
        known_hosts=word(offending[1], 300) if offending else "",
        line=int(offending[2]) if offending else None,
        hop=word(next((group for group in hop.groups() if group), ""), 200) if hop else "",
        revoked=bool(revoked),
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
