"""Where an agent listens, and whom it answers: IP address and port, networks."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable

from msgspec import Struct

from gpuherd.model.errors import Misconfigured

__all__ = ["ListenAddress", "Networks"]

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ListenAddress(Struct, frozen=True, kw_only=True):
    """An IP address and a port; ``key`` is the setting they come from, for complaints."""

    key: str
    host: str
    port: int

    @classmethod
    def parse(cls, key: str, text: str, default_port: int) -> ListenAddress:
        """Read ``0.0.0.0:8472``, ``[::]:8472``, or an address without a port; ``Misconfigured`` for anything else."""
        host, separator, port = text.rpartition(":")
        if not separator or _is_address(text.removeprefix("[").removesuffix("]")):
            host, port = text, str(default_port)
        host = host.removeprefix("[").removesuffix("]")
        host = "127.0.0.1" if host == "localhost" else host
        if not _is_address(host) or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise Misconfigured(
                f'{key}: "{text}" is not an IP address with a port; write for example "0.0.0.0:{default_port}" or '
                f'"[::]:{default_port}"'
            )
        return cls(key=key, host=host, port=int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    def listen(self) -> socket.socket:
        """Open the listening socket; ``Misconfigured`` says what to do if that is impossible."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listening = socket.create_server((self.host, self.port), family=family, backlog=64)
        except OSError as error:
            raise Misconfigured(f"{self.key}: {self._remedy(error)}") from error
        listening.setblocking(False)
        return listening

    def _remedy(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"port {self.port} of {self.host} is used by another program; stop that program or choose "
                "another port"
            )
        if error.errno in (errno.EACCES, errno.EPERM):
            return f"this user is not allowed to listen on port {self.port}; choose a port above 1023"
        if error.errno == errno.EADDRNOTAVAIL:
            return f"this machine has no address {self.host}; choose one of its addresses, or 0.0.0.0 for all"
        return f"cannot listen on {self}: {error.strerror}"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class Networks:
    """The networks whose requests are answered."""

    def __init__(self, key: str, networks: Iterable[str]) -> None:
        """Read networks such as ``192.168.0.0/24``; ``Misconfigured`` names the bad one."""
        self.key = key
        self._networks: list[_Network] = []
        for network in networks:
            try:
                self._networks.append(ipaddress.ip_network(network))
            except ValueError as error:
                raise Misconfigured(
                    f'{key}: "{network}" is not a network ({error}); write for example "192.168.0.0/24" or '
                    '"10.0.0.7"'
                ) from error

    def include(self, address: str) -> bool:
        """Whether an address is in one of them; an IPv4 address written as IPv6 counts as what it is."""
        peer = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self._networks)
