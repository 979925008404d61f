"""Tasks that must not die: a fault in one source is shown and retried, and never takes the console down."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from console.sanitize import line

log = logging.getLogger("laneswap.feed")
log.addHandler(logging.NullHandler())  # without any handler Python prints to the terminal, which is the console's

RETRY_FIRST_S = 0.5
RETRY_MOST_S = 30.0


async def forever(name: str, work: Callable[[], Awaitable[None]], fault: Callable[[str], None]) -> None:
    """Run `work` again and again; an error is handed to `fault` as text and delays the next run (capped, with jitter).

    A normal return of `work` is run again after the first delay: sources are not supposed to end.
    """
    delay = RETRY_FIRST_S
    while True:
        try:
            await work()
            delay = RETRY_FIRST_S
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("%s failed", name)
            fault(line(f"{type(error).__name__}: {error}", 300))
            delay = min(RETRY_MOST_S, delay * 2)
        await asyncio.sleep(delay * random.uniform(0.8, 1.2))  # noqa: S311 - jitter, not a secret
