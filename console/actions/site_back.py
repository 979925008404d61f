"""Roll back by the site file: name the old revision and its row folders again, build rows that are gone, relaunch."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from console import format as fmt
from console.actions.disarm import quiet_first, unswitched
from console.actions.plan import Plan, Step, Verb
from console.actions.relaunch import launch_steps, rescue, site_facts
from console.actions.scene import STATE, Refused, Scene, competing, cuts, ends, stale, title, unproved, unread
from console.actions.site_steps import SiteRefused, dry_run_step, rows_step, site_edit_step
from console.actions.stop import Held, lane_containers, stop_steps, warnings
from console.fleet.filling import Filling
from console.fleet.places import RankPlace
from console.fleet.proposal import propose
from console.fleet.sitetypes import Site
from console.readings.dryrun import Expected
from console.readings.row_types import RowRange
from console.readings.rows import ROOM_BESIDE, RowCopy, RowState
from console.wayback import WayBack
from console.wayback.by_site import BUILD_AT_STOP_S, BUILD_S

REVISION, ROWS = "back revision", "back rows "
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WHOLE = (RowState.READY, RowState.OLD_REVISION)


def site_plan(scene: Scene, way: WayBack) -> Plan:
    """The way back by the site file. Raises Refused."""
    if scene.acts.launch.by != "launcher":
        raise Refused(f"recipe {scene.recipe.name} has no launcher that reads the site file")
    if away := scene.unreachable():
        raise Refused(f"{', '.join(away)} cannot be reached, and every rank is needed")
    return _Back(scene, way).plan()


class _Back:
    """Where to, and what has to be changed for it."""

    def __init__(self, scene: Scene, way: WayBack) -> None:
        self.scene, self.way = scene, way
        frozen = dict(scene.frozen.facts) if scene.frozen is not None else {}
        previous = scene.places.previous_revision or scene.lane.previous.revision
        self.revision = frozen.get(REVISION) or way.revision or previous
        if not self.revision:
            raise Refused(way.why or "no other revision is known")
        if way.possible is False and way.revision == self.revision:
            raise Refused(way.why)
        self.site = self._site()
        self.held = lane_containers(scene)
        self.folders = self._folders(frozen)
        self.changes = self._changes()

    def _site(self) -> Site:
        reading = self.scene.view.site
        if reading is None or reading.value is None or not reading.value.data:
            raise Refused(f"the site file was not read: {reading.error if reading is not None else 'not asked'}")
        return reading.value

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _folders(self, frozen: Mapping[str, str]) -> dict[str, str]:
        """By host: the folder of the old rows. One word of the site file names it on every rank."""
        places = [rank for rank in self.scene.places.ranks if rank.rows]
        if not places:
            return {}
        pinned = {rank.host: frozen[ROWS + rank.host] for rank in places if ROWS + rank.host in frozen}
        if len(pinned) == len(places):
            return pinned
        names = Counter(
            name for rank in places for copy in self._copies(rank.rank) if self._good(copy)
            if (name := self._name(rank, copy.path))
        )  # fmt: skip
        named = next((self._name(rank, rank.previous_rows) for rank in places if rank.previous_rows), "")
        name = names.most_common(1)[0][0] if names else named
        if not name and self._in_checkpoint():
            key = f"lanes.{self.scene.view.name}.previous.rows"
            raise Refused(f"which folder holds {fmt.revision(self.revision)} is not known: set {key}")
        if not name:
            name = f"{self._name(places[0], places[0].rows)}-{self.revision[:7]}"
        return {rank.host: self._path(rank, name) for rank in places}

    def _in_checkpoint(self) -> bool:
        """The rows lie in the checkpoint's own folder: there is no copy that could be built."""
        checkpoint, rows = self.scene.recipe.checkpoint, self.scene.recipe.rows
        return checkpoint is not None and rows is not None and checkpoint.repo == rows.path

    def _copies(self, rank: int) -> tuple[RowCopy, ...]:
        view = self.scene.view
        readings = (view.rows, view.previous_rows, view.next_rows)
        values = [reading.value for reading in readings if reading is not None and reading.value is not None]
        return tuple(copy for value in values for copy in value.copies if copy.rank == rank)

    def _good(self, copy: RowCopy) -> bool:
        """It holds all rows of the old revision."""
        manifest = copy.manifest
        whole = manifest is not None and copy.present is not None and copy.present >= manifest.bytes
        right = manifest is not None and bool(manifest.revision) and self.revision.startswith(manifest.revision)
        return whole and right and copy.state in _WHOLE

    def _home(self, rank: RankPlace) -> str:
        return Filling(self.scene.recipe, self.scene.lane.vars, self.site, self.scene.view.name).home(rank.rank)

    def _name(self, rank: RankPlace, path: str) -> str:
        """How the site file names that folder: relative where it lies below the rank's home folder."""
        home = self._home(rank)
        return path.removeprefix(f"{home}/") if path.startswith(f"{home}/") else path

    def _path(self, rank: RankPlace, name: str) -> str:
        return name if name.startswith(("/", "~/")) else posixpath.join(self._home(rank), name)

    def _builds(self) -> Iterator[tuple[RankPlace, RowCopy | None, bool]]:
        """Ranks whose old rows are gone, what is there instead, and whether there is room for one only."""
        for rank in self.scene.places.ranks:
            folder = self.folders.get(rank.host)
            copies = self._copies(rank.rank)
            if folder is None or any(copy.path == folder and self._good(copy) for copy in copies):
                continue
            if self._in_checkpoint():
                continue
            known = next((copy for copy in copies if copy.manifest is not None), None)
            size = known.manifest.bytes if known is not None and known.manifest is not None else 0
            free = next((copy.free for copy in copies if copy.free is not None), None)
            yield rank, known, free is not None and size > 0 and free < size + ROOM_BESIDE

    def _row_steps(self, *, at_stop: bool) -> Iterator[Step]:
        acts = self.scene.acts.rows
        for rank, known, tight in self._builds():
            if tight is not at_stop:
                continue
            if acts is None or self.scene.recipe.rows is None:
                raise Refused(f"{rank.host}: its old rows are gone, and the recipe has no copier: [acts.rows]")
            if not rank.repo:
                raise Refused(f"{rank.host}: its old rows are gone, and where its checkpoint lies is not known")
            ranges = known.manifest.ranges if known is not None and known.manifest is not None else self._share(rank)
            own = ("{source}", "{dest}", "{ranges}")
            copier = [word if word in own else self.scene.filled(word, "rows.copier") for word in acts.copier]
            yield rows_step(
                rank.host,
                f"{rank.repo}/snapshots/{self.revision}",
                self.folders[rank.host],
                ranges,
                self.revision,
                copier,
                shards=self.scene.recipe.rows.shards,
                remove=[self._in_the_way(rank, known)] if tight and known is not None else [],
                manifest=self.scene.recipe.rows.manifest,
                memory_max=acts.memory_max,
                usual=BUILD_AT_STOP_S if tight else BUILD_S,
                basis="estimate",
                together="rows-at-stop" if at_stop else "rows",
            )

    def _in_the_way(self, rank: RankPlace, known: RowCopy) -> str:
        """The copy that goes for the room of the new one: what is there already, else the one of the other revision."""
        there = [copy for copy in self._copies(rank.rank) if copy.path == self.folders[rank.host] and copy.present]
        return there[0].path if there else known.path

    def _share(self, rank: RankPlace) -> tuple[RowRange, ...]:
        """A rank's part of the tables, as `N*r//tp` cuts them. Raises Refused where the tables are not known."""
        tables, parts = self.scene.places.table_rows, self.scene.places.tp
        if not tables or not parts:
            raise Refused(f"{rank.host}: its old rows are gone, and which it needs is not known")
        return tuple(
            RowRange(layer, rows * rank.rank // parts, rows * (rank.rank + 1) // parts)
            for layer, rows in sorted(tables.items())
        )

    # --- the site file ------------------------------------------------------------------------------------------------

    def _changes(self) -> dict[str, str]:
        """Keys of the site file and what they have to be; {} where it names the old revision already."""
        keys = self.scene.recipe.site.keys if self.scene.recipe.site is not None else {}
        found: dict[str, str] = {}
        if (key := keys.get("revision")) is not None:
            present = self.site.file.get(key)
            before = present.value if present is not None else ""
            found[key] = _COMMIT.sub(self.revision, before) if _COMMIT.search(before) else self.revision
        if (key := keys.get("rows")) is not None and self.folders:
            rank = next(rank for rank in self.scene.places.ranks if rank.host in self.folders)
            found[key] = self._name(rank, self.folders[rank.host])
        return {key: value for key, value in found.items() if self._value(key) != value}

    def _value(self, key: str) -> str:
        present = self.site.file.get(key)
        return present.value if present is not None else ""

    def _edits(self) -> Iterator[Step]:
        if self.changes:
            kind = self.site.file.kind
            try:
                yield site_edit_step(self.scene.head, self.site.path, self.site.data, self.changes, kind=kind)
            except SiteRefused as error:
                raise Refused(str(error)) from error

    def _dry_run(self) -> Iterator[Step]:
        launch = self.scene.acts.launch
        if not (launch.dry_run and launch.candidate and self.changes):
            return
        proposal = propose(self.site.data, self.changes, self.site.file.kind, self.site.path)
        if proposal.refusals:
            return  # the edit itself says why
        keys = self.scene.recipe.site.keys if self.scene.recipe.site is not None else {}
        rows = keys.get("rows", "")
        ranks = self.scene.places.ranks
        holder = next((rank.rank for rank in ranks if rank.reads_shards), -1)
        before = self._value(rows) if rows else ""
        expected = Expected(
            self.site.revision, self.revision, before, self.changes.get(rows, before), len(ranks), holder
        )
        command = self.scene.command(launch.dry_run, "launch.dry_run")
        step = dry_run_step(self.scene.head, command, proposal.data, expected, folder=STATE, variable=launch.candidate)
        yield replace(step, optional=True)

    # --- the plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """Rows that have room first, then what the launcher needs, and at the stop what has none."""
        scene = self.scene
        tight = list(self._row_steps(at_stop=True))
        stops: Sequence[Step] = (
            stop_steps(scene, self.held, aside=False) if tight and not scene.acts.launch.clear else ()
        )
        between = [*stops, *tight, *self._edits()]
        launched = list(launch_steps(scene, self.held, self.revision, between, back=True))
        launched = [replace(step, optional=True) if step.id.startswith("save-") else step for step in launched]
        steps = [*self._dry_run(), *self._row_steps(at_stop=False)]
        for step in launched:
            steps += quiet_first(step) if step.id == "disarm" else [step]
        return Plan(
            Verb.ROLLBACK,
            scene.snapshot.fleet.name,
            scene.view.name,
            scene.head,
            title(Verb.ROLLBACK, scene),
            tuple(steps),
            origin=fmt.revision(self.site.revision) if self.site.revision else scene.view.verdict.state.value,
            target=fmt.revision(self.revision),
            facts=tuple(self._facts()),
            rescue=tuple(rescue(scene, self.held)),
            cuts=cuts(scene),
            ends=ends(scene),
            warnings=tuple(self._warnings(self.held)),
            unknown=(*stale(scene), *self._unread()),
            owes="watchdog" if scene.acts.watchdog is not None else "",
            pays="watchdog" if scene.acts.watchdog is not None else "",
            notes=competing(scene),
        )

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield REVISION, self.revision
        yield "back site file", self.site.path
        for host, folder in self.folders.items():
            yield ROWS + host, folder
        for rank in self.scene.places.ranks:
            if rank.repo:
                yield f"back snapshot {rank.host}", f"{rank.repo}/snapshots/{self.revision}"
        yield from site_facts(self.scene)

    def _warnings(self, held: Sequence[Held]) -> Iterator[str]:
        if words := unswitched(self.scene):
            yield words
        if not self.changes:
            same = "" if self.scene.up else f"; R and B lead to the same revision: {self.way.why}"
            yield f"the site file names {fmt.revision(self.revision)} already: this is a relaunch on it{same}"
        for host, seconds in self.way.slow:
            yield f"{host}: its rows can only be built at the stop, ≈{fmt.short_age(seconds)}"
        for item in self.way.items:
            if item.word.value == "FAIL" and not item.shuts:
                yield f"{item.name}: {item.text}"
        if self._in_checkpoint():
            yield from (f"{host}: what is in {folder} is not checked" for host, folder in self.folders.items())
        yield from unproved(self.way)
        yield from (row for row in warnings(self.scene, held) if "launcher's own stop" not in row)

    def _unread(self) -> tuple[str, ...]:
        return unread(self.way)
