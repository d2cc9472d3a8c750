"""/api/v1/login/oidc: off to the provider, and back."""

from __future__ import annotations

import base64
import binascii
import logging
import re
import time
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.datastructures import Cookie
from litestar.openapi import ResponseSpec
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.cookies import cookie_name, cookie_path
from gpuherd.api.errors import ErrorBody, HttpError
from gpuherd.api.sender import Sender, sender_of
from gpuherd.api.services import Services
from gpuherd.api.sparing_log import SparingLog
from gpuherd.auth.attempts import FailedAttempts
from gpuherd.auth.ways import RedirectWay
from gpuherd.model.errors import Failed, Refused

__all__ = ["handlers", "local_target"]

_sparing = SparingLog(logging.getLogger(__name__), limit=10)

START_PATH = "/login/oidc"
CALLBACK_PATH = "/login/oidc/callback"
HANDSHAKE_SECONDS = 900
MAX_TARGET_LENGTH = 1000
# The page, seen from either address. Relative, so that it holds below every base path and behind every proxy.
PAGE_FROM_START = "../../../"
PAGE_FROM_CALLBACK = "../../../../"
_TOLD = frozenset(
    {
        "account_disabled",
        "group_needed",
        "insecure",
        "last_admin",
        "login_denied",
        "login_expired",
        "login_failed",
        "name_taken",
        "too_many_attempts",
    }
)
_TARGET = re.compile(r"(\?|/(?![/\\]))[!-\[\]-~]*")


def local_target(text: str) -> str:
    """Give where to go after the login: a path on this host or a query of the page; the page for anything else.

    Browsers read ``//x`` and ``/\\x`` as another host, and drop tabs and line ends before they look.
    """
    return text if len(text) <= MAX_TARGET_LENGTH and _TARGET.fullmatch(text) else "?"


def _cookie(sender: Sender, mount: str, content: str) -> Cookie:
    return Cookie(
        key=cookie_name(sender, mount, "gpuherd-login"),
        value=content,
        max_age=HANDSHAKE_SECONDS if content else 0,
        path=cookie_path(mount),
        secure=sender.is_https,
        httponly=True,
        # Not "strict": the way back from the provider begins on the provider's page.
        samesite="lax",
    )


def _kept(request: Request[Any, Any, Any], sender: Sender, mount: str) -> tuple[str, str]:
    """Give the handshake of this browser and where it wants to go; nothing if it has none."""
    content = request.cookies.get(_cookie(sender, mount, "").key, "")
    handshake, _, encoded = content.partition(".")
    try:
        target = base64.urlsafe_b64decode(encoded.encode()).decode("ascii")
    except (binascii.Error, ValueError):
        target = ""
    return handshake, local_target(target)


def _redirect(location: str, cookie: Cookie, *, session_cookie: str | None = None) -> Response[None]:
    headers = {"Location": location}
    if session_cookie is not None:
        headers["Set-Cookie"] = session_cookie
    return Response(None, status_code=302, headers=headers, cookies=[cookie])


def _trouble(error: Exception, page: str, sender: Sender, mount: str) -> Response[None]:
    """Send the browser to the login form, with a code that the page has words for; the log has the rest."""
    code = "provider_down" if isinstance(error, Failed) else "login_failed"
    if isinstance(error, Refused) and error.code in _TOLD:
        code = error.code
    if isinstance(error, HttpError) and error.detail.code in _TOLD:
        code = error.detail.code
    _sparing.warning(code, f"single sign-on failed: {error}")
    return _redirect(f"{page}?login&problem={code}", _cookie(sender, mount, ""))


def _way(services: Services) -> RedirectWay:
    way = services.reception.ways.redirect
    if way is None:
        raise HttpError(404, "not_found", "this hub has no single sign-on; log in with name and password")
    return way


def _redirect_url(request: Request[Any, Any, Any], way: RedirectWay, sender: Sender, mount: str) -> str:
    """Give the address that the provider sends the browser back to.

    Unless configured it is made from the Host header, which has been checked (``guard.py``).
    """
    if way.redirect_url is not None:
        return way.redirect_url
    scheme = "https" if sender.is_https else "http"
    return f"{scheme}://{request.headers.get('host', '')}{mount}/api/v1{CALLBACK_PATH}"


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""
    attempts = FailedAttempts()

    @get(
        START_PATH,
        operation_id="startRedirectLogin",
        opt=needs(Access.OPEN),
        summary="Log in with single sign-on",
        status_code=302,
        responses={
            404: ResponseSpec(ErrorBody, description="Not configured on this hub.", generate_examples=False),
        },
    )
    async def start(
        request: Request[Any, Any, Any],
        target: Annotated[
            str,
            QueryParameter(
                name="return", max_length=4096, description="Where to go afterwards: a path on this host."
            ),
        ] = "",
    ) -> Response[None]:
        """For browsers: redirects to the provider, which redirects back to the callback. If the provider is down,
        the login form says so.
        """
        way, sender = _way(services), sender_of(request)
        try:
            services.reception.check_secrecy(sender)
            started = await way.start(_redirect_url(request, way, sender, services.mount))
        except (Failed, Refused, HttpError) as error:
            return _trouble(error, PAGE_FROM_START, sender, services.mount)
        encoded = base64.urlsafe_b64encode(local_target(target).encode()).decode()
        return _redirect(started.url, _cookie(sender, services.mount, f"{started.handshake}.{encoded}"))

    @get(
        CALLBACK_PATH,
        operation_id="finishRedirectLogin",
        opt=needs(Access.OPEN),
        summary="Return from single sign-on",
        status_code=302,
        responses={
            404: ResponseSpec(ErrorBody, description="Not configured on this hub.", generate_examples=False),
        },
    )
    async def finish(request: Request[Any, Any, Any]) -> Response[None]:
        """For browsers that return from the provider: logs in and redirects to the page. If that fails, the login
        form says why.
        """
        way, sender = _way(services), sender_of(request)
        handshake, target = _kept(request, sender, services.mount)
        pairs = list(request.query_params.multi_items())
        answer = {name: str(value) for name, value in pairs}
        now = time.monotonic()
        try:
            # Each one that looks right makes the hub ask the provider. It counts as failed until it succeeds, or any
            # number at a time would be let through.
            attempts.check(sender.place, now)
            attempts.failed(sender.place, now)
            if len(answer) < len(pairs):
                raise Refused("login_failed", "the provider's response contains a parameter twice")  # noqa: TRY301
            vouched = await way.finish(
                answer,
                handshake=handshake,
                redirect_url=_redirect_url(request, way, sender, services.mount),
            )
            entered = await services.reception.enter(
                vouched,
                sender=sender,
                agent=request.headers.get("user-agent", ""),
                before=viewer_of(request),
            )
        except (Failed, Refused, HttpError) as error:
            if isinstance(error, Failed):
                attempts.forgive(sender.place)
            return _trouble(error, PAGE_FROM_CALLBACK, sender, services.mount)
        attempts.forgive(sender.place)
        location = f"{PAGE_FROM_CALLBACK}{target}" if target.startswith("?") else target
        return _redirect(
            location,
            _cookie(sender, services.mount, ""),
            session_cookie=entered.cookie(sender, services.mount),
        )

    return [start, finish]
