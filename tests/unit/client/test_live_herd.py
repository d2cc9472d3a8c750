"""The live herd: a snapshot and then changes, unknown apart from zero, nothing of a former owner."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpuherd.client.errors import HubSilent
from gpuherd.client.live_herd import HISTORY_STEP_SECONDS, LiveHerd
from gpuherd.client.live_messages import HerdChange, OwnProcesses
from gpuherd.client.live_picture import Pictures
from support.watched_herd import HOSTILE, NOW, made_up_herd, story


def change(tick: int = 1, **parts: Any) -> HerdChange:
    """A message as it comes; a snapshot unless it says what it follows."""
    return msgspec.convert({"tick": tick, "time": 1000.0 + tick, **parts}, HerdChange)


def inventory(row: int, *gpus: int, **more: Any) -> dict[str, Any]:
    devices = [
        {
            "row": gpu,
            "short_name": "H100",
            "facts": {"uuid": f"GPU-{gpu}", "index": gpu, "name": "NVIDIA H100"},
        }
        for gpu in gpus
    ]
    return {"row": row, "id": f"id{row}", "name": f"n{row}", "devices": devices, **more}


def test_a_snapshot_and_then_what_changed() -> None:
    herd = LiveHerd()
    states = {"row": [0, 1], "state": ["free", "busy"], "reason": ["", ""], "since": [5.0, None]}
    first = change(
        nodes=[inventory(0, 0, 1)],
        devices={"row": [0, 1], "utilization_gpu": [0.0, 0.5]},
        device_states=states,
    )
    assert herd.apply(first)
    assert herd.apply(
        change(
            2,
            after_tick=1,
            devices={"row": [1], "utilization_gpu": [0.25]},
            device_states={"row": [1], "state": ["held"], "reason": ["idle"], "since": [9.0]},
        )
    )
    assert herd.states == ["free", "held"]
    assert herd.numbers["utilization_gpu"] == [0.0, 0.25]
    assert herd.numbers["since"] == [5.0, 9.0]
    assert herd.numbers["power_watts"] == [None, None], "what is not told is unknown"


def test_a_change_that_does_not_follow_is_refused_and_leaves_everything() -> None:
    herd = LiveHerd()
    herd.apply(
        change(5, nodes=[inventory(0, 0)], device_states={"row": [0], "state": ["busy"], "reason": [""]})
    )
    later = change(8, after_tick=7, device_states={"row": [0], "state": ["free"], "reason": [""]})
    assert not herd.apply(later)
    assert (herd.tick, herd.states) == (5, ["busy"])


def test_a_reused_row_has_nothing_of_its_former_owner() -> None:
    herd = LiveHerd()
    herd.apply(
        change(
            nodes=[inventory(0, 3)],
            devices={"row": [3], "power_watts": [300], "utilization_gpu": [0.9]},
            device_states={"row": [3], "state": ["busy"], "reason": ["x"], "since": [1.0]},
            hosts={"row": [0], "cpu_ratio": [0.5]},
        )
    )
    assert herd.utilization_history(3, 60) == [pytest.approx(0.9)]
    herd.apply(change(2, after_tick=1, removed=[0]))
    assert herd.nodes == []
    other = inventory(0, 3, id="other")
    other["devices"][0]["facts"]["uuid"] = "GPU-new"
    herd.apply(change(3, after_tick=2, nodes=[other]))
    assert (herd.states[3], herd.reasons[3], herd.numbers["power_watts"][3]) == ("unknown", "", None)
    assert (herd.node_states[0], herd.hosts["cpu_ratio"][0]) == ("never", None)
    assert herd.utilization_history(3, 60) == [None]


def test_processes_keep_their_numbers_only_while_positions_mean_the_same() -> None:
    herd = LiveHerd()
    uses = [{"process": 0, "device": 0}]
    first = inventory(0, 0, processes=[{"pid": 1, "user": "ada"}], uses=uses)
    herd.apply(change(nodes=[first], uses={"node": [0], "position": [0], "gpu_memory_bytes": [5]}))
    [gpu] = herd.gpus()
    assert (gpu.users, gpu.node.number("gpu_memory_bytes", gpu.uses[0])) == (("ada",), 5)
    herd.apply(change(2, after_tick=1, nodes=[{**first, "processes": [{"pid": 2, "user": None}]}]))
    [gpu] = herd.gpus()
    assert (gpu.users, gpu.node.number("gpu_memory_bytes", gpu.uses[0])) == ((None,), None)


def test_own_processes_are_marked_until_others_are_told_or_a_snapshot_comes() -> None:
    herd = LiveHerd()
    processes = [
        {"pid": 1, "command": "python", "started_at": 5.0},
        {"pid": 2, "command": "python", "started_at": 6.0},
    ]
    uses = [{"process": 0, "device": 0}, {"process": 1, "device": 0}]
    first = change(nodes=[inventory(0, 0, processes=processes, uses=uses)])
    herd.apply(first)
    own = OwnProcesses(
        node_id=["id0", "id0"], pid=[1, 2], started_at=[5.0, 7.0], command=["python mine.py", "other"]
    )
    herd.apply_own(own)
    [gpu] = herd.gpus()
    assert [(use.command, use.is_own) for use in gpu.uses] == [("python mine.py", True), ("python", False)]
    herd.apply(first)
    [gpu] = herd.gpus()
    assert not any(use.is_own for use in gpu.uses)


def test_nodes_stand_in_the_hubs_order_and_names_as_people_count() -> None:
    herd = LiveHerd()
    names = ("n10", "n2", "N1", "pinned")
    nodes = [inventory(row, name=name, place=int(name != "pinned")) for row, name in enumerate(names)]
    herd.apply(change(nodes=nodes))
    assert [node.name for node in herd.nodes] == ["pinned", "N1", "n2", "n10"]


def test_history_keeps_its_minutes_over_a_new_snapshot_and_shows_gaps() -> None:
    herd = LiveHerd()
    first = inventory(0, 0)
    for step in range(4):
        time = 1000.0 + step * HISTORY_STEP_SECONDS
        herd.apply(change(1, time=time, nodes=[first], devices={"row": [0], "utilization_gpu": [step / 10]}))
    assert herd.utilization_history(0, 60) == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert herd.utilization_history(0, 30) == pytest.approx([0.05, 0.25]), "two samples a cell"
    late = 1000.0 + 7 * HISTORY_STEP_SECONDS
    herd.apply(change(1, time=late, nodes=[first], devices={"row": [0], "utilization_gpu": [0.7]}))
    assert herd.utilization_history(0, 60)[4:-1] == [None, None, None]
    changed = inventory(0, 0)
    changed["devices"][0]["facts"]["uuid"] = "GPU-other"
    herd.apply(change(1, time=late + 1, nodes=[changed]))
    assert set(herd.utilization_history(0, 60)) == {None}


def test_what_is_hostile_is_shown_and_harmless() -> None:
    herd = LiveHerd()
    herd.apply(Pictures().snapshot(made_up_herd(), 1.0))
    [gpu] = [gpu for gpu in herd.gpus() if gpu.node.id == "evil"]
    texts = [gpu.node.name, gpu.name, gpu.place, *(user or "" for user in gpu.users)]
    texts += [text for use in gpu.uses for text in (use.command or "", use.job or "")]
    assert not any(letter in text for text in texts for letter in HOSTILE if not letter.isprintable())
    assert "[red]evil[/red]" in gpu.node.name


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": [inventory(0, 10**9)]},
        {"nodes": [inventory(-1)]},
        {"devices": {"row": [7], "utilization_gpu": [1.0]}},
        {"device_states": {"row": [7], "state": ["free"], "reason": [""]}},
    ],
)
def test_rows_that_cannot_be_are_an_error_of_the_hub(wrong: dict[str, Any]) -> None:
    with pytest.raises(HubSilent):
        LiveHerd().apply(change(**wrong))


def test_an_older_hub_tells_less_and_a_newer_one_more() -> None:
    herd = LiveHerd()
    herd.apply(
        change(
            nodes=[{**inventory(0, 0), "colour": "green"}],
            devices={"row": [0], "power_watts": [5], "joy": [1.0]},
            device_states={"row": [0], "state": ["asleep"], "reason": [""]},
            news={"x": 1},
        )
    )
    assert (herd.states, herd.numbers["power_watts"], herd.numbers["utilization_gpu"]) == (
        ["asleep"],
        [5],
        [None],
    )


def test_a_picture_tells_what_the_stream_tells() -> None:
    picture = made_up_herd()
    herd = LiveHerd()
    for told in story(picture, ticks=3):
        assert herd.apply(told)
    assert herd.time == NOW
    assert [gpu.place for gpu in herd.gpus()][:4] == ["h100-01/0", "h100-01/1", "h100-01/2", "h100-01/3"]
    assert [gpu.label for gpu in herd.nodes[2].gpus] == ["0", "0.1", "0.2", "3"]
    for node in picture.nodes:
        for gpu in node.devices:
            [live] = [each for each in herd.gpus() if (each.node.id, each.facts.uuid) == (node.id, gpu.uuid)]
            assert herd.states[live.row] == gpu.state
            assert herd.numbers["utilization_gpu"][live.row] == gpu.sample.utilization_gpu
            assert live.facts is gpu.facts
    assert herd.totals.devices == {"busy": 9, "held": 1, "free": 3, "booked": 1, "fault": 1, "offline": 2}
