"""Steps on site files, row copies and dry runs, as data: builders that the plans use. Nothing here touches a host.

Scripts and their data go in on standard input, so that the command itself stays readable: the by-hand sheet and
`laneswap plan` show it. They run on any python3 from 3.8, also on one without most of its library.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import ModuleType

from console.actions.plan import Probe, Stage, Step
from console.actions.scripts import script
from console.actions.steps import step_id
from console.fleet.proposal import propose
from console.fleet.sitefile import parse_site
from console.fleet.sitetypes import SiteKind
from console.readings import dryrun
from console.readings.dryrun import Expected
from console.readings.row_types import RowRange

SIDE = "@SIDE@"
"""Stands in a copier's words for the folder that it fills; put in on the host, beside the real folder."""
VERIFIED = " 0 mismatches"
"""What `engram_local.py` writes last when every row that it compared was the same."""


class SiteRefused(ValueError):
    """A site file that cannot be edited as wanted; `refusals` says why, each a safe sentence."""

    def __init__(self, path: str, refusals: Sequence[str]) -> None:
        super().__init__(f"{path}: " + "; ".join(refusals))
        self.refusals = tuple(refusals)


def site_edit_step(
    host: str,
    path: str,
    before: bytes,
    changes: Mapping[str, str],
    *,
    kind: SiteKind = SiteKind.BASH,
    id: str = "edit-site",
    title: str = "",
    limit: float = 60.0,
    usual: float | None = 2.0,
) -> Step:
    """Set these keys in the site file: the smallest edit, compared and swapped, proved, its backup kept beside it.

    `before` are the file's bytes as they were read (`Site.data`), `path` is absolute or below `~` on `host`; a link is
    followed, its target edited. Exit 0: done, or so already. 1: refused, words on stderr, the file is as it was.
    5: cannot (no right, disk full). Raises SiteRefused where `propose` refuses.
    """
    proposal = propose(before, changes, kind, path)
    if proposal.refusals:
        raise SiteRefused(path, proposal.refusals)
    old = hashlib.sha256(before).hexdigest()
    wanted = [f"{change.key}={changes[change.key]}" for change in proposal.changes]
    follows = _made_of(before, {change.key for change in proposal.changes}, kind)
    keys = ", ".join(change.key for change in proposal.changes)
    name = path.rpartition("/")[2]
    return Step(
        id=id,
        stage=Stage.SITE,
        title=title or (f"set {keys} in {name}" if keys else f"{name} is as wanted"),
        host=host,
        argv=("python3", "-I", "-", path, old, proposal.sha256, kind.value, *wanted, "--", *follows),
        stdin=_python("site_edit.py", base64.b64encode(proposal.data).decode(), script("site_prove.sh")),
        limit=limit,
        usual=usual,
        basis="estimate",
        before=(_site_is(host, path, f"{name} is as it was read", old, proposal.sha256),),
        already=(_site_is(host, path, f"{name} is as wanted", proposal.sha256),),
        after=(_site_is(host, path, f"{name} is as wanted", proposal.sha256),),
        undo=f"put back the newest {name}.*.bak beside it (mv)",
        again=True,
    )


def dry_run_step(
    head: str,
    launcher: Sequence[str],
    candidate: bytes,
    expected: Expected,
    *,
    folder: str,
    variable: str = "FLEET_ENV",
    id: str = "dry-run",
    limit: float = 180.0,
    usual: float | None = None,
    basis: str = "",
) -> Step:
    """The launcher's dry run of a candidate site file against that of the present one; changes nothing.

    Only for launchers with a safe dry run: `launcher` is all of it (`production.sh --dry-run`), `folder` the lane's
    folder of state on the head, where the candidate lies meanwhile, `variable` what names it to the launcher.
    Exit 0: only expected lines and site drift differ. 1: surprises, ranks that are missing or did not change.
    2: a dry run was aborted. Words for each on standard output.
    """
    text = base64.b64encode(candidate).decode()
    changed = (expected.old, expected.new, expected.rows_old, expected.rows_new)
    return Step(
        id=id,
        stage=Stage.SITE,
        title="compare the launcher's dry runs",
        host=head,
        argv=(
            *("sh", "-s", "--", folder, variable, *changed, str(expected.ranks), str(expected.holder)),
            *launcher,
        ),
        stdin=_shell("dry_run.sh", candidate=text, check=_text_of(dryrun)),
        limit=limit,
        usual=usual,
        basis=basis,
        undo="nothing: it changes nothing",
    )


def rows_step(
    host: str,
    source: str,
    dest: str,
    ranges: Sequence[RowRange],
    revision: str,
    copier: Sequence[str],
    *,
    shards: Sequence[str],
    remove: Sequence[str] = (),
    manifest: str = "engram-local.json",
    verified: str = VERIFIED,
    samples: int = 4,
    memory_max: str = "4G",
    limit: float = 3600.0,
    usual: float | None = None,
    basis: str = "",
    id: str = "",
    together: str = "",
) -> Step:
    """Build a rank's row copy anew by the recipe's own copier, beside `dest`, whose place it takes when it is good.

    `source` is the snapshot's folder as this host sees it. `copier` is the command; `{source}`, `{dest}` and `{ranges}`
    in it are filled in (the last one as several words), and put behind it in this order where it has none of them.
    `remove`: copies (folders of `manifest`, index and shards, nothing else) that are deleted first because there is no
    room for two; never the one that a running engine reads: the stop comes before.
    Good is: exit 0, `verified` in what it wrote, manifest of `revision` and `ranges` and newer than the data, all bytes
    allocated, and `samples` random rows of each range, with its first and last, equal to the snapshot's.
    """
    words = [f"{one.layer}:{one.start}:{one.end}" for one in ranges]
    what = (source, revision, manifest, str(samples), verified, ",".join(shards), ",".join(words))

    def asked(question: str, holds: str) -> Probe:
        return Probe(host, holds, ("python3", "-I", "-", question, dest, *what), _python("rows_check.py"))

    of = f"{dest.rstrip('/').rpartition('/')[2]} on {host}"
    good = (
        asked("manifest", f"the manifest of {of} is of {revision[:12]} and newer than its data"),
        asked("blocks", f"all bytes of {of} are allocated"),
        asked("rows", f"random rows of {of} are the snapshot's"),
    )
    return Step(
        id=id or step_id("rows", host),
        stage=Stage.ROWS,
        title=f"build the rows of {revision[:12]} on {host}" + (", deleting a copy first" if remove else ""),
        host=host,
        argv=("sh", "-s", "--", dest, *what, str(len(remove)), *remove, *_copier(copier, source, words)),
        stdin=_shell("rows_build.sh", check=_python("rows_check.py")),
        limit=limit,
        usual=usual,
        basis=basis,
        before=(asked("source", f"the snapshot of {revision[:12]} can be read on {host}"),),
        already=good,
        after=(asked("log", f"the copier of {of} found every row equal"), *good),
        undo="build the other revision's rows again" if remove else f"delete {dest}",
        together=together,
        detached=True,
        again=True,
        memory_max=memory_max,
    )


def _copier(words: Sequence[str], source: str, ranges: Sequence[str]) -> list[str]:
    """The copier's command with its blanks filled."""
    blanks = {"{source}": [source], "{dest}": [SIDE], "{ranges}": list(ranges)}
    if not any(word in blanks for word in words):
        words = (*words, *blanks)
    return [filled for word in words for filled in blanks.get(word, [word])]


def _python(name: str, *arguments: str) -> str:
    """A script with its call behind it: literals of ours, whatever they hold."""
    call = ", ".join(("sys.argv[1:]", *(repr(word) for word in arguments)))
    return f"{script(name)}\n\nimport sys\n\nsys.exit(main({call}))\n"


def _shell(name: str, **values: str) -> str:
    """A script with its data before it, as variables."""
    return "".join(f"{key}={shlex.quote(text)}\n" for key, text in values.items()) + script(name)


@cache
def _text_of(module: ModuleType) -> str:
    """The very file of a module that is fit to be sent."""
    return inspect.getsource(module)


def _site_is(host: str, path: str, words: str, *hashes: str) -> Probe:
    return Probe(host, words, ("sh", "-s", "--", path, *hashes), script("site_is.sh"))


def _made_of(data: bytes, changed: Collection[str], kind: SiteKind) -> list[str]:
    """Keys that are made of a changed one, directly or not, under the names that the proof has for them."""
    found: dict[str, None] = {}
    wider = True
    while wider:
        used = re.compile(rf"\$\{{?({'|'.join(map(re.escape, (*changed, *found)))})(?![A-Za-z0-9_])")
        more = [
            name
            for item in parse_site(data, kind).assignments
            if not item.literal and item.key not in changed and any(used.search(value) for value in item.values)
            for name in (item.key, f"{item.key}[]")[: 1 + item.array]
            if name not in found
        ]
        wider = bool(more) and bool(changed)
        found.update(dict.fromkeys(more))
    return list(found)
