"""What a way may need besides its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from msgspec import Struct, structs

from gpuherd.sources.push import NodeLinks

__all__ = ["ACCEPTED_KEYS", "PULL_SECRET", "Surroundings", "located"]

S = TypeVar("S", bound=Struct)
ACCEPTED_KEYS = "accepted-host-keys"
"""File in the hub's folder with the SSH host keys that were accepted through gpuherd."""
PULL_SECRET = "pull.secret"  # noqa: S105 - a file name
"""File in the hub's folder with the secret that the listening nodes' secrets are made from."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """The hub around a way."""

    state_dir: Path
    links: NodeLinks
    folder: Path
    """Where relative paths of the configuration begin."""


def located(settings: S, folder: Path) -> S:
    """Make every path of the settings a full one."""
    changes: dict[str, object] = {}
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, Path):
            changes[name] = folder / value.expanduser()
        elif isinstance(value, tuple) and value and all(isinstance(part, Path) for part in value):
            changes[name] = tuple(folder / part.expanduser() for part in value)
    return structs.replace(settings, **changes) if changes else settings
