"""What every backend of the audit log must do: grow, be found in, and forget only what is old."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError

from gpuherd.model.errors import Failed
from gpuherd.model.people import Account, Actor
from gpuherd.records.audit import AuditRecords, Deed
from gpuherd.records.people import PeopleRecords
from support.booking_drafts import NOW

HUB = Actor(account_id=None, label="hub")


@pytest.fixture
def log(engine: Engine) -> AuditRecords:
    return AuditRecords(engine)


@pytest.fixture
def ada(engine: Engine) -> Account:
    return PeopleRecords(engine).create_account(
        name="ada", display_name="Countess", role="admin", now=NOW, by=HUB
    )


def test_whoever_is_looked_for_is_found_without_reading_the_whole_log(
    log: AuditRecords, engine: Engine
) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL reads a short log as a whole whatever indices there are")
    asked: list[tuple[str, Any]] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3])))
    log.search(account_id="0123456789abcdef")
    ((query, values),) = [one for one in asked if "FROM audit" in one[0]]
    with engine.connect() as connection:
        plan = " ".join(map(str, connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values)))
    assert "ix_audit_account_id" in plan
    assert "ix_audit_subject" in plan
    assert "SCAN audit" not in plan


def test_entries_are_found_by_everything_in_them(log: AuditRecords, ada: Account) -> None:
    by_ada = Actor(account_id=ada.id, label="another name", peer="192.0.2.7")
    log.append(
        [
            Deed("login.failed", "eve", "wrong password, 100% wrong", HUB, NOW + 1),
            Deed("booking.create", "17", "2 devices", by_ada, NOW + 2),
            Deed("bookings", "18", "", by_ada, NOW + 3),
        ]
    )

    def found(**asked: object) -> list[str]:
        return [entry.action for entry in log.search(**asked)]  # type: ignore[arg-type]

    assert found() == ["bookings", "booking.create", "login.failed", "account.create"]
    assert found(action="booking") == ["booking.create"]
    assert found(action="booking.create") == ["booking.create"]
    assert found(account_id=ada.id) == ["bookings", "booking.create", "account.create"]
    assert found(text="EVE") == found(text="100% w") == ["login.failed"]
    assert found(text="100_") == []
    assert found(text="192.0.2") == ["bookings", "booking.create"]
    assert found(text="countess") == ["bookings", "booking.create", "account.create"]
    assert found(text="another name") == []
    assert found(since=NOW + 1, until=NOW + 3) == ["booking.create", "login.failed"]
    assert found(limit=1) == ["bookings"]
    assert found(before_id=log.search()[0].id, limit=1) == ["booking.create"]
    assert found(text="a\0") == found(action="\ud800") == []
    entry = log.search(action="booking")[0]
    assert (entry.who, entry.account_id, entry.peer, entry.at) == ("ada", ada.id, "192.0.2.7", NOW + 2)
    assert log.search(action="login")[0].who == "hub"


def test_hostile_text_is_cut_and_cleaned(log: AuditRecords) -> None:
    actor = Actor(account_id=None, label="x" * 500, peer="\x1b[31m\0")
    log.append([Deed("login.failed", "\ud800" + "y" * 9000, "\u202e" * 5000, actor, NOW)])
    (entry,) = log.search()
    assert max(map(len, (entry.who, entry.subject, entry.detail))) <= 1024
    assert entry.peer == "�[31m�"
    assert entry.subject.startswith("�yyy")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET detail = 'nothing happened'",
        "UPDATE audit SET peer = NULL",
        "UPDATE audit SET peer = 'elsewhere'",
        "UPDATE audit SET at = 0",
        "UPDATE audit SET account_id = NULL",
        "DELETE FROM audit",
        "UPDATE audit_names SET linux_name = 'nobody'",
        "UPDATE audit_names SET is_given = NOT is_given",
        "DELETE FROM audit_names",
        "DELETE FROM audit_retention",
        "INSERT INTO audit_retention (id, keep_from) VALUES (2, 1e12)",
        "UPDATE audit_retention SET keep_from = 1e12",
    ],
)
@pytest.mark.promise("audit-only-grows")
def test_what_is_written_stays(engine: Engine, log: AuditRecords, ada: Account, statement: str) -> None:
    PeopleRecords(engine).change_account(ada.id, linux_names=["alovelace"], now=NOW, by=HUB)
    log.append([Deed("booking.create", "17", "", Actor(account_id=ada.id, label="", peer="p"), NOW)])
    before = log.search()
    with pytest.raises(IntegrityError, match="audit_append_only"), engine.begin() as connection:
        connection.execute(text(statement))
    assert log.search() == before


def test_what_an_erased_person_did_stays_too(engine: Engine, log: AuditRecords) -> None:
    log.append([Deed("booking.create", "17", "", Actor(account_id="gone", label="", peer="p"), NOW)])
    with pytest.raises(IntegrityError, match="audit_append_only"), engine.begin() as connection:
        connection.execute(text("UPDATE audit SET peer = NULL, detail = 'x'"))
    with engine.begin() as connection:  # but not where it was done from
        connection.execute(text("UPDATE audit SET peer = NULL"))
    assert log.search()[0].peer is None


@pytest.mark.promise("audit-names-rights")
def test_an_entry_names_the_rights_that_were_given(engine: Engine, log: AuditRecords, ada: Account) -> None:
    people = PeopleRecords(engine)
    mallory = people.create_account(
        name="mallory", display_name="M", role="member", groups=["b"], linux_names=["mal"], now=NOW, by=HUB
    )
    people.change_account(mallory.id, linux_names=["alice", "ada2"], groups=["a"], now=NOW, by=HUB)
    changed, created = log.search(account_id=mallory.id)
    assert created.detail == "local, member; groups b; Linux names: +mal"
    assert changed.detail == "groups b → a; Linux names: +ada2, +alice, -mal"
    assert [entry.id for entry in log.search(text="ALICE")] == [changed.id]


def test_linux_names_in_the_log_go_with_the_account(engine: Engine, log: AuditRecords, ada: Account) -> None:
    people = PeopleRecords(engine)
    mallory, alice = (
        people.create_account(name=name, display_name="", role="member", now=NOW, by=HUB)
        for name in ("mallory", "alice")
    )
    people.change_account(mallory.id, linux_names=["alice", "mal"], now=NOW, by=HUB)
    people.change_account(mallory.id, linux_names=["mal2"], now=NOW, by=HUB)
    people.erase_account(mallory.id, now=NOW, by=HUB)
    # Another account is called alice: the entry still says whose command lines were opened.
    assert [entry.detail for entry in log.search(action="account.change")] == [
        "Linux names: -alice",
        "Linux names: +alice",
    ]
    people.erase_account(alice.id, now=NOW, by=HUB)
    assert {entry.detail for entry in log.search(action="account.change")} == {"Linux names"}


def test_names_are_pruned_with_their_entry(engine: Engine, log: AuditRecords, ada: Account) -> None:
    old = time.time() - 400 * 86_400
    PeopleRecords(engine).change_account(ada.id, linux_names=["alovelace"], now=old, by=HUB)
    log.prune(old + 1, now=old + 2)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM audit_names")).scalar_one() == 0


def test_only_what_is_old_is_pruned(log: AuditRecords) -> None:
    now = time.time()
    days = (400, 100, 2, 0)
    log.append([Deed("login.ok", str(age), "", HUB, now - age * 86_400) for age in days])
    assert log.prune(now - 200 * 86_400, now=now) == 1
    assert [entry.subject for entry in log.search()] == ["0", "2", "100"]
    assert log.prune(now - 300 * 86_400, now=now) == 0  # what is gone is gone
    with pytest.raises(Failed, match="audit_append_only"):
        log.prune(now, now=now)
    assert [entry.subject for entry in log.search()] == ["0", "2", "100"]
    assert log.prune(now - 86_500, now=now) == 2
    first = log.search()[0].id
    log.append([Deed("login.ok", "new", "", HUB, now)])
    assert log.search()[0].id == first + 1


def test_what_a_wrong_clock_left_unprotected_is_protected_again(log: AuditRecords, engine: Engine) -> None:
    now = time.time()
    log.prune(now - 10 * 86_400, now=now)  # by a clock that was 190 days ahead
    log.append([Deed("login.ok", "old", "", HUB, now - 100 * 86_400)])
    log.prune(now - 200 * 86_400, now=now)
    with engine.connect() as connection, pytest.raises(IntegrityError, match="audit_append_only"):
        connection.execute(text("DELETE FROM audit"))
    assert [entry.subject for entry in log.search()] == ["old"]


@pytest.mark.promise("wrong-clock-deletes-nothing")
def test_what_was_written_under_a_clock_that_was_behind_is_kept_as_long_as_what_came_before_it(
    log: AuditRecords,
) -> None:
    now = time.time()
    ages = {"old": 400, "ahead": -4000, "before": 100, "behind": 9000, "after": 99}
    log.append([Deed("login.ok", name, "", HUB, now - age * 86_400) for name, age in ages.items()])
    assert log.prune(now - 200 * 86_400, now=now) == 1
    assert [entry.subject for entry in log.search()] == ["after", "behind", "before", "ahead"]
    later = now + 101 * 86_400
    assert log.prune(later - 200 * 86_400, now=later) == 2
    assert [entry.subject for entry in log.search()] == ["after", "ahead"]
