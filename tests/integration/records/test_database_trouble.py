"""A database that dies, stands still or has no room: a clear word in time, nothing lost, and it heals by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.engine import make_url

from gpuherd.model.bookings import DeviceRef
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records, records_url
from gpuherd.records.postgresql import postgresql_engine
from support.booking_drafts import BY, NOW, START, A, draft
from support.booking_writer import BookingWriter
from support.postgresql import Postgresql


@pytest.fixture
def database(postgresql: Postgresql) -> Iterator[str]:
    with postgresql.database(migrated=True) as url:
        yield url


def engine_at(url: str, **query: str) -> Engine:
    """Open a migrated database with a shorter patience, so that its end is seen."""
    asked = records_url(url).update_query_dict({"connect_timeout": "2", **query})
    return postgresql_engine(asked, transaction_seconds=1.0)


def device(number: int) -> DeviceRef:
    return DeviceRef("n", f"GPU-{number}")


def test_a_restart_between_two_verbs_is_not_noticed(postgresql: Postgresql, database: str) -> None:
    with closing(BookingRecords(open_records(database))) as records:
        made = records.create([draft(A)], now=NOW, by=BY)
        postgresql.stop()
        postgresql.start()
        assert records.changed_after(0) == made
        assert records.revision() == 1


def test_a_frozen_server_is_told_in_time_and_used_again(postgresql: Postgresql, database: str) -> None:
    with closing(BookingRecords(engine_at(database))) as records:
        made = records.create([draft(A)], now=NOW, by=BY)
        with postgresql.frozen():
            # First by the connection that is open already, then by one that would have to be made.
            for _ in range(2):
                with pytest.raises(Failed, match=r"in time|timeout"):
                    records.create([draft(device(1))], now=NOW, by=BY)
        assert set(records.changed_after(0)) >= set(made)
        records.create([draft(device(2))], now=NOW, by=BY)


def test_a_server_frozen_before_the_start_stops_it_in_time(postgresql: Postgresql, database: str) -> None:
    url = make_url(database).update_query_dict({"connect_timeout": "2"})
    with postgresql.frozen(), pytest.raises(Misconfigured, match="cannot open the database"):
        open_records(url.render_as_string())


def test_who_holds_the_lock_and_stands_still_is_not_waited_for_long(database: str) -> None:
    patient, hurried = open_records(database), engine_at(database, options="-c lock_timeout=300")
    try:
        with patient.connect() as connection:
            connection.execute(text("UPDATE booking_revision SET number = number"))
            with pytest.raises(Failed, match="lock timeout"):
                BookingRecords(hurried).create([draft(A)], now=NOW, by=BY)
            assert BookingRecords(hurried).revision() == 0  # reading waits for no writer
        BookingRecords(hurried).create([draft(A)], now=NOW, by=BY)
    finally:
        patient.dispose()
        hurried.dispose()


def test_a_hub_that_stands_still_is_put_out_by_the_server(database: str) -> None:
    frozen, other = (
        engine_at(database, options="-c idle_in_transaction_session_timeout=300"),
        engine_at(database),
    )
    try:
        with frozen.connect() as connection:
            connection.execute(text("UPDATE booking_revision SET number = number"))
            BookingRecords(other).create([draft(A)], now=NOW, by=BY)
            connection.invalidate()
    finally:
        frozen.dispose()
        other.dispose()


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    engine = engine_at(f"postgresql://ada:geheim@/none?host={tmp_path}")
    with pytest.raises(Failed, match="cannot be read") as caught:
        BookingRecords(engine).revision()
    assert "geheim" not in f"{caught.value} {caught.value.__cause__!r}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "gpuherd-test", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(file: Path, *, leaving: int) -> None:
    file.write_bytes(b"x" * (shutil.disk_usage(file.parent).free - leaving))


@pytest.mark.parametrize("leaving", [0, 4096, 30_000])
def test_a_full_disk_loses_nothing_and_heals(small_disk: Path, migrated_sqlite: Path, leaving: int) -> None:
    file = Path(shutil.copy(migrated_sqlite, small_disk / "records.sqlite"))
    engine = open_records(file)
    with closing(BookingRecords(engine)) as records:
        made = list(records.create([draft(A)], now=NOW, by=BY))
        fill(small_disk / "ballast", leaving=leaving)
        with pytest.raises(Failed, match="free some space"):  # noqa: PT012 - whichever it is that fails
            for number in range(1000):
                made += records.create([draft(device(number), comment="x" * 2000)], now=NOW, by=BY)
        # Also the change of what is there; reading goes on.
        with pytest.raises(Failed, match="free some space"):
            records.change(made[0].id, revision=None, now=NOW, by=BY, comment="y" * 4000)
        assert records.changed_after(0) == tuple(made)
        other = open_records(file)  # a hub that is started now can read, too
        assert BookingRecords(other).changed_after(0) == tuple(made)
        other.dispose()

        (small_disk / "ballast").unlink()
        made += records.create([draft(device(9999))], now=NOW, by=BY)
        assert records.changed_after(0) == tuple(made)
        with engine.connect() as connection:
            assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
            assert connection.execute(text("SELECT count(*) FROM audit")).scalar_one() == len(made)


def test_a_writer_killed_on_a_full_disk_leaves_nothing_half(small_disk: Path, migrated_sqlite: Path) -> None:
    file = Path(shutil.copy(migrated_sqlite, small_disk / "records.sqlite"))
    writer = BookingWriter(file)
    made = list(writer.do("create", [draft(A)], now=NOW, by=BY).value)
    fill(small_disk / "ballast", leaving=8192)
    while (
        outcome := writer.do("create", [draft(A, at=START + len(made) * 3600)], now=NOW, by=BY)
    ).kind == "done":
        made += outcome.value
    assert outcome.kind == "failed"
    writer.kill()
    writer.close()
    (small_disk / "ballast").unlink()
    with closing(BookingRecords(open_records(file))) as records:
        assert records.changed_after(0) == tuple(made)


def test_a_file_locked_by_another_program_is_told_and_read_meanwhile(
    migrated_sqlite: Path, tmp_path: Path
) -> None:
    file = Path(shutil.copy(migrated_sqlite, tmp_path / "records.sqlite"))
    holder, engine = open_records(file), open_records(file)
    engine.dispose()  # the connections made from now on are less patient
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout = 100"))
    with closing(BookingRecords(engine)) as records:
        with holder.begin() as connection:
            connection.execute(text("UPDATE booking_revision SET number = 7"))
            with pytest.raises(Failed, match="another program is writing"):
                records.create([draft(A)], now=NOW, by=BY)
            assert records.revision() == 0
        assert records.create([draft(A)], now=NOW, by=BY)[0].revision == 8
    holder.dispose()
