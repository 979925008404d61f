"""Site files edited, dry runs compared and row copies built on real hosts, over ssh, also with python3-minimal."""

from __future__ import annotations

import asyncio
import base64
import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bed.client import Bed, BedHost
from bed_links import linked
from row_snapshot import COPIER, RANGES, REVISION, SHARDS, make_snapshot

from console.actions.plan import Probe, Step
from console.actions.site_steps import dry_run_step, rows_step, site_edit_step
from console.fleet.proposal import propose
from console.reach.ssh import SshLink
from console.readings.dryrun import Expected
from console.readings.output import Output

pytestmark = [pytest.mark.bed, pytest.mark.timeout(420)]

OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
WANTED = {"SNAP": f"snapshots/{NEW}", "ENGRAM_LOCAL_DIR": "dsv41-engram-local-1017"}
DATA = Path(__file__).parents[1] / "data" / "fleet"
SAMPLE = (DATA / "fleet.env.sample").read_bytes()
CANDIDATE = propose(SAMPLE, WANTED).data
FOLDER = "/srv/site"
PATH = f"{FOLDER}/fleet.env"
LAUNCHER = """#!/bin/bash
. "${FLEET_ENV:-/srv/site/fleet.env}"
case $SNAP in *@NEW@) cat /srv/site/candidate ;; *) cat /srv/site/current ;; esac
""".replace("@NEW@", NEW)


@pytest.fixture(params=["full", "minimal"])
def host(bed: Bed, request: pytest.FixtureRequest) -> Iterator[BedHost]:
    """A host with the site file in a folder of its user's."""
    found: BedHost = getattr(bed, request.param)
    found.root("install", "-d", "-o", found.user, "-g", found.user, "-m", "755", FOLDER)
    put(found, SAMPLE)
    yield found
    found.root("umount", FOLDER, check=False)
    found.root("rm", "-rf", FOLDER)


def put(host: BedHost, data: bytes, mode: str = "640") -> None:
    """The site file, of the host's user."""
    host.write(PATH, data.decode())
    host.root("chown", f"{host.user}:{host.user}", PATH)
    host.root("chmod", mode, PATH)


async def carry_out(link: SshLink, step: Step | Probe) -> Output:
    return await link.run(step.argv, stdin=step.stdin, limit=60.0)


async def answers(link: SshLink, probes: tuple[Probe, ...]) -> list[int | None]:
    return [(await carry_out(link, probe)).exit_status for probe in probes]


def content(host: BedHost) -> bytes:
    return host.root("cat", PATH).encode()


def beside(host: BedHost) -> list[str]:
    return [name for name in host.root("ls", "-A", FOLDER).split() if name != "fleet.env"]


async def test_an_edit_keeps_owner_and_mode_and_is_proved_by_bash(host: BedHost) -> None:
    step = site_edit_step(host.name, PATH, SAMPLE, WANTED)
    async with linked(host) as link:
        assert (await answers(link, step.before), await answers(link, step.already)) == ([0], [1])
        done = await carry_out(link, step)
        assert (done.exit_status, done.stderr) == (0, "")
        assert await answers(link, step.after) == [0]
        assert content(host) == CANDIDATE
        (backup,) = beside(host)
        assert host.root("cat", f"{FOLDER}/{backup}").encode() == SAMPLE
        kept = host.root("stat", "-c", "%U:%G:%a", PATH, f"{FOLDER}/{backup}").split()
        assert kept == [f"{host.user}:{host.user}:640"] * 2
        again = await carry_out(link, step)
        assert (again.exit_status, again.stdout) == (0, f"{PATH} is so already\n")


async def test_a_file_of_another_account_is_not_taken_over(host: BedHost) -> None:
    host.root("chown", "root:root", PATH)
    host.root("chmod", "644", PATH)
    step = site_edit_step(host.name, PATH, SAMPLE, WANTED)
    async with linked(host) as link:
        done = await carry_out(link, step)
    assert done.exit_status == 1
    assert f"{PATH} belongs to root (group 0), which {host.user} cannot keep: nothing was changed" in done.stderr
    assert (content(host), beside(host)) == (SAMPLE, [])


async def test_a_full_disk_leaves_the_file_as_it_was(host: BedHost) -> None:
    host.root("mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "tmpfs", FOLDER)
    put(host, SAMPLE)
    host.root("sh", "-c", f"cat /dev/zero >{FOLDER}/filler", check=False)
    step = site_edit_step(host.name, PATH, SAMPLE, WANTED)
    async with linked(host) as link:
        done = await carry_out(link, step)
        assert done.exit_status == 5
        assert "the disk is full: nothing was changed" in done.stderr
        assert (content(host), beside(host)) == (SAMPLE, ["filler"])
        # room for the new file, none for the copy of the old one
        host.root("truncate", "-s", "-4096", f"{FOLDER}/filler")
        done = await carry_out(link, step)
        assert done.exit_status == 5
        assert (content(host), beside(host)) == (SAMPLE, ["filler"])
        host.root("rm", f"{FOLDER}/filler")
        assert (await carry_out(link, step)).exit_status == 0
        assert content(host) == CANDIDATE


async def test_an_editor_on_the_host_stands_and_of_two_consoles_one_wins(host: BedHost) -> None:
    step = site_edit_step(host.name, PATH, SAMPLE, WANTED)
    host.root("sh", "-c", f"echo '# mine' >>{PATH}")
    async with linked(host) as link, linked(host) as other:
        done = await carry_out(link, step)
        assert done.exit_status == 1 and "is not the file that this edit was made for" in done.stderr
        assert content(host) == SAMPLE + b"# mine\n"
        for _ in range(4):
            put(host, SAMPLE)
            rival = site_edit_step(host.name, PATH, SAMPLE, {"SNAP": "snapshots/" + "7" * 40})
            both = await asyncio.gather(carry_out(link, step), carry_out(other, rival))
            assert sorted(one.exit_status or 0 for one in both) == [0, 1]
            winner = CANDIDATE if both[0].exit_status == 0 else propose(SAMPLE, {"SNAP": "snapshots/" + "7" * 40}).data
            assert content(host) == winner
            assert not [name for name in beside(host) if name.endswith(".tmp")]


async def test_dry_runs_are_compared_on_the_head(host: BedHost) -> None:
    for name in ("current", "candidate"):
        host.write(f"{FOLDER}/{name}", (DATA / f"dry-run.{name}.rendered.txt").read_text())
    host.write(f"{FOLDER}/production.sh", LAUNCHER)
    host.root("chmod", "755", f"{FOLDER}/production.sh")
    expected = Expected(OLD, NEW, "dsv41-engram-local", "dsv41-engram-local-1017", 4, 1)
    step = dry_run_step(host.name, (f"{FOLDER}/production.sh", "--dry-run"), CANDIDATE, expected, folder=FOLDER)
    async with linked(host) as link:
        done = await carry_out(link, step)
        assert (done.exit_status, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 8
        assert all(row.startswith("expected rank ") for row in done.stdout.splitlines())
        host.root("sed", "-i", "s/--tp 4/--tp 3/", f"{FOLDER}/candidate")
        done = await carry_out(link, step)
    assert done.exit_status == 1
    assert done.stdout.startswith("SURPRISE rank 0: --tp: 4 -> 3\n")
    assert content(host) == SAMPLE
    assert not [name for name in beside(host) if name.startswith("dry-run.")]


# --- row copies -------------------------------------------------------------------------------------------------------


def send(host: BedHost, folder: Path) -> None:
    """A folder of this machine, below FOLDER, of the host's user."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, arcname=folder.name)
    host.root("sh", "-c", f"base64 -d | tar xzS -C {FOLDER}", stdin=base64.b64encode(packed.getvalue()).decode())
    host.root("chown", "-R", f"{host.user}:", f"{FOLDER}/{folder.name}")


async def test_rows_are_built_and_proved(bed: Bed, host: BedHost, tmp_path: Path) -> None:
    """Where python3 cannot run the copier, the rows of another host's are proved."""
    source = make_snapshot(tmp_path / "repo", REVISION, 1)
    there = f"{FOLDER}/repo/snapshots/{REVISION}"
    send(host, tmp_path / "repo")
    host.write(f"{FOLDER}/copier.py", COPIER)
    copier = ("python3", f"{FOLDER}/copier.py", "none", "{source}", "{dest}", "{ranges}")
    dest = f"{FOLDER}/dsv41-engram-local"
    step = rows_step(host.name, there, dest, RANGES, REVISION, copier, shards=tuple(SHARDS.values()))
    assert source.name == REVISION
    async with linked(host) as link:
        assert (await answers(link, step.before), await answers(link, step.already)) == ([0], [1, 1, 1])
        done = await carry_out(link, step)
        if host.python == "minimal":
            assert done.exit_status == 1 and "the copier ended with exit 1" in done.stderr
            assert "dsv41-engram-local" not in beside(host)
            await asyncio.to_thread(built_elsewhere, bed.full, host, step)
        else:
            assert (done.exit_status, done.stderr) == (0, "")
            assert await answers(link, step.after) == [0, 0, 0, 0]
        assert await answers(link, step.already) == [0, 0, 0]
        host.root("sh", "-c", f"printf x | dd of={dest}/{SHARDS[1]} bs=1 seek=4000 conv=notrunc status=none")
        found = await answers(link, (step.already[0], step.already[2]))
        assert found[0] == 1, "the data is newer than the manifest"
        host.root("touch", f"{dest}/engram-local.json")
        spoiled = replace(step, argv=("sh", "-c", f"head -c 400000 /dev/zero >{dest}/{SHARDS[1]}"), stdin="")
        assert (await carry_out(link, spoiled)).exit_status == 0
        assert await answers(link, (step.already[2],)) == [1]


def built_elsewhere(full: BedHost, host: BedHost, step: Step) -> None:
    """Build the copy on a host that can, from the same snapshot, and bring it here."""
    full.root("install", "-d", "-m", "777", FOLDER)
    packed = host.root("sh", "-c", f"tar czS -C {FOLDER} repo copier.py | base64")
    full.root("sh", "-c", f"base64 -d | tar xzS -C {FOLDER}", stdin=packed)
    full.root(*step.argv, stdin=step.stdin)
    copy = full.root("sh", "-c", f"tar czS -C {FOLDER} dsv41-engram-local | base64")
    host.root("sh", "-c", f"base64 -d | tar xzS -C {FOLDER}", stdin=copy)
    host.root("chown", "-R", f"{host.user}:", f"{FOLDER}/dsv41-engram-local")
    full.root("rm", "-rf", FOLDER)
