"""Running a command for an event: no shell, little environment, an end in any case."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from gpuherd.bookings.hook_settings import HookEvent, HookSettings
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.text import clean

__all__ = ["CommandHook"]

log = logging.getLogger(__name__)

OUTPUT_BYTES = 4_096
"""How much of what it prints goes into the log; the rest is read and thrown away."""
GRACE_SECONDS = 2.0
"""Between the polite signal and the last one."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class CommandHook:
    """Runs a program for each event, one at a time."""

    def __init__(self, settings: HookSettings) -> None:
        """Check that the program is there; ``Misconfigured`` if it is not."""
        self._command = settings.command
        self._deadline_seconds = settings.deadline_seconds
        self.name = f"run {Path(self._command[0]).name}"
        if not os.access(self._command[0], os.X_OK) or Path(self._command[0]).is_dir():
            raise Misconfigured(
                f"command: {self._command[0]} is not a program that the hub's user can run; check the path"
            )

    async def deliver(self, event_id: str, event: HookEvent, body: bytes) -> None:
        """Run it with the event on its standard input; ``Failed`` if it does not end well, or not in time."""
        environment = {
            "PATH": _PATH,
            "LANG": "C.UTF-8",
            "GPUHERD_EVENT": event,
            "GPUHERD_EVENT_ID": event_id,
        }
        with _event_file(body) as event_file, _Output() as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=event_file,
                    stdout=output.end,
                    stderr=output.end,
                    env=environment,
                    cwd="/",
                    start_new_session=True,  # so that all it starts can be ended with it
                )
            except OSError as error:
                raise Failed(f"{self._command[0]} cannot be started ({error.strerror})") from error
            try:
                async with asyncio.timeout(self._deadline_seconds):
                    status = await process.wait()
            except TimeoutError:
                raise Failed(
                    f"{self._command[0]} did not finish within {self._deadline_seconds:g} s and was killed"
                ) from None
            finally:
                await _end(process)
                output.read()
                self._log(event_id, bytes(output.content))
        if status != 0:
            ended = f"status {status}" if status > 0 else f"signal {-status}"
            raise Failed(f"{self._command[0]} ended with {ended}")

    def _log(self, event_id: str, output: bytes) -> None:
        for line in output.decode("utf-8", errors="replace").splitlines()[:40]:
            if line.strip():
                log.info("hook %s for %s: %s", self.name, event_id, clean(line, 400))


# Neither way is a pipe of asyncio's: it would wait for everyone who holds one, also for what the command leaves behind.


@contextlib.contextmanager
def _event_file(body: bytes) -> Iterator[int]:
    descriptor = os.memfd_create("event")
    try:
        os.write(descriptor, body + b"\n")
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


class _Output:
    """What a command prints: all of it is read, so that it is never held up, and the beginning kept."""

    def __init__(self) -> None:
        self.content = bytearray()

    def __enter__(self) -> Self:
        self._reader, self.end = os.pipe()
        os.set_blocking(self._reader, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader, self.read)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._reader)
        os.close(self._reader)
        os.close(self.end)

    def read(self) -> None:
        """Take what is there; whoever prints faster than this is not waited for."""
        for _ in range(16):
            try:
                chunk = os.read(self._reader, 65_536)
            except BlockingIOError:
                return
            if not chunk:
                return
            self.content += chunk[: OUTPUT_BYTES - len(self.content)]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and all it has started, if it still runs."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            _signal(process, signal.SIGKILL)  # also for those that outlive their parent
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
