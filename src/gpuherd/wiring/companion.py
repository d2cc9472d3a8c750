"""A process beside the hub that is started again whenever it ends, and ends with the hub."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Sequence

__all__ = ["keep_running"]

log = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
STEADY_SECONDS = 30.0
"""After so long a start counts as good, and the next end is answered quickly."""
STOP_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Ask the kernel to end this process with its parent: a killed hub leaves nothing behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def keep_running(name: str, arguments: Sequence[str]) -> None:
    """Run ``python ARGUMENTS`` until cancelled; an end that nobody asked for is logged and answered with a restart."""
    loop = asyncio.get_running_loop()
    wait = FIRST_WAIT_SECONDS
    while True:
        started = loop.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            preexec_fn=_end_with_parent,
            env=os.environ,
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await _stop(process)
            raise
        wait = FIRST_WAIT_SECONDS if loop.time() - started > STEADY_SECONDS else wait
        log.error("%s exited with code %s and restarts in %g s", name, code, wait)
        await asyncio.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
