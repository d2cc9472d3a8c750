"""What all lists have in common: lines made out of the herd, keys by which the cursor finds them again, columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, tzinfo
from typing import Any, Protocol

from msgspec import Struct
from rich.segment import Segment

from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_nodes import LiveGpu, LiveNode
from gpuherd.client.states import sign_of, state_word
from gpuherd.tui.cells import Column, Piece, fit, lay_out
from gpuherd.tui.palette import Pen
from gpuherd.tui.wish import Wish

__all__ = ["Line", "Listing", "Scene", "clock_time", "heading", "sign_and_word"]

Line = Any
"""A line belongs to the listing that made it; nobody else looks into it."""


class Scene(Struct, frozen=True, kw_only=True):
    """What lines are drawn from."""

    herd: LiveHerd
    wish: Wish
    now: float
    """The hub's clock, epoch seconds."""
    zone: tzinfo | None = None
    """None: this machine's."""


class Listing(Protocol):
    """One of the lists."""

    title: str
    nothing: str
    """What is said where there is not a single line."""

    def lines(self, scene: Scene, folded: Collection[str]) -> list[Line]:
        """Make the lines."""

    def key(self, line: Line) -> tuple[object, ...]:
        """Give what a line is of, which stays when everything else changes."""

    def columns(self, width: int, wish: Wish) -> list[tuple[Column, int]]:
        """Give the columns that fit."""

    def draw(self, line: Line, width: int, pen: Pen, scene: Scene) -> list[Piece]:
        """Draw one line."""

    def subject(self, line: Line) -> LiveGpu | LiveNode | None:
        """Give what the details of a line are of."""

    def fold_key(self, line: Line) -> str | None:
        """Give the name under which a line is folded; none if it cannot be."""


def heading(columns: Sequence[tuple[Column, int]], pen: Pen) -> list[Piece]:
    """Draw the columns' titles."""
    titles = " ".join(fit(column.title, width, is_right=column.is_right) for column, width in columns)
    return [Segment(f"  {titles}", pen.muted)]


def sign_and_word(state: str, width: int, pen: Pen, *, is_strong: bool = False) -> list[Piece]:
    """Draw a state: its sign in its colour, and the word."""
    word = fit(state_word(state), width - 2)
    return [
        Segment(sign_of(state) + " ", pen.state(state)),
        Segment(word, pen.strong if is_strong and not pen.is_old else pen.text),
    ]


def clock_time(at: float, scene: Scene, *, with_day: bool = True) -> str:
    """Show a moment by the clock on the wall."""
    try:
        moment = datetime.fromtimestamp(at, scene.zone)
    except (OverflowError, ValueError, OSError):
        return "never"
    return moment.strftime("%a %d %b %H:%M" if with_day else "%H:%M")


def columns_of(columns: Sequence[Column], width: int) -> list[tuple[Column, int]]:
    """Lay columns out beside the cursor's place."""
    return lay_out(columns, width - 2)
