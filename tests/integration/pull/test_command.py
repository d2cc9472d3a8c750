"""``gpuherd agent --listen`` as it is typed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.pulling import NODE_ID, secret_of, small_hub, write_secret
from support.running import GPUHERD, PATIENCE_SECONDS, eventually, free_port, running


def status(port: int) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)
    except OSError as error:
        return str(error)


def old_status(port: int, password: str) -> Any:
    """Ask as the older HTTP tool does."""
    body = json.dumps({"passwd": password}).encode()
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/get-status", body, timeout=PATIENCE_SECONDS
    ) as answer:
        return json.load(answer)


@pytest.mark.parametrize("way", ["option", "systemd", "systemd, by name"])
def test_an_agent_that_listens(tmp_path: Path, way: str) -> None:
    secret_file = write_secret(tmp_path / "secrets", secret_of(NODE_ID))
    port, old_port = free_port(), free_port()
    config = tmp_path / "gpuherd.toml"
    config.write_text("[agent]\ncollectors = []\ninterval_seconds = 0.2\n")
    arguments = [
        "agent",
        "--config",
        str(config),
        "--listen",
        f"127.0.0.1:{port}",
        "--state-dir",
        str(tmp_path / "s"),
    ]
    environment = {}
    if way == "option":
        arguments += ["--listen-secret-file", secret_file]
    else:
        Path(secret_file).rename(tmp_path / "secrets" / "gpuherd-listen-secret")
        (tmp_path / "secrets" / "gpuherd-node-password").write_text("of-old\n")
        environment = {"CREDENTIALS_DIRECTORY": str(tmp_path / "secrets")}
        config.write_text(f'{config.read_text()}node_info_listen = "127.0.0.1:{old_port}"\n')
    if way == "systemd, by name":  # these are root's, and not there at all here
        config.write_text(
            f'{config.read_text()}listen_secret_file = "/etc/gpuherd/listen-secret"\n'
            'node_info_password_file = "/etc/gpuherd/node-password"\n'
        )

    async def pull() -> None:
        async with small_hub() as hub:
            hub.dial(port)
            await hub.heard(5)

    with running(*arguments, environment=environment, log=tmp_path / "log"):
        report = eventually(lambda: status(port), lambda seen: isinstance(seen, dict))
        assert report["facts"]["host"]["hostname"]
        asyncio.run(pull())
        if way != "option":
            assert old_status(old_port, "of-old")["hostname"] == report["facts"]["host"]["hostname"]
            with pytest.raises(urllib.error.HTTPError, match="403"):
                old_status(old_port, "another")
    log = (tmp_path / "log").read_text()
    assert "connected to the hub at 127.0.0.1 as gpu01" in log
    assert secret_of(NODE_ID) not in log


def test_listening_and_dialling_at_once_is_refused(tmp_path: Path) -> None:
    told = subprocess.run(
        [
            *GPUHERD,
            "agent",
            "--listen",
            "127.0.0.1",
            "--hub",
            "http://127.0.0.1",
            "--state-dir",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert told.returncode == 1
    assert "an agent either connects to the hub or waits" in told.stderr
