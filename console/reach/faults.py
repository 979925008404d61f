"""Why a connection did not come about, in words and with a hint. Each kind has its own."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.reach.hostkeys import advice
from console.readings.hostkeys import HostKeyProblem
from console.readings.output import Outcome
from console.sanitize import line

if TYPE_CHECKING:
    from console.reach.targets import Target


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a host cannot be asked; safe text."""

    outcome: Outcome
    problem: str
    hint: str = ""
    stubborn: bool = False
    """Trying again soon will not help: a person has to act."""
    host_key: HostKeyProblem | None = None


class ConnectFailed(Exception):
    """A connection could not be made."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.problem)
        self.fault = fault


_ERRNO = {
    errno.ECONNREFUSED: ("connection refused by {where}", "the host is up; is sshd running, and is the port right?"),
    errno.EHOSTUNREACH: ("no route to {where}", "host down, cable or VPN; ping it"),
    errno.ENETUNREACH: ("network of {where} is unreachable", "is the VPN or the interface up?"),
    errno.ETIMEDOUT: ("no answer from {where}", "host down, or a firewall drops ssh"),
    errno.ECONNRESET: ("{where} reset the connection during the handshake", "sshd restarts, or a firewall cut it"),
    errno.EMFILE: ("this machine is out of file descriptors", "raise `ulimit -n`"),
}
_BY_HAND = "run the ProxyCommand of ssh_config by hand: what does it say?"
_UNREADABLE = {
    FileNotFoundError: "is not there",
    PermissionError: "cannot be read by you",
    IsADirectoryError: "is a folder",
}


def explain(
    error: BaseException,
    target: Target,
    *,
    key: HostKeyProblem | None = None,
    limit: float = 0.0,
    connected: bool = False,
) -> Fault:
    """The fault behind an exception of asyncssh.connect.

    `key` is the host key that was refused, if one was; `connected` says that the TCP connection had come about.
    """
    import asyncssh

    if key is not None:
        outcome = Outcome.HOST_KEY_CHANGED if key.changed else Outcome.HOST_KEY_UNKNOWN
        words = "host key changed" if key.changed else "host key unknown"
        problem = f"{words}: {key.describe()}"
        return Fault(outcome, problem, advice(key, target.lookup, target.port), stubborn=True, host_key=key)
    if isinstance(error, asyncssh.Error):
        return _refused(error, target)
    if isinstance(error, TimeoutError) and connected:
        return _hung(target)
    if isinstance(error, TimeoutError):
        words = f" within {limit:g} s" if limit else ""
        return Fault(Outcome.UNREACHABLE, f"no answer from {target.where}{words}", "host down, or a firewall drops ssh")
    if isinstance(error, UnicodeError):
        return Fault(Outcome.UNREACHABLE, f"{line(target.host, 200)} is no host name", "correct its spelling", True)
    if isinstance(error, socket.gaierror):
        hint = "check the spelling, HostName in ssh_config, or DNS"
        return Fault(Outcome.UNREACHABLE, f"name {target.host} does not resolve", hint)
    if isinstance(error, OSError):
        return _os_error(error, target)
    return explain_odd(error, target.where)


def explain_odd(error: BaseException, where: str) -> Fault:
    """The fault behind an exception that no library is documented to raise."""
    words = f"{line(where, 200)}: {type(error).__name__}: {line(str(error), 200)}"
    return Fault(Outcome.UNREACHABLE, words, "not a known failure of ssh; does `ssh` itself get there?")


def _refused(error: BaseException, target: Target) -> Fault:
    """The fault behind one of asyncssh's own exceptions."""
    import asyncssh

    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        problem = f"host key of {target.where} refused: {line(str(error), 200)}"
        return Fault(Outcome.HOST_KEY_UNKNOWN, problem, "look at the host's key or certificate", stubborn=True)
    if isinstance(error, asyncssh.PermissionDenied):
        return Fault(Outcome.PERMISSION, f"permission denied for {target.where}", _key_hint(target), stubborn=True)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        problem = f"no common algorithm with {target.where}: {line(str(error), 200)}"
        return Fault(
            Outcome.UNREACHABLE, problem, "set KexAlgorithms or HostKeyAlgorithms in ssh_config", stubborn=True
        )
    if isinstance(error, asyncssh.ChannelOpenError):
        problem = f"jump host {target.jump or '?'} cannot reach {target.host}:{target.port}: {line(error.reason, 200)}"
        return Fault(Outcome.UNREACHABLE, problem, "log in to the jump host and try the connection from there")
    if isinstance(error, asyncssh.DisconnectError):
        return _disconnected(error, target)
    return explain_odd(error, target.where)


def explain_setup(error: Exception, label: str) -> Fault:
    """The fault behind an exception of `targets.resolve`: ssh_config, key file or name."""
    import asyncssh

    words = line(str(error), 200)
    if isinstance(error, asyncssh.ConfigParseError):
        return Fault(Outcome.UNREACHABLE, f"ssh_config cannot be read: {words}", "correct that line", stubborn=True)
    if isinstance(error, asyncssh.KeyImportError):
        return Fault(Outcome.PERMISSION, f"key file cannot be used: {words}", "correct `identity`", stubborn=True)
    if isinstance(error, RecursionError):
        return Fault(Outcome.UNREACHABLE, f"{label}: ssh_config includes itself", "correct its Include lines", True)
    if isinstance(error, OSError) and error.filename:
        why = _UNREADABLE.get(type(error), error.strerror or type(error).__name__)
        problem = f"{line(str(error.filename), 200)} {line(why, 200)}"
        return Fault(Outcome.PERMISSION, problem, "correct `identity` or `config` of this host", stubborn=True)
    return Fault(Outcome.UNREACHABLE, f"{label}: {words}", "correct `ssh` of this host", stubborn=True)


def _disconnected(error: BaseException, target: Target) -> Fault:
    words = line(str(error), 200)
    if "imeout" in words:
        return _hung(target)
    if "authentication failures" in words:
        hint = "the agent offers too many keys: set IdentityFile and IdentitiesOnly yes in ssh_config"
        return Fault(Outcome.PERMISSION, f"{target.where} refused the login: {words}", hint, stubborn=True)
    if target.proxied:
        problem = f"the ProxyCommand of {target.where} ended before a login: {words}"
        return Fault(Outcome.UNREACHABLE, problem, _BY_HAND)
    hint = "sshd drops logins beyond MaxStartups, or it restarts; tried again"
    return Fault(Outcome.UNREACHABLE, f"{target.where} closed the connection during the login: {words}", hint)


def _hung(target: Target) -> Fault:
    if target.proxied:
        problem = f"no login at {target.where} comes about through its ProxyCommand"
        return Fault(Outcome.UNREACHABLE, problem, _BY_HAND)
    problem = f"{target.where} accepts connections, but no login comes about"
    return Fault(Outcome.UNREACHABLE, problem, "sshd hangs: out of memory, a dead home directory or login service")


def _os_error(error: OSError, target: Target) -> Fault:
    # a name with several addresses fails with all their errors in one text
    numbers = [error.errno] if error.errno else [int(n) for n in re.findall(r"\[Errno (\d+)\]", str(error))]
    for number in _ERRNO:
        if number in numbers:
            problem, hint = _ERRNO[number]
            return Fault(Outcome.UNREACHABLE, problem.format(where=target.address), hint)
    words = line(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 200)
    return Fault(Outcome.UNREACHABLE, f"{target.where}: {words}", _BY_HAND if target.proxied else "")


def _key_hint(target: Target) -> str:
    locked = [file for file in target.key_files if _is_encrypted(file)]
    agent = bool(target.agent) and os.path.exists(target.agent)
    if locked and not agent:
        return f"{locked[0]} has a passphrase and no agent runs: eval $(ssh-agent); ssh-add {locked[0]}"
    if locked:
        return f"{locked[0]} has a passphrase: ssh-add {locked[0]}"
    if not target.key_files and not agent:
        return "no key file and no agent was found: ssh-add, or set IdentityFile in ssh_config"
    return f"check the user name, and that {target.user}'s authorized_keys on the host holds your key"


def _is_encrypted(file: str) -> bool:
    import asyncssh

    try:
        asyncssh.read_private_key(file)
    except asyncssh.KeyEncryptionError:
        return True
    except asyncssh.KeyImportError as error:
        return "assphrase" in str(error)
    except OSError:
        return False
    return False


def is_dropped_login(error: BaseException) -> bool:
    """True where sshd dropped the connection before the login, as it does beyond MaxStartups: worth trying again."""
    import asyncssh

    if isinstance(error, asyncssh.ConnectionLost):
        return "imeout" not in str(error)
    return isinstance(error, ConnectionResetError | asyncio.IncompleteReadError)
