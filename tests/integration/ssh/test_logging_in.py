"""Logging in at a real sshd: keys, agents, aliases, jump hosts, forced commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.model.targets import Target
from support.running import PATIENCE_SECONDS
from support.ssh_nodes import TINY_SCRIPT, Hub, play
from support.sshd import Sshd, make_key, public_line, running_sshd


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    socket = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            assert process.poll() is None
        yield socket
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def add_to_agent(agent: Path, key: Path, passphrase: str = "") -> None:
    ask = key.with_name("ask")
    ask.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
    ask.chmod(0o700)
    environment = {
        **os.environ,
        "SSH_AUTH_SOCK": str(agent),
        "SSH_ASKPASS": str(ask),
        "SSH_ASKPASS_REQUIRE": "force",
    }
    subprocess.run(["ssh-add", "-q", str(key)], env=environment, check=True, capture_output=True)


def at(server: Sshd, **more: str) -> Target:
    return Target(name="gpu01", address=server.address, port=server.port, **more)  # type: ignore[arg-type]


def test_reports_arrive_round_after_round_on_one_login(tmp_path: Path, server: Sshd, key: Path) -> None:
    before = server.logins()

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(server.known_hosts_line)
        async with hub.following(at(server)) as node:
            await node.rounds(6)
            assert node.intake.texts[:2] == ["round 1 of root", "round 2 of root"]
        assert [reader.is_closed for reader in hub.readers] == [True]
        await hub.way.close()

    play(story())
    assert server.logins() - before == 1


def test_the_lists_user_and_key_win_over_the_settings(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, user="nobody-at-all", key_files=(tmp_path / "absent",))
        hub.know(server.known_hosts_line)
        assert await hub.first_text(at(server, user="root", key_file=str(key))) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_the_settings_win_over_the_ssh_configuration(tmp_path: Path, server: Sshd, key: Path) -> None:
    (tmp_path / "ssh_config").write_text(
        f"Host gpu01\n  HostName 127.0.0.1\n  Port {server.port}\n  User wrong\n"
    )

    async def story() -> None:
        hub = Hub(tmp_path, user="root", key_files=(key,))
        hub.know(server.known_hosts_line)
        assert await hub.first_text(Target(name="gpu01", address="gpu01")) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_an_alias_of_the_ssh_configuration_is_enough(tmp_path: Path, server: Sshd, key: Path) -> None:
    more = tmp_path / "more.conf"
    more.write_text(f"Host gpu*\n  User root\n  IdentityFile {key}\n")
    (tmp_path / "ssh_config").write_text(
        f"Include {more}\nHost gpu01\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentitiesOnly yes\n"
    )

    async def story() -> None:
        hub = Hub(tmp_path)
        hub.know(server.known_hosts_line)
        assert await hub.first_text(Target(name="gpu01", address="gpu01")) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_the_usual_files_are_those_of_ssh(
    tmp_path: Path, server: Sshd, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    folder.mkdir()
    (folder / "config").write_text(f"Host node\n  HostName 127.0.0.1\n  Port {server.port}\n  User root\n")
    (folder / "known_hosts").write_text(server.known_hosts_line + "\n")
    (folder / "id_ed25519").write_bytes(key.read_bytes())

    async def story() -> None:
        hub = Hub(tmp_path, config_file=None, known_hosts_file=None)
        assert await hub.first_text(Target(name="gpu01", address="node")) == "round 1 of root"
        await hub.way.close()

    play(story())


@pytest.mark.parametrize("setting", ["ProxyJump jump", "ProxyJump root@127.0.0.1:{port}", "list"])
def test_jump_hosts_are_logged_in_to_once_for_all_nodes(
    tmp_path: Path, server: Sshd, key: Path, setting: str
) -> None:
    with running_sshd(tmp_path / "jump") as jump:
        jump.authorize(key)
        via = f"root@127.0.0.1:{jump.port}" if setting == "list" else None
        (tmp_path / "ssh_config").write_text(
            f"Host jump\n  HostName 127.0.0.1\n  Port {jump.port}\n  User root\n"
            f"Host behind\n  HostName 127.0.0.1\n  Port {server.port}\n"
            + ("" if via else f"  {setting.format(port=jump.port)}\n")
        )

        async def story() -> None:
            hub = Hub(tmp_path, user="root", key_files=(key,))
            hub.know(server.known_hosts_line, jump.known_hosts_line)
            target = Target(name="gpu01", address="behind", proxy_jump=via)
            async with hub.following(target) as first, hub.following(target) as second:
                await first.rounds(3)
                await second.rounds(3)
            await hub.way.close()

        before = server.logins()
        play(story())
        assert jump.logins() == 1
        assert server.logins() - before == 2
        assert "127.0.0.1 port" in jump.log.read_text()


def test_two_jump_hosts_in_a_row(tmp_path: Path, server: Sshd, key: Path) -> None:
    with running_sshd(tmp_path / "one") as one, running_sshd(tmp_path / "two") as two:
        for jump in (one, two):
            jump.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, user="root", key_files=(key,))
            hub.know(server.known_hosts_line, one.known_hosts_line, two.known_hosts_line)
            chain = f"root@127.0.0.1:{one.port},root@127.0.0.1:{two.port}"
            assert await hub.first_text(at(server, proxy_jump=chain)) == "round 1 of root"
            await hub.way.close()

        play(story())
        assert (one.logins(), two.logins()) == (1, 1)


def test_a_jump_host_that_refuses_is_named(tmp_path: Path, server: Sshd, key: Path) -> None:
    with running_sshd(tmp_path / "jump") as jump:

        async def story() -> None:
            hub = Hub(tmp_path, user="root", key_files=(key,))
            hub.know(server.known_hosts_line)
            target = at(server, proxy_jump=f"root@127.0.0.1:{jump.port}")
            failure = await hub.failure(target)
            assert failure.code == "host_key_unknown"
            assert f"accept-key 127.0.0.1:{jump.port}" in str(failure)
            hub.know(jump.known_hosts_line)
            failure = await hub.failure(target)
            assert failure.code == "login_refused"
            assert str(failure).startswith(f"gpu01: jump host root@127.0.0.1:{jump.port}: login")
            jump.authorize(key)
            failure = await hub.failure(
                Target(name="gpu01", address="127.0.0.1", port=1, proxy_jump=target.proxy_jump)
            )
            assert failure.code == "unreachable"
            assert "jump host cannot connect to 127.0.0.1:1" in str(failure)
            await hub.way.close()

        play(story())


def test_a_jump_host_behind_itself_is_a_mistake_of_the_configuration(tmp_path: Path, key: Path) -> None:
    (tmp_path / "ssh_config").write_text("Host *\n  ProxyJump bastion\n")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        failure = await hub.failure(Target(name="gpu01", address="gpu01"))
        assert failure.code == "ssh_config"
        assert failure.needs_person
        assert "ProxyJump none" in str(failure)
        await hub.way.close()

    play(story())


def test_a_proxy_command_makes_the_connection(tmp_path: Path, server: Sshd, key: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, socket, sys, threading\n"
        "line = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def down():\n"
        "    while data := line.recv(65536): os.write(1, data)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=down, daemon=True).start()\n"
        "while data := os.read(0, 65536): line.sendall(data)\n"
    )
    (tmp_path / "ssh_config").write_text(
        f"Host gpu01\n  HostName 127.0.0.1\n  Port {server.port}\n  ProxyCommand python3 {relay} %h %p\n"
    )

    async def story() -> None:
        hub = Hub(tmp_path, user="root", key_files=(key,))
        hub.know(server.known_hosts_line)
        assert await hub.first_text(Target(name="gpu01", address="gpu01")) == "round 1 of root"
        await hub.way.close()

    play(story())


@pytest.mark.parametrize("source", ["environment", "IdentityAgent"])
def test_keys_of_an_ssh_agent(
    tmp_path: Path, server: Sshd, key: Path, agent: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    add_to_agent(agent, key)
    if source == "IdentityAgent":
        (tmp_path / "ssh_config").write_text(f"IdentityAgent {agent}\n")

    async def story() -> None:
        hub = Hub(tmp_path, user="root")
        hub.know(server.known_hosts_line)
        failure = None
        if source == "environment":
            failure = await hub.failure(at(server))
            assert failure.code == "login_refused"
            assert "no key to offer" in str(failure)
            hub.environment["SSH_AUTH_SOCK"] = str(agent)
        assert await hub.first_text(at(server)) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_a_key_with_a_passphrase_is_used_through_the_agent_or_explained(
    tmp_path: Path, server: Sshd, agent: Path
) -> None:
    locked = make_key(tmp_path / "locked", passphrase="secret words")
    server.authorize(locked)

    async def story() -> None:
        hub = Hub(tmp_path, user="root", key_files=(locked,))
        hub.know(server.known_hosts_line)
        failure = await hub.failure(at(server))
        assert failure.code == "login_refused"
        assert failure.needs_person
        assert f"{locked} is protected by a passphrase" in str(failure)
        assert f"ssh-add {locked}" in str(failure)
        add_to_agent(agent, locked, "secret words")
        hub.environment["SSH_AUTH_SOCK"] = str(agent)
        assert await hub.first_text(at(server)) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_identities_only_keeps_the_agents_other_keys_back(
    tmp_path: Path, server: Sshd, key: Path, agent: Path
) -> None:
    for number in range(7):  # more than MaxAuthTries
        add_to_agent(agent, make_key(tmp_path / f"other{number}"))
    add_to_agent(agent, key)
    (tmp_path / "only.pub").write_text(public_line(key) + "\n")

    async def story() -> None:
        hub = Hub(tmp_path, user="root")
        hub.environment["SSH_AUTH_SOCK"] = str(agent)
        hub.know(server.known_hosts_line)
        failure = await hub.failure(at(server))
        assert failure.code == "login_refused"
        assert "IdentitiesOnly" in str(failure)
        hub.config.write_text(f"IdentitiesOnly yes\nIdentityFile {tmp_path / 'only.pub'}\n")
        assert await hub.first_text(at(server)) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_a_refused_login_names_the_keys_that_were_shown(tmp_path: Path, server: Sshd) -> None:
    stranger = make_key(tmp_path / "stranger")

    async def story() -> None:
        hub = Hub(tmp_path, user="root", key_files=(stranger, tmp_path / "absent"))
        hub.know(server.known_hosts_line)
        failure = await hub.failure(at(server))
        assert failure.code == "login_refused"
        assert failure.needs_person
        assert f"keys offered: {stranger}; {tmp_path / 'absent'} no such file" in str(failure)
        assert "authorized_keys" in str(failure)
        await hub.way.close()

    play(story())


def test_a_key_bound_to_the_nodes_script(tmp_path: Path) -> None:
    bound = make_key(tmp_path / "bound")
    installed = tmp_path / "gpuherd-node"
    installed.write_bytes(b"#!/bin/sh\n" + TINY_SCRIPT)
    installed.chmod(0o755)
    with running_sshd(tmp_path / "sshd") as server:
        server.authorize(bound, f'restrict,command="{installed}"')

        async def story() -> None:
            hub = Hub(tmp_path, user="root", key_files=(bound,))
            hub.know(server.known_hosts_line)
            async with hub.following(at(server)) as node:
                await node.rounds(3)
                assert node.intake.texts[0] == "round 1 of root"
            await hub.way.close()

        play(story())


def test_a_key_bound_to_something_else(tmp_path: Path) -> None:
    bound = make_key(tmp_path / "bound")
    with running_sshd(tmp_path / "sshd") as server:
        server.authorize(bound, 'restrict,command="echo only backups here; exit 3"')

        async def story() -> None:
            hub = Hub(tmp_path, user="root", key_files=(bound,))
            hub.know(server.known_hosts_line)
            failure = await hub.failure(at(server))
            assert failure.code == "command_refused"
            assert failure.needs_person
            assert 'ended with status 3 and printed "only backups here"' in str(failure)
            assert "command=" in str(failure)
            await hub.way.close()

        play(story())


def test_an_ipv6_address(tmp_path: Path, key: Path) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with running_sshd(tmp_path / "sshd", ListenAddress="::1") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, user="root", key_files=(key,))
            hub.know(f"[::1]:{server.port} {public_line(server.host_key)}")
            assert (
                await hub.first_text(Target(name="gpu01", address="::1", port=server.port))
                == "round 1 of root"
            )
            await hub.way.close()

        play(story())
