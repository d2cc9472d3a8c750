"""One entry for every request: guard it, then the node socket, the stream, the API or the page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from litestar.utils import normalize_path

from gpuherd.api.access import VIEWER_KEY, Access, Identification, check_access
from gpuherd.api.agent_socket import AgentSocket
from gpuherd.api.asgi import SECURITY_HEADERS, App, Headers, Message, Receive, Scope, Send, header, refuse
from gpuherd.api.bodies import MAX_BODY_BYTES, SMALL_BODY_BYTES, BodyBudget, BodyRule, has_body
from gpuherd.api.connections import ConnectionWatch
from gpuherd.api.errors import HttpError, unexpected
from gpuherd.api.guard import Guard
from gpuherd.api.one_page import ONE_PAGE_QUERY, OnePage
from gpuherd.api.page_files import PageFiles
from gpuherd.api.sender import SENDER_KEY, Sender
from gpuherd.api.static_file import BuiltFile
from gpuherd.api.stream import LiveStream
from gpuherd.model.people import Viewer

__all__ = ["HubApp"]

REQUEST_SECONDS = 30.0
"""How long a request may take, slow senders included. Streams and sockets have their own rules."""


STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
"""Tells browsers to use only HTTPS; sent if the hub itself serves it."""
PIECE_BYTES = 8_192
KNOWN_PIECE_BYTES = 16_384
"""For those who are logged in. The web server holds about ten pieces for a client that does not read."""
STREAM_PIECE_BYTES = 65_536
"""For live views: there is a limit on their number, and a viewer must get each tick before the next."""
UNREAD_SECONDS = 30.0
"""How long a client may take to read a piece of a response."""
STREAM_PATH = "/api/v1/stream"
SCHEMA_PATH = "/api/v1/openapi.json"
SMALL_BODY_SECONDS = 5.0
_BODY = BodyRule(MAX_BODY_BYTES, REQUEST_SECONDS)
_SMALL_BODY = BodyRule(SMALL_BODY_BYTES, SMALL_BODY_SECONDS)
_OPEN = frozenset({"/api/v1/session", "/api/v1/setup", "/api/v1/enroll"})
"""Addresses that anyone may post to."""
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
        one_page: OnePage,
        schema: BuiltFile,
        connections: ConnectionWatch,
        check_crowd: Callable[[Sender], Awaitable[None]],
        is_tls: bool = False,
    ) -> None:
        """``check_crowd`` raises ``HttpError`` while a sender cannot log in; ``is_tls``: the hub serves HTTPS."""
        self._mount = mount
        self._guard = guard
        self._identification = identification
        self._socket = socket
        self._stream = stream
        self._rest = rest
        self._page = page
        self._one_page = one_page
        self._schema = schema
        self._connections = connections
        self._check_crowd = check_crowd
        self._bodies = BodyBudget()
        self._more_headers = [STRICT_TRANSPORT] if is_tls else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket; errors get the one JSON shape."""
        answered = _Answered(send, self._more_headers)
        try:
            if scope["type"] == "websocket":
                await self._serve_socket(scope, receive, answered)
            else:
                await self._serve_request(scope, receive, answered)
        except HttpError as error:
            await _refuse(scope, answered, error)
        except _UnreadError:
            pass  # its connection is closed below
        except Exception as error:  # noqa: BLE001 - the web server would swallow it silently
            await _refuse(scope, answered, unexpected(error))
        finally:
            if answered.is_unread:
                self._connections.give_up(scope)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard.check(scope, is_sensitive=True)
        if self._relative(scope) != "/api/v1/agent":
            raise HttpError(404, "not_found", "there is no WebSocket at this address")
        node_id = self._socket.known_node(scope)
        if node_id is None:
            await self._socket.serve(scope, receive, send)  # refuses it
            return
        with self._connections.serving(scope, _holder(None, node_id)):
            await self._socket.serve(scope, receive, send)

    async def _serve_request(self, scope: Scope, receive: Receive, send: _Answered) -> None:
        path = self._relative(scope)
        if path.startswith("/api/"):
            # As the router reads it: /api/v1//session/ is /api/v1/session, with the same limits.
            path = normalize_path(path)
        self._guard.check(scope, is_sensitive=path == STREAM_PATH)
        if not path.startswith("/api/"):
            if path == "/" and scope["query_string"] == ONE_PAGE_QUERY:
                await self._one_page.serve(scope, send, await self._identification.viewer(scope))
                return
            await self._page.serve(scope, send, path)
            return
        if path == SCHEMA_PATH:
            await self._schema.serve(scope, send)
            return
        viewer = await self._identification.viewer(scope)
        node_id = self._socket.known_node(scope)
        is_known = viewer.is_known or node_id is not None
        if is_known or path == STREAM_PATH:
            send.piece_bytes = STREAM_PIECE_BYTES if path == STREAM_PATH else KNOWN_PIECE_BYTES
        # Before the body is read: in a flood hardly anything else is done.
        if not is_known and has_body(scope):
            self._bodies.check(scope[SENDER_KEY].place, is_known=False)
        if path in _LOGINS and scope["method"] == "POST":
            await self._check_crowd(scope[SENDER_KEY])
        serving = self._connections.serving(scope, _holder(viewer, node_id))
        with serving if is_known else contextlib.nullcontext():
            await self._serve_viewer(scope, receive, send, path, viewer, is_known=is_known)

    async def _serve_viewer(
        self, scope: Scope, receive: Receive, send: Send, path: str, viewer: Viewer, *, is_known: bool
    ) -> None:
        if path == STREAM_PATH:
            check_access(viewer, Access.COUNTS)
            await self._stream.serve(scope, receive, send, viewer)
        else:
            scope[VIEWER_KEY] = viewer
            await self._serve_rest(scope, receive, send, path, is_known=is_known)

    async def _serve_rest(
        self, scope: Scope, receive: Receive, send: Send, path: str, *, is_known: bool
    ) -> None:
        encoding = header(scope, b"content-encoding")
        if encoding not in (None, "", "identity"):
            raise HttpError(
                415, "unsupported_encoding", "compressed bodies are not accepted; send the body uncompressed"
            )
        _check_media_type(scope)
        scope["path"] = path
        scope["raw_path"] = path.encode()
        rule = _SMALL_BODY if path in _OPEN else _BODY
        place = scope[SENDER_KEY].place
        try:
            async with asyncio.timeout(REQUEST_SECONDS) as limit:
                with self._bodies.reading(scope, receive, rule, place=place, is_known=is_known) as body:
                    if path in _OPEN:
                        # Before anything is made for a request that may never be whole.
                        await body.receive_all()
                    await self._rest(scope, body, _with_headers(send, limit))
        except TimeoutError as error:
            raise HttpError(408, "timeout", "the request took too long") from error

    def _relative(self, scope: Scope) -> str:
        """Give the path below the base path, which a proxy may have cut off already.

        The base path itself is the page: a redirect to ``/gpus/`` would never end behind a proxy that leads back.
        """
        path: str = scope["path"]
        if path == self._mount:
            return "/"
        return path.removeprefix(self._mount) if path.startswith(f"{self._mount}/") else path


def _holder(viewer: Viewer | None, node_id: str | None) -> str | None:
    """Name the account or node that a connection counts for; None for the key of the hub's own machine."""
    if viewer is not None and viewer.account is not None:
        return f"the account {viewer.account.name}"
    return None if node_id is None else f"the node {node_id}"


def _check_media_type(scope: Scope) -> None:
    """Raise ``HttpError`` 415 for a body that does not say that it is JSON; none at all is fine.

    Any web page can have a browser send text or a form to us without asking first; for JSON the browser has to ask.
    """
    if not has_body(scope) or scope["method"] in ("GET", "HEAD"):
        return
    media_type = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HttpError(
            415, "unsupported_media_type", "send the body with the header Content-Type: application/json"
        )


def _with_headers(send: Send, limit: asyncio.Timeout) -> Send:
    """Add to an API answer what holds for all of them: it is never cached, framed or guessed at.

    ``limit`` no longer holds once there is an answer: a slow client may take longer to read it.
    """

    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start":
            limit.reschedule(None)
            message["headers"] = [*message["headers"], *SECURITY_HEADERS, (b"cache-control", b"no-store")]
        with contextlib.suppress(_UnreadError):  # for the framework this would be an error of ours
            await send(message)

    return complete


async def _refuse(scope: Scope, send: _Answered, error: HttpError) -> None:
    if not send.has_begun:
        await refuse(scope, send, error)


class _UnreadError(TimeoutError):
    """The client does not read the response."""


class _Answered:
    """A ``send`` that knows whether the response has started, and adds headers to it.

    Large bodies are sent in pieces: the web server copies what it is given, and keeps it until the client has read it.
    """

    def __init__(self, send: Send, more_headers: Headers) -> None:
        self._send = send
        self._more_headers = more_headers
        self.has_begun = False
        self.piece_bytes = PIECE_BYTES
        self.is_unread = False

    def __call__(self, message: Message) -> Awaitable[None]:
        self.has_begun = True
        if self._more_headers and message["type"].endswith("response.start"):
            message["headers"] = [*message["headers"], *self._more_headers]
        if message["type"] == "http.response.body" and len(message.get("body", b"")) > self.piece_bytes:
            return self._send_pieces(message)
        return self._send(message)

    async def _send_pieces(self, message: Message) -> None:
        """Send piece by piece as the client reads. One that reads nothing for a while gets no more."""
        body, size, clock = memoryview(message["body"]), self.piece_bytes, asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(UNREAD_SECONDS) as limit:
                for start in range(0, len(body), size):
                    is_last = start + size >= len(body)
                    await self._send(
                        {
                            "type": "http.response.body",
                            "body": bytes(body[start : start + size]),
                            "more_body": message.get("more_body", False) if is_last else True,
                        }
                    )
                    limit.reschedule(clock() + UNREAD_SECONDS)
        except TimeoutError:
            self.is_unread = True
            raise _UnreadError from None
