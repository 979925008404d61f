"""A small snapshot with the row tables where real ones have them, and a copier in the way of engram_local.py."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from console.readings.row_types import RowRange

REVISION = "89abcdef0123456789abcdef0123456789abcdef"
TABLES = {1: 900, 14: 910}
SHARDS = {1: "model-00047-of-00048.safetensors", 14: "model-00048-of-00048.safetensors"}
RANGES = (RowRange(1, 300, 620), RowRange(14, 310, 640))
COPIER = '''
"""Copies rows as engram_local.py does (same offsets, sparse, manifest before its own check); FAULT spoils it."""
import json, os, struct, sys, time
fault = os.environ.get("FAULT") or sys.argv[1]
src, dst = sys.argv[2:4]
layers = {}
os.makedirs(dst, exist_ok=True)
if fault == "exit 3": sys.exit(3)
weight_map = json.load(open(src + "/model.safetensors.index.json"))["weight_map"]
def manifest():
    of = src if fault != "revision" else src.replace("/89abcdef", "/99abcdef")
    json.dump({"source": of, "layers": layers, "quant": "fp8"}, open(dst + "/engram-local.json", "w"), indent=1)
for word in sys.argv[4:]:
    layer, start, end = map(int, word.split(":"))
    layers[str(layer)] = [start, end if fault != "ranges" else end - 1]
if fault == "early":
    manifest()
    time.sleep(0.05)
for layer, (start, end) in layers.items():
    for kind in ("weight", "scale"):
        name = f"layers.{layer}.engram.embed.{kind}"
        with open(f"{src}/{weight_map[name]}", "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            head = struct.pack("<Q", size) + file.read(size)
            entry = json.loads(head[8:])[name]
            row = entry["shape"][1]
            at = len(head) + entry["data_offsets"][0] + start * row
            file.seek(at)
            data = file.read((end - start) * row)
            whole = os.fstat(file.fileno()).st_size
        out = os.open(f"{dst}/{weight_map[name]}", os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(out, whole)
        os.pwrite(out, head if fault != "header" else head[:-1] + b"x", 0)
        if fault == "rows":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if fault == "holes" and kind == "weight":
            data = data[:4096]
        os.pwrite(out, data, at)
        os.fsync(out)
        os.close(out)
if fault != "early":
    manifest()
print("verify: 8008 rows checked, %d mismatches; elapsed 1s" % (10 if fault == "mismatch" else 0), flush=True)
sys.exit(1 if fault == "exit 1" else 0)
'''


def make_snapshot(repo: Path, revision: str, seed: int) -> Path:
    """A snapshot as the hub has it: links to blobs, an index, two shards with weight and scale."""
    folder = repo / "snapshots" / revision
    blobs = repo / "blobs"
    folder.mkdir(parents=True)
    blobs.mkdir(exist_ok=True)
    weight_map = {}
    for layer, rows in TABLES.items():
        names = {f"layers.{layer}.engram.embed.{kind}": width for kind, width in (("weight", 256), ("scale", 8))}
        at, header = 512, {"__metadata__": {"format": "pt"}, "head.weight": _entry("BF16", [16, 16], 0, 512)}
        for name, width in names.items():
            header[name] = _entry("F8_E4M3", [rows, width], at, at + rows * width)
            weight_map[name] = SHARDS[layer]
            at += rows * width
        text = json.dumps(header, separators=(",", ":")).encode()
        blob = blobs / f"{revision[:8]}{layer}"
        noise = bytes((index * 31 + index // 251 + seed * layer) % 251 for index in range(at))
        blob.write_bytes(struct.pack("<Q", len(text)) + text + noise)
        (folder / SHARDS[layer]).symlink_to(f"../../blobs/{blob.name}")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}, indent=2))
    return folder


def _entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
