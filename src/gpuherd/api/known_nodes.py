"""The listed nodes as of last time, kept in a file: a hub that starts while a list cannot be had still has them."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.auth.enrolment import node_id_for
from gpuherd.model.errors import Refused
from gpuherd.model.targets import NodeWay, Target

__all__ = ["FILE_NAME", "Arrival", "KnownNodes", "listed_ids", "load_known", "save_known"]

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
    shown: str = ""
    """What people call it, if that is another name."""


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
        log.warning(
            "cannot read %s (%s); configured nodes appear again when their lists are read", file, error
        )
        return KnownNodes()


def listed_ids(known: KnownNodes) -> frozenset[str]:
    """Return the ids of all nodes that are in lists or reported by themselves."""
    names = [target.name for targets in known.groups.values() for target in targets]
    names += [arrival.name for arrival in known.arrivals]
    ids = set()
    for name in names:
        with contextlib.suppress(Refused):  # the hub also leaves out a name that makes no id
            ids.add(node_id_for(name))
    return frozenset(ids)


def save_known(file: Path, known: KnownNodes) -> None:
    """Write the file, whole or not at all. Raises ``OSError``."""
    fresh = file.with_name(f".{file.name}.new")
    with fresh.open("wb") as stream:
        stream.write(msgspec.json.encode(known))
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(file)
