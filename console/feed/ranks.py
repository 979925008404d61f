"""The containers of a lane's ranks: which one serves on each host, and the process light they add up to."""

from __future__ import annotations

from collections.abc import Mapping

from console.feed.host import HostFeed
from console.fleet.inventory import Lane
from console.readings.containers import Container, ContainerState, serving_container
from console.readings.health import ProcessLight
from console.snapshot import RankView

NO_CONTAINER = "no container"
ON_HOST = "on the host"
"""The rank runs outside containers: there is none to look for."""
UNREAD = "unknown"
_NOT_DEAD = (ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.UNKNOWN)


class Ranks:
    """The ranks of one lane over the newest readings of their hosts."""

    def __init__(self, lane: Lane, hosts: Mapping[str, HostFeed]) -> None:
        self._lane = lane
        self._hosts = hosts

    def views(self, now: float) -> tuple[RankView, ...]:
        """Every rank at monotonic time `now`, in rank order."""
        return tuple(self._view(number, host, now) for number, host in enumerate(self._lane.rank_hosts))

    def container_on(self, host: str) -> Container | None:
        """The container of this lane on `host`, as last read."""
        docker = self._hosts[host].view_containers().value
        return None if docker is None else serving_container(docker.items, self._lane.port, self._lane.containers)

    def light(self, ranks: tuple[RankView, ...]) -> ProcessLight:
        """What the ranks of `views` add up to."""
        ranks = tuple(rank for rank in ranks if rank.word != ON_HOST)
        held = [(rank, rank.container) for rank in ranks if rank.container is not None]
        ended = [f"{rank.host} {rank.word}" + _beside(item) for rank, item in held if item.state not in _NOT_DEAD]
        named = f" named {self._lane.containers}" if self._lane.containers else f" on port {self._lane.port}"
        absent = [f"{rank.host} no container{named}" for rank in ranks if rank.word == NO_CONTAINER]
        head = next((rank.container for rank in ranks if rank.host == self._lane.head), None)
        return ProcessLight(
            expected=len(ranks),
            running=sum(item.state is ContainerState.RUNNING for _, item in held),
            dead=(*ended, *absent),
            unknown=tuple(f"{rank.host}: {self._why_unknown(rank)}" for rank in ranks if rank.word == UNREAD),
            paused=tuple(rank.host for rank, item in held if item.state is ContainerState.PAUSED),
            absent=tuple(absent),
            unasked=any(self._unasked(rank.host) for rank in ranks if rank.word == UNREAD),
            started_at=head.started_at if head else None,
            id=head.id if head else "",
        )

    def _view(self, number: int, host: str, now: float) -> RankView:
        if self._lane.runs_in == "host" or self._hosts[host].docker is None:
            return RankView(number, host, None, ON_HOST, "")
        docker = self._hosts[host].view_containers().current(now)
        if docker is None or docker.problem:
            return RankView(number, host, None, UNREAD, "")
        container = serving_container(docker.items, self._lane.port, self._lane.containers)
        if container is None:
            return RankView(number, host, None, NO_CONTAINER, "")
        return RankView(number, host, container, rank_word(container), container.revision)

    def _unasked(self, host: str) -> bool:
        """The host can be asked, and its containers were neither read nor refused yet."""
        feed = self._hosts[host]
        reading = feed.view_containers()
        return feed.down_since() is None and reading.taken_mono is None and not reading.error

    def _why_unknown(self, rank: RankView) -> str:
        feed = self._hosts[rank.host]
        reading = feed.view_containers()
        if rank.container is not None:
            return f"Docker names no state of {rank.container.name}"
        if feed.down_since() is not None:
            return "host unreachable"
        if reading.value is not None and reading.value.problem:
            return reading.value.problem
        return reading.error or ("containers not read yet" if reading.taken_mono is None else "containers stale")


def rank_word(container: Container) -> str:
    """`up`, `exited 137`, `paused`...: one word and the exit code for a rank's cell."""
    if container.state is ContainerState.RUNNING:
        return "up"
    code = f" {container.exit_code}" if container.exit_code is not None else ""
    return container.state + (code if container.state in (ContainerState.EXITED, ContainerState.DEAD) else "")


def _beside(item: Container) -> str:
    """What an exit means, behind a word that names its code already; nothing where it means no more than that."""
    meaning = item.exit_meaning.removesuffix(f", exit {item.exit_code}")
    return f" ({meaning})" if meaning not in ("", "failed") else ""
