"""Listings of hub folders as a host writes them."""

from __future__ import annotations

from collections.abc import Iterable

from console.readings.hubcache import HubRepo, read_repo
from console.readings.listing import Listing, parse_listing

OLD = "df42c109" + "0" * 32
NEW = "1bae0e1088993b9b82de08f59de5be5a34e42170"
GIB = 1024**3
ROOT = "/models/hub/models--org--m"


def blob(number: int) -> str:
    """The name of a blob, as a sha256 looks."""
    return f"{number:064x}"


def file(path: str, size: int, inode: int, *, allocated: int | None = None, mtime: float = 0.0) -> str:
    """A file's row; blocks of 4096 bytes unless said."""
    blocks = -(-size // 4096) * 4096 if allocated is None else allocated
    return f"f\t{size}\t{blocks}\t{mtime:.3f}\t7\t{inode}\t1\t{path}"


def folder(path: str, *, mtime: float = 0.0) -> str:
    """A folder's row."""
    return f"d\t4096\t4096\t{mtime:.3f}\t7\t{abs(hash(path)) % 10**9}\t2\t{path}"


def link(path: str, target: str, size: int, inode: int, *, where: str = "in", mtime: float = 0.0) -> str:
    """A link's row, with the figures of what it leads to."""
    figures = f"{size}\t{-(-size // 4096) * 4096}\t7\t{inode}" if where in ("in", "out") else "-\t-\t-\t-"
    return f"l\t78\t0\t{mtime:.3f}\t7\t{inode + 10**6}\t1\t{path}\t{target}\t{where}\t{figures}"


def ref(name: str, commit: str) -> str:
    """A ref's row, which carries its content."""
    return f"f\t40\t4096\t0.000\t7\t{abs(hash(name)) % 10**9}\t1\trefs/{name}\t{commit}\t-\t-\t-\t-\t-"


def listing(rows: Iterable[str], *, root: str = ROOT, taken: float = 1000.0, free: int = 900 * GIB) -> Listing:
    """A whole answer, read."""
    head = f"ok free={free} total={1000 * GIB} device=7:0 fstype=xfs mount=/models\n# root\t{root}\n# epoch {taken}\n"
    return parse_listing(head + "\n".join(rows) + "\n")


def repo(rows: Iterable[str], *, root: str = ROOT, taken: float = 1000.0, free: int = 900 * GIB) -> HubRepo:
    """The repository of a listing."""
    return read_repo(listing(rows, root=root, taken=taken, free=free))


def shard(revision: str, number: int, total: int, size: int, inode: int) -> tuple[str, str]:
    """A whole shard: its blob and the link to it."""
    name = f"snapshots/{revision}/model-{number:05}-of-{total:05}.safetensors"
    return file(f"blobs/{blob(inode)}", size, inode), link(name, f"../../blobs/{blob(inode)}", size, inode)
