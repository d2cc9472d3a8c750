"""What every backend of the people's records must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import Engine, text

from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, Actor, Role
from gpuherd.records.audit import ERASED, AuditRecords
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.people import PeopleRecords
from support.booking_drafts import HOUR, NOW, START, A, B, C, draft
from support.tally import Tally

BY = Actor(account_id=None, label="test", peer="192.0.2.1")


@pytest.fixture
def people(engine: Engine) -> PeopleRecords:
    return PeopleRecords(engine)


def add(people: PeopleRecords, name: str, role: Role = "member", **more: Any) -> Account:
    return people.create_account(name=name, display_name=name.title(), role=role, now=NOW, by=BY, **more)


def refusal(attempt: Callable[[], object]) -> str:
    with pytest.raises(Refused) as caught:
        attempt()
    return caught.value.code


def test_accounts_are_read_back(people: PeopleRecords) -> None:
    ada = add(people, "ada", "admin", groups=["vision", "audio", "vision"], linux_names=["alovelace"])
    assert ada.groups == ("audio", "vision")
    assert ada.linux_names == ("ada", "alovelace")
    loaded = people.load()
    assert loaded.accounts == (ada,)
    assert loaded.revision == people.revision() == 1
    assert people.account_by_name("ADA") == people.account(ada.id) == ada


def test_names_are_compared_without_case_and_composition(people: PeopleRecords) -> None:
    add(people, "Zoé Weiß")
    assert refusal(lambda: add(people, "ZOE\N{COMBINING ACUTE ACCENT} WEISS")) == "name_taken"
    assert people.account_by_name("zoe\N{COMBINING ACUTE ACCENT} weiss") is not None
    assert people.revision() == 1


@pytest.mark.parametrize("name", ["", "nobody", "a\0b", "\ud800", "x" * 10_000])
def test_unknown_names_are_unknown(people: PeopleRecords, name: str) -> None:
    assert people.account_by_name(name) is None
    assert people.account(name) is None
    assert people.account_by_subject("ldap", name) is None
    assert people.password_hash(name) is None


def test_a_subject_belongs_to_its_source(people: PeopleRecords) -> None:
    ada = add(people, "ada", source="oidc", subject="https://idp 17")
    assert people.account_by_subject("oidc", "https://idp 17") == ada
    assert people.account_by_subject("ldap", "https://idp 17") is None
    assert refusal(lambda: add(people, "other", source="oidc", subject="https://idp 17")) == "name_taken"
    add(people, "bob")
    add(people, "eve")  # several without a subject


def test_what_is_given_is_changed_and_counted(people: PeopleRecords, engine: Engine) -> None:
    ada = add(people, "ada", groups=["vision"])
    changed = people.change_account(
        ada.id, display_name="Countess", role="viewer", groups=["audio"], now=NOW, by=BY
    )
    assert changed == structs.replace(ada, display_name="Countess", role="viewer", groups=("audio",))
    assert people.load() == structs.replace(people.load(), revision=2, accounts=(changed,))
    assert people.change_account(ada.id, role="viewer", groups=["audio"], now=NOW, by=BY) == changed
    assert people.revision() == 2
    (entry, _) = AuditRecords(engine).search()
    assert (entry.action, entry.subject) == ("account.role", ada.id)
    assert entry.detail == "role member → viewer; groups vision → audio; shown name"
    assert (
        refusal(lambda: people.change_account("nobody", role="viewer", now=NOW, by=BY)) == "unknown_account"
    )


def test_a_user_on_the_nodes_is_one_person(people: PeopleRecords) -> None:
    ada, bob = add(people, "ada"), add(people, "bob", linux_names=["robert"])
    assert refusal(lambda: add(people, "eve", linux_names=["robert"])) == "linux_name_taken"
    assert (
        refusal(lambda: people.change_account(ada.id, linux_names=["x", "robert"], now=NOW, by=BY))
        == "linux_name_taken"
    )
    # Who claims another's name has it; the other has it no more.
    people.change_account(bob.id, linux_names=["ada"], now=NOW, by=BY)
    assert {account.name: account.linux_names for account in people.load().accounts} == {
        "ada": (),
        "bob": ("ada", "bob"),
    }
    assert people.account(ada.id) == structs.replace(ada, linux_names=())
    people.change_account(bob.id, linux_names=[], now=NOW, by=BY)
    assert people.account(ada.id) == ada


@pytest.mark.promise("no-shown-name-of-another")
@pytest.mark.parametrize("shown", ["Ada", "COUNTESS", "Countéss ", "vision", "Vision"])
def test_nobody_is_shown_under_the_name_of_another(people: PeopleRecords, shown: str) -> None:
    ada = add(people, "ada", groups=["vision"])
    people.change_account(ada.id, display_name="Countess", now=NOW, by=BY)
    eve = add(people, "eve")
    assert refusal(lambda: people.change_account(eve.id, display_name=shown, now=NOW, by=BY)) == "name_taken"
    assert refusal(
        lambda: people.create_account(name="bob", display_name=shown, role="member", now=NOW, by=BY)
    ) == ("name_taken")
    # Who comes from a directory may enter, under the name of the account.
    dan = people.create_account(
        name="dan", display_name=shown, role="member", source="ldap", subject="7", now=NOW, by=BY
    )
    assert dan.display_name == "dan"
    for own in ("Eve", "EVE", "Eve Online", "Eve"):
        assert people.change_account(eve.id, display_name=own, now=NOW, by=BY).display_name == own


def test_a_shown_name_that_another_has_already_stays(people: PeopleRecords, engine: Engine) -> None:
    ada, eve = add(people, "ada"), add(people, "eve")
    with engine.begin() as connection:  # as an earlier release let her
        connection.execute(text("UPDATE accounts SET display_name = 'Ada' WHERE name = 'eve'"))
    assert people.change_account(eve.id, display_name="Ada", role="viewer", now=NOW, by=BY).role == "viewer"
    assert people.change_account(ada.id, display_name="ada", now=NOW, by=BY).display_name == "ada"


def test_the_last_admin_stays(people: PeopleRecords) -> None:
    ada = add(people, "ada", "admin")
    disabled = add(people, "bob", "admin")
    people.change_account(disabled.id, is_disabled=True, now=NOW, by=BY)
    before = people.load()
    for attempt in (
        lambda: people.change_account(ada.id, role="member", now=NOW, by=BY),
        lambda: people.change_account(ada.id, is_disabled=True, now=NOW, by=BY),
        lambda: people.erase_account(ada.id, now=NOW, by=BY),
    ):
        assert refusal(attempt) == "last_admin"
    assert people.load() == before
    people.change_account(ada.id, display_name="still here", role="admin", now=NOW, by=BY)
    people.change_account(disabled.id, is_disabled=False, now=NOW, by=BY)
    people.erase_account(ada.id, now=NOW, by=BY)
    assert [account.name for account in people.load().accounts] == ["bob"]


def test_a_set_up_code_makes_one_admin(people: PeopleRecords) -> None:
    def take(digest: str, now: float = NOW, name: str = "ada") -> Account:
        return people.take_setup_code(
            digest, name=name, display_name="", password_hash="hash", now=now, by=BY
        )

    add(people, "taken")
    assert not people.has_admin()
    assert refusal(lambda: take("first")) == "code_invalid"
    people.put_setup_code("first", NOW + 60, now=NOW)
    people.put_setup_code("second", NOW + 60, now=NOW)
    assert refusal(lambda: take("first")) == "code_invalid"
    assert refusal(lambda: take("second", now=NOW + 60)) == "code_invalid"
    assert refusal(lambda: take("second", name="taken")) == "name_taken"
    admin = take("second")
    assert (admin.role, admin.display_name) == ("admin", "ada")
    assert people.password_hash(admin.id) == "hash"
    assert people.has_admin()
    people.put_setup_code("third", NOW + 60, now=NOW)
    assert refusal(lambda: take("third", name="eve")) == "setup_done"


def test_a_hub_without_an_enabled_admin_can_be_set_up_again(people: PeopleRecords, engine: Engine) -> None:
    ada = add(people, "ada", "admin")
    with engine.begin() as connection:  # what the records would refuse
        connection.execute(text("UPDATE accounts SET is_disabled = true WHERE id = :id"), {"id": ada.id})
    assert not people.has_admin()
    people.put_setup_code("code", NOW + 60, now=NOW)
    people.take_setup_code("code", name="eve", display_name="Eve", password_hash="h", now=NOW, by=BY)
    assert people.has_admin()


def test_a_secret_stays_the_same(people: PeopleRecords, engine: Engine) -> None:
    secret = people.secret("pseudonyms")
    assert len(secret) == 32
    assert PeopleRecords(engine).secret("pseudonyms") == secret
    assert people.secret("other") != secret


def test_a_login_is_noted_without_disturbing_anyone(people: PeopleRecords) -> None:
    ada = add(people, "ada", password_hash="old")
    revision = people.revision()
    people.note_login(ada.id, NOW + 5)
    people.rehash_password(ada.id, "old", "better")
    assert people.account(ada.id) == structs.replace(ada, last_login_at=NOW + 5)
    assert people.password_hash(ada.id) == "better"
    assert people.revision() == revision


def test_a_password_that_was_just_replaced_does_not_come_back(people: PeopleRecords) -> None:
    ada = add(people, "ada", password_hash="old")
    people.set_password(ada.id, "new", now=NOW, by=BY)
    with pytest.raises(Refused) as caught:
        people.rehash_password(ada.id, "old", "old, better")
    assert caught.value.code == "changed_meanwhile"
    assert people.password_hash(ada.id) == "new"
    people.set_password(ada.id, None, now=NOW, by=BY)
    with pytest.raises(Refused):
        people.rehash_password(ada.id, "new", "new, better")
    assert people.password_hash(ada.id) is None


@pytest.mark.attack
@pytest.mark.promise("oidc-name-is-no-linux-name")
def test_a_name_chosen_at_a_provider_is_no_user_on_the_nodes(people: PeopleRecords, tally: Tally) -> None:
    chosen = add(people, "victim", source="oidc", subject="1")
    tally.add("Linux name chosen at a provider", tries=1, held=int(chosen.linux_names == ()))
    assert chosen.linux_names == ()
    assert add(people, "bob").linux_names == ("bob",)
    given = people.change_account(chosen.id, linux_names=["victim"], now=NOW, by=BY)
    assert given.linux_names == ("victim",)


def test_an_erased_person_is_gone_everywhere(people: PeopleRecords, engine: Engine) -> None:
    admin = add(people, "root", "admin")
    ada = add(people, "ada", groups=["vision"], linux_names=["alovelace"], password_hash="h")
    by_ada = Actor(account_id=ada.id, label="ada", peer="192.0.2.77")
    bookings, log = BookingRecords(engine), AuditRecords(engine)
    running, begun, ahead, groups, past, other = (
        bookings.create([wanted], now=NOW, by=by_ada)[0]
        for wanted in (
            draft(A, hours=5, owner_id=ada.id, title="mine", comment="secret"),
            draft(C, at=START + HOUR, owner_id=ada.id),
            draft(A, at=START + 9 * HOUR, owner_id=ada.id),
            draft(B, hours=5, owner_id=ada.id, owner_name="vision", group="vision", title="ours"),
            draft(C, hours=0.1, owner_id=ada.id),
            draft(C, at=START + 9 * HOUR, owner_id=admin.id, owner_name="Root"),
        )
    )
    people.add_session(
        id="s", digest="d1", account_id=ada.id, created_at=NOW, expires_at=NOW + 9e9, peer="p", agent="a"
    )
    people.add_feed(id="f", digest="d2", account_id=ada.id, kind="account", created_at=NOW, by=by_ada)
    people.add_token(
        id="t",
        digest="d3",
        account_id=ada.id,
        title="t",
        scopes=["read"],
        created_at=NOW,
        expires_at=NOW + 9e9,
        by=by_ada,
    )
    revision, now = people.revision(), START + HOUR
    people.erase_account(ada.id, now=now + 0.5, by=by_ada)

    assert people.revision() == revision + 1
    assert people.account(ada.id) is None
    assert (people.session("d1", NOW), people.token("d3", NOW), people.feed("d2")) == (None, None, None)
    erased = {"owner_id": None, "owner_name": ERASED, "title": "", "comment": ""}
    changed = {"changed_at": now + 0.5, "revision": bookings.revision()}
    assert bookings.changed_after(0) == (
        structs.replace(running, ends_at=now, released_from=running.ends_at, **erased, **changed),
        structs.replace(begun, ends_at=now + 1, released_from=begun.ends_at, **erased, **changed),
        structs.replace(ahead, state="cancelled", **erased, **changed),
        structs.replace(groups, owner_id=None, **changed),
        structs.replace(past, **erased, **changed),
        other,
    )
    entries = log.search(account_id=ada.id)
    assert {entry.action for entry in entries} == {
        "account.create",
        "account.erase",
        "booking.create",
        "feed.create",
        "token.create",
    }
    assert {entry.who for entry in entries if entry.account_id == ada.id} == {ERASED}
    with engine.connect() as connection:
        for table in (
            "accounts",
            "memberships",
            "linux_names",
            "login_sessions",
            "api_tokens",
            "feeds",
            "audit",
            "audit_names",
        ):
            rows = connection.execute(text(f"SELECT * FROM {table}")).all()  # noqa: S608
            assert not [row for row in rows if {"ada", "alovelace", "192.0.2.77"} & set(row)]
    add(people, "ada")  # the name is free again, and whose it was does not come back with it
    assert bookings.of_account(ada.id) == ()
