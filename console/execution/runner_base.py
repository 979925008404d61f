"""Words, scripts and small parts of the runner. Standard library only, nothing newer than Python 3.8: this is a part of
the one file that runs on hosts (see `runner_text` in `sequence.py`).
"""

from __future__ import annotations

import re
import shlex
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

RUNNING, DONE, SATISFIED, FAILED = "running", "done", "satisfied", "failed"
STOPPED, FENCED, UNKNOWN, SKIPPED, HALF_DONE = "stopped", "fenced", "unknown", "skipped", "half done"
"""As `StepState` and `OperationState` word them."""
FINE = (DONE, SATISFIED)
ABSENT, LOST = "absent", "lost"
SHORT = 10.0
"""Seconds: a step with a longer limit runs as a unit of its own on its host."""
MOST_WORDS = 400

ONCE = """
folder=$1/ops/$2/$3
[ -d "$1/ops/$2" ] || (umask 000; mkdir -p "$1/ops/$2") 2>/dev/null
if ! mkdir -m 755 "$folder" 2>/dev/null; then
  [ -d "$folder" ] && { echo 'this step was begun here before' >&2; exit 3; }
  echo "cannot make $folder" >&2; exit 5
fi
read -r boot </proc/sys/kernel/random/boot_id && echo "$boot" >"$folder/boot"
noted() {
  IFS= read -r row <"/proc/$$/stat" || return
  set -f
  set -- ${row##*') '}
  set +f
  [ "$4" = $$ ] || return
  start=${20}
  echo "none $(id -u) -" >"$folder/mode" && echo "pid $$ $start" >"$folder/unit" &&
    echo "$$ $start $(date +%s)" >"$folder/begun"
}
noted 2>/dev/null
if [ -e "$folder@stop" ]; then echo 'stopped by an operator before it began' >&2; exit 143; fi
shift 3
"$@" >"$folder/out" 2>"$folder/err"
code=$?
umask 022
if [ -e "$folder/begun" ]; then
  asked=no kind=exit-code
  [ ! -e "$folder@stop" ] || asked=yes
  [ "$code" != 0 ] || kind=success
  echo "$kind exited $code $(date +%s) $asked" >"$folder/result.new" && mv "$folder/result.new" "$folder/result"
fi
echo "$code" >"$folder/code.new" && mv "$folder/code.new" "$folder/code"
[ ! -s "$folder/out" ] || cat "$folder/out"
[ ! -s "$folder/err" ] || cat "$folder/err" >&2
exit "$code"
"""
"""D OP STEP ARGV...: a command that nobody can begin twice, with its exit status kept. It writes to files: with nobody
left to read a pipe, its own output would end it. One that leads its session leaves what a step without systemd does
(see starter.sh), so that it can be looked up and ended when its runner is gone. Nobody else may write beside its files:
a link would be followed."""
LOOK = """
folder=$1/ops/$2/$3
ended() {
  [ -e "$folder/code" ] || return
  state=ended
}
lives() {
  seen=no
  read -r pid start rest <"$folder/begun" || return 0
  seen=yes
  IFS= read -r row <"/proc/$pid/stat" || return 1
  set -f
  set -- ${row##*') '}
  set +f
  [ "${20}" = "$start" ] && [ "$1" != Z ]
}
state=absent words=
if [ -L "$folder" ] || [ -L "$folder/code" ] || [ -L "$folder/err" ] || [ -L "$folder/begun" ]; then
  state=lost words="$folder has a symbolic link, which is refused"
elif ! ended && [ -d "$folder" ]; then
  state=running
  lives 2>/dev/null || ended || state=lost
fi
echo "state=$state"
[ -z "$words" ] || echo "words=$words"
[ "$state" != running ] || echo "seen=$seen"
if [ "$state" != absent ] && [ ! -L "$folder/boot" ] && [ ! -e "$folder@stop" ] &&
  read -r boot <"$folder/boot" && read -r now </proc/sys/kernel/random/boot_id && [ "$boot" != "$now" ]; then
  echo boot=changed
fi 2>/dev/null
if [ "$state" = ended ]; then
  echo "code=$(cat "$folder/code")"
  echo "said=$(tail -n 1 "$folder/err")"
fi
read -r up rest </proc/uptime && echo "up=$up"
"""
"""D OP STEP: what became of it. `lost`: it began, is gone, and nothing says how it ended. `boot=changed`: its host was
restarted since it was begun, and no operator had stopped it."""
ASIDE = """
folder=$1/ops/$2/$3
[ -d "$folder" ] || exit 0
if ! { read -r boot <"$folder/boot" && read -r now </proc/sys/kernel/random/boot_id; } 2>/dev/null; then
  echo 'under which start of the host it ran is not known' >&2; exit 5
fi
[ "$boot" != "$now" ] || { echo 'the host was not restarted since it was begun' >&2; exit 1; }
n=1
while [ -e "$folder@$n" ]; do n=$((n + 1)); done
mv -T "$folder" "$folder@$n"
"""
"""D OP STEP: puts aside what is left of a step that a restart of its host cut short, so that it can be begun once more.
Only the host itself can say that nothing of it runs any more: by the number of its present start."""
WAIT = """
folder=$2/ops/$3/$4 left=$5 watched=
while [ "$left" -gt 0 ] && [ ! -e "$folder/result" ]; do
  # a process for each look would cost more than what it looks for: one watches until the command's own is gone
  if [ -z "$watched" ] && { read -r pid rest <"$folder/begun"; } 2>/dev/null; then
    watched=yes
    timeout "$7" tail -f -s "$6" --pid="$pid" /dev/null </dev/null >/dev/null 2>&1
    [ $? != 124 ] || break
    continue
  fi
  sleep "$6" 2>/dev/null || sleep 1
  left=$((left - 1))
done
told=$(sh -c "$1" laneswap state "$2" "$3" "$4" </dev/null)
printf '%s\\n' "$told"
read -r up rest </proc/uptime && echo "up=$up"
case $told in state=done*) timeout 3 sh -s 2>/dev/null ;; esac
"""
"""STARTER D OP STEP TIMES PAUSE SECONDS: the state of a unit, told as soon as it has ended. Standard input is a script
of questions (`asking`), which are asked at once where it has ended well."""


class Done(NamedTuple):
    """What became of one command; status None: lost, it may or may not have run."""

    status: int | None
    out: str = ""
    err: str = ""


class Transport(Protocol):
    """How a host is reached."""

    def run(self, host: str, argv: Sequence[str], stdin: str, limit: float, question: bool = False) -> Done:
        """Run one command; a question changes nothing. Never raises for what happens there. `limit` in seconds."""
        ...

    def interrupt(self) -> None:
        """Break off questions, and commands that run on this very machine."""
        ...


class Log(Protocol):
    """Where the journal is written."""

    lines: list[dict[str, Any]]

    def write(self, line: dict[str, Any]) -> None:
        """Keep one line for good, before anything else happens. Raises JournalLost, and Fenced."""
        ...


class JournalLost(Exception):
    """The journal cannot be written: nothing may be done any more."""


class Fenced(Exception):
    """Somebody holds a newer lease; says who, since when."""


class Halted(Exception):
    """Told to stop."""


class Clock:
    """Time; another one in tests."""

    def wall(self) -> float:
        """Unix seconds."""
        return time.time()

    def mono(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def pause(self, halt: threading.Event, seconds: float) -> None:
        """Wait, but not once told to stop."""
        halt.wait(seconds)


class Attempt:
    """One step under way."""

    def __init__(self, step: dict[str, Any], kind: str, since: float, deadline: float, here: bool = False) -> None:
        """`since`: Unix seconds of its first line in the journal; `deadline` by the clock that only grows. `here`: on
        the host on which the runner is a unit itself, so that a step need be none to outlive every connection."""
        self.step, self.kind, self.since, self.deadline = step, kind, since, deadline
        self.id, self.host = str(step["id"]), str(step["host"])
        unit = step["detached"] and not step.get("light")
        alone = unit or step["keeps"] or step["memory_max"] or step["watch"]
        self.detached = bool(step["argv"]) and bool(alone or not here) and (step["limit"] > SHORT or step["detached"])
        self.here = here and not self.detached
        self.begun = self.ended = self.resumed = False
        self.watched = deadline - float(step["limit"])
        self.told = ("", float("-inf"))


def groups(steps: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The steps in order, neighbours with the same word in `together` as one group."""
    group: list[dict[str, Any]] = []
    for step in steps:
        if group and not (step["together"] and step["together"] == group[-1]["together"]):
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def half_done(steps: Sequence[dict[str, Any]], states: dict[str, str]) -> str:
    """`HALF DONE after stop rank 1, next: start rank 0`, as every console words it."""
    done = [step for step in steps if states.get(step["id"]) in FINE]
    left = [step for step in steps if states.get(step["id"]) not in FINE and not step["optional"]]
    after = "HALF DONE after {}".format(done[-1]["title"]) if done else "HALF DONE"
    if not left:
        return after
    state = states.get(left[0]["id"], "")
    seen = f" ({state})" if state and state != SKIPPED else ""
    title, host = left[0]["title"], left[0]["host"]
    return f"{after}, next: {title}" + (f" on {host}" if host not in title else "") + seen


def keys_of(text: str) -> dict[str, str]:
    """`key=value` lines."""
    found = {}
    for row in text.splitlines():
        key, sign, value = row.partition("=")
        if sign:
            found[key] = value
    return found


def asking(probes: Sequence[dict[str, Any]]) -> str:
    """A script that asks these questions, one after the other: `asked.0=STATUS WORDS` for each."""
    rows = []
    for number, probe in enumerate(probes):
        argv = " ".join(shlex.quote(str(word)) for word in probe["argv"])
        rows.append(f"said=$(printf %s {shlex.quote(probe['stdin'])} | {argv})\n")
        rows.append(f"printf 'asked.{number}=%s %s\\n' $? \"${{said%%\n*}}\"\n")
    return "".join(rows)


def all_yes(probes: Sequence[dict[str, Any]], found: dict[str, str] | None) -> list[tuple[dict[str, Any], Done]]:
    """What `asking` found, if every question was answered with yes; else nothing: then they are asked by themselves."""
    answers = []
    for number, probe in enumerate(probes):
        code, _, words = (found or {}).get(f"asked.{number}", "").partition(" ")
        if code != "0":
            return []
        answers.append((probe, Done(0, words)))
    return answers


def first_line(text: str) -> str:
    """The first line that is not empty, at most 200 characters of it."""
    return next((row.strip()[:200] for row in text.splitlines() if row.strip()), "")


def last_line(text: str) -> str:
    """The last line that is not empty, at most 200 characters of it."""
    return first_line("\n".join(reversed(text.splitlines())))


def ended(code: int, done: Done) -> dict[str, str]:
    """The state of a command with this exit status, with its last words."""
    if code == 0:
        return {"state": DONE}
    said = last_line(done.err) or last_line(done.out)
    return {"state": FAILED, "words": f"exit {code}" + (f": {said}" if said else "")}


def said(answers: Iterable[tuple[dict[str, Any], Done]]) -> str:
    """What was observed, in the probes' own first lines."""
    return "; ".join(first_line(done.out) or probe["words"] for probe, done in answers)


def missing(pairs: Iterable[tuple[dict[str, Any], Done]]) -> str:
    """What does not hold, and what was seen instead."""
    return "; ".join("{}: {}".format(probe["words"], _seen(probe, done)) for probe, done in pairs)


def _seen(probe: dict[str, Any], done: Done) -> str:
    if done.status is None:
        return "no answer from {}".format(probe["host"])
    words = first_line(done.out) or first_line(done.err)
    return ("no" if done.status == 1 else "not known") + (f", {words}" if words else "")


def down_with_its_host(found: dict[str, str] | None) -> bool:
    """Whether a unit was ended because its host was restarted, not by an operator and not by itself."""
    keys = found or {}
    killed = keys.get("signal", "") in ("TERM", "KILL", "HUP")
    return keys.get("boot") == "changed" and killed and "operator" not in keys.get("words", "")


def spread(text: str) -> dict[str, str]:
    """`epoch=7 operator=ben since=1732999999`, on one line or on several."""
    return dict(re.findall(r"(\w+)=(.*?)(?=\s+\w+=|\s*$)", text, re.MULTILINE))
