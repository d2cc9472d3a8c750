"""An agent at a real hub behind a real nginx that does not do all it should."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from support.hub import running_hub
from support.nginx import need_nginx, running_nginx
from support.running import PATIENCE_SECONDS, until

PASSES_ON = 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'


@pytest.fixture(autouse=True)
def nginx_here() -> None:
    need_nginx()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        (
            "auth_basic off;",
            ["(HTTP 426)", "a proxy in front of the hub does not pass it on", "$http_upgrade"],
        ),
        (PASSES_ON, ["(HTTP 401)", "a proxy in front of the hub", "requires a login", "api/v1/enroll"]),
        (f"auth_basic off; {PASSES_ON}", []),
    ],
    ids=["no upgrade", "asks for a password", "as it should be"],
)
def test_the_proxy_is_named_and_what_it_has_to_do(
    spec: ProbeSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture, location: str, words: list[str]
) -> None:
    caplog.set_level(logging.INFO)
    is_live = False

    async def story() -> None:
        nonlocal is_live
        async with running_hub(tmp_path / "hub") as hub:
            state_dir = tmp_path / "state"
            state_dir.mkdir()
            (state_dir / "credential").write_text((await hub.admit("gpu01")).credential)
            with running_nginx(tmp_path / "nginx", hub.url, {}, location=location) as url:
                agent = Agent(AgentSettings(hub_url=url, interval_seconds=0.1), spec, state_dir=state_dir)
                stop = asyncio.Event()
                task = asyncio.create_task(agent.run(stop))
                try:
                    await until(lambda: bool(said(caplog) or hub.fleet.view().nodes[0].devices), "an outcome")
                    is_live = bool(hub.fleet.view().nodes[0].devices)
                finally:
                    stop.set()
                    await asyncio.wait_for(task, PATIENCE_SECONDS)

    asyncio.run(story())
    assert is_live is not bool(words)
    assert len(said(caplog)) == bool(words)
    for record in said(caplog):
        assert record.levelno == logging.ERROR
        assert [word for word in (*words, "docs/deploy/proxies.md") if word not in record.message] == []


def said(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "gpuherd.agent.link"]
