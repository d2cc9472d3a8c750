"""Why a hub, or what stands before it, opens no WebSocket: in words that name who says no and what helps.

A hub says no in a shape of its own. What answers otherwise is something else, most often a proxy before the hub.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from gpuherd.agent.enrol import HOW_TO_ENROL
from gpuherd.agent.talk import NeedsPerson
from gpuherd.model.errors import Failed
from gpuherd.wire.frames import SUBPROTOCOL

__all__ = ["OTHER_PROTOCOL", "HandshakeRefused", "hub_code", "refusal"]

OTHER_PROTOCOL = "unsupported_protocol"
_PROXIES = "see docs/deploy/proxies.md"


class _Detail(Struct, frozen=True):
    code: str


class _Error(Struct, frozen=True):
    error: _Detail


class HandshakeRefused(Failed):
    """The server answered the request for a WebSocket with a no. ``code`` is the hub's; none if it was no hub."""

    def __init__(self, status: int, code: str | None = None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.code = code


def hub_code(body: bytes | bytearray | None) -> str | None:
    """Give the code of an error that a hub answered with; none if this is no hub's answer."""
    try:
        return msgspec.json.decode(body or b"", type=_Error).error.code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def refusal(refused: HandshakeRefused, url: str) -> Failed:
    """Say what to do about it; ``NeedsPerson`` if trying again soon will not help."""
    status, code = refused.status, refused.code
    if code == OTHER_PROTOCOL:
        return NeedsPerson(f"{url} does not speak {SUBPROTOCOL}; upgrade the hub or this agent")
    if status in (404, 405):
        return NeedsPerson(
            f"agent.hub_url: there is no gpuherd hub at {url} (HTTP {status}); check the address and its base path"
        )
    if status == 426 or (code is None and (status < 300 or status in (400, 501))):
        return NeedsPerson(
            f"{url} does not open a WebSocket (HTTP {status}): a proxy in front of the hub does not pass "
            "it on. Configure the proxy to pass on the headers Upgrade and Connection over HTTP/1.1; in "
            "nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade and proxy_set_header "
            f'Connection "upgrade"; {_PROXIES}'
        )
    if code is None and (status < 400 or status in (401, 403, 407)):
        return NeedsPerson(
            f"a proxy in front of the hub at {url} requires a login (HTTP {status}), but agents cannot log "
            f"in. Configure it to let api/v1/agent and api/v1/enroll through; {_PROXIES}"
        )
    if status in (401, 403):
        return NeedsPerson(
            f"{url} does not know this node's credential (HTTP {status}). To enrol again, delete the "
            f"credential file, {HOW_TO_ENROL}"
        )
    return Failed(f"{url} does not accept connections now (HTTP {status})")
