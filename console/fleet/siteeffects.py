"""What simple commands of a bash file do to its variables: what they set, unset, or put in doubt. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from console.fleet.sitetypes import Assignment, visible
from console.fleet.sitewords import Word

DECLARERS = ("export", "declare", "typeset", "readonly", "local")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?(\+?)=", re.DOTALL)
_IN_PASSING = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?=")
_COUNTS = re.compile(r"\$\(\(.*(?:=|\+\+|--)", re.DOTALL)
_SELF_MADE = frozenset(
    "_ BASHOPTS BASHPID BASH_ARGC BASH_ARGV BASH_COMMAND BASH_LINENO BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO DIRSTACK"
    " EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO PPID RANDOM SECONDS SHELLOPTS SRANDOM UID".split()
)
"""Variables that bash keeps itself: read-only, or other than what was set."""
_READONLY = frozenset("BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID".split())
_ENDERS = ("exit", "return", "exec")
_SETTERS = frozenset("alias builtin command eval getopts let mapfile printf read readarray shopt trap enable".split())
"""Builtins that may set variables, or change how the rest is read."""
_MOST_WARNINGS = 40
IN_FUNCTION = "stands inside a function: whether it is set is not known"
_ONE_ELEMENT = "sets one element of an array: not read"


@dataclass(frozen=True, slots=True)
class Placed:
    """An assignment, and where its value stands in the text: for an edit that changes nothing else."""

    assignment: Assignment
    word: Word | None
    """The value; None where there is none to edit."""
    appends: bool = False
    """`KEY+=...`."""


@dataclass(slots=True)
class ShellRead:
    """What was found."""

    found: list[Placed] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stopped: int = 0
    """Line at which bash gives up with a syntax error; 0 for none."""


class Effects:
    """Keeps what a text sets, command by command."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [at for at, mark in enumerate(text) if mark == "\n"]
        self.out = ShellRead()
        self._latest: dict[str, Assignment] = {}
        self._exported: set[str] = set()
        self._readonly: dict[str, int] = {}
        self._all_exported = False
        self._arrays: set[str] = set()
        """Keys that may be arrays: setting one without parentheses leaves the other elements."""
        self._odd: dict[str, str] = {}
        """Keys declared in a way that changes how values are taken, with the flag."""
        self.functions: set[str] = set()
        self.after = ""
        """Why nothing that follows is set: a command that ends the script that sources this file."""

    def command(self, words: Sequence[Word], reason: str) -> None:
        """Note one simple command. `reason` says why what it sets may not come about, '' where it does."""
        for word in words:
            self._in_passing(word, reason)
        leading = 0
        while leading < len(words) and words[leading].assigns():
            leading += 1
        if leading == len(words):
            for word in words:
                self._set(word, reason, exported=False)
            return
        command = words[leading]
        for word in words[:leading]:
            self._set(word, f"runs {visible(command.text, 60)!r}", exported=False)
        self._run(command, words[leading + 1 :], reason)

    def finish(self) -> ShellRead:
        """What was found, `export NAME` brought to its assignments."""
        for index, item in enumerate(self.out.found):
            if item.assignment.key in self._exported:
                self.out.found[index] = replace(item, assignment=replace(item.assignment, exported=True))
        return self.out

    def blame(self, first: int, reason: str) -> None:
        """Give every assignment from index `first` on that is still good a reason to be none."""
        for index in range(first, len(self.out.found)):
            made = self.out.found[index].assignment
            made = replace(made, error=made.error or reason)
            self.out.found[index] = replace(self.out.found[index], assignment=made)
            self._latest[made.key] = made

    def add(self, made: Assignment, value: Word | None = None, appends: bool = False) -> None:
        """Keep one assignment."""
        self._latest[made.key] = made
        self.out.found.append(Placed(made, value, appends))

    def unsure(self, key: str, at: int, reason: str) -> None:
        """A key of which it is not known whether and how it is set there."""
        self.add(Assignment(key, (), False, self.line(at), False, False, reason))

    def line(self, at: int) -> int:
        """Line number of a place in the text."""
        return bisect_left(self._lines, max(0, at)) + 1

    def warn(self, at: int, what: str) -> None:
        """One sentence for the operator, with its line."""
        self.warn_line(self.line(at), what)

    def warn_line(self, line: int, what: str) -> None:
        """The same where the line is known."""
        if len(self.out.warnings) < _MOST_WARNINGS:
            self.out.warnings.append(f"line {line}: {what}")

    # --- assignments -------------------------------------------------------------------------------------------------

    def _in_passing(self, word: Word, reason: str) -> None:
        """`${NAME:=word}` and arithmetic set variables while they are expanded."""
        for piece in (*word.pieces, *(piece for item in word.elements or () for piece in item.pieces)):
            if piece.kind != "expansion":
                continue
            for match in _IN_PASSING.finditer(piece.text):
                self.unsure(match[1], piece.start, reason or "set in passing where it has no value")
            if _COUNTS.search(piece.text):
                self._doubt(piece.start, "arithmetic")

    def _set(self, word: Word, reason: str, *, exported: bool, declared: bool = False) -> None:
        named = word.assigns()
        assert named is not None
        key, subscript, appends = named
        value = word.value()
        elements = value.elements
        if subscript:
            reason = reason or _ONE_ELEMENT
        if elements is not None and any(item.text.startswith("[") for item in elements):
            reason = reason or "sets elements by subscript: not read"
        if elements is not None and self._text[word.end : word.end + 1] not in ("", *" \t\n;&|<>)"):
            reason = reason or "text behind the closing parenthesis"
        values = (value.text,) if elements is None else tuple(item.text for item in elements)
        literal = value.literal() if elements is None else all(item.literal(element=True) for item in elements)
        if declared and elements is None:  # an argument, in which braces are expanded
            literal = literal and value.literal(element=True)
        array = elements is not None or bool(subscript)
        made = Assignment(key, values, array, self.line(word.start), exported, literal, reason)
        self._note(made, value, appends, whole=elements is not None)

    def _note(self, made: Assignment, value: Word | None, appends: bool, *, whole: bool) -> None:
        """Bring an assignment together with what the key had before. `whole`: an array in parentheses."""
        key, reason = made.key, made.error
        if key in _SELF_MADE:
            reason = reason or "bash keeps this variable itself"
        if key in self._readonly:
            reason = reason or f"readonly since line {self._readonly[key]}"
        if (key in self._readonly or key in _READONLY) and not made.error:
            self.warn_line(made.line, f"{key} is read-only: bash stops here, nothing below is set")
            self.after = self.after or f"stands below a read-only variable that is set in line {made.line}"
        earlier = self._latest.get(key)
        if key in self._odd:
            reason = reason or f"declared with {self._odd[key]}"
        values, array, literal = made.values, made.array, made.literal
        if key in self._arrays and not whole and not (earlier and earlier.array and not earlier.error):
            reason = reason or "may change one element of an array only"
        if array:
            self._arrays.add(key)
        if appends and earlier is None:
            literal = False  # what the environment has is not known
        elif earlier is not None and not made.error and (appends or (earlier.array and not whole)):
            # += adds; a scalar set over an array changes its first element only
            if earlier.error and earlier.error != "unset":
                reason = reason or "changes a value that is not known"
            literal = literal and earlier.literal
            first = earlier.value + values[0] if appends and not whole else values[0] if values else ""
            values = earlier.values + values if whole else (first, *earlier.values[1:])
            array = array or earlier.array
        exported = made.exported or self._all_exported
        made = replace(made, values=values, array=array, literal=literal, error=reason, exported=exported)
        self.add(made, None if appends or array else value, appends)

    # --- commands ----------------------------------------------------------------------------------------------------

    def _run(self, command: Word, arguments: Sequence[Word], reason: str) -> None:
        name = command.text
        if name in DECLARERS:
            self._declare(name, arguments, reason)
        elif name == "unset":
            self._unset(arguments, reason)
        elif name == "set" and (all_exported := _allexport(arguments)) is not None:
            if not reason:
                self._all_exported = all_exported
            else:
                self.warn(command.start, f"'set' {reason}")
        elif name in (".", "source"):
            target = visible(arguments[0].text, 80) if arguments else ""
            self.warn(command.start, f"reads another file ({target}); what it sets is not read")
            self._doubt(command.start, f"{name} {target}")
        elif name in _ENDERS and reason != IN_FUNCTION:
            self.warn(command.start, f"{name!r}: nothing below it is set" + (" once it is reached" if reason else ""))
            self.after = self.after or f"stands below {name!r} in line {self.line(command.start)}"
        elif name or command.plain or arguments:
            self.warn(command.start, f"runs {visible(name, 60)!r}")
            if name in _SETTERS or name in self.functions or not command.literal(element=True):
                self._doubt(command.start, visible(name, 40))

    def _doubt(self, at: int, what: str) -> None:
        """A command that may have set any key: what was read above is no longer sure."""
        self.blame(0, f"may be changed by line {self.line(at)} ({what})")

    def _declare(self, name: str, arguments: Sequence[Word], reason: str) -> None:
        options = [word.text for word in arguments if word.text[:1] in ("-", "+") and len(word.text) > 1]
        flags = "".join(item[1:] for item in options)
        if name == "local":
            reason = reason or "'local' outside of a function"
        if odd := sorted(set(flags) - set("axrg")):
            reason = reason or f"{name} -{visible(''.join(odd), 10)}: not read"
        exported = (name == "export" or "x" in flags) and not any(item.startswith("+") for item in options)
        for word in arguments:
            if word.assigns():
                self._set(word, reason, exported=exported, declared=True)
            elif match := NAMED.match(word.text):
                self._set_quoted(word, match, reason, exported)
            elif _NAME.fullmatch(word.text) and word.literal(element=True):
                self._declare_name(word, reason, exported)
            elif word.text not in options:
                self.warn(word.start, f"{name} of {visible(word.text, 60)!r}")
                if not word.literal(element=True):
                    self._doubt(word.start, name)
            key = match[0] if (match := _NAME.match(word.text)) else ""
            if key and odd:
                self._odd[key] = f"-{visible(''.join(odd), 10)}"
            if key and "a" in flags:
                self._arrays.add(key)
            if key and reason != IN_FUNCTION and (name == "readonly" or "r" in flags):
                self._readonly.setdefault(key, self.line(word.start))

    def _declare_name(self, word: Word, reason: str, exported: bool) -> None:
        if reason and word.text in self._latest:
            self.unsure(word.text, word.start, reason)  # `declare -i NAME` changes how later values are taken
        elif exported:
            self._exported.add(word.text)

    def _set_quoted(self, word: Word, match: re.Match[str], reason: str, exported: bool) -> None:
        """`export "A=x y"`: no assignment by grammar, but the builtin carries it out."""
        reason = reason or (_ONE_ELEMENT if match[2] else "")
        value = word.text[match.end() :]
        known = word.literal(element=True) and "~" not in value
        made = Assignment(match[1], (value,), bool(match[2]), self.line(word.start), exported, known, reason)
        self._note(made, None, bool(match[3]), whole=False)

    def _unset(self, arguments: Sequence[Word], reason: str) -> None:
        for word in arguments:
            if word.text in ("-v", "-f", "-n") or word.text in self._readonly:
                continue
            if _NAME.fullmatch(word.text) and word.literal(element=True):
                self.add(Assignment(word.text, (), False, self.line(word.start), False, True, reason or "unset"))
                if not reason:
                    self._arrays.discard(word.text)
                    self._odd.pop(word.text, None)
            elif match := _NAME.match(word.text):
                self.unsure(match[0], word.start, reason or "unset in part")
            else:
                self.warn(word.start, f"unset of {visible(word.text, 60)!r}")
                self._doubt(word.start, "unset")


def _allexport(arguments: Sequence[Word]) -> bool | None:
    """True for `set -a` and `set -o allexport`, False for their opposites; None for any other `set`."""
    words = [word.text for word in arguments]
    return {("-a",): True, ("+a",): False, ("-o", "allexport"): True, ("+o", "allexport"): False}.get(tuple(words))
