"""`inspect` of what one host says, and how its arguments are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.inspection import arguments as argument_module
from console.inspection.arguments import Argument, InspectError, one, parse_argument, reject_unknown
from console.inspection.kinds import KINDS, inspect

H200 = Path(__file__).parents[1] / "data/hosts/h200"
CASES = Path(__file__).parents[1] / "cases/inputs"
KB, MIB = 1024, 1024**2


def ask(kind: str, *words: str) -> dict[str, object]:
    answer = inspect(kind, [parse_argument(word) for word in words])
    json.dumps(answer, allow_nan=False)
    return answer


def test_memory_of_a_real_host() -> None:
    answer = ask(
        "memory",
        f"meminfo={H200}/meminfo.txt",
        f"numa={H200}/numa.txt",
        f"psi={H200}/psi_memory.txt",
        f"gpu={H200}/gpu.csv",
    )
    assert answer["available"] == answer["available_reported"] == answer["available_at_least"] == 131_475_312 * KB
    assert answer["used"] == (131_981_020 - 131_475_312) * KB
    assert answer["pressure_percent"] == {"some_avg10": 0.0, "some_avg60": 0.0, "full_avg10": 0.0, "full_avg60": 0.0}
    assert answer["unified"] is False
    assert answer["warnings"] == []
    assert answer["numa"] == [
        {
            "node": 0,
            "cpus": 16,
            "total": 4_550_128 * KB,
            "free": 3_284_412 * KB,
            "used": 1_265_716 * KB,
            "cached": 960_088 * KB,
            "mlocked": 6_888 * KB,
            "unevictable": 8_596 * KB,
            "shmem": 7_368 * KB,
            "device_memory": False,
        }
    ]


def test_low_free_memory_warns_by_what_the_gpu_says() -> None:
    meminfo = f"meminfo={CASES}/C001/meminfo.txt"
    unified = ask("memory", meminfo, f"gpu={CASES}/C007/nvidia_smi.csv")
    assert unified["unified"] is True
    assert unified["warnings"] == ["free 3.0 of 121.7 GiB, 93.5 cached; stop copy or drop cache"]
    assert ask("memory", meminfo, f"gpu={H200}/gpu.csv")["warnings"] == []


def test_page_size_comes_from_a_file(tmp_path: Path) -> None:
    size = tmp_path / "page_size"
    size.write_text("65536\n")
    words = (f"meminfo={CASES}/C002/meminfo.txt", f"zoneinfo={CASES}/C002/zoneinfo.txt")
    assert ask("memory", *words, f"page_size={size}")["available"] == 97_517_568 * KB
    size.write_text("64k")
    with pytest.raises(InspectError, match="page_size: expected bytes, found '64k'"):
        ask("memory", *words, f"page_size={size}")


def test_gpu_of_a_real_host() -> None:
    answer = ask("gpu", f"{H200}/gpu_busy.csv")
    (gpu,) = answer["gpus"]  # type: ignore[misc]
    assert gpu["memory_used"] == 41_843 * MIB  # type: ignore[index]
    assert gpu["clock_mhz"] is None  # type: ignore[index]
    assert answer["unified"] is False


def test_cgroup_limit_above_the_hosts_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("135149600768\n")
    (tmp_path / "memory.current").write_text("100\n")
    (tmp_path / "other").write_text("x")
    assert ask("cgroup", str(tmp_path))["limit"] == 135_149_600_768
    assert ask("cgroup", str(tmp_path), f"meminfo={H200}/meminfo.txt")["limit"] is None


def test_output_between_markers(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(
        b"noise\n\nLANESWAP-BEGIN-abcdefgh1\nbody\x1b[31m\n\nLANESWAP-END-abcdefgh1 3\nbye\n"
    )
    (tmp_path / "rc").write_text("3")
    (tmp_path / "nonce").write_text("abcdefgh1\n")
    answer = ask("output", f"stdout={tmp_path}/out", f"exit={tmp_path}/rc", f"nonce={tmp_path}/nonce")
    assert (answer["outcome"], answer["exit_status"]) == ("failed", 3)
    assert (answer["control_bytes_shown"], answer["control_bytes_came"]) == (0, 1)
    assert answer["stdout"] == ["body"]


@pytest.mark.parametrize(
    ("text", "outcome", "status"),
    [
        ("0", "done", 0),
        ("255\n", "failed", 255),
        ('{"exit_status": 2}', "failed", 2),
        ('{"exit_status": null, "exit_signal": "KILL"}', "failed", None),
        ('{"exit_status": null, "exit_signal": null, "error": "TimeoutError"}', "unknown", None),
        ("{}", "unknown", None),
        ("", "unknown", None),
    ],
)
def test_exit_files(tmp_path: Path, text: str, outcome: str, status: int | None) -> None:
    (tmp_path / "exit").write_text(text)
    answer = ask("output", f"exit={tmp_path}/exit")
    assert (answer["outcome"], answer["exit_status"]) == (outcome, status)


@pytest.mark.parametrize("text", ["no number", "[1]", '{"exit_status": "0"}', '{"exit_status": tru'])
def test_an_exit_file_that_says_nothing_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "exit").write_text(text)
    with pytest.raises(InspectError, match="exit: expected a number"):
        ask("output", f"exit={tmp_path}/exit")


@pytest.mark.parametrize(
    ("text", "sessions", "startups"),
    [
        ("MaxSessions 4\nMaxStartups 10:30:100\n", 4, "10:30:100"),
        ("maxsessions=4 # hardened\nMaxSessions 9\n", 4, "10:30:100"),
        ("#MaxSessions 4\nMatch User x\n MaxSessions 2\n", 10, "10:30:100"),
        ("MaxSessions many\nMaxStartups 3\n", None, "3"),
    ],
)
def test_what_sshd_allows(tmp_path: Path, text: str, sessions: int | None, startups: str) -> None:
    (tmp_path / "c").write_text(text)
    assert ask("output", f"sshd_config={tmp_path}/c")["sshd"] == {"max_sessions": sessions, "max_startups": startups}


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("memory", [], "say meminfo=PATH"),
        ("memory", ["nosuch=README.md"], "unknown role 'nosuch'; this kind knows: meminfo"),
        ("memory", [f"{H200}/gpu.csv"], "gpu.csv: meminfo: no MemTotal line"),
        ("memory", ["/no/such/file"], "/no/such/file: No such file"),
        ("memory", [f"meminfo={H200}/meminfo.txt", f"meminfo={H200}/meminfo.txt"], "given 2 times"),
        ("cgroup", [f"{H200}"], "no cgroup memory file"),
        ("gpu", [], "no CSV file"),
        ("gpu", [f"{H200}/meminfo.txt"], "meminfo.txt: nvidia-smi: MemTotal"),
        ("log", [], "no log file"),
        ("log", [f"{H200}"], "Is a directory"),
        ("nosuch", [], "unknown kind 'nosuch'; known: memory"),
    ],
)
def test_unusable_input_says_what_is_wrong(kind: str, words: list[str], said: str) -> None:
    with pytest.raises(InspectError) as caught:
        ask(kind, *words)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("a.prom", Argument("", Path("a.prom"))),
        ("0=a.prom@30", Argument("0", Path("a.prom"), 30.0)),
        ("meminfo=/x/y@z@1.5", Argument("meminfo", Path("/x/y@z"), 1.5)),
        ("x@y", Argument("", Path("x@y"))),
        ("n" * 5000, Argument("", Path("n" * 5000))),
    ],
)
def test_arguments(word: str, wanted: Argument) -> None:
    assert parse_argument(word) == wanted


def test_a_file_that_exists_is_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b@3").write_text("x")
    assert parse_argument("a=b@3") == Argument("", Path("a=b@3"))


@pytest.mark.parametrize("word", ["", "a\0b"])
def test_no_argument(word: str) -> None:
    with pytest.raises(InspectError, match="expected"):
        parse_argument(word)


def test_a_file_without_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argument_module, "MAX_BYTES", 1000)
    with pytest.raises(InspectError, match="/dev/zero: larger than 1000 bytes"):
        Argument("", Path("/dev/zero")).read()


def test_roles() -> None:
    given = [Argument("a", Path("1")), Argument("", Path("2"))]
    assert one(given, "a") == given[0]
    assert one(given, "b") is None
    assert one(given, "b", default=True) == given[1]
    reject_unknown(given, ("a",))


def test_every_kind_names_a_function_that_exists() -> None:
    for kind in KINDS:
        with pytest.raises(InspectError):
            inspect(kind, [Argument("no such role", Path("x"))])
