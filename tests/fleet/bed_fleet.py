"""The bed as an operator would write it down in fleet.toml."""

from __future__ import annotations

from bed.client import Bed
from bed.engines import BedEngine

FLEET = """
name = "bed"
operator = "ana"
rates = {{ node = 0.5, gpu = 1, scrape = 0.5, containers = 1 }}
[hosts]
{hosts}
[lanes.station]
recipe = "vllm-docker"
engine = "vllm"
url = "http://127.0.0.1:{vllm.port}"
served = "dsv41-flash-uva"
head = "{vllm.host.name}"
containers = "dsv41-vllm-*"
health_interval = 0.5
stall_after = 3
[lanes.dsv41]
recipe = "docker-generic"
engine = "sglang"
url = "http://127.0.0.1:{sglang.port}"
served = "deepseek-v4.1-flash"
head = "{sglang.host.name}"
health_interval = 0.5
stall_after = 3
"""
"""Short intervals and a short stall limit, so that a test need not wait long."""


def fleet_text(bed: Bed, vllm: BedEngine, sglang: BedEngine) -> str:
    """fleet.toml for the whole bed: a vLLM lane and an SGLang lane on two of its hosts."""
    hosts = "\n".join(f'{host.name} = {{ ssh = "{host.name}", config = "{host.ssh_config}" }}' for host in bed.hosts)
    return FLEET.format(hosts=hosts, vllm=vllm, sglang=sglang)
