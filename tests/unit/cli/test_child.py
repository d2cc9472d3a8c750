"""Signals to a process that runs a command go to the command, also those that come while nobody looks."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from support.running import PATIENCE_SECONDS

LISTEN = """
import signal, sys
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, _: sys.exit(40 + number))
print("ready", flush=True)
signal.alarm(20)
signal.pause()
"""
# A thread that lives all the while, as numpy's do; the signal comes before the first look.
PROGRAM = """
import os, signal, sys, threading
from gpuherd.cli.child import Child
from gpuherd.cli.interrupts import Interrupts
from gpuherd.wiring.here import _threads_without_signals

with _threads_without_signals():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
mine, commands = os.pipe()
os.dup2(commands, 1)
with Interrupts() as interrupts:
    child = Child([sys.executable, "-c", sys.argv[1]], os.environ)
    interrupts.finish()
    os.read(mine, 16)
    os.kill(os.getpid(), int(sys.argv[2]))
    sys.exit(child.wait())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_between_two_looks_is_not_lost(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, LISTEN, str(int(number))],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (40 + number, "")
