"""One host, from what it answered: pure judgements, each with what to do."""

from __future__ import annotations

from dataclasses import dataclass

from console.alarms import DRIFT_ALARM_S
from console.doctor.check import Check, Subject
from console.fleet.inventory import Host
from console.readings.docker_errors import explain_probe, probe_facts
from console.readings.doctor import HostSetup, max_sessions
from console.readings.link import LinkState, LinkStatus
from console.readings.output import Outcome, Output
from console.sanitize import word

FEWEST_SESSIONS = 4
"""Sampler, followed log and two commands at once."""
LEAST_HOME = 1 << 30
"""Bytes free in the home folder under which logs and result files may not fit."""
_ODD_SHELLS = ("fish", "nu", "csh", "tcsh", "xonsh", "elvish", "pwsh")


@dataclass(frozen=True, slots=True)
class Heard:
    """What one host answered."""

    name: str
    host: Host
    link: LinkState
    clock: Output
    """Of the first command, which asks for the time."""
    skew: tuple[float, float] | None = None
    """Seconds its clock is ahead of ours, and how far off that may be."""
    setup: HostSetup | None = None
    """None where the script brought nothing."""
    script: Output | None = None
    docker: Output | None = None
    """Of the probe of Docker's socket; None for a host without Docker."""
    needs_docker: bool = True
    """A lane's engine runs in a container there."""


def host_checks(heard: Heard) -> list[Check]:
    """Every check of one host; of one that cannot be reached only that."""
    about = Subject(f"host {heard.name}")
    reached = _reached(about, heard)
    if not heard.clock.ok:
        return [reached]
    checks = [reached, _clock(about, heard)]
    setup = heard.setup
    if setup is None:
        why = heard.script.hint if heard.script is not None and heard.script.hint else "no answer"
        return [*checks, about.unknown("set-up", f"could not be looked at: {why}", "try again when the host is calmer")]
    checks += [_shell(about, heard, setup), _python(about, setup)]
    checks += [_docker(about, heard, setup), _gpu(about, setup)]
    checks += [_linger(about, setup), _remove_ipc(about, setup), _systemd(about, setup), _user_manager(about, setup)]
    checks += [_memory_caps(about, setup), _sudo(about, setup), _home(about, setup), *_sshd(about, heard, setup)]
    checks.append(_consoles(about, setup))
    if not setup.complete:
        checks.append(about.unknown("set-up", "its answer was cut off: what is missing is unknown", "run it again"))
    return checks


def _reached(about: Subject, heard: Heard) -> Check:
    out, link = heard.clock, heard.link
    if out.ok:
        user = f" as {heard.setup.user}" if heard.setup is not None and heard.setup.user else ""
        how = "this machine itself" if heard.host.is_local else f"ssh {word(heard.host.ssh, 120)}, host key known"
        return about.ok("reachable", f"{how}, logged in{user}, {out.took * 1000:.0f} ms")
    problem, hint = out.hint or out.stderr or out.outcome.value, ""
    if link.status is LinkStatus.DOWN and link.error:
        problem, hint = link.error, link.hint
    if out.outcome is Outcome.UNKNOWN:
        hint = "the host answers too slowly, or the connection dies: try ssh by hand"
        return about.unknown("reachable", problem, hint)
    if out.outcome is Outcome.REJECTED_BY_SHELL:
        hint = hint or "the account's login shell must run `exec /bin/sh`: no forced command, no nologin"
    if out.outcome is Outcome.FAILED:
        hint = hint or "it has no `date`: is it a Linux host?"
    return about.fail("reachable", problem, hint)


def _clock(about: Subject, heard: Heard) -> Check:
    if heard.skew is None:
        return about.unknown("clock", "the host's time could not be read")
    ahead, error = heard.skew
    words = f"{abs(ahead):.2f} s {'ahead of' if ahead > 0 else 'behind'} this machine, give or take {error:.2f} s"
    if abs(ahead) - error > DRIFT_ALARM_S:
        advice = "timedatectl status, on both: sudo timedatectl set-ntp true"
        return about.look("clock", words, advice)
    return about.ok("clock", words)


def _shell(about: Subject, heard: Heard, setup: HostSetup) -> Check:
    noise = heard.clock.noise or (heard.script.noise if heard.script is not None else "")
    shell = setup.shell.rpartition("/")[2]
    if noise:
        words = f"{shell or 'the login shell'} prints at every login: {noise}"
        advice = (
            "the console skips it, scp and rsync do not; begin ~/.bashrc with: case $- in *i*) ;; *) return ;; esac"
        )
        return about.look("login shell", words, advice)
    if shell in _ODD_SHELLS:
        return about.ok("login shell", f"{shell}; it is only given `exec /bin/sh`")
    return about.ok("login shell", setup.shell or "unknown; nothing is printed at login")


def _python(about: Subject, setup: HostSetup) -> Check:
    if setup.python is None:
        return about.unknown("python3", "it did not answer")
    if setup.python:
        return about.ok("python3", f"{setup.python}: the sampler runs on it")
    words = "none: memory and GPU are read by /bin/sh; site file, downloads, row copies and watchdogs are not"
    return about.look("python3", words, "install python3 (any from 3.6, standard library only)")


def _docker(about: Subject, heard: Heard, setup: HostSetup) -> Check:
    if not heard.host.docker:
        return about.ok("docker", 'not looked at: docker = "" in fleet.toml')
    if heard.docker is None or not heard.docker.ok:
        why = heard.docker.hint if heard.docker is not None else "not asked"
        return about.unknown("docker", f"its socket could not be looked at: {why}")
    path, cli = word(heard.host.docker, 120), setup.docker
    facts = probe_facts(heard.docker.stdout)
    usable = facts.get("kind") == "socket" and facts.get("writable") == "yes"
    refused = cli is not None and any("Cannot connect to the Docker daemon" in row for row in cli.rows)
    if usable and not (refused and path == "/var/run/docker.sock"):
        said = cli.first.split() if cli is not None and cli.status == 0 else []
        version = f", Docker {word(said[0], 30)}, API {word(said[1], 12)}" if len(said) == 2 else ""
        return about.ok("docker", f"{path} is ours to read and write{version}")
    problem = explain_probe(heard.docker.stdout, path)
    judged = about.fail if heard.needs_docker else about.look
    return judged("docker", problem.problem, problem.hint)


def _gpu(about: Subject, setup: HostSetup) -> Check:
    section = setup.gpu
    if section is None:
        words = "no answer came back: then the driver hangs, or the host is starved"
        return about.unknown("nvidia-smi", words, "dmesg -T | tail")
    if section.status == 127:
        return about.look("nvidia-smi", "none: GPU figures stay unknown", "install the driver's utilities")
    if section.status == 124:
        return about.fail("nvidia-smi", "no answer within 8 s: the driver hangs", "dmesg -T | tail; a reboot clears it")
    rows = [row for row in section.rows if row.strip()]
    if section.status != 0:
        return about.look("nvidia-smi", f"exit {section.status}: {section.first or 'no words'}", "nvidia-smi, by hand")
    return about.ok("nvidia-smi", f"{len(rows)} GPU{'s' * (len(rows) != 1)}: {'; '.join(rows[:4])}")


def _linger(about: Subject, setup: HostSetup) -> Check:
    if setup.systemd == 0:
        return about.ok("lingering", "no systemd, so nothing ends with the login")
    if setup.linger is None:
        return about.unknown("lingering", "logind could not be asked", "loginctl show-user $USER -p Linger")
    if setup.linger:
        return about.ok("lingering", "on: user units outlive the last login")
    words = "off: user units, a download in one too, end with the last login"
    return about.look("lingering", words, f"sudo loginctl enable-linger {setup.user or '$USER'}")


def _remove_ipc(about: Subject, setup: HostSetup) -> Check:
    """logind.conf(5): system users (uid below 1000) are spared, and who lingers is never logged out for good."""
    if setup.systemd == 0:
        return about.ok("RemoveIPC", "no systemd, so nothing is removed")
    if setup.remove_ipc is None:
        return about.unknown("RemoveIPC", "logind's setting could not be read", "grep -r RemoveIPC /etc/systemd")
    if not setup.remove_ipc:
        return about.ok("RemoveIPC", "off: shared memory stays when the last login ends")
    if setup.uid is not None and setup.uid < 1000:
        return about.ok("RemoveIPC", f"on, but {setup.user or 'this user'} is a system user: spared")
    if setup.linger:
        return about.ok("RemoveIPC", "on, but this user lingers: nothing is removed")
    words = "on: semaphores and shared memory of this user's processes vanish with the last login; an engine then hangs"
    advice = (
        "sudo mkdir -p /etc/systemd/logind.conf.d && printf '[Login]\\nRemoveIPC=no\\n' | "
        "sudo tee /etc/systemd/logind.conf.d/ipc.conf && sudo systemctl restart systemd-logind"
    )
    return about.look("RemoveIPC", words, advice)


def _systemd(about: Subject, setup: HostSetup) -> Check:
    if setup.systemd is None:
        return about.unknown("systemd", "its version could not be read")
    if setup.systemd == 0:
        return about.look("systemd", "not what started this host: units cannot be looked at")
    return about.ok("systemd", f"version {setup.systemd}")


def _user_manager(about: Subject, setup: HostSetup) -> Check:
    said = setup.user_manager
    if setup.systemd == 0:
        return about.ok("user manager", "no systemd")
    if said in ("running", "degraded", "starting", "initializing"):
        return about.ok("user manager", said)
    if not said:
        return about.unknown("user manager", "not asked")
    words = f"does not answer: {said}"
    advice = f"sudo loginctl enable-linger {setup.user or '$USER'}; then systemctl --user is-system-running"
    return about.look("user manager", words, advice)


def _memory_caps(about: Subject, setup: HostSetup) -> Check:
    if setup.cgroup == 1:
        words = "cgroup v1: MemoryMax of a user unit is not enforced"
        return about.look("memory caps", words, "boot with systemd.unified_cgroup_hierarchy=1")
    if setup.cgroup is None:
        return about.unknown("memory caps", "the cgroup version could not be read")
    if setup.memory_delegated is None:
        return about.look("memory caps", "cgroup v2; no user manager runs, so its caps cannot be seen yet")
    if setup.memory_delegated:
        return about.ok("memory caps", "cgroup v2, memory is delegated: MemoryMax of a user unit is enforced")
    advice = (
        "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu io memory pids\\n' | "
        "sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload; then log in anew"
    )
    words = "cgroup v2, but memory is not delegated to the user manager: MemoryMax of a user unit does nothing"
    return about.look("memory caps", words, advice)


def _sudo(about: Subject, setup: HostSetup) -> Check:
    if setup.sudo is None:
        return about.unknown("sudo", "it did not answer")
    if setup.sudo:
        return about.ok("sudo", "works without a password")
    return about.ok("sudo", "not there, or not without a password; reading needs none")


def _home(about: Subject, setup: HostSetup) -> Check:
    if setup.home_free is None:
        return about.unknown("home folder", "its free space could not be read: a dead mount?", "df ~")
    words = f"{setup.home_free / (1 << 30):.1f} GiB free"
    if setup.home_free < LEAST_HOME:
        return about.look("home folder", words, "logs and results are written there: make room")
    return about.ok("home folder", words)


def _sshd(about: Subject, heard: Heard, setup: HostSetup) -> list[Check]:
    """What sshd allows on one connection."""
    if heard.host.is_local:
        return []
    if not setup.sshd_read and not setup.sshd:
        words = "sshd_config is not readable here; how many sessions it allows is learnt when it refuses one"
        return [about.ok("sshd", words)]
    settings = setup.sshd
    sessions = max_sessions(settings)
    restart = "in /etc/ssh/sshd_config, then sudo systemctl reload ssh"
    checks = []
    if sessions is None:
        checks.append(
            about.look("sshd", f"MaxSessions {settings['maxsessions']}: no number", f"MaxSessions 10 {restart}")
        )
    elif sessions < FEWEST_SESSIONS:
        words = f"MaxSessions {sessions}: sampler, log and commands have to wait for each other"
        checks.append(about.look("sshd", words, f"MaxSessions 10 {restart}"))
    for name, option, what in (
        ("allowtcpforwarding", "AllowTcpForwarding", "an engine's HTTP cannot be asked through this host"),
        ("allowstreamlocalforwarding", "AllowStreamLocalForwarding", "Docker's socket cannot be reached"),
        ("disableforwarding", "DisableForwarding", "neither engine nor Docker can be reached"),
    ):
        closed = ("yes",) if name == "disableforwarding" else ("no", "remote")
        if settings.get(name, "").lower() in closed:
            good = "no" if name == "disableforwarding" else "yes"
            words = f"{option} {settings[name]}: {what}"
            checks.append(about.fail("sshd", words, f"{option} {good} {restart}"))
    return checks or [about.ok("sshd", f"{sessions} sessions on a connection, forwarding allowed")]


def _consoles(about: Subject, setup: HostSetup) -> Check:
    if setup.consoles is None:
        return about.unknown("other consoles", "processes could not be listed")
    if setup.consoles == 0:
        return about.ok("other consoles", "none samples this host")
    words = f"{setup.consoles} console{'s' * (setup.consoles != 1)} sample{'s' * (setup.consoles == 1)} this host now"
    return about.look("other consoles", words, "each costs 12 MB here; know who else is at the keys")
