"""One HTTP request, with nothing but the standard library: a node has no more."""

from __future__ import annotations

import http.client
import ssl
from typing import NamedTuple

from gpuherd import __version__
from gpuherd.wiring.doctor.threads import in_thread

__all__ = ["Answer", "HttpPlace", "ask"]

MAX_ANSWER_BYTES = 64 * 2**20
ASK_SECONDS = 10.0


class HttpPlace(NamedTuple):
    """Where to ask. ``tls``: how to verify whom we talk to; none for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes


async def ask(
    place: HttpPlace,
    path: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    deadline_seconds: float = ASK_SECONDS,
) -> Answer:
    """Ask and read the answer; ``OSError`` (also ``TimeoutError`` and TLS errors) or ``HTTPException``.

    Redirects are not followed: a credential may be in the headers.
    """

    def work() -> Answer:
        if place.tls is None:
            connection = http.client.HTTPConnection(place.host, place.port, timeout=deadline_seconds)
        else:
            connection = http.client.HTTPSConnection(
                place.host, place.port, timeout=deadline_seconds, context=place.tls
            )
        try:
            connection.request(
                method, path, body, {"User-Agent": f"gpuherd-doctor/{__version__}", **(headers or {})}
            )
            response = connection.getresponse()
            return Answer(response.status, response.read(MAX_ANSWER_BYTES))
        finally:
            connection.close()

    return await in_thread(work, deadline_seconds)
