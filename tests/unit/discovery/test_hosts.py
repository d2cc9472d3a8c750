"""Hosts as people write them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.hosts import StaticFinder, parse_host, parse_host_list
from gpuherd.discovery.hosts_file import parse_hosts
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from gpuherd.model.text import clean
from support.complaints import complaint_of


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("gpu01", Target(name="gpu01", address="gpu01")),
        (" gpu01.example.org ", Target(name="gpu01.example.org", address="gpu01.example.org")),
        ("gpu01.", Target(name="gpu01", address="gpu01.")),
        ("gpu01:2222", Target(name="gpu01", address="gpu01", port=2222)),
        ("192.168.0.1", Target(name="192.168.0.1", address="192.168.0.1")),
        ("192.168.0.1:7080", Target(name="192.168.0.1", address="192.168.0.1", port=7080)),
        ("::1", Target(name="::1", address="::1")),
        ("[::1]", Target(name="::1", address="::1")),
        ("[2001:db8::7]:22", Target(name="2001:db8::7", address="2001:db8::7", port=22)),
        ("fe80::1%eth0", Target(name="fe80::1", address="fe80::1%eth0")),
        ("monitor@gpu01:22", Target(name="gpu01", address="gpu01", port=22, user="monitor")),
        ("m@example.org@gpu01", Target(name="gpu01", address="gpu01", user="m@example.org")),
        ("big=10.0.0.7:2222", Target(name="big", address="10.0.0.7", port=2222)),
        ("big=me@[::1]:2222", Target(name="big", address="::1", port=2222, user="me")),
        ("101", Target(name="101", address="101")),
        ("under_score", Target(name="under_score", address="under_score")),
    ],
)
def test_every_way_to_write_a_host(entry: str, expected: Target) -> None:
    found = parse_host(entry, "")
    assert found == expected


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("", "the host is empty"),
        ("gpu01 gpu02", "more than one word"),
        ("gpu01:", "port must be a number"),
        ("gpu01:0", "port must be a number"),
        ("gpu01:65536", "port must be a number"),
        ("gpu01:ssh", "port must be a number"),
        ("gpu01:²", "port must be a number"),
        ("192.168.0.300", "not an IP address"),
        ("[::1", "write an IPv6 address as"),
        ("[::1]22", "write an IPv6 address as"),
        ("::1::2", "not an IPv6 address"),
        ("-oProxyCommand=x", "is not a name"),
        ("-oProxyCommand", "cannot start with '-'"),
        ("http://gpu01:7080/", "is a web address"),
        ("müller", "xn-- form"),
        ("a/b", "not a host name"),
        ("a..b", "not a host name"),
        ("x" * 129, "longer than 128"),
        ("=gpu01", "is not a name"),
        ("@gpu01", "is not a user name"),
        ("big=", "the host is missing"),
        ("gpu\x1b[31m01", "more than one word"),
    ],
)
def test_what_is_no_host_is_refused_with_place_and_remedy(entry: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_host(entry, "hosts.txt:3")
    assert str(caught.value).startswith("hosts.txt:3: ")
    assert complaint in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(Misconfigured, match="password") as caught:
        parse_host("me:hunter2@gpu01", "hosts.txt:3")
    assert "hunter2" not in str(caught.value)


@given(st.text())
def test_any_entry_gives_a_target_or_one_clean_error(entry: str) -> None:
    complaint = complaint_of(lambda: parse_host(entry, "here"))
    if complaint is None:
        assert not parse_host(entry, "here").address.startswith("-")
    else:
        assert clean(complaint, 1000) == complaint


def test_a_list_names_every_bad_entry_at_once() -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_host_list(["a", "b c", "d:0"], "nodes[0].hosts")
    assert "nodes[0].hosts, entry 2: " in str(caught.value)
    assert "nodes[0].hosts, entry 3: " in str(caught.value)


def test_a_static_list_stays_as_it_is() -> None:
    async def run() -> None:
        finder = StaticFinder(parse_host_list(["a", "b"], "hosts"))
        assert [target.name for target in await finder.find()] == ["a", "b"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(finder.wait(), 0.01)
        await finder.close()

    asyncio.run(run())


def test_a_hosts_file_as_people_keep_them() -> None:
    lines = [
        "# the cluster",
        "",
        "192.168.0.1",
        "  192.168.0.2:7081  ",
        "gpu03 # new",
        "[::1]:7080",
        "",
        "192.168.0.1",
    ]
    text = "\r\n".join(lines)
    found = parse_hosts(text, "hosts.txt")
    assert [(target.name, target.port) for target in found] == [
        ("192.168.0.1", None),
        ("192.168.0.2", 7081),
        ("gpu03", None),
        ("::1", 7080),
    ]
    assert [target.place for target in found] == [
        "hosts.txt:3; again in line 8",
        "hosts.txt:4",
        "hosts.txt:5",
        "hosts.txt:6",
    ]


def test_lines_as_in_etc_hosts_give_the_first_name_at_that_address() -> None:
    found = parse_hosts("192.168.0.1 gpu01 gpu01.example.org\n::2\tgpu02\n", "hosts.txt")
    assert [(target.name, target.address) for target in found] == [("gpu01", "192.168.0.1"), ("gpu02", "::2")]


def test_every_bad_line_is_named_at_once() -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_hosts("good\nbad host\ngood2\nhost:99999\n", "/etc/hosts.txt")
    assert "/etc/hosts.txt:2: " in str(caught.value)
    assert "/etc/hosts.txt:4: " in str(caught.value)
    assert "/etc/hosts.txt:1" not in str(caught.value)


def test_a_thousand_bad_lines_do_not_make_a_thousand_sentences() -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_hosts("a b\n" * 1000, "hosts.txt")
    assert "990 more lines of hosts.txt cannot be used" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_one_name_for_two_addresses_is_a_contradiction() -> None:
    with pytest.raises(Misconfigured, match=r'hosts.txt:2: "GPU01" is already at hosts.txt:1'):
        parse_hosts("gpu01:1\nGPU01:2\n", "hosts.txt")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300))
def test_any_text_gives_targets_or_a_misconfiguration(text: str) -> None:
    complaint = complaint_of(lambda: parse_hosts(text, "hosts.txt"))
    if complaint is None:
        names = [target.name.lower() for target in parse_hosts(text, "hosts.txt")]
        assert len(names) == len(set(names))
    else:
        assert complaint.startswith("hosts.txt:")
