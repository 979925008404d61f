"""The console calls people: once for each new alarm, by bell, terminal and webhook; what nobody saw is still shown."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import pictures
from fixed import FixedSource, console, text_of, until
from moved import later
from rich.cells import cell_len

from console.alarms import Alarm
from console.alarms.book import CLEAR_AFTER_S, AlarmState, Booked
from console.app import LaneswapApp
from console.fleet.inventory import parse
from console.notify import OPENING_S
from console.snapshot import Severity, Snapshot
from widgets import bars
from widgets.ink import LOOK

NOW = pictures.NOW


def low(seconds: float, free: float = 2.9) -> Snapshot:
    """n3 is critical on memory."""
    picture = pictures.spark4()
    host = replace(picture.hosts[2], memory=pictures.reading(pictures.memory(free, 62.0, 61.0)))
    return later(replace(picture, hosts=(*picture.hosts[:2], host, picture.hosts[3])), seconds)


def well(seconds: float) -> Snapshot:
    return later(pictures.spark4(), seconds)


def gone(
    key: str = "memory:n3", severity: Severity = Severity.ACT, ended: float = pictures.WALL, **extra: Any
) -> Booked:
    alarm = Alarm(key, severity, key.partition(":")[2], extra.pop("text", "free 2.9 of 119.7 GiB, 61.0 cached"), "")
    return Booked(alarm, AlarmState.RETURNED, ended - 60, NOW, ended)


# --- what the alarm line says of those that nobody saw --------------------------------------------------------------


@pytest.mark.parametrize("width", range(20, 210, 5))
def test_a_returned_alarm_has_the_line_for_as_long_as_nobody_saw_it(width: int) -> None:
    row = bars.alarm_line(pictures.glance(pictures.spark4(), returned=(gone(),)), width)
    assert cell_len(pictures.texts((row,))[0]) == width
    if width >= 120:
        said = pictures.texts((row,))[0]
        assert said.startswith(" returned 21:55:10Z n3 free 2.9 of 119.7 GiB, 61.0 cached ")
        assert said.rstrip().endswith("a clears")
        assert pictures.ink_at(row, "returned") == LOOK


def test_the_worst_returned_one_comes_first_and_the_rest_is_counted() -> None:
    mild = gone("stale:n1", Severity.LOOK, pictures.WALL + 50, text="memory no reading for 9s")
    row = bars.alarm_line(pictures.glance(pictures.spark4(), returned=(mild, gone())), 120)
    assert "n3 free 2.9" in pictures.texts((row,))[0] and "+1 more" in pictures.texts((row,))[0]


def test_what_is_wrong_now_goes_before_what_has_returned_until_it_was_seen() -> None:
    shown = pictures.glance(pictures.spark4(), alarms=(pictures.STALE,), returned=(gone(),))
    assert "memory reading for 14s" in pictures.texts((bars.alarm_line(shown, 120),))[0]
    seen = replace(shown, acknowledged=frozenset({pictures.STALE.key}))
    said = pictures.texts((bars.alarm_line(seen, 120),))[0]
    assert said.startswith(" returned") and "+1 more" in said


def test_the_line_is_drawn_anew_when_one_returns() -> None:
    bar = bars.AlarmBar()
    shown = pictures.glance(pictures.spark4())
    assert bar.slice(shown) != bar.slice(replace(shown, returned=(gone(),)))


# --- in the running console -----------------------------------------------------------------------------------------


class Heard:
    """A console whose bell and terminal are listened to."""

    def __init__(self, app: LaneswapApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bells, self.written = 0, list[str]()
        monkeypatch.setattr(app.calling, "_ways", replace(app.calling._ways, bell=self.ring, write=self.written.append))
        app.calling._caller = None

    def ring(self) -> None:
        self.bells += 1


async def test_a_new_critical_alarm_calls_once_returns_and_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    monkeypatch.delenv("VTE_VERSION", raising=False)
    picture = [well(0.0)]
    async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
        heard = Heard(app, monkeypatch)

        async def show(next_picture: Snapshot) -> str:
            picture[0] = next_picture
            app.tick()
            await pilot.pause()
            return text_of(app)

        await show(well(1.0))
        for seconds in range(3, 18, 3):
            await show(low(OPENING_S + seconds))
        assert (heard.bells, len(heard.written)) == (1, 1)
        assert heard.written[0].startswith("\x1b]9;laneswap spark4: CRIT n3 free 2.9 of 119.7 GiB")
        await show(well(OPENING_S + 20))
        said = await show(well(OPENING_S + 21 + CLEAR_AFTER_S))
        assert "returned" in said and "n3 free 2.9 of 119.7 GiB, 61.0 cached" in said and "a clears" in said
        await pilot.press("a")
        await pilot.pause()
        said = text_of(app)
        assert "no alarms" in said and "its cause was gone already" in said
        assert (heard.bells, len(heard.written)) == (1, 1)
        assert not app.faults.newest


async def test_an_acknowledged_alarm_that_goes_is_not_shown_as_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = [well(0.0)]
    async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
        for next_picture in (well(1.0), low(OPENING_S + 5)):
            picture[0] = next_picture
            app.tick()
        await pilot.press("a")
        for seconds in (6.0, 7.0 + CLEAR_AFTER_S):
            picture[0] = well(OPENING_S + seconds)
            app.tick()
        await pilot.pause()
        assert app.calling.returned == () and "no alarms" in text_of(app)


async def test_nobody_is_called_for_what_was_there_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = [low(0.0)]
    async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
        heard = Heard(app, monkeypatch)
        for seconds in (1.0, OPENING_S - 1, OPENING_S + 5, OPENING_S + 60):
            picture[0] = low(seconds)
            app.tick()
            await pilot.pause()
        assert (heard.bells, heard.written) == (0, [])


# --- the webhook, from a running console to a server ----------------------------------------------------------------


class Server:
    """An HTTP server on loopback that keeps what is posted to it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(int(r.split(b":")[1]) for r in head.split(b"\r\n") if r.lower().startswith(b"content-le"))
                self.heads.append(head)
                self.bodies.append(json.loads(await reader.readexactly(size)))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def server() -> AsyncIterator[Server]:
    found = Server()
    listening = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = listening.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        listening.close()


def hooked(picture: Snapshot, *, rehearsal: bool = False) -> Snapshot:
    """With a fleet that names a webhook."""
    fleet = parse(f'{pictures.SPARK4}\n[notify]\nwebhook_env = "LANESWAP_TEST_HOOK"\nbell = false\nterminal = false\n')
    return replace(picture, fleet=fleet, rehearsal=rehearsal)


async def test_a_webhook_hears_of_an_alarm_and_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server() as hook:
        monkeypatch.setenv("LANESWAP_TEST_HOOK", f"http://127.0.0.1:{hook.port}/s3cr3t")
        picture = [hooked(well(0.0))]
        async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
            for next_picture in (low(OPENING_S + 5), well(OPENING_S + 6), well(OPENING_S + 7 + CLEAR_AFTER_S)):
                picture[0] = hooked(next_picture)
                app.tick()
                await pilot.pause()
            await until(pilot, lambda: len(hook.bodies) == 2)
            assert "s3cr3t" not in text_of(app)
        raised, ended = hook.bodies
        assert raised["text"] == "[spark4] CRIT n3: free 2.9 of 119.7 GiB, 61.0 cached (stop copy or drop cache)"
        assert (raised["change"], raised["severity"], raised["key"]) == ("raised", "CRIT", "memory:n3")
        assert (ended["change"], ended["text"]) == ("ended", "[spark4] OK n3: free 2.9 of 119.7 GiB, 61.0 cached")
        assert raised["rehearsal"] is False and hook.heads[0].startswith(b"POST /s3cr3t HTTP/1.1\r\n")


async def test_a_rehearsal_posts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server() as hook:
        monkeypatch.setenv("LANESWAP_TEST_HOOK", f"http://127.0.0.1:{hook.port}/")
        picture = [hooked(well(0.0), rehearsal=True)]
        async with console(FixedSource(lambda _: picture[0])) as (app, pilot):
            picture[0] = hooked(low(OPENING_S + 5), rehearsal=True)
            app.tick()
            await pilot.pause()
            assert "memory:n3" in {alarm.key for alarm in app.picture().alarms}  # type: ignore[union-attr]
        assert hook.heads == []


async def test_a_webhook_that_is_no_url_is_said_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANESWAP_TEST_HOOK", "hooks.invalid/s3cr3t")
    async with console(FixedSource(hooked(well(0.0)))) as (app, pilot):
        await pilot.pause()
        said = text_of(app)
        assert "LANESWAP_TEST_HOOK: not an http:// or https:// URL" in said and "s3cr3t" not in said
