"""amd-smi: pure parsers against a recording and the documented shapes, the collector against scripted answers."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.amd_smi import AmdSmiCollector
from gpuherd.collect.amd_smi.parsing import device_facts, device_sample, parse_entries, parse_metric_csv, uses
from gpuherd.collect.commands import CommandFailed
from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable
from gpuherd.model.devices import DeviceFacts, ThrottleReason
from gpuherd.model.errors import Failed, Unavailable

MIB = 2**20
_beside = Path(__file__).parents[4] / "shared" / "fixtures"
RECORDED = (
    Path(os.environ.get("GPUHERD_FIXTURES", _beside)) / "amd/microsoft__VirtualClient/metric-8xMI300X.csv"
)


def amount(value: float | str, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


STATIC: list[dict[str, Any]] = [
    {
        "gpu": 0,
        "asic": {
            "market_name": "AMD Instinct MI300X",
            "asic_serial": "0xAB54A98A1F30000D",
            "num_compute_units": 304,
        },
        "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16},
        "limit": {"max_power": amount(750, "W"), "socket_power": amount(700, "W")},
        "driver": {"name": "amdgpu", "version": "6.10.5"},
        "vram": {"type": "HBM", "size": amount(196592, "MB")},
    },
    {
        "gpu": 1,
        "asic": {"market_name": "N/A", "asic_serial": "N/A"},
        "board": {"product_name": "Instinct MI355X"},
        "limit": {"ppt0": {"socket_power_limit": amount(1400, "W")}, "ppt1": {"socket_power_limit": "N/A"}},
    },
]
LISTED = [
    {"gpu": 0, "bdf": "0000:05:00.0", "uuid": "a0ff74a1-0000-1000-80e9-ddb7e7a4d8de"},
    {"gpu": 1, "bdf": "0000:26:00.0", "uuid": "b1ff74a1-0000-1000-80e9-ddb7e7a4d8de"},
]
METRIC: list[dict[str, Any]] = [
    {
        "gpu": 0,
        "usage": {"gfx_activity": amount(7, "%"), "umc_activity": amount(0, "%"), "mm_activity": "N/A"},
        "power": {"socket_power": amount(542, "W"), "throttle_status": "UNTHROTTLED"},
        "clock": {
            "gfx_0": {"clk": amount(2100, "MHz"), "max_clk": amount(2100, "MHz")},
            "mem_0": {"clk": amount(900, "MHz")},
        },
        "temperature": {"edge": "N/A", "hotspot": amount(71, "C"), "mem": amount(52, "C")},
        "ecc": {"total_correctable_count": 3, "total_uncorrectable_count": 0},
        "fan": {"usage": "N/A"},
        "energy": {"total_energy_consumption": amount(12119300.381, "J")},
        "mem_usage": {"total_vram": amount(196592, "MB"), "used_vram": amount(121344, "MB")},
    },
    {
        "gpu": 1,
        "usage": "N/A",
        "power": {"socket_power": "N/A", "throttle_status": "THROTTLED"},
        "mem_usage": "N/A",
    },
]
PROCESS: list[dict[str, Any]] = [
    {
        "gpu": 0,
        "process_list": [
            {
                "process_info": {
                    "name": "python3",
                    "pid": 42,
                    "memory_usage": {"vram_mem": amount(121000 * MIB, "B")},
                }
            },
            {"process_info": {"name": "python3", "pid": "43", "mem_usage": amount(512, "MB")}},
        ],
    },
    {"gpu": 1, "process_list": [{"process_info": "No running processes detected"}]},
]


class Scripted:
    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "static": STATIC, "list": LISTED, "metric": METRIC, "process": PROCESS, **answers
        }  # fmt: skip
        self.asked: list[str] = []

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        program, what, form = arguments
        assert (program, form) == ("amd-smi", "--json")
        assert deadline_seconds > 0
        self.asked.append(what)
        answer = self.answers[what]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


def opened(**answers: Any) -> AmdSmiCollector:
    made = AmdSmiCollector(runner=Scripted(**answers))
    made.open()
    return made


@pytest.mark.parametrize(
    "listed",
    [
        [{"process_info": {"name": "x", "pid": "N/A"}}],
        [{"process_info": "Access denied"}],
        "N/A",
    ],
)
def test_processes_that_cannot_be_read_are_a_problem(listed: Any) -> None:
    reading = opened(process=[PROCESS[0], {"gpu": 1, "process_list": listed}]).read()
    uuid = reading.devices[1].uuid
    assert [(p.code, p.device_uuid) for p in reading.problems] == [("processes_failed", uuid)]


@pytest.mark.parametrize("second", [{"gpu": 1, "process_list": []}, {"gpu": True, "process_list": []}])
def test_a_gpu_with_two_lists_of_processes_is_a_problem(second: Any) -> None:
    """Or with one that does not tell its GPU: the other entry counts."""
    used = {"gpu": 1, "process_list": [{"process_info": {"name": "x", "pid": 7}}]}
    reading = opened(process=[PROCESS[0], second, used]).read()
    told = [(p.code, p.device_uuid) for p in reading.problems]
    assert told == ([("processes_failed", reading.devices[1].uuid)] if second["gpu"] is not True else [])
    assert (7 in [use.pid for use in reading.uses]) == (second["gpu"] is True)


def test_a_gpu_that_is_missing_in_the_list_of_processes_is_a_problem() -> None:
    reading = opened(process=PROCESS[:1]).read()
    uuid = reading.devices[1].uuid
    assert [(p.code, p.device_uuid) for p in reading.problems] == [("processes_failed", uuid)]


@pytest.mark.parametrize(
    ("usage", "memory", "columns"),
    [
        (65535, (196592, 283), ("utilization_gpu",)),
        (101, (196592, 283), ("utilization_gpu",)),
        (-1, (196592, 283), ("utilization_gpu",)),
        ("ERROR", (196592, 283), ("utilization_gpu",)),
        (0, (196592, 2**44), ("memory_used_bytes",)),
        (0, (196592, 196593), ("memory_used_bytes",)),
        (0, (0, 283), ("memory_total_bytes",)),
        (2**32 - 1, (0, 2**64 - 1), ("memory_total_bytes", "memory_used_bytes", "utilization_gpu")),
        ("N/A", (196592, 283), None),
        (100, (196592, 196592), None),
    ],
)
def test_values_that_cannot_be_are_failures(
    usage: Any, memory: tuple[int, int], columns: tuple[str, ...] | None
) -> None:
    total, used = memory
    metric = {
        "gpu": 0,
        "usage": {"gfx_activity": amount(usage, "%")},
        "mem_usage": {"total_vram": amount(total, "MB"), "used_vram": amount(used, "MB")},
    }
    static = {"gpu": 0, "vram": {"size": amount(total, "MB")}}
    none = [{"gpu": 0, "process_list": [{"process_info": "No running processes detected"}]}]
    reading = opened(static=[static], list=[], metric=[metric], process=none).read()
    told = [(p.code, p.device_uuid, p.columns) for p in reading.problems]
    assert told == ([] if columns is None else [("metric_failed", reading.devices[0].uuid, columns)])
    sample = reading.samples[0]
    values = {
        "memory_total_bytes": reading.devices[0].memory_total_bytes,
        "memory_used_bytes": sample.memory_used_bytes,
        "utilization_gpu": sample.utilization_gpu,
    }
    assert [values[column] for column in columns or ()] == [None] * len(columns or ())


def test_warnings_with_brackets_are_no_json() -> None:
    warning = b"WARNING: [driver] {not loaded}: see [1]\n"
    reading = opened(metric=warning + json.dumps(METRIC).encode() + b"\n[end]\n").read()
    assert [sample.power_watts for sample in reading.samples] == [542, None]


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_reading(is_wrapped: bool) -> None:
    answers = {"static": {"gpu_data": STATIC}, "metric": {"gpu_data": METRIC}} if is_wrapped else {}
    made = opened(**answers)
    reading = made.read()
    first, second = reading.devices
    assert first == DeviceFacts(
        uuid="GPU-ab54a98a1f30000d",
        index=0,
        name="AMD Instinct MI300X",
        vendor="amd",
        memory_total_bytes=196592 * MIB,
        pci_bus_id="0000:05:00.0",
        clock_sm_max_hertz=2.1e9,
    )
    assert (second.uuid, second.name, second.memory_total_bytes) == (
        "b1ff74a1-0000-1000-80e9-ddb7e7a4d8de", "Instinct MI355X", None,
    )  # fmt: skip
    sample, unknown = reading.samples
    assert (sample.utilization_gpu, sample.utilization_memory, sample.memory_used_bytes) == (
        0.07,
        0.0,
        121344 * MIB,
    )
    assert (sample.temperature_celsius, sample.power_watts, sample.power_limit_watts) == (71, 542, 700)
    assert (sample.clock_sm_hertz, sample.clock_memory_hertz, sample.fan_ratio) == (2.1e9, 9e8, None)
    assert (sample.throttle_reasons, sample.ecc_corrected, sample.ecc_uncorrected) == (0, 3, 0)
    assert sample.energy_joules == 12119300.381
    assert (unknown.utilization_gpu, unknown.memory_used_bytes, unknown.power_watts) == (None, None, None)
    assert (unknown.power_limit_watts, unknown.throttle_reasons) == (1400, ThrottleReason.OTHER)
    assert [(use.device, use.pid, use.gpu_memory_bytes) for use in reading.uses] == [
        (0, 42, 121000 * MIB), (0, 43, 512 * MIB),
    ]  # fmt: skip
    assert (reading.problems, reading.driver_version) == ((), "6.10.5")
    assert made.read().devices is reading.devices


@pytest.mark.skipif(
    not RECORDED.exists(), reason="no recordings of real cards: set GPUHERD_FIXTURES to their folder"
)
def test_recorded_csv() -> None:
    metric = parse_metric_csv(RECORDED.read_bytes())
    assert sorted(metric) == list(range(8))
    facts = device_facts({}, {}, metric)
    assert [device.memory_total_bytes for device in facts] == [196592 * MIB] * 8
    assert len({device.uuid for device in facts}) == 8
    sample = device_sample(metric[0], {})
    assert (sample.power_watts, sample.utilization_gpu, sample.memory_used_bytes) == (133, 0.0, 283 * MIB)
    assert (sample.temperature_celsius, sample.clock_sm_hertz, sample.clock_memory_hertz) == (36, 1.32e8, 9e8)
    assert (sample.throttle_reasons, sample.ecc_uncorrected, sample.fan_ratio) == (0, 0, None)
    assert sample.energy_joules == 12119300.381


def test_partitions_of_one_chip_are_told_apart() -> None:
    static = {n: {"gpu": n, "asic": {"asic_serial": "0x1"}} for n in range(3)}
    facts = device_facts(static, {0: {"uuid": "a"}, 1: {"uuid": "b"}}, {})
    assert [device.uuid for device in facts] == ["a", "b", "amd-gpu-2"]
    same = device_facts({n: {"bus": {"bdf": "0000:05:00.0"}} for n in range(2)}, {}, {})
    assert [device.uuid for device in same] == ["amd-at-0000:05:00.0", "amd-at-0000:05:00.0-1"]


def test_a_gpu_that_is_not_measured_is_faulty_and_the_other_is_read() -> None:
    failed = CommandFailed("amd-smi", 1, b"WARNING: x\n" + json.dumps(METRIC[:1]).encode() + b"\nbye\n", b"")
    reading = opened(metric=failed).read()
    assert reading.samples[0].power_watts == 542
    assert [(p.code, p.device_uuid, p.is_fault) for p in reading.problems] == [
        ("gpu_error", "b1ff74a1-0000-1000-80e9-ddb7e7a4d8de", True)
    ]


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"static": Unavailable("there is no amd-smi on this machine")}, "no_driver"),
        ({"metric": CommandFailed("amd-smi", 1, b"", b"no driver")}, "driver_failed"),
        ({"metric": b"Traceback"}, "driver_failed"),
        ({"metric": Failed("amd-smi did not finish within 10 s")}, "driver_hung"),
        ({"static": [], "list": [], "metric": []}, "no_gpu"),
    ],
)
def test_not_working_here(answers: dict[str, Any], code: str) -> None:
    with pytest.raises(CollectorUnavailable) as caught:
        opened(**answers)
    assert caught.value.code == code


def test_failures_while_running() -> None:
    runner = Scripted()
    made = AmdSmiCollector(runner=runner)
    made.open()
    runner.answers["process"] = CommandFailed("amd-smi", 1, b"", b"denied")
    assert [problem.code for problem in made.read().problems] == ["processes_failed"]
    runner.answers["process"] = Failed("amd-smi did not finish within 10 s")
    with pytest.raises(CollectorFailed, match="did not finish"):
        made.read()
    made.skip(frozenset({0}))
    runner.answers["process"] = PROCESS
    assert [device.index for device in made.read().devices] == [1]


texts = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["N/A", "7"])
)
keys = st.sampled_from(
    ["gpu", "usage", "gfx_activity", "value", "unit", "power", "socket_power", "clock", "gfx_0", "clk", "vram", "size",
     "process_list", "process_info", "pid", "asic", "asic_serial", "bus", "bdf", "gpu_data", "driver", "version"]
)  # fmt: skip
documents = st.recursive(
    texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=20
)


@given(documents)
def test_any_json_gives_a_reading_or_a_failure(document: Any) -> None:
    try:
        entries = parse_entries(json.dumps(document).encode())
    except Failed:
        return
    facts = device_facts(entries, entries, entries)
    assert len({device.uuid for device in facts}) == len(facts)
    for device in facts:
        device_sample(entries[device.index], entries[device.index])
    uses(entries, [device.index for device in facts])


@given(st.binary(max_size=200))
def test_any_bytes_give_entries_or_a_failure(content: bytes) -> None:
    for parse in (parse_entries, parse_metric_csv):
        try:
            parse(b"gpu,usage\n0," + content)
            parse(content)
        except Failed:
            continue
