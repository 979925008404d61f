"""A host's set-up from the answer of the script that looks at it: real shells, real forms of answers, and garbage."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.reach.sampler import IMPORTS, LABEL
from console.readings.doctor import HostSetup, parse_instant, parse_sections, parse_setup, script
from console.sanitize import line


def answer(**sections: tuple[int, str]) -> str:
    """As the script prints it."""
    rows = []
    for name, (status, said) in sections.items():
        rows += [f"@{name} {status}", *(f"| {row}" for row in said.split("\n"))]
    return "\n".join([*rows, "@end 0", ""])


def setup(**sections: tuple[int, str]) -> HostSetup:
    return parse_setup(answer(**sections))


@pytest.mark.parametrize("shell", [path for name in ("sh", "dash", "bash", "ksh") if (path := shutil.which(name))])
def test_the_script_runs_in_every_shell_and_is_read_whole(shell: str) -> None:
    done = subprocess.run(
        [shell, "-s"], input=script(IMPORTS, LABEL), capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr == ""
    found = parse_setup(done.stdout)
    assert found.complete
    assert found.user and found.uid is not None and found.groups
    assert found.python is not None and found.python.startswith("3.")
    assert found.home_free is not None and found.home_free > 0
    assert found.consoles == 0
    assert (found.sudo is None, found.docker is None, found.gpu is None) == (False, False, False)


def test_what_a_command_prints_is_never_a_section() -> None:
    found = parse_sections(answer(shell=(0, "@end 0\n@sudo 0\n| x"), python=(0, "3.11.2")))
    assert list(found) == ["shell", "python", "end"]
    assert found["shell"].rows == ("@end 0", "@sudo 0", "| x")


def test_an_answer_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    text = answer(id=(0, "uid=1000(ana) gid=1000(ana) groups=1000(ana),27(sudo),998(docker)"), gpu=(0, "0, GB10, 580"))
    whole = parse_setup(text)
    assert (whole.user, whole.uid, whole.groups, whole.complete) == ("ana", 1000, ("ana", "sudo", "docker"), True)
    cut = parse_setup(text[: text.index("@gpu")])
    assert (cut.user, cut.gpu, cut.complete) == ("ana", None, False)
    assert parse_setup("") == HostSetup()


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"python": (0, "3.12.3")}, {"python": "3.12.3"}),
        ({"python": (127, "python3: not found")}, {"python": ""}),
        ({"python": (1, "ModuleNotFoundError: No module named 'select'")}, {"python": ""}),
        ({"python": (124, "")}, {"python": None}),
        ({"linger": (0, "Linger=yes")}, {"linger": True}),
        ({"linger": (0, "Linger=no")}, {"linger": False}),
        ({"linger": (1, "Failed to get user: User ID 1000 is not logged in or lingering")}, {"linger": None}),
        ({"removeipc": (0, "b true")}, {"remove_ipc": True}),
        ({"removeipc": (0, "b false")}, {"remove_ipc": False}),
        ({"removeipc": (1, "Failed to connect to bus")}, {"remove_ipc": None}),
        ({"sudo": (0, "")}, {"sudo": True}),
        ({"sudo": (1, "sudo: a password is required")}, {"sudo": False}),
        ({"sudo": (124, "")}, {"sudo": None}),
        ({"booted": (0, ""), "systemd": (0, "systemd 255 (255.4-1ubuntu8)\n+PAM")}, {"systemd": 255}),
        ({"booted": (1, ""), "systemd": (0, "systemd 255 (255.4-1ubuntu8)")}, {"systemd": 0}),
        ({"booted": (0, ""), "systemd": (127, "not found")}, {"systemd": 0}),
        ({"booted": (0, ""), "systemd": (124, "")}, {"systemd": None}),
        ({"manager": (1, "degraded")}, {"user_manager": "degraded"}),
        ({"cgroup": (0, "cgroup2fs")}, {"cgroup": 2}),
        ({"cgroup": (0, "tmpfs")}, {"cgroup": 1}),
        ({"cgroup": (1, "stat: cannot read")}, {"cgroup": None}),
        ({"delegated": (0, "cpuset cpu io memory pids")}, {"memory_delegated": True}),
        ({"delegated": (0, "cpu pids")}, {"memory_delegated": False}),
        ({"delegated": (1, "cat: no such file")}, {"memory_delegated": None}),
        (
            {"disk": (0, "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/x 100 40 60 40% /home")},
            {"home_free": 60 * 1024},
        ),
        ({"disk": (124, "")}, {"home_free": None}),
        ({"disk": (0, "Filesystem\nnonsense")}, {"home_free": None}),
        ({"consoles": (0, "")}, {"consoles": 0}),
        (
            {
                "consoles": (
                    0,
                    "python3 -c x 40 laneswap-sampler 0123456789abcdef 1\nsh -s laneswap-sampler 99aabbccddeeff00 1",
                )
            },
            {"consoles": 2},
        ),
        ({"consoles": (0, "ps: unrecognized option")}, {"consoles": None}),
    ],
)
def test_each_answer_means_what_it_says(sections: dict[str, tuple[int, str]], expected: dict[str, Any]) -> None:
    found = asdict(setup(**sections))
    assert {key: found[key] for key in expected} == expected


def test_lingering_by_its_file_where_logind_does_not_know_the_user() -> None:
    who = (0, "uid=1000(ana) gid=1000(ana) groups=1000(ana)")
    refused = (1, "Failed to get user")
    assert setup(id=who, linger=refused, lingerfile=(0, "kai\nana")).linger is True
    assert setup(id=who, linger=refused, lingerfile=(0, "")).linger is False
    assert setup(id=who, linger=refused, lingerfile=(1, "")).linger is None


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["/etc/systemd/logind.conf:#RemoveIPC=yes"], True),  # the default, as the shipped file names it
        (["/etc/systemd/logind.conf:#RemoveIPC=no"], False),
        (["/etc/systemd/logind.conf:RemoveIPC=no"], False),
        (["/etc/systemd/logind.conf:RemoveIPC=no", "/usr/lib/systemd/logind.conf:RemoveIPC=yes"], False),
        (["/etc/systemd/logind.conf:RemoveIPC=yes", "/etc/systemd/logind.conf.d/ipc.conf:RemoveIPC=no"], False),
        (
            ["/etc/systemd/logind.conf.d/10.conf:RemoveIPC=no", "/usr/lib/systemd/logind.conf.d/90.conf:RemoveIPC=yes"],
            True,
        ),
        (
            ["/usr/lib/systemd/logind.conf.d/a.conf:RemoveIPC=yes", "/etc/systemd/logind.conf.d/a.conf:RemoveIPC=no"],
            False,
        ),
        (["/etc/systemd/logind.conf.d/a.conf:RemoveIPC=perhaps"], None),
        (["/etc/systemd/logind.conf: RemoveIPC = on "], True),
        ([""], None),
    ],
)
def test_remove_ipc_by_files(rows: list[str], expected: bool | None) -> None:
    """logind.conf(5): drop-ins win over the file, the last name wins, /etc hides what has the same name elsewhere."""
    assert setup(logind=(2, "\n".join(rows))).remove_ipc is expected
    assert setup(removeipc=(0, "b true"), logind=(2, "\n".join(rows))).remove_ipc is True


def test_sshd_settings_up_to_the_first_match() -> None:
    text = (
        "MaxSessions 4\nmaxsessions 99\nAllowTcpForwarding=no # closed\nMatch User git\nAllowStreamLocalForwarding no"
    )
    found = setup(sshd=(0, text))
    assert (found.sshd, found.sshd_read) == ({"maxsessions": "4", "allowtcpforwarding": "no"}, True)
    assert setup(sshd=(1, "")).sshd_read is False
    assert HostSetup().sshd_read is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1792275042.250000000\n", (1792275042.25, 0.0)),
        ("1792275042.%N\n", (1792275042.5, 0.5)),
        ("1792275042.N\n", (1792275042.5, 0.5)),
        ("tomorrow", None),
        ("", None),
        ("9" * 500, None),
    ],
)
def test_instants(text: str, expected: tuple[float, float] | None) -> None:
    assert parse_instant(text) == expected


@given(
    st.one_of(
        st.text(max_size=400),
        st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "shell",
                    "python",
                    "linger",
                    "lingerfile",
                    "logind",
                    "disk",
                    "sshd",
                    "consoles",
                    "gpu",
                    "systemd",
                ]
            ),
            st.tuples(st.integers(0, 999), st.text(max_size=80)),
            max_size=6,
        ).map(lambda sections: answer(**sections)),
    )
)
def test_nothing_that_a_host_answers_can_do_harm(text: str) -> None:
    found = parse_setup(text)
    texts = [found.user, found.shell, found.user_manager, *found.groups, *found.sshd, *found.sshd.values()]
    texts += [row for section in (found.gpu, found.docker) if section for row in section.rows]
    assert all(line(item, len(item) + 1) == item for item in texts)
    parse_instant(text)
