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
    seen_at: Annotated[float, Meta(description="When it was last used, within about a minute.")]
    peer: Annotated[str, Meta(description="Address of the login.")]
    agent: Annotated[str, Meta(description="Name of the browser.")]
    is_current: Annotated[bool, Meta(description="Whether it is the current session.")]


class KeptToken(Struct, frozen=True, kw_only=True):
    """An API token, without its secret."""

    id: str
    title: str
    scopes: tuple[TokenScope, ...]
    created_at: EpochTime
    expires_at: EpochTime
    seen_at: Annotated[
        float | None, Meta(description="When it was last used, within about a minute; null: never.")
    ] = None


class TokenRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to create."""

    title: Annotated[Label, Meta(min_length=1, description="What it is for.")]
    scopes: Annotated[
        tuple[TokenScope, ...],
        Meta(
            min_length=1,
            max_length=3,
            description="read: view; book: make and change bookings; admin: everything an admin can do. Within the "
            "account's role.",
        ),
    ]
    days: Annotated[int, Meta(ge=1, le=MAX_TOKEN_DAYS, description="How long it is valid.")] = (
        DEFAULT_TOKEN_DAYS
    )


class CreatedToken(Struct, frozen=True, kw_only=True):
    """A new token."""

    id: str
    token: Annotated[str, Meta(description="The secret, shown only once; send it as Authorization: Bearer.")]
    title: str
    scopes: tuple[TokenScope, ...]
    created_at: EpochTime
    expires_at: EpochTime


class PasswordChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new password for your account."""

    old_password: Password
    new_password: Annotated[Password, Meta(description="At least ten characters.")]


class Renaming(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What you can change in your own account."""

    display_name: Annotated[Label, Meta(description="Display name; empty: the account's name.")]


class ErasureRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Confirmation."""

    name: Annotated[str, Meta(max_length=200, description="Your name.")]
    password: Annotated[Password, Meta(description="Your password, if the account has one on this hub.")] = ""


class AccountRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A local account to create."""

    name: Annotated[str, Meta(min_length=1, max_length=96, description="Name to log in with.")]
    role: Role = "member"
    display_name: Annotated[Label | None, Meta(description="Display name. Default: the name.")] = None
    password: Annotated[
        Password | None, Meta(description="At least ten characters. Default: generated and shown once.")
    ] = None
    groups: Annotated[Groups | UnsetType, Meta(description="Groups of the account.")] = UNSET
    linux_names: Annotated[
        LinuxNames | UnsetType,
        Meta(description="Linux users that belong to this person, besides the one of the same name."),
    ] = UNSET


class CreatedAccount(Struct, frozen=True, kw_only=True):
    """A new account."""

    account: Account
    password: Annotated[
        str | None, Meta(description="Generated password, shown only once; null if you set one.")
    ]


class AccountChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes that an admin makes to an account. Fields that are left out do not change."""

    display_name: Annotated[Label | UnsetType, Meta(description="Display name that others see.")] = UNSET
    role: Role | UnsetType = UNSET
    groups: Annotated[Groups | UnsetType, Meta(description="All groups; they replace the previous ones.")] = (
        UNSET
    )
    linux_names: Annotated[
        LinuxNames | UnsetType,
        Meta(description="All Linux users that belong to this person; they replace the previous ones."),
    ] = UNSET
    is_disabled: Annotated[
        bool | UnsetType, Meta(description="Whether the account is disabled. Nothing is lost.")
    ] = UNSET


class TemporaryPassword(Struct, frozen=True, kw_only=True):
    """A generated password."""

    password: Annotated[str, Meta(description="Shown only once; the person should change it.")]


class FeedView(Struct, frozen=True, kw_only=True):
    """A calendar with a secret address, without the address."""

    id: str
    kind: FeedKind
    device: DeviceRef | None
    created_at: EpochTime


class AccountExport(Struct, frozen=True, kw_only=True):
    """Everything that is stored about a person."""

    exported_at: EpochTime
    account: Account
    sessions: list[KeptSession]
    tokens: list[KeptToken]
    feeds: list[FeedView]
    bookings: list[Booking]
    audit: Annotated[list[AuditEntry], Meta(description="What the person did, and what was done to them.")]
    usage: Annotated[
        list[UsageSession], Meta(description="Sessions on devices, as far back as they have a name.")
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
