"""Twins of the scripts on site files and row copies. No site file is ever sourced: its keys are read as the console
reads them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import shlex

from console.fleet.sitefile import parse_site
from console.fleet.sitetypes import SiteKind
from console.readings.dryrun import Expected, compare, parse_dry_run
from console.rehearsal.acting import sglang
from console.rehearsal.acting.playing import Job, Twin, number, stamp
from console.rehearsal.files import host_path
from console.rehearsal.rowcopies import PlayedCopy

BUILD_GIB_S = 0.53
"""As fast as the published copier is on those hosts."""


def digest(data: bytes) -> str:
    """sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def data_of(job: Job, path: str) -> bytes | None:
    """A file's bytes; None where there is none."""
    try:
        with open(job.real(path), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


async def site_is(job: Job) -> int:
    """site_is.sh."""
    path, *wanted = job.args
    data = data_of(job, path)
    if data is None:
        raise job.no(f"{host_path(path)} is not there")
    job.say(f"{host_path(path)} is {digest(data)}")
    return 0 if digest(data) in wanted else 1


async def site_edit(job: Job) -> int:
    """site_edit.py: compared, backed up, swapped; the proof is by the console's own reading of both files."""
    path, old, new, kind, *rest = job.args
    wanted = rest[: rest.index("--")]
    try:
        candidate = base64.b64decode(job.known.data["candidate"], validate=True)
    except binascii.Error as error:
        raise job.cannot("the new text is damaged") from error
    before = data_of(job, path)
    if before is None or digest(candidate) != new:
        raise job.no(f"{path} is not there: nothing was changed")
    if digest(before) == new:
        job.say(f"{path} is so already")
        return 0
    if digest(before) != old:
        found = f"{digest(before)[:12]}, not {old[:12]}"
        job.err.append(f"{path} is not the file that this edit was made for: {found}; nothing was changed")
        return 1
    if surprises := _surprises(before, candidate, SiteKind(kind), wanted):
        job.err.append(f"the edit would change more than it should: {', '.join(surprises)}: nothing was changed")
        return 1
    backup = f"{path}.{stamp()}.bak"
    job.write(backup, before.decode("utf-8", "replace"))
    job.write(path, candidate.decode("utf-8", "replace"))
    job.say(f"{path}: {', '.join(word.partition('=')[0] for word in wanted)} set; the old file is {backup}")
    return 0


def _surprises(before: bytes, after: bytes, kind: SiteKind, wanted: list[str]) -> list[str]:
    """Keys that would change and should not, or should and would not."""
    files = [parse_site(data, kind) for data in (before, after)]
    old, new = ({item.key: item.values for item in file.assignments} for file in files)
    asked = dict(word.partition("=")[::2] for word in wanted)
    found = []
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if (was != now and name not in asked) or (name in asked and now != (asked[name],)):
            found.append(name)
    return found


async def dry_run(job: Job) -> int:
    """dry_run.sh: what the launcher would do by the present site file and by the candidate, compared."""
    _, _, old, new, rows_old, rows_new, ranks, holder, *command = job.args
    try:
        candidate = base64.b64decode(job.known.data["candidate"], validate=True)
    except binascii.Error as error:
        raise job.unknown("the new text is damaged") from error
    now, then = [parse_dry_run(await sglang.dry(job, command, site)) for site in (None, candidate)]
    found = compare(now, then, Expected(old, new, rows_old, rows_new, number(ranks), int(holder)))
    for row in found.lines() or ["nothing differs, as wanted"]:
        job.say(row)
    return 0 if found.fine else 2 if found.aborted else 1


async def rows_check(job: Job) -> int:
    """rows_check.py."""
    question, folder, source, revision, _, _, verified, _, ranges = job.args
    copy = job.playing.world.copy_at(job.host, folder)
    said = []
    for what in question.split(","):
        said.append(_asked(job, what, folder, source, revision, verified, ranges, copy))
    job.say("; ".join(said))
    return 0


def _asked(
    job: Job, what: str, folder: str, source: str, revision: str, verified: str, ranges: str, copy: PlayedCopy | None
) -> str:
    if what == "source":
        if not has_snapshot(job, source):
            raise job.no(f"{source} is not there")
        return f"{source} can be read"
    if what == "log":
        log = job.read(f"{folder}.laneswap-log")
        if log is None or verified not in log:
            raise job.no(f"the copier did not write '{verified}'")
        return "every row equal"
    if copy is None or not copy.there:
        raise job.no(f"{folder} is not there")
    held = ",".join(f"{layer}:{start}:{end}" for layer, (start, end) in copy.ranges.items())
    if copy.revision != revision or held != ranges or not job.files.has(f"{folder}/engram-local.json"):
        raise job.no(f"the manifest is of {copy.revision[:12]}, {held}")
    if copy.there < copy.whole:
        raise job.no(f"{copy.there:.0f} of {copy.whole} bytes are allocated")
    return {"manifest": f"of {revision[:12]}", "blocks": "all allocated", "rows": "16 rows compared, all equal"}[what]


def has_snapshot(job: Job, path: str) -> bool:
    """Whether a snapshot's folder is to be seen on this host, through a mount or not."""
    wanted = host_path(path)
    for checkpoint in job.playing.world.checkpoints.values():
        model = checkpoint.model
        seen = job.host == model.host or job.host in checkpoint.mounted
        place = host_path(checkpoint.place(job.host)) if seen and (job.host == model.host or model.mount) else ""
        for item in model.revisions:
            if not place or item.missing:
                continue
            if wanted in (place, f"{place}/snapshots/{item.revision}"):
                return True
    return False


async def rows_build(job: Job) -> int:
    """rows_build.sh: the played copier fills the folder at its own pace."""
    dest, source, revision, manifest, _, verified, shards, ranges, removes, *rest = job.args
    world = job.playing.world
    del manifest, shards
    gone = rest[: number(removes)]
    for folder in gone:
        if (copy := world.copy_at(job.host, folder)) is not None:
            copy.befall("gone")
            job.say(f"removed: {host_path(folder)}")
    if not has_snapshot(job, source):
        job.err.append(f"{source} is not there")
        return 1
    try:
        copy = world.build(job.host, dest, revision, BUILD_GIB_S * job.playing.speed)
    except (KeyError, StopIteration):
        job.err.append("this host never had a row copy")
        return 1
    copy.install()
    if copy.whole / (1 << 30) > world.free_gib(job.host):
        copy.befall("gone")
        job.err.append("[Errno 28] No space left on device")
        return 1
    try:
        while copy.there < copy.whole:  # noqa: ASYNC110 - the world steps it, once a second
            await asyncio.sleep(0.1)
    finally:
        copy.stop()
    words = f"compared 16 rows of {shlex.quote(ranges)}:{verified}"
    job.files.text(f"{dest}.laneswap-log", f"{words}\n")
    job.say(words)
    return 0


TWINS: dict[str, Twin] = {
    "site_is.sh": site_is,
    "site_edit.py": site_edit,
    "dry_run.sh": dry_run,
    "rows_check.py": rows_check,
    "rows_build.sh": rows_build,
}
