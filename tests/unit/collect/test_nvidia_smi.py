"""nvidia-smi: pure parsers against recordings of real cards, the collector against a scripted command."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuherd.collect.commands import CommandFailed
from gpuherd.collect.nvidia_smi import NvidiaSmiCollector
from gpuherd.collect.nvidia_smi.log import ListedSlice, parse_listing, parse_log
from gpuherd.collect.nvidia_smi.query import Columns, parse_apps, parse_help, supported_fields
from gpuherd.collect.nvidia_smi.row import FIELDS, Row, row_device, words_device
from gpuherd.collect.nvidia_smi.words import _FAILURES, fault_of, is_failure, number_of, text_of
from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable
from gpuherd.model.errors import Failed, Unavailable

MIB = 2**20
_beside = Path(__file__).parents[4] / "shared" / "fixtures"
FIXTURES = Path(os.environ.get("GPUHERD_FIXTURES", _beside)) / "nvidia"
needs_fixtures = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="no recordings of real cards: set GPUHERD_FIXTURES to their folder"
)
CAPTURES = sorted(FIXTURES.glob("utkuozdemir__nvidia_gpu_exporter/*.txt"))
LOGS = sorted(FIXTURES.glob("*/*.xml"))


def section(capture: Path, title: str) -> bytes:
    """One command's output from a full capture."""
    text = capture.read_text()
    found = re.search(
        rf"^# {re.escape(title)}[^\n]*\n(?:# [^\n]*\n)*#+\n(.*?)(?:^####|\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"{capture.name} has no section {title}"
    return found[1].encode()


def rows_with_header(content: bytes) -> list[Row]:
    """Parse CSV that still has its header and units, as the recordings do."""
    header, _, body = content.strip().partition(b"\n")
    fields = [re.sub(r" \[.*\]$", "", name.strip()) for name in header.decode().split(",")]
    rows = [
        dict(zip(fields, [word.strip() for word in line.split(",")], strict=True))
        for line in body.decode().splitlines()
        if line
    ]
    return [{"index": str(index), **row} for index, row in enumerate(rows)]


@needs_fixtures
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_every_field_is_known_to_recorded_help(capture: Path) -> None:
    known = parse_help(section(capture, "capabilities :: help-query-gpu"))
    assert len(supported_fields(known)) == len(FIELDS)


@needs_fixtures
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("phase", ["idle", "load"])
def test_recorded_query(capture: Path, phase: str) -> None:
    (row,) = rows_with_header(section(capture, f"{phase} :: query-gpu (csv"))
    facts, sample, problems = row_device(row)
    assert not problems
    assert facts.uuid.startswith("GPU-")
    assert facts.name.startswith("NVIDIA ")
    assert facts.memory_basis == "framebuffer"
    assert sample.memory_used_bytes is not None
    assert facts.memory_total_bytes is not None
    assert 0 <= sample.memory_used_bytes < facts.memory_total_bytes
    assert sample.temperature_celsius is not None
    assert 20 < sample.temperature_celsius < 90
    assert sample.power_watts
    assert sample.throttle_reasons is not None
    assert facts.is_partitioned == ("mig" in capture.stem)
    assert (sample.utilization_gpu is None) == facts.is_partitioned
    if phase == "load" and not facts.is_partitioned:
        assert sample.utilization_gpu
    assert (sample.fan_ratio is None) == ("h100" in capture.stem)


@needs_fixtures
def test_recorded_mig_names_and_processes() -> None:
    (capture,) = (path for path in CAPTURES if "mig" in path.stem)
    slices = parse_listing(section(capture, "capabilities :: list"))
    assert [part.profile for part in slices] == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    assert {part.gpu_uuid for part in slices} == {"GPU-00000000-0000-0000-0000-000000000000"}
    apps = section(capture, "load :: query-compute-apps").decode().splitlines()
    reordered = "\n".join(
        ", ".join(line.split(", ")[column] for column in (4, 5, 7, 6)) for line in apps if line
    )
    assert [(app.pid, app.memory_bytes) for app in parse_apps(reordered.encode())[0]] == [
        (21180, 2296 * MIB), (21181, 1272 * MIB), (21198, 7484 * MIB),
    ]  # fmt: skip


@needs_fixtures
def test_recorded_csv_with_values_missing() -> None:
    (row,) = rows_with_header((FIXTURES / "microsoft__VirtualClient" / "query-gpu-1xT4-NA.csv").read_bytes())
    facts, sample, problems = row_device(row)
    assert not problems
    assert (facts.name, facts.memory_total_bytes) == ("Tesla T4", 15360 * MIB)
    assert (sample.utilization_gpu, sample.utilization_memory) == (0.02, 0.03)
    assert (sample.performance_state, sample.clock_sm_hertz) == (8, 300e6)
    assert sample.fan_ratio is None
    four = rows_with_header((FIXTURES / "microsoft__VirtualClient" / "query-gpu-4xT4.csv").read_bytes())
    assert [row_device(row)[0].pci_bus_id for row in four] == [f"0000000{n}:00:00.0" for n in (1, 2, 3, 4)]
    assert row_device(four[0])[0].memory_basis == "framebuffer_with_reserved"


@needs_fixtures
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_recorded_log(log: Path) -> None:
    content = log.read_bytes()
    reading = parse_log(content, [])
    gpus = [facts for facts in reading.devices if facts.kind == "gpu"]
    assert len(gpus) == content.count(b"<gpu id=")
    assert len(reading.devices) - len(gpus) == content.count(b"<mig_device>")
    assert len(reading.samples) == len(reading.devices)
    assert len({facts.uuid for facts in reading.devices}) == len(reading.devices)
    assert reading.driver_version
    assert not any(problem.is_fault for problem in reading.problems)
    assert all(use.device < len(reading.devices) for use in reading.uses)
    for facts, sample in zip(reading.devices, reading.samples, strict=True):
        assert facts.memory_total_bytes
        assert sample.memory_used_bytes is not None


def test_log_is_hostile() -> None:
    for content in (b"", b"<x", b"no xml", b"\xff\xfe", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'):
        with pytest.raises(Failed):
            parse_log(content, [])
    assert parse_log(b"<nvidia_smi_log/>", []).devices == ()


MIG_LOG = b"""<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>550.1</driver_version><cuda_version>12.4</cuda_version>
<gpu id="00000000:07:00.0"><product_name>A100</product_name><uuid>GPU-a</uuid>
<mig_mode><current_mig>Enabled</current_mig></mig_mode>
<fb_memory_usage><total>81920 MiB</total><reserved>600 MiB</reserved><used>30 MiB</used></fb_memory_usage>
<utilization><gpu_util>N/A</gpu_util></utilization><pci><pci_bus_id>00000000:07:00.0</pci_bus_id></pci>
<mig_devices><mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>9984 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>4</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>9984 MiB</total><used>99 MiB</used></fb_memory_usage></mig_device></mig_devices>
<processes><process_info><gpu_instance_id>4</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<pid>77</pid><type>C</type><process_name>python</process_name><used_memory>87 MiB</used_memory>
</process_info></processes></gpu></nvidia_smi_log>"""


def test_slices_own_their_processes() -> None:
    listing = [ListedSlice("GPU-a", 0, "1g.10gb", "MIG-0"), ListedSlice("GPU-a", 1, "1g.10gb", "MIG-1")]
    reading = parse_log(MIG_LOG, listing)
    assert [(facts.uuid, facts.kind, facts.parent_uuid) for facts in reading.devices] == [
        ("GPU-a", "gpu", None), ("MIG-0", "slice", "GPU-a"), ("MIG-1", "slice", "GPU-a"),
    ]  # fmt: skip
    assert reading.devices[0].is_partitioned
    assert reading.devices[1].profile == "1g.10gb"
    (use,) = reading.uses
    assert (use.device, use.pid, use.gpu_memory_bytes) == (2, 77, 87 * MIB)


@pytest.mark.parametrize(
    "word",
    ["", " ", "-", "N/A", "[N/A]", "[Not Supported]", "Not Supported", "ERR!", "[Unknown Error]", "Unknown Error",
     "[GPU requires reset]", "[GPU is lost]", "[Requested functionality has been deprecated]", "[Not Found]"],
)  # fmt: skip
def test_words_that_are_no_values(word: str) -> None:
    assert text_of(word) is None
    assert number_of(word) is None


def test_words() -> None:
    assert number_of("0") == 0.0
    assert number_of("71.15 W") == 71.15
    assert number_of("0x0000000000000004") == 4
    assert number_of("0xzz") is None
    assert number_of("abc") is None
    assert number_of(None) is None
    assert number_of("1e999") is None
    assert number_of("12 %") == 12
    assert text_of("Tesla T4") == "Tesla T4"
    assert is_failure("[Unknown Error]")
    assert is_failure("ERR!")
    assert not is_failure("[N/A]")
    assert fault_of("[N/A]") is None


ROW = {"index": "3", "uuid": "GPU-3", "name": "T4", "memory.total": "15360", "utilization.gpu": "0", "fan.speed": "105",
       "pstate": "P0", "temperature.gpu": "4294967295", "clocks.current.sm": "18446744073709551615"}  # fmt: skip


def test_zero_is_a_value_and_sentinels_are_none() -> None:
    facts, sample, problems = row_device(ROW)
    assert (facts.index, sample.utilization_gpu, sample.performance_state, sample.fan_ratio) == (
        3,
        0.0,
        0,
        1.0,
    )
    assert sample.temperature_celsius is None
    assert sample.clock_sm_hertz is None
    assert not problems


@pytest.mark.parametrize(
    ("changed", "code", "is_fault"),
    [
        ({"power.draw": "[Unknown Error]"}, "metric_failed", False),
        ({"power.draw": "ERR!"}, "metric_failed", False),
        ({"memory.used": "[GPU requires reset]"}, "reset_required", True),
        ({"temperature.gpu": "[GPU is lost]"}, "gpu_lost", True),
    ],
)
def test_failures_become_problems(changed: dict[str, str], code: str, is_fault: bool) -> None:
    (problem,) = row_device({**ROW, **changed})[2]
    assert (problem.code, problem.is_fault, problem.device_uuid) == (code, is_fault, "GPU-3")


def test_a_gpu_that_answers_nothing_is_faulty() -> None:
    row = dict.fromkeys([names[0] for names in FIELDS], "[Unknown Error]") | {"index": "2"}
    facts, _, problems = row_device(row)
    assert facts.uuid == "gpu-2-without-uuid"
    assert [(problem.code, problem.is_fault) for problem in problems] == [("gpu_error", True)]


def test_rows_and_warnings() -> None:
    content = b"0, GPU-0\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0\n1, GPU-1\n\nx, y, z\n"
    columns = Columns(["index", "uuid"])
    assert [columns.named(words) for words in columns.rows(content)] == [
        {"index": "0", "uuid": "GPU-0"},
        {"index": "1", "uuid": "GPU-1"},
    ]


def test_columns_of_any_order_and_names() -> None:
    columns = Columns(["index", "clocks.sm", "name", "uuid"])
    (words,) = columns.rows(b"2,1410 ,A100,GPU-2\n3, 1, 2, GPU-3, 4\n")
    assert columns.named(words) == {"index": "2", "clocks.sm": "1410", "name": "A100", "uuid": "GPU-2"}
    facts, sample = words_device(words)
    assert (facts.index, facts.uuid, facts.name, sample.clock_sm_hertz) == (2, "GPU-2", "A100", 1410e6)
    assert (sample.power_watts, facts.memory_basis) == (None, "framebuffer_with_reserved")


def test_the_same_words_are_the_same_facts_and_others_are_not() -> None:
    row = {**ROW, "memory.used": "1"}
    facts, sample, _ = row_device(row)
    again, other, _ = row_device({**row, "memory.used": "2", "utilization.gpu": "50"})
    assert again is facts
    assert (sample.memory_used_bytes, other.memory_used_bytes, other.utilization_gpu) == (MIB, 2 * MIB, 0.5)
    assert row_device({**row, "memory.total": "16384"})[0].memory_total_bytes == 16384 * MIB


def test_what_a_node_makes_us_remember_stays_small() -> None:
    columns = Columns(["index", "name"])
    assert columns.rows(b"0, " + b"x" * 4096 + b"\n1, T4\n") == columns.rows(b"1, T4\n")


def test_apps_with_commas_and_rubbish() -> None:
    content = b"GPU-0, 12, 300, /opt/a, b\nGPU-0, 13, [N/A], [Insufficient Permissions]\nGPU-1, [N/A], 3, x\n\xff\nno\n"
    apps, unread = parse_apps(content)
    assert [(app.pid, app.memory_bytes) for app in apps] == [(12, 300 * MIB), (13, None)]
    assert unread == ["GPU-1, [N/A], 3, x", "\ufffd", "no"]


HEALTHY = {
    "retired_pages.pending": "No",
    "remapped_rows.pending": "No",
    "remapped_rows.failure": "No",
    "gpu_recovery_action": "None",
}


@pytest.mark.parametrize(
    ("words", "checks", "codes"),
    [
        (HEALTHY, ("row_remap", "page_retirement", "recovery_action"), []),
        (dict.fromkeys(HEALTHY, "[N/A]"), (), []),
        (dict.fromkeys(HEALTHY, "[Unknown Error]"), (), ["metric_failed"]),
        ({}, (), []),
        ({**HEALTHY, "retired_pages.pending": "Yes"}, None, ["retirement_pending"]),
        ({**HEALTHY, "remapped_rows.pending": "Yes"}, None, ["remap_pending"]),
        ({**HEALTHY, "remapped_rows.failure": "Yes"}, None, ["remap_failed"]),
        ({**HEALTHY, "gpu_recovery_action": "Reset"}, None, ["recovery_action"]),
        ({**HEALTHY, "gpu_recovery_action": "Drain and Reset"}, None, ["recovery_action"]),
        ({**HEALTHY, "gpu_recovery_action": "Something new"}, None, ["recovery_action"]),
        ({"remapped_rows.pending": "Yes"}, (), ["remap_pending"]),
    ],
)
def test_registers_of_health(words: Row, checks: tuple[str, ...] | None, codes: list[str]) -> None:
    base = {"index": "0", "uuid": "GPU-0", "memory.total": "100", "memory.used": "1", "utilization.gpu": "0"}
    facts, _, problems = row_device({**base, **words})
    if checks is not None:
        assert facts.health_checks == checks
    assert [problem.code for problem in problems] == codes
    assert all(problem.is_fault == (problem.code != "metric_failed") for problem in problems)


def test_registers_of_health_in_query_and_log() -> None:
    pair = ";".join(f"{name}={word}" for name, word in {**HEALTHY, "gpu_recovery_action": "Reboot"}.items())
    made, _ = collector(
        help=HELP, gpu=TWO.replace(b"driver_version=550.1\n", f"{pair};x=1\n".encode()), apps=b""
    )
    made.open()
    reading = made.read()
    assert [(p.code, p.device_uuid) for p in reading.problems] == [("recovery_action", "GPU-0")]
    assert "reboot of the node" in reading.problems[0].message
    assert [len(facts.health_checks) for facts in reading.devices] == [3, 0]
    registers = (
        b"<retired_pages><pending_retirement>N/A</pending_retirement><pending_blacklist>Yes</pending_blacklist>"
        b"</retired_pages><remapped_rows><remapped_row_pending>Yes</remapped_row_pending>"
        b"<remapped_row_failure>No</remapped_row_failure></remapped_rows>"
        b"<gpu_recovery_action>Reset</gpu_recovery_action><mig_devices>"
    )
    reading = parse_log(MIG_LOG.replace(b"<mig_devices>", registers), [])
    assert [(p.code, p.device_uuid, p.is_fault) for p in reading.problems] == [
        (code, "GPU-a", True) for code in ("retirement_pending", "remap_pending", "recovery_action")
    ]


class Scripted:
    """Answers commands by their first argument; an error is raised. GPUs are written as ``field=word;field=word``."""

    def __init__(self, answers: dict[str, bytes | Exception]) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        assert deadline_seconds > 0
        self.asked.append(list(arguments[1:]))
        name = arguments[1].split("=")[0]
        answer = self.answers.get(f"{name} {arguments[-1]}", self.answers.get(name, b""))
        if isinstance(answer, Exception):
            raise answer
        if name == "--query-gpu":
            fields = arguments[1].split("=")[1].split(",")
            rows = [
                dict(pair.split("=", 1) for pair in line.split(";")) for line in answer.decode().splitlines()
            ]
            return "\n".join(", ".join(row.get(field, "[N/A]") for field in fields) for row in rows).encode()
        return answer


HELP = "".join(f'"{names[-1]}"\nwords\n\n' for names in FIELDS).encode()
TWO = b"""index=0;uuid=GPU-0;name=T4;memory.total=15360;memory.used=5;pci.bus_id=00000000:01:00.0;driver_version=550.1
index=1;uuid=GPU-1;name=T4;memory.total=15360;memory.used=6;pci.bus_id=00000000:02:00.0;driver_version=550.1"""
APPS = b"GPU-1, 77, 5, python\n"


def collector(**answers: bytes | Exception) -> tuple[NvidiaSmiCollector, Scripted]:
    names = {
        "help": "--help-query-gpu",
        "gpu": "--query-gpu",
        "apps": "--query-compute-apps",
        "log": "-q",
        "list": "-L",
    }
    runner = Scripted({names[key]: answer for key, answer in answers.items()})
    return NvidiaSmiCollector(runner=runner, host_memory=lambda: (1000, 10)), runner


def test_two_cheap_commands_a_read() -> None:
    made, runner = collector(help=HELP, gpu=TWO, apps=APPS)
    made.open()
    runner.asked.clear()
    first, second = made.read(), made.read()
    assert [arguments[0].split("=")[0] for arguments in runner.asked] == [
        "--query-gpu",
        "--query-compute-apps",
    ] * 2
    assert "clocks.sm" in runner.asked[0][0], "the name that this nvidia-smi knows"
    assert second.devices is first.devices
    assert first.driver_version == "550.1"
    assert [(use.device, use.pid) for use in first.uses] == [(1, 77)]


def test_unknown_fields_are_dropped_when_help_does_not_work() -> None:
    made, runner = collector(help=CommandFailed("nvidia-smi", 2, b"", b""), gpu=TWO, apps=APPS)
    run = runner.run

    def old(arguments: Sequence[str], deadline_seconds: float) -> bytes:
        for field in ("clocks_event_reasons.active", "memory.reserved"):
            if arguments[1].startswith("--query-gpu") and field in arguments[1]:
                raise CommandFailed(
                    "nvidia-smi", 2, f'Field "{field}" is not a valid field to query.'.encode(), b""
                )
        return run(arguments, deadline_seconds)

    runner.run = old  # type: ignore[method-assign]
    made.open()
    runner.asked.clear()
    assert len(made.read().devices) == 2
    assert "clocks_throttle_reasons.active" in runner.asked[0][0]
    assert "memory.reserved" not in runner.asked[0][0]


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "no_driver"),
        (18, "Failed to initialize NVML: Driver/library version mismatch", "driver_mismatch"),
        (6, "No devices were found", "no_gpu"),
        (4, "Failed to initialize NVML: Insufficient Permissions", "no_permission"),
        (255, "Something new", "driver_failed"),
    ],
)
def test_start_failures(status: int, words: str, code: str) -> None:
    failed = CommandFailed("nvidia-smi", status, words.encode(), b"")
    made, _ = collector(help=failed, gpu=failed, log=failed)
    with pytest.raises(CollectorUnavailable) as caught:
        made.open()
    assert caught.value.code == code


def test_no_command() -> None:
    made, _ = collector(help=Unavailable("there is no nvidia-smi on this machine"))
    with pytest.raises(CollectorUnavailable, match="install") as caught:
        made.open()
    assert caught.value.code == "no_driver"


def test_a_lost_gpu_does_not_hide_the_other() -> None:
    made, runner = collector(help=HELP, gpu=TWO, apps=APPS)
    made.open()
    words = b"Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system to recover"
    runner.answers["--query-gpu"] = CommandFailed("nvidia-smi", 15, words, b"")
    runner.answers["--query-gpu --id=GPU-1"] = TWO.splitlines()[1]
    reading = made.read()
    assert [facts.uuid for facts in reading.devices] == ["GPU-0", "GPU-1"]
    assert [sample.memory_used_bytes for sample in reading.samples] == [None, 6 * MIB]
    assert [(problem.code, problem.device_uuid) for problem in reading.problems] == [("gpu_lost", "GPU-0")]
    assert [(use.device, use.pid) for use in reading.uses] == [(1, 77)]


def test_the_log_of_slices_is_read_when_processes_change_and_once_a_minute() -> None:
    now = 1000.0
    mig = b"index=0;uuid=GPU-a;name=A100;memory.total=81920;mig.mode.current=Enabled;power.draw=%d"
    runner = Scripted(
        {
            "--help-query-gpu": HELP,
            "--query-gpu": mig % 1,
            "-q": MIG_LOG,
            "--query-compute-apps": b"GPU-a, 11, 5\n",
        }
    )
    made = NvidiaSmiCollector(runner=runner, host_memory=lambda: (1000, 10), monotonic=lambda: now)
    made.open()

    def logs() -> int:
        return sum(arguments[0] == "-q" for arguments in runner.asked)

    first = made.read()
    assert logs() == 1
    runner.answers["--query-gpu"] = mig % 250
    second = made.read()
    assert logs() == 1
    assert second.devices is first.devices
    assert (second.samples[0].power_watts, second.samples[1:], second.uses) == (
        250,
        first.samples[1:],
        first.uses,
    )
    runner.answers["--query-compute-apps"] = b"GPU-a, 11, 6\n"
    made.read()
    assert logs() == 2
    now += 61
    made.read()
    assert logs() == 3
    runner.answers["--query-gpu"] = mig.replace(b"Enabled", b"Disabled") % 1
    assert [facts.kind for facts in made.read().devices] == ["gpu"]
    runner.answers["--query-gpu"] = mig % 1
    assert len(made.read().devices) == 3
    assert logs() == 4


def test_mig_takes_the_log() -> None:
    mig = b"index=0;uuid=GPU-a;name=A100;memory.total=81920;mig.mode.current=Enabled"
    listing = b"GPU 0: A100 (UUID: GPU-a)\n  MIG 1g.10gb     Device  0: (UUID: MIG-0)\n"
    made, _ = collector(help=HELP, gpu=mig, log=MIG_LOG, list=listing)
    made.open()
    reading = made.read()
    assert [facts.uuid for facts in reading.devices] == ["GPU-a", "MIG-0", "MIG-GPU-a/4/0"]
    assert reading.cuda_version == "12.4"


def test_unified_memory_is_the_hosts() -> None:
    made, _ = collector(help=HELP, gpu=b"index=0;uuid=GPU-0;name=GB10;memory.total=[N/A];memory.used=[N/A]")
    made.open()
    reading = made.read()
    assert (reading.devices[0].memory_total_bytes, reading.devices[0].memory_basis) == (1000, "host")
    assert reading.samples[0].memory_used_bytes == 10


def test_processes_that_cannot_be_listed_are_a_problem() -> None:
    made, runner = collector(help=HELP, gpu=TWO, apps=APPS)
    made.open()
    runner.answers["--query-compute-apps"] = CommandFailed("nvidia-smi", 1, b"no", b"")
    reading = made.read()
    assert len(reading.devices) == 2
    assert [problem.code for problem in reading.problems] == ["processes_failed"]


def test_a_hanging_command_fails_the_read() -> None:
    made, runner = collector(help=HELP, gpu=TWO, apps=APPS)
    made.open()
    runner.answers["--query-gpu"] = Failed("nvidia-smi did not finish within 10 s")
    with pytest.raises(CollectorFailed) as caught:
        made.read()
    assert caught.value.code == "driver_hung"


THREE = b"""index=0;uuid=GPU-0;name=T4;pci.bus_id=00000000:01:00.0;memory.total=100;memory.used=5
index=1;uuid=GPU-1;name=T4;pci.bus_id=00000000:02:00.0;memory.total=100;memory.used=6
index=2;uuid=GPU-2;name=T4;pci.bus_id=00000000:03:00.0;memory.total=100;memory.used=7"""


def gone(bus: str) -> CommandFailed:
    words = f"Unable to determine the device handle for GPU{bus}: GPU is lost.  Reboot the system"
    return CommandFailed("nvidia-smi", 15, words.encode(), b"")


def test_two_lost_gpus_do_not_hide_the_third() -> None:
    made, runner = collector(help=HELP, gpu=THREE)
    made.open()
    runner.answers["--query-gpu"] = gone("0000:01:00.0")
    runner.answers["--query-gpu --id=GPU-2"] = gone("0000:03:00.0")
    runner.answers["--query-gpu --id=GPU-1"] = THREE.splitlines()[1]
    reading = made.read()
    assert [facts.uuid for facts in reading.devices] == ["GPU-0", "GPU-1", "GPU-2"]
    assert [sample.memory_used_bytes for sample in reading.samples] == [None, 6 * MIB, None]
    assert [(problem.code, problem.device_uuid) for problem in reading.problems] == [
        ("gpu_lost", "GPU-0"), ("gpu_lost", "GPU-2"),
    ]  # fmt: skip


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_gpu_that_was_lost_before_we_came(is_listed: bool) -> None:
    listing = (
        b"GPU 0: T4 (UUID: GPU-0)\nGPU 1: T4 (UUID: GPU-1)\n" if is_listed else b"GPU 1: T4 (UUID: GPU-1)\n"
    )
    made, runner = collector(help=HELP, gpu=THREE, list=listing)
    runner.answers["--query-gpu"] = gone("0000:01:00.0")
    runner.answers["--query-gpu --id=GPU-1"] = THREE.splitlines()[1]
    made.open()
    reading = made.read()
    healthy = [
        facts.uuid
        for facts, sample in zip(reading.devices, reading.samples, strict=True)
        if sample.memory_used_bytes
    ]
    assert healthy == ["GPU-1"]
    assert [(problem.code, problem.device_uuid) for problem in reading.problems] == [
        ("gpu_lost", "GPU-0" if is_listed else "gpu-at-0000:01:00.0")
    ]
    assert len(reading.devices) == 2


def test_labels_are_cleaned_and_pids_bounded() -> None:
    row = {"index": "99999999", "uuid": "GPU-\x1b[31m", "name": "\u202eT4", "pci.bus_id": "\x07"}
    facts, _, _ = row_device(row)
    assert facts.index == 0
    assert "\x1b" not in facts.uuid
    assert "\u202e" not in facts.name
    assert facts.pci_bus_id == "\ufffd"
    assert parse_apps("GPU-0, \u00b2, 1\nGPU-0, 99999999999999999999, 1\n".encode())[0] == []


@pytest.mark.parametrize("word", [*_FAILURES, "GPU is lost", "GPU requires reset", "[Reset Required]"])
def test_no_failure_passes_as_a_healthy_row(word: str) -> None:
    assert row_device({**ROW, "power.draw": word})[2]


@pytest.mark.parametrize(
    "row",
    [
        b"[Insufficient Permissions]",
        b"GPU-0, -, 5, python",
        b"GPU-0, [N/A], [N/A], python",
        b"Failed to list",
        b"MIG-9, 77, 5, x",
        b", 77, 5, python",
    ],
)
def test_rows_of_processes_that_cannot_be_read_leave_no_gpu_free(row: bytes) -> None:
    made, _ = collector(help=HELP, gpu=TWO, apps=APPS + row + b"\n")
    made.open()
    reading = made.read()
    assert [(problem.code, problem.device_uuid) for problem in reading.problems] == [
        ("processes_failed", None)
    ]
    assert "as root" in reading.problems[0].message
    assert [(use.device, use.pid) for use in reading.uses] == [(1, 77)]


@pytest.mark.parametrize("uuid", [b"uuid=[Unknown]", b"uuid=0", b"uuid=garbage"])
def test_a_process_on_a_gpu_nobody_knows_may_be_on_the_one_without_a_uuid(uuid: bytes) -> None:
    nameless = TWO.replace(b"uuid=GPU-1", uuid)
    made, _ = collector(help=HELP, gpu=nameless, apps=APPS)
    made.open()
    assert [(problem.code, problem.device_uuid) for problem in made.read().problems] == [
        ("processes_failed", None)
    ]
    made, _ = collector(help=HELP, gpu=nameless, apps=b"GPU-0, 77, 5, python\n")
    made.open()
    assert made.read().problems == ()


def test_an_ecc_count_that_cannot_be_read_any_more_stays() -> None:
    count = b"ecc.errors.uncorrected.volatile.total="
    made, runner = collector(
        help=HELP, gpu=TWO.replace(b"driver_version", count + b"5;driver_version"), apps=b""
    )
    made.open()
    assert [sample.ecc_uncorrected for sample in made.read().samples] == [5, 5]
    failing = TWO.replace(b"driver_version", count + b"[Unknown Error];driver_version", 1)
    runner.answers["--query-gpu"] = failing
    assert [sample.ecc_uncorrected for sample in made.read().samples] == [5, 5]
    made.open()
    assert [sample.ecc_uncorrected for sample in made.read().samples] == [None, None]


def test_warnings_among_processes_are_no_processes() -> None:
    made, _ = collector(
        help=HELP, gpu=TWO, apps=b"WARNING: infoROM is corrupted\nNo running processes found\n"
    )
    made.open()
    assert made.read().problems == ()


def test_a_warning_of_a_corrupted_inforom_is_passed_on() -> None:
    made, runner = collector(help=HELP, gpu=TWO, apps=b"")
    made.open()
    run = runner.run

    def warn(arguments: Sequence[str], deadline_seconds: float) -> bytes:
        answer = run(arguments, deadline_seconds)
        is_gpus = arguments[1].startswith("--query-gpu")
        return answer + (b"\nWARNING: infoROM is corrupted at gpu 0000:02:00.0\n" if is_gpus else b"")

    runner.run = warn  # type: ignore[method-assign]
    (problem,) = made.read().problems
    assert (problem.code, problem.device_uuid, problem.is_fault) == ("driver_warning", "GPU-1", False)


@pytest.mark.parametrize(
    ("changed", "columns"),
    [
        ({"utilization.gpu": "101"}, ("utilization_gpu",)),
        ({"utilization.gpu": "[Insufficient Permissions]"}, ("utilization_gpu",)),
        ({"memory.used": "99999"}, ("memory_used_bytes",)),
        ({"memory.total": "0", "memory.used": "[Unknown]"}, ("memory_total_bytes", "memory_used_bytes")),
        ({"utilization.gpu": "[N/A]"}, None),
        ({"utilization.gpu": "[Not Supported]"}, None),
    ],
)
def test_what_decides_and_cannot_be_is_a_failure(changed: dict[str, str], columns: Any) -> None:
    row = {"index": "0", "uuid": "GPU-0", "memory.total": "16000", "memory.used": "3", "utilization.gpu": "0"}
    _, _, problems = row_device({**row, **changed})
    assert [(problem.code, problem.columns) for problem in problems] == (
        [("metric_failed", columns)] if columns else []
    )


@pytest.mark.parametrize("failed", [{}, {"temperature.gpu": "[Unknown Error]"}])
@pytest.mark.parametrize(
    ("mode", "is_known"),
    [("Enabled", True), ("Disabled", True), ("[N/A]", True), ("[Not Supported]", True), ("", False),
     ("[Insufficient Permissions]", False), ("[Unknown Error]", False)],
)  # fmt: skip
def test_a_gpu_that_may_be_split_is_not_a_whole_one(
    mode: str, is_known: bool, failed: dict[str, str]
) -> None:
    row = {
        "index": "0",
        "uuid": "GPU-0",
        "memory.total": "16000",
        "memory.used": "3",
        "utilization.gpu": "[N/A]",
    }
    _, _, problems = row_device({**row, "mig.mode.current": mode, **failed})
    assert ("processes_failed" not in [problem.code for problem in problems]) == is_known


SHARED_LOG = b"""<?xml version="1.0"?><nvidia_smi_log><driver_version>550.1</driver_version><gpu id="00000000:01:00.0">
<uuid>GPU-0</uuid><product_name>A100</product_name><mig_mode><current_mig>Enabled</current_mig></mig_mode>
<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
</mig_device><mig_device><index>1</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>1</compute_instance_id>
</mig_device></mig_devices><processes></processes></gpu></nvidia_smi_log>"""


def test_slices_are_listed_once_when_the_query_fails() -> None:
    """Twice the same device made the hub refuse the node for ever."""
    made, _ = collector(help=HELP, gpu=CommandFailed("nvidia-smi", 2, b"", b"odd"), log=SHARED_LOG)
    made.open()
    reading = made.read()
    assert [facts.kind for facts in reading.devices] == ["gpu", "slice", "slice"]
    assert len({facts.uuid for facts in reading.devices}) == 3
    assert [facts.gpu_instance for facts in reading.devices] == [None, 1, 1]
    assert reading.devices[0].pci_bus_id == "00000000:01:00.0", "from the element's own id"


@pytest.mark.parametrize(
    "listed",
    [
        b"",
        b"<processes>N/A</processes>",
        b"<processes><process_info><pid>N/A</pid></process_info></processes>",
        b"<processes><process_info><gpu_instance_id>N/A</gpu_instance_id><pid>7</pid></process_info></processes>",
    ],
)
def test_a_log_without_a_list_of_processes_leaves_gpu_and_slices_unknown(listed: bytes) -> None:
    reading = parse_log(SHARED_LOG.replace(b"<processes></processes>", listed), [])
    assert [(p.code, p.device_uuid) for p in reading.problems if p.code == "processes_failed"] == [
        ("processes_failed", facts.uuid) for facts in reading.devices
    ]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("C", "compute"),
        ("G", "graphics"),
        ("C+G", "compute"),
        ("M+C", "compute"),
        ("N/A", "compute"),
        ("", "compute"),
    ],
)
def test_a_process_computes_unless_the_log_says_that_it_draws(word: str, kind: str) -> None:
    (use,) = parse_log(MIG_LOG.replace(b"<type>C<", f"<type>{word}<".encode()), []).uses
    assert use.kind == kind


def test_the_log_of_newer_drivers() -> None:
    log = b"""<nvidia_smi_log><gpu id="00000000:01:00.0"><uuid>GPU-0</uuid><product_name>A100</product_name>
    <ecc_errors><volatile><sram_correctable>1</sram_correctable><sram_uncorrectable_parity>2</sram_uncorrectable_parity>
    <sram_uncorrectable_secded>3</sram_uncorrectable_secded><dram_correctable>4</dram_correctable>
    <dram_uncorrectable>5</dram_uncorrectable></volatile></ecc_errors>
    <gpu_power_readings><power_draw>N/A</power_draw><average_power_draw>139.62 W</average_power_draw>
    <instant_power_draw>142.33 W</instant_power_draw></gpu_power_readings>
    <clocks_event_reasons><clocks_event_reason_gpu_idle>N/A</clocks_event_reason_gpu_idle></clocks_event_reasons>
    <processes></processes></gpu></nvidia_smi_log>"""
    (sample,) = parse_log(log, []).samples
    assert (sample.ecc_corrected, sample.ecc_uncorrected) == (5, 10)
    assert sample.power_watts == 139.62
    assert sample.throttle_reasons is None, "N/A is not: none"


def test_a_card_that_does_not_tell_its_memory_has_not_the_hosts() -> None:
    old = b"index=0;uuid=GPU-0;name=NVIDIA GeForce GT 730;compute_cap=3.5;driver_version=384.1"
    made, _ = collector(help=HELP, gpu=old, apps=b"")
    made.open()
    reading = made.read()
    assert (reading.devices[0].memory_total_bytes, reading.samples[0].memory_used_bytes) == (None, None)
