"""P4: what 200 viewers of a 1,000-node herd cost the hub more than one, socket writes set aside.

Writes are set aside by measuring them alone: the yardstick sends as many bytes to as many viewers.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.hub import hub_load
from bench.measure import Figure, alternate, cpu_seconds
from bench.servers import NODES_CPU, Server, enrol_many, playing, serving_hub, serving_noop

__all__ = ["measure_p4"]

MANY = 200


def watch(port: int, path: str, count: int) -> None:
    """Be ``count`` viewers that read whatever comes; prints the bytes of each second until standard input ends."""
    links = []
    for number in range(count):
        # Of one address the hub serves only a share of all live views.
        own = (f"127.0.0.{1 + number % 8}", 0)
        link = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=own)
        link.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n".encode()
        )
        link.setblocking(False)
        links.append(link)
    by_number = {link.fileno(): link for link in links}
    poll = select.epoll()
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    poll.register(0, select.EPOLLIN | select.EPOLLHUP)
    got, second = 0, time.monotonic()
    buffer = bytearray(1 << 20)
    while True:
        for number, _ in poll.poll(0.1):
            if number == 0:
                return
            got += by_number[number].recv_into(buffer)
        if time.monotonic() - second >= 1:
            print(got, flush=True)
            got, second = 0, time.monotonic()


@contextmanager
def watching(server: Server, path: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Let viewers look at a server from another process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.viewers", str(server.port), path, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {NODES_CPU}),  # noqa: PLW1509 - no threads yet
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _cpu_per_second(server: Server, path: str, viewers: int, seconds: int) -> tuple[float, float]:
    """Give the server's CPU per second and the bytes a viewer gets per second, after the first snapshot."""
    with watching(server, path, viewers) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        before, start = cpu_seconds(server.pid), time.monotonic()
        got = sum(int(process.stdout.readline()) for _ in range(seconds))
        elapsed = time.monotonic() - start
        return (cpu_seconds(server.pid) - before) / elapsed, got / elapsed / viewers


def measure_p4(seconds: int = 8, rounds: int = 3) -> list[Figure]:
    """Compare one viewer with many, then take off what writing alone costs."""
    with tempfile.TemporaryDirectory() as folder, serving_noop() as noop:
        credentials = enrol_many(Path(folder), 1000)
        with serving_hub(Path(folder)) as hub, playing(hub_load(hub, credentials)):
            stream = "/api/v1/stream"
            size = int(_cpu_per_second(hub, stream, 1, seconds)[1])
            blocks = f"/blocks?size={size}"
            one, many, write_one, write_many = alternate(
                rounds,
                lambda: _cpu_per_second(hub, stream, 1, seconds)[0],
                lambda: _cpu_per_second(hub, stream, MANY, seconds)[0],
                lambda: _cpu_per_second(noop, blocks, 1, seconds)[0],
                lambda: _cpu_per_second(noop, blocks, MANY, seconds)[0],
            )
    writes = write_many - write_one
    ratio = (many - writes) / one
    return [
        Figure(
            id="P4",
            what=f"hub CPU with {MANY} viewers of 1,000 live nodes, socket writes set aside",
            value=round(many - writes, 3),
            unit="cores",
            against="one viewer",
            baseline=round(one, 3),
            ratio=round(ratio, 2),
            goal="≤ 1.5×",
            met=ratio <= 1.5,
            note=f"with writes {many:.3f} cores ({many / one:.2f}×); writing alone costs {writes:.3f} cores; "
            f"{size / 1000:.0f} kB per viewer and second, uncompressed",
        )
    ]


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
