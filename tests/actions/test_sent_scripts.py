"""The scripts that steps send to hosts run there on an old python and on one without most of its library."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from importlib import resources

import pytest

from console.actions.probes import scripted
from console.actions.scripts import script
from console.execution import scripts as execution

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


def sent() -> dict[str, str]:
    """Each shell script as it is sent, with what stands in front of it."""
    names = sorted(entry.name for entry in resources.files("console.actions.scripts").iterdir())
    behind = [name for name in names if name.endswith(".sh") and 'main "$@"' in script(name)]
    return {
        **{name: scripted(name)[1] for name in behind},
        **{name: execution.script(name) for name in execution.NAMES},
    }


def test_no_script_takes_a_name_that_the_one_in_front_of_it_calls_its_own_functions_by() -> None:
    """A plain shell has one set of names: a second `told` is what all callers of the first one get."""
    texts = sent()
    counts = {name: Counter(re.findall(r"^\s*([a-z_]+)\(\)", text, re.MULTILINE)) for name, text in texts.items()}
    assert len(texts) > 40 and "look" in counts["launch.sh"] and "lock" in counts["lease"]
    twice = {name: [one for one, times in found.items() if times > 1] for name, found in counts.items()}
    assert {name: names for name, names in twice.items() if names} == {}


def test_every_script_is_in_the_package_and_ends_in_a_newline() -> None:
    names = [entry.name for entry in resources.files("console.actions.scripts").iterdir()]
    assert {"site_edit.py", "site_prove.sh", "site_is.sh", "rows_check.py", "rows_build.sh", "dry_run.sh"} <= set(names)
    assert all(script(name).endswith("\n") for name in names if name.endswith((".py", ".sh")))
