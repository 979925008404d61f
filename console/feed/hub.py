"""A Hub, asked for what a revision consists of and where the main branch stands; or a manifest of the operator's.

The list of a revision never changes, so it is asked for once; the main branch every quarter of an hour. Nothing here
raises for what a Hub does, and the token of HF_TOKEN goes to the hub itself only, and there only by https or on this
machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from console.feed.kept import Kept
from console.fleet.places import DownloadPlace
from console.plainfile import read_plain
from console.reach.engine_http import EngineHttp
from console.readings.answers import HttpAnswer, Transport
from console.readings.expected import Expected, parse_expected, parse_main
from console.readings.quality import Reading
from console.sanitize import line, word

MAIN_EVERY_S = 900.0
RETRY_FIRST_S = 30.0
LIMIT_S = 60.0
"""Seconds for one answer, whatever becomes of it."""
MOST_BYTES = 16 << 20
MANIFEST_EVERY_S = 60.0


class HubFeed:
    """What one download should come to. `run` asks until it is cancelled; the rest is what is known so far.

    `changed` is called when a list or the main branch is known anew.
    """

    def __init__(
        self,
        place: DownloadPlace,
        *,
        changed: Callable[[], None] = lambda: None,
        environment: Mapping[str, str] | None = None,
        main_every: float = MAIN_EVERY_S,
        retry_first: float = RETRY_FIRST_S,
    ) -> None:
        self._place = place
        self._changed = changed
        self._token = _token(place.hub, os.environ if environment is None else environment)
        self._main_every, self._retry_first = main_every, retry_first
        self._source = f"{word(urlsplit(place.hub).netloc, 100)}/{word(place.model, 200)}"
        self._main: Kept[str] = Kept(self._source, main_every)
        self._expected: Expected | None = None
        self._revision = place.revision
        self._asked = asyncio.Event()
        self._etag = ""
        self._stamp: tuple[int, int, int] | None = None
        self._failures = {"list": 0, "main": 0}
        self._due = {"list": 0.0, "main": 0.0, "manifest": 0.0}

    @property
    def expected(self) -> Expected | None:
        """What the wanted revision consists of, or with a `problem`: why that is not known; None before any answer."""
        return self._expected

    @property
    def upstream(self) -> str:
        """The commit of the main branch; '' while that is not known, or no longer."""
        reading = self.main
        return reading.current(time.monotonic()) or ""

    @property
    def main(self) -> Reading[str]:
        """The commit of the main branch with its age, or why it could not be had."""
        return self._main.reading(None)

    def want(self, revision: str) -> None:
        """Ask for the files of this revision from now on; '' asks for none."""
        if revision != self._revision:
            self._revision = revision
            self._due["list"], self._failures["list"] = 0.0, 0
            if not self._place.manifest:
                self._expected = None
            self._asked.set()

    async def run(self) -> None:
        """Ask whatever is due, forever."""
        http = EngineHttp(self._place.hub, None) if self._place.hub and self._place.model else None
        try:
            while True:
                self._asked.clear()
                await self._round(http)
                soonest = min(self._due.values()) - time.monotonic()
                try:
                    async with asyncio.timeout(max(0.05, soonest)):
                        await self._asked.wait()
                except TimeoutError:
                    pass
        finally:
            if http is not None:
                await http.close()

    async def _round(self, http: EngineHttp | None) -> None:
        if self._place.manifest:
            if self._is_due("manifest"):
                await self._read_manifest()
            self._due["list"] = float("inf")
        else:
            self._due["manifest"] = float("inf")
        if http is None:
            self._due["list"] = self._due["main"] = float("inf")
            return
        if self._is_due("list"):
            await self._ask_list(http)
        if self._is_due("main"):
            await self._ask_main(http)

    def _is_due(self, what: str) -> bool:
        return time.monotonic() >= self._due[what]

    # --- the operator's own list

    async def _read_manifest(self) -> None:
        self._due["manifest"] = time.monotonic() + MANIFEST_EVERY_S
        found = await asyncio.to_thread(_read_file, self._place.manifest, self._stamp)
        if found is None:
            return
        self._stamp, expected = found
        self._keep(expected)

    # --- the Hub

    async def _ask_list(self, http: EngineHttp) -> None:
        revision = self._revision
        if not revision:
            self._due["list"] = float("inf")
            return
        answer = await self._get(http, f"{self._path()}/revision/{quote(revision, safe='')}?blobs=true")
        if revision != self._revision:
            return
        problem = self._problem(answer)
        source = f"{self._source} at {revision[:7]}"
        if not problem:
            text = answer.body.decode("utf-8", "replace")
            expected = await asyncio.to_thread(parse_expected, text, source)
            problem = expected.problem
            if not problem and expected.revision and not expected.revision.startswith(revision):
                problem = f"it answers for {expected.revision[:7]}"
        if problem:
            self._keep(Expected((), source, revision, problem=problem))
            self._again("list", answer)
            return
        self._keep(expected)
        self._failures["list"], self._due["list"] = 0, float("inf")

    async def _ask_main(self, http: EngineHttp) -> None:
        headers = {"if-none-match": self._etag} if self._etag and self._main.value else {}
        answer = await self._get(http, self._path(), headers)
        if answer.status == 304 and self._main.value:
            self._main.put(self._main.value)
            self._failures["main"], self._due["main"] = 0, time.monotonic() + self._main_every
            return
        problem = self._problem(answer)
        commit = "" if problem else parse_main(answer.body.decode("utf-8", "replace"))
        if not commit:
            self._main.fail(problem or "its answer names no commit")
            self._again("main", answer)
            return
        before = self._main.value
        self._main.put(commit)
        self._etag = line(answer.header("etag"), 200)
        self._failures["main"], self._due["main"] = 0, time.monotonic() + self._main_every
        if commit != before:
            self._changed()

    def _path(self) -> str:
        return f"/api/models/{quote(self._place.model, safe='/')}"

    async def _get(self, http: EngineHttp, path: str, more: Mapping[str, str] | None = None) -> HttpAnswer:
        headers = {"accept": "application/json", **(more or {})}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        return await http.get(path, limit=LIMIT_S, max_bytes=MOST_BYTES, headers=headers)

    def _problem(self, answer: HttpAnswer) -> str:
        """Why an answer is none, in words; '' for a good one."""
        if answer.transport is Transport.TOO_LARGE:
            return f"an answer of more than {MOST_BYTES >> 20} MiB"
        if answer.transport is not Transport.ANSWERED:
            return line(answer.detail or answer.transport.value, 200)
        if answer.status == 200:
            return ""
        if answer.status in (401, 403):
            way = "HF_TOKEN may not read it" if self._token else "set HF_TOKEN to a token that may read it"
            return f"HTTP {answer.status}: {way}"
        if answer.status == 404:
            return "HTTP 404: no such model or revision there"
        away = answer.status is not None and 300 <= answer.status < 400
        return f"HTTP {answer.status}" + (": it sends to another place, which is not asked" if away else "")

    def _again(self, what: str, answer: HttpAnswer) -> None:
        """After a failure: later each time, and not before the hub says."""
        delay = min(self._main_every, self._retry_first * 2 ** min(self._failures[what], 16))
        asked = answer.header("retry-after")
        if asked.isascii() and asked.isdecimal():
            delay = max(delay, min(self._main_every, float(asked[:6])))
        self._failures[what] += 1
        self._due[what] = time.monotonic() + delay

    def _keep(self, expected: Expected) -> None:
        if expected != self._expected:
            self._expected = expected
            self._changed()


def _token(hub: str, environment: Mapping[str, str]) -> str:
    """HF_TOKEN, if it may be sent there; '' otherwise."""
    token = environment.get("HF_TOKEN", "").strip()
    if not token or not token.isascii() or not token.isprintable():
        return ""
    parts = urlsplit(hub)
    return token if parts.scheme == "https" or _loopback(parts.hostname or "") else ""


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _stamp(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns


def _read_file(name: str, known: tuple[int, int, int] | None) -> tuple[tuple[int, int, int] | None, Expected] | None:
    """A manifest and what tells one state of it from the next; None if it is as it was."""
    source = line(name.rpartition("/")[2], 200)
    try:
        path = Path(name)
        if _stamp(path.stat()) == known:
            return None
        info, data = read_plain(path, MOST_BYTES + 1)
        stamp = _stamp(info)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return None, Expected((), source, problem=f"cannot be read: {line(why, 120)}")
    if len(data) > MOST_BYTES:
        return stamp, Expected((), source, problem=f"more than {MOST_BYTES >> 20} MiB")
    return stamp, parse_expected(data.decode("utf-8", "replace"), source)
