"""A real sshd on a loopback port, with keys of its own; several may run at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.running import PATIENCE_SECONDS, free_port

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def need_sshd() -> None:
    """Skip where no sshd can be run, saying why."""
    if SSHD is None:
        pytest.skip("no sshd: install openssh-server (scripts/provision)")
    if os.geteuid() != 0:
        pytest.skip("not root: sshd cannot be started for logins")


def make_key(file: Path, kind: str = "ed25519", *, passphrase: str = "", comment: str = "test") -> Path:
    """Make a key pair."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", comment, "-f", str(file)], check=True
    )
    return file


def public_line(key: Path) -> str:
    """Give the line of a key's public half."""
    return key.with_name(key.name + ".pub").read_text().strip()


def fingerprint(key: Path) -> str:
    """Give a key's SHA256 fingerprint as ssh-keygen prints it."""
    printed = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{key}.pub"], check=True, capture_output=True, text=True
    )
    return printed.stdout.split()[1]


class Sshd:
    """A server that can be stopped and started again on the same port."""

    def __init__(self, folder: Path, options: dict[str, str], *, address: str = "127.0.0.1") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.address = address
        self.port = free_port()
        self.host_key = folder / "host_key"
        if not self.host_key.exists():
            make_key(self.host_key, comment="host")
        # sshd reads it as the user who logs in, who may not enter pytest's folders.
        self._open_folder = Path(tempfile.mkdtemp(prefix="gpuherd-sshd-"))
        self._open_folder.chmod(0o755)
        self.authorized_keys = self._open_folder / "authorized_keys"
        self.authorized_keys.touch(0o644)
        self.log = folder / "sshd.log"
        self._options = {
            "Port": str(self.port),
            "ListenAddress": address,
            "HostKey": str(self.host_key),
            "AuthorizedKeysFile": str(self.authorized_keys),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PrintMotd": "no",
            "LogLevel": "VERBOSE",
            "MaxStartups": "200",
            "SetEnv": "HOME=/nonexistent",  # what this machine's root has in its .bashrc is no part of the test
            **options,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def authorize(self, key: Path, options: str = "") -> None:
        """Let a key in, with options such as ``restrict,command="…"``."""
        with self.authorized_keys.open("a") as file:
            file.write(f"{options} {public_line(key)}\n".lstrip())

    @property
    def known_hosts_line(self) -> str:
        """The line by which a client knows this server."""
        kind, text = public_line(self.host_key).split()[:2]
        return f"[{self.address}]:{self.port} {kind} {text}"

    def start(self) -> None:
        """Start, and wait until it listens."""
        assert SSHD is not None
        Path("/run/sshd").mkdir(exist_ok=True)  # Debian's sshd will not start without it
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in self._options.items()))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_listening():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def _is_listening(self) -> bool:
        # Read from the log: a connection to find out would count as a login to come.
        return f"port {self.port}." in self.log.read_text()

    def session_pids(self) -> list[int]:
        """Give the processes that serve connections: all descendants that are sshd."""
        assert self.process is not None
        return [pid for pid in descendants(self.process.pid) if _name(pid) == "sshd"]

    def stop(self) -> None:
        """End the server and everything it started."""
        if self.process is None:
            return
        family = descendants(self.process.pid)
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        self.process = None
        for pid in family:
            _kill(pid)
        self.log.write_text("")

    def remove(self) -> None:
        """Stop, and take away what lies outside of the test's folder."""
        self.stop()
        shutil.rmtree(self._open_folder)

    def logins(self) -> int:
        """Count the logins so far."""
        return self.log.read_text().count("Accepted publickey")


def descendants(pid: int) -> list[int]:
    """Give the pids of a process's children, their children, and so on."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [*children, *(below for child in children for below in descendants(child))]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return


@contextmanager
def running_sshd(folder: Path, **options: str) -> Iterator[Sshd]:
    """Run a server for the length of a test; ``options`` are lines of sshd_config."""
    server = Sshd(folder, options)
    server.start()
    try:
        yield server
    finally:
        server.remove()
