"""Nodes of every kind in one hub: agents that push and listen, SSH, dropped files, and the older tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from e2e.hub_process import HubProcess, ask
from support.old_tools import dropping, node_info_node, posting, rpc_node, write_nvidia_smi
from support.running import PATIENCE_SECONDS, eventually, free_port, running
from support.sshd import make_key, need_sshd, running_sshd

ROOT = Path(__file__).parents[2]
WAYS = {
    "pushing": "push",
    "listening": "pull",
    "bare": "ssh",
    "dropped": "file",
    "oldpush": "gpustat",
    "oldpull": "node_info",
    "oldrpc": "xmlrpc",
}


class MixedHerd:
    """A hub and one node of every kind, all of them real processes or servers on this machine."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._library = build_library(ROOT / "build" / "sim")
        self.door = free_port()
        self.status_door = free_port()
        self.pull_port = free_port()
        drop = folder / "drop"
        drop.mkdir()
        self.worker = stack.enter_context(subprocess.Popen(["sleep", "1000"]))
        stack.callback(self.worker.kill)
        write_nvidia_smi(folder / "bin", self.worker.pid)
        self.sshd = stack.enter_context(
            running_sshd(folder / "sshd", SetEnv=f"PATH={folder / 'bin'}:{os.environ['PATH']}")
        )
        key = make_key(folder / "key")
        self.sshd.authorize(key)
        (folder / "known_hosts").write_text(self.sshd.known_hosts_line + "\n")
        (folder / "ssh_config").write_text("")
        self.http_port = stack.enter_context(node_info_node("calls-itself-otherwise"))
        self.rpc_port = stack.enter_context(rpc_node())
        self.hub = HubProcess(folder / "hub", config=self._config(drop, key))
        self.hub.start()
        stack.callback(self.hub.stop)
        stack.enter_context(dropping(drop, "dropped"))
        stack.enter_context(posting(self.door, "oldpush"))
        self._start_agents()

    def _config(self, drop: Path, key: Path) -> str:
        folder = self._folder
        return f"""
[[nodes]]
hosts = ["listening=127.0.0.1:{self.pull_port}"]
reach = {{ by = "pull" }}

[[nodes]]
hosts = ["bare=root@127.0.0.1:{self.sshd.port}"]
[nodes.reach]
by = "ssh"
interval_seconds = 1
connect_deadline_seconds = {PATIENCE_SECONDS}
command_deadline_seconds = {PATIENCE_SECONDS}
keepalive_seconds = {PATIENCE_SECONDS}
key_files = ["{key}"]
known_hosts_file = "{folder / "known_hosts"}"
config_file = "{folder / "ssh_config"}"

[[nodes]]
hosts = ["oldpull=127.0.0.1"]
reach = {{ by = "node_info", port = {self.http_port}, interval_seconds = 1 }}

[[nodes]]
hosts = ["oldrpc=127.0.0.1:{self.rpc_port}", "dead=127.0.0.1:1"]
reach = {{ by = "xmlrpc", interval_seconds = 1 }}

[[folders]]
path = "{drop}"
interval_seconds = 2

[legacy.gpustat]
listen = "127.0.0.1:{self.door}"
networks = ["127.0.0.0/8"]

[legacy.get_status]
listen = "127.0.0.1:{self.status_door}"
networks = ["127.0.0.0/8"]

[display.nodes]
oldrpc = "The old one"
"""

    def _start_agents(self) -> None:
        pushing = self._folder / "pushing"
        pushing.mkdir()
        (pushing / "token").write_text(self.hub.administer("token", "create"))
        self._agent(
            pushing, "--hub", self.hub.url, "--join-token-file", str(pushing / "token"), name="pushing"
        )
        listening = self._folder / "listening"
        listening.mkdir()
        secret = listening / "secret"
        secret.touch(0o600)
        secret.write_text(self.hub.administer("node", "secret", "listening"))
        self._agent(listening, "--listen", f"127.0.0.1:{self.pull_port}", secret=secret)

    def _agent(
        self, folder: Path, *arguments: str, name: str | None = None, secret: Path | None = None
    ) -> None:
        lines = ["[agent]", 'collectors = ["nvml"]']
        lines += [f'node_name = "{name}"'] if name else []
        lines += [f'listen_secret_file = "{secret}"'] if secret else []
        (folder / "gpuherd.toml").write_text("\n".join(lines))
        environment = simulator_environment(self._library, SCENARIOS / "mixed.json")
        self._stack.enter_context(
            running(
                "agent",
                "--config",
                str(folder / "gpuherd.toml"),
                "--state-dir",
                str(folder / "state"),
                *arguments,
                environment=environment,
                log=folder / "agent.log",
            )
        )

    def nodes(self) -> dict[str, Any]:
        return {node["id"]: node for node in ask(f"{self.hub.url}api/v1/fleet")["nodes"]}


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedHerd]:
    need_sshd()
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: no simulated NVML for the agents")
    with ExitStack() as stack:
        yield MixedHerd(tmp_path_factory.mktemp("mixed"), stack)


def _is_settled(nodes: dict[str, Any]) -> bool:
    return all(nodes.get(name, {}).get("state") == "live" and nodes[name]["devices"] for name in WAYS)


def test_every_kind_of_node_is_live_in_one_hub(herd: MixedHerd) -> None:
    nodes = eventually(herd.nodes, _is_settled)
    assert {name: nodes[name]["way"] for name in WAYS} == WAYS
    users = {
        name: {process["user"] for device in nodes[name]["devices"] for process in device["processes"]}
        for name in WAYS
    }
    assert users["oldpush"] == {"pusher"}
    assert users["oldpull"] == {"puller"}
    assert users["oldrpc"] == {"caller"}
    assert users["dropped"] == {"dropper"}
    assert users["bare"] == {"root"}
    (process,) = nodes["bare"]["devices"][0]["processes"]
    assert (process["pid"], process["command"]) == (herd.worker.pid, "sleep 1000")
    assert process["started_at"] == pytest.approx(os.stat(f"/proc/{herd.worker.pid}").st_ctime, abs=5)  # noqa: PTH116
    assert nodes["bare"]["host_sample"]["memory_used_bytes"] > 0
    assert len(nodes["pushing"]["devices"]) == len(nodes["listening"]["devices"]) >= 2


def test_the_dead_one_says_why_and_holds_up_nobody(herd: MixedHerd) -> None:
    eventually(herd.nodes, _is_settled)
    dead = herd.nodes()["dead"]
    assert dead["state"] == "never"
    assert re.search("cannot be reached", dead["reason"])
    assert dead["notes"][0]["since"] is not None
    before = {name: node["received_at"] for name, node in herd.nodes().items()}
    eventually(herd.nodes, lambda nodes: all(nodes[name]["received_at"] > before[name] + 2 for name in WAYS))


def test_old_readers_get_everyone(herd: MixedHerd) -> None:
    eventually(herd.nodes, _is_settled)
    status = ask(f"http://127.0.0.1:{herd.status_door}/get-status")["Nodes"]
    assert len(status) == len(WAYS) + 1
    assert sum(node["status"] for node in status) == len(WAYS)
    gpustat = ask(f"http://127.0.0.1:{herd.door}/")
    assert gpustat["oldpush"]["gpus"][0]["processes"][0]["username"] == "pusher"
    assert "bare" in gpustat


def test_one_login_serves_for_ever(herd: MixedHerd) -> None:
    eventually(herd.nodes, _is_settled)
    assert herd.sshd.logins() == 1


def test_the_page_shows_them_all_and_warns_of_open_doors(page: Page, herd: MixedHerd) -> None:
    eventually(herd.nodes, _is_settled)
    page.goto(herd.hub.url)
    for name in WAYS:
        expect(page.locator(f'section[data-node="{name}"]')).to_contain_text("live")
    expect(page.locator('section[data-node="oldrpc"]')).to_contain_text("The old one")
    notices = page.get_by_role("list", name="Notices")
    expect(notices).to_contain_text("through the old gpustat protocol without any login from 127.0.0.0/8")
    dead = page.locator('section[data-node="dead"]')
    expect(dead).to_contain_text("cannot be reached")
    unproven = page.locator('section[data-node="oldpush"]')
    expect(unproven).to_contain_text("has no credentials")


def test_after_a_restart_everyone_is_there_at_once_and_soon_live(herd: MixedHerd) -> None:
    eventually(herd.nodes, _is_settled)
    herd.hub.stop()
    herd.hub.start()
    assert set(herd.nodes()) == {*WAYS, "dead"}
    restarted = herd.nodes()["bare"]["received_at"]
    eventually(
        herd.nodes, lambda nodes: _is_settled(nodes) and nodes["bare"]["received_at"] > (restarted or 0) + 1
    )
