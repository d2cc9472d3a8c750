"""Leases: which hubs run on the records, whoever asks and whoever is killed."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text, update

from gpuherd.model.errors import Refused
from gpuherd.records.backup import holds_records, restore_backup, write_backup
from gpuherd.records.database import lock_migrations, records_engine, records_url
from gpuherd.records.leases import LEASE_SECONDS, LeaseRecords, running_hubs
from gpuherd.records.tables import hub_leases
from support.hub import eventually as eventually_async
from support.hub import running_hub
from support.postgresql import Postgresql
from support.running import eventually


def lease(engine: Engine, name: str, pid: int = 7) -> LeaseRecords:
    return LeaseRecords(engine, lease_id=name, host=f"host-{name}", pid=pid)


def running(engine: Engine) -> list[tuple[str, int]]:
    with engine.begin() as connection:
        return [(hub.host, hub.pid) for hub in running_hubs(connection)]


def age(engine: Engine, seconds: float) -> None:
    """Let the leases get older, as those of killed hubs do."""
    with engine.begin() as connection:
        connection.execute(update(hub_leases).values(renewed_at=hub_leases.c.renewed_at - seconds))


def test_a_lease_is_taken_renewed_and_given_back(engine: Engine) -> None:
    first, second = lease(engine, "a"), lease(engine, "b", 8)
    assert running(engine) == []
    first.renew()
    second.renew()
    assert running(engine) == [("host-a", 7), ("host-b", 8)]
    age(engine, LEASE_SECONDS - 10)
    first.renew()
    age(engine, 20)
    assert running(engine) == [("host-a", 7)]  # the other one was killed
    lease(engine, "c").renew()
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM hub_leases")).scalar_one() == 2
    first.end()
    assert running(engine) == [("host-c", 7)]


def test_a_lease_from_the_future_is_no_running_hub(engine: Engine) -> None:
    """A hub was killed while the database's clock was ahead. The clock is right again."""
    lease(engine, "a").renew()
    age(engine, -LEASE_SECONDS - 60)
    assert running(engine) == []
    lease(engine, "b").renew()
    with engine.begin() as connection:
        assert connection.execute(text("SELECT id FROM hub_leases")).scalars().all() == ["b"]


def test_a_restore_says_which_hub_runs_and_where(
    engine: Engine, migrated_location: Path | str, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    write_backup(migrated_location, file)
    lease(engine, "a").renew()
    with pytest.raises(Refused, match="process 7 on host-a") as refused:
        restore_backup(file, migrated_location, replace=True)
    assert refused.value.code == "hub_running"
    age(engine, LEASE_SECONDS + 1)
    restore_backup(file, migrated_location, replace=True)
    # A hub that slept through it, suspended for instance, goes on with a new lease.
    lease(engine, "a").renew()
    assert running(engine) == [("host-a", 7)]


def test_a_hub_that_starts_waits_for_a_restore_that_has_looked_already(postgresql: Postgresql) -> None:
    with postgresql.database(migrated=True) as url:
        engine = records_engine(records_url(url))
        hub = threading.Thread(target=lease(engine, "a").renew)
        with engine.begin() as restoring:
            lock_migrations(restoring)
            assert running_hubs(restoring) == []
            hub.start()
            waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            with engine.connect() as looking:
                eventually(lambda: looking.execute(waiting).scalar_one(), lambda count: count == 1)
            assert running_hubs(restoring) == []
        hub.join()
        assert running(engine) == [("host-a", 7)]
        engine.dispose()


@pytest.mark.promise("restore-refused-under-a-hub")
def test_a_hub_on_postgresql_is_seen_from_its_start_to_its_end(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    with postgresql.database() as url:
        assert not holds_records(url)
        engine = records_engine(records_url(url))
        assert inspect(engine).get_table_names() == [], "to look makes nothing"
        file = tmp_path / "backup"

        async def story() -> None:
            async with running_hub(tmp_path / "state", records_url=url) as hub:
                assert await asyncio.to_thread(running, engine) == [(socket.gethostname(), os.getpid())]
                write = write_backup
                await asyncio.to_thread(write, url, file)
                with pytest.raises(Refused, match=f"process {os.getpid()} on {socket.gethostname()}"):
                    await asyncio.to_thread(restore_backup, file, url, replace=True)
                # It is renewed while the hub runs, also after the row was lost.
                with engine.begin() as connection:
                    connection.execute(text("DELETE FROM hub_leases"))
                assert hub._lease is not None
                await hub._lease.renew()
                await eventually_async(lambda: running(engine) or None)

        asyncio.run(story())
        assert running(engine) == []
        assert holds_records(url)
        restore_backup(file, url, replace=True)
        engine.dispose()
