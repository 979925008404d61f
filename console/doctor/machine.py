"""The operator's own machine: terminal, Python and libraries, ssh configuration, agent, known hosts."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from console.doctor.check import Check, Subject
from console.fleet.inventory import Fleet, Host
from console.reach.connection import load_asyncssh
from console.reach.hostkeys import GLOBAL_FILES, USER_FILES
from console.reach.targets import config_files
from console.sanitize import line, word

HERE = Subject("this machine")
SMALLEST, COMFORTABLE = (80, 24), (120, 40)
"""Columns and rows: under the first lamps are cut, from the second panes are boxed."""
LIBRARIES = ("asyncssh", "cyclopts", "docker", "httpx", "platformdirs", "psutil", "pydantic", "textual")
OLDEST_PYTHON = (3, 11)
AGENT_LIMIT = 5.0
"""Seconds; an agent that waits for a touch or a dead forwarded one never answers."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """What this process has to draw on."""

    on_a_terminal: bool
    encoding: str
    size: tuple[int, int] | None
    """Columns and rows; None without a terminal."""
    environ: Mapping[str, str]


def this_terminal() -> Terminal:
    """The terminal of this process."""
    try:
        size = tuple(os.get_terminal_size(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):
        size = None
    encoding = getattr(sys.stdout, "encoding", "") or ""
    on_one = bool(sys.stdout and sys.stdout.isatty() and sys.stdin and sys.stdin.isatty())
    return Terminal(on_one, encoding, (size[0], size[1]) if size else None, os.environ)


def terminal_checks(terminal: Terminal) -> list[Check]:
    """Whether the console can be drawn here, and how well."""
    return [_kind(terminal), _size(terminal), _text(terminal), _colours(terminal), _between(terminal)]


def _kind(terminal: Terminal) -> Check:
    name = word(terminal.environ.get("TERM", ""), 40)
    if not terminal.on_a_terminal:
        advice = "run it where you will run `laneswap`; `laneswap status` needs none"
        return HERE.look("terminal", "input or output is no terminal: the screen needs one", advice)
    if name in ("", "dumb"):
        return HERE.fail("terminal", f"TERM is {name or 'not set'}", "export TERM=xterm-256color")
    synchronized = "whether it paints whole frames at once is only asked when the console runs"
    return HERE.ok("terminal", f"{name}; {synchronized}")


def _size(terminal: Terminal) -> Check:
    if terminal.size is None:
        return HERE.look("size", "unknown without a terminal")
    columns, rows = terminal.size
    words = f"{columns} columns, {rows} rows"
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        return HERE.look("size", words, f"make it at least {SMALLEST[0]}x{SMALLEST[1]}")
    if columns < COMFORTABLE[0] or rows < COMFORTABLE[1]:
        return HERE.ok("size", f"{words}; from {COMFORTABLE[0]}x{COMFORTABLE[1]} panes are boxed")
    return HERE.ok("size", words)


def _text(terminal: Terminal) -> Check:
    encoding = terminal.encoding.lower().replace("-", "").replace("_", "")
    if encoding == "utf8":
        return HERE.ok("encoding", "UTF-8")
    named = word(terminal.encoding, 40) or "none"
    return HERE.look("encoding", f"{named}, not UTF-8", "export LC_ALL=C.UTF-8, or run `laneswap --ascii`")


def _colours(terminal: Terminal) -> Check:
    environ = terminal.environ
    if environ.get("NO_COLOR"):
        return HERE.ok("colours", "none: NO_COLOR is set; words and positions say the same")
    name = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or name.endswith("-direct"):
        return HERE.ok("colours", "16 million")
    if "256" in name or name.startswith(("xterm-kitty", "alacritty", "foot", "wezterm")):
        return HERE.ok("colours", "256, as far as TERM tells; export COLORTERM=truecolor if it knows more")
    return HERE.look("colours", f"few, as far as TERM={word(name, 40)} tells", "export TERM=xterm-256color")


def _between(terminal: Terminal) -> Check:
    environ = terminal.environ
    if environ.get("TMUX"):
        return HERE.ok("multiplexer", "tmux: the console outlives this connection")
    if environ.get("STY"):
        return HERE.look("multiplexer", "screen: it knows no synchronized painting, and few colours", "use tmux")
    over_ssh = bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    if over_ssh:
        advice = "start it in tmux: a connection that is lost then takes no window with it"
        return HERE.look("multiplexer", "none, over ssh", advice)
    return HERE.ok("multiplexer", "none")


def library_checks(version: tuple[int, ...] = sys.version_info[:3]) -> list[Check]:
    """Python and the libraries that are installed."""
    words = ".".join(map(str, version))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    python = HERE.ok("python", words)
    if tuple(version) < OLDEST_PYTHON:
        python = HERE.fail("python", words, f"install Python {oldest} or newer")
    found, missing = [], []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {word(metadata.version(name), 30)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing == ["textual"]:
        advice = "install textual for the screen; the headless commands work without it"
        return [python, HERE.look("libraries", f"no textual; {', '.join(found)}", advice)]
    if missing:
        advice = "install laneswap again: `pipx reinstall laneswap`"
        return [python, HERE.fail("libraries", f"missing: {', '.join(missing)}", advice)]
    return [python, HERE.ok("libraries", ", ".join(found))]


def ssh_file_checks(fleet: Fleet | None) -> list[Check]:
    """ssh_config and known_hosts, as the fleet's hosts use them. Blocking (files)."""
    hosts = [host for host in fleet.hosts.values() if not host.is_local] if fleet else []
    if fleet is not None and not hosts:
        return [HERE.ok("ssh config", "not needed: every host is this machine")]
    found = dict.fromkeys(file for host in hosts or [_ANY] for file in config_files(host))
    config = HERE.ok("ssh config", ", ".join(map(_short, found)) or "none; names and keys are ssh's defaults")
    if unreadable := [file for file in found if not os.access(file, os.R_OK)]:
        config = HERE.fail("ssh config", f"{_short(unreadable[0])} cannot be read", "correct `config` in fleet.toml")
    return [config, _known_hosts(hosts)]


_ANY = Host(ssh="any")


def _known_hosts(hosts: Sequence[Host]) -> Check:
    usual = [*USER_FILES, *GLOBAL_FILES]
    files = [file for host in hosts for file in ([host.known_hosts] if host.known_hosts else usual)] or usual
    counted = {file: _entries(Path(file).expanduser()) for file in dict.fromkeys(files)}
    there = [f"{_short(file)} ({_many(count)})" for file, count in counted.items() if count is not None]
    if there:
        return HERE.ok("known hosts", ", ".join(there))
    advice = "log in to each host once with ssh, and compare its fingerprint before you say yes"
    return HERE.look("known hosts", "no such file: every host key is unknown", advice)


def _many(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _entries(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            rows = file.read(4 << 20).split(b"\n")
    except OSError:
        return None
    return sum(1 for row in rows if row.strip() and not row.lstrip().startswith(b"#"))


def _short(path: str) -> str:
    """With `~` for the home folder."""
    home = os.path.expanduser("~")
    return line("~" + path[len(home) :] if home != "/" and path.startswith(home + "/") else path, 200)


def webhook_check(fleet: Fleet, environ: Mapping[str, str]) -> Check:
    """Whether anybody is told what nobody sees on a screen."""
    name = fleet.notify.webhook_env
    if environ.get(name, ""):
        return HERE.ok("webhook", f"{name} is set: alarms and the dead-man timer tell people")
    return HERE.ok("webhook", f"{name} is not set: nobody is told of alarms, or of a debt after this console is gone")


async def agent_check(environ: Mapping[str, str], *, needed: bool = True) -> Check:
    """The ssh agent and its keys."""
    path = environ.get("SSH_AUTH_SOCK", "")
    if not path:
        words = "SSH_AUTH_SOCK is not set: keys with a passphrase cannot be used"
        return HERE.look("agent", words, "eval $(ssh-agent); ssh-add") if needed else HERE.ok("agent", words)
    try:
        async with asyncio.timeout(AGENT_LIMIT):
            keys = await _agent_keys(path)
    except TimeoutError:
        return HERE.look("agent", f"{_short(path)} does not answer", "restart it, or log in with forwarding again")
    except (OSError, ValueError) as error:
        words = f"{_short(path)}: {line(str(error), 160)}"
        return HERE.look("agent", words, "the socket is left from an agent that has ended: eval $(ssh-agent); ssh-add")
    if not keys:
        return HERE.look("agent", f"{_short(path)} holds no key", "ssh-add")
    return HERE.ok("agent", f"{len(keys)} keys: {', '.join(keys[:6])}" if len(keys) > 1 else f"1 key: {keys[0]}")


async def _agent_keys(path: str) -> list[str]:
    """Type and comment of each key. Raises OSError or ValueError."""
    asyncssh: Any = await asyncio.to_thread(load_asyncssh)
    try:
        agent = await asyncssh.connect_agent(path)
        async with agent:
            pairs = await agent.get_keys()
    except asyncssh.Error as error:
        raise ValueError(str(error)) from error
    return [_key_words(pair) for pair in pairs]


def _key_words(pair: Any) -> str:
    algorithm = pair.algorithm.decode("ascii", "replace") if isinstance(pair.algorithm, bytes) else str(pair.algorithm)
    comment = pair.get_comment() if hasattr(pair, "get_comment") else ""
    return " ".join(part for part in (word(algorithm, 40), word(str(comment or ""), 60)) if part)
