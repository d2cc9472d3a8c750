"""Watches every transaction of this process: what changes the records has its line in the audit log, or is told."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, event

__all__ = ["Audited"]

_WRITE = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+\"?(\w+)")
_BOOKKEEPING = re.compile(
    r"\s*(?:"
    r"UPDATE (?:node|people|booking)_revision "
    r"|UPDATE (?:login_sessions|api_tokens) SET seen_at="
    r"|UPDATE accounts SET last_login_at="
    r"|UPDATE accounts SET password_hash=\S+ WHERE accounts\.id = \S+ AND accounts\.password_hash = "  # rehashed
    r"|INSERT INTO secrets "
    r"|DELETE FROM \w+ WHERE \w+\.expires_at <= "
    r"|UPDATE audit_retention |DELETE FROM audit "
    r"|(?:INSERT INTO|UPDATE|DELETE FROM) (?:hub_leases|alembic_version|known_devices) "  # what nodes report
    r")"
)
_KEY = "written in a test"


class Audited:
    """``with Audited() as audited: ...; assert audited.unlogged == []``."""

    def __init__(self) -> None:
        self.unlogged: list[list[str]] = []
        """The writing statements of each transaction that changed something without a line in the log."""
        self._hooks: list[tuple[str, Any]] = [
            ("before_cursor_execute", self._execute),
            ("commit", self._commit),
            ("rollback", self._rollback),
        ]

    def __enter__(self) -> Self:
        for name, hook in self._hooks:
            event.listen(Engine, name, hook)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, hook in self._hooks:
            event.remove(Engine, name, hook)

    def _execute(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if _WRITE.match(statement) and not _BOOKKEEPING.match(" ".join(statement.split()) + " "):
            connection.info.setdefault(_KEY, []).append(statement)

    def _commit(self, connection: Connection) -> None:
        written: list[str] = connection.info.pop(_KEY, [])
        if written and not any(statement.lstrip().startswith("INSERT INTO audit ") for statement in written):
            self.unlogged.append(written)

    def _rollback(self, connection: Connection) -> None:
        connection.info.pop(_KEY, None)
