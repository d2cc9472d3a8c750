"""This machine as a node: its way to the hub, and its credential."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from gpuherd.api.enrolling import open_enrolment
from gpuherd.wiring.config import load
from gpuherd.wiring.outfit import configured_hub
from integration.doctor.conftest import Doctor, Findings
from support.authority import Authority, Certificate

HUB_STEPS = ["resolve", "connect", "hub there", "link", "credential", "clock"]


def as_node(doctor: Doctor, url: str, tmp_path: Path, more: str = "") -> None:
    """Configure a machine whose agent reports to a hub."""
    (tmp_path / "agent").mkdir(exist_ok=True)
    doctor.configure(
        f'[agent]\nhub_url = "{url}"\nstate_dir = "{tmp_path / "agent"}"\ncollectors = []\n{more}'
    )


def enrol(doctor: Doctor, tmp_path: Path) -> str:
    with contextlib.closing(open_enrolment(load(doctor.config_file).hub)) as enrolment:
        credential = enrolment.admit("gpu05", now=time.time()).credential
    (tmp_path / "agent" / "credential").write_text(credential)
    return credential


def hub_steps(found: Findings) -> dict[str, str]:
    return {name: state for name, state in found.states.items() if name in HUB_STEPS}


def test_a_node_that_its_hub_knows(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        as_node(doctor, f"http://127.0.0.1:{doctor.port}", tmp_path)
        credential = enrol(doctor, tmp_path)
        async with configured_hub(load(doctor.config_file)) as hub:
            found = await doctor.look()
            assert hub.links.open_count == hub.links.replaced == 0
            view = hub.fleet.node("gpu05")
            assert view is not None
            assert view.received_at is None, "the question leaves no report behind"
        assert set(hub_steps(found).values()) == {"ok"}, found.steps
        assert found.broken == ["node", "agent"], "nobody has started it"
        assert "gpu05 is known to the hub but has never reported" in found.sentences[1]
        assert "start it with `gpuherd agent`" in found.sentences[2]
        assert credential not in str(found.steps)

    asyncio.run(story())


def test_a_running_agent_is_seen_and_left_alone(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        from gpuherd.agent.loop import Agent
        from gpuherd.wiring.catalog import probe_spec
        from support.running import until

        as_node(doctor, f"http://127.0.0.1:{doctor.port}", tmp_path)
        enrol(doctor, tmp_path)
        config = load(doctor.config_file)
        stop = asyncio.Event()
        async with configured_hub(config) as hub:
            agent = asyncio.create_task(
                Agent(config.agent, probe_spec(config.agent), state_dir=tmp_path / "agent").run(stop)
            )
            await until(lambda: hub.fleet.received_at("gpu05") is not None, "a report")
            found = await doctor.look()
            assert hub.links.replaced == 0
            assert hub.links.open_count == 1
            stop.set()
            await agent
        assert found.states["agent"] == "ok"
        assert set(hub_steps(found).values()) == {"ok"}, found.steps

    asyncio.run(story())


def test_a_credential_is_not_shown_to_another_hub(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        as_node(doctor, f"http://127.0.0.1:{doctor.port}", tmp_path)
        enrol(doctor, tmp_path)
        (tmp_path / "agent" / "credential.hub").write_text("https://gpus.example.org\n")
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look()
        # This hub would have known it.
        assert hub_steps(found)["credential"] == "failed"
        assert any("is enrolled at https://gpus.example.org" in sentence for sentence in found.sentences)

    asyncio.run(story())


def test_a_credential_that_the_hub_does_not_know(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        as_node(doctor, f"http://127.0.0.1:{doctor.port}", tmp_path)
        (tmp_path / "agent" / "credential").write_text("ghn_" + "x" * 43)
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look()
        assert hub_steps(found)["credential"] == "failed"
        assert hub_steps(found)["clock"] == "skipped"
        assert any(
            "the hub does not know this node's credential (HTTP 401): delete" in s for s in found.sentences
        )

    asyncio.run(story())


def test_a_node_that_is_not_enrolled(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        as_node(doctor, f"http://127.0.0.1:{doctor.port}", tmp_path)
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look()
        assert any("this node is not enrolled" in s and "gpuherd token create" in s for s in found.sentences)

    asyncio.run(story())


def test_a_wrong_base_path(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        as_node(doctor, f"http://127.0.0.1:{doctor.port}/elsewhere", tmp_path)
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look()
        assert hub_steps(found)["hub there"] == "failed"
        assert any(
            f"there is no gpuherd hub at http://127.0.0.1:{doctor.port}/elsewhere" in s
            for s in found.sentences
        )

    asyncio.run(story())


def test_a_proxy_that_does_not_pass_websockets_on(doctor: Doctor, tmp_path: Path) -> None:
    """As nginx does unless it is told otherwise: everything is well but what the agent needs."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            kept = [line for line in head if not line.lower().startswith((b"upgrade:", b"connection:"))]
            kept.insert(1, b"Connection: close")
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", doctor.port)
            with contextlib.closing(up_writer):
                up_writer.write(b"\r\n".join(kept))
                writer.write(await up_reader.read())
                await writer.drain()

    async def story() -> None:
        async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as proxy:
            port = proxy.sockets[0].getsockname()[1]
            as_node(doctor, f"http://127.0.0.1:{port}", tmp_path)
            enrol(doctor, tmp_path)
            async with configured_hub(load(doctor.config_file)):
                found = await doctor.look()
        assert hub_steps(found)["hub there"] == "ok"
        assert hub_steps(found)["link"] == "failed"
        assert found.fact("link") == "no WebSocket (HTTP 426)"
        assert any("proxy_set_header Upgrade $http_upgrade" in sentence for sentence in found.sentences)

    asyncio.run(story())


def test_a_hub_that_is_down(doctor: Doctor, tmp_path: Path) -> None:
    as_node(doctor, f"http://127.0.0.1:{doctor.port}", tmp_path)
    found = doctor()
    assert hub_steps(found)["connect"] == "failed"
    assert any("start the hub, or correct agent.hub_url" in sentence for sentence in found.sentences)


@pytest.mark.parametrize(
    ("name", "days", "is_trusted", "words"),
    [
        ("IP:127.0.0.1", 2, True, ""),
        ("IP:127.0.0.1", -1, True, "the certificate of 127.0.0.1 has expired: renew it on the hub"),
        (
            "DNS:gpus.example.org",
            2,
            True,
            "the certificate is not for 127.0.0.1: use the certificate's name",
        ),
        ("IP:127.0.0.1", 2, False, "set agent.tls_ca_file to that authority's file"),
    ],
)
def test_certificates(
    doctor: Doctor, tmp_path: Path, authority: Authority, name: str, days: int, is_trusted: bool, words: str
) -> None:
    async def story() -> None:
        (tmp_path / "agent").mkdir()
        trust = f'tls_ca_file = "{authority.file}"\n' if is_trusted else ""
        doctor.configure(
            f'[agent]\nhub_url = "https://127.0.0.1:{doctor.port}"\nstate_dir = "{tmp_path / "agent"}"\n'
            f"collectors = []\n{trust}",
            **_tls(authority.issue(name, days=days)),
        )
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look()
        assert hub_steps(found)["hub there"] == ("failed" if words else "ok")
        assert any(words in sentence for sentence in found.sentences)

    asyncio.run(story())


def test_a_listening_agent_that_does_not_run(doctor: Doctor, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("ghl_" + "x" * 43)
    found = doctor(
        None,
        f'[agent]\nlisten = "127.0.0.1:1"\nlisten_secret_file = "{secret}"\nstate_dir = "{tmp_path}"\n'
        "collectors = []\n",
    )
    assert found.states["secret"] == "ok"
    assert found.states["listening"] == "failed"
    assert any("start the agent with `gpuherd agent --listen`" in sentence for sentence in found.sentences)


def _tls(certificate: Certificate) -> dict[str, str]:
    return {"tls_certificate": str(certificate.file), "tls_key": str(certificate.key)}
