"""What changes only with a reboot."""

from __future__ import annotations

import pytest

from console.readings.facts import HostFacts, parse_facts


def test_facts_of_a_spark() -> None:
    texts = {
        "hostname": "spark-2\n",
        "kernel": "6.11.0-1016-nvidia-64k\n",
        "boot_id": "0d2f6c1e-5a51-4c5b-9f1a-2f3f9f6f1f11\n",
        "cpus": "20\n",
        "page_size": "65536\n",
        "python": "python3 3.12.3\n",
    }
    assert parse_facts(texts) == HostFacts(
        "spark-2", "6.11.0-1016-nvidia-64k", "0d2f6c1e-5a51-4c5b-9f1a-2f3f9f6f1f11", 20, "python3 3.12.3", 65536
    )


def test_what_the_host_does_not_say_stays_empty() -> None:
    assert parse_facts({}) == HostFacts("", "", "", 0, "", 4096)


@pytest.mark.parametrize("text", ["0", "1000", "99999999999", "abc", "-4096", "４０９６", ""])
def test_a_page_size_that_no_kernel_has_falls_back(text: str) -> None:
    assert parse_facts({"page_size": text}).page_size == 4096


@pytest.mark.parametrize("text", ["-1", "many", "1" * 30, "٣"])
def test_no_wild_cpu_count(text: str) -> None:
    assert parse_facts({"cpus": text}).cpus == 0


def test_hostile_names_are_safe_and_short() -> None:
    facts = parse_facts({"hostname": "\x1b]0;x\x07evil\nname " + "n" * 500})
    assert facts.hostname.startswith("evil name n") and len(facts.hostname) == 64
    assert facts.hostname.isprintable()


@pytest.mark.parametrize(
    ("text", "there"), [("/usr/bin/nvidia-smi", True), ("nvidia-smi is not on PATH", False), ("", None)]
)
def test_whether_gpu_figures_are_to_be_expected(text: str, there: bool | None) -> None:
    assert parse_facts({"gpu": text}).nvidia_smi is there
