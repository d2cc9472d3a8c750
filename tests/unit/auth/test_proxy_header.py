"""Whom a proxy names, and when nobody believes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.auth.proxy_header import ProxyHeader
from gpuherd.auth.way_settings import ProxySettings
from gpuherd.auth.ways import clean_name
from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import clean

PROXY = "10.0.0.7"
WAY = ProxyHeader(
    ProxySettings(
        networks=("10.0.0.7", "fd00::/64"),
        groups_header="X-Remote-Groups",
        display_name_header="X-Remote-Name",
    )
)


def named(name: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"gpus"), (b"x-remote-user", name)]


def test_listed_proxy_is_believed() -> None:
    headers = [
        *named(b"alice"),
        (b"x-remote-groups", b"gpu-users, staff,,"),
        (b"x-remote-name", "Alice Müller".encode()),
    ]
    vouched = WAY.vouched(headers, PROXY)

    assert vouched is not None
    assert (vouched.source, vouched.subject, vouched.name) == ("proxy", "alice", "alice")
    assert vouched.display_name == "Alice Müller"
    assert vouched.groups == ("gpu-users", "staff")


@pytest.mark.parametrize("peer", ["::ffff:10.0.0.7", "fd00::1", "fd00::1%eth0"])
def test_other_spellings_of_a_listed_address(peer: str) -> None:
    assert WAY.vouched(named(b"alice"), peer) is not None


@pytest.mark.parametrize(
    "peer", ["10.0.0.8", "127.0.0.1", "::1", "fd00:0:0:1::1", "unknown", "", "10.0.0.7, x"]
)
@pytest.mark.promise("headers-of-listed-proxies-only")
def test_anyone_else_is_not_believed(peer: str) -> None:
    assert WAY.vouched(named(b"alice"), peer) is None


def test_address_that_a_client_claims_counts_for_nothing() -> None:
    assert WAY.vouched([*named(b"alice"), (b"x-forwarded-for", PROXY.encode())], "10.0.0.8") is None


@pytest.mark.parametrize(
    "headers",
    [
        [(b"x-remote-user", b"alice"), (b"x-remote-user", b"root")],
        [(b"x-remote-user", b"alice"), (b"x_remote_user", b"root")],
        [(b"x_remote_user", b"root")],
        [(b"X_Remote-User", b"root")],
        [(b"x-remote_user", b"root"), (b"x-remote-user", b"alice")],
        [(b"remote-user", b"root")],
        [],
    ],
)
def test_two_names_or_a_disguised_one_are_nobody(headers: list[tuple[bytes, bytes]]) -> None:
    assert WAY.vouched(headers, PROXY) is None


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b" ",
        b"(null)",
        b"a b",
        b"a,b",
        b"<script>",
        b"\xff\xfe",
        b"a\x00b",
        b"a\x1b[31m",
        "a\u202eb".encode(),
        b"x" * 97,
        b"x" * 100_000,
        b"al%69ce",
        "\uff41lice".encode(),  # a wide a
        b"../etc",
        b"-alice",
    ],
)
def test_names_that_are_none(name: bytes) -> None:
    assert WAY.vouched(named(name), PROXY) is None


@pytest.mark.parametrize(
    ("told", "name"),
    [(b" alice ", "alice"), ("jürgen".encode(), "jürgen"), (b"alice@example.org", "alice@example.org")],
)
def test_names_that_are_read(told: bytes, name: str) -> None:
    vouched = WAY.vouched(named(told), PROXY)

    assert vouched is not None
    assert vouched.name == name


def test_only_the_allowed_groups_enter() -> None:
    way = ProxyHeader(
        ProxySettings(networks=(PROXY,), groups_header="X-Remote-Groups", allowed_groups=("staff",))
    )

    assert way.vouched([*named(b"alice"), (b"x-remote-groups", b"staff")], PROXY) is not None
    assert way.vouched([*named(b"alice"), (b"x-remote-groups", b"students")], PROXY) is None
    assert way.vouched(named(b"alice"), PROXY) is None


def test_proxy_that_tells_no_groups_leaves_them_to_the_hub() -> None:
    silent = ProxyHeader(ProxySettings(networks=(PROXY,))).vouched(named(b"alice"), PROXY)
    empty = WAY.vouched(named(b"alice"), PROXY)

    assert silent is not None
    assert empty is not None
    assert (silent.groups, empty.groups) == (None, ())


NAMES = st.sampled_from(
    [b"x-remote-user", b"x_remote_user", b"X-Remote-User", b"x-remote-groups", b"x-remote-name"]
)


@given(headers=st.lists(st.tuples(NAMES, st.binary(max_size=200)), max_size=6), peer=st.text(max_size=40))
def test_whatever_is_sent_is_someone_with_a_clean_name_or_nobody(
    headers: list[tuple[bytes, bytes]], peer: str
) -> None:
    assert WAY.vouched(headers, peer) is None
    vouched = WAY.vouched(headers, PROXY)
    if vouched is not None:
        assert sum(name.lower().replace(b"_", b"-") == b"x-remote-user" for name, _ in headers) == 1
        assert clean_name(vouched.name) == vouched.name
        assert clean(vouched.display_name) == vouched.display_name
        assert all(clean(group) == group for group in vouched.groups or ())


def test_hubs_own_list_of_proxies_counts_if_there_is_no_other() -> None:
    way = ProxyHeader(ProxySettings(), trusted_proxies=("192.0.2.1",))

    assert way.vouched(named(b"alice"), "192.0.2.1") is not None
    assert way.vouched(named(b"alice"), PROXY) is None


@pytest.mark.parametrize(
    ("settings", "trusted", "complaint"),
    [
        (ProxySettings(), (), r"login\.proxy\.networks: is missing"),
        (ProxySettings(networks=("proxy.example.org",)), (), r'login\.proxy\.networks: "proxy'),
        (ProxySettings(networks=("0.0.0.0/0",)), (), "as anyone"),
        (ProxySettings(), ("::/0",), r"hub\.trusted_proxies: .* as anyone"),
        (ProxySettings(networks=(PROXY,), groups_header="x-remote-user"), (), "same header"),
    ],
)
def test_bad_settings_stop_the_start(
    settings: ProxySettings, trusted: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(Misconfigured, match=complaint):
        ProxyHeader(settings, trusted_proxies=trusted)
