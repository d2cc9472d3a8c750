"""Accounts: the verbs on them. Blocking; one transaction each, with its line in the audit log."""

from __future__ import annotations

import secrets as randomness
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, select, update

from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, AccountSource, Actor, Role
from gpuherd.records.audit import ERASED, Deed, write_audit
from gpuherd.records.tables import (
    accounts,
    api_tokens,
    audit,
    booking_revision,
    bookings,
    linux_names,
    login_sessions,
    memberships,
    people_revision,
    setup_codes,
)
from gpuherd.records.tables import secrets as secrets_table
from gpuherd.records.transactions import BadText, count_change, lock, reading, revision_of, writing

__all__ = ["AccountRecords", "People", "name_key"]


class People(Struct, frozen=True, kw_only=True):
    """Every account, as of one revision."""

    revision: int
    accounts: tuple[Account, ...]


def name_key(name: str) -> str:
    """Give the form in which names are compared: neither case nor the way a letter is composed tells two apart."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _load(connection: Connection, condition: ColumnElement[bool] | None = None) -> tuple[Account, ...]:
    query = select(accounts).order_by(accounts.c.name_key)
    if condition is not None:
        query = query.where(condition)
    rows = connection.execute(query).all()
    chosen = [row.id for row in rows] if condition is not None else None
    groups: dict[str, list[str]] = defaultdict(list)
    claimed: dict[str, list[str]] = defaultdict(list)
    members = select(memberships)
    claims = select(linux_names)
    if chosen is not None:
        members = members.where(memberships.c.account_id.in_(chosen))
        # Also who else claims their names.
        claims = claims.where(
            linux_names.c.account_id.in_(chosen) | linux_names.c.linux_name.in_([row.name for row in rows])
        )
    for row in connection.execute(members):
        groups[row.account_id].append(row.group_name)
    holder: dict[str, str] = {}
    for row in connection.execute(claims):
        claimed[row.account_id].append(row.linux_name)
        holder[row.linux_name] = row.account_id
    return tuple(
        Account(
            id=row.id,
            name=row.name,
            display_name=row.display_name,
            role=row.role,
            groups=tuple(sorted(groups[row.id])),
            source=row.source,
            # The person's own name, too, unless it is someone else's on the nodes.
            linux_names=tuple(
                sorted({*claimed[row.id], *([row.name] if holder.get(row.name, row.id) == row.id else [])})
            ),
            is_disabled=row.is_disabled,
            created_at=row.created_at,
            last_login_at=row.last_login_at,
        )
        for row in rows
    )


def _known(connection: Connection, account_id: str) -> Account:
    found = _load(connection, accounts.c.id == account_id)
    if not found:
        raise Refused("unknown_account", "there is no such account")
    return found[0]


def _other_admins(connection: Connection, account_id: str = "") -> int:
    return int(
        connection.execute(
            select(func.count())
            .select_from(accounts)
            .where(accounts.c.role == "admin", accounts.c.is_disabled.is_(False), accounts.c.id != account_id)
        ).scalar_one()
    )


def _keep_an_admin(connection: Connection, account: Account) -> None:
    """Refuse to lose the last one who could undo it."""
    if account.role == "admin" and not account.is_disabled and not _other_admins(connection, account.id):
        raise Refused(
            "last_admin", "this is the last admin who can log in; make someone else an admin before"
        )


def _set_groups(connection: Connection, account_id: str, groups: Iterable[str]) -> None:
    connection.execute(delete(memberships).where(memberships.c.account_id == account_id))
    if rows := [{"account_id": account_id, "group_name": group} for group in sorted(set(groups))]:
        connection.execute(insert(memberships), rows)


def _set_linux_names(connection: Connection, account_id: str, names: Collection[str]) -> None:
    taken = connection.execute(
        select(linux_names.c.linux_name)
        .where(linux_names.c.linux_name.in_(sorted(set(names))), linux_names.c.account_id != account_id)
        .order_by(linux_names.c.linux_name)
    ).first()
    if taken is not None:
        raise Refused(
            "linux_name_taken", f"the user {taken.linux_name} on the nodes is another account already"
        )
    connection.execute(delete(linux_names).where(linux_names.c.account_id == account_id))
    if rows := [{"linux_name": name, "account_id": account_id} for name in sorted(set(names))]:
        connection.execute(insert(linux_names), rows)


def _insert(
    connection: Connection,
    *,
    name: str,
    display_name: str,
    role: Role,
    source: AccountSource,
    subject: str | None,
    password_hash: str | None,
    linux_names: Collection[str],
    groups: Collection[str],
    now: float,
) -> Account:
    key = name_key(name)
    if connection.execute(select(accounts.c.id).where(accounts.c.name_key == key)).first() is not None:
        raise Refused("name_taken", f"there is already an account {name}; choose another name")
    if subject is not None and (
        connection.execute(
            select(accounts.c.id).where(accounts.c.source == source, accounts.c.subject == subject)
        ).first()
        is not None
    ):
        raise Refused("name_taken", "this person has an account already")
    account_id = randomness.token_hex(8)
    connection.execute(
        insert(accounts).values(
            id=account_id,
            name=name,
            name_key=key,
            display_name=display_name or name,
            role=role,
            source=source,
            subject=subject,
            password_hash=password_hash,
            is_disabled=False,
            created_at=now,
        )
    )
    _set_groups(connection, account_id, groups)
    _set_linux_names(connection, account_id, linux_names)
    return _known(connection, account_id)


def _difference(before: Account, after: Account) -> str:
    """Tell what changed, without a person's names: the log outlives them."""
    parts = []
    if before.role != after.role:
        parts.append(f"role {before.role} → {after.role}")
    if before.is_disabled != after.is_disabled:
        parts.append("disabled" if after.is_disabled else "enabled")
    if before.groups != after.groups:
        parts.append(f"groups {', '.join(before.groups) or 'none'} → {', '.join(after.groups) or 'none'}")
    if before.linux_names != after.linux_names:
        parts.append("users on the nodes")
    if before.display_name != after.display_name:
        parts.append("shown name")
    return "; ".join(parts)


class AccountRecords:
    """The accounts' part of ``PeopleRecords``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def revision(self) -> int:
        """Count of changes so far that bear on what someone may do; cheap enough to ask every second."""
        return revision_of(self._engine, people_revision)

    def load(self) -> People:
        """Read every account."""
        with reading(self._engine) as connection:
            return People(
                revision=connection.execute(select(people_revision.c.number)).scalar_one(),
                accounts=_load(connection),
            )

    def account(self, account_id: str) -> Account | None:
        """Find an account by its id."""
        return self._one(accounts.c.id == account_id)

    def account_by_name(self, name: str) -> Account | None:
        """Find an account by what someone typed."""
        return self._one(accounts.c.name_key == name_key(name))

    def account_by_subject(self, source: AccountSource, subject: str) -> Account | None:
        """Find the account that another authority vouches for."""
        return self._one((accounts.c.source == source) & (accounts.c.subject == subject))

    def _one(self, condition: ColumnElement[bool]) -> Account | None:
        try:
            with reading(self._engine) as connection:
                found = _load(connection, condition)
        except BadText:
            return None
        return found[0] if found else None

    def password_hash(self, account_id: str) -> str | None:
        """Give the hash to compare a password with; none if the account has none."""
        try:
            with reading(self._engine) as connection:
                found = connection.execute(
                    select(accounts.c.password_hash).where(accounts.c.id == account_id)
                ).scalar_one_or_none()
        except BadText:
            return None
        return None if found is None else str(found)

    def create_account(
        self,
        *,
        name: str,
        display_name: str,
        role: Role,
        source: AccountSource = "local",
        subject: str | None = None,
        password_hash: str | None = None,
        linux_names: Collection[str] = (),
        groups: Collection[str] = (),
        now: float,
        by: Actor,
    ) -> Account:
        """Add an account. ``Refused`` ``name_taken`` or ``linux_name_taken``."""
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            account = _insert(
                connection,
                name=name,
                display_name=display_name,
                role=role,
                source=source,
                subject=subject,
                password_hash=password_hash,
                linux_names=linux_names,
                groups=groups,
                now=now,
            )
            write_audit(connection, [Deed("account.create", account.id, f"{source}, {role}", by, now)])
            return account

    def change_account(
        self,
        account_id: str,
        *,
        display_name: str | None = None,
        role: Role | None = None,
        groups: Collection[str] | None = None,
        linux_names: Collection[str] | None = None,
        is_disabled: bool | None = None,
        now: float,
        by: Actor,
    ) -> Account:
        """Change what is given. ``Refused`` ``unknown_account``, ``last_admin`` or ``linux_name_taken``.

        What changes nothing leaves no trace. A new role ends all tokens: they were made for what the old one allowed.
        """
        values: dict[str, Any] = {
            column: value
            for column, value in (
                ("display_name", display_name),
                ("role", role),
                ("is_disabled", is_disabled),
            )
            if value is not None
        }
        with writing(self._engine) as connection:
            lock(connection, people_revision)
            before = _known(connection, account_id)
            if values.get("role", "admin") != "admin" or is_disabled:
                _keep_an_admin(connection, before)
            if values:
                connection.execute(update(accounts).where(accounts.c.id == account_id).values(**values))
            if groups is not None:
                _set_groups(connection, account_id, groups)
            if linux_names is not None:
                _set_linux_names(connection, account_id, linux_names)
            after = _known(connection, account_id)
            if after != before:
                count_change(connection, people_revision)
                action = "account.change"
                if after.role != before.role:
                    action = "account.role"
                    connection.execute(delete(api_tokens).where(api_tokens.c.account_id == account_id))
                write_audit(connection, [Deed(action, account_id, _difference(before, after), by, now)])
            return after

    def set_password(
        self,
        account_id: str,
        password_hash: str | None,
        *,
        now: float,
        by: Actor,
        keep_session: str | None = None,
    ) -> None:
        """Set a password, or none, and end every token and every session but the one kept."""
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            _known(connection, account_id)
            connection.execute(
                update(accounts).where(accounts.c.id == account_id).values(password_hash=password_hash)
            )
            connection.execute(
                delete(login_sessions).where(
                    login_sessions.c.account_id == account_id, login_sessions.c.id != (keep_session or "")
                )
            )
            connection.execute(delete(api_tokens).where(api_tokens.c.account_id == account_id))
            write_audit(connection, [Deed("account.password", account_id, "", by, now)])

    def rehash_password(self, account_id: str, password_hash: str) -> None:
        """Keep the same password under a better hash; nothing that anyone notices."""
        with writing(self._engine) as connection:
            connection.execute(
                update(accounts).where(accounts.c.id == account_id).values(password_hash=password_hash)
            )

    def note_login(self, account_id: str, now: float) -> None:
        """Remember when someone last logged in."""
        with writing(self._engine) as connection:
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(last_login_at=now))

    def erase_account(self, account_id: str, *, now: float, by: Actor) -> None:
        """Forget a person. ``Refused`` ``unknown_account`` or ``last_admin``.

        The account, its keys and calendars go. Its bookings that lie ahead are cancelled, those that run end now, and
        all of them lose name, title and comment; those made for a group are the group's and stay. The audit log keeps
        the id and what was done, not the name nor from where.
        """
        second = int(now)
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            account = _known(connection, account_id)
            _keep_an_admin(connection, account)
            revision = count_change(connection, booking_revision)
            theirs = bookings.c.owner_id == account_id
            own = theirs & bookings.c.group_name.is_(None)
            ahead = own & bookings.c.holds & (bookings.c.ends_at > second)
            connection.execute(
                update(bookings)
                .where(ahead, bookings.c.starts_at < second)
                .values(released_from=bookings.c.ends_at, ends_at=second)
            )
            connection.execute(
                update(bookings)
                .where(ahead, bookings.c.starts_at >= second)
                .values(state="cancelled", holds=False)
            )
            connection.execute(update(bookings).where(own).values(owner_name=ERASED, title="", comment=""))
            connection.execute(
                update(bookings).where(theirs).values(owner_id=None, changed_at=now, revision=revision)
            )
            write_audit(connection, [Deed("account.erase", account_id, "", by, now)])
            connection.execute(delete(accounts).where(accounts.c.id == account_id))
            connection.execute(
                update(audit)
                .where(audit.c.account_id == account_id, audit.c.peer.is_not(None))
                .values(peer=None)
            )

    def has_admin(self) -> bool:
        """Whether someone could administer this hub."""
        with reading(self._engine) as connection:
            return _other_admins(connection) > 0

    def put_setup_code(self, digest: str, expires_at: float) -> None:
        """Keep the digest of the one code that makes the first admin; older codes are void."""
        with writing(self._engine) as connection:
            lock(connection, people_revision)
            connection.execute(delete(setup_codes))
            connection.execute(insert(setup_codes).values(digest=digest, expires_at=expires_at))

    def take_setup_code(
        self,
        digest: str,
        *,
        name: str,
        display_name: str,
        password_hash: str,
        now: float,
        by: Actor,
    ) -> Account:
        """Spend the code and make the first admin, or neither.

        ``Refused`` ``setup_done`` if there is an admin, ``code_invalid`` if the code is unknown, spent or expired, or
        ``name_taken``.
        """
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            if _other_admins(connection):
                raise Refused("setup_done", "this hub has an admin already; log in instead")
            spent = connection.execute(
                delete(setup_codes).where(setup_codes.c.digest == digest, setup_codes.c.expires_at > now)
            )
            if spent.rowcount != 1:
                raise Refused(
                    "code_invalid",
                    "the set-up link is unknown, spent or expired; print a new one with "
                    "`gpuherd hub setup-link`",
                )
            connection.execute(delete(setup_codes))
            account = _insert(
                connection,
                name=name,
                display_name=display_name,
                role="admin",
                source="local",
                subject=None,
                password_hash=password_hash,
                linux_names=(),
                groups=(),
                now=now,
            )
            write_audit(connection, [Deed("account.setup", account.id, "first admin", by, now)])
            return account

    def secret(self, name: str) -> bytes:
        """Give a random key of 32 bytes that stays the same; made when first asked for."""
        query = select(secrets_table.c.value).where(secrets_table.c.name == name)
        with reading(self._engine) as connection:
            found = connection.execute(query).scalar_one_or_none()
        if found is None:
            with writing(self._engine) as connection:
                lock(connection, people_revision)
                found = connection.execute(query).scalar_one_or_none()
                if found is None:
                    found = randomness.token_bytes(32)
                    connection.execute(insert(secrets_table).values(name=name, value=found))
        return bytes(found)
