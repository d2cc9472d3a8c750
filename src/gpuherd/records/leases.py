"""Leases: each hub renews a row while it runs, so that nobody replaces the records underneath it.

Only for records in a database that is named by a URL. A hub with its records in its state folder holds that folder's
lock instead, which the system releases at once when the process is killed.
"""

from __future__ import annotations

import time

from msgspec import Struct
from sqlalchemy import Connection, Engine, delete, func, insert, inspect, select, update

from gpuherd.records.database import lock_migrations
from gpuherd.records.tables import hub_leases
from gpuherd.records.transactions import writing

__all__ = ["LEASE_SECONDS", "RENEW_SECONDS", "HubLease", "LeaseRecords", "running_hubs"]

RENEW_SECONDS = 5.0
LEASE_SECONDS = 30.0
"""A hub that has not renewed its lease for this long is no longer running.

Neither is one whose lease lies this far in the future: the database's clock was set back since.
"""


class HubLease(Struct, frozen=True, kw_only=True):
    """A running hub."""

    host: str
    pid: int
    age_seconds: float


def _now(connection: Connection) -> float:
    """Return the database's time, because the machines' clocks may differ."""
    if connection.dialect.name == "postgresql":
        clock = func.extract("epoch", func.clock_timestamp())
        return float(connection.execute(select(clock)).scalar_one())
    return time.time()


def running_hubs(connection: Connection) -> list[HubLease]:
    """Return the hubs that run on these records. After ``lock_migrations`` none can start during the transaction."""
    if not inspect(connection).has_table(hub_leases.name):
        return []
    now = _now(connection)
    rows = connection.execute(select(hub_leases).order_by(hub_leases.c.host, hub_leases.c.pid))
    return [
        HubLease(host=row.host, pid=row.pid, age_seconds=now - row.renewed_at)
        for row in rows
        if abs(now - row.renewed_at) <= LEASE_SECONDS
    ]


class LeaseRecords:
    """One hub's lease. Blocking; database trouble is ``Failed``."""

    def __init__(self, engine: Engine, *, lease_id: str, host: str, pid: int) -> None:
        self._engine = engine
        self._id, self._host, self._pid = lease_id, host, pid

    def renew(self) -> None:
        """Take or renew the lease. Deletes expired leases of other hubs."""
        with writing(self._engine) as connection:
            now = _now(connection)
            renewed = connection.execute(
                update(hub_leases).where(hub_leases.c.id == self._id).values(renewed_at=now)
            )
            if renewed.rowcount:
                return
            # This waits for a restore that has begun, and a later one finds this lease.
            lock_migrations(connection)
            connection.execute(
                delete(hub_leases).where(func.abs(hub_leases.c.renewed_at - now) > LEASE_SECONDS)
            )
            connection.execute(
                insert(hub_leases).values(id=self._id, host=self._host, pid=self._pid, renewed_at=now)
            )

    def end(self) -> None:
        """Release the lease."""
        with writing(self._engine) as connection:
            connection.execute(delete(hub_leases).where(hub_leases.c.id == self._id))
