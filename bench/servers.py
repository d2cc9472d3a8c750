"""The servers under measurement, each a process of its own pinned to one core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from sqlalchemy import insert

from bench.nodes import Load, Sent
from gpuherd.auth.secrets import NODE_CREDENTIAL_PREFIX, digest, new_secret
from gpuherd.records.database import open_records, records_file
from gpuherd.records.tables import node_credentials, nodes

__all__ = [
    "HUB_CPU",
    "NODES_CPU",
    "Server",
    "enrol_many",
    "playing",
    "serving",
    "serving_hub",
    "serving_noop",
]

HUB_CPU, NODES_CPU = 0, min(1, os.cpu_count() or 1)


class Server(msgspec.Struct, frozen=True):
    """A running server."""

    pid: int
    port: int


def enrol_many(state_dir: Path, count: int) -> list[str]:
    """Write ``count`` nodes straight into the records; gives their credentials."""
    state_dir.mkdir(parents=True, exist_ok=True)
    engine = open_records(records_file(state_dir))
    secrets = [new_secret(NODE_CREDENTIAL_PREFIX) for _ in range(count)]
    with engine.begin() as connection:
        connection.execute(
            insert(nodes), [{"id": f"n{n:05}", "name": f"n{n:05}", "enrolled_at": 0.0} for n in range(count)]
        )
        connection.execute(
            insert(node_credentials),
            [
                {"digest": digest(secret), "node_id": f"n{n:05}", "created_at": 0.0}
                for n, secret in enumerate(secrets)
            ],
        )
    engine.dispose()
    return secrets


@contextmanager
def serving(arguments: list[str], cpu: int = HUB_CPU) -> Iterator[Server]:
    """Run a Python program that prints its address, pinned to one core."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),  # noqa: PLW1509 - no threads yet
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = urlsplit(line.split()[-1]).port if line else None
        if port is None:
            raise SystemExit(f"the server did not start: {line!r}")
        yield Server(process.pid, port)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def serving_hub(state_dir: Path) -> Iterator[Server]:
    """Run a real hub on a state folder."""
    with serving(
        ["-m", "gpuherd", "hub", "--state-dir", str(state_dir), "run", "--listen", "127.0.0.1:0"], HUB_CPU
    ) as server:
        yield server


@contextmanager
def serving_noop() -> Iterator[Server]:
    """Run the yardstick: the same server with an application that does nothing."""
    with serving(["-m", "bench.noop"], HUB_CPU) as server:
        yield server


class _Playing:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def stop(self) -> Sent:
        """End the load and give what was sent."""
        output, _ = self._process.communicate(timeout=60)
        return msgspec.json.decode(output.strip().splitlines()[-1], type=Sent)


@contextmanager
def playing(load: Load) -> Iterator[_Playing]:
    """Play many nodes against a server; entered once all links are welcomed and one period has passed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.nodes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(load).decode() + "\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "ready":
            raise SystemExit("the simulated nodes could not connect")
        time.sleep(1.0 / load.rate)
        yield _Playing(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
