"""Choosing among made-up herds: never what is not surely free, and exactly as many as were asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpuherd.client.booked_times import BookedTimes
from gpuherd.client.choosing import Candidate, Search, by_node, choose, most_together
from gpuherd.client.herd_views import Availability, Gpu, GpuBooking, GpuFacts, Herd, Node
from gpuherd.client.views import BookedTime, Device, Timeline
from gpuherd.client.wanted import GIB, Wish, read_type

NOW = 1_000_000.0
HOUR = 3600
STATES = ("free", "busy", "held", "booked", "fault", "stale", "offline", "unknown", "of a newer hub")


def gpu(node_id: str, index: int, state: str = "free", **facts: Any) -> Gpu:
    values = {
        "uuid": f"GPU-{node_id}-{index}",
        "index": index,
        "name": "A100",
        "memory_total_bytes": 80 * GIB,
        **facts,
    }
    return Gpu(node_id=node_id, facts=GpuFacts(**values), availability=Availability(state=state))


def node(name: str, *gpus: Gpu, state: str = "live", age: float | None = 1.0) -> Node:
    return Node(id=name, name=name, state=state, age_seconds=age, devices=gpus)


def herd(*nodes: Node, age: float = 0.0) -> Herd:
    return Herd(time=NOW - age, nodes=nodes)


def timeline(*bookings: tuple[Gpu, float, float, bool]) -> BookedTimes:
    """Bookings as device, begin and end from now on, and whether they are one's own."""
    return BookedTimes(
        Timeline(
            devices=tuple(Device(node_id=one.node_id, node_name="", uuid=one.uuid) for one, *_ in bookings),
            bookings=tuple(
                BookedTime(
                    id=place + 1,
                    holder="ann",
                    starts_at=int(NOW + begin),
                    ends_at=int(NOW + end),
                    is_own=own,
                    devices=(place,),
                )
                for place, (_, begin, end, own) in enumerate(bookings)
            ),
        )
    )


def found(
    of: Herd, wish: Wish | None = None, booked: BookedTimes | None = None, person: str = "ann", **search: Any
) -> list[str] | None:
    wish = wish or Wish()
    able = Search(wish=wish, **search).sort(of, booked or BookedTimes(), NOW).able
    chosen = choose(able, wish, person=person)
    return None if chosen is None else sorted(one.place for one in chosen)


# -- what can be had -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES[1:])
def test_only_what_is_free_is_taken(state: str) -> None:
    assert found(herd(node("n", gpu("n", 0, state)))) is None


def test_nothing_that_a_hub_tells_acts_on_a_terminal() -> None:
    evil = "\x1b]0;owned\x07\u202e\0"
    sorted_ = Search().sort(
        herd(node(f"n{evil}", gpu("n", 0), gpu("n", 1, f"held{evil}"))), BookedTimes(), NOW
    )
    assert sorted_.told() == "1 held\ufffd]0;owned\ufffd\ufffd\ufffd"
    assert [one.place for one in sorted_.known] == [
        f"n\ufffd]0;owned\ufffd\ufffd\ufffd/{index}" for index in (0, 1)
    ]


@pytest.mark.parametrize(
    "of",
    [
        herd(node("n", gpu("n", 0), state="stale")),
        herd(node("n", gpu("n", 0), state="of a newer hub")),
        herd(node("n", gpu("n", 0), age=None)),
        herd(node("n", gpu("n", 0), age=61)),
        herd(node("n", gpu("n", 0), age=31), age=30),
        herd(node("n", gpu("n", 0)), age=-100),
    ],
)
def test_nothing_is_taken_by_old_news(of: Herd) -> None:
    assert found(of) is None


def test_whoever_knows_that_news_are_slow_may_say_so() -> None:
    assert found(herd(node("n", gpu("n", 0), age=200)), max_age_seconds=300) == ["n/0"]


@pytest.mark.parametrize(
    "uuid",
    ["", "gpu-0-without-uuid", "GPU-0;rm -rf /", "GPU-0 GPU-1", "GPU-$(id)", "GPU-", "MIG-a\n", "../GPU-0"],
)
def test_an_id_that_a_shell_or_driver_would_not_take_is_not_given_out(uuid: str) -> None:
    assert found(herd(node("n", gpu("n", 0, uuid=uuid)))) is None


def test_bookings_of_others_are_respected_from_all_that_tell_of_them() -> None:
    one = gpu("n", 0)
    assert found(herd(node("n", one)), booked=timeline((one, HOUR, 2 * HOUR, False))) is None
    assert found(herd(node("n", one)), booked=timeline((one, HOUR, 2 * HOUR, False)), seconds=HOUR) == ["n/0"]
    assert found(herd(node("n", one)), booked=timeline((one, -HOUR, 0, False))) == ["n/0"]
    told = structs.replace(
        one, bookings=(GpuBooking(id=7, starts_at=int(NOW) + 60, ends_at=int(NOW) + 120, phase="next"),)
    )
    assert found(herd(node("n", told))) is None


def test_behind_ones_own_booking_there_may_be_that_of_another() -> None:
    one = gpu("n", 0, "booked")
    own = (one, -60, HOUR, True)
    assert found(herd(node("n", one)), booked=timeline(own)) == ["n/0"]
    assert found(herd(node("n", one)), booked=timeline(own, (one, HOUR, 2 * HOUR, False))) is None


def test_what_one_has_booked_comes_first_unless_a_new_booking_is_to_be_made() -> None:
    small, own = gpu("n", 0, memory_total_bytes=GIB), gpu("n", 1, "booked")
    booked = timeline((own, -60, HOUR, True))
    assert found(herd(node("n", small, own)), booked=booked) == ["n/1"]
    assert found(herd(node("n", small, own)), booked=booked, is_for_booking=True) == ["n/0"]
    in_use = gpu("n", 1, "busy")
    assert found(herd(node("n", in_use)), booked=timeline((in_use, -60, HOUR, True))) is None


def test_what_is_kept_out_of_booking_is_not_booked() -> None:
    one = gpu("n", 0)
    quiet = BookedTimes(Timeline(devices=(Device(node_id="n", node_name="", uuid=one.uuid, is_quiet=True),)))
    assert found(herd(node("n", one)), booked=quiet) == ["n/0"]
    assert found(herd(node("n", one)), booked=quiet, is_for_booking=True) is None


def test_a_gpu_that_was_booked_whole_is_booked_with_its_slices() -> None:
    parent = gpu("n", 0, is_partitioned=True)
    part = gpu("n", 3, uuid="MIG-1", parent_uuid=parent.uuid, profile="1g.10gb")
    wish = Wish(type_words=read_type("1g.10gb"))
    assert found(herd(node("n", parent, part)), wish) == ["n/0.3"]
    assert found(herd(node("n", parent, part)), wish, timeline((parent, 0, HOUR, False))) is None


# -- which of them -------------------------------------------------------------------------------------------------


def test_the_smallest_that_will_do() -> None:
    sizes = [gpu("n", place, memory_total_bytes=size * GIB) for place, size in enumerate((80, 24, 40))]
    of = herd(node("n", *sizes, gpu("n", 3, memory_total_bytes=None)))
    assert found(of) == ["n/1"]
    assert found(of, Wish(min_memory_bytes=40 * GIB)) == ["n/2"]
    assert found(of, Wish(count=2)) == ["n/1", "n/2"]
    assert found(of, Wish(count=4)) == ["n/0", "n/1", "n/2", "n/3"]
    assert found(of, Wish(count=5)) is None


def test_nodes_in_use_are_filled_before_empty_ones_are_broken_up() -> None:
    empty = node("empty", *(gpu("empty", index) for index in range(4)))
    used = [node(name, gpu(name, 0, "busy"), gpu(name, 1), gpu(name, 2)) for name in ("a", "b")]
    for person in "abcdefgh":
        assert found(herd(empty, *used), person=person) in (["a/1"], ["a/2"], ["b/1"], ["b/2"])
        assert found(herd(empty, *used), Wish(count=3, same_node=True), person=person) != [
            "a/1",
            "a/2",
            "b/1",
        ]
        assert not any(
            "empty" in place for place in found(herd(empty, *used), Wish(count=4), person=person) or ()
        )
    assert Counter(
        place.partition("/")[0] for place in found(herd(empty, *used), Wish(count=3, same_node=True)) or ()
    ) == {"empty": 3}


def test_the_tightest_fit() -> None:
    of = herd(
        node("wide", gpu("wide", 9, "busy"), *(gpu("wide", index) for index in range(4))),
        node("tight", gpu("tight", 9, "busy"), gpu("tight", 0), gpu("tight", 1)),
    )
    assert found(of, Wish(count=2)) == ["tight/0", "tight/1"]


def test_slices_of_gpus_in_use_come_first() -> None:
    def slices(parent: int, *states: str) -> list[Gpu]:
        whole = gpu("n", parent, is_partitioned=True)
        parts = [
            gpu("n", place, state, uuid=f"MIG-{parent}-{place}", parent_uuid=whole.uuid, profile="1g.10gb")
            for place, state in enumerate(states)
        ]
        return [whole, *parts]

    of = herd(node("n", *slices(0, "free", "free"), *slices(1, "free", "busy")))
    for person in "abcdef":
        assert found(of, Wish(type_words=read_type("mig")), person=person) == ["n/1.0"]


def test_people_who_choose_at_once_are_spread() -> None:
    of = herd(node("n", *(gpu("n", index) for index in range(8))))
    chosen = Counter(str(found(of, person=f"person{number}")) for number in range(80))
    assert len(chosen) == 8
    assert max(chosen.values()) < 25
    assert found(of, person="ann") == found(of, person="ann")


def test_makes_are_not_mixed() -> None:
    of = herd(node("n", gpu("n", 0), gpu("n", 1, vendor="amd", memory_total_bytes=GIB)))
    assert found(of, Wish(count=2)) is None
    assert found(of) == ["n/1"]


def test_how_many_there_are_together() -> None:
    of = herd(
        node("a", gpu("a", 0), gpu("a", 1, "busy"), gpu("a", 2, vendor="amd")),
        node("b", gpu("b", 0), *(gpu("b", index, vendor="amd") for index in (1, 2, 3))),
    )
    known = Search().sort(of, BookedTimes(), NOW).known
    assert most_together(known, Wish()) == 4
    assert most_together(known, Wish(same_node=True)) == 3
    assert most_together((), Wish()) == 0


# -- whatever the herd ---------------------------------------------------------------------------------------------

gpus = st.builds(
    lambda state, memory, vendor, begin: (state, memory, vendor, begin),
    st.sampled_from([*STATES, "free", "free", "free"]),
    st.sampled_from([None, 24, 40, 80]),
    st.sampled_from(["nvidia", "nvidia", "amd"]),
    st.one_of(st.none(), st.tuples(st.integers(-8, 8), st.integers(1, 6), st.booleans())),
)
nodes = st.tuples(
    st.lists(gpus, max_size=5), st.sampled_from(["live", "live", "stale"]), st.sampled_from([1.0, None, 99.0])
)


@given(
    st.lists(nodes, max_size=4),
    st.integers(1, 6),
    st.sampled_from([None, 30 * GIB]),
    st.booleans(),
    st.integers(1, 8),
    st.booleans(),
    st.text(max_size=3),
)
def test_whatever_is_chosen_is_surely_free_unbooked_and_as_many_as_were_asked_for(
    made_up: list[Any], count: int, memory: int | None, same_node: bool, hours: int, books: bool, person: str
) -> None:
    all_nodes, bookings = [], []
    for number, (devices, state, age) in enumerate(made_up):
        made = []
        for index, (of_state, size, vendor, booked) in enumerate(devices):
            one = gpu(
                f"n{number}",
                index,
                of_state,
                memory_total_bytes=None if size is None else size * GIB,
                vendor=vendor,
            )
            made.append(one)
            if booked is not None:
                begin, length, own = booked
                bookings.append((one, begin * HOUR, (begin + length) * HOUR, own))
        all_nodes.append(node(f"n{number}", *made, state=state, age=age))
    wish = Wish(count=count, min_memory_bytes=memory, same_node=same_node)
    search = Search(wish=wish, seconds=hours * HOUR, is_for_booking=books)
    sorted_ = search.sort(herd(*all_nodes), timeline(*bookings), NOW)
    chosen = choose(sorted_.able, wish, person=person)

    pools: Counter[tuple[str, str]] = Counter(
        (one.gpu.facts.vendor, one.node.id if same_node else "") for one in sorted_.able
    )
    assert (chosen is not None) == any(size >= count for size in pools.values())
    assert len(sorted_.able) + sum(map(len, sorted_.others.values())) == sum(
        memory is None or (one.facts.memory_total_bytes or 0) >= memory for _, one in herd(*all_nodes).units()
    )
    if chosen is None:
        return
    assert len({one.gpu.uuid for one in chosen}) == len(chosen) == count
    assert choose(sorted_.able[::-1], wish, person=person) is not None
    assert len({one.gpu.facts.vendor for one in chosen}) == 1
    assert not same_node or len(by_node(chosen)) == 1
    for taken in chosen:
        check(taken, bookings, hours, is_for_booking=books)
        assert memory is None or (taken.gpu.facts.memory_total_bytes or 0) >= memory


def check(
    one: Candidate, bookings: list[tuple[Gpu, float, float, bool]], hours: int, *, is_for_booking: bool
) -> None:
    mine = [span for span in bookings if span[0].uuid == one.gpu.uuid]
    runs = any(begin <= 0 < end and own for _, begin, end, own in mine)
    assert one.gpu.state == "free" or (one.gpu.state == "booked" and runs)
    assert (one.node.state, one.node.age_seconds) == ("live", 1.0)
    for _, begin, end, own in mine:
        assert begin >= hours * HOUR or end <= 0 or (own and not is_for_booking)
