"""Idempotency keys: a booking request that is sent twice with the same key books once.

A key belongs to an account and is kept for as long as a request may sensibly be repeated. Only digests are stored.
"""

from __future__ import annotations

import hashlib

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, or_, select

from gpuherd.model.bookings import Booking
from gpuherd.model.errors import Refused
from gpuherd.records.booking_rows import read_bookings
from gpuherd.records.tables import booking_keys, bookings

__all__ = ["KEY_SECONDS", "BookingKey", "KeyReused", "booked_with", "forget_keys", "keep_key", "key_of"]

KEY_SECONDS = 86_400
"""How long a key is remembered at least."""


class BookingKey(Struct, frozen=True, kw_only=True):
    """A key, and the request it was sent with."""

    account_id: str
    key_digest: str
    request_digest: str


class KeyReused(Refused):
    """The key was used for another request."""

    def __init__(self) -> None:
        super().__init__(
            "idempotency_key_reused",
            "this Idempotency-Key was used for another booking; use a new key for each new booking",
        )


def key_of(account_id: str, key: str, request: bytes) -> BookingKey:
    """Make a key from what the client sent; ``request`` is everything that decides what is booked."""
    return BookingKey(
        account_id=account_id,
        key_digest=hashlib.sha256(key.encode()).hexdigest(),
        request_digest=hashlib.sha256(request).hexdigest(),
    )


def booked_with(connection: Connection, key: BookingKey) -> tuple[Booking, ...]:
    """Return the current state of the bookings made with this key; ``KeyReused`` if the request was another one."""
    found = connection.execute(
        select(booking_keys.c.request_digest, booking_keys.c.booking_id).where(
            booking_keys.c.account_id == key.account_id,
            booking_keys.c.key_digest == key.key_digest,
        )
    ).first()
    if found is None:
        return ()
    if found.request_digest != key.request_digest:
        raise KeyReused
    return read_bookings(
        connection, or_(bookings.c.id == found.booking_id, bookings.c.series_id == found.booking_id)
    )


def keep_key(connection: Connection, key: BookingKey, booking_id: int, *, now: float) -> None:
    """Store what was booked with a key."""
    connection.execute(
        insert(booking_keys).values(
            account_id=key.account_id,
            key_digest=key.key_digest,
            request_digest=key.request_digest,
            booking_id=booking_id,
            made_at=now,
        )
    )


def forget_keys(connection: Connection, now: float) -> int:
    """Delete keys that are too old and return their number; ``now`` must be trustworthy."""
    return connection.execute(
        delete(booking_keys).where(booking_keys.c.made_at <= now - KEY_SECONDS)
    ).rowcount
