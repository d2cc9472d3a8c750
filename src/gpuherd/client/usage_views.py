"""What the hub tells of use, as far as the client needs it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Bookings", "Figures", "Stay", "Stays", "TrendRow", "Trends", "Usage", "UsageRow"]


class Figures(Struct, frozen=True, kw_only=True):
    """Use in numbers; none is unknown."""

    gpu_hours: float = 0.0
    busy_hours: float = 0.0
    idle_hours: float = 0.0
    efficiency: float | None = None
    energy_kwh: float | None = None
    cost: float | None = None


class Bookings(Struct, frozen=True, kw_only=True):
    """Booked against used, in device-hours."""

    booked_hours: float = 0.0
    used_hours: float = 0.0


class UsageRow(Struct, frozen=True, kw_only=True):
    """The use of one user, group, node, type, job or device."""

    label: str
    figures: Figures
    bookings: Bookings | None = None


class MissingPart(Struct, frozen=True, kw_only=True):
    """A stretch of time of which something is missing."""

    start: float
    end: float
    reason: str = ""


class Usage(Struct, frozen=True, kw_only=True):
    """Who or what used how much."""

    start: float
    end: float
    by: str
    rows: tuple[UsageRow, ...] = ()
    omitted_rows: int = 0
    totals: Figures
    bookings: Bookings | None = None
    capacity_hours: float | None = None
    currency: str | None = None
    missing: tuple[MissingPart, ...] = ()


class TrendRow(Struct, frozen=True, kw_only=True):
    """How much one user holds now and held lately."""

    label: str
    reserved_gpus: float = 0.0
    used_gpus: float = 0.0
    idle_gpus: float = 0.0
    mean_2h: float = 0.0
    mean_24h: float = 0.0
    mean_1w: float = 0.0
    trend_2h: str = ""
    trend_24h: str = ""
    trend_1w: str = ""


class Trends(Struct, frozen=True, kw_only=True):
    """Whom to ask for a GPU."""

    rows: tuple[TrendRow, ...] = ()
    free: TrendRow
    earlier_until: float | None = None


class Stay(Struct, frozen=True, kw_only=True):
    """Someone's stay on one device."""

    node: str
    uuid: str
    device: str | None = None
    """As people write it; none if it is gone, and of a hub that does not tell."""
    type: str = ""
    user: str | None = None
    job: str | None = None
    command: str | None = None
    started_at: float
    ended_at: float | None = None
    last_seen_at: float
    figures: Figures


class Stays(Struct, frozen=True, kw_only=True):
    """Stays in a range, latest first."""

    sessions: tuple[Stay, ...] = ()
    is_complete: bool = True
