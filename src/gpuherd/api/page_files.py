"""The built page, read once into memory: what is served is a look-up, so no path can lead elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import html
import mimetypes
import re
from pathlib import Path

from msgspec import Struct

from gpuherd.api.asgi import Scope, Send, answer, header
from gpuherd.api.errors import HttpError

__all__ = ["PAGE_FOLDER", "PageFiles"]

PAGE_FOLDER = Path(__file__).parent / "page"
"""Where the package's build puts the page."""

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
_HASHED = re.compile(r"-[A-Za-z0-9_-]{8,}\.\w+$")
"""Vite puts a hash of the content into names: such a file never changes."""
_COMPRESSIBLE = frozenset({".css", ".html", ".js", ".json", ".map", ".mjs", ".svg", ".txt", ".webmanifest"})
_NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>gpuherd</title></head>
<body>
<h1>gpuherd is running, but its page was not built</h1>
<p>Packages from the index contain it. In a source tree, build it with <code>pip install -e .</code>
and start again.</p>
<p>The data is there all the same: <a href="api/v1/fleet">api/v1/fleet</a>,
<a href="api/v1/health">api/v1/health</a>.</p>
</body>
</html>
"""


class _File(Struct, frozen=True):
    body: bytes
    compressed: bytes | None
    etag: bytes
    media_type: bytes
    cache_control: bytes


def _file(name: str, body: bytes) -> _File:
    suffix = Path(name).suffix
    media_type = mimetypes.types_map.get(suffix, "application/octet-stream")
    if suffix in (".js", ".mjs"):
        media_type = "text/javascript"
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    compressed = gzip.compress(body, 9, mtime=0) if suffix in _COMPRESSIBLE else None
    return _File(
        body,
        compressed if compressed is not None and len(compressed) < len(body) else None,
        b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode(),
        media_type.encode(),
        b"public, max-age=31536000, immutable" if _HASHED.search(name) else b"no-cache",
    )


class PageFiles:
    """Serves the page under the hub's base path."""

    def __init__(self, folder: Path, mount: str) -> None:
        """Read the folder; a missing one gives a page that says how to build it."""
        self._files: dict[str, _File] = {}
        if (folder / "index.html").is_file():
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    name = path.relative_to(folder).as_posix()
                    self._files[f"/{name}"] = _file(name, path.read_bytes())
            index = self._files["/index.html"].body.decode()
        else:
            index = _NOT_BUILT
        base = f'<base href="{html.escape(mount)}/">'
        self._files["/"] = self._files["/index.html"] = _file(
            "index.html", index.replace("<head>", f"<head>{base}", 1).encode()
        )

    async def serve(self, scope: Scope, send: Send, path: str) -> None:
        """Answer a request for ``path``, which is relative to the base path. ``HttpError`` if there is nothing."""
        file = self._files.get(path)
        if file is None:
            raise HttpError(404, "not_found", "there is nothing at this address")
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpError(
                405, "method_not_allowed", "this address can only be read", headers={"Allow": "GET, HEAD"}
            )
        headers = [
            (b"etag", file.etag),
            (b"cache-control", file.cache_control),
            (b"vary", b"accept-encoding"),
            (b"content-security-policy", _POLICY),
        ]
        if file.etag.decode() in (header(scope, b"if-none-match") or ""):
            await answer(send, 304, headers, b"")
            return
        body = file.body
        if file.compressed is not None and "gzip" in (header(scope, b"accept-encoding") or ""):
            headers.append((b"content-encoding", b"gzip"))
            body = file.compressed
        headers.append((b"content-type", file.media_type))
        await answer(send, 200, headers, body if scope["method"] == "GET" else b"")
