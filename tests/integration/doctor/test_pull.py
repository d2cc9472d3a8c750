"""Agents that listen: the node's secret, and a hub's link that must not be disturbed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpuherd.agent.spec import CollectorSpec, ProbeSpec
from gpuherd.auth.node_secrets import load_or_create_master, node_secret
from gpuherd.wiring.config import load
from gpuherd.wiring.outfit import configured_hub
from integration.doctor.conftest import Doctor
from support.pulling import listening
from support.running import free_port, until
from support.tiny_node import write_script


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProbeSpec:
    """Name a scripted node with three GPUs; its probe finds the module by PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    file = tmp_path / "script.json"
    write_script(file)
    options = {"script": str(file)}
    collector = CollectorSpec(name="tiny", target="support.tiny_node:TinyCollector", options=options)
    return ProbeSpec(node="support.tiny_node:TinyNode", node_options=options, collectors=(collector,))


def table(port: int) -> str:
    return (
        f'[[nodes]]\nhosts = ["gpu01=127.0.0.1:{port}"]\n'
        'reach = { by = "pull", interval_seconds = 0.2, connect_deadline_seconds = 2 }\n'
    )


def secret(doctor: Doctor, node_id: str = "gpu01") -> str:
    """Make the hub's secret, as its start does, and give a node's."""
    doctor.state_dir.mkdir(exist_ok=True)
    return node_secret(load_or_create_master(doctor.state_dir / "pull.secret"), node_id)


def test_a_good_agent(doctor: Doctor, spec: ProbeSpec, tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(spec, tmp_path / "agent", secret=secret(doctor)) as (_, port):
            doctor.configure(table(port))
            found = await doctor.look("gpu01")
        assert found.sentences == ["gpu01: no problems found."]
        assert found.fact("key") == "both sides have proved that they know the node's secret"
        assert found.fact("parse") == "3 GPUs, 3 processes"
        assert found.states["clock"] == found.states["freshness"] == "ok"

    asyncio.run(story())


def test_an_agent_with_another_secret(doctor: Doctor, spec: ProbeSpec, tmp_path: Path) -> None:
    async def story() -> None:
        other = secret(doctor, "gpu02")
        async with listening(spec, tmp_path / "agent", secret=other) as (_, port):
            doctor.configure(table(port))
            found = await doctor.look("gpu01")
        assert found.broken == ["key"]
        (sentence,) = found.sentences
        assert sentence.startswith(
            f"gpu01 (127.0.0.1:{port}): the agent does not trust this hub: it has another"
        )
        assert sentence.endswith("give it what `gpuherd node secret gpu01` prints")
        assert other not in str(found.steps)

    asyncio.run(story())


def test_a_hub_that_has_no_secret_yet_is_not_given_one(
    doctor: Doctor, spec: ProbeSpec, tmp_path: Path
) -> None:
    async def story() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port):
            doctor.configure(table(port))
            found = await doctor.look("gpu01")
        assert found.broken == ["key"]
        assert "pull.secret is missing): start the hub" in found.sentences[0]
        assert not doctor.state_dir.exists()

    asyncio.run(story())


def test_the_link_of_a_running_hub_is_not_taken_over(doctor: Doctor, spec: ProbeSpec, tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(spec, tmp_path / "agent", secret=secret(doctor)) as (_, port):
            doctor.configure(table(port))
            async with configured_hub(load(doctor.config_file)) as hub:
                await until(lambda: hub.fleet.received_at("gpu01") is not None, "a first report")
                await until(
                    lambda: (view := hub.fleet.node("gpu01")) is not None and view.state == "live", "live"
                )
                link = hub.links._links["gpu01"]
                found = await doctor.look("gpu01")
                everything = await doctor.look()
                assert hub.links._links["gpu01"] is link
                assert hub.links.replaced == 0
        assert found.sentences == ["gpu01: no problems found."]
        assert found.fact("key") == "the hub's connection is not disturbed"
        assert found.fact("freshness") == "the hub gets new reports (every 0.2 s)"
        assert [step.fact for step in everything.steps if step.name == "node"] == ["gpu01: 3 devices"]

    asyncio.run(story())


def test_no_agent_is_dialled_while_a_hub_runs_that_cannot_be_asked(
    doctor: Doctor, spec: ProbeSpec, tmp_path: Path
) -> None:
    async def story() -> None:
        async with listening(spec, tmp_path / "agent", secret=secret(doctor)) as (_, port):
            doctor.configure(table(port))
            async with configured_hub(load(doctor.config_file)) as hub:
                await until(lambda: hub.fleet.received_at("gpu01") is not None, "a first report")
                doctor.port = free_port()
                doctor.configure(table(port))
                found = await doctor.look("gpu01")
                everything = await doctor.look()
                assert hub.links.replaced == 0
                assert hub.links.open_count == 1
        assert found.broken == ["hub"]
        assert "connecting to the node would take over the hub's connection" in found.sentences[0]
        assert "node" in everything.broken

    asyncio.run(story())


def test_an_agent_that_the_hub_cannot_talk_to_is_dialled(
    doctor: Doctor, spec: ProbeSpec, tmp_path: Path
) -> None:
    async def story() -> None:
        other = secret(doctor, "gpu02")
        async with listening(spec, tmp_path / "agent", secret=other) as (_, port):
            doctor.configure(table(port))
            async with configured_hub(load(doctor.config_file)):
                found = await doctor.look("gpu01")
        assert found.broken == ["key"]
        assert found.fact("hub") == "shows it never"

    asyncio.run(story())
