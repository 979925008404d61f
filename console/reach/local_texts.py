"""The texts of this machine's frames: files of /proc and /sys on Linux, psutil's figures in the same form elsewhere."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

_MOST_BYTES = 262_144


def node_texts(root: str = "") -> dict[str, str]:
    """`meminfo`, and `psi_memory`, `numa`, `zoneinfo` where the kernel has them. Raises OSError without meminfo."""
    if platform.system() != "Linux":
        return {"meminfo": _meminfo_from_psutil()}
    texts = {"meminfo": _text(root + "/proc/meminfo")}
    wanted = [("psi_memory", "/proc/pressure/memory")]
    if "MemAvailable:" not in texts["meminfo"]:
        wanted.append(("zoneinfo", "/proc/zoneinfo"))
    for name, path in wanted:
        try:
            texts[name] = _text(root + path)
        except OSError:
            continue
    if numa := _numa(Path(root + "/sys/devices/system/node")):
        texts["numa"] = numa
    return texts


def facts_texts() -> dict[str, str]:
    """What changes only with a reboot. Blocking."""
    import psutil

    try:
        boot = _text("/proc/sys/kernel/random/boot_id").strip()
    except OSError:
        boot = str(int(psutil.boot_time()))
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "boot_id": boot,
        "cpus": str(psutil.cpu_count() or 0),
        "page_size": str(os.sysconf("SC_PAGE_SIZE")),
        "python": f"python3 {platform.python_version()}",
        "gpu": shutil.which("nvidia-smi") or "nvidia-smi is not on PATH",
    }


def _numa(folder: Path) -> str:
    parts = []
    try:
        found = sorted((int(node.name[4:]), node) for node in folder.glob("node[0-9]*") if node.name[4:].isdigit())
    except OSError:
        return ""
    for number, node in found:
        try:
            cpus, meminfo = _text(str(node / "cpulist")).strip(), _text(str(node / "meminfo"))
        except OSError:
            continue
        total = next((row.split()[-2] for row in meminfo.splitlines() if " MemTotal:" in row), "0")
        if total != "0":
            parts.append(f"node {number} cpulist {cpus}\n{meminfo}")
    return "".join(parts)


def _meminfo_from_psutil() -> str:
    """psutil's figures as /proc/meminfo has them; Cached is what could be reclaimed (available less free)."""
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    figures = {
        "MemTotal": memory.total,
        "MemFree": memory.free,
        "MemAvailable": memory.available,
        "Cached": max(0, memory.available - memory.free),
        "SwapTotal": swap.total,
        "SwapFree": swap.free,
    }
    return "".join(f"{name}: {value // 1024} kB\n" for name, value in figures.items())


def _text(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace")
