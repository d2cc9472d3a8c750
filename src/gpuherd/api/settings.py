"""How the hub listens, what it keeps and whom it lets in."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.api.networks import parse_networks
from gpuherd.model.errors import Misconfigured

__all__ = ["HubSettings", "ListenAddress", "listen_address"]


class ListenAddress(Struct, frozen=True):
    """Where the hub listens: an IP address and a port; port 0 takes any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def is_any(self) -> bool:
        """Whether it stands for all addresses of this machine."""
        return ipaddress.ip_address(self.host).is_unspecified

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen_address(text: str, key: str) -> ListenAddress:
    """Take ``127.0.0.1:8470`` apart; ``Misconfigured`` names the ``key`` that holds it."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        separator = ""
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise Misconfigured(
            f'{key}: "{text}" is not an IP address with a port; write for example "127.0.0.1:8470" or "[::1]:8470"'
        )
    return ListenAddress("127.0.0.1" if host == "localhost" else host, int(port))


def _check_proxies(texts: tuple[str, ...]) -> None:
    for text, network in zip(texts, parse_networks(texts, "hub.trusted_proxies"), strict=True):
        if network.prefixlen == 0:
            raise Misconfigured(
                f'hub.trusted_proxies: "{text}" would let anyone forge their address; '
                "list only the addresses of the proxies"
            )


class HubSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[hub]`` table of gpuherd.toml."""

    state_dir: Annotated[Path, Meta(description="Folder for the hub's data; created if it does not exist.")]
    listen: Annotated[
        str, Meta(description="IP address and port to listen on; [::1]:8470 for IPv6.", max_length=300)
    ] = "127.0.0.1:8470"
    base_path: Annotated[
        str, Meta(description="Path under which the hub is reached, such as /gpus/ behind a proxy.")
    ] = "/"
    public: Annotated[
        Literal["off", "counts", "read", "names"] | None,
        Meta(
            description="What anyone who can reach the hub sees without a login: nothing (off), how many GPUs are "
            "free (counts), or the herd with pseudonyms instead of names (read). With names, people "
            "in `public_networks` see the herd with names, but neither programs nor titles; everyone "
            "else sees nothing. Default: nothing, except on loopback while nobody has an account: "
            "then the herd."
        ),
    ] = None
    public_networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks or addresses from which people see names without a login; only for `public = "
            '"names"`. The client\'s address counts. Behind a proxy, only a proxy in `trusted_proxies` '
            "can pass it on."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Host names of the hub, besides localhost, this machine's name and IP addresses. Requests "
            "for other names are rejected, because they may come from a rebound DNS name."
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Meta(
            description="Addresses or networks of proxies in front of the hub. X-Forwarded-For and "
            "X-Forwarded-Proto are trusted only from these."
        ),
    ] = ()
    records_url: Annotated[
        str | None,
        Meta(description="Database, as an SQLAlchemy URL. Default: SQLite in the state folder."),
    ] = None
    audit_days: Annotated[
        int, Meta(ge=2, le=36_500, description="How long to keep entries of the audit log, in days.")
    ] = 730
    max_connections: Annotated[
        int, Meta(ge=16, le=1_000_000, description="Open connections, nodes and viewers together.")
    ] = 20_000
    max_viewers: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Live streams open at a time; 5 % are reserved for admins."),
    ] = 2_000
    max_viewers_per_account: Annotated[
        int,
        Meta(
            ge=2,
            le=100_000,
            description="Live streams of one account open at a time; one token can have half of them. Raise it if "
            "many people share an account.",
        ),
    ] = 50
    tick_seconds: Annotated[
        float,
        Meta(
            gt=0, le=60, description="How often states, totals and the live stream are updated, in seconds."
        ),
    ] = 1.0
    tls_certificate: Annotated[
        Path | None,
        Meta(description="PEM file with the certificate chain. Together with tls_key, the hub serves HTTPS."),
    ] = None
    tls_key: Annotated[Path | None, Meta(description="PEM file with the private key.")] = None

    @property
    def address(self) -> ListenAddress:
        """``listen`` in its parts; ``Misconfigured`` if it is no address."""
        return listen_address(self.listen, "hub.listen")

    @property
    def mount(self) -> str:
        """``base_path`` without its last slash: empty for the root, else ``/gpus``."""
        return self.base_path.rstrip("/")

    def url_at(self, address: ListenAddress) -> str:
        """Give the page's address for someone who listens there; a name instead of "any address".

        Behind a proxy it is the first of the hub's names, by HTTPS: where the hub listens, people do not come.
        """
        if self.trusted_proxies and self.allowed_hosts:
            return f"https://{self.allowed_hosts[0]}{self.mount}/"
        scheme = "http" if self.tls_certificate is None else "https"
        host = f"{socket.gethostname()}:{address.port}" if address.is_any else str(address)
        return f"{scheme}://{host}{self.mount}/"

    def _check_public(self) -> None:
        networks = parse_networks(self.public_networks, "hub.public_networks")
        if self.public == "names" and not networks:
            raise Misconfigured(
                'hub.public_networks: is empty; public = "names" needs the networks from which people may '
                'see names, for example ["192.168.0.0/24"]'
            )
        if networks and self.public != "names":
            raise Misconfigured(
                'hub.public_networks: only works with public = "names"; remove it, or set hub.public = '
                '"names"'
            )
        proxies = parse_networks(self.trusted_proxies, "hub.trusted_proxies")
        for text, network in zip(self.public_networks, networks, strict=True):
            if network.prefixlen == 0:
                raise Misconfigured(
                    f'hub.public_networks: "{text}" includes everyone; list only your own networks'
                )
            if any(network.version == proxy.version and network.subnet_of(proxy) for proxy in proxies):  # type: ignore[arg-type]
                raise Misconfigured(
                    f'hub.public_networks: "{text}" is in hub.trusted_proxies, so every request '
                    "from it counts as a proxy's and never as a person's; list only the proxies themselves there"
                )

    def check(self) -> None:
        """Raise ``Misconfigured`` for settings that contradict each other."""
        listen_address(self.listen, "hub.listen")
        _check_proxies(self.trusted_proxies)
        self._check_public()
        segments = self.base_path.split("/")
        plain = all(c.isascii() and (c.isalnum() or c in "-_.~/") for c in self.base_path)
        if (
            not self.base_path.startswith("/")
            or not plain
            or "" in segments[1:-1]
            or {".", ".."} & {*segments}
        ):
            raise Misconfigured(
                f'hub.base_path: "{self.base_path}" is not an absolute path; write for example "/" or "/gpus/"'
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            missing = "tls_key" if self.tls_key is None else "tls_certificate"
            raise Misconfigured(
                f"hub.{missing}: is missing; HTTPS needs both hub.tls_certificate and hub.tls_key"
            )
        for key in ("tls_certificate", "tls_key"):
            file: Path | None = getattr(self, key)
            if file is not None and not file.is_file():
                raise Misconfigured(f"hub.{key}: there is no file {file}")
