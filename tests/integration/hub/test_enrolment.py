"""An agent enrols at a real hub through a proxy that loses answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import Credentials
from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.hub import Hub
from gpuherd.model.errors import Failed, Misconfigured
from support.hub import node_client, running_hub


class LosingProxy:
    """Passes requests on; while it ``loses``, an answer that has come is thrown away and the line is cut."""

    def __init__(self, hub: Hub) -> None:
        self._port = urlsplit(hub.url).port
        self.loses = True
        self.lost: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hub_reader, hub_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            hub_writer.write(head + await reader.readexactly(length))
            answer = await hub_reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length:")[2].split()[0])
            answer += await hub_reader.readexactly(length)
            if self.loses:
                self.lost.append(answer)
            else:
                writer.write(answer)
                await writer.drain()
        finally:
            hub_writer.close()
            writer.close()


@contextlib.asynccontextmanager
async def losing_proxy(hub: Hub) -> AsyncIterator[LosingProxy]:
    proxy = LosingProxy(hub)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy


def agent_credentials(url: str, folder: Path, token: str, name: str = "gpu01") -> Credentials:
    folder.mkdir(exist_ok=True)
    token_file = folder / "token"
    token_file.write_text(token)
    return Credentials(
        HubAddress.parse(url),
        credential_file=folder / "credential",
        join_token_file=str(token_file),
        node_name=name,
    )


def test_an_answer_lost_on_the_way_costs_neither_token_nor_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path / "hub") as hub, losing_proxy(hub) as proxy:
            token = open_enrolment(hub.settings).create_token(now=hub.clock.wall(), uses=1)
            node = agent_credentials(proxy.url, tmp_path / "node", token)
            for _ in range(2):
                with pytest.raises(Failed, match="cannot be reached to enrol"):
                    await asyncio.to_thread(node.get)
            assert [answer.split()[1] for answer in proxy.lost] == [b"201", b"201"]
            assert [known.id for known in hub.fleet.view().nodes] == ["gpu01"]
            proxy.loses = False
            # The agent was restarted meanwhile: what it knows is on its disk.
            again = agent_credentials(proxy.url, tmp_path / "node", token)
            credential = await asyncio.to_thread(again.get)
            assert hub.node_of(f"Bearer {credential}", "192.0.2.1") == "gpu01"
            assert [known.id for known in hub.fleet.view().nodes] == ["gpu01"]
            # Somebody else with the same token gets neither this node nor one of their own.
            thief = agent_credentials(proxy.url, tmp_path / "thief", token)
            with pytest.raises(Misconfigured, match="refused the join token"):
                await asyncio.to_thread(thief.get)
            copied = agent_credentials(proxy.url, tmp_path / "copy", token, name="gpu02")
            (tmp_path / "copy" / ".credential.new").write_text(f"{credential}\n{proxy.url}\n")
            with pytest.raises(Misconfigured, match="belongs to node gpu01"):
                await asyncio.to_thread(copied.get)
            assert hub.node_of(f"Bearer {credential}", "192.0.2.1") == "gpu01"

    asyncio.run(story())


def test_a_node_that_brings_no_credential_is_given_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            token = open_enrolment(hub.settings).create_token(now=hub.clock.wall())
            enrolled = await hub.enrol(token=token, hostname="a", name=None, peer="test")
            assert hub.node_of(f"Bearer {enrolled.credential}", "192.0.2.1") == "a"
            async with node_client(hub, enrolled) as client:
                await client.wait_acked(await client.sample())

    asyncio.run(story())
