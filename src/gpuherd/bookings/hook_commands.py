"""Running a command for an event: no shell, little environment, an end in any case."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path

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
                f"command: {self._command[0]} is no program that the hub's user may run; check it"
            )

    async def deliver(self, event_id: str, event: HookEvent, body: bytes) -> None:
        """Run it with the event on its standard input; ``Failed`` if it does not end well, or not in time."""
        environment = {
            "PATH": _PATH,
            "LANG": "C.UTF-8",
            "GPUHERD_EVENT": event,
            "GPUHERD_EVENT_ID": event_id,
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=environment,
                cwd="/",
                start_new_session=True,  # so that all it starts can be ended with it
            )
        except OSError as error:
            raise Failed(f"{self._command[0]} cannot be started ({error.strerror})") from error
        output = bytearray()
        talking = asyncio.gather(_feed(process, body), _listen(process, output), return_exceptions=True)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                status = await process.wait()
            with contextlib.suppress(TimeoutError):
                # What it left running may hold the pipe open; that is not waited for.
                await asyncio.wait_for(asyncio.shield(talking), 0.5)
        except TimeoutError:
            raise Failed(
                f"{self._command[0]} did not end within {self._deadline_seconds:g} s and was killed"
            ) from None
        finally:
            talking.cancel()
            await _end(process)
            self._log(event_id, bytes(output))
        if status != 0:
            ended = f"status {status}" if status > 0 else f"signal {-status}"
            raise Failed(f"{self._command[0]} ended with {ended}")

    def _log(self, event_id: str, output: bytes) -> None:
        for line in output.decode("utf-8", errors="replace").splitlines()[:40]:
            if line.strip():
                log.info("hook %s for %s: %s", self.name, event_id, clean(line, 400))


async def _feed(process: asyncio.subprocess.Process, body: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it is told
        process.stdin.write(body + b"\n")
        await process.stdin.drain()
    process.stdin.close()


async def _listen(process: asyncio.subprocess.Process, output: bytearray) -> None:
    if process.stdout is None:
        return
    while chunk := await process.stdout.read(65_536):
        output += chunk[: OUTPUT_BYTES - len(output)]


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
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()  # asyncio closes the pipes only at their ends, and someone else may hold those


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
