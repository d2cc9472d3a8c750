"""Names of nodes and users for a shell to complete: those seen last, kept for a while; no key press asks a hub."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from gpuherd.client.herd_views import Herd

__all__ = [
    "complete_node",
    "complete_node_or_user",
    "complete_place",
    "complete_user",
    "known_nodes",
    "remember_names",
]

FRESH_SECONDS = 60.0
"""Younger ones are not written again."""
KEPT_SECONDS = 7 * 86_400.0
MOST_NAMES = 20_000
_PLAIN = re.compile(r"[A-Za-z0-9][\w.@+-]{0,79}", re.ASCII)
"""Names that a shell takes as they are; of others a node could make a command line."""


def _file() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuherd/names.json"


def remember_names(herd: Herd) -> None:
    """Keep the names in a herd; that this cannot be done is no harm."""
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        file = _file()
        with contextlib.suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime < FRESH_SECONDS:
                return
        import json

        names = {
            "nodes": [node.name for node in herd.nodes if _PLAIN.fullmatch(node.name)][:MOST_NAMES],
            "users": sorted(
                {user for _, gpu in herd.units() for user in gpu.users if user and _PLAIN.fullmatch(user)}
            )[:MOST_NAMES],
        }
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                json.dump(names, opened)
            fresh.replace(file)
        finally:
            fresh.unlink(missing_ok=True)


def _known(kind: str, incomplete: str) -> list[str]:
    import json

    try:
        file = _file()
        if time.time() - file.stat().st_mtime > KEPT_SECONDS:
            return []
        names = json.loads(file.read_bytes())[kind]
        return [name for name in names if _PLAIN.fullmatch(name) and name.startswith(incomplete)]
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return []


def known_nodes(incomplete: str) -> list[str]:
    """Give the nodes seen last whose name begins so."""
    return _known("nodes", incomplete)


def complete_node(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Complete the name of a node."""
    return _known("nodes", incomplete)


def complete_user(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Complete the name of someone who had a GPU."""
    return _known("users", incomplete)


def complete_node_or_user(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Complete either."""
    return [*_known("nodes", incomplete), *_known("users", incomplete)]


def complete_place(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Complete the node of a place; its number is for the user to write."""
    return [f"{name}/" for name in _known("nodes", incomplete)]
