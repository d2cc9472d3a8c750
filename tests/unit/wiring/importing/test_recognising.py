"""Files are known by their content, and what is not understood is said with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.importing.php_page import ARRAY, parse_php_array
from gpuherd.wiring.importing.reading import BookingsEntry
from gpuherd.wiring.importing.recognise import read_file
from gpuherd.wiring.importing.toml_text import value_text
from gpuherd.wiring.importing.wishes import Wishes
from support.complaints import complaint_of

NOTHING_SAID = Wishes()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("hosts.txt", "a list of 2 hosts"),
        ("config.ini", "the config.ini of the SSH monitor with 2 hosts"),
        ("config.yml", "the config.yml of the XML-RPC monitor with 2 hosts"),
        ("hosts", "an Ansible inventory with 2 hosts"),
        ("fetch_stats_conf.json", "the address of a Consul service"),
        ("run-this-on-every-node.sh", "the script that posts gpustat"),
        ("index.php", "the names of a PHP monitor's page"),
        ("aliases.csv", "names of the same person"),
        ("comments.json", "bookings of an old page"),
        ("data", "a folder of drop files"),
    ],
)
def test_by_content_whatever_the_name(old: Path, name: str, what: str) -> None:
    (old / name).rename(old / "something")
    reading = read_file(old / "something", NOTHING_SAID)
    assert reading.what == what
    assert reading.entries
    assert all(note.is_taken or note.sentence for note in reading.notes)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("PASSWD = '8888'\nimport flask\n", "a program of the HTTP monitor with its password"),
        ("AUTH_USER=me\nAUTH_PASS=secret\n", "the login of an old page"),
        ("Host gpu1\n  User me\n", "an SSH client configuration"),
    ],
)
def test_what_is_known_but_not_taken_is_explained(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    reading = read_file(file, NOTHING_SAID)
    assert reading.what == what
    assert reading.entries == ()
    assert not any(note.is_taken for note in reading.notes)
    assert "8888" not in str(reading.notes)
    assert "secret" not in str(reading.notes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "there is nothing in it"),
        (b"# only a comment\n", "there is nothing in it"),
        (b"{", "not valid JSON"),
        (b'{"a": 1}', "JSON without CONSUL_SERVICE_URI"),
        (b"[hub]\nlisten = '127.0.0.1:1'\n", "this is a gpuherd.toml itself"),
        (b"Dear all,\nthis is a letter about GPUs.\nYours\n", "none of the files that gpuherd knows"),
    ],
)
def test_what_is_not_known(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    reading = read_file(file, NOTHING_SAID)
    assert reading.what is None
    assert reason in reading.notes[0].sentence


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("gpu1\ngpu2\nbad host\n", "file:3: "),
        ("[common]\nhost = a\n", 'file:2: "host" is an unknown key; did you mean "hosts"?'),
        ("rpc_prt: 1\nhosts: [a]\n", 'file:1: "rpc_prt" is an unknown key'),
        ("[a]\nx\n[b]\ny\n", "which of its groups are GPU nodes? Say it with --group; there are a, b"),
        ('{"CONSUL_SERVICE_URI": "http://u:hunter2@c/v1/catalog/service/g"}', "use token_file"),
        ('{"CONSUL_SERVICE_URI": 7}', "must be an address"),
        ('SERVER="host:99999/"\n', "file:1: SERVER="),
        ("$HOSTS = array('a' => f());\n", "file:1: "),
        ("$HOSTS = array('a',\n'b');\n", 'file:1: "a" has no name'),
        ("$HOSTS = array('a' => 'b'", "file:1: "),
        ("a,b\nc,,d\n", "file:2: "),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(Misconfigured) as caught:
        read_file(file, NOTHING_SAID)
    assert complaint in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("server", "listen"),
    [
        ('SERVER="0.0.0.0:3000/"', "0.0.0.0:3000"),
        ("SERVER=gpu.example.org:8080", "0.0.0.0:8080"),
        ("export SERVER='http://gpu.example.org/'", "0.0.0.0:80"),
        ('SERVER="[2001:db8::1]:3000/"', "[::]:3000"),
    ],
)
def test_the_port_of_the_script(tmp_path: Path, server: str, listen: str) -> None:
    file = tmp_path / "script"
    file.write_text(f"#!/bin/bash\n{server}\n")
    assert read_file(file, NOTHING_SAID).entries[0].listen == listen  # type: ignore[union-attr]


def test_a_network_that_is_none(old: Path) -> None:
    with pytest.raises(Misconfigured, match=r"--network .*; write it as 192\.168\.0\.0/24"):
        read_file(old / "run-this-on-every-node.sh", Wishes(networks=("192.168.0.7/24",)))


def test_names_that_try_to_harm_are_cleaned(tmp_path: Path) -> None:
    file = tmp_path / "index.php"
    file.write_text("<?php $HOSTS = ['gpu1' => \"a\u202e\x1b[31m\", \"g\x00\" => 'x'];")
    reading = read_file(file, NOTHING_SAID)
    assert "\x1b" not in str(reading)
    assert reading.entries[1].values == {"gpu1": "a\ufffd\ufffd[31m"}  # type: ignore[union-attr]


_WORDS = [
    "[common]",
    "hosts",
    "=",
    ":",
    "SERVER=",
    "$HOSTS = array(",
    "'a' => 'b'",
    ")",
    "{",
    "}",
    "[g]",
    "a,b",
    "\n",
    " ",
    "x",
]


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from(_WORDS), max_size=40).map(lambda words: "".join(words).encode())
)
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(content)
    complaint = complaint_of(lambda: read_file(file, NOTHING_SAID))
    assert complaint is None or str(file) in complaint


@given(st.text(max_size=100))
def test_any_array_gives_pairs_or_a_misconfiguration(text: str) -> None:
    whole = f"$HOSTS = array({text}"
    start = ARRAY.search(whole)
    assert start is not None
    complaint = complaint_of(lambda: parse_php_array(whole, start.end(), "index.php"))
    assert complaint is None or complaint.startswith("index.php:")


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_values_are_written_so_that_toml_reads_them_back(value: object) -> None:
    import tomllib

    assert tomllib.loads(f"key = {value_text(value)}")["key"] == value


def test_bookings_are_told_entry_by_entry_in_any_encoding(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    file = old / "comments.json"
    file.write_bytes(file.read_text().replace("sclaus", "p\xe8re no\xebl").encode("latin-1"))
    reading = read_file(file, NOTHING_SAID)
    assert reading.entries == (BookingsEntry(file=str(file), zone="Europe/Paris"),)
    assert [(note.is_taken, note.sentence) for note in reading.notes] == [
        (True, 'gpu1:0 is "p\xe8re no\xebl"\'s until 2099-07-01 00:00'),
        (True, "1 entry is past and not booked"),
        (
            False,
            'gpu2:0: its date "3d" is a duration, and nobody knows since when; write YYYY-MM-DD HH:MM',
        ),
        (True, "dates are taken for Europe/Paris; if the old page ran elsewhere, change zone"),
    ]


def test_half_a_file_of_bookings(tmp_path: Path) -> None:
    (tmp_path / "comments.json").write_text('{"gpu1": [{"name": "x", "date": "2099-')
    with pytest.raises(Misconfigured, match="line 1 is not JSON"):
        read_file(tmp_path / "comments.json", NOTHING_SAID)
