"""The records of a hub: one database, one pool of connections, the verbs of every part. Light to import."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Engine

from gpuherd.api.settings import HubSettings
from gpuherd.records.audit import AuditRecords
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records, records_file
from gpuherd.records.devices import DeviceRecords
from gpuherd.records.nodes import NodeRecords
from gpuherd.records.people import PeopleRecords

__all__ = ["OpenRecords", "open_hub_records"]


class OpenRecords(Struct, frozen=True, kw_only=True):
    """Everything that a hub keeps for good. Its verbs block."""

    engine: Engine
    nodes: NodeRecords
    people: PeopleRecords
    audit: AuditRecords
    bookings: BookingRecords
    devices: DeviceRecords

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_hub_records(settings: HubSettings) -> OpenRecords:
    """Open the records that the settings name. Blocking; ``Misconfigured`` if they cannot be opened."""
    engine = open_records(settings.records_url or records_file(settings.state_dir))
    return OpenRecords(
        engine=engine,
        nodes=NodeRecords(engine),
        people=PeopleRecords(engine),
        audit=AuditRecords(engine),
        bookings=BookingRecords(engine),
        devices=DeviceRecords(engine),
    )
