"""The step that compares a launcher's dry runs on the head."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from site_hosts import carry_out

from console.actions.plan import Stage, Step
from console.actions.site_steps import dry_run_step
from console.fleet.proposal import propose
from console.readings.dryrun import Expected, compare, parse_dry_run

FLEET = Path(__file__).parents[1] / "data" / "fleet"
OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
EXPECTED = Expected(OLD, NEW, "dsv41-engram-local", "dsv41-engram-local-1017", 4, 1)
LAUNCHER = """#!/bin/bash
# Prints what the launcher would: another text for the new revision. Any other word would launch.
[ "$#:$1" = 1:--dry-run ] || { echo launched >>"$(dirname "$0")/launched"; exit 1; }
here=$(cd "$(dirname "$0")" && pwd); FLEET_ENV="${FLEET_ENV:-$here/fleet.env}"
. "$FLEET_ENV"
env | sort >"$here/environment"
ls -l "$FLEET_ENV" >"$here/site"
case $SNAP in *@NEW@) text=candidate ;; *) text=current ;; esac
[ -e "$here/abort" ] && [ $text = candidate ] && { echo "ABORT: rank 2: cannot ssh to bob" >&2; exit 1; }
sed -e "s/--mem-fraction-static 0.80/--mem-fraction-static ${MEMFRAC:-0.80}/" "$here/dry-run.$text.rendered.txt"
""".replace("@NEW@", NEW)


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """The launcher's folder."""
    folder = tmp_path / "launch"
    folder.mkdir()
    (folder / "production.sh").write_text(LAUNCHER)
    (folder / "production.sh").chmod(0o755)
    for name in ("current", "candidate"):
        shutil.copy(FLEET / f"dry-run.{name}.rendered.txt", folder)
    shutil.copy(FLEET / "fleet.env.sample", folder / "fleet.env")
    (tmp_path / "state").mkdir()
    return folder


def step_for(launch: Path, changes: dict[str, str]) -> Step:
    made = propose((launch / "fleet.env").read_bytes(), changes)
    assert not made.refusals
    command = (str(launch / "production.sh"), "--dry-run")
    return dry_run_step("spark-0", command, made.data, EXPECTED, folder=str(launch.parent / "state"))


SWITCH = {"SNAP": f"snapshots/{NEW}", "ENGRAM_LOCAL_DIR": "dsv41-engram-local-1017"}


def test_a_switch_is_fine_and_nothing_is_left_or_changed(launch: Path) -> None:
    before = (launch / "fleet.env").read_bytes()
    step = step_for(launch, SWITCH)
    assert (step.stage, step.host, step.after) == (Stage.SITE, "spark-0", ())
    done = carry_out(step)
    texts = [(launch / f"dry-run.{name}.rendered.txt").read_text() for name in ("current", "candidate")]
    found = compare(*map(parse_dry_run, texts), EXPECTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n".join(found.lines()) + "\n", "")
    assert (launch / "fleet.env").read_bytes() == before
    assert list((launch.parent / "state").iterdir()) == [], "the candidate is gone"
    shown = (launch / "site").read_text()
    assert shown.startswith("-rw-------") and f"{launch.parent}/state/dry-run." in shown
    assert not (launch / "launched").exists()


def test_no_exported_knob_gets_into_it(launch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import site_hosts

    monkeypatch.setitem(site_hosts.CLEAN, "MEMFRAC", "0.5")
    monkeypatch.setitem(site_hosts.CLEAN, "SSH_AUTH_SOCK", "/x")
    assert carry_out(step_for(launch, SWITCH)).returncode == 0
    names = {row.partition("=")[0] for row in (launch / "environment").read_text().splitlines()}
    assert not names & {"MEMFRAC", "SSH_AUTH_SOCK"} and {"HOME", "PATH", "FLEET_ENV"} <= names


def test_a_candidate_that_changes_more_fails_the_step(launch: Path) -> None:
    path = launch / "fleet.env"
    path.write_text(path.read_text() + "MEMFRAC=0.80\n")
    done = carry_out(step_for(launch, {**SWITCH, "MEMFRAC": "0.9"}))
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "SURPRISE rank 0: --mem-fraction-static: 0.80 -> 0.9"


def test_a_candidate_that_does_not_change_what_it_should_fails_the_step(launch: Path) -> None:
    done = carry_out(step_for(launch, {"SNAP": f"snapshots/{OLD}"}))
    assert done.returncode == 1
    assert done.stdout.startswith("NOT CHANGED rank 0: --model-path is ")


def test_an_abort_and_a_launcher_that_is_not_there_are_told(launch: Path) -> None:
    (launch / "abort").touch()
    step = step_for(launch, SWITCH)
    done = carry_out(step)
    assert (done.returncode, done.stdout) == (2, "ABORTED candidate: rank 2: cannot ssh to bob\n")
    (launch / "production.sh").unlink()
    done = carry_out(step)
    assert done.returncode == 2 and done.stdout.startswith("ABORTED present site file: no rank's command in it: ")


@pytest.mark.parametrize("runs", [(), ("bash",)])
def test_a_launcher_below_home_and_no_state_folder(
    launch: Path, monkeypatch: pytest.MonkeyPatch, runs: tuple[str, ...]
) -> None:
    import site_hosts

    monkeypatch.setitem(site_hosts.CLEAN, "HOME", str(launch.parent))
    os.rmdir(launch.parent / "state")
    made = propose((launch / "fleet.env").read_bytes(), SWITCH)
    command = (*runs, "~/launch/production.sh", "--dry-run")
    step = dry_run_step("spark-0", command, made.data, EXPECTED, folder=str(launch.parent / "state"))
    assert carry_out(step).returncode == 0
