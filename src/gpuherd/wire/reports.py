"""A report to frames and frames to a report: the one place that knows how the model travels."""

from __future__ import annotations

from gpuherd.model.columns import COLUMNS
from gpuherd.model.devices import DeviceSample
from gpuherd.model.errors import Refused
from gpuherd.model.hosts import HostSample
from gpuherd.model.processes import ProcessSample, ProcessTable, UseSample
from gpuherd.model.reports import NodeFacts, Sample
from gpuherd.wire.frames import Layout, SampleFrame
from gpuherd.wire.matrix import LAYOUT, pack, pack_numbers, unpack, unpack_numbers

__all__ = ["sample_from_frame", "sample_to_frame"]


def sample_to_frame(sample: Sample, *, seq: int, facts_revision: int, table_revision: int) -> SampleFrame:
    """Pack a sample for the wire."""
    return SampleFrame(
        seq=seq,
        time=sample.time,
        facts_revision=facts_revision,
        table_revision=table_revision,
        host=pack((sample.host,)),
        devices=pack(sample.devices),
        processes=pack(sample.processes),
        uses=pack(sample.uses),
        disks=pack_numbers(sample.disks_used_bytes),
        problems=sample.problems,
    )


def sample_from_frame(
    frame: SampleFrame, facts: NodeFacts, table: ProcessTable, layout: Layout = LAYOUT
) -> Sample:
    """Unpack a sample against the facts and table that its revisions name; ``Refused`` if the shapes differ."""
    disks = unpack_numbers(frame.disks)
    if len(disks) != len(facts.host.disks):
        raise Refused(
            "matrix_misshapen", f"the sample has {len(disks)} disks, the facts {len(facts.host.disks)}"
        )
    (host,) = unpack(frame.host, layout.host, HostSample, COLUMNS["host"], 1)
    return Sample(
        time=frame.time,
        host=host,
        disks_used_bytes=tuple(None if used is None or used < 0 else int(used) for used in disks),
        devices=unpack(frame.devices, layout.devices, DeviceSample, COLUMNS["devices"], len(facts.devices)),
        processes=unpack(
            frame.processes, layout.processes, ProcessSample, COLUMNS["processes"], len(table.processes)
        ),
        uses=unpack(frame.uses, layout.uses, UseSample, COLUMNS["uses"], len(table.uses)),
        problems=frame.problems,
    )
