"""Short names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpuherd.fleet.names import UNKNOWN_TYPE, Names, natural_key, short_name
from gpuherd.fleet.settings import DisplaySettings
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import Process, ProcessTable


@pytest.mark.parametrize(
    ("name", "profile", "short"),
    [
        ("NVIDIA A100-SXM4-80GB", None, "A100 80GB"),
        ("NVIDIA H100 80GB HBM3", None, "H100 80GB"),
        ("Tesla V100-PCIE-32GB", None, "V100 32GB"),
        ("NVIDIA GeForce RTX 4090", None, "RTX 4090"),
        ("Tesla T4", None, "T4"),
        ("NVIDIA RTX 6000 Ada Generation", None, "RTX 6000 Ada"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "1g.10gb", "A100 80GB 1g.10gb"),
        ("NVIDIA", None, "NVIDIA"),
    ],
)
def test_short_name(name: str, profile: str | None, short: str) -> None:
    assert short_name(DeviceFacts(uuid="u", index=0, name=name, profile=profile)) == short


@pytest.mark.parametrize("name", ["NVIDIA GPU", "GPU", "gpu", "AMD GPU", "unknown"])
def test_a_name_that_says_nothing_is_an_unknown_type(name: str) -> None:
    assert short_name(DeviceFacts(uuid="u", index=0, name=name)) == UNKNOWN_TYPE == "unknown type"


def test_an_operator_chooses_names_and_a_slice_keeps_its_profile() -> None:
    names = Names(
        DisplaySettings(gpus={"NVIDIA GeForce RTX 2080 Ti": "2080Ti"}, nodes={"gputest001": "Paris 1"})
    )
    card = DeviceFacts(uuid="u", index=0, name="NVIDIA GeForce RTX 2080 Ti")
    assert names.gpu(card) == "2080Ti"
    assert names.gpu(structs.replace(card, profile="1g.5gb")) == "2080Ti 1g.5gb"
    assert names.gpu(structs.replace(card, name="Tesla T4")) == "T4"
    assert names.node("gputest001", "gputest001", "anything") == "Paris 1"
    assert names.node("other", "other", "anything") == "other", "what a machine calls itself is not its name"


def test_a_bare_address_is_shown_with_what_the_machine_calls_itself() -> None:
    names = Names(DisplaySettings())
    assert names.node("192.168.0.3", "192.168.0.3", "gpu03") == "gpu03 (192.168.0.3)"
    assert names.node("192.168.0.3", "192.168.0.3", None) == "192.168.0.3"
    assert names.node("fe80-1", "fe80::1", "gpu03") == "gpu03 (fe80::1)"


def test_short_node_names_are_first_labels_unless_chosen_or_addresses() -> None:
    names = Names(DisplaySettings(short_node_names=True, nodes={"gpu02.lab": "big.one"}))
    assert names.node("gpu01.lab", "gpu01.lab", "gpu01.lab") == "gpu01"
    assert names.node("gpu02.lab", "gpu02.lab", None) == "big.one"
    assert names.node("192.168.0.3", "192.168.0.3", None) == "192.168.0.3"
    assert names.node("192.168.0.3", "192.168.0.3", "gpu03.lab") == "gpu03 (192.168.0.3)"
    assert names.node("x", ".lab", None) == ".lab"


def test_nodes_come_in_the_chosen_order_then_as_people_count() -> None:
    names = Names(DisplaySettings(order=("h100-*", "login"), nodes={"b": "login"}))
    nodes = ["gpu10", "gpu2", "b", "h100-1", "a"]
    ordered = sorted(nodes, key=lambda name: (names.place(name, name, None), natural_key(name)))
    assert ordered == ["h100-1", "b", "a", "gpu2", "gpu10"]


def test_a_list_keeps_its_order_if_wanted() -> None:
    names = Names(DisplaySettings(order=("z",), keep_list_order=True))
    assert [names.place(n, n, p) for n, p in (("z", 9), ("b", 0), ("a", 1))] == [0, 1, 2]
    assert names.place("pushed", "pushed", None) > names.place("last", "last", 10**9)


def test_aliases_become_the_user_behind_them_and_settings_win() -> None:
    names = Names(DisplaySettings(users={"jd": "jdoe"}), {"jd": "someone", "root": "admin"})
    table = ProcessTable(
        processes=(
            Process(pid=1, user="jd"),
            Process(pid=2, user="root"),
            Process(pid=3),
            Process(pid=4, user="x"),
        )
    )
    assert [process.user for process in names.table(table).processes] == ["jdoe", "admin", None, "x"]
    untouched = ProcessTable(processes=(Process(pid=4, user="x"),))
    assert names.table(untouched) is untouched


@given(st.lists(st.text(max_size=12)))
def test_any_names_can_be_sorted(names: list[str]) -> None:
    keys = [natural_key(name) for name in sorted(names, key=natural_key)]
    assert all(one <= other for one, other in pairwise(keys))


def test_holders_of_bookings_are_written_freely_and_users_of_nodes_are_not() -> None:
    names = Names(DisplaySettings(users={"caro": "carol"}))
    assert [names.holder(name) for name in ("Caro", "+caro", "caro", "Carol", "Dan+")] == [
        "carol",
        "carol",
        "carol",
        "Carol",
        "Dan+",
    ]
    assert names.user("Caro") == "Caro", "this one is asked for rights, too"
    assert names.with_aliases(["Carol"]) == {"Carol"}
