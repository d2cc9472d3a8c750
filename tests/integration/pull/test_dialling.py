"""What keeps the hub from a listening agent is told in a sentence with its remedy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.errors import Misconfigured
from gpuherd.sources.pull import PullWay
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import PullSettings
from support.authority import Authority, Certificate, needs_openssl
from support.pulling import listening, secret_of, small_hub
from support.running import free_port

Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def program(act: Act) -> AsyncIterator[int]:
    """Some program that listens."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await act(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def web_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


async def ssh_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    await reader.read()


async def newer_agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 426 Upgrade Required\r\nServer: gpuherd-agent\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("act", "code", "words"),
    [
        (web_server, "garbled", "not a listening gpuherd agent (HTTP 404); check the port"),
        (ssh_server, "garbled", "does not speak HTTP"),
        (newer_agent, "other_version", "another version of the protocol"),
        (mute, "timeout", "accepts the connection but does not respond"),
        (hangs_up, "garbled", "wants TLS (reach.is_tls = true)"),
    ],
)
def test_what_is_no_agent(act: Act, code: str, words: str) -> None:
    async def main() -> None:
        async with program(act) as port, small_hub() as hub:
            failure = await hub.failure(port)
            assert failure.code == code
            assert words in str(failure)

    asyncio.run(main())


@pytest.mark.promise("no-redirect-followed")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_node_cannot_lead_the_hub_elsewhere(status: int) -> None:
    asked: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))

    async def main() -> None:
        async with program(elsewhere) as inner, small_hub() as hub:

            async def leads_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                there = f"Location: http://127.0.0.1:{inner}/latest/meta-data/\r\nContent-Length: 0"
                writer.write(f"HTTP/1.1 {status} Elsewhere\r\n{there}\r\n\r\n".encode())
                await writer.drain()

            async with program(leads_on) as port:
                failure = await hub.failure(port)
            assert failure.code == "garbled"
            assert f"not a listening gpuherd agent (HTTP {status}); check the port" in str(failure)

    asyncio.run(main())
    assert asked == []


def test_nobody_there() -> None:
    async def main() -> None:
        async with small_hub() as hub:
            failure = await hub.failure(free_port())
            assert (failure.code, failure.needs_person) == ("unreachable", False)
            assert "nothing listens there; start `gpuherd agent --listen`" in str(failure)
            failure = await hub.failure(8472, "no-such-node.invalid")
            assert failure.code == "unreachable"
            assert "the name no-such-node.invalid cannot be resolved" in str(failure)
            failure = await hub.failure(8472, "not a host/name")
            assert (failure.code, failure.needs_person) == ("unreachable", True)
            assert "correct the list" in str(failure)

    asyncio.run(main())


# --- TLS --------------------------------------------------------------------------------------------------------


def _listening_with(certificate: Certificate) -> dict[str, Any]:
    return {"listen_tls_certificate": str(certificate.file), "listen_tls_key": str(certificate.key)}


@needs_openssl
def test_an_agent_with_a_certificate_of_our_authority(spec: ProbeSpec, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")

    async def main() -> None:
        async with (
            listening(spec, tmp_path / "agent", **_listening_with(authority.issue("IP:127.0.0.1"))) as (
                _,
                port,
            ),
            small_hub(is_tls=True, tls_ca_file=authority.file) as hub,
            small_hub() as plain,
        ):
            hub.dial(port)
            await hub.heard(5)
            failure = await plain.failure(port)
            assert "wants TLS" in str(failure)
            await hub.heard(2)

    asyncio.run(main())


@needs_openssl
@pytest.mark.parametrize(
    ("name", "days", "is_own", "words"),
    [
        ("IP:127.0.0.1", 2, False, "unknown authority; set reach.tls_ca_file to that authority's file"),
        ("IP:127.0.0.2", 2, True, "is not for 127.0.0.1"),
        ("IP:127.0.0.1", -1, True, "has expired"),
    ],
)
def test_a_certificate_that_will_not_do(
    spec: ProbeSpec, tmp_path: Path, name: str, days: int, is_own: bool, words: str
) -> None:
    authority = Authority(tmp_path / "ca")
    trusted = authority if is_own else Authority(tmp_path / "other")

    async def main() -> None:
        async with (
            listening(spec, tmp_path / "agent", **_listening_with(authority.issue(name, days=days))) as (
                _,
                port,
            ),
            small_hub(is_tls=True, tls_ca_file=trusted.file) as hub,
        ):
            failure = await hub.failure(port)
            assert (failure.code, failure.needs_person) == ("tls_failed", True)
            assert words in str(failure)
            assert not hub.hellos

    asyncio.run(main())


@needs_openssl
def test_proofs_cannot_be_passed_on_by_someone_with_a_certificate_of_his_own(
    spec: ProbeSpec, tmp_path: Path
) -> None:
    """In between sits a TLS proxy that the hub trusts, too: the same authority has signed its certificate."""
    authority = Authority(tmp_path / "ca")
    agents = authority.issue("IP:127.0.0.1")
    kept = Certificate(agents.file.rename(tmp_path / "agent.pem"), agents.key.rename(tmp_path / "agent.key"))
    proxys = authority.issue("IP:127.0.0.1")

    async def main() -> None:
        import ssl

        to_agent = ssl.create_default_context(cafile=authority.file)
        for_hub = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for_hub.load_cert_chain(proxys.file, proxys.key)

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await reader.read(65_536):
                    writer.write(data)
            writer.close()

        async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            agent_reader, agent_writer = await asyncio.open_connection("127.0.0.1", port, ssl=to_agent)
            await asyncio.gather(pass_on(reader, agent_writer), pass_on(agent_reader, writer))

        async with (
            listening(spec, tmp_path / "agent", **_listening_with(kept)) as (_, port),
            small_hub(is_tls=True, tls_ca_file=authority.file) as hub,
        ):
            server = await asyncio.start_server(between, "127.0.0.1", 0, ssl=for_hub)
            failure = await hub.failure(server.sockets[0].getsockname()[1])
            assert failure.code == "hub_refused"
            assert "a proxy between them terminates TLS" in str(failure)
            server.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (PullSettings(tls_ca_file=Path("ca.pem")), "without reach.is_tls"),
        (PullSettings(is_tls=True, tls_ca_file=Path("/no/ca.pem")), "reach.tls_ca_file"),
    ],
)
def test_bad_settings_stop_the_start(settings: PullSettings, words: str) -> None:
    async def main() -> None:
        with pytest.raises(Misconfigured, match=words):
            PullWay(settings, links=NodeLinks(None, monotonic=float), secret_of=secret_of)  # type: ignore[arg-type]

    asyncio.run(main())
