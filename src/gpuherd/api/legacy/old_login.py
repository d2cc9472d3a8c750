"""The login of the older tool's page: one name and password for all, which the page sends as a bare SHA-256.

It guards nothing but that page: whoever is in the listed networks may read without it, as ever. Nobody gets into the
hub with it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gpuherd.api.errors import HttpError
from gpuherd.auth.attempts import FailedAttempts
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.model.text import too_large

__all__ = ["SHA256", "OldLogin", "exposure_of", "read_login_file"]

_KEY = "legacy.gpustat.login_file"
MAX_FILE_BYTES = 65_536
SHA256 = re.compile(r"[0-9A-Fa-f]{64}")


class _Login(Struct, frozen=True):
    user: Annotated[str, Meta(max_length=1024)]
    password: Annotated[str, Meta(max_length=1024)]


class OldLogin:
    """Compares what the page sends with what its backend's ``.env`` says."""

    def __init__(self, user: str, password: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._user = user.encode()
        # The tool's own .env holds the SHA-256 that its page sends; a person may have written the password itself.
        digest = (
            password.lower() if SHA256.fullmatch(password) else hashlib.sha256(password.encode()).hexdigest()
        )
        self._password = digest.encode()
        self._attempts = FailedAttempts()
        self._monotonic = monotonic

    def check(self, body: bytes, sender: str) -> None:
        """Raise ``HttpError``: 400 for no login at all, 401 for a wrong one, 429 after too many."""
        try:
            login = msgspec.json.decode(body, type=_Login)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise HttpError(
                400, "invalid_request", "send user and password, the password as SHA-256 in hex"
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
            raise HttpError(401, "login_failed", "wrong name or password")


def read_login_file(file: Path) -> OldLogin:
    """Read ``AUTH_USER`` and ``AUTH_PASS`` of the old backend's ``.env``; ``Misconfigured`` if they are not there."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Misconfigured(
            f"{_KEY}: cannot read {file}: {error.strerror}; set it to the old backend's .env file, or "
            "remove the key"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise Misconfigured(
            f"{_KEY}: {file}: {too_large(content, MAX_FILE_BYTES)}; set it to the old backend's .env file"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Misconfigured(f"{_KEY}: {file}:1: is UTF-16 text; save the file as UTF-8")
    values, lines = {}, {}
    for number, line in enumerate(content.decode("utf-8-sig", errors="replace").splitlines(), 1):
        key, is_assignment, value = line.removeprefix("export ").partition("=")
        if is_assignment and not line.lstrip().startswith("#"):
            values[key.strip()] = _unquoted(value.strip())
            lines[key.strip()] = number
    if not lines.keys() & {"AUTH_USER", "AUTH_PASS"}:
        raise Misconfigured(f"{_KEY}: {file}: neither AUTH_USER=… nor AUTH_PASS=… is in it; add both")
    for key, other in (("AUTH_USER", "AUTH_PASS"), ("AUTH_PASS", "AUTH_USER")):
        if key not in values:
            raise Misconfigured(f"{_KEY}: {file}:{lines[other]}: {other} is there, but not {key}=…; add it")
        if not values[key]:
            raise Misconfigured(f"{_KEY}: {file}:{lines[key]}: {key} is empty; write {key}=…")
    return OldLogin(values["AUTH_USER"], values["AUTH_PASS"])


def exposure_of(file: Path) -> str | None:
    """Say what is wrong if everyone on this machine can read the file: its hash is as good as the password."""
    try:
        is_exposed = bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return None
    if not is_exposed:
        return None
    return (
        f"{_KEY}: everyone on this machine can read {file}, and the hash in it works like the password; "
        "run: chmod o-r"
    )


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
