"""Answers to gpu_stats() become reports; hostile XML is refused before it does anything."""

from __future__ import annotations

import json
import time
from typing import Any
from xmlrpc.client import Fault, dumps

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.scrub import scrub
from gpuherd.model.reports import Report
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.xmlrpc_answer import StartTimes, elapsed_seconds, read_stats, returned_text

MIB = 2**20
WALL = 1_600_000_000.0
GPU: dict[str, Any] = {
    "memory_total": 16280.875,
    "memory_used": 1025.25,
    "memory_free": 15255.625,
    "utilization": 12,
    "temperature": 36,
    "model": "Tesla P100-PCIE-16GB",
}
PROCESS: dict[str, Any] = {
    "pid": 77,
    "process_name": "python3",
    "used_memory": 1015.0,
    "unit": "MiB",
    "userid": "carol",
    "time": "1 day, 2:03:04",
}
STATS: dict[str, Any] = {"gpus": [GPU], "procs": [[PROCESS]]}
BILLION_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(f'<!ENTITY lol{n} "{f"&lol{n - 1 if n > 1 else str()};" * 10}">' for n in range(1, 10))
    + "]><methodResponse><params><param><value><string>&lol9;</string></value></param></params></methodResponse>"
).encode()


def read(stats: object, starts: StartTimes | None = None, wall: float = WALL) -> Report:
    return read_stats(
        json.dumps(stats),
        name="gpu01",
        node_id="gpu01",
        wall=wall,
        scrub=scrub,
        starts=starts or StartTimes(),
    )


def test_everything_gpu_stats_tells_is_taken() -> None:
    report = read(STATS)
    (facts,), (sample,) = report.facts.devices, report.sample.devices
    assert (facts.uuid, facts.index, facts.name) == ("gpu01-gpu0", 0, "Tesla P100-PCIE-16GB")
    assert facts.memory_total_bytes == int(16280.875 * MIB)
    assert (sample.memory_used_bytes, sample.utilization_gpu) == (int(1025.25 * MIB), 0.12)
    assert sample.temperature_celsius == 36
    (process,) = report.table.processes
    assert (process.pid, process.user, process.command) == (77, "carol", "python3")
    assert process.started_at == WALL - (26 * 3600 + 3 * 60 + 4)
    assert report.sample.uses[0].gpu_memory_bytes == 1015 * MIB
    assert report.facts.host.hostname == "gpu01"
    assert report.mismatch() is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:00:07", 7),
        ("23:59:59", 86399),
        ("1 day, 0:00:00", 86400),
        ("12 days, 3:04:05", 12 * 86400 + 11045),
        ("-1 day, 23:59:59", None),
        ("soon", None),
        ("", None),
        (7, None),
        (None, None),
    ],
)
def test_run_times(text: object, seconds: int | None) -> None:
    assert elapsed_seconds(text) == seconds


def test_a_start_time_stays_while_the_process_does() -> None:
    starts = StartTimes()
    ticks = [("0:00:10", 0.0), ("0:00:14", 4.9), ("0:00:19", 8.1), ("0:00:01", 12.0)]
    found = [
        read({**STATS, "procs": [[{**PROCESS, "time": text}]]}, starts, WALL + after)
        .table.processes[0]
        .started_at
        for text, after in ticks
    ]
    assert found == [
        WALL - 10,
        WALL - 10,
        WALL - 10,
        WALL + 11,
    ]  # the last is another process with the same pid


@pytest.mark.parametrize(("unit", "size"), [("MiB", 2 * MIB), ("KiB", 2048), ("furlong", None), (None, None)])
def test_units(unit: object, size: int | None) -> None:
    report = read({**STATS, "procs": [[{**PROCESS, "used_memory": 2, "unit": unit}]]})
    assert report.sample.uses[0].gpu_memory_bytes == size


def test_na_is_unknown_and_an_error_is_a_problem() -> None:
    gpu = {**GPU, "utilization": "N/A", "temperature": "Unknown Error", "memory_used": None}
    report = read(
        {"gpus": [gpu], "procs": [[{**PROCESS, "used_memory": "N/A", "userid": None, "time": None}]]}
    )
    assert report.sample.devices[0].utilization_gpu is None
    assert report.sample.devices[0].memory_used_bytes is None
    assert report.sample.uses[0].gpu_memory_bytes is None
    assert report.table.processes[0].user is None
    assert [problem.code for problem in report.sample.problems] == ["metric_failed"]


@pytest.mark.parametrize("procs", [None, [], [None], "none"])
def test_without_a_list_of_processes_nobody_can_say_that_a_gpu_is_free(procs: object) -> None:
    assert [p.code for p in read({"gpus": [GPU], "procs": procs}).sample.problems] == ["processes_failed"]


@pytest.mark.parametrize("stats", [None, [], {}, {"gpus": None}, {"gpus": [5]}, "text"])
def test_other_json_is_garbled(stats: object) -> None:
    with pytest.raises(ContactFailed, match="gpu01") as caught:
        read(stats)
    assert caught.value.code == "garbled"


# -- XML -------------------------------------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t<>&\"'")))
def test_any_string_comes_through(text: str) -> None:
    if text.strip():
        assert returned_text(dumps((text,), methodresponse=True).encode(), "gpu01") == text


def test_a_fault_is_told() -> None:
    body = dumps(Fault(1, "<class 'psutil.NoSuchProcess'>:process no longer exists (pid=77)")).encode()
    with pytest.raises(ContactFailed, match=r"gpu_stats\(\) fails on gpu01: .*no longer exists") as caught:
        returned_text(body, "gpu01")
    assert caught.value.code == "no_data"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        b"\xff\xfe\x00garbage",
        b"<methodResponse><params><param><value><string>half",
        b"<methodResponse></methodResponse>",
        b"<a>" * 10_000,
        b"<methodResponse>" + b"<value/>" * 10_000 + b"</methodResponse>",
        BILLION_LAUGHS,
        BILLION_LAUGHS.decode().encode("utf-16"),
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b'<?xml version="1.0" encoding="utf-7"?><a>+ADw-</a>',
        b"<a>&undefined;</a>",
        b"<a>\x00</a>",
        "<a>�\x1b[31m".encode(),
    ],
    ids=range(14),
)
def test_hostile_xml_is_refused_at_once(body: bytes) -> None:
    began = time.thread_time()
    with pytest.raises(ContactFailed) as caught:
        returned_text(body, "gpu01")
    assert caught.value.code == "garbled"
    assert str(caught.value).isprintable()
    assert time.thread_time() - began < 1.0


@given(st.binary())
def test_any_bytes_give_a_string_or_a_sentence(body: bytes) -> None:
    said = ""
    try:
        returned_text(body, "gpu01")
    except ContactFailed as failure:
        said = str(failure)
    assert said.isprintable()


def test_a_list_of_very_many_gpus_costs_the_hub_little() -> None:
    text = json.dumps({"gpus": [{}] * 1_000_000, "procs": []})
    began = time.process_time()
    report = read_stats(text, name="a", node_id="a", wall=WALL, scrub=scrub, starts=StartTimes())
    assert "too_many_devices" in {problem.code for problem in report.sample.problems}
    assert time.process_time() - began < 4.0
