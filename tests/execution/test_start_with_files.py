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


class Swapped:
    """Programs of the host in whose place others stand; they may call the real ones and write into one list."""

    def __init__(self, steps: Steps, folder: Path) -> None:
        self._steps, self._programs = steps, folder / "bin"
        self._programs.mkdir()
        self.told, self.kept = folder / "told", folder / "kept"
        self.told.write_text("")

    def put(self, text: str, *names: str) -> None:
        """`real` calls the program itself, `tell` adds a line, `kept` holds the words of a start that was not made."""
        for name in names:
            path = self._programs / name
            real = f'real() {{ PATH=${{PATH#*:}} {name} "$@"; }}'
            tell = f'tell() {{ printf "%s\\n" "$*" >>{self.told}; }}'
            path.write_text(f"#!/bin/sh\n{real}\n{tell}\nkept={self.kept}\n{text}")
            path.chmod(0o755)

    @property
    def link(self) -> Bent:
        """The host with them."""
        way = f"PATH={self._programs}:{os.environ['PATH']}"
        return Bent(self._steps.link, before=lambda argv: ["env", way, *argv])

    def lines(self) -> list[str]:
        """What they wrote."""
        return self.told.read_text().splitlines()


@pytest.fixture
def swapped(steps: Steps, tmp_path: Path) -> Swapped:
    return Swapped(steps, tmp_path)


LAUNCHERS = "setsid", "systemd-run"


async def test_a_manager_that_takes_no_more_units_is_asked_anew(steps: Steps, swapped: Swapped) -> None:
    """The starter's own way out: the mode that was known does not start anything."""
    swapped.put('tell launch\n[ -e "$kept" ] || { : >"$kept"; echo no more >&2; exit 1; }\nreal "$@"\n', *LAUNCHERS)
    answer = await steps.start(
        "one", "cat", mode=Mode.AUTO, known=await known(steps), stdin="kept\n", link=swapped.link
    )
    assert isinstance(answer, Started), answer
    assert await log(steps, "one") == "kept\n" and swapped.lines() == ["launch", "launch"]


async def test_what_begins_at_the_last_moment_is_not_started_a_second_way(steps: Steps, swapped: Swapped) -> None:
    """A first try that was said to have failed begins after the last look, just before it would be taken back."""
    swapped.put('tell launch\nprintf "%s\\0" "$@" >"$kept"\nexit 1\n', *LAUNCHERS)
    begins = """
case $* in
*/withdrawn)
    S=${*##* } S=${S%/withdrawn}
    tell withdraw
    if [ ! -e "$S/begun" ]; then
        PATH=${PATH#*:} xargs -0 -a "$kept" LAUNCHER 9>&- >/dev/null 2>&1
        tries=0
        while [ ! -e "$S/begun" ] && [ "$tries" -lt 3000 ]; do sleep 0.02; tries=$((tries + 1)); done
    fi
    ;;
esac
real "$@"
"""
    mine = await known(steps)
    swapped.put(begins.replace("LAUNCHER", "setsid" if mine.mode is Mode.NONE else "systemd-run"), "mv")
    answer = await steps.start("one", "cat", mode=Mode.AUTO, known=mine, stdin="kept\n", link=swapped.link)
    assert isinstance(answer, Started), answer
    assert await log(steps, "one") == "kept\n"
    assert swapped.lines().count("launch") == 1 and "withdraw" in swapped.lines()


async def test_a_manager_that_kept_silent_is_not_passed_over(steps: Steps, swapped: Swapped, tmp_path: Path) -> None:
    """What `timeout` ended may have been heard: there is no second way, and what comes late finds nothing to begin."""
    swapped.put("tell launch\nexit 124\n", *LAUNCHERS)
    ran = tmp_path / "ran"
    told = await steps.start("one", "touch", str(ran), mode=Mode.AUTO, known=await known(steps), link=swapped.link)
    assert isinstance(told, Refused) and not told.unknown and "could not be started" in told.problem
    assert swapped.lines() == ["launch"] and (steps.path("one") / "withdrawn").exists() and not ran.exists()


async def test_files_are_on_the_disk_under_their_names_before_anything_begins(steps: Steps, swapped: Swapped) -> None:
    swapped.put('tell launch\nreal "$@"\n', *LAUNCHERS)
    swapped.put('real "$@" && tell sync "$@"\n', "sync")
    swapped.put('real "$@" && tell mv "$@"\n', "mv")
    answer = await steps.start("one", "true", mode=Mode.AUTO, written=files(steps), link=swapped.link)
    assert isinstance(answer, Started), answer
    lines = swapped.lines()
    lines = lines[: lines.index("launch")]
    moved = [line.split() for line in lines if line.startswith("mv ") and "/.new." in line]
    news = {words[-2]: words[-1] for words in moved if words[-1].removeprefix(f"{steps.folder}/") in files(steps)}
    assert len(news) == len(TEXTS)
    first, last = (
        pick(at for at, line in enumerate(lines) if line.split()[-1] in news.values()) for pick in (min, max)
    )
    assert news.keys() <= {word for line in lines[:first] if line.startswith("sync ") for word in line.split()[1:]}
    folders = {name.rpartition("/")[0] for name in news.values()}
    assert folders <= {word for line in lines[last:] if line.startswith("sync ") for word in line.split()[1:]}
    await steps.ended("one")
