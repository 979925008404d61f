"""Copies one rank's rows of the Engram tables into sparse shards: what tools/engram_local.py of the fleets does.

    engram_local.py SOURCE DESTINATION LAYER:START:END... [--mbps=N]

The same words on its output, the same order (the manifest before the check, which is the last thing), the same exit
codes. A number in ~/sgl-dsv41-cache/copier is a cap in MB/s that nobody asked for: a slow disk. Runs on a python3 that
cannot import json.
"""

import os
import re
import sys
import time

GIB = 1 << 30
PIECE = 256 << 10
SHARDS = {1: "model-00047-of-00048.safetensors", 14: "model-00048-of-00048.safetensors"}
SLOW = os.path.expanduser("~/sgl-dsv41-cache/copier")


def limit(wanted: float) -> float:
    """MB/s now."""
    try:
        with open(SLOW) as file:
            return min(wanted, float(file.read()))
    except (OSError, ValueError):
        return wanted


def tables(shard: str, layer: int) -> "list[tuple[int, int]]":
    """(offset of row 0, bytes a row) of a layer's weights and scales."""
    with open(shard, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length).decode()
    found = []
    for kind in ("weight", "scale"):
        name = re.escape(f"layers.{layer}.engram.embed.{kind}")
        match = re.search(rf'"{name}":{{[^}}]*"shape":\[\d+,(\d+)\],"data_offsets":\[(\d+),', text)
        if match is None:
            raise OSError(f"{shard} has no {kind} of layer {layer}")
        found.append((8 + length + int(match[2]), int(match[1])))
    return found


def copy(source: int, target: int, at: int, end: int, wanted: float) -> None:
    """Bytes [at, end) in pieces, at most `wanted` MB/s."""
    while at < end:
        piece = os.pread(source, min(PIECE, end - at), at)
        if not piece:
            raise OSError(f"short read at {at}")
        os.pwrite(target, piece, at)
        at += len(piece)
        time.sleep(len(piece) / (limit(wanted) * 1e6))


def check_room(target: str, need: int) -> None:
    """The copy and 1 GiB, counted before anything is written over."""
    room = os.statvfs(target)
    free = room.f_bavail * room.f_frsize
    if free < need + GIB:
        wanted, there = (need + GIB) / GIB, free / GIB
        sys.exit(f"not enough free space at {target}: need about {wanted:.0f} GiB, have {there:.0f} GiB")


def main(words: "list[str]") -> int:
    """0, or 1 where a row differs or there is no room, 2 for wrong usage."""
    options = [word for word in words if word.startswith("--")]
    plain = [word for word in words if not word.startswith("--")]
    if len(plain) < 3:
        print(__doc__)
        return 2
    source, target, *ranges = plain
    rate = next((float(word[7:]) for word in options if word.startswith("--mbps=")), 600.0)
    parts = [tuple(int(number) for number in word.split(":")) for word in ranges]
    need = sum((end - start) * 264 for _, start, end in parts)
    os.makedirs(target, exist_ok=True)
    check_room(target, need)
    began = time.time()
    print(f"copying {need / GIB:.1f} GiB in {2 * len(parts)} ranges, limit {rate:.0f} MB/s", flush=True)
    opened = []
    for layer, start, end in parts:
        shard = f"{source}/{SHARDS[layer]}"
        places = tables(shard, layer)
        fds = os.open(shard, os.O_RDONLY), os.open(f"{target}/{SHARDS[layer]}", os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(fds[1], os.fstat(fds[0]).st_size)
        os.pwrite(fds[1], os.pread(fds[0], places[0][0], 0), 0)
        for first, width in places:
            copy(*fds, first + start * width, first + end * width, rate)
            opened.append((fds, first, width, start, end))
        done = sum((to - at) * 264 for _, at, to in parts[: parts.index((layer, start, end)) + 1])
        rated = done / max(time.time() - began, 0.001) / 1e6
        shown = f"{done / GIB:6.1f} / {need / GIB:.1f} GiB  {rated:5.0f} MB/s"
        print(f"  {shown}  {time.time() - began:5.0f}s", flush=True)
        os.fsync(fds[1])
    finish(source, target, parts)
    return verify(opened, began)


def finish(source: str, target: str, parts: "list[tuple[int, ...]]") -> None:
    """Index and manifest."""
    with open(f"{source}/model.safetensors.index.json", "rb") as index:
        content = index.read()
    with open(f"{target}/model.safetensors.index.json", "wb") as index:
        index.write(content)
    layers = ",\n".join(f'  "{layer}": [\n   {start},\n   {end}\n  ]' for layer, start, end in parts)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with open(f"{target}/engram-local.json", "w") as manifest:
        manifest.write(f'{{\n "source": "{source}",\n "layers": {{\n{layers}\n }},\n "quant": "fp8",\n')
        manifest.write(f' "created": "{created}",\n "note": "sparse copy: only these rows exist"\n}}\n')


def verify(opened: "list[tuple[tuple[int, int], int, int, int, int]]", began: float) -> int:
    """First, last and 200 scattered rows of each table, byte for byte."""
    checked = wrong = 0
    for (source, target), first, width, start, end in opened:
        for step in range(202):
            at = first + (start + (end - 1 - start) * step // 201) * width
            checked += 1
            wrong += os.pread(source, width, at) != os.pread(target, width, at)
    print(f"verify: {checked} rows checked, {wrong} mismatches; elapsed {time.time() - began:.0f}s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
