"""Passwords: argon2id, so that guessing is slow even for whoever has the records."""

from __future__ import annotations

import base64
import secrets
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gpuherd.auth.common_passwords import is_common
from gpuherd.model.errors import Refused

__all__ = ["MAX_PASSWORD_LENGTH", "MIN_PASSWORD_LENGTH", "Passwords", "check_new_password", "random_password"]

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 1024

# One lane: a hub has few cores, and how many passwords are checked side by side is decided elsewhere.
ROUNDS = 3
MEMORY_KIB = 65_536
LANES = 1
HASH_BYTES = 32
SALT_BYTES = 16


def _typed(password: str) -> bytes:
    # The same letters can be typed in two encodings, depending on the keyboard.
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def check_new_password(password: str, name: str) -> None:
    """Raise ``Refused`` ``password_weak`` if it is too short, absurdly long, or common."""
    if len(password) < MIN_PASSWORD_LENGTH:
        raise Refused(
            "password_weak",
            f"a password needs at least {MIN_PASSWORD_LENGTH} characters; a few words are a good choice",
        )
    if len(password) > MAX_PASSWORD_LENGTH:
        raise Refused("password_weak", f"a password can have at most {MAX_PASSWORD_LENGTH} characters")
    if len(set(password)) < 4 or is_common(password, name):
        raise Refused(
            "password_weak",
            "this password is easy to guess: it is made of common words, your name, a keyboard row or digits; choose "
            "another, such as four unrelated words",
        )


def random_password() -> str:
    """Make one to be told to a person once: 100 random bits in groups that can be read aloud."""
    letters = base64.b32encode(secrets.token_bytes(15)).decode().lower()[:20]
    return "-".join(letters[start : start + 5] for start in range(0, 20, 5))


class Passwords:
    """Makes and checks hashes. Blocking, and slow on purpose: about a tenth of a second and 64 MiB each."""

    def __init__(self, *, rounds: int = ROUNDS, memory_kib: int = MEMORY_KIB) -> None:
        self._hasher = PasswordHasher(
            time_cost=rounds,
            memory_cost=memory_kib,
            parallelism=LANES,
            hash_len=HASH_BYTES,
            salt_len=SALT_BYTES,
        )
        # Of no password: checking against it takes as long as against a real one and never succeeds.
        salt, nothing = (
            base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=")
            for size in (SALT_BYTES, HASH_BYTES)
        )
        self._nobody = f"$argon2id$v=19$m={memory_kib},t={rounds},p={LANES}${salt}${nothing}"

    def hash(self, password: str) -> str:
        """Give what is kept of a password."""
        return self._hasher.hash(_typed(password))

    def matches(self, password: str, kept: str | None) -> bool:
        """Tell whether this is the password; someone without one costs the same time, so that names cannot be told
        from the waiting.
        """
        if len(password) > MAX_PASSWORD_LENGTH:
            return False
        try:
            self._hasher.verify(kept or self._nobody, _typed(password))
        except (VerificationError, InvalidHashError):
            return False
        return kept is not None

    def is_outdated(self, kept: str) -> bool:
        """Tell whether a hash was made with less work than is asked for now."""
        return self._hasher.check_needs_rehash(kept)
