"""What every backend of the node records must do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.records.database import open_records
from gpuherd.records.nodes import NodeRecord, NodeRecords
from gpuherd.records.tables import metadata


@pytest.fixture
def records(engine: Engine) -> NodeRecords:
    return NodeRecords(engine)


def test_migrations_lead_to_the_tables_as_declared(engine: Engine) -> None:
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_records_outlive_the_program(records: NodeRecords, migrated_location: Path | str) -> None:
    records.enrol(node_id="a", name="Ä", credential="d1", now=5.5)
    again = open_records(migrated_location)
    try:
        loaded = NodeRecords(again).load()
    finally:
        again.dispose()
    assert loaded.nodes == (NodeRecord(id="a", name="Ä", enrolled_at=5.5),)
    assert loaded.credentials == {"d1": "a"}


def test_records_of_a_newer_version_are_left_alone(engine: Engine, migrated_location: Path | str) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match="newer gpuherd"):
        open_records(migrated_location)


def test_a_token_admits_as_many_nodes_as_it_has_uses(records: NodeRecords) -> None:
    records.add_token(digest="t", now=0.0, expires_at=100.0, uses=2)
    records.enrol(node_id="a", name="a", credential="1", now=1.0, token="t")
    records.enrol(node_id="b", name="b", credential="2", now=1.0, token="t")
    with pytest.raises(Refused) as caught:
        records.enrol(node_id="c", name="c", credential="3", now=1.0, token="t")
    assert caught.value.code == "token_invalid"
    assert [node.id for node in records.load().nodes] == ["a", "b"]


def test_tokens_that_admit_someone_are_listed_and_can_be_taken_back(records: NodeRecords) -> None:
    records.add_token(digest="spent", now=0.0, expires_at=100.0, uses=1)
    records.enrol(node_id="a", name="a", credential="1", now=1.0, token="spent")
    records.add_token(digest="late", now=3.0, expires_at=5.0, uses=1)
    records.add_token(digest="second", now=2.0, expires_at=100.0, uses=7)
    records.add_token(digest="first", now=1.0, expires_at=100.0, uses=1)
    assert [(token.digest, token.uses_left) for token in records.tokens(now=5.0)] == [
        ("first", 1),
        ("second", 7),
    ]
    assert records.remove_token("second", now=5.0)
    assert not records.remove_token("second", now=5.0)
    assert [token.digest for token in records.tokens(now=5.0)] == ["first"]
    with pytest.raises(Refused, match="invalid, used up or expired"):
        records.enrol(node_id="b", name="b", credential="2", now=5.0, token="second")
    assert [node.id for node in records.load().nodes] == ["a"], "who has joined stays"


@pytest.mark.parametrize(("token", "now"), [("other", 1.0), ("t", 100.0), ("t", 1e9)])
def test_an_unknown_or_expired_token_admits_nobody(records: NodeRecords, token: str, now: float) -> None:
    records.add_token(digest="t", now=0.0, expires_at=100.0, uses=1)
    with pytest.raises(Refused, match="invalid, used up or expired"):
        records.enrol(node_id="a", name="a", credential="1", now=now, token=token)
    assert records.load().nodes == ()


def test_a_taken_name_costs_the_token_nothing(records: NodeRecords) -> None:
    records.enrol(node_id="a", name="a", credential="0", now=1.0)
    records.add_token(digest="t", now=0.0, expires_at=100.0, uses=1)
    with pytest.raises(Refused) as caught:
        records.enrol(node_id="a", name="a", credential="1", now=1.0, token="t")
    assert caught.value.code == "name_taken"
    records.enrol(node_id="b", name="b", credential="2", now=1.0, token="t")
    assert records.load().credentials == {"0": "a", "2": "b"}


def test_one_use_is_one_use_also_for_twenty_at_a_time(records: NodeRecords) -> None:
    records.add_token(digest="t", now=0.0, expires_at=100.0, uses=3)

    def enrol(number: int) -> bool:
        try:
            records.enrol(node_id=f"n{number}", name="n", credential=f"c{number}", now=1.0, token="t")
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        admitted = list(pool.map(enrol, range(20)))
    assert sum(admitted) == len(records.load().nodes) == 3


def test_every_change_counts_in_the_revision(records: NodeRecords) -> None:
    seen = [records.revision()]

    def note() -> None:
        seen.append(records.revision())

    records.enrol(node_id="a", name="a", credential="1", now=1.0)
    note()
    assert records.replace_credential(node_id="a", credential="2", now=2.0)
    note()
    assert records.remove("a", now=5.0)
    note()
    assert seen == [0, 1, 2, 3]
    assert not records.remove("a", now=5.0)
    assert not records.replace_credential(node_id="a", credential="3", now=3.0)
    assert records.revision() == 3


def test_a_replaced_or_removed_credential_is_gone(records: NodeRecords) -> None:
    records.enrol(node_id="a", name="a", credential="1", now=1.0)
    records.replace_credential(node_id="a", credential="2", now=2.0)
    assert records.load().credentials == {"2": "a"}
    records.remove("a", now=5.0)
    assert records.load().credentials == {}


def test_expired_tokens_are_cleared_away_by_who_knows_the_time(engine: Engine, records: NodeRecords) -> None:
    records.add_token(digest="old", now=0.0, expires_at=10.0, uses=1)
    records.add_token(digest="new", now=20.0, expires_at=30.0, uses=1)
    with engine.connect() as connection:
        assert len(connection.execute(text("SELECT digest FROM join_tokens")).all()) == 2
    assert records.prune_tokens(20.0) == 1
    with engine.connect() as connection:
        assert connection.execute(text("SELECT digest FROM join_tokens")).scalars().all() == ["new"]
