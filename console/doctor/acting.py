"""What acting on a lane needs, host by host and on its head: pure judgements, each with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from console.doctor.check import Check, Subject
from console.execution.aftercare import Boxed
from console.execution.detached import Mode, Modes
from console.execution.sequence_reach import Reach
from console.fleet.inventory import Lane
from console.fleet.recipe_model import Recipe
from console.readings.doctor_acting import ActingSetup, Folder
from console.sanitize import word

LEAST_STATE = 1 << 30
"""Bytes free beside the state folder under which logs and saved evidence may not fit."""
NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "afs", "ocfs2", "gfs2"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"),
)
"""File systems that several hosts may share."""
NO_COPIER = "B: no copier in [acts.rows]: old rows that are gone cannot be built"
MEMORY = ("tmpfs", "ramfs")
"""File systems that a restart empties."""


@dataclass(frozen=True, slots=True)
class HostActing:
    """What one host of a lane answered."""

    name: str
    state: str
    """Path of the state folder."""
    setup: ActingSetup | None
    """None where the script brought nothing."""
    modes: Modes
    lanes: tuple[str, ...] = ()
    """Folders of its lanes, in the order of `setup.lanes`."""
    why: str = ""
    """Why `setup` is None."""


@dataclass(frozen=True, slots=True)
class LaneActing:
    """What the head of one lane answered, and what its recipe says of acting."""

    name: str
    lane: Lane
    recipe: Recipe
    reached: bool
    """The head could be asked."""
    python: str = ""
    """Why the head cannot carry a sequence out; '' if it can."""
    reach: Reach | None = None
    """None for a lane of one host."""
    unnamed: tuple[str, ...] = ()
    """Why where its operators keep their ledger is not known."""
    box: str = ""
    """Path of that ledger on the head; '' for none."""
    boxed: Boxed | None = None


def acting_host_checks(heard: HostActing) -> list[Check]:
    """What a host of a lane needs to be acted on."""
    about, setup = Subject(f"host {heard.name}"), heard.setup
    if setup is None:
        return [about.unknown("acting", f"could not be looked at: {heard.why or 'no answer'}", "run it again")]
    checks = [_tools(about, setup), _state(about, heard, setup), _disk(about, heard, setup), _aged(about, heard, setup)]
    checks.append(_steps(about, heard.modes, setup))
    if setup.docker:
        checks.append(_docker(about, setup))
    if not setup.complete:
        checks.append(about.unknown("acting", "its answer was cut off: what is missing is unknown", "run it again"))
    return checks


def _tools(about: Subject, setup: ActingSetup) -> Check:
    if setup.missing is None:
        return about.unknown("acting tools", "they could not be looked for")
    if setup.missing:
        words = f"no {', '.join(setup.missing)}: no action goes on this host"
        return about.fail("acting tools", words, "install util-linux, coreutils and findutils")
    return about.ok("acting tools", "flock, setsid, timeout and the others are there")


# The state folder


def _state(about: Subject, heard: HostActing, setup: ActingSetup) -> Check:
    state = setup.state
    # a host without that group needs one that its operators share
    make = f"sudo install -d -m 2770 -g {'docker' if setup.group else 'GROUP'} {heard.state}"
    if state is None:
        return about.unknown("state folder", f"{heard.state} could not be looked at")
    if state.kind in ("link", "other"):
        what = "a symbolic link" if state.kind == "link" else "no folder"
        return about.fail("state folder", f"{heard.state} is {what}, which is refused", "set `state` in fleet.toml")
    if state.kind == "none":
        return _not_there(about, heard, setup, make)
    said = f"{heard.state}: {_words(state)}"
    if state.mode is not None and state.mode & 0o002:
        words = f"{said}: every account of this host may write there, which is refused"
        return about.fail("state folder", words, f"sudo chmod o-w {heard.state}")
    if not state.ours:
        join = f"sudo usermod -aG {state.group} {setup.user or '$USER'}, and log in anew"
        shared = _shared(state) and state.group not in ("", "root")
        words = f"{said}: {setup.user or 'this login'} cannot write there"
        return about.fail("state folder", words, join if shared else make)
    if bad := next((pair for pair in zip(heard.lanes, setup.lanes, strict=False) if _bad(pair[1])), None):
        words = f"{bad[0]}: {_words(bad[1])}: {setup.user or 'this login'} cannot use it"
        return about.fail(
            "state folder", words, f"sudo chown --reference={heard.state} {bad[0]}; sudo chmod 2777 {bad[0]}"
        )
    if state.mode is not None and state.mode & 0o1000 and _shared(state):
        words = f"{said}: sticky, so nobody can replace what another account wrote"
        return about.look("state folder", words, f"sudo chmod -t {heard.state}")
    if not _shared(state):
        words = f"{said}: nobody but {state.owner} can take a lane over here"
        group = state.group if state.group not in ("", "root", state.owner) else "GROUP"
        return about.look("state folder", words, f"sudo chgrp {group} {heard.state}; sudo chmod 2770 {heard.state}")
    return about.ok("state folder", f"{said}; {_who(state.group, setup)}")


def _not_there(about: Subject, heard: HostActing, setup: ActingSetup, make: str) -> Check:
    above = setup.above
    parent = heard.state.rpartition("/")[0] or "/"
    if above is None or not above.ours:
        why = "is not there" if above is None or above.kind == "none" else f"cannot be written by {setup.user or 'us'}"
        return about.fail("state folder", f"{heard.state} is not there and cannot be made: {parent} {why}", make)
    if "docker" in setup.groups or (setup.uid == 0 and setup.group == "docker"):
        words = f"{heard.state} is not there yet; the first action makes it for group docker; {_who('docker', setup)}"
        return about.ok("state folder", words)
    who = setup.user or "this login"
    words = f"{heard.state} is not there yet; made by {who} it is for {who} alone: nobody else can take over"
    return about.look("state folder", words, make)


def _words(folder: Folder) -> str:
    if folder.kind != "folder":
        return {"link": "a symbolic link", "other": "no folder"}.get(folder.kind, "not there")
    mode = f"{folder.mode:04o}" if folder.mode is not None else "mode not known"
    return f"{mode} {folder.owner}:{folder.group}"


def _shared(folder: Folder) -> bool:
    """Whether its group can work in it."""
    return folder.mode is not None and folder.mode & 0o070 == 0o070


def _bad(folder: Folder) -> bool:
    return folder.kind in ("link", "other") or (folder.kind == "folder" and not folder.ours)


def _who(group: str, setup: ActingSetup) -> str:
    """Who can take over there."""
    if setup.members is None or setup.group != group:
        return f"who is in group {group} is not known"
    names = setup.members
    if not names:
        return f"nobody is in group {group}: root alone can take over"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"{', '.join(names[:8])}{more} can take over"


def _disk(about: Subject, heard: HostActing, setup: ActingSetup) -> Check:
    kind, free = setup.fstype, setup.free
    if not kind or free is None:
        return about.unknown("state disk", "its disk could not be read: a dead mount?", f"df -T {heard.state}")
    words = f"{kind}, {free / (1 << 30):.1f} GiB free"
    elsewhere = "set `state` in fleet.toml to a folder on a local disk"
    if kind in NETWORK:
        words = f"{words}: over the network; hosts that share it take each other's steps and leases for their own"
        return about.fail("state disk", words, elsewhere)
    if kind in MEMORY:
        return about.look("state disk", f"{words}: a restart empties it, leases and what is under way go", elsewhere)
    if free < LEAST_STATE:
        return about.look("state disk", words, "logs and evidence are kept there: make room")
    return about.ok("state disk", words)


def _aged(about: Subject, heard: HostActing, setup: ActingSetup) -> Check:
    look = "grep -rE '/var/tmp|/tmp' /etc/tmpfiles.d /usr/lib/tmpfiles.d"
    if setup.aged is None:
        return about.unknown("clearing by age", "what systemd-tmpfiles clears could not be read", look)
    keep = f"echo 'x {heard.state}' | sudo tee /etc/tmpfiles.d/laneswap.conf"
    if setup.aged:
        words = (
            f"systemd-tmpfiles clears what is older than {setup.aged}: a lost epoch makes this host refuse, or forget"
        )
        return about.look("clearing by age", words, keep)
    if setup.reapers and "tmp" in heard.state.split("/"):
        names = " and ".join(setup.reapers)
        return about.look("clearing by age", f"{names} is installed", f"see that it leaves {heard.state} alone")
    return about.ok("clearing by age", f"nothing clears {heard.state}")


def _steps(about: Subject, modes: Modes, setup: ActingSetup) -> Check:
    if modes.mode is None:
        return about.unknown("detached steps", modes.problem or "it did not say where steps can run")
    if modes.mode is Mode.USER:
        return about.ok("detached steps", f"units of {modes.account or 'this account'}, which lingers")
    if modes.mode is Mode.SYSTEM:
        return about.ok("detached steps", "units of the machine, by root or sudo without a password")
    words = "process groups, without memory cap and control group: " + "; ".join(
        dict.fromkeys(why for why in (modes.why_not_user, modes.why_not_system) if why)
    )
    none = "no systemd here" in words
    advice = "" if none else f"sudo loginctl enable-linger {modes.account or setup.user or '$USER'}"
    return about.look("detached steps", words, advice)


def _docker(about: Subject, setup: ActingSetup) -> Check:
    if setup.docker == "none":
        words = "none: no container can be stopped or started, no log of it kept"
        return about.fail("docker command", words, "install Docker's command line (docker-ce-cli, or docker.io)")
    if setup.docker == "gone":
        return about.unknown("docker command", "its socket is not there, so it could not be tried", "see docker")
    if setup.docker == "refused":
        words = "the socket is not ours to write, and `sudo -n docker` does not go either"
        return about.fail("docker command", words, f"sudo usermod -aG docker {setup.user or '$USER'}, and log in anew")
    return about.ok("docker command", "by the socket" if setup.docker == "socket" else "by sudo without a password")


# The lane


def acting_lane_checks(heard: LaneActing) -> list[Check]:
    """What a lane needs beyond that: its head, its recipe."""
    about = Subject(f"lane {heard.name}")
    checks = [_acts(about, heard)]
    if not heard.reached:
        return [*checks, about.unknown("head's python3", f"{heard.lane.head} is not reached")]
    checks += [_python(about, heard), _reach(about, heard)]
    if heard.box or heard.unnamed:
        checks.append(_box(about, heard))
    return checks


def _acts(about: Subject, heard: LaneActing) -> Check:
    missing = list(_missing_acts(heard.recipe, heard.lane))
    acts = heard.recipe.acts
    if missing:
        advice = "copy the recipe beside fleet.toml and add it: docs/recipes.md, [acts]"
        return about.look("acts", f"recipe {heard.recipe.name}: {'; '.join(missing)}", advice)
    dog = f"watchdog by {acts.watchdog.disarm}" if acts.watchdog is not None else "no watchdog"
    return about.ok("acts", f"stop by {acts.stop.by}, start by {acts.launch.by}, {dog}")


def _missing_acts(recipe: Recipe, lane: Lane) -> Iterator[str]:
    """What of the recipe keeps a key from going."""
    acts = recipe.acts
    if recipe.watchdog is not None and acts.watchdog is None:
        yield "D: no [acts.watchdog]; S refuses while the watchdog is not known to be off"
    if lane.runs_in == "host":
        for key, table, by in (("S", "stop", acts.stop.by), ("R", "launch", acts.launch.by)):
            if by == "docker":
                yield f"{key}: [acts.{table}] goes by containers, and the engine runs outside of them"
    if recipe.site is not None and acts.launch.by != "launcher":
        yield "B: no launcher that reads the site file, in [acts.launch]"
    if recipe.rows is not None and acts.rows is None:
        yield NO_COPIER


def _python(about: Subject, heard: LaneActing) -> Check:
    if heard.python:
        words = f"{heard.python}: sequences stay in the console, and end with it"
        return about.look("head's python3", words, f"install python3 on {heard.lane.head}")
    return about.ok("head's python3", f"sequences can run on {heard.lane.head}")


def _reach(about: Subject, heard: LaneActing) -> Check:
    if heard.reach is None:
        return about.ok("head's ssh", "not needed: the lane has one host")
    if heard.reach.problems:
        words = f"{'; '.join(heard.reach.problems)}: sequences stay in the console, and end with it"
        host = heard.reach.problems[0].partition(":")[0]
        advice = (
            f"on {heard.lane.head}: ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -a {word(host, 60)} true; "
            "it needs a key of its own there, and the rank's host key"
        )
        return about.look("head's ssh", words, advice)
    ranks = ", ".join(heard.reach.ways)
    return about.ok("head's ssh", f"{heard.lane.head} reaches {ranks}; tried from a login, not from inside a unit")


def _box(about: Subject, heard: LaneActing) -> Check:
    if not heard.box or heard.boxed is None:
        return about.look("box ledger", "; ".join(heard.unnamed) or "where it lies is not known", "set that key")
    where = f"{heard.lane.head}:{word(heard.box, 200)}"
    if heard.boxed.written:
        return about.ok("box ledger", f"{where} can be written")
    judged = about.unknown if heard.boxed.again else about.look
    return judged(
        "box ledger", heard.boxed.problem or where, f"make the file, or correct `vars.box_ledger` of {heard.name}"
    )
