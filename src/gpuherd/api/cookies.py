"""The browser's part of a login: one cookie that scripts cannot read and other sites cannot send along with writes."""

from __future__ import annotations

from gpuherd.api.asgi import Scope
from gpuherd.api.sender import Sender

__all__ = ["cleared_cookie", "session_cookie", "session_secret"]

# The prefix makes browsers insist on Secure, on no Domain and on Path=/: no other host can set or shadow it.
SECURE_NAME = "__Host-gpuherd"
PLAIN_NAME = "gpuherd"
MAX_COOKIES_LENGTH = 16_384


def _name(sender: Sender) -> str:
    return SECURE_NAME if sender.is_https else PLAIN_NAME


def _flags(sender: Sender) -> str:
    return "Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if sender.is_https else "")


def session_cookie(secret: str, sender: Sender, *, lifetime_seconds: float) -> str:
    """Give the ``Set-Cookie`` header of a new login."""
    return f"{_name(sender)}={secret}; Max-Age={int(lifetime_seconds)}; {_flags(sender)}"


def cleared_cookie(sender: Sender) -> str:
    """Give the ``Set-Cookie`` header that makes the browser forget."""
    return f"{_name(sender)}=; Max-Age=0; {_flags(sender)}"


def session_secret(scope: Scope, sender: Sender) -> str | None:
    """Give what the browser's cookie holds. Over HTTPS only the cookie that no other host could have set counts."""
    wanted = _name(sender)
    for name, value in scope["headers"]:
        if name != b"cookie" or len(value) > MAX_COOKIES_LENGTH:
            continue
        for part in bytes(value).decode("latin-1").split(";"):
            key, _, content = part.strip().partition("=")
            if key == wanted:
                return content.strip().strip('"')
    return None
