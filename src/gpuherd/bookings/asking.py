"""Who asks, and the checks that every wish must pass whatever it is for."""

from __future__ import annotations

from msgspec import Struct

from gpuherd.bookings.policy import Allowance
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.times import GRACE_SECONDS, format_duration
from gpuherd.model.people import Account, Actor
from gpuherd.model.text import clean
from gpuherd.records.booking_limits import Limits

__all__ = ["Asker", "check_group", "check_length", "limits_of", "not_past"]

SHORTEST_SECONDS = 60
MAX_BOOKINGS_AHEAD = 500
"""Of one person who is not an admin. Each hub holds all bookings in memory; a script could make tens of thousands."""


class Asker(Struct, frozen=True, kw_only=True):
    """Who wants something, as the rules and the audit log need to know."""

    account: Account
    by: Actor


def check_group(group: str | None, account: Account) -> None:
    """Raise ``Unfit`` for a group that the account may not book on behalf of; an admin may for any."""
    if group is None or group in account.groups:
        return
    if account.role == "admin" and group and group == clean(" ".join(group.split())):
        return
    known = ", ".join(account.groups) or "none"
    raise Unfit("not_in_group", f"you are not in the group {clean(group, 60)}; yours: {known}", path="group")


def not_past(starts_at: int, now: int, *, path: str = "start") -> int:
    """Give a start that is not past: one of a few minutes ago means now, an earlier one is refused."""
    if starts_at >= now:
        return starts_at
    if now - starts_at <= GRACE_SECONDS:
        return now
    ago = format_duration((now - starts_at) // 60 * 60)
    raise Unfit("in_the_past", f"the start is {ago} ago; the past cannot be booked", path=path)


def check_length(starts_at: int, ends_at: int, *, path: str = "end") -> None:
    """Raise ``Unfit`` for a booking that ends before it starts, or as good as at once."""
    if ends_at <= starts_at:
        raise Unfit("reversed", "the end is not after the start; choose a later end", path=path)
    if ends_at - starts_at < SHORTEST_SECONDS:
        raise Unfit("too_short", "a booking must last at least a minute; choose a later end", path=path)


def limits_of(allowance: Allowance) -> Limits | None:
    """Give what the records must check; none if nothing."""
    if allowance.is_exempt:
        return None
    hours = allowance.gpu_hours_ahead
    return Limits(
        max_bookings=MAX_BOOKINGS_AHEAD,
        max_devices_at_once=allowance.max_devices,
        gpu_seconds_ahead=None if hours is None else round(hours * 3600),
    )
