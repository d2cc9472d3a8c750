"""One entry for every request: guard it, then the node socket, the stream, the API or the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gpuherd.api.access import VIEWER_KEY, Access, Identification, check_access
from gpuherd.api.agent_socket import AgentSocket
from gpuherd.api.asgi import SECURITY_HEADERS, App, Message, Receive, Scope, Send, header, refuse
from gpuherd.api.errors import HttpError
from gpuherd.api.guard import Guard
from gpuherd.api.page_files import PageFiles
from gpuherd.api.stream import LiveStream

__all__ = ["HubApp"]

REQUEST_SECONDS = 30.0
"""How long a request may take, slow senders included. Streams and sockets have their own rules."""


_LOGINS = frozenset({"/api/v1/session", "/api/v1/setup"})


class HubApp:
    """The hub's ASGI application."""

    def __init__(
        self,
        *,
        mount: str,
        guard: Guard,
        identification: Identification,
        socket: AgentSocket,
        stream: LiveStream,
        rest: App,
        page: PageFiles,
        check_crowd: Callable[[], None],
    ) -> None:
        """``check_crowd`` raises ``HttpError`` while nobody else can log in."""
        self._mount = mount
        self._guard = guard
        self._identification = identification
        self._socket = socket
        self._stream = stream
        self._rest = rest
        self._page = page
        self._check_crowd = check_crowd

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket; errors get the one JSON shape."""
        answered = _Answered(send)
        try:
            if scope["type"] == "websocket":
                await self._serve_socket(scope, receive, answered)
            else:
                await self._serve_request(scope, receive, answered)
        except HttpError as error:
            if not answered.has_begun:
                await refuse(scope, send, error)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard.check(scope, is_sensitive=True)
        if self._relative(scope) != "/api/v1/agent":
            raise HttpError(404, "not_found", "there is no WebSocket at this address")
        await self._socket.serve(scope, receive, send)

    async def _serve_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._relative(scope)
        is_stream = path == "/api/v1/stream"
        self._guard.check(scope, is_sensitive=is_stream)
        if not path.startswith("/api/"):
            await self._page.serve(scope, send, path)
            return
        if path in _LOGINS and scope["method"] == "POST":
            # Before anything else is done for it: in a flood this is nearly all that is done.
            self._check_crowd()
        viewer = await self._identification.viewer(scope)
        if is_stream:
            check_access(viewer, Access.COUNTS)
            await self._stream.serve(scope, receive, send, viewer)
        else:
            scope[VIEWER_KEY] = viewer
            await self._serve_rest(scope, receive, send, path)

    async def _serve_rest(self, scope: Scope, receive: Receive, send: Send, path: str) -> None:
        encoding = header(scope, b"content-encoding")
        if encoding not in (None, "", "identity"):
            raise HttpError(
                415, "unsupported_encoding", "compressed bodies are not taken; send the body as it is"
            )
        _check_media_type(scope)
        scope["path"] = path
        scope["raw_path"] = path.encode()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._rest(scope, receive, _with_headers(send))
        except TimeoutError as error:
            raise HttpError(408, "timeout", "the request took too long") from error

    def _relative(self, scope: Scope) -> str:
        """Give the path below the base path."""
        path: str = scope["path"]
        if not path.startswith(f"{self._mount}/"):
            if path == self._mount:
                raise HttpError(308, "moved", "the page is below", headers={"Location": f"{self._mount}/"})
            raise HttpError(404, "not_found", f"the hub is at {self._mount}/")
        return path[len(self._mount) :]


def _check_media_type(scope: Scope) -> None:
    """Raise ``HttpError`` 415 for a body that does not say that it is JSON; none at all is fine.

    Any web page can have a browser send text or a form to us without asking first; for JSON the browser has to ask.
    """
    has_body = (
        header(scope, b"content-length") not in (None, "0") or header(scope, b"transfer-encoding") is not None
    )
    if not has_body or scope["method"] in ("GET", "HEAD"):
        return
    media_type = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HttpError(
            415, "unsupported_media_type", "send the body with the header Content-Type: application/json"
        )


def _with_headers(send: Send) -> Send:
    """Add to an API answer what holds for all of them: it is never cached, framed or guessed at."""

    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *SECURITY_HEADERS, (b"cache-control", b"no-store")]
        await send(message)

    return complete


class _Answered:
    """A ``send`` that knows whether the answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)
