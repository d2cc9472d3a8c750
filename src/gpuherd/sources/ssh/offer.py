"""Asking a server for its host key, so that a person may compare and accept it."""

from __future__ import annotations

import asyncio
import os
import random as random_module
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncssh
from msgspec import Struct

from gpuherd.model.targets import Target
from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.client import offered_key
from gpuherd.sources.ssh.connect import Connector, connection_options
from gpuherd.sources.ssh.gates import Gates
from gpuherd.sources.ssh.jumps import JumpHosts
from gpuherd.sources.ssh.known_hosts import OfferedKey, accept_host_key
from gpuherd.sources.ssh.login import Login, LoginBook
from gpuherd.sources.ssh.places import Progress

__all__ = ["OfferedKey", "ShownKey", "accept_host_key", "fetch_host_key", "fetch_host_keys"]

KEEPALIVE_SECONDS = 10.0
ASKED_AT_ONCE = 32


class ShownKey(Struct, frozen=True, kw_only=True):
    """A host key that a node's server shows."""

    name: str
    """What the node is called in its list."""
    offered: OfferedKey
    is_known: bool
    is_doubtful: bool
    """It is revoked, or other keys of this server are known and this is none of them."""


async def fetch_host_keys(
    targets: Sequence[tuple[Target, SshSettings]],
    *,
    accepted_keys_file: Path,
    environment: Mapping[str, str] = os.environ,
) -> list[ShownKey | ContactFailed]:
    """Ask many servers side by side; of one that does not answer there is the reason in its place."""
    turns = asyncio.Semaphore(ASKED_AT_ONCE)

    async def ask(target: Target, settings: SshSettings) -> ShownKey | ContactFailed:
        async with turns:
            try:
                return await fetch_host_key(
                    target, settings, accepted_keys_file=accepted_keys_file, environment=environment
                )
            except ContactFailed as failure:
                return failure

    return await asyncio.gather(*(ask(target, settings) for target, settings in targets))


async def fetch_host_key(
    target: Target,
    settings: SshSettings,
    *,
    accepted_keys_file: Path,
    environment: Mapping[str, str] = os.environ,
) -> ShownKey:
    """Give the key that a node's server shows; nothing is believed or kept.

    Jump hosts before it are logged in to and must be known. ``ContactFailed`` as for following the node.
    """
    progress = Progress(clean(target.name))
    book = LoginBook(settings, accepted_keys_file=accepted_keys_file, environment=environment)
    threads = ThreadPoolExecutor(2, "ssh")
    connector = Connector(
        settings,
        Gates(1, random_module.random),
        threads,
        accepted_keys_file=accepted_keys_file,
        random=random_module.random,
    )
    jumps = JumpHosts(
        connector, deadline_seconds=settings.connect_deadline_seconds, keepalive_seconds=KEEPALIVE_SECONDS
    )
    try:
        async with asyncio.timeout(settings.connect_deadline_seconds):
            loop = asyncio.get_running_loop()
            login = await loop.run_in_executor(threads, book.login, target, progress)
            async with jumps.through(login.hops, progress) as tunnel:
                key = await _shown_key(login, tunnel, progress)
    except TimeoutError:
        raise progress.too_late(settings.connect_deadline_seconds) from None
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    known = login.known
    is_known = key in known.trusted
    return ShownKey(
        name=target.name,
        offered=offered_key(login, key),
        is_known=is_known,
        is_doubtful=key in known.revoked or (bool(known.own) and not is_known),
    )


async def _shown_key(
    login: Login, tunnel: asyncssh.SSHClientConnection | None, progress: Progress
) -> asyncssh.SSHKey:
    progress.phase = "exchanging keys"
    every = connection_options(login)
    options: dict[str, Any] = {
        name: every[name] for name in ("host", "port", "config", "server_host_key_algs") if name in every
    }
    if tunnel is not None or not login.is_by_command:
        options["tunnel"] = tunnel
    try:
        key = await asyncssh.get_server_host_key(**options)
    except (asyncssh.Error, OSError, ValueError) as error:
        raise progress.failure(
            "unreachable", f"{login.host}:{login.port} offers no host key ({clean(str(error), 160)})"
        ) from error
    if key is None:
        raise progress.failure("unreachable", f"{login.host}:{login.port} offers no host key")
    return key
