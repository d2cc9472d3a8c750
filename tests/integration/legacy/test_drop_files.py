"""The drop files of the script tool: made by the commands its scripts run, and written while they are read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.api.hub import Hub
from gpuherd.collect.scrub import scrub
from gpuherd.sources.files import FolderWatch
from gpuherd.sources.settings import FolderSettings
from gpuherd.wiring.config import read_config
from gpuherd.wiring.outfit import configured_hub
from support.arrivals import KeptArrivals
from support.running import PATIENCE_SECONDS, free_port, until

REPOSITORY = Path(__file__).parents[3]
# Task 3 of the old gpu-run.sh, with the readings of tasks 1 and 2 in place of nvidia-smi's and no network between.
TASK_3 = r"""
df -l | grep " /$" > "$OUT/${HOST}_status.csv"
free -m | grep "Mem" >> "$OUT/${HOST}_status.csv"
nproc --all >> "$OUT/${HOST}_status.csv"
uptime >> "$OUT/${HOST}_status.csv"
{ echo '{"'$PID'": []}'; ps -o pid,user:20,lstart -p $PID | tail -n +2; } > "$OUT/${HOST}_users.csv"
echo $(uptime | grep -o -P ': \K[0-9]*[,]?[0-9]*')\;$(nproc) > "$OUT/${HOST}_cpus.csv"
tail -n 20 gpus.csv > "$OUT/${HOST}_gpus.csv"
tail -n 40 processes.csv > "$OUT/${HOST}_processes.csv"
"""


def now() -> str:
    return datetime.now().astimezone().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]


def watching(folder: Path, arrivals: KeptArrivals, interval_seconds: float) -> FolderWatch:
    settings = FolderSettings(path=folder, interval_seconds=interval_seconds)
    return FolderWatch(settings, arrivals, scrub=scrub)


async def watch_until(watch: FolderWatch, arrivals: KeptArrivals, name: str, count: int) -> None:
    async def look_on() -> None:
        while True:
            await watch.look()
            await asyncio.sleep(watch.look_every_seconds)

    task = asyncio.create_task(look_on())
    try:
        await until(lambda: name in arrivals.nodes and len(arrivals.nodes[name].reports) >= count, f"{name}")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_files_made_by_the_commands_of_the_old_scripts(tmp_path: Path) -> None:
    for program in ("df", "free", "nproc", "uptime", "ps", "bash"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    dropped = tmp_path / "data"
    dropped.mkdir()
    mine = psutil.Process()
    (tmp_path / "gpus.csv").write_text(
        f"0, GPU-0a1b2c3d-0000, Tesla M40 24GB, 11, 22945, 0, 0, 24, {now()}\n"
        f"1, GPU-0a1b2c3d-0001, Tesla M40 24GB, 21456, 22945, 97, 54, 71, {now()}\n"
    )
    (tmp_path / "processes.csv").write_text(
        f"{now()}, GPU-0a1b2c3d-0001, 21443, /usr/bin/python3, {mine.pid}\n"
    )
    subprocess.run(
        ["bash", "-c", TASK_3],
        cwd=tmp_path,
        env={**os.environ, "OUT": str(dropped), "HOST": "gpu-server-1", "PID": str(mine.pid), "LC_ALL": "C"},
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    arrivals = KeptArrivals()
    asyncio.run(watch_until(watching(dropped, arrivals, 20.0), arrivals, "gpu-server-1", 1))
    report = arrivals.nodes["gpu-server-1"].last
    assert [device.utilization_gpu for device in report.sample.devices] == [0.0, 0.97]
    (process,) = report.table.processes
    assert (process.pid, process.user, process.is_gone) == (mine.pid, mine.username(), False)
    assert process.started_at is not None
    assert abs(process.started_at - mine.create_time()) < 3
    assert [use.device for use in report.table.uses] == [1]
    memory = psutil.virtual_memory()
    assert report.facts.host.memory_total_bytes is not None
    assert abs(report.facts.host.memory_total_bytes - memory.total) <= 2**20
    assert report.sample.host.memory_used_bytes is not None
    assert report.sample.host.load_1m is not None
    assert report.facts.host.cpu_count is not None
    assert report.facts.host.cpu_count >= 1
    assert report.sample.problems == ()


def test_files_that_are_rewritten_in_place_all_the_time_never_give_wrong_data(tmp_path: Path) -> None:
    """As scp does it: emptied, then written piece by piece. Every number in a block says which block it is."""
    ended = threading.Event()

    def write_slowly(name: str, content: str) -> None:
        with (tmp_path / name).open("w") as file:
            for start in range(0, len(content), 40):
                file.write(content[start : start + 40])
                file.flush()
                if start % 200 == 0:
                    time.sleep(0.002)

    def write() -> None:
        block = 1
        while not ended.is_set():
            block = block % 97 + 1
            stamp = now()
            rows = [
                f"{n}, GPU-{n}, Tesla M40, {block}, 22945, {block}, {block}, {block}, {stamp}\n"
                for n in range(8)
            ]
            write_slowly("gpu01_gpus.csv", "".join(rows))
            rows = [f"{stamp}, GPU-{n}, {block}, python, {1000 + n}\n" for n in range(8)]
            write_slowly("gpu01_processes.csv", "".join(rows))
            ended.wait(0.9)

    arrivals = KeptArrivals()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        asyncio.run(watch_until(watching(tmp_path, arrivals, 4.0), arrivals, "gpu01", 3))
    finally:
        ended.set()
        writer.join(PATIENCE_SECONDS)
    for report in arrivals.nodes["gpu01"].reports:
        assert len(report.facts.devices) == 8
        assert len(report.table.uses) == 8
        (block,) = {sample.temperature_celsius for sample in report.sample.devices}
        assert {use.gpu_memory_bytes for use in report.sample.uses} == {int(block or 0) * 2**20}
    assert arrivals.troubles == {}


def test_what_the_agent_prints_is_a_report_when_it_is_renamed_into_place(tmp_path: Path) -> None:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    printed = subprocess.run(
        [sys.executable, "-m", "gpuherd", "agent", "--once", "--json", "--collector", "nvml"],
        env=simulator_environment(build_library(REPOSITORY / "build" / "sim"), SCENARIOS / "healthy.json"),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    ).stdout
    dropped = tmp_path / "data"
    dropped.mkdir()
    (tmp_path / "gpu02.json.tmp").write_bytes(printed)
    (tmp_path / "gpu02.json.tmp").rename(dropped / "gpu02.json")
    arrivals = KeptArrivals()
    asyncio.run(watch_until(watching(dropped, arrivals, 20.0), arrivals, "gpu02", 1))
    assert arrivals.nodes["gpu02"].last.facts.devices[0].uuid.startswith("GPU-")


def test_a_folder_that_is_away_is_told_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    text = (
        f'[hub]\nlisten = "127.0.0.1:{free_port()}"\nstate_dir = "{tmp_path}/state"\ntick_seconds = 0.1\n'
        f'[[folders]]\npath = "{folder}"\ninterval_seconds = 1\n'
    )

    def told(hub: Hub) -> list[str]:
        return [notice.message for notice in hub.fleet.view().notices]

    async def story() -> None:
        async with configured_hub(read_config(text, "gpuherd.toml", folder=tmp_path)) as hub:
            await until(lambda: bool(told(hub)), "the page says so")
            assert "cannot be opened: No such file or directory; create it" in told(hub)[0]
            assert hub.health().status == "degraded"
            await asyncio.to_thread(folder.mkdir)
            await until(lambda: not told(hub), "the page says so no longer")
            assert hub.health().status == "ok"

    asyncio.run(story())


@pytest.mark.promise("known-hosts-first")
def test_hosts_that_are_left_out_are_said_on_the_page_and_in_the_health(tmp_path: Path) -> None:
    dropped = tmp_path / "data"
    dropped.mkdir()
    for number in range(5):
        (dropped / f"gpu{number}_status.csv").write_text("nothing\n")
    config = read_config(
        f'[hub]\nlisten = "127.0.0.1:{free_port()}"\nstate_dir = "{tmp_path / "state"}"\n[history]\nenabled = false\n'
        f'[[folders]]\npath = "{dropped}"\nmax_nodes = 2\n',
        "gpuherd.toml",
    )

    async def story() -> None:
        async with configured_hub(config) as hub:
            said = "has files of 5 hosts, 3 more than folders.max_nodes"

            def is_said() -> bool:
                notices = [notice.message for notice in hub.fleet.view().notices]
                return any(said in text for text in notices) and any(
                    said in text for text in hub.health().reasons
                )

            await until(is_said, "it is said")
            for number in range(2, 5):
                (dropped / f"gpu{number}_status.csv").unlink()
            await until(lambda: not any(said in text for text in hub.health().reasons), "it is well again")

    asyncio.run(story())
