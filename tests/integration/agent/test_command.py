"""``gpuherd agent`` as a process: what it prints, how it ends, what it leaves behind."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpuherd.api.enrolling import open_enrolment
from gpuherd.model.reports import Report
from support.agent_hub import TestHub
from support.hub import running_hub
from support.running import PATIENCE_SECONDS, until
from support.watched_node import is_alive

CREDENTIAL = "ghn_0123456789abcdef"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "gpuherd", "agent", "--collector", "nvml", *map(str, arguments)]


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, **options
    )


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "credential").write_text(CREDENTIAL)
    return folder


def spooled(state_dir: Path) -> set[Path]:
    return set(state_dir.glob("spool/*/*.seg"))


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@asynccontextmanager
async def agent(*arguments: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command(*arguments), stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def test_once_prints_one_report_as_json() -> None:
    done = run("--once", "--json")
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    assert report.mismatch() is None
    assert report.facts.host.memory_total_bytes is not None
    assert report.sample.host.cpu_ratio is not None, "two looks were taken"


def test_print_streams_reports_until_told_to_stop() -> None:
    process = subprocess.Popen(command("--print", "--interval", "0.1"), stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        times = [json.loads(process.stdout.readline())["sample"]["time"] for _ in range(3)]
        probes = children(process.pid)
        assert probes
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert times == sorted(times)
    assert not [pid for pid in probes if is_alive(pid)]


def test_a_closed_pipe_ends_it_quietly() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(command('--print', '--interval', '0.1'))} | head -c 20"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "agent.hub_url"),
        (["--hub", "gpus.example.org"], "agent.hub_url"),
        (["--hub", "http://127.0.0.1:1"], "gpuherd token create"),
        (["--hub", "http://127.0.0.1:1", "--join-token-file", "/nowhere"], "/nowhere"),
        (["--collector", "crystal_ball", "--once"], "crystal_ball"),
        (["--config", "/nowhere.toml"], "/nowhere.toml"),
        (["--interval", "0"], "agent.interval_seconds"),
        (["--once", "--print"], "use either --once or --print"),
        (["--json"], "--once or --print"),
    ],
)
def test_mistakes_are_one_sentence_with_a_remedy(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    done = run("--state-dir", tmp_path, *arguments)
    assert done.returncode in (1, 2)
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_node_enrols_by_the_name_it_is_given(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_hub(tmp_path / "hub") as hub:
            token = tmp_path / "token"
            token.write_text(open_enrolment(hub.settings).create_token(now=hub.clock.wall(), uses=1))
            place = ("--hub", hub.url, "--state-dir", tmp_path / "state", "--join-token-file", token)
            async with agent(*place, "--name", "The big one"):
                await until(lambda: bool(hub.fleet.view().nodes), "a node")
            (node,) = hub.fleet.view().nodes
            assert (node.id, node.name) == ("the-big-one", "The big one")

    asyncio.run(main())


def test_two_agents_do_not_share_a_state_folder(state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub, agent("--hub", hub.url, "--state-dir", state_dir):
            await until(lambda: len(hub.samples()) >= 1, "the first agent reports")
            second = await asyncio.to_thread(run, "--hub", hub.url, "--state-dir", state_dir)
            assert second.returncode == 1
            assert "another agent uses the state folder" in second.stderr

    asyncio.run(main())


def test_sigterm_leaves_the_unconfirmed_on_disk_and_no_process(state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub:
            hub.acknowledges = False
            async with agent("--hub", hub.url, "--state-dir", state_dir, "--interval", "0.1") as process:
                await until(lambda: len(hub.samples()) >= 5, "samples")
                probes = children(process.pid)
                assert probes
                process.terminate()
                assert await asyncio.wait_for(process.wait(), PATIENCE_SECONDS) == 0
            assert not [pid for pid in probes if is_alive(pid)]
            (first,) = hub.kept
            hub.acknowledges = True
            async with agent("--hub", hub.url, "--state-dir", state_dir, "--interval", "0.1"):
                await until(lambda: len(hub.kept) == 2, "the next agent")
                await until(lambda: len(hub.samples(list(hub.kept)[1])) >= 2, "its samples")
                await until(lambda: hub.acked.get(first) == max(hub.kept[first]), "all of the old run")
            assert [hello.boot_id for hello in hub.past_hellos] == [first]
            assert hub.acked[first] == max(hub.kept[first])
            assert hub.missing(first) == []

    asyncio.run(main())


def test_kill_9_while_the_hub_is_away_loses_nothing_that_was_made(state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub:
            await hub.stop()  # a port where nobody listens
            runs = []
            for _ in range(3):
                async with agent("--hub", hub.url, "--state-dir", state_dir, "--interval", "0.1") as process:
                    known = spooled(state_dir)

                    def grown(known: set[Path] = known) -> bool:
                        new = spooled(state_dir) - known
                        return sum(path.stat().st_size for path in new) > 6000

                    await until(grown, "frames on disk")
                    probes = children(process.pid)
                    process.send_signal(signal.SIGKILL)
                    await process.wait()
                await until(lambda: not [pid for pid in probes if is_alive(pid)], "the probe dies too")  # noqa: B023
                runs.append(len({path.parent for path in spooled(state_dir)}))
            assert runs == [1, 2, 3]
            await hub.start()
            async with agent("--hub", hub.url, "--state-dir", state_dir, "--interval", "0.1"):
                await until(lambda: len(hub.past_hellos) == 3, "three old runs")
                await until(lambda: len(hub.samples(hub.hellos[0].boot_id)) >= 2, "live samples")
                await until(lambda: not spooled(state_dir), "all of it confirmed")
        for boot_id in [hello.boot_id for hello in hub.past_hellos]:
            assert hub.missing(boot_id) == []
            assert len(hub.samples(boot_id)) >= 8

    asyncio.run(main())


def test_rss_is_small(state_dir: Path) -> None:
    async def main() -> dict[str, int]:
        async with (
            TestHub() as hub,
            agent("--hub", hub.url, "--state-dir", state_dir, "--interval", "0.1") as process,
        ):
            await until(lambda: len(hub.samples()) >= 10, "samples")
            (probe,) = children(process.pid)
            return {
                f"{name} {field}": _smaps(pid)[field]
                for name, pid in (("agent", process.pid), ("probe", probe))
                for field in ("Rss", "Pss")
            }

    kilobytes = asyncio.run(main())
    print(kilobytes)  # noqa: T201 - shown with -s, the figure for docs/agent.md
    assert kilobytes["agent Rss"] < 32_000
    assert kilobytes["probe Rss"] < 26_000


def _smaps(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}
