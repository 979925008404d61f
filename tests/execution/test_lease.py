"""The lease on this machine: one holder, a growing epoch, nothing lost by lost answers, and a console that slept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from host_bench import PATIENCE, Bent, full, lacking, local, lost, until
from hypothesis import given
from hypothesis import strategies as st

from console.execution import lease
from console.execution.lease import Keeper, LeaseAnswer, holder_words, read_lease
from console.execution.scripts import Answer, Exit, script
from console.reach.local import LocalLink
from console.readings.acting_types import Lease
from console.readings.output import Output


@dataclass
class Place:
    """A folder on this machine, and what is done to its lease."""

    link: LocalLink
    path: Path

    @property
    def folder(self) -> str:
        return str(self.path)

    async def take(self, operator: str = "ana", *, link: Any = None, **options: Any) -> LeaseAnswer:
        return await lease.take(
            link or self.link, self.folder, operator, f"{operator}@laptop 17", "a switch", **options
        )

    async def taken(self, operator: str = "ana", **options: Any) -> Lease:
        answer = await self.take(operator, **options)
        assert answer.granted and answer.lease is not None, answer
        return answer.lease

    async def show(self) -> LeaseAnswer:
        return await lease.show(self.link, self.folder)

    def age(self, seconds: int) -> None:
        """The lease was renewed so long ago."""
        rows = (self.path / "lease").read_text().splitlines()
        old = [f"renewed={int(row[8:]) - seconds}" if row.startswith("renewed=") else row for row in rows]
        (self.path / "lease").write_text("\n".join(old) + "\n")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """A folder in which nobody has done anything."""
    async with local() as link:
        yield Place(link, tmp_path / "state" / "bed.lane")


# -- taking, giving, handing over


async def test_nobody_holds_what_was_never_taken_and_asking_makes_nothing(place: Place) -> None:
    answer = await place.show()
    assert (answer.lease, answer.unknown, answer.granted, answer.highest) == (None, False, False, 0)
    assert answer.now is not None and abs(answer.now - time.time()) < 60
    assert not place.path.parent.exists()


async def test_a_lease_is_taken_once_and_says_everything(place: Place) -> None:
    mine = await place.taken("ana", ttl=45.0)
    assert (mine.operator, mine.console, mine.purpose, mine.epoch) == ("ana", "ana@laptop 17", "a switch", 1)
    assert (mine.ttl, mine.offered_to, mine.acquired) == (45.0, "", mine.renewed)

    answer = await place.take("ben")
    assert (answer.granted, answer.unknown, answer.lease) == (False, False, mine)
    assert answer.problem == "ana holds the lease" and not answer.expired
    assert (await place.show()).lease == mine


async def test_of_many_who_take_at_once_one_gets_it(place: Place) -> None:
    answers = await asyncio.gather(*(place.take(f"operator{number}") for number in range(6)))
    assert sorted(answer.granted for answer in answers) == [False] * 5 + [True]
    assert {answer.lease.id for answer in answers if answer.lease} == {(await taken_now(place)).id}


async def taken_now(place: Place) -> Lease:
    found = (await place.show()).lease
    assert found is not None
    return found


async def test_epochs_grow_whatever_happens_to_the_lease(place: Place) -> None:
    epochs = []
    for number in range(3):
        mine = await place.taken()
        epochs.append(mine.epoch)
        if number == 1:
            (place.path / "epoch").unlink()
            epochs.append((await place.taken("ben", over=True)).epoch)
            mine = await taken_now(place)
        assert (await lease.release(place.link, place.folder, mine.id)).granted
        assert (await place.show()).lease is None
    assert epochs == [1, 2, 3, 4]


async def test_an_expired_lease_is_not_free_but_can_be_taken_over_and_names_both(place: Place) -> None:
    old = await place.taken("ana", ttl=60.0)
    place.age(61)
    answer = await place.take("ben")
    assert not answer.granted and answer.expired and answer.lease is not None and answer.lease.id == old.id
    answer = await place.take("ben", over=True, seen=old.id)
    assert answer.granted and answer.taken_from == "ana" and answer.lease is not None
    assert (answer.lease.epoch, answer.lease.operator) == (2, "ben")


async def test_who_was_overtaken_by_a_third_takes_nothing_over(place: Place) -> None:
    seen = await place.taken("ana")
    third = await place.taken("cleo", over=True)
    answer = await place.take("ben", over=True, seen=seen.id)
    assert not answer.granted and answer.lease == third


async def test_after_a_takeover_nothing_of_the_old_holder_is_heeded(place: Place) -> None:
    old = await place.taken("ana")
    new = await place.taken("ben", over=True)
    for act in (lease.renew, lease.release):
        answer = await act(place.link, place.folder, old.id)
        assert answer.fenced and not answer.granted and answer.lease == new
    answer = await lease.offer(place.link, place.folder, old.id, "cleo")
    assert answer.fenced and (await taken_now(place)).offered_to == ""
    assert "ben holds the lease" in answer.problem


async def test_renewing_moves_the_time_and_nothing_else(place: Place) -> None:
    mine = await place.taken()
    place.age(50)
    answer = await lease.renew(place.link, place.folder, mine.id)
    assert answer.granted and answer.lease is not None and answer.now is not None
    assert answer.lease.renewed == answer.now and answer.lease.acquired == mine.acquired
    assert (answer.lease.epoch, answer.lease.id) == (mine.epoch, mine.id)


async def test_an_expired_lease_that_nobody_took_is_renewed(place: Place) -> None:
    mine = await place.taken(ttl=1.0)
    place.age(500)
    assert (await place.show()).expired
    assert (await lease.renew(place.link, place.folder, mine.id)).granted


async def test_what_was_given_back_is_gone_and_giving_back_twice_is_fine(place: Place) -> None:
    mine = await place.taken()
    assert (await lease.release(place.link, place.folder, mine.id)).granted
    assert (await lease.release(place.link, place.folder, mine.id)).granted
    answer = await lease.renew(place.link, place.folder, mine.id)
    assert answer.gone and not answer.fenced and answer.problem == "nobody holds the lease any more"


async def test_handing_over_wants_an_offer_and_its_very_name(place: Place) -> None:
    mine = await place.taken("ana")
    refused = await lease.accept(place.link, place.folder, "ben", "ben@desk 3")
    assert not refused.granted and "was not offered to ben" in refused.problem
    assert (await lease.offer(place.link, place.folder, mine.id, "ben")).granted
    assert not (await lease.accept(place.link, place.folder, "cleo", "cleo@desk 3")).granted
    assert (await taken_now(place)).offered_to == "ben"

    answer = await lease.accept(place.link, place.folder, "ben", "ben@desk 3")

    assert answer.granted and answer.lease is not None and answer.taken_from == "ana"
    assert (answer.lease.operator, answer.lease.epoch, answer.lease.purpose) == ("ben", 2, "a switch")
    assert (answer.lease.console, answer.lease.offered_to) == ("ben@desk 3", "")
    assert (await lease.renew(place.link, place.folder, mine.id)).fenced


async def test_an_offer_is_taken_back(place: Place) -> None:
    mine = await place.taken("ana")
    await lease.offer(place.link, place.folder, mine.id, "ben")
    assert (await lease.offer(place.link, place.folder, mine.id, "")).granted
    assert not (await lease.accept(place.link, place.folder, "ben", "ben@desk 3")).granted
    assert not (await lease.accept(place.link, place.folder, "", "ben@desk 3")).granted


async def test_a_lost_answer_is_looked_up(place: Place) -> None:
    def once(output: Output) -> Output:
        return lost(output) if "take" in output.command else output

    answer = await place.take("ana", link=Bent(place.link, after=once))
    assert answer.granted and answer.lease == await taken_now(place)


async def test_a_take_that_never_came_is_unknown_and_the_same_take_can_be_sent_again(place: Place) -> None:
    def nothing(output: Output) -> Output:
        return lost(output)

    id = lease.new_id()
    answer = await place.take("ana", id=id, link=Bent(place.link, after=nothing))
    assert answer.unknown and not answer.granted
    again = await place.take("ana", id=id)
    assert again.granted and again.lease is not None and (again.lease.id, again.lease.epoch) == (id, 1)


# -- the lock


async def test_the_lock_is_not_handed_to_children_and_waiting_for_it_is_bounded(place: Place) -> None:
    await place.taken()
    with holding(place.path / "lock"):
        quick = script("lease").replace('flock -w "${1:-10}"', 'flock -w "${1:-0.3}"')
        assert 'flock -w "${1:-0.3}"' in quick
        output = await place.link.run(["sh", "-c", quick, "x", "renew", place.folder, "abc"])
        assert output.exit_status == 5 and "is held by another command" in output.stderr
    # a fenced command that lives on does not hold it
    running = asyncio.create_task(
        place.link.run(["sh", "-c", script("fence"), "x", place.folder, "1", "--", "sleep", "600"], limit=600)
    )
    await asyncio.sleep(0.3)
    assert (await place.take("ben", over=True)).granted
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@contextlib.contextmanager
def holding(lock: Path) -> Iterator[None]:
    """Another command holds the lock."""
    import fcntl

    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def test_a_host_without_flock_says_so(place: Place, tmp_path: Path) -> None:
    answer = await place.take(link=Bent(place.link, before=lacking(tmp_path, "flock")))
    assert not answer.granted and not answer.unknown
    assert answer.problem == "flock is not installed on this host (package util-linux)"


# -- broken and hostile


async def test_a_full_disk_changes_nothing(place: Place) -> None:
    mine = await place.taken("ana")
    before = {file.name: file.read_bytes() for file in place.path.iterdir()}
    broken = Bent(place.link, before=full)
    for answer in (
        await place.take("ben", over=True, link=broken),
        await lease.renew(broken, place.folder, mine.id),
        await lease.offer(broken, place.folder, mine.id, "ben"),
    ):
        assert not answer.granted and not answer.unknown and not answer.fenced and not answer.gone
        assert "lease cannot be written" in answer.problem
    assert {file.name: file.read_bytes() for file in place.path.iterdir()} == before
    assert (await lease.renew(place.link, place.folder, mine.id)).granted


DAMAGED = ["", "\n", "id=abc\n", "epoch=5\nid=../x\n", "\0" * 100, "x" * 100_000, "epoch=08\n"]


@pytest.mark.parametrize("content", DAMAGED)
async def test_a_damaged_lease_is_known_as_such_and_only_taken_over(place: Place, content: str) -> None:
    mine = await place.taken()
    (place.path / "lease").write_text(content)
    shown = await place.show()
    assert shown.damaged and shown.lease is None and not shown.unknown
    refused = await place.take("ben")
    assert not refused.granted and "damaged" in refused.problem
    assert not (await lease.renew(place.link, place.folder, mine.id)).granted
    new = await place.taken("ben", over=True)
    assert new.epoch == 2


@pytest.mark.parametrize("content", ["", "x\n", "-1\n", "007\n", "9" * 16, "1 2\n", "$(id)\n"])
async def test_a_damaged_epoch_stops_everything_with_words(place: Place, content: str) -> None:
    mine = await place.taken()
    (place.path / "epoch").write_text(content)
    for answer in (
        await place.take("ben", over=True),
        await lease.renew(place.link, place.folder, mine.id),
    ):
        assert not answer.granted and "epoch is damaged" in answer.problem


@pytest.mark.parametrize("name", ["lease", "epoch", "lock"])
async def test_links_and_pipes_in_place_of_files_are_refused(place: Place, tmp_path: Path, name: str) -> None:
    await place.taken()
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    (place.path / name).unlink()
    (place.path / name).symlink_to(victim)
    assert not (await place.take("ben", over=True)).granted or name == "lease"
    assert victim.read_text() == "precious\n"
    (place.path / name).unlink(missing_ok=True)
    os.mkfifo(place.path / name)
    answer = await place.take("ben", over=True)
    assert not answer.granted and "not a plain file" in answer.problem


async def test_a_hostile_name_stays_one_line_of_text(place: Place) -> None:
    name = "ana\nepoch=99\x1b[2J\u202e=$(touch OWNED)'\"\\"
    mine = await place.taken(name)
    assert mine.epoch == 1 and mine.operator.isprintable() and mine.operator.startswith("ana epoch=99")
    assert (await taken_now(place)) == mine


async def test_hostile_text_in_the_file_is_made_safe(place: Place) -> None:
    await place.taken()
    text = (place.path / "lease").read_text().replace("operator=ana", "operator=\x1b]0;x\x07ana\u202e")
    (place.path / "lease").write_text(text)
    assert (await taken_now(place)).operator == "ana"


@given(
    st.dictionaries(
        st.sampled_from(["id", "epoch", "operator", "acquired", "renewed", "ttl", "holder", "now", "highest", "from"]),
        st.one_of(st.text(), st.integers().map(str), st.sampled_from(["held", "nobody", "damaged", "abc"])),
    ),
    st.one_of(st.none(), st.sampled_from(Exit)),
)
def test_any_answer_is_read(values: dict[str, str], exit: Exit | None) -> None:
    answer = read_lease(Answer(exit, values, "x"))
    assert answer.granted is (exit is Exit.OK and not answer.unknown)
    assert answer.unknown or exit is not None
    if answer.lease is not None:
        assert answer.lease.id.isprintable() and answer.lease.operator.isprintable() and answer.lease.epoch >= 0
    assert answer.taken_from.isprintable() or not answer.taken_from


# -- the keeper


class Clock:
    """A clock that can jump."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return lease.elapsed() + self.ahead


def keep(place: Place, mine: Lease, **options: Any) -> Keeper:
    options.setdefault("link", place.link)
    link = options.pop("link")
    options.setdefault("every", 0.1)
    return Keeper(link, place.folder, mine, **options)


async def test_a_keeper_renews(place: Place) -> None:
    mine = await place.taken()
    place.age(40)
    keeper = keep(place, mine)
    keeper.start()
    await until(lambda: keeper.lease.renewed > mine.renewed - 40 and keeper.now is not None, "it was renewed")
    assert await keeper.mine() and keeper.fresh and not keeper.lost.is_set()
    await keeper.close()
    answer = await keeper.release()
    assert answer.granted and not await keeper.mine() and (await place.show()).lease is None


async def test_a_keeper_that_lost_its_lease_says_who_holds_it_since_when(place: Place) -> None:
    keeper = keep(place, await place.taken("ana"))
    keeper.start()
    new = await place.taken("ben", over=True)
    async with asyncio.timeout(30):
        await keeper.lost.wait()
    assert keeper.holder == new and not await keeper.mine() and not keeper.fresh
    since = time.strftime("%H:%M:%S", time.gmtime(new.acquired))
    assert keeper.words.startswith(f"ben holds the lease on ben@laptop 17 since {since}Z, ")
    await keeper.close()


async def test_a_console_that_slept_asks_before_it_says_mine(place: Place) -> None:
    clock = Clock()
    link = Bent(place.link)
    keeper = keep(place, await place.taken("ana"), link=link, every=600.0, clock=clock)
    assert await keeper.mine() and not link.asked
    new = await place.taken("ben", over=True)
    assert keeper.fresh  # it cannot know yet

    clock.ahead = lease.ASLEEP + 1.0

    assert not keeper.fresh and not keeper.lost.is_set()
    assert not await keeper.mine()
    assert keeper.holder == new and len(link.asked) == 1


async def test_a_console_that_slept_and_lost_nothing_goes_on(place: Place) -> None:
    clock = Clock()
    keeper = keep(place, await place.taken("ana"), every=600.0, clock=clock)
    clock.ahead = 10_000.0
    assert not keeper.fresh
    assert await keeper.mine() and keeper.fresh


async def test_the_doubt_of_a_sleep_stays_until_the_head_has_answered(place: Place) -> None:
    clock = Clock()
    down = True
    link = Bent(place.link, after=lambda output: lost(output) if down else output)
    keeper = keep(place, await place.taken("ana"), link=link, every=600.0, clock=clock)
    keeper.start()
    await asyncio.sleep(0)
    clock.ahead = lease.ASLEEP + 1.0
    await until(lambda: len(link.asked) >= 2, "the running task has noticed and asks")
    assert not keeper.fresh and not await keeper.mine() and not keeper.lost.is_set()
    assert "could not be renewed: connection lost" in keeper.words
    down = False
    assert await keeper.mine() and keeper.words == ""
    await keeper.close()


async def test_a_stalled_loop_counts_as_sleep(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "ASLEEP", 0.3)
    keeper = keep(place, await place.taken("ana"), every=600.0)
    keeper._ticked = keeper._clock()
    assert keeper.fresh
    threading.Event().wait(0.4)  # nothing else runs meanwhile
    assert not keeper.fresh


async def test_without_an_answer_a_lease_is_ours_for_its_time_to_live_and_no_longer(place: Place) -> None:
    clock = Clock()
    link = Bent(place.link, after=lost)
    keeper = keep(place, await place.taken("ana"), link=link, every=600.0, ttl=60.0, clock=clock)
    for step in range(1, 20):
        clock.ahead = 4.0 * step
        keeper._ticked = clock()  # it is awake
        assert keeper.fresh is (clock.ahead < 60.0), clock.ahead
    assert not await keeper.mine() and not keeper.lost.is_set()


async def test_a_lease_that_was_given_back_behind_our_back_is_lost(place: Place) -> None:
    mine = await place.taken("ana")
    keeper = keep(place, mine)
    await lease.release(place.link, place.folder, mine.id)
    await keeper.renew()
    assert keeper.lost.is_set() and keeper.holder is None and "nobody holds it" in keeper.words


async def test_a_lease_whose_epoch_was_overtaken_is_lost(place: Place) -> None:
    mine = await place.taken("ana")
    keeper = keep(place, mine)
    (place.path / "epoch").write_text("9\n")
    answer = await keeper.renew()
    assert answer.granted and keeper.lost.is_set()


async def test_a_head_with_a_full_disk_is_no_loss(place: Place) -> None:
    keeper = keep(place, await place.taken("ana"), link=Bent(place.link, before=full))
    await keeper.renew()
    assert not keeper.lost.is_set() and "cannot be written" in keeper.words


KEEPING = """
import asyncio, sys
from console.execution.lease import Keeper, show
from console.fleet.inventory import Rates
from console.reach.local import LocalLink

async def main(folder):
    link = LocalLink("here", Rates())
    await link.start()
    found = await show(link, folder)
    keeper = Keeper(link, folder, found.lease, every=0.2)
    keeper.start()
    print("keeps", flush=True)
    # a key that was pressed while the console slept
    await asyncio.to_thread(sys.stdin.readline)
    print(await keeper.mine(), keeper.words, flush=True)
    await keeper.close()
    await link.close()

asyncio.run(main(sys.argv[1]))
"""


async def test_a_console_that_was_stopped_wakes_up_fenced_and_names_the_holder(place: Place) -> None:
    await place.taken("ana")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KEEPING, place.folder, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            assert await child.stdout.readline() == b"keeps\n"
            child.send_signal(signal.SIGSTOP)
            await place.taken("ben", over=True)
            child.stdin.write(b"\n")
            # longer than it may be late: this is what makes it ask
            await asyncio.sleep(lease.ASLEEP + 1.0)
            child.send_signal(signal.SIGCONT)
            said = (await child.stdout.readline()).decode()
            assert said.startswith("False ben holds the lease on ben@laptop 17 since "), said
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


@pytest.mark.parametrize(
    ("now", "ago"), [(1000.0, ", 0s ago"), (1042.0, ", 42s ago"), (1192.0, ", 3m12s ago"), (None, ""), (10.0, "")]
)
def test_holders_are_named(now: float | None, ago: str) -> None:
    other = Lease("ben", "", "abc", 2, 1000.0, 1000.0, 60.0)
    assert holder_words(other, now) == f"ben holds the lease since 00:16:40Z{ago}"
