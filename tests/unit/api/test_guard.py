"""Which Host and Origin headers may come in."""

from __future__ import annotations

from typing import Any

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.guard import Guard
from gpuherd.api.sender import Senders

SENDERS = Senders(["10.0.0.1"])
GUARD = Guard(["gpus.example"], is_https=lambda scope: SENDERS.of(scope).is_https)


def post(*headers: tuple[str, str], scheme: str = "http", client: str = "192.0.2.1") -> dict[str, Any]:
    return {
        "method": "POST",
        "scheme": scheme,
        "client": (client, 4711),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }


def status_of(scope: dict[str, Any]) -> int:
    try:
        GUARD.check(scope, is_sensitive=False)
    except HttpError as error:
        return error.status
    return 200


HOST = ("Host", "gpus.example")


@pytest.mark.promise("one-host-header")
def test_two_host_headers_are_refused() -> None:
    assert status_of(post(HOST)) == 200
    assert status_of(post(HOST, HOST)) == 400
    assert status_of(post(HOST, ("Host", "evil.example"))) == 400


@pytest.mark.promise("origin-has-its-scheme")
@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://gpus.example", 200),
        ("http://gpus.example", 403),
        ("ftp://gpus.example", 403),
        ("gpus.example", 403),
        ("https://gpus.example:444", 403),
    ],
)
def test_behind_https_the_origin_is_https(origin: str, expected: int) -> None:
    assert status_of(post(HOST, ("Origin", origin), scheme="https")) == expected
    proxied = post(HOST, ("Origin", origin), ("X-Forwarded-Proto", "https"), client="10.0.0.1")
    assert status_of(proxied) == expected


def test_over_plain_http_a_proxy_that_is_not_listed_may_have_https() -> None:
    assert status_of(post(HOST, ("Origin", "http://gpus.example"))) == 200
    assert status_of(post(HOST, ("Origin", "https://gpus.example"))) == 200
    assert status_of(post(HOST, ("Origin", "ftp://gpus.example"))) == 403
