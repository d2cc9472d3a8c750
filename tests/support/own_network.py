"""A network, a host name and a /var/lib of one's own: addresses, ports and folders mean what a page says of them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["COLLEAGUE_ADDRESS", "HUB_ADDRESS", "lan", "own_network"]


@contextmanager
def own_network(folder: Path, host_name: str) -> Iterator[tuple[str, ...]]:
    """Make one with nothing but loopback; gives what goes before a command to run it there, in ``folder``.

    Skips where none can be made. Whatever a command keeps in /var/lib, as gpuherd does for root, is gone afterwards.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("a network of one's own needs root, unshare (util-linux) and ip (iproute2)")
    prepare = 'ip link set lo up && hostname "$0" && mount -t tmpfs tmpfs /var/lib && echo && exec sleep 3600'
    keeper = subprocess.Popen(
        ["unshare", "--net", "--uts", "--mount", "sh", "-c", prepare, host_name], stdout=subprocess.PIPE
    )
    try:
        assert keeper.stdout is not None
        if not keeper.stdout.read(1):
            pytest.skip("no network of one's own can be made here")
        yield ("nsenter", f"--target={keeper.pid}", "--net", "--uts", "--mount", f"--wdns={folder}")
    finally:
        keeper.kill()
        keeper.wait()
        if keeper.stdout is not None:
            keeper.stdout.close()


_NEW_NETWORK = 0x40000000
HUB_ADDRESS, COLLEAGUE_ADDRESS = "192.168.0.2", "192.168.0.7"


@contextmanager
def lan() -> Iterator[tuple[str, ...] | None]:
    """Move this thread, and what it starts, to a machine of its own at ``HUB_ADDRESS``, with one more beside it.

    Gives what goes before a command to run it on the other machine; None where none can be made.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        yield None
        return
    with _machine() as hub, _machine() as colleague, Path("/proc/self/ns/net").open() as home:
        if not hub or not colleague:
            yield None
            return
        inside = [("nsenter", f"--target={pid}", "--net") for pid in (hub, colleague)]
        link = ["ip", "link", "add", "lan", "type", "veth", "peer", "name", "lan", "netns", str(colleague)]
        if subprocess.run([*inside[0], *link], check=False, capture_output=True).returncode != 0:
            yield None
            return
        for prefix, address in zip(inside, (HUB_ADDRESS, COLLEAGUE_ADDRESS), strict=True):
            up = f"ip address add {address}/24 dev lan && ip link set lan up"
            subprocess.run([*prefix, "sh", "-c", up], check=True)
        with Path(f"/proc/{hub}/ns/net").open() as network:
            _enter(network.fileno())
        try:
            yield inside[1]
        finally:
            _enter(home.fileno())


@contextmanager
def _machine() -> Iterator[int | None]:
    """Keep a network with nothing but loopback; gives the process that is in it, None if there can be none."""
    keeper = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo && exec sleep 3600"],
        stdout=subprocess.PIPE,
    )
    try:
        assert keeper.stdout is not None
        yield keeper.pid if keeper.stdout.read(1) else None
    finally:
        keeper.kill()
        keeper.wait()
        if keeper.stdout is not None:
            keeper.stdout.close()


def _enter(network: int) -> None:
    """Take this thread there; threads and processes that it starts from now on are there, too."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, _NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")
