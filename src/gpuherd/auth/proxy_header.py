"""Believing a proxy in front of the hub that has logged people in and names them in a header."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from gpuherd.auth.way_settings import ProxySettings
from gpuherd.auth.ways import VouchedFor, check_groups, clean_groups, clean_name
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.model.text import clean

__all__ = ["ProxyHeader"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAX_HEADER_BYTES = 16_384


class ProxyHeader:
    """Takes the name from a header, if the request comes straight from a listed proxy."""

    def __init__(self, settings: ProxySettings, *, trusted_proxies: Sequence[str] = ()) -> None:
        """``trusted_proxies`` are those of the hub; ``Misconfigured`` if nobody could be believed, or everybody."""
        key, given = (
            ("login.proxy.networks", settings.networks)
            if settings.networks
            else ("hub.trusted_proxies", trusted_proxies)
        )
        if not given:
            raise Misconfigured(
                "login.proxy.networks: is missing; list the addresses of the proxies that authenticate users"
            )
        self._networks = tuple(_network(text, key) for text in given)
        self._settings = settings
        self._user = _spelling(settings.user_header)
        self._display_name = _spelling(settings.display_name_header)
        self._groups = _spelling(settings.groups_header)
        told = [name for name in (self._user, self._display_name, self._groups) if name is not None]
        if len(set(told)) < len(told):
            raise Misconfigured("login.proxy: two keys use the same header; give each its own")

    def vouched(self, headers: Iterable[tuple[bytes, bytes]], peer: str) -> VouchedFor | None:
        """See ``HeaderWay.vouched``. Whoever is in none of the allowed groups is nobody, too."""
        if self._user is None or not self._is_believed(peer):
            return None
        headers = list(headers)
        name = clean_name(_text(_only(headers, self._user)))
        if name is None:
            return None
        vouched = VouchedFor(
            source="proxy",
            subject=name,
            name=name,
            display_name=clean(_text(_only(headers, self._display_name))) or name,
            groups=None if self._groups is None else clean_groups(_parts(_only(headers, self._groups))),
        )
        try:
            return check_groups(vouched, self._settings.allowed_groups)
        except Refused:
            return None

    def _is_believed(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address.version == network.version and address in network for network in self._networks)


def _spelling(name: str | None) -> bytes | None:
    return None if name is None else name.lower().encode("ascii")


def _only(headers: Iterable[tuple[bytes, bytes]], name: bytes | None) -> bytes:
    """Give a header's value; nothing if it is missing, too long, or there are several.

    ``X_Remote_User`` counts as another ``X-Remote-User``: a proxy that overwrites one may let the other through, and
    what stands between it and the hub may make them one.
    """
    if name is None:
        return b""
    found = [(key, value) for key, value in headers if key.lower().replace(b"_", b"-") == name]
    if len(found) != 1 or found[0][0].lower() != name or len(found[0][1]) > MAX_HEADER_BYTES:
        return b""
    return found[0][1]


def _text(value: bytes) -> str:
    """Read UTF-8; what is none is nothing. Nothing is unquoted: al%69ce may be another of the proxy's users."""
    try:
        return value.decode("utf-8").strip()
    except UnicodeDecodeError:
        return ""


def _parts(value: bytes) -> list[str]:
    return [part.strip() for part in _text(value).split(",")]


def _network(text: str, key: str) -> Network:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise Misconfigured(
            f'{key}: "{clean(text, 60)}" is not an address or network; write for example "127.0.0.1" or "10.0.0.0/24"'
        ) from None
    if network.prefixlen == 0:
        raise Misconfigured(
            f'{key}: "{text}" would let anyone log in as anyone else; list only the addresses of the proxies'
        )
    return network
