"""A tiny script that speaks the block format, and what follows a node in the tests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.model.targets import Target
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.way import SshWay
from gpuherd.wire.blocks import Round
from support.running import PATIENCE_SECONDS

TINY_SCRIPT = b"""\
[ -n "${p:-}" ] || read -r p
set -- $p
case "$1 $2" in "gpuherd-ssh 1") ;; *) echo "gpuherd-ssh refused not understood"; exit 64 ;; esac
printf '\\n@%s start tiny-1\\n' "$3"
n=0
while :; do
  n=$((n + 1))
  printf '\\n@%s round %s\\nround %s of %s\\n@%s block hello 0\\n\\n@%s end %s\\n' \\
    "$3" $n $n "$(id -un)" "$3" "$3" $n
  sleep "$4"
done
"""


class TinyReader:
    """Reads the tiny script's only block."""

    def __init__(self) -> None:
        self.is_closed = False

    def read(self, round_: Round, /) -> Report:
        text = round_.blocks["hello"].content.decode()
        return Report(facts=NodeFacts(host=HostFacts(hostname=text)), sample=Sample(time=0.0))

    def close(self) -> None:
        self.is_closed = True


class Intake:
    """Keeps what arrives, with the time."""

    def __init__(self, node_id: str = "node") -> None:
        self.node_id = node_id
        self.reports: list[Report] = []
        self.times: list[float] = []

    def take(self, report: Report) -> None:
        self.reports.append(report)
        self.times.append(time.monotonic())

    @property
    def texts(self) -> list[str]:
        return [report.facts.host.hostname for report in self.reports]


class Hub:
    """A way with its files, for one test."""

    def __init__(self, folder: Path, script: bytes = TINY_SCRIPT, **settings: Any) -> None:
        self.folder = folder
        self.known_hosts = folder / "known_hosts"
        self.accepted = folder / "accepted_keys"
        self.config = folder / "ssh_config"
        if not self.config.exists():
            self.config.write_text("")
        settings.setdefault("interval_seconds", 0.2)
        settings.setdefault("connect_deadline_seconds", PATIENCE_SECONDS)
        settings.setdefault("known_hosts_file", self.known_hosts)
        settings.setdefault("config_file", self.config)
        self.settings = SshSettings(**settings)
        self.readers: list[TinyReader] = []
        self.environment: dict[str, str] = {}
        self.way = SshWay(
            self.settings,
            make_reader=self._make_reader,
            script=script,
            accepted_keys_file=self.accepted,
            environment=self.environment,
            random=lambda: 0.0,
        )

    def _make_reader(self) -> TinyReader:
        self.readers.append(TinyReader())
        return self.readers[-1]

    def know(self, *lines: str) -> None:
        with self.known_hosts.open("a") as file:
            file.writelines(line + "\n" for line in lines)

    @asynccontextmanager
    async def following(self, target: Target) -> AsyncIterator[Following]:
        following = Following(self.way, target)
        try:
            yield following
        finally:
            following.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ContactFailed):
                await following.task

    async def failure(self, target: Target) -> ContactFailed:
        """Follow a node that cannot be followed; gives why."""
        async with self.following(target) as node:
            return await node.failure()

    async def first_text(self, target: Target) -> str:
        """Follow a node to its first report."""
        async with self.following(target) as node:
            await node.rounds(1)
            return node.intake.texts[0]


class Following:
    """One node being followed."""

    def __init__(self, way: SshWay, target: Target) -> None:
        self.intake = Intake(target.name)
        self.task = asyncio.create_task(way.follow(target, self.intake))

    async def rounds(self, count: int) -> None:
        """Wait for reports; a failure meanwhile is the test's."""
        await eventually(lambda: len(self.intake.reports) >= count or self.task.done())
        if len(self.intake.reports) < count:
            self.task.result()

    async def failure(self) -> ContactFailed:
        await asyncio.wait([self.task], timeout=PATIENCE_SECONDS)
        assert self.task.done(), "still following"
        error = self.task.exception()
        assert isinstance(error, ContactFailed), error
        return error


def open_files() -> set[str]:
    """What this process has open, apart from plain files."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            link = str(entry.readlink())
            if link.startswith(("socket:", "pipe:")):
                found.add(link)
    return found


def play(story: Coroutine[Any, Any, None]) -> None:
    """Run a test's story; afterwards no task and no connection may be left."""

    async def checked() -> None:
        await story
        for _ in range(5):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    before = open_files()
    asyncio.run(checked())
    assert open_files() <= before


async def eventually(is_good: Callable[[], object], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + patience_seconds
    while not is_good():
        assert time.monotonic() < deadline, "did not come true"
        await asyncio.sleep(0.02)
