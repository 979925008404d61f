"""Which of the console's own scripts a command is. Texts are compared byte for byte; what differs from one call to the
next (arguments, standard input, data of ours before or behind a script) is handed out, never run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from console.actions.probes import whole
from console.actions.scripts import script as action_script
from console.execution import sequence_head, sequence_reach
from console.execution.runner_base import ASIDE, LOOK, ONCE, WAIT
from console.execution.scripts import NAMES
from console.execution.scripts import script as execution_script
from console.readings import dryrun
from console.rehearsal.acting.asking import split, unquoted

SHARED = ("lib.sh", "site_prove.sh")
"""Files that are only ever a part of another script: put in front of each, or sent along with the edit."""
_CALL = "\n\nimport sys\n\nsys.exit(main({}))\n"
_BARE = ("site_is.sh",)
_WITH_DATA = {"dry_run.sh": ("candidate", "check"), "rows_build.sh": ("check",)}
_EDIT = re.compile(r"sys\.argv\[1:\], '([A-Za-z0-9+/=]*)', ")
_SECONDS = re.compile(r"[0-9]{1,4}")
_CALLS = re.compile(r"\((try .*|:)\) &\n")


@dataclass(frozen=True, slots=True)
class Known:
    """One of our scripts with what it was told."""

    name: str
    """`fence`, `stop_container.sh`, `once`: key of the table of twins."""
    args: tuple[str, ...] = ()
    stdin: str = ""
    """Its standard input, where that is not the script."""
    data: Mapping[str, str] = field(default_factory=dict)


def shipped() -> list[str]:
    """Names of all scripts that the console may send."""
    folder = resources.files("console.actions.scripts")
    files = [item.name for item in folder.iterdir() if item.name.endswith((".sh", ".py")) and item.name[0] != "_"]
    return sorted([*files, *NAMES, "once", "look", "wait", "aside", "can-run", "reach"])


@cache
def _on_stdin() -> dict[str, str]:
    """Names by text, of what `sh -s` reads."""
    folder = resources.files("console.actions.scripts")
    names = [item.name for item in folder.iterdir() if item.name.endswith(".sh")]
    plain = [name for name in names if name not in (*SHARED, *_BARE, *_WITH_DATA)]
    texts = {whole(name): name for name in plain} | {action_script(name): name for name in _BARE}
    return texts | {execution_script(name): name for name in NAMES}


@cache
def _as_word() -> dict[str, str]:
    """Names by text, of what `sh -c TEXT laneswap` runs."""
    own = {ONCE: "once", LOOK: "look", WAIT: "wait", ASIDE: "aside"}
    return own | {execution_script(name): name for name in NAMES}


@cache
def starter_text() -> str:
    """The text of starter.sh, which `wait` is told as an argument."""
    return execution_script("starter")


def known(argv: Sequence[str], stdin: str) -> Known | None:
    """Which script it is; None for what is none of ours."""
    words = tuple(argv)
    if words[:3] == ("sh", "-s", "--"):
        return _from_stdin(words[3:], stdin)
    if words[:2] == ("sh", "-c") and words[3:4] == ("laneswap",):
        name = _as_word().get(words[2])
        return Known(name, words[4:], stdin) if name is not None else None
    if words == ("python3", "-I", "-S", "-") and stdin == sequence_head._PYTHON:
        return Known("can-run")
    if words[:3] == ("python3", "-I", "-"):
        return _python(words[3:], stdin)
    return None if stdin else _plain(words)


def _plain(words: tuple[str, ...]) -> Known | None:
    if words == ("true",):
        return Known("true")
    if words[:1] == ("sleep",) and len(words) == 2 and _SECONDS.fullmatch(words[1]):
        return Known("sleep", words[1:])
    if words[:1] == ("cat",) and len(words) == 2 and words[1].endswith("/lease"):
        return Known("cat", words[1:])
    return None


def _from_stdin(args: tuple[str, ...], text: str) -> Known | None:
    name = _on_stdin().get(text)
    if name is not None:
        return Known(name, args)
    for name, keys in _WITH_DATA.items():
        ours = action_script(name)
        if text.endswith(ours) and (data := _data(text.removesuffix(ours), keys)) is not None:
            return Known(name, args, data=data) if _check_is_ours(name, data["check"]) else None
    if text.startswith(sequence_reach._TRY) and args == (str(sequence_reach.EACH),):
        return _reach(text.removeprefix(sequence_reach._TRY))
    return None


def _data(text: str, keys: Sequence[str]) -> dict[str, str] | None:
    """Variables that are set before a script."""
    found, at = {}, 0
    for key in keys:
        match = re.compile(rf"{key}=((?:[\w@%+=:,./-]|'[^']*'|\"'\")+)\n", re.ASCII).match(text, at)
        if match is None:
            return None
        found[key], at = unquoted(match[1]), match.end()
    again = "".join(f"{key}={shlex.quote(value)}\n" for key, value in found.items())
    return found if again == text else None


def _check_is_ours(name: str, text: str) -> bool:
    return text == (_rows_check() if name == "rows_build.sh" else _dry_run_check())


@cache
def _rows_check() -> str:
    return action_script("rows_check.py") + _CALL.format("sys.argv[1:]")


@cache
def _dry_run_check() -> str:
    return resources.files("console.readings").joinpath(f"{dryrun.__name__.rpartition('.')[2]}.py").read_text("utf-8")


def _python(args: tuple[str, ...], text: str) -> Known | None:
    if text == _rows_check():
        return Known("rows_check.py", args)
    edit = action_script("site_edit.py") + _CALL.partition("{}")[0]
    match = _EDIT.match(text, len(edit)) if text.startswith(edit) else None
    if match is None:
        return None
    prove = action_script("site_prove.sh")
    told = ", ".join(("sys.argv[1:]", repr(match[1]), repr(prove)))
    again = action_script("site_edit.py") + _CALL.format(told)
    return Known("site_edit.py", args, data={"candidate": ast.literal_eval(f"'{match[1]}'")}) if again == text else None


def _reach(calls: str) -> Known | None:
    """`(try HOST NUMBER WAY... || try ...) &` a host, and a wait."""
    *rows, last = calls.splitlines(keepends=True) or [""]
    tries: list[str] = []
    for row in rows:
        match = _CALLS.fullmatch(row)
        if match is None:
            return None
        tries += [call for call in match[1].split(" || ") if call != ":"]
    told = [split(call)[1:] for call in tries]
    if last != "wait\n" or any(f"try {shlex.join(words)}" != call for words, call in zip(told, tries, strict=True)):
        return None
    return Known("reach", tuple(shlex.join(words) for words in told))
