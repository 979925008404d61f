"""The set of looks on the host: asked for on stdin, answered by one child at a time; a part of the sampler's script.

Python 3.6 or newer, standard library only. What comes on stdin: `look N`, then N lines `ID KEY KIND EVERY ARGUMENT...`
parted by tabs, escaped as in `console/readings/look.py`; they replace the set. The texts of a `look` frame are by ID;
null stands for an answer that is what it was the last time.
"""

# ruff: noqa: UP031 (percent formats as in sampler_host.py)
import os
import sys
import time

from console.reach.child_host import Child, Out, quoted
from console.reach.survey_host import answer

MOST_ORDER = 1048576
"""Bytes of one line on stdin."""
MOST_QUOTED = 524288
"""Bytes of one answer as JSON: a log of control characters takes six for one."""
MOST_FRAME = 131072
MOST_WAITING = 65536
"""Bytes that wait for the connection beyond which no more answers are taken: a slow one must not lose any."""
TOGETHER = 0.5
"""Seconds: looks that are due so soon run along."""
NICE = 10
"""The child gives way to what the host is for, on the CPU and, where the I/O scheduler follows it, on the disk."""
BACKSLASH = "\\"
NEVER = 1e18


def unescaped(text: str) -> str:
    """One field of a line."""
    parts = text.split(BACKSLASH + BACKSLASH)
    for letter, character in (("t", "\t"), ("n", "\n"), ("r", "\r")):
        parts = [part.replace(BACKSLASH + letter, character) for part in parts]
    return BACKSLASH.join(parts)


class Wanted:
    """One look of the set."""

    def __init__(self, number: str, key: str, kind: str, every: str, arguments: "list[str]") -> None:
        self.number, self.key, self.kind, self.arguments = number, key, kind, arguments
        self.every = max(0.2, float(every))
        self.due = 0.0
        self.sent = None  # type: str | None
        self.hung = False
        """It never came back the last time: it runs last, and is ended sooner."""

    def name(self) -> str:
        """For errors."""
        return "%s (%s %s)" % (self.key, self.kind, " ".join(self.arguments)[:120])


class Looks(Child):
    """Folders, files, processes and units: all that is due, in one child without a new python."""

    source = "look"

    def __init__(self, out: Out, every: float, slow_after: float, slow_limit: float) -> None:
        super().__init__(out, every, slow_after, slow_limit)
        self.due = NEVER
        self.wanted = {}  # type: dict[str, Wanted]
        self.asked = []  # type: list[Wanted]
        self.left = set()  # type: set[str]
        self.current = ""
        self.ready = []  # type: list[tuple[str, str, bytes]]
        self.rest = b""
        self.missing = 0
        self.rows = []  # type: list[Wanted]

    # what is asked for

    def order(self, data: bytes) -> None:
        """What came on stdin; heartbeats need no answer."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > MOST_ORDER:
            self.rest = b""
        for line in lines:
            fields = [unescaped(field) for field in os.fsdecode(line).split("\t")]
            if self.missing:
                self.missing -= 1
                self.row(fields)
            elif fields[0][:5] == "look " and fields[0][5:].isdigit():
                self.missing, self.rows = int(fields[0][5:]), []
            else:
                continue
            if not self.missing:
                self.replace(self.rows)

    def row(self, fields: "list[str]") -> None:
        """One line of a set."""
        try:
            number, key, kind, every = fields[:4]
            self.rows.append(Wanted(number, key, kind, every, fields[4:]))
        except ValueError:
            self.out.frame("error", {}, time.monotonic(), "cannot be looked at: " + " ".join(fields)[:120], self.source)

    def replace(self, rows: "list[Wanted]") -> None:
        """A new set; what was in the old one keeps its clock."""
        self.wanted = dict((row.number, self.wanted.get(row.number, row)) for row in rows)
        self.plan()

    def plan(self) -> None:
        """When the next one is due."""
        self.due = min([one.due for one in self.wanted.values()] + [NEVER])

    # the child

    def begin(self, now: float) -> None:
        """All that are due, those that hung the last time at the end."""
        if len(self.out.pending) > MOST_WAITING:
            self.due = now + 0.2
            return
        asked = [one for one in self.wanted.values() if one.due <= now + min(TOGETHER, one.every / 4)]
        self.asked = sorted(asked, key=lambda one: one.hung)
        self.left = set(one.number for one in self.asked)
        self.current, self.ready = "", []
        for one in self.asked:
            one.due = one.due + one.every if one.due + one.every > now else now + one.every
        self.plan()
        if self.asked:
            self.start(now)

    def work(self) -> None:
        """For each: `? ID` before, then `= ID HASH BYTES` and the JSON string, or `~ ID` for what is not new."""
        os.dup2(0, 2)
        try:
            os.nice(NICE)
        except OSError:
            pass  # it may be as low as it gets already
        for one in self.asked:
            put(b"? %s\n" % one.number.encode())
            text = answer(one.kind, one.arguments, (os.getppid(),))
            mark = "%x" % (hash(text) & sys.maxsize)
            if mark == one.sent:
                put(b"~ %s\n" % one.number.encode())
                continue
            data = quoted(text).encode("utf-8", "replace")
            if len(data) > MOST_QUOTED:
                data = quoted("error the answer is no text: %d KiB escaped" % (len(data) >> 10)).encode()
            put(b"= %s %s %d\n" % (one.number.encode(), mark.encode(), len(data)))
            put(data)
        os._exit(0)

    def listens(self, now: float) -> bool:
        """Not while the connection is behind; that is no fault of the child."""
        if self.fd >= 0 and len(self.out.pending) > MOST_WAITING:
            self.since = now
            return False
        return self.fd >= 0

    def took(self, chunk: bytes) -> None:
        """Records, as far as they are whole."""
        self.data += chunk
        while True:
            head, newline, rest = self.data.partition(b"\n")
            if not newline:
                return
            words = head.decode().split(" ")
            size = int(words[3]) if words[0] == "=" else 0
            if len(rest) < size:
                return
            self.data = rest[size:]
            if words[0] == "?":
                self.current = words[1]
                continue
            self.current = ""
            self.left.discard(words[1])
            self.ready.append((words[1], words[2] if size else "", rest[:size] or b"null"))
            if sum(len(data) for _, _, data in self.ready) > MOST_FRAME:
                self.flush()

    def flush(self) -> None:
        """A frame of what has come so far. What the set no longer holds is not sent."""
        ready, self.ready = [one for one in self.ready if one[0] in self.wanted], []
        if not ready:
            return
        body = b",".join(b'"%s":%s' % (number.encode(), data) for number, _, data in ready)
        arrives = self.out.raw("look", body, self.begun)
        for number, mark, _ in ready:
            one = self.wanted[number]
            one.hung = False
            if mark or not arrives:
                one.sent = mark if arrives else None

    # what does not come back

    def readable(self, now: float) -> None:
        """At the end of the pipe all answers are there, also if the child takes a moment to go."""
        super().readable(now)
        if self.fd < 0:
            self.flush()

    def name(self) -> str:
        """The look it hangs at."""
        one = self.wanted.get(self.current)
        return one.name() if one else "what is looked at"

    def limit(self) -> float:
        """What hung before holds up the others no longer than it takes to say so."""
        one = self.wanted.get(self.current)
        return self.slow_after if one and one.hung else self.slow_limit

    def report(self, now: float, age: float) -> None:
        """What came before it is good."""
        self.flush()
        super().report(now, age)

    def say(self, words: str) -> None:
        """An `error` frame that names the look."""
        self.out.frame("error", {"look": self.current}, self.begun, words, self.source)

    def ended(self, how: str, now: float) -> None:
        """The answers; of one that did not come back, why. Those behind it are asked again at once."""
        self.flush()
        if not how:
            return
        self.say("%s: the look %s" % (self.name(), how))
        for one in self.asked:
            if one.number == self.current:
                one.hung = True
                one.due = now + max(one.every, self.slow_limit)
            elif self.current and one.number in self.left:
                one.due = now
        self.plan()


def put(data: bytes) -> None:
    """All of it, to the pipe."""
    while data:
        data = data[os.write(1, data) :]
