"""`python -m guards` from tests/: takes every guard of the table away, one after the other, and sees who notices.

First the named tests run as the sources are, and have to pass: one that fails anyway notices nothing.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from guards.mutant import Mutant
from guards.table import ROWS
from guards.trial import Unusable, Verdict, copied, failed, tried

BASELINE_LIMIT_S = 3600.0
"""Seconds for all named tests with every guard in place."""


def chosen(words: Sequence[str], *, bed: bool) -> list[Mutant]:
    """The rows that need real hosts, or those that do not; with `words` those whose guard, file or test has one."""
    rows = [row for row in ROWS if row.bed is bed]
    if not words:
        return rows
    return [row for row in rows if any(word in " ".join((row.guard, row.file, *row.tests)) for word in words)]


def baseline(rows: Sequence[Mutant], *, bed: bool, jobs: int) -> list[str]:
    """Named tests that fail with every guard in place. Raises Unusable."""
    tests = sorted({test for row in rows for test in row.tests})
    with copied() as copy:
        return sorted(failed(copy, tests, bed=bed, limit=BASELINE_LIMIT_S, jobs=jobs))


def run(rows: Sequence[Mutant], jobs: int) -> list[Verdict]:
    """Every row, `jobs` at a time, each worker in a copy of its own."""
    verdicts: dict[int, Verdict] = {}
    left: Iterator[tuple[int, Mutant]] = iter(enumerate(rows))
    turn = threading.Lock()

    def work(_: int) -> None:
        with copied() as copy:
            while True:
                with turn:
                    number, row = next(left, (-1, None))
                if row is None:
                    return
                verdicts[number] = tried(row, copy)
                with turn:
                    tell(verdicts[number])

    with ThreadPoolExecutor(jobs) as pool:
        try:
            list(pool.map(work, range(jobs)))
        except KeyboardInterrupt:
            left = iter(())  # what is under way is finished, nothing more is begun
            raise
    return [verdicts[number] for number in sorted(verdicts)]


def tell(verdict: Verdict) -> None:
    """One line, and what is wrong with it."""
    print(f"{verdict.word:9} {verdict.mutant.guard}  ({verdict.mutant.file})", flush=True)
    for words in (*verdict.survived, *([verdict.trouble] if verdict.trouble else [])):
        print(f"          {words}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 where every guard has a test that fails without it."""
    parser = argparse.ArgumentParser(prog="guards", description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows whose guard, file or tests have one of these")
    parser.add_argument("--bed", action="store_true", help="the rows that need real hosts (root), one at a time")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    parser.add_argument("--no-baseline", action="store_true", help="believe that the named tests pass")
    given = parser.parse_args(arguments)
    rows = chosen(given.words, bed=given.bed)
    if given.list or not rows:
        for row in rows:
            print(f"{row.guard}  ({row.file})")
        return 0 if rows else 2
    jobs = 1 if given.bed else max(1, given.jobs)
    if not given.no_baseline:
        try:
            broken = baseline(rows, bed=given.bed, jobs=jobs)
        except Unusable as error:
            broken = [str(error)]
        if broken:
            print("these fail with every guard in place:", *broken, sep="\n  ")
            return 1
    verdicts = run(rows, jobs)
    killed = sum(verdict.killed for verdict in verdicts)
    print(f"{len(verdicts)} guards: {killed} killed, {len(verdicts) - killed} not")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
