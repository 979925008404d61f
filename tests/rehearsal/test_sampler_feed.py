"""What a rehearsal host lets through to the sampler: the console's own words, piece by piece, and nothing else."""

from __future__ import annotations

import pytest

from console.reach.looking import Looking
from console.reach.sampler import script
from console.readings.look import Look, LookKind
from console.rehearsal.commands import SamplerFeed


def ready() -> SamplerFeed:
    feed = SamplerFeed()
    known = script("python").encode()
    assert feed.take(known) == known
    return feed


def test_sets_of_looks_pass_in_any_pieces() -> None:
    looking = Looking()
    looking.ask(
        [
            Look("a b:site", LookKind.FILE, ("~/fleet.env", "first", "65536")),
            Look("main:repo", LookKind.TREE, ("/models/hub/models--org--m", "6", "2000"), 0.25),
            Look("main:processes", LookKind.PROCESSES, ("hf download org/m", "pid:41")),
            Look("main:units", LookKind.UNITS, ("user", "hf-download.service")),
        ]
    )
    data = b"beat\n" + looking.order() + b"beat\nlook 0\nbeat\n"
    for size in (1, 7, len(data)):
        feed = ready()
        assert b"".join(feed.take(data[at : at + size]) for at in range(0, len(data), size)) == data


@pytest.mark.parametrize(
    "line",
    [
        "reboot", "beat ", "look", "look x", "look -1", "look 1000", "look 1 ", "Beat",
        "look 1\n1\tk\tfile\t5\t/../etc/passwd\tlast\t9", "look 1\n1\tk\ttree\t5\t~/x/..\t1\t1",
        "look 1\n1\tk\tfile\t5\t..\tlast\t9", "look 1\n1\tk\trun\t5\treboot", "look 1\n1\tk\tfile\t5",
        "look 1\nx\tk\tfile\t5\t/a", "look 1\n1\tk\tfile\t-5\t/a", "look 1\n1\tk\tfile\tnan\t/a",
        "look 1\n1\tk\tfile\t5\t/a\x1b[2J", "look 1\n1\tk\tfile\t5\t/a\nnot a beat", "look 2\n1\tk\tfile\t5\t/a\nbeat",
        "look 1\n1\tk\tfile\t5\t/a\r",
    ],
)  # fmt: skip
def test_what_is_not_ours_does_not_pass(line: str) -> None:
    feed = ready()
    with pytest.raises(ValueError, match=r"."):
        feed.take(f"{line}\n".encode())


def test_a_line_that_never_ends_is_refused() -> None:
    feed = ready()
    with pytest.raises(ValueError, match="without end"):
        for _ in range(100):
            feed.take(b"b" * 1000)


def test_nothing_passes_before_the_script() -> None:
    with pytest.raises(ValueError, match="script"):
        SamplerFeed().take(b"beat\n")
