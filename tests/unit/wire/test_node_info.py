"""The older HTTP tool's shape of a report."""

from __future__ import annotations

import json

from hypothesis import given

from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import Address, HostFacts
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.wire.node_info import node_info
from support.herd import GIB, gpu
from support.wire_strategies import reports


def test_the_documented_shape() -> None:
    report = Report(
        facts=NodeFacts(
            host=HostFacts(
                hostname="node_3",
                addresses=(Address("eno1", "192.168.0.3"), Address("docker0", "172.17.0.1")),
            ),
            devices=(
                gpu(0),
                gpu(1, is_partitioned=True),
                gpu(0, uuid="MIG-1", kind="slice", parent_uuid="GPU-1"),
            ),
        ),
        table=ProcessTable(
            processes=(Process(pid=123, user="ada", command="python train.py"), Process(pid=9)),
            uses=(ProcessUse(process=0, device=0), ProcessUse(process=1, device=2)),
        ),
        sample=Sample(
            time=1.0,
            devices=(
                DeviceSample(utilization_gpu=0.375, memory_used_bytes=3 * GIB // 2, temperature_celsius=41.0),
                DeviceSample(),
                DeviceSample(utilization_gpu=0.9),
            ),
            processes=(ProcessSample(), ProcessSample()),
            uses=(UseSample(gpu_memory_bytes=GIB), UseSample()),
        ),
    )
    assert list(node_info(report, "2023-04-29T21:17:41.419592").items()) == [
        ("hostname", "node_3"),
        ("last_update", "2023-04-29T21:17:41.419592"),
        ("ips", [["eno1", "192.168.0.3"]]),
        (
            "gpus",
            [
                {
                    "index": 0,
                    "name": "NVIDIA A100-SXM4-80GB",
                    "use_mem": 1536,
                    "tot_mem": 81920,
                    "utilize": 38,
                    "temp": 41,
                    "users": [
                        {"pid": 123, "username": "ada", "mem(MiB)": 1024, "command": "python train.py"}
                    ],
                },
                {
                    "index": 1,
                    "name": "NVIDIA A100-SXM4-80GB",
                    "use_mem": None,
                    "tot_mem": 81920,
                    "utilize": None,
                    "temp": None,
                    # The process of its slice; nothing else is known of it.
                    "users": [{"pid": 9, "username": None, "mem(MiB)": None, "command": None}],
                },
            ],
        ),
    ]


@given(reports())
def test_any_report_can_be_told_in_it(report: Report) -> None:
    told = json.loads(json.dumps(node_info(report, "")))
    assert len(told["gpus"]) == sum(device.kind == "gpu" for device in report.facts.devices)
