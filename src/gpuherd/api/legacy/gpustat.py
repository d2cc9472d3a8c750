"""The backend of an older tool: nodes POST / what ``gpustat --json`` prints, its page GETs / all of it."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable

import msgspec
from msgspec import structs

from gpuherd.api.asgi import Headers, Receive, Scope, Send, answer, header
from gpuherd.api.errors import HttpError
from gpuherd.api.guard import Guard
from gpuherd.api.legacy.claims import NameClaims
from gpuherd.api.legacy.gate import Gate, peer_address, read_body
from gpuherd.api.legacy.gpustat_shape import gpustat_payload, mapped_ip
from gpuherd.api.legacy.old_login import OldLogin
from gpuherd.api.legacy.serving import Answer, serve
from gpuherd.api.networks import parse_networks
from gpuherd.auth.enrolment import node_id_for
from gpuherd.fleet.views import FleetNotice, FleetView
from gpuherd.model.errors import Refused
from gpuherd.sources.assembly import Scrub, SteadyParts, remembering
from gpuherd.sources.following import Arrivals
from gpuherd.sources.gpustat_json import GpustatPost, read_post
from gpuherd.sources.settings import GpustatSettings

__all__ = ["GpustatApp"]

MAX_BODY_BYTES = 2**20
MAX_LOGIN_BYTES = 8192
_STATUS = {"name_taken": 409, "too_many_nodes": 503}


class _Poster:
    """A node that posts: its payload as the page reads it, and what stayed the same since its last report."""

    def __init__(self) -> None:
        self.hostname = ""
        self.query_time: str | None = None
        self.steady = SteadyParts()
        self.payload = b""
        self.heard_at = -math.inf


class GpustatApp:
    """The ASGI application of the ``[legacy.gpustat]`` table.

    Anyone in the networks may post under any name: there is no login. So a name that is enrolled or listed
    otherwise is refused (``Arrivals``), and the first address to use a name keeps it (``NameClaims``).
    """

    def __init__(
        self,
        settings: GpustatSettings,
        arrivals: Arrivals,
        *,
        fleet_view: Callable[[], FleetView],
        guard: Guard,
        scrub: Scrub,
        login: OldLogin | None = None,
        offline_after_seconds: float = 60.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._arrivals = arrivals
        self._fleet_view = fleet_view
        self._guard = guard
        self._scrub = remembering(scrub)
        self._login = login
        self._offline_after_seconds = offline_after_seconds
        self._wall = wall
        self._monotonic = monotonic
        self._gate = Gate(
            parse_networks(settings.networks, "legacy.gpustat.networks"),
            requests_per_second=settings.requests_per_second,
            monotonic=monotonic,
        )
        self._origins = {origin.rstrip("/").lower() for origin in settings.origins}
        self._claims = NameClaims(
            kept_seconds=offline_after_seconds,
            max_nodes=settings.max_nodes,
            max_per_sender=settings.max_nodes_per_sender,
            known=lambda: arrivals.senders("gpustat"),
            monotonic=monotonic,
            wall=wall,
        )
        self._posters: dict[str, _Poster] = {}
        self._id_of_hostname: dict[str, str] = {}
        self._others: tuple[int, dict[str, bytes]] = (-1, {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; errors get the API's one JSON shape."""
        answering = Answer(send)
        await serve(scope, answering, self._serve(scope, receive, answering))

    async def _serve(self, scope: Scope, receive: Receive, send: Answer) -> None:
        try:
            sender = self._gate.check(scope)
        except HttpError as error:
            # The old script does not say what it was answered, so people have to hear of it here.
            if error.status == 403 and scope.get("method") == "POST" and scope["path"] == "/":
                self._claims.turned_away(peer_address(scope))
            raise
        cors = send.headers = self._cors(scope)
        if scope["type"] == "http" and scope["path"] == "/auth" and self._login is not None:
            await self._log_in(self._login, scope, receive, send, sender)
            return
        if scope["type"] != "http" or scope["path"] != "/":
            raise HttpError(404, "not_found", _not_here(scope))
        method = scope["method"]
        if method == "POST":
            await self._post(scope, receive, sender)
            await answer(send, 200, [(b"content-type", b"text/plain; charset=utf-8"), *cors], b"OK")
        elif method in ("GET", "HEAD"):
            self._guard.check(scope, is_sensitive=False)
            headers = [(b"content-type", b"application/json; charset=utf-8"), (b"cache-control", b"no-store")]
            await answer(send, 200, [*headers, *cors], b"" if method == "HEAD" else self._everything())
        elif method == "OPTIONS" and cors:
            await answer(send, 204, [*cors, (b"access-control-allow-methods", b"GET,HEAD")], b"")
        else:
            raise HttpError(
                405,
                "method_not_allowed",
                "post with POST, read with GET",
                headers={"Allow": "GET, HEAD, POST"},
            )

    async def _log_in(
        self, login: OldLogin, scope: Scope, receive: Receive, send: Answer, sender: str
    ) -> None:
        cors = send.headers
        if scope["method"] == "OPTIONS" and cors:
            allowed = [
                (b"access-control-allow-methods", b"POST"),
                (b"access-control-allow-headers", b"content-type"),
            ]
            await answer(send, 204, [*cors, *allowed], b"")
            return
        if scope["method"] != "POST":
            raise HttpError(405, "method_not_allowed", "log in with POST", headers={"Allow": "POST"})
        if header(scope, b"origin") is not None and not cors:
            raise HttpError(
                403, "foreign_origin", "this page is not allowed to log in here (legacy.gpustat.origins)"
            )
        login.check(await read_body(scope, receive, MAX_LOGIN_BYTES), sender)
        await answer(send, 200, [(b"content-type", b"text/plain; charset=utf-8"), *cors], b"OK")

    def notices(self) -> list[FleetNotice]:
        """Tell what was refused, and which names changed hands."""
        return self._claims.notices()

    # -- posting ---------------------------------------------------------------------------------------------------

    async def _post(self, scope: Scope, receive: Receive, sender: str) -> None:
        # A browser names its page on every post; no node does. Without this, any page that someone in the networks
        # looks at could make up nodes.
        if header(scope, b"origin") is not None:
            raise HttpError(403, "foreign_origin", "nodes post here, web pages do not")
        if (header(scope, b"content-type") or "").partition(";")[0].strip().lower() != "application/json":
            raise HttpError(
                415, "unsupported_media_type", "send it with the header Content-Type: application/json"
            )
        body = await read_body(scope, receive, MAX_BODY_BYTES)
        try:
            post = read_post(body, peer=sender, wall=self._wall(), scrub=self._scrub)
            self._take(post, sender)
        except Refused as error:
            raise HttpError(_STATUS.get(error.code, 400), error.code, str(error)) from error

    def _take(self, post: GpustatPost, sender: str) -> None:
        # By the node's id: gpu01 and GPU01 are one node. Before the herd hears of it: what is refused must not appear.
        self._claims.check(node_id_for(post.hostname), sender)
        intake = self._arrivals.intake(
            post.hostname, "gpustat", interval_seconds=self._settings.interval_seconds, sender=sender
        )
        self._claims.claim(intake.node_id, sender)
        poster = self._posters.setdefault(intake.node_id, _Poster())
        if poster.hostname != post.hostname:
            self._id_of_hostname.pop(poster.hostname, None)
            self._id_of_hostname[post.hostname] = intake.node_id
            poster.hostname = post.hostname
        query_time = post.payload.get("query_time")
        if query_time is not None and query_time == poster.query_time:
            return  # the same reading sent again is no news: the node goes stale by itself, as on the old page
        poster.query_time = query_time
        report, doubts = poster.steady.keep(post.report), self._claims.doubts(intake.node_id)
        if doubts is not None:
            problems = (*report.sample.problems, doubts)
            report = structs.replace(report, sample=structs.replace(report.sample, problems=problems))
        intake.take(report)
        poster.payload = msgspec.json.encode({**post.payload, "ip": mapped_ip(sender)})
        poster.heard_at = self._monotonic()

    # -- reading ---------------------------------------------------------------------------------------------------

    def _everything(self) -> bytes:
        """Give every node by name: those that post right now as they posted, all others in the same shape."""
        view = self._fleet_view()
        if self._others[0] != view.tick:
            self._forget_posters({node.id for node in view.nodes})
            others: dict[str, bytes] = {}
            for node in view.nodes:
                payload = None if self._is_posting(node.id) else gpustat_payload(node)
                if payload is not None:
                    # Two nodes may be shown under one name; ids are unique.
                    is_taken = node.name in others or node.name in self._id_of_hostname
                    others[node.id if is_taken else node.name] = msgspec.json.encode(payload)
            self._others = (view.tick, others)
        posted = {
            poster.hostname: poster.payload
            for node_id, poster in self._posters.items()
            if self._is_posting(node_id)
        }
        entries = (
            msgspec.json.encode(name) + b":" + payload
            for name, payload in {**self._others[1], **posted}.items()
        )
        return b"{" + b",".join(entries) + b"}"

    def _forget_posters(self, known: set[str]) -> None:
        """Forget nodes that were taken out of the herd; what posted a moment ago may not be in this view yet."""
        for node_id, poster in list(self._posters.items()):
            if node_id not in known and not self._is_posting(node_id):
                del self._posters[node_id]
                self._id_of_hostname.pop(poster.hostname, None)
                self._claims.forget(node_id)

    def _is_posting(self, node_id: str) -> bool:
        poster = self._posters.get(node_id)
        return poster is not None and self._monotonic() - poster.heard_at <= self._offline_after_seconds

    def _cors(self, scope: Scope) -> Headers:
        """Let pages of other machines read: those in the networks, and those that are listed."""
        origin = header(scope, b"origin")
        if origin is None or not origin.isascii() or not origin.isprintable():
            return []
        is_allowed = origin.lower() in self._origins or self._is_in_networks(origin)
        if not is_allowed:
            return []
        return [(b"access-control-allow-origin", origin.encode()), (b"vary", b"Origin")]

    def _is_in_networks(self, origin: str) -> bool:
        scheme, _, authority = origin.partition("://")
        host = authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
        try:
            return scheme in ("http", "https") and self._gate.contains(ipaddress.ip_address(host))
        except ValueError:
            return False


def _not_here(scope: Scope) -> str:
    if scope["path"] == "/auth":
        return "there is no login here unless legacy.gpustat.login_file names one; the hub's own page is elsewhere"
    return "nodes post to / and the old page reads /; the hub's own page is at its own address"
