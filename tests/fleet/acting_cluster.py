"""A lane to act on, in the way of the vLLM fleets: cluster.env, cluster.sh, a systemd watchdog with flag files."""

from __future__ import annotations

from collections.abc import Sequence
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
    end_all,
    forget_operations,
    let_in,
    put_tree,
    remove_image,
    set_fault,
    shut_out,
    standing,
    until_healthy,
)
from bed.client import BedHost
from bed.system import wait_for
from bed_watch import fleet_file, own_recipe
from stand_ins.checkpoint import TABLES

CONTAINER = "vllm_dsv41"
PORT = 8400
MODELS = "/var/tmp/models"
CACHE = "/var/tmp/dsv41-vllm-cache"
LOGS = "/var/tmp/dsv41-logs"
PAUSE, GAVE_UP = "/var/tmp/dsv41-watchdog.pause", "/var/tmp/dsv41-watchdog.gaveup"
LOCK = "/var/tmp/dsv41-watchdog.lock"
UNIT = "dsv41-fleet.service"
UNIT_FILE = """[Unit]
Description=fleet watchdog
[Service]
User={user}
ExecStart=/bin/bash {root}/ops/fleet-watchdog.sh
Restart=always
RestartSec=3
KillMode=control-group
"""
CLUSTER_ENV = """\
NODES=({nodes})
RAIL_A_IPS=({addresses})
RAIL_A_CIDR={subnet}.0/24
RAIL_A_IFACE=eth0
RAIL_A_HCA=rocep1s0f0
REPO_DIR={root}
MODEL_DIR={folder}
MODEL_REVISION={revision}
CACHE_DIR={cache}
IMAGE={image}
CONTAINER={container}
API_HOST={head}
API_PORT={port}
MASTER_PORT=29541
MAXLEN=300000
SEQS=8
LEVER_ENV="NCCL_BUFFSIZE=1048576 NCCL_PROTO=^LL128"
"""
LANE = """
[lanes.cluster]
recipe = "acting-cluster-env.toml"
engine = "vllm"
url = "http://{head.address}:{port}"
served = "deepseek-v4.1-flash"
head = "{head.name}"
ranks = [{ranks}]
containers = "vllm_dsv41"
health_interval = 0.5
stall_after = 3
usual_boot_s = {boot}
vars.root = "~/cluster"
[lanes.cluster.previous]
revision = "{old}"
"""


class ActingCluster:
    """The lane on two hosts or more; rank 0 is the head. Both revisions lie on every host, each in a folder."""

    name = "cluster"

    def __init__(self, hosts: Sequence[BedHost], *, boot: float = 3.0) -> None:
        self.hosts = tuple(hosts)
        self.head = hosts[0]
        self.boot = boot
        self.url = f"http://{self.head.address}:{PORT}"
        self.root = f"/home/{self.head.user}/cluster"

    def fleet_file(self, folder: Path, more: str = "", top: str = "") -> Path:
        """fleet.toml and its recipe in `folder`; `more` follows the lane, `top` stands before the first table."""
        own_recipe(
            folder,
            "vllm-cluster-env",
            "acting-cluster-env",
            ("port = 8000", f"port = {PORT}"),
            ("1 = 384006168", f"1 = {TABLES[1]}"),
            ("14 = 384016682", f"14 = {TABLES[14]}"),
            ("interval = 60", "interval = 2"),
        )
        ranks = ", ".join(f'"{host.name}"' for host in self.hosts)
        lane = LANE.format(port=PORT, head=self.head, ranks=ranks, boot=self.boot, old=OLD)
        file = fleet_file(folder, self.hosts, lane + more)
        if top:
            file.write_text(f"{top}\n{file.read_text()}")
        return file

    def folder(self, revision: str) -> str:
        """Where a revision's files are, on every host."""
        return f"{MODELS}/DeepSeek-V4.1-Flash-{revision[:7]}"

    def site_text(self, revision: str) -> str:
        """cluster.env for a revision."""
        return CLUSTER_ENV.format(
            nodes=" ".join(host.name for host in self.hosts),
            addresses=" ".join(host.address for host in self.hosts),
            subnet=self.head.address.rpartition(".")[0],
            root=self.root,
            folder=self.folder(revision),
            revision=revision,
            cache=CACHE,
            image=IMAGE,
            container=CONTAINER,
            head=self.head.address,
            port=PORT,
        )

    # --- bring it up, take it down

    def install(self) -> None:
        """Everything but running ranks; the watchdog's unit is there and stopped."""
        let_in(self.head, self.hosts)
        build_image(self.head, self.hosts[1:])
        for rank, host in enumerate(self.hosts):
            host.write("/srv/laneswap/checkpoint.py", (STAND_INS / "checkpoint.py").read_text())
            for revision in (OLD, NEW):
                place = (self.folder(revision), revision, str(rank), str(len(self.hosts)))
                host.root("python3", "/srv/laneswap/checkpoint.py", "folder", *place)
        put_tree(self.head, STAND_INS / "cluster", self.root)
        self.head.write(f"/etc/systemd/system/{UNIT}", UNIT_FILE.format(user=self.head.user, root=self.root))
        self.head.root("systemctl", "daemon-reload")
        self.write_site(NEW)
        self.heal()

    def write_site(self, revision: str) -> None:
        """Put cluster.env on the head."""
        self.head.write(f"{self.root}/cluster.env.new", self.site_text(revision))
        self.head.root("chown", f"{self.head.user}:", f"{self.root}/cluster.env.new")
        self.head.root("mv", f"{self.root}/cluster.env.new", f"{self.root}/cluster.env")

    def serve(self) -> Standing:
        """Bring it to SERVING by `cluster.sh up`, with the watchdog's unit active and no flag. Raises BedError."""
        self.head.ssh("bash cluster/launch/cluster.sh up", limit=120)
        self.head.root("rm", "-f", GAVE_UP)
        self.head.root("systemctl", "start", UNIT)
        until_healthy(self.url)
        found = self.standing()
        assert found is not None, "healthy, and it does not answer"
        return found

    def reset(self) -> Standing:
        """From whatever a test left to NEW, serving, watchdog armed, no fault, nothing of the console's left."""
        self._stop()
        self.heal()
        self.write_site(NEW)
        return self.serve()

    def _stop(self) -> None:
        self.head.root("systemctl", "stop", UNIT, check=False)
        end_all(self.head, "launch/cluster.sh")
        for host in self.hosts:
            forget_operations(host)
            host.root("docker", "rm", "--force", CONTAINER, check=False)
        self.head.root("rm", "-f", PAUSE, GAVE_UP, LOCK)

    def clear(self) -> None:
        """Nothing of it is left on any host."""
        self._stop()
        shut_out(self.head, self.hosts)
        self.head.root("rm", "-rf", f"/etc/systemd/system/{UNIT}", self.root)
        self.head.root("systemctl", "daemon-reload")
        for host in self.hosts:
            host.root("rm", "-rf", MODELS, CACHE, LOGS, STATE, "/srv/laneswap/checkpoint.py")
            remove_image(host)

    # --- looks past the console

    def states(self) -> dict[str, Seen | None]:
        """The rank's container by host; None where there is none."""
        return {host.name: containers(host, CONTAINER).get(CONTAINER) for host in self.hosts}

    def statuses(self) -> list[str]:
        """`running`, `exited`... or `absent`, in rank order."""
        return [seen.status if seen else "absent" for seen in self.states().values()]

    def standing(self) -> Standing | None:
        """What the engine says it is; None where nothing answers."""
        return standing(self.url)

    def watchdog_active(self) -> bool:
        """Whether its unit runs."""
        return self.head.root("systemctl", "is-active", UNIT, check=False).strip() == "active"

    def flags(self) -> list[str]:
        """Which of its flag files are there: `pause`, `gaveup`."""
        names = self.head.root("sh", "-c", f"ls {PAUSE} {GAVE_UP} 2>/dev/null", check=False).split()
        return [name.rpartition(".")[2] for name in names]

    def watchdog_log(self) -> str:
        """All that the watchdog wrote."""
        return self.head.root("cat", f"{LOGS}/watchdog.log", check=False)

    def until_logged(self, words: str) -> None:
        """Wait for a line of the watchdog. Raises BedError."""
        wait_for(lambda: words in self.watchdog_log(), f"the watchdog logs {words!r}", limit=60)

    # --- faults

    def fault(self, rank: int, **faults: object) -> None:
        """Faults of a rank's engine from its next start on; see rank.py."""
        set_fault(self.hosts[rank], CACHE, **{"boot": self.boot, **faults})

    def heal(self) -> None:
        """No rank has a fault."""
        for rank in range(len(self.hosts)):
            self.fault(rank)
