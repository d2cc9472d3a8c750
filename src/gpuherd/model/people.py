"""People: accounts, roles, and who asks."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

__all__ = [
    "ROLES",
    "SCOPES",
    "Account",
    "AccountSource",
    "Actor",
    "AuditEntry",
    "PrivacyClass",
    "Role",
    "TokenScope",
    "Viewer",
    "ViewerVia",
    "person_key",
]

Role = Literal["viewer", "member", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Rising: each may do all that those before it may."""
AccountSource = Literal["local", "pam", "ldap", "oidc", "proxy"]
TokenScope = Literal["read", "book", "admin"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
PrivacyClass = Literal["counts", "public", "names", "member", "admin"]
"""What a person is shown: numbers alone; the herd under pseudonyms; the same with names; names and programs; command
lines."""
ViewerVia = Literal["nobody", "session", "token", "proxy"]


@lru_cache(65_536)
def person_key(name: str) -> str:
    """Return what names of holders of bookings are compared by: they are free text, "Carol" is the user "carol".

    Never for a right: who may read, log in or own something is compared letter by letter.
    """
    return name.replace("+", "").strip().casefold()


class Account(Struct, frozen=True, kw_only=True):
    """Someone who can log in."""

    id: Annotated[str, Meta(description="Assigned by the hub; never reused for someone else.")]
    name: Annotated[str, Meta(description="Name to log in with.")]
    display_name: Annotated[str, Meta(description="Display name; the account's name if there is none.")]
    role: Role
    groups: Annotated[tuple[str, ...], Meta(description="Sorted.")] = ()
    source: Annotated[AccountSource, Meta(description="Service that the person logs in with.")] = "local"
    linux_names: Annotated[
        tuple[str, ...], Meta(description="Linux users that belong to this person; sorted.")
    ] = ()
    is_disabled: bool = False
    created_at: Annotated[float, Meta(description="UTC epoch seconds.")] = 0.0
    last_login_at: Annotated[float | None, Meta(description="UTC epoch seconds.")] = None


class Viewer(Struct, frozen=True, kw_only=True):
    """Who makes a request, and what it may do.

    Made anew for every request and never kept beyond it. A live stream is a long request: it ends at ``expires_at``,
    and as soon as something about the viewer changes.
    """

    privacy: PrivacyClass | None
    """None: may see nothing of the herd."""
    account: Account | None = None
    scopes: frozenset[TokenScope] = frozenset()
    """What the session or token allows, within what the role allows."""
    via: ViewerVia = "nobody"
    key: str | None = None
    """Id of the session or token, for ending it; not its secret."""
    expires_at: float | None = None
    """When the session or token ends, UTC epoch seconds."""
    peer: str = "unknown"
    """Address it comes from; behind a listed proxy, the one the proxy tells."""

    @property
    def role(self) -> Role | None:
        """The account's role; none for someone who is not logged in."""
        return None if self.account is None else self.account.role

    @property
    def is_known(self) -> bool:
        """Whether this is someone who is logged in, or a program with the key of the hub's machine."""
        return self.account is not None or self.privacy == "admin"

    def may(self, role: Role, scope: TokenScope) -> bool:
        """Whether role and scope both suffice."""
        return self.role is not None and ROLES.index(self.role) >= ROLES.index(role) and scope in self.scopes


class Actor(Struct, frozen=True, kw_only=True):
    """Who did something, for the audit log."""

    account_id: str | None
    """None: no account did it, but what ``label`` says."""
    label: str
    """The account's name, or "command line", "set-up link", "hub"."""
    peer: str | None = None


HUB = Actor(account_id=None, label="hub")
"""What the hub does by itself."""
COMMAND_LINE = Actor(account_id=None, label="command line")
"""Someone who can write to the hub's folder, with a command on its machine."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One entry of the audit log: who did what, when and from where."""

    id: int
    at: Annotated[float, Meta(description="UTC epoch seconds.")]
    account_id: str | None
    who: Annotated[str, Meta(description="Current name of the account, or what acted instead.")]
    peer: str | None
    action: Annotated[str, Meta(description="Such as booking.create, account.role, login.failed.")]
    subject: Annotated[str, Meta(description="What it was done to: an id or a name.")]
    detail: Annotated[str, Meta(description="What changed, for people; never a secret.")]
