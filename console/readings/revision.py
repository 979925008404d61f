"""Which checkpoint a container really has: the 40-hex commit in what is mounted or named, not the served name. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

_COMMIT = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{40}(?![0-9A-Za-z])")
_SNAPSHOT = re.compile(r"/snapshots/[0-9a-fA-F]{40}(?:/|$)")
_MODEL_TARGET = re.compile(r"^/(?:[a-z]+/)?(?:models?|weights|checkpoints?)(?:/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Revision:
    """A 40-hex commit and where it was read; both '' where it cannot be read."""

    commit: str = ""
    source: str = ""


def commit_in(path: str) -> str:
    """The commit that a path names, its deepest 40-hex part (`snapshots/<commit>`, `name-<commit>`); '' if none.

    Names under `blobs/` are git hashes of single files in the Hugging Face cache, not commits.
    """
    parts = [part for part in path.split("/") if part]
    for index in range(len(parts) - 1, -1, -1):
        if index and parts[index - 1] == "blobs":
            continue
        if hits := _COMMIT.findall(parts[index]):
            return str(hits[-1]).lower()
    return ""


def mounted_revision(
    model: str, model_flag: str, revision_argument: str, mounts: Sequence[tuple[str, str]]
) -> Revision:
    """The revision behind a container, from its model path, `--revision` and mounts as (source, target).

    Mounts win over arguments: what is mounted over the model path is what the engine reads. A model path that
    lies in a mount is followed to the host; what the host path does not tell is unknown, not guessed.
    """
    if not model:
        return _only_mounted(mounts)
    if not model.startswith("/"):
        return _named(model, revision_argument)
    model = posixpath.normpath(model)
    if (cover := _covering(model, mounts)) is not None:
        source, target = cover
        below = model[len(target.rstrip("/")) :]
        real = source.rstrip("/") + below
        commit = commit_in(real)
        if not commit:
            return Revision()
        if commit_in(below) == commit:
            return Revision(commit, f"argument {model_flag}")
        return Revision(commit, f"mount {source} at {target}")
    commit = commit_in(model)
    return Revision(commit, f"argument {model_flag}") if commit else Revision()


def _covering(path: str, mounts: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    inside = [(s, t) for s, t in mounts if t and (path == t or path.startswith(t.rstrip("/") + "/"))]
    return max(inside, key=lambda mount: len(mount[1]), default=None)


def _only_mounted(mounts: Sequence[tuple[str, str]]) -> Revision:
    """Without a model path: the one revision mounted at a model's usual place, else the one snapshot mounted at all."""
    usual = [mount for mount in mounts if _MODEL_TARGET.match(mount[1])]
    group = usual or [mount for mount in mounts if _SNAPSHOT.search(mount[0])]
    found = {commit: (source, target) for source, target in group if (commit := commit_in(source))}
    if len(found) != 1:
        return Revision()
    commit, (source, target) = next(iter(found.items()))
    return Revision(commit, f"mount {source} at {target}")


def _named(model: str, revision_argument: str) -> Revision:
    """A Hub name: the commit stands in `--revision`, or nowhere that can be read."""
    commit = commit_in(revision_argument)
    return Revision(commit, f"argument --revision of {model}") if commit else Revision()
