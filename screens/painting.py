"""Partial updates that send the changed cells alone.

Textual's own partial update sends each changed line from the left edge of its widget on; an age at the right edge of a
row would cost the whole row (measured: 9 KB/s at rest in place of 1).
"""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, Compositor


class CellUpdate(ChopsUpdate):
    """Sends exactly the cells of each span."""

    def render_segments(self, console: Console) -> str:
        """Escape sequences and text for all spans."""
        out: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if strip is None or start >= stop:
                    continue
                out.append(Control.move_to(start, y).segment.text)
                out.append(strip.crop(start - x, stop - x).render(console))
        return "".join(out)


class CellCompositor(Compositor):
    """The compositor of the console's screens."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """What is dirty, cell by cell."""
        update = super().render_partial_update()
        return None if update is None else CellUpdate(update.chops, update.spans, update.chop_ends)
