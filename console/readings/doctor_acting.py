"""What a host has of what acting needs, from one script that only looks: tools, state folder, disk, clearing, docker.

Pure: the script's text, and the reading of its answer. Nothing is made on the host, the state folder neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from console.readings.doctor import SECTIONS, Section, parse_sections
from console.sanitize import word

TOOLS = (
    *("flock", "setsid", "timeout", "mktemp", "stat", "sync", "base64", "truncate", "dd", "date", "getent", "grep"),
    *("sed", "sort", "find"),
)
"""What the scripts of acting run on a host, apart from what every Linux has."""
SCRIPT = (
    r"""
d() {
p=$PATH sock=$1 state=$2"""
    + SECTIONS
    + r"""shift
s id id
s tools env PATH="$p" sh -c 'for one; do command -v "$one" >/dev/null 2>&1 || echo "$one"; done' sh TOOLS
s folders $t sh -c 'for one; do
k=none
if [ -L "$one" ]; then k=link; elif [ -d "$one" ]; then k=folder; elif [ -e "$one" ]; then k=other; fi
w=no; [ ! -d "$one" ] || [ ! -w "$one" ] || [ ! -x "$one" ] || w=yes
echo "$k $w $(stat -c "%a %U:%G" "$one" 2>/dev/null || echo "- -:-")"
done' sh "${state%/*}/" "$@"
s group $t sh -c 'g=$(stat -c %G "$1" 2>/dev/null) || g=docker
r=$(getent group "$g") || exit 1
echo "$r"; i=$(echo "$r" | cut -d: -f3); getent passwd | cut -d: -f1,4 | grep ":$i\$" | head -n 40' sh "$state"
s disk $t sh -c 'd=$1; while [ ! -d "$d" ]; do d=${d%/*}; [ -n "$d" ] || d=/; done; df -PkT "$d"' sh "$state"
s aged $t sh -c 'command -v systemd-tmpfiles >/dev/null 2>&1 || exit 127
c=$(systemd-tmpfiles --cat-config 2>/dev/null) || exit 3
echo "$c" | while read -r a b m o g e r; do
case $a in
x*) echo "$a $b - - - -" ;;
[qQdDevC]*) case $1/ in "${b%/}"/*) echo "$a $b - - - ${e:--}" ;; esac ;;
esac
done' sh "$state"
s reaper sh -c 'for one in tmpreaper tmpwatch; do ! command -v "$one" >/dev/null 2>&1 || echo "$one"; done'
[ -z "$sock" ] || s docker $t sh -c 'command -v docker >/dev/null 2>&1 || { echo none; exit; }
if [ ! -S "$1" ]; then echo gone; elif [ -w "$1" ]; then echo socket
elif sudo -n docker -H "unix://$1" version >/dev/null 2>&1; then echo sudo
else echo refused; fi' sh "$sock"
printf '@end 0\n'
}
d "$@"
"""
).replace("TOOLS", " ".join(TOOLS))
"""Run as `sh -s -- SOCKET STATE LANEFOLDER...` on stdin; SOCKET '' where no engine runs in Docker."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What stands at one path."""

    kind: str
    """`none`, `folder`, `link`, `other`."""
    ours: bool
    """It leads to a folder that this login can enter and write."""
    mode: int | None = None
    owner: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class ActingSetup:
    """What one host has. None, '' or () is unknown, unless it says otherwise."""

    user: str = ""
    uid: int | None = None
    groups: tuple[str, ...] = ()
    missing: tuple[str, ...] | None = None
    """Tools that are not there; () for none."""
    above: Folder | None = None
    """The folder in which the state folder lies, links followed."""
    state: Folder | None = None
    lanes: tuple[Folder, ...] = ()
    """Those of its lanes, in the order in which they were asked for."""
    group: str = ""
    """That of the state folder; where it is not there yet, `docker` if the host has it."""
    members: tuple[str, ...] | None = None
    """Accounts of that group, root apart."""
    fstype: str = ""
    """Of the disk on which it lies, or would lie."""
    free: int | None = None
    """Bytes there."""
    aged: str | None = None
    """`30d under /var/tmp`: what clears it by age; '' for nothing."""
    reapers: tuple[str, ...] = ()
    """Other programs that clear temporary folders by age."""
    docker: str = ""
    """How docker can be run: `socket`, `sudo`, `refused`, `gone` (no socket), `none` (no command); '' if not asked."""
    complete: bool = False


_FOLDER = re.compile(r"(none|folder|link|other) (yes|no) (?:([0-7]{1,4})|-) ([^:]{1,64}):([^:]{1,64})")


def parse_acting(text: str, state: str) -> ActingSetup:
    """What the script's answer says of the state folder `state`. Never raises."""
    found = parse_sections(text)
    user, uid, groups = _identity(found.get("id"))
    folders = _folders(found.get("folders"))
    group, members = _members(found.get("group"))
    fstype, free = _disk(found.get("disk"))
    return ActingSetup(
        user=user,
        uid=uid,
        groups=groups,
        missing=_missing(found.get("tools")),
        above=folders[0] if folders else None,
        state=folders[1] if len(folders) > 1 else None,
        lanes=folders[2:],
        group=group,
        members=members,
        fstype=fstype,
        free=free,
        aged=_aged(found.get("aged"), state),
        reapers=tuple(row for row in _rows(found.get("reaper")) if row in ("tmpreaper", "tmpwatch")),
        docker=_docker(found.get("docker")),
        complete="end" in found,
    )


def _rows(section: Section | None) -> tuple[str, ...]:
    return () if section is None else tuple(row.strip() for row in section.rows if row.strip())


def _identity(section: Section | None) -> tuple[str, int | None, tuple[str, ...]]:
    text = section.first if section is not None else ""
    user = re.search(r"uid=([0-9]{1,10})\(([^)\s]{1,64})\)", text)
    groups = re.search(r"groups=(.+)", text)
    names = tuple(re.findall(r"\(([^)]{1,64})\)", groups[1])) if groups else ()
    return (user[2], int(user[1]), names) if user else ("", None, names)


def _missing(section: Section | None) -> tuple[str, ...] | None:
    if section is None or section.status not in (0, 1):
        return None
    return tuple(row for row in _rows(section) if row in TOOLS)


def _folders(section: Section | None) -> tuple[Folder, ...]:
    """Those of the rows up to the first that cannot be read: they are known by their order alone."""
    found: list[Folder] = []
    for row in _rows(section):
        match = _FOLDER.fullmatch(row)
        if match is None:
            break
        mode = int(match[3], 8) if match[3] else None
        found.append(Folder(match[1], match[2] == "yes", mode, word(match[4], 64), word(match[5], 64)))
    return tuple(found)


def _members(section: Section | None) -> tuple[str, tuple[str, ...] | None]:
    """`docker:x:998:ana,ben`, then `NAME:998` for each account whose own group it is."""
    rows = _rows(section)
    if section is None or section.status == 124 or not rows or rows[0].count(":") != 3:
        return "", None
    name, _, _, listed = rows[0].split(":")
    own = [row.rpartition(":")[0] for row in rows[1:]]
    names = dict.fromkeys(word(one, 64) for one in (*listed.split(","), *own) if one.strip() and one != "root")
    return word(name, 64), tuple(names)


def _disk(section: Section | None) -> tuple[str, int | None]:
    """Of `df -PkT`: the second and the fifth column."""
    rows = _rows(section)
    if section is None or section.status != 0 or len(rows) < 2:
        return "", None
    match = re.search(r"\s([\w.]{1,40})\s+[0-9]{1,18}\s+[0-9]{1,18}\s+([0-9]{1,18})\s+[0-9]{1,3}%", rows[-1])
    return (match[1], int(match[2]) * 1024) if match else ("", None)


def _docker(section: Section | None) -> str:
    said = section.first if section is not None else ""
    return said if said in ("socket", "sudo", "refused", "gone", "none") else ""


def _aged(section: Section | None, state: str) -> str | None:
    if section is None or section.status in (3, 124):
        return None
    return "" if section.status == 127 else aged_by(section.rows, state)


def aged_by(rows: Iterable[str], path: str) -> str:
    """Which line of tmpfiles.d(5) clears `path` by age: `30d under /var/tmp`; '' if none does.

    The nearest line counts: one for the folder itself, or for one above it, that names no age keeps it, and so does
    an `x`. `X` keeps a folder and not what lies in it.
    """
    kept: list[str] = []
    ages: dict[str, str] = {}
    for row in rows:
        fields = row.split()
        if len(fields) < 6:
            continue
        name = fields[1].rstrip("/") or "/"
        if fields[0].startswith("x"):
            kept.append(name)
        elif not fields[0].startswith("X"):
            ages.setdefault(name, "" if fields[5] == "-" else fields[5])
    for above in _upwards(path):
        if any(fnmatchcase(above, pattern) for pattern in kept):
            return ""
        if above in ages:
            return f"{word(ages[above], 20)} under {above}" if ages[above] else ""
    return ""


def _upwards(path: str) -> Sequence[str]:
    """`/a/b`, `/a`, `/`."""
    parts = path.rstrip("/").split("/")
    return ["/".join(parts[:count]) or "/" for count in range(len(parts), 0, -1)]
