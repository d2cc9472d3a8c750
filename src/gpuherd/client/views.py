"""What the hub tells, as far as the client needs it. A newer hub may tell more; that is passed over."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpuherd.model.text import clip

__all__ = [
    "Account",
    "AcknowledgedFaults",
    "BookedDevice",
    "BookedTime",
    "Booking",
    "BookingRules",
    "Conflict",
    "Device",
    "HubError",
    "NewToken",
    "Session",
    "TimeChoice",
    "Timeline",
]


class AcknowledgedFaults(Struct, frozen=True, kw_only=True):
    """What was acknowledged of a GPU."""

    faults: tuple[str, ...] = ()


class Account(Struct, frozen=True, kw_only=True):
    """Who is logged in."""

    name: str
    display_name: str = ""
    role: str = ""
    groups: tuple[str, ...] = ()


class Session(Struct, frozen=True, kw_only=True):
    """Who asks, and what they may do."""

    account: Account | None = None
    via: str = ""
    scopes: tuple[str, ...] = ()
    is_set_up: bool = True
    zone: str = "UTC"
    bookings_enabled: bool = True


class NewToken(Struct, frozen=True, kw_only=True):
    """A token that was just made."""

    id: str
    token: str
    expires_at: float


class BookedDevice(Struct, frozen=True, kw_only=True):
    """A device of a booking."""

    node_id: str
    uuid: str
    node_name: str
    index: int | None = None
    parent_index: int | None = None
    short_name: str | None = None
    is_gone: bool = False

    @property
    def place(self) -> str:
        """Give ``gpu07/3``, of a slice ``gpu07/3.1``; of a device that is gone the beginning of its UUID."""
        if self.index is None:
            return f"{self.node_name}/{clip(self.uuid, 13)}"
        index = f"{self.index}" if self.parent_index is None else f"{self.parent_index}.{self.index}"
        return f"{self.node_name}/{index}"


class BookingRules(Struct, frozen=True, kw_only=True):
    """What a client must know about how a hub takes bookings; older hubs do not say it."""

    takes_idempotency_keys: bool = False


class Booking(Struct, frozen=True, kw_only=True):
    """One booking."""

    id: int
    title: str = ""
    comment: str = ""
    holder: str = ""
    group: str | None = None
    devices: tuple[BookedDevice, ...] = ()
    starts_at: int
    ends_at: int
    state: str = "active"
    phase: Literal["past", "current", "upcoming"] | str = "current"  # noqa: PYI051 - a newer hub may know more
    series_id: int | None = None
    released_from: int | None = None
    revision: int = 0
    is_own: bool = False


class Device(Struct, frozen=True, kw_only=True):
    """A device that can be booked."""

    node_id: str
    node_name: str
    uuid: str
    index: int | None = None
    parent_index: int | None = None
    short_name: str | None = None
    is_quiet: bool = False
    """It is kept out of booking."""


class BookedTime(Struct, frozen=True, kw_only=True):
    """A booking in the timeline; ``devices`` are positions in the timeline's devices."""

    id: int
    holder: str = ""
    starts_at: int
    ends_at: int
    is_own: bool = False
    devices: tuple[int, ...] = ()


class Timeline(Struct, frozen=True, kw_only=True):
    """Devices × time: what is booked within a span."""

    time: float | None = None
    """By the hub's clock, epoch seconds."""
    is_current: bool = True
    """False while the hub cannot ask its records: bookings as they were last known."""
    devices: tuple[Device, ...] = ()
    bookings: tuple[BookedTime, ...] = ()


class Conflict(Struct, frozen=True, kw_only=True):
    """A booking that is in the way."""

    booking_id: int
    holder: str
    starts_at: int
    ends_at: int
    device: BookedDevice


class TimeChoice(Struct, frozen=True, kw_only=True):
    """One way to read a time that can be read in two ways."""

    text: str
    at: int


class HubError(Struct, frozen=True, kw_only=True):
    """What the hub says is wrong."""

    code: str
    message: str
    path: str | None = None
    choices: tuple[TimeChoice, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    next_free: int | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body of every answer that is not a success."""

    error: HubError
