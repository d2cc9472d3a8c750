"""Whatever has befallen a file of an old tool: a message with file, line and remedy; what can be read is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from gpuherd.wiring.importing import Outcome, Wishes, take_over

NETWORK = ("10.0.0.0/8",)


class Damage(NamedTuple):
    """A file that is not as it should be, and what becomes of it."""

    name: str
    content: str | bytes
    told: str
    """What is said of it, as a regular expression; ``line N: …`` where a line is to blame."""
    kept: str = ""
    """What gpuherd.toml gets of it all the same."""


COMMENTS = '{"gpu1": [ // ours\n {"name": "ada", "date": "2099-01-01 00:00", "comment": ""},\n %s\n]}'
HASH = "0" * 64
HALF = [
    Damage("hosts.txt", "gpu1\ngpu2\n[2001:db8:", r"line 3: .*write an IPv6 address", '"gpu2"'),
    Damage(
        "config.ini",
        "[common]\nuser = me\nhosts = gpu1,gpu2\nkey_fil",
        "line 4: .*write key = value",
        '"me@gpu1"',
    ),
    Damage("config.yml", "rpc_port: 8043\nhosts:\n  - gpu1\n  - [", r"config.yml:\d: "),
    Damage("hosts", "[rpcservers]\ngpu1\ngpu2 ansible_host='10.", "line 3: .*cannot be read", '"gpu1"'),
    Damage(
        "fetch_stats_conf.json", '{"CONSUL_SERVICE_URI": "http://c', "line 1 is not JSON .*Correct that line"
    ),
    Damage("run-this-on-every-node.sh", '#!/bin/bash\nSERVER="10.0.0.9:', "node.sh:2: .*correct it"),
    Damage(
        "index.php", "<?php $HOSTS = array('a' => 'A',\n'b' => ", "line 2: .*from here on.*write", 'a = "A"'
    ),
    Damage("aliases.csv", "bob,robert\nal,", '"bob" is "robert"', "aliases_file"),
    Damage("comments.json", '{"gpu1": [{"name": "x",\n "date": "2099-', "line 2 is not JSON"),
    Damage("hosts.json", '{"gpu1": "gpu1.lab",\n "gp', "line 2 is not JSON .*Correct that line"),
    Damage(
        "backend.env",
        "AUTH_USER=us\nAUTH_PA",
        "backend.env:1: AUTH_USER is there, but not AUTH_PASS=…; add it",
    ),
    Damage("frontend.env", "VITE_SESSION_DURATION=7\nVITE_BACK", "VITE_BACKEND is not in it"),
]
DAMAGED = [
    Damage("hosts.txt", "gpu1\n\x00\x01\x02\ngpu2\n", "line 2: ", '"gpu2"'),
    Damage("config.ini", "[common]\nhosts = gpu1,-rf,gpu2\n", "line 2: ", '"gpu2"'),
    Damage(
        "config.yml", "rpc_port: no\nhosts:\n  - gpu1\n  - {}\n", "line 4: not a host; write one", '"gpu1"'
    ),
    Damage("config.yml", "hosts: [gpu1\n", r"config.yml:\d: "),
    Damage("run-this-on-every-node.sh", "#!/bin/bash\nSERVER=\n", "node.sh:2: SERVER=.*correct it"),
    Damage("run-this-on-every-node.sh", 'SERVER="a b/c:3000/"\n', "node.sh:1: SERVER=.*correct it"),
    Damage("frontend.env", "VITE_BACKEND=http://mon_%itor:3000\n", "line 1: .*not a host name; correct it"),
    Damage("index.php", "<?php $HOSTS = ['a' => 'A', 'b' => f()];", "line 1: .*write 'key' =>", 'a = "A"'),
    Damage("backend.env", "AUTH_USER=us\nAUTH_PASS=\n", "backend.env:2: AUTH_PASS is empty; write"),
    Damage("hosts.json", '{"gpu1": 7}', "JSON without"),
    Damage(
        "hosts.json", '{"gpu1": "one",\n "z": null}', 'line 2: "z": .*is not a string; write', 'gpu1 = "one"'
    ),
    Damage(
        "hosts.json",
        '{"gpu1": "one",\n "../x": "y"}',
        'line 2: "../x": is not a host name; correct it',
        'gpu1 = "one"',
    ),
    Damage("comments.json", COMMENTS % "7,", "line 1: gpu1:1: is not an entry; write", "[bookings.comments]"),
    Damage("comments.json", COMMENTS % '{"name": "x"},', "line 3: gpu1:1: .*no date; write", "[bookings"),
    Damage(
        "comments.json", '{"a": [{"name": "x", "date": ""}],\n "\u0007": []}', "line 2: .*correct", "[boo"
    ),
    Damage("fetch_stats_conf.json", '{"CONSUL_SERVICE_URI": "consul"}', "conf.json:1: CONSUL_SERVICE_URI: "),
    Damage("empty.env", "PORT=3000\nDEBUG=1\n", "neither AUTH_USER and AUTH_PASS"),
    Damage(
        "data/gpu1_gpus.csv", b"\xff\x00\n", "a drop file of a host: nothing to import.*import that folder"
    ),
]
DOUBLED = [
    Damage("hosts.txt", "gpu1\ngpu2\ngpu1\n", "line 1: host gpu1; named again in line 3", "hosts_file"),
    Damage(
        "hosts.txt",
        "gpu1=10.0.0.1\ngpu1=10.0.0.2\n",
        "line 2: .*give one of them another name",
        '"gpu1=10.0.0.1"',
    ),
    Damage("config.ini", "[common]\nhosts = gpu1,gpu1\n", "named again in line 2", 'in = "ini"'),
    Damage("config.ini", "[common]\nhosts = gpu1\nhosts = gpu2\n", "line 3: .*keep one", '"gpu1"'),
    Damage("config.yml", "hosts:\n  - gpu1\n  - gpu1\n", "named again in line 3", 'in = "yaml"'),
    Damage("index.php", "<?php $HOSTS = ['a' => 'A',\n'a' => 'B'];", "line 2: .*twice; keep one", 'a = "B"'),
    Damage("hosts.json", '{"gpu1": "one",\n"gpu1": "two"}', "line 2: .*twice; keep one", 'gpu1 = "two"'),
    Damage("aliases.csv", "bob,robert\nbob,alice\n", "line 2: .*in line 1; keep one", "aliases_file"),
    Damage("aliases.csv", "a,b\nb,c\nc,a\n", "line 3: .*keep one of these lines", "aliases_file"),
    Damage(
        "comments.json", '{"gpu1": [],\n"gpu1": []}', "line 2: gpu1: is in the file twice; keep", "[bookings"
    ),
    Damage(
        "comments.json",
        '{"gpu1": {"0": {},\n\n"0": {}}}',
        "line 3: gpu1:0: is in the file twice",
        "[bookings",
    ),
]
WRITTEN_BY_HAND = [
    Damage("comments.json", COMMENTS % "", 'line 2: gpu1:0 is "ada"\'s until', "[bookings.comments]"),
    Damage(
        "comments.json",
        COMMENTS % '{"name": null, "date": "2099-01-01 00:00", "comment": null}',
        "line 3: gpu1:1: has a date but no name; add the name",
        "[bookings.comments]",
    ),
]
ENCODED = [
    Damage(
        "hosts.txt", "gpu1\n\xe9\n".encode("latin-1"), "hosts.txt:2: is not UTF-8 .*save the file as UTF-8"
    ),
    Damage("config.ini", "[common]\nhosts = é\n".encode("latin-1"), "config.ini:2: is not UTF-8 .*save"),
    Damage("config.yml", "hosts:\n- gpu1 # é\n".encode("latin-1"), "config.yml:2: is not UTF-8 .*save"),
    Damage(
        "hosts", "[rpcservers]\ngpu1\n".encode("utf-16"), "hosts:1: is UTF-16 text; save the file as UTF-8"
    ),
    Damage("run.sh", '# é\nSERVER="10.0.0.9:3000"\n'.encode("latin-1"), "run.sh:1: is not UTF-8 .*save"),
    Damage(
        "backend.env", f"AUTH_USER=us\nAUTH_PASS={HASH}\n".encode("utf-16"), "backend.env:1: is UTF-16 .*save"
    ),
    Damage("frontend.env", b"VITE_TITLE=\xe9\nVITE_BACKEND=m.lab\n", "frontend.env:1: is not UTF-8 .*save"),
    Damage("fetch_stats_conf.json", b'{"CONSUL_SERVICE_URI": "\xe9"}', "conf.json:1: is not UTF-8 .*save"),
    Damage("index.php", "<?php $HOSTS = ['a' => 'É'];".encode("latin-1"), '"É"', 'a = "É"'),
    Damage("aliases.csv", "émile,emile\n".encode("utf-16"), '"émile" is "emile"', "aliases_file"),
    Damage(
        "comments.json", (COMMENTS % "").replace("ada", "é").encode("latin-1"), '"é"', "[bookings.comments]"
    ),
    Damage("hosts.txt", b"\xef\xbb\xbfgpu1\r\ngpu2\r\n", "line 2: host gpu2", "hosts_file"),
]
BEGINNINGS = {
    "hosts.txt": "gpu1\n",
    "config.ini": "[common]\nhosts = a\n",
    "config.yml": "hosts:\n",
    "hosts": "[rpcservers]\n",
    "fetch_stats_conf.json": '{"CONSUL_SERVICE_URI": "http://c/v1/catalog/service/g"}',
    "run-this-on-every-node.sh": 'SERVER="10.0.0.9:3000"\n',
    "index.php": "<?php $HOSTS = [",
    "aliases.csv": "a,b\n",
    "comments.json": '{"a": [{"name": "x", "date": ""}]',
    "hosts.json": '{"a": "b"',
    "statsV2.json": '{"time": 1, "data": {',
    "backend.env": f"AUTH_USER=us\nAUTH_PASS={HASH}\n",
    "frontend.env": "VITE_BACKEND=m.lab\n",
    "load_data.csv": ",load,load_mem,gpu_idx,",
}
TOO_LARGE = [
    Damage(name, begin + "\n," * 5_000_000, rf"{name}: is larger than 4 MiB, which ends in line \d{{7}}[,;] ")
    for name, begin in BEGINNINGS.items()
]


def told_of(outcome: Outcome, file: Path) -> str:
    """Give what is said of a file as ``gpuherd import`` prints it."""
    (reading,) = (reading for reading in outcome.readings if reading.file == str(file))
    lines = [f"{'' if note.line is None else f'line {note.line}: '}{note.sentence}" for note in reading.notes]
    return "\n".join(f"{reading.what}: {line}" for line in lines)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=f"{kind}-{damage.name}-{number}")
        for kind, damages in (
            ("half", HALF),
            ("damaged", DAMAGED),
            ("doubled", DOUBLED),
            ("by-hand", WRITTEN_BY_HAND),
            ("encoded", ENCODED),
            ("10-mb", TOO_LARGE),
        )
        for number, damage in enumerate(damages)
    ],
)
def test_a_file_that_is_not_as_it_should_be(tmp_path: Path, damage: Damage) -> None:
    file, good, output = tmp_path / damage.name, tmp_path / "good.ini", tmp_path / "gpuherd.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(damage.content.encode() if isinstance(damage.content, str) else damage.content)
    good.write_text("[common]\nuser = me\nhosts = unharmed\n")
    before = file.read_bytes()
    output.write_text("# ours\n")
    outcome = take_over([file, good], output, Wishes(networks=NETWORK, zone="UTC"))
    assert re.search(damage.told, told_of(outcome, file)), told_of(outcome, file)
    written = output.read_text()
    assert damage.kept in written
    assert bool(damage.kept) == (f"# From {file}" in written)
    # It costs neither the files beside it nor what was there; nothing is overwritten without a copy.
    assert "unharmed" in told_of(outcome, good)
    assert f'file = "{good}"' in written
    assert written.startswith("# ours\n")
    assert output.with_name("gpuherd.toml.bak").read_text() == "# ours\n"
    assert file.read_bytes() == before
