"""Posts of gpustat become reports; whatever else is posted is refused with a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.scrub import scrub
from gpuherd.model.errors import Refused
from gpuherd.sources.gpustat_json import GpustatPost, node_time, read_post

WALL = 1_600_000_200.0  # 2020-09-13T12:30:00Z
MIB = 2**20

PROCESS: dict[str, Any] = {
    "username": "alice",
    "command": "python",
    "full_command": ["/usr/bin/python", "train.py", "--api-key=s3cr3ts3cr3t"],
    "gpu_memory_usage": 4000,
    "cpu_percent": 150.0,
    "cpu_memory_usage": 2_000_000_000,
    "pid": 4242,
}
GPU: dict[str, Any] = {
    "index": 0,
    "uuid": "GPU-10fb0fbd-2696-43f3-467f-d280d906a107",
    "name": "GeForce GTX TITAN X",
    "temperature.gpu": 77,
    "fan.speed": 40,
    "utilization.gpu": 96,
    "utilization.enc": 0,
    "utilization.dec": 3,
    "power.draw": 210,
    "enforced.power.limit": 250,
    "memory.used": 11848,
    "memory.total": 12287,
    "processes": [PROCESS],
}
POST: dict[str, Any] = {
    "hostname": "gpu01",
    "driver_version": "470.82.01",
    "query_time": "2020-09-13T14:30:01.500000",
    "gpus": [GPU],
}


def read(post: object, **changes: Any) -> GpustatPost:
    body = json.dumps({**post, **changes} if isinstance(post, dict) else post).encode()
    return read_post(body, peer="192.0.2.7", wall=WALL, scrub=scrub)


def with_gpu(**changes: Any) -> GpustatPost:
    return read(POST, gpus=[{**GPU, **changes}])


def test_everything_gpustat_tells_is_taken() -> None:
    post = read(POST)
    report = post.report
    assert report.mismatch() is None
    (facts,), (sample,) = report.facts.devices, report.sample.devices
    assert (facts.uuid, facts.index, facts.name) == (GPU["uuid"], 0, "GeForce GTX TITAN X")
    assert facts.memory_total_bytes == 12287 * MIB
    assert sample.utilization_gpu == 0.96
    assert (sample.utilization_encoder, sample.utilization_decoder) == (0.0, 0.03)
    assert sample.memory_used_bytes == 11848 * MIB
    assert (sample.temperature_celsius, sample.power_watts, sample.power_limit_watts) == (77, 210, 250)
    assert sample.fan_ratio == 0.4
    (process,) = report.table.processes
    assert (process.pid, process.user) == (4242, "alice")
    assert report.sample.processes[0].cpu_cores == 1.5
    assert report.sample.processes[0].memory_bytes == 2_000_000_000
    assert report.sample.uses[0].gpu_memory_bytes == 4000 * MIB
    assert report.facts.host.hostname == "gpu01"
    assert report.facts.host.driver_version == "470.82.01"
    assert report.facts.host.addresses[0].ip == "192.0.2.7"
    assert report.sample.problems == ()


def test_secrets_leave_neither_the_report_nor_the_payload() -> None:
    post = read(POST)
    assert "s3cr3t" not in repr(post)
    assert post.report.table.processes[0].command is not None
    assert post.report.table.processes[0].command.startswith("/usr/bin/python train.py --api-key=")


def test_the_payload_is_what_was_posted() -> None:
    harmless = {**PROCESS, "full_command": ["python", "train.py"]}
    posted = {**POST, "gpus": [{**GPU, "processes": [harmless]}]}
    assert read(posted).payload == posted


def test_unknown_is_not_zero() -> None:
    metrics = [key for key in GPU if "." in key]
    report = with_gpu(**dict.fromkeys(metrics)).report
    (sample,) = report.sample.devices
    assert sample == type(sample)()
    assert report.facts.devices[0].memory_total_bytes is None


def test_numbers_of_any_size_are_harmless() -> None:
    post = read_post(
        json.dumps(POST).encode().replace(b'"memory.used": 11848', b'"memory.used": ' + b"9" * 4000),
        peer="192.0.2.7",
        wall=WALL,
        scrub=scrub,
    )
    assert post.report.sample.devices[0].memory_used_bytes is None
    assert post.payload["gpus"][0]["memory.used"] is None


def test_null_processes_make_the_gpu_unknown_but_do_not_freeze_the_old_page() -> None:
    post = with_gpu(processes=None)
    (problem,) = post.report.sample.problems
    assert (problem.code, problem.device_uuid) == ("processes_failed", GPU["uuid"])
    assert post.payload["gpus"][0]["processes"] == []


def test_what_draws_the_screen_is_no_compute_work() -> None:
    post = with_gpu(processes=[{**PROCESS, "command": "Xorg", "full_command": ["/usr/lib/xorg/Xorg"]}])
    assert post.report.table.uses[0].kind == "graphics"


def test_a_process_on_two_gpus_is_one_process() -> None:
    post = read(POST, gpus=[GPU, {**GPU, "index": 1, "uuid": "GPU-2"}])
    assert len(post.report.table.processes) == 1
    assert [(use.process, use.device) for use in post.report.table.uses] == [(0, 0), (0, 1)]


def test_a_lost_gpu_is_a_fault_and_its_neighbour_is_not() -> None:
    post = read(POST, gpus=[{**GPU, "utilization.gpu": "GPU is lost"}, {**GPU, "uuid": "GPU-2", "index": 1}])
    (problem,) = post.report.sample.problems
    assert (problem.code, problem.is_fault, problem.device_uuid) == ("gpu_lost", True, GPU["uuid"])


def test_two_gpus_with_one_id_are_shown_once() -> None:
    post = read(POST, gpus=[GPU, GPU])
    assert len(post.report.facts.devices) == 1
    assert post.report.sample.problems[0].code == "gpu_error"


def test_names_are_made_harmless() -> None:
    post = read(POST, hostname="gpu\x1b[2J01", gpus=[{**GPU, "name": "<b>\u202eevil\x00"}])
    assert post.payload["hostname"] == "gpu�[2J01"
    assert post.hostname == "gpu\x1b[2J01"  # as it came: whoever takes names refuses it
    assert post.report.facts.devices[0].name == "<b>�evil�"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"gpu01"',
        b"{}",
        b'{"hostname": "gpu01"}',
        b'{"hostname": "", "gpus": []}',
        b'{"hostname": 5, "gpus": []}',
        b'{"hostname": "gpu01", "gpus": {}}',
        b'{"hostname": "gpu01", "gpus": null}',
        b'{"hostname": "gpu01", "gpus": [{"memory.used": NaN}]}',
        b'{"hostname": "gpu\xff01", "gpus": []}',
        b"[" * 100_000,
        b'{"hostname": "gpu01", "gpus": ' + b"[" * 100_000,
        b"\x1b[31mError on querying NVIDIA devices\x1b[0m",
        b"hostname  Mon\n[0] GeForce | 77'C",
        b"\x00" * 1000,
    ],
    ids=range(18),
)
def test_what_gpustat_never_prints_is_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_post(body, peer="192.0.2.7", wall=WALL, scrub=scrub)
    assert caught.value.code == "garbled"
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def loosely(keys: Sequence[str], inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from(list(keys)), ANY_JSON | inner, max_size=6)


PROCESSES = st.lists(loosely(list(PROCESS), st.nothing()), max_size=3)
GPUS = st.lists(ANY_JSON | loosely(list(GPU), PROCESSES), max_size=4)


@given(st.text(min_size=1, max_size=200), GPUS, loosely(list(POST), st.nothing()))
def test_any_json_in_the_right_places_gives_a_report_or_a_refusal(
    hostname: str, gpus: list[Any], rest: dict[str, Any]
) -> None:
    try:
        body = json.dumps({**rest, "hostname": hostname, "gpus": gpus}).encode()
        post = read_post(body, peer="192.0.2.7", wall=WALL, scrub=scrub)
    except Refused:
        return
    assert post.report.mismatch() is None
    assert len({device.uuid for device in post.report.facts.devices}) == len(post.report.facts.devices)
    json.dumps(post.payload, allow_nan=False)


@pytest.mark.parametrize(
    ("query_time", "time"),
    [
        ("2020-09-13T12:30:02.500000", WALL + 2.5),  # the hub's own zone
        ("2020-09-13T14:30:02.500000", WALL + 2.5),  # two hours east
        ("2020-09-13T18:14:30", WALL - 30),  # Nepal, half a minute slow
        ("2020-09-13T12:37:00", None),  # seven minutes off: zone and clock cannot be told apart
        ("2019-09-13T12:30:00", None),
        ("0001-01-01T00:00:00", None),
        ("yesterday", None),
        (None, None),
        (12, None),
    ],
)
def test_the_clock_of_a_node_is_taken_if_it_is_plausible(query_time: object, time: float | None) -> None:
    assert node_time(query_time, WALL) == time
    assert read(POST, query_time=query_time).report.sample.time == (WALL if time is None else time)


def test_a_name_that_no_machine_has_is_refused() -> None:
    with pytest.raises(Refused, match="longer than 128"):
        read(POST, hostname="x" * 129)


def test_a_post_at_the_cap_costs_the_hub_little() -> None:
    gpus = [
        {"processes": [{"pid": 1000 * gpu + pid, "full_command": [f"a{gpu}-{pid}"]} for pid in range(1000)]}
        for gpu in range(25)
    ]
    began = time.process_time()
    post = read(POST, gpus=gpus)
    assert time.process_time() - began < 2.0
    assert sum(len(gpu["processes"]) for gpu in post.payload["gpus"]) == 4096
    assert (len(post.report.table.processes), post.report.table.omitted) == (4096, 25_000 - 4096)
