"""What the log cases ask of the screen: text is text, whatever brackets and escapes it holds."""

from __future__ import annotations

import pytest
from case_table import case_file
from textual.app import App, ComposeResult
from textual.content import Content
from textual.markup import MarkupError
from textual.widgets import Static

from console import sanitize
from console.reach.docker_log import MAX_LINE, Demultiplexer, Lines, stamped
from console.readings.boot_reader import LOOKED_AT, BootReader
from console.readings.logtext import SHOWN, read_log
from console.sanitize import line, lines, word

LINES = case_file("C067", "lines.txt").read_text().splitlines()


def test_brackets_are_shown_as_they_are() -> None:
    """C067: every line survives the sanitizer letter for letter and becomes content with no style and no action."""
    assert len(LINES) == 6
    assert lines(case_file("C067", "lines.txt").read_bytes()) == LINES
    for text in LINES:
        assert line(text) == text
        content = Content(line(text))
        assert content.plain == text
        assert content.spans == []
        assert word(text, 500) == " ".join(text.split())
    with pytest.raises(MarkupError):
        Content.from_markup(LINES[2])


async def test_brackets_are_painted_as_they_are_and_make_no_action() -> None:
    """C067: on a real screen too; the text of an action that quits is only text when it is clicked."""

    class Shown(App[None]):
        def compose(self) -> ComposeResult:
            for text in LINES:
                yield Static(Content(line(text)))

    app = Shown()
    async with app.run_test(size=(160, 12)) as pilot:
        painted = [row.text.rstrip() for row in app.screen._compositor.render_strips()]
        assert painted[:6] == [text.rstrip() for text in LINES]
        await pilot.click(offset=(LINES[3].index("quit]") + 8, 3))
        await pilot.pause()
        assert app.is_running and app.return_value is None


def test_nothing_of_an_escape_sequence_reaches_the_terminal() -> None:
    """C068: not in any line, and an unterminated sequence ends with its line."""
    shown = lines(case_file("C068", "log.bin").read_bytes())
    assert shown == ["rank 0 ready", "overwrite ok", "reset", "unterminated ", "next line"]
    assert all(text.isprintable() for text in shown)


def test_a_nul_has_a_stand_in_and_good_lines_are_kept() -> None:
    """C072: the first line is untouched, the NUL is seen."""
    shown = lines(case_file("C072", "log.bin").read_bytes())
    assert shown[0] == "ok line"
    assert shown[1] == "\ufffd\ufffd bad \u2400 nul"


def test_a_line_of_a_million_characters_leaves_the_screen_responsive(monkeypatch: pytest.MonkeyPatch) -> None:
    """C074: of the long line only its beginning is worked on, however it comes; the lines around it are shown."""
    data = case_file("C074", "log.txt").read_bytes()
    assert len(data) == 1_000_019
    worked_on: list[int] = []
    for name in ("_overwritten", "_plain"):
        whole = getattr(sanitize, name)
        monkeypatch.setattr(sanitize, name, lambda text, whole=whole: (worked_on.append(len(text)), whole(text))[1])
    followed, frames = Lines(), Demultiplexer()
    pieces = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    sent = [b"\x01\0\0\0" + len(piece).to_bytes(4, "big") + piece for piece in pieces]
    came = [row for piece in sent for _, part in frames.feed(piece) for row in followed.feed(part)]
    assert [len(row) for row in came] == [6, MAX_LINE, 5]
    shown = [line(stamped(row).text) for row in came]
    assert (shown[0], shown[2], len(shown[1]), shown[1][-1]) == ("before", "after", SHOWN, "…")
    found = read_log(data)
    assert found.lines == tuple(shown)
    assert found.cut == ((2, 1_000_005),)
    reader = BootReader()
    for row in data.decode().split("\n")[:3]:
        reader.take(None, row)
    assert reader.boot().lines == 3
    assert sum(worked_on) < 4 * sanitize.LOOKED_AT and LOOKED_AT < sanitize.LOOKED_AT
