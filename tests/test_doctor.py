"""`laneswap doctor`: what each finding comes to, and the whole of it over real ssh, real shells and a real engine."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from manual import beside, first_cells, page, section

from console.cli import run
from console.doctor import acting, hosts, lanes, machine
from console.doctor.check import Check, Subject, Verdict, as_json, as_text, exit_code
from console.doctor.examine import diagnose, examine
from console.doctor.hosts import Heard, host_checks
from console.doctor.lanes import LaneHeard, SiteRead, lane_checks
from console.doctor.machine import (
    Terminal,
    agent_check,
    library_checks,
    ssh_file_checks,
    terminal_checks,
    webhook_check,
)
from console.fleet.inventory import Fleet, Host, parse
from console.fleet.places import places
from console.fleet.recipe import apply_recipes, lane_recipes, load_recipe
from console.fleet.sitefile import read_site
from console.readings.answers import HttpAnswer, Transport
from console.readings.doctor import HostSetup, Section
from console.readings.link import LinkState, LinkStatus
from console.readings.output import Outcome, Output

ssh_host = beside("reach", "ssh_host")
key_agent = beside("reach", "key_agent")

UP = LinkState(LinkStatus.UP, 0.0)
DONE = Output("n", ("date",), Outcome.DONE, 0, "", "1\n", "", 0.035)
GIB = 1 << 30
HEALTHY = HostSetup(
    user="ana",
    uid=1000,
    groups=("ana", "docker"),
    shell="/bin/bash",
    python="3.12.3",
    linger=True,
    remove_ipc=False,
    sudo=True,
    systemd=255,
    user_manager="running",
    cgroup=2,
    memory_delegated=True,
    home_free=200 * GIB,
    sshd={},
    sshd_read=True,
    consoles=0,
    docker=Section(0, ("27.5.1 1.47",)),
    gpu=Section(0, ("0, NVIDIA GB10, 580.95.05",)),
    complete=True,
)
SOCKET = "kind=socket\nwritable=yes\ngroup=docker\nid=uid=1000(ana)\ngetent=docker:x:998:ana\ncommand=docker\n"
HEARD = Heard("spark-0", Host(ssh="spark-0"), UP, DONE, (0.02, 0.01), HEALTHY, DONE, replace(DONE, stdout=SOCKET))


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def judged(heard: Heard = HEARD, **setup: Any) -> dict[str, Check]:
    return by_name(host_checks(replace(heard, setup=replace(HEALTHY, **setup))))


# --- a host ----------------------------------------------------------------------------------------------------------


def test_a_healthy_host_has_nothing_to_do() -> None:
    checks = host_checks(HEARD)
    assert {check.verdict for check in checks} == {Verdict.OK}
    assert all(not check.advice for check in checks)
    found = by_name(checks)
    assert found["reachable"].found == "ssh spark-0, host key known, logged in as ana, 35 ms"
    assert found["docker"].found == "/var/run/docker.sock is ours to read and write, Docker 27.5.1, API 1.47"
    assert found["nvidia-smi"].found == "1 GPU: 0, NVIDIA GB10, 580.95.05"
    assert found["clock"].found == "0.02 s ahead of this machine, give or take 0.01 s"


@pytest.mark.parametrize(
    ("setup", "name", "verdict", "words"),
    [
        ({"python": ""}, "python3", Verdict.LOOK, "install python3"),
        ({"python": None}, "python3", Verdict.UNKNOWN, "did not answer"),
        ({"linger": False}, "lingering", Verdict.LOOK, "sudo loginctl enable-linger ana"),
        ({"linger": None}, "lingering", Verdict.UNKNOWN, "loginctl show-user"),
        ({"remove_ipc": True, "linger": False}, "RemoveIPC", Verdict.LOOK, "RemoveIPC=no"),
        ({"remove_ipc": True}, "RemoveIPC", Verdict.OK, "lingers"),
        ({"remove_ipc": True, "linger": False, "uid": 110}, "RemoveIPC", Verdict.OK, "system user"),
        ({"remove_ipc": None}, "RemoveIPC", Verdict.UNKNOWN, "grep -r RemoveIPC"),
        ({"systemd": None}, "systemd", Verdict.UNKNOWN, "could not be read"),
        ({"systemd": 0}, "systemd", Verdict.LOOK, "not what started this host"),
        ({"user_manager": "Failed to connect to bus"}, "user manager", Verdict.LOOK, "enable-linger ana"),
        ({"user_manager": ""}, "user manager", Verdict.UNKNOWN, "not asked"),
        ({"cgroup": 1}, "memory caps", Verdict.LOOK, "unified_cgroup_hierarchy"),
        ({"cgroup": None}, "memory caps", Verdict.UNKNOWN, "could not be read"),
        ({"memory_delegated": False}, "memory caps", Verdict.LOOK, "Delegate=cpu io memory pids"),
        ({"memory_delegated": None}, "memory caps", Verdict.LOOK, "cannot be seen yet"),
        ({"sudo": False}, "sudo", Verdict.OK, "not without a password"),
        ({"sudo": None}, "sudo", Verdict.UNKNOWN, "did not answer"),
        ({"home_free": 100 << 20}, "home folder", Verdict.LOOK, "0.1 GiB free"),
        ({"home_free": None}, "home folder", Verdict.UNKNOWN, "dead mount"),
        ({"sshd": {"maxsessions": "1"}}, "sshd", Verdict.LOOK, "MaxSessions 10"),
        ({"sshd": {"maxsessions": "many"}}, "sshd", Verdict.LOOK, "MaxSessions many: no number"),
        ({"sshd": {"allowtcpforwarding": "no"}}, "sshd", Verdict.FAIL, "AllowTcpForwarding yes"),
        ({"sshd": {"allowstreamlocalforwarding": "remote"}}, "sshd", Verdict.FAIL, "AllowStreamLocalForwarding yes"),
        ({"sshd": {"disableforwarding": "yes"}}, "sshd", Verdict.FAIL, "DisableForwarding no"),
        ({"sshd_read": False}, "sshd", Verdict.OK, "learnt when it refuses one"),
        ({"consoles": 2}, "other consoles", Verdict.LOOK, "2 consoles sample this host"),
        ({"consoles": 1}, "other consoles", Verdict.LOOK, "1 console samples this host"),
        ({"consoles": None}, "other consoles", Verdict.UNKNOWN, "could not be listed"),
        ({"gpu": Section(127, ("not found",))}, "nvidia-smi", Verdict.LOOK, "GPU figures stay unknown"),
        ({"gpu": Section(124, ("",))}, "nvidia-smi", Verdict.FAIL, "the driver hangs"),
        ({"gpu": Section(9, ("couldn't communicate",))}, "nvidia-smi", Verdict.LOOK, "exit 9: couldn't communicate"),
        ({"gpu": None}, "nvidia-smi", Verdict.UNKNOWN, "dmesg"),
        ({"shell": "/usr/bin/fish"}, "login shell", Verdict.OK, "only given `exec /bin/sh`"),
    ],
)
def test_what_is_found_comes_to_a_verdict_and_a_way_out(
    setup: dict[str, Any], name: str, verdict: Verdict, words: str
) -> None:
    check = judged(**setup)[name]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"
    assert (
        (check.verdict is Verdict.OK)
        or check.advice
        or check.verdict is Verdict.UNKNOWN
        or name
        in (
            "systemd",
            "memory caps",
        )
    )


@pytest.mark.parametrize(
    ("probe", "needed", "verdict", "words"),
    [
        (SOCKET, True, Verdict.OK, "ours to read and write"),
        ("kind=none\ngroup=\nid=uid=1000(ana)\ncommand=docker\n", True, Verdict.FAIL, "no Docker socket"),
        ("kind=none\ngroup=\nid=uid=1000(ana)\n", False, Verdict.LOOK, 'docker = ""'),
        (SOCKET.replace("yes", "no"), True, Verdict.FAIL, "not active in this session, reconnect"),
        (SOCKET.replace("yes", "no").replace(":ana", ":"), True, Verdict.FAIL, "sudo usermod -aG docker ana"),
    ],
)
def test_docker_fails_where_a_lane_needs_it(probe: str, needed: bool, verdict: Verdict, words: str) -> None:
    heard = replace(HEARD, docker=replace(DONE, stdout=probe), needs_docker=needed)
    check = judged(heard)["docker"]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"


def test_a_socket_that_nobody_answers_at_is_a_docker_that_is_down() -> None:
    down = Section(1, ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",))
    assert judged(docker=down)["docker"].verdict is Verdict.FAIL
    rootless = replace(HEARD, host=Host(ssh="n", docker="/run/user/1000/docker.sock"))
    assert judged(rootless, docker=down)["docker"].verdict is Verdict.OK


def test_a_host_without_docker_is_not_asked_for_it() -> None:
    heard = replace(HEARD, host=Host(ssh="n", docker=""), docker=None)
    assert judged(heard)["docker"].verdict is Verdict.OK
    unanswered = replace(HEARD, docker=replace(DONE, outcome=Outcome.UNKNOWN, hint="connection lost"))
    assert judged(unanswered)["docker"].verdict is Verdict.UNKNOWN


def test_what_a_login_prints_is_shown_with_the_cure() -> None:
    check = judged(replace(HEARD, clock=replace(DONE, noise="Welcome to spark")))["login shell"]
    assert (check.verdict, check.found) == (Verdict.LOOK, "bash prints at every login: Welcome to spark")
    assert "case $- in *i*)" in check.advice


@pytest.mark.parametrize(
    ("skew", "verdict"),
    [((0.0, 0.1), Verdict.OK), ((-2.4, 0.5), Verdict.OK), ((-2.6, 0.5), Verdict.LOOK), ((10800.0, 0.1), Verdict.LOOK)],
)
def test_a_clock_is_only_wrong_beyond_what_the_way_takes(skew: tuple[float, float], verdict: Verdict) -> None:
    assert judged(replace(HEARD, skew=skew))["clock"].verdict is verdict
    assert judged(replace(HEARD, skew=None))["clock"].verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("outcome", "link", "verdict", "words"),
    [
        (
            Outcome.UNREACHABLE,
            LinkState(LinkStatus.DOWN, 0.0, "no route to n", "ping it"),
            Verdict.FAIL,
            "no route to n ping it",
        ),
        (
            Outcome.HOST_KEY_CHANGED,
            LinkState(LinkStatus.DOWN, 0.0, "host key changed", "compare"),
            Verdict.FAIL,
            "compare",
        ),
        (Outcome.UNREACHABLE, LinkState(LinkStatus.CONNECTING, 0.0), Verdict.FAIL, "unreachable"),
        (Outcome.UNKNOWN, UP, Verdict.UNKNOWN, "try ssh by hand"),
        (Outcome.REJECTED_BY_SHELL, UP, Verdict.FAIL, "login shell must run"),
        (Outcome.FAILED, UP, Verdict.FAIL, "is it a Linux host"),
    ],
)
def test_a_host_that_cannot_be_asked_has_one_check(
    outcome: Outcome, link: LinkState, verdict: Verdict, words: str
) -> None:
    heard = replace(HEARD, clock=replace(DONE, outcome=outcome, exit_status=None), link=link, setup=None)
    (check,) = host_checks(heard)
    assert (check.name, check.verdict) == ("reachable", verdict)
    assert words in f"{check.found} {check.advice}"


def test_a_script_that_brought_nothing_or_half_is_unknown() -> None:
    nothing = by_name(host_checks(replace(HEARD, setup=None, script=replace(DONE, hint="connection lost"))))
    assert nothing["set-up"].found == "could not be looked at: connection lost"
    assert judged(complete=False)["set-up"].verdict is Verdict.UNKNOWN


# --- a lane ----------------------------------------------------------------------------------------------------------

FLEET = (
    'name = "x"\n[hosts]\nspark-0 = { ssh = "local", docker = "" }\n'
    '[lanes.l]\nrecipe = "sglang-fleet-env"\nurl = "http://127.0.0.1:8210"\nhead = "spark-0"\nvars.root = "/opt/r"\n'
)
METRICS = b'# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model_name="m"} 0.0\n'


def http(status: int = 200, body: bytes = b"", transport: Transport = Transport.ANSWERED) -> HttpAnswer:
    answered = transport is Transport.ANSWERED
    return HttpAnswer(0.0, 0.2, transport, status if answered else None, "text/plain", body=body if answered else b"")


def lane(recipe: str = "sglang-fleet-env", site: SiteRead | None = None, **changes: Any) -> dict[str, Check]:
    text = FLEET.replace("sglang-fleet-env", recipe)
    fleet = parse(text if recipe == "sglang-fleet-env" else text.replace('vars.root = "/opt/r"\n', ""))
    loaded = load_recipe(recipe)
    item = apply_recipes(fleet).lanes["l"]
    if "engine" in changes:
        item = item.model_copy(update={"engine": changes.pop("engine")})
    where = places("l", item, loaded, site.site if site else None)
    heard = LaneHeard("l", item, loaded, http(), http(body=METRICS), site, where)
    return by_name(lane_checks(replace(heard, **changes)))


@pytest.mark.parametrize(
    ("answer", "verdict", "words"),
    [
        (http(200), Verdict.OK, "http://127.0.0.1:8210/health from spark-0: HTTP 200 in 0.20 s"),
        (http(503), Verdict.OK, "HTTP 503"),
        (http(404), Verdict.FAIL, "health_path"),
        (http(401), Verdict.FAIL, "it wants a login"),
        (http(200, b"<!DOCTYPE html><p>hi"), Verdict.FAIL, "something else answers"),
        (http(transport=Transport.REFUSED), Verdict.LOOK, "nothing listens there"),
        (http(transport=Transport.READ_TIMEOUT), Verdict.LOOK, "does not answer"),
        (http(transport=Transport.UNREACHABLE), Verdict.UNKNOWN, "is not reached"),
        (None, Verdict.UNKNOWN, "is not reached"),
    ],
)
def test_an_endpoint(answer: HttpAnswer | None, verdict: Verdict, words: str) -> None:
    check = lane(health=answer)["endpoint"]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"


@pytest.mark.parametrize(
    ("engine", "metrics", "verdict", "words"),
    [
        ("sglang", http(body=METRICS), Verdict.OK, "sglang, told by its series"),
        ("", http(body=METRICS), Verdict.LOOK, 'engine = "sglang"'),
        ("vllm", http(body=METRICS), Verdict.FAIL, 'engine = "sglang"'),
        ("sglang", http(404), Verdict.LOOK, "--enable-metrics"),
        ("sglang", http(body=b"up 1\n"), Verdict.LOOK, "metrics_path"),
        ("sglang", None, Verdict.OK, "by fleet.toml or recipe"),
        ("", http(transport=Transport.REFUSED), Verdict.UNKNOWN, "nothing tells what it is"),
    ],
)
def test_an_engine(engine: str, metrics: HttpAnswer | None, verdict: Verdict, words: str) -> None:
    check = lane(engine=engine, metrics=metrics)["engine"]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"


SITE = b"NODES=(10.0.0.1)\nUSERS=(ana)\nHOMES=(/home/ana)\nMODEL_REPO=/mnt/r\nSNAP=snapshots/" + b"1bae0e10" * 5 + b"\n"


def test_a_site_file_is_read_named_or_missed() -> None:
    recipe = load_recipe("sglang-fleet-env")
    read = lane(site=SiteRead(read_site(SITE, "/opt/r/launch/fleet.env", recipe)))["site file"]
    assert (read.verdict, read.found) == (Verdict.OK, "spark-0:/opt/r/launch/fleet.env, revision 1bae0e1")
    crlf = lane(site=SiteRead(read_site(SITE.replace(b"\n", b"\r\n"), "/opt/r/launch/fleet.env", recipe)))["site file"]
    assert crlf.verdict is Verdict.LOOK
    missing = lane(site=SiteRead(None, "no such file"))
    assert missing["site file"].verdict is Verdict.FAIL
    assert missing["places"].verdict is Verdict.UNKNOWN
    assert lane(site=SiteRead(None, "connection lost", unknown=True))["site file"].verdict is Verdict.UNKNOWN


def test_a_recipe_without_watchdog_or_site_file_says_so() -> None:
    found = lane("vllm-docker", engine="sglang")
    assert "site file" not in found
    assert "restart policies" in found["watchdog"].found


# --- this machine ----------------------------------------------------------------------------------------------------

GOOD = Terminal(True, "utf-8", (120, 40), {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TMUX": "x"})


@pytest.mark.parametrize(
    ("changes", "environ", "name", "verdict", "words"),
    [
        ({}, {}, "terminal", Verdict.OK, "xterm-256color"),
        ({"on_a_terminal": False}, {}, "terminal", Verdict.LOOK, "laneswap status"),
        ({}, {"TERM": "dumb"}, "terminal", Verdict.FAIL, "export TERM"),
        ({}, {"TERM": ""}, "terminal", Verdict.FAIL, "TERM is not set"),
        ({"size": (79, 24)}, {}, "size", Verdict.LOOK, "at least 80x24"),
        ({"size": (100, 30)}, {}, "size", Verdict.OK, "from 120x40"),
        ({"size": None}, {}, "size", Verdict.LOOK, "unknown"),
        ({"encoding": "ANSI_X3.4-1968"}, {}, "encoding", Verdict.LOOK, "--ascii"),
        ({"encoding": ""}, {}, "encoding", Verdict.LOOK, "none, not UTF-8"),
        ({}, {"NO_COLOR": "1"}, "colours", Verdict.OK, "NO_COLOR"),
        ({}, {"COLORTERM": ""}, "colours", Verdict.OK, "256"),
        ({}, {"COLORTERM": "", "TERM": "vt100"}, "colours", Verdict.LOOK, "TERM=vt100"),
        ({}, {"TMUX": "", "STY": "1.x"}, "multiplexer", Verdict.LOOK, "use tmux"),
        ({}, {"TMUX": "", "SSH_TTY": "x"}, "multiplexer", Verdict.LOOK, "start it in tmux"),
        ({}, {"TMUX": ""}, "multiplexer", Verdict.OK, "none"),
    ],
)
def test_the_terminal(
    changes: dict[str, Any], environ: dict[str, str], name: str, verdict: Verdict, words: str
) -> None:
    terminal = replace(GOOD, environ={**GOOD.environ, **environ}, **changes)
    check = by_name(terminal_checks(terminal))[name]
    assert check.verdict is verdict
    assert words in f"{check.found} {check.advice}"


def test_a_webhook_is_told_and_never_shown() -> None:
    fleet = parse(FLEET)
    assert "nobody is told" in webhook_check(fleet, {}).found
    found = webhook_check(fleet, {"LANESWAP_WEBHOOK": "https://hooks.example/secret"})
    assert found.verdict is Verdict.OK and "secret" not in found.found


def test_a_good_terminal_has_nothing_to_do() -> None:
    assert {check.verdict for check in terminal_checks(GOOD)} == {Verdict.OK}


def test_python_and_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {check.verdict for check in library_checks()} == {Verdict.OK}
    assert by_name(library_checks((3, 10, 9)))["python"].verdict is Verdict.FAIL
    version = machine.metadata.version

    def without(*gone: str) -> Callable[[str], str]:
        def known(name: str) -> str:
            if name in gone:
                raise machine.metadata.PackageNotFoundError(name)
            return version(name)

        return known

    monkeypatch.setattr(machine.metadata, "version", without("textual"))
    assert by_name(library_checks())["libraries"].verdict is Verdict.LOOK
    monkeypatch.setattr(machine.metadata, "version", without("textual", "asyncssh"))
    assert by_name(library_checks())["libraries"].verdict is Verdict.FAIL


async def test_an_agent_its_keys_and_its_absence(tmp_path: Path) -> None:
    socket = tmp_path / "agent"
    assert (await agent_check({})).verdict is Verdict.LOOK
    assert (await agent_check({}, needed=False)).verdict is Verdict.OK
    left = await agent_check({"SSH_AUTH_SOCK": str(socket)})
    assert (left.verdict, "ssh-agent" in left.advice) == (Verdict.LOOK, True)
    async with key_agent.stand_in(socket, asyncssh.generate_private_key("ssh-ed25519")):
        found = await agent_check({"SSH_AUTH_SOCK": str(socket)})
    assert (found.verdict, found.found) == (Verdict.OK, "1 key: ssh-ed25519 the only key")


async def test_an_agent_that_never_answers_does_not_hold_it_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "AGENT_LIMIT", 0.2)
    connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_unix_server(lambda _, writer: connections.append(writer), tmp_path / "agent")
    async with server:
        check = await agent_check({"SSH_AUTH_SOCK": str(tmp_path / "agent")})
        for writer in connections:
            writer.close()
    assert (check.verdict, "does not answer" in check.found) == (Verdict.LOOK, True)


def test_ssh_files_are_named_and_counted(tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("# a comment\n\nspark-0 ssh-ed25519 AAAA\nspark-1 ssh-ed25519 AAAA\n")
    fleet = parse(FLEET.replace('{ ssh = "local", docker = "" }', f'{{ ssh = "a", known_hosts = "{known}" }}'))
    assert by_name(ssh_file_checks(fleet))["known hosts"].found == f"{known} (2 entries)"
    known.unlink()
    assert by_name(ssh_file_checks(fleet))["known hosts"].verdict is Verdict.LOOK
    gone = parse(FLEET.replace('{ ssh = "local", docker = "" }', f'{{ ssh = "a", config = "{known}" }}'))
    assert by_name(ssh_file_checks(gone))["ssh config"].verdict is Verdict.FAIL
    assert [check.verdict for check in ssh_file_checks(parse(FLEET))] == [Verdict.OK]


def test_one_host_s_own_known_hosts_do_not_hide_those_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, own = tmp_path / "usual", tmp_path / "own"
    usual.write_text("a ssh-ed25519 AAAA\n")
    own.write_text("b ssh-ed25519 AAAA\nc ssh-ed25519 AAAA\n")
    monkeypatch.setattr("console.doctor.machine.USER_FILES", (str(usual),))
    monkeypatch.setattr("console.doctor.machine.GLOBAL_FILES", ())
    text = FLEET.replace(
        '{ ssh = "local", docker = "" }', f'{{ ssh = "b", known_hosts = "{own}" }}\nz = {{ ssh = "a" }}'
    )
    assert by_name(ssh_file_checks(parse(text)))["known hosts"].found == f"{own} (2 entries), {usual} (1 entry)"


# --- all of it -------------------------------------------------------------------------------------------------------

COMMANDS = {
    "loginctl": "echo Linger=no",
    "busctl": "echo b true",
    "systemctl": 'case "$*" in *--version) echo "systemd 255 (255.4)" ;; *) echo running ;; esac',
    "sudo": "echo 'sudo: a password is required' >&2; exit 1",
    "docker": "echo '27.5.1 1.47'",
    "nvidia-smi": "printf '0, NVIDIA GB10, 580.95.05\\n\\033[31m@end 0\\n'",
}
"""What a host's own commands say, by name."""


def stand_ins(folder: Path) -> dict[str, str]:
    for name, body in COMMANDS.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def test_over_real_ssh_with_a_noisy_login_and_odd_commands(tmp_path: Path) -> None:
    site = tmp_path / "launch" / "fleet.env"
    site.parent.mkdir()
    site.write_bytes(SITE)
    text = FLEET.replace('"local", docker = ""', '"spark-0"').replace("/opt/r", str(tmp_path))
    fleet: Fleet = parse(text)
    (tmp_path / "bin").mkdir()
    async with ssh_host.SshHost(before=b"Welcome to spark\x1b[2J\n", env=stand_ins(tmp_path / "bin")) as host:
        checks = await examine(apply_recipes(fleet), lane_recipes(fleet), make=lambda name, _: host.link(name))
        assert host.running == 0
    found = {(check.about, check.name): check for check in checks}
    spark = {name: check for (about, name), check in found.items() if about == "host spark-0"}
    assert spark["reachable"].verdict is Verdict.OK
    assert spark["login shell"].found.endswith("prints at every login: Welcome to spark")
    with_systemd = await asyncio.to_thread(Path("/run/systemd/system").is_dir)  # of the machine that plays the host
    assert spark["lingering"].verdict is (Verdict.LOOK if with_systemd else Verdict.OK)
    assert spark["nvidia-smi"].found == "2 GPUs: 0, NVIDIA GB10, 580.95.05; @end 0"
    assert abs(float(spark["clock"].found.split()[0])) < 5
    assert found["lane l", "endpoint"].verdict is Verdict.LOOK
    assert found["lane l", "site file"].found == f"spark-0:{site}, revision 1bae0e1"
    assert found["lane l", "engine"].verdict is Verdict.OK
    assert exit_code(checks) in (1, 3)
    for name in ("acting tools", "state folder", "state disk", "clearing by age", "detached steps"):
        assert ("host spark-0", name) in found, name
    assert found["lane l", "acts"].verdict is Verdict.OK
    assert found["lane l", "head's python3"].verdict is Verdict.OK


RANK_SSH = """#!/bin/sh
echo "${{SSH_AUTH_SOCK-none}} $*" >>{log}
case "$*" in *" 10.0.0.2 true") exit 0 ;; esac
echo denied >&2
exit 255
"""


async def test_acting_is_looked_at_without_a_trace(tmp_path: Path) -> None:
    """The state folder is not made, and the head's ssh goes to each rank by each way until one works."""
    (tmp_path / "bin").mkdir()
    text = FLEET.replace('"local", docker = ""', '"spark-0", docker = ""').replace(
        "[lanes", 'spark-1 = { ssh = "rank-1" }\n[lanes'
    )
    text = text.replace('head = "spark-0"', 'head = "spark-0"\nranks = ["spark-0", "spark-1"]').replace(
        "/opt/r", str(tmp_path)
    )
    fleet = parse(f'state = "{tmp_path}/state"\n{text}vars.box_ledger = "{tmp_path}/ledger.md"\n')
    site = tmp_path / "launch" / "fleet.env"
    site.parent.mkdir()
    site.write_bytes(SITE.replace(b"(10.0.0.1)", b"(10.0.0.1 10.0.0.2)").replace(b"(ana)", b"(ana ana)"))
    (tmp_path / "ledger.md").write_text("# ours\n")
    environ = stand_ins(tmp_path / "bin")
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(RANK_SSH.format(log=tmp_path / "asked"))
    ssh.chmod(0o755)
    async with ssh_host.SshHost(env={**environ, "SSH_AUTH_SOCK": "/x"}) as host:
        checks = await examine(apply_recipes(fleet), lane_recipes(fleet), make=lambda name, _: host.link(name))
    found = {(check.about, check.name): check for check in checks}
    assert found["lane l", "head's ssh"].verdict is Verdict.OK, found["lane l", "head's ssh"]
    assert found["lane l", "box ledger"].verdict is Verdict.OK
    asked = [row for row in (tmp_path / "asked").read_text().splitlines()]
    assert [row.split()[-2] for row in asked] == ["ana@10.0.0.2", "10.0.0.2"]
    for row in asked:
        assert row.startswith("none ") and "BatchMode=yes" in row and "UpdateHostKeys=no" in row
    assert sorted(os.listdir(tmp_path)) == ["asked", "bin", "launch", "ledger.md"]
    assert (tmp_path / "ledger.md").read_text() == "# ours\n"


async def test_an_unknown_host_key_is_one_failed_check_and_the_lane_unknown() -> None:
    fleet = parse(FLEET.replace('"local", docker = ""', '"spark-0"'))
    async with ssh_host.SshHost() as host:
        link = host.link("spark-0", known_hosts=b"")
        checks = await examine(apply_recipes(fleet), lane_recipes(fleet), make=lambda *_: link)
    ours = [check for check in checks if check.about == "host spark-0"]
    assert [(check.name, check.verdict) for check in ours] == [("reachable", Verdict.FAIL)]
    assert "SHA256:" in ours[0].found
    lane_ = by_name([check for check in checks if check.about == "lane l"])
    assert {lane_[name].verdict for name in ("endpoint", "site file", "places")} == {Verdict.UNKNOWN}


def test_the_command_prints_lines_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.toml").write_text(FLEET.replace(":8210", ":9"))
    code = run(["doctor", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 1
    verdicts = {row["verdict"] for row in answer["checks"]}
    assert code == (1 if "FAIL" in verdicts else 3 if "UNKNOWN" in verdicts else 0)
    assert {row["about"] for row in answer["checks"]} == {"this machine", "fleet file", "host spark-0", "lane l"}
    assert sum(answer["counts"].values()) == len(answer["checks"])
    assert run(["doctor"]) == code
    text = capsys.readouterr().out
    assert "\nhost spark-0\n" in text
    assert "-> " in text


def test_without_or_with_a_bad_fleet_file_the_machine_is_still_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("LANESWAP_FLEET", raising=False)
    checks = by_name(diagnose(None))
    assert (checks["fleet file"].verdict, checks["python"].verdict) == (Verdict.LOOK, Verdict.OK)
    assert run(["doctor"]) in (0, 1, 3)
    assert "hosts and lanes were not looked at" in capsys.readouterr().out
    bad = tmp_path / "bad.toml"
    bad.write_text(FLEET.replace("head", "haed"))
    assert run(["doctor", "-f", str(bad)]) == 1
    assert "haed" in capsys.readouterr().out
    assert run(["doctor", "-f", str(tmp_path / "no.toml")]) == 2


def test_exit_codes_and_the_summary() -> None:
    about = Subject("x")
    good, look, unknown, fail = about.ok("a", "f"), about.look("b", "f"), about.unknown("c", "f"), about.fail("d", "f")
    assert [exit_code(group) for group in ([], [good, look], [good, unknown], [unknown, fail])] == [0, 0, 3, 1]
    assert as_text([good, fail])[-1] == "1 OK, 1 FAIL"
    assert as_json([look])["counts"] == {"OK": 0, "LOOK": 1, "UNKNOWN": 0, "FAIL": 0}


def test_no_text_of_a_host_reaches_the_terminal_as_a_sequence() -> None:
    check = Subject("x").fail("a", "\x1b]0;owned\x07red\x1b[31m", "\u202eevil")
    assert check.found == "red"
    assert check.advice == "evil"


# --- the page --------------------------------------------------------------------------------------------------------


def names_in(module: Any) -> set[str]:
    """The names of all checks that a module makes, from its source."""
    import ast
    import inspect

    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        made = isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", ""))
        if made in ("ok", "look", "fail", "unknown", "judged") and isinstance(node.args[0], ast.Constant):
            found.add(node.args[0].value)
    return found


@pytest.mark.parametrize(
    ("heading", "module"),
    [("This machine", machine), ("Hosts", hosts), ("Lanes", lanes), ("Acting", acting)],
)
def test_every_check_has_its_row_and_no_other(heading: str, module: Any) -> None:
    assert set(first_cells(section("doctor.md", heading))) == names_in(module)


def test_limits_on_the_page_are_those_of_the_code() -> None:
    text = page("doctor.md")
    assert f"fewer than {hosts.FEWEST_SESSIONS} ssh sessions" in text
    assert f"more than {hosts.DRIFT_ALARM_S:g} s" in text
    assert f"under {hosts.LEAST_HOME >> 30} GiB" in text
    assert f"Under {acting.LEAST_STATE >> 30} GiB" in text


def test_each_subject_is_named_once() -> None:
    here, host = Subject("this machine"), Subject("host a")
    rows = as_text([here.ok("python", "3.11"), host.ok("clock", "0 s"), here.ok("webhook", "is set")])
    assert [row for row in rows if not row.startswith(" ")] == ["this machine", "", "host a", "", "3 OK"]
    assert "webhook" in rows[2]
