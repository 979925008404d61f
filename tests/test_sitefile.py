"""Site files: the same values as bash, docker and JSON have, and no value where that cannot be known."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.proposal import propose
from console.fleet.recipe import load_recipe
from console.fleet.sitefile import MOST_BYTES, Assignment, SiteFile, SiteKind, parse_site, read_site

DATA = Path(__file__).parent / "data" / "fleet"
SAMPLES = ("fleet.env.sample", "fleet.env.candidate.sample", "cluster.env.sample", "env.tp4.sample")
OLD, NEW = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"

ASK_BASH = r"""
cd "$1" || exit 9
shift
for ((i = 0; i < $1; i++)); do
  (
    source "./$i" </dev/null >/dev/null 2>&1
    printf 'ran' >&3
    for name in "${@:2}"; do
      declare -p "$name" >/dev/null 2>&1 || continue
      declare -n ref=$name
      printf '\2%s' "$name" >&3
      [ "${#ref[@]}" -eq 0 ] || printf '\1%s' "${ref[@]}" >&3
      unset -n ref
    done
  ) 3>"out$i"
done
true
"""


def bash(texts: list[bytes], names: tuple[str, ...], folder: Path) -> list[dict[str, tuple[str, ...]] | None]:
    """What bash has after sourcing each text: values by name; None where the text ended the shell."""
    for number, text in enumerate(texts):
        (folder / str(number)).write_bytes(text)
    subprocess.run(
        ["/bin/bash", "--norc", "--noprofile", "-c", ASK_BASH, "ask", str(folder), str(len(texts)), *names],
        check=True, timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    answers: list[dict[str, tuple[str, ...]] | None] = []
    for number in range(len(texts)):
        raw = os.fsdecode((folder / f"out{number}").read_bytes())
        rows = [part.split("\1") for part in raw.split("\2")]
        answers.append({name: tuple(values) for name, *values in rows[1:]} if raw.startswith("ran") else None)
    return answers


def disagreements(text: bytes, found: SiteFile, real: dict[str, tuple[str, ...]] | None) -> list[str]:
    """Where what was read is not what bash has, though it was said to be known."""
    if real is None:
        return []
    wrong = []
    for name in ("A", "B", "CC"):
        said = found.get(name)
        if said is None:
            if real.get(name) and not found.warnings:
                wrong.append(f"{text!r}: {name} is {real[name]} and was not seen")
        elif not said.error and said.literal:
            got = real.get(name, ())
            if (got if said.array else got[:1]) != (said.values if said.array else said.values[:1]):
                wrong.append(f"{text!r}: {name} is {got}, not {said.values}")
    return wrong


PIECES = (
    "A=", "B=", "CC=", "A+=", "B+=", "A", "B", "1", "x", "'", '"', "\\", "#", " ", "\t", "\n", ";", "$", "(", ")",
    "`", "{", "}", "=", "&", "|", "~", "*", "\r", "export ", "=(", "declare ", "unset ", "A=x\n", "B='y z'\n", "$A",
    "${A}", "$(B)", "\\\n", "!", "é", "$'", " # ",
)  # fmt: skip
STATEMENTS = (
    "A=1", "B=two", "CC='x y'", 'A="a $B"', "A=(x y)", "A+=(z)", "B+=q", "export A", "export A=5 B=6", "readonly A",
    "readonly B=7", "unset A", "declare -i A=3", "declare -a A=(1 2)", "declare -A A=([x]=1)", "local A=4",
    "A[1]=5", "if true; then A=9; fi", "if false\nthen\n B=8\nfi", "for A in 1 2; do :; done",
    "while false; do A=1; done", "case x in x) A=2;; *) B=3;; esac", "{ A=3; }", "(A=3)", "f() { A=4; }",
    "f () ( A=4 )\nf", "return", "exit 0", "function g { B=1; }", "set -a", "true && A=7", "false || B=9",
    "A=1 | cat", "A=1 &", "A=1 B=2 true", "A=x#y # c", "A=$'a\\tb'", "A=~/x", "A=a:~/b", "A={a,b}", "A=`B=3; echo`",
    "A=$(echo ')' \"(\")", 'A=${B:-"}"}', "A='a\nb'", 'A="a\\\nb"', "A=a\\\nb", "B=\"it's\"",
    "CC=\"a'b\\\"c\\$d\\`e\\\\f\\g\"", "CC=a\\ b\\#c", "A= B=", "A=1;B=2;", "[[ x == x ]] && A=1",
    "[[ (x < y) ]]; B=1", "let A=4", "eval A=5", "cat <<EOF\nA=7\nEOF", "A=1 >/dev/null",
    "cat <<-'E F'\n\tA=8\n\tE F", "declare B", "typeset A=q", "export -n A", "export A+=z", "A+=", "A=()",
    "time A=3", "A=( # c\n 1 # d\n 2\n)", "A=(a;b)", "! A=3", "UID=5", "IFS=,; A=$B", "A==x", 'A="$"', "A=$",
    "A=\\", "A='", 'A="x', "A=(", "fi", "}", ")", "A=1 ;; B=2", "declare -x B=z", "export 'A=s p'", "A=x;\r",
    ": ${A:=5}", "é=1", "A=é",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)
FILES = st.lists(
    st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(["\n", "\n", "\n\n", "  \n", " # c\n", "\r\n", "; "])),
    min_size=1,
    max_size=6,
).map(lambda rows: "".join(text + end for text, end in rows))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(TEXTS, FILES), min_size=1, max_size=40))
def test_what_is_said_to_be_known_is_what_bash_has(tmp_path: Path, texts: list[str]) -> None:
    data = [text.encode() for text in texts]
    real = bash(data, ("A", "B", "CC"), tmp_path)
    found = [
        row
        for text, answer in zip(data, real, strict=True)
        for row in disagreements(text, parse_site(text, SiteKind.BASH), answer)
    ]
    assert found == []


def test_the_comparison_with_bash_can_fail(tmp_path: Path) -> None:
    (real,) = bash([b"A=1\nB=(x 'y z')\n"], ("A", "B", "CC"), tmp_path)
    assert real == {"A": ("1",), "B": ("x", "y z")}
    wrong = SiteFile(SiteKind.BASH, (Assignment("A", ("2",), False, 1), Assignment("CC", ("3",), False, 2)))
    assert len(disagreements(b"", wrong, real)) == 3


@pytest.mark.parametrize("name", SAMPLES)
def test_every_key_of_a_real_file_is_what_bash_has(name: str, tmp_path: Path) -> None:
    data = (DATA / name).read_bytes()
    found = parse_site(data, SiteKind.BASH)
    keys = tuple(dict.fromkeys(item.key for item in found.assignments))
    (real,) = bash([data], keys, tmp_path)
    assert real is not None
    assert found.warnings == ()
    assert sorted(real) == sorted(keys)
    for key in keys:
        said = found.get(key)
        assert said is not None and not said.error
        if said.literal:
            assert said.values == real[key], key
            assert said.array == (len(real[key]) > 1)
        else:
            assert "$" in said.value


def test_expansions_stay_as_they_stand() -> None:
    found = parse_site((DATA / "fleet.env.sample").read_bytes(), SiteKind.BASH)
    aliases = found.get("SERVED_ALIASES")
    assert aliases is not None
    assert (aliases.value, aliases.literal, aliases.line) == ("${SERVED_ALIASES:-}", False, 16)
    for text in ("A=$(date)", "A=`date`", "A=~/x", "A=a:~/x", 'A="x $HOME"', "A=$((1+1))", "A=<(date)"):
        said = parse_site(text.encode(), SiteKind.BASH).get("A")
        assert said is not None and not said.literal, text
        assert said.value == text[2:].replace('"', "")
    for text in (r"A=\$HOME", "A='$HOME'", r'A="\$HOME"', "A=cost$", 'A="~/x"'):
        said = parse_site(text.encode(), SiteKind.BASH).get("A")
        assert said is not None and said.literal, text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"A='x\nB=2\n", "line 1: quote ' never ends"),
        (b'\n\nA="x\nB=2\n', 'line 3: quote " never ends'),
        (b"A=1\nNODES=(a b\n", "line 2: parenthesis never ends"),
        (b"A=$(x\n", "line 1: expansion $( never ends"),
        (b"A=1 words\n", "line 1: runs 'words'"),
        (b"rm -rf x\n", "line 1: runs 'rm'"),
        (b". ./other.env\n", "line 1: reads another file (./other.env)"),
        (b"A=1\nexit 3\nB=2\n", "line 2: 'exit': nothing below it is set"),
        (b"if x; then A=1; fi\n", "line 1: shell code (if)"),
        (b"A=1 > out\n", "line 1: redirects (> out)"),
        (b"A=1\nA=2\nA=3\n", "A is set 3 times (lines 1, 2, 3); the last one counts"),
        (b"\xef\xbb\xbfA=1\n", "byte order mark"),
        (b"A=1\0\n", "NUL bytes"),
        (b"A=1\r\n", "CRLF line ends in 1 lines"),
        (b"x" * (MOST_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_what_is_odd_is_told_with_its_line(text: bytes, words: str) -> None:
    assert any(row.startswith(words) for row in parse_site(text, SiteKind.BASH).warnings)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("A=1 words", "runs 'words'"),
        ("A=1 | cat", "stands in a pipe"),
        ("A=1 &", "runs in the background"),
        ("false && A=1", "set only if what stands before && says so"),
        ("if x; then A=1; fi", "stands inside shell code"),
        ("(A=1)", "stands inside shell code"),
        ("exit 1\nA=1", "stands below 'exit'"),
        ("A=1\neval x", "may be changed by line 2 (eval)"),
        ("A=1\n. other.env", "may be changed by line 2 (. other.env)"),
        ("readonly A=0\nA=1", "readonly since line 1"),
        ("UID=5\nA=1", "stands below a read-only variable that is set in line 1"),
        ("A=1; B=(", "stands in a line with a syntax error"),
        ("A='1", "quote ' of line 1 never ends"),
        ("A[2]=1", "sets one element of an array"),
        ("declare -i A=1", "declare -i: not read"),
        ("A=1\nunset A", "unset"),
        ("UID=1\nA=$UID; for A in 1; do :; done", "set by a loop (for)"),
    ],
)
def test_an_assignment_that_may_not_come_about_says_why(text: str, error: str) -> None:
    said = parse_site(text.encode(), SiteKind.BASH).get("A")
    assert said is not None
    assert said.error.startswith(error)


def test_a_byte_order_mark_hides_the_first_key_from_bash_and_not_from_docker() -> None:
    data = b"\xef\xbb\xbfA=1\nB=2\n"
    found = parse_site(data, SiteKind.BASH)
    assert (found.get("A"), found.bom) == (None, True)
    assert parse_site(data, SiteKind.DOCKER).get("A") == Assignment("A", ("1",), False, 1, exported=True)


def test_docker_takes_lines_as_they_are() -> None:
    text = b'A="q" # c\r\n  B=1\n#C=2\n  # x\n\nD\nE=a=b\nF =1\n=2\nG=\n'
    found = parse_site(text, SiteKind.DOCKER)
    assert [(item.key, item.value, item.line) for item in found.assignments] == [
        ("A", '"q" # c', 1),
        ("B", "1", 2),
        ("D", "", 6),
        ("E", "a=b", 7),
        ("G", "", 10),
    ]
    inherited = found.get("D")
    assert inherited is not None and not inherited.literal
    assert [row for row in found.warnings if "refuses" in row] == [
        "line 8: a blank in the variable's name: docker refuses the whole file",
        "line 9: no variable's name: docker refuses the whole file",
    ]
    assert "not UTF-8" in parse_site(b"A=\xff\n", SiteKind.DOCKER).warnings[0]


def test_json_has_dotted_keys_lists_as_arrays_and_columns_of_objects() -> None:
    data = (DATA / "cluster.example.json").read_bytes()
    found = parse_site(data, SiteKind.JSON)
    document = json.loads(data)
    assert found.warnings == ()
    for key, value in document.items():
        if key != "workers":
            said = found.get(key)
            assert said is not None
            assert said.value == ("" if value is None else str(value)), key
    hosts = found.get("workers.host")
    assert hosts is not None
    assert hosts.values == tuple(worker["host"] for worker in document["workers"])
    nested = parse_site(b'{"a": {"b": [1, 2.50, true], "c": "x"}, "a": 3}', SiteKind.JSON)
    assert {item.key: item.values for item in nested.assignments} == {
        "a.b": ("1", "2.50", "true"),
        "a.c": ("x",),
        "a": ("3",),
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not valid JSON: line 1"),
        (b"[1]", "not a JSON object"),
        (b"\xff", "not UTF-8"),
        (b"[" * 500_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "a is set 2 times"),
    ],
)
def test_json_that_is_none_is_told(data: bytes, words: str) -> None:
    assert any(words in row for row in parse_site(data, SiteKind.JSON).warnings)


@given(st.binary(max_size=400), st.sampled_from(SiteKind))
def test_no_bytes_raise_and_no_warning_carries_control_characters(data: bytes, kind: SiteKind) -> None:
    found = parse_site(data, kind)
    errors = [item.error for item in found.assignments]
    assert all(text.isprintable() for text in (*found.warnings, *errors))
    site = read_site(data, "fleet.env", load_recipe("sglang-fleet-env"))
    assert all(text.isprintable() for values in site.values.values() for text in values)
    made = propose(data, {"A": "x"}, kind)
    assert made.data == data or made.changes
    assert all(text.isprintable() for text in (*made.refusals, *made.notes, *made.diff.split("\n")))


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("piece", "times"),
    [
        *((b"A=${", 50_000), (b"$(", 100_000), (b"`", 99_999), (b"A=(", 50_000), (b"A=1 ", 60_000), (b"a;", 100_000)),
        *((b"A+=x\n", 9_000), (b"if x;then ", 20_000), (b"(", 90_000), (b"f()\n", 40_000), (b"x<<E\n", 40_000)),
    ],
    ids=str,
)
def test_a_quarter_of_a_megabyte_is_read_in_bounded_time(piece: bytes, times: int) -> None:
    assert parse_site(piece * times, SiteKind.BASH).kind is SiteKind.BASH


def test_a_site_carries_laneswaps_names_and_says_what_it_could_not_take() -> None:
    recipe = load_recipe("sglang-fleet-env")
    site = read_site((DATA / "fleet.env.sample").read_bytes(), "/x/fleet.env", recipe, mtime=7.0)
    assert (site.revision, site.mtime, site.unread) == (OLD, 7.0, ())
    assert site.values["hosts"] == ("192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14")
    assert site.values["holder"] == ("1",)
    odd = read_site(b"SNAP=$X\nMODEL_REPO=$HOME/hub/m\nHOMES=(a", "f", recipe)
    assert odd.revision == ""
    assert odd.values == {"repo": ("~/hub/m",)}
    assert odd.unread == (
        "homes (HOMES): parenthesis of line 3 never ends",
        "revision (SNAP): depends on the shell that reads it: $X",
    )


# --- the smallest edit -----------------------------------------------------------------------------------------------


def test_the_switch_of_the_samples_is_two_lines() -> None:
    before, after = ((DATA / name).read_bytes() for name in ("fleet.env.sample", "fleet.env.candidate.sample"))
    made = propose(before, {"SNAP": f"snapshots/{NEW}", "ENGRAM_LOCAL_DIR": "dsv41-engram-local-1017"})
    assert (made.refusals, made.lines) == ((), (9, 13))
    # the candidate's first line is another comment
    assert made.data.split(b"\n")[1:] == after.split(b"\n")[1:]
    assert [row for row in made.diff.split("\n") if row[:1] in "+-" and row[:3] not in ("+++", "---")] == [
        f"-SNAP=snapshots/{OLD}",
        f"+SNAP=snapshots/{NEW}",
        "-ENGRAM_LOCAL_DIR=dsv41-engram-local",
        "+ENGRAM_LOCAL_DIR=dsv41-engram-local-1017",
    ]


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        (b"A=1", "2", b"A=2"),
        (b"A=1\r\nB=2\r\n", "x", b"A=x\r\nB=2\r\n"),
        (b"export A='1'  # c\n", "a b", b"export A='a b'  # c\n"),
        (b'A="1"\n', 'a "$b"', b'A="a \\"\\$b\\""\n'),
        (b"A=\n", "a b", b"A='a b'\n"),
        (b"A=a\\ b;B=1\n", "c", b"A=c;B=1\n"),
        (b"A=1\n# A=1\n A=1 # A=1", "2", b"A=1\n# A=1\n A=2 # A=1"),
        (b"A=\xff\nB=\xfe\n", "2", b"A=2\nB=\xfe\n"),
    ],
)
def test_an_edit_keeps_every_other_byte(before: bytes, value: str, after: bytes) -> None:
    made = propose(before, {"A": value})
    assert (made.refusals, made.data) == ((), after)
    assert made.changes[0].after == value


@pytest.mark.parametrize(
    ("before", "value", "why"),
    [
        (b"B=1\n", "2", "is not set in this file"),
        (b"A=1\nunset A\n", "2", "is not set in this file"),
        (b"A=(1 2)\n", "2", "line 1 is no plain KEY=value"),
        (b"A=1\nA+=2\n", "2", "line 2 is no plain KEY=value"),
        (b"A='1\n2'\n", "2", "line 1: the value goes on over several lines"),
        (b"A=1\\\n2\n", "2", "line 1: the value goes on over several lines"),
        (b"A=$(date)\n", "2", "line 1 holds an expansion ($(date))"),
        (b"A=x$B\n", "2", "line 1 holds an expansion"),
        (b"A=1 words\n", "2", "line 1 runs 'words'"),
        (b"if x; then A=1; fi\n", "2", "line 1 stands inside shell code"),
        (b"A=1\nB='\n", "2", "bash stops at line 2"),
        (b"A='1'\"2\"\n", "2", "several quoted parts"),
        (b"A='1'\n", "it's", "the new value holds the quote '"),
        (b"A=1\n", "it's", "needs quotes of two kinds"),
        (b"A=1\n", "a\nb", "control or invisible characters"),
        (b"A=1\nB=x\nreadonly A\nA=3\n", "2", "readonly since line 3"),
    ],
)
def test_an_edit_that_might_do_something_else_is_refused(before: bytes, value: str, why: str) -> None:
    made = propose(before, {"A": value})
    assert made.data == before
    assert not made.changes
    assert len(made.refusals) == 1 and why in made.refusals[0]


def test_one_refusal_refuses_all_and_the_same_value_is_no_change() -> None:
    made = propose(b"A=1\n", {"A": "2", "B": "3"})
    assert made.data == b"A=1\n"
    same = propose(b"A=1\n", {"A": "1"})
    assert (same.changes, same.diff, same.notes) == ((), "", ("A has this value already (line 1)",))
    assert propose(b'{"A": 1}', {"A": "2"}, SiteKind.JSON).refusals == ("A: JSON site files are not edited",)
    docker = propose(b"A=1 # x\nA=2\r\n", {"A": "3 # y"}, SiteKind.DOCKER)
    assert docker.data == b"A=1 # x\nA=3 # y\r\n"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, st.text(st.sampled_from("ab$`'\"\\ #!~*é{}()"), max_size=8))
def test_after_an_edit_bash_has_the_wanted_value_and_all_others_as_before(
    tmp_path: Path, text: str, value: str
) -> None:
    made = propose(text.encode(), {"B": value})
    if not made.changes:
        return
    before, after = bash([text.encode(), made.data], ("A", "B", "CC"), tmp_path)
    if before is None:
        return  # it ends the shell that reads it
    assert after is not None
    assert after["B"][0].removesuffix("\r") == value
    made_of_it = {note.partition(" ")[0] for note in made.notes if "is made of B" in note}
    for key in {*before, *after} - {"B"} - made_of_it:
        assert before.get(key) == after.get(key)


def test_keys_that_follow_a_changed_one_are_named() -> None:
    made = propose(b"SNAP=a\nMODEL=/m/$SNAP\nX=${SNAPS}\nY='$SNAP'\n", {"SNAP": "b"})
    assert (made.changes[0].key, made.notes) == ("SNAP", ("MODEL (line 2) is made of SNAP and changes with it",))
