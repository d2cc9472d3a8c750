"""Failures of dialling, told to people."""

from __future__ import annotations

import errno
import re
import ssl

import pytest
from aiohttp import ServerDisconnectedError

from gpuherd.sources.dialling import Place, connect_failure

PLACE = Place(name="gpu01", host="fd00::7", port=8472, is_tls=False)


def test_a_place_is_named_before_the_reason() -> None:
    assert PLACE.url("/link") == "http://[fd00::7]:8472/link"
    for host in ("a/b", "user@a", "a?b", "a b", "a#b"):
        with pytest.raises(ValueError, match=re.escape(host)):
            Place(name="n", host=host, port=1, is_tls=False).url("/link")
    failure = PLACE.failure("timeout", "no\x1b[31m answer")
    assert str(failure) == "gpu01 ([fd00::7]:8472): no\N{REPLACEMENT CHARACTER}[31m answer"
    assert len(str(PLACE.failure("garbled", "x" * 2000))) == 500


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.EHOSTUNREACH, "No route to host"), "unreachable", "no route to that address"),
        (OSError(errno.ECONNRESET, "reset"), "garbled", "wants TLS"),
        (OSError(errno.EMFILE, "Too many open files"), "unreachable", "Too many open files"),
        (ServerDisconnectedError(), "garbled", "closes the connection without a response"),
        (ValueError("bad host"), "unreachable", "correct the list"),
        (TimeoutError(), "timeout", "does not respond"),
        (ssl.SSLError(1, "odd"), "unreachable", "odd"),
    ],
)
def test_failures(error: Exception, code: str, words: str) -> None:
    failure = connect_failure(PLACE, error)
    assert failure.code == code
    assert words in str(failure)
