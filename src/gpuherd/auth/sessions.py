"""Sessions: a browser that is logged in. Kept on the hub's side, so that they can be ended."""

from __future__ import annotations

from msgspec import Struct

from gpuherd.auth.secrets import SESSION_PREFIX, digest, new_id, new_secret
from gpuherd.model.people import Account, Actor
from gpuherd.model.text import clean
from gpuherd.records.people import PeopleRecords

__all__ = ["MAX_SESSIONS", "NewSession", "begin_session"]

MAX_AGENT_LENGTH = 200
MAX_SESSIONS = 50
"""Of one account, at a time; a new one ends the oldest."""


class NewSession(Struct, frozen=True, kw_only=True):
    """A session with its secret, which is shown this once."""

    id: str
    secret: str
    expires_at: float


def begin_session(
    records: PeopleRecords,
    account: Account,
    *,
    now: float,
    lifetime_seconds: float,
    agent: str,
    by: Actor,
    password_hash: str | None = None,
) -> NewSession:
    """Log someone in. Blocking; ``Refused`` ``account_disabled`` if that has just happened.

    ``password_hash`` is what the password was compared with, if there was one: a login that is overtaken by a change of
    the password is ``Refused`` ``changed_meanwhile``. The secret is always a new one: nobody can plant one beforehand.
    """
    session = NewSession(id=new_id(), secret=new_secret(SESSION_PREFIX), expires_at=now + lifetime_seconds)
    records.add_session(
        id=session.id,
        digest=digest(session.secret),
        account_id=account.id,
        created_at=now,
        expires_at=session.expires_at,
        peer=by.peer or "",
        agent=clean(agent, MAX_AGENT_LENGTH),
        password_hash=password_hash,
        at_most=MAX_SESSIONS,
        by=by,
        detail=account.source,
    )
    records.note_login(account.id, now)
    return session
