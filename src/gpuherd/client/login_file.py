"""The token of whoever works here, kept so that nobody else on the machine can read it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.model.errors import Failed, Misconfigured

__all__ = ["Login", "LoginFile", "read_token"]

MAX_FILE_BYTES = 65_536


class Login(Struct, frozen=True, kw_only=True):
    """A token and the hub that it belongs to; it is shown to no other."""

    hub: str
    token: str
    name: str = ""
    expires_at: float | None = None
    ca_file: str | None = None


class LoginFile:
    """``~/.config/gpuherd/token``."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def load(self) -> Login | None:
        """Read the login, none if there is none; ``Misconfigured`` if others may read it, or it is damaged."""
        content = _read(self.file)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=Login)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Misconfigured(f"{self.file}: is damaged; log in again with: gpuherd login") from None

    def save(self, login: Login) -> None:
        """Write the login in place of the one before; ``Failed`` if that cannot be done."""
        fresh = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(msgspec.json.encode(login))
            fresh.replace(self.file)
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise Failed(f"{self.file}: cannot be written ({error.strerror})") from error

    def forget(self) -> bool:
        """Remove the login; false if there is none."""
        try:
            self.file.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Failed(f"{self.file}: cannot be removed ({error.strerror})") from error
        return True


def read_token(file: Path) -> str:
    """Read a file that holds nothing but a token; ``Misconfigured`` says what is wrong with it."""
    content = _read(file)
    if content is None:
        raise Misconfigured(f"{file}: there is no such file")
    try:
        token = content.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token.startswith("ghu_") or len(token.split()) != 1:
        raise Misconfigured(
            f"{file}: contains no API token; a token starts with ghu_ and is created on the hub's page"
        )
    return token


def _read(file: Path) -> bytes | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            mode = os.fstat(descriptor).st_mode
            content = opened.read(MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Misconfigured(f"{file}: cannot be read ({error.strerror})") from error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise Misconfigured(f"{file}: other users can read it; fix it with: chmod 600 {file}")
    return content
