"""The browser's part of a login: one cookie that scripts cannot read and other sites cannot send along with writes."""

from __future__ import annotations

from gpuherd.api.asgi import Scope
from gpuherd.api.sender import Sender

__all__ = ["cleared_cookie", "cookie_name", "cookie_path", "session_cookie", "session_secret"]

MAX_COOKIES_LENGTH = 16_384


def cookie_name(sender: Sender, mount: str, name: str = "gpuherd") -> str:
    """Return the name of a cookie.

    Browsers take ``__Host-`` only with Secure, no Domain and Path=/: no other host can set or shadow such a cookie.
    Below a base path, where other applications have the same origin, the path comes first and ``__Secure-`` has to do.
    """
    if not sender.is_https:
        return name
    return f"__Secure-{name}" if mount else f"__Host-{name}"


def cookie_path(mount: str) -> str:
    """Return the path below which browsers send the cookie: that of the hub, and no other application's."""
    return mount or "/"


def _flags(sender: Sender, mount: str) -> str:
    return f"Path={cookie_path(mount)}; HttpOnly; SameSite=Lax" + ("; Secure" if sender.is_https else "")


def session_cookie(secret: str, sender: Sender, mount: str, *, lifetime_seconds: float) -> str:
    """Give the ``Set-Cookie`` header of a new login."""
    return f"{cookie_name(sender, mount)}={secret}; Max-Age={int(lifetime_seconds)}; {_flags(sender, mount)}"


def cleared_cookie(sender: Sender, mount: str) -> str:
    """Give the ``Set-Cookie`` header that makes the browser forget."""
    return f"{cookie_name(sender, mount)}=; Max-Age=0; {_flags(sender, mount)}"


def session_secret(scope: Scope, sender: Sender, mount: str) -> str | None:
    """Give what the browser's cookie holds; over HTTPS only the cookie that is bound to HTTPS counts.

    A host of the same domain can set a second ``__Secure-`` cookie: of two, neither counts. Below a base path the
    cookie of earlier releases, ``__Host-`` with Path=/, is good until it ends.
    """
    wanted = cookie_name(sender, mount)
    found = _found(scope, wanted)
    if not found and wanted.startswith("__Secure-"):
        found = _found(scope, cookie_name(sender, ""))
    return found[0] if len(found) == 1 or (found and not wanted.startswith("__Secure-")) else None


def _found(scope: Scope, wanted: str) -> list[str]:
    return [
        content.strip().strip('"')
        for name, value in scope["headers"]
        if name == b"cookie" and len(value) <= MAX_COOKIES_LENGTH
        for key, _, content in (
            part.strip().partition("=") for part in bytes(value).decode("latin-1").split(";")
        )
        if key == wanted
    ]
