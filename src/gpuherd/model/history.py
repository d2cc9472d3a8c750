"""What was: series of numbers over time, who used what, and reports about it, as they are told to people."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

__all__ = [
    "DISTRIBUTION_EDGES",
    "MONTH_PATTERN",
    "USAGE_KEYS",
    "BookingUsage",
    "Distribution",
    "HerdSeries",
    "HourMap",
    "MetricSeries",
    "MissingPart",
    "MonthlyReport",
    "Resolution",
    "SeriesView",
    "StateSpan",
    "SubjectSeries",
    "Trend",
    "TrendRow",
    "TrendsView",
    "UsageFigures",
    "UsageKey",
    "UsageOverTime",
    "UsageReport",
    "UsageRow",
    "UsageSession",
    "UsageSessions",
    "UsageStep",
    "UserSeries",
]

Numbers = list[float | None]
"""Null is unknown: a gap, never nothing."""
Resolution = Literal["raw", "minute", "quarter_hour"]
"""What an answer was made from: every sample, or least, mean and greatest of each minute or quarter of an hour."""
MONTH_PATTERN = r"^\d{4}-(0[1-9]|1[0-2])$"
DISTRIBUTION_EDGES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Bounds of the classes of utilisation; each class has its lower bound, and the last one also its upper."""


class MissingPart(Struct, frozen=True, kw_only=True):
    """A period with missing data, or with data that is no longer stored."""

    start: float
    end: float
    reason: Annotated[str, Meta(description="Such as: a file cannot be read; no longer stored.")]


class MetricSeries(Struct, frozen=True, kw_only=True):
    """One metric over time; each list is as long as ``times`` of the response. ``low`` and ``high`` are minimum and
    maximum of the samples behind each point. For single samples, they equal ``mean``.
    """

    mean: Numbers
    low: Numbers
    high: Numbers


class StateSpan(Struct, frozen=True, kw_only=True):
    """A period in which a device was in one state. For summaries, the state that it had for most of each step."""

    start: float
    end: float
    state: str


class SubjectSeries(Struct, frozen=True, kw_only=True):
    """One device or host over time."""

    node_id: str
    uuid: Annotated[str | None, Meta(description="UUID of a device; null for the host itself.")] = None
    metrics: Annotated[dict[str, MetricSeries], Meta(description="By metric, such as power_watts.")] = {}
    states: Annotated[tuple[StateSpan, ...], Meta(description="For a device; gaps have no entry.")] = ()


class SeriesView(Struct, frozen=True, kw_only=True):
    """Numbers over a range of time, on a grid of equal steps, oldest first."""

    start: float
    end: float
    step_seconds: Annotated[
        float, Meta(description="Time between two points; each stands for its whole step.")
    ]
    resolution: Annotated[Resolution, Meta(description="Lowest resolution of the data behind the points.")]
    times: Annotated[
        list[float], Meta(description="Start of each step, UTC epoch seconds by the hub's clock.")
    ]
    subjects: tuple[SubjectSeries, ...]
    missing: tuple[MissingPart, ...] = ()


class HerdSeries(Struct, frozen=True, kw_only=True):
    """The whole herd over time, or the devices of one type."""

    start: float
    end: float
    step_seconds: float
    resolution: Resolution
    times: list[float]
    types: Annotated[tuple[str, ...], Meta(description="Short names of the types in this range.")]
    devices: Annotated[
        dict[str, Numbers], Meta(description="Mean number of devices in each state, per step.")
    ]
    utilization_gpu: Annotated[Numbers, Meta(description="Mean over all devices that reported a value.")]
    memory_ratio: Annotated[Numbers, Meta(description="Used share of all memory.")]
    power_watts: Annotated[Numbers, Meta(description="Sum over all devices that reported a value.")]
    missing: tuple[MissingPart, ...] = ()


class UserSeries(Struct, frozen=True, kw_only=True):
    """What one user held and used over time."""

    user: str
    start: float
    end: float
    step_seconds: float
    times: list[float]
    held_gpus: Annotated[Numbers, Meta(description="Mean number of GPUs held; shared ones count by share.")]
    busy_gpus: Annotated[Numbers, Meta(description="Of these, busy.")]
    power_watts: Numbers
    memory_bytes: Annotated[Numbers, Meta(description="Mean device memory held.")]


UsageKey = Literal["user", "group", "node", "type", "job", "device"]
USAGE_KEYS: tuple[UsageKey, ...] = get_args(UsageKey)
UsageStep = Literal["hour", "day", "week", "month"]


class UsageFigures(Struct, frozen=True, kw_only=True):
    """Usage in numbers. The time of a shared GPU is divided among its users by the memory they hold. ``busy + idle
    + unknown = gpu_hours``.
    """

    gpu_hours: Annotated[
        float, Meta(description="GPUs held × hours; slices count as their share of the GPU.")
    ]
    busy_hours: Annotated[
        float, Meta(description="Of these, busy: at or above availability.busy_utilization.")
    ]
    idle_hours: Annotated[float, Meta(description="Of these, held idle: the waste.")]
    unknown_hours: Annotated[float, Meta(description="Of these, with unknown utilisation.")]
    efficiency: Annotated[
        float | None,
        Meta(description="Busy share of the hours with known utilisation; null if there are none."),
    ]
    mean_utilization: Annotated[
        float | None, Meta(description="Mean utilisation while held; null if unknown.")
    ]
    memory_gib_hours: float
    energy_kwh: Annotated[float | None, Meta(description="Null if no device reported its power.")]
    cost: Annotated[
        float | None, Meta(description="Based on the prices in [usage]; null if there are none.")
    ] = None
    idle_cost: Annotated[
        float | None,
        Meta(description="Cost of the idle hours, based on the price of a GPU-hour; null without one."),
    ] = None


class BookingUsage(Struct, frozen=True, kw_only=True):
    """Booked and used device-hours of bookings in the range, up to now."""

    booked_hours: float
    used_hours: Annotated[float, Meta(description="Of these, used by the holder.")]
    others_hours: Annotated[float, Meta(description="Of these, used only by others.")]
    unused_hours: Annotated[float, Meta(description="Of these, used by nobody.")]


class UsageRow(Struct, frozen=True, kw_only=True):
    """The usage of one user, group, node, type, job or device."""

    key: Annotated[str | None, Meta(description="Name or id; null: the owner is unknown.")]
    label: Annotated[str, Meta(description="Display name.")]
    figures: UsageFigures
    users: int
    devices: int
    sessions: int
    bookings: Annotated[BookingUsage | None, Meta(description="By user, group, node, type and device.")] = (
        None
    )


class UsageReport(Struct, frozen=True, kw_only=True):
    """Who or what used how much of the herd in a range, most first."""

    start: Annotated[
        float, Meta(description="The range as it was counted: in steps of 15 minutes, older in hours.")
    ]
    end: float
    by: UsageKey
    rows: tuple[UsageRow, ...]
    omitted_rows: Annotated[
        int, Meta(description="Number of rows beyond the limit; the totals include them.")
    ] = 0
    totals: UsageFigures
    bookings: BookingUsage | None = None
    capacity_hours: Annotated[
        float | None, Meta(description="Available GPU-hours of the herd: reported and without a fault.")
    ] = None
    free_hours: Annotated[float | None, Meta(description="Of these, used by nobody.")] = None
    currency: str | None = None
    missing: tuple[MissingPart, ...] = ()


class UsageOverTime(Struct, frozen=True, kw_only=True):
    """The largest users, groups, nodes, types or jobs per step; all others together come last."""

    start: float
    end: float
    by: UsageKey
    step: UsageStep
    times: Annotated[
        list[float], Meta(description="Start of each step in the report's time zone, UTC epoch seconds.")
    ]
    keys: Annotated[list[str | None], Meta(description="Null: unknown.")]
    labels: list[str]
    gpu_hours: Annotated[list[list[float]], Meta(description="For each key, one number per step.")]
    busy_hours: list[list[float]]
    others_gpu_hours: list[float]
    others_busy_hours: list[float]
    missing: tuple[MissingPart, ...] = ()


Trend = Literal["up", "down", "level"]


class TrendRow(Struct, frozen=True, kw_only=True):
    """What one user holds now and held recently: who to ask."""

    user: Annotated[str | None, Meta(description="Null: unknown.")]
    label: str
    reserved_gpus: Annotated[
        float,
        Meta(description="GPUs booked right now; in the row of free ones, GPUs that nobody has booked."),
    ]
    used_gpus: Annotated[
        float, Meta(description="GPUs held now; shared ones count by their share of memory.")
    ]
    idle_gpus: Annotated[float, Meta(description="Of these, held idle.")]
    mean_2h: Annotated[
        float, Meta(description="Moving average of used GPUs, with a time constant of 2 hours.")
    ]
    mean_24h: float
    mean_1w: float
    trend: Annotated[Trend, Meta(description="Trend: the 2-hour average compared with the 24-hour average.")]
    trend_2h: Annotated[Trend, Meta(description="Current use compared with the 2-hour average.")]
    trend_24h: Annotated[Trend, Meta(description="Current use compared with the 24-hour average.")]
    trend_1w: Annotated[Trend, Meta(description="Current use compared with the average of a week.")]


class TrendsView(Struct, frozen=True, kw_only=True):
    """Who to ask for a GPU: users who hold most come first."""

    time: float
    rows: tuple[TrendRow, ...]
    free: Annotated[TrendRow, Meta(description="The GPUs that nobody uses, in the same format.")]
    earlier_until: Annotated[
        float | None,
        Meta(
            description="Until then, the averages are those of an older page (`usage.earlier`). Null: gpuherd's own."
        ),
    ] = None


class HourMap(Struct, frozen=True, kw_only=True):
    """When the herd is busy: seven days by 24 hours, Monday first, in one time zone."""

    start: float
    end: float
    zone: str
    busy: Annotated[list[Numbers], Meta(description="Share of busy devices, 7 lists of 24.")]
    held: Annotated[list[Numbers], Meta(description="Share of devices held idle.")]
    free: Annotated[list[Numbers], Meta(description="Share of free devices.")]
    hours: Annotated[list[list[float]], Meta(description="Device-hours behind each share.")]
    missing: tuple[MissingPart, ...] = ()


class Distribution(Struct, frozen=True, kw_only=True):
    """Utilisation of devices in use: device-hours by utilisation."""

    start: float
    end: float
    edges: Annotated[
        list[float], Meta(description="Boundaries of the classes, one more than there are classes.")
    ]
    hours: Annotated[list[float], Meta(description="Device-hours in each class, of devices in use.")]
    by_type: dict[str, list[float]]
    missing: tuple[MissingPart, ...] = ()


class UsageSession(Struct, frozen=True, kw_only=True):
    """A session of a user on one device."""

    id: str
    node_id: str
    uuid: str
    node: Annotated[str, Meta(description="Display name of the node.")]
    device: Annotated[str | None, Meta(description="The device, as `gpu01/3`; null if it is gone.")] = None
    type: Annotated[str, Meta(description="Short name of the device's type.")]
    user: Annotated[str | None, Meta(description="Null: unknown.")]
    container: str | None = None
    job: str | None = None
    command: Annotated[
        str | None,
        Meta(
            description="In full for the user and admins, while it is stored; otherwise the program's name."
        ),
    ] = None
    started_at: float
    ended_at: Annotated[float | None, Meta(description="Null: still running.")]
    last_seen_at: float
    figures: UsageFigures


class UsageSessions(Struct, frozen=True, kw_only=True):
    """Sessions on devices in a range, latest first."""

    start: float
    end: float
    sessions: tuple[UsageSession, ...]
    is_complete: Annotated[bool, Meta(description="False: there are more than the limit.")]
    missing: tuple[MissingPart, ...] = ()


class MonthlyReport(Struct, frozen=True, kw_only=True):
    """A month in the report's time zone, and the month before for comparison."""

    month: Annotated[str, Meta(pattern=MONTH_PATTERN)]
    zone: str
    is_complete: Annotated[bool, Meta(description="False: the month is not over.")]
    by_user: UsageReport
    by_group: UsageReport
    by_type: UsageReport
    by_node: UsageReport
    previous: UsageFigures | None
    hours: HourMap
    distribution: Distribution
    by_day: UsageOverTime
