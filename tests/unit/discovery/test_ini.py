"""config.ini."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.ini import parse_ini, read_ini
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from support.complaints import complaint_of

EXAMPLE = """\
[common]
user = yourusername
hosts = host1.domain.tld,host2.domain.tld
key_filename=path_to_key
"""


def test_the_documented_example() -> None:
    assert parse_ini(EXAMPLE, "/srv/monitor/config.ini") == tuple(
        Target(
            name=host,
            address=host,
            user="yourusername",
            key_file="/srv/monitor/path_to_key",
            place="/srv/monitor/config.ini:3",
        )
        for host in ("host1.domain.tld", "host2.domain.tld")
    )


def test_hosts_over_several_lines_with_comments_and_crlf() -> None:
    text = "; mine\r\n[common]\r\nUser: me\r\nhosts = a,\r\n  b, c:22\r\n# not d\r\n  e\r\n\r\n[web]\r\nport = 80\r\n"
    config = read_ini(text, "config.ini")
    assert [(target.name, target.place) for target in config.targets] == [
        ("a", "config.ini:4"),
        ("b", "config.ini:5"),
        ("c", "config.ini:5"),
        ("e", "config.ini:7"),
    ]
    assert config.user == "me"
    assert config.key_file is None


def test_percent_signs_are_letters() -> None:
    config = read_ini("[common]\nhosts = a\nkey_filename = /keys/100%(x)s\n", "config.ini")
    assert config.key_file == "/keys/100%(x)s"


def test_a_user_of_one_host_wins() -> None:
    config = read_ini("[common]\nuser = me\nhosts = a, you@b\n", "config.ini")
    assert [target.user for target in config.targets] == ["me", "you"]


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("[common]\nhost = a\n", ['config.ini:2: "host" is an unknown key; did you mean "hosts"?']),
        (
            "[common]\nhosts=a\npassword = x\n",
            ['config.ini:3: "password" is an unknown key; known in [common]:'],
        ),
        ("[common]\nhosts=a\nhosts=b\n", ['config.ini:3: "hosts" is already in line 2']),
        ("hosts = a\n", ["config.ini:1: ", "is before [common]"]),
        ("[comon]\nhosts = a\n", ["there is no section [common], only [comon]"]),
        ("[common]\nuser = me\n", ["config.ini: there are no hosts"]),
        ("", ["config.ini: there are no hosts"]),
        ("[common]\nhosts = a, b c, d:0\n", ["config.ini:2: ", '"b c"', '"d:0"']),
        ("[common]\nhosts = a\nuser = a b\n", ["config.ini:3: user = "]),
        ("[common]\nhosts = a\njunk\n", ['config.ini:3: "junk" is neither a setting nor a [section]']),
        ("[common]\nhosts = a\nuser = a\n  b\n", ["config.ini:4: user continues in this line"]),
    ],
)
def test_bad_lines_are_named(text: str, complaints: list[str]) -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_ini(text, "config.ini")
    for complaint in complaints:
        assert complaint in str(caught.value)


@given(st.text(alphabet=st.sampled_from("[]common=:,hostsuer\n\r #;%é\x00"), max_size=120))
def test_any_text_gives_targets_or_a_misconfiguration(text: str) -> None:
    complaint = complaint_of(lambda: parse_ini("[common]\n" + text, "config.ini"))
    assert complaint is None or "config.ini" in complaint
