"""Who may use an address that knows no login: listed networks, at a bounded pace."""

from __future__ import annotations

import functools
import ipaddress
from collections import OrderedDict
from collections.abc import Callable

from gpuherd.api.asgi import Receive, Scope, header
from gpuherd.api.errors import HttpError
from gpuherd.api.networks import Address, Network

__all__ = ["Gate", "peer_address", "read_body"]

MAX_SENDERS = 4096
BURST_SECONDS = 4.0


def peer_address(scope: Scope) -> Address | None:
    """Give the address at the other end of the connection; headers that claim another are not looked at."""
    client = scope.get("client")
    return _address(client[0]) if client else None


@functools.lru_cache(maxsize=MAX_SENDERS)
def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


class Gate:
    """Lets listed networks in, each address as often as is reasonable."""

    def __init__(
        self, networks: tuple[Network, ...], *, requests_per_second: float, monotonic: Callable[[], float]
    ) -> None:
        self._networks = networks
        self._pace = requests_per_second
        self._burst = requests_per_second * BURST_SECONDS
        self._monotonic = monotonic
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def contains(self, address: Address) -> bool:
        """Tell whether an address is in one of the networks."""
        return any(address in network for network in self._networks)

    def check(self, scope: Scope, *, is_let_in: bool = False) -> str:
        """Give the sender's address; ``HttpError`` 403 for others than the listed, 429 for the hasty.

        ``is_let_in``: it may come in though it is not listed.
        """
        address = peer_address(scope)
        if address is None or not (is_let_in or self.contains(address)):
            raise HttpError(
                403,
                "forbidden",
                f"{address or 'this sender'} is not in any network that is allowed to use this address; to "
                "allow it, add its network to the configuration",
            )
        sender, now = str(address), self._monotonic()
        left, since = self._left.pop(sender, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._pace) - 1
        self._left[sender] = (max(left, 0.0), now)
        while len(self._left) > MAX_SENDERS:
            self._left.popitem(last=False)
        if left < 0:
            raise HttpError(
                429,
                "too_many_requests",
                f"more than {self._pace:g} requests per second; wait a moment",
                headers={"Retry-After": "1"},
            )
        return sender


async def read_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes:
    """Read the whole body; ``HttpError`` 413 as soon as it is known to be too large, 415 if it is compressed."""
    too_large = HttpError(413, "body_too_large", f"the body is larger than {max_bytes // 1024} KiB")
    if header(scope, b"content-encoding") not in (None, "", "identity"):
        raise HttpError(
            415, "unsupported_encoding", "compressed bodies are not accepted; send the body uncompressed"
        )
    length = header(scope, b"content-length") or "0"
    if length.isascii() and length.isdigit() and (len(length) > 15 or int(length) > max_bytes):
        raise too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HttpError(400, "invalid_request", "the sender hung up")
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise too_large
        if not message.get("more_body", False):
            return bytes(body)
