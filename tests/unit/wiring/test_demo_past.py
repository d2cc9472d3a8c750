"""The demo's past: what is counted is what was drawn."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from gpuherd.history.batch import DEVICE_METRICS, USE_MEASURES
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wiring.demo_herd import demo_herd
from gpuherd.wiring.demo_past import DemoPast

NOW = 1_790_000_123.0
DAY = 86_400.0


@pytest.fixture(scope="module")
def past() -> DemoPast:
    herd = demo_herd(8, epoch=NOW)
    types = {gpu.name: gpu.name for node in herd for gpu in node.scenario.gpus}
    return DemoPast(herd, {node.name: f"id-{node.name}" for node in herd}, types, now=NOW, days=6)


def test_hours_held_and_worked_are_those_of_the_stays(past: DemoPast) -> None:
    held: dict[str | None, float] = defaultdict(float)
    busy: dict[str | None, float] = defaultdict(float)
    gpu_seconds, busy_seconds = USE_MEASURES.index("gpu_seconds"), USE_MEASURES.index("busy_seconds")
    for _, batch in past.batches():
        uses = batch.uses
        for row, place in enumerate(uses.session):
            held[uses.keys[place].user] += uses.measures[row, gpu_seconds]
            busy[uses.keys[place].user] += uses.measures[row, busy_seconds]
    drawn_held: dict[str | None, float] = defaultdict(float)
    drawn_busy: dict[str | None, float] = defaultdict(float)
    for _, stay in past.stays:
        seconds = stay.end - max(stay.start, past.begins)
        drawn_held[stay.user] += seconds
        drawn_busy[stay.user] += seconds if stay.load >= 0.05 else 0.0
    assert held == pytest.approx(drawn_held)
    assert busy == pytest.approx(drawn_busy)
    assert len(held) > 5


def test_nobody_is_on_a_device_together_with_someone_else_and_all_of_it_is_past(past: DemoPast) -> None:
    by_device = defaultdict(list)
    for key, stay in past.stays:
        assert stay.start < stay.end <= NOW
        by_device[key].append(stay)
    for stays in by_device.values():
        ordered = sorted(stays, key=lambda stay: stay.start)
        assert all(a.end <= b.start for a, b in pairwise(ordered))


def test_what_runs_now_is_what_ran_last(past: DemoPast) -> None:
    going_on = [stay for _, stay in past.stays if stay.goes_on]
    assert going_on
    assert all(stay.end == NOW for stay in going_on)


def test_samples_say_what_the_stays_say(past: DemoPast) -> None:
    column = DEVICE_METRICS.index("utilization_gpu")
    by_key = defaultdict(list)
    for key, stay in past.stays:
        by_key[key].append(stay)
    seen = set()
    for _, batch in past.batches():
        samples = batch.devices
        assert len(samples) == len(samples.subject) == len(samples.state) == len(samples.values)
        assert np.all(samples.time < NOW)
        for row in range(0, len(samples), 997):
            key, time = samples.keys[samples.subject[row]], samples.time[row]
            if key.uuid.startswith("MIG-"):
                continue  # nobody has stays on slices
            present = next((s for s in by_key[key] if s.start <= time < s.end), None)
            state = DEVICE_STATES[samples.state[row]]
            expected = "free" if present is None else "busy" if present.load >= 0.05 else "held"
            assert state == expected
            assert (samples.values[row, column] > 0) == (expected == "busy")
            seen.add(state)
    assert seen == {"free", "busy", "held"}


def test_it_is_the_same_every_time() -> None:
    herd = demo_herd(2, epoch=NOW)
    types = {gpu.name: gpu.name for node in herd for gpu in node.scenario.gpus}
    ids = {node.name: node.name for node in herd}
    first, second = (DemoPast(herd, ids, types, now=NOW, days=2) for _ in range(2))
    for (_, a), (_, b) in zip(first.batches(), second.batches(), strict=True):
        assert np.array_equal(a.devices.values, b.devices.values, equal_nan=True)
        assert np.array_equal(a.uses.measures, b.uses.measures)
