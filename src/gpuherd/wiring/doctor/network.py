"""The first steps to any machine: does its name have an address, and does anything answer there."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterable, Sequence

from gpuherd.model.errors import system_reason
from gpuherd.model.text import clean
from gpuherd.wiring.doctor.steps import StepFailed, plural
from gpuherd.wiring.doctor.threads import in_thread

__all__ = ["address_fact", "connect", "resolve"]

RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 5.0
OTHER_PORTS = (22, 80, 443, 9)
"""Asked for a sign of life when a port is silent; the last is closed on most machines, which is an answer, too."""
LIFE_SECONDS = 1.0

_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})
_FORBIDDEN = frozenset({errno.EPERM, errno.EACCES})


async def resolve(host: str, where_listed: str, *, deadline_seconds: float = RESOLVE_SECONDS) -> list[str]:
    """Give the addresses of a name, each once, in the order in which they are tried; ``StepFailed`` if none."""
    try:
        found = await in_thread(
            lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM), deadline_seconds
        )
    except TimeoutError:
        raise StepFailed(
            "the name server does not respond",
            f"the name {host} cannot be looked up: no response within {deadline_seconds:g} s; check the "
            "name servers in /etc/resolv.conf",
        ) from None
    except (socket.gaierror, UnicodeError) as error:
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
            raise StepFailed(
                "the name server does not respond",
                f"the name {host} cannot be looked up: the name server fails at the moment; check "
                "/etc/resolv.conf and the network",
            ) from error
        raise StepFailed(
            "no such name",
            f"the name {host} has no address; correct {where_listed}, or add the name to DNS or /etc/hosts",
        ) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def address_fact(host: str, addresses: Sequence[str]) -> str:
    """Say what a name was resolved to."""
    others = [address for address in addresses if address != host]
    return f"{host} is {', '.join(others[:4])}" if others else f"{host} is an address"


async def connect(
    addresses: Sequence[str], port: int, remedy: str, *, deadline_seconds: float = CONNECT_SECONDS
) -> str:
    """Open a connection and close it again; gives the address that took it.

    ``remedy``: what to do when nothing listens. ``StepFailed`` tells refused, no route, silent and filtered apart,
    by the last address tried.
    """
    failure = StepFailed("no address", "there is no address to connect to")
    for address in addresses:
        try:
            async with asyncio.timeout(deadline_seconds / len(addresses)):
                await _open(address, port)
        except TimeoutError:
            failure = await _silent(address, port, deadline_seconds)
        except OSError as error:
            failure = _refusal(error, address, port, remedy)
        else:
            return address
    if len(addresses) > 1:
        failure = StepFailed(
            failure.fact, f"{failure.remedy} ({plural(len(addresses), 'address')} were tried)"
        )
    raise failure


async def _open(address: str, port: int) -> None:
    _, writer = await asyncio.open_connection(address, port)
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        return  # whoever accepts and hangs up at once has answered all the same


def _refusal(error: OSError, address: str, port: int, remedy: str) -> StepFailed:
    where = f"{address} port {port}"
    if isinstance(error, ConnectionRefusedError):
        return StepFailed("connection refused", f"nothing listens on {where} (connection refused): {remedy}")
    if error.errno in _NO_ROUTE:
        return StepFailed(
            "no route",
            f"there is no route to {address} ({system_reason(error)}): the machine is off, its network "
            "cannot be reached from here, or a firewall rejects the connection",
        )
    if error.errno in _FORBIDDEN:
        return StepFailed(
            "forbidden here",
            f"this machine's own firewall forbids connections to {where}; allow them (see `nft list ruleset`)",
        )
    return StepFailed("cannot connect", f"cannot connect to {where} ({clean(system_reason(error), 100)})")


async def _silent(address: str, port: int, seconds: float) -> StepFailed:
    """Tell a machine that is down from a port that a firewall hides."""
    alive = await _answering_port(address, [other for other in OTHER_PORTS if other != port])
    if alive is not None:
        return StepFailed(
            "filtered",
            f"{address} is up (it responds on port {alive}) but port {port} does not respond: a firewall "
            "drops the packets; open the port for this machine",
        )
    return StepFailed(
        "timeout",
        f"{address} does not respond within {seconds:g} s: the machine is off or hangs, or a firewall "
        "drops everything from here",
    )


async def _answering_port(address: str, ports: Iterable[int]) -> int | None:
    async def is_answering(port: int) -> int | None:
        try:
            async with asyncio.timeout(LIFE_SECONDS):
                await _open(address, port)
        except ConnectionRefusedError:
            return port
        except OSError:  # TimeoutError is one
            return None
        return port

    answers = await asyncio.gather(*(is_answering(port) for port in ports))
    return next((port for port in answers if port is not None), None)
