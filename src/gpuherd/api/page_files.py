"""The built page, read once into memory: what is served is a look-up, so no path can lead elsewhere."""

from __future__ import annotations

import html
import re
from pathlib import Path

from gpuherd.api.asgi import Scope, Send, answer, header
from gpuherd.api.errors import HttpError
from gpuherd.api.one_page import FALLBACK, FALLBACK_DIGEST
from gpuherd.api.static_file import StaticFile

__all__ = ["PAGE_FOLDER", "PageFiles"]

PAGE_FOLDER = Path(__file__).parent / "page"
"""Where the package's build puts the page."""
PAGE_PATHS = ("/", "/index.html", "/index", "/gpus")
"""Where the page is; the last two are addresses of the XML-RPC monitor's page, in people's bookmarks."""

_POLICY = (
    b"default-src 'none'; script-src 'self' %b; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    % FALLBACK_DIGEST.encode()
)
_HASHED = re.compile(r"-[A-Za-z0-9_-]{8,}\.\w+$")
"""Vite puts a hash of the content into names: such a file never changes."""
_NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>gpuherd</title></head>
<body>
<h1>gpuherd is running, but its page was not built</h1>
<p>Packages from the index contain it. In a source tree, build it with <code>pip install -e .</code>
and start again.</p>
<p>You can still read the data: <a href="api/v1/fleet">api/v1/fleet</a>,
<a href="api/v1/health">api/v1/health</a>.</p>
</body>
</html>
"""
_MISSING = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Not found · gpuherd</title></head>
<body>
<h1>There is no page at this address</h1>
<p><a href=".">Go to the herd</a></p>
</body>
</html>
"""


def _file(name: str, body: bytes) -> StaticFile:
    return StaticFile.of(name, body, is_immutable=_HASHED.search(name) is not None)


class PageFiles:
    """Serves the page under the hub's base path."""

    def __init__(self, folder: Path, mount: str) -> None:
        """Read the folder; a missing one gives a page that says how to build it."""
        self._files: dict[str, StaticFile] = {}
        if (folder / "index.html").is_file():
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    name = path.relative_to(folder).as_posix()
                    self._files[f"/{name}"] = _file(name, path.read_bytes())
            index = self._files["/index.html"].body.decode()
        else:
            index = _NOT_BUILT
        base = f'<base href="{html.escape(mount)}/">'
        fallback = f"<script>{FALLBACK}</script>" if mount else ""
        self._missing = _MISSING.replace("<head>", f"<head>{base}", 1).encode()
        page = _file("index.html", index.replace("<head>", f"<head>{base}{fallback}", 1).encode())
        self._files |= dict.fromkeys(PAGE_PATHS, page)

    async def serve(self, scope: Scope, send: Send, path: str) -> None:
        """Answer a request for ``path``, which is relative to the base path. ``HttpError`` if there is nothing."""
        file = self._files.get(path)
        if file is None and scope["method"] == "GET" and "text/html" in (header(scope, b"accept") or ""):
            headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", _POLICY)]
            await answer(send, 404, headers, self._missing)
            return
        if file is None:
            raise HttpError(404, "not_found", "there is nothing at this address")
        await file.serve(scope, send, [(b"content-security-policy", _POLICY)])
