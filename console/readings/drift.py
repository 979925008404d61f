"""What differs between the ranks of one lane: one different rank paces or hangs them all. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high, median_low
from typing import TypeVar

from console.readings.containers import Container, Mount
from console.readings.drift_rules import ACT as ACT
from console.readings.drift_rules import (
    INFO,
    LOOK,
    argument_severity,
    arguments,
    environment_severity,
    home_folded,
    own_argument,
    own_variable,
)
from console.readings.hubcache import SnapshotFiles
from console.readings.row_types import RowCopy, RowState
from console.sanitize import line

CLOCK_LOOK_S = 1.0
CLOCK_ACT_S = 2.0
"""Seconds from the middle of the ranks' clocks."""
BUSY_PERCENT = 50.0
"""GPU utilisation from which clock and power can be compared."""
SLOW_SHARE = 0.8
"""Share of the median of the busy ranks under which a GPU is the odd one: a GB10 may keep a low clock also over a
reboot, and its nvidia-smi shows nothing else."""
HANG_BUSY_PERCENT = 90.0
HANG_POWER_SHARE = 0.5
"""A GPU that is busy at under half of the others' power waits for a message that does not come."""
MOST_DIFFERENCES = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which ranks differ."""

    what: str
    """`image id`, `argument --context-length`, `environment NCCL_IB_HCA`, `mount /models/repo`, `driver`, `clock`,
    `snapshot`, `row copy`, `GPU clock`, `GPU power`, `kernel`."""
    values: tuple[tuple[str, str], ...]
    """(host, value) of every rank that was read, in rank order; safe text, secrets hidden."""
    odd: tuple[str, ...]
    """The hosts in the minority; all where there is no majority."""
    severity: str
    """`act`, `look` or `info`."""
    why: str
    """What it leads to, in one sentence."""


@dataclass(frozen=True, slots=True)
class Drift:
    """All differences, worst first."""

    differences: tuple[Difference, ...]
    compared: tuple[str, ...] = ()
    """What could be compared, in words."""
    unread: tuple[tuple[str, str], ...] = ()
    """(host, what could not be read)."""

    @property
    def equal(self) -> tuple[str, ...]:
        """What was compared and does not differ."""
        odd = {_GROUPS.get(item.what.partition(" ")[0], item.what) for item in self.differences}
        return tuple(what for what in self.compared if what not in odd)


_GROUPS = {
    "argument": "arguments and mounts",
    "mount": "arguments and mounts",
    "environment": "environment",
    "image": "container",
}
"""First word of a difference: under which name its kind was compared."""


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What is known of one rank. None and '' for what was not read."""

    host: str
    container: Container | None = None
    """The one that serves this rank; None also where there is none, which is no matter of drift."""
    driver: str = ""
    kernel: str = ""
    clock: float | None = None
    """Seconds the host's wall clock is ahead of the console's."""
    snapshot: SnapshotFiles | None = None
    """The serving revision's files through this rank's own mount."""
    snapshot_problem: str = ""
    """Why there is no snapshot where the folder was looked at: `missing`, `no permission`, `no answer for 40s`."""
    rows: RowCopy | None = None
    gpu_mhz: float | None = None
    gpu_watts: float | None = None
    gpu_busy: float | None = None
    """Percent."""
    reads_rows: bool = True
    """False in a lane whose ranks have no row copies: then none is missed."""
    looks_at_snapshot: bool = True
    """False where nothing says in which folder the snapshot lies."""
    in_container: bool = True
    """False where the engine runs on the host itself."""
    holds: bool | None = False
    """The site file says that it holds the checkpoint; None while nobody knows whether it does."""

    @property
    def holder(self) -> bool:
        """It holds the checkpoint, so that its mounts and its rows are its own."""
        return bool(self.holds) or (self.rows is not None and self.rows.state is RowState.SHARDS)

    @property
    def may_hold(self) -> bool:
        """What is its own as a holder cannot be told from what differs."""
        return self.holder or self.holds is None


T = TypeVar("T")
_Values = list[tuple[str, str]]


class _Comparison:
    """What was compared so far, and what came of it."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.compared: list[str] = []
        self.unread: list[tuple[str, str]] = []

    def read(
        self, ranks: Sequence[RankFacts], what: str, of: Callable[[RankFacts], T | None]
    ) -> list[tuple[RankFacts, T]]:
        """What is known of each rank; ranks of which it is not are noted, and what is known of two is compared."""
        found: list[tuple[RankFacts, T]] = []
        for rank in ranks:
            value = of(rank)
            if value is None:
                self.unread.append((rank.host, what))
            else:
                found.append((rank, value))
        if len(found) > 1:
            self.compared.append(what)
        return found

    def differ(self, what: str, values: _Values, severity: str, why: str) -> None:
        """Note a difference where not all values are equal."""
        if len({value for _, value in values}) > 1:
            self.note(what, values, _minority(values), severity, why)

    def note(self, what: str, values: _Values, odd: Sequence[str], severity: str, why: str) -> None:
        """Note a difference that was judged already."""
        shown = tuple((host, line(value, 200)) for host, value in values)
        self.differences.append(Difference(what, shown, tuple(odd), severity, why))


def _minority(values: _Values) -> tuple[str, ...]:
    """The hosts that do not have what more than half have; all where no value has that many."""
    value, count = Counter(value for _, value in values).most_common(1)[0]
    if 2 * count <= len(values):
        return tuple(host for host, _ in values)
    return tuple(host for host, own in values if own != value)


def compare_ranks(ranks: Sequence[RankFacts]) -> Drift:
    """All differences between the ranks of one lane, in rank order. Never compares what was not read."""
    if len(ranks) < 2:
        return Drift(())
    found = _Comparison()
    _containers(found, [rank for rank in ranks if rank.in_container])
    _hosts(found, ranks)
    _snapshots(found, [rank for rank in ranks if rank.looks_at_snapshot])
    _rows(found, [rank for rank in ranks if rank.reads_rows])
    _gpus(found, ranks)
    order = {ACT: 0, LOOK: 1, INFO: 2}
    worst_first = sorted(found.differences, key=lambda item: order[item.severity])
    return Drift(tuple(worst_first[:MOST_DIFFERENCES]), tuple(found.compared), tuple(found.unread))


# --- containers ------------------------------------------------------------------------------------------------------

_Pair = tuple[RankFacts, Container]


def _containers(found: _Comparison, ranks: Sequence[RankFacts]) -> None:
    pairs = found.read(ranks, "container", lambda rank: rank.container)
    images = [(rank.host, container.image_id) for rank, container in pairs if container.image_id]
    found.differ("image id", images, ACT, "ranks of different builds hang or fail in their first exchange")
    whole = found.read([rank for rank, _ in pairs], "arguments and mounts", _inspected)
    if len(whole) > 1:
        _arguments(found, whole)
        _environment(found, whole)
        _mounts(found, whole)


def _inspected(rank: RankFacts) -> Container | None:
    return rank.container if rank.container is not None and rank.container.inspected else None


def _arguments(found: _Comparison, pairs: Sequence[_Pair]) -> None:
    words = [(rank, container, arguments(container.args)) for rank, container in pairs]
    for name in _names([own for _, _, own in words]):
        values = [(rank.host, own.get(name, "not given")) for rank, _, own in words]
        if own_argument(name):
            _distinct(found, name, values)
        elif not _own_addresses([(container, own.get(name, "not given")) for _, container, own in words]):
            severity, why = argument_severity(name)
            found.differ(f"argument {name}" if name else "command", values, severity, why)


def _own_addresses(values: Sequence[tuple[Container, str]]) -> bool:
    """Whether a value is, on every rank, an address that the rank calls its own."""
    return all(value in {own for name, own in container.env if own_variable(name)} for container, value in values)


def _distinct(found: _Comparison, name: str, values: _Values) -> None:
    """A rank's own number stands once in a lane: two of the same wait for each other for ever."""
    if name not in ("--node-rank", "--rank"):
        return
    counts = Counter(value for _, value in values if value != "not given")
    twice = [host for host, value in values if counts[value] > 1]
    if twice:
        found.note(f"argument {name}", values, twice, ACT, "two ranks claim the same number: the start hangs")


def _names(sets: Sequence[Mapping[str, str]]) -> list[str]:
    """All names in the order in which they come, without any twice."""
    return list(dict.fromkeys(name for own in sets for name in own))


def _environment(found: _Comparison, pairs: Sequence[_Pair]) -> None:
    """Variables of the holder that say where it reads rows are its own, as are those of every rank by name."""
    by_host = {rank.host: container for rank, container in pairs}
    known = found.read([rank for rank, _ in pairs], "environment", lambda rank: dict(by_host[rank.host].env) or None)
    for name in _names([own for _, own in known]):
        compared = [(rank, own.get(name, "not set")) for rank, own in known if not _holders(rank, name)]
        values = [(rank.host, value) for rank, value in compared]
        if len(values) < 2 or own_variable(name) or _own_addresses([(by_host[host], value) for host, value in values]):
            continue
        severity, why = environment_severity(name, missing=any(value == "not set" for _, value in values))
        found.differ(f"environment {name}", values, severity, why)


def _holders(rank: RankFacts, name: str) -> bool:
    return rank.may_hold and name in HOLDER_VARIABLES


HOLDER_VARIABLES = ("SPARK_ENGRAM_DIR", "SPARK_ENGRAM_ROWS")
"""Where the rank that holds the checkpoint reads its rows: from the shards (aidendle94/sparkrun-recipes, launcher)."""


def _mounts(found: _Comparison, pairs: Sequence[_Pair]) -> None:
    """The holder mounts its own checkpoint and no row copy; the others are compared by where a mount leads."""
    sets = [
        (rank, {mount.target: mount for mount in container.mounts}) for rank, container in pairs if not rank.may_hold
    ]
    if len(sets) < 2:
        return
    for target in _names([{name: "" for name in own} for _, own in sets]):
        values = [(rank.host, _mounted(own.get(target))) for rank, own in sets]
        if all(target in own for _, own in sets):
            found.differ(f"mount {target}", values, LOOK, "the ranks may read different files under the same path")
        else:
            why = "the rank without it fails at its start, or reads from elsewhere"
            found.differ(f"mount {target}", values, ACT, why)


def _mounted(mount: Mount | None) -> str:
    if mount is None:
        return "not mounted"
    return f"{home_folded(mount.source)}{' read-only' if mount.read_only else ''}"


# --- hosts -----------------------------------------------------------------------------------------------------------


def _hosts(found: _Comparison, ranks: Sequence[RankFacts]) -> None:
    drivers = found.read(ranks, "driver", lambda rank: rank.driver or None)
    why = "kernels and collectives are tried with one driver on all ranks"
    found.differ("driver", [(rank.host, driver) for rank, driver in drivers], LOOK, why)
    kernels = found.read(ranks, "kernel", lambda rank: rank.kernel or None)
    why = "good to know when one rank behaves differently"
    found.differ("kernel", [(rank.host, kernel) for rank, kernel in kernels], INFO, why)
    clocks = found.read(ranks, "clock", lambda rank: rank.clock)
    if len(clocks) > 1:
        _clocks(found, [(rank.host, offset) for rank, offset in clocks])


def _clocks(found: _Comparison, offsets: Sequence[tuple[str, float]]) -> None:
    middle = median_low(offset for _, offset in offsets)
    far = {host: abs(offset - middle) for host, offset in offsets if abs(offset - middle) > CLOCK_LOOK_S}
    if far:
        severity = ACT if max(far.values()) > CLOCK_ACT_S else LOOK
        values = [(host, f"{offset - middle:+.1f}s") for host, offset in offsets]
        odd = tuple(far) if 2 * len(far) < len(offsets) else tuple(host for host, _ in offsets)
        found.note("clock", values, odd, severity, "logs and times of this rank do not fit to the others': check ntp")


# --- files -----------------------------------------------------------------------------------------------------------


def _snapshots(found: _Comparison, ranks: Sequence[RankFacts]) -> None:
    known = found.read(ranks, "snapshot", lambda rank: rank if _looked_at(rank) else None)
    values = [(rank.host, _snapshot_words(rank)) for rank, _ in known]
    if broken := [rank.host for rank, _ in known if _broken(rank)]:
        why = "this rank cannot load the checkpoint through its own mount: its next start fails"
        found.note("snapshot", values, broken, ACT, why)
        return
    contents = _alike([(rank.host, rank.snapshot) for rank, _ in known if rank.snapshot is not None])
    if len({content for _, content in contents}) > 1:
        found.note("snapshot", values, _minority(contents), ACT, "the ranks would load different files")


def _looked_at(rank: RankFacts) -> bool:
    """Whether enough was seen to compare: a folder with links behind which nobody may look says nothing yet."""
    seen = rank.snapshot
    if seen is None or _broken(rank):
        return bool(seen or rank.snapshot_problem)
    return not seen.unreadable and not seen.elsewhere


def _broken(rank: RankFacts) -> bool:
    seen = rank.snapshot
    return seen is None or bool(seen.dangling or seen.outside)


def _snapshot_words(rank: RankFacts) -> str:
    seen = rank.snapshot
    if seen is None:
        return rank.snapshot_problem
    of = f"{seen.revision[:7]}, " if seen.revision else ""
    words = f"{of}{seen.resolvable} of {seen.entries} files"
    if seen.dangling:
        words += f", {len(seen.dangling)} lead nowhere ({seen.dangling[0]})"
    if seen.outside:
        words += f", {len(seen.outside)} lead out of the mount ({seen.outside[0]})"
    return words


def _alike(folders: Sequence[tuple[str, SnapshotFiles]]) -> _Values:
    """The same value for hosts with the same files of the same sizes."""
    kinds: list[SnapshotFiles] = []
    found = []
    for host, seen in folders:
        same = [at for at, kind in enumerate(kinds) if _equal(kind, seen)]
        if not same:
            kinds.append(seen)
        found.append((host, str(same[0] if same else len(kinds) - 1)))
    return found


def _equal(one: SnapshotFiles, other: SnapshotFiles) -> bool:
    if one is other:
        return True
    if not one.revision and not other.revision:  # beside the shards each rank keeps manifests and notes of its own
        return _shards(one) == _shards(other)
    return (one.revision, one.resolvable, one.sizes) == (other.revision, other.resolvable, other.sizes)


def _shards(seen: SnapshotFiles) -> dict[str, int]:
    return {name: size for name, size in seen.sizes.items() if name.endswith(".safetensors")}


_ROW_GOOD = (RowState.READY, RowState.SHARDS)
_ROW_NOT_YET = (RowState.WAITS, RowState.COPYING, RowState.NO_ROOM)


def _rows(found: _Comparison, ranks: Sequence[RankFacts]) -> None:
    copies = found.read(ranks, "row copy", _read_copy)
    bad = [(rank.host, copy) for rank, copy in copies if copy.state not in _ROW_GOOD]
    if bad:
        wrong = any(copy.state not in _ROW_NOT_YET for _, copy in bad)
        values = [(rank.host, copy.words) for rank, copy in copies]
        why = "this rank answers with other rows than the rest, or fails at its next start"
        found.note("row copy", values, [host for host, _ in bad], ACT if wrong else LOOK, why)


def _read_copy(rank: RankFacts) -> RowCopy | None:
    return rank.rows if rank.rows is not None and rank.rows.state is not RowState.UNKNOWN else None


# --- GPUs ------------------------------------------------------------------------------------------------------------


def _gpus(found: _Comparison, ranks: Sequence[RankFacts]) -> None:
    """Only GPUs that work are compared: an idle one is slow and cool by right."""
    found.unread.extend((rank.host, "GPU") for rank in ranks if rank.gpu_busy is None)
    busy = [rank for rank in ranks if rank.gpu_busy is not None and rank.gpu_busy >= BUSY_PERCENT]
    clocks = [(rank, rank.gpu_mhz) for rank in busy if rank.gpu_mhz is not None]
    powers = [(rank, rank.gpu_watts) for rank in busy if rank.gpu_watts is not None]
    why = "the slow GPU paces all ranks; a reboot may not clear it"
    _slow(found, "GPU clock", clocks, "{:.0f} MHz", why)
    _slow(found, "GPU power", powers, "{:.0f} W", "this GPU works less than the others")


def _slow(found: _Comparison, what: str, figures: Sequence[tuple[RankFacts, float]], form: str, why: str) -> None:
    if len(figures) < 2:
        return
    found.compared.append(what)
    usual = median_high(value for _, value in figures)
    odd = [(rank, value) for rank, value in figures if value < SLOW_SHARE * usual]
    if not odd:
        return
    hangs = [
        rank.host
        for rank, value in odd
        if value < HANG_POWER_SHARE * usual and (rank.gpu_busy or 0.0) >= HANG_BUSY_PERCENT
    ]
    if what == "GPU power" and hangs:
        why = "busy at little power is the sign of a rank that waits for a message that does not come"
    values = [(rank.host, form.format(value)) for rank, value in figures]
    found.note(what, values, [rank.host for rank, _ in odd], LOOK, why)
