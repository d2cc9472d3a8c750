"""Secrets that are random, shown once and kept only as a digest."""

from __future__ import annotations

import hashlib
import re
import secrets

__all__ = [
    "API_TOKEN_PREFIX",
    "JOIN_TOKEN_PREFIX",
    "LOCAL_KEY_PREFIX",
    "NODE_CREDENTIAL_PREFIX",
    "SESSION_PREFIX",
    "SETUP_CODE_PREFIX",
    "digest",
    "is_node_credential",
    "is_secret",
    "new_id",
    "new_secret",
]

# Prefixes, so that leaked secrets are recognised by scanners.
JOIN_TOKEN_PREFIX = "ghj_"  # noqa: S105
NODE_CREDENTIAL_PREFIX = "ghn_"
API_TOKEN_PREFIX = "ghu_"  # noqa: S105
SESSION_PREFIX = "ghs_"
SETUP_CODE_PREFIX = "ghc_"
LOCAL_KEY_PREFIX = "ghk_"

_RANDOM_BYTES = 32
_RANDOM = re.compile(r"[A-Za-z0-9_-]{43}")


def new_secret(prefix: str) -> str:
    """Make a secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(_RANDOM_BYTES)


def new_id() -> str:
    """Make a name for something that people may see: 64 random bits."""
    return secrets.token_hex(8)


def digest(secret: str) -> str:
    """SHA-256 in hex. No salt or stretching: nobody can guess 256 random bits, and lookups stay cheap."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_secret(text: str, prefix: str) -> bool:
    """Whether this looks like 256 random bits with that prefix; anything else need not be looked up."""
    return text.startswith(prefix) and _RANDOM.fullmatch(text, len(prefix)) is not None


def is_node_credential(secret: str) -> bool:
    """Whether this looks like 256 random bits made by a node for itself."""
    return is_secret(secret, NODE_CREDENTIAL_PREFIX)
