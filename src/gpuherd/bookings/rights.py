"""Whose a booking is, and who may change it."""

from __future__ import annotations

from gpuherd.model.bookings import Booking
from gpuherd.model.people import Account, Viewer
from gpuherd.records.booking_rows import HOLDING

__all__ = ["editor_of", "is_editor", "is_over", "is_own", "may_edit"]


def is_own(booking: Booking, account: Account | None) -> bool:
    """Tell whether it is someone's own, or of a group of theirs."""
    if account is None:
        return False
    return booking.owner_id == account.id or (booking.group is not None and booking.group in account.groups)


def is_editor(booking: Booking, account: Account) -> bool:
    """Tell whether someone may change it, as long as it can be changed at all."""
    return account.role == "admin" or (account.role == "member" and is_own(booking, account))


def is_over(booking: Booking, now: float) -> bool:
    """Tell whether it holds nothing any more: ended, cancelled or refused."""
    return booking.ends_at <= now or booking.state not in HOLDING


def editor_of(viewer: Viewer) -> Account | None:
    """Give the account that may change bookings in this request; none if nobody may."""
    return viewer.account if viewer.may("member", "book") else None


def may_edit(booking: Booking, editor: Account | None, now: float) -> bool:
    """Tell whether ``editor_of`` a viewer may change it now."""
    return editor is not None and is_editor(booking, editor) and not is_over(booking, now)
