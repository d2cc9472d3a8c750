"""Marker, ticks, backoff, hub address and log limiter."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from gpuherd.agent.address import HubAddress
from gpuherd.agent.backoff import Backoff
from gpuherd.agent.known_devices import KnownDevices
from gpuherd.agent.marker import Marker, Position
from gpuherd.agent.said import SaidOnce
from gpuherd.agent.ticks import Slowness, Ticks
from gpuherd.model.errors import Misconfigured
from support.herd import gpu


def test_the_marker_is_shared() -> None:
    ours = Marker.create()
    theirs = Marker(os.dup(ours.fd))
    assert ours.position == Position("", 0, "")
    theirs.progress_of("nvml")(3, "nvmlDeviceGetTemperature")
    assert ours.position == Position("nvml", 3, "nvmlDeviceGetTemperature")
    theirs.note("a name of more than twenty-four letters", -1, "ü" * 100)
    assert ours.position.device == -1
    assert ours.position.call.startswith("ü" * 20)
    progress = theirs.progress_of("nvml")
    for device in range(3000):  # more than the table holds
        progress(device, "nvmlDeviceGetFanSpeed")
        assert ours.position == Position("nvml", device, "nvmlDeviceGetFanSpeed")
    beats = set()
    for _ in range(5):
        progress(7, "nvmlDeviceGetFanSpeed")
        assert ours.position == Position("nvml", 7, "nvmlDeviceGetFanSpeed")
        beats.add(ours.beat)
    assert len(beats) == 5, "the same call again is still a move"
    ours.close()
    theirs.close()


def test_ticks_keep_their_beat_and_never_catch_up() -> None:
    now = [100.0]
    ticks = Ticks(1.0, monotonic=lambda: now[0])
    waits = []
    for work_seconds in (0.25, 0.0, 0.9, 5.5, 0.25):
        now[0] += work_seconds
        waits.append(ticks.wait_seconds())
        now[0] += waits[-1]
    assert now[0] == 110.0, "5.5 s of work skipped five beats"
    assert waits == pytest.approx([0.75, 1.0, 0.1, 0.5, 0.75])


def test_a_beat_that_is_put_off_keeps_its_new_phase() -> None:
    now = [100.0]
    ticks = Ticks(1.0, monotonic=lambda: now[0])
    moments: list[float] = []
    for _ in range(5):
        if len(moments) == 2:
            ticks.interval_seconds = 4.0
            ticks.put_off(1.5)
        now[0] += ticks.wait_seconds()
        moments.append(now[0])
    assert moments == pytest.approx([101.0, 102.0, 107.5, 111.5, 115.5])


def test_a_slow_reading_makes_the_interval_longer_for_a_while() -> None:
    slowness = Slowness()
    assert slowness.interval_seconds(1.0) is None
    slowness.note(0.4)
    assert slowness.interval_seconds(1.0) is None
    slowness.note(10.5)
    assert (slowness.interval_seconds(1.0), slowness.is_lasting(1.0)) == (11.0, False)
    slowness.note(10.6)
    assert (slowness.interval_seconds(1.0), slowness.is_lasting(1.0)) == (11.0, True)
    assert slowness.interval_seconds(60.0) is None, "not slow for those who ask seldom"
    for _ in range(3):
        slowness.note(0.4)
    assert (slowness.interval_seconds(1.0), slowness.is_lasting(1.0)) == (None, False)
    slowness.note(500.0)
    assert slowness.interval_seconds(1.0) == 60.0, "whatever takes longer is silence"


def test_backoff_doubles_its_bound_and_starts_over() -> None:
    bounds = []

    def uniform(_: float, high: float) -> float:
        bounds.append(high)
        return high

    backoff = Backoff(uniform=uniform)
    waits = [backoff.next_seconds() for _ in range(8)]
    assert waits == bounds == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff.slow_seconds() == 120
    backoff.reset()
    assert backoff.next_seconds() == 1
    assert Backoff(uniform=lambda low, _: low).next_seconds() == 0.1, "never at once"


def test_addresses_are_made_from_one_url() -> None:
    address = HubAddress.parse("https://gpus.example.org/base/")
    assert address.agent_url == "wss://gpus.example.org:443/base/api/v1/agent"
    assert address.enroll_path == "/base/api/v1/enroll"
    assert address.url == "https://gpus.example.org:443/base"
    assert HubAddress.parse("http://[::1]:9400").url == "http://[::1]:9400"


@pytest.mark.parametrize(
    ("url", "is_exposed"),
    [
        ("https://gpus.example.org", False),
        ("http://localhost:1", False),
        ("http://127.8.8.8", False),
        ("http://[::1]", False),
        ("http://gpus.example.org", True),
        ("http://10.0.0.1", True),
    ],
)
def test_plain_http_off_this_machine_is_noticed(url: str, is_exposed: bool) -> None:
    assert HubAddress.parse(url).is_exposed is is_exposed


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gpus.example.org",
        "ftp://x",
        "http://",
        "http://h:99999",
        "http://h/?a=b",
        "http://h/#x",
        "http://[::1",
    ],
)
def test_bad_addresses_name_the_key_and_a_good_example(url: str) -> None:
    with pytest.raises(Misconfigured, match=r"agent\.hub_url"):
        HubAddress.parse(url)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(Misconfigured) as caught:
        HubAddress.parse("https://user:hunter2@gpus.example.org")
    assert "hunter2" not in str(caught.value)


def test_the_same_sentence_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    said = SaidOnce(logging.getLogger("test"), monotonic=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            said.say(logging.WARNING, "the hub is away")
        said.say(logging.WARNING, "something else")
        now[0] = 301.0
        said.say(logging.WARNING, "the hub is away")
    assert caplog.messages == ["the hub is away", "something else", "the hub is away (and 49 times before)"]
    for number in range(1000):
        said.say(logging.DEBUG, str(number))
    assert len(said._said) <= 64


def test_a_damaged_list_of_known_devices_is_as_good_as_none(tmp_path: Path) -> None:
    file = tmp_path / "devices"
    KnownDevices(file).save((gpu(0),))
    assert KnownDevices(file).load() == (gpu(0),)
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole.replace(b"GPU-0", b"\xc7PU-0")):
        file.write_bytes(damaged)
        assert KnownDevices(file).load() == ()
