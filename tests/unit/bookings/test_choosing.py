"""From a wish to devices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.bookings.choosing import candidates, choose, named_devices, running_devices, whole_nodes
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.requests import AnyDevices
from gpuherd.bookings.wishes import fits, read_wish
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.bookings import DeviceRef
from support.booking_desk import GIB, a100, herd_of, mig_slice, ref

SPLIT = a100("n2", 0, is_partitioned=True)
HERD = herd_of(
    *(a100("n1", index) for index in range(4)),
    SPLIT,
    mig_slice("n2", 0, 0),
    mig_slice("n2", 0, 1),
    a100("n2", 1),
)


def pick(
    herd: Herd, wish: AnyDevices, *, booked: tuple[DeviceRef, ...] = (), starts_now: bool = True
) -> list[DeviceRef] | None:
    return choose(candidates(herd, wish), wish, is_free=lambda ref: ref not in booked, starts_now=starts_now)


# -- named ---------------------------------------------------------------------------------------------------------


def test_named_devices_are_taken_as_they_are() -> None:
    assert named_devices(HERD, [ref("n1", 2), ref("n1", 0)]) == [ref("n1", 2), ref("n1", 0)]


def test_a_partitioned_gpu_stands_for_its_slices() -> None:
    assert named_devices(HERD, [ref("n2", 0)]) == [ref("n2", "0-0"), ref("n2", "0-1")]


def test_a_partitioned_gpu_without_slices_is_refused() -> None:
    with pytest.raises(Unfit, match="has no slices") as caught:
        named_devices(herd_of(SPLIT), [ref("n2", 0)])
    assert (caught.value.code, caught.value.path) == ("no_slices", "devices[0]")


def test_an_unknown_device_is_named_by_its_place() -> None:
    with pytest.raises(Unfit, match="there is no device GPU-\N{REPLACEMENT CHARACTER}x on node n1") as caught:
        named_devices(HERD, [ref("n1", 0), DeviceRef("n1", "GPU-\x1bx")])
    assert (caught.value.code, caught.value.path) == ("unknown_device", "devices[1]")
    with pytest.raises(Unfit):
        named_devices(HERD, [DeviceRef("n2", ref("n1", 0).uuid)])  # the same UUID, claimed by another node


@pytest.mark.parametrize("pattern", ["n1", "n1.lab", "n?", "*/0", "n1/GPU-n1-0", "n1.lab/0"])
def test_quiet_devices_cannot_be_named(pattern: str) -> None:
    herd = herd_of(a100("n1", 0), a100("n1", 1), quiet=(pattern,))
    with pytest.raises(Unfit, match=r"n1\.lab/0 is not bookable") as caught:
        named_devices(herd, [ref("n1", 0)])
    assert (caught.value.code, caught.value.path) == ("quiet_device", "devices[0]")


def test_a_quiet_gpu_has_quiet_slices() -> None:
    herd = herd_of(SPLIT, mig_slice("n2", 0, 0), mig_slice("n2", 0, 1), a100("n2", 1), quiet=("n2/0",))
    for quiet in (ref("n2", 0), ref("n2", "0-1")):
        with pytest.raises(Unfit, match="not bookable"):
            named_devices(herd, [quiet])
    assert named_devices(herd, [ref("n2", 1)]) == [ref("n2", 1)]


def test_a_quiet_slice_leaves_the_others() -> None:
    herd = herd_of(SPLIT, mig_slice("n2", 0, 0), mig_slice("n2", 0, 1), quiet=("n2/0.1",))
    assert herd.quiet == {ref("n2", "0-1")}


def test_devices_by_what_people_call_them() -> None:
    herd = herd_of(SPLIT, mig_slice("n2", 0, 0), mig_slice("n2", 0, 1), a100("n1", 1))
    assert [herd.named(herd.word(device)) for device in herd.devices] == list(herd.devices)
    assert herd.named("N2/0.1") == ref("n2", "0-1")
    assert [herd.named(word) for word in ("n2/7", "n2", "n9/0", "/0", "")] == [None] * 5


def test_whole_nodes_leave_quiet_devices_out() -> None:
    herd = herd_of(a100("n1", 0), a100("n1", 1), a100("n3", 0), quiet=("n1/0", "n3"))
    assert whole_nodes(herd, ["n1"]) == [ref("n1", 1)]
    with pytest.raises(Unfit, match=r"n3\.lab is not bookable") as caught:
        whole_nodes(herd, ["n1", "n3"])
    assert caught.value.path == "nodes[1]"
    with pytest.raises(Unfit, match="no node n9 with known GPUs"):
        whole_nodes(herd, ["n9"])


def test_a_whole_node_has_slices_instead_of_what_they_are_cut_from() -> None:
    assert whole_nodes(HERD, ["n2"]) == [ref("n2", "0-0"), ref("n2", "0-1"), ref("n2", 1)]


def test_what_someone_runs() -> None:
    herd = herd_of(
        a100("n1", 0, users=frozenset({"ada", "root"}), state="busy"),
        a100("n1", 1, users=frozenset({"bob"}), state="busy"),
        mig_slice("n2", 0, 3, users=frozenset({"ada-work"}), state="busy"),
    )
    assert running_devices(herd, ("ada", "ada-work")) == [ref("n1", 0), ref("n2", "0-3")]
    with pytest.raises(Unfit, match=r"your Linux users: eve\)") as caught:
        running_devices(herd, ("eve",))
    assert (caught.value.code, caught.value.path) == ("nothing_running", "running")
    with pytest.raises(Unfit, match=r"users: none\)"):
        running_devices(herd, ())


# -- wishes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count", "model"),
    [
        ("2 x A100 80GB", 2, "A100 80GB"),
        ("2×A100-80G", 2, "A100-80G"),
        ("any 2 A100", 2, "A100"),
        ("2xA100", 2, "A100"),
        ("A100", 1, "A100"),
        ("3", 3, None),
        ("4090", 1, "4090"),
        ("2 4090", 2, "4090"),
        ("3090 Ti", 1, "3090 Ti"),
        ("1g.10gb", 1, "1g.10gb"),
        ("4 * 1g.10gb", 4, "1g.10gb"),
        ("  8  x   H100 ", 8, "H100"),
    ],
)
def test_wishes_are_read(text: str, count: int, model: str | None) -> None:
    assert read_wish(text) == AnyDevices(count=count, model=model)


@pytest.mark.parametrize("text", ["", "   ", "any", "0", "0 x A100", "2 x -", "9999 x A100", "...", "any  "])
def test_wishes_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(Unfit) as caught:
        read_wish(text)
    assert (caught.value.code, caught.value.path) == ("unreadable_wish", "any")


@given(st.text(max_size=60))
def test_any_wish_is_read_or_refused(text: str) -> None:
    try:
        wish = read_wish(text)
    except Unfit:
        return
    assert 1 <= wish.count <= 1000


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("A100", True),
        ("a100 80gb", True),
        ("A100-80G", True),
        ("80GiB", True),
        ("A100 80 GB", True),
        ("NVIDIA A100", True),
        ("A100 40GB", False),
        ("A10", False),
        ("H100", False),
        ("1g.10gb", False),
    ],
)
def test_every_word_must_be_one_of_the_name_or_the_size(wish: str, expected: bool) -> None:
    assert fits(a100("n1", 0), read_wish(wish)) is expected


def test_the_size_may_be_known_from_the_memory_alone() -> None:
    card = a100(
        "n1", 0, short_name="RTX 4090", full_name="NVIDIA GeForce RTX 4090", memory_total_bytes=24_564 * 2**20
    )
    assert fits(card, read_wish("4090 24GB"))
    assert not fits(card, AnyDevices(min_memory_bytes=24 * GIB))
    assert fits(card, AnyDevices(min_memory_bytes=20 * GIB))
    unknown = a100("n1", 0, memory_total_bytes=None)
    assert not fits(unknown, AnyDevices(min_memory_bytes=1))


def test_slices_are_only_chosen_when_their_profile_is_asked_for() -> None:
    part = mig_slice("n2", 0, 0)
    assert not fits(part, read_wish("A100"))
    assert not fits(part, AnyDevices())
    assert fits(part, read_wish("1g.10gb"))
    assert fits(part, read_wish("A100 1g.10gb"))
    assert fits(part, read_wish("MIG"))
    assert pick(HERD, AnyDevices(count=2, model="1g.10gb")) == [ref("n2", "0-0"), ref("n2", "0-1")]
    with pytest.raises(Unfit, match="6 GPUs requested, 5 bookable"):
        candidates(HERD, AnyDevices(count=6))


# -- choosing ------------------------------------------------------------------------------------------------------


def test_free_ones_come_first_now_but_not_later() -> None:
    herd = herd_of(a100("n1", 0, state="busy"), a100("n1", 1, state="held"), a100("n1", 2))
    assert pick(herd, AnyDevices(count=1)) == [ref("n1", 2)]
    assert pick(herd, AnyDevices(count=2)) == [ref("n1", 2), ref("n1", 1)]
    assert pick(herd, AnyDevices(count=1), starts_now=False) == [ref("n1", 0)]


@pytest.mark.parametrize("state", ["fault", "offline"])
def test_broken_ones_are_never_chosen(state: str) -> None:
    herd = herd_of(a100("n1", 0, state=state), a100("n1", 1))
    assert pick(herd, AnyDevices(count=1), starts_now=False) == [ref("n1", 1)]
    with pytest.raises(Unfit, match="1 bookable; 1 more are in fault or offline") as caught:
        candidates(herd, AnyDevices(count=2))
    assert (caught.value.code, caught.value.path) == ("too_few_devices", "any.count")


def test_those_not_heard_of_come_last_also_for_later() -> None:
    herd = herd_of(a100("n1", 0, state="stale"), a100("n1", 1, state="busy"))
    assert pick(herd, AnyDevices(count=1), starts_now=False) == [ref("n1", 1)]


def test_quiet_ones_are_never_chosen() -> None:
    herd = herd_of(a100("n1", 0), a100("n1", 1), quiet=("n1/0",))
    assert pick(herd, AnyDevices(count=1)) == [ref("n1", 1)]


def test_one_node_is_preferred_and_the_one_where_fewest_are_left() -> None:
    herd = herd_of(*(a100("big", n) for n in range(8)), *(a100("small", n) for n in range(2)))
    assert pick(herd, AnyDevices(count=2)) == [ref("small", 0), ref("small", 1)]
    assert pick(herd, AnyDevices(count=3)) == [ref("big", 0), ref("big", 1), ref("big", 2)]
    chosen = pick(herd, AnyDevices(count=9))
    assert chosen is not None
    assert chosen[:8] == [ref("big", n) for n in range(8)]


def test_same_node_is_all_or_nothing() -> None:
    herd = herd_of(a100("n1", 0), a100("n1", 1), a100("n2", 0), a100("n2", 1))
    wish = AnyDevices(count=2, same_node=True)
    assert pick(herd, wish, booked=(ref("n1", 0), ref("n2", 1))) is None
    assert pick(herd, wish, booked=(ref("n1", 0),)) == [ref("n2", 0), ref("n2", 1)]
    with pytest.raises(Unfit, match="3 GPUs requested on one node, 2 bookable"):
        candidates(herd, AnyDevices(count=3, same_node=True))


def test_unknown_models_are_told() -> None:
    with pytest.raises(Unfit, match="1 GPU of type H200 requested, none bookable") as caught:
        candidates(HERD, AnyDevices(model="H200"))
    assert caught.value.path == "any.model"


def test_freeness_goes_before_one_node() -> None:
    herd = herd_of(a100("n1", 0), a100("n1", 1, state="busy"), a100("n2", 0))
    assert pick(herd, AnyDevices(count=2)) == [ref("n1", 0), ref("n2", 0)]
    assert pick(herd, AnyDevices(count=2, same_node=True)) == [ref("n1", 0), ref("n1", 1)]


devices = st.lists(
    st.builds(
        lambda node, index, state: a100(f"n{node}", index, state=state),
        st.integers(0, 3),
        st.integers(0, 7),
        st.sampled_from(["free", "busy", "held", "stale", "fault", "offline", "booked", "unknown"]),
    ),
    unique_by=lambda device: device.ref,
    max_size=20,
)


@given(found=devices, count=st.integers(1, 6), same=st.booleans(), now=st.booleans(), data=st.data())
def test_what_is_chosen_is_enough_free_sound_and_always_the_same(
    found: list[ListedDevice], count: int, same: bool, now: bool, data: st.DataObject
) -> None:
    booked = tuple(data.draw(st.lists(st.sampled_from([d.ref for d in found]))) if found else ())
    wish, herd = AnyDevices(count=count, same_node=same), herd_of(*found)
    try:
        chosen = pick(herd, wish, booked=booked, starts_now=now)
    except Unfit:
        return
    able = [d for d in found if d.ref not in booked and d.state not in ("fault", "offline")]
    per_node = [sum(d.ref.node_id == node for d in able) for node in {d.ref.node_id for d in able}]
    assert (chosen is not None) == (max(per_node, default=0) >= count if same else len(able) >= count)
    if chosen is not None:
        assert len(set(chosen)) == len(chosen) == count
        assert set(chosen) <= {d.ref for d in able}
        assert not same or len({one.node_id for one in chosen}) == 1
        assert chosen == pick(herd, wish, booked=booked, starts_now=now)
