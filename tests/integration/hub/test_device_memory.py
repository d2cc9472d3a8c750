"""GPUs that are missing and faults that were seen, in the records of a real hub, in the terminal and by its routes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from gpuherd.model.errors import Failed
from gpuherd.model.reports import Problem
from support.booking_hub import BookingHub, booking_hub, report_of
from support.chooser import Chooser
from support.herd import gpu
from support.hub import eventually

KEPT = gpu(0, uuid="GPU-kept", pci_bus_id="00000000:3A:00.0")
PULLED = gpu(1, uuid="GPU-pulled", serial="132", pci_bus_id="00000000:3B:00.0")
XID = Problem(
    code="xid", message="Xid 119, no answer: reset it", device_uuid="GPU-kept", is_fault=True, since=7.0
)


def states(lab: BookingHub) -> dict[str, str]:
    node = lab.hub.fleet.node("n5")
    assert node is not None
    return {device.facts.uuid: device.availability.state for device in node.devices}


async def remembered(lab: BookingHub, missing: int, faults: int) -> None:
    """Wait until the records have them."""

    def is_so() -> bool:
        devices, kept = lab.hub.records.devices.load()
        return (sum(device.missing_since is not None for device in devices), len(kept)) == (missing, faults)

    await eventually(is_so)


def test_they_outlast_hub_and_agent_until_an_admin_says_otherwise(tmp_path: Path) -> None:
    async def first() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await lab.report("n5", report_of(KEPT, PULLED))
            report = report_of(KEPT)
            await lab.report(
                "n5", structs.replace(report, sample=structs.replace(report.sample, problems=(XID,)))
            )
            assert states(lab) == {"GPU-kept": "fault", "GPU-pulled": "fault"}
            await remembered(lab, 1, 1)

    async def second() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await lab.report("n5", report_of(KEPT))  # an agent that knows nothing of the past
            assert states(lab) == {"GPU-kept": "fault", "GPU-pulled": "fault"}
            member = Chooser(lab, tmp_path / "ann", await lab.person("ann"))
            admin = Chooser(lab, tmp_path / "root", await lab.person("root", "admin"))
            code, said, _ = await member.run("status", "n5")
            assert code == 0
            assert "1 GPU missing since " in said
            assert "GPU 1, A100-SXM4-80GB, serial 132, slot 0000:3b:00.0" in said
            assert (await member.run("gpu", "forget", "n5/1"))[0] == 4
            assert (await admin.run("gpu", "forget", "n5/0"))[0] == 3, "it is there"
            code, said, told = await admin.run("gpu", "forget", "n5/1")
            assert (code, said, told) == (0, "n5/1 (GPU-pulled) is no longer reported as missing\n", "")
            code, said, told = await admin.run("gpu", "acknowledge", "n5/0")
            assert (code, said, told) == (0, f"n5/0: {XID.message}\n", "")
            await eventually(lambda: states(lab) == {"GPU-kept": "free"})
            await remembered(lab, 0, 1)
            assert "GPU-kept" in (await member.run("gpu", "n5/0"))[1]
            done = {(entry.action, entry.who) for entry in lab.hub.records.audit.search(limit=1000)}
            assert {("gpu.missing", "hub"), ("gpu.fault", "hub")} <= done
            assert {action for action, who in done if who == "root"} >= {"gpu.forget", "gpu.acknowledge"}

    asyncio.run(first())
    asyncio.run(second())


@pytest.mark.parametrize(("action", "place"), [("forget", "n5/1"), ("acknowledge", "n5/0")])
def test_what_cannot_be_written_does_not_happen_and_who_asks_again_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, place: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Failed("the disk is full")

    async def story() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await lab.report("n5", report_of(KEPT, PULLED))
            report = report_of(KEPT)
            await lab.report(
                "n5", structs.replace(report, sample=structs.replace(report.sample, problems=(XID,)))
            )
            await remembered(lab, 1, 1)
            admin = Chooser(lab, tmp_path / "root", await lab.person("root", "admin"))
            with monkeypatch.context() as broken:
                broken.setattr(lab.hub.records.devices, "save", fail)
                code, _, told = await admin.run("gpu", action, place)
                assert (code, told) == (1, "gpuherd: the disk is full\n")
            assert states(lab) == {"GPU-kept": "fault", "GPU-pulled": "fault"}
            assert (await admin.run("gpu", action, place))[0] == 0
            entries = lab.hub.records.audit.search(limit=1000)
            assert [entry.who for entry in entries if entry.action == f"gpu.{action}"] == ["root"]

    asyncio.run(story())


def test_a_uuid_means_this_gpu_even_if_another_one_is_missing_in_its_place(tmp_path: Path) -> None:
    moved = structs.replace(KEPT, index=1)

    async def story() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await lab.report("n5", report_of(KEPT, PULLED))
            await lab.report("n5", report_of(moved))  # the driver numbers those that are left
            admin = Chooser(lab, tmp_path / "root", await lab.person("root", "admin"))
            assert (await admin.run("gpu", "forget", "GPU-kept"))[0] == 3
            assert states(lab)["GPU-pulled"] == "fault"
            told = (await admin.run("gpu", "forget", "n5/1"))[1]
            assert told == "n5/1 (GPU-pulled) is no longer reported as missing\n"

    asyncio.run(story())
