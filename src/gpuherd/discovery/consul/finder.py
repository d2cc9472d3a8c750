"""Asks Consul for a service's nodes and lets it hold the question until they change."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.consul.address import service_address
from gpuherd.discovery.consul.answers import parse_services
from gpuherd.discovery.files import Reading, located, read_text
from gpuherd.discovery.settings import ConsulSettings
from gpuherd.model.errors import Failed, Misconfigured, system_reason
from gpuherd.model.targets import NodeWay, Target
from gpuherd.model.text import clean

__all__ = ["ConsulFinder"]

MAX_ANSWER_BYTES = 16 * 1024 * 1024
ANSWER_SECONDS = 10.0
PAUSE_SECONDS = 1.0
"""Never ask again sooner: a service that flaps would otherwise be asked in a tight loop."""
RETRY_SECONDS = 5.0
"""Ask a Consul that failed again after this."""

log = logging.getLogger(__name__)


class ConsulFinder:
    """The nodes of one service. See docs/discovery.md for what is asked."""

    def __init__(
        self,
        settings: ConsulSettings,
        *,
        base: Path,
        way: NodeWay = "ssh",
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Check the settings; ``Misconfigured`` if the address cannot be used. Connects at the first ``find``."""
        self._address = service_address(settings)
        self._settings = settings
        self._token_file = None if settings.token_file is None else located(settings.token_file, base)
        self._ca_file = None if settings.tls_ca_file is None else located(settings.tls_ca_file, base)
        self._reading = Reading(str(self._token_file))
        self._monotonic = monotonic
        self._jitter = jitter
        self._session: aiohttp.ClientSession | None = None
        self._index: int | None = None  # None: the service does not let us wait
        self._held: bytes | None = None  # what a held question brought, for the next find()
        self._is_failing = False
        self._told: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._address.place

    async def find(self) -> tuple[Target, ...]:
        """See ``Finder.find``. A token without rights gets an empty list from Consul, and so does the caller."""
        answer, self._held = self._held, None
        if answer is None:
            self._index, self._is_failing = None, True
            answer, self._index = await self._ask(self._address.url, ANSWER_SECONDS)
            self._is_failing = False
        targets, complaints = parse_services(
            answer,
            self.name,
            use_node_name=self._settings.use_node_name,
            use_service_port=self._settings.use_service_port,
        )
        if complaints != self._told:
            for complaint in complaints[:10]:
                log.warning("%s", complaint)
            self._told = complaints
        return targets

    async def wait(self) -> None:
        """Return when the service changed, when Consul failed, or after ``every_seconds``."""
        began = self._monotonic()
        if self._index is None:
            pause = (
                min(self._settings.every_seconds, RETRY_SECONDS)
                if self._is_failing
                else self._settings.every_seconds
            )
            await asyncio.sleep(pause * (1 + self._jitter() / 10))
            return
        hold = self._settings.every_seconds
        url = self._address.with_query(index=str(self._index), wait=f"{max(1, round(hold * 1000))}ms")
        before = self._index
        try:
            # Consul adds up to a sixteenth of the time to spread its clients.
            answer, now = await self._ask(url, hold * 17 / 16 + ANSWER_SECONDS)
        except (Failed, Misconfigured):
            self._index = None  # find() asks afresh and says what is wrong
        else:
            # A number that went back means that Consul was restored: ask from the start, as its documents say.
            went_back = now is None or now < before
            self._index, self._held = (None, None) if went_back else (now, answer)
        pause = PAUSE_SECONDS * (1 + self._jitter()) - (self._monotonic() - began)
        if pause > 0:
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Let go of the connection."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _ask(self, url: str, seconds: float) -> tuple[bytes, int | None]:
        """Give the answer's body and its index, None if it has none."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._token_file is not None:
            headers["X-Consul-Token"] = await self._reading.do(lambda: _token(self._token_file))
        if self._session is None:
            self._session = await self._connect()
        try:
            async with (
                asyncio.timeout(seconds),
                # A redirect could carry the token elsewhere.
                self._session.get(url, headers=headers, allow_redirects=False) as response,
            ):
                body = await _body(response, self.name)
                self._check(response, body)
                return body, _index(response.headers.get("X-Consul-Index"))
        except TimeoutError:
            raise Failed(f"{self.name}: no response within {seconds:g} s; is Consul up?") from None
        except aiohttp.ClientSSLError as error:
            await self.close()  # the file of certificates may be put right: read it again next time
            raise Failed(
                f"{self.name}: no TLS connection ({_tls_reason(error)}); check tls_ca_file"
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Failed(f"{self.name}: cannot be reached ({_reason(error)}); is Consul up?") from error

    async def _connect(self) -> aiohttp.ClientSession:
        context: ssl.SSLContext | bool = True
        if self._ca_file is not None:
            try:
                context = await self._reading.do(lambda: ssl.create_default_context(cafile=self._ca_file))
            except (OSError, ssl.SSLError) as error:
                raise Misconfigured(
                    f"{self._ca_file}: the certificates cannot be read ({_reason(error)}); check tls_ca_file"
                ) from error
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1, ssl=context),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    def _check(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        status = response.status
        if status == 200:
            return
        words = quoted(" ".join(body[:200].decode(errors="replace").split()))
        if 300 <= status < 400:
            to = quoted(response.headers.get("Location", ""))
            raise Misconfigured(f"{self.name}: redirects to {to}; set find.url to the right address")
        if status in {401, 403}:
            remedy = "allow it to read the service" if self._token_file else "set token_file"
            raise Misconfigured(f"{self.name}: rejects the token ({status} {words}); {remedy}")
        if status == 429 or status >= 500:
            raise Failed(f"{self.name}: fails ({status} {words})")
        raise Misconfigured(f"{self.name}: responds with {status} {words}; check find.url and find.service")


async def _body(response: aiohttp.ClientResponse, name: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            response.close()
            raise Failed(
                f"{name}: the response is larger than {MAX_ANSWER_BYTES} bytes; is this the address of "
                "Consul?"
            )
    return bytes(body)


def _token(file: Path | None) -> str:
    """Read the token each time it is used, so that a renewed one counts at once."""
    if file is None:
        return ""
    token = read_text(file).strip()
    if not token or not token.isascii() or not token.isprintable() or len(token) > 512:
        raise Misconfigured(f"{file}: does not contain a token; it must be one line with the ACL token")
    return token


def _index(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 20:
        return None
    return max(1, int(text))  # 0 would not wait


def _tls_reason(error: aiohttp.ClientSSLError) -> str:
    """Say what is wrong with the certificate, where that is the reason, and not what all was tried."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    return clean(getattr(cause, "verify_message", None) or getattr(cause, "reason", None) or str(cause), 160)


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return clean(system_reason(error), 120)
    return clean(str(error) or type(error).__name__, 120)
