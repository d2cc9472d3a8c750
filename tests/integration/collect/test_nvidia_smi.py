"""The nvidia-smi collector with a real program of that name, on a node where NVML cannot be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.collect.node import NodeCollector
from gpuherd.collect.nvidia_smi import NvidiaSmiCollector
from gpuherd.collect.nvidia_smi.row import FIELDS
from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable, GpuReading

KNOWN = "\\n".join(f'"{name}"' for names in FIELDS[:14] for name in names)
SCRIPT = f"""#!/bin/sh
case "$1" in
--help-query-gpu) printf '{KNOWN}\\n' ;;
--query-gpu=*)
    test -e "$(dirname "$0")/hangs" && exec sleep 60
    echo "0, GPU-0, Tesla T4, 00000000:01:00.0, 550.1, 7.5, [N/A], 15360, 438, 6144, 37, 12, 0, 0"
    echo "1, GPU-1, Tesla T4, 00000000:02:00.0, 550.1, 7.5, [N/A], 15360, 438, [Unknown Error], 0, 0, 0, 0" ;;
--query-compute-apps=*) echo "GPU-0, 4194304, 6000, python, with a comma" ;;
*) echo "unexpected $*" >&2; exit 2 ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "nvidia-smi"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return path


class NoNvml:
    name = "nvml"

    def open(self) -> None:
        raise CollectorUnavailable("no_driver", "NVML is not installed on this machine")

    def read(self) -> GpuReading:
        raise NotImplementedError

    def skip(self, devices: frozenset[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Never open."""


def test_a_report_through_nvidia_smi(program: Path) -> None:
    node = NodeCollector([NoNvml(), NvidiaSmiCollector()], trust_pids=True)
    report = node.read()
    again = node.read()
    node.close()
    assert program.exists()
    assert report.mismatch() is None
    assert [facts.uuid for facts in report.facts.devices] == ["GPU-0", "GPU-1"]
    assert report.facts.host.driver_version == "550.1"
    assert [sample.utilization_gpu for sample in report.sample.devices] == [0.37, 0.0]
    assert [sample.memory_used_bytes for sample in report.sample.devices] == [6144 * 2**20, None]
    assert [problem.code for problem in report.sample.problems] == ["metric_failed"]
    assert [(process.pid, process.is_gone) for process in report.table.processes] == [(4194304, True)]
    assert again.facts is report.facts


def test_a_hanging_program_fails_within_its_deadline(program: Path) -> None:
    collector = NvidiaSmiCollector(deadline_seconds=1)
    collector.open()
    (program.parent / "hangs").touch()
    with pytest.raises(CollectorFailed, match="did not finish within 1 s"):
        collector.read()
    (program.parent / "hangs").unlink()
    assert len(collector.read().devices) == 2
