"""Asks Slurm's own commands for the cluster's nodes, never longer than a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.files import located
from gpuherd.discovery.settings import SlurmSettings
from gpuherd.discovery.slurm.answers import SlurmNode, parse_json, parse_text, to_targets
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.targets import NodeWay, Target

__all__ = ["SlurmFinder"]

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
RETRY_SECONDS = 10.0
_LAST_WORDS_SECONDS = 1.0

log = logging.getLogger(__name__)


class _Question(Struct, frozen=True):
    arguments: tuple[str, ...]
    parse: Callable[[bytes], tuple[SlurmNode, ...]]


# The first that works is used from then on: scontrol has --json from 23.02, sinfo from 21.08 if the serializer
# plug-in is installed, and the text is as good as it ever was.
_QUESTIONS = (
    _Question(("scontrol", "show", "nodes", "--json"), parse_json),
    _Question(("sinfo", "--json"), parse_json),
    _Question(("scontrol", "show", "node", "--oneliner"), parse_text),
)


class SlurmFinder:
    """The nodes of a Slurm cluster. Nodes that are down or drained stay: they are where trouble is looked for."""

    def __init__(
        self,
        settings: SlurmSettings,
        *,
        base: Path,
        way: NodeWay = "ssh",
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = "slurm" if settings.partition is None else f"slurm partition {settings.partition}"
        self._settings = settings
        self._folder = None if settings.command_folder is None else located(settings.command_folder, base)
        self._config_file = None if settings.config_file is None else located(settings.config_file, base)
        self._jitter = jitter
        self._question: _Question | None = None
        self._is_failing = False
        self._told: tuple[str, ...] = ()

    async def find(self) -> tuple[Target, ...]:
        """See ``Finder.find``."""
        self._is_failing = True
        try:
            async with asyncio.timeout(self._settings.deadline_seconds):
                nodes = await self._nodes()
        except TimeoutError:
            raise Failed(
                f"slurm: no response within {self._settings.deadline_seconds:g} s; is the controller "
                "(slurmctld) up?"
            ) from None
        targets, complaints = to_targets(
            nodes, partition=self._settings.partition, all_nodes=self._settings.all_nodes
        )
        self._is_failing = False
        if complaints != self._told:
            for complaint in complaints[:10]:
                log.warning("%s", complaint)
            self._told = complaints
        return targets

    async def wait(self) -> None:
        """Return after ``every_seconds``, sooner after a failure."""
        seconds = self._settings.every_seconds
        if self._is_failing:
            seconds = min(seconds, RETRY_SECONDS)
        await asyncio.sleep(seconds * (1 + self._jitter() / 10))

    async def close(self) -> None:
        """Nothing to let go of: a command ends with the ``find`` that started it."""

    async def _nodes(self) -> tuple[SlurmNode, ...]:
        questions = _QUESTIONS if self._question is None else (self._question,)
        for question in questions:
            self._question = None
            try:
                nodes = question.parse(await self._run(question.arguments))
            except Failed:
                if question is questions[-1]:
                    raise
                continue
            self._question = question
            return nodes
        raise AssertionError("there is always a last question")

    async def _run(self, arguments: tuple[str, ...]) -> bytes:
        """Give a command's output; it is ended with all it started when the deadline passes."""
        program, *rest = arguments
        if self._folder is not None:
            program = str(self._folder / program)
        environment = {**os.environ, "LC_ALL": "C"}
        if self._config_file is not None:
            environment["SLURM_CONF"] = str(self._config_file)
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *rest,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env=environment,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise Misconfigured(
                f"slurm: there is no {program} on this machine; install Slurm's client or set command_folder"
            ) from None
        except OSError as error:
            raise Misconfigured(
                f"slurm: {program} cannot be started ({error.strerror}); check command_folder"
            ) from error
        status: int | None = None
        try:
            output, complaint = await asyncio.gather(
                _capped(process.stdout, MAX_OUTPUT_BYTES), _capped(process.stderr, 4096)
            )
            status = await process.wait()
        finally:
            if status is None:
                await _end(process)
        if len(output) > MAX_OUTPUT_BYTES:
            raise Failed(f"slurm: {arguments[0]} printed more than {MAX_OUTPUT_BYTES} bytes")
        if status != 0:
            words = " ".join((complaint.strip() or output[:200].strip()).decode(errors="replace").split())
            raise Failed(f"slurm: {arguments[0]} exited with status {status}: {quoted(words)}")
        return output


async def _capped(stream: asyncio.StreamReader | None, most_bytes: int) -> bytes:
    """Read to the end, keeping one byte more than the cap at most."""
    kept = bytearray()
    while stream is not None and (chunk := await stream.read(65_536)):
        kept += chunk[: most_bytes + 1 - len(kept)]
    return bytes(kept)


async def _end(process: Process) -> None:
    """End a command with all that it started: it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):  # stuck in the kernel: left behind
        async with asyncio.timeout(_LAST_WORDS_SECONDS):
            await process.wait()
