"""The script that nodes really run, over a real sshd: reports with GPUs, without, and with a tool that hangs."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from gpuherd.collect.remote import RemoteNode, node_script
from gpuherd.model.reports import Report
from gpuherd.model.targets import Target
from support.ssh_nodes import Following, Hub, eventually, play
from support.sshd import Sshd, make_key, running_sshd

NVIDIA_SMI = """#!/bin/sh
case "$*" in
*--help-query-gpu*) for f in index uuid name memory.total memory.used utilization.gpu temperature.gpu; do
    printf '"%s"\\n\\n' $f; done ;;
*--query-gpu=*) for i in 0 1; do echo "$i, GPU-$i, Test Card, 81920, 41231, 87, 61"; done ;;
esac
"""


def at(server: Sshd) -> Target:
    return Target(name="gpu01", address=server.address, port=server.port, user="root")


def tools(folder: Path, nvidia_smi: str | None) -> str:
    """Make a folder of programs as the node's PATH finds them first."""
    folder.mkdir()
    if nvidia_smi is not None:
        program = folder / "nvidia-smi"
        program.write_text(nvidia_smi)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin"


def follow(
    tmp_path: Path, key: Path, server: Sshd, *, rounds: int = 2, deadline_seconds: float = 10.0
) -> list[Report]:
    reports: list[Report] = []

    async def story() -> None:
        hub = Hub(tmp_path, node_script(), key_files=(key,), command_deadline_seconds=deadline_seconds)
        hub.way._make_reader = RemoteNode
        hub.know(server.known_hosts_line)
        async with hub.following(at(server)) as node:
            await node.rounds(rounds)
            reports.extend(node.intake.reports)
        await eventually(lambda: not server.session_pids())
        await hub.way.close()

    play(story())
    return reports


@pytest.mark.parametrize("is_bound", [False, True], ids=["sent", "installed"])
def test_gpus_and_host_arrive(tmp_path: Path, key: Path, is_bound: bool) -> None:
    with running_sshd(tmp_path / "sshd", SetEnv=tools(tmp_path / "bin", NVIDIA_SMI)) as server:
        if is_bound:
            key = make_key(tmp_path / "bound")
            installed = tmp_path / "gpuherd-node"
            installed.write_bytes(node_script())
            installed.chmod(0o755)
            server.authorize(key, f'restrict,command="{installed}"')
        else:
            server.authorize(key)
        reports = follow(tmp_path, key, server)
    report = reports[-1]
    assert [device.uuid for device in report.facts.devices] == ["GPU-0", "GPU-1"]
    assert [sample.utilization_gpu for sample in report.sample.devices] == [0.87, 0.87]
    assert report.facts.host.hostname == Path("/proc/sys/kernel/hostname").read_text().strip()
    assert report.sample.host.memory_used_bytes is not None
    assert reports[1].facts is reports[0].facts


def test_a_node_without_nvidia_smi_still_reports(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd", SetEnv=tools(tmp_path / "bin", None)) as server:
        server.authorize(key)
        report = follow(tmp_path, key, server)[-1]
    assert report.facts.devices == ()
    assert report.sample.host.memory_used_bytes is not None
    assert report.sample.problems


def test_a_command_that_hangs_costs_its_deadline_and_is_ended_on_the_node(tmp_path: Path, key: Path) -> None:
    forever = f"98765{os.getpid()}"  # seconds, and what to recognise it by
    with running_sshd(
        tmp_path / "sshd", SetEnv=tools(tmp_path / "bin", f"#!/bin/sh\nexec sleep {forever}\n")
    ) as server:
        server.authorize(key)
        reports = follow(tmp_path, key, server, rounds=3, deadline_seconds=1)
    assert reports[-1].sample.host.memory_used_bytes is not None
    assert reports[-1].sample.problems
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if forever in _command_line(pid)]


def test_gpus_are_not_forgotten_when_the_driver_hangs_at_the_next_login(tmp_path: Path, key: Path) -> None:
    """A link that broke and a driver that hangs often come together."""
    path = tools(tmp_path / "bin", NVIDIA_SMI)
    with running_sshd(tmp_path / "sshd", SetEnv=path) as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, node_script(), key_files=(key,), command_deadline_seconds=1)
            hub.way._make_reader = RemoteNode
            hub.know(server.known_hosts_line)
            async with hub.following(at(server)) as node:
                await node.rounds(1)
                assert len(node.intake.reports[-1].facts.devices) == 2
                (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 1000\n")
                server.stop()
                await node.failure()
                server.start()
                again = Following(hub.way, at(server))
                await again.rounds(1)
                report = again.intake.reports[-1]
                assert len(report.facts.devices) == 2
                assert [problem.is_fault for problem in report.sample.problems] == [True]
                again.task.cancel()
                await asyncio.gather(again.task, return_exceptions=True)
            assert hub.way._readers == {}
            await hub.way.close()

        play(story())


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
