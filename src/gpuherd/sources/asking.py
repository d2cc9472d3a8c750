"""One HTTP question to a node and its answer: bounded in time and size, no redirects, errors as sentences."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import aiohttp
from yarl import URL

from gpuherd.model.errors import system_reason
from gpuherd.model.targets import Target
from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.resolving import NodeResolver

__all__ = ["HttpAnswer", "HttpQuestions"]

MAX_ANSWER_BYTES = 4 * 2**20


class HttpAnswer(NamedTuple):
    """What a node answered."""

    status: int
    body: bytes


class HttpQuestions:
    """Asks many nodes over one session. Made when the first question is asked: it belongs to that event loop."""

    def __init__(self, *, deadline_seconds: float, content_type: str) -> None:
        self._deadline_seconds = deadline_seconds
        self._content_type = content_type
        self._session: aiohttp.ClientSession | None = None
        self._resolver: NodeResolver | None = None

    async def get(self, target: Target, port: int, path: str) -> HttpAnswer:
        """Get and read the whole answer; ``ContactFailed`` names the node and says what to do."""
        return await self._ask("GET", target, port, path, None)

    async def post(self, target: Target, port: int, path: str, body: bytes) -> HttpAnswer:
        """Post and read the whole answer; ``ContactFailed`` names the node and says what to do."""
        return await self._ask("POST", target, port, path, body)

    async def _ask(self, method: str, target: Target, port: int, path: str, body: bytes | None) -> HttpAnswer:
        where = f"{target.address} port {port}"
        try:
            url = URL.build(scheme="http", host=target.address, port=port, path=path)
            async with (
                asyncio.timeout(self._deadline_seconds),
                self._opened().request(method, url, data=body, allow_redirects=False) as response,
            ):
                return HttpAnswer(response.status, await _capped(response, where))
        except ContactFailed:
            raise
        except TimeoutError as error:
            raise ContactFailed(
                "timeout",
                f"{where} did not respond within {self._deadline_seconds:g} s: the node may be overloaded, "
                "or a firewall drops the packets",
            ) from error
        except aiohttp.ClientConnectorError as error:
            raise ContactFailed("unreachable", _unreachable(where, error)) from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise ContactFailed("link_lost", f"{where} closed the connection without a response") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise ContactFailed(
                "garbled", f"{where} does not speak valid HTTP: {clean(str(error), 160)}"
            ) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._resolver = NodeResolver()
            self._session = aiohttp.ClientSession(
                # Each node has one question under way at most. A limit here would let nodes that hang delay the others.
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, resolver=self._resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Content-Type": self._content_type, "Accept-Encoding": "identity"},
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
            )
        return self._session


async def _capped(response: aiohttp.ClientResponse, where: str) -> bytes:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ContactFailed("garbled", f"{where} sends a compressed response that was not requested")
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise ContactFailed(
                "too_large",
                f"{where} responds with more than {MAX_ANSWER_BYTES // 2**20} MiB; is another program on "
                "this port?",
            )
    return bytes(body)


def _unreachable(where: str, error: aiohttp.ClientConnectorError) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{where}: the name cannot be resolved; check the list of nodes and DNS"
    reason = clean(system_reason(error), 80)
    return f"{where} cannot be reached ({reason}): is the tool running there, and the port open?"
