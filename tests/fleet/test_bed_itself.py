"""The bed is what the other tests take it for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bed import cgroups, session
from bed.client import Bed
from bed.system import BedError, wait_for

pytestmark = pytest.mark.bed

CAP_SYS_TIME = 1 << 25
HERE = Path(__file__).parent
SERVE = [sys.executable, "-m", "bed", "serve", "2"]


def test_systemd_is_pid_1_and_the_host_has_its_own_address(bed: Bed) -> None:
    for host in bed.hosts:
        assert host.ssh("cat /proc/1/comm").endswith("systemd\n")
        assert host.address in host.ssh("ip -4 -o address show dev eth0")


def test_one_host_has_a_python_without_json(bed: Bed) -> None:
    assert bed.full.root("python3", "-c", "import json; print(json.dumps([1]))") == "[1]\n"
    with pytest.raises(BedError, match="No module named 'json'"):
        bed.minimal.root("python3", "-c", "import json")
    assert bed.minimal.root("python3", "-c", "import sys; print(sys.version_info[0])") == "3\n"


def test_every_host_has_its_own_docker_and_the_images(bed: Bed) -> None:
    identifiers = {json.loads(host.docker("info", "--format", "{{json .ID}}")) for host in bed.hosts}
    assert len(identifiers) == len(bed.hosts)
    for host in bed.hosts:
        assert host.docker("run", "--rm", "laneswap/busybox:bed", "busybox", "echo", "in") == "in"
        assert host.docker("run", "--rm", "laneswap/engine:bed", "python3", "-c", "import http.server, json; print(1)")


def test_sshd_is_stock(bed: Bed) -> None:
    settings = bed.full.root("/usr/sbin/sshd", "-T").splitlines()
    assert "maxsessions 10" in settings
    assert "maxstartups 10:30:100" in settings


def test_no_host_can_set_the_clock(bed: Bed) -> None:
    for host in bed.hosts:
        status = Path(f"/proc/{host.init}/status").read_text()
        bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
        assert bounding is not None and not int(bounding[1], 16) & CAP_SYS_TIME


def test_a_dropped_host_does_not_answer_and_comes_back(bed: Bed) -> None:
    with bed.full.dropped(), pytest.raises(BedError):
        bed.full.ssh("true")
    assert bed.full.ssh("echo back").endswith("back\n")


def test_the_machine_itself_is_left_alone(bed: Bed) -> None:
    assert bed.full.root("cat", "/proc/sys/net/ipv4/ip_forward") == "1\n", "Docker turned it on inside the host"
    assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == bed.description["forwarding_before"]
    own = os.stat("/proc/self/ns/net").st_ino
    assert all(os.stat(f"/proc/{host.init}/ns/net").st_ino != own for host in bed.hosts)
    assert bed.description["folder"] not in Path("/proc/self/mounts").read_text()


def test_a_run_that_was_killed_is_cleaned_up_by_the_next() -> None:
    server = subprocess.Popen(SERVE, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    with server:
        assert server.stdout is not None
        left = json.loads(server.stdout.readline())
        server.kill()
    assert traces(left)
    session.sweep()
    assert not traces(left)


def test_a_run_whose_tests_were_killed_goes_by_itself() -> None:
    program = (
        "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True).wait()"
    )
    tests = subprocess.Popen([sys.executable, "-c", program, *SERVE], cwd=HERE, stdout=subprocess.PIPE)
    with tests:
        assert tests.stdout is not None
        left = json.loads(tests.stdout.readline())
        tests.kill()
    assert traces(left)
    wait_for(lambda: not traces(left), "nothing is left of the run", limit=60)


def traces(run: dict[str, Any]) -> list[str]:
    """What is there of a run: processes, namespaces, links, control groups, files."""
    inits = [f"/proc/{host['init']}" for host in run["hosts"]]
    namespaces = [f"/run/netns/{host['netns']}" for host in run["hosts"]]
    links = [f"/sys/class/net/lsb{run['identifier']}"]
    groups = [str(path) for host in run["hosts"] for path in cgroups.folders(f"laneswap-{host['netns']}")]
    return [path for path in (*inits, *namespaces, *links, *groups, run["folder"]) if Path(path).exists()]
