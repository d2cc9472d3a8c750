"""The whole thing as processes: a hub that is killed dials again and misses nothing."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from support.running import GPUHERD, PATIENCE_SECONDS, eventually, free_port, running


def ask(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - only ever the hub under test
            return json.load(answer)
    except OSError as error:
        return str(error)


def test_a_killed_hub_takes_up_its_nodes_again(tmp_path: Path) -> None:
    port, agent_port = free_port(), free_port()
    config = tmp_path / "gpuherd.toml"
    config.write_text(
        f'[hub]\nlisten = "127.0.0.1:{port}"\nstate_dir = "{tmp_path}/hub"\n'
        f'[[nodes]]\nhosts = ["Rack-7=127.0.0.1:{agent_port}"]\nreach = {{ by = "pull", interval_seconds = 0.2 }}\n'
        f'[agent]\nlisten = "127.0.0.1:{agent_port}"\nlisten_secret_file = "{tmp_path}/secret"\n'
        f'state_dir = "{tmp_path}/agent"\ncollectors = []\n'
    )
    subprocess.run([*GPUHERD, "hub", "--config", str(config), "init"], check=True)
    secret = subprocess.run(
        [*GPUHERD, "hub", "--config", str(config), "node", "secret", "Rack-7"],
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "secret").write_text(secret.stdout)

    def health() -> Any:
        told = ask(f"http://127.0.0.1:{port}/api/v1/health")
        return told["nodes"][0] if isinstance(told, dict) and told["nodes"] else told

    def has_accepted(count: int) -> Any:
        return lambda seen: isinstance(seen, dict) and seen["accepted"] >= count

    with running("agent", "--config", str(config), log=tmp_path / "agent.log"):
        with running("hub", "--config", str(config), "run", log=tmp_path / "hub.log") as hub:
            eventually(health, has_accepted(10))
            hub.kill()
            hub.wait(timeout=PATIENCE_SECONDS)
        with running("hub", "--config", str(config), "run", log=tmp_path / "hub2.log"):
            seen = eventually(health, has_accepted(10))
            assert (seen["missed"], seen["refused"]) == (0, {})
            assert seen["backfilled"] > 0, "what was made while the hub was away"
            fleet = ask(f"http://127.0.0.1:{port}/api/v1/fleet")
            assert [(node["id"], node["name"], node["way"]) for node in fleet["nodes"]] == [
                ("rack-7", "Rack-7", "pull")
            ]
            eventually(
                lambda: ask(f"http://127.0.0.1:{port}/api/v1/fleet")["nodes"][0]["state"],
                lambda s: s == "live",
            )
