"""A hub whose lists change, break and empty themselves while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gpuherd.api.health import GroupHealth
from gpuherd.api.hub import Hub
from gpuherd.discovery import files
from gpuherd.discovery.consul import finder
from gpuherd.wiring.config import read_config
from gpuherd.wiring.outfit import configured_hub
from support.consul import Consul
from support.hub import eventually
from support.running import free_port

# Nobody listens there: the nodes are listed and cannot be reached, which is all that is needed here.
REACH = 'reach = { by = "node_info", port = 1 }'


def _with_hub(tmp_path: Path, nodes: str, use: Callable[[Hub], Awaitable[None]]) -> None:
    text = f'[hub]\nlisten = "127.0.0.1:{free_port()}"\nstate_dir = "{tmp_path}/state"\ntick_seconds = 0.1\n{nodes}'

    async def run() -> None:
        async with configured_hub(read_config(text, "gpuherd.toml", folder=tmp_path)) as hub:
            await use(hub)

    asyncio.run(run())


def _group(hub: Hub) -> GroupHealth:
    (group,) = hub.health().lists
    return group


def _names(hub: Hub) -> list[str]:
    return sorted(node.id for node in hub.fleet.view().nodes)


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at files and ask Consul more often than in real life."""
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(finder, "PAUSE_SECONDS", 0.1)


async def _until(condition: Callable[[], bool]) -> None:
    await eventually(lambda: True if condition() else None)


def test_a_file_that_changes_breaks_and_is_mended(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("a=127.0.1.1\n")

    async def use(hub: Hub) -> None:
        await _until(lambda: _names(hub) == ["a"])
        hosts.write_text("a=127.0.1.1\nb=127.0.1.2\n")
        await _until(lambda: _names(hub) == ["a", "b"])
        hosts.write_text("a=127.0.1.1\nno host\n")
        await _until(lambda: f"{hosts}:2: " in (_group(hub).trouble or ""))
        assert _names(hub) == ["a", "b"]
        hosts.unlink()
        await _until(lambda: "there is no such file" in (_group(hub).trouble or ""))
        assert _names(hub) == ["a", "b"]
        hosts.write_text("a=127.0.1.1\nb=127.0.1.2\nc=127.0.1.3\n")
        await _until(lambda: _names(hub) == ["a", "b", "c"])
        assert _group(hub).trouble is None

    _with_hub(tmp_path, f'[[nodes]]\nfind = {{ in = "hosts_file", file = "hosts.txt" }}\n{REACH}\n', use)


def test_a_token_that_loses_its_rights_does_not_empty_the_page(tmp_path: Path, consul: Consul) -> None:
    token = tmp_path / "token"
    token.write_text(str(consul.token))
    powerless = consul.call("PUT", "/v1/acl/token", {"Description": "may do nothing"})["SecretID"]
    for number in (1, 2):
        consul.register(f"gpu{number}", f"127.0.1.{number}", "herd")

    async def use(hub: Hub) -> None:
        await _until(lambda: _names(hub) == ["gpu1", "gpu2"])
        token.write_text(powerless)
        await _until(lambda: "the list is empty" in (_group(hub).trouble or ""))
        assert _names(hub) == ["gpu1", "gpu2"]
        await _until(
            lambda: any("the list is empty" in notice.message for notice in hub.fleet.view().notices)
        )
        token.write_text(str(consul.token))
        await asyncio.to_thread(consul.register, "gpu3", "127.0.1.3", "herd")
        await _until(lambda: _names(hub) == ["gpu1", "gpu2", "gpu3"])
        assert _group(hub).trouble is None

    where = f'in = "consul", url = "{consul.url}", service = "herd", token_file = "token", every_seconds = 1'
    _with_hub(tmp_path, f"[[nodes]]\nfind = {{ {where} }}\n{REACH}\n", use)
