"""Secrets of nodes that listen: all made from one master secret, so that the hub keeps one and a node only its own."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
from pathlib import Path

from gpuherd.auth.secrets import new_secret
from gpuherd.model.errors import Misconfigured

__all__ = ["LISTEN_SECRET_PREFIX", "MASTER_SECRET_PREFIX", "load_or_create_master", "node_secret"]

log = logging.getLogger(__name__)

MASTER_SECRET_PREFIX = "ghm_"  # noqa: S105 - a prefix, like those of the other secrets
LISTEN_SECRET_PREFIX = "ghl_"  # noqa: S105

_PURPOSE = b"gpuherd pull v1\0"
_MASTER = re.compile(rb"ghm_[A-Za-z0-9_-]{43}\n?")


def node_secret(master: bytes, node_id: str) -> str:
    """Give the secret that the hub and one node share; always the same for the same node."""
    made = hmac.digest(master, _PURPOSE + node_id.encode(), hashlib.sha256)
    return LISTEN_SECRET_PREFIX + base64.urlsafe_b64encode(made).decode().rstrip("=")


def load_or_create_master(file: Path) -> bytes:
    """Read the master secret, making one in a file of mode 0600 if there is none yet. Blocking.

    ``Misconfigured`` if the file cannot be read or written, others may read it, or it holds something else.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            return _read(file)
        file.parent.mkdir(
            mode=0o700, parents=True, exist_ok=True
        )  # a secret may be wanted before the hub first runs
        _create(file)
        # Told aloud: where a path is misspelt, this is why no node believes the hub any more.
        log.warning(
            "created a new secret for listening nodes in %s; give each node what `gpuherd node secret NAME` prints",
            file,
        )
        return _read(file)
    except OSError as error:
        raise Misconfigured(
            f"cannot save the secret for listening nodes in {file}: {error.strerror}; let this user read and "
            "write it"
        ) from error


def _read(file: Path) -> bytes:
    with file.open("rb") as stream:
        if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
            raise Misconfigured(
                f"{file}: other users can read this secret and could act as the hub towards every "
                f"listening node; run `chmod 600 {file}`"
            )
        content = stream.read(4096)
    if not _MASTER.fullmatch(content):
        raise Misconfigured(
            f"{file}: does not contain a secret created by gpuherd; restore it from a backup, or delete it "
            "and give every listening node its new secret"
        )
    return content.strip()


def _create(file: Path) -> None:
    """Write a new secret whole or not at all; if another process was faster, its secret stays."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(new_secret(MASTER_SECRET_PREFIX).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, file)
    finally:
        temporary.unlink()
