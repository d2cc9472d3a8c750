"""AMD nodes: what the script asks amd-smi and rocm-smi for becomes devices and processes."""

from __future__ import annotations

import getpass
import json
import subprocess
import time
from pathlib import Path

import pytest

from support.remote_node import FakeNode, Session
from support.running import PATIENCE_SECONDS

MIB = 2**20


@pytest.fixture
def amd_node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path, "dash")


def test_amd_smi(amd_node: FakeNode, worker: subprocess.Popen[bytes]) -> None:
    amount = {"value": 100, "unit": "MB"}
    amd_node.write(
        "static", json.dumps([{"gpu": 0, "asic": {"market_name": "MI300X", "asic_serial": "0x1F"}}])
    )
    amd_node.write("list", json.dumps([{"gpu": 0, "bdf": "0000:05:00.0", "uuid": "u"}]))
    amd_node.write(
        "metric", json.dumps([{"gpu": 0, "mem_usage": {"used_vram": amount, "total_vram": amount}}])
    )
    process = {"process_info": {"name": "python", "pid": worker.pid, "mem_usage": amount}}
    amd_node.write("process", json.dumps([{"gpu": 0, "process_list": [process]}]))
    here = amd_node.folder
    amd_node.install(
        "amd-smi", f'#!/bin/sh\necho "$$ $*" >>{here}/calls\n[ "$2" = --json ] && cat {here}/$1\n'
    )
    with Session(amd_node) as session:
        reports = [session.report() for _ in range(3)]
    report = reports[-1]
    assert report.sample.problems == ()
    assert [(d.uuid, d.name, d.vendor) for d in report.facts.devices] == [
        ("GPU-000000000000001f", "MI300X", "amd")
    ]
    assert report.sample.devices[0].memory_used_bytes == 100 * MIB
    assert [(p.pid, p.user) for p in report.table.processes] == [(worker.pid, getpass.getuser())]
    assert [use.gpu_memory_bytes for use in report.sample.uses] == [100 * MIB]
    asked = [arguments for _, arguments in amd_node.calls()]
    assert asked.count("static --json") == 1, "what a GPU is does not change"
    assert asked.count("metric --json") >= 3


@pytest.mark.parametrize("is_old", [False, True])
def test_rocm_smi(amd_node: FakeNode, worker: subprocess.Popen[bytes], is_old: bool) -> None:
    card = {
        "Card series": "MI100",
        "Unique ID": "0x2a",
        "GPU use (%)": "7",
        "VRAM Total Used Memory (B)": "5",
    }
    system = {"Driver version": "6.2", f"PID{worker.pid}": "python, 1, 4096, 0, 0"}
    amd_node.write("answer", json.dumps({"card0": card, "system": system}))
    here = amd_node.folder
    refusal = '[ "$1" = -a ] || { echo unrecognized >&2; exit 2; }\n' if is_old else ""
    amd_node.install("rocm-smi", f'#!/bin/sh\necho "$$ $*" >>{here}/calls\n{refusal}cat {here}/answer\n')
    with Session(amd_node) as session:
        session.report()
        session.report()
        report = session.report()
    assert report.sample.problems == ()
    assert [(d.uuid, d.name) for d in report.facts.devices] == [("GPU-000000000000002a", "MI100")]
    assert report.sample.devices[0].utilization_gpu == 0.07
    assert [(p.pid, p.user) for p in report.table.processes] == [(worker.pid, getpass.getuser())]
    asked = [arguments.split()[0] for _, arguments in amd_node.calls()]
    assert asked[:3] == (["--showid", "-a", "-a"] if is_old else ["--showid"] * 3)


def test_a_tool_that_hangs(amd_node: FakeNode) -> None:
    amd_node.install("rocm-smi", f'#!/bin/sh\necho "$$ $*" >>{amd_node.folder}/calls\nexec sleep 300\n')
    with Session(amd_node, deadline_seconds=1) as session:
        for _ in range(4):
            report = session.report()
            assert [problem.code for problem in report.sample.problems] == ["driver_hung"]
            assert report.sample.host.memory_used_bytes is not None
        assert len(amd_node.calls()) == 1
        end = time.monotonic() + PATIENCE_SECONDS
        while amd_node.alive():
            assert time.monotonic() < end
            time.sleep(0.01)
