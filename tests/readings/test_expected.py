"""What a revision consists of: a Hub's listing, a manifest, a number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.expected import parse_expected, parse_main
from console.readings.logtext import control_characters

MANIFEST = (Path(__file__).parents[1] / "data/fleet/manifest-subset.tsv").read_text()
COMMIT = "1bae0e1088993b9b82de08f59de5be5a34e42170"
SHA = "824db4881320407ac340736d14dcee5ecd748c27d0f5836b8127ecc2e3781b0f"
SIBLINGS = [
    {"rfilename": "config.json", "size": 3311, "blobId": "09917a9139b22d5bf8be52132787f435147b1020"},
    {"rfilename": "model-00047-of-00048.safetensors", "size": 101535150936, "blobId": "b" * 40,
     "lfs": {"sha256": SHA, "size": 101535150936, "pointerSize": 137}},
]  # fmt: skip


def test_the_published_manifest() -> None:
    expected = parse_expected(MANIFEST, "manifest-subset.tsv")
    assert (len(expected.files), expected.total, expected.problem, expected.known) == (8, 215_471_105_005, "", True)
    assert expected.files[0] == ("config.json", 3311, "git:09917a9139b22d5bf8be52132787f435147b1020")
    assert expected.files[5] == ("model-00047-of-00048.safetensors", 101_535_150_936, SHA)
    assert expected.source == "manifest-subset.tsv"


def test_a_hubs_listing() -> None:
    expected = parse_expected(json.dumps({"sha": COMMIT, "siblings": SIBLINGS}), "hub")
    assert expected.revision == COMMIT
    assert expected.total == 101_535_154_247
    assert expected.files[1] == ("model-00047-of-00048.safetensors", 101_535_150_936, SHA)
    assert parse_main(json.dumps({"sha": COMMIT, "siblings": []})) == COMMIT


def test_a_bare_number_is_a_total_without_files() -> None:
    expected = parse_expected("32212254720\n", "expected_total_bytes.txt")
    assert (expected.files, expected.total, expected.known, expected.problem) == ((), 32_212_254_720, True, "")


def test_windows_line_ends_a_header_and_a_stated_revision() -> None:
    expected = parse_expected(f"path\tbytes\tsha256\r\n# of {COMMIT}\r\na b.json\t5\t{SHA}\r\n", "m")
    assert expected.files == (("a b.json", 5, SHA),)
    assert expected.revision == COMMIT


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it names no file"),
        ("a.json\t12x\n", "line 1: expected path, bytes and digest parted by tabs, found 'a.json  12x'"),
        ("a.json\t-1\t\n", "line 1: expected path, bytes and digest"),
        ("a.json\t1\nb.json\n", "line 2: expected path"),
        ("a.json\t1\na.json\t2\n", "it names a file twice"),
        ("{", "not JSON"),
        ("{}", "no `siblings`"),
        ('{"siblings": []}', "it names no file"),
        ('{"siblings": [{"rfilename": "a"}]}', "no size for a: ask with ?blobs=true"),
        ('{"siblings": [{"rfilename": "a", "size": true}]}', "no size for a"),
        ('{"siblings": [{"size": 1}]}', "a file without a name"),
        ('{"siblings": [7]}', "a file without a name"),
        ("<html>", "line 1: expected path"),
    ],
)
def test_what_can_be_read_only_in_part_is_no_list(text: str, problem: str) -> None:
    expected = parse_expected(text, "x")
    assert problem in expected.problem
    assert (expected.files, expected.total, expected.known) == ((), 0, False)


def test_a_digest_of_another_form_is_dropped_not_the_file() -> None:
    assert parse_expected("a.json\t1\tmd5:x\n", "x").files == (("a.json", 1, ""),)


@pytest.mark.parametrize("text", ["", "[]", '{"sha": 7}', '{"sha": "main"}', "[" * 100_000])
def test_no_commit_is_no_commit(text: str) -> None:
    assert parse_main(text) == ""


@given(st.one_of(st.text(max_size=300), st.text(max_size=100).map(lambda text: "{" + text)))
def test_any_text_is_read(text: str) -> None:
    expected = parse_expected(text, "x")
    assert expected.known != bool(expected.problem)
    assert control_characters(expected.problem + "".join(path for path, _, _ in expected.files)) == 0


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["siblings", "rfilename", "size", "lfs", "sha256", "blobId", "sha"]), inner,
                        max_size=4), max_leaves=12))  # fmt: skip
def test_any_document_is_read(document: object) -> None:
    expected = parse_expected(json.dumps({"siblings": document}), "x")
    assert expected.known != bool(expected.problem)
    parse_main(json.dumps(document))
