"""Host keys as OpenSSH keeps them: known_hosts files, and the hub's own file in the same format."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import asyncssh
from msgspec import Struct

__all__ = ["KnownHosts", "KnownKeys", "OfferedKey", "accept_host_key", "entry_name"]

MAX_FILE_BYTES = 32 * 2**20


class OfferedKey(Struct, frozen=True, kw_only=True):
    """A server's public key, and the name under which it would be remembered."""

    host: str
    port: int
    key: str
    """Type and base64, as in a known_hosts line."""
    fingerprint: str
    """``SHA256:…``, as ssh-keygen -l prints it."""


class KnownKeys(Struct, frozen=True):
    """What the files say of one server."""

    own: tuple[asyncssh.SSHKey, ...] = ()
    """Keys listed for exactly this name and port."""
    portless: tuple[asyncssh.SSHKey, ...] = ()
    """Keys listed for the name alone; OpenSSH takes them too when the port is an unusual one and has no entry."""
    authorities: tuple[asyncssh.SSHKey, ...] = ()
    revoked: tuple[asyncssh.SSHKey, ...] = ()

    @property
    def trusted(self) -> tuple[asyncssh.SSHKey, ...]:
        """Every plain key that this server may show."""
        return self.own or self.portless


def entry_name(host: str, port: int) -> str:
    """Write a server the way known_hosts does: bare on port 22, else ``[host]:port``."""
    return host if port == 22 else f"[{host}]:{port}"


class _Entries:
    """The entries of one state of some files."""

    def __init__(self, text: Iterable[str]) -> None:
        self._entries = asyncssh.import_known_hosts("")
        for line in text:
            try:
                self._entries.load(line)
            except ValueError:
                continue  # OpenSSH skips lines it cannot read as well; one of them must not hide the others

    def find(self, host: str, port: int) -> KnownKeys:
        # The address behind the name is not looked up: a key known for an address must not vouch for every name that
        # a name server points there.
        own, authorities, revoked = self._entries.match(entry_name(host, port), "", None)[:3]
        portless: Sequence[asyncssh.SSHKey] = ()
        if port != 22:
            portless, more_authorities, more_revoked = self._entries.match(host, "", None)[:3]
            authorities = authorities or more_authorities
            revoked = [*revoked, *more_revoked]
        return KnownKeys(tuple(own), tuple(portless), tuple(authorities), tuple(revoked))


class KnownHosts:
    """Reads known_hosts files, again only when they have changed. May be used from several threads."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path, ...], tuple[object, _Entries]] = {}

    def find(self, files: tuple[Path, ...], host: str, port: int) -> KnownKeys:
        """Look a server up; a file that does not exist says nothing. ``OSError`` if one cannot be read."""
        state = tuple(_state(file) for file in files)
        kept = self._read.get(files)
        if kept is None or kept[0] != state:
            kept = (state, _Entries(line for file in files for line in _lines(file)))
            self._read[files] = kept
        return kept[1].find(host, port)


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []


def accept_host_key(file: Path, offered: OfferedKey, *, replace: bool = False) -> None:
    """Remember a server's key in the hub's own file, whole or not at all, also when others write to it.

    ``replace`` forgets the keys that this file had for the server.
    """
    name = entry_name(offered.host, offered.port)
    line = f"{name} {offered.key}"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(file.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = _lines(file)
        if replace:
            lines = [old for old in lines if old.split(maxsplit=1)[:1] != [name]]
        if line not in lines:
            lines.append(line)
        fresh = file.with_name(file.name + ".new")
        with fresh.open("w", encoding="utf-8") as stream:
            stream.write("\n".join(lines) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(file)
