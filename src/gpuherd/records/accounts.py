"""Accounts: the verbs on them. Blocking; one transaction each, with its line in the audit log."""

from __future__ import annotations

import secrets as randomness
from collections.abc import Collection
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Engine, case, delete, insert, select, update

from gpuherd.model.errors import Refused
from gpuherd.model.people import HUB, Account, AccountSource, Actor, Role
from gpuherd.records.account_rows import (
    check_shown_name,
    count_admins,
    describe_change,
    insert_account,
    keep_an_admin,
    known_account,
    load_accounts,
    name_key,
    set_groups,
    set_linux_names,
)
from gpuherd.records.audit import ERASED, Deed, forget_audit_names, moment, write_audit
from gpuherd.records.tables import (
    accounts,
    api_tokens,
    audit,
    booking_revision,
    bookings,
    feeds,
    login_sessions,
    people_revision,
    setup_codes,
)
from gpuherd.records.tables import secrets as secrets_table
from gpuherd.records.transactions import BadText, count_change, lock, reading, revision_of, writing

__all__ = ["AccountRecords", "People"]


class People(Struct, frozen=True, kw_only=True):
    """Every account, as of one revision."""

    revision: int
    accounts: tuple[Account, ...]


def _describe_new(account: Account, *, has_names: bool) -> str:
    parts = [f"{account.source}, {account.role}"]
    if account.groups:
        parts.append(f"groups {', '.join(account.groups)}")
    if has_names:
        parts.append("Linux names")
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
                accounts=load_accounts(connection),
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
                found = load_accounts(connection, condition)
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
            account = insert_account(
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
            write_audit(
                connection,
                [
                    Deed(
                        "account.create",
                        account.id,
                        _describe_new(account, has_names=bool(linux_names)),
                        by,
                        now,
                        given_names=linux_names,
                    )
                ],
            )
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
        """Change what is given.

        ``Refused`` ``unknown_account``, ``last_admin``, ``linux_name_taken``, or ``name_taken`` for the shown name.
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
            before = known_account(connection, account_id)
            if values.get("role", "admin") != "admin" or is_disabled:
                keep_an_admin(connection, before)
            if display_name is not None and display_name != before.display_name:
                check_shown_name(connection, display_name, before.name)
            if values:
                connection.execute(update(accounts).where(accounts.c.id == account_id).values(**values))
            if groups is not None:
                set_groups(connection, account_id, groups)
            if linux_names is not None:
                set_linux_names(connection, account_id, linux_names)
            after = known_account(connection, account_id)
            if after != before:
                count_change(connection, people_revision)
                action = "account.change"
                if after.role != before.role:
                    action = "account.role"
                    connection.execute(delete(api_tokens).where(api_tokens.c.account_id == account_id))
                write_audit(
                    connection,
                    [
                        Deed(
                            action,
                            account_id,
                            describe_change(before, after),
                            by,
                            now,
                            given_names=set(after.linux_names) - set(before.linux_names),
                            taken_names=set(before.linux_names) - set(after.linux_names),
                        )
                    ],
                )
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
        """Set a password, or none, and end every token, every calendar and every session but the one kept."""
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            known_account(connection, account_id)
            connection.execute(
                update(accounts).where(accounts.c.id == account_id).values(password_hash=password_hash)
            )
            connection.execute(
                delete(login_sessions).where(
                    login_sessions.c.account_id == account_id, login_sessions.c.id != (keep_session or "")
                )
            )
            for table in (api_tokens, feeds):
                connection.execute(delete(table).where(table.c.account_id == account_id))
            write_audit(connection, [Deed("account.password", account_id, "", by, now)])

    def rehash_password(self, account_id: str, old_hash: str, password_hash: str) -> None:
        """Keep the same password under a better hash; nothing that anyone notices.

        ``Refused`` ``changed_meanwhile`` if the old hash is no longer the kept one: a password that was just replaced
        must not come back.
        """
        with writing(self._engine) as connection:
            kept = connection.execute(
                update(accounts)
                .where(accounts.c.id == account_id, accounts.c.password_hash == old_hash)
                .values(password_hash=password_hash)
            )
            if kept.rowcount != 1:
                raise Refused("changed_meanwhile", "the password has been changed; log in again")

    def note_login(self, account_id: str, now: float) -> None:
        """Remember when someone last logged in."""
        with writing(self._engine) as connection:
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(last_login_at=now))

    def erase_account(self, account_id: str, *, now: float, by: Actor) -> None:
        """Forget a person. ``Refused`` ``unknown_account`` or ``last_admin``.

        The account, its keys and calendars go. Its bookings that lie ahead are cancelled, those that run end now, and
        all of them lose name, title and comment; those made for a group are the group's and stay. The audit log keeps
        the id and what was done, not the name, nor from where, nor the Linux names that nobody else has.
        """
        second = int(now)
        with writing(self._engine) as connection:
            count_change(connection, people_revision)
            account = known_account(connection, account_id)
            keep_an_admin(connection, account)
            revision = count_change(connection, booking_revision)
            theirs = bookings.c.owner_id == account_id
            own = theirs & bookings.c.group_name.is_(None)
            ahead = own & bookings.c.holds & (bookings.c.ends_at > second)
            connection.execute(
                update(bookings)
                .where(ahead, bookings.c.starts_at <= second)
                .values(
                    released_from=bookings.c.ends_at,
                    ends_at=case((bookings.c.starts_at < second, second), else_=second + 1),
                )
            )
            connection.execute(
                update(bookings)
                .where(ahead, bookings.c.starts_at > second)
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
            forget_audit_names(connection, account_id, account.linux_names)

    def has_admin(self) -> bool:
        """Whether someone could administer this hub."""
        with reading(self._engine) as connection:
            return count_admins(connection) > 0

    def put_setup_code(self, digest: str, expires_at: float, *, now: float, by: Actor = HUB) -> None:
        """Keep the digest of the one code that makes the first admin; older codes are void."""
        with writing(self._engine) as connection:
            lock(connection, people_revision)
            connection.execute(delete(setup_codes))
            connection.execute(insert(setup_codes).values(digest=digest, expires_at=expires_at))
            write_audit(connection, [Deed("setup.link", "hub", f"until {moment(expires_at)}", by, now)])

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
            if count_admins(connection):
                raise Refused("setup_done", "this hub already has an admin; log in instead")
            spent = connection.execute(
                delete(setup_codes).where(setup_codes.c.digest == digest, setup_codes.c.expires_at > now)
            )
            if spent.rowcount != 1:
                raise Refused(
                    "code_invalid",
                    "the set-up link is invalid, used up or expired; print a new one with `gpuherd hub "
                    "setup-link`",
                )
            connection.execute(delete(setup_codes))
            account = insert_account(
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
