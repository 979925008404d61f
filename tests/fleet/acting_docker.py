"""A lane to act on, in the way of the Docker lanes on one host: one serves, the one before is kept stopped.

Each container mounts a folder of its own revision whose path names it, its cache and its hook; the stand-in in it
(stand_ins/rank.py) tells from the files that were really there what it serves.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acting_parts import (
    IMAGE,
    NEW,
    OLD,
    STAND_INS,
    STATE,
    Seen,
    Standing,
    build_image,
    containers,
    forget_operations,
    set_fault,
    standing,
    until_healthy,
)
from bed.client import BedHost
from bed.system import wait_for
from bed_watch import fleet_file

PORT = 30016
"""Of its endpoint: the usual one belongs to the engine of other tests."""
SERVING = "dsv41-vllm-v21-fused-split-BOUND-REF"
RETIRED = "dsv41-vllm-v20-nightly-RETIRED-REF"
NAMES = {NEW: SERVING, OLD: RETIRED}
OLD_IMAGE = "laneswap/stand-in:v20"
"""Of the retired one: the same program, another image."""
PREFIX = "dsv41-vllm-"
MODELS = "/srv/models"
HOME = "/srv/dsv41"
"""Caches and hooks."""
BLOCKER = "laneswap-port-blocker"
LANE = """
[lanes.station]
recipe = "vllm-docker"
engine = "vllm"
url = "http://127.0.0.1:{port}"
served = "dsv41-flash-uva"
head = "{head}"
containers = "dsv41-vllm-*"
consumers = ["Milo custom[dsv41]", "Echo on Forge"]
health_interval = 0.5
stall_after = 3
usual_boot_s = {boot}
"""


class ActingDocker:
    """The lane on one host."""

    name = "station"

    def __init__(self, host: BedHost, *, boot: float = 3.0) -> None:
        self.host = self.head = host
        self.hosts = (host,)
        self.boot = boot
        self.url = f"http://{host.address}:{PORT}"
        self._ids: dict[str, str] = {}
        """Ids of the containers by revision, as they were made last."""
        self._stamps = ""

    def fleet_file(self, folder: Path, more: str = "", top: str = "") -> Path:
        """fleet.toml in `folder`; `more` follows the lane, `top` stands before the first table."""
        file = fleet_file(folder, self.hosts, LANE.format(port=PORT, head=self.host.name, boot=self.boot) + more)
        if top:
            file.write_text(f"{top}\n{file.read_text()}")
        return file

    def lane_text(self) -> str:
        """The lane alone, for a fleet file with more lanes."""
        return LANE.format(port=PORT, head=self.host.name, boot=self.boot)

    # --- bring it up, take it down

    def install(self) -> None:
        """The image, both revisions' folders and both containers, stopped."""
        build_image(self.host)
        script = 'docker image inspect "$2" >/dev/null 2>&1 && exit 0; '
        script += 'docker rm -f laneswap-build 2>/dev/null; docker create --name laneswap-build "$1" && '
        script += 'docker commit --change "LABEL version=v20" laneswap-build "$2" && docker rm laneswap-build'
        self.host.root("sh", "-c", script, "sh", IMAGE, OLD_IMAGE)
        for revision in (OLD, NEW):
            self.write_model(revision)
            self._ids[revision] = self.create(revision)
        self._stamps = self._folders()

    def folder(self, revision: str) -> str:
        """The bind source of a revision."""
        return f"{MODELS}/DeepSeek-V4.1-Flash-{revision}"

    def write_model(self, revision: str, content: str = "") -> None:
        """The folder of a revision with its files, or with those of another one."""
        tool = "/srv/laneswap/checkpoint.py"
        self.host.write(tool, (STAND_INS / "checkpoint.py").read_text())
        self.host.root("python3", tool, "folder", self.folder(revision), content or revision, "0", "1")
        self.host.root("rm", f"{self.folder(revision)}/engram-local.json")  # one host reads the shards themselves

    def create(self, revision: str, restart: str = "no") -> str:
        """Its container, not started; its id."""
        name, image = NAMES[revision], OLD_IMAGE if revision == OLD else IMAGE
        self.fault(revision)
        self.host.write(f"{HOME}/hook/sitecustomize.py", "# experts to the host's memory\n")
        return self.host.docker(
            *("create", f"--name={name}", f"--restart={restart}", "--network=host", "--memory=512m"),
            f"--volume={self.folder(revision)}:/model:ro",
            f"--volume={self.cache(revision)}:/root/.cache",
            f"--volume={HOME}/hook:/w:ro",
            *("--entrypoint=vllm", image, "serve", "--model", "/model", "--served-model-name", "dsv41-flash-uva"),
            *("--cpu-offload-gb", "60", "--max-model-len", "1048576", "--gpu-memory-utilization", "0.97"),
            *("--host", "0.0.0.0", "--port", str(PORT)),
        )

    def cache(self, revision: str) -> str:
        """The folder of a revision's caches; its faults stand there too."""
        return f"{HOME}/cache-{revision[:7]}"

    def serve(self) -> Standing:
        """Bring it to SERVING: NEW runs and is healthy, OLD was started once and is kept stopped. Raises BedError."""
        self.fault(OLD, boot=0.3)
        self.host.docker("start", RETIRED)
        until_healthy(self.url)
        self.host.docker("stop", RETIRED)  # it has lived and ended well, as one that is kept from before has
        self.fault(OLD)
        self.host.docker("start", SERVING)
        return self._serving()

    def _serving(self) -> Standing:
        until_healthy(self.url)
        found = self.standing()
        assert found is not None, "healthy, and it does not answer"
        return found

    def reset(self) -> Standing:
        """From whatever a test left to NEW, serving, and OLD stopped; no fault, nothing of the console's left.

        What was swapped is swapped back; where more than that was done, everything is made anew.
        """
        forget_operations(self.host)
        if self._swapped_back():
            return self._serving()
        self._remove()
        self.install()
        return self.serve()

    def _swapped_back(self) -> bool:
        """Names, states and faults as they were, NEW started anew; False where not all that was made is still there, or
        where a container did not end well: what it logged would be taken for the next test's."""
        found = containers(self.host)
        own = {one.id: (name, one) for name, one in found.items() if name.startswith(PREFIX)}
        images = self.host.root("docker", "image", "inspect", "--format", "x", IMAGE, OLD_IMAGE, check=False).split()
        if not own or own.keys() != set(self._ids.values()) or BLOCKER in found or len(images) != 2:
            return False
        if self._folders() != self._stamps:
            return False
        for revision, one in self._ids.items():
            self.fault(revision)
            self.host.root("docker", "stop", "--time=2", one)
        for name, ended in self.containers().items():
            if ended.status != "exited" or ended.exit_code != 0:
                return False
            self.host.docker("update", "--restart=no", name)
        for revision, one in self._ids.items():
            if own[one][0] != NAMES[revision]:
                self.host.docker("rename", one, NAMES[revision])
        self.host.docker("start", SERVING)
        return True

    def _folders(self) -> str:
        """Which folders lie under the paths of both revisions, and whether one was put aside."""
        paths = (self.folder(OLD), self.folder(NEW), f"{MODELS}-aside")
        return self.host.root("stat", "--format=%n %i %Y", *paths, check=False)

    def _remove(self) -> None:
        for name in (*containers(self.host, PREFIX), BLOCKER):
            self.host.root("docker", "rm", "--force", name, check=False)
        self.host.root("rm", "-rf", MODELS, f"{MODELS}-aside", HOME, "/srv/laneswap/checkpoint.py", STATE)

    def clear(self) -> None:
        """Nothing of it is left but its images: the next lane on this host wants the same."""
        forget_operations(self.host)
        self._remove()

    # --- looks past the console

    def containers(self) -> dict[str, Seen]:
        """The lane's containers by name."""
        return containers(self.host, PREFIX)

    def running(self) -> list[str]:
        """Names of those that run."""
        return sorted(name for name, seen in self.containers().items() if seen.up)

    def standing(self) -> Standing | None:
        """What the engine says it is; None where nothing answers."""
        return standing(self.url)

    def id_of(self, revision: str) -> str:
        """Id of a revision's container, whatever it is called now; '' where it is gone."""
        source = self.folder(revision)
        for seen in self.containers().values():
            mounted = self.host.docker("inspect", "--format", "{{range .Mounts}}{{.Source}} {{end}}", seen.id)
            if source in mounted.split():
                return seen.id
        return ""

    def until_healthy(self) -> None:
        """Wait until it answers 200. Raises BedError."""
        until_healthy(self.url)

    # --- faults

    def fault(self, revision: str, **faults: object) -> None:
        """Faults of a revision's engine from its next start on: `boot`, `dies` (0: exits at once), `deaf`, `stuck`."""
        set_fault(self.host, self.cache(revision), **{"boot": self.boot, **faults})

    def restart_policy(self, name: str, policy: str) -> None:
        """`always` on the retired one: after a restart of the daemon it takes port and GPU."""
        self.host.docker("update", f"--restart={policy}", name)

    def remove_retired(self) -> None:
        """Somebody tidied up."""
        self.host.docker("rm", RETIRED)

    def remove_source(self, revision: str) -> None:
        """The folder of a revision is gone."""
        self.host.root("rm", "-rf", self.folder(revision))

    def replace_source(self, revision: str, content: str) -> None:
        """Another folder, with files of another revision, stands under the same path."""
        self.host.root("rm", "-rf", f"{MODELS}-aside")
        self.host.root("mv", self.folder(revision), f"{MODELS}-aside")
        self.write_model(revision, content)

    def remove_image(self) -> None:
        """The retired one's image is gone; Docker lets go of it by force while its container is stopped."""
        self.host.docker("rmi", "--force", OLD_IMAGE)

    @contextmanager
    def port_taken(self) -> Iterator[None]:
        """Something else holds the lane's port: only to be had while nothing of the lane runs."""
        server = f"import socket, time; s = socket.create_server(('0.0.0.0', {PORT})); time.sleep(600)"
        command = ("python3", "-c", server)
        self.host.docker("run", "--detach", f"--name={BLOCKER}", "--network=host", IMAGE, *command)
        wait_for(self._blocked, f"{BLOCKER} holds the port", limit=20)
        try:
            yield
        finally:
            self.host.root("docker", "rm", "--force", BLOCKER, check=False)

    def _blocked(self) -> bool:
        return f":{PORT} " in self.host.root("ss", "-ltn")

    def behind(self, *words: str) -> str:
        """A docker command given by an operator underneath, over ssh."""
        return self.host.ssh(shlex.join(["docker", *words]))
