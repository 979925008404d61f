"""Who downloads, how a downloader's unit ended, and what its environment and its bars say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.downloader import (
    Downloader,
    End,
    before_starting,
    last_bar,
    parse_environment,
    read_leftovers,
    read_settings,
    unit_end,
)
from console.readings.logtext import control_characters
from console.readings.processes import Process
from console.readings.units import Unit, UnitMemory

GIB = 1024**3
CAP = 4 * GIB


def process(pid: int, command: str, ppid: int = 1, state: str = "S") -> Process:
    return Process(pid, ppid, state, command)


def found(*commands: str) -> tuple[Downloader, ...]:
    return read_leftovers([process(100 + at, command) for at, command in enumerate(commands)]).downloads


@pytest.mark.parametrize(
    ("command", "repo", "revision", "folder"),
    [
        ("hf download org/m", "org/m", "", ""),
        ("/usr/bin/python3 /home/ops/.local/bin/hf download org/m --revision abc", "org/m", "abc", ""),
        ("/opt/venv/bin/huggingface-cli download --revision=abc org/m", "org/m", "abc", ""),
        ("python -m huggingface_hub.cli.hf download org/m --local-dir /models/m/", "org/m", "", "/models/m"),
        ("hf download --max-workers 2 --include *.json org/m config.json", "org/m", "", ""),
        ("hf download gpt2", "gpt2", "", ""),
        ("sh -c 'while :; do hf download org/m --revision abc; sleep 60; done'", "org/m", "abc", ""),
        ("timeout 3600 nice hf download org/m && echo done", "org/m", "", ""),
        ("python3 -c from huggingface_hub import snapshot_download; snapshot_download('org/m')", "org/m", "", ""),
        ("python3 -c snapshot_download(repo_id=\"org/m\", revision='x')", "org/m", "", ""),
    ],
)
def test_a_download_is_recognised(command: str, repo: str, revision: str, folder: str) -> None:
    (item,) = found(command)
    assert (item.repo, item.revision, item.folder) == (repo, revision, folder)


@pytest.mark.parametrize(
    "command",
    [
        "hf download org/m --dry-run",
        "hf upload org/m .",
        "hf cache scan",
        "hf download",
        "hf download --revision",
        "systemd-run --user -p MemoryMax=4G hf download org/m",
        "ssh spark-0 hf download org/m",
        "tmux new -d hf download org/m",
        "docker run img hf download org/m",
        "grep hf download org/m",
        "[python3] <defunct>",
        "less /var/log/download org/m",
        "",
    ],
)
def test_what_only_names_a_download_is_none(command: str) -> None:
    assert found(command) == ()


def test_a_wrapper_and_what_it_runs_are_one_download() -> None:
    table = [
        process(10, "sudo -u ops timeout 1h hf download org/m"),
        process(11, "timeout 1h hf download org/m", 10),
        process(12, "/usr/bin/python3 /usr/bin/hf download org/m", 11),
        process(13, "/usr/bin/python3 /usr/bin/hf download org/m", 12),
        process(20, "hf download org/m", 1),
        process(30, "hf download org/other", 12),
    ]
    assert [(item.pid, item.repo) for item in read_leftovers(table).downloads] == [
        (10, "org/m"),
        (20, "org/m"),
        (30, "org/other"),
    ]


def test_parents_in_a_circle_end() -> None:
    table = [process(10, "hf download org/m", 11), process(11, "hf download org/m", 10)]
    assert read_leftovers(table).downloads == ()
    assert [item.pid for item in read_leftovers([process(9, "hf download org/m", 9)]).downloads] == [9]


def test_downloads_of_a_repository_or_into_a_folder() -> None:
    leftovers = read_leftovers([process(1, "hf download a/b"), process(2, "hf download c/d --local-dir /models/x")])
    assert [item.pid for item in leftovers.of("a/b")] == [1]
    assert [item.pid for item in leftovers.of("", "/models/x")] == [2]
    assert leftovers.of("") == ()


@pytest.mark.parametrize(
    ("command", "ppid", "stray"),
    [
        ("sh -c while :; do cat /proc/meminfo; sleep 2; done", 1, True),
        ("bash -c for i in 1 2; do date; sleep 9; done", 55, True),
        ("watch -n 2 nvidia-smi", 1, True),
        ("tail -F /var/log/x", 1, True),
        ("sh -c while :; do cat /proc/meminfo; sleep 2; done", 4000, False),
        ("bash launch/watchdog.sh", 1, False),
        ("sh -c sleep 60", 1, False),
        ("tail /var/log/x", 1, False),
        ("sh -c while :; do hf download org/m; sleep 5; done", 1, False),
    ],
)
def test_a_poll_loop_without_its_parent_is_stray(command: str, ppid: int, stray: bool) -> None:
    table = [process(55, "/usr/lib/systemd/systemd --user"), process(60, command, ppid)]
    assert [item.pid for item in read_leftovers(table).loops] == ([60] if stray else [])


def test_before_starting_names_what_is_in_the_way() -> None:
    one = read_leftovers([process(7, "hf download org/m")])
    assert before_starting(one, "org/m") == ["a download of org/m runs already (pid 7)"]
    assert before_starting(one, "org/other") == []
    two = read_leftovers([process(7, "hf download org/m"), process(8, "hf download org/m")])
    assert before_starting(two, "org/m") == [
        "2 downloads run for org/m (pid 7, 8): each fetches the same files; keep one"
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.text(max_size=60)), max_size=12))
def test_any_table_of_processes_is_read(rows: list[tuple[int, int, str]]) -> None:
    leftovers = read_leftovers([process(pid, f"hf download {text}", ppid) for pid, ppid, text in rows])
    for item in leftovers.downloads:
        assert control_characters(item.repo + item.revision) == 0


# --- how a unit ended


def unit(active: str, result: str = "success", status: int | None = None, load: str = "loaded") -> Unit:
    return Unit("hf.service", load, active, result=result, main_status=status)


def memory(peak: int | None = None, kills: int | None = None, cap: int | None = CAP) -> UnitMemory:
    return UnitMemory(None, peak, cap, None, None, oom_kills=kills)


@pytest.mark.parametrize(
    ("state", "kept", "before", "end", "words"),
    [
        (unit("failed", "oom-kill"), memory(), None, End.CAP, "killed by the kernel at its memory cap of 4.00 GiB"),
        (unit("failed", "oom-kill"), None, None, End.CAP, "killed by the kernel at its memory cap"),
        (unit("activating", "oom-kill"), memory(), None, End.CAP, "of 4.00 GiB, starts again"),
        (unit("failed", "exit-code"), memory(kills=3), 1, End.CAP, "the kernel killed 2 of hf.service"),
        (unit("failed", "exit-code"), memory(kills=3), 3, End.FAILED, "hf.service: exit-code"),
        (unit("failed", "exit-code"), memory(kills=3), None, End.FAILED, "hf.service: exit-code"),
        (unit("failed", "signal", 9), memory(CAP - 4096), None, End.CAP, "(likely: its peak reached the cap)"),
        (unit("failed", "signal", 9), memory(CAP // 2), None, End.FAILED, "hf.service: signal"),
        (
            unit("failed", "signal", 9),
            memory(),
            None,
            End.FAILED,
            "by hand, or by the kernel at its memory cap",
        ),
        (unit("failed", "signal", 15), memory(CAP), None, End.FAILED, "hf.service: signal"),
        (unit("failed", "signal", 9), memory(CAP, cap=None), None, End.FAILED, "hf.service: signal"),
        (unit("inactive", "timeout"), None, None, End.FAILED, "hf.service: timeout"),
        (unit("inactive"), memory(CAP), None, End.NONE, ""),
        (unit("active", "oom-kill"), memory(), None, End.NONE, ""),
        (unit("inactive", "success", load="not-found"), None, None, End.NONE, ""),
        (None, None, None, End.NONE, ""),
    ],
)
def test_how_a_unit_ended(
    state: Unit | None, kept: UnitMemory | None, before: int | None, end: End, words: str
) -> None:
    told, why = unit_end(state, kept, before)
    assert told is end
    assert words in why
    assert bool(why) == (end is not End.NONE)


# --- environment and bars


@pytest.mark.parametrize(
    ("text", "before", "after", "warnings"),
    [
        ("", 8_000_000_000, None, 0),
        ("HF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_LIMIT=2gb", 2_000_000_000, 2_000_000_000, 0),
        ("HF_XET_HP=1", 64_000_000_000, None, 1),
        (
            "export HF_XET_HIGH_PERFORMANCE='true'\nHF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_LIMIT=512MiB # cap",
            64_000_000_000,
            512 * 1024**2,
            1,
        ),
        ("HF_XET_HIGH_PERFORMANCE=0\0HF_XET_CHUNK_CACHE_SIZE_BYTES=0", 8_000_000_000, None, 1),
        ("HF_XET_RECONSTRUCTION_DOWNLOAD_BUFFER_LIMIT=lots", 8_000_000_000, None, 0),
    ],
)
def test_what_an_environment_makes_of_memory(text: str, before: int, after: int | None, warnings: int) -> None:
    settings = read_settings(parse_environment(text))
    assert (settings.limit_before_943, settings.limit, len(settings.warnings)) == (before, after, warnings)


def test_tokens_are_never_kept() -> None:
    text = (
        "HF_TOKEN=hf_abcdefghijklmnopqrst\nHUGGING_FACE_HUB_TOKEN=x\nHF_HUB_TOKEN_PATH=/x\nHF_HOME=/models\nPATH=/bin"
    )
    assert parse_environment(text) == {"HF_HOME": "/models"}


@pytest.mark.parametrize(
    ("text", "store", "off"),
    [("", True, False), ("HF_HUB_DISABLE_SHARED_BLOBS=1", False, False), ("HF_HUB_DISABLE_XET=YES", False, True)],
)
def test_the_shared_store_is_on_unless_switched_off(text: str, store: bool, off: bool) -> None:
    settings = read_settings(parse_environment(text))
    assert (settings.shared_store, settings.xet_off) == (store, off)


@pytest.mark.parametrize(
    ("text", "label", "done", "of", "incomplete"),
    [
        ("config.json: 100%|####| 371/371 [00:00<00:00, 1.2MB/s]\n", "config.json", "371", "371", False),
        ("a: 1%|  | 1.0M/9G [0:01<1:00, 5MB/s]\ra: 2%|# | 2.5M/9G [0:02<1:00, 5MB/s]", "a", "2.5M", "9G", False),
        ("x: 335MB [00:19, 896MB/s]", "x", "335M", "", False),
        ("Downloading (incomplete total...):   1%|   | 335M/39.7G [00:19<00:43, 896MB/s]\rKilledng 9 files: 0%| | 0/9"
         " [00:00<?, ?it/s]", "Downloading (incomplete total...)", "335M", "39.7G", True),
    ],
)  # fmt: skip
def test_the_last_bar_of_bytes(text: str, label: str, done: str, of: str, incomplete: bool) -> None:
    bar = last_bar(text)
    assert bar is not None
    assert (bar.label, bar.done, bar.of, bar.total_incomplete) == (label, done, of, incomplete)


def test_a_bar_of_files_is_none_of_bytes() -> None:
    assert last_bar("Fetching 9 files:  11%|#  | 1/9 [00:01<00:09, 1.1it/s]\nKilled\n") is None


@given(st.text(alphabet="a:%|/[] 0123456789.kMGTPB,s\r\n\x1b#<?t", max_size=400))
def test_any_output_is_read(text: str) -> None:
    bar = last_bar(text)
    assert bar is None or control_characters(bar.label + bar.done + bar.of) == 0


def test_a_bar_of_any_length_is_read_in_time() -> None:
    assert last_bar("a" * 60_000 + ":" + "|" * 5_000 + "1/2 " * 1000) is None
