"""From old files to a gpuherd.toml that can be used."""

from __future__ import annotations

import asyncio
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.wiring.config import load
from gpuherd.wiring.finders import make_finder
from gpuherd.wiring.importing import Outcome, Wishes, take_over


def _import(old: Path, output: Path, *names: str, dry_run: bool = False, **wishes: Any) -> Outcome:
    return take_over([old / name for name in names], output, Wishes(**wishes), dry_run=dry_run)


def _tables(output: Path) -> dict[str, Any]:
    load(output)
    return tomllib.loads(output.read_text())


@pytest.mark.parametrize(
    ("name", "find", "reach"),
    [
        ("hosts.txt", {"in": "hosts_file"}, {"by": "node_info"}),
        ("config.ini", {"in": "ini"}, {"by": "ssh"}),
        ("config.yml", {"in": "yaml"}, {"by": "xmlrpc", "deadline_seconds": 2}),
        ("hosts", {"in": "ansible", "groups": ["rpcservers"]}, {"by": "xmlrpc"}),
    ],
)
def test_a_list_stays_the_truth(
    old: Path, output: Path, name: str, find: dict[str, Any], reach: dict[str, Any]
) -> None:
    outcome = _import(old, output, name)
    assert outcome.is_written
    assert _tables(output) == {"nodes": [{"find": {**find, "file": str(old / name)}, "reach": reach}]}


@pytest.mark.parametrize(
    ("name", "hosts", "reach"),
    [
        ("hosts.txt", ["192.168.0.1", "192.168.0.2"], {"by": "node_info"}),
        (
            "config.ini",
            ["yourusername@host1.domain.tld", "yourusername@host2.domain.tld"],
            {"by": "ssh", "user": "yourusername", "key_files": ["{old}/path_to_key"]},
        ),
        ("config.yml", ["host1", "host2"], {"by": "xmlrpc", "port": 8043, "deadline_seconds": 2}),
        ("hosts", ["node1=u@10.0.0.1", "node2=u@10.0.0.2"], {"by": "xmlrpc"}),
    ],
)
def test_a_list_is_copied_when_asked_for(
    old: Path, output: Path, name: str, hosts: list[str], reach: dict[str, Any]
) -> None:
    _import(old, output, name, copy=True)
    if "key_files" in reach:
        reach = {**reach, "key_files": [str(old / "path_to_key")]}
    order = {"display": {"keep_list_order": True}} if name == "config.ini" else {}
    assert _tables(output) == {"nodes": [{"hosts": hosts, "reach": reach}], **order}


def test_copied_and_referred_hosts_are_the_same_nodes(old: Path, tmp_path: Path) -> None:
    for name in ("hosts.txt", "config.ini", "config.yml", "hosts"):
        found = []
        for copy in (False, True):
            output = tmp_path / f"{name}-{copy}.toml"
            _import(old, output, name, copy=copy)
            config = load(output)
            finder, _ = make_finder(config.nodes[0], "nodes", config.folder)
            found.append(
                [(target.name, target.address, target.user) for target in asyncio.run(finder.find())]
            )
        assert found[0] == found[1]


def test_consul_is_asked_as_before(old: Path, output: Path) -> None:
    _import(old, output, "fetch_stats_conf.json")
    url = "http://consul.example.org:8500/v1/catalog/service/gpu"
    assert _tables(output)["nodes"] == [
        {"find": {"in": "consul", "url": url, "use_node_name": True}, "reach": {"by": "http_files"}}
    ]


def test_the_way_can_be_chosen(old: Path, output: Path) -> None:
    password_file = old / "password"
    _import(old, output, "config.yml", by="ssh")
    _import(old, output, "hosts.txt", by="node_info", password_file=password_file)
    assert [table["reach"] for table in _tables(output)["nodes"]] == [
        {"by": "ssh"},
        {"by": "node_info", "password_file": str(password_file)},
    ]


def test_a_port_for_the_old_script_is_opened_to_named_networks_only(old: Path, output: Path) -> None:
    first = _import(old, output, "run-this-on-every-node.sh")
    assert first.is_written
    assert first.understood_any
    assert _tables(output) == {}
    assert "[legacy.gpustat]" in output.read_text()
    again = _import(old, output, "run-this-on-every-node.sh")
    assert not again.is_written
    _import(old, output, "run-this-on-every-node.sh", networks=("10.0.0.0/24",))
    assert _tables(output) == {"legacy": {"gpustat": {"listen": "0.0.0.0:3000", "networks": ["10.0.0.0/24"]}}}
    assert not _import(old, output, "run-this-on-every-node.sh").is_written


def test_names_order_aliases_and_drop_folders(old: Path, output: Path) -> None:
    _import(old, output, "index.php", "aliases.csv", "data")
    assert _tables(output) == {
        "display": {
            "order": ["gpu1", "gpu2"],
            "aliases_file": str(old / "aliases.csv"),
            "nodes": {"gpu1": "GPU one", "gpu2": 'GPU "two"'},
            "gpus": {"GeForce GTX TITAN X": "Titan"},
        },
        "folders": [{"path": str(old / "data")}],
    }


def test_aliases_are_copied_when_asked_for(old: Path, output: Path) -> None:
    _import(old, output, "aliases.csv", copy=True)
    assert _tables(output)["display"]["users"] == {"bob": "robert", "rob": "robert", "al": "alice"}


EXISTING = (
    "# our hub\r\n[hub]\r\nlisten = '127.0.0.1:8470'   # here\r\n\r\n[display.nodes] # names\r\ngpu1 = \"mine\"\r\n"
    "# the end, without a line end"
)


def test_what_is_there_stays_byte_for_byte(old: Path, output: Path) -> None:
    output.write_bytes(EXISTING.encode())
    output.chmod(0o640)
    everything = [entry.name for entry in sorted(old.iterdir())]
    outcome = _import(old, output, *everything)
    text = output.read_bytes().decode()
    assert stat.S_IMODE(output.stat().st_mode) == 0o640
    # Every line is there in its old order, and every added line has the file's own line end.
    lines = iter(text.split("\r\n"))
    assert all(line in lines for line in EXISTING.split("\r\n"))
    assert "\n" not in text.replace("\r\n", "")
    tables = _tables(output)
    assert tables["display"]["nodes"] == {"gpu1": "mine", "gpu2": 'GPU "two"'}
    assert any("gpu1 is already set to another value, which is kept" in remark for remark in outcome.remarks)


def test_twice_is_as_good_as_once(old: Path, output: Path) -> None:
    everything = [entry.name for entry in sorted(old.iterdir())]
    _import(old, output, *everything)
    before, written_at = output.read_bytes(), output.stat().st_mtime_ns
    outcome = _import(old, output, *everything)
    assert not outcome.is_written
    assert outcome.added == ()
    assert len(outcome.remarks) >= len(everything)
    assert (output.read_bytes(), output.stat().st_mtime_ns) == (before, written_at)


def test_twice_with_copies_is_as_good_as_once(old: Path, output: Path) -> None:
    _import(old, output, "hosts.txt", "config.yml", copy=True)
    assert not _import(old, output, "hosts.txt", "config.yml", copy=True).is_written


def test_hosts_of_two_lists_are_not_added_twice(old: Path, output: Path) -> None:
    (old / "more.txt").write_text("192.168.0.2\n192.168.0.3\n")
    (old / "same.txt").write_text("192.168.0.2\n")
    outcome = _import(old, output, "hosts.txt", "more.txt", "same.txt")
    assert [table["find"]["file"] for table in _tables(output)["nodes"]] == [
        str(old / "hosts.txt"),
        str(old / "more.txt"),
    ]
    assert [remark.partition(": ")[2] for remark in outcome.remarks] == [
        "192.168.0.2 is already listed; remove them from one of the lists",
        "all its hosts are already listed; not added twice",
    ]


def test_a_dry_run_writes_nothing(old: Path, output: Path) -> None:
    outcome = _import(old, output, "hosts.txt", dry_run=True)
    assert "[[nodes]]" in "".join(outcome.added)
    assert not output.exists()


def test_a_bad_configuration_is_not_touched(old: Path, output: Path) -> None:
    output.write_text("[hub]\nlistn = 1\n")
    with pytest.raises(Misconfigured, match="listn"):
        _import(old, output, "hosts.txt")
    assert output.read_text() == "[hub]\nlistn = 1\n"


@pytest.mark.parametrize(
    ("existing", "name"),
    [
        ('nodes = [{ hosts = ["a"], reach = { by = "ssh" } }]\n', "hosts.txt"),
        ('display = { nodes = { gpu1 = "x" } }\n', "index.php"),
        ('[display]\nnodes = { gpu1 = "x" }\norder = []\n', "index.php"),
    ],
)
def test_a_file_laid_out_in_another_way_is_left_to_its_owner(
    old: Path, output: Path, existing: str, name: str
) -> None:
    output.write_text(existing)
    outcome = _import(old, output, name)
    load(output)
    assert any("add this by hand" in remark for remark in outcome.remarks)
    assert output.read_text().startswith(existing)


def test_a_link_stays_a_link(old: Path, output: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("# real\n")
    output.symlink_to(real)
    _import(old, output, "hosts.txt")
    assert output.is_symlink()
    assert real.read_text().startswith("# real\n\n# From ")


def test_a_place_that_cannot_be_written(old: Path) -> None:
    with pytest.raises(Misconfigured, match="choose another with --output"):
        _import(old, old / "hosts.txt" / "gpuherd.toml", "config.ini")
    with pytest.raises(Failed, match=r"cannot be written .*; nothing was changed"):
        _import(old, Path("/proc/gpuherd.toml"), "config.ini")


def test_no_scratch_file_is_left(old: Path, output: Path) -> None:
    _import(old, output, "hosts.txt")
    assert sorted(file.name for file in output.parent.iterdir()) == ["gpuherd.toml", "old"]


def test_what_a_copy_leaves_behind_is_said(old: Path, output: Path) -> None:
    (old / "hosts").write_text(
        "[gpus]\na ansible_ssh_private_key_file=key\nb ansible_ssh_common_args='-J gate'\nc\n"
    )
    outcome = _import(old, output, "hosts", copy=True)
    lost = [(note.line, note.sentence) for note in outcome.readings[0].notes if not note.is_taken]
    assert [line for line, _ in lost] == [2, 3]
    assert lost[0][1].startswith(f"key {old}/key of a: not copied")
    assert lost[1][1].startswith("jump host gate of b: not copied")
    outcome = _import(old, output.with_name("other.toml"), "hosts")
    assert all(note.is_taken for note in outcome.readings[0].notes)


def test_a_login_in_an_address_is_not_shown(old: Path, output: Path) -> None:
    (old / "run.sh").write_text('SERVER="http://bob:hunter2@10.0.0.9:3000/"\n')
    outcome = _import(old, output, "run.sh")
    assert "port 3000 of 10.0.0.9" in outcome.readings[0].notes[0].sentence
    assert "hunter2" not in str(outcome)


def test_bookings_are_followed_from_then_on(old: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    output.write_text("[bookings]\nmax_days = 7\n")
    _import(old, output, "comments.json")
    expected = {"file": str(old / "comments.json"), "watch": True, "zone": "Europe/Paris"}
    assert _tables(output)["bookings"] == {"max_days": 7, "comments": expected}
    assert _import(old, output, "comments.json").remarks == (
        f"{old / 'comments.json'}: is already imported (bookings.comments)",
    )
    (old / "comments.json").rename(old / "other.json")
    assert _import(old, output, "other.json").remarks == (
        f"{old / 'other.json'}: bookings.comments is already set to another value, which is kept",
    )


def test_pages_and_nodes_that_come_by_a_name(old: Path, output: Path) -> None:
    (old / "page.env").write_text("VITE_BACKEND=http://monitor.lab:3000\n")
    (old / "login.env").write_text(f"AUTH_USER=us\nAUTH_PASS={'0' * 64}\n")
    (old / "run.sh").write_text('SERVER="gpus.lab:3000/"\n')
    alone = _import(old, output, "page.env", "login.env")
    assert _tables(output) == {"hub": {"allowed_hosts": ["monitor.lab"]}}
    assert [remark.partition("; ")[2] for remark in alone.remarks] == [
        "import run-this-on-every-node.sh with --network, then this file again"
    ] * 2
    output.write_text('[hub]\nallowed_hosts = ["gpus.example.org"]  # ours\n')
    # Whatever the order in which files are named.
    _import(old, output, "page.env", "login.env", "run.sh", networks=("10.0.0.0/24",))
    tables = _tables(output)
    # The first name is the one under which the hub writes links: it stays the first.
    assert tables["hub"]["allowed_hosts"] == ["gpus.example.org", "monitor.lab", "gpus.lab"]
    gpustat = tables["legacy"]["gpustat"]
    assert gpustat["login_file"] == str(old / "login.env")
    assert {"http://monitor.lab:5173", "http://gpus.lab:5173"} <= set(gpustat["origins"])
    assert "# ours" in output.read_text()
    again = _import(old, output, "page.env", "login.env", "run.sh", networks=("10.0.0.0/24",))
    assert not again.is_written


def test_a_configuration_is_copied_before_it_is_replaced(old: Path, output: Path) -> None:
    assert _import(old, output, "hosts.txt").copy is None
    befores = []
    for name, copy in (("config.yml", "gpuherd.toml.bak"), ("aliases.csv", "gpuherd.toml.bak1")):
        output.chmod(0o640)
        befores.append(output.read_text())
        assert _import(old, output, name, dry_run=True).copy is None
        assert _import(old, output, name).copy == output.with_name(copy)
    assert [output.with_name(f"gpuherd.toml.bak{n}").read_text() for n in ("", "1")] == befores
    assert stat.S_IMODE(output.with_name("gpuherd.toml.bak1").stat().st_mode) == 0o640


def test_hosts_of_a_list_with_bad_lines_are_copied_so_that_they_count(old: Path, output: Path) -> None:
    (old / "hosts.txt").write_text("gpu1\nbad host\ngpu2\n")
    outcome = _import(old, output, "hosts.txt")
    assert _tables(output)["nodes"] == [{"hosts": ["gpu1", "gpu2"], "reach": {"by": "node_info"}}]
    assert [(note.line, note.is_taken) for note in outcome.readings[0].notes if note.line == 2] == [
        (2, False)
    ]
