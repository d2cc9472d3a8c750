"""A hub in a process of its own that is attacked, and raw connections to attack it with."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuherd.api import app, server
from gpuherd.api.hub import Hub
from gpuherd.api.settings import HubSettings
from gpuherd.wiring.up import stop_signals
from support.people import PASSWORD, QUICK, add_account, refresh
from support.ready import forking_context
from support.running import PATIENCE_SECONDS, free_port

__all__ = ["AttackedHub", "attacked_hub", "head", "many_files", "status_of"]

ADMIN, MEMBER = "ada", "mallory"


def _watch_ticks(hub: Hub, gaps: list[float], ended: threading.Event) -> None:
    beats, since = hub.beats, time.monotonic()
    while not ended.wait(0.005):
        now = time.monotonic()
        gaps[0] = max(gaps[0], now - since)
        if hub.beats != beats:
            beats, since = hub.beats, now


async def _run(folder: Path, settings: dict[str, Any], is_quick: bool, is_patient: bool) -> None:
    if is_patient:
        server.SLOW_HEADER_MILLISECONDS = 600_000
        app._SMALL_BODY = app._SMALL_BODY._replace(seconds=600.0)
        app.REQUEST_SECONDS = 600.0
    stop, ended, gaps = stop_signals(), threading.Event(), [0.0]
    async with Hub(HubSettings(state_dir=folder / "state", **settings)) as hub:
        for name in (ADMIN, MEMBER):
            add_account(hub, name, "admin" if name == ADMIN else "member", password=PASSWORD)
        if is_quick:
            hub.reception._passwords = QUICK
        for threads in (hub.reception._hashing, hub.reception._calls._threads):
            threads._deadline_seconds = PATIENCE_SECONDS  # a slow machine refuses nobody
        await refresh(hub)
        credential = (await hub.admit("node-1")).credential
        watcher = threading.Thread(target=_watch_ticks, args=(hub, gaps, ended))
        watcher.start()
        (folder / "ready.tmp").write_text(json.dumps({"credential": credential}))
        (folder / "ready.tmp").rename(folder / "ready")
        await hub.run_until(stop)
        ended.set()
        watcher.join()
    (folder / "gap").write_text(str(gaps[0]))


def _main(folder: Path, settings: dict[str, Any], is_quick: bool, is_patient: bool) -> None:
    logging.basicConfig(filename=folder / "log", level=logging.INFO, force=True)
    asyncio.run(_run(folder, settings, is_quick, is_patient))


class AttackedHub:
    """What can be seen of the hub from outside."""

    def __init__(self, folder: Path, port: int, process: Any) -> None:
        self._folder = folder
        self._process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}/"
        self.credential: str = json.loads((folder / "ready").read_text())["credential"]

    def rss_bytes(self) -> int:
        """Return the memory that the hub holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def log_bytes(self) -> int:
        """Return how much the hub has logged so far."""
        return (self._folder / "log").stat().st_size

    def log(self) -> str:
        """Return what the hub has logged so far."""
        return (self._folder / "log").read_text()

    def stop(self) -> float:
        """Stop the hub and return the longest time between two ticks, in seconds."""
        self._process.terminate()
        self._process.join(PATIENCE_SECONDS)
        assert self._process.exitcode == 0, self.log()
        return float((self._folder / "gap").read_text())

    def connect(self, source: str = "127.0.0.1", timeout: float = PATIENCE_SECONDS) -> socket.socket:
        """Open a connection from one of this machine's loopback addresses."""
        return socket.create_connection(("127.0.0.1", self.port), timeout, (source, 0))

    def ask(self, request: bytes, source: str = "127.0.0.1", timeout: float = PATIENCE_SECONDS) -> bytes:
        """Send bytes on a connection of its own and return the beginning of the answer; empty if there is none."""
        with self.connect(source, timeout) as connection:
            connection.sendall(request)
            with contextlib.suppress(ConnectionError):
                return connection.recv(65_536)
        return b""


@contextlib.contextmanager
def attacked_hub(
    folder: Path, *, is_quick: bool = True, is_patient: bool = False, **settings: Any
) -> Iterator[AttackedHub]:
    """Run a hub with an admin, a member and a node.

    ``is_quick``: passwords are hashed with less work. ``is_patient``: slow senders are waited for as good as for ever.
    """
    port = free_port()
    values = {"listen": f"127.0.0.1:{port}", **settings}
    process = forking_context().Process(target=_main, args=(folder, values, is_quick, is_patient))
    process.start()
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (folder / "ready").exists():
            assert process.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield AttackedHub(folder, port, process)
    finally:
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join(PATIENCE_SECONDS)


def head(method: str, path: str, *lines: str) -> bytes:
    """Return the head of a request."""
    return "\r\n".join([f"{method} /api/v1/{path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def status_of(answer: bytes) -> int:
    """Return the status of an answer; 0 if there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@contextlib.contextmanager
def many_files(count: int) -> Iterator[None]:
    """Let this process open so many files at a time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count), hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
