"""The [bookings] table of gpuherd.toml: who may book what, how far ahead and for how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.bookings.comments_settings import CommentsSettings
from gpuherd.bookings.hook_settings import HookSettings
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.times import read_zone
from gpuherd.model.errors import Misconfigured
from gpuherd.model.people import Role
from gpuherd.model.text import Label

__all__ = ["BookingRule", "BookingSettings"]

Days = Annotated[float, Meta(gt=0, le=36_500)]
Devices = Annotated[int, Meta(ge=0, le=1_000_000)]
Hours = Annotated[float, Meta(ge=0, le=1e9)]


class BookingRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[bookings.rules]]`` table: other limits for some people.

    Whoever it fits is measured by it instead of the limits of ``[bookings]``. If several fit someone, the most generous
    word on each limit counts; a limit that a rule does not name is that of ``[bookings]``.
    """

    groups: Annotated[
        tuple[Label, ...],
        Meta(description="Groups that the rule applies to. Empty: all."),
    ] = ()
    roles: Annotated[tuple[Role, ...], Meta(description="Roles that the rule applies to. Empty: all.")] = ()
    horizon_days: Annotated[Days | None, Meta(description="As `horizon_days` of `[bookings]`.")] = None
    max_days: Annotated[Days | None, Meta(description="As `max_days` of `[bookings]`.")] = None
    max_devices: Annotated[Devices | None, Meta(description="As `max_devices` of `[bookings]`.")] = None
    gpu_hours_ahead: Annotated[Hours | None, Meta(description="As `gpu_hours_ahead` of `[bookings]`.")] = None
    approval: Annotated[bool | None, Meta(description="As `approval` of `[bookings]`.")] = None
    unlimited: Annotated[bool, Meta(description="No limits and no approval.")] = False


class BookingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[bookings]`` table of gpuherd.toml: what members can book. Admins have no limits."""

    enabled: Annotated[bool, Meta(description="Whether anything can be booked.")] = True
    zone: Annotated[str, Meta(max_length=64, description="IANA time zone for times without one.")] = "UTC"
    horizon_days: Annotated[Days, Meta(description="A booking must start within this many days.")] = 60.0
    max_days: Annotated[Days, Meta(description="Longest booking, in days.")] = 14.0
    max_devices: Annotated[
        Devices | None,
        Meta(description="Devices that one person can book for the same time. Default: any number."),
    ] = None
    gpu_hours_ahead: Annotated[
        Hours | None,
        Meta(
            description="Device-hours that one person can have booked from now on, over all bookings. Default: "
            "any number."
        ),
    ] = None
    approval: Annotated[
        bool,
        Meta(
            description="Bookings of members need an admin's approval. Until then, their devices are reserved."
        ),
    ] = False
    quiet: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...],
        Meta(
            description="Devices that nobody can book: patterns of a node's id or display name, such as login-*, "
            "optionally with the index or UUID of a device: gpu01/0, gpu01/GPU-4f….",
        ),
    ] = ()
    rules: Annotated[
        tuple[BookingRule, ...],
        Meta(description="Other limits for some groups or roles: `[[bookings.rules]]` tables, see below."),
    ] = ()
    hooks: Annotated[
        tuple[HookSettings, ...],
        Meta(description="Notifications about bookings: `[[bookings.hooks]]` tables, see below."),
    ] = ()
    comments: Annotated[
        CommentsSettings | None,
        Meta(description="The comments.json of an older page: a `[bookings.comments]` table, see below."),
    ] = None

    def check(self) -> None:
        """Raise ``Misconfigured`` for what cannot be meant."""
        try:
            read_zone(self.zone)
        except Unfit as error:
            raise Misconfigured(f"bookings.zone: {error}") from error
        for number, rule in enumerate(self.rules):
            if not rule.groups and not rule.roles:
                raise Misconfigured(
                    f"bookings.rules[{number}]: matches everyone; list groups or roles, or set the limits "
                    "in [bookings]"
                )
        first_with: dict[tuple[str | None, tuple[str, ...]], int] = {}
        for number, hook in enumerate(self.hooks):
            _check(hook.check, f"bookings.hooks[{number}]")
            first = first_with.setdefault((hook.url, hook.command), number)
            if first != number:
                # What was told already is remembered by whom it was told to: two would take it from each other.
                raise Misconfigured(
                    f"bookings.hooks[{number}]: has the same {'url' if hook.url else 'command'} as "
                    f"bookings.hooks[{first}]; merge them into one table and list all events in on"
                )
        if self.comments is not None:
            _check(self.comments.check, "bookings.comments")


def _check(check: Callable[[], None], place: str) -> None:
    try:
        check()
    except Misconfigured as error:
        raise Misconfigured(f"{place}.{error}" if ":" in str(error) else f"{place}: {error}") from error
