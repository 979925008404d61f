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


Kind = str
"""The stable word for a warning: an alarm that is acknowledged stays so while its figures change."""
PRUNE = "prune"


def warnings(told: Told) -> tuple[tuple[Kind, str], ...]:
    """What an operator should act on, worst first; several may be of one kind."""
    makers = (_running, _memory, _room, _prune, _files, _environment, _attempts)
    return tuple((kind, line(text, 400)) for make in makers for kind, text in make(told))


def notes(told: Told) -> tuple[str, ...]:
    """What is good to know and asks for nothing now."""
    return tuple(line(text, 400) for make in (_upstream, _large, _leftovers) for text in make(told))


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


def _running(told: Told) -> Iterator[tuple[Kind, str]]:
    for text in download_warnings(told.downloaders, told.model or told.download.repo):
        yield "two", text


def _memory(told: Told) -> Iterator[tuple[Kind, str]]:
    memory = told.download.memory
    if memory is None:
        return
    if memory.in_force is False:
        asked = f" of {memory.cap_asked / GIB:.2f} GiB" if memory.cap_asked else ""
        why = f": {memory.why}" if memory.why else ""
        yield "cap", f"the memory cap{asked} of {told.unit} is not in force{why}"
    elif memory.cap_asked is None and memory.cap is None:
        yield "cap", f"{told.unit} has no memory cap; hf_xet may take 8 GB and more"
    if memory.oom_kills and told.download.state is not DownloadState.FAILED_CAP:
        yield "oom", f"the kernel has killed {memory.oom_kills} of {told.unit} at its memory cap"


def _room(told: Told) -> Iterator[tuple[Kind, str]]:
    download, free = told.download, told.repo.free
    if free is None or download.expected is None or download.done is None:
        return
    left = download.expected - download.done
    if left > free:
        few = (left - free) / GIB
        yield "room", f"disk: {free / GIB:.1f} GiB free, {left / GIB:.1f} GiB to come, {few:.1f} too few"


def _prune(told: Told) -> Iterator[tuple[Kind, str]]:
    named = {revision: "serving" for revision in told.serving}
    if told.download.revision and told.files.snapshot:
        named.setdefault(told.files.snapshot.revision, "wanted")
    if text := prune_warning(told.repo, named):
        yield PRUNE, text


def _files(told: Told) -> Iterator[tuple[Kind, str]]:
    if told.repo.problem and told.download.done is not None:
        yield "unread", f"{told.repo.problem}: the figures are of what was seen"
    if told.expected is not None and told.expected.problem:
        yield "list", f"no list of files: {told.expected.source}: {told.expected.problem}"
    if told.files.wrong:
        yield "size", f"files of another size than expected: {_some(told.files.wrong)}"
    snapshot = told.files.snapshot
    if snapshot is None:
        return
    if snapshot.dangling:
        yield "dangling", f"links that lead nowhere: {_some(snapshot.dangling)}"
    if snapshot.outside:
        text = (
            "links that leave the folder (shared blob store?) and dangle wherever only the folder is mounted or copied"
        )
        yield "outside", f"{text}: {_some(snapshot.outside)}"
    if snapshot.absolute:
        yield "absolute", f"absolute links, which dangle behind another mount: {_some(snapshot.absolute)}"
    if told.files.sparse:
        yield "sparse", f"whole files that are smaller on disk than their size: {_some(told.files.sparse)}"


def _environment(told: Told) -> Iterator[tuple[Kind, str]]:
    settings = read_settings(told.environment) if told.environment is not None else None
    if settings is None:
        return
    if settings.xet_off and (large := _over_50_gb(told)):
        yield "xet", f"HF_HUB_DISABLE_XET is set, and files over 50 GB need hf_xet: {_some(large)}"
    for text in settings.warnings:
        yield "settings", text


def _over_50_gb(told: Told) -> list[str]:
    return [path for path, size, _ in told.files.missing if size > LARGEST_PLAIN]


def _attempts(told: Told) -> Iterator[tuple[Kind, str]]:
    if told.download.attempt is not None and told.download.attempt > 1:
        name = told.download.current_file or "this file"
        yield "attempts", f"attempt {told.download.attempt} of {name}: each one begins at zero"


def _large(told: Told) -> Iterator[str]:
    large = _over_50_gb(told)
    if large and told.environment is None and told.download.state is not DownloadState.NONE:
        yield f"plain HTTP refuses files over 50 GB, they need hf_xet: {_some(large)}"


def _upstream(told: Told) -> Iterator[str]:
    upstream, revision = told.download.upstream, told.download.revision
    if upstream and revision and not upstream.startswith(revision):
        yield f"main has moved on to {upstream[:7]}; this is {revision[:7]}"


def _leftovers(told: Told) -> Iterator[str]:
    orphans = told.download.orphans
    if orphans:
        size = sum(item.present for item in orphans) / GIB
        yield f"left-over partial files: {len(orphans)}, {size:.1f} GiB; remove them by name, not with `hf cache prune`"


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
