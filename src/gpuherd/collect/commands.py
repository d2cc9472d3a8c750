"""Running commands: an argument list in, bytes out, never longer than a deadline and never more than a cap.

Collectors that read a tool's output are given a runner and do not know where the command runs.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import Protocol

import psutil

from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.text import clean

__all__ = ["MAX_OUTPUT_BYTES", "CommandFailed", "LocalRunner", "NotAsked", "Runner"]

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
_LAST_WORDS_SECONDS = 1.0


class CommandFailed(Failed):
    """A command ended with a status other than 0. Some tools write their complaint to standard output."""

    def __init__(self, program: str, status: int, output: bytes, complaint: bytes) -> None:
        self.status = status
        self.output = output
        self.complaint = complaint
        words = (complaint.strip() or output.strip()).decode(errors="replace")
        super().__init__(f"{program} exited with status {status}: {clean(' '.join(words.split()), 200)}")


class NotAsked(Failed):
    """Whoever runs the commands saw no need for this one now: its last answer still holds, if there was one."""


class Runner(Protocol):
    """Runs commands, here or on another machine."""

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        """Give the command's standard output.

        Raises ``Unavailable`` if there is no such command, ``CommandFailed`` if it ends with an error, ``Failed``
        if it takes longer than the deadline or prints too much; it is ended then, with all that it started.
        """


class LocalRunner:
    """Runs commands on this machine, one at a time.

    A command that hangs in the kernel cannot be ended. It is left behind, and no other is started while it is
    there: a broken driver must not fill the machine with stuck processes. Commands stay in our process group, so
    that whoever ends us ends them too.
    """

    def __init__(self) -> None:
        self._stuck: subprocess.Popen[bytes] | None = None

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        """See ``Runner.run``."""
        program = arguments[0]
        if self._stuck is not None and self._stuck.poll() is None:
            raise Failed(f"an earlier {program} (pid {self._stuck.pid}) still hangs in the driver; reboot")
        self._stuck = None
        if shutil.which(program) is None:
            raise Unavailable(f"there is no {program} on this machine")
        try:
            process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise Unavailable(f"{program} cannot be started: {error.strerror}") from error
        with selectors.DefaultSelector() as selector:
            output, complaint = self._collect(program, process, selector, deadline_seconds)
        if process.returncode:
            raise CommandFailed(program, process.returncode, output, complaint)
        return output

    def _collect(
        self,
        program: str,
        process: subprocess.Popen[bytes],
        selector: selectors.BaseSelector,
        deadline_seconds: float,
    ) -> tuple[bytes, bytes]:
        until = time.monotonic() + deadline_seconds
        texts: dict[int, bytearray] = {}
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                texts[stream.fileno()] = bytearray()
                selector.register(stream.fileno(), selectors.EVENT_READ)
        reason: str | None = None
        try:
            while selector.get_map() and reason is None:
                ready = selector.select(max(0.0, until - time.monotonic()))
                if time.monotonic() >= until:
                    reason = f"did not finish within {deadline_seconds:g} s"
                for key, _ in ready:
                    chunk = os.read(key.fd, 65536)
                    if not chunk:
                        selector.unregister(key.fd)
                    texts[key.fd] += chunk
                    if len(texts[key.fd]) > MAX_OUTPUT_BYTES:
                        reason = f"printed more than {MAX_OUTPUT_BYTES} bytes"
            if reason is None and not _ended(process, max(0.0, until - time.monotonic())):
                reason = f"did not finish within {deadline_seconds:g} s"
            if reason is not None:
                self._end(process)
                raise Failed(f"{program} {reason}")
            output, complaint = (bytes(text) for text in texts.values())
            return output, complaint
        finally:
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.Error:
            family = []
        process.kill()
        for member in family:
            try:
                member.kill()
            except psutil.Error:
                continue  # gone already
        if not _ended(process, _LAST_WORDS_SECONDS):
            self._stuck = process


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
