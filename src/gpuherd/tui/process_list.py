"""The list of all processes on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache

from rich.segment import Segment

from gpuherd.client.live_nodes import LiveGpu, LiveNode, LiveUse
from gpuherd.tui.cells import UNKNOWN, Column, Piece, ago, fit, gibibytes, percent
from gpuherd.tui.listing import Line, Scene, columns_of
from gpuherd.tui.palette import Pen
from gpuherd.tui.wish import Wish, is_mine, user_key

__all__ = ["ProcessList"]

_LAST = 1e30
_COLUMNS = (
    Column("place", "gpu", 10, 18),
    Column("pid", "pid", 7, 8, 5, is_right=True),
    Column("user", "user", 8, 14),
    Column("memory", "gpu mem", 7, 7, is_right=True),
    Column("sm", "sm", 4, 4, 4, is_right=True),
    Column("cpu", "cpu", 5, 5, 6, is_right=True),
    Column("ram", "ram", 5, 5, 7, is_right=True),
    Column("age", "since", 6, 6, 2, is_right=True),
    Column("job", "job", 7, 10, 8),
    Column("command", "command", 6, 400, 3),
)


class _Running:
    """One process on one GPU."""

    __slots__ = ("gpu", "use")

    def __init__(self, gpu: LiveGpu, use: LiveUse) -> None:
        self.gpu = gpu
        self.use = use

    def number(self, name: str) -> float | None:
        return self.gpu.node.number(name, self.use)


class ProcessList:
    """All processes, of the herd or of a node."""

    title = "Processes"
    nothing = "no process uses a GPU here"

    def lines(self, scene: Scene, folded: Collection[str]) -> list[Line]:
        """Make one line per process and GPU; most GPU memory first, unless another order is wished for."""
        wish = scene.wish
        words = wish.words
        found = [
            _Running(gpu, use)
            for gpu in scene.herd.gpus()
            if gpu.uses and (wish.node_id is None or gpu.node.id == wish.node_id)
            for use in gpu.uses
            if _is_wanted(gpu, use, words, scene)
        ]
        found.sort(key=_key(wish, scene))  # type: ignore[arg-type] # one kind of key for all
        if wish.is_reversed:
            found.reverse()
        return found

    def key(self, line: Line) -> tuple[object, ...]:
        """Give what a line is of."""
        return (line.gpu.node.id, line.gpu.facts.uuid, line.use.pid, line.use.started_at)

    def subject(self, line: Line) -> LiveGpu | LiveNode | None:
        """Give the GPU that it runs on."""
        gpu: LiveGpu = line.gpu
        return gpu

    def fold_key(self, line: Line) -> str | None:
        """Processes are not folded."""
        return None

    def columns(self, width: int, wish: Wish) -> list[tuple[Column, int]]:
        """Give the columns that fit."""
        return _columns(width)

    def draw(self, line: Line, width: int, pen: Pen, scene: Scene) -> list[Piece]:
        """Draw one process."""
        running: _Running = line
        use = running.use
        is_own = use.is_own or use.user in scene.wish.me
        pieces = []
        for column, cells in _columns(width):
            text = _text(column.name, running, scene)
            style = pen.muted if column.name in ("pid", "cpu", "ram", "age", "job") else pen.text
            if column.name == "user" and is_own:
                style = pen.strong
            pieces.append(Segment(fit(text, cells, is_right=column.is_right) + " ", style))
        return pieces


@lru_cache(64)
def _columns(width: int) -> list[tuple[Column, int]]:
    return columns_of(_COLUMNS, width)


def _is_wanted(gpu: LiveGpu, use: LiveUse, words: list[str], scene: Scene) -> bool:
    wish, state = scene.wish, scene.herd.states[gpu.row]
    match wish.filter:
        case "held":
            if state != "held":
                return False
        case "fault":
            if state not in ("fault", "stale", "offline", "unknown"):
                return False
        case "free":
            return False
        case "mine":
            if not (use.is_own or use.user in wish.me) or not is_mine(scene.herd, wish, gpu):
                return False
    if not words:
        return True
    text = f"{gpu.place} {gpu.name} {use.user or 'unknown'} {use.pid} {use.command or ''} {use.job or ''}".lower()
    return all(word in text for word in words)


def _key(wish: Wish, scene: Scene) -> Callable[[_Running], object]:
    match wish.sorting:
        case "util":
            return lambda running: _down(running.number("utilization_sm"))
        case "user":
            return lambda running: (user_key(running.use.user), _down(running.number("gpu_memory_bytes")))
        case "age":
            return lambda running: _LAST if running.use.started_at is None else running.use.started_at
        case "state":
            return lambda running: scene.herd.states[running.gpu.row]
        case "memory":
            return lambda running: _down(running.number("gpu_memory_bytes"))
        case _:
            return lambda running: 0  # by place: as they come


def _down(value: float | None) -> float:
    return _LAST if value is None else -value


def _text(name: str, running: _Running, scene: Scene) -> str:
    use = running.use
    match name:
        case "place":
            return running.gpu.place
        case "pid":
            return str(use.pid)
        case "user":
            return use.user or UNKNOWN
        case "memory":
            return _size(running.number("gpu_memory_bytes"))
        case "sm":
            return percent(running.number("utilization_sm"))
        case "cpu":
            cores = running.number("cpu_cores")
            return UNKNOWN if cores is None else f"{cores * 100:.0f}%"
        case "ram":
            return _size(running.number("memory_bytes"))
        case "age":
            return ago(None if use.started_at is None else scene.now - use.started_at)
        case "job":
            return use.job or use.container or ""
        case _:
            gone = "(gone) " if use.is_gone else ""
            return gone + (use.command or UNKNOWN)


def _size(size_bytes: float | None) -> str:
    return gibibytes(None if size_bytes is None else size_bytes / 2**20)
