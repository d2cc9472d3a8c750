"""What every backend must remember of devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import Engine

from gpuherd.model.device_memory import DeviceFault, KnownDevice, MemoryChanges
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.people import Actor
from gpuherd.records.audit import AuditRecords
from gpuherd.records.database import open_records
from gpuherd.records.devices import DeviceRecords
from gpuherd.records.nodes import NodeRecords

CARD = KnownDevice(
    node_id="n1",
    facts=DeviceFacts(
        uuid="GPU-1",
        index=3,
        name="NVIDIA A100-SXM4-80GB",
        memory_total_bytes=80 * 2**30,
        pci_bus_id="00000000:3B:00.0",
        serial="1320",
    ),
    missing_since=12.5,
)
FAULT = DeviceFault(
    node_id="n1",
    uuid="GPU-1",
    code="xid 79",
    message="Xid 79, fallen off the bus: reboot",
    since=11.0,
    boot_id="b",
    driver_version="550.2",
    energy_joules=1.5,
)


@pytest.fixture
def records(engine: Engine) -> DeviceRecords:
    return DeviceRecords(engine)


def changes(device: KnownDevice | None, fault: DeviceFault | None, *notes: str) -> MemoryChanges:
    return MemoryChanges(
        devices={("n1", "GPU-1"): device},
        faults={("n1", "GPU-1", "xid 79"): fault},
        notes=tuple((note, "n1", "GPU-1") for note in notes),
    )


def test_devices_and_faults_outlive_the_program(
    records: DeviceRecords, migrated_location: Path | str
) -> None:
    records.save(changes(CARD, FAULT), now=13.0)
    again = open_records(migrated_location)
    try:
        assert DeviceRecords(again).load() == ((CARD,), (FAULT,))
    finally:
        again.dispose()


def test_they_are_changed_and_deleted(records: DeviceRecords) -> None:
    records.save(changes(CARD, FAULT), now=13.0)
    back = KnownDevice(node_id="n1", facts=CARD.facts)
    known = structs.replace(FAULT, acknowledged_at=14.0, acknowledged_count=5)
    records.save(changes(back, known), now=14.0)
    assert records.load() == ((back,), (known,))
    records.save(changes(None, None), now=15.0)
    records.save(changes(None, None), now=16.0)
    assert records.load() == ((), ())


def test_what_happened_is_logged_with_who_did_it(records: DeviceRecords, engine: Engine) -> None:
    records.save(changes(CARD, None, "gpu.missing"), now=13.0)
    admin = Actor(account_id=None, label="root")
    records.save(changes(None, None, "gpu.forget"), now=14.0, by=admin)
    entries = AuditRecords(engine).search(limit=10)
    assert [(entry.action, entry.subject, entry.who) for entry in entries] == [
        ("gpu.forget", "n1", "root"),
        ("gpu.missing", "n1", "hub"),
    ]


def test_a_node_that_is_removed_takes_its_devices_along(records: DeviceRecords, engine: Engine) -> None:
    nodes = NodeRecords(engine)
    nodes.enrol(node_id="n1", name="n1", credential="d1", now=1.0)
    records.save(changes(CARD, FAULT), now=13.0)
    assert nodes.remove("n1", now=14.0)
    assert records.load() == ((), ())
