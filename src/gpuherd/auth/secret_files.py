"""Secrets that someone else has made and put into a file for us."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from gpuherd.model.errors import Misconfigured

__all__ = ["read_secret"]

MAX_SECRET_BYTES = 4096
_EXAMPLES = re.compile(
    r"(your|my|the|this|insert|put|enter)*(oidc|ldap)?(client|bind)?(pass|passwd|password|secret)(goes)?(here)?"
    r"|(change|replace|fill)(me|it|this|in)?|(super|top)secret|admin|default|example|none|null|placeholder|tbd|test|todo"
)
_BRACKETS = re.compile(r"<.*>|\$?\{.*\}|\[.*\]|\$\w+")


def read_secret(file: Path, key: str) -> str:
    """Read one line. Blocking.

    ``Misconfigured`` names the ``key`` of the configuration: if there is no such file, everyone may read it, or what it
    holds is no secret but what stood in an example.
    """
    try:
        with file.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            content = stream.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise Misconfigured(
            f"{key}: cannot read {file}: {error.strerror}; put the secret there and let the hub's user read it"
        ) from error
    if mode & 0o007:
        raise Misconfigured(f"{key}: everyone on this machine can read {file}; run `chmod o= {file}`")
    try:
        secret = content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        secret = ""
    if not secret or len(content) > MAX_SECRET_BYTES or not secret.isprintable():
        raise Misconfigured(f"{key}: {file} does not contain a secret; it must be one line of text")
    if _is_example(secret):
        raise Misconfigured(f"{key}: {file} still has the text of the example; put the real secret there")
    return secret


def _is_example(secret: str) -> bool:
    letters = "".join(character for character in secret.lower() if character.isalnum())
    return (
        _EXAMPLES.fullmatch(letters) is not None
        or len(set(letters)) <= 1
        or _BRACKETS.fullmatch(secret.strip()) is not None
    )
