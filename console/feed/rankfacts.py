"""What is known of each rank, gathered for the comparison of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.feed.ranks import ON_HOST
from console.feed.surveyed import Surveyed
from console.format import no_answer
from console.readings.drift import Drift, RankFacts, compare_ranks
from console.readings.gpu import Gpu
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.look import LookKind
from console.readings.quality import Reading
from console.readings.rows import RowCopy
from console.snapshot import HostView, RankView

LOOK_AT_IT = f"({LookKind.TREE} "
"""Names the look in the words of one that hangs: the folder's own, as behind a dead mount, not one beside it."""


class RankDrift:
    """Compares the ranks of one lane; not again while nothing of what is compared has changed."""

    def __init__(self) -> None:
        self._facts: list[RankFacts] = []
        self._drift = Drift(())

    def of(
        self, ranks: Sequence[RankView], hosts: Mapping[str, HostView], surveyed: Surveyed, now: float
    ) -> Drift | None:
        """What differs between the ranks at monotonic time `now`; None for a lane of one."""
        if len(ranks) < 2:
            return None
        repos = dict(surveyed.repos)
        copies = None if surveyed.rows is None else surveyed.rows.current(now)
        rows = {copy.host: copy for copy in copies.copies} if copies is not None else {}
        facts = [_facts(rank, hosts[rank.host], repos, rows, surveyed, now) for rank in ranks]
        if facts != self._facts:
            self._facts, self._drift = facts, compare_ranks(facts)
        return self._drift


def _facts(
    rank: RankView,
    host: HostView,
    repos: Mapping[str, Reading[HubRepo]],
    rows: Mapping[str, RowCopy],
    surveyed: Surveyed,
    now: float,
) -> RankFacts:
    gpu = _engine_gpu(host, now)
    known = host.facts.value if host.link.error == "" else None
    repo = repos[rank.host].current(now) if rank.host in repos else None
    return RankFacts(
        host=rank.host,
        container=rank.container,
        driver=gpu.driver if gpu is not None else "",
        kernel=known.kernel if known is not None else "",
        clock=None if host.drift is None else round(host.drift, 1),  # as finely as it is told
        snapshot=_serving(repo, rank) if repo is not None and not repo.problem else None,
        snapshot_problem=_problem(repos.get(rank.host), repo, rank),
        rows=rows.get(rank.host),
        gpu_mhz=gpu.clock_mhz if gpu is not None else None,
        gpu_watts=gpu.power_w if gpu is not None else None,
        gpu_busy=gpu.utilisation if gpu is not None else None,
        reads_rows=surveyed.rows is not None,
        looks_at_snapshot=rank.host in repos,
        in_container=rank.word != ON_HOST,
        holds=None if surveyed.holder is None else rank.host == surveyed.holder,
    )


def _serving(repo: HubRepo, rank: RankView) -> SnapshotFiles | None:
    """The files that the rank reads: those of its revision, or a plain folder's, which says nothing of its revision."""
    if rank.revision:
        return repo.snapshot(rank.revision)
    return repo.snapshots[0] if len(repo.snapshots) == 1 and not repo.snapshots[0].revision else None


def _problem(reading: Reading[HubRepo] | None, repo: HubRepo | None, rank: RankView) -> str:
    """What is wrong with the folder itself; '' also where it was not seen (whole): that proves nothing against it."""
    if reading is None:
        return ""
    if repo is None:
        return no_answer(reading.error) if LOOK_AT_IT in reading.error else ""
    if repo.problem:
        return "" if repo.unseen else repo.problem
    return "missing" if rank.revision and repo.snapshot(rank.revision) is None else ""


def _engine_gpu(host: HostView, now: float) -> Gpu | None:
    """The GPU that computes: the one with the most power, where a display card stands beside it."""
    return max(host.gpus.current(now) or (), key=lambda gpu: gpu.power_w or 0.0, default=None)
