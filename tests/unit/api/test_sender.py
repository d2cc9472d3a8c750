"""Where a request comes from: what proxies tell is believed only of those that are listed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from gpuherd.api.cookies import cleared_cookie, session_cookie, session_secret
from gpuherd.api.sender import Sender, Senders
from gpuherd.model.errors import Misconfigured


def scope(client: str | None, *headers: tuple[str, str], scheme: str = "http") -> dict[str, Any]:
    return {
        "client": None if client is None else (client, 4711),
        "scheme": scheme,
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
    }


def sender(address: str, *, https: bool = False, local: bool = False, certain: bool | None = None) -> Sender:
    """Give a sender; of one whose address is known it is certain, if nothing else is said."""
    is_certain = address != "unknown" if certain is None else certain
    return Sender(address=address, is_https=https, is_local=local, is_certain=is_certain)


FOR, PROTO, SITE = "X-Forwarded-For", "X-Forwarded-Proto", "Sec-Fetch-Site"
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
    found = PROXIES.of(request_scope)
    assert structs.replace(found, is_proxy=False, is_certain=expected.is_certain) == expected


@pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.1"])
@pytest.mark.promise("headers-of-listed-proxies-only")
def test_whoever_is_not_listed_is_not_believed(client: str) -> None:
    told = scope(client, (FOR, "127.0.0.1"), (PROTO, "https"))
    # Not even to be local: somebody stands in between.
    assert Senders([]).of(told) == sender(client, certain=False)


@pytest.mark.parametrize(
    "name",
    [
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded",
        "Forwarded",
        "X-Real-IP",
        "Via",
        "CF-Connecting-IP",
    ],
)
def test_any_header_of_a_proxy_makes_the_address_uncertain(name: str) -> None:
    found = Senders([]).of(scope("127.0.0.1", (name, "192.0.2.7")))
    assert (found.is_certain, found.is_local) == (False, False)


@pytest.mark.parametrize(
    ("client", "is_certain"), [("127.0.0.1", False), ("::1", False), ("192.0.2.1", True)]
)
def test_http_1_0_on_this_machine_is_an_nginx_that_says_nothing(client: str, is_certain: bool) -> None:
    for version in ("1", "1.0"):
        found = Senders([]).of(scope(client) | {"http_version": version})
        assert (found.is_certain, found.is_local) == (is_certain, False)


@pytest.mark.parametrize(
    "headers", [[], [("Via", "1.1 cache")], [("X-Real-IP", "192.0.2.7")], [(FOR, "10.0.0.7")]]
)
def test_a_listed_proxy_that_tells_no_client_is_not_taken_for_one(headers: list[tuple[str, str]]) -> None:
    assert not PROXIES.of(scope("10.0.0.1", *headers)).is_certain
    assert PROXIES.of(scope("10.0.0.1", (FOR, "::ffff:192.0.2.7"))) == sender("192.0.2.7")


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
        # A proxy that does not tell: browsers send this by HTTPS only.
        ([(FOR, "203.0.113.5"), (SITE, "same-origin")], sender("203.0.113.5", https=True)),
        ([(FOR, "203.0.113.5"), (PROTO, "http"), (SITE, "none")], sender("203.0.113.5")),
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


@pytest.mark.promise("cookies-guarded")
def test_over_https_the_cookie_is_bound_to_this_host_and_to_https() -> None:
    assert session_cookie("s", SECURE, "", lifetime_seconds=60) == (
        "__Host-gpuherd=s; Max-Age=60; Path=/; HttpOnly; SameSite=Lax; Secure"
    )
    assert cleared_cookie(SECURE, "").startswith("__Host-gpuherd=; Max-Age=0; ")
    assert session_cookie("s", PLAIN, "", lifetime_seconds=60) == (
        "gpuherd=s; Max-Age=60; Path=/; HttpOnly; SameSite=Lax"
    )


def test_below_a_base_path_no_other_application_is_sent_the_cookie() -> None:
    assert session_cookie("s", SECURE, "/gpus", lifetime_seconds=60) == (
        "__Secure-gpuherd=s; Max-Age=60; Path=/gpus; HttpOnly; SameSite=Lax; Secure"
    )
    assert session_cookie("s", PLAIN, "/gpus", lifetime_seconds=60) == (
        "gpuherd=s; Max-Age=60; Path=/gpus; HttpOnly; SameSite=Lax"
    )


@pytest.mark.parametrize(
    ("cookies", "expected"),
    [
        (["__Secure-gpuherd=abc"], "abc"),
        (["gpuherd=abc"], None),
        (["__Host-gpuherd=old"], "old"),  # of a release that did not name it by the path
        (["__Host-gpuherd=old; __Secure-gpuherd=abc"], "abc"),
        (["__Host-gpuherd=old; __Secure-gpuherd=planted; __Secure-gpuherd=abc"], None),
        (["__Secure-gpuherd=planted; __Secure-gpuherd=abc"], None),
        (["__Secure-gpuherd=planted", "__Secure-gpuherd=abc"], None),
    ],
)
def test_below_a_base_path_of_two_cookies_neither_counts(cookies: list[str], expected: str | None) -> None:
    sent = scope("192.0.2.1", *(("Cookie", cookie) for cookie in cookies))
    assert session_secret(sent, SECURE, "/gpus") == expected


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
    assert session_secret(sent, who, "") == expected


@pytest.mark.parametrize(
    ("request_scope", "has_place"),
    [
        (scope("::1"), True),
        (scope("127.0.0.1"), False),
        (scope("127.0.0.2"), True),
        (scope("127.0.0.2", (FOR, "192.0.2.1")), False),
        (scope("192.0.2.1"), False),
    ],
)
def test_a_place_is_kept_for_the_hubs_machine_and_not_for_proxies_on_it(
    request_scope: dict[str, Any], has_place: bool
) -> None:
    assert PROXIES.of(request_scope).has_place is has_place
