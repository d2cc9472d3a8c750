"""The list of all GPUs, under their nodes, types or users, or one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from rich.segment import Segment

from gpuherd.client.live_nodes import LiveGpu, LiveNode, shown
from gpuherd.client.states import sign_of, state_rank, state_word
from gpuherd.model.hosts import cpu_level
from gpuherd.tui.cells import UNKNOWN, Column, Piece, ago, bar, fit, gibibytes, percent, spark, width_of
from gpuherd.tui.listing import Line, Scene, columns_of, sign_and_word
from gpuherd.tui.palette import Pen
from gpuherd.tui.wish import Wish, bare_nodes, matcher, sort_key, user_key

__all__ = ["Group", "HerdList"]

MOST_TILES = 24
NOBODY = "nobody"

_COLUMNS = (
    Column("type", "type", 10, 16, 5),
    Column("state", "state", 11, 11),
    Column("bar", "load", 5, 14),
    Column("util", "", 4, 4, is_right=True),
    Column("spark", "last 5 min", 12, 20, 4),
    Column("membar", "memory", 6, 12, 7),
    Column("memory", "mem", 4, 8, is_right=True),
    Column("heat", "°C", 3, 3, 8, is_right=True),
    Column("power", "W", 4, 4, 9, is_right=True),
    Column("users", "users", 8, 32),
    Column("since", "since", 6, 6, 3, is_right=True),
)


class Group:
    """A line above others: a node, a type of GPU or a user."""

    __slots__ = ("gpus", "is_folded", "kind", "name", "node")

    def __init__(
        self, kind: str, name: str, gpus: list[LiveGpu], *, is_folded: bool, node: LiveNode | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        self.gpus = gpus
        self.is_folded = is_folded
        self.node = node

    @property
    def fold_key(self) -> str:
        """Under which name it is folded."""
        return f"{self.kind}:{self.node.id if self.node is not None else self.name}"


def _node_group(node: LiveNode, gpus: list[LiveGpu], folded: Collection[str]) -> Group:
    is_folded = bool(folded) and f"node:{node.id}" in folded
    return Group("node", node.name, gpus, is_folded=is_folded, node=node)


class HerdList:
    """All GPUs."""

    title = "Herd"
    nothing = "nothing matches; Esc shows everything again"

    def lines(self, scene: Scene, folded: Collection[str]) -> list[Line]:
        """Make the lines: groups, and their GPUs unless they are folded."""
        wish = scene.wish
        is_wanted, key = matcher(scene.herd, wish), sort_key(scene.herd, wish.sorting)
        if wish.grouping == "node" and key is None and is_wanted is None and not wish.is_reversed:
            return self._all_nodes(scene, folded)
        gpus = [gpu for gpu in scene.herd.gpus() if is_wanted is None or is_wanted(gpu)]
        if wish.grouping != "node" or key is not None:
            gpus = [gpu for gpu in gpus if gpu.is_countable]
        if key is not None:
            gpus.sort(key=key)  # type: ignore[arg-type] # one kind of key for all
        if wish.is_reversed:
            gpus.reverse()
        # Elsewhere a node without GPUs has no place of its own, but whoever searches for it finds it.
        bare = bare_nodes(scene.herd, wish) if wish.grouping == "node" or wish.words else []
        lines: list[Line] = []
        if wish.grouping == "none":
            lines += gpus
        elif wish.grouping == "node":
            for group in self._node_groups(gpus, bare, wish, folded):
                lines += [group] if group.is_folded else [group, *group.gpus]
            return lines
        else:
            for group in self._groups(gpus, wish, folded):
                lines += [group] if group.is_folded else [group, *group.gpus]
        return lines + [_node_group(node, [], folded) for node in bare]

    def _all_nodes(self, scene: Scene, folded: Collection[str]) -> list[Line]:
        lines: list[Line] = []
        for node in scene.herd.nodes:
            group = _node_group(node, node.gpus, folded)
            lines.append(group)
            if not group.is_folded:
                lines += node.gpus
        return lines

    def _node_groups(
        self, gpus: Iterable[LiveGpu], bare: list[LiveNode], wish: Wish, folded: Collection[str]
    ) -> Iterable[Group]:
        by_node: dict[str, list[LiveGpu]] = {}
        for gpu in gpus:
            by_node.setdefault(gpu.node.id, []).append(gpu)
        nodes = [held[0].node for held in by_node.values()] + bare
        if bare and wish.sorting == "place":
            nodes.sort(key=lambda node: node.sort_key, reverse=wish.is_reversed)
        elif bare and wish.is_reversed:
            nodes = bare[::-1] + nodes[: -len(bare)]  # what is not known comes last, turned round first
        return [_node_group(node, by_node.get(node.id, []), folded) for node in nodes]

    def _groups(self, gpus: Iterable[LiveGpu], wish: Wish, folded: Collection[str]) -> Iterable[Group]:
        by_name: dict[str | None, list[LiveGpu]] = {}
        for gpu in gpus:
            names: tuple[str | None, ...] = (gpu.name,) if wish.grouping == "type" else (gpu.users or ("",))
            for name in names:
                by_name.setdefault(name, []).append(gpu)
        names_in_order = list(by_name)
        if wish.sorting == "place":
            names_in_order.sort(key=lambda name: (name == "", *user_key(name)))
        for name in names_in_order:
            title = "unknown owner" if name is None else name or NOBODY
            is_folded = f"{wish.grouping}:{title}" in folded
            yield Group(wish.grouping, title, by_name[name], is_folded=is_folded)

    def key(self, line: Line) -> tuple[object, ...]:
        """Give what a line is of."""
        if isinstance(line, Group):
            return ("group", line.fold_key)
        return (line.node.id, line.facts.uuid)

    def subject(self, line: Line) -> LiveGpu | LiveNode | None:
        """Give what the details are of: a GPU or a node."""
        if isinstance(line, Group):
            return line.node
        gpu: LiveGpu = line
        return gpu

    def fold_key(self, line: Line) -> str | None:
        """Give the name under which a group is folded; of a GPU under its node, that of the node."""
        return line.fold_key if isinstance(line, Group) else None

    def columns(self, width: int, wish: Wish) -> list[tuple[Column, int]]:
        """Give the columns that fit."""
        return _columns(width, wish.grouping == "node")

    # -- drawing -----------------------------------------------------------------------------------------------

    def draw(self, line: Line, width: int, pen: Pen, scene: Scene) -> list[Piece]:
        """Draw a GPU or a group."""
        if isinstance(line, Group):
            return _draw_group(line, width, pen, scene)
        gpu: LiveGpu = line
        state = scene.herd.states[gpu.row]
        pieces: list[Piece] = []
        for column, cells in self.columns(width, scene.wish):
            pieces += _cell(column.name, cells, gpu, state, pen, scene)
            pieces.append(Segment(" "))
        return pieces


@lru_cache(64)
def _columns(width: int, is_by_node: bool) -> list[tuple[Column, int]]:
    first = Column("gpu", "gpu", 5, 6) if is_by_node else Column("gpu", "gpu", 11, 24)
    return columns_of((first, *_COLUMNS), width)


def _cell(name: str, width: int, gpu: LiveGpu, state: str, pen: Pen, scene: Scene) -> list[Piece]:
    herd = scene.herd
    numbers, row = herd.numbers, gpu.row
    match name:
        case "gpu":
            is_by_node = scene.wish.grouping == "node"
            indent = "  " if gpu.facts.parent_uuid is not None and is_by_node else " " if is_by_node else ""
            return [Segment(fit(indent + (gpu.label if is_by_node else gpu.place), width), pen.text)]
        case "type":
            profile = gpu.facts.profile
            return [Segment(fit(gpu.name if profile is None else shown(profile, 16), width), pen.muted)]
        case "state":
            return sign_and_word(state, width, pen, is_strong=state in ("free", "fault"))
        case "bar":
            return bar(numbers["utilization_gpu"][row], width, pen, state)
        case "util":
            return [Segment(fit(percent(numbers["utilization_gpu"][row]), width, is_right=True), pen.text)]
        case "spark":
            return [Segment(spark(herd.utilization_history(row, width), width), pen.state(state))]
        case "membar":
            return bar(_memory_share(gpu, scene), width, pen, state)
        case "memory":
            return [Segment(fit(_memory_text(gpu, scene, width), width, is_right=True), pen.text)]
        case "heat":
            return [
                Segment(fit(_whole(numbers["temperature_celsius"][row]), width, is_right=True), pen.muted)
            ]
        case "power":
            return [Segment(fit(_whole(numbers["power_watts"][row]), width, is_right=True), pen.muted)]
        case "users":
            return _users(gpu, width, pen, scene)
        case _:
            since = numbers["since"][row]
            text = ago(None if since is None else scene.now - since)
            return [Segment(fit(text, width, is_right=True), pen.muted)]


def _users(gpu: LiveGpu, width: int, pen: Pen, scene: Scene) -> list[Piece]:
    """Name who is on it; of a GPU that nobody is on, what is wrong with it or who has booked it."""
    if gpu.users:
        text = " ".join("?" if user is None else user for user in gpu.users)
        mine = any(use.is_own or use.user in scene.wish.me for use in gpu.uses)
        return [Segment(fit(text, width), pen.strong if mine else pen.text)]
    if scene.herd.states[gpu.row] == "fault":
        return [Segment(fit(shown(scene.herd.reasons[gpu.row], 200), width), pen.state("fault"))]
    for booking in scene.herd.bookings.get(gpu.row, ()):
        if booking.phase == "current":
            return [Segment(fit(f"({shown(booking.holder, 40)})", width), pen.muted)]
    return [Segment(" " * width)]


def _memory_share(gpu: LiveGpu, scene: Scene) -> float | None:
    used, total = scene.herd.numbers["memory_used_mebibytes"][gpu.row], gpu.memory_total_mebibytes
    if used is None or total is None:
        return None
    share = used / total
    return share if share >= 0.005 else 0.0  # what the driver itself takes


def _memory_text(gpu: LiveGpu, scene: Scene, width: int) -> str:
    used, total = scene.herd.numbers["memory_used_mebibytes"][gpu.row], gpu.memory_total_mebibytes
    if used is None or total is None or width < 7:
        return gibibytes(used)
    return f"{gibibytes(used)[:-1]}/{gibibytes(total)}"


def _whole(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}"


def _draw_group(group: Group, width: int, pen: Pen, scene: Scene) -> list[Piece]:
    fold = "▸" if group.is_folded else "▾"
    name_width = max(10, min(22, width // 4))
    pieces = [
        Segment(f"{fold} ", pen.muted),
        Segment(fit(group.name, name_width), pen.strong),
        Segment(" "),
    ]
    left = width - 4 - name_width - 1
    rest = _node_pieces(group.node, group, pen, scene) if group.node else _count_pieces(group, pen, scene)
    for piece in rest:
        size = width_of(piece.text)
        if size > left:
            pieces.append(Segment(fit(piece.text, left), piece.style))
            break
        pieces.append(piece)
        left -= size
    return pieces


def _node_pieces(node: LiveNode, group: Group, pen: Pen, scene: Scene) -> list[Piece]:
    herd = scene.herd
    state = herd.node_states[node.row]
    pieces: list[Piece] = []
    units = [gpu for gpu in group.gpus if gpu.is_countable]
    if len(units) <= MOST_TILES:
        for gpu in units:
            told = herd.states[gpu.row]
            pieces.append(Segment(sign_of(told), pen.state(told)))
        pieces.append(Segment(" " * (max(8, len(units)) - len(units) + 1)))
    else:
        pieces += _counts(units, pen, scene)
    models = " ".join(f"{count}×{name}" for name, count in node.models())
    pieces.append(Segment(f" {fit(models, 14) if len(models) < 14 else models}  ", pen.text))
    if state != "live":
        reason = herd.node_reasons[node.row]
        pieces += [Segment(sign_of(state) + " ", pen.state(state)), Segment(state_word(state), pen.strong)]
        pieces.append(Segment(f"  {shown(reason, 200)}" if reason else "", pen.muted))
        return pieces
    memory, total = herd.hosts["memory_used_mebibytes"][node.row], node.host and node.host.memory_total_bytes
    share = None if memory is None or not total else memory * 2**20 / total
    cpus = None if node.host is None else node.host.cpu_count
    cpu = cpu_level(herd.hosts["cpu_ratio"][node.row], herd.hosts["load_1m"][node.row], cpus)
    pieces.append(Segment(f"cpu {percent(cpu):>4} ", pen.muted))
    pieces.append(Segment(f" ram {percent(share):>4} ", pen.muted))
    problems = sorted(
        node.problems, key=lambda problem: (problem.device_uuid is not None, not problem.is_fault)
    )
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        pieces.append(Segment(f" ✕ {count}", pen.state("fault")))
        pieces.append(Segment(f": {shown(problems[0].message, 200)}", pen.muted))
    return pieces


def _count_pieces(group: Group, pen: Pen, scene: Scene) -> list[Piece]:
    units = [gpu for gpu in group.gpus if gpu.is_countable]
    return [
        Segment(fit(f"{len(units)} GPU{'s' if len(units) != 1 else ''}", 10), pen.text),
        *_counts(units, pen, scene),
    ]


def _counts(units: list[LiveGpu], pen: Pen, scene: Scene) -> list[Piece]:
    counts = Counter(scene.herd.states[gpu.row] for gpu in units)
    pieces: list[Piece] = []
    for state in sorted(counts, key=state_rank):
        if counts[state]:
            pieces.append(Segment(f"{sign_of(state)} ", pen.state(state)))
            pieces.append(Segment(f"{counts[state]} {state_word(state)}  ", pen.text))
    return pieces
