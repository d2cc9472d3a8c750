"""The listed nodes as of last time, kept in a file: a hub that starts while a list cannot be had still has them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.model.targets import NodeWay, Target

__all__ = ["FILE_NAME", "Arrival", "KnownNodes", "load_known", "save_known"]

log = logging.getLogger(__name__)

FILE_NAME = "known-nodes.json"
"""Its name in the hub's state folder."""


class Arrival(Struct, frozen=True, kw_only=True):
    """A node that nobody listed and that came by itself."""

    name: str
    way: NodeWay
    interval_seconds: float
    place: str = ""
    sender: str = ""
    """The address that speaks for it, where nothing better proves who that is."""


class KnownNodes(Struct, frozen=True, kw_only=True):
    """Every list's last good nodes by the list's name, and those that came by themselves."""

    groups: dict[str, tuple[Target, ...]] = {}
    arrivals: tuple[Arrival, ...] = ()


def load_known(file: Path) -> KnownNodes:
    """Read the file; a missing or damaged one is as good as none: the lists will name the nodes again."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=KnownNodes)
    except FileNotFoundError:
        return KnownNodes()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("%s cannot be read (%s); nodes show up again as their lists name them", file, error)
        return KnownNodes()


def save_known(file: Path, known: KnownNodes) -> None:
    """Write the file, whole or not at all. Raises ``OSError``."""
    fresh = file.with_name(f".{file.name}.new")
    with fresh.open("wb") as stream:
        stream.write(msgspec.json.encode(known))
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(file)
