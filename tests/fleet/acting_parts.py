"""What the fleets to act on have in common: the engine's image, ssh from head to ranks, and looks past the console."""

from __future__ import annotations

import http.client
import json
import shlex
import socket
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.client import BedHost
from bed.system import wait_for

from console.rehearsal import engine

STAND_INS = Path(__file__).parent / "stand_ins"
IMAGE = "laneswap/stand-in:production"
INSIDE = "/stand-in"
PACKED = "/srv/laneswap/stand-in"
"""Where the image's files lie on a host before they go into it."""
STATE = "/var/tmp/laneswap"
"""Where the console keeps what is under way, on every host."""
OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
KEY = ".ssh/id_acting"
MARK = "laneswap-acting"
"""Comment of the head's key: by it the key is taken out again."""
MODULE = 'from rank import main\n\nif __name__ == "__main__":\n    main("sglang")\n'
COMMAND = f'#!/usr/bin/python3\nimport sys\n\nsys.path.insert(0, "{INSIDE}")\nfrom rank import main\n\nmain("vllm")\n'
BUILD = """
set -e
docker rm -f laneswap-build >/dev/null 2>&1 || true
docker create --name laneswap-build "$1" python3 >/dev/null
docker cp "$2/inside" "laneswap-build:$3"
docker cp "$2/vllm" laneswap-build:/usr/bin/vllm
docker commit --change "ENV PYTHONPATH=$3" --change 'LABEL overlay=spark' laneswap-build "$4" >/dev/null
docker rm -f laneswap-build >/dev/null
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One container as its host's Docker has it."""

    id: str
    status: str
    exit_code: int
    started: str
    restart: str
    """Restart policy."""
    image: str

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self.status == "running"


@dataclass(frozen=True, slots=True)
class Standing:
    """What really stands behind a lane's name, by its own engine."""

    revision: str
    """Of the files that were mounted when it started."""
    started: float
    """Unix seconds by the head's clock: another number is another engine."""
    rows: Mapping[int, str]
    """`own` or `foreign` by rank: whose rows it read; '' where it has none."""


def containers(host: BedHost, prefix: str = "") -> dict[str, Seen]:
    """All containers of a host whose names begin so, by name."""
    asked = _Docker(host)
    try:
        listed = asked.get("/containers/json?all=true") or []
        named = [one["Id"] for one in listed if any(name[1:].startswith(prefix) for name in one["Names"])]
        found = [one for one in (asked.get(f"/containers/{name}/json") for name in named) if one is not None]
    finally:
        asked.close()
    return {one["Name"].lstrip("/"): _seen(one) for one in found}


class _Docker(http.client.HTTPConnection):
    """A host's Docker, asked over its own socket: tests look often, and a client program takes far longer."""

    def __init__(self, host: BedHost) -> None:
        super().__init__("localhost", timeout=60.0)
        self._path = f"/proc/{host.init}/root/run/docker.sock"

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

    def get(self, path: str) -> Any:
        """The answer; None where there is no such thing (any more). Raises OSError, AssertionError."""
        self.request("GET", path)
        answer = self.getresponse()
        body = answer.read()
        assert answer.status in (200, 404), f"{path}: {answer.status} {body!r}"
        return json.loads(body) if answer.status == 200 else None


def _seen(one: dict[str, Any]) -> Seen:
    state, policy = one["State"], one["HostConfig"]["RestartPolicy"]["Name"]
    return Seen(one["Id"], state["Status"], state["ExitCode"], state["StartedAt"], policy, one["Image"])


def standing(url: str, *, limit: float = 2.0) -> Standing | None:
    """Ask an engine what it is; None where nothing answers."""
    try:
        with urllib.request.urlopen(f"{url}/__standing", timeout=limit) as answer:
            told = json.load(answer)
    except (OSError, ValueError):
        return None
    return Standing(told["revision"], told["started"], {one["rank"]: one["rows"] for one in told["ranks"]})


def healthy(url: str, *, limit: float = 5.0) -> bool:
    """Whether `/health` answers 200."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=limit) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until_healthy(url: str, *, limit: float = 60.0) -> None:
    """Wait for `/health`. Raises BedError."""
    wait_for(lambda: healthy(url), f"{url} is healthy", limit=limit)


def build_image(host: BedHost, others: Sequence[BedHost] = ()) -> None:
    """The engine image on `host` and, under the same id, on the others: by the head's own ssh, as an operator would."""
    if IMAGE not in host.docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").split():
        host.write(f"{PACKED}/inside/engine.py", Path(engine.__file__).read_text())
        host.write(f"{PACKED}/inside/rank.py", (STAND_INS / "rank.py").read_text())
        host.write(f"{PACKED}/inside/sglang/launch_server.py", MODULE)
        host.write(f"{PACKED}/inside/sglang/__init__.py", "")
        host.write(f"{PACKED}/vllm", COMMAND)
        host.root("chmod", "755", f"{PACKED}/vllm")
        host.root("sh", "-c", BUILD, "sh", host.description["images"]["engine"], PACKED, INSIDE, IMAGE, limit=120)
    own = image_id(host)
    for other in others:
        if image_id(other) != own:
            host.ssh(f"docker save {IMAGE} | ssh -o BatchMode=yes {other.user}@{other.address} docker load", limit=120)


def image_id(host: BedHost) -> str:
    """Id of the engine image on a host; '' where it is not there."""
    return host.root("docker", "image", "inspect", "--format", "{{.Id}}", IMAGE, check=False).strip()


def remove_image(host: BedHost) -> None:
    """Neither the image nor what it was made of is left."""
    host.root("docker", "image", "rm", "--force", IMAGE, check=False)
    host.root("rm", "-rf", PACKED)


def let_in(head: BedHost, others: Sequence[BedHost]) -> None:
    """The head's account gets a key of its own, which every one of the others accepts; names work as addresses do."""
    home = f"/home/{head.user}"
    head.root("sh", "-c", f"test -f {home}/{KEY} || ssh-keygen -q -t ed25519 -N '' -C {MARK} -f {home}/{KEY}")
    entries = "".join(
        f"Host {one.name} {one.address}\n  HostName {one.address}\n  User {one.user}\n  IdentityFile ~/{KEY}\n"
        for one in others
    )
    head.write(f"{home}/.ssh/config", entries)
    head.write(f"{home}/.ssh/known_hosts", head.known_hosts.read_text())
    head.root("chown", "-R", f"{head.user}:", f"{home}/.ssh")
    head.root("sh", "-c", f"chmod 600 {home}/.ssh/config {home}/.ssh/known_hosts")
    public = head.root("cat", f"{home}/{KEY}.pub")
    for one in others:
        keys = shlex.quote(f"/home/{one.user}/.ssh/authorized_keys")
        one.root("sh", "-c", f"grep -q {MARK} {keys} || cat >>{keys}", stdin=public)
        head.ssh(f"ssh -o BatchMode=yes {one.user}@{one.address} true")


def shut_out(head: BedHost, others: Sequence[BedHost]) -> None:
    """Take the head's key out again."""
    home = f"/home/{head.user}"
    left = (KEY, f"{KEY}.pub", ".ssh/config", ".ssh/known_hosts")
    head.root("rm", "-f", *(f"{home}/{name}" for name in left))
    for one in others:
        one.root("sed", "-i", f"/{MARK}/d", f"/home/{one.user}/.ssh/authorized_keys", check=False)


def put_tree(host: BedHost, folder: Path, target: str, *changes: tuple[str, str]) -> None:
    """The scripts below `folder` in `target` on a host, as its account's own; with these words changed. None of them is
    executable, as after a checkout that keeps no modes: they are run by bash, and by nothing else."""
    host.write(f"{target}/launch/http.sh", (STAND_INS / "http.sh").read_text())
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            text = file.read_text()
            for before, after in changes:
                text = text.replace(before, after)
            host.write(f"{target}/{file.relative_to(folder)}", text)
    host.root("chmod", "-R", "a+rX", target)
    host.root("chown", "-R", f"{host.user}:", target)


def set_fault(host: BedHost, cache: str, **faults: object) -> None:
    """The stand-in engines' faults on a host, in the folder that is mounted as their cache; none heals."""
    text = "".join(f"{name}={value}\n" for name, value in faults.items())
    host.root("mkdir", "-p", cache)
    host.root("sh", "-c", f"cat >{cache}/stand-in.new && mv {cache}/stand-in.new {cache}/stand-in", stdin=text)
    host.root("chown", "-R", f"{host.user}:", cache)


def end_all(host: BedHost, pattern: str) -> None:
    """SIGKILL every process of a host whose command line has this, and wait until they are gone."""

    def pids() -> list[str]:
        rows = host.root("ps", "-ww", "-e", "-o", "pid=,args=").splitlines()
        return [row.split()[0] for row in rows if pattern in row and "ps -ww" not in row]

    if found := pids():
        host.root("kill", "-9", *found, check=False)
        wait_for(lambda: not pids(), f"{host.name}: no {pattern} runs", limit=20)


def forget_operations(host: BedHost) -> None:
    """Nothing of the console's acting is left: its units and its folder."""
    units = host.root("systemctl", "list-units", "--all", "--plain", "--no-legend", "laneswap-*", check=False)
    for unit in (line.split()[0] for line in units.splitlines() if line.split()):
        host.root("systemctl", "stop", unit, check=False)
        host.root("systemctl", "reset-failed", unit, check=False)
    user = "systemctl --user --plain --no-legend list-units --all 'laneswap-*' | while read -r u rest; do "
    user += "systemctl --user stop $u; systemctl --user reset-failed $u; done; true"
    try:
        host.ssh(f"export XDG_RUNTIME_DIR=/run/user/$(id -u); {{ {user}; }} 2>/dev/null")
    finally:
        host.root("rm", "-rf", STATE)
