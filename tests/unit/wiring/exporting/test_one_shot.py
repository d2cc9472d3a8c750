"""Everyone is asked, each within its own time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gpuherd.model.errors import Misconfigured
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.model.targets import Target
from gpuherd.sources.following import NodeIntake
from gpuherd.wiring.config import read_config
from gpuherd.wiring.exporting import one_shot

LIST = """
[hub]
state_dir = "{folder}"
[[nodes]]
hosts = [{hosts}]
reach = {{ by = "ssh" }}
"""


class _OneAtATime:
    """A way that logs in to one host after the other, each for a while."""

    def __init__(self, *_: Any) -> None:
        self._door = asyncio.Semaphore(1)

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        async with self._door:
            await asyncio.sleep(0.2)
        facts = NodeFacts(host=HostFacts(hostname=target.name))
        intake.take(Report(facts=facts, sample=Sample(time=0.0)))
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is shared."""


def test_nobody_is_blamed_for_the_time_that_others_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_shot, "resolve", lambda _: _OneAtATime)
    monkeypatch.setattr(one_shot, "ASKED_AT_ONCE", 1)
    text = LIST.format(folder=tmp_path, hosts=", ".join(f'"gpu{number}"' for number in range(4)))

    seen = asyncio.run(one_shot.ask_once(read_config(text, "gpuherd.toml"), deadline_seconds=0.5))

    assert [node.state for node in seen.herd.nodes] == ["live"] * 4


def test_a_list_without_a_host_is_told(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("# nobody yet\n")
    text = LIST.format(folder=tmp_path, hosts="").replace(
        "hosts = []", f'find = {{ in = "hosts_file", file = "{tmp_path}/hosts.txt" }}'
    )
    with pytest.raises(Misconfigured, match=r"contain no hosts|names no"):
        asyncio.run(one_shot.ask_once(read_config(text, "gpuherd.toml"), deadline_seconds=0.5))
