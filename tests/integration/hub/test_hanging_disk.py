"""A disk that does not answer any more: a hub that is told to stop ends all the same."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sim.build import COMPILER

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.settings import HubSettings
from support.hub import NodeClient, get_json
from support.running import PATIENCE_SECONDS, eventually, free_port
from support.soak import SOAK
from support.tally import Tally

SOURCE = Path(__file__).parents[2] / "support" / "hanging_disk.c"
PROMISED_SECONDS = 15.0
SHORTER = (
    "from gpuherd.api import hub; from gpuherd.wiring import up; "
    "up.END_SECONDS, hub.SAVE_SECONDS, hub.CLOSE_SECONDS = 3.0, 1.0, 1.0; "
)
"""For a quick test: the same bounds, only shorter."""
RUN = f"{SHORTER if SOAK == 1 else ''}from gpuherd.cli import main; main()"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """What lets all writes below a folder hang, Python's and SQLite's."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: a hanging disk cannot be made")
    library = tmp_path / "hanging_disk.so"
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *flags, "-o", library, SOURCE, "-ldl"], check=True)
    return library


@contextlib.contextmanager
def hub_process(
    tmp_path: Path, library: Path, state_dir: Path, port: int, hanging: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a hub whose writes to one file, or to all, hang as soon as ``tmp_path / "hangs"`` is there."""
    arguments = ["hub", "--state-dir", str(state_dir), "run", "--listen", f"127.0.0.1:{port}"]
    environment = {
        "LD_PRELOAD": str(library),
        "HANGING": str(state_dir / hanging),
        "HANGS": str(tmp_path / "hangs"),
    }
    with (tmp_path / "log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def end(process: subprocess.Popen[bytes], log: Path, tally: Tally, what: str) -> None:
    """Send SIGTERM and see the hub end in time."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE_SECONDS)
    finally:
        took = time.monotonic() - began
        # In the short form a slow machine may take longer than the shortened bounds.
        held = process.poll() is not None and (SOAK == 1 or took <= PROMISED_SECONDS)
        bounds = "shortened bounds" if SOAK == 1 else "real bounds"
        figure = f"ended after {took:.1f} s, {bounds}"
        tally.add(what, tries=1, held=int(held), figure=figure)
    assert held, log.read_text()
    assert "does not respond" in log.read_text()


@pytest.mark.chaos
@pytest.mark.promise("stops-on-hanging-disk")
def test_sigterm_ends_a_hub_whose_disk_hangs(tmp_path: Path, library: Path, tally: Tally) -> None:
    state_dir, log, hangs, port = tmp_path / "state", tmp_path / "log", tmp_path / "hangs", free_port()
    with closing(open_enrolment(HubSettings(state_dir=state_dir))) as enrolment:
        credential = enrolment.admit("n", now=time.time()).credential
    url = f"http://127.0.0.1:{port}/"

    async def story() -> None:
        node = NodeClient(url, credential)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    await node.open()
                    break
                except OSError:
                    assert process.poll() is None, log.read_text()
                    await asyncio.sleep(0.05)
        await node.describe()
        await node.wait_acked(await node.sample())
        await asyncio.to_thread(hangs.touch)
        acked = await node.sample() - 1
        # It hangs, and the live view does not.
        for _ in range(3):
            await node.sample()
            assert (await get_json(f"{url}api/v1/health"))["version"]
        assert node.acked == acked
        await node.close()

    with hub_process(tmp_path, library, state_dir, port) as process:
        asyncio.run(story())
        end(process, log, tally, "SIGTERM while the disk hangs")


@pytest.mark.chaos
@pytest.mark.promise("stops-on-hanging-disk")
def test_sigterm_ends_a_hub_that_starts_on_a_disk_that_hangs(
    tmp_path: Path, library: Path, tally: Tally
) -> None:
    (tmp_path / "hangs").touch()
    with hub_process(tmp_path, library, tmp_path / "state", free_port(), "state.sqlite") as process:
        eventually((tmp_path / "hangs.hung").exists, bool)
        end(process, tmp_path / "log", tally, "SIGTERM while a start waits for the disk")
