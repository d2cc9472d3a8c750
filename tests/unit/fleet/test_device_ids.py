"""Devices that a node names in a day are bounded, and the node says so."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from gpuherd.fleet.device_ids import MAX_IDS_PER_DAY
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Refused
from support.herd import IDLE, WORKING, ManualClock, Speaker, gpu
from support.soak import SOAK
from support.tally import Tally

AT_ONCE = 128


def made_up(report: int) -> tuple[DeviceFacts, ...]:
    return tuple(msgspec.structs.replace(gpu(0), uuid=f"GPU-{report}-{number}") for number in range(AT_ONCE))


@pytest.mark.attack
@pytest.mark.promise("device-ids-capped")
def test_changing_device_ids_are_refused_and_said_on_the_node(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock, tally: Tally
) -> None:
    node, calm = speaker("n1"), speaker("n2")
    calm.describe(gpu(0))
    reports, refused = 40 * SOAK, 0
    for report in range(reports):
        try:
            node.describe(*made_up(report))
            node.sample(*[IDLE] * AT_ONCE)
        except Refused as refusal:
            assert refusal.code == "too_many_devices"  # noqa: PT017 - the count is what matters
            refused += 1
    taken = reports - refused
    tally.add(
        "reports with new device ids", tries=reports, held=refused, figure=f"{taken * AT_ONCE} ids taken"
    )
    assert taken == MAX_IDS_PER_DAY // AT_ONCE
    fleet.tick()
    shown = fleet.node("n1")
    assert shown is not None
    assert [note.code for note in shown.notes] == ["too_many_devices"]
    assert "reported 2,048 different devices within a day" in shown.notes[0].message
    calm.sample(WORKING)  # its neighbour is not harmed


def test_the_next_day_and_known_devices_are_taken(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    for report in range(MAX_IDS_PER_DAY // AT_ONCE):
        node.describe(*made_up(report))
    with pytest.raises(Refused):
        node.describe(gpu(0))
    node.describe(*made_up(3))
    assert fleet.node("n1").notes == ()  # type: ignore[union-attr]
    clock.advance(86_400)
    node.describe(gpu(0))
    node.sample(WORKING)
