"""`inspect` of what one host says. Sizes are integer bytes, shares are percent, what is absent is null."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from console.alarms import FREE_ALARM_GIB, memory_alarms
from console.inspection.arguments import Argument, InspectError, one, reject_unknown
from console.readings import cgroup as cgroups
from console.readings.doctor import max_sessions, sshd_settings
from console.readings.gpu import Gpu, GpuUnreadable, parse_gpus
from console.readings.logtext import control_characters, loading_progress, read_log
from console.readings.memory import MeminfoUnreadable, Memory, NumaNode, doubts, parse_memory
from console.readings.output import classify
from console.readings.quality import Basis
from console.sanitize import line, lines

GIB = 1024**3


def memory(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`meminfo=M [zoneinfo=Z] [numa=N] [psi=P] [page_size=F] [gpu=CSV]`; `gpu` says whether memory is unified."""
    reject_unknown(arguments, ("meminfo", "zoneinfo", "numa", "psi", "page_size", "gpu"))
    meminfo = one(arguments, "meminfo", default=True)
    if meminfo is None:
        raise InspectError("memory: no meminfo file; say meminfo=PATH")
    try:
        found = parse_memory(
            meminfo.text(),
            psi=_text(arguments, "psi"),
            numa=_text(arguments, "numa"),
            zoneinfo=_text(arguments, "zoneinfo"),
            page_size=_page_size(_text(arguments, "page_size")),
        )
    except MeminfoUnreadable as error:
        raise InspectError(f"{meminfo.path}: {error}") from error
    gpus = one(arguments, "gpu")
    unified = None if gpus is None else any(gpu.unified for gpu in _gpus(gpus))
    return {**_memory(found), "unified": unified, "warnings": _memory_warnings(found, unified)}


def _memory(found: Memory) -> dict[str, Any]:
    measured = found.available_basis is Basis.MEASURED
    return {
        "total": found.total,
        "free": found.free,
        "available": found.available,
        "available_basis": found.available_basis.value if found.available is not None else None,
        "available_reported": found.available if measured else None,
        "available_at_least": found.available if measured else found.free,
        "allocatable_by_gpu_if_unified": found.allocatable,
        "used": found.used,
        "used_without_hugetlb": found.used_without_hugetlb,
        "page_cache": found.cached,
        "buffers": found.buffers,
        "shmem": found.shmem,
        "dirty": found.dirty,
        "writeback": found.writeback,
        "mlocked": found.mlocked,
        "unevictable": found.unevictable,
        "reclaimable_slab": found.reclaimable_slab,
        "swap": {"total": found.swap_total, "free": found.swap_free, "used": found.swap_used},
        "hugetlb": {
            "page_size": found.hugepage_size,
            "total": found.hugetlb_total,
            "free": found.hugetlb_free,
            "reserved": found.hugetlb_reserved,
            "in_use_or_promised": found.hugetlb_in_use,
            "all_sizes": found.hugetlb_all,
        },
        "pressure_percent": asdict(found.pressure) if found.pressure else None,
        "numa": [_numa(node) for node in found.numa],
        "device_memory": found.device_memory,
    }


def _numa(node: NumaNode) -> dict[str, Any]:
    return {**asdict(node), "device_memory": node.is_device_memory}


def _memory_warnings(found: Memory, unified: bool | None) -> list[str]:
    """The alarms that the console would raise; where unified memory is not known, those for it say so."""
    threshold = FREE_ALARM_GIB * GIB
    plain = {alarm.text for alarm in memory_alarms("", found, False, threshold)}
    warnings = []
    for alarm in memory_alarms("", found, unified is not False, threshold):
        condition = "" if unified or alarm.text in plain else "if CPU and GPU share this memory: "
        warnings.append(f"{condition}{alarm.text}" + (f"; {alarm.advice}" if alarm.advice else ""))
    return [*warnings, *doubts(found)]


def cgroup(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Cgroup files, or a folder of them; `meminfo=M` tells limits above the host's memory. Sizes in bytes."""
    reject_unknown(arguments, ("meminfo",))
    files: dict[str, str] = {}
    for argument in arguments:
        if argument.role:
            continue
        found = [argument]
        if argument.path.is_dir():
            found = _inside(argument.path)
        files.update({item.path.name: item.text() for item in found})
    meminfo = one(arguments, "meminfo")
    try:
        host_total = parse_memory(meminfo.text()).total if meminfo else None
        group = cgroups.parse_cgroup(files, host_total=host_total)
    except (cgroups.CgroupUnreadable, MeminfoUnreadable) as error:
        raise InspectError(str(error)) from error
    return {
        "version": group.version,
        "limit": group.limit,
        "throttled_at": group.throttled_at,
        "current": group.current,
        "inactive_file": group.inactive_file,
        "working_set": group.working_set,
        "working_set_percent": group.working_set_share,
        "current_percent": group.current_share,
        "oom_kills": group.oom_kills,
        "notes": ["GPU memory is outside these figures"],
    }


def _inside(folder: Path) -> list[Argument]:
    try:
        return [Argument("", path) for path in sorted(folder.iterdir()) if path.name in cgroups.FILES]
    except OSError as error:
        raise InspectError(f"{folder}: {error.strerror or error}") from error


def gpu(arguments: Sequence[Argument]) -> dict[str, Any]:
    """nvidia-smi's CSV: memory in bytes or null where the driver has none (`unified`)."""
    reject_unknown(arguments, ("csv",))
    csv = one(arguments, "csv", default=True)
    if csv is None:
        raise InspectError("gpu: no CSV file of nvidia-smi")
    gpus = _gpus(csv)
    return {"gpus": [_gpu(item) for item in gpus], "unified": any(item.unified for item in gpus)}


def _gpus(argument: Argument) -> tuple[Gpu, ...]:
    try:
        return parse_gpus(argument.text())
    except GpuUnreadable as error:
        raise InspectError(f"{argument.path}: {error}") from error


def _gpu(item: Gpu) -> dict[str, Any]:
    return {
        "index": item.index,
        "name": item.name or None,
        "uuid": item.uuid or None,
        "driver": item.driver or None,
        "unified": item.unified,
        "memory_total": item.memory_total,
        "memory_used": item.memory_used,
        "utilisation_percent": item.utilisation,
        "power_w": item.power_w,
        "power_limit_w": item.power_limit_w,
        "temperature_c": item.temperature_c,
        "clock_mhz": item.clock_mhz,
        "faults": list(item.faults),
    }


def output(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`[stdout=F] [stderr=F] [exit=F] [error=F] [sshd_config=F] [nonce=F]`: what became of one remote command."""
    reject_unknown(arguments, ("stdout", "stderr", "exit", "error", "sshd_config", "nonce"))
    status, signal, error = _exit(_text(arguments, "exit"))
    error = _text(arguments, "error").strip() or error
    stdout = _bytes(arguments, "stdout")
    known = any(one(arguments, role) for role in ("exit", "error", "stderr"))
    answer: dict[str, Any] = {}
    own = stdout.decode("utf-8", "replace")
    if known:
        found = classify(
            "host",
            (),
            stdout=stdout,
            stderr=_bytes(arguments, "stderr"),
            exit_status=status,
            signal=signal,
            error=line(error, 500),
            nonce=_text(arguments, "nonce").strip(),
        )
        answer = {
            "outcome": found.outcome.value,
            "exit_status": found.exit_status,
            "signal": found.signal or None,
            "hint": found.hint or None,
            "last_complete_line": found.last_line or None,
            "stderr": found.stderr.split("\n") if found.stderr else [],
            "host_key": asdict(found.host_key) if found.host_key else None,
        }
        own = found.stdout
    shown = lines(own)
    return {
        **answer,
        "stdout": shown,
        "control_bytes_came": sum(control_characters(row) for row in own.split("\n")),
        "control_bytes_shown": sum(control_characters(text) for text in shown),
        "sshd": _sshd(_text(arguments, "sshd_config")) if one(arguments, "sshd_config") else None,
    }


def _exit(text: str) -> tuple[int | None, str, str]:
    """Exit status, signal and error from a number, or from JSON with exit_status, exit_signal and error."""
    text = text.strip()
    if not text:
        return None, "", ""
    if re.fullmatch(r"-?[0-9]{1,6}", text):
        return int(text), "", ""
    try:
        document = json.loads(text)
        status = document.get("exit_status")
        if status is not None and not isinstance(status, int):
            raise TypeError("exit_status is no number")
        return status, str(document.get("exit_signal") or ""), str(document.get("error") or "")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InspectError(f"exit: expected a number or a JSON object with exit_status: {error}") from error


def _sshd(text: str) -> dict[str, Any]:
    """What sshd allows one client; defaults are OpenSSH's."""
    found = sshd_settings(text.split("\n"))
    return {"max_sessions": max_sessions(found), "max_startups": found.get("maxstartups", "10:30:100")}


def log(arguments: Sequence[Argument]) -> dict[str, Any]:
    """A log file's lines as the console shows them."""
    reject_unknown(arguments, ("log",))
    file = one(arguments, "log", default=True)
    if file is None:
        raise InspectError("log: no log file")
    found = read_log(file.read())
    shards = loading_progress(found.lines)
    return {
        "lines": list(found.lines),
        "count": len(found.lines),
        "complete": found.complete,
        "segments": found.segments,
        "verbatim": found.verbatim,
        "cut": [{"line": number, "characters": size} for number, size in found.cut],
        "replacements": found.replacements,
        "control_characters_came": found.controls,
        "control_characters_shown": sum(control_characters(text) for text in found.lines),
        "shards": {"done": shards.done, "total": shards.total, "text": shards.text} if shards else None,
    }


def _text(arguments: Sequence[Argument], role: str) -> str:
    found = one(arguments, role)
    return found.text() if found else ""


def _bytes(arguments: Sequence[Argument], role: str) -> bytes:
    found = one(arguments, role)
    return found.read() if found else b""


def _page_size(text: str) -> int:
    text = text.strip()
    if not text:
        return 4096
    if not re.fullmatch(r"[0-9]{4,7}", text):
        raise InspectError(f"page_size: expected bytes, found {line(text, 40)!r}")
    return int(text)
