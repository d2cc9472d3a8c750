"""What opens the hub for a person: sessions, API tokens, calendar addresses. Only digests are kept.

Blocking; one transaction each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Table,
    delete,
    func,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError

from gpuherd.model.bookings import DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Actor, TokenScope
from gpuherd.records.audit import Deed, write_audit
from gpuherd.records.tables import accounts, api_tokens, feeds, login_sessions, people_revision
from gpuherd.records.transactions import BadText, count_change, lock, reading, writing

__all__ = ["FeedKind", "FeedRecord", "KeyRecords", "SessionRecord", "TokenRecord"]

FeedKind = Literal["account", "device"]

_DIGESTS_AT_ONCE = 500
"""In one question; databases take only so many values."""


class SessionRecord(Struct, frozen=True, kw_only=True):
    """A browser that is logged in."""

    id: str
    account_id: str
    created_at: float
    expires_at: float
    seen_at: float
    peer: str
    agent: str


class TokenRecord(Struct, frozen=True, kw_only=True):
    """A key for programs."""

    id: str
    account_id: str
    title: str
    scopes: frozenset[TokenScope]
    created_at: float
    expires_at: float
    seen_at: float | None


class FeedRecord(Struct, frozen=True, kw_only=True):
    """A calendar that is read by a secret address."""

    id: str
    account_id: str
    kind: FeedKind
    device: DeviceRef | None
    created_at: float


def _session(row: Row[Any]) -> SessionRecord:
    return SessionRecord(
        id=row.id,
        account_id=row.account_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        seen_at=row.seen_at,
        peer=row.peer,
        agent=row.agent,
    )


def _token(row: Row[Any]) -> TokenRecord:
    return TokenRecord(
        id=row.id,
        account_id=row.account_id,
        title=row.title,
        scopes=cast("frozenset[TokenScope]", frozenset(row.scopes.split())),
        created_at=row.created_at,
        expires_at=row.expires_at,
        seen_at=row.seen_at,
    )


def _feed(row: Row[Any]) -> FeedRecord:
    return FeedRecord(
        id=row.id,
        account_id=row.account_id,
        kind=row.kind,
        device=None if row.uuid is None else DeviceRef(row.node_id, row.uuid),
        created_at=row.created_at,
    )


class _Limit(NamedTuple):
    """How many keys of a kind one account may have; more are refused."""

    at_most: int | None
    kind: str
    called: str
    counts: ColumnElement[bool]


def _check_limit(connection: Connection, table: Table, account_id: object, limit: _Limit) -> None:
    if limit.at_most is None:
        return
    query = select(func.count()).select_from(table).where(table.c.account_id == account_id, limit.counts)
    if connection.execute(query).scalar_one() >= limit.at_most:
        raise Refused(
            f"too_many_{limit.kind}",
            f"an account can have at most {limit.at_most} {limit.called}; delete those you do not use",
        )


def _end_oldest(
    connection: Connection, table: Table, newest: Mapping[str, object], at_most: int
) -> Sequence[str]:
    """End the oldest keys of an account above the limit, but not the new one; return the ids of those ended."""
    too_many = (
        connection.execute(
            select(table.c.id)
            .where(table.c.account_id == newest["account_id"], table.c.id != newest["id"])
            .order_by(table.c.created_at.desc(), table.c.id)
            .offset(at_most - 1)
        )
        .scalars()
        .all()
    )
    if too_many:
        count_change(connection, people_revision)
        connection.execute(delete(table).where(table.c.id.in_(too_many)))
    return too_many


class KeyRecords:
    """The keys' part of ``PeopleRecords``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add_session(
        self,
        *,
        id: str,  # noqa: A002 - the column's name
        digest: str,
        account_id: str,
        created_at: float,
        expires_at: float,
        peer: str,
        agent: str,
        password_hash: str | None = None,
        at_most: int | None = None,
        by: Actor | None = None,
        detail: str = "",
    ) -> None:
        """Keep a session. ``Refused`` ``unknown_account`` or ``account_disabled``.

        Of one account ``at_most`` so many stay; the oldest are ended. ``password_hash`` is what the password was
        compared with: if it was changed meanwhile, ``Refused`` ``changed_meanwhile``, since that change is to end what
        came in by the old one. ``by`` is who logged in, and ``detail`` how, for the audit log.
        """
        self._add(
            login_sessions,
            {
                "id": id,
                "digest": digest,
                "account_id": account_id,
                "created_at": created_at,
                "expires_at": expires_at,
                "seen_at": created_at,
                "peer": peer,
                "agent": agent,
            },
            password_hash=password_hash,
            at_most=at_most,
            deed=None if by is None else Deed("login.ok", account_id, detail, by, created_at),
        )

    def session(self, digest: str, now: float) -> SessionRecord | None:
        """Find a session that is valid now: neither expired nor of someone disabled."""
        row = self._find(login_sessions, digest, login_sessions.c.expires_at > now)
        return None if row is None else _session(row)

    def sessions_among(self, digests: Collection[str], now: float) -> dict[str, SessionRecord]:
        """Find which of these are sessions that are valid now, by digest; a few questions however many they are."""
        rows = self._find_all(login_sessions, digests, login_sessions.c.expires_at > now)
        return {row.digest: _session(row) for row in rows}

    def sessions(self, account_id: str, now: float) -> tuple[SessionRecord, ...]:
        """List someone's valid sessions, newest first."""
        return tuple(map(_session, self._of(login_sessions, account_id, login_sessions.c.expires_at > now)))

    def prune(self, now: float) -> int:
        """Delete expired sessions and tokens and return their number; ``now`` must be trustworthy."""
        with writing(self._engine) as connection:
            return sum(
                connection.execute(delete(table).where(table.c.expires_at <= now)).rowcount
                for table in (login_sessions, api_tokens)
            )

    def touch_session(self, id: str, now: float) -> None:  # noqa: A002
        """Remember when a session was last used."""
        self._touch(login_sessions, id, now)

    def end_session(
        self,
        id: str,  # noqa: A002
        *,
        account_id: str | None,
        now: float,
        by: Actor,
        action: str = "session.end",
    ) -> bool:
        """End one session, of this account if one is given; false if there is none."""
        return self._end(login_sessions, id, account_id, Deed(action, id, "", by, now))

    def end_sessions(
        self, account_id: str, *, now: float, by: Actor, keep: str | None = None, with_feeds: bool = False
    ) -> int:
        """End all of someone's sessions but the one kept, their calendars as well if asked to; give their number."""
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            ended = connection.execute(
                delete(login_sessions).where(
                    login_sessions.c.account_id == account_id, login_sessions.c.id != (keep or "")
                )
            ).rowcount
            if with_feeds:
                connection.execute(delete(feeds).where(feeds.c.account_id == account_id))
            write_audit(connection, [Deed("session.end_all", account_id, f"{ended} sessions", by, now)])
            return ended

    def add_token(
        self,
        *,
        id: str,  # noqa: A002
        digest: str,
        account_id: str,
        title: str,
        scopes: Collection[TokenScope],
        created_at: float,
        expires_at: float,
        by: Actor,
        at_most: int | None = None,
    ) -> None:
        """Keep a token. ``Refused`` ``unknown_account`` or ``account_disabled``.

        ``Refused`` ``too_many_tokens`` if the account already has ``at_most`` valid ones.
        """
        self._add(
            api_tokens,
            {
                "id": id,
                "digest": digest,
                "account_id": account_id,
                "title": title,
                "scopes": " ".join(sorted(scopes)),
                "created_at": created_at,
                "expires_at": expires_at,
            },
            deed=Deed("token.create", id, f"scopes {', '.join(sorted(scopes))}", by, created_at),
            limit=_Limit(at_most, "tokens", "tokens", api_tokens.c.expires_at > created_at),
        )

    def token(self, digest: str, now: float) -> TokenRecord | None:
        """Find a token that is valid now: neither expired nor of someone disabled."""
        row = self._find(api_tokens, digest, api_tokens.c.expires_at > now)
        return None if row is None else _token(row)

    def tokens_among(self, digests: Collection[str], now: float) -> dict[str, TokenRecord]:
        """Find which of these are tokens that are valid now, by digest; a few questions however many they are."""
        rows = self._find_all(api_tokens, digests, api_tokens.c.expires_at > now)
        return {row.digest: _token(row) for row in rows}

    def tokens(self, account_id: str, now: float) -> tuple[TokenRecord, ...]:
        """List someone's valid tokens, newest first."""
        return tuple(map(_token, self._of(api_tokens, account_id, api_tokens.c.expires_at > now)))

    def touch_token(self, id: str, now: float) -> None:  # noqa: A002
        """Remember when a token was last used."""
        self._touch(api_tokens, id, now)

    def end_token(self, id: str, *, account_id: str | None, now: float, by: Actor) -> bool:  # noqa: A002
        """End one token, of this account if one is given; false if there is none."""
        return self._end(api_tokens, id, account_id, Deed("token.end", id, "", by, now))

    def add_feed(
        self,
        *,
        id: str,  # noqa: A002
        digest: str,
        account_id: str,
        kind: FeedKind,
        device: DeviceRef | None = None,
        created_at: float,
        by: Actor,
        at_most: int | None = None,
    ) -> None:
        """Keep a calendar's address. ``Refused`` ``unknown_account`` or ``account_disabled``.

        ``Refused`` ``too_many_feeds`` if the account already has ``at_most``.
        """
        self._add(
            feeds,
            {
                "id": id,
                "digest": digest,
                "account_id": account_id,
                "kind": kind,
                "node_id": None if device is None else device.node_id,
                "uuid": None if device is None else device.uuid,
                "created_at": created_at,
            },
            deed=Deed("feed.create", id, kind, by, created_at),
            limit=_Limit(at_most, "feeds", "calendars", true()),
        )

    def feed(self, digest: str) -> FeedRecord | None:
        """Find a calendar whose person is not disabled."""
        row = self._find(feeds, digest)
        return None if row is None else _feed(row)

    def feeds(self, account_id: str) -> tuple[FeedRecord, ...]:
        """List someone's calendars, newest first."""
        return tuple(map(_feed, self._of(feeds, account_id)))

    def end_feed(self, id: str, *, account_id: str | None, now: float, by: Actor) -> bool:  # noqa: A002
        """End one calendar's address, of this account if one is given; false if there is none."""
        return self._end(feeds, id, account_id, Deed("feed.end", id, "", by, now))

    def _add(
        self,
        table: Table,
        values: dict[str, object],
        *,
        password_hash: str | None = None,
        at_most: int | None = None,
        deed: Deed | None = None,
        limit: _Limit | None = None,
    ) -> None:
        with writing(self._engine) as connection:
            # Under the same lock as disabling and changing passwords: no key is made that these would have ended.
            lock(connection, people_revision)
            account = connection.execute(
                select(accounts.c.is_disabled, accounts.c.password_hash).where(
                    accounts.c.id == values["account_id"]
                )
            ).one_or_none()
            if account is None:
                raise Refused("unknown_account", "there is no such account")
            if account.is_disabled:
                raise Refused("account_disabled", "this account is disabled; ask an admin")
            if password_hash is not None and account.password_hash != password_hash:
                raise Refused("changed_meanwhile", "the password has been changed; log in again")
            if limit is not None:
                # Counted under the lock, so that of two at once the second sees the first.
                _check_limit(connection, table, values["account_id"], limit)
            try:
                connection.execute(insert(table).values(**values))
            except IntegrityError:
                raise Refused("key_taken", "this key already exists; try again") from None
            ended = () if at_most is None else _end_oldest(connection, table, values, at_most)
            if deed is not None:
                replaced = [
                    Deed("session.end", key_id, "too many at once", deed.by, deed.at) for key_id in ended
                ]
                write_audit(connection, [deed, *replaced])

    def _find(self, table: Table, digest: str, *conditions: ColumnElement[bool]) -> Row[Any] | None:
        try:
            with reading(self._engine) as connection:
                return connection.execute(
                    select(table)
                    .join(accounts, accounts.c.id == table.c.account_id)
                    .where(table.c.digest == digest, accounts.c.is_disabled.is_(False), *conditions)
                ).one_or_none()
        except BadText:
            return None

    def _find_all(
        self, table: Table, digests: Collection[str], *conditions: ColumnElement[bool]
    ) -> list[Row[Any]]:
        wanted, rows = sorted(digests), list[Row[Any]]()
        with reading(self._engine) as connection:
            for start in range(0, len(wanted), _DIGESTS_AT_ONCE):
                batch = wanted[start : start + _DIGESTS_AT_ONCE]
                rows += connection.execute(
                    select(table)
                    .join(accounts, accounts.c.id == table.c.account_id)
                    .where(table.c.digest.in_(batch), accounts.c.is_disabled.is_(False), *conditions)
                )
        return rows

    def _of(self, table: Table, account_id: str, *conditions: ColumnElement[bool]) -> list[Row[Any]]:
        with reading(self._engine) as connection:
            return list(
                connection.execute(
                    select(table)
                    .where(table.c.account_id == account_id, *conditions)
                    .order_by(table.c.created_at.desc(), table.c.id)
                )
            )

    def _touch(self, table: Table, key_id: str, now: float) -> None:
        with writing(self._engine) as connection:
            connection.execute(update(table).where(table.c.id == key_id).values(seen_at=now))

    def _end(self, table: Table, key_id: str, account_id: str | None, deed: Deed) -> bool:
        query = delete(table).where(table.c.id == key_id)
        if account_id is not None:
            query = query.where(table.c.account_id == account_id)
        with writing(self._engine) as connection:
            lock(connection, people_revision)
            if connection.execute(query).rowcount == 0:
                return False
            count_change(connection, people_revision)
            write_audit(connection, [deed])
            return True
