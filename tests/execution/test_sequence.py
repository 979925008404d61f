"""A plan as an operation file and as a sheet that an operator can finish from by hand, pasted or as a whole."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runner_real import RealWorld
from runner_world import FOLDER, HOSTS, OP, is_up, plan, step, swap

from console.actions.plan import Plan
from console.execution.sequence import compile_operation, epoch_of, read_operation, ssh_way, taken_over, time_limit
from console.execution.sequence_sheet import by_hand
from console.readings.acting_operation import read_operation as read_acting_operation


def compiled(made: Plan | None = None, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"op": OP, "operator": "ana", "console": "ana@desk 1", "epoch": 3, "folder": FOLDER}
    ways = {host: [] if host == HOSTS[0] else ["ssh", host] for host in HOSTS}
    return compile_operation(made or swap(), **{**given, "reach": ways, "created": 5.0, **changes})


def test_an_operation_survives_its_way_through_a_file() -> None:
    made = compiled()
    assert read_operation(json.dumps(made)) == json.loads(json.dumps(made))
    assert made["plan_id"] == swap().id and epoch_of(made) == 3
    assert list(made).index("steps") < list(made).index("starter"), "whoever reads its beginning alone gets the steps"


def test_what_is_shown_of_an_operation_stands_before_its_commands() -> None:
    operation = compiled()
    assert [one["id"] for one in operation["outline"]["steps"]] == [one["id"] for one in operation["steps"]]
    assert [one["id"] for one in operation["outline"]["rescue"]] == [one["id"] for one in operation["rescue"]]
    keys = list(operation)
    assert keys.index("outline") < min(keys.index(key) for key in ("steps", "rescue", "fence", "starter"))
    shown = read_acting_operation(operation["id"], "", json.dumps(operation), None, True, [])
    cut = json.dumps(operation)[: json.dumps(operation).index('"reach"')]
    assert read_acting_operation(operation["id"], "", cut, None, True, []) == shown and len(shown.steps) > 1


def test_another_operator_carries_on_under_a_newer_epoch() -> None:
    later = taken_over(compiled(), operator="ben", console="ben@desk 2", epoch=8)
    assert (later["operator"], later["console"], later["epoch"]) == ("ben", "ben@desk 2", 8)
    assert {**later, "operator": "ana", "console": "ana@desk 1", "epoch": 3} == compiled()


@pytest.mark.parametrize("epoch", [None, "-"])
def test_break_glass_has_no_epoch(epoch: Any) -> None:
    assert compiled(epoch=epoch)["epoch"] == "-"
    assert epoch_of(compiled(epoch=epoch)) is None


@pytest.mark.parametrize(
    ("made", "changes", "words"),
    [
        (replace(swap(), refused="the container was removed"), {}, "the container was removed"),
        (plan(), {}, "no steps"),
        (plan(step("a", "spark-0", "x"), step("a", "spark-1", "x")), {}, "its own"),
        (plan(step("a", "spark-0", "x"), rescue=[step("a", "spark-1", "x")]), {}, "its own"),
        (plan(step("a/b", "spark-0", "x")), {}, "its own"),
        (plan(step("sequence", "spark-0", "x")), {}, "its own"),
        (plan(step("a", "spark-0", "x", after=(is_up("spark-9", "y"),))), {}, "spark-9"),
        (swap(), {"op": "../x"}, "name of an operation"),
        (swap(), {"reach": {"spark-0": []}}, "spark-1, spark-2"),
    ],
)
def test_what_cannot_be_carried_out_is_said_before_anything_is(made: Plan, changes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compiled(made, **changes)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"v": 2}', json.dumps({"v": 1, "id": 7})])
def test_a_file_that_is_no_operation_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_operation(text)


@pytest.mark.parametrize("target", ["", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb"])
def test_what_is_no_host_is_not_given_to_ssh(target: str) -> None:
    with pytest.raises(ValueError):
        ssh_way(target)
    assert ssh_way("ana@192.0.2.7")[-1] == "ana@192.0.2.7"


def test_steps_that_go_together_count_once_in_the_time_limit() -> None:
    together = plan(*(step(f"s{n}", "spark-0", "x", limit=100.0 + n, together="s") for n in range(3)))
    alone = plan(step("s0", "spark-0", "x", limit=102.0))
    assert time_limit(compiled(together)) == time_limit(compiled(alone)) > 102


# --- the sheet


class Sheet:
    """The sheet of an operation in the real world, with its stand-in for ssh."""

    def __init__(self, real: RealWorld, made: Plan) -> None:
        self.real = real
        self.text = by_hand(real.write(made))
        self.path = real.op / "sheet.sh"
        self.path.write_text(self.text)

    def sh(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.real.root)}
        return subprocess.run(argv, env=environment, input=stdin, capture_output=True, text=True, timeout=60)


@pytest.fixture
def real(tmp_path: Path) -> RealWorld:
    return RealWorld(tmp_path)


def test_the_sheet_carries_the_whole_sequence_out(real: RealWorld) -> None:
    done = Sheet(real, real.swap()).sh("sh", "-e", str(real.op / "sheet.sh"))
    assert done.returncode == 0, done.stderr
    assert real.up == {"old", "noted"}
    assert real.container("noted").read_text() == "it's noted\n"
    assert set(real.ran().values()) == {1}


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_sheet_can_be_pasted(real: RealWorld, shell: str) -> None:
    sheet = Sheet(real, real.swap())
    done = sheet.sh(shell, "-s", stdin=sheet.text)
    assert done.returncode == 0, done.stderr
    assert real.up == {"old", "noted"}
    assert set(real.ran().values()) == {1}


def test_the_sheet_goes_on_from_where_a_sequence_was_cut(real: RealWorld) -> None:
    for host in HOSTS[:2]:
        real.container(f"new-{host}").unlink()
    done = Sheet(real, real.swap()).sh("sh", "-e", str(real.op / "sheet.sh"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("already so") == 2
    assert real.up == {"old", "noted"}
    assert real.ran()["stop new-spark-0"] == 0 and real.ran()["stop new-spark-2"] == 1


def test_the_sheet_ends_at_what_does_not_hold_and_at_what_fails(real: RealWorld) -> None:
    guarded = real.step("b", "spark-1", "start", "b", before=(real.probe("spark-0", "old", "up"),))
    done = Sheet(real, real.plan(real.step("a", "spark-0", "start", "a"), guarded)).sh(
        "sh", "-e", str(real.op / "sheet.sh")
    )
    assert done.returncode != 0 and real.ran() == {"start a": 1}
    failing = real.plan(real.step("c", "spark-1", "fail", "7"), real.step("d", "spark-1", "start", "d"))
    assert Sheet(real, failing).sh("sh", "-e", str(real.op / "sheet.sh")).returncode == 7
    assert "start d" not in real.ran()


def test_what_is_optional_holds_the_sheet_not_up(real: RealWorld) -> None:
    made = real.plan(real.step("c", "spark-1", "fail", "7", optional=True), real.step("d", "spark-1", "start", "d"))
    done = Sheet(real, made).sh("sh", "-e", str(real.op / "sheet.sh"))
    assert done.returncode == 0 and real.ran()["start d"] == 1
    assert "go on all the same" in done.stdout


def test_rescue_stands_there_but_is_not_carried_out(real: RealWorld) -> None:
    made = replace(
        real.plan(real.step("a", "spark-0", "start", "a")), rescue=(real.step("r", "spark-1", "start", "r"),)
    )
    sheet = Sheet(real, made)
    assert sheet.sh("sh", "-e", str(real.op / "sheet.sh")).returncode == 0
    assert real.ran() == {"start a": 1}
    assert "start r" in sheet.text


def test_a_variable_of_the_operators_shell_does_not_leak_into_a_launcher(real: RealWorld) -> None:
    script = 'env >"$1"'
    launch = replace(
        real.step("a", "spark-0", "x", limit=100.0, detached=True),
        argv=("sh", "-c", script, "x", str(real.world / "env")),
    )
    sheet = Sheet(real, real.plan(launch))
    assert sheet.sh("env", "SNAP=leaked", "sh", "-e", str(sheet.path)).returncode == 0
    seen = (real.world / "env").read_text()
    assert "SNAP" not in seen and "HOME=" in seen


def test_where_a_console_carries_it_out_the_sheet_names_every_host() -> None:
    text = by_hand(compiled(reach={host: [] for host in HOSTS}))
    assert "where every host can be reached by ssh under its name" in text
    assert "ssh spark-0 " in text and "ssh spark-2 " in text
    assert "on spark-0, the head" in by_hand(compiled())


def test_words_cannot_leave_their_comment() -> None:
    made = plan(step("a", "spark-0", "true", title="x\nrm -rf /\r\x1b[2J", undo="y\nreboot"))
    commands = [row for row in by_hand(compiled(made)).splitlines() if row and not row.startswith("#")]
    assert commands == ["true </dev/null"]
    assert "\x1b" not in by_hand(compiled(made))


@settings(deadline=None, max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=60), st.booleans())
def test_any_script_arrives_as_it_is(tmp_path_factory: pytest.TempPathFactory, text: str, ends: bool) -> None:
    text = "END\nEND1\n$HOME `x` \\\n" + text + ("\n" if ends else "")
    folder = tmp_path_factory.mktemp("sheet")
    made = plan(step("a", "spark-0", "sh", "-c", 'cat >"$1"', "x", str(folder / "got"), stdin=text))
    (folder / "sheet.sh").write_text(by_hand(compiled(made)), newline="")
    subprocess.run(["sh", "-e", str(folder / "sheet.sh")], check=True, timeout=60)
    assert (folder / "got").read_bytes().decode() == text


def test_the_fake_ssh_is_what_the_sheet_calls(real: RealWorld) -> None:
    assert real.ssh.stat().st_mode & stat.S_IXUSR
    assert str(real.ssh) in Sheet(real, real.swap()).text
