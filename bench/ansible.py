"""How long Ansible takes to put an agent on ten machines: whole ones, booted by systemd-nspawn on this machine."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.measure import Figure

__all__ = ["measure_ansible"]

NODES = 10
PATIENCE_SECONDS = 120.0


def measure_ansible() -> list[Figure]:
    """Time the first and the second run for ten nodes; nothing where no machine can be booted (as root, on Debian)."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import pytest

    folder = Path(tempfile.mkdtemp(prefix="gpuherd-bench-"))
    try:
        return _measure(folder)
    except pytest.skip.Exception as reason:
        print(f"ansible: not measured: {reason}")
        return []
    finally:
        shutil.rmtree(folder)


def _measure(folder: Path) -> list[Figure]:
    from support.ansible_nodes import Playbook, build_wheel, packed_wheels, reachable_machines

    names = [f"gpu{number:02}" for number in range(1, NODES + 1)]
    variables = {
        "gpuherd_package": str(build_wheel(folder / "dist")),
        "gpuherd_wheelhouse": str(packed_wheels(folder / "agent-wheels")),
        "gpuherd_hub_settings": {"public": "read"},
    }
    of_the_hub = {"main": {"gpuherd_wheelhouse": str(packed_wheels(folder / "hub-wheels", "hub"))}}
    with reachable_machines(folder, ["main", *names]) as (machines, key):
        playbook = Playbook(folder, machines, key)
        playbook.run({"hub": ["main"]}, variables, of_the_hub)
        groups = {"hub": ["main"], "agents": names}

        def timed() -> float:
            began = time.perf_counter()
            playbook.run(groups, variables, of_the_hub, forks=NODES, limit="agents")
            return time.perf_counter() - began

        first = timed()
        joined = _seconds_until_live(f"http://{machines['main'].address}:8470/", len(names))
        second = timed()
    note = f"{NODES} machines on this one, all at once; wheels from a tar, no index"
    return [
        Figure(
            id="ansible-first",
            what=f"Ansible puts an agent on {NODES} new nodes",
            value=round(first, 1),
            unit="s",
            note=f"{note}; the last was live {joined:.1f} s later",
        ),
        Figure(
            id="ansible-second",
            what="the same again, with nothing to do",
            value=round(second, 1),
            unit="s",
            against="the first run",
            baseline=round(first, 1),
            ratio=round(second / first, 2),
        ),
    ]


def _seconds_until_live(url: str, count: int) -> float:
    began = time.perf_counter()
    while time.perf_counter() - began < PATIENCE_SECONDS:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{url}api/v1/nodes", timeout=5) as answer,  # noqa: S310 - the hub measured
        ):
            states = [node["state"] for node in json.loads(answer.read())]
            if states == ["live"] * count:
                return time.perf_counter() - began
        time.sleep(0.05)
    raise RuntimeError(f"not all of {count} nodes were live within {PATIENCE_SECONDS:g} s")
