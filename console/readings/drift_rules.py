"""What may differ between ranks, and what it leads to where it may not: the rules of `drift`, as data. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

ACT, LOOK, INFO = "act", "look", "info"

OWN_ARGUMENTS = frozenset(
    {
        "--node-rank",
        "--rank",
        "--local-rank",
        "--data-parallel-rank",
        "--data-parallel-start-rank",
        "--headless",
        "--host",
        "--host-ip",
        "--node-ip",
        "--node-ip-address",
        "--ip",
        "--dist-ip",
        "--nccl-port",
    }
)
"""Arguments that are each rank's own: its number, its address, and that a worker serves no HTTP."""

_LOGGING = ("--log-", "--metrics", "--enable-metrics", "--disable-log-", "--uvicorn-log", "--show-time", "--decode-log")
_MEMORY = (
    "--mem-fraction-static",
    "--gpu-memory-utilization",
    "--cpu-offload-gb",
    "--swap-space",
    "--max-total-tokens",
)
_HTTP = ("--port", "--served-model-name", "--api-key", "--allowed-", "--root-path", "--ssl-", "--chat-template")

OWN_VARIABLES = frozenset(
    {
        "RANK",
        "NODE_RANK",
        "LOCAL_RANK",
        "HOST_IP",
        "NODE_IP",
        "VLLM_HOST_IP",
        "SGLANG_HOST_IP",
        "HOSTNAME",
        "PMIX_RANK",
        "OMPI_COMM_WORLD_RANK",
    }
)
"""Variables that are each rank's own."""
SITE_VARIABLES = frozenset({"NCCL_IB_GID_INDEX", "B12X_ROCE_GID_INDEX"})
"""The launcher asks each host for them at every start; they may move by themselves after a reboot."""
_FABRIC = ("NCCL_", "GLOO_", "UCX_", "B12X_", "NVSHMEM_", "SPARK_", "SGLANG_", "SGL_", "VLLM_", "TORCH_", "CUDA_")
_HOME = re.compile(r"^(?:/home/[^/]+|/root)(?=/|$)")


@lru_cache(maxsize=4096)
def arguments(argv: tuple[str, ...]) -> Mapping[str, str]:
    """A command line by argument, `_` as `-`; what stands before the first one under ''. Repeats are joined."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in argv:
        if is_flag(word):
            flag, equals, value = word.partition("=")
            name = flag.replace("_", "-") if flag.startswith("--") else flag
            found.setdefault(name, []).extend([value] if equals else [])
        else:
            found.setdefault(name, []).append(word)
    return {key: " ".join(values) or "given" for key, values in found.items()}


def is_flag(word: str) -> bool:
    """Whether a word of a command line names an argument; a negative number does not."""
    return re.match(r"--?[A-Za-z]", word) is not None


def own_argument(name: str) -> bool:
    """Whether an argument is each rank's own."""
    return name in OWN_ARGUMENTS


def argument_severity(name: str) -> tuple[str, str]:
    """How bad it is where an argument differs, and why."""
    if name.startswith(_LOGGING):
        return INFO, "only what is logged or counted differs"
    if name.startswith(_HTTP):
        return INFO, "only the rank that serves HTTP uses it"
    if name.startswith(_MEMORY):
        return LOOK, "the rank with the least memory sets the pool of all"
    return ACT, "ranks run in lock step: a different argument hangs them or makes them answer wrongly"


def own_variable(name: str) -> bool:
    """Whether a variable is each rank's own."""
    return name in OWN_VARIABLES


def environment_severity(name: str, *, missing: bool) -> tuple[str, str]:
    """How bad it is where a variable differs, or is not set everywhere, and why."""
    if name in SITE_VARIABLES:
        return INFO, "asked of each host at the start; it may move after a reboot, and a wrong one hangs all ranks"
    if not name.startswith(_FABRIC):
        return INFO, "a variable of the image or the system"
    if missing:
        return LOOK, "what is exported on one host only never reaches the engine on the others"
    return LOOK, "the ranks may choose different devices, transports or kernels"


def home_folded(path: str) -> str:
    """A path with the user's home folder as `~`: it may have another name on each host."""
    return _HOME.sub("~", path)
