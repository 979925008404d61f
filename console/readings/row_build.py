"""What the tools that build row copies print, for a copy that is followed by its output. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from console.sanitize import lines

GIB = 1024**3
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class BuildOutput:
    """What a tool that builds copies has printed so far. Bytes and seconds; None where it did not say."""

    tool: str
    """`engram_local`, `engram-slice` or '' for neither."""
    done: int | None = None
    total: int | None = None
    rate: float | None = None
    """Bytes a second, as the tool says."""
    elapsed: float | None = None
    checked: int | None = None
    """Rows (`engram_local`) or ranges (`engram-slice`) that were compared."""
    mismatches: int | None = None
    finished: bool = False
    """It said its last line. Only with no mismatch and exit code 0 is the copy good."""
    failure: str = ""
    """Why it gave up, in its own words; safe text."""
    doing: str = ""
    """Its newest line; safe text."""


_TOTAL = re.compile(r"copying +([0-9.]{1,12}) GiB in [0-9]+ ranges")
_STEP = re.compile(r" *([0-9.]{1,12}) / ([0-9.]{1,12}) GiB +([0-9.]{1,12}) MB/s +([0-9]{1,9})s")
_VERIFIED = re.compile(r"verify: ([0-9]{1,12}) rows checked, ([0-9]{1,12}) mismatch(?:es)?(?:; elapsed ([0-9]{1,9})s)?")
_BEGUN = re.compile(r"(?:cutting|packing) +([0-9.]{1,12}) GiB ")
_UNPACKING = re.compile(r"unpacking rank ")
_CUT = re.compile(r"ok: [0-9]+ ranges, ([0-9.]{1,12}) GiB allocated, ([0-9]{1,9})s; wrote ")
_PACKED = re.compile(r"ok: pack ([0-9.]{1,12}) GiB, [0-9]+ ranges, ([0-9]{1,9})s")
_UNPACKED = re.compile(r"ok: ([0-9]{1,9}) ranges verified[^,]*, ([0-9]{1,9})s; wrote ")
_IDENTICAL = re.compile(r"identical: rank [0-9]+/[0-9]+, ([0-9]{1,9}) range digests")
_FAILED = re.compile(r"not enough free space|short read|^[A-Za-z.]{0,60}Error\b|^ABORT\b", re.IGNORECASE)


def parse_build(text: str) -> BuildOutput:
    """The output of `engram_local.py` (aidendle94/sparkrun-recipes) or of `engram-slice.py` (tsw2k). Never raises.

    Where it tells of several copies, one after the other, the newest counts. A rank that is packed is not finished:
    its copy is made of the pack, by another call.
    """
    found = BuildOutput("")
    for row in lines(text, 400, 20_000):
        if row.strip():
            found = replace(_local(found, row) or _slice(found, row) or _other(found, row), doing=row.strip())
    return found


def _local(so_far: BuildOutput, row: str) -> BuildOutput | None:
    if match := _TOTAL.match(row):
        return BuildOutput("engram_local", done=0, total=_size(match[1], GIB))
    if match := _STEP.match(row):
        done, total, rate = _size(match[1], GIB), _size(match[2], GIB), _size(match[3], MB)
        return BuildOutput("engram_local", done, total, rate, float(match[4]))
    if match := _VERIFIED.match(row):
        elapsed = float(match[3]) if match[3] else so_far.elapsed
        return replace(
            so_far,
            tool="engram_local",
            done=so_far.total,
            rate=None,
            elapsed=elapsed,
            checked=int(match[1]),
            mismatches=int(match[2]),
            finished=True,
        )
    return None


def _slice(so_far: BuildOutput, row: str) -> BuildOutput | None:
    new = BuildOutput("engram-slice", total=so_far.total)
    if match := _BEGUN.match(row):
        return replace(new, total=_size(match[1], GIB))
    if _UNPACKING.match(row):
        return new
    if match := _CUT.match(row) or _PACKED.match(row):
        size = _size(match[1], GIB)
        return replace(new, done=size, total=size, elapsed=float(match[2]), finished="; wrote " in row)
    if match := _UNPACKED.match(row):
        elapsed = float(match[2])
        return replace(new, done=new.total, elapsed=elapsed, checked=int(match[1]), mismatches=0, finished=True)
    if match := _IDENTICAL.match(row):
        return replace(so_far, tool="engram-slice", checked=int(match[1]), mismatches=0)
    return None


def _other(so_far: BuildOutput, row: str) -> BuildOutput:
    if not _FAILED.search(row.strip()):
        return so_far
    return replace(so_far, finished=False, failure=row.strip())


def _size(text: str, unit: int) -> int | None:
    try:
        return round(float(text) * unit)
    except ValueError:  # `1.2.3` is made of digits and points too
        return None
