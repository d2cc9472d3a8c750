"""Posting events to a web address, without being led to where an admin did not mean to post."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from gpuherd import __version__
from gpuherd.bookings.hook_settings import HookEvent, HookSettings
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.sources.resolving import NodeResolver

__all__ = ["WebHook", "is_allowed", "signature"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MIN_SECRET_BYTES = 16
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_allowed(address: str, networks: Sequence[Network]) -> bool:
    """Tell whether an address may be posted to: a public one, or one of the networks that an admin has listed."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    seen = _plain(found)
    if any(candidate in network for candidate in (found, seen) for network in networks):
        return True
    return seen.is_global and not seen.is_multicast


def _plain(address: Address) -> Address:
    """Give the IPv4 address that an IPv6 address stands for; 127.0.0.1 has many disguises."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def signature(secret: bytes, at: int, body: bytes) -> str:
    """Sign a body together with the time, so that it cannot be posted again later by someone else."""
    return hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()


class _CheckedResolver(AbstractResolver):
    """Gives only addresses that may be posted to. What it gives is what is connected to: there is no second look-up."""

    def __init__(self, networks: Sequence[Network], resolver: AbstractResolver) -> None:
        self._networks = networks
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        allowed = [result for result in found if is_allowed(result["host"], self._networks)]
        if found and not allowed:
            raise _Forbidden(found[0]["host"])
        return allowed

    async def close(self) -> None:
        await self._resolver.close()


class _Forbidden(OSError):  # noqa: N818 - what the address is
    """The name leads to an address that may not be posted to."""


class WebHook:
    """Posts events. Its name shows the host alone: the rest of the address may be a secret."""

    def __init__(
        self,
        settings: HookSettings,
        *,
        wall: Callable[[], float] = time.time,
        resolver: Callable[[], AbstractResolver] = NodeResolver,
    ) -> None:
        """Read the files that the settings name; ``Misconfigured`` if they cannot be used."""
        self._url = settings.url or ""
        self._host = urlsplit(self._url).hostname or ""
        self.name = f"POST to {self._host}"
        self._networks = [ipaddress.ip_network(network) for network in settings.networks]
        self._deadline_seconds = settings.deadline_seconds
        self._wall = wall
        self._resolver = resolver
        self._secret = None if settings.secret_file is None else _read_secret(settings.secret_file)
        self._tls = _tls(settings.ca_file)

    async def deliver(self, event_id: str, event: HookEvent, body: bytes) -> None:
        """Post one event; ``Failed`` says why it did not arrive."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"gpuherd/{__version__}",
            "Gpuherd-Event": event,
            "Gpuherd-Event-Id": event_id,
        }
        if self._secret is not None:
            at = int(self._wall())
            headers["Gpuherd-Signature"] = f"t={at},sha256={signature(self._secret, at, body)}"
        if _is_address(self._host) and not is_allowed(self._host, self._networks):
            raise Failed(_forbidden(self._host))  # aiohttp asks no resolver about addresses
        connector = aiohttp.TCPConnector(
            resolver=_CheckedResolver(self._networks, self._resolver()), ssl=self._tls, force_close=True
        )
        timeout = aiohttp.ClientTimeout(total=self._deadline_seconds)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
                session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
        except TimeoutError:
            raise Failed(f"{self._host} did not respond within {self._deadline_seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Failed(self._told(error)) from None
        if 300 <= status < 400:
            raise Failed(
                f"{self._host} responds with {status}, a redirect; use the address that it redirects to"
            )
        if not 200 <= status < 300:
            raise Failed(f"{self._host} answers {status}")

    def _told(self, error: BaseException) -> str:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, _Forbidden):
                return _forbidden(str(cause))
            if isinstance(cause, ssl.SSLCertVerificationError):
                return f"{self._host} has a certificate that is not trusted ({cause.verify_message})"
            inner = getattr(cause, "os_error", None)
            cause = inner if isinstance(inner, BaseException) and inner is not cause else cause.__cause__
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if isinstance(number, int) and number > 0 else type(error).__name__
        return f"{self._host} cannot be reached ({reason})"


def _forbidden(address: str) -> str:
    return f"{address} is not a public address; to allow it, add its network to this hook's networks"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _read_secret(file: Path) -> bytes:
    try:
        secret = file.expanduser().read_bytes().strip()
    except OSError as error:
        raise Misconfigured(
            f"secret_file: {file} cannot be read ({error.strerror}); let the hub's user read it"
        ) from error
    if len(secret) < MIN_SECRET_BYTES:
        raise Misconfigured(
            f"secret_file: {file} has fewer than {MIN_SECRET_BYTES} characters; create one with: openssl "
            "rand -hex 32"
        )
    return secret


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else ca_file.expanduser())
    except OSError as error:  # ssl.SSLError is one
        raise Misconfigured(
            f"ca_file: {ca_file} cannot be used ({error.strerror or error}); it must contain certificates in PEM format"
        ) from error
