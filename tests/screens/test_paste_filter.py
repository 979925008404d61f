"""Pastes are text: whatever stands in them, and however the terminal cuts them up, no key comes out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual import events

from screens.paste import END, START, PasteFilter, PasteSafeParser

PIECES = st.lists(
    st.sampled_from(["\x1b", "[", "2", "0", "1", "~", "q", "D", "\x1b[31m", "\x1b]52;c;eA==\x07", "\x00"])
)


def parsed(pieces: list[str]) -> list[events.Event]:
    parser = PasteSafeParser()
    return [message for piece in pieces for message in parser.feed(piece) if isinstance(message, events.Event)]


@given(PIECES, st.integers(1, 7))
def test_no_paste_presses_a_key(pasted: list[str], size: int) -> None:
    text = "".join(pasted).replace(END, "")
    whole = START + text + END
    found = parsed([whole[at : at + size] for at in range(0, len(whole), size)])
    assert not [event for event in found if isinstance(event, events.Key)]


def test_keys_around_a_paste_still_come_and_the_paste_is_whole() -> None:
    found = parsed(["a" + START + "one\x1b]52;c;eA==\x07q two" + END + "b"])
    assert [event.key for event in found if isinstance(event, events.Key)] == ["a", "b"]
    assert [event.text for event in found if isinstance(event, events.Paste)] == ["one\u241b]52;c;eA==\x07q two"]


@given(st.text(alphabet="\x1b[20~1Oqx", max_size=40), st.integers(1, 7))
def test_outside_pastes_nothing_is_changed_or_held_back(keys: str, size: int) -> None:
    keys = keys.replace(START, "")
    pieces = [keys[at : at + size] for at in range(0, len(keys), size)]
    unpasted = PasteFilter()
    if START not in keys:
        assert [unpasted.clean(piece) for piece in pieces] == pieces
