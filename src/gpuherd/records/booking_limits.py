"""How much someone may hold at a time and ahead of now. Pure: what is held comes from the records."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from msgspec import Struct

from gpuherd.model.errors import Refused

__all__ = ["BookedSpan", "Limits", "Usage", "check_limits", "usage_of"]


class Limits(Struct, frozen=True, kw_only=True):
    """What one owner may hold; none is no limit. Counted over all they booked, also on behalf of groups."""

    max_devices_at_once: int | None = None
    gpu_seconds_ahead: int | None = None
    max_bookings: int | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """What one owner holds from now on."""

    devices_at_once: int
    """At the time when it is most."""
    gpu_seconds_ahead: int


class BookedSpan(NamedTuple):
    """Some devices from when to when, in UTC seconds."""

    starts_at: int
    ends_at: int
    devices: int


def _peak(spans: Iterable[BookedSpan], within: Collection[BookedSpan]) -> int:
    """Give the most devices held at a moment of the times ``within``."""
    held, asked = sorted(spans), sorted(set(within))
    # It is reached when one of them begins: within a time asked for, or before it and still running at its start.
    moments = sorted({moment for span in asked for moment in _moments(span, held)})
    steps = sorted(
        [(span.starts_at, span.devices) for span in held] + [(span.ends_at, -span.devices) for span in held]
    )
    peak = count = position = 0
    for moment in moments:
        while position < len(steps) and steps[position][0] <= moment:
            count += steps[position][1]
            position += 1
        peak = max(peak, count)
    return peak


def _moments(asked: BookedSpan, held: Iterable[BookedSpan]) -> Iterable[int]:
    yield asked.starts_at
    yield from (span.starts_at for span in held if asked.starts_at <= span.starts_at < asked.ends_at)


def _gpu_seconds(spans: Iterable[BookedSpan], now: int) -> int:
    return sum(span.devices * max(0, span.ends_at - max(span.starts_at, now)) for span in spans)


def usage_of(spans: Collection[BookedSpan], *, now: int) -> Usage:
    """Add up what is held."""
    return Usage(devices_at_once=_peak(spans, spans), gpu_seconds_ahead=_gpu_seconds(spans, now))


def check_limits(
    limits: Limits,
    held: Collection[BookedSpan],
    wanted: Collection[BookedSpan],
    *,
    replaced: Collection[BookedSpan] = (),
    now: int,
) -> None:
    """Raise ``Refused`` if what is wanted besides what is held goes beyond a limit.

    ``replaced`` is held until now and given up for what is wanted: a limit that it exceeded already may be exceeded
    again, but not by more.
    """
    after, before = [*held, *wanted], [*held, *replaced]
    if limits.max_bookings is not None and len(after) > max(limits.max_bookings, len(before)):
        raise Refused(
            "too_many_bookings",
            f"that would be {len(after)} bookings that have not ended; {limits.max_bookings} are allowed. "
            "Make fewer, longer bookings, or release those you do not need",
        )
    if limits.max_devices_at_once is not None:
        peak = _peak(after, wanted)
        if peak > limits.max_devices_at_once and peak > _peak(before, replaced):
            raise Refused(
                "too_many_devices",
                f"that would be {peak} devices at a time; {limits.max_devices_at_once} are allowed. Choose "
                "fewer, or another time",
            )
    if limits.gpu_seconds_ahead is not None:
        seconds = _gpu_seconds(after, now)
        if seconds > limits.gpu_seconds_ahead and seconds > _gpu_seconds(before, now):
            raise Refused(
                "too_many_gpu_hours",
                f"that would be {seconds / 3600:.4g} GPU-hours from now on; "
                f"{limits.gpu_seconds_ahead / 3600:.4g} are allowed. Choose fewer devices or a shorter "
                "time, or release bookings you do not need",
            )
