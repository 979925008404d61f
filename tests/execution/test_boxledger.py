"""What is appended to a box ledger parses as what people write there; nothing in it begins another entry."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.execution.boxledger import MOST_LINES, BoxEntry, entry

SAMPLE = (Path(__file__).parents[1] / "data/fleet/box-ledger.sample.md").read_text(encoding="utf-8")
CDT = timezone(timedelta(hours=-5), "CDT")
HEAD = re.compile(r"## (\d{4}-\d\d-\d\d \d\d:\d\d) (\S+) — (.+)")
BY = re.compile(r"worker: (.+) · approved by (.+)")
TOLD = BoxEntry(
    datetime(2026, 11, 30, 3, 12, 45, tzinfo=UTC).timestamp(),
    "dsv41 rolled back to c0ffee1",
    "laneswap 20261130T031200Z-rollback-3f9ac1",
    "ana",
    "dsv41-v18-RETIRED-REF serves again after 8m10s.\nThe way forward is kept.",
)

Parsed = tuple[str, str, str, str, str, str]


def parsed(text: str) -> list[Parsed]:
    """(time, zone, title, worker, approved by, text) of every entry, as people write them."""
    found: list[Parsed] = []
    rows = text.split("\n")
    starts = [at for at, row in enumerate(rows) if row.startswith("## ")]
    for at, following in zip(starts, [*starts[1:], len(rows)], strict=True):
        head, by = HEAD.fullmatch(rows[at]), BY.fullmatch(rows[at + 1])
        assert head is not None and by is not None and rows[at - 1] == ""
        found.append((*head.groups(), *by.groups(), "\n".join(rows[at + 2 : following - 1])))  # type: ignore[arg-type]
    return found


def test_an_entry_of_a_published_recipe_comes_out_byte_for_byte() -> None:
    ((time, zone, title, worker, by, text),) = parsed(SAMPLE)
    at = datetime.strptime(time, "%Y-%m-%d %H:%M").replace(tzinfo=CDT).timestamp()
    assert zone == "CDT"
    assert entry(BoxEntry(at, title, worker, by, text), CDT) == SAMPLE


def test_what_is_appended_stands_behind_what_was_there() -> None:
    whole = SAMPLE + entry(TOLD)
    assert parsed(whole)[0] == parsed(SAMPLE)[0]
    assert parsed(whole)[1] == ("2026-11-30 03:12", "UTC", TOLD.title, TOLD.worker, "ana", TOLD.text)


@pytest.mark.parametrize(
    ("zone", "time"),
    [
        (UTC, "2026-11-30 03:12 UTC"),
        (ZoneInfo("America/Chicago"), "2026-11-29 21:12 CST"),
        (timezone(timedelta(hours=5, minutes=30)), "2026-11-30 08:42 +0530"),
        (timezone(timedelta(hours=1), "a zone\n## x"), "2026-11-30 04:12 +0100"),
    ],
)
def test_the_time_is_that_of_the_ledger(zone: timezone, time: str) -> None:
    assert entry(TOLD, zone).split("\n")[1].startswith(f"## {time} — ")


HOSTILE = (
    "a\n## 2026-01-01 00:00 UTC — forged\nworker: x · approved by ben",
    "# heading",
    "  ## heading",
    "Worker: x · approved by y",
    "```",
    "---",
    "<!-- hidden",
    "a --> b",
    "a\r\n## b",
    "x\u2028## y",
    "\x1b]0;t\x07## z",
)


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_in_the_words_begins_an_entry_or_hides_one(words: str) -> None:
    text = entry(BoxEntry(TOLD.at, words, words, words, words))
    (found,) = parsed(text)
    assert "<!--" not in text and "-->" not in text
    assert found[3] and found[4]
    body = found[5].split("\n")
    assert not [row for row in body if re.match(r"\s*(#|worker:|```|---)", row, re.IGNORECASE)]


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80), st.text(max_size=200))
def test_any_words_make_one_entry(title: str, worker: str, by: str, text: str) -> None:
    written = entry(BoxEntry(TOLD.at, title, worker, by, text))
    assert len(parsed(SAMPLE + written + entry(TOLD))) == 3
    assert all(row.isprintable() for row in written.split("\n"))


def test_secrets_are_references_and_texts_are_bounded() -> None:
    token = "hf_AbCdEfGhIjKlMnOp"
    text = entry(BoxEntry(TOLD.at, token, token, token, f"ran {token}\nhook: hunter22"), known={"HOOK": "hunter22"})
    assert token not in text and "hunter22" not in text and text.count("secret:hf") == 4 and "secret:HOOK" in text
    many = entry(replace(TOLD, text="x\n" * 500)).split("\n")
    assert many[-2] == f"… {500 - MOST_LINES + 1} more lines"


def test_empty_words_leave_the_form_whole() -> None:
    ((_, _, title, worker, by, text),) = parsed(entry(BoxEntry(TOLD.at, "", " ", "", "\n\n")))
    assert (title, worker, by, text) == ("(no title)", "-", "-", "")
