"""Between accounts and their rows."""

from __future__ import annotations

import secrets as randomness
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select

from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, AccountSource, Role
from gpuherd.model.text import plain_name
from gpuherd.records.tables import accounts, linux_names, memberships

__all__ = [
    "check_shown_name",
    "count_admins",
    "describe_change",
    "insert_account",
    "keep_an_admin",
    "known_account",
    "load_accounts",
    "name_key",
    "set_groups",
    "set_linux_names",
]


def name_key(name: str) -> str:
    """Give the form in which names are compared: neither case nor the way a letter is composed tells two apart."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def load_accounts(
    connection: Connection, condition: ColumnElement[bool] | None = None
) -> tuple[Account, ...]:
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
            linux_names=tuple(sorted({*claimed[row.id], *_implied_names(row, holder)})),
            is_disabled=row.is_disabled,
            created_at=row.created_at,
            last_login_at=row.last_login_at,
        )
        for row in rows
    )


def _implied_names(row: Row[Any], holder: Mapping[str, str]) -> tuple[str, ...]:
    """Return the person's own name, unless it is someone else's Linux name.

    At an OpenID Connect provider people may choose their name, so their Linux names come only from
    ``linux_name_claim`` or an admin.
    """
    is_own = row.source != "oidc" and holder.get(row.name, row.id) == row.id
    return (row.name,) if is_own else ()


def known_account(connection: Connection, account_id: str) -> Account:
    found = load_accounts(connection, accounts.c.id == account_id)
    if not found:
        raise Refused("unknown_account", "there is no such account")
    return found[0]


def count_admins(connection: Connection, account_id: str = "") -> int:
    return int(
        connection.execute(
            select(func.count())
            .select_from(accounts)
            .where(accounts.c.role == "admin", accounts.c.is_disabled.is_(False), accounts.c.id != account_id)
        ).scalar_one()
    )


def keep_an_admin(connection: Connection, account: Account) -> None:
    """Refuse to lose the last one who could undo it."""
    if account.role == "admin" and not account.is_disabled and not count_admins(connection, account.id):
        raise Refused("last_admin", "this is the last admin who can log in; make someone else an admin first")


def set_groups(connection: Connection, account_id: str, groups: Iterable[str]) -> None:
    connection.execute(delete(memberships).where(memberships.c.account_id == account_id))
    if rows := [{"account_id": account_id, "group_name": group} for group in sorted(set(groups))]:
        connection.execute(insert(memberships), rows)


def set_linux_names(connection: Connection, account_id: str, names: Collection[str]) -> None:
    taken = connection.execute(
        select(linux_names.c.linux_name)
        .where(linux_names.c.linux_name.in_(sorted(set(names))), linux_names.c.account_id != account_id)
        .order_by(linux_names.c.linux_name)
    ).first()
    if taken is not None:
        raise Refused(
            "linux_name_taken", f"the user {taken.linux_name} on the nodes already belongs to another account"
        )
    connection.execute(delete(linux_names).where(linux_names.c.account_id == account_id))
    if rows := [{"linux_name": name, "account_id": account_id} for name in sorted(set(names))]:
        connection.execute(insert(linux_names), rows)


def check_shown_name(connection: Connection, display_name: str, name: str) -> None:
    """Raise ``Refused`` ``name_taken`` if others would take the account for another one, or for a group."""
    if is_shown_name_taken(connection, display_name, name):
        raise Refused(
            "name_taken",
            f"{display_name} is the name of another account or group; choose another display name",
        )


def is_shown_name_taken(connection: Connection, display_name: str, name: str) -> bool:
    """Tell whether another account than ``name``, or a group, is called this; neither case nor accents count."""
    wanted = plain_name(display_name)
    if wanted in ("", plain_name(name)):
        return False
    others = select(accounts.c.name, accounts.c.display_name).where(accounts.c.name_key != name_key(name))
    known = {plain_name(text) for row in connection.execute(others) for text in row}
    groups = connection.execute(select(memberships.c.group_name).distinct()).scalars()
    return wanted in known or any(plain_name(group) == wanted for group in groups)


def insert_account(
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
        raise Refused("name_taken", "this person already has an account")
    if source == "local":
        check_shown_name(connection, display_name, name)
    elif is_shown_name_taken(connection, display_name, name):
        display_name = name  # the person may enter, but not as somebody else
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
    set_groups(connection, account_id, groups)
    set_linux_names(connection, account_id, linux_names)
    return known_account(connection, account_id)


def describe_change(before: Account, after: Account) -> str:
    """Describe a change without Linux names, which ``Deed`` has separately so that they can be erased.

    "Linux names" comes last, because the log's reader appends the names there.
    """
    parts = []
    if before.role != after.role:
        parts.append(f"role {before.role} → {after.role}")
    if before.is_disabled != after.is_disabled:
        parts.append("disabled" if after.is_disabled else "enabled")
    if before.groups != after.groups:
        parts.append(f"groups {', '.join(before.groups) or 'none'} → {', '.join(after.groups) or 'none'}")
    if before.display_name != after.display_name:
        parts.append("shown name")
    if before.linux_names != after.linux_names:
        parts.append("Linux names")
    return "; ".join(parts)
