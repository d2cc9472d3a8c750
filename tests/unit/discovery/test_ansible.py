"""Ansible inventories in both spellings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.ansible import AnsibleFinder
from gpuherd.discovery.ansible.finder import parse_ansible
from gpuherd.discovery.ansible.patterns import expand, split_port
from gpuherd.discovery.settings import AnsibleSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from support.complaints import complaint_of

DOCUMENTED = """\
[webserver]
server ansible_host=192.168.0.1 ansible_user=me ansible_remote_tmp=/tmp/.ansible/tmp

[rpcservers]
host1 ansible_host=192.168.0.2 ansible_user=me ansible_remote_tmp=/tmp/.ansible/tmp
host2 ansible_host=192.168.0.3 ansible_user=me ansible_remote_tmp=/tmp/.ansible/tmp
"""

YAML = """\
all:
  vars:
    ansible_user: everyone
  children:
    rpcservers:
      hosts:
        host1:
          ansible_host: 192.168.0.2
        host[5:6].x:
      children:
        more:
          hosts: {host3: {ansible_user: three, ansible_port: 2222}}
          vars: {ansible_user: many}
    webserver:
      hosts:
        server:
"""


def test_the_documented_example() -> None:
    assert parse_ansible(DOCUMENTED, "hosts") == (
        Target(name="host1", address="192.168.0.2", user="me", place="hosts:5"),
        Target(name="host2", address="192.168.0.3", user="me", place="hosts:6"),
    )


def test_the_port_is_for_ssh_only() -> None:
    text = "[rpcservers]\na:2222\nb ansible_port=23\n"
    assert [target.port for target in parse_ansible(text, "hosts", way="ssh")] == [2222, 23]
    assert [target.port for target in parse_ansible(text, "hosts", way="xmlrpc")] == [None, None]


def test_yaml_with_children_and_variables() -> None:
    found = parse_ansible(YAML, "hosts.yml")
    assert [(target.name, target.address, target.user, target.port, target.place) for target in found] == [
        ("host1", "192.168.0.2", "everyone", None, "hosts.yml:7"),
        ("host5.x", "host5.x", "everyone", None, "hosts.yml:9"),
        ("host6.x", "host6.x", "everyone", None, "hosts.yml:9"),
        ("host3", "host3", "three", 2222, "hosts.yml:12"),
    ]


def test_keys_jump_hosts_and_templates() -> None:
    text = (
        "[g]\nn1\nn2 ansible_ssh_common_args='-o ProxyJump=me@gate'\n"
        "[g:vars]\nansible_host={{ inventory_hostname }}.example.org\n"
        "ansible_ssh_private_key_file=keys/gpu # ours\nansible_ssh_common_args=-J bastion\n"
    )
    found = parse_ansible(text, "/srv/ansible/hosts", ("g",))
    assert [(target.address, target.proxy_jump) for target in found] == [
        ("n1.example.org", "bastion"),
        ("n2.example.org", "me@gate"),
    ]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a", ["a"]),
        ("node[01:03].x", ["node01.x", "node02.x", "node03.x"]),
        ("node[8:10]", ["node8", "node9", "node10"]),
        ("n[1:9:4]", ["n1", "n5", "n9"]),
        ("db-[a:c]", ["db-a", "db-b", "db-c"]),
        ("r[1:2]n[1:2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("n[:2]", ["n0", "n1", "n2"]),
    ],
)
def test_ranges(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == names


@pytest.mark.parametrize(
    "pattern", ["n[3:1]", "n[01:3]", "n[1:2:0]", "n[a:1]", "n[aa:bb]", "n[1:99999999]", "n[1:200]" * 3]
)
def test_ranges_that_cannot_be(pattern: str) -> None:
    with pytest.raises(ValueError, match="range"):
        expand(pattern)


@pytest.mark.parametrize(
    "pattern", ["gpu[0:9999][0:9999][0:9999]", "gpu[0:99999999999999999999]", "gpu[0:10000]"]
)
def test_a_range_that_stands_for_too_many_is_refused_before_it_is_written_out(pattern: str) -> None:
    with pytest.raises(ValueError, match="more than 10000 hosts"):
        expand(pattern)


@pytest.mark.parametrize(
    ("pattern", "host", "port"),
    [
        ("a:22", "a", "22"),
        ("a[1:3]:22", "a[1:3]", "22"),
        ("[::1]:22", "::1", "22"),
        ("[2001:db8::1]", "2001:db8::1", None),
        ("::1", "::1", None),
        ("a[1:3]", "a[1:3]", None),
    ],
)
def test_ports_in_patterns(pattern: str, host: str, port: str | None) -> None:
    assert split_port(pattern) == (host, port)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[gpus]\na\n", 'hosts: there is no group "rpcservers"; the groups are gpus'),
        ("", 'there is no group "rpcservers"; the groups are none'),
        ("[rpcservers]\na b\n", 'hosts:2: "a b" cannot be read: "b" is not a variable'),
        ("[rpcservers]\na x='\n", "hosts:2: "),
        ("[rpcservers]\nn[3:1]\n", "hosts:2: "),
        ("[rpcservers]\na ansible_host='{{ x }}'\n", "templates other than inventory_hostname"),
        ("[rpcservers]\na ansible_port=none\n", "hosts:2: ansible_port="),
        ("[rpcservers:children]\nabsent\n", 'hosts:2: there is no group "absent"'),
        ("[rpcservers:children]\nb\n[b:children]\nrpcservers\n", "contain each other"),
        ("[rpcservers:kids]\n", "hosts:1: [rpcservers:kids] is unknown"),
        ("[rpcservers:vars]\njunk\n", 'hosts:2: "junk" is not a variable'),
        ("rpcservers:\n  hosts:\n    a:\n    a:\n", 'hosts:4: "a" is already in line 3'),
        ("rpcservers:\n  host:\n    a:\n", 'hosts:2: "host" is an unknown key'),
        ("rpcservers: [a]\n", 'hosts:1: the group "rpcservers" must be keys with values'),
        ("rpcservers:\n  hosts:\n    a/b:\n", 'hosts:3: "a/b" is not a host name'),
    ],
)
def test_bad_lines_are_named(text: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_ansible(text, "hosts")
    assert complaint in str(caught.value)


def test_ten_thousand_hosts_are_read_quickly() -> None:
    text = "".join(f"[g{n}]\nn[{n}00:{n}99]\n" for n in range(1, 101)) + "[rpcservers:children]\n"
    text += "".join(f"g{n}\n" for n in range(1, 101))
    assert len(parse_ansible(text, "hosts")) == 10_000


def test_the_finder_reads_the_groups_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(DOCUMENTED)
    settings = AnsibleSettings(file=Path("hosts"), groups=("webserver", "rpcservers"))
    found = asyncio.run(AnsibleFinder(settings, base=tmp_path).find())
    assert [target.name for target in found] == ["server", "host1", "host2"]


@given(
    st.text(max_size=150)
    | st.text(alphabet=st.sampled_from("rpcsve[]:=\n '\"#ab12{}-"), max_size=150).map(
        lambda text: f"[rpcservers]\n{text}"
    )
    | st.text(alphabet=st.sampled_from("hosts:childrenva \n{}[]"), max_size=150).map(
        lambda text: f"rpcservers:\n {text}"
    )
)
def test_any_text_gives_targets_or_a_misconfiguration(text: str) -> None:
    assert "hosts" in (complaint_of(lambda: parse_ansible(text, "hosts")) or "hosts")
