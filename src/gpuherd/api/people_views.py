"""What the addresses of accounts take and give."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from gpuherd.auth.tokens import DEFAULT_TOKEN_DAYS, MAX_TOKEN_DAYS
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.history import UsageSession
from gpuherd.model.people import Account, AuditEntry, Role, TokenScope
from gpuherd.model.text import Label
from gpuherd.records.people import FeedKind

__all__ = [
    "AccountChange",
    "AccountExport",
    "AccountRequest",
    "AuditFilter",
    "CreatedAccount",
    "CreatedToken",
    "ErasureRequest",
    "FeedView",
    "KeptSession",
    "KeptToken",
    "PasswordChange",
    "Renaming",
    "TemporaryPassword",
    "TokenRequest",
]

EpochTime = Annotated[float, Meta(description="UTC epoch seconds.")]
Password = Annotated[str, Meta(max_length=1024)]
Groups = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=100)]
LinuxNames = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=100)]


class KeptSession(Struct, frozen=True, kw_only=True):
    """A browser that is logged in."""

    id: str
    created_at: EpochTime
    expires_at: EpochTime
    seen_at: Annotated[float, Meta(description="When it was last used, to within a minute or so.")]
    peer: Annotated[str, Meta(description="Address from which the login came.")]
    agent: Annotated[str, Meta(description="What the browser calls itself.")]
    is_current: Annotated[bool, Meta(description="Whether it is the one that asks.")]


class KeptToken(Struct, frozen=True, kw_only=True):
    """A key for programs, without its secret."""

    id: str
    title: str
    scopes: tuple[TokenScope, ...]
    created_at: EpochTime
    expires_at: EpochTime
    seen_at: Annotated[
        float | None, Meta(description="When it was last used, to within a minute or so; null: never.")
    ] = None


class TokenRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to be made."""

    title: Annotated[Label, Meta(min_length=1, description="What it is for.")]
    scopes: Annotated[
        tuple[TokenScope, ...],
        Meta(
            min_length=1,
            max_length=3,
            description="read: look; book: make and change bookings; admin: everything an admin may. Within the role.",
        ),
    ]
    days: Annotated[int, Meta(ge=1, le=MAX_TOKEN_DAYS, description="How long it is valid.")] = (
        DEFAULT_TOKEN_DAYS
    )


class CreatedToken(Struct, frozen=True, kw_only=True):
    """A new token."""

    id: str
    token: Annotated[str, Meta(description="The secret, shown this once; send it as Authorization: Bearer.")]
    title: str
    scopes: tuple[TokenScope, ...]
    created_at: EpochTime
    expires_at: EpochTime


class PasswordChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new password for oneself."""

    old_password: Password
    new_password: Annotated[Password, Meta(description="At least ten characters.")]


class Renaming(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one may change of one's own account."""

    display_name: Annotated[Label, Meta(description="What others read; empty: the name.")]


class ErasureRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That one really means it."""

    name: Annotated[str, Meta(max_length=200, description="One's own name.")]
    password: Annotated[Password, Meta(description="One's password, if the account has one here.")] = ""


class AccountRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A local account to be made."""

    name: Annotated[str, Meta(min_length=1, max_length=96, description="To log in with.")]
    role: Role = "member"
    display_name: Annotated[Label | None, Meta(description="What others read; the name unless given.")] = None
    password: Annotated[
        Password | None, Meta(description="At least ten characters; made up and told once unless given.")
    ] = None
    groups: Annotated[Groups | UnsetType, Meta(description="Groups to be in.")] = UNSET
    linux_names: Annotated[
        LinuxNames | UnsetType,
        Meta(description="Users on the nodes that are this person, besides the one of the same name."),
    ] = UNSET


class CreatedAccount(Struct, frozen=True, kw_only=True):
    """A new account."""

    account: Account
    password: Annotated[
        str | None, Meta(description="The password that was made up, shown this once; null if one was given.")
    ]


class AccountChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an admin changes of an account; what is not given stays."""

    display_name: Annotated[Label | UnsetType, Meta(description="What others read.")] = UNSET
    role: Role | UnsetType = UNSET
    groups: Annotated[Groups | UnsetType, Meta(description="All groups, instead of those before.")] = UNSET
    linux_names: Annotated[
        LinuxNames | UnsetType,
        Meta(description="All users on the nodes that are this person, instead of those before."),
    ] = UNSET
    is_disabled: Annotated[
        bool | UnsetType, Meta(description="Whether the person is kept out, without anything being lost.")
    ] = UNSET


class TemporaryPassword(Struct, frozen=True, kw_only=True):
    """A password that was made up."""

    password: Annotated[str, Meta(description="Shown this once; the person should change it.")]


class FeedView(Struct, frozen=True, kw_only=True):
    """A calendar that is read by a secret address, without the address."""

    id: str
    kind: FeedKind
    device: DeviceRef | None
    created_at: EpochTime


class AccountExport(Struct, frozen=True, kw_only=True):
    """Everything that is kept about a person."""

    exported_at: EpochTime
    account: Account
    sessions: list[KeptSession]
    tokens: list[KeptToken]
    feeds: list[FeedView]
    bookings: list[Booking]
    audit: Annotated[list[AuditEntry], Meta(description="What the person did, and what was done to them.")]
    usage: Annotated[
        list[UsageSession], Meta(description="Stays on devices, as far back as they bear a name.")
    ] = []


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Which entries of the audit log are wanted."""

    text: str | None = None
    action: str | None = None
    account_id: str | None = None
    since: float | None = None
    until: float | None = None
    before_id: int | None = None
    limit: int = 100
