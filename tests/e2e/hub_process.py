"""A real hub as a process of its own, and nodes that report to it over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner

from gpuherd.cli.hub import command
from gpuherd.model.reports import Report
from support.ready import ReadyProcess
from support.running import PATIENCE_SECONDS, free_port

_GPUHERD = [sys.executable, "-c", "from gpuherd.cli import main; main()"]
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, body: bytes | None = None, **headers: str) -> Any:
    """GET, or POST if there is a body; gives the JSON answer."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **headers})  # noqa: S310 - only ever the hub under test
    with _opener.open(request, timeout=PATIENCE_SECONDS) as answer:
        return json.loads(answer.read())


class _Process:
    """A command of gpuherd that serves the page at ``url``."""

    def __init__(self, url: str, arguments: list[str], log: Path) -> None:
        self.url = url
        self._arguments = arguments
        self._log = log
        self._process: ReadyProcess | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        self.launch()
        self.wait_until_it_answers()

    def launch(self) -> None:
        """Start without waiting."""
        self._process = ReadyProcess(self._arguments, self._log)

    def wait_until_it_answers(self) -> None:
        """Wait for a process that was launched."""
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                ask(f"{self.url}api/v1/health")
            except (urllib.error.URLError, ConnectionError):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise AssertionError(f"gpuherd did not start: {self._log.read_text()}") from None
                time.sleep(0.05)
            else:
                return

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: freeze it, let it go on, kill it."""
        assert self._process is not None
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self._process.wait(timeout=PATIENCE_SECONDS)

    def kill(self) -> None:
        """End it at once: what it leaves behind is nobody's."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=PATIENCE_SECONDS)

    def stop(self) -> None:
        """End it, politely first."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=PATIENCE_SECONDS)


SHOWING_ALL = '[privacy]\ncommand_lines = "members"\n'
"""Without a login nobody is an admin, and the page is to be tried with everything that it can show."""


class HubProcess(_Process):
    """``gpuherd hub run`` on a port that stays the same over restarts."""

    def __init__(self, folder: Path, base_path: str = "/", config: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        listen = f"127.0.0.1:{free_port()}"
        (folder / "gpuherd.toml").write_text(config if "[privacy]" in config else SHOWING_ALL + config)
        self._state_dir = folder / "state"
        self._hub = ["hub", "--config", str(folder / "gpuherd.toml"), "--state-dir", str(self._state_dir)]
        self._token: str | None = None
        self._nodes: dict[str, Node] = {}
        super().__init__(
            f"http://{listen}{base_path}",
            [*self._hub, "run", "--listen", listen, "--base-path", base_path],
            folder / "hub.log",
        )

    def launch(self) -> None:
        """Start without waiting, with a join token that a running hub would first have to notice."""
        if self._token is None:
            self.prepare()
            made = CliRunner().invoke(command, [*self._hub[1:], "token", "create", "--uses", "100000"])
            assert made.exit_code == 0, made.output
            self._token = made.stdout.strip()
        super().launch()

    def prepare(self) -> None:
        """Make the state folder, so that commands work on it before the first start."""
        prepared = CliRunner().invoke(command, [*self._hub[1:], "init"])
        assert prepared.exit_code == 0, prepared.output

    def join(self, name: str) -> Node:
        """Enrol a node the way a real one does: with a join token."""
        body = json.dumps({"token": self._token, "hostname": "machine", "name": name}).encode()
        joined = ask(f"{self.url}api/v1/enroll", body)
        return Node(self.url, joined["node_id"], joined["credential"])

    def node(self, name: str) -> Node:
        """Give the node with a name, enrolled when it is first asked for."""
        if name not in self._nodes:
            self._nodes[name] = self.join(name)
        return self._nodes[name]

    def administer(self, *arguments: str, stdin: str = "") -> str:
        """Run a command of ``gpuherd hub`` and give what it prints."""
        if not self._state_dir.exists():
            self.prepare()
        done = subprocess.run(
            [*_GPUHERD, *self._hub, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        return done.stdout

    def remove(self, name: str) -> None:
        """Remove a node the way an administrator does."""
        nodes = ask(f"{self.url}api/v1/fleet")["nodes"]
        (node_id,) = (node["id"] for node in nodes if node["name"] == name)
        subprocess.run(
            [*_GPUHERD, *self._hub, "node", "remove", node_id], timeout=PATIENCE_SECONDS, check=True
        )


class DemoProcess(_Process):
    """``gpuherd demo``."""

    def __init__(self, folder: Path, nodes: int, base_path: str = "/", days: int = 2) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        listen = f"127.0.0.1:{free_port()}"
        super().__init__(
            f"http://{listen}{base_path}",
            [
                "demo",
                "--nodes",
                str(nodes),
                "--days",
                str(days),
                "--listen",
                listen,
                "--base-path",
                base_path,
            ],
            folder / "demo.log",
        )


class Node:
    """An enrolled node."""

    def __init__(self, hub_url: str, node_id: str, credential: str) -> None:
        self.id = node_id
        self._address = f"{hub_url}api/v1/reports"
        self.credential = credential

    def report(self, report: Report) -> None:
        """Tell the hub how things are."""
        ask(self._address, msgspec.json.encode(report), Authorization=f"Bearer {self.credential}")
