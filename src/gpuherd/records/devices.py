"""GPUs that nodes have reported and faults that last: the verbs on their tables. Blocking; one transaction each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs
from sqlalchemy import Connection, Engine, Table, and_, bindparam, delete, insert, select

from gpuherd.model.device_memory import DeviceFault, KnownDevice, MemoryChanges
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.people import HUB, Actor
from gpuherd.records.audit import Deed, write_audit
from gpuherd.records.tables import device_faults, known_devices
from gpuherd.records.transactions import reading, writing

__all__ = ["DeviceRecords"]


class DeviceRecords:
    """What is remembered of devices. Database trouble is ``Failed``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self) -> tuple[tuple[KnownDevice, ...], tuple[DeviceFault, ...]]:
        """Read everything."""
        with reading(self._engine) as connection:
            devices = tuple(
                KnownDevice(
                    node_id=row.node_id,
                    facts=DeviceFacts(
                        uuid=row.uuid,
                        index=row.gpu_index,
                        name=row.name,
                        vendor=row.vendor,
                        memory_total_bytes=row.memory_total_bytes,
                        pci_bus_id=row.slot,
                        serial=row.serial,
                    ),
                    missing_since=row.missing_since,
                )
                for row in connection.execute(
                    select(known_devices).order_by(known_devices.c.node_id, known_devices.c.uuid)
                )
            )
            faults = tuple(
                DeviceFault(**row)
                for row in connection.execute(
                    select(device_faults).order_by(
                        device_faults.c.node_id, device_faults.c.uuid, device_faults.c.code
                    )
                ).mappings()
            )
        return devices, faults

    def save(self, changes: MemoryChanges, *, now: float, by: Actor = HUB) -> None:
        """Write changes with their lines in the audit log, all or nothing."""
        devices = [
            {
                "node_id": device.node_id,
                "uuid": device.facts.uuid,
                "gpu_index": device.facts.index,
                "name": device.facts.name,
                "vendor": device.facts.vendor,
                "memory_total_bytes": device.facts.memory_total_bytes,
                "serial": device.facts.serial,
                "slot": device.facts.pci_bus_id,
                "missing_since": device.missing_since,
            }
            for device in changes.devices.values()
            if device is not None
        ]
        faults = [structs.asdict(fault) for fault in changes.faults.values() if fault is not None]
        with writing(self._engine) as connection:
            _replace(connection, known_devices, changes.devices, devices)
            _replace(connection, device_faults, changes.faults, faults)
            write_audit(connection, [Deed(*note, by, now) for note in changes.notes])


def _replace(
    connection: Connection, table: Table, keys: Iterable[tuple[str, ...]], rows: list[dict[str, Any]]
) -> None:
    """Write rows in place of those with these keys. In a fixed order, so that two hubs do not wait for each other."""
    columns = table.primary_key.columns.values()
    old = [{f"old_{column.name}": value for column, value in zip(columns, key, strict=True)} for key in keys]
    if old:
        is_old = and_(*(column == bindparam(f"old_{column.name}") for column in columns))
        connection.execute(delete(table).where(is_old), sorted(old, key=lambda each: (*each.values(),)))
    if rows:
        connection.execute(insert(table), sorted(rows, key=lambda row: (row["node_id"], row["uuid"])))
