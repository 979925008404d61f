"""Runs on the host under its own python3 (3.6 or newer), sent on stdin; see sampler.py. Standard library only.

Arguments: SIZE LABEL MARK NODE_EVERY GPU_EVERY BEAT_LIMIT SLOW_AFTER SLOW_LIMIT GPU_FIELDS. One process, one thread,
nothing ever blocks: stdout and stdin do not wait, nvidia-smi and what is looked at are children in process groups of
their own. It ends when stdin ends, when no heartbeat came for BEAT_LIMIT seconds, or on a signal; they end with it.
"""

# ruff: noqa: UP031 (percent formats read best where braces are JSON)
import os
import select
import signal
import sys
import time

from console.reach.child_host import MOST_READ, Gpu, Out
from console.reach.files_host import ROOT
from console.reach.looks_host import Looks

NODES = "/sys/devices/system/node"


class File:
    """A file of /proc or /sys that is kept open; below a ROOT it is opened each time, as it may be replaced."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1

    def read(self) -> str:
        """Its text, or an OSError."""
        try:
            if self.fd < 0:
                self.fd = os.open(ROOT + self.path, os.O_RDONLY)
            data = os.pread(self.fd, MOST_READ, 0)
        except OSError:
            self.close()
            raise
        if ROOT:
            self.close()
        return data.decode("utf-8", "replace")

    def close(self) -> None:
        """Closed, it is opened again at the next read."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def once(path: str) -> str:
    """The text of a file that is read once; empty if it cannot be read."""
    file = File(path)
    try:
        return file.read().strip()
    except OSError:
        return ""
    finally:
        file.close()


class Node:
    """Memory, pressure and NUMA nodes of the host."""

    def __init__(self, out: Out) -> None:
        self.out = out
        self.meminfo = File("/proc/meminfo")
        self.pressure = File("/proc/pressure/memory")
        self.zoneinfo = File("/proc/zoneinfo")
        self.nodes = []  # type: list[tuple[int, File, File]]
        self.scanned = -60.0
        self.complained = -60.0

    def sample(self, now: float) -> None:
        """One `node` frame, or an `error` frame at most every 30 s."""
        try:
            texts = {"meminfo": self.meminfo.read()}
        except OSError as error:
            if now - self.complained >= 30:
                self.complained = now
                self.out.frame("error", {}, now, "/proc/meminfo: %s" % (error.strerror or error), "/proc/meminfo")
            return
        for name, file in (("psi_memory", self.pressure), ("zoneinfo", self.zoneinfo)):
            if name == "zoneinfo" and "\nMemAvailable:" in texts["meminfo"]:
                continue
            try:
                texts[name] = file.read()
            except OSError:
                continue
        numa = self.numa(now)
        if numa:
            texts["numa"] = numa
        self.out.frame("node", texts, now)

    def numa(self, now: float) -> str:
        """For each node that has memory: `node N cpulist LIST`, then its meminfo as the kernel prints it."""
        if now - self.scanned >= 60:
            self.scanned = now
            self.scan()
        parts = []
        for number, cpus, meminfo in self.nodes:
            try:
                parts.append("node %d cpulist %s\n%s" % (number, cpus.read().strip(), meminfo.read()))
            except OSError:
                self.scanned = -60.0
        return "".join(parts)

    def scan(self) -> None:
        """Find the nodes again; a Grace system has dozens that are empty."""
        for _, cpus, meminfo in self.nodes:
            cpus.close()
            meminfo.close()
        self.nodes = []
        try:
            names = os.listdir(ROOT + NODES)
        except OSError:
            return
        for number in sorted(int(name[4:]) for name in names if name[:4] == "node" and name[4:].isdigit()):
            folder = "%s/node%d/" % (NODES, number)
            total = [row.split()[-2] for row in once(folder + "meminfo").splitlines() if " MemTotal:" in row]
            if total and total[0] != "0":
                self.nodes.append((number, File(folder + "cpulist"), File(folder + "meminfo")))


def count_cpus() -> int:
    """CPUs online, from lists like `0-71,80`."""
    total = 0
    for part in once("/sys/devices/system/cpu/online").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            total += (int(last) if last.isdigit() else int(first)) - int(first) + 1
    return total or os.cpu_count() or 0


def facts(gpu: Gpu) -> "dict[str, str]":
    """What changes only with a reboot, and whether there is an nvidia-smi."""
    return {
        "hostname": once("/proc/sys/kernel/hostname") or os.uname().nodename,
        "kernel": once("/proc/sys/kernel/osrelease") or os.uname().release,
        "boot_id": once("/proc/sys/kernel/random/boot_id"),
        "cpus": str(count_cpus()),
        "page_size": str(os.sysconf("SC_PAGE_SIZE")),
        "python": "python3 %d.%d.%d" % sys.version_info[:3],
        "gpu": gpu.find() or "nvidia-smi is not on PATH",
    }


class Sampler:
    """The one loop."""

    def __init__(self, arguments: "list[str]") -> None:
        _, _, mark, node, gpu, beat, slow_after, slow_limit, fields = arguments[1:10]
        self.every = float(node)
        self.beat_limit = float(beat)
        self.out = Out(mark)
        self.node = Node(self.out)
        slow = float(slow_after), float(slow_limit)
        self.gpu = Gpu(self.out, float(gpu), *slow, fields)
        self.looks = Looks(self.out, float(gpu), *slow)
        self.beaten = time.monotonic()

    def stop(self, *_: object) -> None:
        """The only way out."""
        self.gpu.kill()
        self.looks.kill()
        os._exit(0)

    def run(self) -> None:
        """Until the heartbeats stop."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, self.stop)
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.out.frame("facts", facts(self.gpu), time.monotonic())
        due = time.monotonic()
        self.alarm()
        while True:
            now = time.monotonic()
            if now - self.beaten > self.beat_limit:
                self.stop()
            if now >= due:
                self.node.sample(now)
                due = due + self.every if due + self.every > now else now + self.every
            self.gpu.tick(now)
            self.looks.tick(now)
            until = min(due, self.beaten + self.beat_limit + 0.01, self.gpu.next(now), self.looks.next(now))
            self.wait(max(0.0, until - time.monotonic()))

    def wait(self, limit: float) -> None:
        """Until something is due or comes in."""
        children = [child for child in (self.gpu, self.looks) if child.listens(time.monotonic())]
        reading = [0] + [child.fd for child in children]
        readable, writable, _ = select.select(reading, [1] if self.out.pending else [], [], limit)
        if writable:
            self.out.send()
        for child in children:
            if child.fd in readable:
                child.readable(time.monotonic())
        if 0 in readable:
            data = os.read(0, 65536)
            if not data:
                self.stop()
            self.beaten = time.monotonic()
            self.alarm()
            self.looks.order(data)

    def alarm(self) -> None:
        """Should the loop itself ever hang, this ends it."""
        signal.setitimer(signal.ITIMER_REAL, self.beat_limit + 1.0)


def main() -> None:
    """Any failure of the script itself is said in a frame before it ends."""
    sampler = Sampler(sys.argv)
    try:
        sampler.run()
    except BrokenPipeError:
        sampler.stop()
    except Exception as error:
        sampler.out.frame("error", {}, time.monotonic(), "%s: %s" % (type(error).__name__, error), "sampler")
        sampler.stop()


if __name__ == "__main__":
    main()
