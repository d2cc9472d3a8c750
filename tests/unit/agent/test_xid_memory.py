"""Xids that are faults survive probes and agents, and end with what ends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuherd.agent.exchange import Reading
from gpuherd.agent.xid_memory import XidMemory
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Problem, Sample
from gpuherd.wire.reports import sample_to_frame

FAULT = Problem(code="xid", message="Xid 79", device_uuid="GPU-1", is_fault=True, since=5.0, xid=79)
HARMLESS = Problem(code="xid", message="Xid 13", device_uuid="GPU-1", since=5.0, xid=13)


def reading(*problems: Problem, energy: float | None = 100.0, **host: Any) -> Reading:
    facts = NodeFacts(
        host=HostFacts(hostname="n", **({"boot_id": "b1", "driver_version": "550.1"} | host)),
        devices=tuple(DeviceFacts(uuid=f"GPU-{n}", index=n, name="A100") for n in range(2)),
    )
    samples = (DeviceSample(energy_joules=1.0), DeviceSample(energy_joules=energy))
    frame = sample_to_frame(
        Sample(time=9.0, devices=samples, problems=problems), seq=0, facts_revision=0, table_revision=0
    )
    return Reading(facts=facts, table=ProcessTable(), sample=frame)


def faults(memory: XidMemory, seen: Reading) -> list[Problem]:
    return list(memory.completed(seen).sample.problems)


def test_a_fault_that_the_probe_forgot_is_still_told(tmp_path: Path) -> None:
    memory = XidMemory(tmp_path / "xids")
    assert faults(memory, reading(FAULT, HARMLESS)) == [FAULT, HARMLESS]
    assert faults(memory, reading()) == [FAULT], "one that is no fault is gone with its probe"
    assert faults(memory, reading(FAULT)) == [FAULT], "once"


def test_a_fault_survives_a_new_agent(tmp_path: Path) -> None:
    faults(XidMemory(tmp_path / "xids"), reading(FAULT))
    assert faults(XidMemory(tmp_path / "xids"), reading()) == [FAULT]


@pytest.mark.parametrize("change", [{"boot_id": "b2"}, {"driver_version": "560.1"}, {"energy": 3.0}])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_fault_ends_with_reboot_new_driver_and_reset(
    tmp_path: Path, change: dict[str, Any], is_restarted: bool
) -> None:
    memory = XidMemory(tmp_path / "xids")
    faults(memory, reading(FAULT))
    if is_restarted:
        memory = XidMemory(tmp_path / "xids")
    assert faults(memory, reading(**change)) == []
    assert faults(XidMemory(tmp_path / "xids"), reading()) == [], "and does not come back"


@pytest.mark.parametrize(
    "change", [{"boot_id": None}, {"driver_version": None}, {"energy": None}, {"energy": 101.0}]
)
def test_what_is_not_known_ends_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    memory = XidMemory(tmp_path / "xids")
    faults(memory, reading(FAULT))
    assert faults(memory, reading(**change)) == [FAULT]
    assert faults(XidMemory(tmp_path / "xids"), reading()) == [FAULT]


def test_a_damaged_file_is_said_and_harms_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "xids").write_bytes(b"\xc1rubbish")
    memory = XidMemory(tmp_path / "xids")
    assert "cannot read the saved faults" in caplog.text
    assert faults(memory, reading(FAULT)) == [FAULT]
    assert faults(XidMemory(tmp_path / "xids"), reading()) == [FAULT]


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    file = tmp_path / "xids"
    faults(XidMemory(file), reading(FAULT))
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole.replace(b"GPU-1", b"\xc7PU-1")):
        file.write_bytes(damaged)
        assert faults(XidMemory(file), reading()) == []
