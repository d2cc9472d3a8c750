"""Dropped CSV files become reports, as far as they go."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.scrub import scrub
from gpuherd.model.reports import Report
from gpuherd.sources.drop_csv import DropReading, lines_of, read_drop, start_time
from gpuherd.sources.drop_host import read_host
from gpuherd.sources.following import ContactFailed

MIB = 2**20
WALL = 1_600_000_200.0  # 2020-09-13T12:30:00Z; the node is two hours east
GPUS = b"""\
0, GPU-aaaa, Tesla M40 24GB, 11, 22945, 0, 0, 30, 2020/09/13 14:29:30.100
1, GPU-bbbb, Tesla M40 24GB, 20000, 22945, 98, 60, 71, 2020/09/13 14:29:30.101
0, GPU-aaaa, Tesla M40 24GB, 12, 22945, 1, 0, 31, 2020/09/13 14:29:50.100
1, GPU-bbbb, Tesla M40 24GB, 21000, 22945, 99, 61, 72, 2020/09/13 14:29:50.101
"""
PROCESSES = b"""\
2020/09/13 14:29:25.900, GPU-bbbb, 19000, /usr/bin/old, 400
2020/09/13 14:29:45.900, GPU-bbbb, 20000, /opt/my, odd/python, 500
2020/09/13 14:29:45.950, GPU-bbbb, 900, /usr/bin/python, 600
2020/09/13 14:29:45.950, GPU-aaaa, [N/A], /usr/bin/python, 700
"""
USERS = b"""\
{"600": ["601"], "650": ["700"]}
  500 alice    Sun Sep 13 10:00:05 2020
  601 bob      Sat Sep 12 23:59:59 2020
  650 carol    Sun Sep  6 01:02:03 2020
"""
STATUS = b"""\
/dev/sda1 103081248 45123456 52345678  47% /
Mem:         257763      123456       10000         123      124307      130000
64
 14:29:55 up 10 days,  3:04,  5 users,  load average: 12.52, 10.58, 9.59
"""
FILES = {"gpus": GPUS, "processes": PROCESSES, "users": USERS, "status": STATUS, "cpus": b"12;64\n"}


def read(**changes: Any) -> DropReading:
    files = {kind: content for kind, content in {**FILES, **changes}.items() if content is not None}
    return read_drop(files, host="gpu01", wall=WALL, interval_seconds=20.0, scrub=scrub)


def report(**changes: Any) -> Report:
    found = read(**changes).report
    assert found.mismatch() is None
    return found


def test_the_newest_block_counts() -> None:
    reading = read()
    assert reading.stamped_at == WALL + 7200 - 10 + 0.101
    facts, samples = reading.report.facts.devices, reading.report.sample.devices
    assert [(f.uuid, f.index, f.name) for f in facts] == [
        ("GPU-aaaa", 0, "Tesla M40 24GB"),
        ("GPU-bbbb", 1, "Tesla M40 24GB"),
    ]
    assert facts[0].memory_total_bytes == 22945 * MIB
    assert [s.memory_used_bytes for s in samples] == [12 * MIB, 21000 * MIB]
    assert [(s.utilization_gpu, s.utilization_memory) for s in samples] == [(0.01, 0.0), (0.99, 0.61)]
    assert [s.temperature_celsius for s in samples] == [31, 72]
    assert reading.report.sample.problems == ()


def test_processes_belong_to_gpus_by_uuid_and_to_owners_by_pid() -> None:
    found = report()
    processes = found.table.processes
    assert [(p.pid, p.command) for p in processes] == [
        (500, "/opt/my,odd/python"),
        (600, "/usr/bin/python (ended; its children still run: 601)"),
        (700, "/usr/bin/python"),
    ]
    assert [use.device for use in found.table.uses] == [1, 1, 0]
    assert [use.gpu_memory_bytes for use in found.sample.uses] == [20000 * MIB, 900 * MIB, None]
    assert [p.user for p in processes] == ["alice", "bob", "carol"]  # by itself, by a child, by a parent
    assert [p.is_gone for p in processes] == [False, True, True]
    assert processes[0].started_at == WALL - 16195  # 10:00:05 two hours east is 08:00:05 UTC
    assert processes[1].started_at == WALL - 52201, "its child's"
    assert processes[2].started_at is None, "it is younger than its parent"


def test_of_many_children_some_are_named() -> None:
    children = ", ".join(f'"{pid}"' for pid in range(1000, 1100))
    users = "".join(f"{pid} bob Sat Sep 12 23:59:59 2020\n" for pid in range(1000, 1100))
    (_, process, _) = report(users=f'{{"600": [{children}]}}\n{users}'.encode()).table.processes
    assert (
        process.command == "/usr/bin/python (ended; its children still run: 1000, 1001, 1002, 1003, 1004, …)"
    )


def test_start_times_are_unknown_when_the_clock_of_the_node_is_off() -> None:
    found = report(gpus=GPUS.replace(b"14:29", b"14:22"), processes=PROCESSES.replace(b"14:29", b"14:22"))
    assert [p.started_at for p in found.table.processes] == [None, None, None]


def test_old_processes_are_over() -> None:
    found = report(processes=PROCESSES.replace(b"14:29", b"14:20"))
    assert found.table.processes == ()
    assert found.sample.problems == ()


def test_an_empty_file_of_processes_means_none() -> None:
    assert report(processes=b"").sample.problems == ()


def test_without_a_file_of_processes_nobody_can_say_that_a_gpu_is_free() -> None:
    assert [problem.code for problem in report(processes=None).sample.problems] == ["processes_failed"]


@pytest.mark.parametrize("users", [None, b"", b"{}\n", b"garbage\n", b"{\n\xff\xfe\n"])
def test_without_owners_nobody_is_called_dead(users: bytes | None) -> None:
    assert [(p.user, p.is_gone) for p in report(users=users).table.processes] == [(None, False)] * 3


def test_a_gpu_missing_from_a_block_on_its_way_is_not_lost() -> None:
    half = (
        GPUS + b"0, GPU-aaaa, Tesla M40 24GB, 13, 22945, 2, 0, 31, 2020/09/13 14:30:10.100\n1, GPU-bbbb, Tes"
    )
    found = report(gpus=half)
    assert [s.utilization_gpu for s in found.sample.devices] == [0.02, 0.99]


def test_a_gpu_missing_for_long_is_gone() -> None:
    later = GPUS + b"0, GPU-aaaa, Tesla M40 24GB, 13, 22945, 2, 0, 31, 2020/09/13 14:35:10.100\n"
    assert [f.uuid for f in report(gpus=later).facts.devices] == ["GPU-aaaa"]


def test_headers_and_units_are_understood() -> None:
    header = (
        b"index, uuid, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], "
        b"utilization.memory [%], temperature.gpu, timestamp\r\n"
    )
    row = b"0, GPU-aaaa, Tesla M40 24GB, 11 MiB, 22945 MiB, 3 %, 0 %, 30, 2020/09/13 14:29:50.100\r\n"
    (sample,) = report(gpus=header + row).sample.devices
    assert (sample.memory_used_bytes, sample.utilization_gpu) == (11 * MIB, 0.03)


def test_na_is_unknown_and_an_error_is_a_problem() -> None:
    row = (
        b"0, GPU-a, X, [N/A], 22945, [Unknown Error], [Not Supported], [N/A], 2020/09/13 14:29:50.1\n"
        b"1, GPU-b, X, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], "
        b"2020/09/13 14:29:50.1\n"
    )
    found = report(gpus=row)
    assert found.sample.devices[0].memory_used_bytes is None
    assert found.sample.devices[0].utilization_gpu is None
    assert [(p.code, p.is_fault) for p in found.sample.problems] == [
        ("metric_failed", False),
        ("gpu_lost", True),
    ]


@pytest.mark.parametrize(
    "gpus",
    [
        b"",
        b"\x00" * 4096,
        b"0, GPU-aaaa, Tesla",
        b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        b"0, GPU-a, X, 1, 2, 3, 4, 5, yesterday\n",
        b"x, GPU-a, X, 1, 2, 3, 4, 5, 2020/09/13 14:29:50.1\n",
        b"3.0, GPU-a, X, 1, 2, 3, 4, 5, 2020/09/13 14:29:50.1\n",
        b"99999999999999999999, GPU-a, X, 1, 2, 3, 4, 5, 2020/09/13 14:29:50.1\n",
        b"\xff\xfe\n\x1b[31m,,,,,,,,\n",
    ],
    ids=range(9),
)
def test_without_a_gpu_there_is_a_sentence_that_names_the_file(gpus: bytes) -> None:
    with pytest.raises(ContactFailed, match=r"gpu01_gpus\.csv") as caught:
        read(gpus=gpus)
    assert caught.value.code == "garbled"


@given(st.binary(), st.binary(), st.binary(), st.binary(), st.binary())
def test_any_bytes_in_the_other_files_give_a_report(
    processes: bytes, users: bytes, status: bytes, cpus: bytes, disks: bytes
) -> None:
    report(processes=processes, users=users, status=status, cpus=cpus, disks=disks)


@given(st.data())
def test_any_part_of_the_files_gives_a_report_or_a_sentence(data: st.DataObject) -> None:
    """Half a copy never invents: what it tells is also in the whole."""
    cut = {kind: content[: data.draw(st.integers(0, len(content)))] for kind, content in FILES.items()}
    try:
        found = report(**cut)
    except ContactFailed:
        return
    assert {f.uuid for f in found.facts.devices} <= {"GPU-aaaa", "GPU-bbbb"}
    assert {s.memory_used_bytes for s in found.sample.devices} <= {n * MIB for n in (11, 12, 20000, 21000)}
    assert {p.pid for p in found.table.processes} <= {400, 500, 600, 700}
    assert {u.gpu_memory_bytes for u in found.sample.uses} <= {None, 19000 * MIB, 20000 * MIB, 900 * MIB}


def test_lines_without_an_end_are_not_used() -> None:
    assert lines_of(b"a\r\nb\nc") == ["a", "b"]
    assert lines_of(b"a\0b\n") == ["ab"]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Sun Sep 13 12:30:00 2020", True),
        ("Mon Jul  2 10:00:00 2018", True),
        ("lun. juil.  2 10:00:00 2018", False),
        ("Mon Jul 42 10:00:00 2018", False),
        ("", False),
    ],
)
def test_start_times(text: str, known: bool) -> None:
    assert (start_time(text) is not None) == known
    assert start_time("Sun Sep 13 12:30:00 2020") == WALL


# -- the host --------------------------------------------------------------------------------------------------------


def test_the_host() -> None:
    facts, sample, used = read_host("gpu01", FILES)
    assert (facts.hostname, facts.cpu_count, facts.memory_total_bytes) == ("gpu01", 64, 257763 * MIB)
    assert [(disk.mount, disk.total_bytes) for disk in facts.disks] == [("/", 103081248 * 1024)]
    assert used == (45123456 * 1024,)
    assert sample.memory_used_bytes == (257763 - 130000) * MIB
    assert (sample.load_1m, sample.load_5m, sample.load_15m) == (12.52, 10.58, 9.59)
    assert sample.uptime_seconds == 10 * 86400 + 3 * 3600 + 4 * 60


def test_free_of_old_systems_counts_caches_as_used() -> None:
    _, sample, _ = read_host("gpu01", {"status": b"Mem:   32000  30000  2000  100  1000  20000\n"})
    assert sample.memory_used_bytes == 9000 * MIB


def test_a_comma_is_a_decimal_point_in_many_countries() -> None:
    _, sample, _ = read_host(
        "gpu01", {"status": b" 14:29 up 3:04, 1 user, load average: 0,52, 1,58, 20,59\n"}
    )
    assert (sample.load_1m, sample.load_5m, sample.load_15m) == (0.52, 1.58, 20.59)
    assert sample.uptime_seconds == 3 * 3600 + 4 * 60


def test_without_status_the_load_is_in_the_other_file() -> None:
    facts, sample, _ = read_host("gpu01", {"cpus": b"3,5;32\n0,52;64\n"})
    assert (facts.cpu_count, sample.load_1m) == (64, 0.52)


def test_a_whole_df_gives_all_disks() -> None:
    disks = (
        b"Filesystem     1024-blocks      Used Available Capacity Mounted on\n"
        b"udev              1000 0 1000 0% /dev\n"
        b"/dev/sda1         2000 1000 1000 50% /\n"
        b"/dev/sdb1         4000 3000 1000 75% /var/opt\n"
    )
    facts, _, used = read_host("gpu01", {**FILES, "disks": disks})
    assert [disk.mount for disk in facts.disks] == ["/", "/var/opt"]
    assert used == (1000 * 1024, 3000 * 1024)


@pytest.mark.parametrize("device", ["rpool/ROOT/ubuntu_x1", "overlay", "/dev/mapper/vg0-root", "nas:/export"])
def test_the_root_may_be_any_file_system(device: str) -> None:
    status = STATUS.replace(b"/dev/sda1", device.encode())
    facts, _, used = read_host("gpu01", {"status": status})
    assert ([disk.mount for disk in facts.disks], used) == (["/"], (45123456 * 1024,))
    disks = f"{device} 2000 1000 1000 50% /var/opt\ntmpfs 9 1 8 12% /run\n".encode()
    facts, _, used = read_host("gpu01", {"disks": disks})
    assert ([disk.mount for disk in facts.disks], used) == (["/var/opt"], (1000 * 1024,))


def test_who_fills_the_local_disk() -> None:
    local = b"12G\t/local/bob\n1,5T\t/local/too_much\n40.5G /local/alice\n9,9G\t/local/little\n4,0K\t/local\nx\n\xff\n"
    facts, _, used = read_host("gpu01", {**FILES, "local": local})
    root = 103081248 * 1024
    assert [(disk.mount, disk.total_bytes) for disk in facts.disks] == [
        ("/", root),
        ("/local/alice", root),
        ("/local/bob", root),
    ]
    assert used[1:] == (int(40.5 * 2**30), 12 * 2**30)
    assert read_host("gpu01", {"local": local})[0].disks == (), "of what would that be a share?"
    many = b"".join(b"11G /local/u%d\n" % number for number in range(1000))
    assert len(read_host("gpu01", {**FILES, "local": many})[0].disks) == 32


def test_nothing_is_unknown() -> None:
    facts, sample, used = read_host("gpu01", {})
    assert (facts.cpu_count, facts.memory_total_bytes, used) == (None, None, ())
    assert sample == type(sample)()


@pytest.mark.parametrize("index", ["0" * 5000, "000000000999999999", "4097", "99999", "\u0661"])
def test_a_line_with_an_impossible_index_is_not_used(index: str) -> None:
    line = f"{index}, GPU-cccc, Tesla M40 24GB, 11, 22945, 0, 0, 30, 2020/09/13 14:29:50.102\n"
    report = read(gpus=GPUS + line.encode()).report
    assert [device.index for device in report.facts.devices] == [0, 1]


def test_a_hostile_file_of_owners_costs_little() -> None:
    children = {str(pid): list(range(10_000, 10_500)) for pid in range(500)}
    users = json.dumps(children).encode() + b"\n1 alice Sun Sep 13 10:00:05 2020\n"
    stamp = b"2020/09/13 14:29:45.900, GPU-bbbb, 1, x, "
    processes = b"".join(stamp + str(pid).encode() + b"\n" for pid in range(100_000, 104_000))
    began = time.process_time()
    read(users=users, processes=processes)
    assert time.process_time() - began < 2.0


def test_a_memory_that_no_machine_has_is_unknown() -> None:
    report = read(status=b"Mem: 999999999999 2 3 4 5 6\n").report
    assert report.facts.host.memory_total_bytes is report.sample.host.memory_used_bytes is None
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report, (
        "it can be kept and read again"
    )
