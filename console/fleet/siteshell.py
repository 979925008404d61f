"""What a bash file sets when it is sourced, and what it would do besides. Pure: it reads, never runs.

What depends on a run (conditions, loops, functions, subshells) is never guessed: such an assignment carries an error.
Syntax errors matter, since bash reads nothing behind one; inside shell code they are not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from console.fleet.siteeffects import DECLARERS, IN_FUNCTION, NAMED, Effects, Placed, ShellRead
from console.fleet.sitetypes import visible
from console.fleet.sitewords import Scanner, TooMuch, Unfinished, Word

__all__ = ["Placed", "ShellRead", "read_shell"]

_OPENERS = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
_INSIDE = ("then", "else", "elif", "do", "fi", "done", "esac", "}")
_MIDDLES = ("then", "else", "elif", "do", "in", "!", "time")
_LEADING = (*_MIDDLES, "if", "while", "until", "{")
_BODIES = (*_OPENERS, "[[")
_PIPES = ("|", "|&")
_JOINING = ("&&", "||", *_PIPES)
_TEST_END = re.compile(r"\s\]\](?=[\s;&|)]|\Z)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_shell(text: str) -> ShellRead:
    """Every assignment of a text in its order. Never raises."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._scan = Scanner(text)
        self._effects = Effects(text)
        self._closers: list[str] = []
        """What ends each `if`, loop, group or subshell that is open."""
        self._trailing = ""
        """A word behind the end of shell code, where none may stand."""
        self._body = False
        """`name ()` has been read: its body must follow."""
        self._functions: list[int] = []
        """Numbers of things that were open when the body of a function began."""
        self._behind_group = False
        """A `)` has just closed a subshell: no word may follow it."""
        self._fresh = False
        """A `(` has just been opened and holds nothing yet."""
        self._link = ""
        """The operator before the present command."""
        self._list = 0
        """Index of the first assignment of the present list of commands, which `&` puts into the background."""
        self._group = 0
        """Index of the first assignment of the present line: a syntax error undoes all of it."""
        self._heredocs: list[tuple[str, bool]] = []

    def read(self) -> ShellRead:
        """All of the text, as far as bash reads it."""
        try:
            while self._command():
                pass
        except Unfinished as error:
            self._unfinished(error)
        except TooMuch:
            self._give_up()
        return self._effects.finish()

    # --- one command -------------------------------------------------------------------------------------------------

    def _command(self) -> bool:
        """Read one command with the operator behind it; False at the end of the text or of what bash reads."""
        words, redirected, operator = self._words()
        if near := self._wrong(words, redirected, operator):
            return self._stop(near)
        self._behind_group = False
        self._fresh = operator == "(" or (self._fresh and not words)
        body, self._body = self._body, self._body and not words and operator == "\n"
        if body and not self._body:
            self._functions.append(len(self._closers))
        if operator == "(" and words and self._is_function():
            self._function(words[-1])
            return True
        self._take(words, redirected, operator)
        return self._stop(self._trailing) if self._trailing else self._goes_on(operator)

    def _wrong(self, words: list[Word], redirected: bool, operator: str) -> str:
        """Near what bash would find a syntax error; '' where it finds none."""
        first = words[0].text if words and words[0].plain else ""
        if self._body and (words or operator not in ("\n", "(")) and first not in _BODIES:
            return words[0].text if words else operator or "end of file"
        if operator == ")" and not words and self._fresh and self._closers[-1:] == [")"]:
            return ")"
        if self._closers or first in ("case", "function"):
            return ""
        if (words and self._behind_group) or first in _INSIDE:
            return words[0].text
        if operator == "(" and words and (redirected or len(words) > 1 or not self._is_function(ahead=True)):
            return operator
        if first == "!" and (self._link in _PIPES or (len(words) == 1 and operator in (*_JOINING, "&"))):
            return "!"
        if operator in (")", ";;", ";&"):
            return operator
        missing = not words and not redirected and not self._behind_group and self._is_missing(operator)
        return (operator.strip() or "end of file") if missing else ""

    def _is_missing(self, operator: str) -> bool:
        """Whether bash expects a command where none stands: not at an empty line, nor at the end."""
        if operator in ("\n", ""):
            return operator == "" and self._link in _JOINING
        return operator != "("

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
                if words[-1].text == "[[" and words[-1].plain and len(words) == 1:
                    self._test(words[-1])
                reserved = words[-1].plain and words[-1].text in _LEADING
                if leading and words[-1].assigns() is None and not reserved:
                    # behind a command's name `A=(` is a syntax error, but for those that declare
                    leading, arrays = False, words[-1].text in (*DECLARERS, "alias", "eval", "let")

    def _test(self, opening: Word) -> None:
        """Go past `[[ ... ]]`, in which parentheses and `<` are no operators."""
        end = _TEST_END.search(self._scan.text, self._scan.at)
        if end is None:
            raise Unfinished("test [[", opening.start, opening.start)
        self._scan.at = end.end()

    def _redirect(self, operator: str) -> None:
        self._scan.blanks()
        at = self._scan.at
        if at >= len(self._scan.text) or self._scan.text[at] in "\n;&|<>()":
            raise Unfinished("redirection", at, at)
        target = self._scan.word(arrays=False)
        if operator in ("<<", "<<-"):
            self._heredocs.append((target.text, operator == "<<-"))
        what = f"{operator} {visible(target.text, 40)}"
        self._effects.warn(at, f"redirects ({what}): reading this file reads or writes another")

    def _goes_on(self, operator: str) -> bool:
        found = len(self._effects.out.found)
        if operator == "&":
            self._effects.blame(self._list, "runs in the background: sets nothing here")
        if operator in ("\n", ";", "&", ""):
            self._list = found
        if operator in ("\n", "") and not self._closers and self._link not in _JOINING:
            self._group = found
        if operator == "\n":
            self._skip_heredocs()
        if operator == "" and (self._closers or self._body):
            self._stop("end of file")
        return operator != ""

    def _is_function(self, *, ahead: bool = False) -> bool:
        """Whether `name (` goes on with `)`: gone past, so that the body is read as a group, unless only looking."""
        before = self._scan.at
        self._scan.blanks()
        found = self._scan.text.startswith(")", self._scan.at)
        self._scan.at = before if ahead or not found else self._scan.at + 1
        return found

    def _function(self, name: Word) -> None:
        self._effects.warn(name.start, "defines a function; what it sets when called is not read")
        self._effects.functions.add(name.text)
        self._body = True

    def _take(self, words: list[Word], redirected: bool, operator: str) -> None:
        """Note what a command sets and does."""
        before, self._link = self._link, operator if operator not in ("\n", ";", "&", ";;", ";&") else ""
        if operator == "\n" and not words and before in _JOINING:
            self._link = before  # a list goes on behind the newline
            return
        inside = bool(self._closers)
        rest = self._compound(words, operator)
        if rest:
            inside = inside or bool(self._closers and operator != "(")
            self._effects.command(rest, self._reason(before, redirected, operator, inside))
        while self._functions and len(self._closers) <= self._functions[-1]:
            self._functions.pop()

    def _reason(self, before: str, redirected: bool, operator: str, inside: bool) -> str:
        """Why a command's assignments may not come about; '' where they do."""
        if self._effects.after:
            return self._effects.after
        if inside and self._functions:
            return IN_FUNCTION
        if inside:
            return "stands inside shell code: whether it is set is not known"
        if before in ("&&", "||"):
            return f"set only if what stands before {before} says so"
        if before in _PIPES or operator in _PIPES:
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
                behind = rest[0].text if rest else operator if operator == "(" else ""
                self._trailing = "" if self._closers else behind
            elif text in _OPENERS:
                self._open(rest, _OPENERS[text])
                rest = [] if text in ("for", "select", "case") else rest[1:]
            elif text == "function" and len(rest) > 1:
                self._function(rest[1])
                rest = rest[2:]
                self._body = not rest
                self._functions += [len(self._closers)] if rest else []
            elif text in _MIDDLES:
                rest = rest[1:]
            else:
                break
        if operator == "(":
            self._open([], ")")
        elif operator == ")" and self._closers[-1:] == [")"]:
            self._closers.pop()
            self._behind_group = True
        return rest

    def _open(self, words: Sequence[Word], closer: str) -> None:
        text = words[0].text if words else "("
        at = words[0].start if words else self._scan.at
        if not self._closers:
            self._effects.warn(at, f"shell code ({text}); what it sets is not read")
        self._closers.append(closer)
        if text in ("for", "select") and len(words) > 1 and _NAME.fullmatch(words[1].text):
            self._effects.unsure(words[1].text, words[1].start, f"set by a loop ({text})")

    # --- ends --------------------------------------------------------------------------------------------------------

    def _skip_heredocs(self) -> None:
        for delimiter, tabs in self._heredocs:
            while self._scan.at < len(self._scan.text):
                end = self._scan.text.find("\n", self._scan.at)
                row = self._scan.text[self._scan.at : len(self._scan.text) if end < 0 else end]
                self._scan.at = len(self._scan.text) if end < 0 else end + 1
                if (row.lstrip("\t") if tabs else row) == delimiter:
                    break
        self._heredocs.clear()

    def _stop(self, near: str) -> bool:
        at = min(self._scan.at, len(self._scan.text)) - 1
        self._effects.out.stopped = self._effects.line(at)
        self._effects.warn(at, f"syntax error near {visible(near, 20)!r}: bash reads nothing from here on")
        self._effects.blame(self._group, "stands in a line with a syntax error")
        return False

    def _give_up(self) -> None:
        """Not read to its end: any key may be set again further down."""
        line = self._effects.line(self._scan.at)
        self._effects.out.stopped = line
        self._effects.warn(self._scan.at, "too many words: not read from here on")
        self._effects.blame(0, f"may be set again below line {line}, which is not read")

    def _unfinished(self, error: Unfinished) -> None:
        """A quote that never ends takes the rest of the file with it."""
        line = self._effects.line(error.begin)
        self._effects.out.stopped = line
        self._effects.warn(error.begin, f"{error.what} never ends: bash reads nothing from here on")
        self._effects.blame(self._group, "stands in a line with a syntax error")
        if match := NAMED.match(self._scan.text, error.word):
            self._effects.unsure(match[1], error.word, f"{error.what} of line {line} never ends")
