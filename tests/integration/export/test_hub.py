"""A hub that keeps files up to date, and one that is asked for them: real hubs, the command as people run it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.reports import IDLE, gpu, report, working
from gpuherd.api.hub import Hub
from gpuherd.auth.secrets import API_TOKEN_PREFIX, new_secret
from gpuherd.model.processes import Process
from gpuherd.wiring.config import read_config
from gpuherd.wiring.outfit import configured_hub
from support.hub import eventually, running_hub
from support.people import add_account, add_token, refresh
from support.running import PATIENCE_SECONDS, free_port


async def _add_node(hub: Hub) -> None:
    node = await hub.admit("gpu01")
    process = Process(pid=4242, started_at=1_790_000_000.0, user="ada", command="python secret.py")
    hub.accept_report(node.node_id, report([(gpu(0), working(0.9)), (gpu(1), IDLE)], [(0, process)]))
    hub.fleet.tick()


def _export(folder: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", "export", *map(str, arguments)],
        env={**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_a_hub_tells_why_it_cannot_write_and_recovers(tmp_path: Path) -> None:
    folder = tmp_path / "www"
    config = read_config(
        f'[hub]\nlisten = "127.0.0.1:{free_port()}"\nstate_dir = "{tmp_path / "state"}"\n'
        '[bookings]\nzone = "Europe/Paris"\n'
        '[export]\nhtml = "www"\ncsv = "www/load_data.csv"\njson = "herd.json"\nevery_seconds = 5\n',
        "gpuherd.toml",
        folder=tmp_path,
    )
    page = folder / "index.html"

    async def story() -> None:
        async with configured_hub(config) as hub:
            await _add_node(hub)

            def trouble() -> list[str]:
                return [reason for reason in hub.health().reasons if reason.startswith("export: ")]

            told = await eventually(trouble)
            assert told == [f"export: {page}: there is no folder {folder}; create it, or choose another"]
            assert hub.health().status == "degraded"
            assert not (tmp_path / "herd.json").exists()
            folder.mkdir()
            await eventually(page.exists)
            await eventually(lambda: not trouble())

    asyncio.run(story())
    text = page.read_text()
    assert "gpu01" in text
    assert "~" in text, "the public gets pseudonyms"
    for file in (page, folder / "load_data.csv", tmp_path / "herd.json"):
        assert "ada" not in file.read_text().replace("data", "")
        assert "secret.py" not in file.read_text()
    assert ("CET (UTC+01:00)" in text) or ("CEST (UTC+02:00)" in text)
    assert 'data-old-after="60"' in text


def test_a_hub_is_asked_as_whoever_has_the_token(tmp_path: Path) -> None:
    files = ("--html", tmp_path, "--csv", tmp_path / "load_data.csv", "--json", tmp_path / "herd.json")

    async def story() -> None:
        async with running_hub(tmp_path / "state", public="read") as hub:
            await _add_node(hub)
            token_file = tmp_path / "token"
            token_file.write_text(add_token(hub, add_account(hub, "viewer", "viewer"))[1] + "\n")
            token_file.chmod(0o600)
            await refresh(hub)

            done = await asyncio.to_thread(_export, tmp_path, "--hub", hub.url, *files)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            rows = (tmp_path / "load_data.csv").read_text().splitlines()
            assert len(rows) == 3
            assert rows[1].split(",")[-1].startswith("~")

            done = await asyncio.to_thread(
                _export, tmp_path, "--hub", hub.url, "--token-file", token_file, *files
            )
            assert (done.returncode, done.stderr) == (0, "")
            rows = (tmp_path / "load_data.csv").read_text().splitlines()
            assert rows[1] == "0,90,,0, NVIDIA A100-SXM4-80GB, GPU-0,gpu01,ada"
            assert "ada" in (tmp_path / "index.html").read_text()
            assert "secret.py" not in (tmp_path / "herd.json").read_text()

            done = await asyncio.to_thread(_export, tmp_path, "--csv", "-", GPUHERD_HUB=hub.url)
            assert done.stdout.startswith(",load,load_mem,")

            token_file.write_text(new_secret(API_TOKEN_PREFIX) + "\n")
            before = (tmp_path / "index.html").read_bytes()
            done = await asyncio.to_thread(
                _export, tmp_path, "--hub", hub.url, "--token-file", token_file, *files
            )
            assert (done.returncode, done.stdout) == (4, "")
            assert done.stderr.startswith("gpuherd: ")
            assert (tmp_path / "index.html").read_bytes() == before
        done = await asyncio.to_thread(_export, tmp_path, "--hub", hub.url, *files)
        assert done.returncode == 1
        assert done.stderr.startswith("gpuherd: ")
        assert done.stderr.count("\n") == 1
        assert (tmp_path / "index.html").read_bytes() == before

    asyncio.run(story())


def test_a_full_disk_leaves_the_old_page(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: no small disk can be mounted")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr}")
    try:
        (disk / "index.html").write_text("old")
        (disk / "filler").write_bytes(b"x" * 8192)
        done = _export(tmp_path, "--here", "--html", disk)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"gpuherd: {disk}/index.html: cannot be written (No space left on device); free some space on that disk. "
            "The previous content stays as it was\n"
        )
        assert {file.name for file in disk.iterdir()} == {"index.html", "filler"}
        assert (disk / "index.html").read_text() == "old"
        (disk / "filler").unlink()
        done = _export(tmp_path, "--here", "--html", disk)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Last update" in (disk / "index.html").read_text()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
