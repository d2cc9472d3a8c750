"""A network, a host name and a /var/lib of one's own: addresses, ports and folders mean what a page says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["own_network"]


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
