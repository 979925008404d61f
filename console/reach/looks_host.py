"""The set of looks on the host: asked for on stdin, answered by one child at a time; a part of the sampler's script.

Python 3.6 or newer, standard library only. What comes on stdin: `look N`, then N lines `ID KEY KIND EVERY ARGUMENT...`
parted by tabs, escaped as in `console/readings/look.py`; they replace the set. The texts of a `look` frame are by ID;
null stands for an answer that is what it was the last time.
"""

# ruff: noqa: UP031 (percent formats as in sampler_host.py)
import os
import signal
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
MOST_ASKED = 32768
"""Bytes that the child is asked for at once; its pipe takes twice as many without waiting."""
MOST_MARKS = 2000


def unescaped(text: str) -> str:
    """One field of a line."""
    parts = text.split(BACKSLASH + BACKSLASH)
    for letter, character in (("t", "\t"), ("n", "\n"), ("r", "\r")):
        parts = [part.replace(BACKSLASH + letter, character) for part in parts]
    return BACKSLASH.join(parts)


class Wanted:
    """One look of the set."""

    def __init__(self, fields: "list[str]", line: bytes) -> None:
        self.number, self.key, kind, every = fields[:4]
        self.about = "%s (%s)" % (self.key, " ".join([kind, *fields[4:]])[:120])
        self.line = line
        self.every = max(0.2, float(every))
        self.due = 0.0
        self.known = False
        """Its last answer is on its way to the console: the next one may say that nothing changed."""
        self.hung = False
        """It never came back the last time: it runs last, and is ended sooner."""


class Looks(Child):
    """Folders, files, processes and units: all that is due, by one child that stays as long as it answers."""

    source = "look"

    def __init__(self, out: Out, every: float, slow_after: float, slow_limit: float) -> None:
        super().__init__(out, every, slow_after, slow_limit)
        self.due = NEVER
        self.wanted = {}  # type: dict[str, Wanted]
        self.asked = []  # type: list[Wanted]
        self.left = set()  # type: set[str]
        self.busy = False
        self.current = ""
        self.ready = []  # type: list[tuple[str, bytes]]
        self.inside = self.outside = -1  # the two ends of the pipe on which the child is asked
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
            if self.missing:
                self.missing -= 1
                self.row(line)
            elif line[:5] == b"look " and line[5:].isdigit():
                self.missing, self.rows = int(line[5:]), []
            else:
                continue
            if not self.missing:
                self.replace(self.rows)

    def row(self, line: bytes) -> None:
        """One line of a set."""
        try:
            self.rows.append(Wanted(split(line), line))
        except ValueError:
            words = "cannot be looked at: " + os.fsdecode(line)[:120]
            self.out.frame("error", {}, time.monotonic(), words, self.source)

    def replace(self, rows: "list[Wanted]") -> None:
        """A new set; what was in the old one keeps its clock."""
        self.wanted = dict((row.number, self.wanted.get(row.number, row)) for row in rows)
        self.plan()

    def plan(self) -> None:
        """When the next one is due."""
        self.due = min([one.due for one in self.wanted.values()] + [NEVER])

    # the child

    def running(self) -> bool:
        """Whether the child has something to do, or is about to go."""
        return self.pid != 0 and (self.busy or self.fd < 0)

    def begin(self, now: float) -> None:
        """All that are due, those that hung the last time at the end."""
        if len(self.out.pending) > MOST_WAITING:
            self.due = now + 0.2
            return
        asked = [one for one in self.wanted.values() if one.due <= now + min(TOGETHER, one.every / 4)]
        asked.sort(key=lambda one: one.hung)
        rows = []  # type: list[bytes]
        size, self.asked = 0, []
        for one in asked:
            row = (b"" if one.known else b"+") + one.line + b"\n"
            size += len(row)
            if rows and size > MOST_ASKED:
                break
            rows.append(row)
            self.asked.append(one)
            one.due = one.due + one.every if one.due + one.every > now else now + one.every
        self.plan()
        if rows:
            self.left = set(one.number for one in self.asked)
            self.current, self.ready = "", []
            if not self.pid:
                self.start(now)
            self.busy, self.begun, self.since, self.reported = True, now, now, now
            try:
                os.write(self.outside, b"".join(rows) + b"\n")
            except OSError:
                return  # the child has just gone: the end of its pipe will tell

    def start(self, now: float) -> None:
        """With a pipe to it, too; its end is the child's end."""
        self.inside, self.outside = os.pipe()
        os.set_blocking(self.outside, False)
        super().start(now)
        os.close(self.inside)

    def work(self) -> None:
        """For each row `? ID`, then `= ID BYTES` and the JSON string, or `~ ID` for what is not new; at last `!`."""
        os.dup2(0, 2)
        os.dup2(self.inside, 0)
        os.close(self.outside)
        try:
            os.nice(NICE)
        except OSError:
            pass  # it may be as low as it gets already
        marks = {}  # type: dict[str, int]
        rows = b""
        while True:
            signal.alarm(0)
            while not rows.endswith(b"\n\n"):
                chunk = os.read(0, 65536)
                if not chunk:
                    os._exit(0)
                rows += chunk
            signal.alarm(int(self.slow_limit) + 10)  # should the sampler be gone when this hangs
            for row in rows[:-2].split(b"\n"):
                look(row, marks)
            put(b"!\n")
            rows = b""

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
            size = int(words[2]) if words[0] == "=" else 0
            if len(rest) < size:
                return
            self.data = rest[size:]
            if words[0] == "?":
                self.current = words[1]
            elif words[0] == "!":
                self.busy = False
                self.flush()
            else:
                self.current = ""
                self.left.discard(words[1])
                self.ready.append((words[1], rest[:size] or b"null"))
                if sum(len(data) for _, data in self.ready) > MOST_FRAME:
                    self.flush()

    def flush(self) -> None:
        """A frame of what has come so far. What the set no longer holds is not sent."""
        ready, self.ready = [one for one in self.ready if one[0] in self.wanted], []
        if not ready:
            return
        body = b",".join(b'"%s":%s' % (number.encode(), data) for number, data in ready)
        arrives = self.out.raw("look", body, self.begun)
        for number, _ in ready:
            self.wanted[number].hung = False
            self.wanted[number].known = arrives

    # what does not come back

    def tick(self, now: float) -> None:
        """As of any child, but one that waits to be asked is no fault."""
        if self.running():
            self.wait(now)
        elif now >= self.due:
            self.begin(now)

    def next(self, now: float) -> float:
        """When `tick` has something to do."""
        return now + min(1.0, self.slow_after) if self.running() else self.due

    def readable(self, now: float) -> None:
        """At the end of the pipe all answers are there, also if the child takes a moment to go."""
        super().readable(now)
        if self.fd < 0:
            self.flush()

    def name(self) -> str:
        """The look it hangs at."""
        one = self.wanted.get(self.current)
        return one.about if one else "what is looked at"

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
        """Of a look that did not come back, why. Those behind it are asked again at once, of a new child."""
        self.flush()
        if self.outside >= 0:
            os.close(self.outside)
            self.outside = -1
        if not self.busy:
            return
        self.busy = False
        self.say("%s: the look %s" % (self.name(), how))
        for one in self.asked:
            if one.number == self.current:
                one.hung = True
                one.due = now + max(one.every, self.slow_limit)
            elif self.current and one.number in self.left:
                one.due = now
        self.plan()


def split(line: bytes) -> "list[str]":
    """The fields of one line. Raises ValueError for too few."""
    fields = [unescaped(field) for field in os.fsdecode(line).split("\t")]
    if len(fields) < 5:
        raise ValueError(line)
    return fields


def look(row: bytes, marks: "dict[str, int]") -> None:
    """In the child: one row's answer, in full if it is marked with a plus; `marks` holds what the last ones were."""
    number, _, kind, _, *arguments = split(row.lstrip(b"+"))
    put(b"? %s\n" % number.encode())
    text = answer(kind, arguments, (os.getppid(),))
    mark = hash(text)
    if marks.get(number) == mark and row[:1] != b"+":
        put(b"~ %s\n" % number.encode())
        return
    if len(marks) > MOST_MARKS:
        marks.clear()
    marks[number] = mark
    data = quoted(text).encode("utf-8", "replace")
    if len(data) > MOST_QUOTED:
        data = quoted("error the answer is no text: %d KiB escaped" % (len(data) >> 10)).encode()
    put(b"= %s %d\n" % (number.encode(), len(data)))
    put(data)


def put(data: bytes) -> None:
    """All of it, to the pipe."""
    while data:
        data = data[os.write(1, data) :]
