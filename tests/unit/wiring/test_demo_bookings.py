"""The demo's calendar."""

from __future__ import annotations

from pathlib import Path

from gpuherd.model.bookings import DeviceRef
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records
from gpuherd.wiring.demo_bookings import book_demo_herd
from gpuherd.wiring.demo_herd import demo_herd

NOW = 1_800_000_000.0


def test_the_demo_has_past_running_coming_and_waiting_bookings_of_devices_that_exist(tmp_path: Path) -> None:
    records = BookingRecords(open_records(tmp_path / "records.sqlite"))
    herd = demo_herd(12, epoch=NOW)
    try:
        book_demo_herd(records, herd, {node.name: f"id-of-{node.name}" for node in herd}, now=NOW, days=30)
        bookings = records.changed_after(0)
    finally:
        records.close()

    assert any(booking.ends_at <= NOW for booking in bookings)
    assert any(booking.starts_at <= NOW < booking.ends_at for booking in bookings)
    assert any(booking.starts_at > NOW for booking in bookings)
    assert any(booking.state == "pending" for booking in bookings)
    there = {
        DeviceRef(f"id-of-{node.name}", uuid)
        for node in herd
        for gpu in node.scenario.gpus
        for uuid in ([part.uuid for part in gpu.mig_slices] or [gpu.uuid])
    }
    assert {device for booking in bookings for device in booking.devices} <= there
    assert any(len(booking.devices) > 1 for booking in bookings)
