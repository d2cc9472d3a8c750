"""Whom the hub believes: known, unknown, changed, revoked and certified host keys."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.cli.hub import command
from gpuherd.model.targets import Target
from gpuherd.records.audit import AuditRecords
from gpuherd.records.database import open_records, records_file
from gpuherd.sources.ssh.offer import accept_host_key, fetch_host_key
from gpuherd.wiring.ways.surroundings import ACCEPTED_KEYS
from support.running import free_port
from support.ssh_nodes import Hub, play
from support.sshd import Sshd, fingerprint, make_key, public_line, running_sshd


def at(server: Sshd, **more: str) -> Target:
    return Target(name="gpu01", address=server.address, port=server.port, user="root", **more)  # type: ignore[arg-type]


def test_an_unknown_key_is_refused_shown_accepted_and_then_works(
    tmp_path: Path, server: Sshd, key: Path
) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        failure = await hub.failure(at(server))
        assert failure.code == "host_key_unknown"
        assert failure.needs_person
        assert fingerprint(server.host_key) in str(failure)
        assert "`gpuherd hub accept-key gpu01`" in str(failure)
        assert not hub.accepted.exists()

        shown = await fetch_host_key(at(server), hub.settings, accepted_keys_file=hub.accepted)
        assert shown.offered.fingerprint == fingerprint(server.host_key)
        assert not shown.is_known
        accept_host_key(hub.accepted, shown.offered)
        accept_host_key(hub.accepted, shown.offered)
        assert hub.accepted.read_text() == server.known_hosts_line + "\n"
        assert await hub.first_text(at(server)) == "round 1 of root"
        assert (await fetch_host_key(at(server), hub.settings, accepted_keys_file=hub.accepted)).is_known
        await hub.way.close()

    before = server.logins()
    play(story())
    assert server.logins() - before == 1


@pytest.mark.promise("every-change-is-audited")
def test_an_accepted_key_is_in_the_audit_log(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    place, host = tmp_path / "state", f"{server.address}:{server.port}"

    def run(*words: str) -> None:
        done = CliRunner().invoke(command, ["--state-dir", str(place), *words])
        assert done.exit_code == 0, (done.output, done.exception)

    run("accept-key", host, "--yes")  # for `gpuherd export`, without any hub
    assert not records_file(place).exists()
    run("init")
    (place / ACCEPTED_KEYS).unlink()
    run("accept-key", host, "--yes")
    engine = open_records(records_file(place))
    (entry,) = AuditRecords(engine).search()
    engine.dispose()
    assert (entry.action, entry.who) == ("node.host_key", "command line")
    assert fingerprint(server.host_key) in entry.detail


def test_all_listed_hosts_are_accepted_by_one_command(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    dead = free_port()
    config = tmp_path / "gpuherd.toml"
    (tmp_path / "config.ini").write_text(
        f"[common]\nuser = root\nhosts = a=127.0.0.1:{server.port},b=127.0.0.1:{dead},c=localhost:{server.port}\n"
    )
    config.write_text(
        f'[hub]\nstate_dir = "{tmp_path / "state"}"\n'
        '[[nodes]]\nfind = { in = "ini", file = "config.ini" }\nreach = { by = "ssh" }\n'
    )

    def run(*words: str, typed: str = "") -> tuple[int, str]:
        done = CliRunner().invoke(command, ["--config", str(config), "accept-key", *words], input=typed)
        return done.exit_code, done.output

    accepted = tmp_path / "state" / ACCEPTED_KEYS
    code, said = run("--all", typed="n\n")
    assert (code, accepted.exists()) == (1, False)
    assert said.count(fingerprint(server.host_key)) == 2
    assert f"127.0.0.1:{dead} offers no host key" in said
    code, said = run("--all", typed="y\n")
    assert (code, said.count("?")) == (1, 1), "asked once; a host was left out"
    own = " ".join(public_line(server.host_key).split()[:2])
    lines = {f"[{name}]:{server.port} {own}" for name in ("127.0.0.1", "localhost")}
    assert set(accepted.read_text().splitlines()) == lines
    former = f"[127.0.0.1]:{server.port} {public_line(make_key(tmp_path / 'former'))}\n"
    accepted.write_text(former)
    code, said = run("--all", "--yes")
    assert (code, "KEY HAS CHANGED" in said) == (1, True)
    assert accepted.read_text() == f"{former}[localhost]:{server.port} {own}\n"
    assert run("--all", "--replace", "--yes")[0] == 2
    assert run()[0] == 2


@pytest.mark.parametrize("policy", ["strict", "accept_new"])
@pytest.mark.promise("changed-host-key-refused")
def test_a_changed_key_is_refused_with_both_fingerprints(
    tmp_path: Path, server: Sshd, key: Path, policy: str
) -> None:
    former = make_key(tmp_path / "former")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), host_keys=policy)
        hub.know(f"[127.0.0.1]:{server.port} {public_line(former)}")
        failure = await hub.failure(at(server))
        assert failure.code == "host_key_changed"
        assert failure.needs_person
        assert fingerprint(former) in str(failure)
        assert fingerprint(server.host_key) in str(failure)
        assert "accept-key --replace gpu01" in str(failure)
        assert not hub.accepted.exists()
        await hub.way.close()

    before = server.logins()
    play(story())
    assert server.logins() == before


def test_a_key_of_another_kind_is_a_changed_key(tmp_path: Path, server: Sshd, key: Path) -> None:
    former = make_key(tmp_path / "former", "ecdsa")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), host_keys="accept_new")
        hub.know(f"[127.0.0.1]:{server.port} {public_line(former)}")
        assert (await hub.failure(at(server))).code == "host_key_changed"
        await hub.way.close()

    play(story())


def test_a_server_with_several_keys_is_asked_for_the_known_one(tmp_path: Path, key: Path) -> None:
    rsa = make_key(tmp_path / "rsa", "rsa")
    with running_sshd(tmp_path / "sshd") as server:
        server.stop()
        server._options["HostKey"] = f"{server.host_key}\nHostKey {rsa}"
        server.start()
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(f"[127.0.0.1]:{server.port} {public_line(rsa)}")
            assert await hub.first_text(at(server)) == "round 1 of root"
            await hub.way.close()

        play(story())


def test_accept_new_remembers_the_first_key_and_no_other(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), host_keys="accept_new")
            assert await hub.first_text(at(server)) == "round 1 of root"
            assert hub.accepted.read_text() == server.known_hosts_line + "\n"
            server.stop()
            server.host_key.unlink()
            make_key(server.host_key)
            server.start()
            assert (await hub.failure(at(server))).code == "host_key_changed"
            shown = await fetch_host_key(at(server), hub.settings, accepted_keys_file=hub.accepted)
            assert shown.is_doubtful
            accept_host_key(hub.accepted, shown.offered, replace=True)
            assert hub.accepted.read_text() == server.known_hosts_line + "\n"
            assert await hub.first_text(at(server)) == "round 1 of root"
            await hub.way.close()

        play(story())


def test_jump_hosts_keys_are_checked_and_remembered_too(tmp_path: Path, server: Sshd, key: Path) -> None:
    with running_sshd(tmp_path / "jump") as jump:
        jump.authorize(key)

        async def story() -> None:
            target = at(server, proxy_jump=f"root@127.0.0.1:{jump.port}")
            hub = Hub(tmp_path, key_files=(key,), host_keys="accept_new")
            assert await hub.first_text(target) == "round 1 of root"
            assert set(hub.accepted.read_text().splitlines()) == {
                server.known_hosts_line,
                jump.known_hosts_line,
            }
            shown = await fetch_host_key(target, hub.settings, accepted_keys_file=hub.accepted)
            assert (shown.offered.port, shown.is_known) == (server.port, True)
            await hub.way.close()

        play(story())


def hashed(line: str, folder: Path) -> str:
    file = folder / "to_hash"
    file.write_text(line + "\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    text = file.read_text().strip()
    assert text.startswith("|1|")
    return text


def test_hashed_entries_and_lines_that_make_no_sense(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(
            "complete nonsense",
            "@strange-marker * ssh-ed25519 AAAA",
            hashed(server.known_hosts_line, tmp_path),
        )
        assert await hub.first_text(at(server)) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_an_entry_without_a_port_serves_any_port_but_does_not_accuse(
    tmp_path: Path, server: Sshd, key: Path
) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(f"127.0.0.1 {public_line(make_key(tmp_path / 'other'))}")
        assert (await hub.failure(at(server))).code == "host_key_unknown"
        hub.know(f"127.0.0.1 {public_line(server.host_key)}")
        assert await hub.first_text(at(server)) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_a_revoked_key_is_refused_though_it_is_known(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), host_keys="accept_new")
        hub.know(server.known_hosts_line, f"@revoked * {public_line(server.host_key)}")
        failure = await hub.failure(at(server))
        assert failure.code == "host_key_revoked"
        assert failure.needs_person
        await hub.way.close()

    play(story())


@pytest.mark.parametrize("principal", ["127.0.0.1", "elsewhere"])
def test_certificates_of_a_known_authority(tmp_path: Path, key: Path, principal: str) -> None:
    authority = make_key(tmp_path / "authority")
    with running_sshd(tmp_path / "sshd") as server:
        server.stop()
        subprocess.run(
            [
                "ssh-keygen",
                "-q",
                "-s",
                str(authority),
                "-I",
                "host",
                "-h",
                "-n",
                principal,
                f"{server.host_key}.pub",
            ],
            check=True,
            capture_output=True,
        )
        server._options["HostCertificate"] = f"{server.host_key}-cert.pub"
        server.start()
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(f"@cert-authority * {public_line(authority)}")
            if principal == "127.0.0.1":
                assert await hub.first_text(at(server)) == "round 1 of root"
            else:
                failure = await hub.failure(at(server))
                assert failure.code == "host_key_unknown"
                assert "principal" in str(failure)
            await hub.way.close()

        play(story())


def test_the_ssh_configuration_cannot_switch_the_check_off(tmp_path: Path, server: Sshd, key: Path) -> None:
    (tmp_path / "ssh_config").write_text("StrictHostKeyChecking no\nUserKnownHostsFile none\n")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), known_hosts_file=None)
        assert (await hub.failure(at(server))).code == "host_key_unknown"
        await hub.way.close()

    play(story())


def test_host_key_alias(tmp_path: Path, server: Sshd, key: Path) -> None:
    (tmp_path / "ssh_config").write_text("Host *\n  HostKeyAlias the-cluster\n")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(f"the-cluster {public_line(server.host_key)}")
        assert await hub.first_text(at(server)) == "round 1 of root"
        await hub.way.close()

    play(story())


def test_a_first_key_that_cannot_be_kept_is_not_trusted(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), host_keys="accept_new")
        hub.accepted.with_name("accepted_keys.lock").mkdir()
        failure = await hub.failure(at(server))
        assert failure.code == "host_key_unknown"
        assert "cannot be saved" in str(failure)
        await hub.way.close()

    play(story())
