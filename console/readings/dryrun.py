"""A launcher's dry run of a candidate site file beside that of the present one: what a switch may change, and the rest.

Forms: `== rank N` and the rank's command on the next line, as `production.sh --dry-run` of aidendle94/sparkrun-recipes
prints them; `ABORT: words` instead. Pure. This very file is also sent to the head, which compares there without the
rest of laneswap: it needs nothing but a few modules of any python from 3.8 on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

MODEL_FLAGS = ("--model-path", "--model")
ROWS_TARGET = "/engram-local"
"""Where a rank's row copy is mounted."""
ROWS_ENV = "SPARK_ENGRAM_DIR"
"""On the rank that holds the checkpoint: the snapshot, whose shards it reads rows from."""
DRIFTS = ("NCCL_IB_GID_INDEX", "B12X_ROCE_GID_INDEX")
"""Probed on the hosts at each launch; may move by themselves after a reboot."""
MOST_CHARACTERS = 1 << 20
_RANK = re.compile(r"^== rank (\d{1,3})[ \t]*$", re.MULTILINE)
_ABORT = re.compile(r"^ABORT:?[ \t]*(.*)$", re.MULTILINE)
_MOST_SHOWN = 200


class Expected(NamedTuple):
    """What a switch of revision changes in a dry run; each of it must come out so on every rank."""

    old: str
    """40 hex."""
    new: str
    rows_old: str
    """Folder of the row copies as the site file has it; '' where the lane has none."""
    rows_new: str
    ranks: int
    holder: int = -1
    """The rank that reads rows from the shards; -1: none."""


class DryRun(NamedTuple):
    """One dry run."""

    ranks: dict[int, tuple[str, ...]]
    """The words of each rank's command, as a shell takes them."""
    aborted: str = ""
    """Why it ended early; '' if it did not. Safe words."""


class Difference(NamedTuple):
    """One value of one rank's command that is another in the candidate's; '' where it is not there. Safe words."""

    rank: int
    name: str
    """`--model-path`, `-v /engram-local`, `-e NCCL_IB_GID_INDEX`."""
    before: str
    after: str

    def words(self) -> str:
        """`rank 2: -v /engram-local: /home/bob/a:ro -> /home/bob/b:ro`."""
        before, after = self.before[:_MOST_SHOWN] or "(none)", self.after[:_MOST_SHOWN] or "(none)"
        return f"rank {self.rank}: {self.name[:_MOST_SHOWN]}: {before} -> {after}"


class Differences(NamedTuple):
    """All of them, sorted by what they mean."""

    expected: tuple[Difference, ...] = ()
    site_drift: tuple[Difference, ...] = ()
    """Moved by themselves, not by the edit."""
    surprises: tuple[Difference, ...] = ()
    missing_ranks: tuple[int, ...] = ()
    unchanged: tuple[str, ...] = ()
    """What should have come out otherwise, in words: the edit does not reach that rank."""
    aborted: str = ""
    """Why there is nothing to compare; '' if there is."""

    @property
    def fine(self) -> bool:
        """Only what a switch may change, and all that it must."""
        return not (self.surprises or self.missing_ranks or self.unchanged or self.aborted)

    def lines(self) -> list[str]:
        """For people, what is bad first."""
        rows = ["ABORTED " + self.aborted] if self.aborted else []
        rows += [f"MISSING rank {rank}" for rank in self.missing_ranks]
        rows += ["SURPRISE " + item.words() for item in self.surprises]
        rows += ["NOT CHANGED " + words for words in self.unchanged]
        rows += ["site drift " + item.words() for item in self.site_drift]
        return rows + ["expected " + item.words() for item in self.expected]


def parse_dry_run(text: str) -> DryRun:
    """What a dry run printed on both outputs. Never raises."""
    text = text[:MOST_CHARACTERS].replace("\r\n", "\n")
    abort = _ABORT.search(text)
    marks = list(_RANK.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    ranks = {}
    for mark, end in zip(marks, ends):  # noqa: B905
        command = _ABORT.sub("", text[mark.end() : end])
        if command.strip():
            ranks[int(mark.group(1))] = tuple(_split(command))
    if abort:
        return DryRun(ranks, _shown(abort.group(1).strip())[:2000] or "without a word")
    if not ranks:
        last = [row for row in text.split("\n") if row.strip()][-1:]
        return DryRun(ranks, "no rank's command in it" + (": " + _shown(last[0].strip())[:2000] if last else ""))
    return DryRun(ranks)


def compare(current: DryRun, candidate: DryRun, expected: Expected) -> Differences:
    """The candidate's dry run beside the present one's. Never raises."""
    for name, run in (("present site file", current), ("candidate", candidate)):
        if run.aborted:
            return Differences(aborted=f"{name}: {run.aborted}")
    wanted = {*range(expected.ranks), *current.ranks, *candidate.ranks}
    missing = tuple(sorted(rank for rank in wanted if rank not in current.ranks or rank not in candidate.ranks))
    sorted_out: dict[str, list[Difference]] = {"expected": [], "site_drift": [], "surprises": []}
    unchanged: list[str] = []
    for rank in sorted(wanted.difference(missing)):
        before, after = _settings(current.ranks[rank]), _settings(candidate.ranks[rank])
        for found in _differing(rank, before, after):
            safe = Difference(rank, *(_shown(text) for text in found[1:]))
            sorted_out[_meaning(found, expected)].append(safe)
        unchanged += _not_so(rank, after, expected)
    return Differences(
        tuple(sorted_out["expected"]),
        tuple(sorted_out["site_drift"]),
        tuple(sorted_out["surprises"]),
        missing,
        tuple(unchanged),
    )


def _settings(words: tuple[str, ...]) -> dict[str, str]:
    """Each setting of a command by its name, in their order: `-e NAME`, `-v TARGET`, flags, words by their number."""
    found: dict[str, str] = {}
    at = plain = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-") or word == "-":
            plain += 1
            name, value = f"word {plain}", word
        elif "=" in word:
            name, _, value = word.partition("=")
        elif at < len(words) and not (words[at].startswith("-") and len(words[at]) > 1):
            name, value = _named(word, words[at])
            at += 1
        else:
            name, value = word, "(set)"
        number = 2
        first = name
        while name in found:
            name, number = f"{first} #{number}", number + 1
        found[name] = value
    return found


def _named(flag: str, value: str) -> tuple[str, str]:
    if flag in ("-e", "--env"):
        name, _, rest = value.partition("=")
        return "-e " + name, rest
    parts = value.split(":")
    if flag in ("-v", "--volume") and len(parts) > 1:
        return "-v " + parts[1], ":".join([parts[0], *parts[2:]])
    return flag, value


def _differing(rank: int, before: dict[str, str], after: dict[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Difference(rank, name, before.get(name, ""), after.get(name, ""))
    common = [name for name in before if name in after]
    if common != [name for name in after if name in before]:
        yield Difference(rank, "order of the words", " ".join(before), " ".join(after))


def _meaning(found: Difference, expected: Expected) -> str:
    """Under which heading it goes."""
    if found.name[3:] in DRIFTS and found.name[:3] == "-e " and found.before.isdigit() and found.after.isdigit():
        return "site_drift"
    if _may(found, expected):
        return "expected"
    return "surprises"


def _may(found: Difference, expected: Expected) -> bool:
    """Whether it is the one change that this setting may have on this rank."""
    holds = found.rank == expected.holder
    if found.name in MODEL_FLAGS or (found.name == "-e " + ROWS_ENV and holds):
        moved = found.before.replace(expected.old, expected.new) if expected.old else found.before
        return moved == found.after
    if found.name == "-v " + ROWS_TARGET and not holds and expected.rows_old and expected.rows_new:
        before, after = found.before.partition(":"), found.after.partition(":")
        head = before[0][: len(before[0]) - len(expected.rows_old)]
        absolute = expected.rows_new.startswith("/")
        whole = before[0].endswith(expected.rows_old) and (not head or head.endswith("/"))
        moved = expected.rows_new if absolute else head + expected.rows_new
        return whole and after[0] == moved and before[1:] == after[1:]
    return False


def _not_so(rank: int, after: dict[str, str], expected: Expected) -> Iterator[str]:
    """What the candidate should make of this rank and does not."""
    model = [name for name in MODEL_FLAGS if name in after]
    wanted = [(name, expected.new, expected.new in after[name]) for name in model]
    if not model:
        wanted = [(MODEL_FLAGS[0], expected.new, False)]
    if rank == expected.holder:
        name = "-e " + ROWS_ENV
        wanted.append((name, expected.new, expected.new in after.get(name, "")))
    elif expected.rows_new:
        name = "-v " + ROWS_TARGET
        folder = after.get(name, "").partition(":")[0]
        same = folder == expected.rows_new or folder.endswith("/" + expected.rows_new)
        wanted.append((name, expected.rows_new, same))
    for name, value, good in wanted:
        if not good:
            shown = _shown(after.get(name, ""))[:_MOST_SHOWN] or "(none)"
            yield f"rank {rank}: {name} is {shown}, not of {value}"


_SHELL_WORD = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\;&|]+|[;&|]+|\s+|.""", re.DOTALL)


def _split(command: str) -> Iterator[str]:
    """Words as a shell takes them; operators are words of their own. An open quote is taken as it stands."""
    word = None
    for piece in _SHELL_WORD.findall(command):
        first = piece[0]
        if piece == "\\\n":
            continue
        if first.isspace() or first in ";&|":
            if word is not None:
                yield word
            word = None
            if first in ";&|":
                yield piece
            continue
        if first == "'" and len(piece) > 1:
            piece = piece[1:-1]
        elif first == '"' and len(piece) > 1:
            piece = re.sub(r'\\([\\"$`])', r"\1", piece[1:-1])
        elif first == "\\" and len(piece) > 1:
            piece = piece[1:]
        word = (word or "") + piece
    if word is not None:
        yield word


def _shown(text: str) -> str:
    """Safe: nothing that a terminal would act on."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def main(arguments: list[str]) -> int:
    """`PRESENT STATUS CANDIDATE STATUS OLD NEW ROWS_OLD ROWS_NEW RANKS HOLDER`: 0 fine, 1 not, 2 aborted."""
    current, ended, candidate, also_ended, old, new, rows_old, rows_new, ranks, holder = arguments
    runs = []
    for path, status in ((current, ended), (candidate, also_ended)):
        with open(path, encoding="utf-8", errors="replace") as file:
            run = parse_dry_run(file.read(MOST_CHARACTERS))
        if status != "0" and not run.aborted:
            run = run._replace(aborted="ended with exit " + status)
        runs.append(run)
    found = compare(runs[0], runs[1], Expected(old, new, rows_old, rows_new, int(ranks), int(holder)))
    print("\n".join(found.lines()) or "nothing differs, as wanted")
    return 0 if found.fine else 2 if found.aborted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
