"""What every backend of sessions, tokens and calendar addresses must do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, event

from gpuherd.auth.authority import load_known
from gpuherd.model.errors import Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import AuditRecords
from gpuherd.records.people import FeedRecord, PeopleRecords, SessionRecord, TokenRecord
from support.booking_drafts import NOW, A
from support.soak import SOAK
from support.tally import Tally

BY = Actor(account_id=None, label="test")


@pytest.fixture
def people(engine: Engine) -> PeopleRecords:
    return PeopleRecords(engine)


def add(people: PeopleRecords, name: str, **more: str) -> str:
    return people.create_account(
        name=name,
        display_name=name,
        role="member",
        now=NOW,
        by=BY,
        **more,  # type: ignore[arg-type]
    ).id


@pytest.fixture
def ada(people: PeopleRecords) -> str:
    return add(people, "ada", password_hash="old")


@pytest.fixture
def bob(people: PeopleRecords) -> str:
    return add(people, "bob")


def log_in(people: PeopleRecords, account_id: str, key: str, *, at: float = NOW, **more: Any) -> None:
    people.add_session(
        id=key,
        digest=f"digest of {key}",
        account_id=account_id,
        created_at=at,
        expires_at=at + 100,
        peer="192.0.2.1",
        agent="Browser 1.0",
        **more,
    )


def make_token(people: PeopleRecords, account_id: str, key: str) -> None:
    people.add_token(
        id=key,
        digest=f"digest of {key}",
        account_id=account_id,
        title="cluster job",
        scopes=["read", "book"],
        created_at=NOW,
        expires_at=NOW + 100,
        by=BY,
    )


def make_feed(people: PeopleRecords, account_id: str, key: str) -> None:
    people.add_feed(
        id=key,
        digest=f"digest of {key}",
        account_id=account_id,
        kind="device",
        device=A,
        created_at=NOW,
        by=BY,
    )


def test_a_session_is_valid_until_it_expires(people: PeopleRecords, ada: str) -> None:
    log_in(people, ada, "s1")
    log_in(people, ada, "s2", at=NOW + 50)
    session = SessionRecord(
        id="s1",
        account_id=ada,
        created_at=NOW,
        expires_at=NOW + 100,
        seen_at=NOW,
        peer="192.0.2.1",
        agent="Browser 1.0",
    )
    assert people.session("digest of s1", NOW + 99.9) == session
    assert people.session("digest of s1", NOW + 100) is None
    assert people.session("s1", NOW) is None
    assert people.session("\0", NOW) is people.session("x" * 99, NOW) is None
    assert [one.id for one in people.sessions(ada, NOW)] == ["s2", "s1"]
    assert [one.id for one in people.sessions(ada, NOW + 100)] == ["s2"]
    people.touch_session("s1", NOW + 9)
    touched = people.session("digest of s1", NOW)
    assert touched is not None
    assert touched.seen_at == NOW + 9
    log_in(people, ada, "s3", at=NOW + 120)
    assert [one.id for one in people.sessions(ada, NOW)] == ["s3", "s2", "s1"]
    assert people.prune(NOW + 120) == 1
    assert [one.id for one in people.sessions(ada, NOW)] == ["s3", "s2"]


def test_tokens_and_calendars_are_read_back(people: PeopleRecords, ada: str, bob: str) -> None:
    make_token(people, ada, "t")
    make_feed(people, ada, "f")
    token = TokenRecord(
        id="t",
        account_id=ada,
        title="cluster job",
        scopes=frozenset({"read", "book"}),
        created_at=NOW,
        expires_at=NOW + 100,
        seen_at=None,
    )
    assert people.token("digest of t", NOW + 99) == token
    assert people.token("digest of t", NOW + 100) is None
    assert people.tokens(ada, NOW) == (token,)
    assert people.tokens(ada, NOW + 100) == ()
    feed = FeedRecord(id="f", account_id=ada, kind="device", device=A, created_at=NOW)
    assert people.feed("digest of f") == feed
    assert people.feeds(ada) == (feed,)
    assert not people.tokens(bob, NOW) + people.feeds(bob) + people.sessions(bob, NOW)
    people.touch_token("t", NOW + 1)
    assert people.tokens(ada, NOW)[0].seen_at == NOW + 1


def test_nobody_ends_anothers_keys(people: PeopleRecords, ada: str, bob: str) -> None:
    log_in(people, ada, "s")
    make_token(people, ada, "t")
    make_feed(people, ada, "f")
    before = people.revision()
    assert not people.end_session("s", account_id=bob, now=NOW, by=BY)
    assert not people.end_token("t", account_id=bob, now=NOW, by=BY)
    assert not people.end_feed("f", account_id=bob, now=NOW, by=BY)
    assert people.revision() == before
    assert people.end_session("s", account_id=ada, now=NOW, by=BY, action="login.out")
    assert people.end_token("t", account_id=None, now=NOW, by=BY)
    assert people.end_feed("f", account_id=ada, now=NOW, by=BY)
    assert people.revision() == before + 3
    assert not people.end_session("s", account_id=ada, now=NOW, by=BY)
    assert people.session("digest of s", NOW) is None
    assert people.token("digest of t", NOW) is None
    assert people.feed("digest of f") is None


def test_a_new_password_ends_what_the_old_one_opened(people: PeopleRecords, ada: str, bob: str) -> None:
    for key in ("s1", "s2"):
        log_in(people, ada, key)
    log_in(people, bob, "bobs")
    make_token(people, ada, "t")
    make_feed(people, ada, "f")
    make_feed(people, bob, "bobs")
    before = people.revision()
    people.set_password(ada, "new", now=NOW, by=BY, keep_session="s2")
    assert people.revision() == before + 1
    assert people.password_hash(ada) == "new"
    assert [one.id for one in people.sessions(ada, NOW)] == ["s2"]
    assert not people.tokens(ada, NOW)
    assert not people.feeds(ada)
    assert people.feed("digest of f") is None
    assert len(people.sessions(bob, NOW)) == len(people.feeds(bob)) == 1
    people.set_password(ada, None, now=NOW, by=BY)
    assert people.password_hash(ada) is None
    assert people.sessions(ada, NOW) == ()


def test_a_password_changed_during_the_login_opens_nothing(people: PeopleRecords, ada: str) -> None:
    people.set_password(ada, "new", now=NOW, by=BY)
    with pytest.raises(Refused) as caught:
        log_in(people, ada, "s", password_hash="old")
    assert caught.value.code == "changed_meanwhile"
    log_in(people, ada, "s", password_hash="new")
    assert len(people.sessions(ada, NOW)) == 1


def test_who_is_disabled_or_gone_has_no_keys(people: PeopleRecords, ada: str) -> None:
    log_in(people, ada, "s")
    make_token(people, ada, "t")
    make_feed(people, ada, "f")
    people.change_account(ada, is_disabled=True, now=NOW, by=BY)
    assert people.session("digest of s", NOW) is None
    assert people.token("digest of t", NOW) is None
    assert people.feed("digest of f") is None
    for make in (log_in, make_token, make_feed):
        for account_id, code in ((ada, "account_disabled"), ("nobody", "unknown_account")):
            with pytest.raises(Refused) as caught:
                make(people, account_id, "new")
            assert caught.value.code == code


def test_all_sessions_end_at_once(people: PeopleRecords, ada: str) -> None:
    for key in ("s1", "s2", "s3"):
        log_in(people, ada, key)
    make_feed(people, ada, "f")
    assert people.end_sessions(ada, now=NOW, by=BY, keep="s2") == 2
    assert [one.id for one in people.sessions(ada, NOW)] == ["s2"]
    assert len(people.feeds(ada)) == 1
    assert people.end_sessions(ada, now=NOW, by=BY, with_feeds=True) == 1
    assert people.feeds(ada) == ()


def test_of_too_many_sessions_the_oldest_end(people: PeopleRecords, ada: str, bob: str) -> None:
    log_in(people, bob, "bobs", at=NOW - 50)
    for number in range(4):
        log_in(people, ada, f"s{number}", at=NOW + number, at_most=4)
    before = people.revision()
    log_in(people, ada, "a clock that was set back", at=NOW - 9, at_most=3)
    assert people.revision() == before + 1
    assert [one.id for one in people.sessions(ada, NOW)] == ["s3", "s2", "a clock that was set back"]
    log_in(people, ada, "s4", at=NOW + 4, at_most=4)
    assert people.revision() == before + 1
    assert len(people.sessions(bob, NOW)) == 1


def test_many_keys_are_read_with_few_questions(
    people: PeopleRecords, engine: Engine, ada: str, bob: str
) -> None:
    log_in(people, ada, "s")
    log_in(people, ada, "expired", at=NOW - 100)
    log_in(people, bob, "disabled")
    make_token(people, ada, "t")
    people.change_account(bob, is_disabled=True, now=NOW, by=BY)
    keys = {f"digest of {key}": False for key in ("s", "expired", "disabled", "nothing")}
    keys |= {"digest of t": True}
    keys |= {f"{number:064}": number % 2 == 0 for number in range(1200)}
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    known = load_known(people, keys, NOW)
    assert {digest: (key.id, key.is_token) for digest, key in known.keys.items()} == {
        "digest of s": ("s", False),
        "digest of t": ("t", True),
    }
    assert known.keys["digest of t"].scopes == {"read", "book"}
    assert len(asked) < 20


def test_a_digest_is_never_told(people: PeopleRecords, engine: Engine, ada: str, bob: str) -> None:
    make_token(people, ada, "t")
    with pytest.raises(Refused) as caught:
        people.add_token(
            id="other",
            digest="digest of t",
            account_id=bob,
            title="",
            scopes=["read"],
            created_at=NOW,
            expires_at=NOW + 100,
            by=BY,
        )
    assert caught.value.code == "key_taken"
    assert "digest of" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not [
        entry for entry in AuditRecords(engine).search() if "digest of" in entry.detail + entry.subject
    ]


@pytest.mark.attack
@pytest.mark.promise("limits-hold-in-a-race")
def test_limits_by_count_hold_in_a_race(engine: Engine, tally: Tally) -> None:
    people = PeopleRecords(engine)
    account = people.create_account(name="racer", display_name="", role="member", now=NOW, by=BY)

    def race(number: int) -> bool:
        common = {"account_id": account.id, "created_at": NOW, "by": BY, "at_most": 5}
        try:
            if number % 2:
                people.add_feed(id=f"f{number}", digest=f"f{number}", kind="account", **common)  # type: ignore[arg-type]
            else:
                people.add_token(
                    id=f"t{number}",
                    digest=f"t{number}",
                    title="",
                    scopes=["read"],
                    expires_at=NOW + 60,
                    **common,  # type: ignore[arg-type]
                )
        except Refused as refusal:
            if refusal.code not in ("too_many_tokens", "too_many_feeds"):
                raise
            return False
        return True

    tries = 40 * SOAK
    with ThreadPoolExecutor(8) as pool:
        made = sum(pool.map(race, range(tries)))
    tally.add("tokens and calendars made at once", tries=tries, held=tries - max(0, made - 10))
    assert len(people.tokens(account.id, NOW)) == len(people.feeds(account.id)) == 5
    assert made == 10
