"""Bookings to be made, with everything that does not matter filled in."""

from __future__ import annotations

from typing import Any

from gpuherd.model.bookings import DeviceRef
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft

__all__ = ["BY", "HOUR", "NOW", "START", "A", "B", "C", "draft"]

HOUR = 3600
NOW = 1_800_000_000.0
START = int(NOW) + HOUR
BY = Actor(account_id=None, label="test")
A, B, C = DeviceRef("n1", "GPU-a"), DeviceRef("n1", "GPU-b"), DeviceRef("n2", "GPU-a")
"""The last shares its UUID with the first: only node and UUID together tell devices apart."""


def draft(*devices: DeviceRef, at: int = START, hours: float = 1, **more: Any) -> BookingDraft:
    """Draft a booking of these devices from ``at`` on."""
    wanted: dict[str, Any] = {
        "owner_id": None,
        "owner_name": "Ada",
        "devices": devices,
        "starts_at": at,
        "ends_at": at + int(hours * HOUR),
    }
    return BookingDraft(**{**wanted, **more})
