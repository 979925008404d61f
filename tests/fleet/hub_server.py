"""A small Hub over HTTP for the real `hf` command: API, redirect-free LFS files, ranges, a bounded rate a connection.

`python3 hub_server.py ADDRESS BYTES_A_SECOND` prints one JSON line (url, model, revision, main, files) and serves until
standard input ends. Answers are what huggingface_hub 2.4.0 reads: `utils/_http.py`, `file_download.py`, `hf_api.py`.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

MODEL = "deepseek-ai/DeepSeek-V4.1-Flash"
REVISION = "2a9e17c44d1b0f5e6c7a8b9d0e1f2a3b4c5d6e7f"
MAIN = "9b0c1d2e3f405162738495a6b7c8d9e0f1a2b3c4"
"""Where the main branch stands: it moved on after REVISION."""
SHARDS = 4
BLOCK = 1 << 20
BLOCKS = 36
"""Of one shard."""
PIECE = 64 * 1024


@dataclass(frozen=True)
class File:
    """One file of the revision."""

    path: str
    size: int
    etag: str
    """sha256 of an LFS file, git's id of any other."""
    block: bytes
    """Its content, again and again."""
    lfs: bool

    def content(self, start: int, end: int) -> bytes:
        """The bytes [start, end)."""
        first = start // len(self.block)
        pieces = self.block * ((end - 1) // len(self.block) - first + 1)
        return pieces[start - first * len(self.block) : end - first * len(self.block)]


def files() -> tuple[File, ...]:
    """Two small files and numbered shards, the same in every run."""
    found = []
    for path, text in (("config.json", '{"model_type": "deepseek_v4"}\n'), ("model.safetensors.index.json", "{}\n")):
        data = text.encode()
        git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        found.append(File(path, len(data), git, data, False))
    for number in range(1, SHARDS + 1):
        block = random.Random(number).randbytes(BLOCK)
        digest = hashlib.sha256()
        for _ in range(BLOCKS):
            digest.update(block)
        name = f"model-{number:05}-of-{SHARDS:05}.safetensors"
        found.append(File(name, BLOCK * BLOCKS, digest.hexdigest(), block, True))
    return tuple(found)


class Hub(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    known: ClassVar[dict[str, File]] = {}
    rate = 1.0

    def do_HEAD(self) -> None:
        self._answer(head=True)

    def do_GET(self) -> None:
        self._answer(head=False)

    def _answer(self, *, head: bool) -> None:
        path = self.path.partition("?")[0]
        if match := re.fullmatch(rf"/{MODEL}/resolve/([^/]+)/(.+)", path):
            if match[1] in (REVISION, "main") and match[2] in self.known:
                return self._file(self.known[match[2]], head)
        elif match := re.fullmatch(rf"/api/models/{MODEL}(?:/revision/([^/]+))?", path):
            if match[1] in (None, "main", REVISION):
                return self._json(self._info(REVISION if match[1] == REVISION else MAIN))
        elif path == f"/api/models/{MODEL}/tree/{REVISION}":
            return self._json([self._entry(file) for file in self.known.values()])
        self._json({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})

    def _info(self, revision: str) -> dict[str, object]:
        siblings = []
        for file in self.known.values():
            sibling: dict[str, object] = {"rfilename": file.path, "size": file.size, "blobId": file.etag[:40]}
            if file.lfs:
                sibling["lfs"] = {"sha256": file.etag, "size": file.size, "pointerSize": 134}
            siblings.append(sibling)
        return {"id": MODEL, "modelId": MODEL, "sha": revision, "private": False, "siblings": siblings}

    def _entry(self, file: File) -> dict[str, object]:
        entry: dict[str, object] = {"type": "file", "path": file.path, "size": file.size, "oid": file.etag[:40]}
        return {**entry, "lfs": {"oid": file.etag, "size": file.size, "pointerSize": 134}} if file.lfs else entry

    def _json(self, body: object, status: int = 200, more: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _file(self, file: File, head: bool) -> None:
        start, end = 0, file.size
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            start, end = int(match[1]), int(match[2]) + 1 if match[2] else file.size
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{file.size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", f'"{file.etag}"')
        if file.lfs:
            self.send_header("X-Linked-Etag", f'"{file.etag}"')
            self.send_header("X-Linked-Size", str(file.size))
        self.end_headers()
        if not head:
            self._body(file, start, end)

    def _body(self, file: File, start: int, end: int) -> None:
        due = time.monotonic()
        for at in range(start, end, PIECE):
            piece = file.content(at, min(end, at + PIECE))
            try:
                self.wfile.write(piece)
            except ConnectionError:  # the downloader was killed
                self.close_connection = True
                return
            now = time.monotonic()
            due = max(now, due) + len(piece) / self.rate  # what a stopped server missed is not made up for
            time.sleep(due - now)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def main(address: str, rate: str) -> None:
    """Serve until standard input ends."""
    Hub.known, Hub.rate = {file.path: file for file in files()}, float(rate)
    server = ThreadingHTTPServer((address, 0), Hub)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sizes = {file.path: file.size for file in Hub.known.values()}
    url = f"http://{address}:{server.server_address[1]}"
    print(json.dumps({"url": url, "model": MODEL, "revision": REVISION, "main": MAIN, "files": sizes}), flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
