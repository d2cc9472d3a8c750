"""Stores outside that are killed, frozen, away for long or refuse: nothing is lost that they would take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.batch import SeriesKey
from gpuherd.history.deadline import due_at
from gpuherd.history.outside.promql import ALIVE_SECONDS
from gpuherd.history.outside.server import Unanswered
from gpuherd.history.outside.sink import OutsideSink
from support.history_stores import (
    Store,
    device_samples,
    outside_store,
    prometheus_settings,
    victoria_settings,
)
from support.metric_server import MetricServer
from support.prometheus import running_prometheus, why_no_prometheus
from support.running import eventually
from support.victoria_metrics import running_victoria_metrics, why_no_victoria_metrics

START = math.floor(time.time() / 7200 - 2) * 7200.0
KEY = SeriesKey("node", "GPU-1", "H100 80GB")
TIMES = START + 10.0 * np.arange(60)
WATTS = np.round(np.random.default_rng(1).uniform(50, 700, 60), 1)


@pytest.fixture(params=["victoriametrics", "prometheus"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MetricServer]:
    folder = tmp_path / "server"
    folder.mkdir()
    why_not = {"victoriametrics": why_no_victoria_metrics, "prometheus": why_no_prometheus}[request.param]()
    if why_not is not None:
        pytest.skip(why_not)
    running = running_victoria_metrics if request.param == "victoriametrics" else running_prometheus
    with running(folder) as server:
        yield server


@pytest.fixture
def store(server: MetricServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    is_victoria = "victoriametrics" in request.node.name
    settings = (victoria_settings if is_victoria else prometheus_settings)(server)
    folder = tmp_path / "history"
    folder.mkdir()
    with outside_store(folder, server, settings) as store:
        yield store


def seen(store: Store) -> list[float]:
    store.settle()
    answer = store.read(KEY, metrics=("power_watts",), start=START, end=START + 600)
    return [round(value, 3) for value in answer.subjects[0].mean[:, 0].tolist()]


def delivered(store: Store) -> list[float]:
    store.deliver()
    return seen(store)


def test_what_it_had_confirmed_when_it_was_killed_is_sent_again(store: Store, server: MetricServer) -> None:
    for first in range(0, 40, 10):
        store.historian.append(
            device_samples(KEY, TIMES[first : first + 10], power_watts=WATTS[first : first + 10])
        )
        store.tend_all()
    server.kill()
    server.start()
    store.historian.append(device_samples(KEY, TIMES[40:], power_watts=WATTS[40:]))
    store.deliver()
    assert seen(store) == WATTS.tolist()


@pytest.mark.promise("frozen-store-fails-soon")
def test_a_frozen_server_stops_neither_writing_nor_reading_of_the_journal(
    store: Store, server: MetricServer
) -> None:
    store.append(device_samples(KEY, TIMES[:20], power_watts=WATTS[:20]))
    with server.frozen():
        store.historian.append(device_samples(KEY, TIMES[20:40], power_watts=WATTS[20:40]))
        assert store.sink.health().state == "ok", "writing does not ask the server"
        with due_at(time.monotonic() + 0.5):
            store.historian.tend()
        health = store.sink.health()
        assert (health.state, health.waiting_batches) == ("failing", 1)
        assert health.last_error is not None
        assert "no response in time" in health.last_error
        assert store.historian.journal_health().state == "ok"
    store.historian.append(device_samples(KEY, TIMES[40:], power_watts=WATTS[40:]))
    store.deliver()
    assert seen(store) == WATTS.tolist()
    assert store.sink.health().state == "ok"


@pytest.mark.promise("frozen-store-fails-soon")
def test_a_frozen_server_is_given_up_long_before_one_at_work(
    server: MetricServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert ALIVE_SECONDS < 5
    patience = 10 * ALIVE_SECONDS
    is_victoria = "victoriametrics" in request.node.name
    settings = (victoria_settings if is_victoria else prometheus_settings)(server, timeout_seconds=patience)
    with outside_store(tmp_path, server, settings) as store:
        store.append(device_samples(KEY, TIMES, power_watts=WATTS))
        assert seen(store) == WATTS.tolist()
        with server.frozen():
            began = time.monotonic()
            with pytest.raises(Unanswered, match="no response in time"):
                store.read(KEY, metrics=("power_watts",), start=START, end=START + 600)
            assert time.monotonic() - began < patience / 2
        assert seen(store) == WATTS.tolist()


def test_a_day_of_absence_and_a_hub_that_is_killed_meanwhile(
    store: Store, server: MetricServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuherd.history.outside.backlog.MAX_MEMORY_BYTES", 3000)
    server.stop()
    hour = START - 86_400
    for number in range(60):
        batch = device_samples(KEY, TIMES[number : number + 1], power_watts=WATTS[number])
        store.historian.append(
            replace(batch, written_at=hour + number * 1440)
        )  # an hour is a file of the journal
        if number % 13 == 0:
            store.historian.tend()
        if number == 30:
            store.open()  # without having been closed
    assert store.historian.journal_health().state == "ok"
    assert len(store.historian._opened.files.paths()) >= 24
    server.start()
    eventually(lambda: delivered(store), lambda values: values == WATTS.tolist())


def test_what_prometheus_will_never_take_is_dropped_and_told(tmp_path: Path) -> None:
    if (reason := why_no_prometheus()) is not None:
        pytest.skip(reason)
    folders = [tmp_path / "server", tmp_path / "history"]
    for folder in folders:
        folder.mkdir()
    with (
        running_prometheus(folders[0], out_of_order=None) as server,
        outside_store(folders[1], server, prometheus_settings(server)) as store,
    ):
        store.append(device_samples(KEY, TIMES[30:50], power_watts=WATTS[30:50]))
        late = device_samples(KEY, TIMES[:30], power_watts=WATTS[:30])
        other = device_samples(KEY._replace(uuid="GPU-2"), TIMES, power_watts=WATTS)
        store.append(late, other, device_samples(KEY, TIMES[50:], power_watts=WATTS[50:]))
        sink = store.sink
        assert isinstance(sink, OutsideSink)
        assert sink.refused_values == 60  # thirty numbers and the states with them
        health = sink.health()
        assert health.state == "ok"
        assert health.last_error is not None
        assert "out of order" in health.last_error
        answer = store.read(
            KEY, KEY._replace(uuid="GPU-2"), metrics=("power_watts",), start=START, end=START + 600
        )
        first, second = (subject.mean[:, 0] for subject in answer.subjects)
        assert np.isnan(first[:30]).all()
        assert first[30:] == pytest.approx(WATTS[30:])
        assert second == pytest.approx(WATTS)
