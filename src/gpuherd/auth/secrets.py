"""Secrets that are random, shown once and kept only as a digest."""

from __future__ import annotations

import hashlib
import re
import secrets

__all__ = ["JOIN_TOKEN_PREFIX", "NODE_CREDENTIAL_PREFIX", "digest", "is_node_credential", "new_secret"]

JOIN_TOKEN_PREFIX = "ghj_"  # noqa: S105 - a prefix, so that leaked secrets are recognised by scanners
NODE_CREDENTIAL_PREFIX = "ghn_"

_RANDOM_BYTES = 32
_NODE_CREDENTIAL = re.compile(NODE_CREDENTIAL_PREFIX + r"[A-Za-z0-9_-]{43}")


def new_secret(prefix: str) -> str:
    """Make a secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(_RANDOM_BYTES)


def digest(secret: str) -> str:
    """SHA-256 in hex. No salt or stretching: nobody can guess 256 random bits, and lookups stay cheap."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_node_credential(secret: str) -> bool:
    """Whether this looks like 256 random bits made by a node for itself."""
    return _NODE_CREDENTIAL.fullmatch(secret) is not None
