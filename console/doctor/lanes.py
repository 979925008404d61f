"""One lane: does its endpoint answer, can the engine be told, and is everything filled in that the recipe needs?"""

from __future__ import annotations

from dataclasses import dataclass

from console.doctor.check import Check, Subject
from console.fleet.inventory import Lane
from console.fleet.places import Places
from console.fleet.recipe_model import Recipe
from console.fleet.sitefile import Site
from console.readings.answers import HttpAnswer, Transport
from console.readings.scrape import ScrapeVerdict, read_scrape
from console.readings.throughput import EngineKind
from console.sanitize import line, word


@dataclass(frozen=True, slots=True)
class SiteRead:
    """The site file as it was found on the head."""

    site: Site | None
    problem: str = ""
    unknown: bool = False
    """It could not be told whether it is there."""


@dataclass(frozen=True, slots=True)
class LaneHeard:
    """What one lane answered."""

    name: str
    lane: Lane
    recipe: Recipe
    health: HttpAnswer | None
    """None where nobody could ask, as the head is not reached."""
    metrics: HttpAnswer | None
    site: SiteRead | None
    """None for a recipe without one, and where nothing says yet where it lies."""
    places: Places


def lane_checks(heard: LaneHeard) -> list[Check]:
    """Every check of one lane."""
    about = Subject(f"lane {heard.name}")
    checks = [_endpoint(about, heard), _engine(about, heard)]
    if heard.site is not None:
        checks.append(_site(about, heard, heard.site))
    checks += _unfilled(about, heard)
    if heard.recipe.watchdog is None:
        words = "the recipe knows none: restart policies are all that brings the engine back"
        checks.append(about.ok("watchdog", words))
    return checks


_DOWN = {
    Transport.REFUSED: "nothing listens there",
    Transport.RESET: "the connection was reset",
    Transport.CONNECT_TIMEOUT: "no connection came about",
    Transport.READ_TIMEOUT: "it accepts a connection, and does not answer",
}


def _endpoint(about: Subject, heard: LaneHeard) -> Check:
    lane, answer = heard.lane, heard.health
    where = f"{lane.url}{lane.health_path}" + (f" from {lane.head}" if lane.via == "ssh" else "")
    if answer is None or answer.transport is Transport.UNREACHABLE:
        return about.unknown("endpoint", f"{where}: {lane.head} is not reached")
    if answer.transport is not Transport.ANSWERED:
        words = _DOWN.get(answer.transport, answer.transport.value)
        detail = f" ({line(answer.detail, 120)})" if answer.detail else ""
        return about.look("endpoint", f"{where}: {words}{detail}", "is the lane up? else correct `url` in fleet.toml")
    status = answer.status or 0
    if answer.is_html:
        words = f"{where}: HTTP {status}, a page of HTML: something else answers there"
        return about.fail("endpoint", words, "correct `url` in fleet.toml: the engine's own port, not a proxy's")
    if status in (401, 403):
        words = f"{where}: HTTP {status}: it wants a login"
        return about.fail("endpoint", words, "name the engine's own port in `url`: health must answer without a key")
    if status == 404:
        return about.fail("endpoint", f"{where}: HTTP 404", "correct `health_path` in fleet.toml, or `url`")
    return about.ok("endpoint", f"{where}: HTTP {status} in {answer.took:.2f} s")


def _engine(about: Subject, heard: LaneHeard) -> Check:
    answer, lane = heard.metrics, heard.lane
    if answer is None or answer.transport is not Transport.ANSWERED:
        if lane.kind is not EngineKind.UNKNOWN:
            return about.ok("engine", f"{lane.kind.value} by fleet.toml or recipe; its series could not be asked")
        words = "its metrics could not be asked, so nothing tells what it is"
        return about.unknown("engine", words, "ask again while it is up, or set `engine` in fleet.toml")
    scrape = read_scrape(answer, whole=True)
    if scrape.verdict is not ScrapeVerdict.OK:
        detail = f": {line(scrape.detail, 160)}" if scrape.detail else ""
        words = f"{lane.metrics_path}: {scrape.verdict.value}{detail}"
        advice = "SGLang needs --enable-metrics; else correct `metrics_path` in fleet.toml"
        return about.look("engine", words, advice)
    told = scrape.engine
    if lane.kind not in (EngineKind.UNKNOWN, told):
        words = f"fleet.toml or recipe says {lane.kind.value}, its series are those of {told.value}"
        return about.fail("engine", words, f'engine = "{told.value}" in fleet.toml')
    if told is EngineKind.SGLANG and lane.kind is EngineKind.UNKNOWN:
        words = "sglang, told by its series; only a declared one gets the longer time for its health check"
        return about.look("engine", words, 'engine = "sglang" in fleet.toml')
    return about.ok("engine", f"{told.value}, told by its series")


def _site(about: Subject, heard: LaneHeard, read: SiteRead) -> Check:
    where = f"{heard.lane.head}:{word(heard.places.site_file, 200)}"
    if read.site is None:
        judged = about.unknown if read.unknown else about.fail
        return judged("site file", f"{where}: {read.problem}", "correct what leads to it in `vars` of this lane")
    warnings = read.site.file.warnings
    if warnings:
        return about.look("site file", f"{where}: {warnings[0]}", "`laneswap inspect sitefile FILE` says all of it")
    revision = f"revision {read.site.revision[:7]}" if read.site.revision else "names no revision"
    return about.ok("site file", f"{where}, {revision}")


def _unfilled(about: Subject, heard: LaneHeard) -> list[Check]:
    """What the recipe would look at, if it knew where: each with the key that says so."""
    read = heard.site is not None and heard.site.site is not None
    # what is only missing because the site file was not read is told by the check of that file
    rows = [row for row in heard.places.unfilled if read or not row.endswith(": the site file is not read")]
    if not rows and heard.recipe.site and not read:
        return [about.unknown("places", "they stand in the site file, which was not read")]
    if not rows:
        return [about.ok("places", "everything that the recipe looks at has its place")]
    return [about.look("places", row, "set that key in fleet.toml") for row in rows[:20]]
