"""Nodes, devices and people by what someone types."""

from __future__ import annotations

import pytest

from gpuherd.client.herd_search import gpu_named, node_of, nodes_named, only
from gpuherd.client.herd_views import Herd
from gpuherd.model.errors import Refused
from support.seen_herd import NOW, every_state, gpu, node

HERD = Herd(
    time=NOW,
    nodes=(
        node("gpu07.lab.example", gpu(0, uuid="GPU-4f3a-1"), gpu(1, uuid="GPU-4f3a-2")),
        node("gpu08.lab.example", gpu(0)),
        node("gpu08.cave.example", gpu(0)),
        node("ada", gpu(0, users=("bob",))),
        node("odd/name:1", gpu(3)),
    ),
)


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("gpu07.lab.example", ["gpu07.lab.example"]),
        ("GPU07", ["gpu07.lab.example"]),
        ("gpu08", ["gpu08.lab.example", "gpu08.cave.example"]),
        ("gpu0*.lab.*", ["gpu07.lab.example", "gpu08.lab.example"]),
        ("gpu", []),
    ],
)
def test_nodes_by_their_names(word: str, found: list[str]) -> None:
    assert [one.name for one in nodes_named(HERD, word)] == found


def test_one_node_or_a_reason() -> None:
    assert node_of(HERD, "gpu07").name == "gpu07.lab.example"
    with pytest.raises(
        Refused,
        match=r"gpu08 matches several nodes: gpu08\.lab\.example, gpu08\.cave\.example; use the full name",
    ):
        node_of(HERD, "gpu08")
    with pytest.raises(Refused, match=r'there is no node "adda"; did you mean ada\?'):
        node_of(HERD, "adda")


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("gpu07/1", "gpu07.lab.example/1"),
        ("gpu07:0", "gpu07.lab.example/0"),
        ("gpu-4F3A-2", "gpu07.lab.example/1"),
        ("odd/name:1/3", "odd/name:1/3"),
    ],
)
def test_devices_by_place_or_uuid(word: str, place: str) -> None:
    found, device = gpu_named(HERD, word)
    assert found.place(device) == place


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("gpu07/9", "gpu07.lab.example has no GPU 9"),
        ("GPU-4f3a", "2 devices have a UUID that begins with GPU-4f3a"),
        ("GPU-", 'there is no GPU "GPU-"'),
        ("\x1b[2J", "there is no GPU"),
        ("gpu08/0", "matches several nodes"),
    ],
)
def test_devices_that_are_not_there(word: str, why: str) -> None:
    with pytest.raises(Refused) as refusal:
        gpu_named(HERD, word)
    assert why in str(refusal.value)
    assert "\x1b" not in str(refusal.value)


def test_a_slice_by_its_place() -> None:
    herd = every_state()
    _, part = gpu_named(herd, "gpu12/0.1")
    assert part.uuid == "MIG-1"


def test_what_is_left_of_a_herd() -> None:
    herd = every_state()
    assert only(herd, ()) is herd
    assert [(one.name, len(one.devices)) for one in only(herd, ("gpu1*",)).nodes] == [
        ("gpu10", 0),
        ("gpu11", 4),
        ("gpu12", 4),
    ]
    left = only(herd, ("cleo", "gpu10"))
    assert [(one.name, [device.facts.index for device in one.devices]) for one in left.nodes] == [
        ("gpu07", [3, 8, 9]),
        ("gpu10", []),
    ]
    with pytest.raises(
        Refused, match=r'there is no node "adda", and no user of this name holds a GPU; did you mean ada\?'
    ):
        only(herd, ("gpu07", "adda"))
    both = only(HERD, ("ada", "bob"))
    assert [one.name for one in both.nodes] == ["ada"]


def test_a_gpu_or_slice_alone_is_left_of_a_herd() -> None:
    herd = every_state()
    places = [
        one.place(device)
        for one in only(herd, ("gpu07/3", "gpu12/0.1", "gpu12/0.1")).nodes
        for device in one.units
    ]
    assert places == ["gpu07/3", "gpu12/0.1"]
    slices = only(herd, ("gpu12/0",)).nodes[0]
    assert {slices.place(device) for device in slices.units} == {"gpu12/0.0", "gpu12/0.1"}
    with pytest.raises(Refused, match="gpu07 has no GPU 77"):
        only(herd, ("gpu07/77",))


def test_the_gpu_of_a_slice_stays_so_that_its_place_is_known() -> None:
    herd = every_state()
    shared = Herd(
        time=NOW,
        nodes=(
            node(
                "n",
                *herd.nodes[5].devices[:2],
                gpu(0, "busy", users=("eve",), parent="GPU-parent", uuid="MIG-9"),
            ),
        ),
    )
    left = only(shared, ("eve",)).nodes[0]
    assert [left.place(device) for device in left.units] == ["n/0.0"]
