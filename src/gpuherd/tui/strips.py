"""Lines around the list that can be clicked: totals, tabs, titles, keys; and a pane of lines that scrolls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from gpuherd.tui.cells import Piece, width_of
from gpuherd.tui.palette import Pen

__all__ = ["Button", "Pane", "Strips"]


class Button(Segment):
    """A piece that does something when it is clicked; ``control`` is not used by the toolkit here."""

    action: str

    def __new__(cls, text: str, style: Style | None, action: str) -> Self:
        """Make one; ``action`` is that of a key."""
        made = super().__new__(cls, text, style)
        made.action = action
        return made


class Strips(Widget):
    """A few lines of pieces, made anew whenever they are drawn."""

    def __init__(
        self,
        paint: Callable[[int], list[list[Piece]]],
        pen: Callable[[], Pen],
        *,
        name: str,
        is_raised: bool = False,
    ) -> None:
        super().__init__(id=name)
        self._paint = paint
        self._pen = pen
        self._is_raised = is_raised
        self._painted: list[list[Piece]] = []
        self._painted_width = -1

    def renew(self) -> None:
        """Draw anew, unless nothing has changed."""
        painted = self._paint(self.size.width)
        if painted != self._painted or self._painted_width != self.size.width:
            self._painted, self._painted_width = painted, self.size.width
            self.refresh()

    def repaint(self) -> None:
        """Draw anew in any case."""
        self._painted_width = -1
        self.renew()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width, pen = self.size.width, self._pen()
        if self._painted_width != width:
            self._painted, self._painted_width = self._paint(width), width
        pieces = self._painted[y] if y < len(self._painted) else []
        base = pen.raised if self._is_raised else pen.background
        plain = [Segment(piece.text, piece.style) for piece in pieces]
        return Strip(plain).adjust_cell_length(width).apply_style(base)

    def on_click(self, event: events.Click) -> None:
        """Do what the piece under the mouse does."""
        left = 0
        for piece in self._painted[event.y] if event.y < len(self._painted) else []:
            left += width_of(piece.text)
            if event.x < left:
                if isinstance(piece, Button):
                    self.app.call_later(self.app.run_action, piece.action)
                return


class Pane(ScrollView):
    """Lines that may be more than fit."""

    DEFAULT_CSS = """
    Pane { overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, pen: Callable[[], Pen], *, name: str) -> None:
        super().__init__(id=name)
        self._pen = pen
        self._pieces: list[list[Piece]] = []

    def show(self, pieces: list[list[Piece]]) -> None:
        """Show other lines."""
        if pieces != self._pieces:
            self._pieces = pieces
            self.virtual_size = Size(self.size.width, len(pieces))
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line in sight."""
        place = self.scroll_offset.y + y
        pieces = self._pieces[place] if place < len(self._pieces) else []
        return (
            Strip(pieces)
            .adjust_cell_length(self.scrollable_content_region.width)
            .apply_style(self._pen().background)
        )
