"""Sessions, tokens and the set-up code on real records: random, kept as digests, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.auth.secrets import API_TOKEN_PREFIX, SESSION_PREFIX, digest, is_secret, new_secret
from gpuherd.auth.sessions import begin_session
from gpuherd.auth.setup import new_setup_code, setup_digest, setup_link
from gpuherd.auth.tokens import create_token
from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, Actor, Role, TokenScope
from gpuherd.records.database import open_records
from gpuherd.records.people import PeopleRecords

NOW = 1_800_000_000.0
BY = Actor(account_id=None, label="test")
READ: tuple[TokenScope, ...] = ("read",)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[PeopleRecords]:
    records = PeopleRecords(open_records(tmp_path / "records.sqlite"))
    yield records
    records.close()


def add(people: PeopleRecords, role: Role = "member") -> Account:
    return people.create_account(name=role, display_name=role, role=role, now=NOW, by=BY)


def test_what_looks_like_a_secret() -> None:
    secret = new_secret(API_TOKEN_PREFIX)
    assert is_secret(secret, API_TOKEN_PREFIX)
    for wrong in (
        secret[:-1],
        secret + "A",
        secret + "\n",
        secret[:-1] + "!",
        SESSION_PREFIX + secret[4:],
        "",
    ):
        assert not is_secret(wrong, API_TOKEN_PREFIX)


@pytest.mark.promise("only-digests")
def test_a_session_is_kept_as_a_digest_only(people: PeopleRecords, tmp_path: Path) -> None:
    account = add(people)
    session = begin_session(
        people, account, now=NOW, lifetime_seconds=60, by=BY, agent="Browser\x1b[31m" + "x" * 500
    )
    assert is_secret(session.secret, SESSION_PREFIX)
    found = people.session(digest(session.secret), NOW)
    assert found is not None
    assert (found.account_id, found.expires_at, len(found.agent)) == (account.id, NOW + 60, 200)
    assert "\x1b" not in found.agent
    assert people.session(digest(session.secret), NOW + 60) is None
    people.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert session.secret.encode() not in kept
    assert digest(session.secret).encode() in kept


def test_a_login_that_a_new_password_overtakes_is_refused(people: PeopleRecords) -> None:
    account = add(people)
    people.set_password(account.id, "old hash", now=NOW, by=BY)
    people.set_password(account.id, "new hash", now=NOW, by=BY)
    with pytest.raises(Refused, match="changed"):
        begin_session(
            people, account, now=NOW, lifetime_seconds=60, by=BY, agent="", password_hash="old hash"
        )


@pytest.mark.parametrize(
    ("role", "scope", "is_given"),
    [
        ("viewer", "read", True),
        ("viewer", "book", False),
        ("member", "book", True),
        ("member", "admin", False),
        ("admin", "admin", True),
    ],
)
def test_a_token_has_rights_that_its_owner_has(
    people: PeopleRecords, role: Role, scope: str, is_given: bool
) -> None:
    options: dict[str, object] = {"title": "t", "scopes": {"read", scope}, "days": 1, "now": NOW, "by": BY}
    account = add(people, role)
    if is_given:
        token = create_token(people, account, **options)  # type: ignore[arg-type]
        found = people.token(digest(token.secret), NOW)
        assert found is not None
        assert found.expires_at == NOW + 86_400
    else:
        with pytest.raises(Refused) as told:
            create_token(people, account, **options)  # type: ignore[arg-type]
        assert told.value.code == "scope_needs_role"


@pytest.mark.parametrize("scope", ["read", "book", "admin"])
def test_a_token_that_may_write_may_look(people: PeopleRecords, scope: TokenScope) -> None:
    token = create_token(people, add(people, "admin"), title="t", scopes=[scope], days=1, now=NOW, by=BY)
    found = people.token(digest(token.secret), NOW)
    assert found is not None
    assert found.scopes == token.scopes == {"read", scope}


def test_nobody_has_tokens_without_number(people: PeopleRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.auth.tokens.MAX_TOKENS", 2)
    account = add(people)
    for _ in range(2):
        create_token(people, account, title="t", scopes=READ, days=1, now=NOW, by=BY)
    with pytest.raises(Refused) as told:
        create_token(people, account, title="t", scopes=READ, days=1, now=NOW, by=BY)
    assert told.value.code == "too_many_tokens"


def test_there_is_a_set_up_code_until_there_is_an_admin(people: PeopleRecords) -> None:
    code = new_setup_code(people, NOW)
    assert code is not None
    assert setup_link("http://127.0.0.1:8470/", code) == f"http://127.0.0.1:8470/?setup#{code}"
    assert setup_digest(code) == digest(code)
    add(people, "admin")
    assert new_setup_code(people, NOW) is None


@pytest.mark.parametrize("text", ["", "ghc_", "ghc_short", "ghu_" + "A" * 43])
def test_what_is_no_set_up_code_is_told_at_once(text: str) -> None:
    with pytest.raises(Refused, match="whole link"):
        setup_digest(text)
