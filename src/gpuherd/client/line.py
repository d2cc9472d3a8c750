"""One request at a time to one hub: verified TLS, a deadline, a cap on what comes back, no redirects."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from gpuherd import __version__
from gpuherd.client.errors import LOGIN_NEEDED, NOT_A_HUB, HubRefused, HubSilent
from gpuherd.client.http_exchange import Answer, NotHttp, exchange
from gpuherd.client.views import ErrorBody, HubError
from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import clean

if TYPE_CHECKING:
    import http.client
    from ssl import SSLContext

__all__ = ["HubLine", "HubUrl", "OpenAnswer", "plain_json"]

DEADLINE_SECONDS = 30.0
MAX_ANSWER_BYTES = 256 * 2**20
"""The herd of 5,000 nodes of eight GPUs is 40 to 60 MiB."""


class HubUrl(Struct, frozen=True, kw_only=True):
    """A hub's address, taken apart."""

    is_secure: bool
    host: str
    port: int
    base_path: str

    @classmethod
    def parse(cls, url: str) -> HubUrl:
        """Check an address; ``Misconfigured`` says what is wrong with it, without showing a password in it."""
        example = "write it like https://gpus.example.org"
        try:
            parts = urlsplit(url if "://" in url else f"https://{url}")
            port = parts.port
        except ValueError:
            raise Misconfigured(f"the hub's address cannot be read; {example}") from None
        if parts.username is not None or parts.password is not None:
            raise Misconfigured(
                f"the hub's address must not contain a name or password; {example}, and log in"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(url):
            raise Misconfigured(f'"{clean(url, 80)}" is not an address of a hub; {example}')
        if parts.query or parts.fragment:
            raise Misconfigured(f"the hub's address must end before any ? or #; {example}")
        is_secure = parts.scheme == "https"
        return cls(
            is_secure=is_secure,
            host=parts.hostname,
            port=port or (443 if is_secure else 80),
            base_path=parts.path.rstrip("/"),
        )

    @property
    def is_exposed(self) -> bool:
        """Whether others on the way could read along."""
        if self.is_secure or self.host == "localhost":
            return False
        import ipaddress  # noqa: PLC0415 - most hubs are reached by https

        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == (443 if self.is_secure else 80) else f":{self.port}"
        return f"{'https' if self.is_secure else 'http'}://{host}{port}{self.base_path}"


def _is_plain(url: str) -> bool:
    return re.fullmatch(r"[!-~]+", url) is not None


class HubLine:
    """Requests to one hub, as someone or nobody."""

    def __init__(
        self,
        url: HubUrl,
        *,
        token: str | None = None,
        ca_file: str | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.url = url
        self._token = token
        self._cookies: dict[str, str] = {}
        self._deadline_seconds = deadline_seconds
        self._tls = _tls(ca_file) if url.is_secure else None

    def with_deadline(self, seconds: float) -> HubLine:
        """Give a line to the same hub, as the same person, whose requests may take so long."""
        import copy  # noqa: PLC0415 - a look does without

        line = copy.copy(self)
        line._deadline_seconds = seconds  # noqa: SLF001 - a line as this one
        return line

    @property
    def has_token(self) -> bool:
        """Whether it is asked as someone."""
        return self._token is not None

    def ask(
        self, method: str, path: str, body: Any = None, *, idempotency_key: str | None = None, **query: Any
    ) -> bytes:
        """Send a request below ``/api/v1/`` and give the answer's body.

        ``idempotency_key`` lets the hub recognise a request that it has already received.
        ``HubRefused`` is what the hub has to say against it; ``HubSilent`` if it does not answer.
        """
        target = f"{self.url.base_path}/api/v1/{quote(path, safe='/')}"
        given = {key: value for key, value in query.items() if value is not None}
        target += f"?{urlencode(given, doseq=True)}" if given else ""
        content = None if body is None else msgspec.json.encode(body)
        answer = self._exchange(method, target, content, idempotency_key)
        if not 200 <= answer.status < 300:
            location, retry_after = (
                next(iter(answer.all(name)), None) for name in ("location", "retry-after")
            )
            raise self._refusal(answer.status, location, answer.body, retry_after)
        self._keep_cookies(answer)
        return answer.body

    def follow(self, path: str, *, silence_seconds: float) -> OpenAnswer:
        """Ask for an answer that does not end by itself, such as the live stream; fails as ``ask`` does."""
        import http.client  # noqa: PLC0415 - one question is asked without

        target = f"{self.url.base_path}/api/v1/{quote(path, safe='/')}"
        connection = self._connect()
        headers = {**self._headers(None), "Accept": "text/event-stream", "Accept-Encoding": "gzip"}
        try:
            connection.request("GET", target, None, headers)
            gate = connection.sock
            gate.settimeout(silence_seconds)
            response = connection.getresponse()
            if response.status != 200:
                answer = response.read(MAX_ANSWER_BYTES)
                connection.close()
                raise self._refusal(response.status, response.headers.get("Location"), answer)
        except TimeoutError:
            connection.close()
            raise HubSilent(f"{self.url} did not respond in time") from None
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise HubSilent(f"{self.url} cannot be reached: {_reason(error)}") from None
        return OpenAnswer(self.url, gate, response)

    def forget_cookies(self) -> None:
        """Be nobody again, as far as cookies go."""
        self._cookies.clear()

    def _exchange(
        self, method: str, target: str, content: bytes | None, idempotency_key: str | None
    ) -> Answer:
        headers = self._headers(content)
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        try:
            answer = exchange(
                (self.url.host, self.url.port),
                method,
                target,
                headers,
                content,
                tls=self._tls,
                silence_seconds=self._deadline_seconds,
                max_bytes=MAX_ANSWER_BYTES,
            )
        except TimeoutError:
            look = "" if method == "GET" else "; the change may have been made: check before you try again"
            raise HubSilent(f"{self.url} did not respond within {self._deadline_seconds:g} s{look}") from None
        except (OSError, EOFError, NotHttp) as error:
            raise HubSilent(f"{self.url} cannot be reached: {_reason(error)}") from None
        if len(answer.body) > MAX_ANSWER_BYTES:
            raise HubSilent(f"{self.url} responds with more than {MAX_ANSWER_BYTES >> 20} MiB")
        return answer

    def _connect(self) -> http.client.HTTPConnection:
        import http.client  # noqa: PLC0415 - one question is asked without

        if self._tls is None:
            return http.client.HTTPConnection(self.url.host, self.url.port, timeout=self._deadline_seconds)
        return http.client.HTTPSConnection(
            self.url.host, self.url.port, timeout=self._deadline_seconds, context=self._tls
        )

    def _headers(self, content: bytes | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"gpuherd/{__version__}"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        return headers

    def _who_is_asked(self) -> str:
        """Say that nobody is known here; the hub's own words are for programs."""
        if self._token is None:
            return f"{self.url} requires a login"
        return f"{self.url} does not accept this token; it may have expired or been revoked"

    def _keep_cookies(self, answer: Answer) -> None:
        for cookie in answer.all("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name.strip()] = value.strip()

    def _refusal(
        self, status: int, location: str | None, answer: bytes, retry_after: str | None = None
    ) -> HubRefused | HubSilent:
        if 300 <= status < 400:
            place = clean(location or "nowhere", 200)
            return HubSilent(f"{self.url} redirects to {place}; use that address")
        try:
            told = msgspec.json.decode(answer, type=ErrorBody).error
            if told.code == LOGIN_NEEDED:
                told = msgspec.structs.replace(told, message=self._who_is_asked())
            return HubRefused(status, told, retry_after_seconds=_seconds(retry_after), hub=str(self.url))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        if status in (502, 503, 504):
            return HubSilent(f"{self.url} responds with {status}: the hub behind it is down or busy")
        told = HubError(
            code=NOT_A_HUB, message=f"{self.url} responds with {status}, but not like a gpuherd hub"
        )
        return HubRefused(status, told, retry_after_seconds=_seconds(retry_after))


class OpenAnswer:
    """An answer that is read as it comes. ``close`` may be called from elsewhere while ``read`` waits."""

    def __init__(self, url: HubUrl, gate: socket.socket, response: http.client.HTTPResponse) -> None:
        self._url = url
        self._gate = gate
        self._response = response
        self.is_gzip = response.headers.get("Content-Encoding", "").strip().lower() == "gzip"
        self.kind = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()

    def be_patient(self, silence_seconds: float) -> None:
        """Set for how long nothing may come."""
        self._gate.settimeout(silence_seconds)

    def read(self) -> bytes:
        """Give what came, empty at the end. ``HubSilent`` if nothing comes for too long, or the line breaks."""
        import http.client  # noqa: PLC0415 - is loaded by now

        try:
            return self._response.read1(65_536)
        except TimeoutError:
            raise HubSilent(f"{self._url} has stopped sending") from None
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
            AttributeError,
        ):  # the last two: closed meanwhile
            raise HubSilent(f"the connection to {self._url} broke") from None

    def close(self) -> None:
        """End it, also for whoever waits in ``read``."""
        with contextlib.suppress(OSError):
            self._gate.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Give the socket back; only where nobody reads any more."""
        self._response.close()
        self._gate.close()


def _seconds(text: str | None) -> int | None:
    """Read a span in whole seconds; none for a date or nonsense."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,6}", text.strip()) else None


def _reason(error: Exception) -> str:
    match error:
        case EOFError() | ConnectionResetError():  # http.client's way to say the first is of the second kind
            return "it closed the connection; is it an https address?"
        case socket.gaierror():
            return "the host name is unknown"
        case ConnectionRefusedError():
            return "nothing listens there"
        case OSError() if getattr(error, "reason", None) in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return "it does not speak TLS; is it an http address?"
        case OSError() if (told := getattr(error, "verify_message", None)) is not None:
            return f"its certificate is not trusted ({told})"
        case OSError():
            return error.strerror or type(error).__name__
        case _:
            return f"it does not speak HTTP ({str(error) or type(error).__name__})"


def _tls(ca_file: str | None) -> SSLContext:
    import ssl  # noqa: PLC0415 - plain connections do without

    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise Misconfigured(
            f"{ca_file} cannot be used ({error.strerror or error}); it must contain certificates in PEM format"
        ) from error


def plain_json(answer: bytes) -> str:
    """Give an answer as JSON text in which nothing can act on a terminal."""
    import json  # noqa: PLC0415 - for those who ask for JSON

    return json.dumps(json.loads(answer), indent=2)
