"""The edit of a site file on a host: exactly the wanted keys for bash, every other byte the same."""

from __future__ import annotations

import base64
import hashlib
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from site_hosts import answers, beside, carry_out

from console.actions.site_steps import SiteRefused, site_edit_step
from console.fleet.sitefile import SiteKind, parse_site

OLD = "snapshots/0123456789abcdef0123456789abcdef01234567"
NEW = "snapshots/89abcdef0123456789abcdef0123456789abcdef"
ROWS = "dsv41-engram-local-1017"
WANTED = {"SNAP": NEW, "ENGRAM_LOCAL_DIR": ROWS}
SAMPLES = Path(__file__).parents[1] / "data" / "fleet"
CASE = Path(__file__).parents[1] / "cases" / "inputs" / "C064"


def test_the_sample_becomes_the_candidate(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    shutil.copy(SAMPLES / "fleet.env.sample", path)
    step = site_edit_step("spark-0", str(path), path.read_bytes(), WANTED)
    assert step.title == "set SNAP, ENGRAM_LOCAL_DIR in fleet.env"
    assert (answers(step.already), answers(step.before), answers(step.after)) == ([1], [0], [1])
    before = path.read_bytes()
    done = carry_out(step)
    assert (done.returncode, done.stderr) == (0, "")
    expected = (SAMPLES / "fleet.env.candidate.sample").read_bytes().split(b"\n", 1)[1]
    assert path.read_bytes().split(b"\n", 1)[1] == expected, "all but the comment that says which sample it is"
    (backup,) = beside(path)
    assert backup.startswith("fleet.env.2") and backup.endswith("Z.bak")
    assert (tmp_path / backup).read_bytes() == before
    assert done.stdout == f"{path}: ENGRAM_LOCAL_DIR, SNAP set; before: {backup}\n"
    assert (answers(step.already), answers(step.before), answers(step.after)) == ([0], [0], [0])

    again = carry_out(step)
    assert (again.returncode, again.stdout) == (0, f"{path} is so already\n")
    assert beside(path) == [backup]


def test_a_key_set_twice_without_a_last_newline(tmp_path: Path) -> None:
    """C064: the effective lines, byte for byte."""
    path = tmp_path / "fleet.env"
    shutil.copy(CASE / "fleet.env", path)
    wanted = parse_site((CASE / "change.txt").read_bytes(), SiteKind.DOCKER)
    step = site_edit_step("h", str(path), path.read_bytes(), {item.key: item.value for item in wanted.assignments})
    assert carry_out(step).returncode == 0
    assert path.read_bytes() == (CASE / "expected_after.env").read_bytes()


# --- any file ---------------------------------------------------------------------------------------------------------

KEYS = ("SNAP", "ENGRAM_LOCAL_DIR")
SAFE_VALUE = st.text("abcz019._/-", min_size=1, max_size=12)
QUOTED_VALUE = st.text('abc 019$`"\\;#&é', min_size=0, max_size=10)


@dataclass(frozen=True)
class Row:
    """One line: before and after the edit, where it is the effective one."""

    key: str
    start: bytes
    quote: str
    value: str
    end: bytes

    def text(self, value: str | None = None) -> bytes:
        return self.start + f"{self.quote}{self.value if value is None else value}{self.quote}".encode() + self.end


@st.composite
def assignment(draw: st.DrawFn, keys: tuple[str, ...] = KEYS) -> Row:
    key = draw(st.sampled_from(keys))
    quote = draw(st.sampled_from(["", "'", '"']))
    value = draw(SAFE_VALUE if quote != "'" else QUOTED_VALUE)
    start = draw(st.sampled_from(["", "  ", "export ", "\texport  "])) + key + "="
    return Row(key, start.encode(), quote, value, draw(st.sampled_from([b"", b" ", b"  # why, and what's more"])))


OTHER_LINES = st.sampled_from(
    [
        b"",
        b"# SNAP=snapshots/commented",
        b"#ENGRAM_LOCAL_DIR=x",
        "# caf\xe9 \u2014 words".encode("utf-8"),
        b"# latin \xe9\xff",
        b"NODES=(192.0.2.11 192.0.2.12 'a b' \"$HOME\")",
        b'SERVED_ALIASES="${SERVED_ALIASES:-}"',
        b"FULL=$MODEL_REPO/$SNAP",
        b'export BOTH="${SNAP}:${ENGRAM_LOCAL_DIR}"',
        b"OF_FULL=$FULL/x",
        b'ARGS=(--path $SNAP --full "$FULL")',
        b"STAMP=$RANDOM$RANDOM$RANDOM",
        b"MODEL_REPO=/mnt/dsv41; PORT=8210",
        b"IMAGE='a b'\"c d\"e\\ f",
        b"TWO=1 SNAPS=2",
        b"say() { true; }",
        b"echo noise; true",
        b"set -o pipefail",
        b"PATH=/nowhere",
        b"IFS=,aeiou",
    ]
)
NO_CRLF = (b"(", b"{", b"set -o", b"echo", b"PATH", b";")
"""Starts and parts of lines that mean something else with a carriage return behind them."""


@st.composite
def site_file(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A file, and what the edit must make of it."""
    rows: list[Row | bytes] = list(draw(st.lists(st.one_of(assignment(), OTHER_LINES), max_size=10)))
    for key in KEYS:
        rows.insert(draw(st.integers(0, len(rows))), draw(assignment((key,))))
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    if end == b"\r\n":
        rows = [replace(row, end=row.end.rstrip()) if isinstance(row, Row) else row for row in rows]
        rows = [row for row in rows if isinstance(row, Row) or not any(part in row for part in NO_CRLF)]
    rows.insert(0, draw(st.sampled_from([b"# site", b"\xef\xbb\xbf# site"])))
    last = {row.key: number for number, row in enumerate(rows) if isinstance(row, Row)}
    before = [row.text() if isinstance(row, Row) else row for row in rows]
    after = [
        row.text(WANTED[row.key]) if isinstance(row, Row) and last[row.key] == number else before[number]
        for number, row in enumerate(rows)
    ]
    newline = draw(st.sampled_from([end, end, b""]))
    return end.join(before) + newline, end.join(after) + newline


LIST_ALL = """
builtin set -a; builtin . "$1" >/dev/null 2>&1
builtin set +aeu; IFS=$' \\t\\n'; PATH=/usr/bin:/bin
env -0; printf 'arrays\\0'; declare -p | grep -a '^declare -[aA]' | grep -avE ' (BASH|FUNC|GROUPS|DIRST|PIPE)'
"""


def seen_by_bash(path: Path) -> dict[bytes, bytes]:
    """What a clean bash exports after it has read the file; not by the script under test."""
    command = ["env", "-i", "HOME=/root", "bash", "--norc", "--noprofile", "-c", LIST_ALL, "bash", str(path)]
    out = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=20).stdout
    scalars, _, arrays = out.partition(b"arrays\0")
    found = dict(word.split(b"=", 1) for word in scalars.split(b"\0") if b"=" in word)
    for row in arrays.splitlines():
        found[b"array " + row.split(b" ")[2].split(b"=")[0]] = row
    return {key: value for key, value in found.items() if key not in (b"_", b"STAMP", b"SHLVL")}


FOLLOWERS = {b"FULL", b"BOTH", b"OF_FULL", b"array ARGS"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(site_file(), st.sampled_from([0o600, 0o644, 0o664, 0o440]), st.booleans())
def test_exactly_the_wanted_keys_change(files: tuple[bytes, bytes], mode: int, linked: bool) -> None:
    data, expected = files
    with tempfile.TemporaryDirectory() as folder:
        real = Path(folder) / "fleet.env"
        real.write_bytes(data)
        real.chmod(mode)
        path = Path(folder) / "link" if linked else real
        if linked:
            path.symlink_to("fleet.env")
        before, owner = seen_by_bash(real), real.stat()
        step = site_edit_step("h", str(path), data, WANTED)
        done = carry_out(step)
        assert done.returncode == 0, done.stderr
        assert real.read_bytes() == expected
        after, kept = seen_by_bash(real), real.stat()
        returns = b"\r" if b"\r\n" in data else b""
        shown = {key: after[key.encode()].removesuffix(returns).decode() for key in KEYS}
        assert shown == WANTED
        changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        assert changed <= {b"SNAP", b"ENGRAM_LOCAL_DIR"} | FOLLOWERS
        assert (kept.st_uid, kept.st_gid, stat.S_IMODE(kept.st_mode)) == (owner.st_uid, owner.st_gid, mode)
        assert path.is_symlink() == linked
        assert ("is a link; edited: " in done.stdout) == linked
        backups = [entry for entry in Path(folder).iterdir() if entry.suffix == ".bak"]
        assert [entry.read_bytes() for entry in backups] == [data] * (data != expected)
        assert len(list(Path(folder).iterdir())) == 1 + linked + len(backups)


def test_a_docker_file_is_compared_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "container.env"
    path.write_bytes(b'A="x"\r\nSNAP=one # part of it\r\nB=$SNAP')
    step = site_edit_step("h", str(path), path.read_bytes(), {"SNAP": NEW}, kind=SiteKind.DOCKER)
    assert carry_out(step).returncode == 0
    assert path.read_bytes() == b'A="x"\r\nSNAP=' + NEW.encode() + b"\r\nB=$SNAP"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SNAP=$(cat x)\n", "expansion"),
        ("OTHER=1\n", "is not set in this file"),
        ("SNAP=(a b)\n", "is no plain KEY=value"),
        ("SNAP=a\nif\n", "bash stops"),
    ],
)
def test_what_cannot_be_edited_is_refused_before_a_step_is_made(text: str, why: str) -> None:
    with pytest.raises(SiteRefused, match=why):
        site_edit_step("h", "/x/fleet.env", text.encode(), {"SNAP": NEW})


# --- the proof --------------------------------------------------------------------------------------------------------


def edited(path: Path, text: str) -> tuple[int, str]:
    """Exit status and words of an edit of SNAP in such a file."""
    path.write_text(text)
    done = carry_out(site_edit_step("h", str(path), path.read_bytes(), {"SNAP": NEW}))
    return done.returncode, done.stderr.replace(str(path), "FILE").strip()


def test_a_key_that_would_change_as_well_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    text = f"SNAP={OLD}\ncase $SNAP in {NEW}) DEBUG=1; LIST=(a b) ;; esac\n"
    words = "the edit would change more than it should: DEBUG, LIST, LIST[]: nothing was changed"
    assert edited(path, text) == (1, words)
    assert path.read_text() == text and beside(path) == []


def test_a_file_that_splits_words_in_its_own_way_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    text = f"SNAP={OLD}\nIFS=,aeiou\nPATH=/nowhere\nset -eu\ncase $SNAP in {NEW}) ka=1 ;; esac\n"
    assert edited(path, text) == (1, "the edit would change more than it should: ka: nothing was changed")
    assert path.read_text() == text and beside(path) == []


def test_a_docker_file_in_which_another_line_would_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "container.env"
    path.write_text(f"A=1\nSNAP={OLD}\n")
    step = site_edit_step("h", str(path), path.read_bytes(), {"SNAP": NEW}, kind=SiteKind.DOCKER)
    other = f"A=2\nSNAP={NEW}\n".encode()
    text = base64.b64encode(other).decode()
    argv = list(step.argv)
    right = base64.b64encode(f"A=1\nSNAP={NEW}\n".encode()).decode()
    assert right in step.stdin
    argv[5] = hashlib.sha256(other).hexdigest()
    done = carry_out(replace(step, argv=tuple(argv), stdin=step.stdin.replace(right, text)))
    words = "the edit would change more than it should: line 1: nothing was changed\n"
    assert (done.returncode, done.stderr) == (1, words)
    assert path.read_text() == f"A=1\nSNAP={OLD}\n" and beside(path) == []


def test_what_shows_only_in_place_puts_the_old_file_back(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    text = f"SNAP={OLD}\ncase ${{BASH_SOURCE[0]}}:$SNAP in */fleet.env:{NEW}) OTHER=1 ;; esac\n"
    assert edited(path, text) == (1, "the edit changed more than it should: OTHER: the old file was put back")
    assert path.read_text() == text and beside(path) == []


def test_a_new_file_that_bash_does_not_get_through_in_place_puts_the_old_one_back(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    text = f"SNAP={OLD}\ncase ${{BASH_SOURCE[0]}}:$SNAP in */fleet.env:{NEW}) exit ;; esac\n"
    assert edited(path, text) == (1, "bash does not get to the end of FILE: the old file was put back")
    assert path.read_text() == text and beside(path) == []


def test_a_value_that_is_another_one_each_time_is_no_surprise(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    assert edited(path, f"STAMP=$RANDOM$RANDOM\nexport PIDS=(x $BASHPID)\nSNAP={OLD}\n") == (0, "")


def test_a_file_that_names_itself_is_no_surprise(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    status, words = edited(path, f'SELF=${{BASH_SOURCE[0]}}\nHERE=$(dirname "$SELF")\nSNAP={OLD}\n')
    assert (status, words) == (0, "")


def test_a_file_that_hangs_or_ends_the_shell_is_not_proved_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    text = f"SNAP={OLD}\ncase x in x) exit ;; esac\n"
    assert edited(path, text) == (1, "bash does not get to the end of FILE")
    assert path.read_text() == text and beside(path) == []


def test_without_bash_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "fleet.env"
    path.write_text(f"SNAP={OLD}\n")
    step = site_edit_step("h", str(path), path.read_bytes(), {"SNAP": NEW})
    empty = tmp_path / "bin"
    empty.mkdir()
    command = [sys.executable, *step.argv[1:]]
    done = subprocess.run(
        command, input=step.stdin, capture_output=True, text=True, env={"PATH": str(empty)}, timeout=30
    )
    assert (done.returncode, done.stderr) == (5, "no bash here: what the edit would come to cannot be proved\n")
    assert path.read_text() == f"SNAP={OLD}\n"
