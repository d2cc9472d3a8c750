"""What a hub feels of its history: how late its event loop is, and what memory is taken, while files are made.

A day of 800 GPUs is taken in quickly, up to its last minute. Then samples come as they do in a hub, once a second and
written by a thread, beside an event loop that wants to wake every 5 ms, for a while with nothing else to do, and then
while the last hour is sealed and rolled up and the whole day merged. In a process of its own, so that its memory is
that of the history alone. ``GPUHERD_BENCH_SCALE=0.05`` takes a twentieth of the devices.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from bench.herd_data import START, HerdData
from bench.history import DAY, HOUR, Ours
from bench.measure import Figure
from gpuherd.history.batch import Samples

__all__ = ["measure_tending"]

QUIET_SECONDS = 10.0
WAKE_SECONDS = 0.005
MIB = float(2**20)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Felt(msgspec.Struct, frozen=True, kw_only=True):
    """How late the loop woke, in milliseconds, and what memory was taken meanwhile."""

    seconds: float
    late_p50: float
    late_p99: float
    late_max: float
    written_max: float
    """The longest that writing a batch took, milliseconds."""
    peak_bytes: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to."""

    devices: int
    quiet: Felt
    tending: Felt
    before_bytes: int
    after_bytes: int
    cpu_seconds: float
    """Of tending."""


def _resident_bytes() -> int:
    # Not from smaps, which takes the kernel milliseconds each time.
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


class _Hub:
    """As much of a hub as history needs."""

    def __init__(self, folder: Path, herd: HerdData) -> None:
        self.herd = herd
        self.ours = Ours(folder)
        self._moments = herd.day(START + DAY, HOUR)
        self._next: list[Samples] = []

    def fill(self) -> None:
        """Take a day in, up to its last minute."""
        last = int(DAY / self.herd.interval_seconds) - int(60 / self.herd.interval_seconds)
        for number, samples in enumerate(self.herd.day()):
            if number == last:
                return
            self.ours.append(samples)

    def batches(self) -> Iterator[Samples]:
        """Give what comes in a second, for ever: of each node a sample every so many seconds."""
        parts = max(1, int(self.herd.interval_seconds))
        for samples in self._moments:
            for part in range(parts):
                chosen = np.flatnonzero(samples.subject % parts == part)
                yield replace(
                    samples,
                    subject=samples.subject[chosen],
                    time=samples.time[chosen],
                    values=samples.values[chosen],
                    state=samples.state[chosen],
                )

    async def live(self, batches: Iterator[Samples], seconds: float, tend: bool) -> Felt:
        """Go on for so long, or until all that is due is done."""
        ours, late, written = self.ours, [], []
        is_over = asyncio.Event()

        async def write() -> None:
            while not is_over.is_set():
                began = time.perf_counter()
                await asyncio.to_thread(ours.write, next(batches))
                written.append(time.perf_counter() - began)
                await asyncio.sleep(max(0.0, 1.0 - (time.perf_counter() - began)))

        async def wake() -> None:
            while not is_over.is_set():
                due = time.perf_counter() + WAKE_SECONDS
                await asyncio.sleep(WAKE_SECONDS)
                late.append(time.perf_counter() - due)

        peak = [_resident_bytes()]
        is_watched = threading.Event()

        def watch() -> None:
            while not is_watched.wait(0.05):
                peak.append(_resident_bytes())

        watching = threading.Thread(target=watch)
        watching.start()
        began = time.perf_counter()
        tasks = [asyncio.create_task(write()), asyncio.create_task(wake())]
        if tend:
            await asyncio.to_thread(ours.tend_all)
        else:
            await asyncio.sleep(seconds)
        took = time.perf_counter() - began
        is_over.set()
        await asyncio.gather(*tasks)
        is_watched.set()
        watching.join()
        milliseconds = np.maximum(0.0, np.array(late)) * 1000
        return Felt(
            seconds=took,
            late_p50=float(np.median(milliseconds)),
            late_p99=float(np.percentile(milliseconds, 99)),
            late_max=float(milliseconds.max()),
            written_max=max(written) * 1000,
            peak_bytes=max(peak),
        )


def _run(scale: float) -> Outcome:
    herd = HerdData(devices=max(8, round(800 * scale)))
    with tempfile.TemporaryDirectory(prefix="gpuherd-tending-") as folder:
        hub = _Hub(Path(folder), herd)
        hub.fill()
        batches = hub.batches()
        first = next(batches)
        before = _resident_bytes()
        hub.ours.write(first)
        quiet = asyncio.run(hub.live(batches, QUIET_SECONDS, tend=False))
        # From now on the last hour and the day are over.
        hub.ours.now = START + DAY + 1.1 * HOUR
        began = time.process_time()
        tending = asyncio.run(hub.live(batches, 0.0, tend=True))
        cpu_seconds = time.process_time() - began
        after = _resident_bytes()
        hub.ours.close()
    return Outcome(
        devices=herd.devices,
        quiet=quiet,
        tending=tending,
        before_bytes=before,
        after_bytes=after,
        cpu_seconds=cpu_seconds,
    )


def measure_tending() -> list[Figure]:
    """Compare the loop and the memory beside tending with those without."""
    done = subprocess.run([sys.executable, "-m", "bench.tending"], check=True, stdout=subprocess.PIPE)
    run = msgspec.json.decode(done.stdout.splitlines()[-1], type=Outcome)
    quiet, tending = run.quiet, run.tending
    note = (
        f"{run.devices} GPUs; {tending.seconds:.1f} s of which {run.cpu_seconds:.1f} s CPU; median "
        f"{tending.late_p50:.2f} ms against {quiet.late_p50:.2f}, 99 % {tending.late_p99:.1f} ms against "
        f"{quiet.late_p99:.1f}; a batch was written after {tending.written_max:.0f} ms at the latest, against "
        f"{quiet.written_max:.0f}"
    )
    growth = tending.peak_bytes / run.before_bytes
    return [
        Figure(
            id="tending",
            what="latest the event loop woke while a day is sealed, rolled up and merged",
            value=round(tending.late_max, 1),
            unit="ms",
            against="with live intake alone",
            baseline=round(quiet.late_max, 1),
            ratio=round(tending.late_max / max(quiet.late_max, 0.1), 1),
            goal="≤ 100 ms",
            met=tending.late_max <= 100,
            note=note,
        ),
        Figure(
            id="tending",
            what="most memory meanwhile",
            value=round(tending.peak_bytes / MIB),
            unit="MiB",
            against="before",
            baseline=round(run.before_bytes / MIB),
            ratio=round(growth, 2),
            goal="≤ 1.5×",
            met=growth <= 1.5,
            note=f"{run.devices} GPUs; {run.after_bytes / MIB:.0f} MiB afterwards",
        ),
    ]


if __name__ == "__main__":
    outcome = _run(float(os.environ.get("GPUHERD_BENCH_SCALE", "1")))
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
