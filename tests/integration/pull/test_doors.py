"""The agent's ports towards strangers: status for listed networks, the older tool's question, and floods."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gpuherd.agent.door import MOST_STRANGERS
from gpuherd.agent.listen import Listener
from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.errors import Misconfigured
from support.pulling import listening, small_hub, write_secret
from support.running import PATIENCE_SECONDS, until

PASSWORD = "8888"


async def ask(
    port: int, request: str | bytes, *, source: str = "127.0.0.1", host: str = "127.0.0.1"
) -> tuple[int, dict[str, str], bytes]:
    """Send raw bytes; give status, headers and body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    if isinstance(request, str):
        request = f"{request} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    with contextlib.suppress(ConnectionError):
        writer.write(request)
        await writer.drain()
    answer = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def post(port: int, body: bytes, path: str = "/get-status") -> bytes:
    """Write what Python's requests sends for ``requests.post(url, json=…)``."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: python-requests/2.31.0\r\n"
        "Accept-Encoding: gzip, deflate\r\nAccept: */*\r\nConnection: keep-alive\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n"
    ).encode() + body


async def read_once(agent: Agent) -> None:
    await until(lambda: agent.latest_report() is not None, "the first reading")


# --- GET /status ------------------------------------------------------------------------------------------------


def test_status_is_a_report_for_listed_networks_only(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        networks = ["127.0.0.1", "127.9.0.0/16"]
        async with listening(spec, tmp_path / "agent", listen_status_networks=networks) as (agent, port):
            await read_once(agent)
            status, headers, body = await ask(port, "GET /status?x=1")
            assert (status, headers["content-type"]) == (200, "application/json")
            report = json.loads(body)
            assert [device["index"] for device in report["facts"]["devices"]] == [0, 1, 2]
            assert abs(report["sample"]["time"] - time.time()) < 10
            assert (await ask(port, "GET /status", source="127.9.0.1"))[0] == 200
            status, _, body = await ask(port, "GET /status", source="127.0.0.7")
            assert (status, body) == (
                403,
                b"127.0.0.7 is not in any network of agent.listen_status_networks\n",
            )
            assert (await ask(port, "GET /status", host="rebound.example.org"))[0] == 421
            bent = f"{socket.gethostname()}.evil.example.org"
            assert (await ask(port, "GET /status", host=bent))[0] == 421
            assert (await ask(port, "GET /status", host=socket.gethostname()))[0] == 200
            assert (await ask(port, "POST /status"))[0] == 405
            assert (await ask(port, "GET /"))[0] == 404

    asyncio.run(main())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nno header\r\n\r\n", 400),
        (b"GET /status HTTP/2\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /link HTTP/1.1\r\n\r\n", 426),
        (b"GET /link HTTP/1.1\r\nSec-WebSocket-Protocol: gpuherd.v1\r\n\r\n", 426),
    ],
)
def test_what_is_no_request(spec: ProbeSpec, tmp_path: Path, request_bytes: bytes, status: int) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port):
            assert (await ask(port, request_bytes))[0] == status

    asyncio.run(main())


# --- POST /get-status -------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def old_tool(spec: ProbeSpec, tmp_path: Path, **settings: Any) -> Any:
    """Give an agent that also answers the older tool, and that port."""
    password_file = write_secret(tmp_path / "password", PASSWORD)
    values = {"node_info_listen": "127.0.0.1:0", "node_info_password_file": password_file, **settings}
    async with listening(spec, tmp_path / "agent", **values) as (agent, _):
        assert agent.node_info_port is not None
        door = agent.node_info_port.door
        await until(lambda: door.port != 0, "the port")
        await read_once(agent)
        yield agent, door.port


def test_the_older_tools_exchange(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with old_tool(spec, tmp_path) as (agent, port):
            status, headers, body = await ask(port, post(port, b'{"passwd": "8888"}'))
            assert (status, headers["content-type"]) == (200, "application/json")
            told = json.loads(body)
            assert list(told) == ["hostname", "last_update", "ips", "gpus"]
            assert told["hostname"] == agent.latest_report().facts.host.hostname
            age = datetime.now() - datetime.fromisoformat(told["last_update"])  # noqa: DTZ005 - the old tool's way
            assert abs(age.total_seconds()) < 10
            assert all(len(pair) == 2 for pair in told["ips"])
            gpu = told["gpus"][0]
            assert list(gpu) == ["index", "name", "use_mem", "tot_mem", "utilize", "temp", "users"]
            assert list(gpu["users"][0]) == ["pid", "username", "mem(MiB)", "command"]

    asyncio.run(main())


def test_wrong_passwords_are_refused_without_json_and_then_not_heard(
    spec: ProbeSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with old_tool(spec, tmp_path) as (_, port):
            for _ in range(10):
                status, _, body = await ask(port, post(port, b'{"passwd": "1234"}'))
                assert status == 403
                with pytest.raises(json.JSONDecodeError):
                    json.loads(body)
            assert (await ask(port, post(port, b'{"passwd": "8888"}')))[0] == 429, "guessing has an end"
            other = await ask(port, post(port, b'{"passwd": "8888"}'), source="127.0.0.2")
            assert other[0] == 200, "someone else is not shut out"

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert sum("wrong password" in record.message for record in caplog.records) == 1
    assert "1234" not in caplog.text
    assert "is the old tool's well-known default" in caplog.text


def test_what_is_no_question(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with old_tool(spec, tmp_path, node_info_networks=["127.0.0.1"]) as (_, port):
            for body in (b"", b"8888", b'{"passwd": 8888}', b'{"passwd": null}', b"\xff", b"[" * 60_000):
                assert (await ask(port, post(port, body)))[0] == 400, body[:20]
            assert (await ask(port, post(port, b" " * 70_000)))[0] == 413
            assert (await ask(port, post(port, b"{}", "/other")))[0] == 404
            assert (await ask(port, "GET /get-status"))[0] == 405
            chunked = b"POST /get-status HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            assert (await ask(port, chunked))[0] == 411
            stranger = await ask(port, post(port, b'{"passwd": "8888"}'), source="127.0.0.2")
            assert stranger[0] == 403
            assert (await ask(port, post(port, b'{"passwd": "8888"}')))[0] == 200

    asyncio.run(main())


# --- floods -----------------------------------------------------------------------------------------------------


def test_slow_and_idle_strangers_keep_neither_hub_nor_collecting_waiting(
    spec: ProbeSpec, tmp_path: Path
) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (agent, port), small_hub() as hub:
            assert isinstance(agent.link, Listener)
            door = agent.link.door
            hub.dial(port)
            await hub.heard(2)
            strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
            for number, (_, writer) in enumerate(strangers):
                with contextlib.suppress(ConnectionError):
                    writer.write(
                        (b"", b"GET /sta", b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\n", b"\0")[
                            number % 4
                        ]
                    )
            assert door.strangers <= MOST_STRANGERS
            before = agent.outbox.current.next_seq
            await hub.heard(5)
            assert agent.outbox.current.next_seq >= before + 5
            assert (await ask(port, "GET /status"))[0] == 200, "there is always room for one more"
            async with small_hub() as restarted:
                restarted.dial(port)
                await restarted.heard(2)
            await until(lambda: door.strangers == 0, "strangers are sent away after five seconds")
            for _, writer in strangers:
                writer.close()

    asyncio.run(main())


def test_a_crowd_from_one_address_does_not_shut_out_another(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent", listen_status_networks=["127.0.0.0/8"]) as (
            agent,
            port,
        ):
            await read_once(agent)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.9", 0))
            writer.write(b"GET /status HTTP/1.1\r\n")  # slow, but alone
            crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
            writer.write(b"Host: 127.0.0.1\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)).startswith(b"HTTP/1.1 200 OK")
            for _, other in [*crowd, (reader, writer)]:
                other.close()

    asyncio.run(main())


# --- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hub_url": "http://127.0.0.1"}, "agent.listen, agent.hub_url: an agent either connects"),
        ({"listen": "gpu01:8472"}, 'agent.listen: "gpu01:8472" is not an IP address'),
        ({"listen": "192.0.2.1:8472"}, "agent.listen: this machine has no address 192.0.2.1"),
        ({"listen_secret_file": None}, "agent.listen_secret_file: is required to listen"),
        ({"listen_secret_file": "/no/file"}, "cannot be read from /no/file"),
        ({"listen_status_networks": ["10.0.0.1/8"]}, "agent.listen_status_networks"),
        ({"listen_tls_key": "key.pem"}, "agent.listen_tls_certificate: is missing"),
        ({"listen_tls_certificate": "/no/c", "listen_tls_key": "/no/k"}, "agent.listen_tls_certificate"),
        ({"node_info_listen": "127.0.0.1:0"}, "agent.node_info_password_file: is required"),
    ],
)
def test_bad_settings_stop_the_start(
    spec: ProbeSpec, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    async def main() -> None:
        with pytest.raises(Misconfigured, match=words.replace(".", r"\.")):
            async with listening(spec, tmp_path / "agent", **settings):
                pass

    asyncio.run(main())


def test_a_short_secret_and_a_taken_port(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(Misconfigured, match="does not contain a secret created by a hub"):
            async with listening(spec, tmp_path / "agent", secret="changeme"):
                pass
        async with listening(spec, tmp_path / "agent") as (_, port):
            with pytest.raises(Misconfigured, match="is used by another program"):
                async with listening(spec, tmp_path / "other", port=port):
                    pass

    asyncio.run(main())


def test_listening_to_the_world_without_tls_is_warned_of(
    spec: ProbeSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent", listen="0.0.0.0:0"):
            pass
        assert "without TLS" in caplog.text
        caplog.clear()
        async with listening(spec, tmp_path / "agent"):
            pass
        assert "without TLS" not in caplog.text

    asyncio.run(main())


def test_status_is_for_this_machine_unless_configured() -> None:
    assert AgentSettings().listen_status_networks == ("127.0.0.0/8", "::1/128")
