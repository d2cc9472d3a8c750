"""A node whose samples carry their own numbers, and what a hub's journal holds of them."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from msgspec import structs

from gpuherd.fleet.node_time import TOLERANCE_SECONDS
from gpuherd.history.batch import DEVICE_METRICS, Batch
from gpuherd.history.journal import JournalFiles
from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import HostSample
from gpuherd.model.reports import Sample
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import Welcome
from gpuherd.wire.reports import sample_to_frame
from support.herd import WORKING
from support.hub_process import StubbornNode

__all__ = ["CountingNode", "Kept", "remembered", "remembered_times"]

ENERGY = DEVICE_METRICS.index("energy_joules")


class CountingNode(StubbornNode):
    """Its devices' energy counter is the number of the sample."""

    def __init__(
        self,
        url: str,
        credential: str,
        *,
        shift_seconds: float = 0.0,
        ahead_seconds: float = 0.0,
        every_seconds: float = 0.01,
    ) -> None:
        """``shift_seconds``: of the hub's clock; ``ahead_seconds``: how far the node's is ahead of the hub's."""
        super().__init__(url, credential, every_seconds=every_seconds)
        self._shift_seconds = shift_seconds
        self._ahead_seconds = ahead_seconds
        self.times: dict[int, float] = {}
        """When each sample was taken, by the node's clock."""

    def node_time(self) -> float:
        return time.time() + self._shift_seconds + self._ahead_seconds

    async def open(self, *, live_from_seq: int = 0) -> Welcome:
        return await super().open(live_from_seq=self.seq + 1)

    def sample_message(self, seq: int | None = None, device: DeviceSample = WORKING) -> bytes:
        number = seq or self.next_seq()
        device = structs.replace(device, energy_joules=float(number))
        sample = Sample(
            time=self.times.setdefault(number, self.node_time()),
            host=HostSample(cpu_ratio=0.5),
            devices=(device,) * len(self.facts.devices),
        )
        return encode(sample_to_frame(sample, seq=number, facts_revision=1, table_revision=1))

    def misdated(self, kept: dict[int, list[float]]) -> set[int]:
        """Give the samples that the journal has at another time, or at another place in the order."""
        off = {
            seq
            for seq, times in kept.items()
            if any(abs(time - (self.times[seq] - self._ahead_seconds)) > TOLERANCE_SECONDS for time in times)
        }
        by_time = sorted(kept, key=lambda seq: kept[seq][0])
        return off | {seq for seq, place in zip(by_time, sorted(kept), strict=True) if seq != place}


class Kept:
    """What the journal of a hub holds of counting nodes."""

    def __init__(self, folder: Path) -> None:
        """Read the journal in the folder of a history."""
        self.times: dict[str, dict[int, list[float]]] = {}
        """By node and number when samples were taken; a time for each time that the journal has them."""
        self.marks: dict[str, int] = {}
        """The highest number of each node."""
        self.damaged = 0
        files, ids = JournalFiles(folder / "journal"), set()
        for number in files.paths():
            reading = files.read(number)
            self.damaged += reading.damaged
            for batch_id, batch in reading.batches:
                if batch_id not in ids:
                    ids.add(batch_id)
                    self._take(batch)

    def _take(self, batch: Batch) -> None:
        for mark in batch.marks:
            self.marks[mark.node_id] = max(self.marks.get(mark.node_id, -1), mark.seq)
        samples = batch.devices
        for subject, key in enumerate(samples.keys):
            if key.uuid == "GPU-0":
                of_node, rows = self.times.setdefault(key.node_id, {}), samples.subject == subject
                for taken_at, energy in zip(
                    samples.time[rows].tolist(), samples.values[rows, ENERGY].tolist(), strict=True
                ):
                    of_node.setdefault(int(energy), []).append(taken_at)


def remembered_times(folder: Path) -> dict[str, dict[int, list[float]]]:
    """Give when the samples of each node were taken, as the journal has it; a time for each time it has them."""
    return Kept(folder).times


def remembered(folder: Path) -> dict[str, Counter[int]]:
    """Give how often the samples of each node are in the journal."""
    return {
        node_id: Counter({seq: len(times) for seq, times in samples.items()})
        for node_id, samples in remembered_times(folder).items()
    }
