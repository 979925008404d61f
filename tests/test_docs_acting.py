"""The manual of the acting side says what the product does: steps of real plans, file names, words, bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import resources

import pytest
from manual import ROOT, beside, code, first_cells, page, rows, section

from console.actions import strip
from console.actions.plan import Plan, Probe, Verb
from console.execution import aftercare, carrying, deadman, lease, policy, window
from console.execution.runner_base import ONCE, groups
from console.execution.scripts import Exit
from console.execution.tenure import DEBTS, WINDOW
from console.fleet import inventory
from console.readings import acting, underway
from console.readings.acting_types import OperationState, StepState

scenes = beside("actions", "scenes")

PLANS = {
    "D: disarm": (scenes.spark, Verb.DISARM),
    "D: arm": (scenes.spark, Verb.ARM),
    "S: stop, a fleet": (scenes.spark, Verb.STOP),
    "S: stop, a Docker lane": (scenes.docker, Verb.STOP),
    "R: relaunch, a fleet": (scenes.spark, Verb.RELAUNCH),
    "R: relaunch, a Docker lane": (scenes.docker, Verb.RELAUNCH),
    "B: roll back, a fleet": (scenes.spark, Verb.ROLLBACK),
    "B: roll back, a Docker lane": (scenes.docker, Verb.ROLLBACK),
}


# --- acting.md: what each key does -----------------------------------------------------------------------------------


def plain(text: str, plan: Plan) -> str:
    """A title or an observation without the names of this one lane."""
    hosts = {step.host for step in plan.steps}
    text = re.sub(rf"\b({'|'.join(map(re.escape, sorted(hosts)))})\b", "HOST", text)
    text = re.sub(r"\b[0-9a-f]{12}\b is called \S+", "is called NAME", text)
    text = re.sub(r"dsv41-\w+-(?:BOUND|RETIRED)-REF|\bsgldsv41\b|deepseek-v4\.1-flash|dsv41-flash-uva", "NAME", text)
    return re.sub(r"\b[0-9a-f]{12} is called", "is called", text)


def told(plan: Plan) -> list[tuple[str, str]]:
    """(number, title) of its steps as they run, hosts that do the same told once."""
    steps = [{"title": one.title, "together": one.together} for one in plan.steps]
    found = [
        (str(number), plain(str(step["title"]), plan))
        for number, group in enumerate(groups(steps), 1)
        for step in group
    ]
    return list(dict.fromkeys(found))


def joined(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Numbers as a page has them: ranks that run side by side are one row."""
    numbers = list(dict.fromkeys(number for number, _ in found))
    return [(str(numbers.index(number) + 1), title) for number, title in found]


@pytest.mark.parametrize("heading", PLANS)
def test_the_steps_of_every_key_are_those_of_a_real_plan(heading: str) -> None:
    lane, verb = PLANS[heading]
    plan = lane().plan(verb)
    assert plan.steps
    table = [(row[0], code(row[2])[0]) for row in rows(section("acting.md", heading)) if row[0].isdigit()]
    assert table == joined(told(plan))


@pytest.mark.parametrize("heading", PLANS)
def test_what_is_seen_afterwards_is_asked_of_the_hosts(heading: str) -> None:
    lane, verb = PLANS[heading]
    plan = lane().plan(verb)
    asked = {plain(probe.words, plan) for step in plan.steps for probe in (*step.before, *step.after)}
    titles = {title for _, title in told(plan)}
    for row in rows(section("acting.md", heading)):
        if not row[0].isdigit():
            continue
        said = [word for word in code(row[3]) if word not in ("evidence", "S") and "*" not in word]
        assert set(said) <= asked | titles, set(said) - asked
        quiet = [step.optional for step in plan.steps if plain(step.title, plan) == code(row[2])[0]]
        assert ("holds nothing up" in row[3]) is all(quiet), row


def test_refusals_and_preconditions_that_are_quoted_are_those_of_the_plans() -> None:
    text = page("acting.md")
    needs = [probe for step in scenes.spark().plan(Verb.ARM).steps for probe in step.before]
    assert "`health is 200 and NAME is served`" in text and plain(needs[0].words, scenes.spark().plan(Verb.ARM)) in text
    assert scenes.docker().plan(Verb.DISARM).refused.partition(": ")[2] in text
    startable = [probe for step in scenes.docker().plan(Verb.ROLLBACK).steps for probe in step.before]
    assert plain(startable[0].words, scenes.docker().plan(Verb.ROLLBACK)) in text
    flight: tuple[Probe, ...] = scenes.spark().plan(Verb.DISARM).steps[0].before
    assert flight and all(probe.words.startswith("no launch is under way") for probe in flight)


def test_debts_are_written_down_and_struck_out_under_the_titles_of_the_page() -> None:
    def titles(verb: Verb) -> list[str]:
        ready = carrying.with_debts(scenes.spark().plan(verb), "/var/tmp/laneswap/x.y", "[]\n")
        return [step.title for step in ready.steps]

    text = section("acting.md", "What each key does").partition("###")[0]
    begins, ends = code(text.rpartition("\n\nA plan that switches")[2])[:2]
    assert titles(Verb.DISARM)[0] == begins and titles(Verb.ARM)[-1] == ends
    relaunch = titles(Verb.RELAUNCH)
    assert relaunch.index(begins) == relaunch.index("disarm the watchdog") - 1 and relaunch[-1] == ends


def test_nothing_that_is_sent_removes_a_container() -> None:
    assert "laneswap removes no container" in page("acting.md")
    folder = resources.files("console.actions.scripts")
    scripts = {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".sh")}
    assert len(scripts) > 20
    for name, text in scripts.items():
        commands = re.findall(r"\bask \S+ (\w+)", text)
        assert not {"rm", "prune", "remove", "rmi"} & set(commands), name
        assert not re.search(r"\bdocker (rm|container rm|system)\b", text), name


# --- acting.md: words, files, bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("head", "kind"), [("| a step is |", StepState), ("| an operation is |", OperationState)])
def test_every_word_of_steps_and_operations_has_its_row(head: str, kind: type[StrEnum]) -> None:
    text = section("acting.md", "Words of steps and operations")
    table = text[text.index(head) :].partition("\n\n")[0]
    assert first_cells(table) == [word.value for word in kind]


def files() -> Iterator[str]:
    """Names in the first column of the table of the state folder."""
    text = section("acting.md", "The state folder")
    yield from first_cells(text[text.index("| file |") :].partition("\n\n")[0])


def test_the_files_of_the_state_folder_are_those_of_the_code() -> None:
    named = set(files())
    top = {acting.LEASE, acting.WINDOW, acting.DEBTS, acting.CURRENT, WINDOW, DEBTS, "ledger.jsonl"}
    inside = {acting.PLAN, acting.JOURNAL, "sheet.sh", "runner.py", "running", "stop", "boxed", "evidence", "STEP"}
    inside.add("STEP@1")
    scripts = {"lock", "epoch", "restart-policy.ID", "deadman-ACCOUNT", "deadman.said", "deadman.lock", "pruned"}
    assert named == top | scripts | {f"ops/OPERATION/{name}" for name in inside}


SOURCES = {
    "lock": "console/execution/scripts/common.sh",
    "epoch": "console/execution/scripts/common.sh",
    "restart-policy": "console/actions/scripts/stop_container.sh",
    "sheet.sh": "console/execution/sequence_head.py",
    "runner.py": "console/execution/sequence_head.py",
    "running": "console/execution/runner_head.py",
    "stop": "console/execution/runner_head.py",
    "evidence": "console/execution/placing.py",
    "ledger.jsonl": "console/execution/recording.py",
    "code": "console/execution/runner_base.py",
    "deadman-": "console/execution/scripts/deadman.sh",
    "deadman.said": "console/execution/scripts/deadman.sh",
    "deadman.lock": "console/execution/scripts/deadman.sh",
    "boxed": "console/execution/scripts/box.sh",
    "pruned": "console/execution/scripts/prune.sh",
}


@pytest.mark.parametrize("name", SOURCES)
def test_each_of_these_files_is_written_under_that_name(name: str) -> None:
    text = (ROOT / SOURCES[name]).read_text(encoding="utf-8")
    assert re.search(rf"[/\"]{re.escape(name)}(?![\w.]*\w\.)", text), name


def test_the_files_of_a_step_are_those_that_its_starter_makes() -> None:
    (row,) = (row for row in rows(section("acting.md", "The state folder")) if row[0] == "`ops/OPERATION/STEP`")
    script = (ROOT / "console/execution/scripts/starter.sh").read_text(encoding="utf-8")
    reader = (ROOT / "console/execution/scripts/step.sh").read_text(encoding="utf-8")
    for name in code(row[2]):
        assert f'"$S/{name}"' in script or f'"$S/{name}"' in reader or f'"$folder/{name}"' in ONCE, name


def test_the_events_of_the_dead_man_timer_are_those_that_it_posts() -> None:
    said = [word for word in code(section("acting.md", "The dead-man timer")) if " " in word]
    script = (ROOT / "console/execution/scripts/deadman.sh").read_text(encoding="utf-8")
    posted = re.findall(r"^ +tell \"[^\"]*\" '([^']+)'", script, re.MULTILINE)
    assert len(posted) == 2 and set(posted) < set(said)
    assert set(said) - set(posted) == {"the head will tell nobody if this console is gone"}
    assert "the head will tell nobody if this console is gone" in (ROOT / "console/execution/holding.py").read_text()


def test_bounds_are_those_of_the_code() -> None:
    text = " ".join(page("acting.md").split())
    assert f"{strip.DEAD_S:g} s after it is first painted" in text
    assert f"over {strip.GAP_S:g} s without a painted tick" in text
    assert f"in {policy.COUNTDOWN_DOWN_S:g} s while the lane is down" in text
    assert f"in {policy.COUNTDOWN_SERVING_S:g} s while it serves" in text
    assert f"Every {deadman.PERIOD} s it looks at the state folder" in text
    assert f"runs out {lease.TTL:g} s after the last renewal" in text
    assert f"or {carrying.OWED_S / 60:g} minutes later without a window" in text
    assert carrying.REACH_KEPT_S == 600 and "believed for ten minutes" in text
    assert underway.SOON_S == 300 and "from five minutes before it is due" in text
    assert (window.SHORTEST_S, window.LONGEST_S) == (300, 86_400) and "5 minutes to 24 hours" in page("ledger.md")
    assert f"`{inventory.Fleet.model_fields['state'].default}`" in text
    assert f"newest {aftercare.KEEP} on each host, everything younger than {aftercare.KEEP_DAYS} days" in text
    assert f"(`{aftercare.NOT_BOXED}`)" in page("ledger.md")


def test_what_a_strip_says_when_it_is_cancelled_is_quoted_as_it_is() -> None:
    shown = strip.Strip("D", "k")
    shown.planned(strip.By.LETTER, (("the plan", "48a405b23d5f"),))
    shown.state_changed((("the plan", "01aaa0fa753d"),))
    said = [shown.why]
    acts: list[Callable[[strip.Strip], None]] = [strip.Strip.paste, strip.Strip.resize, lambda one: one.key("j", 1.0)]
    for act in acts:
        other = strip.Strip("D", "k")
        other.planned(strip.By.LETTER, ())
        act(other)
        said.append(other.why)
    slow = strip.Strip("D", "k")
    slow.planned(strip.By.LETTER, ())
    slow.painted(1.0)
    slow.tick_painted(2.6)
    said.append(slow.why)
    table = code(section("acting.md", "The strip"))
    assert len(set(said)) == 5 and set(said) <= set(table), set(said) - set(table)


# --- ledger.md, house.md, commands.md, limits.md ---------------------------------------------------------------------


def test_every_need_of_the_policy_is_explained() -> None:
    explained = section("ledger.md", "Who may do what").partition("### Where")[0]
    needs = " ".join(code(page("commands.md")))
    for need in policy.Need:
        assert need.value in needs, need
    for word in ("letter", "lane name", "break-glass", "countdown or letter"):
        assert f"**{word}**" in explained, word


def test_every_holder_of_a_lease_is_told_apart_by_the_policy() -> None:
    text = section("ledger.md", "Where several columns apply")
    spoken = {"other": "lease of another", "expired": "ran out", "unknown": "nobody can tell who holds the lane"}
    for holder in policy.Holder:
        assert holder.value in ("nobody", "me") or spoken[holder.value] in text, holder


def test_exit_statuses_of_host_scripts_are_told() -> None:
    text = section("house.md", "What is sent to a host")
    told = text.partition("Questions of plans")[0]
    found = {int(number) for number in re.findall(r"(\d) (?:ok|no|already|fenced|cannot)\b", told)}
    assert found == {int(status) for status in Exit}


def unused(module: str) -> bool:
    """Nothing of the product uses this module of `console/execution`."""
    name = re.compile(rf"console\.execution\.{module}\b|console\.execution import [^\n]*\b{module}\b")
    sources = [path for path in (ROOT / "console").rglob("*.py") if path.stem != module]
    return not any(name.search(path.read_text(encoding="utf-8")) for path in sources)


@pytest.mark.parametrize(("module", "words"), [("boxledger", "`box_ledger`")])
def test_what_is_there_and_not_used_yet_is_a_known_limit(module: str, words: str) -> None:
    assert (words in section("limits.md", "Known limits of this version")) is unused(module)
