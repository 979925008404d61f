"""What a bash file sets when it is sourced, and what it would do besides. Pure: it reads, never runs.

What depends on a run (conditions, loops, functions, subshells) is never guessed: such an assignment carries an error.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from console.fleet.sitetypes import Assignment, visible
from console.fleet.sitewords import Scanner, Unfinished, Word

_DECLARERS = ("export", "declare", "typeset", "readonly", "local")
_OPENERS = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
_MIDDLES = ("then", "else", "elif", "do", "in", "!")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?(\+?)=", re.DOTALL)
_SELF_MADE = frozenset(
    "_ BASHOPTS BASHPID BASH_ARGC BASH_ARGV BASH_COMMAND BASH_LINENO BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO DIRSTACK"
    " EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO PPID RANDOM SECONDS SHELLOPTS SRANDOM UID".split()
)
"""Variables that bash keeps itself: read-only, or other than what was set."""
_ENDERS = ("exit", "return", "exec")
_MOST_WARNINGS = 40


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


def read_shell(text: str) -> ShellRead:
    """Every assignment of a text in its order. Never raises."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._scan = Scanner(text)
        self._lines = [at for at, mark in enumerate(text) if mark == "\n"]
        self._out = ShellRead()
        self._closers: list[str] = []
        """What ends each `if`, loop, group or subshell that is open."""
        self._link = ""
        """The operator before the present command."""
        self._list = 0
        """Index of the first assignment of the present list of commands, which `&` puts into the background."""
        self._group = 0
        """Index of the first assignment of the present line: a syntax error undoes all of it."""
        self._heredocs: list[tuple[str, bool]] = []
        self._latest: dict[str, Assignment] = {}
        self._exported: set[str] = set()
        self._readonly: dict[str, int] = {}
        self._all_exported = False
        self._after = ""
        """Why nothing that follows is set: a command that ends the sourcing script."""

    def read(self) -> ShellRead:
        try:
            while self._command():
                pass
        except Unfinished as error:
            self._unfinished(error)
        self._mark_exported()
        return self._out

    # --- one command -------------------------------------------------------------------------------------------------

    def _command(self) -> bool:
        """Read one command with the operator behind it; False at the end of the text or of what bash reads."""
        words, redirected, operator = self._words()
        if operator == "(" and words and not redirected and not self._closers and not self._is_function():
            return self._stop("(")
        if operator == ")" and "in" not in [word.text for word in words] and not self._closers:
            return self._stop(")")
        if not words and not redirected and not self._closers and self._is_missing(operator):
            return self._stop(operator.strip() or "end of file")
        self._take(words, redirected, operator)
        return self._goes_on(operator)

    def _words(self) -> tuple[list[Word], bool, str]:
        """The words up to the next operator that ends a command; redirections are noted and left out."""
        words: list[Word] = []
        redirected, leading, arrays = False, True, True
        while True:
            self._scan.blanks()
            if self._scan.at >= len(self._scan.text):
                return words, redirected, ""
            operator = self._scan.operator()
            if operator and (operator[0] in "<>" or operator == "&>"):
                redirected = True
                self._redirect(operator)
            elif operator:
                return words, redirected, operator
            else:
                words.append(self._scan.word(arrays=arrays))
                if leading and words[-1].assigns() is None:
                    # behind a command's name `A=(` is a syntax error, but for those that declare
                    leading, arrays = False, words[-1].text in _DECLARERS

    def _redirect(self, operator: str) -> None:
        self._scan.blanks()
        at = self._scan.at
        if at >= len(self._scan.text) or self._scan.text[at] in "\n;&|<>()":
            raise Unfinished("redirection", at, at)
        target = self._scan.word(arrays=False)
        if operator in ("<<", "<<-"):
            self._heredocs.append((target.text, operator == "<<-"))
        self._warn(at, f"redirects ({operator} {visible(target.text, 40)}): reading this file reads or writes another")

    def _goes_on(self, operator: str) -> bool:
        out = self._out.found
        if operator == "&":
            self._blame(self._list, "runs in the background: sets nothing here")
        if operator in ("\n", ";", "&", ""):
            self._list = len(out)
        if operator in ("\n", "") and not self._closers and self._link not in ("&&", "||", "|", "|&"):
            self._group = len(out)
        if operator == "\n":
            self._skip_heredocs()
        if operator == "" and self._closers:
            self._stop("end of file")
        return operator != ""

    def _is_missing(self, operator: str) -> bool:
        """Whether bash expects a command where none stands: not at an empty line, nor at the end."""
        if operator in ("\n", ""):
            return operator == "" and self._link in ("&&", "||", "|", "|&")
        return operator != "("

    def _is_function(self) -> bool:
        """`name ()`: gone past, so that its body is read as a group."""
        self._scan.blanks()
        if not self._scan.text.startswith(")", self._scan.at):
            return False
        self._scan.at += 1
        self._warn(self._scan.at, "defines a function; what it sets when called is not read")
        return True

    def _take(self, words: list[Word], redirected: bool, operator: str) -> None:
        """Note what a command sets and does."""
        before, self._link = self._link, operator if operator not in ("\n", ";", "&", ";;", ";&") else ""
        if operator == "\n" and not words and before in ("&&", "||", "|", "|&"):
            self._link = before  # a list goes on behind the newline
            return
        words = self._compound(words, operator)
        if not words:
            return
        leading = 0
        while leading < len(words) and words[leading].assigns():
            leading += 1
        reason = self._reason(before, redirected, operator)
        if leading == len(words):
            for word in words:
                self._set(word, reason, exported=False)
            return
        command = words[leading]
        for word in words[:leading]:
            self._set(word, f"runs {visible(command.text, 60)!r}", exported=False)
        self._run(command, words[leading + 1 :], reason)

    def _reason(self, before: str, redirected: bool, operator: str) -> str:
        """Why a command's assignments may not come about; '' where they do."""
        if self._after:
            return self._after
        if self._closers:
            return "stands inside shell code: whether it is set is not known"
        if before in ("&&", "||"):
            return f"set only if what stands before {before} says so"
        if before in ("|", "|&") or operator in ("|", "|&"):
            return "stands in a pipe: sets nothing here"
        return "stands beside a redirection" if redirected else ""

    def _compound(self, words: list[Word], operator: str) -> list[Word]:
        """Take off reserved words and note what opens and closes; gives the simple command that is left."""
        rest = list(words)
        while rest and rest[0].plain:
            text = rest[0].text
            if self._closers and text == self._closers[-1]:
                self._closers.pop()
                rest = rest[1:]
            elif text in _OPENERS or text == "function":
                if not self._closers:
                    self._warn(rest[0].start, f"shell code ({text}); what it sets is not read")
                if text != "function":
                    self._closers.append(_OPENERS[text])
                rest = [] if text in ("for", "select", "case", "function") else rest[1:]
            elif text in _MIDDLES:
                rest = rest[1:]
            else:
                break
        if operator == "(":
            if not self._closers:
                self._warn(self._scan.at, "shell code in ( ); what it sets is not read")
            if not (words and self._scan.text.startswith(")", self._scan.at - 1)):
                self._closers.append(")")
        elif operator == ")" and self._closers and self._closers[-1] == ")":
            self._closers.pop()
        return rest

    # --- what it sets ------------------------------------------------------------------------------------------------

    def _set(self, word: Word, reason: str, *, exported: bool) -> None:
        named = word.assigns()
        assert named is not None
        key, subscript, appends = named
        value = word.value()
        if subscript:
            reason = reason or "sets one element of an array: not read"
        elements = value.elements
        if elements is not None and any(item.text.startswith("[") for item in elements):
            reason = reason or "sets elements by subscript: not read"
        if elements is not None and self._scan.text[word.end : word.end + 1] not in ("", *" \t\n;&|<>)"):
            reason = reason or "text behind the closing parenthesis"
        values = (value.text,) if elements is None else tuple(item.text for item in elements)
        literal = value.literal() if elements is None else all(item.literal(element=True) for item in elements)
        self._note(word, key, values, elements is not None, literal, reason, appends, exported, value)

    def _note(
        self, word: Word, key: str, values: tuple[str, ...], array: bool, literal: bool, reason: str,
        appends: bool, exported: bool, value: Word | None,
    ) -> None:  # fmt: skip
        at = self._line(word.start)
        if key in _SELF_MADE:
            reason = reason or "bash keeps this variable itself"
        if key in self._readonly:
            reason = reason or f"readonly since line {self._readonly[key]}"
        earlier = self._latest.get(key)
        if appends and earlier is not None:
            if earlier.error:
                reason = reason or "adds to a value that is not known"
            literal = literal and earlier.literal
            if array:
                values, array = earlier.values + values, True
            else:
                values = (earlier.value + values[0], *earlier.values[1:])
                array = earlier.array
        elif appends:
            literal = False  # what the environment has is not known
        elif earlier is not None and earlier.array and not array and earlier.error != "unset":
            # a scalar set over an array changes its first element only
            values, array = (values[0], *earlier.values[1:]), True
            literal = literal and earlier.literal
        made = Assignment(key, values, array, at, exported or self._all_exported, literal, reason)
        self._add(made, None if appends or array else value, appends)

    def _add(self, made: Assignment, value: Word | None, appends: bool = False) -> None:
        self._latest[made.key] = made
        self._out.found.append(Placed(made, value, appends))

    # --- what it does besides ----------------------------------------------------------------------------------------

    def _run(self, command: Word, arguments: Sequence[Word], reason: str) -> None:
        name = command.text
        if name in _DECLARERS:
            self._declare(name, arguments, reason)
        elif name == "unset":
            self._unset(arguments, reason)
        elif name == "set" and (all_exported := _allexport(arguments)) is not None:
            if reason:
                self._warn(command.start, f"'set' {reason}")
            else:
                self._all_exported = all_exported
        elif name in (".", "source"):
            target = visible(arguments[0].text, 80) if arguments else ""
            self._warn(command.start, f"reads another file ({target}); what it sets is not read")
        elif name in _ENDERS and not reason:
            self._warn(command.start, f"{name!r} ends here: nothing below is set")
            self._after = f"stands below {name!r} in line {self._line(command.start)}"
        elif not (name == "" and not command.plain and not arguments):
            self._warn(command.start, f"runs {visible(name, 60)!r}")

    def _declare(self, name: str, arguments: Sequence[Word], reason: str) -> None:
        flags = "".join(word.text[1:] for word in arguments if word.text[:1] in "-+" and len(word.text) > 1)
        turned_off = any(word.text.startswith("+") for word in arguments)
        if name == "local":
            reason = reason or "'local' outside of a function"
        if odd := sorted(set(flags) - set("axrg")):
            reason = reason or f"{name} -{visible(''.join(odd), 10)}: not read"
        exported = (name == "export" or "x" in flags) and not turned_off
        for word in arguments:
            if word.assigns():
                self._set(word, reason, exported=exported)
            elif match := _NAMED.match(word.text):
                self._quoted(word, match, reason, exported)
            elif _NAME.fullmatch(word.text) and not reason and exported:
                self._exported.add(word.text)
            elif not word.plain or not (_NAME.fullmatch(word.text) or word.text[:1] in "-+"):
                self._warn(word.start, f"{name} of {visible(word.text, 60)!r}")
            key = match[0] if (match := _NAME.match(word.text)) else ""
            if key and not reason and (name == "readonly" or "r" in flags):
                self._readonly.setdefault(key, self._line(word.start))

    def _quoted(self, word: Word, match: re.Match[str], reason: str, exported: bool) -> None:
        """`export "A=x y"`: no assignment by grammar, but the builtin carries it out."""
        if match[2]:
            reason = reason or "sets one element of an array: not read"
        value = word.text[match.end() :]
        known = word.literal(element=True) and "~" not in value
        self._note(word, match[1], (value,), False, known, reason, bool(match[3]), exported, None)

    def _unset(self, arguments: Sequence[Word], reason: str) -> None:
        for word in arguments:
            if word.text in ("-v", "-f", "-n"):
                continue
            if _NAME.fullmatch(word.text) and word.literal(element=True):
                if word.text in self._readonly:
                    continue
                made = Assignment(word.text, (), False, self._line(word.start), False, True, reason or "unset")
                self._add(made, None)
            else:
                self._warn(word.start, f"unset of {visible(word.text, 60)!r}")

    # --- ends and words ----------------------------------------------------------------------------------------------

    def _skip_heredocs(self) -> None:
        for delimiter, tabs in self._heredocs:
            while self._scan.at < len(self._scan.text):
                end = self._scan.text.find("\n", self._scan.at)
                row = self._scan.text[self._scan.at : len(self._scan.text) if end < 0 else end]
                self._scan.at = len(self._scan.text) if end < 0 else end + 1
                if (row.lstrip("\t") if tabs else row) == delimiter:
                    break
        self._heredocs.clear()

    def _blame(self, first: int, reason: str) -> None:
        for index in range(first, len(self._out.found)):
            made = self._out.found[index].assignment
            made = replace(made, error=made.error or reason)
            self._out.found[index] = replace(self._out.found[index], assignment=made)
            self._latest[made.key] = made

    def _stop(self, near: str) -> bool:
        at = self._line(min(self._scan.at, max(0, len(self._scan.text) - 1)))
        self._out.stopped = at
        self._warn(self._scan.at - 1, f"syntax error near {visible(near, 20)!r}: bash reads nothing from here on")
        self._blame(self._group, "stands in a line with a syntax error")
        return False

    def _unfinished(self, error: Unfinished) -> None:
        """A quote that never ends takes the rest of the file with it."""
        what = f"{error.what} of line {self._line(error.begin)} never ends: bash sets nothing from here on"
        self._out.stopped = self._line(error.begin)
        self._warn(error.begin, f"{error.what} never ends: bash reads nothing from here on")
        self._blame(self._group, "stands in a line with a syntax error")
        if match := _NAMED.match(self._scan.text, error.word):
            made = Assignment(match[1], (), False, self._line(error.word), False, False, what)
            self._out.found.append(Placed(made, None))

    def _mark_exported(self) -> None:
        for index, item in enumerate(self._out.found):
            if item.assignment.key in self._exported:
                self._out.found[index] = replace(item, assignment=replace(item.assignment, exported=True))

    def _line(self, at: int) -> int:
        return bisect_left(self._lines, at) + 1

    def _warn(self, at: int, what: str) -> None:
        if len(self._out.warnings) < _MOST_WARNINGS:
            self._out.warnings.append(f"line {self._line(max(0, at))}: {what}")


def _allexport(arguments: Sequence[Word]) -> bool | None:
    """True for `set -a` and `set -o allexport`, False for their opposites; None for any other `set`."""
    words = [word.text for word in arguments]
    return {("-a",): True, ("+a",): False, ("-o", "allexport"): True, ("+o", "allexport"): False}.get(tuple(words))
