"""A node over SSH, at a real sshd: each broken step is named, with one sentence."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from integration.doctor.conftest import Doctor, SshNode
from support.sshd import fingerprint, make_key

ALL = ["listed", "resolve", "connect", "key", "login", "command", "parse", "freshness", "clock"]


def test_a_good_node(doctor: Doctor, ssh_node: SshNode) -> None:
    found = doctor("gpu01", ssh_node.table())
    assert found.sentences == ["gpu01: no problems found."]
    assert [step.name for step in found.steps] == [*ALL, "hub"]
    assert {state for name, state in found.states.items() if name != "hub"} == {"ok"}
    assert found.fact("listed") == "nodes[0].hosts, entry 1, by ssh"
    assert found.fact("key") == f"ssh-ed25519 {fingerprint(ssh_node.server.host_key)}, known"
    assert found.fact("login") == f"as root@127.0.0.1:{ssh_node.server.port} with {ssh_node.key}"
    assert found.fact("command") == "the script runs, with nvidia-smi"
    assert found.fact("parse") == "2 GPUs, no processes"
    assert found.fact("clock") == "within 1 s of this machine's"
    assert ssh_node.server.logins() == 1
    assert not doctor.state_dir.exists(), "nothing is written where the hub keeps its own"


def test_a_node_is_found_by_its_address_too(doctor: Doctor, ssh_node: SshNode) -> None:
    found = doctor("127.0.0.1", ssh_node.table())
    assert found.states["parse"] == "ok"


def test_a_key_that_is_not_let_in(doctor: Doctor, ssh_node: SshNode, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    found = doctor("gpu01", ssh_node.table(key_files=f'["{other}"]'))
    assert found.broken == ["login"]
    assert (found.states["key"], found.states["command"]) == ("ok", "skipped")
    (sentence,) = found.sentences
    assert sentence.startswith(
        f"gpu01: login as root@127.0.0.1:{ssh_node.server.port} was rejected; keys offered: {other}"
    )
    assert "~root/.ssh/authorized_keys" in sentence


def test_an_unknown_host_key(doctor: Doctor, ssh_node: SshNode) -> None:
    ssh_node.known_hosts.write_text("")
    found = doctor("gpu01", ssh_node.table())
    assert found.broken == ["key"]
    (sentence,) = found.sentences
    assert f"it offers {fingerprint(ssh_node.server.host_key)}" in sentence
    assert sentence.endswith("`gpuherd hub accept-key gpu01`")


def test_a_first_key_is_taken_if_the_configuration_says_so_but_not_kept(
    doctor: Doctor, ssh_node: SshNode
) -> None:
    ssh_node.known_hosts.write_text("")
    found = doctor("gpu01", ssh_node.table(host_keys='"accept_new"'))
    assert found.sentences == ["gpu01: no problems found."]
    assert found.fact("key").endswith("accepted as its first key (host_keys = accept_new)")
    assert not doctor.state_dir.exists()


def test_a_changed_host_key(doctor: Doctor, ssh_node: SshNode, tmp_path: Path) -> None:
    before = make_key(tmp_path / "before")
    kind, text = before.with_name("before.pub").read_text().split()[:2]
    ssh_node.known_hosts.write_text(f"[127.0.0.1]:{ssh_node.server.port} {kind} {text}\n")
    found = doctor("gpu01", ssh_node.table())
    assert found.broken == ["key"]
    assert f"has CHANGED from {fingerprint(before)}" in found.sentences[0]
    assert found.sentences[0].endswith("`gpuherd hub accept-key --replace gpu01`")


def test_no_nvidia_smi(doctor: Doctor, ssh_node: SshNode) -> None:
    (ssh_node.fake.programs / "nvidia-smi").unlink()
    found = doctor("gpu01", ssh_node.table())
    assert found.broken == ["parse"]
    assert found.fact("command") == "the script runs, but finds no nvidia-smi"
    assert "there is no nvidia-smi on this node: install the NVIDIA driver's tools" in found.sentences[0]
    assert found.states["freshness"] == "ok"


def test_a_driver_that_complains(doctor: Doctor, ssh_node: SshNode) -> None:
    ssh_node.fake.write(
        "complaint", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    )
    ssh_node.fake.write("mode", "broken\n")
    found = doctor("gpu01", ssh_node.table())
    assert found.broken == ["parse"]
    assert "the NVIDIA driver is not loaded: run 'modprobe nvidia'" in found.sentences[0]


def test_a_driver_that_hangs(doctor: Doctor, ssh_node: SshNode) -> None:
    ssh_node.fake.write("mode", "hang\n")
    found = doctor("gpu01", ssh_node.table(command_deadline_seconds="1"))
    assert found.broken[0] == "parse"
    assert "the driver may hang: reboot if this persists" in found.sentences[0]
    assert found.states["clock"] != "failed", "a late report is no wrong clock"


def test_a_forced_command_that_is_not_ours(doctor: Doctor, ssh_node: SshNode) -> None:
    ssh_node.server.authorized_keys.write_text("")
    ssh_node.server.authorize(ssh_node.key, 'restrict,command="echo hello"')
    found = doctor("gpu01", ssh_node.table())
    assert found.broken == ["command"]
    assert found.states["login"] == "ok"
    assert "the login works but the node did not run the script it was given" in found.sentences[0]
    assert "it must be the gpuherd-node script" in found.sentences[0]


def test_a_login_that_hangs(doctor: Doctor, ssh_node: SshNode) -> None:
    ssh_node.server.authorized_keys.write_text("")
    ssh_node.server.authorize(ssh_node.key, 'command="sleep 60"')
    found = doctor("gpu01", ssh_node.table(connect_deadline_seconds="2"))
    assert found.broken == ["command"]
    assert found.sentences[0].startswith(
        "gpu01: no response after 2 s of waiting for the first line of the script"
    )


def test_a_port_on_which_nothing_listens(doctor: Doctor, ssh_node: SshNode) -> None:
    port = ssh_node.server.port
    ssh_node.server.stop()
    found = doctor("gpu01", ssh_node.table())
    reason = f"nothing listens on 127.0.0.1 port {port} (connection refused)"
    assert found.sentences == [f"gpu01: {reason}: is sshd running there, and is the port right?"]
    assert found.broken == ["connect"]


def test_a_server_that_does_not_speak_ssh(doctor: Doctor, ssh_node: SshNode) -> None:
    async def story() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail.example.org ready\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            doctor.configure(ssh_node.table(f"gpu01=127.0.0.1:{port}", connect_deadline_seconds="1"))
            found = await doctor.look("gpu01")
        assert found.broken == ["key"]
        assert (
            'that is not an SSH server, it says "220 mail.example.org ready"; check the port'
            in found.sentences[0]
        )

    asyncio.run(story())


def test_a_server_that_says_nothing(doctor: Doctor, ssh_node: SshNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        found = doctor("gpu01", ssh_node.table(f"gpu01=127.0.0.1:{port}", connect_deadline_seconds="1"))
    assert found.broken == ["key"]
    assert "waiting for the server's greeting" in found.sentences[0]


def test_a_name_without_an_address(doctor: Doctor, ssh_node: SshNode) -> None:
    found = doctor("nowhere.invalid", ssh_node.table("nowhere.invalid"))
    assert found.broken == ["resolve"]
    assert found.sentences[0].startswith("nowhere.invalid: the name nowhere.invalid ")
    assert found.states["connect"] == found.states["clock"] == "skipped"


def test_an_alias_and_a_jump_host(doctor: Doctor, ssh_node: SshNode) -> None:
    port = ssh_node.server.port
    ssh_node.ssh_config.write_text(
        f"Host gate\n HostName 127.0.0.1\n Port {port}\n User root\n"
        f"Host gpu01\n HostName 127.0.0.1\n Port {port}\n User root\n ProxyJump gate\n"
    )
    found = doctor("gpu01", ssh_node.table("gpu01"))
    assert found.sentences == ["gpu01: no problems found."]
    assert found.fact("resolve") == f"127.0.0.1 is an address (jump host root@127.0.0.1:{port})"


def test_a_clock_that_is_wrong(doctor: Doctor, ssh_node: SshNode) -> None:
    ssh_node.fake.install("date", '#!/bin/sh\nexec /usr/bin/date -d "+3 minutes" "$@"\n')
    found = doctor("gpu01", ssh_node.table())
    assert found.broken == ["clock"]
    assert found.sentences == [
        "gpu01: the clock of gpu01 is 3 min ahead of this machine's: let both follow NTP (`timedatectl set-ntp true`)"
    ]


def test_a_host_in_no_list_is_looked_for_and_tried(doctor: Doctor, ssh_node: SshNode) -> None:
    found = doctor("gpu02", ssh_node.table())
    assert found.broken[0] == "listed"
    assert found.sentences[0] == (
        "gpu02 is not in any list (looked in nodes[0].hosts (1 node)) and no hub runs here to tell whether it is "
        "enrolled; did you mean gpu01?"
    )
    assert "resolve" in found.states, "it may be a host all the same"


def test_every_node_and_list_side_by_side(doctor: Doctor, ssh_node: SshNode) -> None:
    doctor.configure(
        ssh_node.table()
        + ssh_node.table("gpu02=127.0.0.1:1")
        + '[[nodes]]\nfind = { in = "hosts_file", file = "hosts.txt" }\nreach = { by = "ssh" }\n'
    )
    found = asyncio.run(doctor.look())
    nodes = {step.fact.partition(":")[0]: step for step in found.steps if step.name == "node"}
    assert nodes["gpu01"].fact == "gpu01: 2 GPUs, no processes"
    assert nodes["gpu02"].fact == "gpu02: connect: connection refused"
    assert nodes["gpu02"].remedy is not None
    assert nodes["gpu02"].remedy.startswith("gpu02: nothing listens on 127.0.0.1 port 1")
    lists = [step for step in found.steps if step.name == "list"]
    assert [step.state for step in lists] == ["ok", "ok", "failed"]
    assert "hosts.txt" in str(lists[2].remedy)
    assert found.sentences[0].endswith("problems found:")
