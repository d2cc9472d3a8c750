"""Settings of LDAP that stop the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuherd.auth.ldap import LdapWay
from gpuherd.auth.way_settings import LdapSettings
from gpuherd.model.errors import Misconfigured

GOOD: dict[str, Any] = {"url": "ldaps://ldap.example.org", "search_base": "ou=people,dc=example,dc=org"}


@pytest.fixture(scope="module", autouse=True)
def bonsai_here() -> None:
    pytest.importorskip("bonsai", reason="bonsai is not installed: it needs libldap-dev (scripts/provision)")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"url": "ldap://ldap.example.org", "starttls": True},
        {"url": "ldap://127.0.0.1:3890", "insecure": True},
        {"search_base": None, "user_dn": "uid={name},ou=people"},
    ],
)
def test_good_settings(settings: dict[str, Any]) -> None:
    assert LdapWay(LdapSettings(**{**GOOD, **settings})).name == "ldap"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"url": "ldap://ldap.example.org"}, r"login\.ldap\.url: .* clear text; write ldaps://"),
        ({"url": "https://ldap.example.org"}, r"login\.ldap\.url: .* not the address of a directory"),
        ({"url": "ldaps://"}, r"login\.ldap\.url: .* is not the address"),
        ({"url": "ldaps://me:secret@ldap.example.org"}, r"login\.ldap\.url"),
        (
            {"url": "ldaps://ldap.example.org/dc=example"},
            r"login\.ldap\.url: must contain only scheme, host and port",
        ),
        ({"starttls": True}, r"login\.ldap\.starttls"),
        ({"tls_ca_file": Path("/nowhere/ca.pem")}, r"login\.ldap\.tls_ca_file: there is no file"),
        ({"search_base": None}, r"login\.ldap\.search_base: set either"),
        ({"user_dn": "uid={name}"}, r"login\.ldap\.search_base: set either"),
        ({"bind_dn": "cn=hub"}, r"login\.ldap\.bind_password_file: is missing"),
        ({"bind_password_file": Path("/nowhere")}, r"login\.ldap\.bind_dn: is missing"),
        ({"bind_dn": "cn=hub", "bind_password_file": Path("/nowhere")}, r"bind_password_file: cannot read"),
        ({"user_filter": "(uid=*)"}, r"login\.ldap\.user_filter: must contain \{name\}"),
        ({"search_base": None, "user_dn": "uid=alice"}, r"login\.ldap\.user_dn: must contain \{name\}"),
    ],
)
def test_bad_settings_stop_the_start(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Misconfigured, match=complaint):
        LdapWay(LdapSettings(**{**GOOD, **settings}))
