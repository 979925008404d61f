"""What the download cases ask of the console's warnings."""

from __future__ import annotations

from case_table import case_file, inspect_case

from console.inspection.arguments import Argument
from console.inspection.kinds import inspect
from console.readings.downloader import before_starting, read_leftovers
from console.readings.processes import parse_processes


def test_the_preset_beside_an_explicit_limit_warns() -> None:
    """C015: the preset wins over the explicit limit in affected releases, and a chunk cache of 0 caps nothing."""
    answer = inspect_case("C015", "download", "env=download.env")
    preset, cache = answer["settings"]["warnings"]
    assert preset.startswith("HF_XET_HIGH_PERFORMANCE overrides HF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_LIMIT")
    assert "up to 64 GB" in preset
    assert cache.startswith("HF_XET_CHUNK_CACHE_SIZE_BYTES=0 is no memory cap")
    assert [preset, cache] == [text for text in answer["warnings"] if text.startswith("HF_XET_")]


def test_a_cap_that_is_not_in_force_says_why() -> None:
    """C015: without the memory controller there is no memory.max, whatever systemd accepted."""
    answer = inspect_case("C015", "download", "cgroup=no_memory")
    assert answer["cap"]["why"] == "the memory controller is not delegated"


def test_a_bar_with_an_incomplete_total_is_no_progress() -> None:
    """C017: the state comes from the unit; the bar's 1 % is nowhere in the answer."""
    answer = inspect_case("C017", "download", "unit=systemctl_show.txt stdout=stdout.bin")
    assert answer["bar"] == {
        "label": "Downloading (incomplete total...)",
        "bytes": "335M",
        "of": "39.7G",
        "total_incomplete": True,
    }
    assert answer["progress_percent"] is None
    assert answer["expected"] is answer["done"] is answer["eta_s"] is None
    assert answer["why"] == "hf-download.service was killed by the kernel at its memory cap of 4.00 GiB"


def test_two_downloads_and_a_left_over_loop_warn_before_another_is_started() -> None:
    """C094: both pids are named, the loop too, and the zombie is no download."""
    found = read_leftovers(parse_processes(case_file("C094", "ps.txt").read_text()) or ())
    warnings = before_starting(found, "org/m")
    assert len(warnings) == 2
    assert "2 downloads run for org/m (pid 7001, 7444)" in warnings[0]
    assert "poll loops left behind by dropped connections: 1 (pid 7450)" in warnings[1]
    assert [item.pid for item in found.zombies] == [7502]
    assert inspect_case("C094", "processes", "ps.txt")["warnings"] == warnings
    assert before_starting(read_leftovers(()), "org/m") == []


def test_what_dangles_behind_the_mount_is_named_with_what_the_holder_has() -> None:
    """C013: complete on the holder, broken behind the mount: both are said, and which path the links name."""
    holder = Argument("holder", case_file("C013", "export.unreachable-from-here/models--org--m"))
    answer = inspect("snapshot", [holder, Argument("mount", case_file("C013", "mnt/models--org--m"))])
    assert answer["same"] is False
    assert answer["differ"] == [{"revision": "abc", "file": "config.json", "through_mount": "its link leads nowhere"}]
    assert answer["holder"]["path"].endswith("C013/export/models--org--m")
    assert answer["holder"]["revisions"][0]["absolute"] == ["config.json"]
