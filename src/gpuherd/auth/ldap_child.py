"""One login at a directory, in a process of its own: ``python -m gpuherd.auth.ldap_child``.

bonsai waits for a frozen directory with Python's lock held, and for one that does not finish a TLS handshake without
end: in the hub everything would stand still (``child_check``).
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gpuherd.auth.way_settings import LdapSettings
from gpuherd.auth.ways import is_password

__all__ = ["LdapAnswer", "LdapQuestion", "answer"]

SYSTEM_CA_FILES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),  # Debian, Arch
    Path("/etc/pki/tls/certs/ca-bundle.crt"),  # Fedora, RHEL
    Path("/etc/ssl/ca-bundle.pem"),  # SUSE
)


class LdapQuestion(Struct, frozen=True, kw_only=True):
    """Who wants to log in."""

    settings: LdapSettings
    name: str
    password: str
    bind_password: str | None = None


class LdapAnswer(Struct, frozen=True, kw_only=True):
    """What the directory says."""

    outcome: Literal["known", "wrong", "failed"]
    trouble: str = ""
    """Why it failed, and what to do."""
    subject: str = ""
    names: tuple[str, ...] = ()
    display_name: str = ""
    groups: tuple[str, ...] | None = None
    linux_names: tuple[str, ...] = ()


class _Trouble(Exception):  # noqa: N818 - ends up as the answer's ``trouble``
    """The directory could not be asked."""


def main() -> None:
    """Answer one question."""
    # Before the library is loaded: what /etc/ldap/ldap.conf says of certificates and referrals is for other programs.
    os.environ["LDAPNOINIT"] = "1"
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=LdapQuestion, dec_hook=_to_path)
    sys.stdout.buffer.write(msgspec.json.encode(answer(question)))


def _to_path(_: type, value: Any) -> Path:
    return Path(value)


def answer(question: LdapQuestion) -> LdapAnswer:
    """Find the person and try the password. Blocking, perhaps for ever."""
    # A bind with an empty password succeeds for everyone: it is one without a name (RFC 4513, 5.1.2).
    if not is_password(question.password):
        return LdapAnswer(outcome="wrong")
    try:
        return _Login(question).run()
    except _Trouble as trouble:
        return LdapAnswer(outcome="failed", trouble=str(trouble))


class _Login:
    def __init__(self, question: LdapQuestion) -> None:
        import bonsai  # noqa: PLC0415 - an extra; the hub has seen to it that it is there

        self._bonsai: Any = bonsai
        self._question = question
        self._settings = question.settings
        self._until = time.monotonic() + question.settings.deadline_seconds

    def run(self) -> LdapAnswer:
        settings, question = self._settings, self._question
        if settings.search_base is None:
            escaped = self._bonsai.escape_attribute_value(question.name)
            dn = (settings.user_dn or "").replace("{name}", escaped)
            reader = self._bind(dn, question.password)
            if reader is None:
                return LdapAnswer(outcome="wrong")
            entry = self._only(self._search(reader, dn, 0, "(objectClass=*)"))
        else:
            reader = self._bind(settings.bind_dn, question.bind_password)
            if reader is None:
                raise _Trouble(
                    "the directory refuses the hub's own account; check login.ldap.bind_dn and the password in "
                    "login.ldap.bind_password_file"
                )
            entry = self._only(self._found_below(reader, settings.search_base, settings.user_filter))
            if entry is None or self._bind(str(entry.dn), question.password) is None:
                return LdapAnswer(outcome="wrong")
        if entry is None:
            raise _Trouble(
                "the directory does not let people read their own entries; set login.ldap.search_base"
            )
        return self._known(entry, reader)

    # -- asking ------------------------------------------------------------------------------------------------

    def _bind(self, user: str | None, password: str | None) -> Any:
        """Give a connection; none if the password is wrong."""
        settings = self._settings
        client = self._bonsai.LDAPClient(settings.url, settings.starttls)
        client.set_cert_policy("demand")
        trusted = settings.tls_ca_file or next((file for file in SYSTEM_CA_FILES if file.is_file()), None)
        if trusted is not None:
            client.set_ca_cert(str(trusted))
        # A referral would carry the password to wherever the directory says.
        client.set_server_chase_referrals(False)
        client.set_ignore_referrals(True)
        client.set_raw_attributes([settings.subject_attribute])
        if user is not None:
            client.set_credentials("SIMPLE", user=user, password=password)
        try:
            return self._asked(lambda seconds: client.connect(timeout=seconds))
        except (self._bonsai.AuthenticationError, self._bonsai.InvalidDN, self._bonsai.UnwillingToPerform):
            return None

    def _search(self, connection: Any, base: str, scope: int, expression: str) -> Sequence[Any]:
        settings = self._settings
        wanted = [
            settings.subject_attribute,
            settings.name_attribute,
            settings.display_name_attribute,
            settings.linux_name_attribute,
            settings.member_of_attribute,
            settings.group_name_attribute,
        ]
        attributes = sorted({name for name in wanted if name})
        found: Sequence[Any] = self._asked(
            lambda seconds: connection.search(base, scope, expression, attributes, timeout=seconds)
        )
        return found

    def _found_below(self, reader: Any, base: str, template: str, **values: str) -> Sequence[Any]:
        found = self._search(reader, base, 2, self._filled(template, **values))
        # For a base that does not exist bonsai gives an empty list as well.
        if not found and not self._search(reader, base, 0, "(objectClass=*)"):
            raise _Trouble(
                f'the directory has no "{base}", or the hub is not allowed to read it; check '
                "login.ldap.search_base and group_base"
            )
        return found

    def _asked(self, ask: Callable[[float], Any]) -> Any:
        bonsai, settings = self._bonsai, self._settings
        try:
            return ask(max(0.1, self._until - time.monotonic()))
        except (bonsai.AuthenticationError, bonsai.InvalidDN, bonsai.UnwillingToPerform):
            raise
        except bonsai.TimeoutError:
            raise _Trouble(
                f"the directory at {settings.url} did not respond within {settings.deadline_seconds:g} s"
            ) from None
        except bonsai.InsufficientAccess:
            raise _Trouble(
                "the directory does not let the hub search for people; set login.ldap.bind_dn to an "
                "account that is allowed to"
            ) from None
        except bonsai.ConnectionError as error:
            raise _Trouble(
                f"no connection to the directory at {settings.url} ({_connection_trouble(settings) or error})"
            ) from None
        except (bonsai.LDAPError, ValueError) as error:
            raise _Trouble(f"the directory at {settings.url} fails: {error}") from None

    def _only(self, found: Sequence[Any]) -> Any:
        if len(found) > 1:
            raise _Trouble(
                f"{len(found)} directory entries match this name; make login.ldap.user_filter or "
                "search_base narrower"
            )
        return found[0] if found else None

    # -- reading -----------------------------------------------------------------------------------------------

    def _known(self, entry: Any, reader: Any) -> LdapAnswer:
        settings = self._settings
        return LdapAnswer(
            outcome="known",
            subject=self._needed(entry, settings.subject_attribute, "subject_attribute")[0],
            names=self._needed(entry, settings.name_attribute, "name_attribute"),
            display_name=next(iter(_values(entry, settings.display_name_attribute)), ""),
            groups=self._groups(entry, reader),
            linux_names=_values(entry, settings.linux_name_attribute),
        )

    def _needed(self, entry: Any, attribute: str, key: str) -> tuple[str, ...]:
        values = _values(entry, attribute)
        if not values:
            raise _Trouble(
                f"{entry.dn} has no {attribute}, or the hub is not allowed to read it; set another "
                f"attribute in login.ldap.{key}"
            )
        return values

    def _groups(self, entry: Any, reader: Any) -> tuple[str, ...] | None:
        settings = self._settings
        if settings.group_base is not None:
            name = _values(entry, settings.name_attribute)[0]
            found = self._found_below(
                reader, settings.group_base, settings.group_filter, dn=str(entry.dn), name=name
            )
            return tuple(
                name for group in found for name in _values(group, settings.group_name_attribute)[:1]
            )
        if not settings.member_of_attribute:
            return None
        return tuple(self._first_value(name) for name in _values(entry, settings.member_of_attribute))

    def _first_value(self, dn: str) -> str:
        """Give ``staff`` of ``cn=staff,ou=groups,dc=example``."""
        try:
            value = str(self._bonsai.LDAPDN(dn).rdns[0][0][1])
        except (self._bonsai.InvalidDN, IndexError):
            return dn
        return value.replace("\\", "")

    def _filled(self, template: str, **values: str) -> str:
        for key, value in {"name": self._question.name, **values}.items():
            template = template.replace(f"{{{key}}}", self._bonsai.escape_filter_exp(value))
        return template


def _values(entry: Any, attribute: str | None) -> tuple[str, ...]:
    if attribute is None or attribute not in entry:
        return ()
    return tuple(_readable(value) for value in entry[attribute])


def _readable(value: object) -> str:
    """Give text; what is none, such as an objectGUID, in hex."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return value.hex()
    return text if text.isprintable() else value.hex()


def _connection_trouble(settings: LdapSettings) -> str | None:
    """Ask again without LDAP, for a better reason than "cannot contact"; none if that finds nothing wrong."""
    address = urlsplit(settings.url)
    is_tls = address.scheme == "ldaps"
    try:
        with socket.create_connection(
            (address.hostname or "", address.port or (636 if is_tls else 389)), 2
        ) as plain:
            if not is_tls:
                return (
                    "is its certificate signed by a CA in login.ldap.tls_ca_file?"
                    if settings.starttls
                    else None
                )
            context = ssl.create_default_context(cafile=settings.tls_ca_file)
            with context.wrap_socket(plain, server_hostname=address.hostname):
                return None
    except ssl.SSLCertVerificationError as error:
        return f"{error.verify_message}; check login.ldap.tls_ca_file and the name in login.ldap.url"
    except OSError as error:
        return error.strerror or str(error)


if __name__ == "__main__":
    main()
