"""Runs on the host under its own python3 (3.6 or newer), sent on stdin; see sampler.py. Standard library only.

Arguments: SIZE LABEL MARK NODE_EVERY GPU_EVERY BEAT_LIMIT SLOW_AFTER SLOW_LIMIT GPU_FIELDS. One process, one thread,
nothing ever blocks: stdout and stdin do not wait, nvidia-smi is a child in its own process group. It ends when stdin
ends, when no heartbeat came for BEAT_LIMIT seconds, or on a signal; its child ends with it.
"""

# ruff: noqa: UP031 (percent formats read best where braces are JSON)
import os
import select
import signal
import sys
import time

ROOT = os.environ.get("LANESWAP_SAMPLER_ROOT", "")
"""Every /proc and /sys path is read below it."""
MOST_PENDING = 262144
"""Bytes waiting for a stuck connection; beyond that, frames are dropped and their numbers stay missing."""
MOST_READ = 262144
NODES = "/sys/devices/system/node"
ESCAPES = dict((code, "\\u%04x" % code) for code in [*range(32), 127])
ESCAPES.update({10: "\\n", 9: "\\t", 34: '\\"', 92: "\\\\"})


def quoted(text: str) -> str:
    """A JSON string; json itself is not part of a minimal python3."""
    return '"' + text.translate(ESCAPES) + '"'


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


class Out:
    """Frames to stdout without ever waiting for it."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.pending = b""
        self.numbers = {}  # type: dict[str, int]

    def frame(self, kind: str, texts: "dict[str, str]", begun: float, error: str = "", source: str = "") -> None:
        """Queue one frame and send what goes."""
        number = self.numbers.get(kind, 0)
        self.numbers[kind] = number + 1
        if len(self.pending) > MOST_PENDING:
            return
        body = ",".join(quoted(name) + ":" + quoted(text) for name, text in texts.items())
        more = (',"e":' + quoted(error) if error else "") + (',"s":' + quoted(source) if source else "")
        row = '%s {"k":"%s","n":%d,"m":%.3f,"w":%.3f,"b":%.3f,"t":{%s}%s}\n' % (
            self.mark, kind, number, time.monotonic(), time.time(), begun, body, more,
        )  # fmt: skip
        self.pending += row.encode("utf-8", "replace")
        self.send()

    def send(self) -> None:
        """Write what stdout takes now."""
        try:
            while self.pending:
                self.pending = self.pending[os.write(1, self.pending) :]
        except BlockingIOError:
            return


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


class Gpu:
    """nvidia-smi as a child on its own clock: never two at once, reported while it does not answer, killed at last."""

    def __init__(self, out: Out, every: float, slow_after: float, slow_limit: float, fields: str) -> None:
        self.out = out
        self.every = every
        self.slow_after = slow_after
        self.slow_limit = slow_limit
        self.arguments = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
        self.path = ""
        self.due = 0.0
        self.pid = 0
        self.fd = -1
        self.begun = 0.0
        self.reported = 0.0
        self.killed = False
        self.data = b""

    def find(self) -> str:
        """Where it is on PATH, or an empty string."""
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = os.path.join(folder or ".", "nvidia-smi")
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
        return ""

    def tick(self, now: float) -> None:
        """Start it when due; report and at last kill it when it does not answer."""
        if self.pid:
            self.wait(now)
        elif now >= self.due:
            self.due = now + (self.every if self.path else 60.0)
            self.path = self.find()
            if self.path:
                self.due = now + self.every
                self.start(now)

    def next(self, now: float) -> float:
        """When `tick` has something to do."""
        return now + min(1.0, self.slow_after) if self.pid else self.due

    def wait(self, now: float) -> None:
        """Look after the child that runs."""
        if self.fd < 0:
            self.reap(now)
        age = now - self.begun
        if not self.pid or age < self.slow_after:
            return
        if age >= self.slow_limit and not self.killed:
            self.killed = True
            self.kill()
        if now - self.reported >= self.every:
            self.reported = now
            tail = ", killed" if self.killed else ""
            words = "nvidia-smi has not answered for %d s%s" % (age, tail)
            self.out.frame("error", {}, self.begun, words, "nvidia-smi")

    def start(self, now: float) -> None:
        """Run it in its own session, both outputs into one pipe."""
        self.fd, writer = os.pipe()
        os.set_blocking(self.fd, False)
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(writer, 1)
                os.dup2(writer, 2)
                os.execv(self.path, self.arguments)  # noqa: S606
            finally:
                os._exit(127)
        os.close(writer)
        self.pid, self.begun, self.reported, self.killed, self.data = pid, now, now, False, b""

    def readable(self, now: float) -> None:
        """Its pipe has something, or has ended."""
        try:
            chunk = os.read(self.fd, 65536)
        except BlockingIOError:
            return
        if chunk:
            self.data += chunk[: max(0, MOST_READ - len(self.data))]
            return
        os.close(self.fd)
        self.fd = -1
        self.reap(now)

    def reap(self, now: float) -> None:
        """A frame, if the child is gone."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return
        self.pid = 0
        text = self.data.decode("utf-8", "replace")
        if status == 0:
            self.out.frame("gpu", {"csv": text}, self.begun)
            return
        first = ([row.strip() for row in text.splitlines() if row.strip()] + [""])[0][:200]
        how = "ended by signal %d" % (status & 127) if status & 127 else "exited %d" % (status >> 8)
        if self.killed:
            how = "killed after %d s without an answer" % (now - self.begun)
        words = "nvidia-smi %s%s" % (how, ": " + first if first else "")
        self.out.frame("error", {}, self.begun, words, "nvidia-smi")

    def kill(self) -> None:
        """End the child and what it started."""
        if self.pid:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                return


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
        self.gpu = Gpu(self.out, float(gpu), float(slow_after), float(slow_limit), fields)
        self.beaten = time.monotonic()

    def stop(self, *_: object) -> None:
        """The only way out."""
        self.gpu.kill()
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
            until = min(due, self.beaten + self.beat_limit + 0.01, self.gpu.next(now))
            self.wait(max(0.0, until - time.monotonic()))

    def wait(self, limit: float) -> None:
        """Until something is due or comes in."""
        reading = [0] + ([self.gpu.fd] if self.gpu.fd >= 0 else [])
        readable, writable, _ = select.select(reading, [1] if self.out.pending else [], [], limit)
        if writable:
            self.out.send()
        if self.gpu.fd in readable:
            self.gpu.readable(time.monotonic())
        if 0 in readable:
            if not os.read(0, 4096):
                self.stop()
            self.beaten = time.monotonic()
            self.alarm()

    def alarm(self) -> None:
        """Should the loop itself ever hang, this ends it."""
        signal.setitimer(signal.ITIMER_REAL, self.beat_limit + 1.0)


def main() -> None:
    """Any failure of the script itself is said in a frame before it ends."""
    sampler = Sampler(sys.argv[:1] + sys.argv[1:])
    try:
        sampler.run()
    except BrokenPipeError:
        sampler.stop()
    except Exception as error:
        sampler.out.frame("error", {}, time.monotonic(), "%s: %s" % (type(error).__name__, error), "sampler")
        sampler.stop()


if __name__ == "__main__":
    main()
