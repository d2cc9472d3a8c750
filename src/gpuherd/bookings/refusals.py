"""Why a booking is not taken: each refusal names the field, what was asked for and what would do."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.model.bookings import Booking, DeviceRef, EpochSeconds
from gpuherd.model.errors import Refused

__all__ = ["Forbidden", "Taken", "TimeChoice", "UnclearTime", "Unfit", "Untimely"]


class TimeChoice(Struct, frozen=True):
    """One reading of an ambiguous time."""

    text: Annotated[str, Meta(description="ISO 8601 with its offset; send this instead.")]
    at: EpochSeconds


class Unfit(Refused):
    """Input that can be read but not be taken; ``path`` is the field, such as ``devices[2]``."""

    def __init__(self, code: str, message: str, *, path: str | None = None) -> None:
        super().__init__(code, message)
        self.path = path


class UnclearTime(Unfit):
    """A local time that comes twice or never on the night the clocks change."""

    def __init__(self, code: str, message: str, *, path: str, choices: tuple[TimeChoice, ...]) -> None:
        super().__init__(code, message, path=path)
        self.choices = choices


class Untimely(Unfit):
    """Something that the booking's own state or time does not allow any more, or not yet."""


class Forbidden(Refused):
    """A booking of someone else's."""


class Taken(Unfit):
    """What was asked for is booked already: by whom, which devices, and when all of it would be free."""

    def __init__(
        self,
        message: str,
        *,
        bookings: tuple[Booking, ...],
        devices: tuple[DeviceRef, ...],
        next_free: int | None,
        path: str | None = None,
    ) -> None:
        super().__init__("conflict", message, path=path)
        self.bookings = bookings
        self.devices = devices
        """Those that were asked for; bookings of others in the way may have more."""
        self.next_free = next_free
