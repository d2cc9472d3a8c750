"""How people prove who they are elsewhere, and what is then known of them.

A way says who someone is. What that person may do here is decided by ``auth/provisioning.py``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from gpuherd.model.errors import Refused
from gpuherd.model.people import AccountSource
from gpuherd.model.text import clean

__all__ = [
    "HeaderWay",
    "LoginWays",
    "PasswordWay",
    "RedirectStart",
    "RedirectWay",
    "VouchedFor",
    "check_groups",
    "clean_groups",
    "clean_name",
    "is_password",
]

MAX_NAME_LENGTH = 96
MAX_GROUPS = 500
_NAME = re.compile(r"\w[\w.@+-]*")


class VouchedFor(Struct, frozen=True, kw_only=True):
    """Someone whom another service knows."""

    source: AccountSource
    subject: str
    """What this person is for ever called there: never given to someone else, where the service can promise that."""
    name: str
    """What the person is called here, if nobody else is."""
    display_name: str
    groups: tuple[str, ...] | None = None
    """Sorted; none if the service tells nothing of groups, so that they are kept here by hand."""
    linux_names: tuple[str, ...] = ()
    """Users on the nodes that are this person, if the service knows."""


class PasswordWay(Protocol):
    """Takes a name and a password, as typed into our own form."""

    @property
    def name(self) -> AccountSource:
        """The source of the accounts it vouches for."""

    def check(self, name: str, password: str) -> VouchedFor | None:
        """Tell who this is; none for a wrong name or password. Blocking, with a deadline of its own.

        ``Failed`` if the service cannot be asked now, ``Refused`` for someone who is known but may not enter.
        """


class RedirectStart(Struct, frozen=True, kw_only=True):
    """Where to send a browser, and what it must bring back."""

    url: str
    handshake: str
    """A secret for a cookie of this browser; ``finish`` needs it."""


class RedirectWay(Protocol):
    """Sends the browser elsewhere to log in, and hears about it when the browser comes back."""

    @property
    def label(self) -> str:
        """What its button says after "Continue with"."""

    @property
    def redirect_url(self) -> str | None:
        """Where the browser comes back to, if the configuration says so."""

    async def start(self, redirect_url: str) -> RedirectStart:
        """Begin; ``Failed`` if the service cannot be reached."""

    async def finish(self, answer: Mapping[str, str], *, handshake: str, redirect_url: str) -> VouchedFor:
        """Take what the browser brings back; ``Refused`` if it does not hold, ``Failed`` if it cannot be checked."""


class HeaderWay(Protocol):
    """Believes a proxy in front of the hub."""

    def vouched(self, headers: Iterable[tuple[bytes, bytes]], peer: str) -> VouchedFor | None:
        """Tell whom the proxy names; none if nobody, or if ``peer``, who sent the request, is no such proxy."""


class LoginWays(Struct, frozen=True, kw_only=True):
    """The ways that are configured, besides local accounts."""

    passwords: Sequence[PasswordWay] = ()
    """Asked in this order; the first that knows the person wins."""
    redirect: RedirectWay | None = None
    header: HeaderWay | None = None


def clean_name(text: str) -> str | None:
    """Give a name back if it is fit for an account: letters, digits and ``._@+-``, not too long, in its plain form.

    None for any other. A name is never repaired: what is left of a bad one could be someone else's.
    """
    is_plain = len(text) <= MAX_NAME_LENGTH and unicodedata.is_normalized("NFKC", text)
    return text if is_plain and _NAME.fullmatch(text) else None


def is_password(text: str) -> bool:
    """Tell whether this may be sent anywhere as a password: text without NUL, and not empty.

    To many services an empty one means that nobody in particular asks, which is always granted.
    """
    return text != "" and not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)


def clean_groups(names: Iterable[str]) -> tuple[str, ...]:
    """Give the usable ones among groups that a service tells, sorted; at most ``MAX_GROUPS``."""
    return tuple(sorted({name for name in names if name.strip() and clean(name) == name})[:MAX_GROUPS])


def check_groups(vouched: VouchedFor, allowed: Collection[str]) -> VouchedFor:
    """Give the person back; ``Refused`` ``group_needed`` if only certain groups may enter and it is in none."""
    if allowed and not set(allowed) & set(vouched.groups or ()):
        raise Refused(
            "group_needed",
            "your account is not allowed to use this hub; ask its admin to allow one of your groups",
        )
    return vouched
