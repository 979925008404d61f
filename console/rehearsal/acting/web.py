"""HTTP as a host asks its own engine: real requests to where the played engine really listens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from urllib.parse import urlsplit

from console.rehearsal.acting.playing import Job, number

HEALTH_S, MODELS_S, METRICS_S = 25.0, 10.0, 10.0
"""Seconds that the scripts give each of them."""
MOST_BYTES = 1_000_000
_COUNTS = re.compile(
    r"(?m)^(?:vllm:num_requests_(?:running|waiting)|sglang:num_(?:running|queue)_reqs|"
    r"llamacpp:requests_(?:processing|deferred))[{ ].*?([0-9.]+)$"
)


async def get(job: Job, url: str, seconds: float) -> tuple[int, str]:
    """(status, body) of one of the host's own URLs; status 0: no answer."""
    place = urlsplit(url)
    port = job.boxes.port_of(place.port or 80)
    if place.scheme != "http" or port is None:
        return 0, ""
    with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                path = place.path or "/"
                writer.write(f"GET {path} HTTP/1.0\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read(MOST_BYTES)
                while more := await reader.read(MOST_BYTES):
                    answer += more
            finally:
                writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), body.decode("utf-8", "replace")
    return 0, ""


async def serves(job: Job, base: str, health: str, name: str) -> tuple[int, str]:
    """(0, words) where health is 200 and the name is among the models, else (1, words)."""
    code, _ = await get(job, base + health, HEALTH_S)
    if code != 200:
        return 1, f"health {code:03}"
    if not name:
        return 0, "health 200"
    code, body = await get(job, f"{base}/v1/models", MODELS_S)
    if code != 200:
        return 1, f"health 200, models {code:03}"
    if f'"id":{json.dumps(name)}' not in re.sub(r"[ \t\r\n]", "", body):
        return 1, f"health 200, {name} is not among the models"
    return 0, f"health 200, serves {name}"


async def serving(job: Job) -> int:
    """serving.sh."""
    code, words = await serves(job, *job.args)
    job.say(words)
    return code


async def drain(job: Job) -> int:
    """drain.sh: waits until no request runs; its seconds are the operator's own, not the scenario's."""
    url, seconds = job.args
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        code, body = await get(job, url, METRICS_S)
        counts = [float(text) for text in _COUNTS.findall(body)]
        took = loop.time() - began
        if code == 200 and counts and not sum(counts):
            job.say(f"no request runs after {took:.0f} s")
            return 0
        if took >= number(seconds):
            if not counts:
                raise job.no(f"after {seconds} s it is not known what runs (metrics {code:03})")
            raise job.no(f"{sum(counts):.0f} requests still run after {seconds} s")
        await asyncio.sleep(1.0)


TWINS = {"serving.sh": serving, "drain.sh": drain}
