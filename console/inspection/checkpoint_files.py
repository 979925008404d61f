"""`inspect` of a checkpoint's files: repository folders, downloads, and who downloads. Bytes, seconds, percent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from console.inspection.arguments import Argument, InspectError, one, reject_unknown
from console.reach.files_host import tree
from console.readings.download import Expected, model_of, parse_expected, parse_main
from console.readings.download_files import Files, look_for
from console.readings.download_warnings import prune_warning
from console.readings.downloader import before_starting, read_leftovers
from console.readings.hubcache import HubRepo, Partial, SnapshotFiles, at_home, read_repo
from console.readings.listing import Listing, parse_listing
from console.readings.processes import Process, parse_processes
from console.sanitize import word

DEPTH = 12
MOST = 20_000


def snapshot(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`DIR-OR-LISTING [expected=F] [pin=REV] [upstream=JSON] [serving=REV]`, or `holder=DIR mount=DIR`."""
    reject_unknown(arguments, ("expected", "pin", "upstream", "serving", "holder", "mount"))
    holder, mount = one(arguments, "holder"), one(arguments, "mount")
    folder = one(arguments, "folder", default=True)
    if holder or mount:
        if folder or not (holder and mount):
            raise InspectError("snapshot: two views of one folder are holder=DIR and mount=DIR, and no other folder")
        return _two_views(holder, mount)
    if folder is None:
        raise InspectError(
            "snapshot: no folder; say a repository folder (models--org--name) or a file with its listing"
        )
    repo = repo_of(folder)
    expected = expected_of(one(arguments, "expected"))
    pin, serving = words(arguments, "pin"), words(arguments, "serving")
    upstream = upstream_of(one(arguments, "upstream"))
    named = {serving: "serving"} if serving else {}
    if pin and not (serving and serving.startswith(pin)):
        named[pin] = "pinned"
    warning = prune_warning(repo, named)
    return {
        **_repo(repo, expected, pin),
        "pin": pin or None,
        "upstream": upstream or None,
        "upstream_moved": not upstream.startswith(pin) if upstream and pin else None,
        "warnings": [warning] if warning else [],
    }


def _two_views(holder: Argument, mount: Argument) -> dict[str, Any]:
    """One folder as its holder has it, and as another host sees it through its own mount."""
    home, path = at_home(listing_of(holder))
    there, here = _checked(read_repo(home), holder), repo_of(mount)
    seen = {item.revision: item for item in here.snapshots}
    differ = []
    for item in there.snapshots:
        through = seen.get(item.revision)
        for name in item.sizes:
            if through is None or name not in through.sizes:
                state = "not there" if through is None or name not in through.dangling else "its link leads nowhere"
                differ.append({"revision": item.revision, "file": name, "through_mount": state})
    return {
        "holder": {**_repo(there, None, ""), "path": path or None},
        "mount": _repo(here, None, ""),
        "differ": differ,
        "same": not differ,
    }


def listing_of(argument: Argument) -> Listing:
    """A folder of this machine, or a file with a listing. Raises InspectError."""
    if argument.path.is_dir():
        return parse_listing(tree(os.path.abspath(argument.path), DEPTH, MOST))
    listing = parse_listing(argument.text())
    if listing.faulty and not listing.entries:
        raise InspectError(f"{argument.path}: no listing of a folder; see console/readings/listing.py for its form")
    return listing


def repo_of(argument: Argument) -> HubRepo:
    """The repository in a folder or listing. Raises InspectError."""
    return _checked(read_repo(listing_of(argument)), argument)


def _checked(repo: HubRepo, argument: Argument) -> HubRepo:
    if "name one" in repo.problem:
        raise InspectError(f"{argument.path}: {repo.problem}")
    return repo


def expected_of(argument: Argument | None) -> Expected | None:
    """A list of files, or a number of bytes. Raises InspectError."""
    if argument is None:
        return None
    expected = parse_expected(argument.text(), word(argument.path.name))
    if expected.problem:
        raise InspectError(f"{argument.path}: {expected.problem}")
    return expected


def words(arguments: Sequence[Argument], role: str) -> str:
    """A value given in place of a path, or as a file that holds it."""
    argument = one(arguments, role)
    if argument is None:
        return ""
    return word(argument.text() if argument.path.is_file() else str(argument.path), 200)


def upstream_of(argument: Argument | None) -> str:
    """The commit in a Hub's answer about a model. Raises InspectError."""
    if argument is None:
        return ""
    commit = parse_main(argument.text())
    if not commit:
        raise InspectError(f"{argument.path}: no commit in it; it is the answer of /api/models/ORG/NAME")
    return commit


def _repo(repo: HubRepo, expected: Expected | None, pin: str) -> dict[str, Any]:
    """`expected` is of the pinned revision, else of its own, else of the only one."""
    revision = pin or (expected.revision if expected else "")
    if expected and not revision:
        revision = repo.snapshots[0].revision if len(repo.snapshots) == 1 else ""
        if len(repo.snapshots) > 1:
            raise InspectError("several revisions are there: say pin=REVISION to compare with expected=")
    found = look_for(repo, revision, expected)
    return {
        "root": repo.root or None,
        "model": model_of(repo.root) or None,
        "problem": repo.problem or None,
        "revisions": [
            _revision(item, found if expected and item is found.snapshot else None) for item in repo.snapshots
        ],
        "partials": [partial(item) for item in repo.partials],
        "refs": [{"name": name, "revision": commit or None} for name, commit in repo.refs.items()],
        "prunable": list(repo.prunable),
        "present": repo.present,
        "not_in_a_snapshot": repo.loose,
        "free": repo.free,
        "file_system": repo.fstype or None,
        "mounted_at": repo.mount or None,
        "expected": _expected(found, expected) if expected else None,
    }


def _revision(item: SnapshotFiles, against: Files | None) -> dict[str, Any]:
    complete = item.complete
    if against is not None and against.complete is not None and complete is not False:
        complete = against.complete
    return {
        "revision": item.revision or None,
        "refs": list(item.refs),
        "entries": item.entries,
        "resolvable": item.resolvable,
        "dangling": list(item.dangling),
        "outside": list(item.outside),
        "absolute": list(item.absolute),
        "unreadable": list(item.unreadable),
        "leads_to": item.elsewhere or None,
        "present": item.present,
        "shards_done": item.shards_done,
        "shards_total": item.shards_total,
        "status": {True: "complete", False: "incomplete", None: "unknown"}[complete],
    }


def partial(item: Partial) -> dict[str, Any]:
    """One partial file; its share is of its own apparent size, which says nothing about the file's."""
    return {
        "path": item.path,
        "etag": item.etag,
        "apparent": item.apparent,
        "present": item.present,
        "present_percent": 100 * item.present / item.apparent if item.apparent else None,
        "modified": item.mtime,
        "resumable": item.resumable,
        "orphan": item.orphan,
    }


def _expected(found: Files, expected: Expected) -> dict[str, Any]:
    total = expected.total
    return {
        "source": expected.source,
        "revision": expected.revision or None,
        "files": len(expected.files) if expected.files else None,
        "bytes": total,
        "done": found.done,
        "done_percent": 100 * found.done / total if total and found.done is not None else None,
        "whole_files": found.whole,
        "missing": [path for path, _, _ in found.missing if path not in found.wrong],
        "other_size": list(found.wrong),
        "smaller_on_disk": list(found.sparse),
    }


def processes(arguments: Sequence[Argument]) -> dict[str, Any]:
    """`PS [repo=ORG/NAME]`: downloads, poll loops that dropped connections left behind, and zombies."""
    reject_unknown(arguments, ("repo",))
    file = one(arguments, "ps", default=True)
    if file is None:
        raise InspectError("processes: no file; take it with `ps -eo pid,ppid,stat,etime,args`")
    table = processes_of(file)
    found = read_leftovers(table)
    asked = words(arguments, "repo")
    repos = [asked] if asked else sorted({item.repo for item in found.downloads})
    downloads = []
    for repo in repos:
        running = found.of(repo)
        revisions = sorted({item.revision for item in running if item.revision})
        pids = [item.pid for item in running]
        downloads.append({"repo": repo, "running": len(running), "pids": pids, "revisions": revisions})
    warnings = [text for repo in repos for text in before_starting(found, repo)]
    return {
        "processes": len(table),
        "downloads": downloads,
        "stray_poll_loops": len(found.loops),
        "loops": [{"pid": item.pid, "command": item.command} for item in found.loops],
        "zombies": len(found.zombies),
        "zombie_pids": [item.pid for item in found.zombies],
        "warnings": list(dict.fromkeys(warnings)),
    }


def processes_of(argument: Argument) -> Sequence[Process]:
    """The processes in a captured table. Raises InspectError."""
    table = parse_processes(argument.text())
    if not table:
        raise InspectError(f"{argument.path}: no process in it; take it with `ps -eo pid,ppid,stat,etime,args`")
    return table
