"""What someone may book: limits by role and group, and devices that are kept out of it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TypeVar

from msgspec import Struct

from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.settings import BookingRule, BookingSettings
from gpuherd.bookings.times import format_duration
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.people import Account

__all__ = ["Allowance", "allowance_of", "check_span", "general_allowance", "is_quiet", "stricter"]

T = TypeVar("T", int, float)
DAY = 86_400


class Allowance(Struct, frozen=True, kw_only=True):
    """The limits of one person; none does not apply."""

    is_exempt: bool = False
    horizon_days: float | None = None
    max_days: float | None = None
    max_devices: int | None = None
    gpu_hours_ahead: float | None = None
    needs_approval: bool = False


def allowance_of(account: Account, settings: BookingSettings) -> Allowance:
    """Work out someone's limits: of the rules that fit, the most generous word on each; admins have none."""
    if account.role == "admin":
        return Allowance(is_exempt=True)
    rules = [rule for rule in settings.rules if _fits(rule, account)]
    if any(rule.unlimited for rule in rules):
        return Allowance()
    general = general_allowance(settings)
    approvals = [rule.approval for rule in rules if rule.approval is not None]
    return Allowance(
        horizon_days=_most([rule.horizon_days for rule in rules], general.horizon_days),
        max_days=_most([rule.max_days for rule in rules], general.max_days),
        max_devices=_most([rule.max_devices for rule in rules], general.max_devices),
        gpu_hours_ahead=_most([rule.gpu_hours_ahead for rule in rules], general.gpu_hours_ahead),
        needs_approval=all(approvals) if approvals else general.needs_approval,
    )


def general_allowance(settings: BookingSettings) -> Allowance:
    """Give the limits of someone of whom no rule speaks."""
    return Allowance(
        horizon_days=settings.horizon_days,
        max_days=settings.max_days,
        max_devices=settings.max_devices,
        gpu_hours_ahead=settings.gpu_hours_ahead,
        needs_approval=settings.approval,
    )


def stricter(one: Allowance, other: Allowance) -> Allowance:
    """Give what both people may: of each limit the lower one."""
    return Allowance(
        is_exempt=one.is_exempt and other.is_exempt,
        horizon_days=_least(one.horizon_days, other.horizon_days),
        max_days=_least(one.max_days, other.max_days),
        max_devices=_least(one.max_devices, other.max_devices),
        gpu_hours_ahead=_least(one.gpu_hours_ahead, other.gpu_hours_ahead),
        needs_approval=one.needs_approval or other.needs_approval,
    )


def _fits(rule: BookingRule, account: Account) -> bool:
    in_group = not rule.groups or bool(set(rule.groups) & set(account.groups))
    return in_group and (not rule.roles or account.role in rule.roles)


def _most(said: list[T | None], otherwise: T | None) -> T | None:
    given = [limit for limit in said if limit is not None]
    return max(given) if given else otherwise


def _least(one: T | None, other: T | None) -> T | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def check_span(allowance: Allowance, *, starts_at: int, ends_at: int, now: int, path: str = "start") -> None:
    """Raise ``Unfit`` for a span that is too far ahead or too long, naming the limit and what was asked for."""
    if allowance.horizon_days is not None and starts_at > now + round(allowance.horizon_days * DAY):
        ahead = format_duration((starts_at - now) // 3600 * 3600)
        raise Unfit(
            "beyond_horizon",
            f"bookings must start within {allowance.horizon_days:g} days; this one would start in {ahead}",
            path=path,
        )
    if allowance.max_days is not None and ends_at - starts_at > round(allowance.max_days * DAY):
        raise Unfit(
            "too_long",
            f"bookings can last at most {allowance.max_days:g} days; this one would last "
            f"{format_duration(ends_at - starts_at)}; choose an earlier end",
            path="end",
        )


def is_quiet(device: ListedDevice, patterns: tuple[str, ...]) -> bool:
    """Tell whether a device is kept out of booking; a slice is if its GPU is."""
    return any(_matches(device, pattern) for pattern in patterns)


def _matches(device: ListedDevice, pattern: str) -> bool:
    node, _, place = pattern.partition("/")
    if not any(fnmatchcase(name, node) for name in (device.ref.node_id, device.node_name)):
        return False
    if not place:
        return True
    gpu_index = device.index if device.parent_index is None else device.parent_index
    names = {device.ref.uuid, str(gpu_index), *([device.parent_uuid] if device.parent_uuid else [])}
    if device.parent_index is not None:
        names.add(f"{device.parent_index}.{device.index}")
    return any(fnmatchcase(name, place) for name in names)
