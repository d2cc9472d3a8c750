"""A process that counts use as fast as it can, to be killed. Its journal says how far it got."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from gpuherd.history.settings import HistorySettings
from gpuherd.model.errors import Failed
from support.used_herd import START, Frame, made_up_herd
from support.used_hub import UsedHub

__all__ = ["UsedWriter", "frames_of", "opened"]


def frames_of(seed: int) -> list[Frame]:
    """Give what is counted."""
    return made_up_herd(seed, samples=500)


def opened(folder: Path) -> UsedHub:
    """Open what the process keeps. Its days go by fast: the journal's files end often, and what they held ages."""
    hub = UsedHub(folder, HistorySettings(min_free_bytes=0), keeps_names=True)
    hub.now = START + 20 * 86_400.0 + 1200.0 * hub.taken
    return hub


class UsedWriter:
    """The process: forked from a server that has loaded everything already."""

    def __init__(self, folder: Path, seed: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["support.used_writer", "duckdb"])
        self._numbers, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_count, args=(folder, seed, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, flushes: int, seconds: float) -> tuple[int, int]:
        """Let it take so many flushes and a moment more, then kill it.

        Gives how many frames were safe when it started and when it was killed, or had taken all.
        """
        start = safe = self._numbers.recv()
        try:
            for _ in range(flushes):
                safe = self._numbers.recv()
            time.sleep(seconds)  # not a wait for anything: the moment is what is tried
            self._process.kill()
            while True:
                safe = self._numbers.recv()
        except EOFError:
            return start, safe
        finally:
            self._process.kill()
            self._process.join()
            self._numbers.close()
            self._process.close()


def _count(folder: Path, seed: int, safe: Connection) -> None:
    """Take the rest of the frames in random flushes, while another thread tends."""
    frames = frames_of(seed)
    hub = opened(folder)
    place = hub.taken
    safe.send(place)
    draw = Random(place)  # noqa: S311

    def tend() -> None:
        try:
            while True:
                hub.tend()
        except Failed:
            traceback.print_exc()
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=tend, daemon=True).start()
    while place < len(frames):
        flush = frames[place : place + draw.randint(1, 6)]
        hub.take(flush, place + len(flush))
        place += len(flush)
        hub.now += 1200.0 * len(flush)
        safe.send(place)
    safe.close()
    signal.pause()
