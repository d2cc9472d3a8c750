"""The devices that a hub knew last, read beside it: for commands that need no running hub, and disturb none."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuherd.api.known_nodes import FILE_NAME, KnownNodes, load_known
from gpuherd.auth.enrolment import node_id_for
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.listing import ListedDevice
from gpuherd.fleet.names import Names
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Failed, Refused
from gpuherd.records.nodes import NodeRecord
from gpuherd.wire.codec import agent_decoder
from gpuherd.wire.frames import FactsFrame
from gpuherd.wiring.config import Config
from gpuherd.wiring.shown_names import display_names

__all__ = ["known_herd"]


def known_herd(config: Config, enrolled: Iterable[NodeRecord]) -> Herd:
    """Give the herd as the hub last knew it; ``Failed`` if its state cannot be read. Blocking."""
    known = load_known(config.hub.state_dir / FILE_NAME)
    names, shown = _names(known, enrolled), display_names(config)
    dropping = {arrival.shown or arrival.name for arrival in known.arrivals if arrival.way == "file"}
    devices: list[ListedDevice] = []
    for node_id, facts in _kept_devices(config.hub.state_dir / "state.sqlite"):
        if node_id in names:
            node_name = shown.node(node_id, names[node_id], None)
            devices += _listed(node_id, node_name, facts, shown, is_dropped=names[node_id] in dropping)
    return Herd(devices, config.bookings.quiet)


def _names(known: KnownNodes, enrolled: Iterable[NodeRecord]) -> dict[str, str]:
    listed = [target.name for targets in known.groups.values() for target in targets]
    shown = {arrival.name: arrival.shown for arrival in known.arrivals if arrival.shown}
    names: dict[str, str] = {}
    for name in (*listed, *(arrival.name for arrival in known.arrivals)):
        with contextlib.suppress(Refused):  # a name that makes no id is left out by the hub, too
            names[node_id_for(name)] = shown.get(name, name)
    return {**names, **{node.id: node.name for node in enrolled}}


def _kept_devices(file: Path) -> Iterator[tuple[str, tuple[DeviceFacts, ...]]]:
    if not file.exists():
        return
    decoder = agent_decoder()
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=5)
        ) as connection:
            rows = connection.execute("SELECT node_id, facts FROM inventories ORDER BY node_id").fetchall()
    except sqlite3.Error as error:
        raise Failed(f"{file}: the hub's last state cannot be read ({error})") from error
    for node_id, message in rows:
        try:
            frame = None if message is None else decoder.decode(message)
        except Refused:
            continue  # of another version; the node will tell again
        if isinstance(frame, FactsFrame):
            yield node_id, frame.facts.devices


def _listed(
    node_id: str, node_name: str, facts: tuple[DeviceFacts, ...], shown: Names, *, is_dropped: bool
) -> Iterator[ListedDevice]:
    indexes = {one.uuid: one.index for one in facts}
    for one in facts:
        yield ListedDevice(
            ref=DeviceRef(node_id, one.uuid),
            node_name=node_name,
            short_name=shown.gpu(one),
            full_name=one.name,
            index=one.index,
            parent_uuid=one.parent_uuid,
            parent_index=None if one.parent_uuid is None else indexes.get(one.parent_uuid),
            is_partitioned=one.is_partitioned,
            memory_total_bytes=one.memory_total_bytes,
            state="unknown",
            users=frozenset(),
            is_dropped=is_dropped,
        )
