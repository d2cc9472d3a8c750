"""Connected sockets of this process, and what the hub sees of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from gpuherd.api.sockets import Connections


@pytest.fixture(params=[("127.0.0.1", socket.AF_INET), ("::", socket.AF_INET6)], ids=["IPv4", "any"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's socket and the server's."""
    address, family = request.param
    with (
        closing(
            socket.create_server((address, 0), family=family, dualstack_ipv6=address == "::")
        ) as listening,
        closing(socket.create_connection(("127.0.0.1", listening.getsockname()[1]))) as client,
        closing(listening.accept()[0]) as served,
    ):
        yield client, served


@pytest.fixture
def connections(pair: tuple[socket.socket, socket.socket]) -> Connections:
    """The connections at the port where the pair met."""
    connections = Connections(lambda: 0.0)
    connections.begin(pair[1].getsockname()[1])
    return connections
