"""The bars above and below the list: tabs with what was chosen, and the keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment

from gpuherd.client.live_nodes import shown
from gpuherd.tui.cells import Piece, fit
from gpuherd.tui.palette import Pen
from gpuherd.tui.strips import Button
from gpuherd.tui.wish import Wish

__all__ = ["chosen", "keys_line", "tabs_line"]

NARROW_CELLS = 60
_ONLY = {"held": "only held idle", "fault": "only faults", "free": "only free", "mine": "only mine"}
_KEYS = (
    ("/", "search", "search"),
    ("s", "sort", "sort"),
    ("f", "filter", "filter"),
    ("g", "group", "group"),
    ("⏎", "details", "open_detail"),
    ("n", "node", "node"),
    ("p", "pause", "pause"),
)
_LAST_KEYS = (("?", "help", "help"), ("q", "quit", "quit"))
"""These stay when there is no room for all."""


def chosen(wish: Wish, node_name: str, *, is_herd: bool) -> str:
    """Say what was chosen, as far as it is not as always."""
    said = []
    if wish.node_id is not None:
        said.append(f"only {node_name}")
    if wish.filter != "all":
        said.append(_ONLY[wish.filter])
    if wish.search:
        said.append(f'"{shown(wish.search, 40)}"')
    if is_herd and wish.grouping != "node":
        said.append("one list" if wish.grouping == "none" else f"by {wish.grouping}")
    if wish.sorting != "place" or wish.is_reversed:
        said.append(f"sorted by {wish.sorting}{' ↑' if wish.is_reversed else ''}")
    return " · ".join(said)


def tabs_line(titles: Sequence[str], view: int, said: str, place: str, width: int, pen: Pen) -> list[Piece]:
    """Draw the lists to choose from; at the right what was chosen, or whom the herd is told by."""
    pieces: list[Piece] = [Segment(" ")]
    is_narrow = width < NARROW_CELLS
    for number, name in enumerate(titles):
        is_current = number == view
        title = f" {name}" if not is_narrow or is_current else ""
        style = pen.accent if is_current else pen.muted
        pieces.append(Button(f" {number + 1}{title} ", style, f"app.view({number})"))
    text = said or ("" if is_narrow else place)
    left = width - sum(len(piece.text) for piece in pieces) - 1
    pieces.append(Segment(fit(shown(text, 200), left, is_right=True), pen.text if said else pen.muted))
    return pieces


def keys_line(width: int, pen: Pen) -> list[Piece]:
    """Draw the keys, as many as fit."""
    pieces: list[Piece] = [Segment(" ")]
    left = width - 1 - sum(_key_cells(key, word) for key, word, _ in _LAST_KEYS)
    for key, word, action in _KEYS:
        if _key_cells(key, word) <= left:
            pieces += _key(key, word, action, pen)
            left -= _key_cells(key, word)
    for key, word, action in _LAST_KEYS:
        pieces += _key(key, word, action, pen)
    return pieces


def _key_cells(key: str, word: str) -> int:
    return len(key) + len(word) + 3


def _key(key: str, word: str, action: str, pen: Pen) -> list[Piece]:
    return [Button(f" {key} ", pen.accent, f"app.{action}"), Button(f"{word} ", pen.muted, f"app.{action}")]
