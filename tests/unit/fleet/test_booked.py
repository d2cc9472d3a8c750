"""Bookings at their devices: phases by the hub's clock, the state booked, and who uses what is booked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.names import Names
from gpuherd.fleet.settings import DisplaySettings
from gpuherd.fleet.views import DeviceBookingView, DeviceView
from gpuherd.model.bookings import DeviceBookingFacts, DeviceRef
from gpuherd.model.devices import DeviceSample
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import Problem
from support.herd import GIB, HOLDING, IDLE, WORKING, ManualClock, Speaker, gpu

DAY = 86_400
PIECE = {"kind": "slice", "parent_uuid": "GPU-0", "profile": "3g.40gb", "memory_total_bytes": 40 * GIB}


def booking(
    clock: ManualClock,
    number: int = 1,
    *,
    uuid: str = "GPU-0",
    node_id: str = "n1",
    starts_in: float = 0,
    lasts: float = 3600,
    users: tuple[str, ...] = ("ada",),
    holder: str = "Ada",
    is_pending: bool = False,
) -> DeviceBookingFacts:
    starts_at = int(clock.wall() + starts_in)
    return DeviceBookingFacts(
        device=DeviceRef(node_id, uuid),
        booking_id=number,
        holder=holder,
        title="a run",
        starts_at=starts_at,
        ends_at=int(starts_at + lasts),
        linux_names=frozenset(users),
        is_pending=is_pending,
    )


def device(fleet: Fleet, index: int = 0, node_id: str = "n1") -> DeviceView:
    node = fleet.node(node_id)
    assert node is not None
    return node.devices[index]


def only(fleet: Fleet, index: int = 0) -> DeviceBookingView:
    (view,) = device(fleet, index).bookings
    return view


def running(*users: str | None, kind: str = "compute") -> dict[str, tuple[object, ...]]:
    return {
        "processes": tuple(Process(pid=pid, user=user) for pid, user in enumerate(users, 10)),
        "uses": tuple(ProcessUse(process=p, device=0, kind=kind) for p in range(len(users))),  # type: ignore[arg-type]
    }


def test_a_booking_moves_through_its_phases_by_the_clock(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    fleet.set_bookings([booking(clock, starts_in=60, lasts=120)])

    def later(seconds: float) -> tuple[str, list[tuple[str, str | None]]]:
        clock.advance(seconds)
        node.sample(IDLE)
        fleet.tick()
        shown = device(fleet)
        return shown.availability.state, [(view.phase, view.use) for view in shown.bookings]

    assert later(0) == ("free", [("next", None)])
    assert later(59) == ("free", [("next", None)])
    assert later(1) == ("booked", [("current", "unused")])
    assert device(fleet).availability.reason == "booked, not in use"
    assert later(119) == ("booked", [("current", "unused")])
    assert later(1) == ("free", [("past", None)])
    assert later(3 * DAY - 1) == ("free", [("past", None)])
    assert later(1) == ("free", [])


def test_one_that_waits_for_approval_is_the_next_but_never_the_current_or_the_last(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    fleet.set_bookings([booking(clock, lasts=60), booking(clock, 2, starts_in=60, lasts=60, is_pending=True)])
    phases = []
    for _ in range(3):
        node.sample(IDLE)
        fleet.tick()
        phases.append(
            (device(fleet).availability.state, [(one.id, one.phase) for one in device(fleet).bookings])
        )
        clock.advance(61)
    assert phases == [
        ("booked", [(1, "current"), (2, "next")]),
        ("free", [(1, "past")]),
        ("free", [(1, "past")]),
    ]


def test_only_the_last_the_current_and_the_next_one_are_shown(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0), gpu(1))
    node.sample(IDLE, IDLE)
    fleet.set_bookings(
        booking(clock, number, starts_in=(number - 4) * 3600 - 60) for number in (7, 5, 6, 4, 1, 3, 2)
    )
    fleet.tick()
    assert [(view.id, view.phase) for view in device(fleet).bookings] == [
        (3, "past"),
        (4, "current"),
        (5, "next"),
    ]
    assert device(fleet, 1).bookings == ()


@pytest.mark.parametrize(
    ("users", "kind", "sample", "state", "use"),
    [
        (("ada",), "compute", WORKING, "busy", "holder"),
        (("ada", "bob"), "compute", WORKING, "busy", "shared"),
        (("bob",), "compute", WORKING, "busy", "others"),
        (("bob",), "compute", IDLE, "busy", "others"),
        ((None,), "compute", WORKING, "busy", "unknown"),
        (("ada", None), "compute", WORKING, "busy", "holder"),
        ((), "compute", WORKING, "busy", "unknown"),
        ((), "compute", IDLE, "booked", "unused"),
        (("bob",), "graphics", IDLE, "booked", "unused"),
        (("Ada",), "compute", WORKING, "busy", "holder"),
        (("adam",), "compute", WORKING, "busy", "others"),
    ],
)
def test_who_uses_a_booked_device(
    fleet: Fleet,
    speaker: Callable[[str], Speaker],
    clock: ManualClock,
    users: tuple[str | None, ...],
    kind: str,
    sample: DeviceSample,
    state: str,
    use: str,
) -> None:
    node = speaker("n1")
    node.describe(gpu(0), **running(*users, kind=kind))  # type: ignore[arg-type]
    fleet.set_bookings([booking(clock)])
    node.sample(sample)
    fleet.tick()
    assert (device(fleet).availability.state, only(fleet).use) == (state, use)
    assert fleet.booking_uses() == {(1, DeviceRef("n1", "GPU-0")): use}
    is_misused = device(fleet).availability.reason == "booked, but used by someone other than the holder"
    assert is_misused == (use in ("shared", "others"))


def test_use_follows_the_processes_and_the_device(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    fleet.set_bookings([booking(clock)])

    def use(sample: DeviceSample, *problems: Problem) -> str | None:
        clock.advance(1)
        node.sample(sample, problems=problems)
        fleet.tick()
        return only(fleet).use

    assert use(IDLE) == "unused"
    node.run_table(**running("ada"))  # type: ignore[arg-type]
    assert use(WORKING) == "holder"
    assert use(WORKING, Problem(code="processes_failed", message="m")) == "unknown"
    assert use(WORKING, Problem(code="gpu_lost", message="m", is_fault=True)) == "unknown"
    assert device(fleet).availability.state == "fault", "a booked fault is a fault"
    node.run_table(**running("bob"))  # type: ignore[arg-type]
    assert use(HOLDING) == "others"
    clock.advance(10)
    fleet.tick()
    assert (device(fleet).availability.state, only(fleet).use) == ("stale", "unknown")


@pytest.mark.parametrize(
    ("holder", "expected"),
    [("ada2", "holder"), ("Ada L.", "holder"), ("+ADA2", "holder"), ("ada l.", "holder"), ("ada3", "others")],
)
def test_an_alias_of_the_holder_is_the_holder(clock: ManualClock, holder: str, expected: str) -> None:
    fleet = Fleet(clock=clock, names=Names(DisplaySettings(users={"ada2": "Ada L."})))
    fleet.add_node("n1", "n1")
    node = Speaker(fleet, clock, "n1")
    node.describe(gpu(0), **running("ada2"))  # type: ignore[arg-type]
    node.sample(WORKING)
    fleet.set_bookings([booking(clock, users=(holder,))])
    fleet.tick()
    assert device(fleet).processes[0].user == "Ada L."
    assert only(fleet).use == expected


def test_booked_is_never_claimed_of_what_cannot_be_told(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(DeviceSample())
    fleet.set_bookings([booking(clock)])
    fleet.tick()
    assert device(fleet).availability.state == "unknown"


def test_totals_count_what_is_booked(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0), gpu(1), gpu(2))
    node.sample(IDLE, IDLE, WORKING)
    fleet.set_bookings([booking(clock), booking(clock, 2, uuid="GPU-2")])
    fleet.tick()
    devices = fleet.totals().devices
    assert (devices["booked"], devices["free"], devices["busy"]) == (1, 1, 1)


def test_slices_are_booked_and_tell_of_their_gpu(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0, is_partitioned=True), gpu(1, **PIECE), gpu(2, **PIECE))
    node.sample(DeviceSample(), *[DeviceSample(memory_used_bytes=0)] * 2)
    fleet.set_bookings([booking(clock, uuid="GPU-1")])
    fleet.tick()
    assert [device(fleet, i).availability.state for i in range(3)] == ["booked", "booked", "free"]
    assert (device(fleet, 0).bookings, only(fleet, 1).use) == ((), "unused")


def test_a_gpu_that_was_split_after_it_was_booked_is_booked_with_its_slices(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    fleet.set_bookings([booking(clock)])
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.tick()
    on_slice = {"processes": (Process(pid=1, user="bob"),), "uses": (ProcessUse(process=0, device=2),)}
    node.describe(gpu(0, is_partitioned=True), gpu(1, **PIECE), gpu(2, **PIECE), **on_slice)  # type: ignore[arg-type]
    node.sample(DeviceSample(), DeviceSample(memory_used_bytes=0), DeviceSample(memory_used_bytes=30 * GIB))
    fleet.tick()
    assert [device(fleet, i).availability.state for i in range(3)] == ["busy", "booked", "busy"]
    assert [only(fleet, i).use for i in range(3)] == ["others", "unused", "others"]
    assert fleet.booking_uses() == {(1, DeviceRef("n1", "GPU-0")): "others"}


def test_bookings_follow_their_device_wherever_its_row_is(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    other = speaker("n2")
    fleet.set_bookings([booking(clock, uuid="GPU-1")])
    node.describe(gpu(0), gpu(1))
    node.sample(IDLE, IDLE)
    fleet.tick()
    assert [bool(device(fleet, i).bookings) for i in (0, 1)] == [False, True]
    node.describe(gpu(1), gpu(0), gpu(2))
    node.sample(IDLE, IDLE, IDLE)
    other.describe(
        gpu(1), gpu(3)
    )  # into the rows that were left; the same uuid on another node is another device
    other.sample(IDLE, IDLE)
    fleet.tick()
    assert [device(fleet, i).availability.state for i in range(3)] == ["free", "booked", "free"]
    assert [device(fleet, i, "n2").availability.state for i in (0, 1)] == ["free", "free"]
    fleet.remove_node("n1")
    fleet.tick()
    assert fleet.totals().devices["booked"] == 0
    assert fleet.booking_uses() == {}


def test_a_booking_that_is_released_or_taken_back_shows_at_the_next_tick(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.set_bookings([booking(clock)])
    fleet.tick()
    assert device(fleet).availability.state == "booked"
    fleet.set_bookings([booking(clock, starts_in=-60, lasts=60)])
    fleet.tick()
    assert (device(fleet).availability.state, only(fleet).phase) == ("free", "past")
    fleet.set_bookings([])
    fleet.tick()
    assert device(fleet).bookings == ()


def test_a_clock_that_is_set_back_brings_a_booking_back(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.set_bookings([booking(clock, lasts=60)])
    clock.wall_offset += 100
    fleet.tick()
    assert only(fleet).phase == "past"
    clock.wall_offset -= 100
    fleet.tick()
    assert (only(fleet).phase, only(fleet).use) == ("current", "unused")
