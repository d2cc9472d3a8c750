"""The little that our raw ASGI handlers share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gpuherd.api.errors import HttpError, error_body

__all__ = [
    "SECURITY_HEADERS",
    "App",
    "Headers",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "answer",
    "header",
    "refuse",
    "takes_gzip",
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


def header(scope: Scope, name: bytes) -> str | None:
    """Give a request header, the first one if it is repeated."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return None


def takes_gzip(accepted: str | None) -> bool:
    """Tell whether who sends this ``Accept-Encoding`` can read gzip."""
    for part in (accepted or "").lower().split(","):
        coding, _, quality = (word.strip() for word in part.partition(";"))
        if coding == "gzip":
            return quality.replace(" ", "").rstrip("0") not in ("q=", "q=0.")
    return False


async def answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole answer."""
    length = (b"content-length", str(len(body)).encode())
    await send(
        {"type": "http.response.start", "status": status, "headers": [*headers, *SECURITY_HEADERS, length]}
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(scope: Scope, send: Send, error: HttpError) -> None:
    """Answer an error in the API's one shape, also to a WebSocket handshake."""
    prefix = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = b"" if scope.get("method") == "HEAD" else error_body(error)
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        *((name.lower().encode(), value.encode()) for name, value in error.headers.items()),
        *SECURITY_HEADERS,
    ]
    await send({"type": f"{prefix}.start", "status": error.status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": body, "more_body": False})
