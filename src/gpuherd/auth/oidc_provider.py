"""Speaking to an OpenID Connect provider: its metadata, its keys, its tokens."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
from joserfc.jwk import KeySet
from msgspec import Meta, Struct

from gpuherd.auth.oidc_token import read_keys
from gpuherd.auth.secret_files import read_secret
from gpuherd.auth.way_settings import OidcSettings
from gpuherd.model.errors import Failed, Misconfigured, Refused, system_reason
from gpuherd.model.text import clean

__all__ = ["Metadata", "Provider", "Tokens", "is_safe_url"]

log = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 1_048_576
FRESH_SECONDS = 3600.0
"""Metadata and keys are asked for again after this."""
KEPT_SECONDS = 86_400.0
"""A provider that does not answer then is believed to be as it was for this long."""
PAUSE_SECONDS = 5.0
"""A provider that has failed is not asked for its metadata again sooner: everyone who tries gets the same answer."""

_Url = Annotated[str, Meta(max_length=2048)]


def is_safe_url(text: str) -> bool:
    """Tell whether this is an https address, or plain http on this very machine, with nothing odd in it."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if (
        not host
        or parts.username is not None
        or parts.fragment
        or not text.isascii()
        or not text.isprintable()
    ):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_this_machine(host))


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Metadata(Struct, frozen=True, kw_only=True):
    """What the provider's discovery document says, as far as it matters here."""

    issuer: _Url
    authorization_endpoint: _Url
    token_endpoint: _Url
    jwks_uri: _Url
    userinfo_endpoint: _Url | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Tokens(Struct, frozen=True, kw_only=True):
    """What a code buys."""

    id_token: str
    access_token: str | None = None


class _ErrorAnswer(Struct, frozen=True, kw_only=True):
    error: str = ""
    error_description: str = ""


class Provider:
    """One provider, with its metadata and keys kept for a while. Connections are made for each login."""

    def __init__(self, settings: OidcSettings, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._metadata: Metadata | None = None
        self._metadata_at = 0.0
        self._keys: KeySet | None = None
        self._keys_at = 0.0
        self._failure: tuple[float, str] | None = None
        self._lock = asyncio.Lock()

    # -- what is kept ------------------------------------------------------------------------------------------

    async def metadata(self) -> Metadata:
        """Give the provider's metadata; ``Failed`` if they cannot be had or are another's."""
        async with self._lock:
            now = self._monotonic()
            if self._metadata is not None and now - self._metadata_at < FRESH_SECONDS:
                return self._metadata
            if self._failure is not None and now - self._failure[0] < PAUSE_SECONDS:
                return self._kept_metadata(now, Failed(self._failure[1]))
            try:
                self._metadata = await self._discover()
            except Failed as error:
                self._failure = (now, str(error))
                return self._kept_metadata(now, error)
            self._metadata_at, self._failure = now, None
            return self._metadata

    def _kept_metadata(self, now: float, error: Failed) -> Metadata:
        if self._metadata is None or now - self._metadata_at > KEPT_SECONDS:
            raise error
        log.warning("%s; using its last known metadata", error)
        return self._metadata

    async def _discover(self) -> Metadata:
        issuer = self._settings.issuer
        answer = await self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            metadata = msgspec.convert(answer, Metadata)
        except msgspec.ValidationError as error:
            raise Failed(
                f"the provider {issuer} sent invalid metadata ({clean(str(error), 160)}); check "
                "login.oidc.issuer"
            ) from None
        if metadata.issuer != issuer:
            raise Failed(
                f'the provider says that its issuer is "{clean(metadata.issuer, 200)}"; if that is right, set '
                "login.oidc.issuer to it"
            )
        for key in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
            url: str | None = getattr(metadata, key)
            if url is not None and not is_safe_url(url):
                raise Failed(
                    f"the provider's {key} is not an https address; passwords and tokens would be readable"
                )
        return metadata

    async def keys(self, *, newer_than: KeySet | None = None) -> KeySet:
        """Give the provider's public keys, asked for again if those given did not do."""
        metadata = await self.metadata()
        async with self._lock:
            now = self._monotonic()
            is_fresh = self._keys is not None and now - self._keys_at < FRESH_SECONDS
            if self._keys is not None and is_fresh and self._keys is not newer_than:
                return self._keys
            self._keys, self._keys_at = read_keys(await self._get(metadata.jwks_uri)), now
            return self._keys

    # -- questions ---------------------------------------------------------------------------------------------

    async def exchange(self, code: str, *, verifier: str, redirect_url: str) -> Tokens:
        """Buy tokens with a code; ``Refused`` ``login_failed`` if the provider will not."""
        metadata = await self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "code_verifier": verifier,
            "client_id": self._settings.client_id,
        }
        headers = {"Accept": "application/json"}
        secret = await self._secret()
        if secret is not None:
            if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
                del form["client_id"]
                headers["Authorization"] = _basic(self._settings.client_id, secret)
            else:
                form["client_secret"] = secret
        status, body = await self._ask("POST", metadata.token_endpoint, headers=headers, data=form)
        if status != 200:
            self._refuse_exchange(status, body)
        try:
            return msgspec.json.decode(body, type=Tokens)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Failed(
                f"the provider {self._settings.issuer} sent no ID token; is the scope openid allowed?"
            ) from None

    def _refuse_exchange(self, status: int, body: bytes) -> None:
        try:
            told = msgspec.json.decode(body, type=_ErrorAnswer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            told = _ErrorAnswer()
        words = clean(f"{status} {told.error} {told.error_description}".strip(), 200)
        if told.error in ("invalid_client", "unauthorized_client"):
            raise Failed(
                f"the provider refuses this hub ({words}); check login.oidc.client_id and client_secret_file"
            )
        if status >= 500:
            raise Failed(f"the provider {self._settings.issuer} fails ({words})")
        raise Refused("login_failed", f"the provider did not confirm the login ({words}); try again")

    async def userinfo(self, access_token: str) -> Mapping[str, Any]:
        """Ask for what the ID token left out; nothing if the provider has no such address."""
        metadata = await self.metadata()
        if metadata.userinfo_endpoint is None:
            return {}
        return await self._get(metadata.userinfo_endpoint, {"Authorization": f"Bearer {access_token}"})

    async def _secret(self) -> str | None:
        file: Path | None = self._settings.client_secret_file
        if file is None:
            return None
        try:
            # Read anew each time, so that a renewed one counts at once.
            return await asyncio.to_thread(read_secret, file, "login.oidc.client_secret_file")
        except Misconfigured as error:  # it was good when the hub started
            raise Failed(str(error)) from error

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        status, body = await self._ask("GET", url, headers={"Accept": "application/json", **(headers or {})})
        if status != 200:
            raise Failed(f"{_shown(url)} responds with {status}; check login.oidc.issuer")
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Failed(f"{_shown(url)} does not return JSON; check login.oidc.issuer") from None

    async def _ask(self, method: str, url: str, **options: Any) -> tuple[int, bytes]:
        where = _shown(url)
        try:
            async with (
                self._session() as session,
                # A redirect could carry a secret elsewhere.
                session.request(method, url, allow_redirects=False, **options) as response,
            ):
                return response.status, await _capped(response, where)
        except TimeoutError:
            raise Failed(f"{where} does not respond; try again later") from None
        except aiohttp.ClientSSLError as error:
            raise Failed(
                f"{where}: no TLS connection ({_reason(error)}); check login.oidc.tls_ca_file"
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Failed(f"{where} cannot be reached ({_reason(error)}); is the provider up?") from error

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        file = self._settings.tls_ca_file
        trusted: ssl.SSLContext | bool = True
        if file is not None:
            trusted = await asyncio.to_thread(ssl.create_default_context, cafile=str(file))
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Less than all questions together may take: so the failure is known, and told to the next at once.
            timeout=aiohttp.ClientTimeout(total=0.9 * self._settings.deadline_seconds),
            headers={"Accept-Encoding": "identity", "User-Agent": "gpuherd"},
            auto_decompress=False,
        ) as session:
            yield session


async def _capped(response: aiohttp.ClientResponse, where: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise Failed(
                f"{where} responds with more than {MAX_ANSWER_BYTES // 1_048_576} MiB; is this an OpenID "
                "provider?"
            )
    return bytes(body)


def _basic(client_id: str, secret: str) -> str:
    """Give the Authorization header; both parts are encoded as in a form first (RFC 6749, 2.3.1)."""
    text = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return "Basic " + base64.b64encode(text.encode()).decode()


def _shown(url: str) -> str:
    """Give an address for messages, without its query."""
    parts = urlsplit(url)
    return clean(f"{parts.scheme}://{parts.netloc}{parts.path}", 200)


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return clean(system_reason(error), 160)
    cause = getattr(error, "certificate_error", None) or error
    return clean(getattr(cause, "verify_message", None) or str(cause) or type(error).__name__, 160)
