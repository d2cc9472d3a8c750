"""Why a booking is not taken: each refusal names the field, what was asked for and what would do."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.model.bookings import EpochSeconds
from gpuherd.model.errors import Refused

__all__ = ["TimeChoice", "UnclearTime", "Unfit"]


class TimeChoice(Struct, frozen=True):
    """One way to read a time that can be read in two ways."""

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
