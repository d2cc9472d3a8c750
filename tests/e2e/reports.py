"""Reports of simple nodes, for the page to show."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import Address, Disk, HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample

GIB = 2**30

IDLE = DeviceSample(
    utilization_gpu=0.0,
    memory_used_bytes=0,
    temperature_celsius=31.0,
    power_watts=52.0,
    power_limit_watts=400.0,
)
UNKNOWN = DeviceSample()


def working(utilization: float, memory_gib: int = 60) -> DeviceSample:
    """Make the numbers of a GPU at work."""
    return DeviceSample(
        utilization_gpu=utilization,
        memory_used_bytes=memory_gib * GIB,
        temperature_celsius=64.0,
        power_watts=310.0,
        power_limit_watts=400.0,
    )


def gpu(index: int, name: str = "NVIDIA A100-SXM4-80GB", uuid: str | None = None) -> DeviceFacts:
    """Describe one GPU."""
    return DeviceFacts(uuid=uuid or f"GPU-{index}", index=index, name=name, memory_total_bytes=80 * GIB)


def report(
    devices: Sequence[tuple[DeviceFacts, DeviceSample]],
    processes: Sequence[tuple[int, Process]] = (),
    problems: Sequence[Problem] = (),
    hostname: str = "machine",
    cpu_ratio: float = 0.25,
) -> Report:
    """Make a whole report; each process comes with the position of the device it uses."""
    host = HostFacts(
        hostname=hostname,
        os="Debian GNU/Linux 12",
        cpu_model="EPYC 7763",
        cpu_count=128,
        memory_total_bytes=512 * GIB,
        driver_version="550.54.15",
        addresses=(Address("eth0", "192.0.2.11"),),
        disks=(Disk(mount="/scratch", total_bytes=1000 * GIB),),
    )
    return Report(
        facts=NodeFacts(host=host, devices=tuple(facts for facts, _ in devices)),
        table=ProcessTable(
            processes=tuple(process for _, process in processes),
            uses=tuple(ProcessUse(process=i, device=device) for i, (device, _) in enumerate(processes)),
        ),
        sample=Sample(
            time=time.time(),
            host=HostSample(
                cpu_ratio=cpu_ratio, memory_used_bytes=128 * GIB, load_1m=31.5, uptime_seconds=90_000.0
            ),
            disks_used_bytes=(800 * GIB,),
            devices=tuple(sample for _, sample in devices),
            processes=tuple(ProcessSample(cpu_cores=7.5, memory_bytes=9 * GIB) for _ in processes),
            uses=tuple(UseSample(gpu_memory_bytes=58 * GIB) for _ in processes),
            problems=tuple(problems),
        ),
    )
