"""Whether a row copy is whole and of the right revision: questions with yes or no. Runs on hosts.

`rows_check.py WHAT COPY SNAPSHOT REVISION MANIFEST SAMPLES VERIFIED SHARDS RANGES`, all in this order; WHAT names the
questions: `source` (the snapshot's tables can be read), `log` (what the copier wrote), `manifest`, `blocks`, `rows`.
SHARDS and RANGES (`LAYER:START:END`) are lists with commas. Exit 0: all yes; 1: no, says why; 2: it cannot be told.
Reads past the page cache, or drops what it read. Written for python 3.8 and for one without most of its library.
"""

from __future__ import annotations

import os
import random
import re
import struct

ROW_BYTES = 264
"""256 of weight and 8 of scale: what a row takes."""
PAGE = 4096
COMPRESSING = ("btrfs", "zfs", "bcachefs")
"""File systems that may allocate less than what is written."""
MOST_HEADER = 64 << 20
TABLES = ("weight", "scale")


class No(Exception):
    """The answer is no, in words."""


class Table:
    """Where one layer's rows of one kind lie in their shard."""

    def __init__(self, snapshot: str, index: str, layer: int, kind: str) -> None:
        name = f"layers.{layer}.engram.embed.{kind}"
        found = re.search(r'"%s"\s*:\s*"([^"/]+)"' % re.escape(name), index)  # noqa: UP031
        if found is None:
            raise No(f"the snapshot's index does not know {name}")
        self.shard = found.group(1)
        with open(os.path.join(snapshot, self.shard), "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            if size > MOST_HEADER:
                raise No(f"{self.shard} of the snapshot is no safetensors file")
            self.header = struct.pack("<Q", size) + file.read(size)
        entry = re.search(rb'"%s"\s*:\s*\{([^{}]*)\}' % re.escape(name).encode(), self.header)
        shape = entry and re.search(rb'"shape"\s*:\s*\[\s*(\d+)\s*,\s*(\d+)\s*\]', entry.group(1))
        offsets = entry and re.search(rb'"data_offsets"\s*:\s*\[\s*(\d+)\s*,', entry.group(1))
        if not shape or not offsets:
            raise No(f"{self.shard} of the snapshot does not hold {name}")
        self.rows, self.row = int(shape.group(1)), int(shape.group(2))
        self.start = len(self.header) + int(offsets.group(1))


class Copy:
    """One copy and what it should be."""

    def __init__(self, words: list[str]) -> None:
        copy, snapshot, self.revision, manifest, samples, self.verified, shards, ranges = words
        self.folder, self.snapshot = (os.path.realpath(os.path.expanduser(path)) for path in (copy, snapshot))
        self.manifest = os.path.join(self.folder, manifest)
        self.samples = int(samples)
        self.shards = shards.split(",")
        self.ranges = [tuple(int(part) for part in word.split(":")) for word in ranges.split(",")]
        self.rows = sum(end - start for _, start, end in self.ranges)

    def tables(self) -> list[tuple[Table, int, int]]:
        """Each range's tables, from the snapshot. Raises No, OSError."""
        with open(os.path.join(self.snapshot, "model.safetensors.index.json"), encoding="utf-8") as file:
            index = file.read()
        found = []
        for layer, start, end in self.ranges:
            for kind in TABLES:
                table = Table(self.snapshot, index, layer, kind)
                if not 0 <= start < end <= table.rows:
                    raise No(f"layer {layer} has {table.rows} rows, not {start} to {end}")
                found.append((table, start, end))
        return found

    def paths(self) -> list[str]:
        """The copy's shards. Raises No."""
        found = [path for path in (os.path.join(self.folder, name) for name in self.shards) if os.path.isfile(path)]
        if not found:
            raise No(f"{self.folder} holds no shard")
        return found

    # --- the questions

    def source(self) -> str:
        """The snapshot's tables can be read where the ranges are."""
        tables = self.tables()
        return f"{self.snapshot} has the rows of {len(tables) // len(TABLES)} layers"

    def log(self) -> str:
        """The copier ended well and says that it found no difference."""
        with open(self.folder + ".laneswap-exit", encoding="utf-8") as file:
            status = file.read().strip()
        if status != "0":
            raise No(f"the copier ended with exit {status}")
        with open(self.folder + ".laneswap-log", encoding="utf-8", errors="replace") as file:
            rows = [row for row in file.read().splitlines() if self.verified in row]
        if not rows:
            raise No(f"the copier did not write '{self.verified.strip()}'")
        return rows[-1].strip()

    def manifest_fits(self) -> str:
        """Its manifest names the revision and the ranges and is not older than the data."""
        if not os.path.exists(self.manifest):
            raise No(f"{self.manifest} is not there")
        with open(self.manifest, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 20)
        layers = re.search(r'"layers"\s*:\s*\{([^{}]*)\}', text)
        found = re.findall(r'"(\d+)"\s*:\s*\[\s*(\d+)\s*,\s*(\d+)\s*\]', layers.group(1) if layers else "")
        if sorted(tuple(map(int, words)) for words in found) != sorted(self.ranges):
            raise No("its manifest has other ranges: " + (", ".join(":".join(words) for words in found) or "none"))
        named = re.search(r'"revision"\s*:\s*"([0-9a-fA-F]{40})"', text)
        named = named or re.search(r'"source"\s*:\s*"[^"]*?([0-9a-fA-F]{40})(?:/[^"]*)?"', text)
        of = named.group(1).lower() if named else "no revision"
        if of != self.revision.lower():
            raise No(f"its manifest is of {of}, not of {self.revision}")
        written = os.stat(self.manifest).st_mtime_ns
        for path in self.paths():
            if os.stat(path).st_mtime_ns > written:
                raise No(f"its manifest is older than {os.path.basename(path)}")
        return f"its manifest is of {of[:12]} and newer than the data"

    def blocks(self) -> str:
        """All bytes of the ranges are allocated."""
        wanted = self.rows * ROW_BYTES
        present = sum(os.stat(path).st_blocks * 512 for path in self.paths())
        if present >= wanted:
            return f"{present} bytes allocated for {wanted}"
        kind = file_system(self.folder)
        if kind not in COMPRESSING:
            raise No(f"only {present} bytes allocated of {wanted}")
        for table, start, end in self.tables():
            first, last = table.start + start * table.row, table.start + end * table.row
            with open(os.path.join(self.folder, table.shard), "rb") as file:
                hole = os.lseek(file.fileno(), first, os.SEEK_HOLE)
            if hole < last:
                raise No(f"a hole in {table.shard} at {hole}")
        return f"{present} bytes allocated for {wanted}, compressed by {kind}, without a hole"

    def random_rows(self) -> str:
        """The first, the last and some random rows of each range are the snapshot's, byte for byte."""
        compared = 0
        for table, start, end in self.tables():
            ours, theirs = (Reader(os.path.join(folder, table.shard)) for folder in (self.folder, self.snapshot))
            try:
                if ours.read(0, len(table.header)) != table.header:
                    raise No(f"{table.shard} has another header than the snapshot's")
                wanted = {start, end - 1, *(random.randrange(start, end) for _ in range(self.samples))}  # noqa: S311
                for number in sorted(wanted):
                    at = table.start + number * table.row
                    compared += 1
                    row = theirs.read(at, table.row)
                    if len(row) != table.row or ours.read(at, table.row) != row:
                        raise No(f"row {number} in {table.shard} is not the snapshot's")
            finally:
                ours.close()
                theirs.close()
        return f"{compared} rows compared, all the snapshot's"


class Reader:
    """A file, read past the page cache where its file system can do that."""

    def __init__(self, path: str) -> None:
        try:
            import mmap  # what direct reading needs, to be aligned; python3-minimal has none

            self.buffer = mmap.mmap
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
            self.direct = True
        except (ImportError, OSError):
            self.fd = os.open(path, os.O_RDONLY)
            self.direct = False

    def read(self, offset: int, size: int) -> bytes:
        """Some bytes; the page cache is as before."""
        first = offset // PAGE * PAGE
        length = (offset + size - first + PAGE - 1) // PAGE * PAGE
        if self.direct:
            buffer = self.buffer(-1, length)
            got = os.preadv(self.fd, [buffer], first)
            return bytes(buffer[:got])[offset - first : offset - first + size]
        os.posix_fadvise(self.fd, first, length, os.POSIX_FADV_DONTNEED)
        try:
            return os.pread(self.fd, size, offset)
        finally:
            os.posix_fadvise(self.fd, first, length, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


def file_system(path: str) -> str:
    """Its type as /proc/mounts has it; '' where that does not tell."""
    best = ("", "")
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        for row in file:
            words = row.split(" ")
            point = words[1].replace("\\040", " ").rstrip("/")
            if (path + "/").startswith(point + "/") and len(point) >= len(best[0]):
                best = (point, words[2])
    return best[1]


QUESTIONS = {
    "source": Copy.source,
    "log": Copy.log,
    "manifest": Copy.manifest_fits,
    "blocks": Copy.blocks,
    "rows": Copy.random_rows,
}


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        copy = Copy(arguments[1:])
        print("; ".join([QUESTIONS[what](copy) for what in arguments[0].split(",")]))
    except (No, FileNotFoundError) as error:
        print(f"{error.filename} is not there" if isinstance(error, FileNotFoundError) else error)
        return 1
    except Exception as error:  # whatever it is, it is no answer: a bare traceback would end with 1, a no
        print(f"cannot be told: {error}")
        return 2
    return 0
