"""Where the values of download, row copies, watchdog, drift and boots come from. Pure: a glance in, words out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from console.readings.download import Download
from console.readings.quality import Reading
from console.readings.rows import ROW_BYTES, RowCopies, RowCopy
from console.readings.watchdog import Watchdog
from console.wayback import way_back as judged
from screens.explained import Explained, Fact, origin
from widgets import boots as booted
from widgets import format as fmt
from widgets.glance import Glance
from widgets.watchdog import PROTECTS

_UNSET = "nothing is configured, so nothing is looked at"


def _origin(reading: Reading[Any] | None, glance: Glance) -> str:
    left = ", ".join(glance.lane.unfilled)
    if reading is None:
        return f"{_UNSET}{f' ({left})' if left else ''}"
    return origin(reading, glance.now)


def download(glance: Glance) -> Iterator[Explained]:
    """The listing of the repository, the downloader's processes and its unit."""
    reading = glance.lane.download
    value = None if reading is None else reading.value
    yield Explained("download", _origin(reading, glance), () if value is None else tuple(_download(value)))


def _download(value: Download) -> Iterator[Fact]:
    unit = fmt.size_unit(value.expected or value.done)
    yield Fact("state", value.state.value, value.why or "from disk, network and memory of the downloader together")
    yield Fact("revision", fmt.revision(value.revision), f"being fetched into {value.repo} on {value.host}")
    how = "allocated bytes of blobs and partial files, each inode once: holes and hard links do not count"
    yield Fact("bytes", f"{fmt.size(value.done, unit)} {unit}", how)
    total = "the files of the Hub's listing or the manifest; - where nobody says what there should be"
    yield Fact("expected", f"{fmt.size(value.expected, unit)} {unit}", total)
    count = f"{fmt.count(value.shards_done)} of {fmt.count(value.shards_total)}"
    yield Fact("shards", count, "distinct numbers of NAME-00001-of-00048.safetensors whose links resolve")
    files = f"{fmt.count(value.files_done)} of {fmt.count(value.files_total)}"
    yield Fact("files", files, "expected files that are there in their expected size; no checksum")
    yield Fact("share", f"{fmt.percent(value.share)} %", "bytes / expected")
    rate = fmt.number(None if value.rate is None else value.rate / 1e6, 1)
    yield Fact("rate", f"{rate} MB/s", f"growth of allocated bytes over {fmt.seconds(value.window)} s")
    yield Fact("time to go", fmt.duration(value.eta), "what is missing / rate; none while nothing comes")
    yield Fact("no new byte", fmt.duration(value.stalled_for), "since the newest byte on disk")
    if value.clocks is not None:
        for name, found, source in (
            ("disk", value.clocks.disk, "allocated bytes a second"),
            ("network", value.clocks.network, "bytes that the downloader or its unit read a second (rchar, io)"),
            ("memory", value.clocks.memory, "bytes by which the downloader grew a second"),
        ):
            yield Fact(name, f"{fmt.number(None if found is None else found / 1e6, 1)} MB/s", source)
    if value.memory is not None:
        cap = f"cap {fmt.gib(value.memory.cap)} GiB by the kernel, {fmt.gib(value.memory.cap_asked)} asked of systemd"
        yield Fact("unit", f"{fmt.gib(value.memory.current)} GiB", f"memory.current of its cgroup; {cap}")
    for orphan in value.orphans:
        yield Fact("orphan", fmt.size(orphan.present, "GB") + " GB", f"{orphan.path}: nobody will finish this one")
    for warning in value.warnings:
        yield Fact("warning", "", warning)


def row_copies(glance: Glance) -> Iterator[Explained]:
    """Manifests and listings of every rank's copy."""
    lane = glance.lane
    for name, reading in (("next copies", lane.next_rows), ("serving copies", lane.rows)):
        if reading is None and lane.next_rows is not lane.rows:
            continue
        value = None if reading is None else reading.value
        yield Explained(name, _origin(reading, glance), () if value is None else tuple(_rows(value)))
        if reading is None:
            return


def _rows(value: RowCopies) -> Iterator[Fact]:
    yield Fact("revision", fmt.revision(value.revision), "what the copies should be of")
    for copy in value.copies:
        yield from _copy(copy)
    tiles = {True: "yes", False: "no", None: "not known"}[value.tiling.ok]
    yield Fact("ranges tile", tiles, value.tiling.words or "ranges of all ranks and of the holder against each table")
    if value.tiling.family:
        yield Fact("partition", value.tiling.family, "how the ranges are cut, told by their bounds")


def _copy(copy: RowCopy) -> Iterator[Fact]:
    yield Fact(copy.host, copy.state.value, copy.words)
    there = f"allocated bytes (st_blocks x 512) in {copy.path}; apparent size is whole from the start"
    yield Fact("  copied", f"{fmt.gib(copy.present)} GiB", there)
    yield Fact("  of", f"{fmt.gib(copy.expected)} GiB", f"its ranges x {ROW_BYTES} bytes a row")
    rate = fmt.number(None if copy.rate is None else copy.rate / fmt.GIB, 2)
    yield Fact("  rate", f"{rate} GiB/s", "growth of allocated bytes")
    yield Fact("  free", f"{fmt.gib(copy.free)} GiB", "what a user may still write on that file system")
    if copy.manifest is not None:
        made = f"{copy.manifest.form} form, made {fmt.utc(copy.manifest.created)}"
        yield Fact("  manifest", fmt.revision(copy.manifest.revision), f"engram-local.json, {made}")


def watchdog(glance: Glance) -> Iterator[Explained]:
    """Log, lock, flags, unit and processes of the watchdog's host."""
    reading = glance.lane.watchdog
    value = None if reading is None else reading.value
    yield Explained("watchdog", _origin(reading, glance), () if value is None else tuple(_watchdog(value)))


def _watchdog(value: Watchdog) -> Iterator[Fact]:
    yield Fact("state", value.state.value, value.words)
    yield Fact("protects", {True: "yes", False: "no", None: "-"}[value.protecting], PROTECTS[value.protecting])
    sources = {"log": "its log, its lock file and the processes of the host", "systemd": "systemctl show and its flags"}
    yield Fact("told by", value.kind or "-", sources.get(value.kind, "nothing"))
    pid = "-" if value.pid is None else str(value.pid)
    yield Fact("pid", pid, "its command line is the watchdog's" if value.may_signal else "must not be signalled")
    yield Fact("since", fmt.utc(value.since), f"by the clock of {value.host or 'its host'}")
    yield Fact("last act", fmt.utc(value.last_act_at), value.last_act or "no recovery on record")
    yield Fact("checks", f"{fmt.seconds(value.next_check)} s", "between two checks, by the recipe")
    for other in value.competing:
        yield Fact("also acts", "", other)


def drift(glance: Glance) -> Iterator[Explained]:
    """Every rank's value of what differs."""
    found = glance.lane.drift
    if found is None:
        yield Explained("drift", "not compared yet", ())
        return
    facts: list[Fact] = []
    for item in found.differences:
        facts.append(Fact(item.what, item.severity, item.why))
        facts += [Fact(f"  {host}", "odd" if host in item.odd else "", value) for host, value in item.values]
    facts += [Fact(f"{host}", "not read", what) for host, what in found.unread]
    compared = ", ".join(found.compared) or "nothing yet"
    yield Explained("drift", f"compared between the ranks: {compared}", tuple(facts))


def way_back(glance: Glance) -> Iterator[Explained]:
    """Every item of the way back, and the parts of its time."""
    way = judged(glance.snapshot, glance.lane)
    sources = {"site": "by its site file", "container": f"by starting {way.subject or 'a kept container'} again"}
    open_ = {True: "open", False: "shut", None: "not known"}[way.possible]
    facts = [Fact("way back", open_, way.why or "nothing that it rests on failed")]
    facts += [Fact("to", fmt.revision(way.revision), "another revision that is kept, never the one being prepared")]
    facts += [Fact(item.name, item.word.value, f"{item.text}; read {_ago(item.age)}") for item in way.items]
    facts += [Fact(name, fmt.duration(took), "estimate, part of the whole time") for name, took in way.parts]
    facts.append(Fact("whole time", fmt.duration(way.total), f"sum; boot by {way.boot_basis or 'nothing kept yet'}"))
    facts += [Fact(host, fmt.duration(took), "rows can only be built at the stop") for host, took in way.slow]
    yield Explained("way back", sources.get(way.by, "nothing says how it would go"), tuple(facts))


def _ago(age: float | None) -> str:
    return "never" if age is None else f"{fmt.age(age)} ago"


def boots(glance: Glance) -> Iterator[Explained]:
    """The phases of the present start, and earlier boots."""
    lane = glance.lane
    if lane.boot is None and not lane.boots:
        return
    facts: list[Fact] = []
    boot = None if lane.boot is None else lane.boot.value
    for phase in boot.phases if boot is not None else ():
        took = None if phase.began is None or phase.ended is None else phase.ended - phase.began
        facts.append(Fact(phase.name.value, fmt.duration(took), phase.detail or "by the log's own time stamps"))
    if boot is not None and boot.shards is not None:
        facts.append(Fact("shard bar", boot.shards.text, "files read; never the progress of the boot"))
    for record in lane.boots:
        pool = f"KV pool {fmt.mtok(record.kv_tokens)} M tok, revision {fmt.revision(record.revision)}"
        facts.append(Fact(fmt.time_of_day(record.started, glance.wall), fmt.duration(record.total), pool))
    usual, source = booted.usual_words(lane)
    facts.append(Fact("usual", usual or "-", f"shortest to longest, {source}" if source else "no boot was kept yet"))
    said = "the head's log" if lane.boot is None else origin(lane.boot, glance.now)
    yield Explained("boot", f"{said}; earlier boots as this console kept them", tuple(facts))
