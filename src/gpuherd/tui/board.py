"""The list that fills the screen: only what is in sight is drawn, and only what has changed is sent to the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuherd.tui.cells import Piece
from gpuherd.tui.listing import Line, Listing, Scene
from gpuherd.tui.palette import Pen

__all__ = ["Board"]


class Board(ScrollView, can_focus=True):
    """Lines of one listing, with a cursor that stays on what it is on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("home", "go(0)", show=False),
        Binding("end,G", "go(-1)", show=False),
        Binding("left,h", "fold", show=False),
        Binding("right,l", "unfold", show=False),
        Binding("space", "turn", show=False),
        Binding("enter", "open", show=False),
    ]
    DEFAULT_CSS = """
    Board { height: 1fr; width: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """

    class Moved(Message):
        """The cursor is on another line."""

    class Opened(Message):
        """Someone wants to see more of the line under the cursor."""

    class Folding(Message):
        """Someone wants to fold (true), unfold (false) or turn over (none) a group."""

        def __init__(self, key: str, is_folded: bool | None) -> None:
            super().__init__()
            self.key = key
            self.is_folded = is_folded

    def __init__(
        self, listing: Listing, scene: Scene, pen: Callable[[], Pen], nothing: Callable[[], str]
    ) -> None:
        """``nothing``: what is said where there is not a single line, and nothing is left out either."""
        super().__init__()
        self._nothing = nothing
        self.listing = listing
        self.scene = scene
        self._pen = pen
        self._lines: list[Line] = []
        self._cursor = 0
        self._key: tuple[object, ...] | None = None
        self._drawn: dict[int, Strip] = {}
        """Strips by line, as they were drawn last."""

    # -- what is shown -----------------------------------------------------------------------------------------

    @property
    def line(self) -> Line | None:
        """The line under the cursor."""
        return self._lines[self._cursor] if self._cursor < len(self._lines) else None

    @property
    def lines(self) -> list[Line]:
        """All lines, also those out of sight."""
        return self._lines

    @property
    def width(self) -> int:
        """How many cells a line has, beside the scroll bar."""
        return max(1, self.scrollable_content_region.width)

    def show(self, listing: Listing, scene: Scene, lines: list[Line]) -> None:
        """Show other lines; the cursor stays on what it is on, or near where that was."""
        is_other = listing is not self.listing
        self.listing, self.scene, self._lines = listing, scene, lines
        if is_other:
            self._cursor, self._key = 0, None
        size = Size(self.width, len(lines))
        is_resized = size != self.virtual_size
        self.virtual_size = size
        self._find_cursor()
        if is_other:
            self.scroll_to(y=0, animate=False)
        if is_other or is_resized:
            self.repaint()
        else:
            self.renew(scene)

    def renew(self, scene: Scene) -> None:
        """Draw the same lines with new numbers; what looks as before is not sent again."""
        self.scene = scene
        before, self._drawn = self._drawn, {}
        top = self.scroll_offset.y
        for y in range(min(self.size.height, max(0, len(self._lines) - top))):
            strip = self._strip(top + y)
            if before.get(top + y) != strip:
                self.refresh(Region(0, y, self.width, 1))

    def repaint(self) -> None:
        """Draw everything, such as in other colours."""
        self._drawn.clear()
        self.refresh()

    def _find_cursor(self) -> None:
        if not self._lines:
            return
        self._cursor = min(self._cursor, len(self._lines) - 1)
        if self._key is not None and self.listing.key(self._lines[self._cursor]) != self._key:
            for place, line in enumerate(self._lines):
                if self.listing.key(line) == self._key:
                    offset = self._cursor - self.scroll_offset.y
                    self._cursor = place
                    if 0 <= offset < self.size.height:  # what was in sight stays where it was
                        self.scroll_to(y=max(0, place - offset), animate=False)
                    break
        self._key = self.listing.key(self._lines[self._cursor])

    def render_line(self, y: int) -> Strip:
        """Draw one line in sight."""
        return self._strip(self.scroll_offset.y + y)

    def _strip(self, place: int) -> Strip:
        drawn = self._drawn.get(place)
        if drawn is None:
            drawn = self._drawn[place] = self._draw(place)
        return drawn

    def _draw(self, place: int) -> Strip:
        pen, width = self._pen(), self.width
        if place >= len(self._lines):
            said = self._nothing() or self.listing.nothing if place == 1 and not self._lines else ""
            return (
                Strip([Segment(f"  {said}", pen.muted)]).adjust_cell_length(width).apply_style(pen.background)
            )
        is_cursor = place == self._cursor
        pieces: list[Piece] = [Segment("› " if is_cursor else "  ", pen.accent)]
        pieces += self.listing.draw(self._lines[place], width, pen, self.scene)
        strip = Strip(pieces).adjust_cell_length(width)
        return strip.apply_style(pen.cursor if is_cursor else pen.background)

    # -- moving ------------------------------------------------------------------------------------------------

    def move_to(self, place: int) -> None:
        """Put the cursor on a line and bring that into sight."""
        if not self._lines:
            return
        place = max(0, min(place, len(self._lines) - 1))
        before, self._cursor = self._cursor, place
        self._key = self.listing.key(self._lines[place])
        for changed in (before, place):
            self._drawn.pop(changed, None)
            self.refresh_line(changed)
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if place < top:
            self.scroll_to(y=place, animate=False)
        elif place >= top + height:
            self.scroll_to(y=place - height + 1, animate=False)
        if before != place:
            self.post_message(self.Moved())

    def action_move(self, by: int) -> None:
        """Move the cursor by lines."""
        self.move_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by screens."""
        self.move_to(self._cursor + by * max(1, self.size.height - 1))

    def action_go(self, place: int) -> None:
        """Move the cursor to the first line, or with -1 to the last."""
        self.move_to(place if place >= 0 else len(self._lines) - 1)

    def action_fold(self) -> None:
        """Fold the group, from any line of it."""
        for place in range(self._cursor, -1, -1):
            if place < len(self._lines) and (key := self.listing.fold_key(self._lines[place])) is not None:
                self.move_to(place)
                self.post_message(self.Folding(key, True))
                return

    def action_unfold(self) -> None:
        """Unfold the group under the cursor."""
        self._turn(False)

    def action_turn(self) -> None:
        """Fold or unfold the group under the cursor."""
        self._turn(None)

    def _turn(self, is_folded: bool | None) -> None:
        if self.line is not None and (key := self.listing.fold_key(self.line)) is not None:
            self.post_message(self.Folding(key, is_folded))

    def action_open(self) -> None:
        """Show more of the line under the cursor."""
        if self.line is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; a second click shows more; one on the triangle folds."""
        place = self.scroll_offset.y + event.y
        if place >= len(self._lines):
            return
        was_there = place == self._cursor
        self.move_to(place)
        if event.x <= 3 and self.listing.fold_key(self._lines[place]) is not None:
            self._turn(None)
        elif was_there or event.chain > 1:
            self.action_open()

    def on_resize(self, event: events.Resize) -> None:
        """Draw anew for another width."""
        self._drawn.clear()
        self.virtual_size = Size(self.width, len(self._lines))
        if self._lines:
            self.call_after_refresh(self.move_to, self._cursor)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Keep strips of what is in sight only."""
        super().watch_scroll_y(old_value, new_value)
        if len(self._drawn) > 4 * max(1, self.size.height):
            self._drawn.clear()
