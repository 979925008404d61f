"""Why a Docker cannot be read, and which API version two sides share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings import docker_errors as errors

ID = "uid=1000(ops) gid=1000(ops) groups=1000(ops),27(sudo)"


@pytest.mark.parametrize(
    ("server", "client", "use"),
    [
        (("1.52", "1.44"), ("1.40", "1.47"), "1.47"),
        (("1.41", "1.12"), ("1.40", "1.47"), "1.41"),
        (("1.52", "1.44"), ("1.30", "1.43"), ""),
        (("1.30", "1.12"), ("1.40", "1.47"), ""),
        (("1.44", "1.44"), ("1.24", "1.44"), "1.44"),
        (("1.9", "1.1"), ("1.10", "1.47"), ""),
        (("1.100", "1.44"), ("1.24", "1.47"), "1.47"),
    ],
)
def test_the_highest_version_in_both_ranges(server: tuple[str, str], client: tuple[str, str], use: str) -> None:
    choice = errors.negotiate({"ApiVersion": server[0], "MinAPIVersion": server[1]}, *client)
    assert choice.version == use
    assert (choice.problem is None) is bool(use)
    if choice.problem is not None:
        assert f"{server[1]}-{server[0]}" in choice.problem.problem
        assert f"{client[0]}-{client[1]}" in choice.problem.problem


def test_who_has_to_be_upgraded() -> None:
    newer = errors.negotiate({"ApiVersion": "1.60", "MinAPIVersion": "1.50"}, "1.24", "1.47")
    older = errors.negotiate({"ApiVersion": "1.20"}, "1.24", "1.47")
    assert newer.problem is not None and newer.problem.hint == "upgrade the client"
    assert older.problem is not None and older.problem.hint == "upgrade Docker"


@pytest.mark.parametrize("answer", [{}, {"ApiVersion": 5}, {"ApiVersion": "x"}, {"ApiVersion": "1.41.2"}])
def test_an_answer_without_a_version_is_not_docker(answer: dict[str, object]) -> None:
    choice = errors.negotiate(answer)
    assert choice.version == ""
    assert choice.problem is not None


def test_a_range_that_is_none() -> None:
    with pytest.raises(ValueError, match="not an API version range"):
        errors.negotiate({"ApiVersion": "1.41"}, "old", "new")


@given(st.dictionaries(st.sampled_from(["ApiVersion", "MinAPIVersion"]), st.text(alphabet="0123456789.", max_size=8)))
def test_what_is_agreed_on_lies_in_the_clients_range(answer: dict[str, str]) -> None:
    choice = errors.negotiate(answer)
    assert bool(choice.version) is (choice.problem is None)
    if choice.version:
        assert 24 <= int(choice.version.removeprefix("1.")) <= 47


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ("kind=none\n", "no Docker socket at /s"),
        ("kind=none\npodman=/run/podman/podman.sock\n", "but podman listens at /run/podman/podman.sock"),
        ("kind=other\nwritable=yes\n", "/s is not a socket"),
        ("kind=socket\nwritable=yes\n", "Docker is down"),
        (f"kind=socket\nwritable=no\ngroup=docker\nid={ID}\ngetent=docker:x:988:ops\n", "active in this session"),
        (f"kind=socket\nwritable=no\ngroup=docker\nid={ID}\ngetent=docker:x:988:\n", "ops is not in group docker"),
        (f"kind=socket\nwritable=no\ngroup=sudo\nid={ID}\ngetent=sudo:x:27:ops\n", "in group sudo, yet"),
        ("kind=socket\nwritable=no\n", "this user is not in group docker"),
        ("", "connection closed without an answer"),
        ("Welcome!\n\x1b[31m\n", "connection closed without an answer"),
    ],
)
def test_probes(facts: str, problem: str) -> None:
    assert problem in errors.explain_probe(facts, "/s").problem


@pytest.mark.parametrize(
    ("commands", "hint"),
    [
        ("docker", "daemon does not run"),
        ("podman", "podman.socket"),
        ("docker podman", "daemon does"),
        ("", "fleet.toml"),
    ],
)
def test_what_to_do_without_a_socket(commands: str, hint: str) -> None:
    facts = "kind=none\n" + "".join(f"command={name}\n" for name in commands.split())
    assert hint in errors.explain_probe(facts, "/s").hint


def test_the_probe_runs_in_a_plain_shell_and_takes_any_path(tmp_path: Path) -> None:
    for name in ("missing", "a b$(touch never)", "-n"):
        done = subprocess.run(
            ["sh", "-c", errors.PROBE, "sh", str(tmp_path / name)],
            capture_output=True,
            text=True,
            timeout=20,
            cwd=tmp_path,
            check=True,
        )
        facts = errors.probe_facts(done.stdout)
        assert facts["kind"] == "none"
        assert facts["id"].startswith("uid=")
    assert list(tmp_path.iterdir()) == []


def test_permission_in_words() -> None:
    stale = errors.explain_permission(ID, "docker:x:988:ops,ana")
    assert errors.needs_reconnect(stale)
    assert not errors.needs_reconnect(errors.explain_permission(ID, "docker:x:988:opsy"))
    assert "usermod" in errors.explain_permission(ID, "docker:x:988:").hint
    assert not errors.needs_reconnect(errors.explain_permission("", ""))


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, '{"message":"authorization denied by plugin x"}', "refused by the daemon: authorization denied"),
        (500, "plain words", "the daemon answers 500: plain words"),
        (500, "", "the daemon answers 500: without a message"),
        (500, '{"message": 5}', 'the daemon answers 500: {"message": 5}'),
        (500, "[" * 100_000, "the daemon answers 500"),
    ],
)
def test_error_answers(status: int, body: str, words: str) -> None:
    found = errors.explain_answer(status, body).problem
    assert words in found
    assert len(found) < 500


@given(st.integers(400, 599), st.text(max_size=200))
def test_any_error_answer_is_a_problem_in_safe_words(status: int, body: str) -> None:
    found = errors.explain_answer(status, body)
    assert found.problem.startswith("cannot read Docker")
    assert found.problem.isprintable()


@given(st.text(max_size=300))
def test_any_probe_output_is_a_problem_in_safe_words(output: str) -> None:
    found = errors.explain_probe(output, "/s")
    assert found.problem and found.problem.isprintable() and found.hint.isprintable()
