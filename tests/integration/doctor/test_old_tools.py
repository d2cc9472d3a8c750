"""Nodes that run older tools, and files that they drop."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from integration.doctor.conftest import Doctor
from support.old_tools import drop_files, dropping, node_info_node, rpc_node, serving


def test_an_xmlrpc_node(doctor: Doctor) -> None:
    with rpc_node() as port:
        found = doctor(
            "gpu01",
            f'[[nodes]]\nhosts = ["gpu01=127.0.0.1:{port}"]\nreach = {{ by = "xmlrpc", interval_seconds = 0.5 }}\n',
        )
    assert found.sentences == ["gpu01: no problems found."]
    assert found.fact("parse") == "1 GPU, 1 process"
    assert (found.states["key"], found.states["clock"]) == ("skipped", "skipped")
    assert found.fact("key") == "this protocol has no credentials"


def test_a_node_that_serves_its_files(doctor: Doctor, tmp_path: Path) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as port:
        config = (
            f'[[nodes]]\nhosts = ["gpu01.lip6.fr=127.0.0.1:{port}"]\n'
            'reach = { by = "http_files", interval_seconds = 0.5 }\n'
        )
        with dropping(tmp_path, "gpu01"):
            found = doctor("gpu01.lip6.fr", config)
        assert found.sentences == ["gpu01.lip6.fr: no problems found."]
        assert found.fact("parse") == "1 GPU, 1 process"
        for file in tmp_path.glob("*.csv"):
            file.unlink()
        found = doctor("gpu01.lip6.fr", config)
    assert found.broken == ["answer"]
    (sentence,) = found.sentences
    assert "serves no gpu01_gpus.csv: is task 1 of gpu-run.sh running there" in sentence


def test_another_rpc_server(doctor: Doctor) -> None:
    from xmlrpc.server import SimpleXMLRPCServer

    with serving(SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)) as port:
        found = doctor(
            "gpu01", f'[[nodes]]\nhosts = ["gpu01=127.0.0.1:{port}"]\nreach = {{ by = "xmlrpc" }}\n'
        )
    assert found.broken == ["answer"]
    assert found.states["connect"] == "ok"
    (sentence,) = found.sentences
    assert sentence.startswith("gpu01: gpu_stats() fails on gpu01: ")
    assert sentence.endswith(
        '"gpu_stats" is not supported; check what the old monitor\'s RPC server prints there, '
        "or whether it is another server"
    )


def test_an_rpc_server_that_is_not_there(doctor: Doctor) -> None:
    found = doctor("gpu01", '[[nodes]]\nhosts = ["gpu01=127.0.0.1:1"]\nreach = { by = "xmlrpc" }\n')
    reason = "nothing listens on 127.0.0.1 port 1 (connection refused)"
    assert found.sentences == [f"gpu01: {reason}: start the RPC server there, or correct the port"]


def node_info(port: int, password_file: Path | None = None) -> str:
    password = f', password_file = "{password_file}"' if password_file else ""
    return (
        f'[[nodes]]\nhosts = ["gpu01=127.0.0.1:{port}"]\n'
        f'reach = {{ by = "node_info", interval_seconds = 0.5{password} }}\n'
    )


def test_a_node_info_node_with_the_readme_password(doctor: Doctor) -> None:
    with node_info_node("gpu01") as port:
        found = doctor("gpu01", node_info(port))
    assert found.sentences == ["gpu01: no problems found."]
    assert found.fact("key") == "it accepts the default password from the tool's README: change it"


def test_a_node_info_node_with_another_password(doctor: Doctor, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("not-the-right-one\n")
    with node_info_node("gpu01", password="s3cret") as port:
        found = doctor("gpu01", node_info(port, file))
    assert found.broken == ["key"]
    (sentence,) = found.sentences
    assert sentence.startswith(
        "gpu01 responds with 403, as node_info.py does to a wrong password; put the PASSWD of its"
    )
    assert sentence.endswith("into reach.password_file")
    told = " ".join(step.fact + str(step.remedy) for step in found.steps)
    assert "not-the-right-one" not in told


def test_dropped_files_without_a_hub(doctor: Doctor, tmp_path: Path) -> None:
    folder = tmp_path / "drops"
    folder.mkdir()
    drop_files(folder, "gpu07")
    found = doctor("gpu07", f'[[folders]]\npath = "{folder}"\n')
    assert found.states["folder"] == "ok"
    assert found.fact("parse") == "1 GPU, 1 process"
    assert found.broken == ["hub"]
    assert found.sentences[0].endswith("start it with `gpuherd hub run`")


def test_dropped_files_of_a_host_that_hosts_json_does_not_name(doctor: Doctor, tmp_path: Path) -> None:
    folder = tmp_path / "drops"
    folder.mkdir()
    for host in ("gpu07", "gpu08"):
        drop_files(folder, host)
    (folder / "hosts.json").write_text('{"gpu07": "gpu07.lip6.fr"}')
    config = f'[[folders]]\npath = "{folder}"\n'
    assert doctor("gpu07.lip6.fr", config).states["folder"] == "ok", "found by its shown name, too"
    found = doctor("gpu08", config)
    assert found.broken[0] == "folder"
    assert found.sentences[0] == (
        f"gpu08 is not in {folder}/hosts.json, the list of hosts to show: add it, or remove the list"
    )
    (folder / "hosts.json").write_text('{"gpu07": ')
    assert "hosts.json: line 1 is not JSON" in doctor("gpu07", config).sentences[0]


def test_dropped_files_that_are_old(doctor: Doctor, tmp_path: Path) -> None:
    folder = tmp_path / "drops"
    folder.mkdir()
    drop_files(folder, "gpu07")
    for file in folder.iterdir():
        os.utime(file, (time.time() - 7300, time.time() - 7300))
    found = doctor("gpu07", f'[[folders]]\npath = "{folder}"\n')
    assert found.broken[0] == "folder"
    assert found.sentences[0].startswith(f"gpu07: the files of gpu07 in {folder} were updated 2 h ago")


def test_a_report_that_is_none(doctor: Doctor, tmp_path: Path) -> None:
    folder = tmp_path / "drops"
    folder.mkdir()
    (folder / "gpu07.json").write_text('{"facts": ')
    found = doctor("gpu07", f'[[folders]]\npath = "{folder}"\n')
    assert found.broken[0] == "parse"
    assert "gpu07.json is not a report" in found.sentences[0]


def test_a_folder_that_is_missing(doctor: Doctor, tmp_path: Path) -> None:
    doctor.configure(f'[[folders]]\npath = "{tmp_path / "nowhere"}"\n')
    found = asyncio.run(doctor.look())
    assert found.states["folder"] == "failed"
    assert any("create it, mount it, or correct folders.path" in sentence for sentence in found.sentences)
