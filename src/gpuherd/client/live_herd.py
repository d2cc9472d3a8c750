"""The herd as the live stream tells it: a snapshot and then changes, applied in place.

Numbers stand in plain lists by row, so that a tick in which eight thousand GPUs change costs a few milliseconds, and
whoever draws looks up only what is in sight.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator

from gpuherd.client.errors import HubSilent
from gpuherd.client.herd_views import UNTOLD_STATE, GpuBooking, Notice
from gpuherd.client.live_columns import NumberColumns
from gpuherd.client.live_messages import HerdChange, Inventory, Numbers, OwnProcesses, Totals
from gpuherd.client.live_nodes import USE_NUMBERS, LiveGpu, LiveNode, shown

__all__ = ["HISTORY_POINTS", "HISTORY_STEP_SECONDS", "LiveHerd"]

GPU_NUMBERS = (
    "utilization_gpu",
    "utilization_memory",
    "memory_used_mebibytes",
    "temperature_celsius",
    "power_watts",
    "fan_ratio",
    "clock_sm_megahertz",
    "power_limit_watts",
    "performance_state",
    "throttle_reasons",
    "ecc_uncorrected",
    "since",
)
HOST_NUMBERS = (
    "received_at",
    "cpu_ratio",
    "load_1m",
    "memory_used_mebibytes",
    "interval_seconds",
    "uptime_seconds",
    "clock_skew_seconds",
)

MOST_ROWS = 2_000_000
"""No herd has more; a row beyond is an error of the hub, and must not eat this machine's memory."""
HISTORY_STEP_SECONDS = 5.0
HISTORY_POINTS = 60
"""Five minutes."""
_UNKNOWN = float("nan")


class LiveHerd:
    """Everything that is known, as of the last message."""

    def __init__(self) -> None:
        self.tick: int | None = None
        self.time = 0.0
        self.tick_seconds = 1.0
        self.totals = Totals()
        self.notices: tuple[Notice, ...] = ()
        self.nodes: list[LiveNode] = []
        """In the order in which people see them."""
        self.version = 0
        """Counts up when a state, a booking or anything of the inventory has changed; numbers alone do not."""
        self.numbers = NumberColumns(GPU_NUMBERS)
        self.hosts = NumberColumns(HOST_NUMBERS)
        self.states: list[str] = []
        self.reasons: list[str] = []
        self.node_states: list[str] = []
        self.node_reasons: list[str] = []
        self.bookings: dict[int, tuple[GpuBooking, ...]] = {}
        self._nodes: dict[int, LiveNode] = {}
        self._own: dict[str, dict[int, tuple[float | None, str | None]]] = {}
        self._history: deque[tuple[array[float], array[float]]] = deque(maxlen=HISTORY_POINTS)
        self._history_at = float("-inf")
        self._noted = 0

    def gpus(self) -> Iterator[LiveGpu]:
        """Give every GPU and slice, in the order of the nodes."""
        for node in self.nodes:
            yield from node.gpus

    def history(self, row: int, points: int) -> tuple[list[float | None], list[float | None]]:
        """Give a GPU's last minutes in at most ``points`` means, oldest first: utilisation, and memory used in MiB."""
        used = self._thinned(_column(row, [sample[1] for sample in self._history]), points)
        return self.utilization_history(row, points), used

    def utilization_history(self, row: int, points: int) -> list[float | None]:
        """Give the utilisation alone; none where it is not known."""
        return self._thinned(_column(row, [sample[0] for sample in self._history]), points)

    def _thinned(self, values: list[float | None], points: int) -> list[float | None]:
        step = -(-HISTORY_POINTS // max(1, points))
        if step == 1:
            return values[-points:]
        # Counted from the first sample on, so that a mean stays the same once its samples are all there.
        first = (self._noted - len(values)) % step
        starts = [0, *range(step - first, len(values), step)] if first else list(range(0, len(values), step))
        ends = [*starts[1:], len(values)]
        return [_mean(values[start:end]) for start, end in zip(starts, ends, strict=True)][-points:]

    # -- messages ----------------------------------------------------------------------------------------------

    def apply(self, change: HerdChange) -> bool:
        """Take one message; false if it does not follow the last one and a new snapshot is needed."""
        if change.after_tick is None:
            self._apply_snapshot(change)
        elif change.after_tick != self.tick:
            return False
        else:
            self._apply_inventory(change)
            self._apply_rest(change)
        return True

    def apply_own(self, own: OwnProcesses) -> None:
        """Take what is told to this viewer alone: all of its processes, instead of those told before."""
        before = self._own
        self._own = {}
        for node_id, pid, started_at, command in zip(
            own.node_id, own.pid, own.started_at, own.command, strict=False
        ):
            self._own.setdefault(node_id, {})[pid] = (started_at, command)
        for row, node in self._nodes.items():
            if node.id in before or node.id in self._own:
                renewed = LiveNode(node.inventory, self._own.get(node.id, {}))
                renewed.numbers = node.numbers
                self._nodes[row] = renewed
        self._sort()

    def _apply_snapshot(self, change: HerdChange) -> None:
        before = {gpu.row: (gpu.node.id, gpu.facts.uuid) for gpu in self.gpus()}
        self._own = {}  # perhaps someone else's by now; the hub tells it again after a snapshot
        self._nodes = {}
        self.numbers = NumberColumns(GPU_NUMBERS)
        self.hosts = NumberColumns(HOST_NUMBERS)
        self.states, self.reasons, self.node_states, self.node_reasons = [], [], [], []
        self.bookings = {}
        self._apply_inventory(change)
        self._sort()
        self._apply_rest(change)
        now = {gpu.row: (gpu.node.id, gpu.facts.uuid) for gpu in self.gpus()}
        if self._history:
            for row, who in before.items():
                if now.get(row) != who:
                    self._forget_history(row)
        if self._history_at > change.time:
            self._history_at = float("-inf")  # the hub's clock was set back

    def _apply_inventory(self, change: HerdChange) -> None:
        for row in change.removed:
            self._forget_node(row)
        self._make_room(change.nodes)
        for inventory in change.nodes:
            before = self._nodes.get(inventory.row)
            if before is not None and before.id != inventory.id:
                self._forget_node(inventory.row)
                before = None
            known = {} if before is None else {gpu.row: gpu.facts.uuid for gpu in before.gpus}
            for gpu in inventory.devices:
                if known.get(gpu.row) != gpu.facts.uuid:
                    self._forget_gpu(gpu.row, with_history=change.after_tick is not None)
            self._nodes[inventory.row] = LiveNode(inventory, self._own.get(inventory.id, {}))
        if change.nodes or change.removed:
            self._sort()

    def _make_room(self, inventories: list[Inventory]) -> None:
        nodes = _rows_needed([inventory.row for inventory in inventories])
        self.hosts.make_room(nodes)
        _extend(self.node_states, nodes, "never")
        _extend(self.node_reasons, nodes, "")
        rows = _rows_needed([gpu.row for inventory in inventories for gpu in inventory.devices])
        self.numbers.make_room(rows)
        _extend(self.states, rows, UNTOLD_STATE)
        _extend(self.reasons, rows, "")

    def _apply_rest(self, change: HerdChange) -> None:
        self.tick = change.tick
        self.time = change.time
        self.tick_seconds = max(0.05, change.tick_seconds)
        self.totals = change.totals
        self.notices = change.notices
        if change.device_states.row or change.device_bookings or change.host_states.row:
            self.version += 1
        try:
            self._apply_gpus(change)
            self._apply_hosts(change)
        except IndexError:
            raise HubSilent("the hub's live stream has data of unknown GPUs") from None
        self._apply_uses(change)
        if change.time >= self._history_at + HISTORY_STEP_SECONDS:
            self._note_history(change.time)

    def _apply_gpus(self, change: HerdChange) -> None:
        self.numbers.write(change.devices, GPU_NUMBERS[:7], change.devices.row)
        self.numbers.write(change.device_details, GPU_NUMBERS[7:11], change.device_details.row)
        told = change.device_states
        self.numbers.write(told, ("since",), told.row)
        for row, state, reason in zip(told.row, told.state, told.reason, strict=False):
            self.states[row] = shown(state, 16)
            self.reasons[row] = reason
        for booked in change.device_bookings:
            if booked.bookings:
                self.bookings[booked.row] = booked.bookings
            else:
                self.bookings.pop(booked.row, None)

    def _apply_hosts(self, change: HerdChange) -> None:
        self.hosts.write(change.hosts, HOST_NUMBERS[:4], change.hosts.row)
        told = change.host_states
        self.hosts.write(told, HOST_NUMBERS[4:], told.row)
        for row, state, reason in zip(told.row, told.state, told.reason, strict=False):
            self.node_states[row] = shown(state, 16)
            self.node_reasons[row] = reason

    def _apply_uses(self, change: HerdChange) -> None:
        told = change.uses
        rows, positions = told.node, told.position
        columns = [(name, getattr(told, name)) for name in USE_NUMBERS]
        columns = [(name, values) for name, values in columns if len(values) == len(rows)]
        last, node = -1, None
        for place, (row, position) in enumerate(zip(rows, positions, strict=False)):
            if row != last:
                last, node = row, self._nodes.get(row)
            if node is None or not 0 <= position < len(node.inventory.uses):
                continue
            for name, values in columns:
                node.numbers[name][position] = values[place]

    def _sort(self) -> None:
        self.version += 1
        self.nodes = sorted(self._nodes.values(), key=lambda node: node.sort_key)

    # -- forgetting --------------------------------------------------------------------------------------------

    def _forget_node(self, row: int) -> None:
        node = self._nodes.pop(row, None)
        if node is None:
            return
        for gpu in node.gpus:
            self._forget_gpu(gpu.row)
        self.hosts.clear(row)
        self.node_states[row], self.node_reasons[row] = "never", ""

    def _forget_gpu(self, row: int, *, with_history: bool = True) -> None:
        self.numbers.clear(row)
        if row < len(self.states):
            self.states[row], self.reasons[row] = UNTOLD_STATE, ""
        self.bookings.pop(row, None)
        if with_history:  # within a snapshot, what stays the same keeps its past
            self._forget_history(row)

    def _forget_history(self, row: int) -> None:
        for columns in self._history:
            for column in columns:
                if row < len(column):
                    column[row] = _UNKNOWN

    def _note_history(self, time: float) -> None:
        missed = (time - self._history_at) / HISTORY_STEP_SECONDS - 1.5
        if self._history and 0 < missed < float("inf"):
            for _ in range(min(HISTORY_POINTS, int(missed) + 1)):
                self._history.append((array("f"), array("f")))  # a gap stays a gap
                self._noted += 1
        self._history_at = time
        self._noted += 1
        self._history.append(
            (_floats(self.numbers["utilization_gpu"]), _floats(self.numbers["memory_used_mebibytes"]))
        )


def _rows_needed(rows: list[int]) -> int:
    if not rows:
        return 0
    if min(rows) < 0 or max(rows) >= MOST_ROWS:
        raise HubSilent("the hub's live stream has invalid rows")
    return max(rows) + 1


def _extend(column: list[str], size: int, value: str) -> None:
    if len(column) < size:
        column.extend([value] * (size - len(column)))


def _floats(column: Numbers) -> array[float]:
    return array("f", [_UNKNOWN if value is None else value for value in column])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _column(row: int, samples: list[array[float]]) -> list[float | None]:
    values = (sample[row] if row < len(sample) else _UNKNOWN for sample in samples)
    return [None if value != value else value for value in values]  # noqa: PLR0124 - NaN is not itself
