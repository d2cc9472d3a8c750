"""The audit log: who did what, when and from where. It only grows, and loses what is old."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from gpuherd.model.people import Actor, AuditEntry
from gpuherd.model.text import clean
from gpuherd.records.tables import accounts, audit, audit_names, audit_retention, linux_names
from gpuherd.records.transactions import BadText, reading, writing

__all__ = ["ERASED", "AuditRecords", "Deed", "forget_audit_names", "moment", "write_audit"]

ERASED = "erased user"
"""What is shown instead of the name of someone who has been erased."""
DETAIL_LENGTH = 1024
_APPEND = insert(audit)


class Deed(Struct, frozen=True):
    """Something that was done, on its way into the log."""

    action: str
    subject: str
    detail: str
    by: Actor
    at: float
    given_names: Collection[str] = ()
    """Linux names that the account got. Stored beside the log, so that they can be erased."""
    taken_names: Collection[str] = ()


def _row(deed: Deed) -> dict[str, object]:
    return {
        "at": deed.at,
        "account_id": deed.by.account_id,
        "label": clean(deed.by.label) if deed.by.account_id is None else None,
        "peer": None if deed.by.peer is None else clean(deed.by.peer),
        "action": deed.action,
        "subject": clean(deed.subject, 256),
        "detail": clean(deed.detail, DETAIL_LENGTH),
    }


def moment(at: float) -> str:
    """Format a time as in entries of the log."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def write_audit(connection: Connection, deeds: Iterable[Deed]) -> None:
    """Log what is done in the same transaction: either both happen or neither."""
    rows = []
    for deed in deeds:
        if not (deed.given_names or deed.taken_names):
            rows.append(_row(deed))
            continue
        entry_id = connection.execute(_APPEND.returning(audit.c.id), _row(deed)).scalar_one()
        connection.execute(
            insert(audit_names),
            [
                {"audit_id": entry_id, "linux_name": name, "is_given": is_given}
                for names, is_given in ((deed.given_names, True), (deed.taken_names, False))
                for name in sorted(set(names))
            ],
        )
    if rows:
        connection.execute(_APPEND, rows)


def forget_audit_names(connection: Connection, account_id: str, names: Collection[str]) -> None:
    """Erase the Linux names of a deleted account from all entries, unless another account has the name."""
    about = select(audit.c.id).where(audit.c.subject == account_id)
    claimed = or_(
        exists().where(linux_names.c.linux_name == audit_names.c.linux_name),
        exists().where(accounts.c.name == audit_names.c.linux_name),
    )
    connection.execute(
        delete(audit_names).where(
            and_(
                or_(audit_names.c.linux_name.in_(sorted(names)), audit_names.c.audit_id.in_(about)), ~claimed
            )
        )
    )


def _names_of(connection: Connection, entry_ids: Collection[int]) -> dict[int, str]:
    """Return the Linux names in these entries, formatted for people: ``+alice, -bob``."""
    query = (
        select(audit_names)
        .where(audit_names.c.audit_id.in_(entry_ids))
        .order_by(audit_names.c.audit_id, audit_names.c.is_given.desc(), audit_names.c.linux_name)
    )
    found: dict[int, list[str]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.audit_id].append(f"{'+' if row.is_given else '-'}{row.linux_name}")
    return {entry_id: ", ".join(names) for entry_id, names in found.items()}


def _holding(text: str) -> ColumnElement[bool]:
    """Find a text anywhere in an entry, also in the names of those whose ids stand there."""
    named = select(accounts.c.id).where(
        or_(
            accounts.c.name.icontains(text, autoescape=True),
            accounts.c.display_name.icontains(text, autoescape=True),
        )
    )
    return or_(
        *(
            column.icontains(text, autoescape=True)
            for column in (audit.c.action, audit.c.subject, audit.c.detail, audit.c.label, audit.c.peer)
        ),
        audit.c.account_id.in_(named),
        audit.c.subject.in_(named),
        audit.c.id.in_(
            select(audit_names.c.audit_id).where(audit_names.c.linux_name.icontains(text, autoescape=True))
        ),
    )


class AuditRecords:
    """The log. Blocking; database trouble is ``Failed``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def append(self, deeds: Iterable[Deed]) -> None:
        """Log what leaves no other trace in the records, such as a login that failed."""
        with writing(self._engine) as connection:
            write_audit(connection, deeds)

    def search(
        self,
        *,
        text: str | None = None,
        action: str | None = None,
        account_id: str | None = None,
        since: float | None = None,
        until: float | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        """Give the newest entries that match everything asked for; ``before_id`` pages back.

        ``action`` may be the part before the dot (``booking``); ``account_id`` finds both what someone did and what
        was done to them; ``until`` is not included.
        """
        query = (
            select(audit, accounts.c.name)
            .join(accounts, accounts.c.id == audit.c.account_id, isouter=True)
            .order_by(audit.c.id.desc())
            .limit(limit)
        )
        if text:
            query = query.where(_holding(text))
        if action is not None:
            query = query.where(
                or_(audit.c.action == action, audit.c.action.startswith(f"{action}.", autoescape=True))
            )
        if account_id is not None:
            query = query.where(or_(audit.c.account_id == account_id, audit.c.subject == account_id))
        if since is not None:
            query = query.where(audit.c.at >= since)
        if until is not None:
            query = query.where(audit.c.at < until)
        if before_id is not None:
            query = query.where(audit.c.id < before_id)
        try:
            with reading(self._engine) as connection:
                rows = connection.execute(query).all()
                names = _names_of(connection, [row.id for row in rows]) if rows else {}
        except BadText:
            return ()
        return tuple(
            AuditEntry(
                id=row.id,
                at=row.at,
                account_id=row.account_id,
                who=row.label if row.account_id is None else row.name or ERASED,
                peer=row.peer,
                action=row.action,
                subject=row.subject,
                detail=f"{row.detail}: {names[row.id]}" if row.id in names else row.detail,
            )
            for row in rows
        )

    def prune(self, before: float, *, now: float) -> int:
        """Delete entries older than ``before`` and return their number. Newer ones are protected from then on.

        An entry that was written after one of ``before`` to ``now`` is younger than its time says: the clock was behind
        when it was written. It is kept as long as that one. The database refuses (``Failed``) to forget what is less
        than a day old.
        """
        with writing(self._engine) as connection:
            # May also be lowered: a clock that was ahead may have left a time that protects nothing.
            connection.execute(
                update(audit_retention).where(audit_retention.c.keep_from != before).values(keep_from=before)
            )
            first_kept = connection.execute(
                select(func.min(audit.c.id)).where(audit.c.at.between(before, now))
            ).scalar_one()
            old = delete(audit).where(audit.c.at < before)
            return connection.execute(
                old if first_kept is None else old.where(audit.c.id < first_kept)
            ).rowcount
