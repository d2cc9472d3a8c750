"""The lines on top: how many are in which state, what is free now, who holds what idle, and how fresh all of it is."""

from __future__ import annotations

from collections import Counter

from rich.segment import Segment

from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_nodes import shown
from gpuherd.client.states import sign_of, state_rank, state_word
from gpuherd.tui.cells import Piece, ago, fit, width_of
from gpuherd.tui.palette import Pen
from gpuherd.tui.watch import Watch

__all__ = ["Answers", "freshness", "totals_line"]


class Answers:
    """What is free and what is held idle, counted when a state has changed and not at every tick."""

    def __init__(self) -> None:
        self._version = -1
        self._free: list[tuple[str, int]] = []
        self._together = (0, "", "")
        """The most free ones of a type in one node: how many, which, where."""
        self._held: list[tuple[str, int, float | None]] = []

    def count(self, herd: LiveHerd) -> None:
        """Count, if anything is different."""
        if herd.version == self._version:
            return
        self._version = herd.version
        free: Counter[str] = Counter()
        held: dict[str, list[float | None]] = {}
        most = (0, "", "")
        states, since = herd.states, herd.numbers["since"]
        for node in herd.nodes:
            here: Counter[str] = Counter()
            for gpu in node.gpus:
                state = states[gpu.row]
                if state == "free" and gpu.is_countable:
                    free[gpu.name] += 1
                    here[gpu.name] += 1
                elif state == "held":
                    for user in gpu.users:
                        held.setdefault(user or "unknown owner", []).append(since[gpu.row])
            for name, count in here.items():
                if count > most[0]:
                    most = (count, name, node.name)
        self._free, self._together = free.most_common(), most
        self._held = [
            (user, len(times), min((at for at in times if at is not None), default=None))
            for user, times in sorted(held.items(), key=lambda item: (-len(item[1]), item[0]))
        ]

    def free_line(self, width: int, pen: Pen) -> list[Piece]:
        """Say what is free now, by type."""
        items: list[list[Piece]] = [
            [Segment(f"{count}", pen.state("free") + pen.strong), Segment(f" {name}   ", pen.text)]
            for name, count in self._free
        ]
        pieces, left = _listed("  FREE NOW   ", items, width, pen)
        count, name, node = self._together
        if count > 1:  # said where there is room for it: the types are told without
            text = f"most together: {count} {name} on {node}"
            if width_of(text) <= left:
                pieces.append(Segment(text, pen.muted))
        return pieces

    def held_line(self, width: int, pen: Pen, now: float) -> list[Piece]:
        """Say who holds GPUs without using them, and for how long."""
        items: list[list[Piece]] = [
            [
                Segment(f"{count}", pen.state("held") + pen.strong),
                Segment(f" {user}", pen.text),
                Segment(f" {ago(now - since)}   " if since is not None else "   ", pen.muted),
            ]
            for user, count, since in self._held
        ]
        return _listed("  HELD IDLE  ", items, width, pen)[0]


def totals_line(herd: LiveHerd, fresh: list[Piece], width: int, pen: Pen) -> list[Piece]:
    """Say how many GPUs are in which state; how fresh that is stands at the right."""
    right = sum(width_of(piece.text) for piece in fresh) + 2
    counts = herd.totals.devices
    shown_states = [state for state in sorted(counts, key=state_rank) if counts[state]]
    for name, is_long, told_apart, gap_text in (
        ("  gpuherd  ", True, shown_states, "   "),
        ("  ", True, ["free"], "  "),
        (" ", False, ["free"], "  "),
    ):
        pieces: list[Piece] = [Segment(name, pen.accent)]
        parts: list[Piece] = []
        for state in shown_states:
            word = f" {shown(state_word(state), 20)}" if is_long else ""
            parts.append(Segment(f"{sign_of(state)} ", pen.state(state)))
            slices = herd.totals.slices.get(state, 0) if state in told_apart else 0
            parts.append(Segment(_counted(counts[state], slices, is_long), pen.strong))
            parts.append(Segment(f"{word}{gap_text}", pen.text))
        if herd.totals.nodes_in_fault and is_long:
            nodes = herd.totals.nodes_in_fault
            parts.append(Segment(f"{nodes} {'node' if nodes == 1 else 'nodes'} in fault", pen.state("fault")))
        if sum(width_of(piece.text) for piece in [*pieces, *parts]) + right <= width:
            break
    pieces = _cut([*pieces, *parts], max(0, width - right))
    gap = width - right - sum(width_of(piece.text) for piece in pieces)
    return [*pieces, Segment(" " * max(0, gap + 1)), *fresh, Segment(" ")]


def _counted(devices: int, slices: int, is_long: bool) -> str:
    """Count GPUs and slices apart."""
    if not slices:
        return f"{devices}"
    unit = f" slice{'s' if slices != 1 else ''}" if is_long else ""
    plus = " + " if is_long else "+"
    return f"{devices - slices}{plus}{slices}{unit}" if devices > slices else f"{slices}{unit}"


def freshness(watched: Watch, pen: Pen, width: int) -> list[Piece]:
    """Say how the data comes, and how old it is if that is worth a word."""
    age, phase = watched.age_seconds, watched.condition.phase
    if watched.is_paused:
        return [Segment("‖ ", pen.state("held")), Segment(f"paused {ago(age)}", pen.strong)]
    if age is None:
        return [Segment("◌ ", pen.muted), Segment("away" if phase == "away" else "connecting", pen.strong)]
    if watched.is_old:
        return [Segment("✕ ", pen.state("fault")), Segment(f"no data for {ago(age)}", pen.strong)]
    if phase == "polling":
        return [
            Segment("◐ ", pen.state("held")),
            Segment("polled every 5 s" if width >= 60 else "slow", pen.strong),
        ]
    return [Segment("● ", pen.state("live")), Segment("live", pen.strong)]


def _cut(pieces: list[Piece], width: int) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        size = width_of(piece.text)
        if size > width:
            if width > 0:
                kept.append(Segment(fit(piece.text, width), piece.style))
            break
        kept.append(piece)
        width -= size
    return kept


def _listed(title: str, items: list[list[Piece]], width: int, pen: Pen) -> tuple[list[Piece], int]:
    """Put items after a title, as many as fit as a whole; give how many cells are left, too.

    An ellipsis stands where some are left out, and only there.
    """
    pieces: list[Piece] = [Segment(title, pen.muted)]
    left = width - width_of(title)
    for place, item in enumerate(items, 1):
        size = sum(width_of(piece.text) for piece in item)
        last = item[-1].text
        gap = width_of(last) - width_of(last.rstrip())
        if size + 1 > left if place < len(items) else size - gap > left:
            return [*pieces, Segment("…", pen.muted)], 0
        pieces += item
        left -= size
    return (pieces, left) if items else ([*pieces, Segment("nothing", pen.text)], 0)
