"""The simulated collector by itself; that it equals the NVML collector is tested in tests/integration/sim."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable
from gpuherd.collect.scenario import (
    Fault,
    Latency,
    Noise,
    Scenario,
    ScheduledXid,
    SimulatedGpu,
    SimulatedProcess,
    dump_scenario,
)
from gpuherd.collect.scenario.cards import SimulatedHost
from gpuherd.collect.simulated import SimulatedCollector
from gpuherd.model.errors import Misconfigured
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessSample

GPUS = tuple(
    SimulatedGpu(
        uuid=f"GPU-{i}", name="Card", power_watts=100 + i, memory_total_bytes=1000, memory_used_bytes=10
    )
    for i in range(3)
)
HEALTHY = Scenario(driver_version="1.0", cuda_version="12.4", gpus=GPUS)


class Clock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def collector(source: Scenario | Path, clock: Clock | None = None) -> SimulatedCollector:
    clock = clock or Clock()

    def crash() -> None:
        raise SystemError("SIGSEGV")

    return SimulatedCollector(
        source, clock=clock, sleep=clock.sleep, crash=crash, host_memory=lambda: (64, 8)
    )


def with_fault(**fault: object) -> Scenario:
    return msgspec.structs.replace(HEALTHY, faults=(msgspec.convert(fault, Fault),))


def test_devices_are_the_same_object_while_nothing_changes() -> None:
    playing = collector(
        msgspec.structs.replace(
            HEALTHY, gpus=(msgspec.structs.replace(GPUS[0], power_watts=Noise(mean=50, amplitude=9)),)
        )
    )
    playing.open()
    readings = [playing.read() for _ in range(25)]
    assert len({id(reading.devices) for reading in readings}) == 1
    assert readings[0].devices[0].memory_total_bytes == 1000
    assert readings[0].devices[0].vendor == "simulated"


def test_values_follow_scenario_time() -> None:
    clock = Clock()
    process = SimulatedProcess(pid=7, alive_from=10)
    gpu = msgspec.structs.replace(GPUS[0], processes=(process,))
    playing = collector(msgspec.structs.replace(HEALTHY, gpus=(gpu,)), clock)
    playing.open()
    assert playing.read().uses == ()
    clock.now += 10
    (use,) = playing.read().uses
    assert (use.pid, use.process, use.process_sample) == (7, None, None)  # a real pid: looked up by the agent


def test_a_fake_says_who_it_is() -> None:
    fake = SimulatedProcess(
        pid=7,
        user="user01",
        command="python train.py\x1b[31m",
        age_seconds=60,
        host_cpu_percent=150,
        host_memory_bytes=4096,
        job="42",
    )
    gpu = msgspec.structs.replace(GPUS[0], processes=(fake,))
    playing = collector(msgspec.structs.replace(HEALTHY, gpus=(gpu,), epoch=5000))
    playing.open()
    (use,) = playing.read().uses
    assert use.process == Process(
        pid=7,
        started_at=4940.0,
        user="user01",
        command="python train.py\N{REPLACEMENT CHARACTER}[31m",
        job="42",
    )
    assert use.process_sample == ProcessSample(cpu_cores=1.5, memory_bytes=4096)


def test_a_gpu_that_falls_off_keeps_its_identity_and_comes_back() -> None:
    clock = Clock()
    playing = collector(
        with_fault(**{"function": "*", "gpu": 1, "effect": 15, "from": 5, "until": 500}), clock
    )
    playing.open()
    assert playing.read().problems == ()
    clock.now += 5
    for _ in range(12):  # also after the GPUs are looked for anew
        reading = playing.read()
        assert [facts.uuid for facts in reading.devices] == ["GPU-0", "GPU-1", "GPU-2"]
        assert [(p.code, p.device_uuid, p.is_fault) for p in reading.problems] == [
            ("gpu_lost", "GPU-1", True)
        ]
        assert [sample.power_watts for sample in reading.samples] == [100.0, None, 102.0]
    clock.now += 500
    samples = [playing.read().samples[1].power_watts for _ in range(12)]
    assert samples[-1] == 101.0


@pytest.mark.parametrize(
    ("effect", "code"),
    [(4, "no_permission"), (9, "no_driver"), (18, "driver_mismatch"), (999, "driver_failed")],
)
def test_a_start_that_fails(effect: int, code: str) -> None:
    with pytest.raises(CollectorUnavailable) as failure:
        collector(with_fault(function="nvmlInit*", effect=effect)).open()
    assert failure.value.code == code


def test_a_node_without_gpus() -> None:
    with pytest.raises(CollectorUnavailable) as failure:
        collector(Scenario(driver_version="1.0")).open()
    assert failure.value.code == "no_gpu"


def test_a_driver_that_goes_away_while_it_is_read() -> None:
    clock = Clock()
    playing = collector(with_fault(**{"function": "nvmlDevice*", "effect": 18, "from": 5}), clock)
    playing.open()
    clock.now += 5
    with pytest.raises(CollectorFailed) as failure:
        playing.read()
    assert failure.value.code == "driver_mismatch"


def test_a_hang_lasts_as_long_as_its_fault() -> None:
    clock = Clock()
    playing = collector(with_fault(function="nvmlDeviceGetPowerUsage", gpu=1, effect="hang", until=30), clock)
    playing.open()
    before = clock.now
    assert playing.read().samples[1].power_watts == 101.0
    assert clock.now - before == pytest.approx(30, abs=0.1)


def test_closing_ends_a_hang() -> None:
    clock = Clock()
    playing = collector(with_fault(function="nvmlDeviceGetPowerUsage", effect="hang_locked"), clock)
    playing.open()
    playing._driver._sleep = lambda _: playing.close()  # another thread would
    with pytest.raises(CollectorFailed, match="closed while it hung"):
        playing.read()


def test_a_crash_and_the_gpu_that_is_skipped_afterwards() -> None:
    playing = collector(with_fault(function="nvmlDeviceGetPowerUsage", gpu=1, effect="crash"))
    playing.open()
    with pytest.raises(SystemError):
        playing.read()
    playing.skip(frozenset({1}))
    reading = playing.read()
    assert [(p.code, p.device_uuid) for p in reading.problems] == [("driver_hung", "GPU-1")]
    assert [sample.power_watts for sample in reading.samples] == [100.0, None, 102.0]


def test_latency_takes_time() -> None:
    clock = Clock()
    slow = Latency(function="nvmlDeviceGetPowerUsage", seconds=0.5)
    playing = collector(msgspec.structs.replace(HEALTHY, latencies=(slow,)), clock)
    playing.open()
    before = clock.now
    playing.read()
    assert clock.now - before == pytest.approx(1.5)


def test_xids_are_shown_from_their_moment_on() -> None:
    clock = Clock()
    xids = (ScheduledXid(gpu=2, at=5, xid=79), ScheduledXid(gpu=1, at=5, xid=13))
    playing = collector(msgspec.structs.replace(HEALTHY, xids=xids), clock)
    playing.open()
    assert playing.read().problems == ()
    clock.now += 5
    fatal, passing = playing.read().problems
    assert (fatal.code, fatal.device_uuid, fatal.since) == ("xid", "GPU-2", clock.now)
    assert fatal.is_fault
    assert fatal.message.startswith("Xid 79, the GPU has fallen off the bus: reboot")
    assert not passing.is_fault
    clock.now += 601
    assert playing.read().problems == (fatal,)


def test_unified_memory_is_the_simulated_hosts() -> None:
    bare = SimulatedGpu(uuid="GPU-0", name="GB10")
    scenario = msgspec.structs.replace(HEALTHY, gpus=(bare,))
    host = SimulatedHost(facts=HostFacts(hostname="spark", memory_total_bytes=128), memory_used_bytes=32)
    for used, total, played in (
        (8, 64, scenario),
        (32, 128, msgspec.structs.replace(scenario, host=host)),
    ):
        playing = collector(played)
        playing.open()
        reading = playing.read()
        assert reading.samples[0].memory_used_bytes == used
        assert reading.devices[0].memory_total_bytes == total
        assert reading.devices[0].memory_basis == "host"


def test_a_file_is_read_again_and_a_wrong_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scenario.json"
    path.write_bytes(dump_scenario(HEALTHY))
    playing = collector(path)
    playing.open()
    assert len(playing.read().devices) == 3
    path.write_bytes(dump_scenario(msgspec.structs.replace(HEALTHY, gpus=GPUS[:2])))
    assert len(playing.read().devices) == 2
    path.write_bytes(b"{")
    assert [len(playing.read().devices) for _ in range(3)] == [2, 2, 2]
    assert [record.message for record in caplog.records if "scenario.json" in record.message] != []
    assert len(caplog.records) == 1
    with pytest.raises(Misconfigured):
        playing.open()
