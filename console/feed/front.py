"""The proxy in front of an engine: what clients really talk to, asked beside the engine's own port."""

from __future__ import annotations

import asyncio
import time

from console.feed.kept import Kept
from console.feed.silence import WORDS, Silence
from console.reach.engine_http import EngineHttp
from console.reach.link import Link
from console.readings.answers import HttpAnswer, Transport
from console.readings.link import LinkStatus
from console.readings.quality import Reading

INTERVAL_S = 10.0
LIMIT_S = 10.0
MOST_BYTES = 64 * 1024
PATH = "/v1/models"
"""Every OpenAI-like proxy answers it, without a generation; one that wants a key says 401, and so lets clients in."""
REACHABLE_CHECK_S = 0.2


class FrontFeed:
    """Asks one front again and again."""

    def __init__(self, url: str, link: Link | None, silence: Silence) -> None:
        """`link` is the head's, None for one that this machine asks itself; `silence` is that of the head."""
        self._link = link
        self._silence = silence
        self._http = EngineHttp(url, link)
        self._kept: Kept[HttpAnswer] = Kept(f"{url}{PATH}", INTERVAL_S)

    def reading(self, down_since: float | None) -> Reading[HttpAnswer]:
        """What it said last."""
        return self._kept.reading(down_since)

    def age_by(self, seconds: float) -> None:
        """Older by the seconds that the machine slept."""
        self._kept.age_by(seconds)

    def fail(self, why: str) -> None:
        """Note why asking failed."""
        self._kept.fail(why)

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            while self._link is not None and self._link.state.status is not LinkStatus.UP:  # noqa: ASYNC110
                await asyncio.sleep(REACHABLE_CHECK_S)
            began = time.monotonic()
            answer = await self._http.get(PATH, limit=LIMIT_S, max_bytes=MOST_BYTES)
            if answer.transport is Transport.UNREACHABLE:
                self._kept.fail(answer.detail or "unreachable")
            elif self._silence.swallows(answer):
                self._kept.fail(WORDS)
            else:
                self._kept.put(answer, answer.at)
            await asyncio.sleep(max(0.1, INTERVAL_S - (time.monotonic() - began)))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.close()
