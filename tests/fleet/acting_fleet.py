"""A lane to act on, in the way of the SGLang fleets: fleet.env, a launcher that reaches the ranks by ssh, a watchdog.

Real scripts on real hosts: `launch/production.sh`, `relaunch.sh` and `watchdog.sh` do what those of the recipe do; each
rank is a container `sgldsv41` in which a stand-in plays the engine (stand_ins/rank.py). Two revisions are there, each
with rows of its own; the lane serves NEW and the way back leads to OLD.
"""

from __future__ import annotations

import shlex
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
from bed.client import Bed, BedHost
from bed.system import wait_for
from bed_lane import HELD, MOUNTED, SmallLane
from bed_watch import fleet_file, own_recipe
from stand_ins.checkpoint import TABLES

CONTAINER = "sgldsv41"
PORT = 8410
"""Of its endpoint: the usual one belongs to the engine of other tests."""
CACHE = "sgl-dsv41-cache"
LOGS = "sgl-dsv41-logs"
ROWS = {OLD: "dsv41-engram-old", NEW: "dsv41-engram-new"}
"""Folder of the row copies, below the home of each rank's account."""
FLEET_ENV = """\
# rank 0 holds the checkpoint and exports it
NODES=({addresses})
USERS=({users})
HOMES=({homes})
FABRIC_IFACE=eth0
RDMA_HCAS=rocep1s0f0,roceP2p1s0f0
FABRIC_SUBNET={subnet}.0/24
MODEL_REPO={mounted}
SNAP=snapshots/{revision}
MODEL_HOST_RANK=0
MODEL_REPO_HOST={held}
ENGRAM_ROWS_HOST={holder_rows}
ENGRAM_LOCAL_DIR={rows}
CACHE_DIR={cache}
LOG_DIR={logs}
SERVED_ALIASES="${{SERVED_ALIASES:-}}"
PREVIOUS_STACK_STOP=
PREVIOUS_STACK_RELAUNCH=
IMAGE={image}
"""
LANE = """
[lanes.dsv41]
recipe = "acting-fleet-env.toml"
engine = "sglang"
url = "http://127.0.0.1:{port}"
served = "deepseek-v4.1-flash"
head = "{head}"
ranks = [{ranks}]
containers = "sgldsv41"
health_interval = 0.5
stall_after = 3
usual_boot_s = {boot}
vars.root = "~/recipe"
[lanes.dsv41.previous]
revision = "{old}"
rows = "{old_rows}"
"""


class ActingFleet(SmallLane):
    """The lane on two to four hosts; rank 0 is head and holder. Every host but the holder mounts the checkpoint."""

    name = "dsv41"

    def __init__(self, bed: Bed, hosts: Sequence[BedHost], *, boot: float = 4.0) -> None:
        super().__init__(bed, hosts)
        self.boot = boot
        self.url = f"http://{self.head.address}:{PORT}"
        self.root = f"/home/{self.head.user}/recipe"

    # --- what the operator wrote

    def fleet_file(self, folder: Path, more: str = "", top: str = "") -> Path:
        """fleet.toml and its recipe in `folder`; `more` follows the lane, `top` stands before the first table."""
        own_recipe(
            folder,
            "sglang-fleet-env",
            "acting-fleet-env",
            ("port = 8210", f"port = {PORT}"),
            ("1 = 384006168", f"1 = {TABLES[1]}"),
            ("14 = 384016682", f"14 = {TABLES[14]}"),
            ("interval = 60", "interval = 2"),
        )
        ranks = ", ".join(f'"{host.name}"' for host in self.hosts)
        lane = LANE.format(port=PORT, head=self.head.name, ranks=ranks, boot=self.boot, old=OLD, old_rows=ROWS[OLD])
        file = fleet_file(folder, self.hosts, lane + more)
        if top:
            file.write_text(f"{top}\n{file.read_text()}")
        return file

    def site_text(self, revision: str) -> str:
        """fleet.env for a revision."""
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
            rows=ROWS[revision],
            cache=CACHE,
            logs=LOGS,
            image=IMAGE,
        )

    def ranges(self, rank: int, of: int | None = None) -> list[str]:
        """`LAYER:START:END` of a rank, by the partition of SGLang."""
        ranks = of or len(self.hosts)
        return [f"{layer}:{rows * rank // ranks}:{rows * (rank + 1) // ranks}" for layer, rows in TABLES.items()]

    # --- bring it up, take it down

    def install(self, *, old_rows: bool = True) -> None:
        """Everything but running ranks: keys, image, scripts, site file, both revisions, mounts and row copies."""
        let_in(self.head, self.clients)
        build_image(self.head, self.clients)
        for host in self.hosts:
            put_tree(host, STAND_INS / "fleet", f"/home/{host.user}/recipe", ("8210", str(PORT)))
        self.write_site(NEW)
        self.write_checkpoint(OLD, NEW)
        for client in self.clients:
            self.mount(client)
        for rank in range(1, len(self.hosts)):
            for revision in (OLD, NEW) if old_rows else (NEW,):
                self.build(rank, revision)
        self.heal()

    def write_checkpoint(self, *revisions: str) -> None:
        """The holder's repository, with a snapshot of each revision."""
        tool = "/srv/laneswap/checkpoint.py"
        self.head.write(tool, (STAND_INS / "checkpoint.py").read_text())
        for revision in revisions:
            self.head.root("python3", tool, "hub", HELD, revision)

    def build(
        self, rank: int, revision: str, *options: str, ranges: Sequence[str] = (), into: str = "", check: bool = True
    ) -> None:
        """A rank's row copy, made by the recipe's copier as the rank's account; returns when the tool has ended."""
        host = self.hosts[rank]
        source = f"{HELD if rank == 0 else MOUNTED}/snapshots/{revision}"
        target = into or f"/home/{host.user}/{ROWS[revision]}"
        words = ["python3", "recipe/tools/engram_local.py", source, target, *(ranges or self.ranges(rank)), *options]
        host.ssh(shlex.join(words) + ("" if check else " || true"), limit=120)

    def serve(self) -> Standing:
        """Bring it to SERVING with an armed watchdog, by the recipe's own relaunch. Raises BedError with its output."""
        self.head.ssh("bash recipe/launch/relaunch.sh", limit=120)
        self.until_armed()
        found = self.standing()
        assert found is not None, "healthy, and it does not answer"
        return found

    def reset(self) -> Standing:
        """From whatever a test left to NEW, serving, watchdog armed, no fault, nothing of the console's left."""
        end_all(self.head, "launch/relaunch.sh")
        self.end_watchdogs()
        end_all(self.head, "launch/production.sh")
        for host in self.hosts:
            forget_operations(host)
            host.root("docker", "rm", "--force", CONTAINER, check=False)
        self.heal()
        self.write_site(NEW)
        return self.serve()

    def clear(self) -> None:
        """Nothing of it is left on any host."""
        end_all(self.head, "launch/relaunch.sh")
        self.end_watchdogs()
        end_all(self.head, "launch/production.sh")
        for host in self.hosts:
            forget_operations(host)
            host.root("docker", "rm", "--force", CONTAINER, check=False)
        shut_out(self.head, self.clients)
        for host in self.hosts:
            home = f"/home/{host.user}"
            left = [
                f"{home}/{name}" for name in (CACHE, LOGS, "sgl-watchdog.log", ".sgl-watchdog.lock", *ROWS.values())
            ]
            host.root("rm", "-rf", *left, "/srv/laneswap/checkpoint.py", STATE)
        super().clear()
        for host in self.hosts:
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

    def site_revision(self) -> str:
        """The revision that fleet.env names now."""
        site = self.head.root("cat", f"{self.root}/launch/fleet.env")
        return next(line.rpartition("/")[2] for line in site.splitlines() if line.startswith("SNAP="))

    def watchdogs(self) -> list[int]:
        """Pids of every watchdog that runs on the head, without the shells that it forks."""
        rows = self.head.root("ps", "-ww", "-e", "-o", "pid=,ppid=,args=").splitlines()
        found = [row.split(None, 2) for row in rows if "launch/watchdog.sh" in row and "nohup" not in row]
        own = {int(pid) for pid, _, args in found if args.startswith(("bash ", "/bin/bash "))}
        return sorted(int(pid) for pid, parent, _ in found if int(pid) in own and int(parent) not in own)

    def watchdog_log(self) -> str:
        """All that the watchdogs wrote."""
        return self.head.root("cat", f"/home/{self.head.user}/sgl-watchdog.log", check=False)

    def lock(self) -> str:
        """The pid in the watchdog's lock; '' where there is no lock."""
        return self.head.root("cat", f"/home/{self.head.user}/.sgl-watchdog.lock", check=False).strip()

    def until_armed(self) -> int:
        """Wait until one watchdog runs and has armed itself; its pid. Raises BedError."""

        def armed() -> bool:
            own = self.watchdogs()
            last = self.watchdog_log().rpartition("watchdog started")[2]
            return len(own) == 1 and f"(pid {own[0]}," in last and "armed: " in last

        wait_for(armed, f"{self.head.name}: the watchdog is armed", limit=60)
        return self.watchdogs()[0]

    def until_healthy(self) -> None:
        """Wait until the head answers 200. Raises BedError."""
        until_healthy(self.url)

    def end_watchdogs(self) -> None:
        """End every watchdog and remove its lock."""
        for pid in self.watchdogs():
            self.head.root("kill", "-9", str(pid), check=False)
        self.head.root("rm", "-f", f"/home/{self.head.user}/.sgl-watchdog.lock")

    # --- faults

    def fault(self, rank: int, **faults: object) -> None:
        """Faults of a rank's engine from its next start on: `boot`, `dies`, `deaf`, `stuck`, `once`; see rank.py."""
        host = self.hosts[rank]
        set_fault(host, f"/home/{host.user}/{CACHE}", **{"boot": self.boot, **faults})

    def heal(self) -> None:
        """No rank has a fault; boots take their usual time, copiers theirs, GID indexes are those of the launch."""
        for rank, host in enumerate(self.hosts):
            self.fault(rank)
            host.root("rm", "-f", *(f"/home/{host.user}/{CACHE}/{name}" for name in ("gid", "copier")))

    def drift(self, rank: int, gid: int) -> None:
        """The rank's GID index moves, as after a reboot: the launcher's dry run has another line."""
        host = self.hosts[rank]
        host.write(f"/home/{host.user}/{CACHE}/gid", f"{gid}\n")

    def slow_copier(self, rank: int, mb_s: float) -> None:
        """Row copies on this host take long."""
        host = self.hosts[rank]
        host.write(f"/home/{host.user}/{CACHE}/copier", f"{mb_s}\n")

    def drop_rows(self, rank: int, revision: str) -> None:
        """The rank's copy of a revision is deleted: it has to be built anew for the way back."""
        host = self.hosts[rank]
        host.root("rm", "-rf", f"/home/{host.user}/{ROWS[revision]}")
