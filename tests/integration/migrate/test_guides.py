"""The commands of the migration guides, run on sample installations of the older tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from e2e.hub_process import ask
from support.old_tools import dropping, node_info_node, old_backend, posting, rpc_node, write_nvidia_smi
from support.running import eventually, free_port
from support.sshd import make_key, need_sshd, running_sshd
from support.walkthrough import Walk, steps_of

ROOT = Path(__file__).parents[3]
GUIDES = ROOT / "docs" / "migrate"


class Installation(Walk):
    """A folder with an older tool's files, and where the guide's example addresses lead on this machine."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(folder, stack)
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
    with ExitStack() as stack:
        yield Installation(tmp_path, stack)


def _live(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda nodes: all(nodes.get(name, {}).get("state") == "live" for name in names)


def _agents(nodes: dict[str, Any], way: str = "push") -> list[Any]:
    return [node for node in nodes.values() if node["way"] == way and node["state"] == "live"]


def test_push(installation: Installation) -> None:
    door = installation.port("3000")
    installation.old_file(
        "run-this-on-every-node.sh",
        f'#!/bin/bash\nSERVER="127.0.0.1:{door}/"\nwhile true\ndo\n'
        '    curl -s -X POST -H "Content-Type: application/json" -d "$(gpustat --json)" "$SERVER"\n'
        "    sleep 1\ndone\n",
    )
    with posting(door, "node-0"):
        installation.follow_guide("push.md")
        nodes = eventually(installation.nodes, lambda n: _live("node-0")(n) and bool(_agents(n)))
        assert nodes["node-0"]["way"] == "gpustat"
        assert nodes["node-0"]["devices"][0]["processes"][0]["user"] == "pusher"
        installation.stack.close()  # and back: the old backend gets its port again, and what the nodes post
        with old_backend(door) as posted:
            assert posted.get(timeout=30) == "node-0"


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


def test_ssh_static(installation: Installation) -> None:
    need_sshd()
    folder, stack = installation.folder, installation.stack
    worker = stack.enter_context(subprocess.Popen(["sleep", "1000"]))
    stack.callback(worker.kill)
    write_nvidia_smi(folder / "bin", worker.pid)
    sshd = stack.enter_context(
        running_sshd(folder / "sshd", SetEnv=f"PATH={folder / 'bin'}:{os.environ['PATH']}")
    )
    key = make_key(folder / "id_ed25519")
    sshd.authorize(key)
    installation.replaced["host1.domain.tld"] = f"127.0.0.1:{sshd.port}"
    installation.old_file(
        "config.ini", f"[common]\nuser = root\nhosts = 127.0.0.1:{sshd.port}\nkey_filename=id_ed25519\n"
    )
    installation.follow_guide("ssh-static.md")
    nodes = eventually(installation.nodes, _live("127.0.0.1"))
    assert nodes["127.0.0.1"]["devices"][0]["processes"][0]["user"] == "root"
    assert (folder / "gpuherd-node").read_text().startswith("#!/bin/sh")


def test_lip6(installation: Installation) -> None:
    data = installation.folder / "data"
    data.mkdir()
    installation.stack.enter_context(dropping(data, "gputest001-pa4", every_seconds=6.0))
    installation.old_file(
        "index.php",
        "<?php\n$HOSTS = array('gputest001-pa4' => 'Paris 1');\n"
        "$SHORT_GPU_NAMES = array('GeForce GTX 1080 Ti' => '1080Ti');\n?>\n",
    )
    installation.old_file("aliases.csv", "dropper,drop,person # the same\n")
    installation.old_file(
        "data/comments.json",
        '{"gputest001-pa4": [  // GPU 0\n  {"name": "drop", "date": "2099-07-01 00:00", "comment": "by Santa"},\n]}',
    )
    installation.old_file(
        "fetch_stats_conf.json", '{"CONSUL_SERVICE_URI": "http://127.0.0.1:8500/v1/catalog/service/gpu"}'
    )
    installation.follow_guide("lip6.md")
    nodes = eventually(installation.nodes, lambda n: _live("gputest001-pa4")(n) and bool(_agents(n)))
    node = nodes["gputest001-pa4"]
    assert (node["name"], node["way"]) == ("Paris 1", "file")
    assert node["devices"][0]["short_name"] == "1080Ti"
    assert node["devices"][0]["processes"][0]["user"] == "person"
    booked = eventually(installation.nodes, lambda n: bool(n["gputest001-pa4"]["devices"][0]["bookings"]))
    (booking,) = booked["gputest001-pa4"]["devices"][0]["bookings"]
    assert (booking["holder"], booking["title"], booking["use"]) == ("person", "by Santa", "holder")


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


def test_every_guide_is_tested() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert {guide.stem for guide in GUIDES.glob("*.md")} - {"README"} <= tested
