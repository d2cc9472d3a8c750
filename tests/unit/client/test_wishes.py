"""What people type to say which GPUs they mean."""

from __future__ import annotations

from typing import Any

import pytest

from gpuherd.client.views import Device
from gpuherd.client.wishes import device_named, node_named, read_wish
from gpuherd.model.errors import Refused


def device(node: str, index: int, *, parent: int | None = None, name: str | None = None) -> Device:
    uuid = f"GPU-{node}-{index}" if parent is None else f"MIG-{node}-{parent}-{index}"
    return Device(node_id=node, node_name=name or node, uuid=uuid, index=index, parent_index=parent)


HERD = (
    *(device("gpu07.site", index, name="Big Country") for index in range(4)),
    device("gpu08", 0),
    device("gpu08", 0, parent=1),
    device("gpu08", 1, parent=1),
)


def uuids(wish: dict[str, Any]) -> list[str]:
    return [one["uuid"].partition("-")[2] for one in wish["devices"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpu07:0,1"], ["gpu07.site-0", "gpu07.site-1"]),
        (["gpu07/1-3"], ["gpu07.site-1", "gpu07.site-2", "gpu07.site-3"]),
        (["GPU07.site:2"], ["gpu07.site-2"]),
        (["Big Country:0"], ["gpu07.site-0"]),
        (["gpu08:all"], ["gpu08-0", "gpu08-1-0", "gpu08-1-1"]),
        (["gpu08:1"], ["gpu08-1-0", "gpu08-1-1"]),
        (["gpu08:1.1,1"], ["gpu08-1-1", "gpu08-1-0"]),
        (["gpu07:0", "gpu08:0"], ["gpu07.site-0", "gpu08-0"]),
        (["gpu-gpu08-0"], ["gpu08-0"]),
        (["MIG-gpu08-1-1"], ["gpu08-1-1"]),
    ],
)
def test_devices_by_their_places(words: list[str], expected: list[str]) -> None:
    assert uuids(read_wish(words, lambda: HERD)) == expected


def test_one_device_by_its_place_or_uuid() -> None:
    assert device_named("gpu07/2", HERD) == "GPU-gpu07.site-2"
    assert device_named("gpu08/1.1", HERD) == "MIG-gpu08-1-1"
    assert device_named("GPU-of-one-that-is-gone", HERD) == "GPU-of-one-that-is-gone"
    for word, why in (("gpu08/1", "is several devices"), ("gpu08/7", "has no GPU 7"), ("gpu09/1", "no node")):
        with pytest.raises(Refused, match=why):
            device_named(word, HERD)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpu08"], {"nodes": ["gpu08"]}),
        (["2xA100-80G"], {"any": "2xA100-80G"}),
        (["2", "x", "A100", "80GB"], {"any": "2 x A100 80GB"}),
        (["A100"], {"any": "A100"}),
        (["3"], {"any": "3"}),
    ],
)
def test_nodes_and_kinds(words: list[str], expected: dict[str, Any]) -> None:
    assert read_wish(words, lambda: HERD) == expected


@pytest.mark.parametrize(
    ("word", "count", "model"), [("4xH100", 4, "H100"), ("3", 3, None), ("2x", 2, None), ("H100", 1, "H100")]
)
def test_all_on_one_node(word: str, count: int, model: str | None) -> None:
    wish = read_wish([word], lambda: HERD, same_node=True)
    assert wish == {"any": {"count": count, "model": model, "same_node": True}}


def test_nobody_is_asked_what_is_clear_without() -> None:
    def never() -> tuple[Device, ...]:
        raise AssertionError

    assert read_wish(["2xA100"], never) == {"any": "2xA100"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gpu09:0"], 'no node "gpu09"'),
        (["gpu07:9"], "has no GPU 9"),
        (["gpu07:3-1"], "not a range"),
        (["gpu07-1"], "did you mean gpu07/1?"),
        (["gpu07/0", "gpu07-1.2"], "did you mean gpu07/1.2?"),
        (["gpu07:0", "A100"], 'no node "A100"'),
        (["GPU-nothing"], "no device"),
        (["GPU-gpu0"], "5 devices"),
        (["\x1b[31m:0"], "\ufffd"),
    ],
)
def test_what_there_is_not(words: list[str], told: str) -> None:
    with pytest.raises(Refused) as caught:
        read_wish(words, lambda: HERD)
    assert told in str(caught.value)


def test_a_name_that_several_nodes_go_by() -> None:
    with pytest.raises(Refused, match=r"gpu1 matches several nodes: gpu1\.a, gpu1\.b"):
        node_named("gpu1", [device("gpu1.a", 0), device("gpu1.b", 0)])
