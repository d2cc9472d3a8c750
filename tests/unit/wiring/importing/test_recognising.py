"""Files are known by their content, and what is not understood is said with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpuherd.history.settings import EarlierAverages
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.config import read_config
from gpuherd.wiring.importing import take_over
from gpuherd.wiring.importing.php_page import ARRAY, parse_php_array
from gpuherd.wiring.importing.reading import BookingsEntry, FolderEntry, KeysEntry
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
        ("#!/bin/bash\nwhile true; do nvidia-smi; done\n", "a program or page of an old tool"),
        ("import os\nfrom fabric import Connection\n", "a program or page of an old tool"),
        ("<!DOCTYPE html>\n<html></html>\n", "a program or page of an old tool"),
        ("- name: install\n  hosts: rpcservers\n", "an Ansible playbook"),
        (
            ",load,load_mem,gpu_idx,gpu_name,gpu_uuid,hostname,username\n",
            "the table that fetch_data.py writes",
        ),
        ("12G\t/local/al\n1,5T\t/local/bob\n", "a drop file of a host"),
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
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"{", "line 1 is not JSON"),
        (b'{"a": 1}', "JSON without CONSUL_SERVICE_URI"),
        (b"[hub]\nlisten = '127.0.0.1:1'\n", "this is a gpuherd.toml; to add to it"),
        (b"Dear all,\nthis is a letter about GPUs.\nYours\n", "not a file that gpuherd recognises"),
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
        ("bad:host:name\n", "file:1: "),
        ("[common]\nhost = a\n", 'file:2: "host" is an unknown key; did you mean "hosts"?'),
        ("rpc_port: 1\nrpc_prt: 1\n", 'file:2: "rpc_prt" is an unknown key'),
        ("[a]\nx\n[b]\ny\n", "which of its groups are GPU nodes? Choose with --group; there are a, b"),
        ('{"CONSUL_SERVICE_URI": "http://u:hunter2@c/v1/catalog/service/g"}', "use token_file"),
        ('{"CONSUL_SERVICE_URI": 7}', "must be an address"),
        ('SERVER="host:99999/"\n', "file:1: SERVER="),
        ("$HOSTS = array('a' => f());\n", "file:1: "),
        ("$HOSTS = array('a',\n'b');\n", 'file:1: "a" has no name'),
        ("$HOSTS = array('a' => 'b'", "file:1: "),
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
    with pytest.raises(Misconfigured, match=r"--network .*; write for example 192\.168\.0\.0/24"):
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
    complaint = complaint_of(lambda: list(parse_php_array(whole, start.end(), "index.php")))
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
    (old / "index.php").write_text("<?php // date_default_timezone_set('UTC');\n")
    file = old / "comments.json"
    file.write_bytes(file.read_text().replace("sclaus", "p\xe8re no\xebl").encode("latin-1"))
    reading = read_file(file, NOTHING_SAID)
    assert reading.entries == (BookingsEntry(file=str(file), zone="Europe/Paris"),)
    assert [(note.is_taken, note.sentence) for note in reading.notes] == [
        (True, 'gpu1:0 is "p\xe8re no\xebl"\'s until 2099-07-01 00:00'),
        (True, "1 entry is past and not booked"),
        (
            False,
            'gpu2:0: its date "3d" is a duration without a start; write YYYY-MM-DD HH:MM',
        ),
        (
            True,
            (
                "dates are read as Europe/Paris, this machine's time zone; "
                "if the old page ran elsewhere, set it with --zone"
            ),
        ),
    ]


@pytest.mark.parametrize("page_file", ["data/index.php", "index.php", "elsewhere/page.php"])
def test_dates_are_those_of_the_page_unless_someone_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_file: str
) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    for folder in ("data", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / page_file).write_text('<?php\n  date_default_timezone_set("UTC");\n$HOSTS = array();\n')
    file = tmp_path / "data/comments.json"
    file.write_text('{"gpu1": [{"name": "x", "date": "2099-07-01 10:00", "comment": ""}]}')
    wishes = Wishes(files=(file, tmp_path / page_file))
    reading = read_file(file, wishes)
    assert reading.entries == (BookingsEntry(file=str(file), zone="UTC"),)
    assert reading.notes[-1].sentence.startswith(f"dates are read as UTC, as {Path(page_file).name} sets it")
    chosen = read_file(file, structs.replace(wishes, zone="America/New_York"))
    assert chosen.entries == (BookingsEntry(file=str(file), zone="America/New_York"),)
    with pytest.raises(Misconfigured, match='--zone "Mars/Base"'):
        read_file(file, structs.replace(wishes, zone="Mars/Base"))


def test_hosts_json_and_the_folder_it_lies_in(tmp_path: Path) -> None:
    file = tmp_path / "hosts.json"
    file.write_text('{"gpu1": "gpu1.lip6.fr", "gpu2": "gpu2.lip6.fr"}')
    reading = read_file(file, NOTHING_SAID)
    names = {"gpu1": "gpu1.lip6.fr", "gpu2": "gpu2.lip6.fr"}
    assert reading.entries == (KeysEntry(table="display.nodes", values=names),)
    for name in ("gpu1_gpus", "gpu1_processes", "oldhost_gpus"):
        (tmp_path / f"{name}.csv").touch()
    assert read_file(file, NOTHING_SAID).entries == (FolderEntry(path=str(tmp_path)),)
    folder = read_file(tmp_path, NOTHING_SAID)
    assert [note.sentence for note in folder.notes if not note.is_taken] == [
        "host oldhost is not in hosts.json; not shown"
    ]
    file.write_text('{"gpu1": ')
    sentence = next(note.sentence for note in read_file(tmp_path, NOTHING_SAID).notes if not note.is_taken)
    assert sentence.startswith("hosts.json: line 1 is not JSON (Expecting value); is it half written?")
    assert sentence.endswith("until then all hosts are shown")


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("gpu1_local.txt", "1,5T\t/local/bob\n12G\t/local/al\n", "a drop file of a host"),
        ("gpu1_gpus.csv", "0, GPU-1, Tesla K20m, 1 MiB\n", "a drop file of a host"),
        ("gpu1_users.csv", "{}\n1234 bob Mon Jan  1 00:00:00 2024\n", "a drop file of a host"),
        (
            "statsV2.json",
            '{"time": 1e11, "data": {"bob": {"emas": [1, 2, 3]}}}',
            "averages of an old page",
        ),
        (
            "statsV2.json",
            '{"time": 1, "data": {"bob": {"emas": [0.00001, 0, 0]}}}',
            "averages of an old page",
        ),
    ],
)
def test_files_of_the_old_page_of_which_nothing_is_set(
    tmp_path: Path, name: str, text: str, what: str
) -> None:
    (tmp_path / name).write_text(text)
    reading = read_file(tmp_path / name, NOTHING_SAID)
    assert (reading.what, reading.entries) == (what, ())


def test_averages_of_an_old_page_are_taken_with_their_time(tmp_path: Path) -> None:
    (tmp_path / "statsV2.json").write_text(
        '{"time": 1790000000, "data": {\n "bob": {"resa": 0, "used": 1, "emas": [1.00004, 2, 0.5]},\n'
        ' "eve": {"emas": [1, 2]},\n "al": {"emas": [1, -2, 3]},\n "idle": {"emas": [0, 0, 0]}}}'
    )
    output = tmp_path / "gpuherd.toml"
    outcome = take_over([tmp_path / "statsV2.json"], output, NOTHING_SAID)
    (reading,) = outcome.readings
    assert [(note.line, note.is_taken, note.sentence) for note in reading.notes] == [
        (3, False, '"eve": its averages are not three numbers; left out'),
        (4, False, '"al": its averages are not three numbers; left out'),
        (None, False, "1 without any use: left out"),
        (
            None,
            True,
            "averages of 1 person until 2026-09-21 14:13 UTC; those of *Who to ask* begin with them, and fade them out",
        ),
    ]
    usage = read_config(output.read_text(), "gpuherd.toml").usage
    assert usage.earlier == EarlierAverages(until=1_790_000_000.0, gpus={"bob": (1.0, 2.0, 0.5)})
    # A second time nothing changes, even if the old page has gone on meanwhile.
    (tmp_path / "statsV2.json").write_text('{"time": 1790009999, "data": {"bob": {"emas": [9, 9, 9]}}}')
    again = take_over([tmp_path / "statsV2.json"], output, NOTHING_SAID)
    assert (again.is_written, len(again.remarks)) == (False, 2)


def test_aliases_of_which_some_lines_say_nothing_or_go_round(tmp_path: Path) -> None:
    (tmp_path / "aliases.csv").write_text("bob,rob\nalone\nhidden,\nrob,bob\nc,,d\n")
    reading = read_file(tmp_path / "aliases.csv", NOTHING_SAID)
    assert (reading.what, len(reading.entries)) == ("names of the same person", 1)
    assert [(note.line, note.sentence) for note in reading.notes] == [
        (None, '"bob" is "rob"'),
        (None, '"c" is "d"'),
        (4, '"bob" is already an alias of "rob"; keep one of these lines'),
        (5, "write alias,user (several aliases can precede the user)"),
    ]


def test_names_for_phones_are_taken_where_there_are_no_others(tmp_path: Path) -> None:
    (tmp_path / "index.php").write_text(
        "<?php $SHORT_GPU_NAMES = array('GeForce GTX 980' => 'GTX 980');\n"
        "$SHORTER_GPU_NAMES = array('GeForce GTX 980' => '980', 'Tesla K20m' => 'K20m');\n"
        "$HOSTS = array('a' => getenv('A'));\n"
    )
    reading = read_file(tmp_path / "index.php", NOTHING_SAID)
    assert reading.entries == (
        KeysEntry(table="display.gpus", values={"GeForce GTX 980": "GTX 980", "Tesla K20m": "K20m"}),
    )
    assert [note.sentence.partition(": not")[0] for note in reading.notes if not note.is_taken] == [
        '"GeForce GTX 980" is shown as "980" on phones only',
        "$HOSTS",
    ]


def test_half_a_file_of_bookings(tmp_path: Path) -> None:
    (tmp_path / "comments.json").write_text('{"gpu1": [{"name": "x", "date": "2099-')
    with pytest.raises(Misconfigured, match="line 1 is not JSON"):
        read_file(tmp_path / "comments.json", NOTHING_SAID)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_names_come_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "index.php").write_bytes("<?php $HOSTS = array('gpu1' => 'Évry');".encode(encoding))
    (tmp_path / "aliases.csv").write_bytes("émile,emile\n".encode(encoding))
    page = read_file(tmp_path / "index.php", NOTHING_SAID)
    assert KeysEntry(table="display.nodes", values={"gpu1": "Évry"}) in page.entries
    names = read_file(tmp_path / "aliases.csv", NOTHING_SAID)
    assert [note.sentence for note in names.notes] == ['"émile" is "emile"']


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"gpu1": "gpu1.lip6.fr",\n "gp', "line 2 is not JSON"),
        (b'{"a":' * 100_000, "not valid JSON: nested too deeply"),
    ],
    ids=["half", "deep"],
)
def test_json_that_is_none_is_told_with_its_line(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "hosts.json").write_bytes(content)
    reading = read_file(tmp_path / "hosts.json", NOTHING_SAID)
    assert reading.what is None
    assert told in reading.notes[0].sentence


ORIGINS = ["http://monitor.lab", "http://monitor.lab:5173", "http://monitor.lab:4173", "https://monitor.lab"]
NAMED = (
    KeysEntry(table="hub", values={"allowed_hosts": ["monitor.lab"]}),
    KeysEntry(table="legacy.gpustat", values={"origins": ORIGINS}),
)


@pytest.mark.parametrize(
    ("authority", "entries"),
    [
        ("http://monitor.lab:3000/", NAMED),
        ("Monitor.lab:3000", NAMED),
        ("monitor.lab", NAMED),
        ("192.168.0.2:3000", ()),
        ("[2001:db8::2]:3000", ()),
        # Always answered to; only its page needs to be let in.
        ("localhost:3000", NAMED[1:]),
    ],
)
def test_a_name_by_which_the_backend_is_reached_is_let_in(
    tmp_path: Path, authority: str, entries: tuple[KeysEntry, ...]
) -> None:
    def renamed(entry: KeysEntry) -> KeysEntry:
        shown = {
            key: [each.replace("monitor.lab", "localhost") for each in names]
            for key, names in entry.values.items()
        }
        return structs.replace(entry, values=shown)

    wanted = tuple(renamed(entry) for entry in entries) if "localhost" in authority else entries
    (tmp_path / ".env").write_text(f"# page\nVITE_BACKEND={authority}\nVITE_SESSION_DURATION=7\n")
    page = read_file(tmp_path / ".env", NOTHING_SAID)
    assert (page.what, page.entries) == ("settings of the old push monitor's page", wanted)
    assert [(note.line, note.is_taken) for note in page.notes] == [
        (2, True),
        *([(2, True)] if entries else []),
        (3, False),
    ]
    assert "login.session_days" in page.notes[-1].sentence
    (tmp_path / "script").write_text(f'SERVER="{authority}"\n')
    assert read_file(tmp_path / "script", NOTHING_SAID).entries[1:] == wanted


@pytest.mark.parametrize(
    ("password", "told"),
    [("F5" * 32, "it is the hash that the old page sends"), ("hunter2", "so the password itself")],
)
def test_the_old_backends_login_stays_in_its_file(tmp_path: Path, password: str, told: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"PORT=3000\nAUTH_USER=aiiulab\nAUTH_PASS={password}\n")
    file.chmod(0o600)
    reading = read_file(file, NOTHING_SAID)
    assert reading.what == "the login of an old page"
    assert reading.entries == (KeysEntry(table="legacy.gpustat", values={"login_file": str(file)}),)
    assert [(note.line, note.is_taken) for note in reading.notes] == [(1, False), (2, True), (3, True)]
    assert reading.notes[2].sentence.endswith(told)
    assert password not in str(reading)
    file.chmod(0o644)
    assert "chmod o-r" in read_file(file, NOTHING_SAID).notes[-1].sentence


def test_a_drop_folder_is_told_file_by_file(tmp_path: Path) -> None:
    for name in (
        "a_gpus.csv",
        "a_processes.csv",
        "b_gpus.csv",
        "c_users.csv",
        "comments.json",
        "statsV2.json",
    ):
        (tmp_path / name).touch()
    reading = read_file(tmp_path, NOTHING_SAID)
    assert [(note.is_taken, note.sentence) for note in reading.notes[:4]] == [
        (True, "host a puts its files here: gpus, processes"),
        (True, "host b puts its files here: gpus"),
        (False, "host b has no b_processes.csv: none of its GPUs can be shown as free"),
        (False, "host c has no c_gpus.csv: its other files are not read"),
    ]
    assert [note.sentence.partition(":")[0] for note in reading.notes[4:]] == [
        "comments.json",
        "statsV2.json",
    ]
    both = read_file(tmp_path, Wishes(files=(tmp_path, tmp_path / "comments.json")))
    assert [note.sentence.partition(":")[0] for note in both.notes[4:]] == ["statsV2.json"]


def test_a_page_is_told_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "index.php").write_text(
        '<?php\n  date_default_timezone_set("UTC");\n// date_default_timezone_set("GMT");\n'
        '$HOSTS = json_decode(file_get_contents("data/hosts.json"), true);\n'
        "$SHORT_GPU_NAMES = array('Tesla K20m' => 'K20m');\n"
    )
    notes = read_file(tmp_path / "index.php", NOTHING_SAID).notes
    assert [(note.line, note.is_taken) for note in notes] == [(5, True), (4, False), (2, True)]
