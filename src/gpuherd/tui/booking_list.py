"""The list of bookings: what runs, what comes next, and what ended lately."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache

from rich.segment import Segment

from gpuherd.client.herd_views import GpuBooking
from gpuherd.client.live_nodes import LiveGpu, LiveNode, shown
from gpuherd.tui.cells import Column, Piece, ago, fit
from gpuherd.tui.listing import Line, Scene, clock_time, columns_of
from gpuherd.tui.palette import Pen
from gpuherd.tui.wish import Wish, user_key

__all__ = ["BookingList", "Placed"]

_ORDER = {"current": 0, "next": 1, "past": 2}
_WORDS = {"current": "runs", "next": "ahead", "past": "over"}
_SIGNS = {"current": "◩", "next": "◷", "past": "·"}
_COLUMNS = (
    Column("phase", "booking", 7, 8),
    Column("holder", "who", 8, 20),
    Column("left", "ends/begins", 11, 14),
    Column("when", "when", 35, 35, 4),
    Column("use", "use", 7, 8, 5),
    Column("gpus", "GPUs", 4, 4, 2, is_right=True),
    Column("places", "where", 8, 60, 1),
    Column("title", "title", 8, 400, 3),
)


class Placed:
    """A booking and the GPUs it is of."""

    __slots__ = ("booking", "gpus")

    def __init__(self, booking: GpuBooking) -> None:
        self.booking = booking
        self.gpus: list[LiveGpu] = []

    def places(self) -> str:
        """Name where: ``h100-01/0,1``."""
        nodes: dict[str, list[str]] = {}
        for gpu in self.gpus:
            nodes.setdefault(gpu.node.name, []).append(gpu.label)
        return " ".join(f"{node}/{','.join(labels)}" for node, labels in nodes.items())


class BookingList:
    """Of every GPU the booking that runs, the next one, and the last one that is over."""

    title = "Bookings"
    nothing = "no bookings here; make one with gpuherd book"

    def lines(self, scene: Scene, folded: Collection[str]) -> list[Line]:
        """Make one line per booking; those that run first, then by their beginning."""
        wish, herd = scene.wish, scene.herd
        found: dict[int, Placed] = {}
        for gpu in herd.gpus():
            for booking in herd.bookings.get(gpu.row, ()):
                placed = found.get(booking.id)
                if placed is None:
                    placed = found[booking.id] = Placed(booking)
                placed.gpus.append(gpu)
        wanted = [placed for placed in found.values() if _is_wanted(placed, wish)]
        wanted.sort(key=_key(wish))  # type: ignore[arg-type] # one kind of key for all
        if wish.is_reversed:
            wanted.reverse()
        return wanted

    def key(self, line: Line) -> tuple[object, ...]:
        """Give what a line is of."""
        return (line.booking.id,)

    def subject(self, line: Line) -> LiveGpu | LiveNode | None:
        """Give the first GPU of a booking."""
        gpu: LiveGpu = line.gpus[0]
        return gpu

    def fold_key(self, line: Line) -> str | None:
        """Bookings are not folded."""
        return None

    def columns(self, width: int, wish: Wish) -> list[tuple[Column, int]]:
        """Give the columns that fit."""
        return _columns(width)

    def draw(self, line: Line, width: int, pen: Pen, scene: Scene) -> list[Piece]:
        """Draw one booking."""
        placed: Placed = line
        booking = placed.booking
        pieces: list[Piece] = []
        for column, cells in _columns(width):
            if column.name == "phase":
                sign = Segment(_SIGNS.get(booking.phase, "·") + " ", pen.state("booked"))
                word = _WORDS.get(booking.phase, shown(booking.phase, 8))
                pieces += [sign, Segment(fit(word, cells - 2) + " ", pen.text)]
                continue
            style = (
                pen.strong if column.name == "holder" and booking.holder in scene.wish.my_names else pen.text
            )
            if column.name in ("when", "title") or booking.phase == "past":
                style = pen.muted
            elif column.name == "use" and booking.use in ("unused", "others"):
                style = pen.state("held")
            text = fit(_text(column.name, placed, scene), cells, is_right=column.is_right)
            pieces.append(Segment(text + " ", style))
        return pieces


@lru_cache(64)
def _columns(width: int) -> list[tuple[Column, int]]:
    return columns_of(_COLUMNS, width)


def _is_wanted(placed: Placed, wish: Wish) -> bool:
    if wish.node_id is not None and all(gpu.node.id != wish.node_id for gpu in placed.gpus):
        return False
    if wish.filter == "mine" and placed.booking.holder not in wish.my_names:
        return False
    if not wish.words:
        return True
    title = placed.booking.title or ""
    text = f"{placed.booking.holder} {title} {placed.places()} {placed.gpus[0].name}".lower()
    return all(word in text for word in wish.words)


def _key(wish: Wish) -> Callable[[Placed], object]:
    if wish.sorting == "user":
        return lambda placed: (user_key(placed.booking.holder), placed.booking.starts_at)
    return lambda placed: (_ORDER.get(placed.booking.phase, 9), placed.booking.starts_at, placed.booking.id)


def _text(name: str, placed: Placed, scene: Scene) -> str:
    booking = placed.booking
    match name:
        case "holder":
            return shown(booking.holder, 40)
        case "left":
            if booking.phase == "past":
                return f"{ago(scene.now - booking.ends_at)} ago"
            if booking.phase == "current":
                return f"ends in {ago(booking.ends_at - scene.now)}"
            return f"in {ago(booking.starts_at - scene.now)}"
        case "when":
            return span_of(booking, scene)
        case "use":
            return shown(booking.use or "", 12)
        case "gpus":
            return str(len(placed.gpus))
        case "places":
            return placed.places()
        case _:
            return shown(booking.title or "", 120)


def span_of(booking: GpuBooking, scene: Scene) -> str:
    """Show from when to when, without saying the same day twice."""
    first, last = clock_time(booking.starts_at, scene), clock_time(booking.ends_at, scene)
    if first[:10] == last[:10]:
        return f"{first} – {clock_time(booking.ends_at, scene, with_day=False)}"
    return f"{first} – {last}"
