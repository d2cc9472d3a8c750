"""Looking servers up in known_hosts files, and keeping accepted keys."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh
import pytest

from gpuherd.sources.ssh.connect import host_key_algorithms
from gpuherd.sources.ssh.known_hosts import KnownHosts, KnownKeys, OfferedKey, accept_host_key, entry_name


def line_of(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


def offered(host: str, port: int, key: asyncssh.SSHKey) -> OfferedKey:
    return OfferedKey(host=host, port=port, key=line_of(key), fingerprint=str(key.get_fingerprint()))


@pytest.fixture(scope="module")
def keys() -> list[asyncssh.SSHKey]:
    return [asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(3)]


def test_entry_names() -> None:
    assert entry_name("gpu01", 22) == "gpu01"
    assert entry_name("gpu01", 2222) == "[gpu01]:2222"
    assert entry_name("::1", 2222) == "[::1]:2222"


def test_a_changed_file_is_read_again(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    file = tmp_path / "known_hosts"
    known = KnownHosts()
    assert known.find((file,), "gpu01", 22) == KnownKeys()
    file.write_text(f"gpu01 {line_of(keys[0])}\n")
    assert known.find((file,), "gpu01", 22).own == (keys[0],)
    assert known.find((file,), "gpu02", 22).own == ()
    file.write_text(f"gpu01 {line_of(keys[1])}\n")
    os.utime(file, ns=(1, 1))
    assert known.find((file,), "gpu01", 22).own == (keys[1],)


def test_names_patterns_ports_and_marks(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(
        "\n".join(
            [
                "# a comment",
                "half a line",
                f"gpu*,!gpu09 {line_of(keys[0])}",
                f"[gpu01]:2222 {line_of(keys[1])}",
                f"@cert-authority *.example {line_of(keys[2])}",
                f"@revoked * {line_of(keys[2])}",
                "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
            ]
        )
    )
    find = KnownHosts().find
    assert find((file,), "gpu01", 22).own == (keys[0],)
    assert find((file,), "gpu09", 22).own == ()
    there = find((file,), "gpu01", 2222)
    assert (there.own, there.portless, there.trusted) == ((keys[1],), (keys[0],), (keys[1],))
    assert find((file,), "gpu01", 23).trusted == (keys[0],)
    assert find((file,), "a.example", 22).authorities == (keys[2],)
    assert keys[2] in find((file,), "gpu01", 22).revoked


def test_an_address_is_not_looked_up_behind_a_name(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"127.0.0.1 {line_of(keys[0])}\n")
    assert KnownHosts().find((file,), "localhost", 22).trusted == ()


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        KnownHosts().find((tmp_path,), "gpu01", 22)


def test_accepting_replacing_and_leaving_others_alone(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    file = tmp_path / "state" / "accepted"
    accept_host_key(file, offered("gpu01", 22, keys[0]))
    accept_host_key(file, offered("gpu01", 2222, keys[0]))
    accept_host_key(file, offered("gpu01", 22, keys[1]), replace=True)
    accept_host_key(file, offered("gpu01", 22, keys[1]))
    assert file.read_text().splitlines() == [
        f"[gpu01]:2222 {line_of(keys[0])}",
        f"gpu01 {line_of(keys[1])}",
    ]
    assert {path.name for path in file.parent.iterdir()} == {"accepted", "accepted.lock"}


def test_many_who_accept_at_once_lose_nothing(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    file = tmp_path / "accepted"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: accept_host_key(file, offered(f"gpu{n}", 22, keys[0])), range(40)))
    assert len(file.read_text().splitlines()) == 40


def test_the_known_kind_of_key_is_asked_for_first_and_others_after() -> None:
    rsa = asyncssh.generate_private_key("ssh-rsa", key_size=2048).convert_to_public()
    wanted = host_key_algorithms(KnownKeys(own=(rsa,)))
    assert wanted[:3] == ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519"]
    assert len(wanted) == len(set(wanted))
    assert host_key_algorithms(KnownKeys())[0] == "ssh-ed25519"
    certified = host_key_algorithms(KnownKeys(authorities=(rsa,)))
    assert certified[0] == "ssh-ed25519-cert-v01@openssh.com"
