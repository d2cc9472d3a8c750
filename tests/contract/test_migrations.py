"""Records of older versions are brought up to date whole or not at all, however many hubs begin at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from gpuherd.model.errors import Misconfigured
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import (
    NEWEST,
    _config,
    migrate,
    open_records,
    opened_records,
    records_engine,
    records_url,
)
from gpuherd.records.nodes import EnrolledNodes, NodeRecord, NodeRecords
from gpuherd.records.people import PeopleRecords
from gpuherd.records.tables import metadata
from support.booking_drafts import BY, NOW, A, draft
from support.postgresql import Postgresql

FIRST_RELEASE = (Path(__file__).parent / "first_release.sql").read_text(encoding="utf-8").split(";\n")
ITS_NODES = EnrolledNodes(
    revision=41, nodes=(NodeRecord(id="a", name="Ä", enrolled_at=5.5),), credentials={"d1": "a"}
)


def execute(location: Path | str, *statements: str) -> None:
    engine = create_engine(records_url(location))
    with engine.begin() as connection:
        for statement in statements:
            # PostgreSQL's name of the same type.
            connection.execute(
                text(
                    statement
                    if isinstance(location, Path)
                    else statement.replace("DOUBLE", "DOUBLE PRECISION")
                )
            )
    engine.dispose()


def tables(location: Path | str) -> set[str]:
    engine = create_engine(records_url(location))
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_the_newest_migration_is_the_one_that_is_said() -> None:
    assert ScriptDirectory.from_config(_config()).get_current_head() == NEWEST


def test_records_of_the_first_release_are_taken_over(records_location: Path | str) -> None:
    execute(records_location, *FIRST_RELEASE)
    engine = open_records(records_location)
    try:
        with engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        records = NodeRecords(engine)
        assert records.load() == ITS_NODES
        records.enrol(node_id="b", name="b", credential="d2", now=7.0, token="t1")
        BookingRecords(engine).create([draft(A)], now=NOW, by=BY)
    finally:
        engine.dispose()


def test_people_of_a_provider_keep_the_user_that_they_were(records_location: Path | str) -> None:
    with opened_records(records_location) as connection:
        migrate(connection, to="0003")
    execute(
        records_location,
        *(
            "INSERT INTO accounts (id, name, name_key, display_name, role, source, is_disabled, created_at) "  # noqa: S608
            f"VALUES ('{name}', '{name}', '{name}', '', 'member', '{source}', false, 1)"
            for name, source in (("ada", "oidc"), ("bob", "oidc"), ("eve", "local"))
        ),
        "INSERT INTO linux_names (linux_name, account_id) VALUES ('bob', 'eve')",
    )
    engine = open_records(records_location)
    accounts = {account.name: account.linux_names for account in PeopleRecords(engine).load().accounts}
    engine.dispose()
    assert accounts == {"ada": ("ada",), "bob": (), "eve": ("bob", "eve")}


@pytest.mark.parametrize("statements", [[], FIRST_RELEASE], ids=["empty", "first release"])
def test_hubs_that_start_at_once_migrate_once(records_location: Path | str, statements: list[str]) -> None:
    execute(records_location, *statements)
    with ThreadPoolExecutor(4) as pool:
        engines = list(pool.map(open_records, [records_location] * 4))
    assert [BookingRecords(engine).revision() for engine in engines] == [0] * 4
    for engine in engines:
        engine.dispose()


def test_a_migration_that_fails_changes_nothing(records_location: Path | str) -> None:
    execute(records_location, *FIRST_RELEASE, "CREATE TABLE booking_devices (note VARCHAR(9))")
    before = tables(records_location)
    with pytest.raises(Misconfigured, match="booking_devices"):
        open_records(records_location)
    assert tables(records_location) == before
    execute(records_location, "DROP TABLE booking_devices")
    engine = open_records(records_location)
    assert NodeRecords(engine).load() == ITS_NODES
    engine.dispose()


def test_postgresql_without_the_right_to_make_the_extension_is_told_the_remedy(
    postgresql: Postgresql,
) -> None:
    with postgresql.database() as url:
        plain = url.replace("gpuherd@", "plain@")
        execute(url, "CREATE ROLE plain LOGIN", "GRANT ALL ON SCHEMA public TO plain")
        try:
            with pytest.raises(Misconfigured, match="CREATE EXTENSION btree_gist"):
                open_records(plain)
            assert tables(url) == set()
            execute(url, "CREATE EXTENSION btree_gist")
            engine = open_records(plain)
            BookingRecords(engine).create([draft(A)], now=NOW, by=BY)
            engine.dispose()
        finally:
            execute(url, "DROP OWNED BY plain", "DROP ROLE plain")


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(Misconfigured, match=r"mssql is not supported|there is no driver|missing"):
        records_engine(records_url("mssql+pyodbc://x/y"))
