"""Logging in at a real directory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuherd.auth.ldap import LdapWay
from gpuherd.auth.ldap_child import LdapAnswer, LdapQuestion, answer
from gpuherd.auth.way_settings import LdapSettings
from gpuherd.model.errors import Failed, Refused
from support.authority import Authority
from support.running import free_port
from support.slapd import BASE, SEARCHER, SEARCHER_PASSWORD, ZOES_PASSWORD, Slapd, need_slapd, running_slapd


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    need_slapd()
    with running_slapd(tmp_path_factory.mktemp("ldap") / "directory") as directory:
        yield directory


@pytest.fixture
def options(slapd: Slapd, tmp_path: Path) -> dict[str, Any]:
    """Search with an account of the hub's own, over ldaps."""
    file = tmp_path / "bind-password"
    file.write_text(SEARCHER_PASSWORD + "\n")
    file.chmod(0o600)
    return {
        "url": slapd.tls_url,
        "tls_ca_file": slapd.ca_file,
        "search_base": f"ou=people,{BASE}",
        "bind_dn": SEARCHER,
        "bind_password_file": file,
    }


def way(options: dict[str, Any], **more: Any) -> LdapWay:
    return LdapWay(LdapSettings(**{**options, **more}))


def direct(options: dict[str, Any]) -> dict[str, Any]:
    return {
        **options,
        "search_base": None,
        "bind_dn": None,
        "bind_password_file": None,
        "user_dn": f"uid={{name}},ou=people,{BASE}",
    }


def test_person_is_looked_up_and_password_tried(options: dict[str, Any]) -> None:
    vouched = way(options, linux_name_attribute="employeeNumber").check("alice", "alice's password")

    assert vouched is not None
    assert (vouched.source, vouched.name, vouched.display_name) == ("ldap", "alice", "Alice Ash")
    assert len(vouched.subject) == 36  # entryUUID: stays when alice is renamed
    assert vouched.groups == ("gpu-admins", "gpu-users")
    assert vouched.linux_names == ("aash",)


def test_starttls(options: dict[str, Any], slapd: Slapd) -> None:
    assert way(options, url=slapd.url, starttls=True).check("bob", "bob's password") is not None


def test_binding_directly_needs_no_account_of_the_hub(options: dict[str, Any]) -> None:
    vouched = way(direct(options)).check("bob", "bob's password")

    assert vouched is not None
    assert vouched.name == "bob"
    assert vouched.groups == ("gpu-users",)
    assert way(direct(options)).check("bob", "wrong") is None
    assert way(direct(options)).check("nobody", "wrong") is None


def test_both_ways_tell_the_same_subject(options: dict[str, Any]) -> None:
    one, two = (way(kind).check("ALICE", "alice's password") for kind in (options, direct(options)))

    assert one is not None
    assert two is not None
    assert (one.subject, one.name) == (two.subject, "alice")


def test_groups_can_be_searched(options: dict[str, Any]) -> None:
    vouched = way(options, group_base=f"ou=groups,{BASE}").check("bob", "bob's password")

    assert vouched is not None
    assert vouched.groups == ("gpu-users", "posix")


def test_groups_can_be_left_to_the_hub(options: dict[str, Any]) -> None:
    vouched = way(options, member_of_attribute="").check("bob", "bob's password")

    assert vouched is not None
    assert vouched.groups is None


def test_wrong_password_and_unknown_name_are_nobody(options: dict[str, Any]) -> None:
    assert way(options).check("alice", "wrong") is None
    assert way(options).check("nobody", "alice's password") is None


@pytest.mark.parametrize("kind", [dict, direct])
@pytest.mark.parametrize("password", ["", "\0", "\ud800"])
def test_empty_password_never_reaches_the_directory(
    options: dict[str, Any], slapd: Slapd, kind: Any, password: str
) -> None:
    before = slapd.log().count("BIND")
    settings = LdapSettings(**kind(options))

    assert LdapWay(settings).check("alice", password) is None
    asked = LdapQuestion(settings=settings, name="alice", password=password, bind_password=SEARCHER_PASSWORD)
    assert answer(asked).outcome == "wrong"
    assert slapd.log().count("BIND") == before


HOSTILE_NAMES = [
    "*",
    "*)(uid=*",
    "alice)(|(uid=*",
    "a*",
    "alice\0",
    "\\61lice",
    "alice,ou=more",
    "alice+cn=x",
    "(",
    "",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_with_meaning_are_not_asked_for(options: dict[str, Any], name: str) -> None:
    assert way(options).check(name, "alice's password") is None


@pytest.mark.parametrize("kind", [dict, direct])
@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name])
def test_names_with_meaning_have_none_even_if_asked_for(
    options: dict[str, Any], kind: Any, name: str
) -> None:
    settings = LdapSettings(**kind(options))
    asked = LdapQuestion(
        settings=settings, name=name, password="alice's password", bind_password=SEARCHER_PASSWORD
    )

    assert answer(asked).outcome in ("wrong", "failed")


def test_name_that_fits_two_entries_is_nobody(options: dict[str, Any]) -> None:
    with pytest.raises(Failed, match="2 directory entries match"):
        way(options).check("twin", "twin's password")


def test_only_the_allowed_groups_enter(options: dict[str, Any]) -> None:
    admins = way(options, allowed_groups=("gpu-admins",))

    assert admins.check("alice", "alice's password") is not None
    with pytest.raises(Refused) as refused:
        admins.check("bob", "bob's password")
    assert refused.value.code == "group_needed"
    assert admins.check("bob", "wrong") is None


def test_referrals_are_not_followed(options: dict[str, Any]) -> None:
    # ou=elsewhere refers to a port where nobody listens: following it would fail.
    assert way(options, search_base=BASE).check("alice", "alice's password") is not None
    assert way(options, search_base=BASE).check("nobody", "alice's password") is None


def test_certificate_of_someone_else_is_refused(
    options: dict[str, Any], slapd: Slapd, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other").file
    before = slapd.log().count("BIND")

    with pytest.raises(Failed, match=r"certificate.*check login\.ldap\.tls_ca_file"):
        way(options, tls_ca_file=other).check("alice", "alice's password")
    with pytest.raises(Failed, match=r"certificate.*check login\.ldap\.tls_ca_file"):
        way(options, tls_ca_file=None).check("alice", "alice's password")  # nor do the system's own know it
    with pytest.raises(Failed, match=r"tls_ca_file"):
        way(options, tls_ca_file=other, url=slapd.url, starttls=True).check("alice", "alice's password")
    assert slapd.log().count("BIND") == before


def test_certificate_for_another_name_is_refused(options: dict[str, Any], slapd: Slapd) -> None:
    with pytest.raises(Failed, match="no connection to the directory"):
        way(options, url=slapd.tls_url.replace("127.0.0.1", "localhost")).check("alice", "alice's password")


def test_directory_that_is_away_is_a_failure(options: dict[str, Any]) -> None:
    with pytest.raises(Failed, match="Connection refused"):
        way(options, url=f"ldaps://127.0.0.1:{free_port()}").check("alice", "alice's password")


@pytest.mark.parametrize("is_tls", [True, False])
def test_frozen_directory_costs_one_login_and_nobody_else(
    options: dict[str, Any], slapd: Slapd, is_tls: bool
) -> None:
    url = {} if is_tls else {"url": slapd.url, "insecure": True}
    asked = way(options, deadline_seconds=2, **url)
    longest_gap, is_over = 0.0, threading.Event()

    def watch() -> None:
        nonlocal longest_gap
        last = time.monotonic()
        while not is_over.wait(0.01):
            longest_gap, last = max(longest_gap, time.monotonic() - last), time.monotonic()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        with slapd.frozen(), pytest.raises(Failed, match="did not respond within"):
            asked.check("alice", "alice's password")
    finally:
        is_over.set()
        watching.join()

    assert longest_gap < 1.5, "the other threads stood still"
    assert asked.check("alice", "alice's password") is not None


def test_hubs_own_account_with_a_wrong_password_is_told_apart(options: dict[str, Any]) -> None:
    file: Path = options["bind_password_file"]
    file.write_text("no longer the one")

    with pytest.raises(Failed, match=r"refuses the hub's own account; check login\.ldap\.bind_dn"):
        way(options).check("alice", "alice's password")


def test_changed_bind_password_counts_at_once(options: dict[str, Any]) -> None:
    file: Path = options["bind_password_file"]
    file.write_text("no longer the one")
    asked = way(options)
    file.write_text(SEARCHER_PASSWORD)

    assert asked.check("alice", "alice's password") is not None
    file.unlink()
    with pytest.raises(Failed, match=r"login\.ldap\.bind_password_file: cannot read"):
        asked.check("alice", "alice's password")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"subject_attribute": "objectGUID"}, r"has no objectGUID.*login\.ldap\.subject_attribute"),
        ({"name_attribute": "sAMAccountName"}, r"has no sAMAccountName.*login\.ldap\.name_attribute"),
        ({"name_attribute": "cn"}, r'calls this account "Alice Ash"'),
        ({"search_base": "ou=nowhere,dc=example,dc=org"}, r'has no "ou=nowhere.*login\.ldap\.search_base'),
        ({"bind_dn": None, "bind_password_file": None}, r"login\.ldap\.bind_dn"),
        ({"user_filter": "(uid={name}"}, "fails: "),
    ],
)
def test_settings_that_do_not_fit_the_directory_say_which(
    options: dict[str, Any], changed: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(Failed, match=complaint):
        way(options, **changed).check("alice", "alice's password")


def test_parentheses_and_backslashes_of_the_directory_are_only_text(options: dict[str, Any]) -> None:
    bob = way(options).check("bob", "bob's password")

    assert bob is not None
    assert bob.display_name == "Bob (the \\ builder)"


def test_passwords_and_names_have_all_letters(options: dict[str, Any]) -> None:
    zoe = way(options).check("zoe", ZOES_PASSWORD)

    assert zoe is not None
    assert zoe.display_name == "Zoé Weiß"


def test_answer_of_a_known_person_holds_no_password(options: dict[str, Any]) -> None:
    asked = LdapQuestion(
        settings=LdapSettings(**options),
        name="alice",
        password="alice's password",
        bind_password=SEARCHER_PASSWORD,
    )
    told = answer(asked)

    assert isinstance(told, LdapAnswer)
    assert told.outcome == "known"
    assert "password" not in repr(told)
