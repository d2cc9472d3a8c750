"""The commands of the migration guides, run on sample installations of the older tools."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from e2e.hub_process import ask
from support.colleague import look
from support.consul import consul_program, running_consul
from support.old_tools import (
    drop_files,
    dropping,
    file_server,
    node_info_node,
    old_backend,
    posting,
    push_page,
    rpc_node,
    write_nvidia_smi,
)
from support.own_network import HUB_ADDRESS, lan
from support.running import PATIENCE_SECONDS, eventually, free_port
from support.sshd import make_key, need_sshd, running_sshd
from support.walkthrough import Step, Walk, steps_of

NAME = "monitor.lab"
"""Under which the old tool's backend and page are reached."""
ROOT = Path(__file__).parents[3]
GUIDES = ROOT / "docs" / "migrate"


class Installation(Walk):
    """A folder with an older tool's files, and where the guide's example addresses lead on this machine."""

    def __init__(self, folder: Path, stack: ExitStack, colleague: tuple[str, ...] | None) -> None:
        super().__init__(folder, stack)
        self.colleague = colleague
        """What goes before a command of a colleague's machine."""
        self._hub: tuple[Step, subprocess.Popen[bytes]] | None = None
        self.hub_port = free_port()
        self._old_files: dict[str, str] = {}
        self.replaced |= {
            "127.0.0.1:8470": f"127.0.0.1:{self.hub_port}",
            "192.168.0.0/24": "127.0.0.0/8",
            "0.0.0.0:": "127.0.0.1:",
            # Not this machine: a service is made of it, for one that is being put together.
            " --check\n": f" --root {folder / 'machine'}\n",
        }
        (folder / "machine").mkdir()
        # What a site would have at /etc/gpuherd and /var/lib/gpuherd must stay within the test.
        self.write(
            "gpuherd.toml",
            f'[hub]\nlisten = "127.0.0.1:{self.hub_port}"\nstate_dir = "{folder / "state"}"\n',
        )

    def old_file(self, name: str, text: str) -> None:
        """Write a file of the older tool, which nothing may change."""
        self.write(name, text)
        self._old_files[name] = text

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def port(self, written: str) -> int:
        """Give a free port that stands for one of the guide's."""
        taken = free_port()
        self.replaced |= {
            f"{address}:{written}": f"127.0.0.1:{taken}" for address in ("0.0.0.0", "192.168.0.2")
        }
        return taken

    def follow_guide(self, name: str) -> None:
        """Run every command of a guide, in its order; the way back stays open: no old file is changed by it.

        What is typed at a console's prompt is for many machines at once, and is tried where there are such.
        """
        self.follow([step for step in steps_of(GUIDES / name) if step.is_script], is_up=self.is_up)
        assert (self.folder / "machine/etc/systemd/system/gpuherd-hub.service").is_file()
        assert {old: (self.folder / old).read_text() for old in self._old_files} == self._old_files

    def leave_running(self, step: Step) -> subprocess.Popen[bytes]:
        process = super().leave_running(step)
        if "hub --config" in step.commands:
            self._hub = step, process
        return process

    def open_to_colleagues(self, name: str, *words: str) -> None:
        """Write the guide's last lines into [hub], restart it, and look at the page from a colleague's machine."""
        if self.colleague is None:
            pytest.skip("the walk is done, but a network of two machines needs root, unshare, ip and veth")
        section = (GUIDES / name).read_text().rpartition("\n## Let colleagues see it\n")[2]
        (block,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
        file = self.folder / "gpuherd.toml"
        text = file.read_text()
        for line in block.replace(":8470", f":{self.hub_port}").splitlines()[1:]:
            key = line.partition(" = ")[0]
            text, count = re.subn(rf"^{key} = .*$", line, text, count=1, flags=re.MULTILINE)
            text = text if count else text.replace("[hub]\n", f"[hub]\n{line}\n", 1)
        file.write_text(text)
        assert self._hub is not None
        step, process = self._hub
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        self.leave_running(step)
        self.wait_until(self.is_up)
        look(f"http://{HUB_ADDRESS}:{self.hub_port}/", *words, prefix=self.colleague)

    def is_up(self) -> bool:
        try:
            ask(f"http://127.0.0.1:{self.hub_port}/api/v1/health")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def nodes(self) -> dict[str, Any]:
        fleet = ask(f"http://127.0.0.1:{self.hub_port}/api/v1/fleet")
        return {node["id"]: node for node in fleet["nodes"]}


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    with lan() as colleague, ExitStack() as stack:
        yield Installation(tmp_path, stack, colleague)


def _live(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda nodes: all(nodes.get(name, {}).get("state") == "live" for name in names)


def _agents(nodes: dict[str, Any], way: str = "push") -> list[Any]:
    return [node for node in nodes.values() if node["way"] == way and node["state"] == "live"]


def test_push(installation: Installation) -> None:
    door = installation.port("3000")
    backend = f"{NAME}:{door}"
    installation.replaced["192.168.0.0/24"] = "127.0.0.0/8 --network 192.168.0.0/24"
    password = "correct horse"
    installation.old_file(
        "backend/.env", f"AUTH_USER=lab\nAUTH_PASS={hashlib.sha256(password.encode()).hexdigest()}\n"
    )
    installation.old_file("frontend/.env", f"VITE_BACKEND={backend}\nVITE_SESSION_DURATION=7\n")
    installation.old_file(
        "run-this-on-every-node.sh",
        f'#!/bin/bash\nSERVER="{backend}/"\nwhile true\ndo\n'
        '    curl -s -X POST -H "Content-Type: application/json" -d "$(gpustat --json)" "$SERVER"\n'
        "    sleep 1\ndone\n",
    )
    with posting(door, "node-0"):
        installation.follow_guide("push.md")
        nodes = eventually(installation.nodes, lambda n: _live("node-0")(n) and bool(_agents(n)))
        assert nodes["node-0"]["way"] == "gpustat"
        assert nodes["node-0"]["devices"][0]["processes"][0]["user"] == "pusher"
        installation.open_to_colleagues("push.md", "node-0", "pusher")
        with push_page(backend, (HUB_ADDRESS, 5173)):
            for typed, words in (
                (password, ("logged in", "node-0 at 127.0.0.1: pusher")),
                ("wrong", ("Failed",)),
            ):
                look(
                    f"http://{NAME}:5173/",
                    *words,
                    prefix=installation.colleague or (),
                    typed={"#user": "lab", "#password": typed},
                    pressed="button",
                    flags=[f"--host-resolver-rules=MAP {NAME} {HUB_ADDRESS}"],
                )
        installation.stack.close()  # and back: the old backend gets its port again, and what the nodes post
        with old_backend(door) as posted:
            assert posted.get(timeout=PATIENCE_SECONDS) == "node-0"


def test_pull(installation: Installation) -> None:
    port = installation.stack.enter_context(node_info_node("node-1"))
    for written in ("7070", "8472", "7090"):
        installation.port(written)
    installation.replaced["192.168.0.1"] = "127.0.0.1"
    installation.old_file("hosts.txt", f"127.0.0.1:{port}\n")
    installation.follow_guide("pull.md")
    nodes = eventually(installation.nodes, _live("127.0.0.1"))
    assert nodes["127.0.0.1"]["name"] == "node-1 (127.0.0.1)"
    assert nodes["127.0.0.1"]["devices"][0]["processes"][0]["user"] == "puller"
    installation.open_to_colleagues("pull.md", "node-1", "puller")


def test_ssh_static(installation: Installation) -> None:
    need_sshd()
    folder, stack = installation.folder, installation.stack
    worker = stack.enter_context(subprocess.Popen(["sleep", "1000"]))
    stack.callback(worker.kill)
    key = make_key(folder / "id_ed25519")
    ports = {}
    for number, host in enumerate(("localhost", "127.0.0.1")):
        smi = write_nvidia_smi(
            folder / f"bin{number}", worker.pid, f"GPU-5555555{number}-aaaa-bbbb-cccc-000000000000"
        )
        path = f"PATH={smi.parent}:{os.environ['PATH']}"
        sshd = stack.enter_context(running_sshd(folder / f"sshd{number}", SetEnv=path))
        sshd.authorize(key)
        ports[host] = sshd.port
    hosts = [f"{host}:{port}" for host, port in ports.items()]
    installation.replaced["host1.domain.tld"] = hosts[0]
    installation.old_file(
        "config.ini", f"[common]\nuser = root\nhosts = {','.join(hosts)}\nkey_filename=id_ed25519\n"
    )
    installation.follow_guide("ssh-static.md")
    nodes = eventually(installation.nodes, _live("127.0.0.1", "localhost"))
    assert nodes["127.0.0.1"]["devices"][0]["processes"][0]["user"] == "root"
    # In the order of config.ini, which is not that of the names.
    assert list(nodes) == list(ports)
    with (folder / "new/load_data.csv").open() as table:
        assert [row["hostname"].partition(":")[0] for row in csv.DictReader(table)] == list(ports)
    assert (folder / "gpuherd-node").read_text().startswith("#!/bin/sh")
    installation.open_to_colleagues("ssh-static.md", "root")


def test_lip6(installation: Installation) -> None:
    data = installation.folder / "data"
    data.mkdir()
    installation.stack.enter_context(dropping(data, "gputest001-pa4", every_seconds=6.0))
    drop_files(data, "oldhost")  # whose files were left behind
    installation.old_file("data/hosts.json", '{"gputest001-pa4": "gputest001-pa4.example.org"}')
    installation.old_file(
        "index.php",
        '<?php\ndate_default_timezone_set("UTC");\n'
        '$HOSTS = json_decode(file_get_contents("data/hosts.json"), true);\n'
        "$SHORT_GPU_NAMES = array('GeForce GTX 1080 Ti' => '1080Ti');\n?>\n",
    )
    installation.old_file("aliases.csv", "dropper,drop,person # the same\nalone\n")
    installation.old_file(
        "data/comments.json",
        '{"gputest001-pa4": [  // GPU 0\n  {"name": "Drop+", "date": "2099-07-01 00:00", "comment": "by Santa"},\n]}',
    )
    installation.old_file(
        "data/statsV2.json",
        json.dumps(
            {
                "time": int(time.time()) - 60,
                "data": {"dropper": {"emas": [0, 0, 7]}, "left": {"emas": [0, 0, 3]}},
            }
        ),
    )
    installation.environment["TZ"] = "Europe/Paris"
    installation.old_file(
        "fetch_stats_conf.json", '{"CONSUL_SERVICE_URI": "http://127.0.0.1:8500/v1/catalog/service/gpu"}'
    )
    installation.follow_guide("lip6.md")
    nodes = eventually(installation.nodes, lambda n: _live("gputest001-pa4")(n) and bool(_agents(n)))
    node = nodes["gputest001-pa4"]
    assert (node["name"], node["way"]) == ("gputest001-pa4.example.org", "file")
    assert "oldhost" not in nodes
    assert node["host_sample"]["load_1m"] / node["host"]["cpu_count"] == 1 / 16
    assert node["devices"][0]["short_name"] == "1080Ti"
    assert node["devices"][0]["processes"][0]["user"] == "person"
    booked = eventually(installation.nodes, lambda n: bool(n["gputest001-pa4"]["devices"][0]["bookings"]))
    (booking,) = booked["gputest001-pa4"]["devices"][0]["bookings"]
    assert (booking["holder"], booking["title"], booking["use"]) == ("person", "by Santa", "holder")
    assert booking["ends_at"] == datetime(2099, 7, 1, tzinfo=UTC).timestamp(), "in the page's zone"
    trends = ask(f"http://127.0.0.1:{installation.hub_port}/api/v1/usage/trends")
    averages = {row["user"]: row["mean_1w"] for row in trends["rows"]}
    assert averages == pytest.approx({"person": 7, "left": 3}, rel=0.2), "of the old page, by its aliases"
    installation.open_to_colleagues("lip6.md", "gputest001-pa4.example.org", "person")


def test_lip6_with_consul_and_files_that_the_nodes_serve(installation: Installation) -> None:
    """The whole chain: Consul names a host, which serves what its scripts wrote at port 8114."""
    program = consul_program()
    if program is None or installation.colleague is None:
        pytest.skip("needs Consul (scripts/provision) and port 8114 of a network of its own (root)")
    data = installation.folder / "data"
    data.mkdir()
    installation.stack.enter_context(dropping(data, "localhost", every_seconds=6.0))
    installation.stack.enter_context(file_server(data, 8114))
    with running_consul(program, installation.folder) as consul:
        consul.register("localhost", "127.0.0.1")
        installation.old_file(
            "fetch_stats_conf.json", f'{{"CONSUL_SERVICE_URI": "{consul.url}/v1/catalog/service/gpu"}}'
        )
        installation.run(Step("gpuherd import fetch_stats_conf.json", 0))
        installation.leave_running(Step("gpuherd hub --config gpuherd.toml run", 0))
        installation.wait_until(installation.is_up)
        node = eventually(installation.nodes, _live("localhost"))["localhost"]
    assert (node["way"], node["devices"][0]["processes"][0]["user"]) == ("http_files", "dropper")
    # A Consul that is gone leaves the last good list.
    later = node["received_at"] + 12
    eventually(installation.nodes, lambda nodes: nodes["localhost"]["received_at"] > later)


def test_rpc(installation: Installation) -> None:
    port = installation.stack.enter_context(rpc_node())
    installation.old_file(
        "config.yml",
        "# Config for GPU monitor\nweb_port: 8042\n"
        f"rpc_port: {port}\nrpc_timeout: 2\nhosts:\n  - localhost\n",
    )
    installation.old_file(
        "ansible-install/hosts",
        "[webserver]\nserver ansible_host=127.0.0.1 ansible_user=me ansible_remote_tmp=/tmp/.ansible/tmp\n\n"
        "[rpcservers]\nhost1 ansible_host=127.0.0.1 ansible_user=me ansible_remote_tmp=/tmp/.ansible/tmp\n",
    )
    installation.replaced["host1"] = "localhost"
    installation.follow_guide("rpc.md")
    nodes = eventually(installation.nodes, lambda n: _live("localhost")(n) and bool(_agents(n)))
    assert nodes["localhost"]["devices"][0]["processes"][0]["user"] == "caller"
    installation.open_to_colleagues("rpc.md", "localhost", "caller")


def test_every_guide_is_tested() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert {guide.stem for guide in GUIDES.glob("*.md")} - {"README"} <= tested
