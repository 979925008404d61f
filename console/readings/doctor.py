"""What a host's set-up is, from one script that only looks. Pure: the script's text, and the reading of its answer.

The script prints a row `@SECTION STATUS` before what each command said; those rows begin with `| `, so that nothing
that a command prints can pass for a section. An answer that was cut off is read as far as it goes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from console.sanitize import line, lines, word

MOST_ROWS, MOST_CHARACTERS = 60, 300
"""Kept of one section, and of one of its rows."""

SECTIONS = r"""
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin; export PATH
t=; command -v timeout >/dev/null 2>&1 && t='timeout 8'
me=$(id -un 2>/dev/null)
u=$(id -u 2>/dev/null)
s() {
n=$1; shift
o=$("$@" 2>&1 </dev/null); r=$?
printf '@%s %s\n' "$n" "$r"
printf '%s\n' "$o" | head -c 8000 | sed 's/^/| /'
}
"""
"""Makes `s NAME COMMAND...`, which runs a command and prints its section; `t` before one ends it after 8 s."""

SCRIPT = (
    r"""
d() {"""
    + SECTIONS
    + r"""s id id
s shell sh -c 'getent passwd "$1" | cut -d: -f7' sh "$me"
s python $t python3 -ISBc 'import IMPORTS; print("%d.%d.%d" % sys.version_info[:3])'
s linger $t loginctl show-user "$me" -p Linger
s lingerfile sh -c 'test -d /var/lib/systemd/linger && ls /var/lib/systemd/linger'
l=org.freedesktop.login1
s removeipc $t busctl get-property $l /org/freedesktop/login1 $l.Manager RemoveIPC
s logind sh -c 'grep -HE "^[[:space:]]*#?[[:space:]]*RemoveIPC[[:space:]]*=" /etc/systemd/logind.conf \
/usr/lib/systemd/logind.conf /etc/systemd/logind.conf.d/*.conf /run/systemd/logind.conf.d/*.conf \
/usr/local/lib/systemd/logind.conf.d/*.conf /usr/lib/systemd/logind.conf.d/*.conf 2>/dev/null'
s sudo $t sudo -n true
s booted test -d /run/systemd/system
s systemd $t systemctl --version
XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$u}; export XDG_RUNTIME_DIR
s manager $t systemctl --user is-system-running
s cgroup stat -fc %T /sys/fs/cgroup
s delegated cat "/sys/fs/cgroup/user.slice/user-$u.slice/user@$u.service/cgroup.controllers"
s disk $t df -Pk "$HOME"
s sshd sh -c 'cat /etc/ssh/sshd_config.d/*.conf /etc/ssh/sshd_config 2>/dev/null | grep -Ei \
"^[[:space:]]*(MaxSessions|AllowTcpForwarding|AllowStreamLocalForwarding|DisableForwarding|Match)[[:space:]=]"; \
test -r /etc/ssh/sshd_config'
s consoles sh -c 'ps -eo args= | grep -F "LABEL " | grep -v grep | cut -c 1-4000'
s docker $t docker version --format '{{.Server.Version}} {{.Server.APIVersion}}'
s gpu $t nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader
printf '@end 0\n'
}
d
"""
)
"""Run as `sh -s`, with `script()` on stdin. What may hang on a starved host comes last."""


def script(imports: str, label: str) -> str:
    """The script; `imports` is what the sampler needs of python3, `label` stands in a sampler's command line."""
    return SCRIPT.replace("IMPORTS", imports).replace("LABEL", label)


@dataclass(frozen=True, slots=True)
class Section:
    """What one command said."""

    status: int
    """Exit status; 124 where it was ended after 8 s, 127 where there is no such command."""
    rows: tuple[str, ...]
    """Safe text."""

    @property
    def first(self) -> str:
        """The first row that is not empty."""
        return next((row.strip() for row in self.rows if row.strip()), "")


@dataclass(frozen=True, slots=True)
class HostSetup:
    """One host's set-up. None, '' or () is unknown, unless it says otherwise."""

    user: str = ""
    uid: int | None = None
    groups: tuple[str, ...] = ()
    shell: str = ""
    """The login shell."""
    python: str | None = None
    """Version; '' where there is none that can run the sampler."""
    linger: bool | None = None
    remove_ipc: bool | None = None
    """Whether logind removes what a user leaves in shared memory once they have logged out."""
    sudo: bool | None = None
    """Without a password."""
    systemd: int | None = None
    """Version; 0 for a host without it."""
    user_manager: str = ""
    """What it says of itself: `running`, `degraded`..., or why it could not be asked."""
    cgroup: int | None = None
    """Version of the hierarchy: 1 or 2."""
    memory_delegated: bool | None = None
    """The user manager may cap memory."""
    home_free: int | None = None
    """Bytes."""
    sshd: Mapping[str, str] = field(default_factory=dict)
    """What sshd_config sets for everybody, names in lower case."""
    sshd_read: bool | None = None
    consoles: int | None = None
    """Other consoles that sample this host."""
    docker: Section | None = None
    gpu: Section | None = None
    complete: bool = False
    """The script came to its end."""


_HEAD = re.compile(r"@([a-z]{1,20}) ([0-9]{1,3})")


def parse_sections(text: str) -> dict[str, Section]:
    """The sections of an answer; of one that comes twice the first. Never raises."""
    found: dict[str, Section] = {}
    name, status, rows = "", 0, list[str]()
    for row in [*lines(text, MOST_CHARACTERS, 5000), "@ "]:
        if row.startswith("| "):
            if len(rows) < MOST_ROWS:
                rows.append(row[2:])
            continue
        if not row.startswith("@"):
            continue
        if name:
            found.setdefault(name, Section(status, tuple(rows)))
        match = _HEAD.fullmatch(row)
        name, status, rows = (match[1], int(match[2]), []) if match else ("", 0, [])
    return found


def parse_setup(text: str) -> HostSetup:
    """What the script's answer says. Never raises."""
    found = parse_sections(text)
    user, uid, groups = _identity(found.get("id"))
    sshd = found.get("sshd")
    return HostSetup(
        user=user,
        uid=uid,
        groups=groups,
        shell=word(_said(found.get("shell")), 80),
        python=_python(found.get("python")),
        linger=_linger(found, user),
        remove_ipc=_removes_ipc(found),
        sudo=_sudo(found.get("sudo")),
        systemd=_systemd(found),
        user_manager=_manager(found.get("manager")),
        cgroup=_cgroup(found.get("cgroup")),
        memory_delegated=_delegated(found.get("delegated")),
        home_free=_free(found.get("disk")),
        sshd={} if sshd is None else sshd_settings(sshd.rows),
        sshd_read=None if sshd is None else sshd.status == 0,
        consoles=_consoles(found.get("consoles")),
        docker=found.get("docker"),
        gpu=found.get("gpu"),
        complete="end" in found,
    )


def _said(section: Section | None) -> str:
    """Its first row, if it succeeded."""
    return section.first if section is not None and section.status == 0 else ""


def _identity(section: Section | None) -> tuple[str, int | None, tuple[str, ...]]:
    text = _said(section)
    user = re.search(r"uid=([0-9]{1,10})\(([^)\s]{1,64})\)", text)
    groups = re.search(r"groups=(\S+)", text)
    names = tuple(re.findall(r"\(([^)\s]{1,64})\)", groups[1])) if groups else ()
    return (user[2], int(user[1]), names) if user else ("", None, names)


def _python(section: Section | None) -> str | None:
    if section is None or section.status == 124:
        return None
    return section.first if re.fullmatch(r"3\.[0-9]{1,3}\.[0-9]{1,3}", _said(section)) else ""


def _linger(found: Mapping[str, Section], user: str) -> bool | None:
    said = _said(found.get("linger"))
    if said in ("Linger=yes", "Linger=no"):
        return said == "Linger=yes"
    folder = found.get("lingerfile")
    if folder is None or folder.status != 0 or not user:
        return None
    return user in folder.rows


def _removes_ipc(found: Mapping[str, Section]) -> bool | None:
    """What logind says itself, else what its files come to (logind.conf(5))."""
    said = _said(found.get("removeipc"))
    if said in ("b true", "b false"):
        return said == "b true"
    section = found.get("logind")
    return _by_files(section.rows) if section is not None else None  # 2: some of the files are not there


_FOLDERS = ("/etc/", "/run/", "/usr/local/lib/", "/usr/lib/")
"""In this order a file hides one of the same name."""
_SETTING = re.compile(r"(/[^:]{1,250}\.conf):\s*(#?)\s*RemoveIPC\s*=\s*(\S*)\s*")


def _by_files(rows: Iterable[str]) -> bool | None:
    main: dict[str, str] = {}
    drops: dict[str, tuple[int, str]] = {}
    default = ""
    for row in rows:
        if (match := _SETTING.fullmatch(row)) is None:
            continue
        path, commented, value = match[1], match[2], match[3].lower()
        if commented:
            default = default or value  # the shipped file names its default in a comment
        elif "logind.conf.d/" not in path:
            main[path] = value
        else:
            rank = next((at for at, folder in enumerate(_FOLDERS) if path.startswith(folder)), len(_FOLDERS))
            name = posixpath.basename(path)
            if name not in drops or rank <= drops[name][0]:
                drops[name] = (rank, value)
    if drops:
        return _boolean(drops[max(drops)][1])
    for folder in _FOLDERS:
        if (path := next((path for path in main if path.startswith(folder)), "")) != "":
            return _boolean(main[path])
    return _boolean(default)


def _boolean(text: str) -> bool | None:
    if text in ("yes", "true", "on", "1", "y", "t"):
        return True
    return False if text in ("no", "false", "off", "0", "n", "f") else None


def _sudo(section: Section | None) -> bool | None:
    if section is None or section.status == 124:
        return None
    return section.status == 0


def _systemd(found: Mapping[str, Section]) -> int | None:
    """0 also where it is installed, but something else started the host, as in a container."""
    section, booted = found.get("systemd"), found.get("booted")
    if section is None or booted is None:
        return None
    match = re.match(r"systemd ([0-9]{1,4})\b", section.first)
    if booted.status != 0 or section.status == 127:
        return 0
    return int(match[1]) if match else None


def _manager(section: Section | None) -> str:
    """is-system-running exits with 1 for anything but `running`, and still says what."""
    return line(section.first, 120) if section is not None else ""


def _cgroup(section: Section | None) -> int | None:
    return {"cgroup2fs": 2, "tmpfs": 1}.get(_said(section))


def _delegated(section: Section | None) -> bool | None:
    """None where no user manager runs (or there is no such hierarchy): then nothing is delegated yet to be seen."""
    return "memory" in section.first.split() if section is not None and section.status == 0 else None


def _free(section: Section | None) -> int | None:
    """Of `df -Pk`: the fourth column of the second row."""
    if section is None or section.status != 0 or len(section.rows) < 2:
        return None
    match = re.search(r"\s[0-9]{1,18}\s+[0-9]{1,18}\s+([0-9]{1,18})\s+[0-9]{1,3}%", section.rows[-1])
    return int(match[1]) * 1024 if match else None


def sshd_settings(rows: Iterable[str]) -> dict[str, str]:
    """Of sshd_config, names in lower case: the first value is in force, up to the first Match (sshd_config(5))."""
    found: dict[str, str] = {}
    for row in rows:
        fields = row.split("#", 1)[0].replace("=", " ", 1).split()
        if fields and fields[0].lower() == "match":
            break
        if len(fields) == 2:
            found.setdefault(fields[0].lower(), word(fields[1], 40))
    return found


def max_sessions(settings: Mapping[str, str]) -> int | None:
    """Sessions that sshd allows on one connection, by default 10 (sshd_config(5)); None for what is no number."""
    text = settings.get("maxsessions", "10")
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


def _consoles(section: Section | None) -> int | None:
    if section is None:
        return None
    if section.first and not any("laneswap" in row for row in section.rows):
        return None  # no ps, or one that knows no such columns
    return len(set(re.findall(r"laneswap-sampler ([0-9a-f]{8,64})\b", "\n".join(section.rows))))


def parse_instant(text: str) -> tuple[float, float] | None:
    """Unix seconds of `date +%s.%N`, and how far off they may be; None for what is no time. busybox knows no %N."""
    match = re.fullmatch(r"([0-9]{9,11})\.([0-9]{1,9}|%?N)", text.strip()[:40])
    if match is None:
        return None
    if match[2].isdigit():
        return float(f"{match[1]}.{match[2]}"), 0.0
    return float(match[1]) + 0.5, 0.5
