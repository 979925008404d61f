"""The wheel carries what an installed console needs, and works in a clean environment, far from the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from console import __version__

ROOT = Path(__file__).parent.parent
LIMIT = 180.0
"""Seconds for any one step; generous, for it only ends a hang."""


def _run(argv: list[str | Path], cwd: Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        argv, cwd=cwd, env=clean | environment, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source as it stands."""
    folder = tmp_path_factory.mktemp("wheel")
    _run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT],
        folder,
    )
    (built,) = folder.glob("laneswap-*.whl")
    return built


@pytest.fixture(scope="module")
def laneswap(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a clean environment that has the wheel; the libraries are lent from this one."""
    clean = tmp_path_factory.mktemp("clean") / "venv"
    _run([sys.executable, "-m", "venv", "--without-pip", clean], clean.parent)
    python = clean / "bin" / "python"
    _run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel],
        clean.parent,
    )
    # A path in a .pth file goes behind the environment's own packages, and the .pth files there are not read:
    # the editable install of this environment stays out.
    own = Path(_run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], clean.parent).strip())
    (own / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return clean / "bin" / "laneswap"


def test_the_wheel_carries_what_the_console_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"console/console.tcss", "console/rehearsal/engine.py", "console/py.typed"} <= names
    for folder in ("console/fleet/recipes", "console/rehearsal/scenarios"):
        in_source = {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.toml")}
        assert in_source and in_source <= names
    modules = {
        str(path.relative_to(ROOT)) for top in ("console", "widgets", "screens") for path in ROOT.glob(f"{top}/**/*.py")
    }
    assert modules <= names


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"console", "widgets", "screens", f"laneswap-{__version__}.dist-info"}
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".pyc") or "/test" in name]


def test_the_installed_command_says_its_version(laneswap: Path, tmp_path: Path) -> None:
    assert _run([laneswap, "--version"], tmp_path).strip() == __version__
    where = _run([laneswap.parent / "python", "-c", "import console; print(console.__file__)"], tmp_path)
    assert where.startswith(str(laneswap.parent.parent)), "the source was imported instead of the wheel"


def test_the_installed_command_rehearses(laneswap: Path, tmp_path: Path) -> None:
    lines = _run([laneswap, "rehearse", "--headless", "--seconds", "2", "--json"], tmp_path).splitlines()
    documents = [json.loads(line) for line in lines]
    assert len(documents) == 2
    assert all(document["rehearsal"] is True and document["lanes"] and document["hosts"] for document in documents)
