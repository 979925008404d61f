"""Writes a small checkpoint with the layout of the real one: 48 shards, the Engram tables in the last two.

`checkpoint.py hub REPO REVISION` adds a snapshot to a cache folder (blobs, snapshots, refs).
`checkpoint.py folder FOLDER REVISION RANK RANKS` writes plain files, of the tables the rows of one rank alone, and
their manifest last. Every revision has rows of its own, so that rows of another one can be told. Runs on a python3
that cannot import json.
"""

import hashlib
import os
import sys
import time

TABLES = {1: 24_000, 14: 24_080}
SHARDS = {1: 47, 14: 48}
WEIGHT, SCALE = 256, 8


def shard_name(number: int) -> str:
    """Of 48."""
    return f"model-{number:05d}-of-00048.safetensors"


def header(layer: int) -> bytes:
    """The safetensors header of a shard with one table."""
    rows = TABLES[layer]
    name = f"layers.{layer}.engram.embed"
    weight = f'"{name}.weight":{{"dtype":"F8_E4M3","shape":[{rows},{WEIGHT}],"data_offsets":[0,{rows * WEIGHT}]}}'
    last = rows * (WEIGHT + SCALE)
    scale = f'"{name}.scale":{{"dtype":"F8_E8M0","shape":[{rows},{SCALE}],"data_offsets":[{rows * WEIGHT},{last}]}}'
    text = f"{{{weight},{scale}}}".encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write_table(path: str, revision: str, layer: int, start: int, end: int) -> None:
    """A shard of the table's whole apparent size that holds these rows."""
    head = header(layer)
    digests = [hashlib.sha256(f"{revision}/{layer}/{row}".encode()).digest() for row in range(start, end)]
    with open(path, "wb") as shard:
        shard.write(head)
        shard.truncate(len(head) + TABLES[layer] * (WEIGHT + SCALE))
        shard.seek(len(head) + start * WEIGHT)
        shard.write(b"".join(digest * 8 for digest in digests))
        shard.seek(len(head) + TABLES[layer] * WEIGHT + start * SCALE)
        shard.write(b"".join(digest[:SCALE] for digest in digests))


def small_files(revision: str) -> "dict[str, bytes]":
    """All files but the tables' shards."""
    tables = ", ".join(f'"{layer}": {rows}' for layer, rows in TABLES.items())
    config = f'{{"architectures": ["DeepseekV41ForCausalLM"], "revision": "{revision}", "engram_rows": {{{tables}}}}}\n'
    parts = [(f"layers.{layer}.engram.embed.{kind}", SHARDS[layer]) for layer in TABLES for kind in ("weight", "scale")]
    parts += [(f"layers.{number}.mlp", number) for number in range(1, 47)]
    lines = ",\n".join(f'    "{tensor}": "{shard_name(number)}"' for tensor, number in parts)
    index = f'{{"metadata": {{}}, "weight_map": {{\n{lines}\n}}}}\n'
    files = {"config.json": config.encode(), "model.safetensors.index.json": index.encode()}
    for number in range(1, 47):
        files[shard_name(number)] = hashlib.sha256(f"{revision}/{number}".encode()).digest() * 64
    return files


def write_hub(repo: str, revision: str) -> None:
    """Blobs by their hash, relative links in the snapshot, a ref to it."""
    snapshot = f"{repo}/snapshots/{revision}"
    for folder in ("blobs", "refs", f"snapshots/{revision}"):
        os.makedirs(f"{repo}/{folder}", exist_ok=True)
    for name, content in small_files(revision).items():
        blob = hashlib.sha256(content).hexdigest()
        with open(f"{repo}/blobs/{blob}", "wb") as file:
            file.write(content)
        link(f"../../blobs/{blob}", f"{snapshot}/{name}")
    for layer, rows in TABLES.items():
        half = f"{repo}/blobs/half"
        write_table(half, revision, layer, 0, rows)
        with open(half, "rb") as file:
            blob = hashlib.sha256(file.read()).hexdigest()
        os.rename(half, f"{repo}/blobs/{blob}")
        link(f"../../blobs/{blob}", f"{snapshot}/{shard_name(SHARDS[layer])}")
    with open(f"{repo}/refs/main", "w") as file:
        file.write(revision)


def link(target: str, path: str) -> None:
    """A link in place of whatever is there."""
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)


def write_folder(folder: str, revision: str, rank: int, ranks: int) -> None:
    """Plain files, and of the tables the rows of one rank."""
    os.makedirs(folder, exist_ok=True)
    for name, content in small_files(revision).items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(content)
    layers = []
    for layer, rows in TABLES.items():
        start, end = rows * rank // ranks, rows * (rank + 1) // ranks
        write_table(f"{folder}/{shard_name(SHARDS[layer])}", revision, layer, start, end)
        layers.append(f'"{layer}": [{start}, {end}]')
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with open(f"{folder}/engram-local.json.partial", "w") as manifest:
        manifest.write(f'{{"layers": {{{", ".join(layers)}}}, "rank": {rank}, "tp_size": {ranks}, ')
        manifest.write(
            f'"revision": "{revision}", "source": "cut:/srv/full", "sha256": {{}}, "created": "{created}"}}\n'
        )
    os.rename(f"{folder}/engram-local.json.partial", f"{folder}/engram-local.json")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hub", repo, revision]:
            write_hub(repo, revision)
        case ["folder", folder, revision, rank, ranks]:
            write_folder(folder, revision, int(rank), int(ranks))
        case _:
            sys.exit(__doc__)
