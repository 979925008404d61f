"""Set-up on real hosts: `doctor` says what is missing, `init` makes a fleet file that is live at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bed.client import Bed, BedHost
from bed.engines import run_engine
from bed.system import run
from bed_lane import CONTAINER, OLD, SmallLane

pytestmark = [pytest.mark.bed, pytest.mark.timeout(300)]

LIMIT = 150.0
"""Seconds after which a command has failed."""
FLEET = """
name = "bed"
state = "/var/tmp/doctor"
[hosts]
well = {{ ssh = "{hosts[0].name}", config = "{hosts[0].ssh_config}" }}
poor = {{ ssh = "{hosts[1].stranger}@{hosts[1].name}", config = "{hosts[1].ssh_config}" }}
small = {{ ssh = "{hosts[2].name}", config = "{hosts[2].ssh_config}" }}
changed = {{ ssh = "{hosts[0].name}", config = "{changed}" }}
gone = {{ ssh = "ops@{gone}", identity = "{hosts[0].key}" }}
[lanes.dsv41]
recipe = "sglang-fleet-env"
url = "http://127.0.0.1:8210"
head = "well"
ranks = ["well", "poor", "small", "changed", "gone"]
vars.root = "~/recipe"
"""


def laneswap(*arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One command line of this environment's laneswap."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    if home is not None:
        environment["HOME"] = str(home)
    argv = [sys.executable, "-m", "console", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, env=environment)


@pytest.fixture
def lane(bed: Bed, three: tuple[BedHost, ...]) -> Iterator[SmallLane]:
    """A lane that serves: fleet.env on the head, an engine there, a container on each other rank."""
    found = SmallLane(bed, three)
    try:
        found.write_site(OLD)
        found.write_checkpoint(OLD)
        found.share_image()
        for client in found.clients:
            found.mount(client)
            found.launch(client)
        run_engine(found.head, CONTAINER, "sglang", 8210, network="host")
        yield found
    finally:
        found.clear()


def test_doctor_says_what_is_missing_on_each_host(bed: Bed, three: tuple[BedHost, ...], tmp_path: Path) -> None:
    changed = other_key(bed, tmp_path)
    gone = f"{bed.gateway.rpartition('.')[0]}.200"
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.format(hosts=three, changed=changed, gone=gone))
    done = laneswap("doctor", "--json", "-f", str(file))
    assert done.returncode == 1, done.stderr
    told: dict[tuple[str, str], dict[str, Any]] = {
        (check["about"], check["name"]): check for check in json.loads(done.stdout)["checks"]
    }
    verdicts = {key: check["verdict"] for key, check in told.items()}

    for name in (
        "reachable",
        "clock",
        "python3",
        "docker",
        "lingering",
        "RemoveIPC",
        "systemd",
        "user manager",
        "sudo",
    ):
        assert verdicts["host well", name] == "OK", told["host well", name]
    assert verdicts["host well", "login shell"] == "LOOK", "its .bashrc prints"
    assert verdicts["host well", "other consoles"] == "OK"
    assert verdicts["host small", "python3"] == "OK", "the sampler needs no json"

    assert verdicts["host poor", "docker"] == "FAIL" and "docker" in told["host poor", "docker"]["advice"]
    assert verdicts["host poor", "lingering"] == "LOOK"
    assert f"enable-linger {three[1].stranger}" in told["host poor", "lingering"]["advice"]
    assert verdicts["host poor", "RemoveIPC"] == "LOOK"
    assert verdicts["host poor", "sudo"] != "FAIL"

    assert verdicts["host changed", "reachable"] == "FAIL" and "key" in told["host changed", "reachable"]["found"]
    assert verdicts["host gone", "reachable"] == "FAIL"
    assert ("host gone", "docker") not in told, "of a host that is away nothing else is said"
    assert verdicts["lane dsv41", "endpoint"] == "LOOK", "nothing serves there now"
    assert verdicts["lane dsv41", "site file"] != "OK", "there is none"
    see_what_acting_needs(told, three)
    for host in three:
        assert "doctor" not in host.root("ls", "/var/tmp").split(), "doctor made the state folder"


def see_what_acting_needs(told: dict[tuple[str, str], dict[str, Any]], three: tuple[BedHost, ...]) -> None:
    """Of an account in group docker that lingers, and of one that is in neither."""
    for name in ("acting tools", "state folder", "state disk", "clearing by age", "detached steps", "docker command"):
        assert told["host well", name]["verdict"] == "OK", told["host well", name]
    assert "for group docker" in told["host well", "state folder"]["found"]
    assert told["host poor", "acting tools"]["verdict"] == "OK"
    assert told["host poor", "state folder"]["verdict"] == "LOOK"
    assert f"for {three[1].stranger} alone" in told["host poor", "state folder"]["found"]
    assert f"enable-linger {three[1].stranger}" in told["host poor", "detached steps"]["advice"]
    assert told["host poor", "docker command"]["verdict"] == "FAIL"
    assert ("host gone", "acting tools") not in told
    assert told["lane dsv41", "acts"]["verdict"] == "OK"
    assert told["lane dsv41", "head's python3"]["verdict"] == "OK"
    assert told["lane dsv41", "head's ssh"]["verdict"] == "LOOK", "one of the ranks is away"
    assert "gone: " in told["lane dsv41", "head's ssh"]["found"]


def other_key(bed: Bed, folder: Path) -> Path:
    """An ssh_config of the bed's with a known_hosts in which the first host has another key."""
    key = folder / "other"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    kind, public, *_ = (folder / "other.pub").read_text().split()
    known = folder / "known_hosts"
    known.write_text(f"{bed.hosts[0].address} {kind} {public}\n")
    config = folder / "ssh_config"
    config.write_text(bed.hosts[0].ssh_config.read_text().replace(str(bed.hosts[0].known_hosts), str(known)))
    return config


def test_init_from_a_site_file_on_a_host_is_live_at_once(lane: SmallLane, tmp_path: Path) -> None:
    home = own_home(lane.bed, tmp_path)
    file = tmp_path / "fleet.toml"
    source = f"{lane.head.name}:/home/{lane.head.user}/recipe/launch/fleet.env"
    done = laneswap("init", "--from-site", source, "--output", str(file), home=home)
    assert done.returncode == 0, done.stderr + done.stdout
    checked = laneswap("config", "check", "-f", str(file), home=home)
    assert checked.returncode == 0, checked.stderr + checked.stdout

    done = laneswap("status", "--json", "-f", str(file), home=home)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert [host["memory"]["quality"] for host in document["hosts"].values()] == ["LIVE"] * len(lane.hosts)
    (one,) = document["lanes"].values()
    assert one["state"] == "serving", one["why"]
    assert [rank["word"] for rank in one["ranks"]] == ["up"] * len(lane.hosts)
    assert one["site_file"]["value"]["revision"] == OLD
    assert {host for host in one["checkpoints"]} == set(document["hosts"])
    assert one["unfilled"] == []


def own_home(bed: Bed, folder: Path) -> Path:
    """A home folder whose ssh is set up for the bed, as an operator's would be."""
    home = folder / "home"
    ssh = home / ".ssh"
    ssh.mkdir(parents=True)
    ssh.chmod(0o700)
    shutil.copy(bed.hosts[0].key, ssh / "id_ed25519")
    shutil.copy(bed.hosts[0].known_hosts, ssh / "known_hosts")
    shutil.copy(bed.hosts[0].ssh_config, ssh / "config")
    return home
