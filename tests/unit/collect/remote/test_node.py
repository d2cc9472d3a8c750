"""Rounds become reports: as the local collectors would make them, and whatever the node says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuherd.collect.commands import CommandFailed
from gpuherd.collect.node import NodeCollector
from gpuherd.collect.nvidia_smi import NvidiaSmiCollector
from gpuherd.collect.nvidia_smi.query import APP_FIELDS, parse_help, supported_fields
from gpuherd.collect.processes import HOST_PID_NAMESPACE, CommandLines
from gpuherd.collect.remote import RemoteNode
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.hosts import Address, Disk
from gpuherd.model.reports import Report
from gpuherd.wire.blocks import Block, Round

MIB = 2**20
_beside = Path(__file__).parents[5] / "shared" / "fixtures"
FIXTURES = Path(os.environ.get("GPUHERD_FIXTURES", _beside)) / "nvidia"
CAPTURES = sorted(FIXTURES.glob("utkuozdemir__nvidia_gpu_exporter/*.txt"))
LOGS = sorted(FIXTURES.glob("*/*.xml"))

FIELDS = b"index,uuid,name,memory.total,memory.used,utilization.gpu"
GPUS = b"0, GPU-0, T4, 15360, 5, 7\n1, GPU-1, T4, 15360, 6, 8\n"
HOST = (
    b"cpu  100 0 100 800 0 0 0 0 0 0\nloadavg 0.5 0.25 0.75 1/95 24092\nuptime 1000.50 17121.55\n"
    b"MemTotal:       2000 kB\nMemAvailable:   500 kB\nSwapTotal:      100 kB\nSwapFree:       40 kB\n"
)
STATIC = (
    f"x86_64\nCLK_TCK 100\nPAGESIZE 65536\n_NPROCESSORS_ONLN 64\npid:[{HOST_PID_NAMESPACE}]\n"
    "         0          0 4294967295\nbtime 1700000000\n"
)
STAT = b"%d (%s) %s 1 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d 2990080 10 0 0 0 0 0\n"
WHO = b"/proc/77/status:Uid:\t1000\t1000\t1000\t1000\n/proc/77/cgroup:0::/system.slice/slurmstepd.scope/job_12/step_0\n"


def stat(pid: int, *, name: bytes = b"python", state: bytes = b"S", cpu: int = 0, start: int = 5000) -> bytes:
    return STAT % (pid, name, state, cpu, start)


def make(**blocks: bytes | tuple[int, bytes]) -> Round:
    """A round; underscores in names stand for dots."""
    made = {}
    for key, content in blocks.items():
        name = key.replace("_", ".")
        status, text = content if isinstance(content, tuple) else (0, content)
        made[name] = Block(name, status, text)
    return Round(1, made)


FIRST: dict[str, Any] = {
    "tools": b" nvidia-smi ",
    "nvidia_fields": FIELDS,
    "nvidia_gpus": GPUS,
    "nvidia_apps": b"GPU-1, 77, 300\n",
    "host": HOST,
    "who": WHO,
    "users": b"1000 alice\n",
    "cmdline_77": b"python\0train.py\0--api-key=abcdefgh\0",
    "pids": stat(77),
    "facts_static": STATIC.encode(),
    "facts_os": b'PRETTY_NAME="Debian 12"\n',
    "facts_cpu": b"model name\t: EPYC\n",
    "facts_time": b"1700001000 500000000 1000.00\n",
    "facts_names": b"gpu01\n6.1.0\n",
    "facts_addresses": b"1: lo    inet 127.0.0.1/8 scope host lo\n"
    b"2: eth0    inet 10.0.0.7/24 brd 10.0.0.255 scope global eth0\n"
    b"3: docker0    inet 172.17.0.1/16 scope global docker0\n2: eth0    inet6 fe80::1/64 scope link\n"
    b"4: bond0@if5    inet6 2001:db8::7/64 scope global\n",
    "facts_mounts": b"/dev/a / ext4\n/dev/b /data xfs\n/dev/a /bind ext4\n",
    "facts_df": b"Filesystem 1024-blocks Used Available Capacity Mounted on\n"
    b"/dev/a 100 40 60 40% /\n/dev/b 1000 0 1000 0% /data\n/dev/a 100 40 60 40% /bind\n",
}
LATER = {"tools": b" nvidia-smi ", "nvidia_gpus": GPUS, "nvidia_apps": b"GPU-1, 77, 300\n"}
AFTER_10_SECONDS = HOST.replace(b"uptime 1000.50", b"uptime 1010.50").replace(
    b"cpu  100 0 100 800", b"cpu  300 0 100 1600"
)


def read(node: RemoteNode, **blocks: bytes | tuple[int, bytes]) -> Report:
    report = node.read(make(**blocks))
    assert report.mismatch() is None
    return report


def test_a_report_and_the_next() -> None:
    node = RemoteNode()
    report = read(node, **FIRST)
    host = report.facts.host
    assert (host.hostname, host.kernel, host.os, host.cpu_model) == ("gpu01", "6.1.0", "Debian 12", "EPYC")
    assert (host.architecture, host.cpu_count, host.booted_at) == ("x86_64", 64, 1700000000)
    assert (host.memory_total_bytes, host.swap_total_bytes) == (2000 * 1024, 100 * 1024)
    assert host.addresses == (Address("bond0", "2001:db8::7"), Address("eth0", "10.0.0.7"))
    assert host.disks == (Disk(mount="/", total_bytes=102400), Disk(mount="/data", total_bytes=1024000))
    assert report.sample.disks_used_bytes == (40960, 0)
    assert report.sample.time == 1700001001.0
    assert (report.sample.host.memory_used_bytes, report.sample.host.swap_used_bytes) == (
        1500 * 1024,
        60 * 1024,
    )
    assert (report.sample.host.load_1m, report.sample.host.load_15m, report.sample.host.cpu_ratio) == (
        0.5,
        0.75,
        None,
    )
    (process,) = report.table.processes
    assert (process.pid, process.user, process.job, process.container) == (77, "alice", "slurm:12", None)
    assert process.command == "python train.py --api-key=***"
    assert process.started_at == 1700000050
    assert report.sample.processes[0].memory_bytes == 10 * 65536
    assert report.sample.processes[0].cpu_cores is None

    later = read(node, host=AFTER_10_SECONDS, pids=stat(77, cpu=500), **LATER)
    assert later.facts is report.facts
    assert later.table is report.table
    assert later.sample.processes[0].cpu_cores == pytest.approx(0.5)
    assert later.sample.host.cpu_ratio == pytest.approx(0.2)
    assert later.sample.time == 1700001011.0
    node.close()
    node.close()


def test_a_pid_that_is_somebody_else_now() -> None:
    node = RemoteNode()
    read(node, **FIRST)
    other = read(node, host=HOST, pids=stat(77, start=9000), **LATER)
    assert (other.table.processes[0].user, other.table.processes[0].command) == (None, None)
    assert other.table.processes[0].started_at == 1700000090
    node = RemoteNode()
    raced = read(node, **{**FIRST, "pids": b""})
    assert raced.table.processes[0].user is None, "it ended while it was described"


def test_processes_that_cannot_be_read() -> None:
    lines = b"5 gone\n6 hidden 1000\n7 hidden 0\n8 hidden\n" + stat(9, state=b"Z")
    apps = b"".join(b"GPU-0, %d, 1\n" % pid for pid in (5, 6, 7, 8, 9, 10))
    report = read(RemoteNode(), **{**FIRST, "nvidia_apps": apps, "pids": lines, "who": b""})
    assert [(p.pid, p.user, p.is_gone) for p in report.table.processes] == [
        (5, None, True), (6, "alice", False), (7, None, False), (8, None, False), (9, None, True), (10, None, False),
    ]  # fmt: skip
    assert {sample.memory_bytes for sample in report.sample.processes} == {None}


def test_pids_of_a_container_are_nobody() -> None:
    inner = STATIC.replace(str(HOST_PID_NAMESPACE), "4026532999").encode()
    report = read(RemoteNode(), **{**FIRST, "facts_static": inner})
    assert [(p.pid, p.user, p.command, p.is_gone) for p in report.table.processes] == [
        (77, None, None, False)
    ]


def test_users_outside_of_the_user_namespace_are_unknown() -> None:
    inner = STATIC.replace("0          0 4294967295", "0     100000      65536").encode()
    who = WHO.replace(b"1000", b"65534")
    report = read(RemoteNode(), **{**FIRST, "facts_static": inner, "who": who})
    assert report.table.processes[0].user is None
    report = read(RemoteNode(), **{**FIRST, "who": who})
    assert report.table.processes[0].user == "65534"


@pytest.mark.parametrize(("mode", "command"), [("program", "python"), ("none", None)])
def test_a_node_that_sends_more_than_it_was_asked_for(mode: CommandLines, command: str | None) -> None:
    report = read(RemoteNode(command_lines=mode), **FIRST)
    assert report.table.processes[0].command == command
    assert b"abcdefgh" not in repr(report).encode()


def test_a_name_with_a_line_break_does_not_speak_for_another_process() -> None:
    lines = b"66 (evil\n" + stat(77, start=1)[:20] + b"\n" + stat(77)
    report = read(RemoteNode(), **{**FIRST, "nvidia_apps": b"GPU-0, 66, 1\nGPU-0, 77, 1\n", "pids": lines})
    assert [(p.pid, p.started_at) for p in report.table.processes] == [(66, None), (77, 1700000050)]


def test_a_script_of_another_version_asks_for_other_fields() -> None:
    fields = b"uuid,index,shape,utilization.gpu,name"
    report = read(
        RemoteNode(), **{**FIRST, "nvidia_fields": fields, "nvidia_gpus": b"GPU-0, 0, round, 7, T4\n"}
    )
    assert (report.facts.devices[0].uuid, report.sample.devices[0].utilization_gpu) == ("GPU-0", 0.07)
    assert report.sample.devices[0].memory_used_bytes is None, "a card that does not tell its memory has some"
    assert report.facts.devices[0].memory_basis != "host"
    assert report.facts.devices[0].memory_total_bytes is None


def test_a_hung_driver_keeps_its_gpus_and_comes_back() -> None:
    node = RemoteNode()
    read(node, **FIRST)
    hung = read(
        node, tools=b"nvidia-smi", nvidia_gpus=(124, b"nvidia-smi did not finish within 5 s"), host=HOST
    )
    assert [(p.code, p.is_fault) for p in hung.sample.problems] == [("driver_hung", True)]
    assert len(hung.facts.devices) == 2
    assert read(node, host=HOST, pids=b"", **LATER).sample.problems == ()


def test_no_tools_and_an_empty_round() -> None:
    report = read(RemoteNode(clock=lambda: 5.0))
    assert [(p.code, p.is_fault) for p in report.sample.problems] == [("no_driver", False)]
    assert report.sample.time == 5.0


def test_what_cannot_be_is_refused() -> None:
    blocks = {**FIRST, "facts_time": b"", "pids": stat(77, start=10**17)}
    with pytest.raises(Refused, match="started_at") as caught:
        RemoteNode().read(make(**blocks))
    assert caught.value.code == "garbled"


class Recorded:
    """Answers as the recorded nvidia-smi would; the fields that are asked for."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self.answers = answers

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        name = arguments[1].partition("=")[0]
        if name not in self.answers:
            raise Failed("not recorded")
        return self.answers[name]


def section(capture: Path, title: str) -> bytes:
    text = capture.read_text()
    found = re.search(
        rf"^# {re.escape(title)}[^\n]*\n(?:# [^\n]*\n)*#+\n(.*?)(?:^####|\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"{capture.name} has no section {title}"
    return found[1].encode()


def columns(content: bytes, wanted: Sequence[str]) -> bytes:
    """Recorded CSV with header and units, as it would have been printed for these fields."""
    header, *lines = content.decode().strip().splitlines()
    names = [re.sub(r" \[.*\]$", "", name.strip()) for name in header.split(",")]
    rows = [
        dict(zip(names, [word.strip() for word in line.split(",")], strict=True)) for line in lines if line
    ]
    printed = [
        ", ".join({"index": str(n), **row}.get(name, "[N/A]") for name in wanted)
        for n, row in enumerate(rows)
    ]
    return "\n".join(printed).encode() + b"\n"


@pytest.mark.skipif(not CAPTURES, reason="no recordings of real cards: set GPUHERD_FIXTURES to their folder")
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_recorded_cards_are_read_as_an_agent_reads_them(capture: Path) -> None:
    fields = supported_fields(parse_help(section(capture, "capabilities :: help-query-gpu")))
    gpus = columns(section(capture, "load :: query-gpu (csv"), fields)
    assert len(gpus.split(b",")) >= len(fields)
    uuid = gpus.split(b", ")[1]
    apps = uuid + b", 77, 300, python\n"
    is_sliced = "mig" in capture.stem
    log = LOGS[0].read_bytes()
    listing = section(capture, "capabilities :: list")
    local = NodeCollector(
        [
            NvidiaSmiCollector(
                runner=Recorded(
                    {
                        "--help-query-gpu": "".join(f'"{field}"\n' for field in fields).encode(),
                        "--query-gpu": gpus,
                        "--query-compute-apps": apps,
                        **({"-q": log, "-L": listing} if is_sliced else {}),
                    }
                )
            )
        ]
    )
    expected = local.read()
    local.close()
    extra: dict[str, Any] = {"nvidia_log": log, "nvidia_list": listing} if is_sliced else {}
    found = read(
        RemoteNode(),
        **{
            **FIRST,
            "nvidia_fields": ",".join(fields).encode(),
            "nvidia_gpus": gpus,
            "nvidia_apps": apps,
            **extra,
        },
    )
    assert found.facts.devices == expected.facts.devices
    assert found.sample.devices == expected.sample.devices
    assert found.sample.uses == expected.sample.uses
    assert found.table.uses == expected.table.uses
    assert found.facts.host.driver_version == expected.facts.host.driver_version
    assert len(APP_FIELDS) == 4


@pytest.mark.skipif(not LOGS, reason="no recordings of real cards: set GPUHERD_FIXTURES to their folder")
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_recorded_logs_are_read_as_an_agent_reads_them(log: Path) -> None:
    """Where the cheap query fails altogether."""

    class Broken(Recorded):
        def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
            return self.answers[arguments[1]] if arguments[1] in self.answers else _fail(arguments)

    local = NodeCollector([NvidiaSmiCollector(runner=Broken({"-q": log.read_bytes(), "-L": b""}))])
    expected = local.read()
    local.close()
    found = read(
        RemoteNode(),
        **{**FIRST, "nvidia_gpus": (9, b"new"), "nvidia_log": log.read_bytes(), "nvidia_list": b""},
    )
    assert found.facts.devices == expected.facts.devices
    assert found.sample.devices == expected.sample.devices
    assert [use.device for use in found.table.uses] == [use.device for use in expected.table.uses]


def _fail(arguments: Sequence[str]) -> bytes:
    raise CommandFailed(arguments[0], 9, b"new", b"")


statuses = st.sampled_from([0, 0, 0, 1, 9, 15, 124, 127, 137])
pieces = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [*(v for v in FIRST.values()), b"[N/A]", b"[Unknown Error]", b"-1", b"1e400", b"9" * 400, b"\n"]
    ),
    st.sampled_from(
        [
            b"<nvidia_smi_log><gpu><uuid>G</uuid></gpu></nvidia_smi_log>",
            b"device handle for GPU 0000:01:00.0: x",
        ]
    ),
    st.sampled_from(
        [b'[{"gpu":0,"process_list":[{"process_info":{"pid":77}}]}]', b'{"card0":{"GPU use (%)":"5"}}']
    ),
)
names = st.sampled_from(
    [
        *FIRST,
        "nvidia_some",
        "nvidia_log",
        "nvidia_list",
        "amd_metric",
        "amd_process",
        "amd_static",
        "amd_list",
        "rocm_all",
    ]
)
tools = st.sampled_from([b"", b"nvidia-smi", b"amd-smi", b"rocm-smi", b"nvidia-smi amd-smi", b"\xff"])


@given(
    st.lists(
        st.tuples(
            tools, st.dictionaries(names, st.tuples(statuses, st.lists(pieces, max_size=3)), max_size=8)
        ),
        max_size=4,
    )
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_rounds_give_reports_or_a_refusal(
    rounds: list[tuple[bytes, dict[str, tuple[int, list[bytes]]]]],
) -> None:
    node = RemoteNode()
    for tool, blocks in rounds:
        content: dict[str, Any] = {
            name: (status, b"".join(parts)) for name, (status, parts) in blocks.items()
        }
        try:
            report = node.read(make(**{**FIRST, **content, "tools": tool}))
        except Refused:
            continue
        assert report.mismatch() is None
        assert "abcdefgh" not in repr(report.table)
