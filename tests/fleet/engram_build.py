"""Builds a small Engram row copy in the way of engram_local.py (aidendle94/sparkrun-recipes): for tests on hosts.

`python3 engram_build.py SOURCE DESTINATION LAYER:START:END... [--mb-s=N] [--hurry=FILE] [--holes]`: sparse shards with
the apparent size of the whole tables, the rows of each range at their own offsets, the manifest last. `--mb-s` holds
until FILE is there, `--holes` leaves every other piece unwritten. Runs on a python3 that cannot import json.
"""

import os
import sys
import time

ROW = 264
HEADER = 4096
SHARDS = {1: "model-00047-of-00048.safetensors", 14: "model-00048-of-00048.safetensors"}
TABLES = {1: 90_000, 14: 90_300}
MB = 1_000_000
PIECE = 250_000


def main(arguments: "list[str]") -> None:
    """Raises OSError where the disk is full, as the tool does."""
    options = [word for word in arguments if word.startswith("--")]
    source, destination, *ranges = [word for word in arguments if not word.startswith("--")]
    rate = next((float(word[7:]) * MB for word in options if word.startswith("--mb-s=")), 1e12)
    os.makedirs(destination, exist_ok=True)
    hurry = next((word[8:] for word in options if word.startswith("--hurry=")), "")
    due = time.monotonic()
    layers = []
    for word in ranges:
        layer, start, end = (int(part) for part in word.split(":"))
        layers.append('"%d": [%d, %d]' % (layer, start, end))  # noqa: UP031
        fd = os.open(os.path.join(destination, SHARDS[layer]), os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(fd, HEADER + TABLES[layer] * ROW)
        at, last = HEADER + start * ROW, HEADER + end * ROW
        odd = False
        while at < last:
            size = min(PIECE, last - at)
            odd = not odd
            if odd or "--holes" not in options:
                os.pwrite(fd, os.urandom(size), at)
            at += size
            due = max(time.monotonic(), due) + size / rate
            while not os.path.exists(hurry) and time.monotonic() < due:
                time.sleep(0.05)
        os.close(fd)
    with open(os.path.join(destination, "engram-local.json"), "w") as manifest:
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        manifest.write('{"source": "%s", "layers": {%s}, "quant": "fp8", ' % (source, ", ".join(layers)))  # noqa: UP031
        manifest.write('"created": "%s", "note": "sparse"}\n' % created)  # noqa: UP031


if __name__ == "__main__":
    main(sys.argv[1:])
