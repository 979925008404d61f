"""What a container is to a lane, whether it comes back by itself, and whether it can be gone back to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from console.readings.containers import RETIRED_MARK, Container, ContainerState, belongs


class Role(StrEnum):
    """What a container is to a lane, as observed."""

    SERVING = "serving"
    """The lane's own: up on its port, or the last one that was."""
    RETIRED = "retired"
    """Of the lane, kept stopped: a way back."""
    CANDIDATE = "candidate"
    """Of the lane, tried or prepared, but never the one that serves."""
    UNRELATED = "unrelated"


_RETIRED_NAME = (RETIRED_MARK,)
_CANDIDATE_NAMES = ("-exp", "boot-fail", "candidate")


def role_of(container: Container, serving: Container | None, port: int, glob: str = "") -> Role:
    """The role of one container, given the one that `serving_container` chose. State first, then names and labels."""
    named = _named_role(container)
    if serving is not None and container.id == serving.id and container.name == serving.name:
        return Role.RETIRED if named is Role.RETIRED and not container.up else Role.SERVING
    if not belongs(container, port, glob):
        return Role.UNRELATED
    if container.up or container.state in (ContainerState.CREATED, ContainerState.RESTARTING):
        return Role.CANDIDATE
    return named or Role.RETIRED


def _named_role(container: Container) -> Role | None:
    texts = (container.name, *(value for key, value in container.labels if key.endswith("role")))
    lowered = " ".join(texts).lower()
    if any(mark in lowered for mark in _RETIRED_NAME):
        return Role.RETIRED
    return Role.CANDIDATE if any(mark in lowered for mark in _CANDIDATE_NAMES) else None


def returns_by_itself(container: Container) -> bool | None:
    """Whether a restart of the Docker daemon or the host starts it again; None if that is not known beforehand.

    Measured on Docker 20.10: after `docker stop`, `always` and `on-failure` (with an exit other than 0) come back,
    `unless-stopped` stays down (moby/moby#11008, #35166).
    """
    if container.auto_remove and not container.up:
        return False
    policy = container.restart_policy.partition(":")[0]
    if policy in ("always", "no"):
        return policy == "always"
    if policy == "unless-stopped":
        return container.up or container.state is ContainerState.RESTARTING
    if policy == "on-failure" and container.exit_code is not None:
        return container.exit_code != 0
    return None


def restart_words(container: Container) -> str:
    """The restart policy for the operator: `always: returns by itself after a daemon restart`."""
    if not container.restart_policy:
        return "restart policy unknown"
    returns = returns_by_itself(container)
    if returns is None and container.restart_policy.startswith("on-failure"):
        return f"{container.restart_policy}: returns after a daemon restart unless it then ends with exit 0"
    if returns is None:
        return f"{container.restart_policy}: unknown policy"
    return f"{container.restart_policy}: " + (
        "returns by itself after a daemon restart" if returns else "stays down after a daemon restart"
    )


@dataclass(frozen=True, slots=True)
class WayBack:
    """Whether a container can be started again. `possible` is None where that is not known."""

    possible: bool | None
    why: str
    """Why not; '' where it is possible."""


def way_back(container: Container | None) -> WayBack:
    """Whether `docker start` can bring it back, from its own state alone: to be asked before anything is stopped."""
    if container is None or container.state is ContainerState.GONE:
        return WayBack(False, "container removed")
    if container.state in (ContainerState.DEAD, ContainerState.REMOVING):
        detail = f": {container.error}" if container.error else ""
        return WayBack(False, f"container is {container.state.value}, it cannot be started again{detail}")
    if container.auto_remove:
        return WayBack(False, "container removes itself when it stops (--rm)")
    if container.state is ContainerState.UNKNOWN:
        return WayBack(None, "container state unknown")
    return WayBack(True, "")


def warnings(container: Container, others: Iterable[Container] = ()) -> tuple[str, ...]:
    """What an operator should know before relying on this container: safe sentences, () if nothing."""
    found: list[str] = []
    if container.autoheal:
        found.append("label autoheal: a third party may restart it, also while it is loading")
    elif any("autoheal" in other.image and other.up for other in others):
        found.append("an autoheal container runs on this host: a third party may restart it")
    if container.up and container.auto_remove:
        found.append("removes itself when it stops (--rm): no way back to it")
    if not container.up and returns_by_itself(container):
        words = "comes back by itself after a daemon restart, then takes port and GPU"
        found.append(f"restart={container.restart_policy}: {words}")
    return tuple(found)
