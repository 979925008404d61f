"""What a lane's hosts were asked to look at, parsed: site file, checkpoint, download, row copies, watchdog."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from posixpath import dirname
from typing import Any

from console.feed.asleep import Asleep
from console.feed.former import former_site, newest_backup, wants_former
from console.feed.host import HostFeed
from console.feed.same import Same
from console.feed.survey_download import JUDGE_EVERY_S, DownloadSurvey
from console.feed.surveyed import Parsed, Surveyed, meaning, moves, oldest
from console.feed.watchdogs import judged_watchdog
from console.fleet.inventory import Lane
from console.fleet.looks import looks
from console.fleet.places import Places, RankPlace, places, with_former
from console.fleet.recipe import Recipe
from console.fleet.sitefile import Site, read_site
from console.readings.containers import Container
from console.readings.download import Download
from console.readings.hubcache import HubRepo, read_repo
from console.readings.listing import parse_listing
from console.readings.look import Answer, Status, parse_answer, raw_bytes
from console.readings.processes import parse_processes
from console.readings.quality import Reading
from console.readings.row_looks import only, shards_of
from console.readings.row_types import is_bound
from console.readings.rows import RowCopies, RowCopy, RowSample, rank_share, read_copy, read_rows
from console.readings.units import parse_units
from console.readings.watchdog import Watchdog

ROW_SAMPLES = 30
WATCHDOG_FILES = ("log", "lock", "pause", "gaveup")


class LaneSurvey:
    """Keeps what the hosts of one lane were found to hold, and says what they are to look at next."""

    def __init__(self, name: str, lane: Lane, recipe: Recipe, hosts: Mapping[str, HostFeed]) -> None:
        self._name, self._lane, self._recipe, self._hosts = name, lane, recipe, hosts
        self._site: Site | None = None
        self._site_answer: Answer | None = None
        self._answers = Parsed(parse_answer)
        self._listings = Parsed(parse_listing)
        self._repos = Parsed(_repo_of)
        self._units = Parsed(parse_units)
        self._processes = Parsed(parse_processes)
        self._row_samples: dict[tuple[str, str], deque[RowSample]] = {}
        self._copies: defaultdict[tuple[str, str], Same[RowCopy]] = defaultdict(Same)
        self._rows: defaultdict[str, Same[RowCopies]] = defaultdict(Same)
        self._watchdog: Same[Watchdog] = Same()
        self._asked: set[str] = set()
        self._pids: tuple[int, ...] = ()
        self._moving = True
        self._named: Places | None = None
        """By the first text of the site file that named the present revision."""
        self._former: Places | None = None
        """The same of the revision before."""
        self._backup = ""
        """The newest of the site file's earlier texts, as long as nothing else tells of the revision before."""
        self._places: Places = self._placed(None)
        self._download = DownloadSurvey(self._places.download, self._looked, hosts)
        self._asleep = Asleep()
        self._ask()

    async def run(self) -> None:
        """Ask Hub or manifest what the download should come to; until cancelled."""
        await self._download.run()

    @property
    def places(self) -> Places:
        """Where the lane's things lie, as far as known."""
        return self._places

    def _ask(self) -> None:
        backup = self._backup if wants_former(self._places, self._site) else None
        wanted = looks(self._name, self._places, self._pids, moving=self._moving, backup=backup)
        self._asked |= wanted.keys() & self._hosts.keys()
        for host in self._asked:
            self._hosts[host].look(self._name, wanted.get(host, ()))

    def _pace(self, moving: bool) -> None:
        """Look more often while something comes, more seldom once it is all there."""
        if moving is not self._moving:
            self._moving = moving
            self._ask()

    def _looked(self, host: str, what: str) -> Reading[str] | None:
        feed = self._hosts.get(host)
        return None if feed is None else feed.looked(f"{self._name}:{what}")

    def view(self, now: float, serving: Mapping[str, str], containers: Mapping[str, Sequence[Container]]) -> Surveyed:
        """Everything at monotonic time `now`. `serving` is the mounted revision by host, `containers` all of a host."""
        if self._asleep.since():  # no rate and no standstill can be told across what nobody counted
            self._download.forget()
            self._row_samples.clear()
        site = self._read_site()
        self._read_former()
        repos = tuple(self._read_repos())
        rows = self._read_rows(now, "rows", self._rows_of(serving, containers))
        coming = self._read_rows(now, "next", self._places.next_revision)
        former = self._read_rows(now, "previous", self._places.previous_revision)
        download = self._read_download(now, serving, containers.keys())
        self._pace(moves(download, rows, coming))
        return Surveyed(
            site=site,
            repos=repos,
            download=download,
            rows=rows,
            next_rows=coming,
            previous_rows=former,
            watchdog=self._read_watchdog(now, containers),
            unfilled=self._places.unfilled,
            holder=None if any(key.startswith("holder:") for key in self._places.unfilled) else self._places.holder,
        )

    # --- site file -------------------------------------------------------------------------------------------------

    def _read_site(self) -> Reading[Site] | None:
        path = self._places.site_file
        if not path:
            return None
        reading = self._looked(self._places.head, "site")
        answer = self._answers.of("site", reading)
        if reading is None or answer is None:
            return oldest(path, [reading], None)
        if answer is not self._site_answer:
            self._site_answer = answer
            self._take_site(answer, path)
        why = "" if answer.status is Status.OK else _why(answer, path)
        return meaning(reading, self._site if not why else None, why)

    def _take_site(self, answer: Answer, path: str) -> None:
        if answer.status is not Status.OK:
            return  # an editor may be at work; things still lie where the file said last, and are looked at there
        mtime = _number(answer.values.get("mtime", ""))
        found = read_site(raw_bytes(answer.body), path, self._recipe, mtime=mtime)
        if found == self._site:
            return
        self._site = found
        before, self._places = self._places, self._placed(found)
        self._download.move(self._places.download)
        if before.ranks != self._places.ranks or before.rows_shards != self._places.rows_shards:
            self._row_samples.clear()
        self._ask()

    def _placed(self, site: Site | None) -> Places:
        """Where things lie by this text of the site file; what it named under another revision is the way back."""
        new = places(self._name, self._lane, self._recipe, site)
        if new.revision and (self._named is None or self._named.revision != new.revision):
            self._former, self._named = self._named, new
        return with_former(new, self._former)

    def _read_former(self) -> None:
        """A console that did not see the last edit learns from the copy beside the file what it said before."""
        if not wants_former(self._places, self._site):
            return
        head, path = self._places.head, self._places.site_file
        newest = newest_backup(path, self._listings.of("site.beside", self._looked(head, "site.beside")))
        if newest and newest != self._backup:
            self._backup = newest
            self._ask()
            return
        answer = self._answers.of("site.former", self._looked(head, "site.former"))
        found = former_site(answer, self._backup, self._recipe, self._site) if self._backup else None
        if found is not None:
            self._former = places(self._name, self._lane, self._recipe, found)
            self._places = with_former(self._places, self._former)
            self._ask()

    # --- checkpoint and download -----------------------------------------------------------------------------------

    def _read_repos(self) -> Iterable[tuple[str, Reading[HubRepo]]]:
        for rank in self._places.ranks:
            if rank.repo:
                yield rank.host, self._repo(rank.host, "repo")

    def _repo(self, host: str, what: str) -> Reading[HubRepo]:
        reading = self._looked(host, what)
        if reading is None:
            return Reading(f"{host}:repository", 1.0)
        return meaning(reading, self._repos.of((host, what), reading))

    def _not_yet(self, will_be: bool) -> Reading[Any] | None:
        """A reading that is still to come, where the site file will say of what; None where nothing will."""
        site = self._looked(self._places.head, "site") if self._places.site_file else None
        if not will_be or site is None or self._site is not None:
            return None
        return oldest(f"{self._places.head}:{self._places.site_file}", [site], None)

    def _read_download(
        self, now: float, serving: Mapping[str, str], known: Collection[str]
    ) -> Reading[Download] | None:
        place = self._places.download
        if place is None:
            return self._not_yet(self._recipe.checkpoint is not None)
        own = self._looked(place.host, "download.repo") is not None
        repo = self._repo(place.host, "download.repo" if own else "repo")
        told = bool(serving or known) or self._lane.runs_in == "host"
        return self._download.read(place, repo, serving, known=told, now=now)

    # --- row copies ------------------------------------------------------------------------------------------------

    def _rows_of(self, serving: Mapping[str, str], containers: Mapping[str, Sequence[Container]]) -> str:
        """The revision that the copies should be of: what serves where they are mounted, else the site file's.

        A site file that was edited under a running lane says what the next launch wants of them, and is told as such.
        """
        one = _one(serving)
        sources = {
            host: [mount.source for item in items if item.up for mount in item.mounts]
            for host, items in containers.items()
        }
        copies = [rank for rank in self._places.ranks if rank.rows and not rank.reads_shards]
        mounted = bool(copies) and all(is_bound(rank.rows, sources.get(rank.host, ())) for rank in copies)
        return one if one and mounted else self._places.revision or one

    def _read_rows(self, now: float, what: str, revision: str) -> Reading[RowCopies] | None:
        ranks = self._places.ranks
        if not any(_folder(rank, what) for rank in ranks):
            return self._not_yet(self._recipe.rows is not None and what == "rows")
        parts: list[Reading[str] | None] = []
        copies = []
        for rank in ranks:
            reading, copy = self._copy(rank, what, revision, now)
            copies.append(copy)
            parts += [reading] if _folder(rank, what) else []
        value = self._rows[what].of(
            (self._places, revision, *copies),
            lambda: read_rows(
                copies,
                revision=revision,
                holder_rows=self._places.holder_rows,
                table_rows=self._places.table_rows,
                tp=self._places.tp or None,
                for_next=what == "next",
            ),
        )
        return oldest(f"{self._name}:row copies", _readable(parts), value)

    def _copy(self, rank: RankPlace, what: str, revision: str, now: float) -> tuple[Reading[str] | None, RowCopy]:
        key = rank.host, what
        reading, beside = self._looked(*key), self._looked(rank.host, "rows")
        manifest = self._answers.of(key, self._looked(rank.host, f"{what}.manifest"))
        current = reading is not None and reading.current(now) is not None
        basis = (self._places, rank.rank, revision, reading, beside, manifest, current)
        judge = partial(self._judged_copy, rank, what, reading, manifest, revision=revision, now=now, current=current)
        return reading, self._copies[key].of(basis, judge)

    def _judged_copy(
        self,
        rank: RankPlace,
        what: str,
        reading: Reading[str] | None,
        manifest: Answer | None,
        *,
        revision: str,
        now: float,
        current: bool,
    ) -> RowCopy:
        listing = self._listings.of((rank.host, what), reading)
        samples = self._row_samples.setdefault((rank.host, what), deque(maxlen=ROW_SAMPLES))
        if listing is not None and reading is not None and reading.taken_mono is not None:
            text = manifest.body if manifest is not None and manifest.status is Status.OK else None
            mtime = _number(manifest.values.get("mtime", "")) if manifest is not None else None
            sample = RowSample(reading.taken_mono, listing, text, mtime)
            if samples and samples[-1].at >= sample.at:
                samples[-1] = sample  # the manifest may have come after the listing
            else:
                samples.append(sample)
        room, old_copy = self._beside(rank) if what == "next" else (None, None)
        return read_copy(
            rank.rank,
            rank.host,
            _folder(rank, what),
            tuple(samples) if current or rank.reads_shards else (),
            revision=revision,
            tp=self._places.tp or None,
            reads_shards=rank.reads_shards,
            want=self._wanted(rank),
            now=now,
            room=room,
            old_copy=old_copy,
            shards=self._places.rows_shards,
            table_rows=self._places.table_rows,
        )

    def _beside(self, rank: RankPlace) -> tuple[int | None, int | None]:
        """Bytes free beside the copy in use, and those that deleting it would free; None for a copy elsewhere."""
        listing = self._listings.of((rank.host, "rows"), self._looked(rank.host, "rows"))
        if listing is None or listing.problem or dirname(rank.rows) != dirname(rank.next_rows):
            return None, None
        rows = only(RowSample(0.0, listing, None), self._places.rows_shards)
        return listing.free, shards_of(rows.listing).present

    def _wanted(self, rank: RankPlace) -> Sequence[Any]:
        tables = self._places.table_rows
        return rank_share(rank.rank, self._places.tp, tables) if tables and self._places.tp else ()

    # --- watchdog --------------------------------------------------------------------------------------------------

    def _read_watchdog(self, now: float, containers: Mapping[str, Sequence[Container]]) -> Reading[Watchdog] | None:
        place, recipe = self._places.watchdog, self._recipe.watchdog
        if place is None or recipe is None:
            return None
        feed = self._hosts[place.host]
        files = {name: self._looked(place.host, f"watchdog.{name}") for name in WATCHDOG_FILES}
        units_read = self._looked(place.host, "watchdog.units")
        seen = self._looked(place.host, "watchdog.processes")
        parts = [*files.values(), units_read, seen]
        source = f"{place.host}:{place.unit or place.log}"
        if any(part is not None and part.taken_mono is None for part in parts):
            return oldest(source, [part for part in parts if part is not None and part.taken_mono is None], None)
        answers = {name: self._answers.of(name, reading) for name, reading in files.items()}
        units, running = self._units.of("watchdog", units_read), self._processes.of("watchdog", seen)
        started = None if feed.booted is None else round(feed.booted)
        told = (*answers.values(), units, running, started, *containers, *containers.values())
        value = self._watchdog.of(
            (place, *told, int(now / JUDGE_EVERY_S)),
            lambda: judged_watchdog(self._lane, place, recipe, feed, answers, running, units, containers, now),
        )
        pids = () if value.pid is None else (value.pid,)
        if pids != self._pids:
            self._pids = pids
            self._ask()
        return oldest(source, parts, value)


def _folder(rank: RankPlace, what: str) -> str:
    return {"rows": rank.rows, "next": rank.next_rows, "previous": rank.previous_rows}[what]


def _repo_of(text: str) -> HubRepo:
    return read_repo(parse_listing(text))


def _one(serving: Mapping[str, str]) -> str:
    found = set(serving.values())
    return found.pop() if len(found) == 1 else ""


def _readable(parts: Sequence[Reading[str] | None]) -> list[Reading[str] | None]:
    """Without hosts that are away, unless all are: their ranks say so themselves."""
    here = [part for part in parts if part is not None and part.down_since is None and not part.error]
    return list(here) or list(parts)


def _why(answer: Answer, path: str) -> str:
    words = {Status.MISSING: "is not there", Status.DENIED: "may not be read"}.get(answer.status, answer.words)
    return f"{path} {words}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
