"""The login of the older tool's page: one name and password for all, which the page sends as a bare SHA-256.

It guards nothing but that page: whoever is in the listed networks may read without it, as ever. Nobody gets into the
hub with it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gpuherd.api.errors import HttpError
from gpuherd.auth.attempts import FailedAttempts
from gpuherd.model.errors import Misconfigured, Refused

__all__ = ["OldLogin", "read_login_file"]

_KEY = "legacy.gpustat.login_file"
MAX_FILE_BYTES = 65_536


class _Login(Struct, frozen=True):
    user: Annotated[str, Meta(max_length=1024)]
    password: Annotated[str, Meta(max_length=1024)]


class OldLogin:
    """Compares what the page sends with what its backend's ``.env`` says."""

    def __init__(self, user: str, password: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._user = user.encode()
        self._password = hashlib.sha256(password.encode()).hexdigest().encode()
        self._attempts = FailedAttempts()
        self._monotonic = monotonic

    def check(self, body: bytes, sender: str) -> None:
        """Raise ``HttpError``: 400 for no login at all, 401 for a wrong one, 429 after too many."""
        try:
            login = msgspec.json.decode(body, type=_Login)
        except msgspec.DecodeError as error:
            raise HttpError(
                400, "invalid_request", "send user and password, the latter as SHA-256 in hex"
            ) from error
        now = self._monotonic()
        try:
            self._attempts.check(sender, now)
        except Refused as error:
            raise HttpError(429, error.code, str(error), headers={"Retry-After": "60"}) from error
        is_user = hmac.compare_digest(login.user.encode(errors="replace"), self._user)
        is_password = hmac.compare_digest(login.password.lower().encode(errors="replace"), self._password)
        if not (is_user and is_password):
            self._attempts.failed(sender, now)
            raise HttpError(401, "login_failed", "the name or the password is wrong")


def read_login_file(file: Path) -> OldLogin:
    """Read ``AUTH_USER`` and ``AUTH_PASS`` of the old backend's ``.env``; ``Misconfigured`` if they are not there."""
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise Misconfigured(
            f"{_KEY}: cannot read {file}: {error.strerror}; name the .env of the old backend, or leave the key out"
        ) from error
    values = {}
    for line in text.splitlines():
        key, is_assignment, value = line.removeprefix("export ").partition("=")
        if is_assignment and not line.lstrip().startswith("#"):
            values[key.strip()] = _unquoted(value.strip())
    user, password = values.get("AUTH_USER"), values.get("AUTH_PASS")
    if not user or not password:
        raise Misconfigured(f"{_KEY}: {file} does not hold both AUTH_USER=… and AUTH_PASS=…; add them")
    return OldLogin(user, password)


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
