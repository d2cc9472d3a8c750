"""When something is sent, sent again, and settled."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from gpuherd.history.batch import Batch, SeriesKey
from gpuherd.history.journal import Journal
from gpuherd.history.outside.sink import OutsideSink, Sent
from gpuherd.model.errors import Failed
from support.history_stores import device_samples

RESEND = 60.0
KEY = SeriesKey("node", "GPU-1", "A")


class Store:
    """A server as a sender sees it."""

    place = "somewhere"

    def __init__(self) -> None:
        self.got: list[float] = []
        self.requests = 0
        self.is_away = False
        self.is_new_line = False
        self.refused = 0

    def send(self, batches: Sequence[Batch]) -> Sent:
        self.requests += 1
        if self.is_away:
            raise Failed("somewhere: nothing listens there")
        self.got += [time for batch in batches for time in batch.devices.time.tolist()]
        is_new_line, self.is_new_line = self.is_new_line, False
        return Sent(len(batches), self.refused, "too old" if self.refused else None, is_new_line)

    def close(self) -> None: ...


class Hub:
    """A journal with one sink and a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store()
        self.now = 1000.0
        self.count = 0
        (folder / "journal").mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        self.journal = Journal(self.folder / "journal", min_free_bytes=0, first_file=1)
        self.sink = OutsideSink(
            "outside",
            self.store,
            self.journal.files,
            self.folder / "outside.json",
            resend_seconds=RESEND,
            monotonic=lambda: self.now,
            uniform=lambda low, high: high,
        )

    def append(self, hour: int = 0) -> float:
        self.count += 1
        time = float(self.count)
        batch = replace(device_samples(KEY, np.array([time]), power_watts=1.0), written_at=hour * 3600.0 + 1)
        self.sink.take(batch, self.journal.append(batch))
        return time

    def tend(self) -> None:
        self.sink.tend(self.now, self.journal.open_file)

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.tend()


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


def test_everything_is_sent_in_order_and_once(hub: Hub) -> None:
    times = [hub.append(number // 3) for number in range(10)]
    hub.tend()
    assert hub.store.got == times
    hub.after(1)
    assert hub.store.got == times
    assert hub.sink.health().state == "ok"
    assert hub.sink.health().waiting_batches == 0


def test_what_waits_in_older_files_is_counted_after_a_restart(hub: Hub) -> None:
    hub.store.is_away = True
    for number in range(7):
        hub.append(number // 2)  # two to a file
    hub.tend()
    assert hub.sink.health().waiting_batches == 7
    hub.start()
    hub.append(9)
    for _ in range(4):  # a file a turn
        hub.after(60)
    assert hub.sink.health().waiting_batches == 8
    hub.store.is_away = False
    hub.after(60)
    assert (hub.store.got, hub.sink.health().waiting_batches) == ([1, 2, 3, 4, 5, 6, 7, 8], 0)


def test_a_file_is_settled_once_it_has_stayed_confirmed(hub: Hub) -> None:
    for hour in (0, 0, 1):
        hub.append(hour)
    first, open_file = hub.journal.files.paths()
    hub.tend()
    assert hub.sink.settled < open_file
    hub.append(1)
    hub.after(RESEND - 1)
    assert hub.sink.settled < open_file
    hub.after(100)  # nobody has answered since
    assert hub.sink.settled < open_file
    hub.append(1)
    hub.tend()
    assert hub.sink.settled == open_file
    hub.journal.remove_before(hub.sink.settled)
    assert first not in hub.journal.files.paths()


def test_after_it_was_away_the_last_that_it_had_confirmed_comes_again(hub: Hub) -> None:
    old = hub.append()
    hub.tend()
    hub.now += RESEND
    lately = hub.append()
    hub.tend()  # by now the old one is safe
    hub.store.is_away = True
    meanwhile = hub.append()
    hub.after(1)
    assert hub.sink.health().state == "failing"
    hub.store.is_away = False
    hub.store.got.clear()
    hub.after(100)
    assert old not in hub.store.got
    assert sorted(set(hub.store.got)) == [lately, meanwhile]
    assert hub.store.got.count(lately) == 1
    assert hub.sink.health().state == "ok"


def test_a_line_that_was_cut_while_idle_may_mean_a_restart(hub: Hub) -> None:
    first = hub.append()
    hub.tend()
    hub.store.is_new_line = True
    second = hub.append()
    hub.after(2)  # VictoriaMetrics closes each connection after two minutes, in order
    assert hub.store.got == [first, second]
    hub.store.is_new_line = True
    third = hub.append()
    hub.after(15)
    assert hub.store.got == [first, second, third, first, second, third]


def test_a_line_that_is_always_cut_does_not_keep_the_journal_for_ever(hub: Hub) -> None:
    for hour in range(80):
        hub.append(hour)
        hub.store.is_new_line = True
        hub.after(20)
    assert hub.sink.settled > hub.journal.open_file - 40


def test_it_is_asked_less_and_less_often_while_it_is_away(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    hub.store.is_away = True
    hub.append()
    with caplog.at_level(logging.WARNING):
        for _ in range(600):
            hub.after(1)
    assert 15 <= hub.store.requests <= 30  # every half a minute in the end
    assert len(caplog.records) == 1


def test_a_sink_that_begins_again_goes_on_where_it_was(hub: Hub) -> None:
    times = [hub.append(number) for number in range(4)]
    hub.tend()
    hub.now += RESEND
    times.append(hub.append(4))
    hub.tend()
    hub.store.got.clear()
    hub.start()
    times.append(hub.append(5))
    hub.tend()
    assert hub.store.got == times[4:]


@pytest.mark.parametrize("content", [b"", b"{", b'{"settled": "x"}', b"\xff\xfe"])
def test_a_spoilt_note_means_sending_all_again(hub: Hub, content: bytes) -> None:
    times = [hub.append(number) for number in range(3)]
    (hub.folder / "outside.json").write_bytes(content)
    hub.start()
    hub.append(4)
    hub.tend()
    assert hub.store.got[:3] == times


@pytest.mark.promise("damage-is-said")
def test_a_digit_that_has_changed_in_the_note_leaves_nothing_out(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    times = [hub.append(number) for number in range(3)]
    hub.tend()
    hub.append(3)
    hub.after(RESEND + 700)
    note = hub.folder / "outside.json"
    kept = msgspec.json.decode(note.read_bytes())
    assert kept["file"] > 0
    note.write_bytes(msgspec.json.encode({**kept, "settled": 90, "file": 90}))
    hub.store.got.clear()
    hub.store.is_away = True
    more = [hub.append(4), hub.append(5)]
    hub.start()
    hub.store.is_away = False
    hub.after(700)
    assert hub.store.got[-2:] == more
    assert "its checksum is wrong" in caplog.text
    assert set(hub.store.got) <= {*times, 4.0, *more}


def test_more_than_the_memory_holds_comes_from_the_files(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.history.outside.backlog.MAX_MEMORY_BYTES", 4000)
    hub.start()
    hub.store.is_away = True
    times = []
    for number in range(50):
        times.append(hub.append(number // 20))
        hub.tend()
    hub.store.is_away = False
    hub.after(60)
    assert hub.store.got == times


def test_what_it_refuses_for_good_is_counted_and_told_once(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.store.refused = 3
    hub.append()
    with caplog.at_level(logging.WARNING):
        hub.tend()
    assert hub.sink.refused_values == 3
    health = hub.sink.health()
    assert health.state == "ok"
    assert health.last_error == "somewhere refused 3 values for good: too old"
    hub.store.is_new_line = True
    hub.store.refused = 0
    hub.append()
    hub.now += 15
    hub.store.refused = 1
    hub.tend()
    # The one before is refused as well when it comes again, but that had been taken.
    assert hub.sink.refused_values in (4, 5)
