"""Logging in with an account of a directory, by LDAP."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from urllib.parse import urlsplit

from gpuherd.auth.child_check import ChildChecks
from gpuherd.auth.ldap_child import LdapAnswer, LdapQuestion
from gpuherd.auth.secret_files import read_secret
from gpuherd.auth.way_settings import LdapSettings
from gpuherd.auth.ways import VouchedFor, check_groups, clean_groups, clean_name, is_password
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.people import AccountSource
from gpuherd.model.text import clean

__all__ = ["LdapWay"]

START_SECONDS = 3.0
"""What a process may take to begin and to tell of its own deadline."""


class LdapWay:
    """Asks a directory, each time in a process of its own (``ldap_child``)."""

    def __init__(self, settings: LdapSettings) -> None:
        """``Misconfigured`` if it could not work, or only without any secrecy. Paths are full ones."""
        if importlib.util.find_spec("bonsai") is None:
            raise Misconfigured(
                "login.ldap: needs a package; install libldap-dev and libsasl2-dev, then `pip install 'gpuherd[ldap]'`"
            )
        _check(settings)
        self._settings = settings
        self._bind_password()
        self._checks = ChildChecks(
            "gpuherd.auth.ldap_child",
            what="the directory",
            deadline_seconds=settings.deadline_seconds + START_SECONDS,
        )

    @property
    def name(self) -> AccountSource:
        """See ``PasswordWay``."""
        return "ldap"

    def check(self, name: str, password: str) -> VouchedFor | None:
        """See ``PasswordWay.check``."""
        typed = clean_name(name)
        if typed is None or not is_password(password):
            return None
        try:
            bind_password = self._bind_password()
        except Misconfigured as error:  # it was good when the hub started
            raise Failed(str(error)) from error
        question = LdapQuestion(
            settings=self._settings, name=typed, password=password, bind_password=bind_password
        )
        answer = self._checks.ask(question, LdapAnswer)
        if answer.outcome == "failed":
            raise Failed(clean(answer.trouble, 400))
        if answer.outcome == "wrong":
            return None
        return check_groups(_vouched(answer), self._settings.allowed_groups)

    def _bind_password(self) -> str | None:
        file: Path | None = self._settings.bind_password_file
        return None if file is None else read_secret(file, "login.ldap.bind_password_file")


def _vouched(answer: LdapAnswer) -> VouchedFor:
    name = next((name for told in answer.names if (name := clean_name(told)) is not None), None)
    if name is None:
        raise Failed(
            f'the directory calls this account "{clean(answer.names[0], 60)}", which is not a valid '
            "account name; set login.ldap.name_attribute to another attribute"
        )
    return VouchedFor(
        source="ldap",
        subject=answer.subject,
        name=name,
        display_name=clean(answer.display_name.strip()) or name,
        groups=None if answer.groups is None else clean_groups(answer.groups),
        linux_names=clean_groups(answer.linux_names),
    )


def _check(settings: LdapSettings) -> None:
    """Raise ``Misconfigured`` for settings that contradict each other."""
    address = urlsplit(settings.url)
    if address.scheme not in ("ldap", "ldaps") or not address.hostname or address.username is not None:
        raise Misconfigured(
            f'login.ldap.url: "{clean(settings.url, 80)}" is not the address of a directory; write for example '
            '"ldaps://ldap.example.org"'
        )
    if address.path.strip("/") or address.query:
        raise Misconfigured(
            "login.ldap.url: must contain only scheme, host and port; put the rest into search_base"
        )
    if address.scheme == "ldaps" and settings.starttls:
        raise Misconfigured(
            "login.ldap.starttls: ldaps:// already uses TLS; remove starttls, or write ldap://"
        )
    if address.scheme == "ldap" and not settings.starttls and not settings.insecure:
        raise Misconfigured(
            "login.ldap.url: passwords would cross the network in clear text; write ldaps://, or set "
            "login.ldap.starttls = true"
        )
    if settings.tls_ca_file is not None and not settings.tls_ca_file.is_file():
        raise Misconfigured(f"login.ldap.tls_ca_file: there is no file {settings.tls_ca_file}")
    if (settings.user_dn is None) == (settings.search_base is None):
        raise Misconfigured(
            "login.ldap.search_base: set either this, to search for people, or user_dn, to bind as them "
            "directly"
        )
    if settings.user_dn is not None and settings.bind_dn is not None:
        raise Misconfigured("login.ldap.bind_dn: cannot be combined with user_dn; remove one of them")
    if (settings.bind_dn is None) != (settings.bind_password_file is None):
        missing = "bind_dn" if settings.bind_dn is None else "bind_password_file"
        raise Misconfigured(
            f"login.ldap.{missing}: is missing; the account that searches needs name and password"
        )
    for key in ("user_filter", "user_dn"):
        template: str | None = getattr(settings, key)
        if template is not None and "{name}" not in template:
            raise Misconfigured(
                f'login.ldap.{key}: must contain {{name}}; otherwise "{template}" matches everyone'
            )
