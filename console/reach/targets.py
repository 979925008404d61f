"""From the `ssh` key of a host to what asyncssh.connect is called with: ssh_config, jump hosts, known hosts, keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.fleet.inventory import Host
from console.reach import hostkeys
from console.reach.limits import Timings

USER_CONFIG = "~/.ssh/config"
SYSTEM_CONFIG = "/etc/ssh/ssh_config"
CIPHERS_FIRST = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""Twice as fast in Python as chacha20 (5 against 9 ms a MB); the other ciphers stay allowed.

Ciphers of ssh_config go before it."""
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


@dataclass(frozen=True, slots=True)
class Target:
    """One machine to log in to, ready for asyncssh."""

    label: str
    """As the operator wrote it."""
    host: str
    """The name or address that is connected to."""
    port: int
    user: str
    lookup: str
    """The name under which known_hosts is searched."""
    jump: str
    """ProxyJump of ssh_config; empty without one."""
    known: hostkeys.KnownHosts
    connect: Mapping[str, Any] = field(repr=False)
    """Arguments of asyncssh.connect, without `tunnel` and `client_factory`."""
    key_files: tuple[str, ...] = ()
    agent: str = ""
    """Path of the agent's socket."""
    connect_limit: float = 10.0
    """Seconds for the TCP connection."""
    proxied: bool = False
    """Reached by a ProxyCommand of ssh_config."""

    @property
    def where(self) -> str:
        """`user@host:port` for messages."""
        at = self.address
        return f"{self.user}@" + (at.removesuffix(f":{self.port}") if self.port == hostkeys.SSH_PORT else at)

    @property
    def address(self) -> str:
        """`host:port` for messages; an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def split_target(text: str) -> tuple[str, str, int | None]:
    """User ('' if none), host and port of `[ssh://][user@]host[:port]`; `[::1]:22` for IPv6. Raises ValueError."""
    user, _, rest = text.removeprefix("ssh://").rpartition("@")
    if rest.startswith("["):
        host, closed, after = rest[1:].partition("]")
        if not closed or (after and not after.startswith(":")):
            raise ValueError(f"{text!r}: an address in brackets is written [::1] or [::1]:22")
        port = after[1:]
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    else:
        host, port = rest, ""
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r}: the port is a number from 1 to 65535")
    if not host:
        raise ValueError(f"{text!r}: no host name")
    return user, host, int(port) if port else None


def config_files(host: Host) -> list[str]:
    """The ssh_config files in force, first wins: the host's own `config`, else the user's and the system's."""
    if host.config:
        return [os.path.expanduser(host.config)]
    files = [os.path.expanduser(USER_CONFIG), SYSTEM_CONFIG]
    return [file for file in files if os.access(file, os.R_OK)]


def resolve(
    text: str, host: Host, timings: Timings, overrides: Mapping[str, Any] | None = None, *, is_jump: bool = False
) -> Target:
    """Read ssh_config, known_hosts and key files for one machine. Blocking (files): call it in a thread.

    `overrides` are asyncssh.connect arguments that win over everything; with `config=None` no ssh_config is read.
    Raises ValueError, OSError and asyncssh's ConfigParseError and KeyImportError.
    """
    import asyncssh

    wanted = {**_wanted(text, host, timings, is_jump=is_jump), **(overrides or {})}
    given = wanted.pop("known_hosts", None)
    options = _options(asyncssh, wanted)
    known = _known(given, host, options.config)
    wanted["known_hosts"] = known.trusted
    if not options.config.get("Ciphers"):
        wanted.setdefault("encryption_algs", CIPHERS_FIRST)
    return Target(
        label=text,
        host=options.host,
        port=options.port,
        user=options.username,
        lookup=options.host_key_alias or options.host,
        jump=_jump(options),
        known=known,
        connect=wanted,
        key_files=_key_files(host, options.config) if "client_keys" not in (overrides or {}) else (),
        agent=options.agent_path or "",
        connect_limit=float(options.config.get("ConnectTimeout") or timings.connect_limit),
        proxied=bool(options.proxy_command),
    )


def _wanted(text: str, host: Host, timings: Timings, *, is_jump: bool) -> dict[str, Any]:
    """What goes before ssh_config: what the operator wrote for this host, and our own limits."""
    user, name, port = split_target(text)
    wanted: dict[str, Any] = {
        "host": name,
        "config": config_files(host),
        "keepalive_interval": timings.keepalive_interval,
        "keepalive_count_max": timings.keepalive_count,
        "login_timeout": timings.login_limit,
        "agent_forwarding": False,
        "x11_forwarding": False,
    }
    if user:
        wanted["username"] = user
    if port is not None:
        wanted["port"] = port
    if host.identity and not is_jump:
        wanted["client_keys"] = [_readable(os.path.expanduser(host.identity))]
        wanted["ignore_encrypted"] = True
    return wanted


def _options(asyncssh: Any, wanted: dict[str, Any]) -> Any:
    try:
        return asyncssh.SSHClientConnectionOptions(known_hosts=b"", **wanted)
    except asyncssh.ConfigParseError:
        files = wanted["config"]
        if not files or files[-1] != SYSTEM_CONFIG:
            raise
        # the system's file may use what only OpenSSH knows; the user's own must still work
        wanted["config"] = files[:-1]
        return asyncssh.SSHClientConnectionOptions(known_hosts=b"", **wanted)


def _jump(options: Any) -> str:
    jump = options.tunnel
    return jump if isinstance(jump, str) and jump.lower() != "none" else ""


def _known(given: object, host: Host, config: Any) -> hostkeys.KnownHosts:
    if isinstance(given, bytes):
        return hostkeys.from_bytes(given)
    if isinstance(given, str | Path):
        return hostkeys.from_files([str(given)])
    if host.known_hosts:
        return hostkeys.from_files([host.known_hosts])
    user = config.get("UserKnownHostsFile")
    everywhere = config.get("GlobalKnownHostsFile")
    return hostkeys.from_files(
        [
            *(hostkeys.USER_FILES if user is None else user),
            *(hostkeys.GLOBAL_FILES if everywhere is None else everywhere),
        ]
    )


def _key_files(host: Host, config: Any) -> tuple[str, ...]:
    named: Sequence[str] = [host.identity] if host.identity else config.get("IdentityFile") or []
    if not named:
        named = [f"~/.ssh/{name}" for name in _DEFAULT_KEYS]
    return tuple(file for file in map(os.path.expanduser, map(str, named)) if os.path.exists(file))


def _readable(file: str) -> str:
    with open(file, "rb"):
        return file
