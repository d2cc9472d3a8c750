"""Every store of samples answers alike: our own files, VictoriaMetrics, and Prometheus by remote write."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuherd.history.batch import NOT_JUDGED, Batch, SeriesKey
from gpuherd.history.store import MAX_POINTS
from gpuherd.model.devices import DEVICE_STATES
from support.history_stores import (
    Numbers,
    Store,
    device_samples,
    embedded_store,
    host_samples,
    outside_store,
    prometheus_settings,
    victoria_settings,
)
from support.metric_server import MetricServer
from support.prometheus import running_prometheus, why_no_prometheus
from support.victoria_metrics import running_victoria_metrics, why_no_victoria_metrics

INTERVAL = 10.0
START = math.floor(time.time() / 7200 - 2) * 7200.0
"""Begins a step of any length that is asked for here, two to four hours ago."""
BUSY, HELD, FREE = (DEVICE_STATES.index(state) for state in ("busy", "held", "free"))


@pytest.fixture(scope="module", params=["embedded", "victoriametrics", "prometheus"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    why_not = {"victoriametrics": why_no_victoria_metrics, "prometheus": why_no_prometheus}
    if name in why_not and (reason := why_not[name]()) is not None:
        pytest.skip(reason)
    return name


@pytest.fixture(scope="module")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetricServer | None]:
    """Run the server that belongs to the store, once: every test has devices of its own."""
    with ExitStack() as stack:
        if kind == "victoriametrics":
            yield stack.enter_context(running_victoria_metrics(tmp_path_factory.mktemp("victoria")))
        elif kind == "prometheus":
            yield stack.enter_context(running_prometheus(tmp_path_factory.mktemp("prometheus")))
        else:
            yield None


@pytest.fixture
def store(kind: str, server: MetricServer | None, tmp_path: Path) -> Iterator[Store]:
    with ExitStack() as stack:
        if server is None:
            yield stack.enter_context(embedded_store(tmp_path))
        elif kind == "victoriametrics":
            yield stack.enter_context(outside_store(tmp_path, server, victoria_settings(server)))
        else:
            yield stack.enter_context(outside_store(tmp_path, server, prometheus_settings(server)))


@pytest.fixture
def node(request: pytest.FixtureRequest) -> str:
    """Name a node that no other test has."""
    return str(request.node.name).partition("[")[0]


def every(interval: float, count: int, start: float = START) -> Numbers:
    return start + interval * np.arange(count)


def watts(count: int, seed: int = 1) -> Numbers:
    return np.round(np.random.default_rng(seed).uniform(50, 700, count), 1)


def split(batch: Batch, *places: int) -> list[Batch]:
    """Give the rows of a batch in several, cut at places."""
    rows = np.arange(len(batch.devices))
    return [rows_of(batch, part) for part in np.split(rows, places)]


def rows_of(batch: Batch, rows: NDArray[np.int64]) -> Batch:
    devices = batch.devices
    return replace(
        batch,
        devices=replace(
            devices,
            subject=devices.subject[rows],
            time=devices.time[rows],
            values=devices.values[rows],
            state=devices.state[rows],
        ),
    )


def close_to(expected: Numbers, **more: float) -> object:
    return pytest.approx(expected, nan_ok=True, rel=1e-6, **more)


def test_samples_come_back_as_they_were(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "H100 80GB")
    times, power = every(INTERVAL, 60), watts(60)
    memory = np.arange(60) * 2.0**30
    store.append(device_samples(key, times, power_watts=power, memory_used_bytes=memory, utilization_gpu=0.5))
    answer = store.read(
        SeriesKey(node, "GPU-1"),
        metrics=("memory_used_bytes", "power_watts", "utilization_gpu"),
        start=START,
        end=START + 600,
    )
    assert (answer.step_seconds, answer.resolution) == (INTERVAL, "raw")
    assert answer.times == pytest.approx(times)
    (subject,) = answer.subjects
    assert (subject.key.node_id, subject.key.uuid) == (node, "GPU-1")
    expected = np.column_stack([memory, power, np.full(60, 0.5)])
    assert subject.mean == close_to(expected)
    assert subject.low == close_to(expected)
    assert subject.high == close_to(expected)
    assert subject.states is None
    assert answer.missing == ()


def test_steps_tell_mean_least_and_greatest(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "H100 80GB")
    power = watts(360)
    store.append(*split(device_samples(key, every(INTERVAL, 360), power_watts=power), 7, 100, 200))
    answer = store.read(key, metrics=("power_watts",), start=START, end=START + 3600, max_points=12)
    assert answer.step_seconds == 300
    assert answer.times == pytest.approx(START + 300.0 * np.arange(12))
    parts = power.reshape(12, 30)
    (subject,) = answer.subjects
    # A mean that is kept may be rounded to a tenth of what sensors resolve.
    assert subject.mean[:, 0] == close_to(parts.mean(axis=1), abs=0.01)
    assert subject.low[:, 0] == close_to(parts.min(axis=1))
    assert subject.high[:, 0] == close_to(parts.max(axis=1))


def test_a_sample_is_in_the_step_that_begins_with_it(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "H100 80GB")
    times = START + np.array([299.999, 300.0, 599.999, 600.0])
    store.append(device_samples(key, times, power_watts=np.array([100.0, 200.0, 300.0, 400.0])))
    answer = store.read(key, metrics=("power_watts",), start=START, end=START + 900, max_points=3)
    (subject,) = answer.subjects
    assert subject.low[:, 0] == close_to(np.array([100.0, 200.0, 400.0]))
    assert subject.high[:, 0] == close_to(np.array([100.0, 300.0, 400.0]))


def test_gaps_are_gaps(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "H100 80GB")
    times, power = every(INTERVAL, 180), watts(180)
    is_there = np.ones(180, bool)
    is_there[20:23] = is_there[60:80] = is_there[100:140] = False
    store.append(device_samples(key, times[is_there], power_watts=power[is_there]))
    answer = store.read(key, metrics=("power_watts",), start=START, end=START + 1800)
    assert answer.step_seconds == INTERVAL
    assert answer.subjects[0].mean[:, 0] == close_to(np.where(is_there, power, np.nan))
    coarse = store.read(key, metrics=("power_watts",), start=START, end=START + 1800, max_points=30)
    assert coarse.step_seconds == 60
    is_step = is_there.reshape(30, 6).any(axis=1)
    assert np.isfinite(coarse.subjects[0].mean[:, 0]).tolist() == is_step.tolist()


def test_samples_that_come_unevenly_make_no_gaps(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "H100 80GB")
    times = every(INTERVAL, 180) + np.random.default_rng(2).uniform(0, 4, 180).round(3)
    times[1:] -= 3  # around the beginning of a step
    store.append(device_samples(key, times, power_watts=100.0))
    answer = store.read(key, metrics=("power_watts",), start=START, end=START + 1800)
    assert INTERVAL <= answer.step_seconds <= 3 * INTERVAL
    assert np.isfinite(answer.subjects[0].mean).all()


def test_unknown_numbers_stay_unknown(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "H100 80GB")
    power = watts(30)
    power[::3] = np.nan
    store.append(device_samples(key, every(INTERVAL, 30), power_watts=power, temperature_celsius=40.0))
    answer = store.read(
        key, metrics=("power_watts", "temperature_celsius", "fan_ratio"), start=START, end=START + 300
    )
    mean = answer.subjects[0].mean
    assert mean[:, 0] == close_to(power)
    assert mean[:, 1] == close_to(np.full(30, 40.0))
    assert np.isnan(mean[:, 2]).all()


def test_several_devices_in_the_order_asked_for(store: Store, node: str) -> None:
    other = f"{node}-other"
    keys = [SeriesKey(node, "GPU-1", "A"), SeriesKey(node, "GPU-2", "A"), SeriesKey(other, "GPU-1", "B")]
    times = every(INTERVAL, 30)
    store.append(*(device_samples(key, times, power_watts=100.0 + number) for number, key in enumerate(keys)))
    nobody = SeriesKey(node, "GPU-none")
    asked = (keys[2], nobody, keys[0])
    answer = store.read(*asked, metrics=("power_watts",), start=START, end=START + 300)
    assert [subject.key[:2] for subject in answer.subjects] == [key[:2] for key in asked]
    third, none, first = answer.subjects
    assert third.mean == close_to(np.full((30, 1), 102.0))
    assert first.mean == close_to(np.full((30, 1), 100.0))
    assert none.mean.shape == (30, 1)
    assert np.isnan(none.mean).all()


def test_hosts_are_apart_from_devices(store: Store, node: str) -> None:
    times = every(INTERVAL, 30)
    load = np.round(np.linspace(0, 30, 30), 2)
    store.append(
        host_samples(SeriesKey(node), times, cpu_ratio=0.25, load_1m=load),
        device_samples(SeriesKey(node, "GPU-1", "A"), times, power_watts=100.0),
    )
    answer = store.read(SeriesKey(node), metrics=("cpu_ratio", "load_1m"), start=START, end=START + 300)
    assert answer.subjects[0].mean == close_to(np.column_stack([np.full(30, 0.25), load]))


def test_states_are_told_in_seconds(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "A")
    states = np.array([BUSY] * 60 + [HELD] * 30 + [NOT_JUDGED] * 30 + [FREE] * 60)
    store.append(device_samples(key, every(INTERVAL, 180), state=states.tolist(), power_watts=100.0))
    answer = store.read(
        key, metrics=("power_watts",), start=START, end=START + 1800, max_points=6, with_states=True
    )
    seconds = answer.subjects[0].states
    assert seconds is not None
    assert seconds.shape == (6, len(DEVICE_STATES))
    expected = np.zeros((6, len(DEVICE_STATES)))
    expected[[0, 1], BUSY] = expected[2, HELD] = expected[[4, 5], FREE] = 300
    # A sample may stand for the time before it or after it.
    assert seconds == close_to(expected, abs=INTERVAL)


def test_a_sample_that_comes_again_changes_nothing(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "A")
    power = watts(90)
    batch = device_samples(key, every(INTERVAL, 90), state=BUSY, power_watts=power)
    first, second = split(batch, 50)
    store.append(first, second)
    store.append(first, rows_of(batch, np.arange(37, 61)))
    answer = store.read(
        key, metrics=("power_watts",), start=START, end=START + 900, max_points=3, with_states=True
    )
    (subject,) = answer.subjects
    assert subject.mean[:, 0] == close_to(power.reshape(3, 30).mean(axis=1), abs=0.01)
    assert subject.states is not None
    assert subject.states[:, BUSY] == close_to(np.full(3, 300.0), abs=INTERVAL)


def test_late_samples_land_in_their_place(store: Store, node: str) -> None:
    key, other = SeriesKey(node, "GPU-1", "A"), SeriesKey(node, "GPU-2", "A")
    times, power = every(INTERVAL, 180), watts(180)
    batch = device_samples(key, times, power_watts=power)
    early, middle, late = split(batch, 60, 120)
    store.append(late, device_samples(other, times, power_watts=1.0))
    store.append(early)
    shuffled = np.random.default_rng(3).permutation(60)
    store.append(rows_of(middle, shuffled))
    answer = store.read(key, metrics=("power_watts",), start=START, end=START + 1800)
    assert answer.subjects[0].mean[:, 0] == close_to(power)


@pytest.mark.parametrize(
    "name",
    [
        'quo"ted',
        "back\\slash",
        "a=b,c d",
        "per%cent %0A",
        "line\nend",
        "a|b.*",
        "größe-熊",
        "{}[]()",
        "'",
        "tab\there",
    ],
)
def test_any_name_is_only_a_name(store: Store, node: str, name: str) -> None:
    key = SeriesKey(f"{node}-{name}", f"GPU-{name}", f"type {name}")
    decoy = SeriesKey(f"{node}-other", "GPU-other", "type")
    times = every(INTERVAL, 12)
    store.append(device_samples(key, times, power_watts=123.0), device_samples(decoy, times, power_watts=5.0))
    for asked in ((key,), (decoy, key)):
        answer = store.read(*asked, metrics=("power_watts",), start=START, end=START + 120)
        assert answer.subjects[-1].mean == close_to(np.full((12, 1), 123.0))


def test_what_was_taken_is_there_after_a_restart(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "A")
    power = watts(60)
    first, second, third = split(device_samples(key, every(INTERVAL, 60), power_watts=power), 20, 40)
    store.append(first)
    store.historian.append(second)  # and the hub ends before it is sent or sealed
    store.close()
    store.open()
    store.append(third)
    answer = store.read(key, metrics=("power_watts",), start=START, end=START + 600)
    assert answer.subjects[0].mean[:, 0] == close_to(power)


def test_a_range_of_ten_years_is_answered_within_bounds(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "A")
    store.append(device_samples(key, every(INTERVAL, 360), state=BUSY, power_watts=100.0))
    answer = store.read(
        key,
        metrics=("power_watts",),
        start=START - 10 * 365 * 86_400,
        end=START + 3600,
        max_points=100_000,
        with_states=True,
    )
    assert len(answer.times) <= MAX_POINTS
    (subject,) = answer.subjects
    known = np.flatnonzero(np.isfinite(subject.mean[:, 0]))
    assert known.tolist() in ([len(answer.times) - 1], [len(answer.times) - 2, len(answer.times) - 1])
    assert subject.mean[known, 0] == close_to(np.full(len(known), 100.0))


def test_a_range_without_anything(store: Store, node: str) -> None:
    answer = store.read(
        SeriesKey(node, "GPU-1"), metrics=("power_watts",), start=START, end=START + 3600, with_states=True
    )
    assert np.isnan(answer.subjects[0].mean).all()
    assert answer.subjects[0].states is not None
    assert not answer.subjects[0].states.any()


def test_a_metric_that_there_is_not_is_unknown(store: Store, node: str) -> None:
    key = SeriesKey(node, "GPU-1", "A")
    store.append(device_samples(key, every(INTERVAL, 30), power_watts=100.0))
    answer = store.read(key, metrics=("horse_power", "power_watts"), start=START, end=START + 300)
    assert answer.subjects[0].mean == close_to(np.column_stack([np.full(30, np.nan), np.full(30, 100.0)]))


def test_several_ask_at_once(store: Store, node: str) -> None:
    keys = [SeriesKey(node, f"GPU-{number}", "A") for number in range(8)]
    times = every(INTERVAL, 60)
    store.append(*(device_samples(key, times, power_watts=100.0 + number) for number, key in enumerate(keys)))

    def ask(number: int) -> float:
        answer = store.read(keys[number], metrics=("power_watts",), start=START, end=START + 600)
        return float(answer.subjects[0].mean.mean())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == pytest.approx([100.0 + number for number in range(8)])
