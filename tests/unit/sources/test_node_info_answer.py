"""Answers of node_info.py become reports, and everything else a sentence."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from gpuherd.collect.scrub import scrub
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.node_info import check_status
from gpuherd.sources.node_info_answer import NodeInfo, read_answer

MIB = 2**20
GPU: dict[str, Any] = {
    "index": 1,
    "name": "NVIDIA A100-SXM4-40GB",
    "use_mem": 1024,
    "tot_mem": 40960,
    "utilize": 37,
    "temp": 41,
    "users": [
        {"pid": 123, "username": "bob", "mem(MiB)": 1000, "command": "python run.py --token hf_abcdefghij"}
    ],
}
ANSWER: dict[str, Any] = {
    "hostname": "node_1",
    "last_update": "2023-04-29T21:17:41.419592",
    "ips": [["eno1", "192.168.0.3"]],
    "gpus": [GPU],
}


def read(answer: object, **changes: Any) -> NodeInfo:
    body = json.dumps({**answer, **changes} if isinstance(answer, dict) else answer).encode()
    return read_answer(body, name="gpu01", node_id="gpu01", wall=1e9, scrub=scrub)


def test_every_field_of_the_readme_is_taken() -> None:
    info = read(ANSWER)
    report = info.report
    assert info.last_update == "2023-04-29T21:17:41.419592"
    assert report.facts.host.hostname == "node_1"
    assert [(a.interface, a.ip) for a in report.facts.host.addresses] == [("eno1", "192.168.0.3")]
    (facts,), (sample,) = report.facts.devices, report.sample.devices
    assert (facts.index, facts.name, facts.memory_total_bytes) == (1, "NVIDIA A100-SXM4-40GB", 40960 * MIB)
    assert facts.uuid == "gpu01-gpu1"
    assert (sample.memory_used_bytes, sample.utilization_gpu) == (1024 * MIB, 0.37)
    assert sample.temperature_celsius == 41
    (process,) = report.table.processes
    assert (process.pid, process.user) == (123, "bob")
    assert process.command is not None
    assert "hf_abc" not in process.command
    assert report.sample.uses[0].gpu_memory_bytes == 1000 * MIB
    assert report.sample.problems == ()
    assert report.mismatch() is None


def test_na_is_unknown_and_an_error_is_a_problem() -> None:
    report = read(
        ANSWER, gpus=[{**GPU, "temp": "[N/A]", "utilize": "[Unknown Error]", "use_mem": "[N/A]"}]
    ).report
    (sample,) = report.sample.devices
    assert sample == type(sample)()
    assert [problem.code for problem in report.sample.problems] == ["metric_failed"]


def test_without_a_list_of_users_nobody_can_say_that_a_gpu_is_free() -> None:
    report = read(ANSWER, gpus=[{key: value for key, value in GPU.items() if key != "users"}]).report
    assert [problem.code for problem in report.sample.problems] == ["processes_failed"]


def test_the_readme_of_the_tool_writes_index_twice_and_an_empty_key() -> None:
    body = json.dumps({**ANSWER, "": None}).encode().replace(b'"temp": 41', b'"temp": 41, "index": 1')
    assert (
        read_answer(body, name="gpu01", node_id="gpu01", wall=1e9, scrub=scrub).report.facts.devices[0].index
        == 1
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "garbled"),
        (b"<html>404</html>", "garbled"),
        (b'{"hostname": "node_1", "gpus": [{"index"', "garbled"),
        (b'{"gpus": 5}', "garbled"),
        (b'{"gpus": [1, 2]}', "no_data"),
        (b'{"gpus": [1, 2], "last_update": "2023"}', "garbled"),
        (b'{"message": "wrong password"}', "wrong_password"),
        (b'{"error": "\x1b[31mno"}', "garbled"),  # a raw control character is no JSON
        (b'{"hostname": null, "last_update": null, "ips": [], "gpus": []}', "no_data"),
        (b'{"gpus": ' + b"[" * 100_000, "garbled"),
        (b'{"hostname": "\xff\xfe", "gpus": []}', "garbled"),
        (b"[]", "garbled"),
        (b"8888", "garbled"),
    ],
    ids=range(13),
)
def test_bad_answers_name_the_node_and_the_reason(body: bytes, code: str) -> None:
    with pytest.raises(ContactFailed) as caught:
        read_answer(body, name="gpu01", node_id="gpu01", wall=1e9, scrub=scrub)
    assert caught.value.code == code
    assert "gpu01" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("status", "code"), [(404, "wrong_password"), (403, "wrong_password"), (500, "garbled"), (302, "garbled")]
)
def test_statuses(status: int, code: str) -> None:
    with pytest.raises(ContactFailed) as caught:
        check_status(status, "gpu01")
    assert caught.value.code == code
    assert caught.value.needs_person == (code == "wrong_password")
    check_status(200, "gpu01")


@pytest.mark.parametrize("is_distinct", [True, False])
def test_an_answer_at_the_cap_costs_the_hub_little(is_distinct: bool) -> None:
    """It is read on the loop that every other node waits for."""
    began = time.process_time()
    report = read(ANSWER, gpus=[{}] * 1_000_000).report
    assert "too_many_devices" in {problem.code for problem in report.sample.problems}
    users = [
        [{"pid": pid + 1000 * gpu * is_distinct, "command": f"a{pid} {gpu}"} for pid in range(1000)]
        for gpu in range(100)
    ]
    table = read(ANSWER, gpus=[{"users": listed} for listed in users]).report.table
    assert len(table.processes) == (4096 if is_distinct else 1000)
    assert time.process_time() - began < 6.0
