"""GPUs that vanish are missed, and faults are remembered."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from msgspec import structs

from gpuherd.fleet.device_memory import MAX_CHANGES, MAX_FAULTS, MAX_NOTES, DeviceMemory
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import NodeView
from gpuherd.model.device_memory import DeviceFault, KnownDevice, MemoryChanges
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import MAX_DEVICES, Problem
from support.herd import GIB, IDLE, ManualClock, Speaker, gpu, settle

XID_79 = Problem(
    code="xid", message="Xid 79, fallen off the bus: reboot", device_uuid="GPU-1", is_fault=True, since=5.0
)
Speakers = Callable[[str], Speaker]


def seen(fleet: Fleet, node_id: str = "n1") -> NodeView:
    fleet.tick()
    node = fleet.node(node_id)
    assert node is not None
    return node


def states(fleet: Fleet, node_id: str = "n1") -> dict[str, str]:
    return {device.facts.uuid: device.availability.state for device in seen(fleet, node_id).devices}


def again(fleet: Fleet, clock: ManualClock) -> Fleet:
    """Make another hub's fleet that knows what was written down, and nothing else."""
    changes = fleet.memory.take_changes()
    fleet.memory.put_back(changes)
    other = Fleet(clock=clock)
    other.memory.load(filter(None, changes.devices.values()), filter(None, changes.faults.values()))
    return other


def pieces(memory: DeviceMemory) -> list[MemoryChanges]:
    """Take everything that is to be written."""
    return list(iter(memory.take_changes, MemoryChanges(devices={}, faults={})))


def card(index: int, **changes: object) -> DeviceFacts:
    return gpu(index, serial=f"13{index}", pci_bus_id=f"00000000:{index + 0x3A:X}:00.0", **changes)


def test_a_gpu_that_vanishes_is_missed_until_it_is_back(
    fleet: Fleet, speaker: Speakers, clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1), card(2))
    node.sample(IDLE, IDLE, IDLE)
    assert set(states(fleet).values()) == {"free"}
    clock.advance(60)
    node.describe(card(0), structs.replace(card(2), index=1))
    node.sample(IDLE, IDLE)
    assert states(fleet) == {"GPU-0": "free", "GPU-2": "free", "GPU-1": "fault"}
    view = seen(fleet)
    (note,) = view.problems
    assert note.code == "gpus_missing"
    assert note.message.startswith("1 GPU missing since ")
    assert note.message.endswith(": GPU 1, A100-SXM4-80GB, serial 131, slot 0000:3b:00.0")
    assert note.since == pytest.approx(clock.wall())
    missing = view.devices[1]
    assert missing.availability.reason.startswith("missing since ")
    assert "serial 131, slot 0000:3b:00.0" in missing.availability.reason
    assert missing.sample == DeviceSample(), "nothing is known of what it does"
    assert (fleet.totals().devices["fault"], fleet.totals().devices["free"]) == (1, 2)
    change = fleet.change()
    assert [state for state in change.device_states.state if state == "fault"] == ["fault"]
    node.describe(card(0), card(1), card(2))
    node.sample(IDLE, IDLE, IDLE)
    assert set(states(fleet).values()) == {"free"}
    assert seen(fleet).problems == ()


def test_it_is_missed_over_restarts_of_agent_and_hub(
    fleet: Fleet, speaker: Speakers, clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    fleet.tick()
    hub = again(fleet, clock)
    hub.add_node("n1", "n1")
    node = Speaker(hub, clock, "n1", boot_id="boot-2")
    node.describe(card(0))
    node.sample(IDLE)
    assert states(hub) == {"GPU-0": "free", "GPU-1": "fault"}


def test_all_gpus_gone_is_a_fault_of_each_and_a_hung_driver_says_why(fleet: Fleet, speaker: Speakers) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    fleet.tick()
    node.describe()
    node.sample()
    assert states(fleet) == {"GPU-0": "fault", "GPU-1": "fault"}
    assert seen(fleet).problems[0].message.startswith("2 GPUs missing since ")
    hung = Problem(code="driver_hung", message="the driver does not respond; reboot", is_fault=True)
    node.sample(problems=(hung,))
    view = seen(fleet)
    assert view.problems == (hung,), "they are not missing, they cannot be asked"
    assert {device.availability.reason for device in view.devices} == {hung.message}
    assert fleet.totals().devices["fault"] == 2


def test_an_admin_forgets_what_was_taken_out(fleet: Fleet, speaker: Speakers) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    fleet.tick()
    assert settle(fleet, "n1", "GPU-1", "forget") is None, "it is there"
    node.describe(card(0))
    node.sample(structs.replace(IDLE, temperature_celsius=44.0))
    assert states(fleet) == {"GPU-0": "free", "GPU-1": "fault"}
    assert settle(fleet, "n1", "GPU-1", "forget") is not None
    view = seen(fleet)
    assert [device.facts.uuid for device in view.devices] == ["GPU-0"]
    assert view.devices[0].sample.temperature_celsius == 44.0, "what is known of the others stays"
    assert (view.problems, view.devices[0].availability.state) == ((), "free")
    assert fleet.memory.take_changes().devices["n1", "GPU-1"] is None


def test_a_card_in_the_slot_of_another_replaces_it_and_one_in_another_node_has_moved(
    fleet: Fleet, speaker: Speakers
) -> None:
    uuid = "GPU-11111111-2222-3333-4444-555555555555"
    one, other = speaker("n1"), speaker("n2")
    one.describe(card(0), card(1, uuid=uuid))
    one.sample(IDLE, IDLE)
    other.describe(card(0))
    other.sample(IDLE)
    fleet.tick()
    one.describe(card(0, uuid="GPU-new"))
    one.sample(IDLE)
    assert states(fleet) == {"GPU-new": "free", uuid: "fault"}
    other.describe(card(0), card(5, uuid=uuid))
    other.sample(IDLE, IDLE)
    assert states(fleet) == {"GPU-new": "free"}
    assert states(fleet, "n2") == {"GPU-0": "free", uuid: "free"}
    actions = [action for action, _, _ in fleet.memory.take_changes().notes]
    assert actions == ["gpu.replaced", "gpu.missing", "gpu.moved"]


def test_a_card_whose_slot_number_another_one_gets_is_missed(fleet: Fleet, speaker: Speakers) -> None:
    """The one in the middle dies; after a reboot the numbers of those behind it move up."""
    node = speaker("n1")
    node.describe(card(0), card(1), card(2))
    node.sample(IDLE, IDLE, IDLE)
    fleet.tick()
    node.describe(card(0), structs.replace(card(2), index=1, pci_bus_id=card(1).pci_bus_id))
    node.sample(IDLE, IDLE)
    assert states(fleet) == {"GPU-0": "free", "GPU-2": "free", "GPU-1": "fault"}


def test_a_card_that_its_new_node_reports_first_has_moved_too(fleet: Fleet, speaker: Speakers) -> None:
    """The old machine was off; it comes back without the card."""
    uuid = "GPU-11111111-2222-3333-4444-555555555555"
    old, new = speaker("n1"), speaker("n2")
    old.describe(card(0), card(1, uuid=uuid))
    old.sample(IDLE, IDLE)
    new.describe(card(5, uuid=uuid))
    new.sample(IDLE)
    assert (states(fleet)[uuid], states(fleet, "n2")) == ("unknown", {uuid: "unknown"})
    old.describe(card(0))
    old.sample(IDLE)
    assert (states(fleet), states(fleet, "n2")) == ({"GPU-0": "free"}, {uuid: "free"})
    assert seen(fleet, "n2").problems == ()


def test_the_count_of_a_list_wins(fleet: Fleet, speaker: Speakers) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1), card(2))
    node.sample(IDLE, IDLE, IDLE)
    fleet.tick()
    node.describe(card(0))
    node.sample(IDLE)
    assert states(fleet) == {"GPU-0": "free", "GPU-1": "fault", "GPU-2": "fault"}
    fleet.expect_gpus("n1", 1)
    assert states(fleet) == {"GPU-0": "free"}
    assert fleet.gpu_count("n1") == 1


def test_slices_come_and_go_as_the_admin_cuts_them(fleet: Fleet, speaker: Speakers) -> None:
    piece = {"kind": "slice", "parent_uuid": "GPU-0", "memory_total_bytes": 40 * GIB}
    node = speaker("n1")
    node.describe(card(0, is_partitioned=True), gpu(1, uuid="MIG-1", **piece))
    node.sample(DeviceSample(), DeviceSample(memory_used_bytes=0))
    fleet.tick()
    node.describe(card(0))
    node.sample(IDLE)
    assert states(fleet) == {"GPU-0": "free"}


def test_numbers_of_older_agents_fill_the_rows_of_what_they_report(
    fleet: Fleet, speaker: Speakers, clock: ManualClock
) -> None:
    """Other columns than ours are copied one by one, and the missing GPU is none of them."""
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    fleet.tick()
    layout = structs.replace(node.run.hello.layout, devices=("memory_used_bytes", "utilization_gpu"))
    node.run = fleet.open_run("n1", structs.replace(node.run.hello, boot_id="older", layout=layout))
    node.seq = 0
    node.describe(card(1))
    short = DeviceSample(utilization_gpu=0.5, memory_used_bytes=GIB)
    node.sample(short)
    view = seen(fleet)
    assert [device.sample for device in view.devices] == [DeviceSample(), short]
    assert states(fleet) == {"GPU-0": "fault", "GPU-1": "busy"}


def test_an_xid_survives_whoever_forgets_it(fleet: Fleet, speaker: Speakers, clock: ManualClock) -> None:
    """A probe that crashes, an agent that is restarted, a hub that is: none of them repairs a card."""
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE, problems=(XID_79,))
    assert states(fleet) == {"GPU-0": "free", "GPU-1": "fault"}
    node.sample(IDLE, IDLE)
    assert states(fleet) == {"GPU-0": "free", "GPU-1": "fault"}
    assert seen(fleet).devices[1].availability.reason == XID_79.message
    hub = again(fleet, clock)
    hub.add_node("n1", "n1")
    node = Speaker(hub, clock, "n1", boot_id="boot-2")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    assert states(hub) == {"GPU-0": "free", "GPU-1": "fault"}


@pytest.mark.parametrize(
    ("before", "after", "is_gone"),
    [
        ({"boot_id": "a"}, {"boot_id": "b"}, True),
        ({"boot_id": "a"}, {"boot_id": "a"}, False),
        ({"boot_id": "at x"}, {"boot_id": "at y"}, True),
        ({"boot_id": "at 1"}, {"boot_id": "at nan"}, True),
        ({"boot_id": "b" * 96}, {"boot_id": "b" * 96}, False),
        ({"booted_at": 1000.0}, {"boot_id": "at 9000"}, False),
        ({"booted_at": 1000.0}, {"booted_at": 9000.0}, True),
        ({"booted_at": 1000.0}, {"booted_at": 1001.0}, False),
        ({"booted_at": 1000.0}, {"boot_id": "b", "booted_at": 1000.0}, False),
        ({"driver_version": "535.1"}, {"driver_version": "550.2"}, True),
        ({"driver_version": "535.1"}, {}, False),
        ({}, {"boot_id": "b", "driver_version": "550.2"}, False),
    ],
)
def test_a_reboot_or_another_driver_clears_it(
    fleet: Fleet, speaker: Speakers, before: dict[str, object], after: dict[str, object], is_gone: bool
) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1), host=before)
    node.sample(IDLE, IDLE, problems=(XID_79,))
    fleet.tick()
    node.describe(card(0), card(1), host=after)
    node.sample(IDLE, IDLE)
    assert states(fleet)["GPU-1"] == ("free" if is_gone else "fault")


def test_a_number_that_no_xid_has_is_not_shown_as_one(fleet: Fleet, speaker: Speakers) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(
        IDLE, IDLE, problems=(structs.replace(XID_79, message="Xid 9999999999999999999999999: invented"),)
    )
    fleet.tick()
    node.sample(IDLE, IDLE)
    (problem,) = seen(fleet).problems
    assert problem.xid is None


def test_a_reset_clears_it_for_the_gpu_that_was_reset(fleet: Fleet, speaker: Speakers) -> None:
    """Its energy is counted from 0 again."""
    node = speaker("n1")
    node.describe(card(0), card(1))
    used = structs.replace(IDLE, energy_joules=5000.0)
    xids = (XID_79, structs.replace(XID_79, device_uuid="GPU-0"))
    node.sample(used, used, problems=xids)
    fleet.tick()
    node.sample(used, structs.replace(used, energy_joules=6000.0))
    assert states(fleet) == {"GPU-0": "fault", "GPU-1": "fault"}
    node.sample(used, structs.replace(used, energy_joules=20.0))
    assert states(fleet) == {"GPU-0": "fault", "GPU-1": "free"}


@pytest.mark.parametrize("since", [99.0, 4.0])
def test_an_admin_acknowledges_a_fault_and_another_one_counts_again(
    fleet: Fleet, speaker: Speakers, since: float
) -> None:
    """Also one that seems to be earlier, because the node's clock was ahead and is right again."""
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE, problems=(XID_79,))
    assert states(fleet)["GPU-1"] == "fault"
    assert settle(fleet, "n1", "GPU-1", "acknowledge") == [XID_79.message]
    assert states(fleet)["GPU-1"] == "free"
    node.sample(IDLE, IDLE, problems=(XID_79,))
    assert states(fleet)["GPU-1"] == "free", "the agent goes on telling it"
    node.sample(IDLE, IDLE, problems=(structs.replace(XID_79, since=since),))
    assert states(fleet)["GPU-1"] == "fault"
    assert settle(fleet, "n1", "GPU-7", "acknowledge") is None


def test_acknowledged_ecc_errors_are_the_new_baseline(
    fleet: Fleet, speaker: Speakers, clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(card(0))
    five = structs.replace(IDLE, ecc_uncorrected=5)
    node.sample(five)
    assert states(fleet) == {"GPU-0": "fault"}
    assert settle(fleet, "n1", "GPU-0", "acknowledge") == ["5 uncorrected ECC errors"]
    assert states(fleet) == {"GPU-0": "free"}
    node.sample(structs.replace(IDLE, ecc_uncorrected=6))
    assert states(fleet) == {"GPU-0": "fault"}
    hub = again(fleet, clock)
    hub.add_node("n1", "n1")
    node = Speaker(hub, clock, "n1", boot_id="boot-2")
    node.describe(card(0))
    node.sample(five)
    assert states(hub) == {"GPU-0": "free"}
    node.describe(card(0), host={"driver_version": "9"})
    node.sample(structs.replace(IDLE, ecc_uncorrected=1))
    assert states(hub) == {"GPU-0": "free"}, "no driver was known before"


@pytest.mark.parametrize("count", [1e300, float("inf"), -1.0])
def test_an_impossible_count_is_no_baseline(fleet: Fleet, speaker: Speakers, count: float) -> None:
    """An admin acknowledges before the next tick has looked at it."""
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, structs.replace(IDLE, ecc_uncorrected=count), problems=(XID_79,))
    assert settle(fleet, "n1", "GPU-1", "acknowledge") == [XID_79.message]
    assert {fault.code for fault in fleet.memory.take_changes().faults.values() if fault} == {"xid 79"}


def test_what_a_node_invents_is_bounded(fleet: Fleet) -> None:
    for start in range(0, 4 * MAX_DEVICES, 64):
        invented = tuple(gpu(index, uuid=f"GPU-{start + index}") for index in range(64))
        missing = fleet.memory.see("n1", invented, None, float(start))
        assert len(missing) <= MAX_DEVICES
    devices = [device for piece in pieces(fleet.memory) for device in piece.devices.values()]
    assert sum(isinstance(device, KnownDevice) for device in devices) == MAX_DEVICES


def test_changes_that_could_not_be_written_come_again(fleet: Fleet, speaker: Speakers) -> None:
    node = speaker("n1")
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE, problems=(XID_79,))
    changes = fleet.memory.take_changes()
    assert not fleet.memory.take_changes()
    fleet.memory.put_back(changes)
    node.sample(IDLE, IDLE)
    assert fleet.memory.take_changes() == changes
    (fault,) = changes.faults.values()
    assert isinstance(fault, DeviceFault)
    assert (fault.code, fault.since) == ("xid 79", 5.0)
    fleet.remove_node("n1")
    gone = fleet.memory.take_changes()
    assert set(gone.devices.values()) | set(gone.faults.values()) == {None}


def test_a_new_herd_is_written_in_pieces() -> None:
    """One transaction with all of it would keep everybody else from writing."""
    memory, gpus = DeviceMemory(), 2 * MAX_CHANGES + 8
    for number in range(gpus // 8):
        memory.see(f"n{number}", tuple(card(index) for index in range(8)), None, 1.0)
    written = pieces(memory)
    assert [len(piece.devices) for piece in written] == [MAX_CHANGES, MAX_CHANGES, 8]
    assert len({key for piece in written for key in piece.devices}) == gpus


def test_gpus_that_come_and_go_do_not_fill_the_audit_log() -> None:
    memory, both, one = DeviceMemory(), (card(0), card(1)), (card(0),)
    for _ in range(MAX_NOTES):
        memory.see("n1", both, None, 1.0)
        memory.see("n1", one, None, 1.0)
    memory.see("n2", both, None, 1.0)
    memory.see("n2", one, None, 1.0)
    of_one = [detail for _, node_id, detail in memory.notes if node_id == "n1"]
    assert len(of_one) == MAX_NOTES
    assert ["not listed" in detail for detail in of_one] == [False] * (MAX_NOTES - 1) + [True]
    assert len(memory.notes) == MAX_NOTES + 1, "others have their own"
    memory.see("n1", both, None, 4000.0)
    assert len(memory.notes) == MAX_NOTES + 2, "an hour later"


def test_no_more_faults_are_remembered_than_a_node_can_have() -> None:
    memory, host = DeviceMemory(), HostFacts(hostname="n1")
    for number in range(MAX_FAULTS + 10):
        fault = structs.replace(XID_79, device_uuid=f"GPU-{number}")
        assert fault in memory.problems("n1", host, (fault,), {}, 1.0)
    assert len(memory.take_changes().faults) == MAX_FAULTS


def calls_to_replace(count: int) -> int:
    """Count the calls that it takes when a node replaces so many GPUs that all of the older ones are forgotten."""
    memory, calls = DeviceMemory(), 0
    first, second = (tuple(gpu(index, uuid=f"{name}-{index}") for index in range(count)) for name in "ab")
    memory.see("n1", first, None, 0.0)

    def count_call(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_call)
    try:
        memory.see("n1", second, None, 1.0)
    finally:
        sys.setprofile(None)
    return calls


def test_gpus_that_are_replaced_over_and_over_cost_little() -> None:
    assert calls_to_replace(MAX_DEVICES) < 25 * MAX_DEVICES
