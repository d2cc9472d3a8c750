"""The herd as one response, for a proxy that passes on only the base path: no other file, no login, no stream."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Awaitable, Callable

from gpuherd.api.asgi import Scope, Send, answer
from gpuherd.api.errors import HttpError
from gpuherd.fleet.views import FleetView
from gpuherd.model.people import PrivacyClass, Viewer

__all__ = ["FALLBACK", "FALLBACK_DIGEST", "ONE_PAGE_QUERY", "OnePage"]

ONE_PAGE_QUERY = b"one-page"
KEPT_SECONDS = 5.0
"""Written at most this often for each privacy class, however many ask."""

# theme.js comes before all others. Only where the address has no slash at its end can it be such a proxy.
FALLBACK = (
    'addEventListener("load",()=>{'
    "if(!document.documentElement.dataset.theme&&`${location.pathname}/`===new URL(document.baseURI).pathname)"
    f'location.replace(location.pathname+"?{ONE_PAGE_QUERY.decode()}")}})'
)
"""Leads a browser from a page whose files do not arrive to the page that needs none."""
FALLBACK_DIGEST = f"'sha256-{base64.b64encode(hashlib.sha256(FALLBACK.encode()).digest()).decode()}'"

_NOT_SHOWN = b"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>gpuherd</title></head>
<body>
<h1>The proxy passes on only this address</h1>
<p>Logins and the live page need all below it. In the Caddyfile, write <code>reverse_proxy /gpus* localhost:8042</code>,
with the star. Or show the herd without a login: <code>hub.public</code> and <code>hub.public_networks</code> in
gpuherd.toml.</p>
</body>
</html>
"""


class OnePage:
    """Serves the page; ``write`` takes a second for thousands of devices and is called in a thread."""

    def __init__(
        self,
        view: Callable[[PrivacyClass], Awaitable[FleetView]],
        write: Callable[[FleetView], bytes | None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._write = write
        self._monotonic = monotonic
        self._made: dict[PrivacyClass, tuple[float, asyncio.Task[bytes | None]]] = {}

    async def serve(self, scope: Scope, send: Send, viewer: Viewer) -> None:
        """Answer with what the viewer may see, or with what to do to see anything."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpError(
                405, "method_not_allowed", "this address can only be read", headers={"Allow": "GET, HEAD"}
            )
        status, body = 401, _NOT_SHOWN
        if viewer.privacy is not None and viewer.privacy != "counts":
            made = await self._page(viewer.privacy)
            if made is None:
                raise HttpError(404, "not_found", "there is nothing at this address")
            status, body = 200, made
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"content-security-policy", b"frame-ancestors 'none'"),
        ]
        await answer(send, status, headers, body if scope["method"] == "GET" else b"")

    async def _page(self, privacy: PrivacyClass) -> bytes | None:
        now = self._monotonic()
        made_at, making = self._made.get(privacy, (now, None))
        has_failed = (
            making is not None and making.done() and (making.cancelled() or making.exception() is not None)
        )
        if making is None or has_failed or (making.done() and now - made_at >= KEPT_SECONDS):
            making = asyncio.create_task(self._make(privacy))
            self._made[privacy] = now, making
        # Who gives up waiting does not take it away from the others.
        return await asyncio.shield(making)

    async def _make(self, privacy: PrivacyClass) -> bytes | None:
        view = await self._view(privacy)
        return await asyncio.to_thread(self._write, view)
