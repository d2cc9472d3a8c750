"""What people type for a size, a time and a kind of GPU."""

from __future__ import annotations

import pytest

from gpuherd.client.herd_views import Gpu, GpuFacts
from gpuherd.client.wanted import GIB, Wish, fits, read_size, read_span, read_type
from gpuherd.model.errors import Refused

MIB = 2**20


def gpu(name: str = "NVIDIA A100-SXM4-80GB", memory: int | None = 80 * GIB, **facts: object) -> Gpu:
    return Gpu(
        node_id="n1",
        short_name=name.removeprefix("NVIDIA "),
        facts=GpuFacts(uuid="GPU-0", index=0, name=name, memory_total_bytes=memory, **facts),  # type: ignore[arg-type]
    )


SLICE = gpu("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 10 * GIB, parent_uuid="GPU-1", profile="1g.10gb")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("40G", 40 * GIB),
        ("40", 40 * GIB),
        ("40 GiB", 40 * GIB),
        ("40gb", 40 * GIB),
        ("500M", 500 * MIB),
        ("0.5T", 2**39),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-4G", "0", "4X", "1e3", "4 G G", "٤G", "9999999999G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(Refused, match="is not a size"):
        read_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4h", 14_400),
        ("3d 4h", 273_600),
        ("90m", 5400),
        ("1.5h", 5400),
        ("2 Weeks", 1_209_600),
        ("1h30m", 5400),
    ],
)
def test_spans(text: str, seconds: int) -> None:
    assert read_span(text) == seconds


@pytest.mark.parametrize("text", ["", "4", "h", "friday 18:00", "0h", "-1h", "9999w", "4h x"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(Refused, match="is not a duration"):
        read_span(text)


@pytest.mark.parametrize(
    ("words", "device", "is_such"),
    [
        ("a100", gpu(), True),
        ("A100-80G", gpu(), True),
        ("a100 80 GB", gpu(), True),
        ("a100 40gb", gpu(), False),
        ("a10", gpu(), False),
        ("h100", gpu("NVIDIA H100 80GB HBM3"), True),
        ("a100", SLICE, False),
        ("1g.10gb", SLICE, True),
        ("a100 mig", SLICE, True),
        ("mig", gpu(), False),
        ("l40s-48g", gpu("NVIDIA L40S", 46_068 * MIB), True),
        ("l4-24g", gpu("NVIDIA L4", 23_034 * MIB), True),
        ("t4 16gb", gpu("Tesla T4", 15_360 * MIB), True),
        ("l40s-40g", gpu("NVIDIA L40S", 46_068 * MIB), False),
        ("l4-24g", gpu("NVIDIA L4", None), False),
        ("a100-0g", gpu(memory=GIB), False),
        ("a100", gpu(is_partitioned=True), False),
    ],
)
def test_kinds(words: str, device: Gpu, is_such: bool) -> None:
    assert fits(device, Wish(type_words=read_type(words))) is is_such


@pytest.mark.parametrize(
    ("sold_as", "memory", "is_such"),
    [
        ("80G", 81_559 * MIB, True),  # H100
        ("24G", 23_034 * MIB, True),  # L4
        ("16G", 15_360 * MIB, True),  # T4
        ("40G", 40_960 * MIB, True),
        ("48G", 40_960 * MIB, False),
        ("1G", None, False),
    ],
)
def test_cards_have_the_size_that_they_are_sold_as(sold_as: str, memory: int | None, is_such: bool) -> None:
    assert fits(gpu(memory=memory), Wish(min_memory_bytes=read_size(sold_as))) is is_such


def test_a_kind_needs_a_word() -> None:
    with pytest.raises(Refused, match="is not a GPU type"):
        read_type(" -- ")


def test_a_wish_in_words() -> None:
    assert str(Wish()) == "1 GPU"
    assert (
        str(Wish(count=2, type_words=read_type("a100"), min_memory_bytes=40 * GIB, same_node=True))
        == "2 a100 of 40G on one node"
    )
