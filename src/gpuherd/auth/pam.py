"""Logging in with an account of the machine that the hub runs on, by PAM."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpuherd.auth.child_check import ChildChecks
from gpuherd.auth.way_settings import PamSettings
from gpuherd.auth.ways import VouchedFor, check_groups, clean_groups, clean_name, is_password
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.people import AccountSource
from gpuherd.model.text import clean

__all__ = ["PamWay"]

SERVICE_FOLDERS = (Path("/etc/pam.d"), Path("/usr/lib/pam.d"), Path("/usr/share/pam.d"))

# Numbers of Linux-PAM's _pam_types.h.
_SUCCESS = 0
_WRONG = {6, 7, 10, 11}  # permission denied, wrong password, unknown user, too many tries
_NEW_PASSWORD_NEEDED = 12
_ACCOUNT_EXPIRED = 13


class _User(Struct, frozen=True):
    name: str
    uid: int
    full_name: str
    groups: tuple[str, ...]


class _Answer(Struct, frozen=True):
    stage: str
    code: int
    reason: str
    user: _User | None


class PamWay:
    """Asks PAM, each time in a process of its own (``pam_child``)."""

    def __init__(self, settings: PamSettings, *, service_folders: Sequence[Path] = SERVICE_FOLDERS) -> None:
        """``Misconfigured`` if the binding or the service's file is missing."""
        if importlib.util.find_spec("pam") is None:
            raise Misconfigured("login.pam: needs a package; install it with `pip install 'gpuherd[pam]'`")
        # Without a file PAM takes the rules of "other", which lets nobody in and says nothing.
        if not any((folder / settings.service).is_file() for folder in service_folders):
            raise Misconfigured(
                f"login.pam.service: there is no {service_folders[0] / settings.service}; create it with "
                'the lines "@include common-auth" and "@include common-account" (Debian), or set '
                "another service"
            )
        self._settings = settings
        self._checks = ChildChecks(
            "gpuherd.auth.pam_child", what="PAM", deadline_seconds=settings.deadline_seconds
        )

    @property
    def name(self) -> AccountSource:
        """See ``PasswordWay``."""
        return "pam"

    def check(self, name: str, password: str) -> VouchedFor | None:
        """See ``PasswordWay.check``. ``Refused`` for an account that has expired or is a system's own."""
        typed = clean_name(name)
        if typed is None or not is_password(password):
            return None
        answer = self._checks.ask(
            {"service": self._settings.service, "name": typed, "password": password}, _Answer
        )
        if answer.code != _SUCCESS:
            self._refuse(answer)
            return None
        if answer.user is not None and answer.user.uid < self._settings.min_uid:
            raise Refused("account_closed", "system accounts cannot log in here; use your own account")
        return check_groups(_vouched(typed, answer.user), self._settings.allowed_groups)

    def _refuse(self, answer: _Answer) -> None:
        """Raise what is more than a wrong name or password. Only who knows the password hears of the account."""
        if answer.stage == "account":
            if answer.code == _NEW_PASSWORD_NEEDED:
                raise Refused(
                    "password_expired", "your password has expired; change it on the machine itself"
                )
            if answer.code == _ACCOUNT_EXPIRED:
                raise Refused("account_expired", "your account has expired; ask its admin")
            if answer.code in _WRONG:
                raise Refused("account_closed", "your account is not allowed here; ask its admin")
        if answer.code not in _WRONG:
            raise Failed(
                f"PAM cannot check passwords now ({clean(answer.reason, 120)}); see the system's log and "
                f"/etc/pam.d/{self._settings.service}"
            )


def _vouched(typed: str, user: _User | None) -> VouchedFor:
    # The system's spelling: where case does not count, "Alice" and "alice" are one person.
    name = typed if user is None else clean_name(user.name) or typed
    return VouchedFor(
        source="pam",
        subject=name,
        name=name,
        display_name=name if user is None else clean(user.full_name.strip()) or name,
        groups=None if user is None else clean_groups(user.groups),
        linux_names=() if user is None else (user.name,),
    )
