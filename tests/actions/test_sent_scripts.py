"""The scripts that steps send to hosts run there on an old python and on one without most of its library."""

from __future__ import annotations

import ast
import subprocess
from importlib import resources

import pytest

from console.actions.scripts import script

MINIMAL = {
    *("__future__", "binascii", "collections.abc", "errno", "fcntl", "hashlib", "os", "pwd", "random", "re", "signal"),
    *("stat", "struct", "subprocess", "sys", "time"),
}
"""Modules that python3-minimal of Debian and Ubuntu has."""


@pytest.mark.parametrize("name", ["site_edit.py", "rows_check.py"])
def test_a_python_script_needs_no_more_than_python3_minimal(name: str) -> None:
    tree = ast.parse(script(name), feature_version=(3, 8))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    assert found <= MINIMAL


@pytest.mark.parametrize(
    ("name", "shell"), [("dry_run.sh", "sh"), ("rows_build.sh", "sh"), ("site_is.sh", "sh"), ("site_prove.sh", "bash")]
)
def test_a_shell_script_is_one(name: str, shell: str) -> None:
    done = subprocess.run([shell, "-n"], input=script(name), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_script_is_in_the_package_and_ends_in_a_newline() -> None:
    names = [entry.name for entry in resources.files("console.actions.scripts").iterdir()]
    assert {"site_edit.py", "site_prove.sh", "site_is.sh", "rows_check.py", "rows_build.sh", "dry_run.sh"} <= set(names)
    assert all(script(name).endswith("\n") for name in names if name.endswith((".py", ".sh")))
