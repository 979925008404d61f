"""The checkpoint behind a container: mounts before arguments, never a guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.readings.revision import Revision, commit_in, mounted_revision

A, B = "a1" * 20, "b2" * 20


@pytest.mark.parametrize(
    ("path", "commit"),
    [
        (f"/models/repo/snapshots/{A}", A),
        (f"/models/repo/snapshots/{A}/", A),
        (f"/models/DeepSeek-V4.1-Flash-1017-{A}", A),
        (f"/models/x_{A}.d", A),
        (f"/hub/{A}/snapshots/{B}/model", B),
        (f"/models/{A.upper()}", A),
        (f"/hub/models--x/blobs/{A}", ""),
        (f"/hub/snapshots/{A}/blobs/{B}", A),
        (f"/cache/{A}{B[:24]}", ""),
        (f"/models/{A[:39]}", ""),
        (f"/models/{A}0", ""),
        ("/model", ""),
        ("", ""),
    ],
)
def test_commit_in_a_path(path: str, commit: str) -> None:
    assert commit_in(path) == commit


@pytest.mark.parametrize(
    ("model", "revision", "mounts", "expected"),
    [
        pytest.param("/model", "", [(f"/m/x-{A}", "/model")], (A, f"mount /m/x-{A} at /model"), id="mounted"),
        pytest.param("/model/", "", [(f"/m/x-{A}", "/model")], (A, f"mount /m/x-{A} at /model"), id="slash"),
        pytest.param("/r/snapshots/" + A, "", [("/mnt", "/r")], (A, "argument --model"), id="below the mount"),
        pytest.param(
            "/r/snapshots/" + A,
            "",
            [("/mnt", "/r"), (f"/hub/snapshots/{B}", f"/r/snapshots/{A}")],
            (B, f"mount /hub/snapshots/{B} at /r/snapshots/{A}"),
            id="mount over the named snapshot wins",
        ),
        pytest.param("/model", B, [(f"/m/x-{A}", "/model")], (A, f"mount /m/x-{A} at /model"), id="beats --revision"),
        pytest.param("/model", B, [("/m/current", "/model")], ("", ""), id="link is unknown, --revision not believed"),
        pytest.param("/model", "", [(f"/m/x-{A}", "/models")], ("", ""), id="only looks alike"),
        pytest.param("/m/../opt/" + A, "", [(f"/x-{B}", "/m")], (A, "argument --model"), id="dots resolved"),
        pytest.param("org/name", A, [("/c", "/root/.cache")], (A, "argument --revision of org/name"), id="hub name"),
        pytest.param("org/name", "main", [(f"/c-{B}", "/model")], ("", ""), id="branch is no commit"),
        pytest.param("/baked/" + A, "", [], (A, "argument --model"), id="in the image"),
        pytest.param("", "", [(f"/x-{A}", "/model"), (f"/y-{B}", "/w")], (A, f"mount /x-{A} at /model"), id="usual"),
        pytest.param("", "", [(f"/x-{A}", "/models/a"), (f"/x-{B}", "/models/b")], ("", ""), id="two: unknown"),
        pytest.param("", "", [(f"/hook-{A}", "/w")], ("", ""), id="some other commit"),
        pytest.param("", "", [("/models/now", "/model"), (f"/s/snapshots/{A}", "/w")], ("", ""), id="not next best"),
        pytest.param(
            "", "", [(f"/s/snapshots/{A}", "/ckpt")], (A, f"mount /s/snapshots/{A} at /ckpt"), id="one snapshot"
        ),
    ],
)
def test_what_is_really_mounted(
    model: str, revision: str, mounts: list[tuple[str, str]], expected: tuple[str, str]
) -> None:
    assert mounted_revision(model, "--model", revision, mounts) == Revision(*expected)


@given(
    st.text(alphabet="/ab.0-", max_size=60),
    st.lists(st.tuples(st.text(max_size=50), st.text(alphabet="/ab", max_size=20)), max_size=4),
)
def test_never_a_commit_that_stands_nowhere(model: str, mounts: list[tuple[str, str]]) -> None:
    found = mounted_revision(model, "--model", "", mounts)
    everything = (model + "".join(source for source, _ in mounts)).lower()
    assert found.commit == "" or found.commit in everything
    assert bool(found.commit) == bool(found.source)
