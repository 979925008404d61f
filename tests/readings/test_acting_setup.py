"""What a host has for acting, from the answer of the script that looks at it: real shells, odd answers, and garbage."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.doctor_acting import SCRIPT, TOOLS, ActingSetup, Folder, aged_by, parse_acting

STATE = "/var/tmp/laneswap"
SHELLS = [path for name in ("sh", "dash", "bash", "ksh") if (path := shutil.which(name))]


def looked(state: Path | str, *lanes: str, shell: str = "sh", sock: str = "", path: str = "") -> ActingSetup:
    environment = {**os.environ, **({"PATH": path} if path else {})}
    argv = [shutil.which(shell) or shell, "-s", "--", sock, str(state), *lanes]
    done = subprocess.run(argv, input=SCRIPT, capture_output=True, text=True, timeout=60, env=environment, check=True)
    assert done.stderr == ""
    return parse_acting(done.stdout, str(state))


def answer(**sections: tuple[int, str]) -> str:
    rows = []
    for name, (status, said) in sections.items():
        rows += [f"@{name} {status}", *(f"| {row}" for row in said.split("\n"))]
    return "\n".join([*rows, "@end 0", ""])


def setup(**sections: tuple[int, str]) -> ActingSetup:
    return parse_acting(answer(**sections), STATE)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_host_is_looked_at_and_nothing_is_made(shell: str, tmp_path: Path) -> None:
    state = tmp_path / "laneswap"
    found = looked(state, f"{state}/x.l", shell=shell)
    assert found.complete and found.user and found.uid == os.getuid()
    assert found.missing == () and found.state == Folder("none", False, None, "-", "-")
    assert found.above is not None and found.above.ours and found.above.kind == "folder"
    assert found.lanes == (Folder("none", False, None, "-", "-"),)
    assert found.fstype and found.free is not None and found.free > 0
    assert found.aged is not None and found.docker == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_folders_are_told_as_they_are(shell: str, tmp_path: Path) -> None:
    state = tmp_path / "laneswap"
    state.mkdir()
    state.chmod(0o2770)
    (state / "x.l").symlink_to(tmp_path)
    (state / "x.m").write_text("")
    found = looked(state, f"{state}/x.l", f"{state}/x.m", shell=shell)
    assert found.state is not None and (found.state.kind, found.state.ours, found.state.mode) == (
        "folder",
        True,
        0o2770,
    )
    assert [one.kind for one in found.lanes] == ["link", "other"]
    assert found.state.owner and found.state.group == found.group


def test_tools_that_the_login_does_not_find_are_named(tmp_path: Path) -> None:
    for name in ("sh", "env", *TOOLS, "id", "head", "df", "cut", "printf"):
        if name not in ("flock", "find") and (there := shutil.which(name)):
            (tmp_path / name).symlink_to(there)
    assert looked(tmp_path / "state", path=str(tmp_path)).missing == ("flock", "find")


def test_how_docker_goes(tmp_path: Path) -> None:
    for name, body in {"docker": "exit 0", "sudo": 'shift; exec "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert looked(tmp_path / "s", sock=str(tmp_path / "no.sock"), path=path).docker == "gone"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "d.sock"))
        assert looked(tmp_path / "s", sock=str(tmp_path / "d.sock"), path=path).docker == "socket"


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"tools": (0, "flock\nrm -rf /")}, {"missing": ("flock",)}),
        ({"tools": (124, "")}, {"missing": None}),
        (
            {"group": (0, "docker:x:998:ana,ben\nkim:998\nroot:998")},
            {"group": "docker", "members": ("ana", "ben", "kim")},
        ),
        ({"group": (0, "docker:x:998:")}, {"group": "docker", "members": ()}),
        ({"group": (1, "")}, {"group": "", "members": None}),
        ({"group": (124, "docker:x:998:ana")}, {"members": None}),
        (
            {"disk": (0, "Filesystem Type 1024-blocks Used Available Capacity Mounted on\nh:/x y nfs4 9 4 5 45% /mnt")},
            {"fstype": "nfs4", "free": 5 * 1024},
        ),
        ({"disk": (124, "")}, {"fstype": "", "free": None}),
        ({"aged": (127, "")}, {"aged": ""}),
        ({"aged": (3, "")}, {"aged": None}),
        ({"aged": (0, "q /var/tmp - - - 30d")}, {"aged": "30d under /var/tmp"}),
        ({"reaper": (0, "tmpreaper\nx")}, {"reapers": ("tmpreaper",)}),
        ({"docker": (0, "sudo")}, {"docker": "sudo"}),
        ({"docker": (124, "")}, {"docker": ""}),
        ({"folders": (0, "folder yes 1777 root:root\nnonsense\nlink no 777 a:b")}, {"state": None, "lanes": ()}),
        (
            {"folders": (0, "folder yes 1777 root:root\nfolder no 2770 ana:domain users")},
            {"state": Folder("folder", False, 0o2770, "ana", "domain users")},
        ),
    ],
)
def test_each_answer_means_what_it_says(sections: dict[str, tuple[int, str]], expected: dict[str, Any]) -> None:
    found = setup(**sections)
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], ""),
        (["q /var/tmp - - - 30d"], "30d under /var/tmp"),
        (["q /var/tmp/ - - - 30d"], "30d under /var/tmp"),
        (["q /var/tmp - - - -", "q /var - - - 5d"], ""),  # the nearer one names no age: it is kept
        (["q /var - - - 5d"], "5d under /var"),
        (["q /var/tmp - - - 30d", "x /var/tmp/laneswap - - - -"], ""),
        (["q /var/tmp - - - 30d", "x /var/tmp/lane* - - - -"], ""),
        (["q /var/tmp - - - 30d", "X /var/tmp/laneswap - - - -"], "30d under /var/tmp"),
        (["q /var/tmp - - - 30d", "x /var/tmp/other - - - -"], "30d under /var/tmp"),
        (["q /var/tmp - - - 30d", "d /var/tmp/laneswap - - - -"], ""),
        (["d /var/tmp/laneswap - - - 10d", "q /var/tmp - - - 30d"], "10d under /var/tmp/laneswap"),
        (["q /var/tmp - - - 30d", "q /var/tmp - - - -"], "30d under /var/tmp"),  # the first of two counts
        (["q /var/tmp"], ""),
    ],
)
def test_what_clears_it_by_age(rows: list[str], expected: str) -> None:
    assert aged_by(rows, STATE) == expected


@given(st.text())
def test_anything_is_read(text: str) -> None:
    assert isinstance(parse_acting(text, STATE), ActingSetup)
    found = parse_acting("@folders 0\n| " + text + "\n@group 0\n| " + text + "\n@aged 0\n| " + text, STATE)
    assert all(name.isprintable() for name in found.members or ())
