"""Plans of fleets with a launcher and of engines that systemd runs: stop, relaunch, the way back by the site file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import scenes
from scenes import HOSTS, NEW, OLD, SHARE, copy, home, ids, rank_boxes, spark, step, unit

from console.actions.plan import Probe, Verb
from console.actions.plans import way_back_id
from console.readings.acting_types import Acting, WindowState
from console.readings.boot import BootRecord
from console.readings.containers import Container, Containers, ContainerState
from console.readings.hubcache import HubRepo, SnapshotFiles
from console.readings.rows import RowCopies, RowRange, RowState, Tiling
from console.snapshot import RankView
from console.wayback import way_back

SAVES = [f"save-{host}" for host in HOSTS]
STOPS = [f"stop-{host}" for host in HOSTS]
RESCUE = [f"rescue-save-{host}" for host in HOSTS] + [f"rescue-stop-{host}" for host in HOSTS]


def words_of(probes: Sequence[Probe]) -> list[str]:
    return [probe.words for probe in probes]


# --- stop ------------------------------------------------------------------------------------------------------------


def test_a_stop_disarms_first_and_stops_every_rank_only_while_that_holds() -> None:
    """C055: an armed watchdog would relaunch within minutes of the stop."""
    plan = spark().plan(Verb.STOP)
    assert ids(plan) == ["disarm", *SAVES, *STOPS]
    assert (plan.owes, plan.pays) == ("watchdog", "")
    off = words_of(step(plan, "disarm").after)
    assert off == ["no watchdog runs, its lock is gone"]
    for name in STOPS:
        assert words_of(step(plan, name).before) == off, "read again right before each rank"
    assert {one.together for one in plan.steps[1:]} == {"stop"}
    assert words_of(step(plan, "stop-n1").after)[-2:] == [
        "port 8210 is closed",
        "50 % of the memory of n1 is available",
    ]


def test_ranks_are_stopped_in_the_recipes_order() -> None:
    lane = spark()
    for order, wanted in (("head first", STOPS), ("head last", [*STOPS[1:], STOPS[0]])):
        stop = lane.recipe.acts.stop.model_copy(update={"order": order})
        plan = lane.recipe_but(stop=stop).plan(Verb.STOP)
        assert [name for name in ids(plan) if name.startswith("stop-")] == wanted
        groups = {step(plan, "stop-n1").together, step(plan, "stop-n2").together}
        assert len(groups) == 2
        assert step(plan, "stop-n2").together == step(plan, "stop-n4").together
        assert step(plan, "save-n1").together == "save"


def test_a_host_out_of_reach_is_left_out_and_named() -> None:
    plan = spark().away("n3").plan(Verb.STOP)
    assert plan.left_out == ("n3",)
    assert "stop-n3" not in ids(plan) and "save-n3" not in ids(plan)
    assert "n3: out of reach" in plan.unknown
    assert any("n3 is left out: its rank may go on running" in text for text in plan.warnings)
    for verb in (Verb.RELAUNCH, Verb.ROLLBACK):
        assert spark().away("n3").plan(verb).refused == "n3 cannot be reached, and every rank is needed"


def test_a_launchers_stop_that_removes_containers_comes_after_their_logs() -> None:
    plan = spark("vllm-cluster-env").plan(Verb.STOP)
    assert ids(plan) == ["disarm", *SAVES, "stop-lane"]
    assert all(not step(plan, name).optional for name in SAVES)
    stop = step(plan, "stop-lane")
    assert stop.argv[3:] == ("-", "bash", "/home/alice/sglang/launch/cluster.sh", "down")
    assert words_of(stop.before) == ["the watchdog's pause flag is there"]
    assert [probe.host for probe in stop.after[:4]] == list(HOSTS)
    assert words_of(stop.after)[-1] == "port 8210 is closed"
    assert any("removes the containers" in text for text in plan.warnings)


def test_evidence_of_a_rank_that_nobody_sees_goes_by_the_recipes_name() -> None:
    lane = spark(boxes=())
    plan = lane.plan(Verb.RELAUNCH)
    assert step(plan, "save-n2").argv[-1] == "sgldsv41"
    assert spark("vllm-cluster-env", boxes=()).plan(Verb.RELAUNCH).steps[1].argv[-1] == "vllm_dsv41"


# --- relaunch --------------------------------------------------------------------------------------------------------


def test_a_relaunch_shows_the_dry_run_keeps_logs_disarms_launches_and_sees_the_watchdog() -> None:
    plan = spark().plan(Verb.RELAUNCH)
    assert ids(plan) == ["dry-run", *SAVES, "disarm", "launch", "arm", "armed-still"]
    dry, launch = step(plan, "dry-run"), step(plan, "launch")
    assert dry.argv[-3:] == ("bash", "/home/alice/sglang/launch/production.sh", "--dry-run")
    assert dry.optional
    assert launch.argv[-2:] == ("bash", "/home/alice/sglang/launch/relaunch.sh"), "it ignores flags: it gets none"
    assert (launch.detached, launch.keeps) == (True, True)
    assert words_of(launch.after) == ["a new sgldsv41 runs", "health is 200 and deepseek-v4.1-flash is served"]
    assert [probe.host for probe in launch.watch] == list(HOSTS)
    assert [probe.argv[-1] for probe in launch.watch] == [letter * 64 for letter in "cdef"]
    assert all(not step(plan, name).optional for name in SAVES), "the launcher removes the containers"
    assert [one.id for one in plan.rescue] == RESCUE
    assert (plan.owes, plan.pays) == ("watchdog", "watchdog")


def test_a_watchdog_that_a_launcher_starts_is_read_back_well_after_its_unit() -> None:
    """C1, trap 3: with the wrong kill mode it ends together with the launcher."""
    plan = spark().plan(Verb.RELAUNCH)
    arm, still = step(plan, "arm"), step(plan, "armed-still")
    assert words_of(arm.already) == words_of(still.after) == ["the watchdog runs, its lock names it"]
    assert (arm.detached, arm.keeps) == (True, True)
    assert still.argv[0] == "sleep"
    assert ids(plan).index("launch") < ids(plan).index("arm") < ids(plan).index("armed-still")


def test_a_launch_is_begun_only_while_no_other_one_is_under_way() -> None:
    """Also where nobody asked on the way, because the watchdog is off already."""
    for lane in (spark(), spark("vllm-cluster-env")):
        asked = words_of(step(lane.plan(Verb.RELAUNCH), "launch").before)
        assert asked[-len(HOSTS) :] == [f"no launch is under way on {host}" for host in HOSTS]


def test_a_launcher_that_wants_nothing_left_gets_its_own_clearing_first() -> None:
    plan = spark("vllm-cluster-env").plan(Verb.RELAUNCH)
    assert ids(plan) == ["preflight", *SAVES, "disarm", "clear", "launch", "arm", "armed-still"]
    clear = step(plan, "clear")
    assert words_of(clear.after) == [f"no container vllm_dsv41 is left on {host}" for host in HOSTS]
    assert clear.already == clear.after
    assert step(plan, "preflight").optional
    assert "dry-run" not in ids(plan), "it has none"
    flags = words_of(step(plan, "arm").after)
    assert flags == [
        "dsv41-fleet.service is active",
        "/var/tmp/dsv41-watchdog.pause is gone",
        "/var/tmp/dsv41-watchdog.gaveup is gone",
    ]


def test_its_time_comes_from_the_lanes_own_boots() -> None:
    boots = (BootRecord(1.0, 560.0, revision=NEW), BootRecord(2.0, 3000.0, revision=NEW))
    launch = step(spark(boots=boots).plan(Verb.RELAUNCH), "launch")
    assert (launch.usual, launch.limit) == (1780.0, 6000.0)
    none = step(spark().plan(Verb.RELAUNCH), "launch")
    assert (none.usual, none.basis, none.limit) == (575.0, "the recipe's usual", 2700.0)


def test_the_plan_of_a_relaunch_rests_on_the_site_file() -> None:
    first = spark().plan(Verb.RELAUNCH)
    edited = spark(data=scenes.site_bytes(SNAP=f"snapshots/{OLD}")).plan(Verb.RELAUNCH)
    assert dict(first.facts)["now site revision"] == NEW
    assert dict(edited.facts)["now site revision"] == OLD
    assert first.id != edited.id


def test_a_retired_container_under_the_launchers_name_is_not_given_to_it() -> None:
    """C091: it would be removed by force, and with it the way back."""
    kept = replace(
        rank_boxes()[1], state=ContainerState.EXITED, exit_code=0, id="4" * 64, labels=(("role", "retired"),)
    )
    lane = spark().host_but("n2", containers=scenes.pictures.reading(Containers((kept,)), 1.0, 5.0))
    plan = lane.plan(Verb.RELAUNCH)
    assert plan.refused.startswith("n2: name in use: sgldsv41 is held by 444444444444 (exited/0)")


def test_a_missing_variable_is_named() -> None:
    lane = spark()
    bare = lane.but(lane=lane.view.lane.model_copy(update={"vars": {}}))
    assert "lanes.dsv41.vars.root is not set" in bare.plan(Verb.RELAUNCH).refused
    assert "ids" not in bare.plan(Verb.STOP).refused


def test_an_engine_of_systemd_is_stopped_and_started_by_its_unit() -> None:
    plan = unit().plan(Verb.RELAUNCH)
    assert ids(plan) == ["stop-unit", "start-unit"]
    stop, start = plan.steps
    assert stop.argv[3:] == ("stop", "system", "engine.service")
    assert words_of(stop.after) == ["engine.service is inactive", "port 30006 is closed"]
    assert words_of(start.after) == ["engine.service is active", "health is 200 and dsv41-flash-uva is served"]
    assert ids(unit().plan(Verb.STOP)) == ["stop-unit"]
    assert "lanes.station.vars.unit" in unit(rest="").plan(Verb.STOP).refused
    bad = unit(rest='[lanes.station.vars]\nunit = "a b; reboot"')
    assert "no name of a systemd unit" in bad.plan(Verb.RELAUNCH).refused
    assert "outside containers" in unit().plan(Verb.ROLLBACK).refused


# --- the way back by the site file -----------------------------------------------------------------------------------


def test_the_old_revision_and_its_rows_are_named_again_and_launched() -> None:
    plan = spark().plan(Verb.ROLLBACK)
    assert ids(plan) == ["dry-run", *SAVES, "quiet", "disarm", "edit-site", "launch", "arm", "armed-still"]
    assert step(plan, "quiet").argv == () and len(step(plan, "quiet").after) == 4, "what it pre-empts may still end"
    assert (plan.origin, plan.target) == ("89abcde", "0123456")
    edit = step(plan, "edit-site")
    assert f"SNAP=snapshots/{OLD}" in edit.argv and "ENGRAM_LOCAL_DIR=dsv41-engram-local" in edit.argv
    assert all(step(plan, name).optional for name in SAVES)
    assert step(plan, "dry-run").optional
    assert (plan.owes, plan.pays) == ("watchdog", "watchdog")
    facts = dict(plan.facts)
    assert facts["back revision"] == OLD
    assert facts["back rows n4"] == "/home/bob/dsv41-engram-local"
    assert "back rows n2" not in facts, "the rank that holds the checkpoint has no copy"
    assert facts["back snapshot n3"] == f"/mnt/dsv41/snapshots/{OLD}"
    assert not any(text.startswith("stop") for text in ids(plan)), "its launcher checks first and removes then"


def test_rows_that_are_gone_are_built_beside_before_anything_stops() -> None:
    kept = {rank: copy(rank, f"{home(rank)}/dsv41-engram-local", OLD) for rank in (0, 2)}
    plan = spark(old_rows=kept).plan(Verb.ROLLBACK)
    names = ids(plan)
    assert "rows-n4" in names
    assert names.index("rows-n4") < names.index("disarm")
    rows = step(plan, "rows-n4")
    assert (rows.usual, rows.detached, rows.memory_max) == (90.0, True, "4G")
    assert f"/mnt/dsv41/snapshots/{OLD}" in rows.argv
    assert "/home/bob/dsv41-engram-local" in rows.argv
    assert ["python3", "/home/alice/sglang/tools/engram_local.py"] == [
        word for word in rows.argv if word in ("python3", "/home/alice/sglang/tools/engram_local.py")
    ]


def test_rows_without_room_are_built_after_a_stop_that_is_observed() -> None:
    kept = {rank: copy(rank, f"{home(rank)}/dsv41-engram-local", OLD) for rank in (0, 3)}
    lane = spark(old_rows=kept)
    assert lane.view.rows is not None and lane.view.rows.value is not None
    tight = [replace(one, free=2**30) if one.rank == 2 else one for one in lane.view.rows.value.copies]
    rows = scenes.pictures.reading(replace(lane.view.rows.value, copies=tuple(tight)), 1.0, 5.0)
    plan = lane.but(rows=rows).plan(Verb.ROLLBACK)
    names = ids(plan)
    assert names.index("stop-n3") < names.index("rows-n3") < names.index("edit-site") < names.index("launch")
    assert "deleting a copy first" in step(plan, "rows-n3").title
    assert step(plan, "rows-n3").usual == 480.0
    assert any("n3: its rows can only be built at the stop" in text for text in plan.warnings)


def test_without_any_old_copy_a_new_folder_is_named_and_filled() -> None:
    plan = spark(old_rows={}).plan(Verb.ROLLBACK)
    edit = step(plan, "edit-site")
    assert "ENGRAM_LOCAL_DIR=dsv41-engram-new-0123456" in edit.argv
    assert [name for name in ids(plan) if name.startswith("rows-")] == ["rows-n1", "rows-n3", "rows-n4"]
    assert "/home/bob/dsv41-engram-new-0123456" in step(plan, "rows-n3").argv


def test_a_copy_without_manifest_is_cut_as_the_tables_are() -> None:
    lane = spark(old_rows={})
    assert lane.view.rows is not None and lane.view.rows.value is not None
    bare = tuple(replace(one, manifest=None, state=RowState.COPYING) for one in lane.view.rows.value.copies)
    rows = scenes.pictures.reading(replace(lane.view.rows.value, copies=bare), 1.0, 5.0)
    plan = lane.but(rows=rows).plan(Verb.ROLLBACK)
    share = RowRange(1, 384_006_168 * 3 // 4, 384_006_168)
    assert any(f"{share.layer}:{share.start}:{share.end}" in word for word in step(plan, "rows-n4").argv)
    assert SHARE[0].end == 384_006_168 // 4


def test_a_recipe_without_copier_says_so_where_one_is_needed() -> None:
    lane = spark(old_rows={}).recipe_but(rows=None)
    assert "the recipe has no copier: [acts.rows]" in lane.plan(Verb.ROLLBACK).refused


def test_a_site_file_that_names_it_already_is_not_edited() -> None:
    boots = (BootRecord(1.0, 560.0, revision=OLD),)
    gone = tuple(RankView(at, host, None, "no container", "") for at, host in enumerate(HOSTS))
    data = scenes.site_bytes(SNAP=f"snapshots/{OLD}")
    lane = spark(data=data, boxes=(), boots=boots).but(ranks=gone)
    plan = lane.plan(Verb.ROLLBACK)
    assert not plan.refused
    assert "edit-site" not in ids(plan) and "dry-run" not in ids(plan)
    assert any("names 0123456 already" in text for text in plan.warnings)
    assert plan.origin == "0123456"


def test_a_site_file_that_was_not_read_cannot_be_edited() -> None:
    lane = spark(site=scenes.pictures.unread(error="permission denied"))
    assert "the site file was not read: permission denied" in lane.plan(Verb.ROLLBACK).refused


def test_a_site_file_that_cannot_be_edited_safely_says_why() -> None:
    data = scenes.site_bytes(SNAP="snapshots/$(cat rev)", ENGRAM_LOCAL_DIR="x")
    plan = spark(data=data).plan(Verb.ROLLBACK)
    assert plan.refused and "fleet.env" in plan.refused


def test_the_frozen_revision_is_kept_and_its_id_too() -> None:
    frozen = spark().plan(Verb.ROLLBACK)
    switched = spark(data=scenes.site_bytes(SNAP=f"snapshots/{OLD}", ENGRAM_LOCAL_DIR="dsv41-engram-local"))
    plan = switched.plan(Verb.ROLLBACK, frozen=frozen)
    assert dict(plan.facts)["back revision"] == OLD
    assert "edit-site" not in ids(plan)
    assert way_back_id(plan) == way_back_id(frozen)
    assert plan.id != frozen.id


def test_the_lamp_shows_the_way_back_that_the_window_froze() -> None:
    """The window names its target as the plan did; another revision would be the way back otherwise."""
    other = "abcdef1" + "0" * 33
    repo = HubRepo("/mnt/dsv41", tuple(scenes.files(one) for one in (NEW, OLD, other)), (), {}, 0, ())
    repos = tuple((host, scenes.pictures.reading(repo, 2, 5.0)) for host in HOSTS)
    boots = (BootRecord(1e8, 575.0, revision=other), BootRecord(2e8, 575.0, revision=NEW))
    frozen = spark().plan(Verb.ROLLBACK)
    window = WindowState("w-1", "ana", "r", 1.0, 9e9, frozen.target, frozen.id)
    inside = scenes.pictures.reading(Acting(8300.0, window=window), 1.0, 5.0)
    outside, lane = spark(repos=repos, boots=boots), spark(repos=repos, boots=boots, acting=inside)
    assert way_back(outside.snapshot, outside.view).revision == other
    found = way_back(lane.snapshot, lane.view)
    assert (found.revision, found.why) == (OLD, f"{OLD[:7]} was frozen when the window was opened")
    boxes = tuple(replace(item, revision=OLD) for item in rank_boxes())
    serves = spark(repos=repos, boots=boots, acting=inside, boxes=boxes)
    assert way_back(serves.snapshot, serves.view).revision == NEW, "it serves already: B rolls forward"


def test_after_a_way_back_to_what_the_fleet_file_calls_previous_the_lamp_leads_where_the_key_does() -> None:
    """It is what serves now; what was left is the earlier text's, also where it looks as if it were being prepared."""
    boxes = tuple(replace(item, revision=OLD) for item in rank_boxes())
    data = scenes.site_bytes(SNAP=f"snapshots/{OLD}", ENGRAM_LOCAL_DIR="dsv41-engram-local")
    left = scenes.pictures.reading(RowCopies(NEW, (), Tiling(())), 1.0, 5.0)
    rest = f'previous = {{ revision = "{OLD}", rows = "dsv41-engram-local" }}'
    lane = spark(boxes=boxes, data=data, rest=rest, previous_rows=left, next_rows=left)
    found = way_back(lane.snapshot, lane.view)
    assert (found.revision, found.why) == (NEW, f"{NEW[:7]} is named as the previous one")
    unknown = lane.but(previous_rows=None)
    nothing = way_back(unknown.snapshot, unknown.view)
    assert nothing.why == f"no other revision is kept; {NEW[:7]} is only being prepared"


def test_a_checkpoint_in_a_plain_folder_needs_the_other_folder_named() -> None:
    plain = HubRepo("/m", (replace(_files(), revision=""),), (), {}, 0, ())
    repos = tuple((host, scenes.pictures.reading(plain, 2, 5.0)) for host in HOSTS)
    lane = spark("vllm-cluster-env", old_rows={}).but(repos=repos)
    assert "no other folder is known" in lane.plan(Verb.ROLLBACK).refused
    rest = f'previous = {{ revision = "{OLD}", rows = "/var/tmp/models/old" }}'
    named = spark("vllm-cluster-env", old_rows={}, rest=rest).but(repos=repos)
    plan = named.plan(Verb.ROLLBACK)
    assert not plan.refused
    edit = step(plan, "edit-site")
    assert f"MODEL_REVISION={OLD}" in edit.argv and "MODEL_DIR=/var/tmp/models/old" in edit.argv
    assert "n1: what is in /var/tmp/models/old is not checked" in plan.warnings
    assert ids(plan) == [*SAVES, "disarm", "clear", "edit-site", "launch", "arm", "armed-still"]


def _files() -> SnapshotFiles:
    return scenes.files(OLD)


def test_no_other_revision_is_no_way_back() -> None:
    repo = HubRepo("/mnt/dsv41", (scenes.files(NEW),), (), {}, 0, ())
    repos = tuple((host, scenes.pictures.reading(repo, 2, 5.0)) for host in HOSTS)
    assert "no other revision is kept" in spark(repos=repos).plan(Verb.ROLLBACK).refused


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("recipe", ["sglang-fleet-env", "vllm-cluster-env"])
def test_ids_of_steps_are_unique_and_fit_for_file_names(verb: Verb, recipe: str) -> None:
    plan = spark(recipe).plan(verb)
    names = [one.id for one in (*plan.steps, *plan.rescue)]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").replace(".", "").isalnum() and name == name.lower() for name in names)
    assert all(one.limit > 0 and one.title and one.stdin != one.title for one in plan.steps)


def test_the_head_is_asked_by_the_name_that_clients_use() -> None:
    made: tuple[Container, ...] = rank_boxes(served_name="other")
    plan = spark(boxes=made).plan(Verb.RELAUNCH)
    assert step(plan, "launch").after[-1].argv[-1] == "deepseek-v4.1-flash"
