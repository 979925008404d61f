"""A small lane in the way of the SGLang fleets: fleet.env on the head, a checkpoint on one host that the others mount
over the network, row copies, and a container with the same name on every rank."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import engram_build
from bed.client import Bed, BedHost
from bed.system import BedError, wait_for
from bed_watch import fleet_file, own_recipe

OLD = "0123456789abcdef0123456789abcdef01234567"
NEW = "89abcdef0123456789abcdef0123456789abcdef"
FOLDER = "models--deepseek-ai--DeepSeek-V4.1-Flash"
HELD = f"/srv/checkpoint/{FOLDER}"
"""Where the holder has it."""
MOUNTED = "/mnt/dsv41"
"""Where the others see it."""
ROWS = "dsv41-engram-local"
CONTAINER = "sgldsv41"
PORT = 8310
"""Of its endpoint, where nothing listens: the usual one belongs to the engine of other tests."""
IMAGE = "laneswap/small:bed"
BUILDER = "/srv/laneswap/engram_build.py"
FLEET_ENV = """\
# rank 0 holds the checkpoint
NODES=({addresses})
USERS=({users})
HOMES=({homes})
FABRIC_IFACE=eth0
RDMA_HCAS=
FABRIC_SUBNET={subnet}.0/24
MODEL_REPO={mounted}
SNAP=snapshots/{revision}
MODEL_HOST_RANK=0
MODEL_REPO_HOST={held}
ENGRAM_ROWS_HOST={holder_rows}
ENGRAM_LOCAL_DIR={rows}
CACHE_DIR=sgl-dsv41-cache
LOG_DIR=sgl-dsv41-logs
SERVED_ALIASES="${{SERVED_ALIASES:-}}"
PREVIOUS_STACK_STOP=
PREVIOUS_STACK_RELAUNCH=
"""
LANE = """
[lanes.dsv41]
recipe = "small-fleet-env.toml"
url = "http://127.0.0.1:{port}"
head = "{head}"
ranks = [{ranks}]
containers = "sgldsv41"
vars.root = "~/recipe"
"""


class SmallLane:
    """The lane's parts on the bed's hosts; rank 0 is the holder and the head."""

    def __init__(self, bed: Bed, hosts: Sequence[BedHost]) -> None:
        self.bed = bed
        self.hosts = tuple(hosts)
        self.head = hosts[0]
        self.clients = tuple(hosts[1:])

    # --- what the operator wrote

    def fleet_file(self, folder: Path, more: str = "") -> Path:
        """fleet.toml and the recipe beside it: the shipped one with small row tables."""
        tables = engram_build.TABLES
        own_recipe(
            folder,
            "sglang-fleet-env",
            "small-fleet-env",
            ("1 = 384006168", f"1 = {tables[1]}"),
            ("14 = 384016682", f"14 = {tables[14]}"),
        )
        ranks = ", ".join(f'"{host.name}"' for host in self.hosts)
        return fleet_file(folder, self.hosts, LANE.format(head=self.head.name, ranks=ranks, port=PORT) + more)

    def site_text(self, revision: str) -> str:
        """fleet.env."""
        user = self.head.user
        return FLEET_ENV.format(
            addresses=" ".join(host.address for host in self.hosts),
            users=" ".join(user for _ in self.hosts),
            homes=" ".join(f"/home/{user}" for _ in self.hosts),
            subnet=self.bed.gateway.rpartition(".")[0],
            mounted=MOUNTED,
            held=HELD,
            revision=revision,
            holder_rows=",".join(self.ranges(0)),
            rows=ROWS,
        )

    def write_site(self, revision: str) -> None:
        """Put fleet.env on the head, as an editor does: another file, then renamed."""
        path = f"/home/{self.head.user}/recipe/launch/fleet.env"
        self.head.write(f"{path}.new", self.site_text(revision))
        self.head.root("chown", "-R", f"{self.head.user}:", f"/home/{self.head.user}/recipe")
        self.head.root("mv", f"{path}.new", path)

    # --- the checkpoint and its mounts

    def write_checkpoint(self, *revisions: str) -> None:
        """The holder's repository, with a snapshot of three files for each revision and a ref for the last one."""
        script = (
            'set -e; mkdir -p "$1/blobs" "$1/refs"; cd "$1"; shift\n'
            'for revision in "$@"; do mkdir -p "snapshots/$revision"\n'
            "  for name in config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors; do\n"
            '    blob=$(printf %s "$revision/$name" | sha256sum | cut -c1-64)\n'
            '    head -c 200000 /dev/urandom >"blobs/$blob"; ln -sf "../../blobs/$blob" "snapshots/$revision/$name"\n'
            '  done; printf %s "$revision" >refs/main\n'
            "done"
        )
        self.head.root("sh", "-c", script, "sh", HELD, *revisions)

    def mount(self, client: BedHost) -> None:
        """Mount the holder's repository over the network, by sshfs: the kernel here has no NFS."""
        key = "/root/.ssh/export"
        client.write(key, client.key.read_text())
        client.write(f"{key}.known", client.known_hosts.read_text())
        client.root("chmod", "600", key)
        client.root("mkdir", "-p", MOUNTED)
        # links as they are, as NFS shows them, and nothing kept from before
        options = f"allow_other,no_contain_symlinks,dir_cache=no,IdentityFile={key},UserKnownHostsFile={key}.known"
        client.root("sshfs", "-o", options, f"{self.head.stranger}@{self.head.address}:{HELD}", MOUNTED)

    def unmount(self, client: BedHost) -> None:
        """As after a boot without it in fstab."""
        client.root("umount", "--lazy", MOUNTED, check=False)

    def file_servers(self) -> list[int]:
        """Pids, on the holder, of what serves the mounts."""
        rows = self.head.root("ps", "-e", "-o", "pid=,args=").splitlines()
        return [int(row.split()[0]) for row in rows if "sftp-server" in row]

    # --- row copies

    def ranges(self, rank: int, of: int | None = None) -> list[str]:
        """`LAYER:START:END` of a rank, by the partition of SGLang."""
        ranks = of or len(self.hosts)
        tables = engram_build.TABLES.items()
        return [f"{layer}:{rows * rank // ranks}:{rows * (rank + 1) // ranks}" for layer, rows in tables]

    def build(
        self, rank: int, revision: str, *options: str, ranges: Sequence[str] = (), into: str = "", check: bool = True
    ) -> None:
        """Build a rank's copy as its user; returns when the tool has ended."""
        host = self.hosts[rank]
        host.write(BUILDER, Path(engram_build.__file__).read_text())
        source = f"{HELD if rank == 0 else MOUNTED}/snapshots/{revision}"
        words = ["python3", BUILDER, source, into or f"/home/{host.user}/{ROWS}", *(ranges or self.ranges(rank))]
        try:
            host.ssh(shlex.join([*words, *options]), limit=120)
        except BedError:
            if check:
                raise

    # --- containers

    def share_image(self) -> None:
        """The same image on all hosts: `docker import` makes another one each time."""
        self.head.docker("import", "/srv/images/busybox.tar", IMAGE)
        packed = self.head.root("sh", "-c", 'docker save "$1" | base64', "sh", IMAGE)
        for client in self.clients:
            client.root("sh", "-c", "base64 -d | docker load", stdin=packed)

    def launch(
        self,
        host: BedHost,
        *arguments: str,
        env: Sequence[str] = (),
        mounts: Sequence[str] = (),
        revision: str = OLD,
    ) -> None:
        """Start the rank's container anew: it does nothing, and looks like the real one to whoever inspects it."""
        rank = self.hosts.index(host)
        rows = f"/home/{host.user}/{ROWS}"
        host.root("mkdir", "-p", rows)
        command = [
            "sglang.launch_server",
            "--model-path",
            f"/models/repo/snapshots/{revision}",
            "--tp",
            str(len(self.hosts)),
        ]
        command += ["--node-rank", str(rank), *arguments]
        host.root("docker", "rm", "--force", CONTAINER, check=False)
        host.docker(
            *("run", "--detach", "--name", CONTAINER, "--network=host", "--restart=no"),
            *(f"--env={setting}" for setting in ("NCCL_SOCKET_IFNAME=eth0", *env)),
            *(f"--volume={HELD if rank == 0 else MOUNTED}:/models/repo:ro",),
            *(() if rank == 0 else (f"--volume={rows}:/engram-local:ro",)),
            *(f"--volume={mount}" for mount in mounts),
            *(IMAGE, "/bin/busybox", "sh", "-c", "trap exit TERM; while true; do /bin/busybox sleep 1; done", *command),
        )

    def clear(self) -> None:
        """Nothing of the lane is left on any host."""
        for host in self.hosts:
            host.root("docker", "rm", "--force", CONTAINER, check=False)
            self.unmount(host)
            home = f"/home/{host.user}"
            host.root("rm", "-rf", f"{home}/recipe", f"{home}/{ROWS}", "/srv/checkpoint", "/root/.ssh")
        wait_for(lambda: not self.file_servers(), "the mounts are gone", limit=30)
