"""Frames to stdout, and children on a clock of their own; a part of the sampler's script (`sampler.py`).

Python 3.6 or newer, standard library only. A child never holds up the memory figures: it has a session and a pipe, is
never there twice, is reported while it does not answer, and is killed at last.
"""

# ruff: noqa: UP031 (percent formats as in sampler_host.py)
import os
import signal
import time

MOST_PENDING = 262144
"""Bytes waiting for a stuck connection; beyond that, frames are dropped and their numbers stay missing."""
MOST_READ = 262144
UNKILLABLE = 5.0
"""Seconds after which a killed child that is still there is said to be stuck in the kernel."""
ESCAPES = [("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")]
ESCAPES += [(chr(code), "\\u%04x" % code) for code in [*range(32), 127] if code not in (9, 10)]


def quoted(text: str) -> str:
    """A JSON string; json itself is not part of a minimal python3."""
    for character, escape in ESCAPES:
        if character in text:  # far quicker than to translate each character
            text = text.replace(character, escape)
    return '"' + text + '"'


class Out:
    """Frames to stdout without ever waiting for it."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.pending = b""
        self.numbers = {}  # type: dict[str, int]

    def frame(self, kind: str, texts: "dict[str, str]", begun: float, error: str = "", source: str = "") -> bool:
        """Queue one frame and send what goes. False if it was dropped."""
        body = ",".join(quoted(name) + ":" + quoted(text) for name, text in texts.items())
        return self.raw(kind, body.encode("utf-8", "replace"), begun, error, source)

    def raw(self, kind: str, body: bytes, begun: float, error: str = "", source: str = "") -> bool:
        """The same with the texts as JSON already."""
        number = self.numbers.get(kind, 0)
        self.numbers[kind] = number + 1
        if len(self.pending) > MOST_PENDING:
            return False
        more = (',"e":' + quoted(error) if error else "") + (',"s":' + quoted(source) if source else "")
        head = '%s {"k":"%s","n":%d,"m":%.3f,"w":%.3f,"b":%.3f,"t":{' % (
            self.mark, kind, number, time.monotonic(), time.time(), begun,
        )  # fmt: skip
        self.pending += b"".join((head.encode(), body, b"}", more.encode("utf-8", "replace"), b"}\n"))
        self.send()
        return True

    def send(self) -> None:
        """Write what stdout takes now."""
        try:
            while self.pending:
                self.pending = self.pending[os.write(1, self.pending) :]
        except BlockingIOError:
            return


class Child:
    """One child at a time. What it does and what comes of it, a subclass says."""

    source = ""

    def __init__(self, out: Out, every: float, slow_after: float, slow_limit: float) -> None:
        self.out = out
        self.every = every
        self.slow_after = slow_after
        self.slow_limit = slow_limit
        self.due = 0.0
        self.pid = 0
        self.fd = -1
        self.begun = 0.0
        self.since = 0.0
        """Since when it is waited for: `begun`, or the end of a time in which nobody could take what it says."""
        self.reported = 0.0
        self.killed = False
        self.data = b""

    def name(self) -> str:
        """What has not answered, in words."""
        return self.source

    def begin(self, now: float) -> None:
        """It is due: `start` it, and say when it is due again."""
        raise NotImplementedError

    def work(self) -> None:
        """In the child; its stdout is the pipe."""
        raise NotImplementedError

    def took(self, chunk: bytes) -> None:
        """The child has written something."""
        self.data += chunk[: max(0, MOST_READ - len(self.data))]

    def ended(self, how: str, now: float) -> None:
        """It is gone; `how` is empty if all went well."""
        raise NotImplementedError

    def limit(self) -> float:
        """Seconds after which it is killed."""
        return self.slow_limit

    def tick(self, now: float) -> None:
        """Start it when due; report and at last kill it when it does not answer."""
        if self.pid:
            self.wait(now)
        elif now >= self.due:
            self.begin(now)

    def next(self, now: float) -> float:
        """When `tick` has something to do."""
        return now + min(1.0, self.slow_after) if self.pid else self.due

    def wait(self, now: float) -> None:
        """Look after the child that runs."""
        if self.fd < 0 or self.killed:
            self.reap(now)
        age = now - self.since
        if not self.pid or age < self.slow_after:
            return
        if age >= self.limit() and not self.killed:
            self.killed = True
            self.kill()
        if now - self.reported >= self.every:
            self.reported = now
            self.report(now, age)

    def report(self, now: float, age: float) -> None:
        """Say that it does not answer."""
        tail = ", killed" if self.killed else ""
        if age >= self.limit() + UNKILLABLE:
            tail = ", and cannot be killed: it is stuck in the kernel, as on a dead mount"
        self.say("%s has not answered for %d s%s" % (self.name(), age, tail))

    def say(self, words: str) -> None:
        """An `error` frame."""
        self.out.frame("error", {}, self.begun, words, self.source)

    def start(self, now: float) -> None:
        """Run it in its own session, its output into a pipe. Should the sampler die first, an alarm ends it."""
        self.fd, writer = os.pipe()
        os.set_blocking(self.fd, False)
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                    signal.signal(number, signal.SIG_DFL)
                signal.alarm(int(self.slow_limit) + 10)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(writer, 1)
                os.dup2(writer, 2)
                self.work()
            finally:
                os._exit(127)
        os.close(writer)
        self.pid, self.begun, self.since, self.reported, self.killed, self.data = pid, now, now, now, False, b""

    def readable(self, now: float) -> None:
        """Its pipe has something, or has ended."""
        try:
            chunk = os.read(self.fd, 65536)
        except BlockingIOError:
            return
        if chunk:
            self.took(chunk)
            return
        os.close(self.fd)
        self.fd = -1
        self.reap(now)

    def reap(self, now: float) -> None:
        """See whether it is gone."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return
        self.pid = 0
        if self.fd >= 0:  # what it started may hold the pipe's other end
            os.close(self.fd)
            self.fd = -1
        how = "ended by signal %d" % (status & 127) if status & 127 else "exited %d" % (status >> 8)
        if self.killed:
            how = "killed after %d s without an answer" % (now - self.since)
        self.ended(how if status else "", now)

    def listens(self, now: float) -> bool:
        """Whether its pipe is to be read now."""
        return self.fd >= 0

    def kill(self) -> None:
        """End the child and what it started."""
        if self.pid:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:
                return


class Gpu(Child):
    """nvidia-smi."""

    source = "nvidia-smi"

    def __init__(self, out: Out, every: float, slow_after: float, slow_limit: float, fields: str) -> None:
        super().__init__(out, every, slow_after, slow_limit)
        self.arguments = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
        self.path = ""

    def find(self) -> str:
        """Where it is on PATH, or an empty string."""
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = os.path.join(folder or ".", "nvidia-smi")
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
        return ""

    def begin(self, now: float) -> None:
        """Look for it again each time, once a minute where there is none."""
        self.due = now + (self.every if self.path else 60.0)
        self.path = self.find()
        if self.path:
            self.due = now + self.every
            self.start(now)

    def work(self) -> None:
        """Become nvidia-smi."""
        os.execv(self.path, self.arguments)  # noqa: S606

    def ended(self, how: str, now: float) -> None:
        """A frame with its table, or with what it said instead."""
        text = self.data.decode("utf-8", "replace")
        if not how:
            self.out.frame("gpu", {"csv": text}, self.begun)
            return
        first = ([row.strip() for row in text.splitlines() if row.strip()] + [""])[0][:200]
        self.say("nvidia-smi %s%s" % (how, ": " + first if first else ""))
