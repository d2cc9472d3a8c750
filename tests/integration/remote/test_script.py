"""The script in every shell that may be a node's ``sh``: its bytes become the report that an agent would make."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gpuherd.collect.host import HostCollector
from gpuherd.collect.nvidia_smi.row import FIELDS
from gpuherd.collect.processes import CommandLines
from gpuherd.collect.remote import node_script
from gpuherd.collect.rocm_smi.collector import OPTIONS
from gpuherd.model.errors import Refused
from gpuherd.wire.blocks import BlockReader
from support.remote_node import FakeNode, Session, is_running, which
from support.running import PATIENCE_SECONDS

from .conftest import SECRET

MIB = 2**20


def test_a_report_of_this_machine(node: FakeNode, worker: subprocess.Popen[bytes]) -> None:
    node.gpus(2)
    node.write("apps", f"GPU-1-aaaa, {worker.pid}, 300\nGPU-0-aaaa, 4194999, 20\n")
    with Session(node) as session:
        first = session.report()
        report = session.report()
    assert [(d.uuid, d.index, d.name, d.memory_total_bytes) for d in report.facts.devices] == [
        ("GPU-0-aaaa", 0, "NVIDIA A100", 81920 * MIB), ("GPU-1-aaaa", 1, "NVIDIA A100", 81920 * MIB),
    ]  # fmt: skip
    assert [d.utilization_gpu for d in report.sample.devices] == [0.0, 0.01]
    assert report.sample.problems == ()
    assert report.facts is first.facts
    assert report.table is first.table

    real = psutil.Process(worker.pid)
    process, gone = report.table.processes
    assert (process.pid, process.user, process.is_gone) == (worker.pid, getpass.getuser(), False)
    assert process.started_at == pytest.approx(real.create_time(), abs=1)
    assert process.command is not None
    assert process.command.startswith(sys.executable)
    assert "--lr 0.1 --token *** https://***@host/x" in process.command
    assert SECRET not in repr(report)
    memory = report.sample.processes[0].memory_bytes
    assert memory is not None
    assert memory == pytest.approx(real.memory_info().rss, rel=0.05)
    assert report.sample.processes[0].cpu_cores is not None
    assert (gone.pid, gone.is_gone, gone.user) == (4194999, True, None)
    assert [(use.device, use.process) for use in report.table.uses] == [(1, 0), (0, 1)]
    assert [use.gpu_memory_bytes for use in report.sample.uses] == [300 * MIB, 20 * MIB]

    host = report.facts.host
    local = HostCollector()
    facts, sample = local.facts(), local.sample()
    local.close()
    for name in (
        "os",
        "kernel",
        "architecture",
        "cpu_model",
        "cpu_count",
        "memory_total_bytes",
        "booted_at",
        "disks",
    ):
        assert getattr(host, name) == getattr(facts, name), name
    assert host.hostname == socket.gethostname()
    assert (host.driver_version, host.agent_version) == ("550.1", None)
    assert report.sample.time == pytest.approx(time.time(), abs=60)
    assert report.sample.host.cpu_ratio is not None
    assert report.sample.host.uptime_seconds == pytest.approx(sample.uptime_seconds or 0, abs=30)
    assert report.sample.host.memory_used_bytes is not None
    assert len(report.sample.disks_used_bytes) == len(facts.disks)


def test_addresses_are_those_that_the_agent_finds(dash_node: FakeNode) -> None:
    with Session(dash_node) as session:
        host = session.report().facts.host
    assert set(host.addresses) == set(HostCollector().facts().addresses)


@pytest.mark.parametrize(("mode", "shown"), [("program", "python"), ("none", None)])
def test_arguments_do_not_leave_the_node(
    node: FakeNode, worker: subprocess.Popen[bytes], mode: CommandLines, shown: str | None
) -> None:
    node.gpus(1)
    node.write("apps", f"GPU-0-aaaa, {worker.pid}, 300\n")
    with Session(node, command_lines=mode) as session:
        session.report()
        (process,) = session.report().table.processes
        assert b"--lr" not in session.output
        assert SECRET.encode() not in session.output
    assert process.user == getpass.getuser()
    assert process.started_at is not None
    if shown is None:
        assert process.command is None
    else:
        assert (process.command or "").startswith(shown)


def test_a_process_that_becomes_another_program_is_described_anew(dash_node: FakeNode) -> None:
    dash_node.gpus(1)
    with subprocess.Popen(["sh", "-c", "read x; exec sleep 100"], stdin=subprocess.PIPE) as process:
        dash_node.write("apps", f"GPU-0-aaaa, {process.pid}, 3\n")
        with Session(dash_node) as session:
            assert (session.report().table.processes[0].command or "").startswith("sh -c")
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            until = time.monotonic() + PATIENCE_SECONDS
            while session.report().table.processes[0].command != "sleep 100":
                assert time.monotonic() < until
            process.kill()
            process.wait()
            while not session.report().table.processes[0].is_gone:
                assert time.monotonic() < until


def test_rounds_keep_the_pace_that_was_asked_for(node: FakeNode) -> None:
    """Too often would cost the node, and the hub would drop it; the first round is at once."""
    node.gpus(2)
    started = time.monotonic()
    with Session(node, interval_seconds=0.7) as session:
        for _ in range(4):
            session.report()
        assert time.monotonic() - started > 3 * 0.7 * 0.9


def test_many_gpus_and_processes_over_many_rounds(node: FakeNode) -> None:
    """Where there are many, most rounds look at them in a cheaper way: nothing is missed by that."""
    node.gpus(5)
    code = "read x; exec sleep 100"
    workers = [subprocess.Popen(["sh", "-c", code], stdin=subprocess.PIPE) for _ in range(4)]
    try:
        node.write("apps", "".join(f"GPU-{n}-aaaa, {w.pid}, {n}\n" for n, w in enumerate(workers)))
        with Session(node, interval_seconds=0.05) as session:
            reports = [session.report() for _ in range(12)]
            assert b"pids.same 0" in session.output
            for report in reports:
                assert [sample.utilization_gpu for sample in report.sample.devices] == [
                    0.0,
                    0.01,
                    0.02,
                    0.03,
                    0.04,
                ]
                assert [process.command for process in report.table.processes] == [f"sh -c {code}"] * 4
                assert None not in [sample.memory_bytes for sample in report.sample.processes]
            assert reports[-1].table is reports[1].table
            stdin = workers[0].stdin
            assert stdin is not None
            stdin.write(b"\n")
            stdin.flush()
            workers[3].kill()
            workers[3].wait()
            until = time.monotonic() + PATIENCE_SECONDS
            while not session.report().table.processes[3].is_gone:
                assert time.monotonic() < until, "the end of a process is not noticed"
            while session.report().table.processes[0].command != "sleep 100":
                assert time.monotonic() < until, "the new program is not noticed"
            node.write("gpus", "0, GPU-9-aaaa, A100, 00000000:01:00.0, 550.1, [N/A], 81920, 10, 3, 40\n")
            while len((report := session.report()).facts.devices) != 1:
                assert time.monotonic() < until, "the new GPU is not noticed"
            assert report.sample.problems == ()
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            if worker.stdin is not None:
                worker.stdin.close()


def test_slices_come_from_the_log_without_process_names(
    node: FakeNode, worker: subprocess.Popen[bytes]
) -> None:
    node.write("gpus", "0, GPU-0-aaaa, A100, 00000000:01:00.0, 550.1, Enabled, 81920, 10, [N/A], 40\n")
    node.write("list", "GPU 0: A100 (UUID: GPU-0-aaaa)\n  MIG 1g.10gb     Device  0: (UUID: MIG-0)\n")
    node.write(
        "log",
        f"""<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>550.1</driver_version><gpu id="00000000:01:00.0"><uuid>GPU-0-aaaa</uuid>
<product_name>A100</product_name><mig_mode><current_mig>Enabled</current_mig></mig_mode>
<mig_devices><mig_device><index>0</index><gpu_instance_id>7</gpu_instance_id>
<compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>9728 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device></mig_devices>
<processes><process_info><gpu_instance_id>7</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<pid>{worker.pid}</pid><type>C</type>
<process_name>python --token {SECRET}</process_name>
<used_memory>11 MiB</used_memory></process_info>
<process_info><pid>{os.getpid()}</pid><type>G</type><process_name>two
lines {SECRET}</process_name><used_memory>1 MiB</used_memory></process_info>
</processes></gpu></nvidia_smi_log>""",
    )
    with Session(node, command_lines="none") as session:
        report = session.report()
        for _ in range(3):  # nothing has changed: the costly log is not asked for again
            again = session.report()
            assert again.facts.devices == report.facts.devices
            assert again.table.uses == report.table.uses
            assert [process.user for process in again.table.processes] == [getpass.getuser()] * 2
        assert [arguments for _, arguments in node.calls()].count("-q -x") == 1
        node.write("apps", f"GPU-0-aaaa, {worker.pid}, 12\n")
        session.report()  # may have been under way
        session.report()
        assert [arguments for _, arguments in node.calls()].count("-q -x") == 2
        assert SECRET.encode() not in session.output
    assert [(d.uuid, d.profile) for d in report.facts.devices] == [("GPU-0-aaaa", None), ("MIG-0", "1g.10gb")]
    assert (report.sample.devices[1].memory_used_bytes, report.sample.problems) == (12 * MIB, ())
    assert report.table.processes[0].user == getpass.getuser()
    assert [(use.device, use.process) for use in report.table.uses] == [(1, 0), (0, 1)]


def test_a_field_that_is_not_known_after_all(dash_node: FakeNode) -> None:
    text = (dash_node.programs / "nvidia-smi").read_text()
    refusing = (
        "case $1 in *,enforced.power.limit*) "
        "echo 'Field \"enforced.power.limit\" is not a valid field'; exit 2 ;; esac\n"
    )
    dash_node.install("nvidia-smi", text.replace("case $1 in\n--help", f"{refusing}case $1 in\n--help"))
    dash_node.write(
        "help", (dash_node.folder / "help").read_text() + '"enforced.power.limit" or "power.limit"\n'
    )
    dash_node.write("gpus", "0, GPU-0-aaaa, A100, 00000000:01:00.0, 550.1, [N/A], 81920, 10, 3, 40, 250\n")
    with Session(dash_node) as session:
        report = session.report()
    assert report.sample.devices[0].power_limit_watts == 250
    assert report.sample.problems == ()


def test_no_tools_at_all(dash_node: FakeNode) -> None:
    (dash_node.programs / "nvidia-smi").unlink()
    if any(Path(folder, "nvidia-smi").exists() for folder in os.environ["PATH"].split(":")):
        pytest.skip("this machine has a real nvidia-smi")
    with Session(dash_node) as session:
        report = session.report()
        (problem,) = report.sample.problems
        assert (problem.code, problem.is_fault) == ("no_driver", False)
        assert "there is no nvidia-smi on this node" in problem.message
        assert report.facts.devices == ()
        dash_node.install_nvidia_smi()
        dash_node.gpus(1)
        until = time.monotonic() + PATIENCE_SECONDS
        while not (report := session.report()).facts.devices:
            assert time.monotonic() < until, "the driver that was installed is not found"
        assert report.sample.problems == ()


def test_installed_as_the_command_of_a_key(node: FakeNode) -> None:
    """sshd runs it in place of what the hub asks for; the script that the hub sends is left unread."""
    node.gpus(1)
    path = node.folder / "gpuherd-node"
    path.write_bytes(node_script())
    path.chmod(0o755)
    with Session(node, command=[str(node.programs / "sh"), "-c", str(path)]) as session:
        assert len(session.report().facts.devices) == 1


@pytest.mark.parametrize(
    "line",
    [
        "", "hello", "gpuherd-ssh 1 abc 1 1 full", f"gpuherd-ssh 1 {'g' * 32} 1 1 full",
        f"gpuherd-ssh 2 {'0' * 32} 1 1 full", f"gpuherd-ssh 1 {'0' * 32} $(id) 1 full",
        f"gpuherd-ssh 1 {'0' * 32} 1;id 1 full", f"gpuherd-ssh 1 {'0' * 32} 1 . full",
        f"gpuherd-ssh 1 {'0' * 32} 010 1 full",
        f"gpuherd-ssh 1 {'0' * 32} 1 1 all", f"gpuherd-ssh 1 {'0' * 32} 1 1 full more",
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(node: FakeNode, line: str) -> None:
    path = node.folder / "gpuherd-node"
    path.write_bytes(node_script())
    ended = subprocess.run(
        ["sh", str(path)],
        executable=node.programs / "sh",
        input=f"{line}\n".encode(),
        capture_output=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (ended.returncode, ended.stderr) == (64, b"")
    with pytest.raises(Refused) as caught:
        BlockReader("0" * 32).feed(ended.stdout)
    assert caught.value.code == "refused"


def test_fields_and_options_are_those_of_the_collectors() -> None:
    text = node_script().decode()
    candidates = text.partition("candidates='")[2].partition("'")[0].split()
    assert candidates == ["|".join(names) for names in FIELDS]
    assert tuple(text.partition("rocm_most='")[2].partition("'")[0].split()) == OPTIONS


def test_the_script_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "node.sh"
    path.write_bytes(node_script())
    try:
        shellcheck = which("shellcheck")
    except AssertionError:
        pytest.skip("shellcheck is not installed: scripts/provision installs it")
    found = subprocess.run([shellcheck, "--shell=sh", str(path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_nothing_is_left_when_nobody_listens(node: FakeNode) -> None:
    node.gpus(1)
    with Session(node) as session:
        session.report()
        family = [
            session.process.pid,
            *(child.pid for child in psutil.Process(session.process.pid).children(True)),
        ]
        folders = [
            path
            for path in Path("/dev/shm").glob("gpuherd.*")
            if (path / "pid").read_text().strip() == str(family[0])
        ]
        assert len(folders) == 1
        session.close()
    until = time.monotonic() + PATIENCE_SECONDS
    while any(is_running(pid) for pid in family):
        assert time.monotonic() < until, "something still runs"
        time.sleep(0.01)
    assert not folders[0].exists()


def test_what_a_killed_session_left_is_removed(dash_node: FakeNode) -> None:
    dash_node.gpus(1)
    with Session(dash_node) as killed:
        killed.report()
        own = str(killed.process.pid)
        killed.process.kill()
        killed.process.wait()
    (folder,) = (
        path for path in Path("/dev/shm").glob("gpuherd.*") if (path / "pid").read_text().strip() == own
    )
    with Session(dash_node) as session, Session(dash_node) as neighbour:
        session.report()
        neighbour.report()
        assert not folder.exists()
        session.report()
