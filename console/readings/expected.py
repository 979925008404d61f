"""What a revision consists of, as a Hub lists it or as a manifest file says. Pure.

A Hub answers `/api/models/ORG/NAME/revision/REV?blobs=true` with `sha` and `siblings[].{rfilename, size, blobId, lfs}`
(huggingface_hub 2.4.0, `hf_api.py:model_info`). A manifest has lines `path<TAB>bytes<TAB>sha256 | git:<blob id>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from console.sanitize import line

MOST_FILES = 100_000
_REVISION = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"[0-9a-f]{64}|git:[0-9a-f]{40}")
_SIZE = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a revision consists of, from a Hub listing or a manifest."""

    files: tuple[tuple[str, int, str], ...]
    """(path, bytes, sha256 or `git:` blob id), in the listing's order."""
    source: str
    revision: str = ""
    whole: int | None = None
    """Bytes of all files where nobody lists them one by one."""
    problem: str = ""
    """Why there is no list; safe text. A list that can be read only in part is none."""

    @property
    def total(self) -> int:
        """Bytes of all files; 0 where that is not known, see `known`."""
        return sum(size for _, size, _ in self.files) if self.files else self.whole or 0

    @property
    def known(self) -> bool:
        """Whether `total` is a figure."""
        return bool(self.files) or self.whole is not None


class _Bad(ValueError):
    """What is wrong, in safe words."""


def parse_expected(text: str, source: str) -> Expected:
    """A Hub's JSON, a manifest, or a bare number of bytes. Never raises: see `problem`."""
    bare = text.strip()
    try:
        if _SIZE.fullmatch(bare):
            return Expected((), source, whole=int(bare))
        if bare.startswith("{"):
            document = _document(bare)
            files = tuple(_siblings(document))
            revision = _commit(document.get("sha"))
        else:
            files = tuple(_rows(text))
            stated = re.search(r"^#.*\b([0-9a-f]{40})\b", text, re.MULTILINE)
            revision = stated[1] if stated else ""
    except _Bad as error:
        return Expected((), source, problem=str(error))
    if not files:
        return Expected((), source, revision, problem="it names no file")
    if len({path for path, _, _ in files}) != len(files):
        return Expected((), source, revision, problem="it names a file twice")
    return Expected(files, source, revision)


def parse_main(text: str) -> str:
    """The commit that a Hub's answer about a model stands at; '' if it names none. Never raises."""
    try:
        return _commit(_document(text).get("sha"))
    except _Bad:
        return ""


def _document(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Bad(f"not JSON: {line(str(error), 120)}") from error
    if not isinstance(document, dict):
        raise _Bad("a JSON object was expected")
    return document


def _commit(value: object) -> str:
    return value if isinstance(value, str) and _REVISION.fullmatch(value) else ""


def _siblings(document: dict[str, object]) -> Iterator[tuple[str, int, str]]:
    siblings = document.get("siblings")
    if not isinstance(siblings, list):
        raise _Bad("no `siblings`: this is no listing of a model's files")
    if len(siblings) > MOST_FILES:
        raise _Bad(f"more than {MOST_FILES} files")
    for item in siblings:
        path = item.get("rfilename") if isinstance(item, dict) else None
        if not isinstance(path, str) or not path:
            raise _Bad("a file without a name")
        large = item.get("lfs")
        size = large.get("size") if isinstance(large, dict) else item.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 10**18:
            raise _Bad(f"no size for {line(path, 120)}: ask with ?blobs=true")
        digest = large.get("sha256") if isinstance(large, dict) else f"git:{item.get('blobId')}"
        yield line(path, 1000), size, digest if isinstance(digest, str) and _DIGEST.fullmatch(digest) else ""


def _rows(text: str) -> Iterator[tuple[str, int, str]]:
    count = 0
    for number, row in enumerate(text.split("\n"), 1):
        row = row.rstrip("\r")
        fields = row.split("\t")
        header = number == 1 and len(fields) > 1 and fields[0] == "path"
        if not row.strip() or row.startswith("#") or header:
            continue
        count += 1
        if count > MOST_FILES:
            raise _Bad(f"more than {MOST_FILES} files")
        if len(fields) < 2 or not fields[0] or not _SIZE.fullmatch(fields[1]):
            raise _Bad(f"line {number}: expected path, bytes and digest parted by tabs, found {line(row, 60)!r}")
        digest = fields[2] if len(fields) > 2 and _DIGEST.fullmatch(fields[2]) else ""
        yield line(fields[0], 1000), int(fields[1]), digest
