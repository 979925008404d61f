"""The real `hf` command for the hosts: huggingface_hub from PyPI, for Debian's own python3, in one folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bed.system import run

INSIDE = "/srv/hf"
"""Where the hosts have it."""
PINS = (
    "anyio==4.16.0",
    "click==8.5.1",
    "filelock==4.3.1",
    "fsspec==2026.9.0",
    "h11==0.16.0",
    "hf-xet==1.8.0",
    "httpcore2==2.16.2",
    "httpx2==2.16.2",
    "huggingface_hub==2.4.0",
    "idna==3.20",
    "packaging==26.4",
    "PyYAML==6.0.4",
    "tqdm==4.70.1",
    "truststore==0.10.5",
    "typing_extensions==4.16.0",
)
HOST_PYTHON = "3.11"
"""That of the hosts' Debian; this machine's may be another."""
COMMAND = f"""#!/usr/bin/python3
import sys
sys.path.insert(0, "{INSIDE}/lib")
from huggingface_hub.cli.hf import main
sys.exit(main())
"""
"""What pip writes for an entry point, with the hosts' python and our folder."""


def fetch(folder: Path) -> None:
    """Make `folder/lib` and `folder/bin/hf`. Raises BedError."""
    scratch = folder / "pip"
    run([sys.executable, "-m", "venv", str(scratch)], limit=120)
    pip = [str(scratch / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    target = ["--no-deps", "--only-binary=:all:", f"--python-version={HOST_PYTHON}", f"--target={folder / 'lib'}"]
    run([*pip, *target, *PINS], limit=300)
    shutil.rmtree(scratch)
    command = folder / "bin" / "hf"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(0o755)
