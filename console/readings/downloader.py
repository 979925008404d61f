"""Who downloads: the processes on a host, the unit's end, and what the downloader's environment makes of memory. Pure.

`hf download REPO` and `huggingface-cli download REPO` as of huggingface_hub 2.4.0; variables of hf_xet as in
huggingface/hub-docs `xet/using-xet-storage`, their effect as in huggingface/xet-core issues 926 and 927 and PR 943.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import basename

from console.readings.processes import Process
from console.readings.units import Unit, UnitMemory
from console.sanitize import line, word

GB = 10**9
GIB = 1024**3

LARGEST_PLAIN = 50 * GB
"""Largest file that huggingface_hub fetches without hf_xet (`constants.MAX_HTTP_DOWNLOAD_SIZE`)."""

_LIMIT = "HF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_LIMIT"
_CAPS = (_LIMIT, "HF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_SIZE", "HF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_PERFILE_SIZE")
_USUAL_LIMIT = 8 * GB
_PRESET_LIMIT = 64 * GB
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": GB, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": GIB}

_NAMES = ("hf", "huggingface-cli")
_MODULES = re.compile(r"huggingface_hub\.(?:cli\.hf|commands\.huggingface_cli)")
_VALUED = frozenset(
    "--repo-type --type --revision --include --exclude --cache-dir --local-dir --token --max-workers --format".split()
)
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?", re.ASCII)
_CODE = re.compile(r"snapshot_download\(\s*(?:repo_id\s*=\s*)?['\"]([\w.-]+/[\w.-]+)['\"]", re.ASCII)
_ONLY_NAMES_IT = frozenset(
    "systemd-run ssh scp tmux tmux: screen SCREEN docker podman kubectl grep egrep rg pgrep pkill tail less more man"
    " vi vim nano watch journalctl tee cat".split()
)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ash", "busybox"))
_LOOP = re.compile(r"\b(?:while|until|for)\b.*\bsleep\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Downloader:
    """One running download."""

    pid: int
    repo: str
    """`org/name`."""
    revision: str = ""
    folder: str = ""
    """Its `--local-dir`, if it has one."""
    started: float | None = None
    """Unix seconds by the host's clock."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What runs on a host that matters before a download is started."""

    downloads: tuple[Downloader, ...]
    loops: tuple[Process, ...]
    """Poll loops whose parent is gone: a dropped connection left them behind."""
    zombies: tuple[Process, ...]
    """They cannot be ended, and write nothing."""

    def of(self, repo: str, folder: str = "") -> tuple[Downloader, ...]:
        """The downloads of `org/name`, or into `folder`."""
        return tuple(
            item for item in self.downloads if (repo and item.repo == repo) or (folder and item.folder == folder)
        )


def read_leftovers(processes: Sequence[Process]) -> Leftovers:
    """Downloads, forsaken poll loops and zombies among the processes of a host. Never raises."""
    alive = {item.pid: item for item in processes if item.alive}
    named = {pid: found for pid, item in alive.items() if (found := _download(item))}
    # a wrapper (`sh -c`, `timeout`, `nice`) and what it runs are one download: the topmost stands for it
    roots = [named[pid] for pid in named if not _under(pid, alive, named)]
    reapers = {1} | {pid for pid, item in alive.items() if re.match(r"\S*systemd --user\b", item.command)}
    loops = [item for pid, item in alive.items() if item.ppid in reapers and pid not in named and _is_loop(item)]
    return Leftovers(tuple(roots), tuple(loops), tuple(item for item in processes if not item.alive))


def _under(pid: int, alive: Mapping[int, Process], named: Mapping[int, Downloader]) -> bool:
    """Whether a process stands below another one of the same download. Bounded, whatever the parents say."""
    repo = named[pid].repo
    for _ in range(16):
        parent = alive[pid].ppid
        if parent == pid or parent not in alive:
            return False
        if parent in named and named[parent].repo == repo:
            return True
        pid = parent
    return False


def _download(process: Process) -> Downloader | None:
    words = [item.strip("'\"") for item in process.command.split()]
    if not words or basename(words[0]) in _ONLY_NAMES_IT:
        return None
    for at in range(1, len(words)):
        before = words[at - 1]
        if words[at] == "download" and (basename(before) in _NAMES or _MODULES.fullmatch(before)):
            return _arguments(process, words[at + 1 :])
    if match := _CODE.search(process.command):
        return Downloader(process.pid, match[1], started=process.started)
    return None


def _arguments(process: Process, words: Sequence[str]) -> Downloader | None:
    """The repository and options of `hf download ...`; None for one that fetches nothing."""
    options: dict[str, str] = {}
    repo = ""
    rest = iter(words)
    for item in rest:
        item, ends, _ = item.partition(";")
        name, equals, value = item.partition("=")
        if name in _VALUED:
            options[name] = value if equals else next(rest, "").rstrip(";'\"")
        elif not repo and _MODEL.fullmatch(item):
            repo = item
        if ends or item in ("&&", "||", "|", "&"):
            break
    if not repo or "--dry-run" in words:
        return None
    return Downloader(
        process.pid,
        word(repo, 200),
        word(options.get("--revision", ""), 80),
        options.get("--local-dir", "").rstrip("/"),
        process.started,
    )


def _is_loop(process: Process) -> bool:
    words = process.command.split()
    name = basename(words[0]).lstrip("-") if words else ""
    if name in _SHELLS:
        return "-c" in words[1:3] and _LOOP.search(process.command) is not None
    return name == "watch" or (name == "tail" and any(item.startswith(("-f", "-F", "--follow")) for item in words))


def before_starting(found: Leftovers, repo: str, folder: str = "") -> list[str]:
    """Why not to start another download of a repository now; empty where nothing is in its way."""
    running = found.of(repo, folder)
    warnings = download_warnings(running, repo or folder)
    if len(running) == 1:
        warnings.append(f"a download of {repo or folder} runs already (pid {running[0].pid})")
    if found.loops:
        pids = ", ".join(str(item.pid) for item in found.loops[:8])
        warnings.append(f"poll loops left behind by dropped connections: {len(found.loops)} (pid {pids})")
    return warnings


def download_warnings(found: Sequence[Downloader], repo: str) -> list[str]:
    """What to know about running downloads of one repository before another one is started."""
    pids = ", ".join(str(item.pid) for item in found[:8])
    if len(found) > 1:
        return [f"{len(found)} downloads run for {repo} (pid {pids}): each fetches the same files; keep one"]
    return []


_BAR = re.compile(
    r"(?P<label>.{0,400}?):?[ \t]+(?:[0-9]{1,3}%\|.{0,400}?\|[ \t]*)?"
    r"(?P<done>[0-9][0-9.]{0,11}[kMGTP]?)(?:B?/(?P<of>[0-9][0-9.]{0,11}[kMGTP]?))?B?[ \t]*\[[^\]]{0,80}B/s"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """The last bar of bytes that a downloader drew. It is text, never a measure of progress: see `total_incomplete`."""

    label: str
    done: str
    """`335M`, as it stands there."""
    of: str
    """`39.7G`; '' where the bar has no total."""
    total_incomplete: bool
    """The bar itself says that its total still grows: no share can be told from it."""


def last_bar(text: str) -> Bar | None:
    """The newest tqdm bar of bytes in a downloader's output; None without one. Never raises."""
    for part in reversed(re.split(r"[\r\n]", text[-65_536:])):
        match = _BAR.match(part[:1200])
        if match:
            label = line(match["label"], 200).strip(" :")
            return Bar(label, match["done"], match["of"] or "", "incomplete total" in label)
    return None


class End(StrEnum):
    """How a downloader's unit ended."""

    NONE = ""
    """It runs, ended well, or nothing is known of it."""
    CAP = "memory cap"
    FAILED = "failed"


def unit_end(unit: Unit | None, memory: UnitMemory | None, kills_before: int | None = None) -> tuple[End, str]:
    """How the unit ended, and why in words. `kills_before` is an earlier count of its cgroup's oom_kill.

    systemd names a kill by the kernel `Result=oom-kill` where the cgroup tells it (v2); where it does not (v1), a
    kill at the cap is only a signal, its peak is the hint, and with its last process the cgroup itself is gone.
    """
    if unit is None or unit.active in ("active", "reloading", "") or unit.load == "not-found":
        return End.NONE, ""
    again = ", starts again" if unit.active == "activating" else ""
    cap = (memory.cap or memory.cap_asked) if memory else None
    at = f" of {cap / GIB:.2f} GiB" if cap else ""
    if unit.result == "oom-kill":
        return End.CAP, f"{unit.name} was killed by the kernel at its memory cap{at}{again}"
    kills = memory.oom_kills if memory else None
    if kills and kills_before is not None and kills > kills_before:
        return End.CAP, f"the kernel killed {kills - kills_before} of {unit.name} at its memory cap{at}{again}"
    killed = unit.result == "signal" and unit.main_status in (None, 9)
    if killed and memory and cap and memory.peak is not None and memory.peak >= 0.98 * cap:
        return End.CAP, f"{unit.name} was killed at its memory cap{at} (likely: its peak reached the cap){again}"
    if killed and memory and cap and memory.peak is None:
        words = f"{unit.name} was killed by SIGKILL: by hand, or by the kernel at its memory cap{at}"
        return End.FAILED, f"{words}, which cgroup v1 does not tell{again}"
    if unit.active == "failed" or unit.result not in ("success", ""):
        return End.FAILED, f"{unit.name}: {unit.result or 'failed'}{again}"
    return End.NONE, ""


@dataclass(frozen=True, slots=True)
class XetSettings:
    """What a downloader's environment says about memory and transport. Bytes."""

    high_performance: bool
    asked_limit: int | None
    """The explicit limit of its download buffers; None where none is set, or it is no size."""
    limit_before_943: int
    """What hf_xet without xet-core PR 943 uses: the preset wins over explicit limits."""
    limit: int | None
    """What later ones use: the explicit limit; None where it is derived from the machine's memory."""
    xet_off: bool
    shared_store: bool
    """Fresh xet files may become links into the cache's shared store."""
    warnings: tuple[str, ...]


def parse_environment(text: str) -> dict[str, str]:
    """`KEY=VALUE` lines (or /proc/PID/environ) by key, only what is for the downloader and no token. Never raises."""
    found: dict[str, str] = {}
    for row in re.split(r"[\n\0]", text):
        match = re.match(r"\s*(?:export\s+)?(HF_[A-Z0-9_]+)=(.*)", row)
        if match and "TOKEN" not in match[1]:
            value = match[2].strip()
            quoted = re.match(r"(['\"])(.*?)\1", value)
            found[match[1]] = line(quoted[2] if quoted else re.split(r"\s#", value)[0].strip(), 200)
    return found


def read_settings(environment: Mapping[str, str]) -> XetSettings:
    """What the downloader makes of its environment."""
    preset = _on(environment, "HF_XET_HIGH_PERFORMANCE") or _on(environment, "HF_XET_HP")
    asked = _bytes(environment.get(_LIMIT, ""))
    return XetSettings(
        high_performance=preset,
        asked_limit=asked,
        limit_before_943=_PRESET_LIMIT if preset else _USUAL_LIMIT if asked is None else asked,
        limit=asked,
        xet_off=_on(environment, "HF_HUB_DISABLE_XET"),
        shared_store=not (_on(environment, "HF_HUB_DISABLE_SHARED_BLOBS") or _on(environment, "HF_HUB_DISABLE_XET")),
        warnings=tuple(_setting_warnings(environment, preset)),
    )


def _setting_warnings(environment: Mapping[str, str], preset: bool) -> list[str]:
    caps = [name for name in _CAPS if environment.get(name)]
    warnings = []
    if preset and caps:
        warnings.append(
            f"HF_XET_HIGH_PERFORMANCE overrides {' and '.join(caps)} in hf_xet before xet-core#943:"
            " up to 64 GB of buffers; unset it"
        )
    elif preset:
        warnings.append("HF_XET_HIGH_PERFORMANCE lets hf_xet buffer up to 64 GB; not beside a serving engine")
    if environment.get("HF_XET_CHUNK_CACHE_SIZE_BYTES", "") == "0":
        warnings.append("HF_XET_CHUNK_CACHE_SIZE_BYTES=0 is no memory cap; cap its unit with MemoryMax")
    return warnings


def _on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "on", "yes", "true")


def _bytes(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,18})\s*([a-z]{0,3})", text.strip().lower())
    return int(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else None
