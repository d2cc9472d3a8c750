"""rocm-smi: the parser against recordings of real cards, the collector against scripted answers."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.commands import CommandFailed
from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable, GpuReading
from gpuherd.collect.rocm_smi import RocmSmiCollector
from gpuherd.collect.rocm_smi.parsing import parse_cards
from gpuherd.model.errors import Failed, Unavailable

_beside = Path(__file__).parents[4] / "shared" / "fixtures"
RECORDED = Path(os.environ.get("GPUHERD_FIXTURES", _beside)) / "amd" / "influxdata__telegraf"
needs_fixtures = pytest.mark.skipif(
    not RECORDED.is_dir(), reason="no recordings of real cards: set GPUHERD_FIXTURES to their folder"
)


def recorded(name: str) -> GpuReading:
    return parse_cards((RECORDED / name).read_bytes())


@needs_fixtures
def test_recorded_mi100() -> None:
    reading = recorded("mi100_rocm571.json")
    assert [device.index for device in reading.devices] == list(range(6))
    first, sample = reading.devices[0], reading.samples[0]
    assert (first.uuid, first.vendor, first.pci_bus_id) == ("amd-at-0000:1e:00.0", "amd", "0000:1E:00.0")
    assert "MI100" in first.name
    assert (first.memory_total_bytes, sample.memory_used_bytes) == (34342961152, 6782976)
    assert (sample.temperature_celsius, sample.power_watts, sample.power_limit_watts) == (31, 39, 290)
    assert (sample.clock_sm_hertz, sample.clock_memory_hertz) == (3e8, 1.2e9)
    assert (sample.utilization_gpu, sample.utilization_memory, sample.fan_ratio) == (0.0, 0.0, None)
    assert reading.driver_version == "6.2.4"
    assert (reading.uses, reading.problems) == ((), ()), "its only process is on no GPU"


@needs_fixtures
def test_recorded_radeons() -> None:
    reading = recorded("rx6700xt_rocm612.json")
    assert reading.devices[0].name.startswith("Navi 22")
    assert (reading.devices[0].memory_total_bytes, reading.samples[0].memory_used_bytes) == (
        12868124672,
        1572745216,
    )
    assert reading.samples[0].clock_sm_hertz == 0.0
    reading = recorded("vega-10-XT.json")
    assert (reading.devices[0].uuid, reading.devices[0].name) == ("GPU-02150e7d042a1124", "AMD GPU")
    assert (reading.samples[0].fan_ratio, reading.samples[0].utilization_memory) == (0.13, None)


def card(**fields: str) -> dict[str, str]:
    return {"PCI Bus": "0000:04:00.0", "GPU use (%)": "5", **fields}


def test_processes_are_placed_where_there_is_one_gpu() -> None:
    system = {
        "PID28389": "llama, server, 1, 2353860608, 11011, 0",
        "PID7": "x, 0, 0, 0, 0",
        "PID8": "UNKNOWN",
    }
    reading = parse_cards(json.dumps({"card0": card(), "system": system}).encode())
    assert [(use.pid, use.device, use.gpu_memory_bytes) for use in reading.uses] == [(28389, 0, 2353860608)]
    two = {"card0": card(), "card1": card(**{"PCI Bus": "0000:05:00.0"}), "system": system}
    reading = parse_cards(json.dumps(two).encode())
    assert reading.uses == ()
    (problem,) = reading.problems
    assert (problem.code, problem.device_uuid) == ("processes_failed", None)
    assert "28389" in problem.message


@pytest.mark.parametrize("word", ["N/A", "", "None", "-5", "nan", "1e999", "999999999999", "\u0661"])
def test_words_that_are_no_values(word: str) -> None:
    names = ["GPU use (%)", "Temperature (Sensor edge) (C)", "Fan speed (%)", "sclk clock speed:"]
    reading = parse_cards(json.dumps({"card0": dict.fromkeys(names, word)}).encode())
    sample = reading.samples[0]
    assert (sample.utilization_gpu, sample.temperature_celsius, sample.fan_ratio) == (None, None, None)
    assert sample.clock_sm_hertz is None
    assert reading.devices[0].uuid == "amd-card-0"


@pytest.mark.parametrize(
    ("usage", "total", "used", "columns"),
    [
        ("65535", "17163091968", "11022336", ("utilization_gpu",)),
        ("101", "17163091968", "11022336", ("utilization_gpu",)),
        ("-1", "17163091968", "11022336", ("utilization_gpu",)),
        ("0", "17163091968", "18446744073709551615", ("memory_used_bytes",)),
        ("0", "17163091968", "17163091969", ("memory_used_bytes",)),
        ("0", "0", "11022336", ("memory_total_bytes",)),
        ("N/A", "17163091968", "11022336", None),
        ("100", "17163091968", "17163091968", None),
    ],
)
def test_values_that_cannot_be_are_failures(
    usage: str, total: str, used: str, columns: tuple[str, ...] | None
) -> None:
    values = {"GPU use (%)": usage, "VRAM Total Memory (B)": total, "VRAM Total Used Memory (B)": used}
    document = {"card0": values, "system": {"Driver version": "6.2"}}
    reading = parse_cards(json.dumps(document).encode())
    told = [(p.code, p.device_uuid, p.columns) for p in reading.problems]
    assert told == ([] if columns is None else [("metric_failed", "amd-card-0", columns)])


class Scripted:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        assert deadline_seconds > 0
        self.asked.append(list(arguments))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


def test_an_older_one_is_asked_for_everything() -> None:
    runner = Scripted(CommandFailed("rocm-smi", 2, b"", b"unrecognized arguments"), {"card3": card()})
    made = RocmSmiCollector(runner=runner)
    made.open()
    reading = made.read()
    assert [device.index for device in reading.devices] == [3]
    assert made.read().devices is reading.devices
    assert [asked[1] for asked in runner.asked] == ["--showid", "-a", "-a", "-a"]
    made.skip(frozenset({3}))
    assert made.read().devices == ()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Unavailable("there is no rocm-smi on this machine"), "no_driver"),
        (CommandFailed("rocm-smi", 1, b"", b"ERROR: GPU not found"), "driver_failed"),
        (b"WARNING: nothing here", "driver_failed"),
        (Failed("rocm-smi did not finish within 10 s"), "driver_hung"),
        ({"system": {}}, "no_gpu"),
    ],
)
def test_not_working_here(answer: Any, code: str) -> None:
    with pytest.raises(CollectorUnavailable) as caught:
        RocmSmiCollector(runner=Scripted(answer)).open()
    assert caught.value.code == code


def test_a_hang_while_running() -> None:
    runner = Scripted({"card0": card()})
    made = RocmSmiCollector(runner=runner)
    made.open()
    runner.answers = [Failed("rocm-smi did not finish within 10 s")]
    with pytest.raises(CollectorFailed) as caught:
        made.read()
    assert caught.value.code == "driver_hung"


values = st.one_of(st.none(), st.integers(), st.text(max_size=12), st.lists(st.text(max_size=3), max_size=2))
names = st.sampled_from(
    ["GPU use (%)", "Unique ID", "Serial Number", "PCI Bus", "Card series", "PID1", "PID22", "x"]
)


@given(
    st.dictionaries(
        st.sampled_from(["card0", "card1", "card9999", "cardx", "system"]),
        st.one_of(values, st.dictionaries(names, values, max_size=5)),
        max_size=4,
    )
)
def test_any_json_gives_a_reading(document: dict[str, Any]) -> None:
    reading = parse_cards(json.dumps(document).encode())
    assert len(reading.samples) == len(reading.devices) == len({device.uuid for device in reading.devices})


@given(st.binary(max_size=100))
def test_any_bytes_give_a_reading_or_a_failure(content: bytes) -> None:
    with suppress(Failed):
        parse_cards(content)


def test_names_of_rocm_3() -> None:
    card = {
        "Unique ID": "21b5140d8a7d4d62",
        "vram Total Memory (B)": "17163091968",
        "vram Total Used Memory (B)": "11022336",
        "Fan Speed (%)": "20",
        "sclk clock speed": "(852Mhz)",
        "mclk clock speed": "(167Mhz)",
        "GPU use (%)": "0",
    }
    reading = parse_cards(json.dumps({"card0": card}).encode())
    (facts,), (sample,) = reading.devices, reading.samples
    assert (facts.uuid, facts.memory_total_bytes) == ("GPU-21b5140d8a7d4d62", 17163091968)
    assert (sample.memory_used_bytes, sample.fan_ratio) == (11022336, 0.2)
    assert (sample.clock_sm_hertz, sample.clock_memory_hertz) == (852e6, 167e6)


@pytest.mark.parametrize("system", [{}, {"system": {}}, {"system": "N/A"}, {"system": None}])
def test_without_the_part_that_lists_processes_no_gpu_is_free(system: dict[str, Any]) -> None:
    reading = parse_cards(json.dumps({"card0": card(), **system}).encode())
    assert [(problem.code, problem.device_uuid) for problem in reading.problems] == [
        ("processes_failed", None)
    ]


def test_a_process_in_words_of_another_shape_leaves_no_gpu_free() -> None:
    document = {"card0": {"GPU use (%)": "0"}, "system": {"PID77": "python, many"}}
    assert [problem.code for problem in parse_cards(json.dumps(document).encode()).problems] == [
        "processes_failed"
    ]
