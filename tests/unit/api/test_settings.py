"""Settings that contradict each other are named with a remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.settings import HubSettings
from gpuherd.model.errors import Misconfigured


def settings(**values: Any) -> HubSettings:
    return HubSettings(state_dir=Path("/tmp/none"), **values)


@pytest.mark.parametrize("listen", ["127.0.0.1:8470", "localhost:0", "[::1]:8470", "127.8.9.1:1"])
def test_loopback_needs_nothing_more(listen: str) -> None:
    settings(listen=listen).check()


@pytest.mark.parametrize("listen", ["0.0.0.0:8470", "[::]:8470", "192.0.2.1:80"])
@pytest.mark.parametrize("public", [None, "off", "read"])
def test_wider_listening_needs_nothing_more_since_nothing_is_shown_without_a_login(
    listen: str, public: str | None
) -> None:
    settings(listen=listen, public=public).check()


def test_networks_of_proxies_are_checked() -> None:
    settings(trusted_proxies=("127.0.0.1", "10.0.0.0/8", "::1")).check()
    with pytest.raises(Misconfigured, match=r'hub\.trusted_proxies: "proxy\.example" is not a network'):
        settings(trusted_proxies=("proxy.example",)).check()
    for everyone in ("0.0.0.0/0", "::/0"):
        with pytest.raises(Misconfigured, match=rf'hub\.trusted_proxies: "{everyone}" would let anyone'):
            settings(trusted_proxies=("127.0.0.1", everyone)).check()


@pytest.mark.parametrize(
    "listen", ["", "8470", ":8470", "gpus.example:80", "127.0.0.1:", "127.0.0.1:70000", "1.2.3.4:²"]
)
def test_what_is_no_address_is_named(listen: str) -> None:
    with pytest.raises(Misconfigured, match=r"hub\.listen"):
        settings(listen=listen).check()


@pytest.mark.parametrize("path", ["", "gpus", "/a//b/", "/../x/", "/a b/", '/"><script>/', "/ä/", "/./"])
def test_a_base_path_must_be_plain(path: str) -> None:
    with pytest.raises(Misconfigured, match=r"hub\.base_path"):
        settings(base_path=path).check()


@pytest.mark.parametrize(
    ("path", "mount"), [("/", ""), ("/gpus/", "/gpus"), ("/gpus", "/gpus"), ("/a/b.c/", "/a/b.c")]
)
def test_base_paths_with_and_without_a_last_slash_are_the_same(path: str, mount: str) -> None:
    settings(base_path=path).check()
    assert settings(base_path=path).mount == mount


def test_https_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"hub\.tls_key: is missing"):
        settings(tls_certificate=tmp_path / "c.pem").check()
    with pytest.raises(Misconfigured, match=r"hub\.tls_certificate: there is no file"):
        settings(tls_certificate=tmp_path / "c.pem", tls_key=tmp_path / "k.pem").check()


def test_people_are_sent_to_the_proxy_if_there_is_one() -> None:
    def page(**values: Any) -> str:
        told = settings(listen="127.0.0.1:8470", base_path="/gpus/", **values)
        return told.url_at(told.address)

    assert page() == "http://127.0.0.1:8470/gpus/"
    assert page(allowed_hosts=("www.example.org",)) == "http://127.0.0.1:8470/gpus/"
    assert page(trusted_proxies=("127.0.0.1",)) == "http://127.0.0.1:8470/gpus/"
    assert (
        page(trusted_proxies=("127.0.0.1",), allowed_hosts=("www.example.org", "other.example.org"))
        == "https://www.example.org/gpus/"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"public": "names"}, "hub.public_networks: is empty"),
        ({"public": "names", "public_networks": ("the lab",)}, '"the lab" is not a network'),
        (
            {"public": "names", "public_networks": ("10.0.0.0/8", "0.0.0.0/0")},
            '"0.0.0.0/0" includes everyone',
        ),
        ({"public": "names", "public_networks": ("::/0",)}, '"::/0" includes everyone'),
        (
            {"public": "names", "public_networks": ("10.1.0.0/16",), "trusted_proxies": ("10.0.0.0/8",)},
            '"10.1.0.0/16" is in hub.trusted_proxies',
        ),
        ({"public": "read", "public_networks": ("10.0.0.0/8",)}, 'only works with public = "names"'),
        ({"public_networks": ("10.0.0.0/8",)}, 'only works with public = "names"'),
    ],
)
def test_names_are_shown_to_listed_networks_only(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Misconfigured, match=re.escape(message)):
        settings(**values).check()
    settings(public="names", public_networks=("10.0.0.0/8", "::1"), trusted_proxies=("10.0.0.5",)).check()
