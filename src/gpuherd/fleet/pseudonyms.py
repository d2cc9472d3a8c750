"""Names for people who are not to be named: always the same for the same person, and telling nothing.

A pseudonym is made of a keyed digest of the user's name, so that nobody without the hub's secret can find out whose it
is by trying names. It begins with a sign with which no user's name is shown, so that no node can pass a user off as
someone's pseudonym.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import unicodedata

from gpuherd.fleet.pseudonym_words import ANIMALS, QUALITIES

__all__ = ["MARK", "LastingPseudonyms", "Pseudonyms", "without_mark"]

MARK = "~"
_LOOKALIKES = frozenset(
    (
        MARK,
        "\N{FULLWIDTH TILDE}",
        "\N{SMALL TILDE}",
        "\N{TILDE OPERATOR}",
        "\N{REVERSED TILDE}",
        "\N{WAVE DASH}",
        "\N{SWUNG DASH}",
    )
)
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
SHORTEST = 4
LASTING = 12
"""Letters with which, and two words, no two of any number of users share a pseudonym: 72 bits."""
MAX_KEPT = 50_000
"""Nodes may report any number of names."""


class Pseudonyms:
    """Gives pseudonyms, in any thread; two names in use never share one."""

    def __init__(self, secret: bytes) -> None:
        """``secret``: at least 16 random bytes, kept for as long as pseudonyms are to stay the same."""
        self._secret = _checked(secret)
        self._given: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._making = threading.Lock()

    def of(self, name: str) -> str:
        """Give a user's pseudonym. Capitals make no difference."""
        given = self._given.get(name)
        if given is None:
            with self._making:
                if len(self._given) >= MAX_KEPT:
                    self._given.clear()
                    self._taken.clear()
                given = self._given[name] = self._make(_person(name))
        return given

    def _make(self, person: str) -> str:
        words, letters = _words_and_letters(self._secret, person)
        # Four letters and two words are 32 bits, which a few thousand people hardly ever share: then one gets more.
        for length in range(SHORTEST, len(letters) + 1):
            pseudonym = f"{MARK}{words}-{letters[:length]}"
            if self._taken.setdefault(pseudonym, person) == person:
                return pseudonym
        raise AssertionError("two names have the same digest")


class LastingPseudonyms:
    """Gives pseudonyms that are written down for good: by the secret and the name alone, whoever else there is."""

    def __init__(self, secret: bytes) -> None:
        """``secret``: at least 16 random bytes, another one than that of pseudonyms that are shown with names."""
        self._secret = _checked(secret)

    def of(self, name: str) -> str:
        """Give a user's pseudonym. Capitals make no difference."""
        words, letters = _words_and_letters(self._secret, _person(name))
        return f"{MARK}{words}-{letters[:LASTING]}"

    def stay_id(self, stay: str) -> str:
        """Give the id of a stay whose own one tells whose it was, to who tries names."""
        return hmac.digest(self._secret, b"gpuherd stay v1\0" + stay.encode(), hashlib.sha256)[:16].hex()


def _checked(secret: bytes) -> bytes:
    if len(secret) < 16:
        raise ValueError("the secret of the pseudonyms is shorter than 16 bytes")
    return secret


def _person(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _words_and_letters(secret: bytes, person: str) -> tuple[str, str]:
    digest = hmac.digest(secret, b"gpuherd pseudonym v1\0" + person.encode(), hashlib.sha256)
    words = f"{QUALITIES[digest[0] % len(QUALITIES)]}-{ANIMALS[digest[1] % len(ANIMALS)]}"
    return words, "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[2:])


def without_mark(user: str) -> str:
    """Give a user's name as a node reports it so that it cannot be taken for a pseudonym."""
    if user[:1] not in _LOOKALIKES:
        return user
    return "\N{REPLACEMENT CHARACTER}" + user[1:]
