"""Logging in: from a server's greeting to a connection that is ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import asyncssh

from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.client import LoginClient
from gpuherd.sources.ssh.dial import Line, ServerBusy, busy, dial
from gpuherd.sources.ssh.gates import Gates
from gpuherd.sources.ssh.known_hosts import KnownKeys, accept_host_key
from gpuherd.sources.ssh.login import Login
from gpuherd.sources.ssh.places import Progress

__all__ = ["Connector", "Link", "connection_options", "hang_up"]

CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""Before asyncssh's other defaults: a sample costs the hub a third less than with chacha20."""
PLAIN_KEYS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
BUSY_FIRST_SECONDS, BUSY_LONGEST_SECONDS = 0.3, 3.0


def host_key_algorithms(known: KnownKeys) -> list[str]:
    """Order the kinds of host keys: those that are known first, so that a server is asked for the key it is known by.

    The others follow, unlike in asyncssh's own choice: a server that no longer has its known key shows what it has
    instead, and is refused for that with both fingerprints.
    """
    kinds = [key.algorithm.decode("ascii") for key in known.trusted]
    first = [name for kind in kinds for name in (PLAIN_KEYS[-2:] if kind == "ssh-rsa" else (kind,))]
    plain = [*first, *PLAIN_KEYS]
    certified = [f"{name}-cert-v01@openssh.com" for name in plain] if known.authorities else []
    return list(dict.fromkeys([*certified, *plain]))


def connection_options(login: Login) -> dict[str, Any]:
    """What asyncssh is told about every connection to a machine: no prompts, no forwarding, no surprises."""
    options: dict[str, Any] = {
        "host": login.alias,
        "port": login.port,
        "username": login.user,
        "config": [str(file) for file in login.config_files],
        "canonicalize_hostname": False,
        "compression_algs": None,
        "x509_trusted_certs": None,
        "connect_timeout": None,
        "agent_forwarding": False,
        "gss_host": None,
    }
    if login.config.get("Ciphers") is None:
        options["encryption_algs"] = CIPHERS
    if login.config.get("HostKeyAlgorithms") is None:
        options["server_host_key_algs"] = host_key_algorithms(login.known)
    return options


async def hang_up(connection: asyncssh.SSHClientConnection) -> None:
    """Close at once, with a word of goodbye if the link can carry one; nothing is waited for but the closing here."""
    connection.close()
    await connection.wait_closed()


class Link(NamedTuple):
    """A login that works."""

    connection: asyncssh.SSHClientConnection
    transport: asyncio.Transport | None = None
    """What carries it, if that is a socket of its own."""


class Connector:
    """Logs in at machines, one after the other along a chain of jump hosts."""

    def __init__(
        self,
        settings: SshSettings,
        gates: Gates,
        threads: Executor,
        *,
        accepted_keys_file: Path,
        random: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._gates = gates
        self._threads = threads
        self._accepted_keys_file = accepted_keys_file
        self._random = random

    async def log_in(
        self,
        login: Login,
        tunnel: asyncssh.SSHClientConnection | None,
        progress: Progress,
        deadline: asyncio.Timeout,
    ) -> Link:
        """Log in at one machine, directly or through the connection to a jump host; the caller closes it.

        A server that has too many logins under way is tried again as long as the deadline allows.
        """
        delay = BUSY_FIRST_SECONDS
        while True:
            try:
                return await self._once(login, tunnel, progress, deadline)
            except ServerBusy:
                pause = delay * (0.5 + self._random())
                due = deadline.when()
                if due is not None and asyncio.get_running_loop().time() + pause > due:
                    raise
            await asyncio.sleep(pause)
            delay = min(delay * 2, BUSY_LONGEST_SECONDS)

    async def _once(
        self,
        login: Login,
        tunnel: asyncssh.SSHClientConnection | None,
        progress: Progress,
        deadline: asyncio.Timeout,
    ) -> Link:
        if tunnel is not None or login.is_by_command:
            async with self._gates.logging_in(deadline):
                return Link(await self._shake_hands(login, tunnel, progress))
        async with self._gates.dialling(login.address, deadline):
            line = await dial(login, progress, self._threads)
            try:
                async with self._gates.logging_in(deadline):
                    return Link(await self._shake_hands(login, line, progress), line.transport)
            finally:
                line.close()

    async def _shake_hands(
        self, login: Login, tunnel: asyncssh.SSHClientConnection | Line | None, progress: Progress
    ) -> asyncssh.SSHClientConnection:
        """Shake hands and log in. ``ContactFailed`` says what was refused, by whom."""
        client = LoginClient(login, progress, is_accepting_new=self._settings.host_keys == "accept_new")
        known = login.known
        progress.phase = "exchanging keys"
        try:
            connection = await asyncssh.connect(
                **connection_options(login),
                tunnel=tunnel,
                client_factory=lambda: client,
                known_hosts=lambda *_: (known.trusted, known.authorities, known.revoked),
                client_keys=None,
                agent_path=None,
                preferred_auth="publickey",
                login_timeout=0,
                keepalive_interval=0,
            )
        except asyncssh.PermissionDenied as error:
            await self._remember(client, progress)
            raise client.login_failure() from error
        except Exception as error:  # asyncssh hands on whatever a server makes it stumble over
            raise self._failure(error, client, login, progress) from error
        finally:
            client.close()
        try:
            await self._remember(client, progress)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _remember(self, client: LoginClient, progress: Progress) -> None:
        """Keep a first key; only now, when the server has proved that it owns it."""
        offered = client.new_key
        if offered is None:
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, accept_host_key, self._accepted_keys_file, offered)
        except OSError as error:
            raise progress.failure(
                "host_key_unknown",
                f"its host key cannot be saved in {self._accepted_keys_file} ({error.strerror}); a key "
                "that is not saved is not trusted",
                needs_person=True,
            ) from error

    def _failure(
        self, error: Exception, client: LoginClient, login: Login, progress: Progress
    ) -> ContactFailed:
        reason = clean(str(error), 200)
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            return client.host_key_failure(reason)
        if isinstance(error, asyncssh.ChannelOpenError):
            return progress.failure(
                "unreachable", f"the jump host cannot connect to {login.host}:{login.port} ({reason})"
            )
        if isinstance(error, asyncssh.KeyExchangeFailed):
            return progress.failure(
                "unreachable",
                f"hub and server have no encryption algorithm in common ({reason}); set KexAlgorithms, "
                "Ciphers or HostKeyAlgorithms for it in the SSH configuration",
                needs_person=True,
            )
        if isinstance(error, asyncssh.ConnectionLost | ConnectionError):
            if not client.has_greeted:
                return busy(progress.said, login, progress)
            return progress.failure("link_lost", f"the server closed the connection while {progress.phase}")
        if isinstance(error, asyncssh.DisconnectError) and progress.phase == "logging in":
            return client.login_failure(reason)
        if isinstance(error, OSError) and login.is_by_command:
            return progress.failure("ssh_config", f"ProxyCommand cannot be run ({reason})", needs_person=True)
        what = reason or type(error).__name__
        return progress.failure("unreachable", f"SSH failed while {progress.phase} ({what})")
