"""Logging in at an OpenID Connect provider: authorization code with PKCE, state and nonce."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from gpuherd.auth.oidc_provider import Provider, is_safe_url
from gpuherd.auth.oidc_token import Expected, UnknownKey, verified_claims
from gpuherd.auth.secret_files import read_secret
from gpuherd.auth.way_settings import OidcSettings
from gpuherd.auth.ways import RedirectStart, VouchedFor, check_groups, clean_groups, clean_name
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.text import clean

__all__ = ["CALLBACK_PATH", "OidcWay"]

CALLBACK_PATH = "/api/v1/login/oidc/callback"
MAX_CODE_LENGTH = 8192
_HANDSHAKE = re.compile(r"[A-Za-z0-9_-]{43}")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class OidcWay:
    """One provider.

    Nothing is kept here between start and finish. State, nonce and PKCE verifier are all made from one random
    handshake that only this browser has, in a cookie: many may log in at once, through any of several hubs, and an
    answer that belongs to another browser's login fits none of them.
    """

    def __init__(self, settings: OidcSettings, *, wall: Callable[[], float] = time.time) -> None:
        """``Misconfigured`` if it could not work. Paths are full ones. The provider is asked when it is needed."""
        _check(settings)
        self._settings = settings
        self._provider = Provider(settings)
        self._wall = wall

    @property
    def label(self) -> str:
        """See ``RedirectWay``."""
        return clean(self._settings.label)

    @property
    def redirect_url(self) -> str | None:
        """See ``RedirectWay``."""
        return self._settings.redirect_url

    async def start(self, redirect_url: str) -> RedirectStart:
        """See ``RedirectWay.start``."""
        async with self._deadline():
            metadata = await self._provider.metadata()
        handshake = secrets.token_urlsafe(32)
        question = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_url,
            "scope": " ".join(dict.fromkeys(("openid", *self._settings.scopes))),
            "state": _made_from(handshake, "state"),
            "nonce": _made_from(handshake, "nonce"),
            "code_challenge": _base64(hashlib.sha256(_made_from(handshake, "verifier").encode()).digest()),
            "code_challenge_method": "S256",
        }
        joint = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
        return RedirectStart(
            url=f"{metadata.authorization_endpoint}{joint}{urlencode(question)}", handshake=handshake
        )

    async def finish(self, answer: Mapping[str, str], *, handshake: str, redirect_url: str) -> VouchedFor:
        """See ``RedirectWay.finish``."""
        code = self._code(answer, handshake)
        async with self._deadline():
            tokens = await self._provider.exchange(
                code, verifier=_made_from(handshake, "verifier"), redirect_url=redirect_url
            )
            claims = await self._claims(tokens.id_token, _made_from(handshake, "nonce"))
            if tokens.access_token is not None and self._lacks(claims):
                claims = await self._completed(claims, tokens.access_token)
        return check_groups(self._vouched(claims), self._settings.allowed_groups)

    @contextlib.asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """All questions of one step together; too late is ``Failed``."""
        seconds = self._settings.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Failed(
                f"the provider {self._settings.issuer} did not respond within {seconds:g} s; try again later"
            ) from None

    # -- what the browser brings -------------------------------------------------------------------------------

    def _code(self, answer: Mapping[str, str], handshake: str) -> str:
        is_ours = _HANDSHAKE.fullmatch(handshake) is not None and hmac.compare_digest(
            answer.get("state", "").encode("utf-8", "surrogatepass"),
            _made_from(handshake, "state").encode(),
        )
        if not is_ours:
            raise Refused(
                "login_expired", "this login was not started in this browser, or it took too long; try again"
            )
        if answer.get("iss", self._settings.issuer) != self._settings.issuer:
            raise Refused("login_failed", "the response comes from another provider; try again")
        if "error" in answer:
            words = clean(f"{answer['error']} {answer.get('error_description', '')}".strip(), 200)
            code = "login_denied" if answer["error"] == "access_denied" else "login_failed"
            raise Refused(code, f"the provider refused the login ({words})")
        code = answer.get("code", "")
        if not code or len(code) > MAX_CODE_LENGTH:
            raise Refused("login_failed", "the provider's response has no code; try again")
        return code

    # -- what the provider says --------------------------------------------------------------------------------

    async def _claims(self, token: str, nonce: str) -> dict[str, Any]:
        expected = Expected(
            issuer=self._settings.issuer, client_id=self._settings.client_id, nonce=nonce, now=self._wall()
        )
        keys = await self._provider.keys()
        try:
            return verified_claims(token, keys, expected)
        except UnknownKey:
            # Providers change their keys now and then.
            return verified_claims(token, await self._provider.keys(newer_than=keys), expected)

    def _lacks(self, claims: Mapping[str, Any]) -> bool:
        settings = self._settings
        wanted = (settings.name_claim, settings.groups_claim, settings.linux_name_claim)
        return any(name and _found(claims, name) is None for name in wanted)

    async def _completed(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        more = await self._provider.userinfo(access_token)
        if more and more.get("sub") != claims["sub"]:
            raise Refused("login_failed", "the provider returned another person; try again")
        return {**more, **claims}

    def _vouched(self, claims: Mapping[str, Any]) -> VouchedFor:
        settings = self._settings
        told = _found(claims, settings.name_claim)
        if settings.name_claim == "email" and claims.get("email_verified") is not True:
            raise Refused(
                "login_failed", "the provider has not verified your e-mail address; do that there first"
            )
        name = clean_name(told) if isinstance(told, str) else None
        if name is None:
            what = "nothing" if told is None else f'"{clean(str(told), 60)}"'
            raise Failed(
                f"the provider's claim {settings.name_claim} is {what}, which is not a valid account name; "
                "set login.oidc.name_claim to another claim, or ask for its scope"
            )
        shown = _found(claims, settings.display_name_claim)
        return VouchedFor(
            source="oidc",
            # Another provider may call someone else the same.
            subject=f"{settings.issuer} {claims['sub']}",
            name=name,
            display_name=(clean(shown.strip()) if isinstance(shown, str) else "") or name,
            # A claim that is missing says that someone is in no group: some providers leave out what is empty.
            groups=clean_groups(_texts(_found(claims, settings.groups_claim)))
            if settings.groups_claim
            else None,
            linux_names=clean_groups(
                _texts(
                    None if settings.linux_name_claim is None else _found(claims, settings.linux_name_claim)
                )
            ),
        )


def _made_from(handshake: str, purpose: str) -> str:
    return _base64(hmac.digest(handshake.encode(), f"gpuherd oidc {purpose}".encode(), hashlib.sha256))


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _found(claims: Mapping[str, Any], name: str) -> object:
    """Give a claim, or with ``a.b`` that within an object; none if there is none."""
    if name in claims:
        return claims[name]
    first, _, rest = name.partition(".")
    inner = claims.get(first)
    return _found(inner, rest) if rest and isinstance(inner, dict) else None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _check(settings: OidcSettings) -> None:
    """Raise ``Misconfigured`` for settings that could not work."""
    if not is_safe_url(settings.issuer) or urlsplit(settings.issuer).query:
        raise Misconfigured(
            f'login.oidc.issuer: "{clean(settings.issuer, 80)}" is not an https address; write it exactly '
            'as the provider does, such as "https://sso.example.org/realms/lab"'
        )
    if settings.redirect_url is not None and not (
        is_safe_url(settings.redirect_url) and settings.redirect_url.endswith(CALLBACK_PATH)
    ):
        raise Misconfigured(
            f'login.oidc.redirect_url: "{clean(settings.redirect_url, 80)}" must be the hub\'s https address with '
            f'{CALLBACK_PATH} at its end, such as "https://gpus.example.org{CALLBACK_PATH}"'
        )
    for scope in settings.scopes:
        if not _SCOPE.fullmatch(scope):
            raise Misconfigured(
                f'login.oidc.scopes: "{clean(scope, 60)}" is not a scope; each scope is one word'
            )
    if settings.tls_ca_file is not None and not settings.tls_ca_file.is_file():
        raise Misconfigured(f"login.oidc.tls_ca_file: there is no file {settings.tls_ca_file}")
    if settings.client_secret_file is not None:
        read_secret(settings.client_secret_file, "login.oidc.client_secret_file")
