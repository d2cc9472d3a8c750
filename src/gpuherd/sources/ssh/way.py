"""Following nodes over SSH."""

from __future__ import annotations

import asyncio
import logging
import os
import random as random_module
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import asyncssh

from gpuherd.model.targets import NodeWay, Target
from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed, NodeIntake
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.connect import Connector, hang_up
from gpuherd.sources.ssh.gates import DIALS_PER_LOGIN, Gates
from gpuherd.sources.ssh.jumps import JumpHosts
from gpuherd.sources.ssh.login import LoginBook
from gpuherd.sources.ssh.pacing import PacedLink, Pacer
from gpuherd.sources.ssh.places import Progress
from gpuherd.sources.ssh.session import NodeSession, RoundReader
from gpuherd.wire.blocks import COMMAND, BlockReader, start_message

__all__ = ["RoundReader", "SshWay"]

KEEPALIVE_SECONDS = (5.0, 20.0)
"""Bounds of the keepalive time, which follows the interval if nobody sets it."""
KILL_SECONDS = 2.0
"""How long after its deadline the node gives a command before it is killed."""
HANGING_COMMANDS = 4
"""How many commands of one round may hang before that many are left alone: GPUs, processes, facts, disks."""
WINDOW_BYTES = 256 * 1024
"""What a node may send ahead: rounds of a few KiB never wait for it, a flood does."""


class SshWay:
    """The way to nodes that have nothing but sshd. One login and one channel per node, for as long as it lasts."""

    way: NodeWay = "ssh"

    def __init__(
        self,
        settings: SshSettings,
        *,
        make_reader: Callable[[], RoundReader],
        script: bytes,
        accepted_keys_file: Path,
        environment: Mapping[str, str] = os.environ,
        random: Callable[[], float] = random_module.random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it tells of every login and channel
        self._settings = settings
        self._make_reader = make_reader
        self._readers: dict[str, tuple[tuple[str, int | None], RoundReader]] = {}
        self._script = script
        self._monotonic = monotonic
        self._book = LoginBook(settings, accepted_keys_file=accepted_keys_file, environment=environment)
        self._threads = ThreadPoolExecutor(settings.connects_at_once * DIALS_PER_LOGIN, "ssh")
        gates = Gates(settings.connects_at_once, random)
        self._connector = Connector(
            settings, gates, self._threads, accepted_keys_file=accepted_keys_file, random=random
        )
        # A link that rests hears no answer to a keepalive: it must not be doubted before its next round is due.
        is_paced = self.keepalive_seconds >= settings.interval_seconds
        self._pacer = Pacer(settings.interval_seconds) if is_paced else None
        self._jumps = JumpHosts(
            self._connector,
            deadline_seconds=settings.connect_deadline_seconds,
            keepalive_seconds=self.keepalive_seconds,
        )

    @property
    def interval_seconds(self) -> float:
        """How often a node's report is to be expected."""
        return self._settings.interval_seconds

    @property
    def keepalive_seconds(self) -> float:
        """A third of the silence after which a link is given up."""
        asked = self._settings.keepalive_seconds
        if asked is not None:
            return asked
        least, most = KEEPALIVE_SECONDS
        return min(max(self._settings.interval_seconds, least), most)

    @property
    def patience_seconds(self) -> float:
        """How long a living link may bring no whole round: three intervals, or commands that hang and are killed."""
        settings = self._settings
        hanging = HANGING_COMMANDS * (settings.command_deadline_seconds + KILL_SECONDS)
        return max(3 * settings.interval_seconds, settings.interval_seconds + hanging)

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        """Hand over a node's reports until cancelled; ``ContactFailed`` when it cannot be reached or is lost."""
        progress = Progress(clean(target.name))
        try:
            async with AsyncExitStack() as stack:
                session = await self._start(target, intake, progress, stack)
                raise await session.ended
        except asyncio.CancelledError:
            self._forget(intake.node_id)
            raise

    def _reader_of(self, node_id: str, target: Target) -> RoundReader:
        """Give what reads a node's rounds, over all of its links: a driver that hangs when we come back must not make
        us forget the GPUs that we have seen.
        """
        place = (target.address, target.port)
        known = self._readers.get(node_id)
        if known is not None and known[0] == place:
            return known[1]
        self._forget(node_id)
        reader = self._make_reader()
        self._readers[node_id] = (place, reader)
        return reader

    def _forget(self, node_id: str) -> None:
        known = self._readers.pop(node_id, None)
        if known is not None:
            known[1].close()

    async def _start(
        self, target: Target, intake: NodeIntake, progress: Progress, stack: AsyncExitStack
    ) -> NodeSession:
        """Log in and start the script, within the deadline; what is opened is closed by the stack."""
        seconds = self._settings.connect_deadline_seconds
        try:
            async with asyncio.timeout(seconds) as deadline:
                loop = asyncio.get_running_loop()
                login = await loop.run_in_executor(self._threads, self._book.login, target, progress)
                tunnel = await stack.enter_async_context(self._jumps.through(login.hops, progress))
                link = await self._connector.log_in(login, tunnel, progress, deadline)
                stack.push_async_callback(hang_up, link.connection)
                reader = self._reader_of(intake.node_id, target)
                session = await self._open_session(link.connection, reader, intake, progress, stack)
                if link.transport is not None and self._pacer is not None:
                    session.after_round = partial(self._pacer.rest, PacedLink(link.transport))
                progress.phase = "waiting for the first line of the script"
                await session.settled
                return session
        except TimeoutError:
            raise progress.too_late(seconds) from None

    async def _open_session(
        self,
        connection: asyncssh.SSHClientConnection,
        reader: RoundReader,
        intake: NodeIntake,
        progress: Progress,
        stack: AsyncExitStack,
    ) -> NodeSession:
        settings = self._settings
        token = secrets.token_hex(16)
        session = NodeSession(
            progress.node,
            BlockReader(token),
            reader,
            intake,
            interval_seconds=settings.interval_seconds,
            keepalive_seconds=self.keepalive_seconds,
            patience_seconds=self.patience_seconds,
            monotonic=self._monotonic,
        )
        stack.callback(session.close)
        progress.phase = "opening a session"
        try:
            channel, _ = await connection.create_session(
                lambda: session,
                COMMAND,
                encoding=None,
                request_pty=False,
                env=None,
                send_env=None,
                x11_forwarding=False,
                window=WINDOW_BYTES,
            )
        except asyncssh.ChannelOpenError as error:
            raise self._no_session(error, connection, progress) from error
        except (asyncssh.Error, OSError) as error:
            raise progress.failure(
                "link_lost", f"the server closed the connection while {progress.phase}"
            ) from error
        start = start_message(
            token,
            interval_seconds=settings.interval_seconds,
            deadline_seconds=settings.command_deadline_seconds,
            command_lines=settings.command_lines,
            script=self._script,
        )
        with suppress(BrokenPipeError):  # A command that has ended already: the session knows how, and tells.
            channel.write(start)
        return session

    def _no_session(
        self,
        error: asyncssh.ChannelOpenError,
        connection: asyncssh.SSHClientConnection,
        progress: Progress,
    ) -> ContactFailed:
        if connection.is_closed():
            return progress.failure("link_lost", f"the server closed the connection while {progress.phase}")
        return progress.failure(
            "session_refused",
            f"the login works but the server opens no session ({clean(error.reason, 120)}); its MaxSessions is used up "
            "or 0, or the key is restricted to forwarding",
            needs_person=True,
        )

    async def close(self) -> None:
        """Let go of what nodes share; after every ``follow`` was cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for node_id in list(self._readers):
            self._forget(node_id)
