"""A node's report: facts, process table and sample belong together and are aligned by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import ProcessSample, ProcessTable, UseSample
from gpuherd.model.text import Identifier, Label, Sentence
from gpuherd.model.units import Bytes, Count, Timestamp

__all__ = ["MAX_DEVICES", "NodeFacts", "Problem", "Report", "Sample", "fewer_problems"]

MAX_DEVICES = 512


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem that a node reports."""

    code: Annotated[
        Label,
        Meta(
            description="Stable name: no_driver, no_gpu, driver_mismatch, driver_hung, driver_crashed, gpu_lost, "
            "reset_required, gpu_error, xid, recovery_action, remap_pending, remap_failed, retirement_pending, "
            "no_permission, driver_failed, slow_driver, too_many_devices, metric_failed, processes_failed, "
            "processes_hidden, host_failed; newer agents may add more."
        ),
    ]
    message: Annotated[Sentence, Meta(description="What is wrong and what to do, for people.")]
    device_uuid: Annotated[
        Identifier | None, Meta(description="The device concerned; null for the whole node.")
    ] = None
    is_fault: Annotated[
        bool, Meta(description="The device (or, if none is named, every device) must not be used.")
    ] = False
    since: Annotated[Timestamp | None, Meta(description="Node time of its first appearance.")] = None
    xid: Annotated[Count | None, Meta(description="For code xid: the number.")] = None
    columns: Annotated[
        tuple[Label, ...],
        Meta(
            max_length=32,
            description="For code metric_failed: the metrics that are unknown because of it, such as "
            "memory_used_bytes or memory_total_bytes. Empty: it can be any unknown metric.",
        ),
    ] = ()


def fewer_problems(problems: Sequence[Problem], most: int) -> list[Problem]:
    """Leave out what is over ``most``, faults last; what is not said of a device must not make it look free."""
    if len(problems) <= most:
        return list(problems)
    kept = sorted(problems, key=lambda problem: not problem.is_fault)[: most - 1]
    text = f"{len(problems) - len(kept)} problems are omitted, so the state of some devices may be unknown"
    return [*kept, Problem(code="processes_failed", message=text)]


class NodeFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inventory of a node: the host and its devices, slices after their parent."""

    host: HostFacts
    devices: Annotated[tuple[DeviceFacts, ...], Meta(max_length=MAX_DEVICES)] = ()


class Sample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Metrics of a node at one moment; each tuple is aligned with the facts or the process table."""

    time: Annotated[Timestamp, Meta(description="The node's own clock.")]
    host: HostSample = HostSample()
    disks_used_bytes: Annotated[
        tuple[Bytes | None, ...],
        Meta(max_length=64, description="Space used, in the order of the host's disks."),
    ] = ()
    devices: Annotated[
        tuple[DeviceSample, ...],
        Meta(max_length=MAX_DEVICES, description="In the order of the facts' devices."),
    ] = ()
    processes: Annotated[
        tuple[ProcessSample, ...], Meta(max_length=4096, description="In the order of the table's processes.")
    ] = ()
    uses: Annotated[
        tuple[UseSample, ...], Meta(max_length=8192, description="In the order of the table's uses.")
    ] = ()
    problems: Annotated[tuple[Problem, ...], Meta(max_length=1024)] = ()


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a node reports at one moment."""

    facts: NodeFacts
    sample: Sample
    table: ProcessTable = ProcessTable()

    def mismatch(self) -> str | None:
        """Say which parts do not line up, or ``None`` if the report is consistent."""
        pairs = (
            ("sample.devices", len(self.sample.devices), "facts.devices", len(self.facts.devices)),
            ("sample.processes", len(self.sample.processes), "table.processes", len(self.table.processes)),
            ("sample.uses", len(self.sample.uses), "table.uses", len(self.table.uses)),
            (
                "sample.disks_used_bytes",
                len(self.sample.disks_used_bytes),
                "facts.host.disks",
                len(self.facts.host.disks),
            ),
        )
        for name, length, other, expected in pairs:
            if length != expected:
                return f"{name} has {length} entries but {other} has {expected}; they must be aligned"
        devices, processes = len(self.facts.devices), len(self.table.processes)
        for position, use in enumerate(self.table.uses):
            if use.device >= devices or use.process >= processes:
                return f"table.uses[{position}] points outside of the device list or process table"
        return None
