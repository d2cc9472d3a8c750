"""API tokens: keys for programs, with the rights of their owner or fewer, and always an end."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from gpuherd.auth.secrets import API_TOKEN_PREFIX, digest, new_id, new_secret
from gpuherd.model.errors import Refused
from gpuherd.model.people import ROLES, Account, Actor, Role, TokenScope
from gpuherd.records.people import PeopleRecords

__all__ = ["DEFAULT_TOKEN_DAYS", "MAX_TOKENS", "MAX_TOKEN_DAYS", "NewToken", "create_token"]

DEFAULT_TOKEN_DAYS = 90
MAX_TOKEN_DAYS = 366
MAX_TOKENS = 100
"""Of one account, at a time."""
_NEEDED: dict[TokenScope, Role] = {"read": "viewer", "book": "member", "admin": "admin"}


class NewToken(Struct, frozen=True, kw_only=True):
    """A token with its secret, which is shown this once."""

    id: str
    secret: str
    scopes: frozenset[TokenScope]
    expires_at: float


def create_token(
    records: PeopleRecords,
    account: Account,
    *,
    title: str,
    scopes: Collection[TokenScope],
    days: float,
    now: float,
    by: Actor,
) -> NewToken:
    """Make a token. Blocking; ``Refused`` ``scope_needs_role`` for rights that the owner does not have, and
    ``too_many_tokens``.

    Refused rather than cut: a token must not grow when its owner becomes an admin. Every scope includes ``read``: what
    one writes is answered with what is there, so a token that may write and not look would be shown it all the same.
    """
    given: frozenset[TokenScope] = frozenset({"read", *scopes})
    for scope in given:
        if ROLES.index(account.role) < ROLES.index(_NEEDED[scope]):
            raise Refused(
                "scope_needs_role", f"a token with the scope {scope} needs the role {_NEEDED[scope]}"
            )
    token = NewToken(
        id=new_id(),
        secret=new_secret(API_TOKEN_PREFIX),
        scopes=given,
        expires_at=now + min(days, MAX_TOKEN_DAYS) * 86_400,
    )
    records.add_token(
        id=token.id,
        digest=digest(token.secret),
        account_id=account.id,
        title=title,
        scopes=given,
        created_at=now,
        expires_at=token.expires_at,
        by=by,
        at_most=MAX_TOKENS,
    )
    return token
