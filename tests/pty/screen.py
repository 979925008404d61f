"""What a terminal shows after the bytes that a console wrote: as much of one as the console uses."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"\x1b\[(?P<move>\d*(?:;\d*)?)H|\x1b\[(?P<erase>\d*)[JK]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[\[\]][0-9;:?<>=]*[ -/]*[@-~]|\x1b.|(?P<control>[\x00-\x1f])|(?P<text>[^\x00-\x1f\x1b]+)",
    re.DOTALL,
)


def screen(output: bytes, columns: int, rows: int) -> list[str]:
    """The rows of the screen, one character a cell."""
    cells = [[" "] * columns for _ in range(rows)]
    row = column = 0
    for piece in _PIECE.finditer(output.decode(errors="replace")):
        if piece["move"] is not None:
            at = [int(part or 1) - 1 for part in (*piece["move"].split(";"), "")[:2]]
            row, column = at
        elif piece["erase"] is not None:
            cells = [[" "] * columns for _ in range(rows)] if piece[0].endswith("J") else cells
        elif piece["control"] is not None:
            row, column = (row + 1, column) if piece[0] == "\n" else (row, 0) if piece[0] == "\r" else (row, column)
        elif piece["text"] is not None:
            for char in piece["text"]:
                if 0 <= row < rows and 0 <= column < columns:
                    cells[row][column] = char
                column += 1
    return ["".join(line) for line in cells]
