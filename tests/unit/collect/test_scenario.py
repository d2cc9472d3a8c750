"""Scenario files and waveforms in Python; that the C library agrees is tested in tests/integration/sim."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.scenario import (
    Fault,
    Latency,
    Noise,
    Ramp,
    Scenario,
    SimulatedGpu,
    SimulatedProcess,
    Sine,
    Square,
    Steps,
    Sum,
    dump_scenario,
    load_scenario,
    parse_scenario,
    quantised,
    value_at,
)
from gpuherd.collect.scenario.waves import Metric
from gpuherd.model.errors import Misconfigured

numbers = st.floats(-1e6, 1e6)
periods = st.floats(1e-3, 1e6)
times = st.floats(-1e7, 1e10)
leaves: st.SearchStrategy[Metric] = st.one_of(
    numbers,
    st.integers(-(2**53), 2**53),
    st.builds(Sine, mean=numbers, amplitude=numbers, period=periods, phase=numbers),
    st.builds(Square, low=numbers, high=numbers, period=periods, duty=st.floats(0, 1), phase=numbers),
    st.builds(Noise, mean=numbers, amplitude=numbers, period=periods, seed=st.integers(0, 2**53)),
    st.builds(Ramp, start=numbers, per_second=numbers),
    st.builds(
        Steps,
        steps=st.lists(st.tuples(numbers, st.none() | numbers), min_size=1).map(
            lambda steps: tuple(sorted(steps, key=lambda step: step[0]))
        ),
    ),
)
metrics = st.recursive(leaves, lambda inner: st.builds(Sum, parts=st.lists(inner, min_size=1).map(tuple)))


@given(metrics, times)
def test_every_metric_has_a_finite_value_or_none_and_survives_the_file(metric: Metric, t: float) -> None:
    scenario = Scenario(
        driver_version="1.0", gpus=(SimulatedGpu(uuid="GPU-0", name="Card", power_watts=metric),)
    )
    assert parse_scenario(dump_scenario(scenario), "test") == scenario
    value = value_at(metric, t)
    assert value is None or (math.isfinite(value) and 0 <= quantised(value * 1000) <= 2**63)


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        (None, {0: None}),
        (7, {0: 7.0, 99: 7.0}),
        (Sine(mean=10, amplitude=4, period=8), {0: 10.0, 2: 14.0, 6: 6.0}),
        (Sine(mean=10, amplitude=4, period=8, phase=0.25), {0: 14.0}),
        (Sine(mean=10, amplitude=4, period=8, minimum=7, maximum=12), {2: 12.0, 6: 7.0}),
        (Square(low=1, high=9, period=10, duty=0.3), {0: 9.0, 2.9: 9.0, 3: 1.0, 9.9: 1.0, 10: 9.0}),
        (Ramp(start=5, per_second=2), {0: 5.0, 10: 25.0}),
        (Steps(steps=((0, 1), (5, None), (8, 3))), {-1: 1.0, 0: 1.0, 4.9: 1.0, 5: None, 8: 3.0, 99: 3.0}),
        (Steps(steps=((0, 1), (5, 2)), repeat=10), {4: 1.0, 9: 2.0, 14: 1.0, 19: 2.0}),
        (Sum(parts=(1, Ramp(per_second=1), 2.5)), {0: 3.5, 4: 7.5}),
        (Sum(parts=(1, None)), {0: None}),
    ],
)
def test_waveforms(metric: Metric, values: dict[float, float | None]) -> None:
    for t, expected in values.items():
        found = value_at(metric, t)
        assert found is None if expected is None else found == pytest.approx(expected, abs=1e-9), t


@given(times, st.integers(0, 2**53))
def test_noise_stays_in_its_band_and_depends_only_on_seed_and_time(t: float, seed: int) -> None:
    noise = Noise(mean=50, amplitude=10, period=3, seed=seed)
    value = value_at(noise, t)
    assert value is not None
    assert 40 <= value <= 60
    assert value_at(msgspec.structs.replace(noise), t) == value


def test_noise_is_not_the_same_everywhere() -> None:
    values = {value_at(Noise(mean=0, amplitude=1, seed=seed), t) for seed in range(10) for t in range(10)}
    assert len(values) == 100


@pytest.mark.parametrize(("value", "expected"), [(0.5, 1), (1.49, 1), (2.5, 3), (-3, 0), (1e30, 2**63)])
def test_rounding(value: float, expected: int) -> None:
    assert quantised(value) == expected


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"driver_version": "1"', "truncated"),
        (b'{"gpus": []}', "driver_version"),
        (b'{"driver_version": "1", "gpus": [{"uuid": "GPU-0", "name": "C", "powr": 1}]}', r"powr.*gpus\[0\]"),
        (
            b'{"driver_version": "1", "gpus": [{"uuid": "GPU-0", "name": "C", "power_watts": "a lot"}]}',
            r"\$\.gpus\[\.*0?\.*\]\.power_watts",
        ),
        (
            b'{"driver_version": "1", "gpus": [{"uuid": "G", "name": "C", "power_watts": {"wave": "saw"}}]}',
            "saw.*power_watts",
        ),
        (b'{"driver_version": "1", "faults": [{"function": "*", "effect": "boom"}]}', "effect"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, content: bytes, place: str) -> None:
    path = tmp_path / "herd.json"
    path.write_bytes(content)
    with pytest.raises(Misconfigured, match=rf"herd\.json: .*{place}"):
        load_scenario(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"herd\.json: cannot read the scenario: No such file"):
        load_scenario(tmp_path / "herd.json")


def test_scenario_time() -> None:
    scenario = Scenario(driver_version="1")
    assert scenario.time(now=1010, started=1000) == 10
    assert msgspec.structs.replace(scenario, epoch=900).time(now=1010, started=1000) == 110
    assert msgspec.structs.replace(scenario, epoch=900, frozen_time=5).time(now=1010, started=1000) == 5


def test_who_is_alive_and_what_is_struck_when() -> None:
    process = SimulatedProcess(pid=1, alive_from=5, alive_until=8)
    fault = Fault(function="*", effect=15, active_from=5, active_until=8)
    assert [process.is_alive(t) for t in (4.9, 5, 7.9, 8)] == [False, True, True, False]
    assert [fault.is_active(t) for t in (4.9, 5, 7.9, 8)] == [False, True, True, False]


def test_which_calls_an_entry_concerns() -> None:
    power = Latency(function="nvmlDeviceGetPower*", gpu=1, seconds=1)
    assert power.concerns("nvmlDeviceGetPowerUsage", 1)
    assert not power.concerns("nvmlDeviceGetPowerUsage", 0)
    assert not power.concerns("nvmlDeviceGetPowerUsage", None)
    assert not power.concerns("nvmlDeviceGetName", 1)
    assert Latency(function="*", seconds=1).concerns("nvmlInit_v2", None)
