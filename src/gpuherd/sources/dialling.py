"""Dialling agents: where they are, and failures told to people."""

from __future__ import annotations

import errno
import re
import ssl
from pathlib import Path

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorSSLError,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
    TraceConfig,
    TraceRequestRedirectParams,
    WSServerHandshakeError,
)
from msgspec import Struct

from gpuherd import __version__
from gpuherd.model.errors import Misconfigured, system_reason
from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.resolving import NodeResolver

__all__ = ["Place", "connect_failure", "new_session", "verifying_context"]

_EXPIRED, _NOT_YET_VALID, _WRONG_NAME, _WRONG_ADDRESS = 10, 9, 62, 64
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
_NOT_IN_HOSTS = re.compile(r"[\s/?#@%\\\[\]]")


class Place(Struct, frozen=True, kw_only=True):
    """Where a node's agent listens."""

    name: str
    host: str
    port: int
    is_tls: bool

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, path: str) -> str:
        """Give the address to dial; ``ValueError`` if the host would be taken for something else in it."""
        if _NOT_IN_HOSTS.search(self.host):
            raise ValueError(self.host)
        return f"{'https' if self.is_tls else 'http'}://{self.authority}{path}"

    def failure(self, code: str, reason: str, *, needs_person: bool = False) -> ContactFailed:
        """Name the node before the reason."""
        return ContactFailed(
            code, clean(f"{self.name} ({self.authority}): {reason}", 500), needs_person=needs_person
        )


async def _refuse_redirect(_: ClientSession, __: object, told: TraceRequestRedirectParams) -> None:
    """Do not follow: where the hub dials is for the list of nodes to say. ``ws_connect`` has no option for it."""
    answer = told.response
    answer.close()
    raise WSServerHandshakeError(
        answer.request_info,
        answer.history,
        status=answer.status,
        message="a redirect",
        headers=answer.headers,
    )


def new_session(resolver: NodeResolver, connect_seconds: float) -> ClientSession:
    """Make a session that dials directly, follows nothing and keeps nothing."""
    tracing = TraceConfig()
    tracing.on_request_redirect.append(_refuse_redirect)
    return ClientSession(
        connector=TCPConnector(limit=0, resolver=resolver),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=connect_seconds),
        headers={"User-Agent": f"gpuherd-hub/{__version__}"},
        trust_env=False,
        trace_configs=[tracing],
    )


def verifying_context(ca_file: Path | None) -> ssl.SSLContext:
    """Make the context for agents that listen with TLS; ``Misconfigured`` if the file holds no certificates."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise Misconfigured(
            f"reach.tls_ca_file: {ca_file} cannot be used ({error.strerror or error}); it must be readable "
            "and contain certificates in PEM format"
        ) from error


def connect_failure(place: Place, error: Exception) -> ContactFailed:
    """Tell why no WebSocket could be opened."""
    if isinstance(error, ClientConnectorDNSError):
        return place.failure(
            "unreachable", f"the name {place.host} cannot be resolved; check it and the name server"
        )
    if isinstance(error, ClientConnectorCertificateError):
        return _certificate_failure(place, error.certificate_error)
    if isinstance(error, ClientConnectorSSLError):
        return place.failure(
            "tls_failed",
            f"TLS fails ({clean(str(error.os_error), 120)}); does the agent listen with TLS? Set its "
            "agent.listen_tls_certificate, or reach.is_tls = false here",
            needs_person=True,
        )
    if isinstance(error, ConnectionTimeoutError):
        return place.failure("timeout", "no response; it is down, or a firewall drops the packets")
    if isinstance(error, TimeoutError):
        return place.failure("timeout", "it accepts the connection but does not respond")
    if isinstance(error, WSServerHandshakeError):
        return _refusal(place, error)
    if isinstance(error, ClientResponseError):
        return place.failure(
            "garbled",
            "the program there does not speak HTTP, so it is not a gpuherd agent",
            needs_person=True,
        )
    if isinstance(error, OSError):
        return _os_failure(place, error)
    if isinstance(error, ValueError):
        return place.failure(
            "unreachable", "this is not a host name or IP address; correct the list", needs_person=True
        )
    return _hangs_up(place)


def _certificate_failure(place: Place, error: Exception) -> ContactFailed:
    code = getattr(error, "verify_code", None)
    if code == _EXPIRED:
        reason = "its certificate has expired; renew it and restart the agent"
    elif code == _NOT_YET_VALID:
        reason = "its certificate is not valid yet; correct the clocks"
    elif code in (_WRONG_NAME, _WRONG_ADDRESS):
        reason = f"its certificate is not for {place.host}; list the node under the name in the certificate"
    elif code in _UNKNOWN_AUTHORITY:
        reason = (
            "its certificate is signed by an unknown authority; set reach.tls_ca_file to that authority's "
            "file"
        )
    else:
        reason = f"its certificate is not accepted: {clean(str(error), 200)}"
    return place.failure("tls_failed", reason, needs_person=True)


def _refusal(place: Place, error: WSServerHandshakeError) -> ContactFailed:
    is_agent = error.headers is not None and error.headers.get("Server") == "gpuherd-agent"
    if is_agent and error.status == 426:
        return place.failure(
            "other_version",
            "the agent uses another version of the protocol; install the same major version on both sides",
            needs_person=True,
        )
    if is_agent:
        return place.failure(
            "hub_refused", f"the agent does not accept connections now (HTTP {error.status})"
        )
    return place.failure(
        "garbled",
        f"the program there is not a listening gpuherd agent (HTTP {error.status}); check the port",
        needs_person=True,
    )


def _os_failure(place: Place, error: OSError) -> ContactFailed:
    number = getattr(error, "os_error", error).errno
    if number == errno.ECONNREFUSED:
        return place.failure(
            "unreachable", "nothing listens there; start `gpuherd agent --listen`, or check the port"
        )
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return place.failure("unreachable", "there is no route to that address; check the network")
    if number in (errno.ECONNRESET, errno.EPIPE):
        return _hangs_up(place)
    return place.failure("unreachable", clean(system_reason(error), 200))


def _hangs_up(place: Place) -> ContactFailed:
    hint = "does not listen with TLS" if place.is_tls else "wants TLS (reach.is_tls = true)"
    return place.failure(
        "garbled",
        (f"it closes the connection without a response; it is not a gpuherd agent, or an agent that {hint}"),
    )
