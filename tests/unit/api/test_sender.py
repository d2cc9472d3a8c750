"""Where a request comes from: what proxies tell is believed only of those that are listed."""

from __future__ import annotations

from typing import Any

import pytest

from gpuherd.api.cookies import cleared_cookie, session_cookie, session_secret
from gpuherd.api.sender import Sender, Senders
from gpuherd.model.errors import Misconfigured


def scope(client: str | None, *headers: tuple[str, str], scheme: str = "http") -> dict[str, Any]:
    return {
        "client": None if client is None else (client, 4711),
        "scheme": scheme,
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
    }


def sender(address: str, *, https: bool = False, local: bool = False) -> Sender:
    return Sender(address=address, is_https=https, is_local=local)


FOR, PROTO = "X-Forwarded-For", "X-Forwarded-Proto"
PROXIES = Senders(["10.0.0.0/8", "127.0.0.1", "2001:db8::1"])


@pytest.mark.parametrize(
    ("request_scope", "expected"),
    [
        (scope("127.0.0.1"), sender("127.0.0.1", local=True)),
        (scope("::1"), sender("::1", local=True)),
        (scope("::ffff:127.0.0.1"), sender("127.0.0.1", local=True)),
        (scope("192.0.2.1"), sender("192.0.2.1")),
        (scope("192.0.2.1", scheme="https"), sender("192.0.2.1", https=True)),
        (scope(None), sender("unknown")),
        (scope("not an address"), sender("unknown")),
    ],
)
def test_without_a_proxy(request_scope: dict[str, Any], expected: Sender) -> None:
    assert Senders([]).of(request_scope) == expected
    assert PROXIES.of(request_scope) == expected


@pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.1"])
def test_whoever_is_not_listed_is_not_believed(client: str) -> None:
    told = scope(client, (FOR, "127.0.0.1"), (PROTO, "https"))
    # Not even to be local: somebody stands in between.
    assert Senders([]).of(told) == sender(client)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([(FOR, "203.0.113.5"), (PROTO, "https")], sender("203.0.113.5", https=True)),
        ([(FOR, "203.0.113.5"), (PROTO, "http")], sender("203.0.113.5")),
        ([(FOR, "1.1.1.1, 203.0.113.5")], sender("203.0.113.5")),
        ([(FOR, "1.1.1.1"), (FOR, "203.0.113.5, 10.3.2.1")], sender("203.0.113.5")),
        ([(FOR, "127.0.0.1, 203.0.113.5, 10.0.0.1")], sender("203.0.113.5")),
        ([(FOR, "[2001:db8::7]"), (PROTO, "https, http")], sender("2001:db8::7")),
        ([(FOR, "somewhere")], sender("unknown")),
        ([(FOR, "")], sender("unknown")),
        ([(FOR, "10.1.1.1, 10.1.1.2")], sender("unknown")),
        ([(PROTO, "https")], sender("unknown", https=True)),
        ([(FOR, "203.0.113.5," * 5000)], sender("unknown")),
    ],
)
def test_a_listed_proxy_is_believed_up_to_the_last_that_is_not(
    headers: list[tuple[str, str]], expected: Sender
) -> None:
    assert PROXIES.of(scope("10.9.9.9", *headers)) == expected


def test_a_proxy_on_this_machine_makes_nobody_local() -> None:
    assert not PROXIES.of(scope("127.0.0.1", (FOR, "127.0.0.1"))).is_local


def test_networks_that_cannot_be_read_are_named() -> None:
    with pytest.raises(Misconfigured, match=r"hub\.trusted_proxies"):
        Senders(["everywhere"])


# -- cookies -------------------------------------------------------------------------------------------------------

PLAIN, SECURE = sender("192.0.2.1"), sender("192.0.2.1", https=True)


def test_over_https_the_cookie_is_bound_to_this_host_and_to_https() -> None:
    assert session_cookie("s", SECURE, lifetime_seconds=60) == (
        "__Host-gpuherd=s; Max-Age=60; Path=/; HttpOnly; SameSite=Lax; Secure"
    )
    assert cleared_cookie(SECURE).startswith("__Host-gpuherd=; Max-Age=0; ")
    assert session_cookie("s", PLAIN, lifetime_seconds=60) == (
        "gpuherd=s; Max-Age=60; Path=/; HttpOnly; SameSite=Lax"
    )


@pytest.mark.parametrize(
    ("headers", "who", "expected"),
    [
        ([], PLAIN, None),
        (["gpuherd=abc"], PLAIN, "abc"),
        (["a=b; gpuherd=abc; c=d"], PLAIN, "abc"),
        (["a=b", "gpuherd=abc"], PLAIN, "abc"),
        (['gpuherd="abc"'], PLAIN, "abc"),
        (["xgpuherd=abc; gpuherd2=abc; GPUHERD=abc"], PLAIN, None),
        (["gpuherd"], PLAIN, ""),
        (["gpuherd=abc"], SECURE, None),
        (["__Host-gpuherd=abc; gpuherd=planted"], SECURE, "abc"),
        (["__Host-gpuherd=abc"], PLAIN, None),
        (["a=" + "x" * 20_000 + "; gpuherd=abc"], PLAIN, None),
    ],
)
def test_the_session_in_the_cookies(headers: list[str], who: Sender, expected: str | None) -> None:
    sent = scope("192.0.2.1", *(("Cookie", header) for header in headers))
    assert session_secret(sent, who) == expected
