"""config.yml, and YAML that means harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.yaml_file import parse_yaml, read_yaml
from gpuherd.model.errors import Misconfigured
from support.complaints import complaint_of

EXAMPLE = """\
# Config for GPU monitor
web_port: 8042
rpc_port: 8043
rpc_timeout: 2
hosts:
  - host1
  - host2
"""


def test_the_documented_example() -> None:
    config = read_yaml(EXAMPLE, "config.yml")
    assert (config.web_port, config.rpc_port, config.rpc_timeout_seconds) == (8042, 8043, 2.0)
    assert [(target.name, target.port, target.place) for target in config.targets] == [
        ("host1", None, "config.yml:6"),
        ("host2", None, "config.yml:7"),
    ]


def test_the_rpc_port_is_for_xml_rpc_only() -> None:
    text = "rpc_port: 9000\nhosts: [a, 'b:9001']\n"
    assert [target.port for target in parse_yaml(text, "config.yml", "xmlrpc")] == [9000, 9001]
    assert [target.port for target in parse_yaml(text, "config.yml", "ssh")] == [None, 9001]


def test_hosts_stay_as_written() -> None:
    found = read_yaml("hosts: [101, 10.10, 'x', on, 2001:db8::1, 12:30]\n", "config.yml").targets
    assert [target.address for target in found] == ["101", "10.10", "x", "on", "2001:db8::1", "12"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "hosts:\n", "hosts: []\n", "web_port: 8042\nhosts: ~\n"])
def test_no_hosts_is_an_answer(text: str) -> None:
    assert parse_yaml(text, "config.yml") == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("web_port: 1\nhost: [a]\n", 'config.yml:2: "host" is an unknown key; did you mean "hosts"?'),
        ("hosts: [a]\nhosts: [b]\n", 'config.yml:2: "hosts" is already in line 1'),
        ("rpc_port: many\n", "config.yml:1: rpc_port must be a number from 1 to 65535"),
        ("rpc_timeout: -1\n", "config.yml:1: rpc_timeout must be a number of seconds"),
        ("rpc_timeout: .inf\n", "config.yml:1: rpc_timeout"),
        ("hosts: a\n", "config.yml:1: hosts must be a list"),
        ("hosts:\n  - a\n  - b: c\n", "config.yml:3: not a host"),
        ("hosts:\n  - a\n  - b c\n", 'config.yml:3: "b c" is more than one word'),
        ("- a\n- b\n", "config.yml:1: the file must be keys with values"),
        ("hosts: [a\nweb_port: 1\n", "config.yml:2: is not valid YAML"),
        ("hosts:\n\t- a\n", "config.yml:2: is not valid YAML"),
        ("a: \x00\n", "config.yml: is not valid YAML"),
        ("x: &a [1]\nhosts: *a\n", "config.yml:2: aliases"),
        ("hosts: [a]\n---\nhosts: [b]\n", "config.yml:2: there is a second document"),
        ("? [a]\n: b\n", "config.yml:1: a key of the file must be a word"),
        ("hosts: " + "[" * 50 + "]" * 50 + "\n", "config.yml:1: nested more than 40 levels deep"),
    ],
)
def test_bad_lines_are_named(text: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_yaml(text, "config.yml")
    assert complaint in str(caught.value)


def test_a_tag_runs_nothing() -> None:
    found = parse_yaml("hosts: !!python/object/apply:os.system [true]\n", "config.yml")
    assert [target.name for target in found] == ["true"]


def test_a_billion_laughs_are_refused_at_once() -> None:
    lines = ['a0: &a0 ["x"]'] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    with pytest.raises(Misconfigured, match="aliases"):
        parse_yaml("\n".join(lines), "config.yml")


def test_a_hundred_thousand_brackets_do_not_crash() -> None:
    with pytest.raises(Misconfigured, match="nested"):
        parse_yaml("hosts: " + "[" * 100_000, "config.yml")


@given(st.text(max_size=200) | st.text(alphabet=st.sampled_from("hosts: -[]{}&*!|>'\"\n\t#a1"), max_size=200))
def test_any_text_gives_targets_or_a_misconfiguration(text: str) -> None:
    complaint = complaint_of(lambda: parse_yaml(text, "config.yml"))
    assert complaint is None or "config.yml" in complaint
