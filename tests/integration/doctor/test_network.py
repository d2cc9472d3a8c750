"""What a port that does not answer tells: in a network of its own, where packets can be dropped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from support.running import PATIENCE_SECONDS

PROBE = """
import asyncio, json
from gpuherd.wiring.doctor.network import connect
from gpuherd.wiring.doctor.steps import StepFailed

async def look(address, port):
    try:
        return await connect([address], port, "start it", deadline_seconds=1.0)
    except StepFailed as failed:
        return [failed.fact, failed.remedy]

async def main():
    places = [("127.0.0.1", 7777), ("127.0.0.2", 7777), ("127.0.0.3", 7777), ("192.0.2.1", 7777)]
    print(json.dumps([await look(*place) for place in places]))

asyncio.run(main())
"""
RULES = """
table inet doctor {
    chain in {
        type filter hook input priority 0;
        ip daddr 127.0.0.2 tcp dport 7777 drop
        ip daddr 127.0.0.3 drop
    }
}
"""


def test_refused_filtered_silent_and_without_a_route_are_told_apart() -> None:
    if os.geteuid() != 0 or shutil.which("nft") is None or shutil.which("unshare") is None:
        pytest.skip("not root, or no nft and unshare: no network of our own can be made")
    script = 'ip link set lo up && nft -f - <<<"$RULES" && exec "$PYTHON" -c "$PROBE"'
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", script],
        env={**os.environ, "RULES": RULES, "PROBE": PROBE, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode and "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets nobody make networks")
    assert done.returncode == 0, done.stderr
    refused, filtered, silent, no_route = json.loads(done.stdout)
    assert refused == [
        "connection refused",
        "nothing listens on 127.0.0.1 port 7777 (connection refused): start it",
    ]
    assert filtered[0] == "filtered"
    assert filtered[1].startswith(
        "127.0.0.2 is up (it responds on port 22) but port 7777 does not respond: a firewall drops"
    )
    assert silent[0] == "timeout"
    assert silent[1].startswith("127.0.0.3 does not respond within 1 s: the machine is off or hangs")
    assert no_route[0] == "no route"
    assert no_route[1].startswith("there is no route to 192.0.2.1 (Network is unreachable)")
