"""What the tests of the operator's hands share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hands_scene import Scene


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    made = Scene(tmp_path, monkeypatch)
    await made.feed.start()
    try:
        await made.until(lambda: made.acting() is not None, "the head was read")
        yield made
    finally:
        await made.feed.stop()
