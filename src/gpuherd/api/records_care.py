"""Maintenance of the records: checkpoints, damage, and whether they still contain what they did last time.

A small file beside the records has the numbers of changes that were last seen. Records with lower numbers have lost
changes or are an older copy; SQLite itself cannot know. Light to import.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Engine, func, select

from gpuherd.fleet.views import FleetNotice
from gpuherd.history.tables.disk import write_whole
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import Deed, write_audit
from gpuherd.records.database import sqlite_file
from gpuherd.records.tables import audit, booking_revision, node_revision, people_revision
from gpuherd.records.transactions import RESTORE, reading, writing

__all__ = ["MISSING", "RecordsCare", "forget_seen", "refuse_missing", "start_afresh"]

log = logging.getLogger(__name__)

MISSING = (
    "records are missing: the database is empty, although this hub has had nodes or accounts; stop the hub, then "
    "restore a backup with `gpuherd restore FILE`, or start afresh with `gpuherd hub start-afresh`"
)
FULL = (
    "the hub's disk is full: everything can be read, but nothing can be changed or recorded; free some space"
)

_FILE = "records-seen.json"
_AFRESH = "records.start_afresh"
CHECKPOINT_SECONDS = 60.0


class _Counts(Struct, frozen=True, array_like=True):
    """Numbers of changes of nodes, people and bookings in a database, and the last id in the audit log."""

    nodes: int
    people: int
    bookings: int
    audit: int = 0

    @property
    def are_none(self) -> bool:
        return not (self.nodes or self.people or self.bookings)

    def lacks(self, before: _Counts) -> bool:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(before), strict=True)
        return any(now < then for now, then in pairs)


class _Seen(Struct, frozen=True):
    counts: tuple[int, ...]
    """Of which older versions wrote fewer."""
    checksum: int


def _checksum(counts: tuple[int, ...]) -> int:
    return zlib.crc32(msgspec.json.encode(counts))


def _read_seen(state_dir: Path) -> _Counts | None:
    file = state_dir / _FILE
    try:
        seen = msgspec.json.decode(file.read_bytes(), type=_Seen)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("cannot read %s (%s); it will be written again; check the disk", file, error)
        return None
    if seen.checksum != _checksum(seen.counts):
        log.warning("%s is damaged and will be written again; check the disk", file)
        return None
    return _Counts(*seen.counts)


def forget_seen(state_dir: Path) -> None:
    """Forget the numbers of changes, after records were replaced on purpose."""
    (state_dir / _FILE).unlink(missing_ok=True)


def _counts(engine: Engine) -> _Counts:
    with reading(engine) as connection:
        nodes, people, bookings = (
            int(connection.execute(select(table.c.number)).scalar_one())
            for table in (node_revision, people_revision, booking_revision)
        )
        last = connection.execute(select(func.max(audit.c.id))).scalar_one()
    return _Counts(nodes, people, bookings, last or 0)


def _is_empty(engine: Engine) -> bool:
    """Tell whether the records were never changed and nobody asked to start afresh."""
    with reading(engine) as connection:
        is_afresh = connection.execute(select(audit.c.id).where(audit.c.action == _AFRESH).limit(1)).first()
    return is_afresh is None and _counts(engine).are_none


def _last_restore(engine: Engine) -> str | None:
    """Return what the audit log says about the last restore."""
    found = select(audit.c.detail).where(audit.c.action == "records.restore").order_by(audit.c.id.desc())
    with reading(engine) as connection:
        return connection.execute(found.limit(1)).scalar()


def refuse_missing(engine: Engine, state_dir: Path) -> None:
    """Raise ``Refused`` ``records_missing`` if the records are empty although there were some. Blocking."""
    seen = _read_seen(state_dir)
    if seen is not None and not seen.are_none and _is_empty(engine):
        raise Refused("records_missing", MISSING)


def start_afresh(engine: Engine, state_dir: Path, *, now: float) -> None:
    """Let a hub whose records are missing continue with empty ones. Blocking; ``Refused`` if there are records."""
    if not _counts(engine).are_none:
        raise Refused(
            "records_not_empty",
            "the database is not empty, so there is no need to start afresh; nothing was changed",
        )
    with writing(engine) as connection:
        by = Actor(account_id=None, label="command line")
        write_audit(connection, [Deed(_AFRESH, "records", "", by, now)])
    forget_seen(state_dir)


class RecordsCare:
    """Maintains one hub's records. All methods block, except ``notices`` and ``is_missing``."""

    def __init__(
        self, engine: Engine, state_dir: Path, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._file = sqlite_file(engine)
        self._state_dir = state_dir
        self._monotonic = monotonic
        self._checkpoint_at = 0.0
        self._noted: _Counts | None = None
        self._trouble: FleetNotice | None = None
        self._damage: FleetNotice | None = None
        self.is_missing = False
        """Whether the records are empty although the hub has had some."""

    def open(self, known_nodes: Collection[str], now: float) -> None:
        """Compare the records with what was last seen; only the records can have named ``known_nodes``."""
        try:
            self._empty_log()
        except Failed as error:  # a full disk, for example: everything can still be read
            log.warning("%s", error)
        seen, counts = _read_seen(self._state_dir), _counts(self._engine)
        self._noted = seen
        if seen is None and (restored := _last_restore(self._engine)) is not None:
            log.warning("the database was restored from a %s", restored)
        if _is_empty(self._engine) and (known_nodes or not (seen is None or seen.are_none)):
            self.is_missing = True
            self._trouble = FleetNotice(code="records_missing", message=MISSING, since=now)
        elif seen is not None and counts.lacks(seen):
            message = (
                "the database lacks recent changes to nodes, accounts, bookings or the audit log: it was "
                f"damaged or replaced by an older copy; unless you did this on purpose, {RESTORE}"
            )
            self._trouble = FleetNotice(code="records_older", message=message, since=now)
        if self._trouble is not None:
            log.error("%s", self._trouble.message)

    def look(self) -> None:
        """Note the counts and checkpoint the log, if due; ``Failed`` if the disk does not allow it."""
        if self.is_missing:
            return
        if self._file is not None and self._file.is_copy:
            raise Failed(FULL)
        counts = _counts(self._engine)
        if counts != self._noted:
            try:
                numbers = msgspec.structs.astuple(counts)
                seen = _Seen(numbers, _checksum(numbers))
                write_whole(self._state_dir / _FILE, msgspec.json.encode(seen))
            except OSError as error:
                raise Failed(
                    f"cannot write {self._state_dir / _FILE}: {error.strerror}; free some space or check the disk"
                ) from error
            self._noted = counts
        if self._monotonic() >= self._checkpoint_at:
            self._empty_log()

    def _empty_log(self) -> None:
        self._checkpoint_at = self._monotonic() + CHECKPOINT_SECONDS
        if self._file is not None and not self._file.is_copy:
            self._file.checkpoint()

    def check(self, now: float) -> None:
        """Read the whole database and look for damage; it may take seconds, so nobody waits for it."""
        if self._file is None or self._file.is_copy:
            return
        found = self._file.damage()
        if found is None:
            self._damage = None
        elif self._damage is None:
            message = f"the database is damaged ({found}); {RESTORE}"
            self._damage = FleetNotice(code="records_damaged", message=message, since=now)
            log.error("%s", message)

    def notices(self) -> tuple[FleetNotice, ...]:
        """Return what is wrong with the records."""
        is_full = self._file is not None and self._file.is_copy
        full = FleetNotice(code="disk_full", message=FULL) if is_full else None
        return tuple(each for each in (self._trouble, self._damage, full) if each is not None)
