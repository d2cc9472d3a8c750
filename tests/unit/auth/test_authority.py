"""Who is who in memory: what was looked up before a change is not believed after it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from gpuherd.auth.authority import ALL_SCOPES, Authority, Key, Known
from gpuherd.model.people import Account, Role, TokenScope, Viewer

NOW = 1000.0


def account(name: str = "ada", role: Role = "member", **more: Any) -> Account:
    return Account(id=f"id-{name}", name=name, display_name=name, role=role, **more)


def key(key_id: str = "k", *, scopes: frozenset[TokenScope] = ALL_SCOPES, **more: Any) -> Key:
    wanted: dict[str, Any] = {"account_id": "id-ada", "expires_at": NOW + 10, "is_token": False, **more}
    return Key(id=key_id, scopes=scopes, **wanted)


def knowing(*accounts: Account, keys: dict[str, Key] | None = None) -> Authority:
    authority = Authority(max_keys=3)
    authority.learn(Known(revision=1, accounts=accounts, keys=keys or {}))
    return authority


def let_in(authority: Authority, shown: Key) -> Viewer:
    viewer = authority.viewer(shown, now=NOW, peer="192.0.2.1")
    assert viewer is not None
    return viewer


def test_a_key_looked_up_before_a_change_is_not_kept_after_it() -> None:
    authority = knowing(account())
    before = authority.generation
    authority.learn(Known(revision=2, accounts=(account(),), keys={}))
    authority.keep("digest", key(), generation=before)
    assert authority.key("digest") is None
    authority.keep("digest", key(), generation=authority.generation)
    assert authority.key("digest") == key()


def test_only_so_many_keys_are_kept_those_in_use_longest() -> None:
    authority = knowing(account())
    for number in range(3):
        authority.keep(f"d{number}", key(f"k{number}"), generation=authority.generation)
    authority.key("d0")
    authority.keep("d3", key("k3"), generation=authority.generation)
    assert authority.digests().keys() == {"d2", "d0", "d3"}


@pytest.mark.parametrize(
    "shown", [key(expires_at=NOW), key(account_id="id-nobody"), key(account_id="id-gone")]
)
def test_keys_that_have_run_out_or_lead_to_nobody_let_nobody_in(shown: Key) -> None:
    authority = knowing(account(), account("gone", is_disabled=True))
    assert authority.viewer(shown, now=NOW, peer="") is None


@pytest.mark.parametrize(
    ("role", "scopes", "privacy"),
    [
        ("viewer", ALL_SCOPES, "member"),
        ("member", ALL_SCOPES, "member"),
        ("admin", ALL_SCOPES, "admin"),
        ("admin", frozenset({"read"}), "member"),
        ("admin", frozenset({"book", "admin"}), None),
    ],
)
def test_what_is_shown_follows_role_and_scopes(
    role: Role, scopes: frozenset[TokenScope], privacy: str | None
) -> None:
    viewer = let_in(knowing(account(role=role)), key(scopes=scopes))
    assert viewer.privacy == privacy
    assert (viewer.scopes, viewer.expires_at) == (scopes, NOW + 10)


@pytest.mark.parametrize(
    ("change", "is_current"),
    [
        ({}, True),
        ({"last_login_at": 5.0}, True),
        ({"role": "viewer"}, False),
        ({"groups": ("new",)}, False),
        ({"linux_names": ("other",)}, False),
        ({"is_disabled": True}, False),
        ({"id": "id-erased"}, False),
    ],
)
def test_whoever_has_changed_is_someone_else(change: dict[str, Any], is_current: bool) -> None:
    keys = {"digest": key()}
    authority = knowing(account(), keys=keys)
    viewer = let_in(authority, key())
    authority.learn(Known(revision=2, accounts=(structs.replace(account(), **change),), keys=keys))
    assert authority.is_current(viewer, now=NOW) is is_current


def test_whoever_has_no_valid_key_any_more_is_out() -> None:
    authority = knowing(account(), keys={"digest": key()})
    viewer = let_in(authority, key())
    assert authority.is_current(viewer, now=NOW)
    assert not authority.is_current(viewer, now=NOW + 10)
    authority.learn(Known(revision=2, accounts=(account(),), keys={}))
    assert not authority.is_current(viewer, now=NOW)


def test_a_word_for_someone_without_a_key_runs_out() -> None:
    authority = knowing(account())
    word = Viewer(account=account(), privacy="member", scopes=ALL_SCOPES, via="proxy", expires_at=NOW + 900)
    assert authority.is_current(word, now=NOW + 899)
    assert not authority.is_current(word, now=NOW + 900)


def test_nobody_is_let_in_as_an_account_of_which_the_change_is_not_known() -> None:
    authority = knowing(
        account(), account("bob"), keys={"digest": key(), "bobs": key("b", account_id="id-bob")}
    )
    viewer, bob = let_in(authority, key()), let_in(authority, key("b", account_id="id-bob"))
    generation = authority.generation
    authority.shut_out("id-ada")
    authority.keep("digest", key(), generation=generation)  # was looked up meanwhile
    assert authority.key("digest") is None
    assert authority.viewer(key(), now=NOW, peer="") is None
    assert not authority.is_current(viewer, now=NOW)
    assert authority.is_current(bob, now=NOW)
    assert authority.has_accounts
    assert authority.revision is None
    authority.learn(Known(revision=1, accounts=(account(),), keys={"digest": key()}))
    assert authority.is_current(viewer, now=NOW)


def test_a_hub_is_set_up_when_an_admin_can_log_in() -> None:
    assert not knowing().has_accounts
    assert not knowing(account()).is_set_up
    assert not knowing(account(role="admin", is_disabled=True)).is_set_up
    assert knowing(account(role="admin")).is_set_up


def test_the_use_of_keys_is_noted_once() -> None:
    authority = knowing(account())
    let_in(authority, key())
    let_in(authority, key("t", is_token=True))
    assert authority.take_seen() == {"k": False, "t": True}
    assert authority.take_seen() == {}


def test_someone_is_also_whom_their_aliases_stand_for() -> None:
    aliases = {"bobby": "bob"}
    authority = Authority(shown_user=lambda name: aliases.get(name, name))
    authority.learn(
        Known(revision=1, accounts=(account("robert", linux_names=("bobby", "robert")),), keys={})
    )
    found = authority.account("id-robert")
    assert found is not None
    assert found.linux_names == ("bob", "bobby", "robert")
