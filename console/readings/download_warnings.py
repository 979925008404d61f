"""What an operator must know about a download beside its state: safe sentences, worst first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.readings.download_files import Files
from console.readings.download_types import Download, DownloadState
from console.readings.downloader import GIB, LARGEST_PLAIN, Downloader, download_warnings, read_settings
from console.readings.expected import Expected
from console.readings.hubcache import HubRepo
from console.sanitize import line


@dataclass(frozen=True, slots=True)
class Told:
    """What the warnings are told from."""

    download: Download
    repo: HubRepo
    files: Files
    expected: Expected | None
    serving: tuple[str, ...]
    downloaders: Sequence[Downloader]
    unit: str
    environment: Mapping[str, str] | None
    model: str


def warnings(told: Told) -> tuple[str, ...]:
    """All that holds, worst first."""
    makers = (_running, _memory, _room, _prune, _files, _environment, _upstream, _leftovers)
    return tuple(line(text, 400) for make in makers for text in make(told))


def prune_warning(repo: HubRepo, named: Mapping[str, str]) -> str:
    """What `hf cache prune` would take of the revisions in `named` (what each is, by revision); '' if none."""
    lost = [
        f"{item[:7]} ({what})"
        for item in repo.prunable
        for revision, what in named.items()
        if revision and item.startswith(revision)
    ]
    if not lost:
        return ""
    sure = "" if all(repo.refs.values()) else "; not every ref could be read"
    return f"`hf cache prune` would delete {' and '.join(lost)}: no ref names {'them' if len(lost) > 1 else 'it'}{sure}"


def _running(told: Told) -> Iterator[str]:
    yield from download_warnings(told.downloaders, told.model or told.download.repo)


def _memory(told: Told) -> Iterator[str]:
    memory = told.download.memory
    if memory is None:
        return
    if memory.in_force is False:
        asked = f" of {memory.cap_asked / GIB:.2f} GiB" if memory.cap_asked else ""
        yield f"the memory cap{asked} of {told.unit} is not in force" + (f": {memory.why}" if memory.why else "")
    elif memory.cap_asked is None and memory.cap is None:
        yield f"{told.unit} has no memory cap; hf_xet may take 8 GB and more"
    if memory.oom_kills and told.download.state is not DownloadState.FAILED_CAP:
        yield f"the kernel has killed {memory.oom_kills} of {told.unit} at its memory cap"


def _room(told: Told) -> Iterator[str]:
    download, free = told.download, told.repo.free
    if free is None or download.expected is None or download.done is None:
        return
    left = download.expected - download.done
    if left > free:
        yield f"{left / GIB:.1f} GiB are to come, {free / GIB:.1f} GiB are free: {(left - free) / GIB:.1f} GiB too few"


def _prune(told: Told) -> Iterator[str]:
    named = {revision: "serving" for revision in told.serving}
    if told.download.revision and told.files.snapshot:
        named.setdefault(told.files.snapshot.revision, "wanted")
    if text := prune_warning(told.repo, named):
        yield text


def _files(told: Told) -> Iterator[str]:
    if told.repo.problem and told.download.done is not None:
        yield f"{told.repo.problem}: the figures are of what was seen"
    if told.expected is not None and told.expected.problem:
        yield f"no list of files: {told.expected.source}: {told.expected.problem}"
    if told.files.wrong:
        yield f"{len(told.files.wrong)} files are there in another size than expected: {_some(told.files.wrong)}"
    snapshot = told.files.snapshot
    if snapshot is None:
        return
    if snapshot.dangling:
        yield f"{len(snapshot.dangling)} links lead nowhere: {_some(snapshot.dangling)}"
    if snapshot.outside:
        yield (
            f"{len(snapshot.outside)} links lead out of the folder (shared blob store?) and dangle wherever only"
            f" the folder is mounted or copied: {_some(snapshot.outside)}"
        )
    if snapshot.absolute:
        yield f"{len(snapshot.absolute)} links are absolute and dangle behind another mount: {_some(snapshot.absolute)}"
    if told.files.sparse:
        yield f"{len(told.files.sparse)} whole files are smaller on disk than their size: {_some(told.files.sparse)}"


def _environment(told: Told) -> Iterator[str]:
    settings = read_settings(told.environment) if told.environment is not None else None
    large = [path for path, size, _ in told.files.missing if size > LARGEST_PLAIN]
    if large and settings and settings.xet_off:
        yield f"{len(large)} files over 50 GB need hf_xet, and HF_HUB_DISABLE_XET is set: {_some(large)}"
    elif large and settings is None and told.download.state is not DownloadState.NONE:
        yield f"{len(large)} files over 50 GB need hf_xet: plain HTTP refuses them"
    if settings:
        yield from settings.warnings


def _upstream(told: Told) -> Iterator[str]:
    upstream, revision = told.download.upstream, told.download.revision
    if upstream and revision and not upstream.startswith(revision):
        yield f"main has moved on to {upstream[:7]}; this is {revision[:7]}"


def _leftovers(told: Told) -> Iterator[str]:
    orphans = told.download.orphans
    if orphans:
        size = sum(item.present for item in orphans) / GIB
        yield f"{len(orphans)} left-over partial files, {size:.1f} GiB: remove them by name, not with `hf cache prune`"
    if told.download.attempt is not None and told.download.attempt > 1:
        name = told.download.current_file or "this file"
        yield f"attempt {told.download.attempt} of {name}: each one begins at zero"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
