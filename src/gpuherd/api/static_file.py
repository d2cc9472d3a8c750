"""Files that do not change while the hub runs: kept in memory with an ETag, compressed once."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Self

from msgspec import Struct

from gpuherd.api.asgi import Headers, Scope, Send, answer, header
from gpuherd.api.errors import HttpError

__all__ = ["BuiltFile", "StaticFile"]

_COMPRESSIBLE = frozenset({".css", ".html", ".js", ".json", ".map", ".mjs", ".svg", ".txt", ".webmanifest"})


class StaticFile(Struct, frozen=True):
    """One file, ready to send."""

    body: bytes
    compressed: bytes | None
    etag: bytes
    media_type: bytes
    cache_control: bytes

    @classmethod
    def of(cls, name: str, body: bytes, *, is_immutable: bool = False) -> Self:
        """Prepare a file; the suffix of its name decides the media type and whether it is worth compressing."""
        suffix = Path(name).suffix
        media_type = mimetypes.types_map.get(suffix, "application/octet-stream")
        if suffix in (".js", ".mjs"):
            media_type = "text/javascript"
        if media_type.startswith("text/"):
            media_type += "; charset=utf-8"
        compressed = gzip.compress(body, 9, mtime=0) if suffix in _COMPRESSIBLE else None
        return cls(
            body,
            compressed if compressed is not None and len(compressed) < len(body) else None,
            b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode(),
            media_type.encode(),
            b"public, max-age=31536000, immutable" if is_immutable else b"no-cache",
        )

    async def serve(self, scope: Scope, send: Send, extra_headers: Headers) -> None:
        """Answer GET and HEAD; ``HttpError`` 405 for other methods."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpError(
                405, "method_not_allowed", "this address is read-only", headers={"Allow": "GET, HEAD"}
            )
        headers = [
            (b"etag", self.etag),
            (b"cache-control", self.cache_control),
            (b"vary", b"accept-encoding"),
            *extra_headers,
        ]
        if self.etag.decode() in (header(scope, b"if-none-match") or ""):
            await answer(send, 304, headers, b"")
            return
        body = self.body
        if self.compressed is not None and "gzip" in (header(scope, b"accept-encoding") or ""):
            headers.append((b"content-encoding", b"gzip"))
            body = self.compressed
        headers.append((b"content-type", self.media_type))
        await answer(send, 200, headers, body if scope["method"] == "GET" else b"")


class BuiltFile:
    """A file whose content is computed on first use, once and in a thread."""

    def __init__(self, name: str, build: Callable[[], bytes]) -> None:
        self._name = name
        self._build = build
        self._file: StaticFile | None = None
        self._building = asyncio.Lock()

    async def serve(self, scope: Scope, send: Send) -> None:
        """Answer GET and HEAD; requests that come during the computation wait for it."""
        if self._file is None:
            async with self._building:
                if self._file is None:
                    self._file = await asyncio.to_thread(lambda: StaticFile.of(self._name, self._build()))
        await self._file.serve(scope, send, [])
