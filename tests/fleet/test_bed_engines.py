"""The stand-in engine in a real container says what it is told to say."""

from __future__ import annotations

import pytest
from bed.engines import BedEngine, counter, measured_rate

pytestmark = pytest.mark.bed


def test_vllm_moves_at_the_known_rate(vllm: BedEngine) -> None:
    assert measured_rate(vllm, "vllm:generation_tokens_total") == pytest.approx(66.3, rel=0.1)
    assert counter(vllm.get("/metrics")[1], "vllm:kv_cache_usage_perc") == 0.4375


def test_sglang_moves_at_the_known_rate(sglang: BedEngine) -> None:
    text = sglang.get("/metrics")[1]
    assert counter(text, "sglang:max_total_num_tokens") == 6198016
    assert counter(text, "sglang:token_usage") == 0.4375


def test_a_fault_is_switched_and_healed(vllm: BedEngine) -> None:
    vllm.fault("503")
    assert vllm.get("/health")[0] == 503
    vllm.heal()
    assert vllm.get("/health")[0] == 200


def test_a_stopped_engine_does_not_answer_though_docker_calls_it_running(vllm: BedEngine) -> None:
    vllm.signal("STOP")
    with pytest.raises(OSError):
        vllm.get("/health", limit=1.0)
    assert vllm.host.docker("inspect", "--format", "{{.State.Status}}", vllm.name) == "running"
