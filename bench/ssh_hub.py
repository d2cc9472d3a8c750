"""The hub's side of the SSH benchmark, as a process of its own: ``python -m bench.ssh_hub`` with a job on stdin.

Prints one line of JSON for each line that it reads after the job; see ``bench/ssh.py``.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import asyncssh
import msgspec

from bench.measure import memory_bytes
from gpuherd.collect.remote import RemoteNode
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.model.targets import Target
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.way import RoundReader, SshWay
from gpuherd.wire.blocks import Round

__all__ = ["Done", "Job"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    way: str
    """channel, exec or spawn"""
    port: int
    folder: str
    """With key, known_hosts and an empty ssh_config."""
    hosts: int
    interval_seconds: float
    seconds: float
    command: str = ""
    """What exec and spawn run for each sample."""
    script: str = ""
    """What a channel runs."""
    is_read: bool = False
    """Make reports of the rounds as a hub does, instead of only cutting them out."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    cpu_seconds: float
    """Of this process, and of the ssh processes it started."""
    samples: int
    rss_bytes: int
    failures: list[str]
    start_seconds: float
    """From the first login to the first sample of the last host."""
    gaps: list[float]
    """Between the samples of each host, in seconds."""


class Uncut:
    """Takes rounds as they are."""

    REPORT = Report(facts=NodeFacts(host=HostFacts(hostname="node")), sample=Sample(time=0.0))

    def read(self, round_: Round, /) -> Report:
        return self.REPORT

    def close(self) -> None: ...


class Intake:
    """Counts what arrives, and when."""

    def __init__(self, number: int) -> None:
        self.node_id = f"n{number}"
        self.times: list[float] = []

    def take(self, report: Report) -> None:
        self.times.append(time.monotonic())


def used_seconds() -> float:
    """Give the CPU time of this process and of the children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Hub:
    """Hosts being asked."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.folder = Path(job.folder)
        self.intakes: list[Intake] = []
        self.failures: list[str] = []
        self.start_seconds = 0.0
        self.tasks: list[asyncio.Task[None]] = []

    async def add(self, count: int) -> None:
        """Connect that many more hosts and wait for their first samples."""
        start = time.monotonic()
        fresh = [Intake(len(self.intakes) + number) for number in range(count)]
        self.intakes += fresh
        follow = {"channel": self._channels, "exec": self._execs, "spawn": self._spawns}[self.job.way]()
        self.tasks += [asyncio.create_task(self._kept(follow, intake)) for intake in fresh]
        deadline = time.monotonic() + 120
        while not all(intake.times for intake in fresh) and not self.failures:
            if time.monotonic() > deadline:
                self.failures.append("not every host has reported within 120 s")
            await asyncio.sleep(0.1)
        self.start_seconds = time.monotonic() - start

    async def _kept(self, follow: Callable[[Intake], object], intake: Intake) -> None:
        try:
            await follow(intake)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001 - told in the results
            self.failures.append(f"{type(error).__name__}: {error}")

    def _channels(self) -> Callable[[Intake], object]:
        job = self.job
        readers: Callable[[], RoundReader] = RemoteNode if job.is_read else Uncut
        way = SshWay(
            SshSettings(
                interval_seconds=job.interval_seconds,
                port=job.port,
                user="root",
                key_files=(self.folder / "key",),
                config_file=self.folder / "ssh_config",
                known_hosts_file=self.folder / "known_hosts",
                connect_deadline_seconds=60,
            ),
            make_reader=readers,
            script=job.script.encode(),
            accepted_keys_file=self.folder / "accepted",
            environment={},
        )
        return lambda intake: way.follow(Target(name=intake.node_id, address="127.0.0.1"), intake)

    def _execs(self) -> Callable[[Intake], object]:
        job = self.job
        limit = asyncio.Semaphore(4)

        async def follow(intake: Intake) -> None:
            async with limit:
                connection = await asyncssh.connect(
                    "127.0.0.1",
                    job.port,
                    username="root",
                    config=None,
                    client_keys=[str(self.folder / "key")],
                    known_hosts=str(self.folder / "known_hosts"),
                    agent_path=None,
                    encryption_algs="^aes128-gcm@openssh.com",
                )
            async with connection:
                while True:
                    began = time.monotonic()
                    result = await connection.run(job.command, encoding=None, check=True)
                    assert result.stdout
                    intake.take(Uncut.REPORT)
                    await asyncio.sleep(max(0.0, began + job.interval_seconds - time.monotonic()))

        return follow

    def _spawns(self) -> Callable[[Intake], object]:
        job = self.job
        command = [
            "ssh", "-F", str(self.folder / "ssh_config"), "-i", str(self.folder / "key"), "-p", str(job.port),
            "-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "-o", "BatchMode=yes",
            "root@127.0.0.1", job.command,
        ]  # fmt: skip

        async def follow(intake: Intake) -> None:
            while True:
                began = time.monotonic()
                process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
                output, _ = await process.communicate()
                assert process.returncode == 0
                assert output
                intake.take(Uncut.REPORT)
                await asyncio.sleep(max(0.0, began + job.interval_seconds - time.monotonic()))

        return follow

    async def measure(self) -> Done:
        """Let the hosts report for a while; gives what that took."""
        for intake in self.intakes:
            del intake.times[:-1]
        before, start = used_seconds(), time.monotonic()
        await asyncio.sleep(self.job.seconds)
        cpu, end = used_seconds() - before, time.monotonic()
        gaps = []
        for intake in self.intakes:
            times = (
                [*intake.times, end] if end - intake.times[-1] > self.job.interval_seconds else intake.times
            )
            gaps += [round(late - early, 3) for early, late in pairwise(times)]
        return Done(
            cpu_seconds=cpu,
            samples=sum(sum(1 for when in intake.times if when > start) for intake in self.intakes),
            rss_bytes=memory_bytes(os.getpid())[0],
            failures=self.failures[:5],
            start_seconds=self.start_seconds,
            gaps=gaps,
        )


async def main() -> None:
    """Connect the job's hosts, then measure for each line on standard input: "N" connects N hosts more first."""
    job = msgspec.json.decode(sys.stdin.readline(), type=Job)
    hub = Hub(job)
    await hub.add(job.hosts)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if int(line):
            await hub.add(int(line))
        print(msgspec.json.encode(await hub.measure()).decode(), flush=True)
    for task in hub.tasks:
        task.cancel()
    await asyncio.gather(*hub.tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
