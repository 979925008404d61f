"""A start that brings files along, and one that knows what the host said of itself before."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from host_bench import Bent, Steps, full, local

from console.execution import detached
from console.execution.detached import Fenced, Mode, Modes, Refused, Started

TEXTS = {"current": "newest\n", "ops/{op}/plan.json": '{"ü": 1}\n' * 9000, "ops/{op}/runner.py": "x"}
KNOWN = "/known/to/me:/usr/bin:/bin"


@pytest.fixture
async def steps(tmp_path: Path) -> AsyncIterator[Steps]:
    async with local() as link:
        yield Steps(link, tmp_path / "state" / "bed.lane")


def files(steps: Steps) -> dict[str, str]:
    return {name.replace("{op}", steps.op): text for name, text in TEXTS.items()}


def there(steps: Steps) -> dict[str, str]:
    """The files that a start brought, and whatever it left of them."""
    folder = Path(steps.folder)
    found = [*folder.glob("*"), *folder.glob("ops/*/*")]
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in found
        if path.is_file() and path.name not in ("lock", "epoch")
    }


async def log(steps: Steps, step: str) -> str:
    await steps.ended(step)
    return ((await detached.log(steps.link, steps.folder, steps.op, step)) or b"").decode()


async def test_files_are_there_before_it_runs_and_the_rest_is_its_own_stdin(steps: Steps) -> None:
    plan = f"{steps.folder}/ops/{steps.op}/plan.json"
    await steps.started("one", "sh", "-c", 'wc -c <"$1"; cat', "x", plan, written=files(steps), stdin="mine\n")
    assert await log(steps, "one") == f"{len(files(steps)[f'ops/{steps.op}/plan.json'].encode())}\nmine\n"
    assert there(steps) == files(steps)


async def test_who_joins_changes_no_file(steps: Steps) -> None:
    await steps.started("one", "true", written=files(steps))
    again = await steps.start("one", "true", written={"current": "another\n"})
    assert isinstance(again, Started) and again.joined
    assert there(steps) == files(steps)


async def test_what_is_cut_off_replaces_nothing_and_starts_nothing(steps: Steps, tmp_path: Path) -> None:
    await detached.start(steps.link, steps.folder, steps.op, "zero", 1, ["true"], written={"current": "before\n"})

    def more(argv: Sequence[str]) -> list[str]:
        return [word.replace("runner.py:1", "runner.py:2") if "runner.py:1" in word else word for word in argv]

    ran = tmp_path / "ran"
    answer = await steps.start("one", "touch", str(ran), written=files(steps), link=Bent(steps.link, before=more))
    assert isinstance(answer, Refused) and answer.files and not answer.unknown and "cut off" in answer.problem
    assert there(steps) == {"current": "before\n"} and not ran.exists()


async def test_a_full_disk_takes_no_file(steps: Steps, tmp_path: Path) -> None:
    await steps.started("zero", "true")
    await steps.ended("zero")
    ran = tmp_path / "ran"
    answer = await steps.start("one", "touch", str(ran), written=files(steps), link=Bent(steps.link, before=full))
    assert isinstance(answer, Refused) and answer.files and "cannot be written" in answer.problem
    assert there(steps) == {} and not ran.exists()


async def test_an_older_epoch_brings_nothing(steps: Steps) -> None:
    await steps.started("zero", "true", epoch=7)
    answer = await steps.start("one", "true", epoch=6, written=files(steps))
    assert isinstance(answer, Fenced) and answer.epoch == 7
    assert there(steps) == {}


@pytest.mark.parametrize("name", ["lease", "epoch", "lock", "../x", "/etc/x", "a b"])
async def test_files_that_lead_elsewhere_are_refused(steps: Steps, name: str) -> None:
    answer = await steps.start("one", "true", written={name: "x"})
    assert isinstance(answer, Refused) and there(steps) == {}


def here(path: str) -> bool:
    """Whether this machine has what is to be missing."""
    return os.path.exists(f"{path}/root" if "linger" in path else path)


async def known(steps: Steps) -> Modes:
    return await detached.modes(steps.link, steps.folder, path=True)


async def test_what_a_host_said_of_itself_is_what_a_start_finds_out(steps: Steps) -> None:
    found = await known(steps)
    assert found.mode is not None and found.boot and found.path.startswith("/")
    await steps.started("one", "sh", "-c", 'echo "$PATH"', mode=Mode.AUTO)
    assert await log(steps, "one") == f"{found.path}\n"
    assert (await steps.state("one")).mode == found.mode.value
    assert not (await detached.modes(steps.link, steps.folder)).path


async def test_what_is_known_is_not_found_out_again(steps: Steps) -> None:
    mine = replace(await known(steps), path=KNOWN)
    await steps.started("one", "sh", "-c", 'echo "$PATH"', mode=Mode.AUTO, known=mine)
    assert await log(steps, "one") == f"{KNOWN}\n"


@pytest.mark.parametrize(
    "change",
    [
        {"boot": "another"},
        {"boot": ""},
        {"path": "not/a/path"},
        {"mode": None},
        {"mode": Mode.USER, "gone": "/var/lib/systemd/linger"},
        {"mode": Mode.SYSTEM, "gone": "/run/systemd/system"},
    ],
)
async def test_what_holds_no_longer_is_found_out_anew(steps: Steps, change: dict[str, object]) -> None:
    found = await known(steps)
    gone = change.get("gone")
    if gone and here(str(gone)):
        pytest.skip("this machine has what is to be missing; the real hosts' tests cover it")
    changed = {key: value for key, value in change.items() if key != "gone"}
    stale = replace(found, **{"path": KNOWN, **changed})  # type: ignore[arg-type]
    await steps.started("one", "sh", "-c", 'echo "$PATH"', mode=Mode.AUTO, known=stale)
    assert await log(steps, "one") == f"{found.path}\n"


async def test_a_manager_that_takes_no_more_units_is_asked_anew(steps: Steps, tmp_path: Path) -> None:
    """The starter's own way out: the mode that was known does not start anything."""
    found = await known(steps)
    broken = tmp_path / "bin"
    broken.mkdir()
    for name in ("setsid", "systemd-run"):
        path = broken / name
        # the first call of it fails
        path.write_text(
            f"#!/bin/sh\n[ -e {tmp_path}/tried ] || {{ : >{tmp_path}/tried; echo 'no more units' >&2; exit 1; }}\n"
            f'PATH=${{PATH#*:}}\nexec {name} "$@"\n'
        )
        path.chmod(0o755)
    link = Bent(steps.link, before=lambda argv: ["env", f"PATH={broken}:{os.environ['PATH']}", *argv])
    answer = await steps.start("one", "cat", mode=Mode.AUTO, known=found, stdin="kept\n", link=link)
    assert isinstance(answer, Started), answer
    assert await log(steps, "one") == "kept\n" and (tmp_path / "tried").exists()
