"""What the hub sees of its own sockets."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpuherd.api.sockets import (
    UNREAD_BYTES,
    Connection,
    Connections,
    bytes_read,
    limit_unread,
    open_file_count,
    peer_of,
    reset,
)


def test_connections_that_came_in_are_found(
    pair: tuple[socket.socket, socket.socket], connections: Connections
) -> None:
    client, served = pair
    [found] = asyncio.run(connections.find())
    assert found.file == served.fileno()
    assert found.peer == client.getsockname()[:2], "IPv4 looks the same however the hub listens"
    assert asyncio.run(connections.find())[0] is found, "it is recognised"
    assert served.fileno() >= 0, "it was only borrowed"
    served.close()
    assert asyncio.run(connections.find()) == []


def test_a_file_that_is_used_again_is_another_connection(
    pair: tuple[socket.socket, socket.socket], connections: Connections
) -> None:
    _, served = pair
    [before] = asyncio.run(connections.find())
    with socket.create_connection(("127.0.0.1", served.getsockname()[1])) as other:
        os.dup2(other.fileno(), served.fileno())  # as if the web server had closed it and opened another
        assert asyncio.run(connections.find()) == []
        assert bytes_read(before) is None
        reset(before)
        other.sendall(b"x")  # it was left alone


def test_only_what_the_program_has_read_counts(
    pair: tuple[socket.socket, socket.socket], connections: Connections
) -> None:
    client, served = pair
    [connection] = asyncio.run(connections.find())
    client.sendall(bytes(5000))
    assert served.recv(1000, socket.MSG_WAITALL)
    assert bytes_read(connection) == 1000
    with Path("/dev/null").open("rb") as no_socket:
        assert bytes_read(connection._replace(file=no_socket.fileno())) is None


def test_a_connection_that_is_reset_ends_on_both_sides(
    pair: tuple[socket.socket, socket.socket], connections: Connections
) -> None:
    client, served = pair
    [connection] = asyncio.run(connections.find())
    reset(connection)
    assert served.recv(1) == b"", "the web server sees the end"
    assert client.recv(1) == b""
    reset(
        Connection(file=served.fileno(), inode=0, peer=connection.peer, since=0.0)
    )  # another's: nothing is done


def test_open_files_are_counted() -> None:
    before = open_file_count()
    with Path("/dev/null").open("rb"):
        assert open_file_count() == before + 1


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        (("192.0.2.1", "7"), ("192.0.2.1", 7)),
        (("::ffff:192.0.2.1", 7), ("192.0.2.1", 7)),
        (("2001:db8::1", "7"), ("2001:db8::1", 7)),
        (("fe80::1%eth0", 7), ("fe80::1", 7)),
        (None, None),
    ],
)
def test_a_peer_has_one_form(client: tuple[str, str | int] | None, peer: tuple[str, int] | None) -> None:
    assert peer_of({"client": client}) == peer


def _is_locked(file: Path) -> bool:
    """Ask from another process: a process never waits for its own locks."""
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    ended = subprocess.run([sys.executable, "-c", code, file], capture_output=True, check=False)
    return ended.returncode != 0 and b"BlockingIOError" in ended.stderr


def test_looking_at_files_releases_no_lock_of_a_database(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket], connections: Connections
) -> None:
    """The kernel releases all locks of a process on a file when it closes any descriptor of it, even a copy.

    Another program would then take the database for unused, and empty or delete its log underneath the hub.
    """
    client, served = pair
    file = tmp_path / "records.sqlite"
    file.touch()
    with file.open("rb+") as database:
        fcntl.lockf(database, fcntl.LOCK_EX)
        assert _is_locked(file)
        [connection] = asyncio.run(connections.find())
        limit_unread(served.getsockname()[1])
        open_file_count()
        assert _is_locked(file)
        reset(connection._replace(file=database.fileno()))  # its number was used again meanwhile
        reset(connection._replace(file=database.fileno(), inode=os.fstat(database.fileno()).st_ino))
        assert _is_locked(file)
    assert not _is_locked(file)
    assert client.fileno() >= 0


def test_what_the_kernel_keeps_for_a_client_that_does_not_read_is_limited() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        limit_unread(listening.getsockname()[1])
        with socket.create_connection(listening.getsockname()) as client:
            served, _ = listening.accept()
            with served:
                assert served.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * UNREAD_BYTES
            assert client.fileno() >= 0
