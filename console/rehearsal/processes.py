"""Processes and units of one rehearsal host: files in the place of /proc and cgroups, and a systemctl that reads."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence

from console.rehearsal.files import HostFiles
from console.rehearsal.stage import Manager

TICKS = os.sysconf("SC_CLK_TCK")
UID = 1000
NO_BUS = "Failed to connect to bus: No medium found\n"
# `systemctl [--user] show UNIT...` from one file a unit, in the order of its properties there.
SYSTEMCTL = """#!/bin/sh
set -f
scope=system verb= units= wanted= stamps=
while [ $# -gt 0 ]; do
  case $1 in
    --user) scope=user ;;
    -p|--property) wanted=$wanted,$2; shift ;;
    -p*) wanted=$wanted,${1#-p} ;;
    --property=*) wanted=$wanted,${1#*=} ;;
    --timestamp=unix) stamps=.unix ;;
    --system|--no-pager|--|--all|-a) ;;
    -*) echo "rehearsal: systemctl $1 is not played here" >&2; exit 2 ;;
    *) if [ -n "$verb" ]; then units="$units $1"; else verb=$1; fi ;;
  esac
  shift
done
case $verb in
  show|is-active) ;;
  *) echo "rehearsal: systemctl $verb is not played here" >&2; exit 2 ;;
esac
cd "${0%/*}/../units/$scope" || exit 1
if [ -e error ]; then cat error >&2; exit 1; fi
code=0 first=1
for unit in $units; do
  file=$unit$stamps
  [ -e "$file" ] || file=
  if [ "$verb" = is-active ]; then
    state=inactive
    [ -n "$file" ] && while IFS== read -r key value; do [ "$key" = ActiveState ] && state=$value; done <"$file"
    echo "$state"
    [ "$state" = active ] || code=3
    continue
  fi
  [ $first = 1 ] || echo
  first=0
  if [ -z "$file" ]; then
    set -- "Id=$unit" LoadState=not-found ActiveState=inactive SubState=dead Result=success MainPID=0 \
      "Description=$unit"
    for row do
      case ",$wanted," in ,,|*",${row%%=*},"*) echo "$row" ;; esac
    done
    continue
  fi
  while IFS= read -r row; do
    case ",$wanted," in ,,|*",${row%%=*},"*) echo "$row" ;; esac
  done <"$file"
done
exit $code
"""


class Processes:
    """The /proc of one host. Times in Unix seconds by the host's clock."""

    def __init__(self, files: HostFiles, booted: float) -> None:
        self._files, self.booted = files, booted
        self._alive: dict[int, tuple[str, ...]] = {}

    def boot(self, booted: float) -> None:
        """The host has started anew: no process is left."""
        for pid in tuple(self._alive):
            self.end(pid)
        self.booted = booted
        self._files.text("/proc/stat", f"cpu  1 0 1 100 0 0 0 0 0 0\nctxt 1\nbtime {int(booted)}\nprocesses 1\n")

    def start(self, pid: int, command: Sequence[str], started: float, parent: int = 1, state: str = "S") -> None:
        """A process, in the place of one that had its number."""
        self._alive[pid] = tuple(command)
        folder, name = f"/proc/{pid}", os.path.basename(command[0])[:15]
        ticks = max(0, int((started - self.booted) * TICKS))
        before = f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 4194560 900 0 0 0 12 7 0 0 20 0 1 0 {ticks}"
        self._files.text(f"{folder}/stat", before + " 12345678 2200" + " 0" * 28 + "\n")
        self._files.text(f"{folder}/cmdline", "\0".join(command) + "\0")
        long = {"S": "S (sleeping)", "R": "R (running)", "Z": "Z (zombie)", "D": "D (disk sleep)"}[state]
        ids = f"{UID}\t{UID}\t{UID}\t{UID}"
        self._files.text(
            f"{folder}/status",
            f"Name:\t{name}\nState:\t{long}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\nUid:\t{ids}\nGid:\t{ids}\n",
        )
        self.transferred(pid, 0, 0)

    def transferred(self, pid: int, read: int, written: int) -> None:
        """Bytes that a process has read and written so far."""
        rows = f"rchar: {read}\nwchar: {written}\nsyscr: 1\nsyscw: 1\nread_bytes: 0\nwrite_bytes: {written}\n"
        self._files.text(f"/proc/{pid}/io", rows + "cancelled_write_bytes: 0\n")

    def alive(self) -> list[tuple[int, tuple[str, ...]]]:
        """Number and command of each."""
        return list(self._alive.items())

    def end(self, pid: int) -> None:
        """A process is gone."""
        if self._alive.pop(pid, None) is not None:
            self._files.remove(f"/proc/{pid}")


class UnitFiles:
    """What systemctl of one host says, and the cgroups of its units."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files

    def install(self) -> None:
        """The command, and nothing that it knows."""
        path = self._files.real("/bin/systemctl")
        with open(path, "w") as file:
            file.write(SYSTEMCTL)
        os.chmod(path, stat.S_IRWXU)
        self._files.text("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n")
        self._files.folder("/units/user")
        self._files.folder("/units/system")

    def put(self, manager: Manager, name: str, properties: Mapping[str, str], times: Mapping[str, float]) -> None:
        """A unit as it stands now. `times` are Unix seconds by the host's clock."""
        plain = {"Id": name, "Names": name, "LoadState": "loaded", **properties}
        rows = [f"{key}={value}" for key, value in plain.items()]
        for suffix, written in (("", _stamp), (".unix", lambda moment: f"@{moment:.0f}")):
            stamps = [f"{key}={written(moment)}" for key, moment in times.items()]
            self._files.text(f"/units/{manager}/{name}{suffix}", "\n".join([*rows, *stamps]) + "\n")

    def forget(self, manager: Manager, name: str) -> None:
        """systemd no longer knows it."""
        for suffix in ("", ".unix"):
            self._files.remove(f"/units/{manager}/{name}{suffix}")

    def set_bus(self, manager: Manager, there: bool) -> None:
        """Whether the manager can be asked at all."""
        if there:
            self._files.remove(f"/units/{manager}/error")
        else:
            self._files.text(f"/units/{manager}/error", NO_BUS)


def cgroup_of(manager: Manager, unit: str) -> str:
    """The control group of a unit."""
    slices = f"user.slice/user-{UID}.slice/user@{UID}.service/app.slice" if manager == "user" else "system.slice"
    return f"/{slices}/{unit}"


def _stamp(moment: float) -> str:
    return time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
