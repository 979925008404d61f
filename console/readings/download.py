"""A checkpoint's download: how far, how fast, on which clocks, under which cap. Pure.

Its types, and what it is read from, can be imported from here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from posixpath import basename

from console.readings.download_files import Files, fetched, look_for, name_of
from console.readings.download_pace import Clocks as Clocks
from console.readings.download_pace import Point, clocks, rate, still_for, usual
from console.readings.download_types import Download as Download
from console.readings.download_types import DownloadSample as DownloadSample
from console.readings.download_types import DownloadState as DownloadState
from console.readings.download_warnings import Told, notes, warnings
from console.readings.downloader import Downloader, End, read_leftovers, unit_end
from console.readings.expected import Expected as Expected
from console.readings.expected import parse_expected as parse_expected
from console.readings.expected import parse_main as parse_main
from console.readings.hubcache import HubRepo, Partial
from console.readings.processes import unseen
from console.readings.revision import commit_in
from console.readings.units import Unit, UnitMemory, Units

RUNNING_S = 20.0
"""Seconds since the last new byte up to which a download is RUNNING."""
STALLED_S = 30.0
"""Seconds for which every clock must stand still before a download is STALLED."""
STALLED_UNSURE_S = 60.0
"""The same where the network's clock cannot be read."""


def read_download(
    samples: Sequence[DownloadSample],
    *,
    host: str = "",
    revision: str = "",
    expected: Expected | None = None,
    serving: str | Sequence[str] = (),
    unit: str = "",
    upstream: str = "",
    now: float | None = None,
    environment: Mapping[str, str] | None = None,
    model: str = "",
) -> Download:
    """One download out of its readings, oldest first. `now` is monotonic, the newest reading's time if left out.

    Without `revision` it is what a downloader names, else the newest snapshot that is not in `serving`, else the
    expected list's; a list of another revision counts for nothing. `unit` is the downloader's, `upstream` where the
    main branch stands, `environment` the downloader's own, `model` its `org/name` where the folder's name does not say
    it. Never raises; without a sample the state is UNKNOWN.
    """
    if not samples:
        return Download(DownloadState.UNKNOWN, "not read yet", revision, host, "", None, None, None, None)
    served = tuple(item for item in ((serving,) if isinstance(serving, str) else serving) if item)
    repo = samples[-1].repo
    model = model or model_of(repo.root)
    revision = revision or _named(samples[-1], model, served) or fetched(repo, served)
    revision = revision or (expected.revision if expected else "")
    if expected is not None and expected.revision and expected.revision != revision:
        expected = None
    files = look_for(repo, revision, expected)
    facts = _facts(samples, files, revision, expected, unit, model, samples[-1].at if now is None else now)
    state, why = _state(facts)
    answer = _answer(state, why, facts, files, samples)
    answer = replace(answer, host=host, revision=revision, upstream=upstream)
    told = Told(answer, repo, files, expected, served, facts.downloaders or (), unit, environment, model)
    found = warnings(told)
    kinds = tuple(kind for kind, _ in found)
    return replace(answer, warnings=tuple(text for _, text in found), warning_kinds=kinds, notes=notes(told))


def _named(sample: DownloadSample, model: str, served: Sequence[str]) -> str:
    """The one revision that running downloaders name; '' where they name none, several or one that serves."""
    found = {item.revision for item in _downloaders(sample, model) or () if commit_in(item.revision)}
    return found.pop() if len(found) == 1 and not any(item in served for item in found) else ""


def model_of(folder: str) -> str:
    """`org/name` of a repository folder `models--org--name`; '' for another one."""
    kind, _, name = basename(folder.rstrip("/")).partition("--")
    return name.replace("--", "/") if kind in ("models", "datasets", "spaces") else ""


@dataclass(frozen=True, slots=True)
class _Facts:
    """All that the state is told from."""

    repo: HubRepo
    files: Files
    points: tuple[Point, ...]
    clocks: Clocks
    still: float | None
    downloaders: tuple[Downloader, ...] | None
    """None where processes were not read."""
    unit: Unit | None
    memory: UnitMemory | None
    end: End
    end_words: str
    live: tuple[Partial, ...]
    """Partial files that may still be finished."""

    @property
    def fetching(self) -> bool | None:
        """Whether anybody downloads; None where neither processes nor the unit say."""
        if self.downloaders or (self.unit is not None and self.unit.active in ("active", "reloading", "activating")):
            return True
        return None if self.downloaders is None and self.unit is None else False


def _facts(
    samples: Sequence[DownloadSample],
    files: Files,
    revision: str,
    expected: Expected | None,
    unit: str,
    model: str,
    now: float,
) -> _Facts:
    newest = samples[-1]
    points = tuple(_point(item, revision, expected, unit, model) for item in samples)
    live = tuple(item for item in newest.repo.partials if not item.orphan)
    taken = newest.wall if newest.wall is not None else newest.repo.taken
    written = [taken - item.mtime for item in live if item.mtime is not None and taken is not None]
    memory = _memory(newest, unit)
    kills = [
        item.oom_kills for sample in samples[:-1] if (item := _memory(sample, unit)) and item.oom_kills is not None
    ]
    found = unit_named(newest.units, unit)
    end, words = unit_end(found, memory, min(kills) if kills else None)
    return _Facts(
        repo=newest.repo,
        files=files,
        points=points,
        clocks=clocks(points),
        still=still_for(points, now, max(0.0, min(written)) if written else None),
        downloaders=_downloaders(newest, model),
        unit=found,
        memory=memory,
        end=end,
        end_words=words,
        live=live,
    )


def _downloaders(sample: DownloadSample, model: str) -> tuple[Downloader, ...] | None:
    if sample.processes is None:
        return None
    found = read_leftovers(sample.processes).of(model, sample.repo.root.rstrip("/"))
    return None if not found and unseen(sample.processes) else found


def unit_named(units: Units | None, name: str) -> Unit | None:
    """The unit of that name, with or without what kind of unit it is."""
    if units is None or not name:
        return None
    names = (name, f"{name}.service", f"{name}.scope")
    return next((item for item in units.items if item.name in names and item.load != "not-found"), None)


def _memory(sample: DownloadSample, unit: str) -> UnitMemory | None:
    found = unit_named(sample.units, unit)
    if sample.units is None or found is None:
        return None
    return next((memory for name, memory in sample.units.memory if name == found.name), None)


def _point(sample: DownloadSample, revision: str, expected: Expected | None, unit: str, model: str) -> Point:
    key = (revision, unit, model)
    for known, against, point in sample.memo:
        if known == key and against is expected:
            return point
    memory = _memory(sample, unit)
    pids = {item.pid for item in _downloaders(sample, model) or ()}
    # a wrapper stands for its download, but what it runs does the work
    work = [item for item in sample.processes or () if item.pid in pids or item.ppid in pids]
    calls = tuple(
        (item.pid, item.read, item.written) for item in work if item.read is not None and item.written is not None
    )
    point = Point(
        at=sample.at,
        done=look_for(sample.repo, revision, expected).done,
        received=sample.received,
        memory=memory.current if memory else None,
        calls=calls or None,
    )
    sample.memo[:] = [(key, expected, point)]
    return point


def _state(facts: _Facts) -> tuple[DownloadState, str]:
    files, repo = facts.files, facts.repo
    failed = _failed(facts)
    if files.done is None:
        if failed:
            return failed
        if repo.problem != "missing":
            return DownloadState.UNKNOWN, f"the folder could not be read: {repo.problem}"
        words = "the folder is not there" + (" yet" if facts.fetching else "")
        return (DownloadState.WAITING if facts.fetching else DownloadState.NONE), words
    if words := _complete(facts):
        return DownloadState.COMPLETE, words
    if failed:
        return failed
    known = [item.done for item in facts.points if item.done is not None]
    grew = any(before < after for before, after in pairwise(known))
    if grew and facts.still is not None and facts.still <= RUNNING_S:
        return DownloadState.RUNNING, ""
    if facts.fetching and len(known) == 1 and facts.still is not None and facts.still <= RUNNING_S:
        return DownloadState.RUNNING, "one reading so far: no rate yet"
    if facts.fetching or (facts.fetching is None and facts.live):
        return _still(facts)
    if repo.problem:  # what seems to be missing may be in what was not seen
        return DownloadState.UNKNOWN, repo.problem
    return _idle(facts)


def _failed(facts: _Facts) -> tuple[DownloadState, str] | None:
    """How the unit ended, unless somebody else fetches now."""
    if facts.end is End.NONE or facts.downloaders:
        return None
    return (DownloadState.FAILED_CAP if facts.end is End.CAP else DownloadState.FAILED), facts.end_words


def _complete(facts: _Facts) -> str:
    """Why the revision is complete; '' if it is not, or cannot be told."""
    files, repo = facts.files, facts.repo
    snapshot = files.snapshot
    if snapshot is None or repo.problem or snapshot.dangling or snapshot.outside or snapshot.elsewhere:
        return ""
    if files.complete:
        return f"all {files.whole} files in their size; contents not compared"
    if files.complete is None and files.total is None and snapshot.complete and not facts.live:
        return f"by shard numbers: {snapshot.shards_done} of {snapshot.shards_total}, no partial file; sizes not known"
    return ""


def _still(facts: _Facts) -> tuple[DownloadState, str]:
    """Somebody fetches, or may, and no byte came lately."""
    seconds = facts.still
    if seconds is None:
        return DownloadState.WAITING, "one reading so far"
    said = f"no new byte on disk for {seconds:.0f} s"
    if moving := facts.clocks.moving:
        return DownloadState.WAITING, f"{said}; {', '.join(moving)}"
    unread = facts.clocks.unread
    if seconds < (STALLED_UNSURE_S if "network" in unread else STALLED_S):
        return DownloadState.WAITING, f"{said}; too early to say"
    not_read = f"{' and '.join(unread)} not read" if unread else "network and memory stand still too"
    return DownloadState.STALLED, f"{said}; {not_read}"


def _idle(facts: _Facts) -> tuple[DownloadState, str]:
    """Nobody fetches, as far as is known."""
    files = facts.files
    snapshot = files.snapshot
    reasons = []
    if files.missing and (files.done or snapshot):
        reasons.append(f"{files.whole or 0} of {len(files.missing) + (files.whole or 0)} files are whole")
    elif files.total is not None and files.done is not None and 0 < files.done < files.total:
        reasons.append("bytes are missing")
    if snapshot and snapshot.dangling:
        reasons.append(f"links that lead nowhere: {len(snapshot.dangling)} ({snapshot.dangling[0]})")
    if snapshot and snapshot.outside:
        reasons.append(f"links that leave the folder: {len(snapshot.outside)} ({snapshot.outside[0]})")
    if snapshot and snapshot.shards_total is not None and snapshot.shards_done < snapshot.shards_total:
        reasons.append(f"shards {snapshot.shards_done} of {snapshot.shards_total}")
    if facts.live:
        reasons.append(f"partial files: {len(facts.live)}")
    if not reasons:
        return DownloadState.NONE, ""
    fetching = "who downloads was not read" if facts.fetching is None else "nobody downloads"
    return DownloadState.INCOMPLETE, f"{', '.join(reasons)}; {fetching}"


def _answer(state: DownloadState, why: str, facts: _Facts, files: Files, samples: Sequence[DownloadSample]) -> Download:
    snapshot = files.snapshot
    speed, window = rate(facts.points)
    current = _current(samples, facts.live)
    file = next((item for item in files.missing if current and name_of(item[2]) == current.etag), None)
    left = max(0, files.total - files.done) if files.total is not None and files.done is not None else None
    runs = state is DownloadState.RUNNING and left is not None
    return Download(
        state=state,
        why=why,
        revision="",
        host="",
        repo=facts.repo.root,
        done=files.done,
        expected=files.total,
        shards_done=snapshot.shards_done if snapshot else None,
        shards_total=snapshot.shards_total if snapshot else None,
        files_done=files.whole,
        files_total=None if files.whole is None else files.whole + len(files.missing),
        rate=speed,
        window=window,
        stalled_for=None if state in (DownloadState.NONE, DownloadState.COMPLETE) else facts.still,
        eta=left / speed if runs and left is not None and speed else None,
        clocks=facts.clocks,
        current=current,
        partials=len(facts.repo.partials),
        orphans=_orphans(facts),
        memory=facts.memory,
        processes=None if facts.downloaders is None else len(facts.downloaders),
        current_file=file[0] if file else "",
        current_size=file[1] if file else None,
        attempt=_attempt(samples, current),
        usual_rate=usual(facts.points),
        pids=tuple(item.pid for item in facts.downloaders or ()),
    )


def _current(samples: Sequence[DownloadSample], live: Sequence[Partial]) -> Partial | None:
    """The partial file that grew most since the reading before, else the one written to last."""
    if not live:
        return None
    before = {item.path: item.present for item in samples[-2].repo.partials} if len(samples) > 1 else {}
    return max(live, key=lambda item: (item.present - before.get(item.path, item.present), item.mtime or 0.0))


def _attempt(samples: Sequence[DownloadSample], current: Partial | None) -> int | None:
    if current is None:
        return None
    return len({item.path for sample in samples for item in sample.repo.partials if item.etag == current.etag})


def _orphans(facts: _Facts) -> tuple[Partial, ...]:
    """Partial files that nobody will finish; without a downloader none of the new naming is ever gone on with."""
    idle = facts.fetching is False
    return tuple(item for item in facts.repo.partials if item.orphan or (idle and not item.resumable))
