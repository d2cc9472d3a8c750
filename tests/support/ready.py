"""Commands of gpuherd that start fast: forked from a process that has imported what a hub needs.

Two thirds of what a hub costs to start are imports, and tests start hundreds. What runs is the command itself, with
arguments of its own in a process of its own; only how Python got there differs from a start by hand.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.context import ForkServerContext
from pathlib import Path

__all__ = ["ReadyProcess", "forking_context", "run_command"]

PRELOADED = [
    "gpuherd.cli.hub",
    "gpuherd.cli.running",
    "gpuherd.wiring.hub_pulse",
    "gpuherd.wiring.outfit",
    "gpuherd.wiring.systemd",
    "gpuherd.wiring.up",
    "duckdb",
    "litestar.plugins.pydantic",
]


def forking_context() -> ForkServerContext:
    """Give the one server per test process that all forks come from; its first user decides what it has imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def run_command(arguments: list[str], log: Path) -> None:
    """Run ``gpuherd ARGUMENTS`` in this process, with what it prints added to a file."""
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.argv = ["gpuherd", *arguments]
    from gpuherd.cli import main

    main()


class ReadyProcess:
    """``gpuherd ARGUMENTS``, started at once; what it prints is added to a file."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._process = forking_context().Process(target=run_command, args=(arguments, log))
        self._process.start()

    def poll(self) -> int | None:
        """Give the exit code, or None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            assert self._process.pid is not None
            os.kill(self._process.pid, number)

    def wait(self, timeout: float) -> int:
        """Wait for its end and give the exit code."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("gpuherd", timeout)
        return code
