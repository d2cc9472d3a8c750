"""Nodes with a valid credential that try to harm the hub: floods of reports, messages without an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from gpuherd.api.hub import Hub
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.wire.codec import MAX_FRAME_BYTES
from support.herd import WORKING, gpu
from support.hub import NodeClient, eventually, node_client, running_hub
from support.people import add_account, bearer, cookie, refresh
from support.soak import SOAK
from support.tally import Tally

MIB = 2**20


def small_report() -> bytes:
    report = Report(
        facts=NodeFacts(host=HostFacts(hostname="any"), devices=(gpu(0),)),
        sample=Sample(time=0.0, devices=(WORKING,)),
    )
    return msgspec.json.encode(report)


def refused(hub: Hub) -> dict[str, dict[str, int]]:
    """Give what the hub refused, by node."""
    return {health.node_id: health.refused for health in hub.fleet.node_health()}


@pytest.mark.attack
@pytest.mark.promise("flooding-node-is-shut-out")
def test_posted_reports_count_like_frames(tmp_path: Path, tally: Tally) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            hub.links.monotonic = lambda: 0.0  # so that the allowance does not fill up meanwhile
            loud, calm = await hub.admit("loud"), await hub.admit("calm")
            body, tries = small_report(), 80 * SOAK
            for _ in range(30):  # 2,000 frames may come at once; the largest report counts as 65 of them
                hub.count_report("loud", MAX_FRAME_BYTES)

            async def post(credential: str) -> int:
                headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
                async with http.post("api/v1/reports", data=body, headers=headers) as response:
                    return response.status

            answers = [await post(loud.credential) for _ in range(tries)]
            taken = answers.count(202)
            tally.add("flood of POST /reports", tries=tries, held=answers.count(429), figure=f"{taken} taken")
            assert answers == [202] * taken + [429] * (tries - taken)
            assert taken == 50
            shown = hub.fleet.node("loud")
            assert shown is not None
            assert [note.code for note in shown.notes] == ["too_many_frames"]
            assert refused(hub)["loud"] == {"too_many_frames": tries - taken}
            # The allowance is the node's, whichever way it reports.
            link = NodeClient(hub.url, loud.credential)
            await link.dial()
            await link.send(bytes(MAX_FRAME_BYTES))
            assert (await link.notice()).code == "too_many_frames"
            await link.close()
            assert await post(calm.credential) == 202

    asyncio.run(story())


@pytest.mark.attack
@pytest.mark.promise("credential-opens-nothing-else")
def test_a_nodes_credential_opens_nothing_else(tmp_path: Path, tally: Tally) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            add_account(hub, "root", "admin")
            await refresh(hub)
            credential = (await hub.admit("n1")).credential
            answers = []
            for path in (
                "fleet",
                "nodes",
                "nodes/n1",
                "gpus",
                "users",
                "stream",
                "accounts",
                "audit",
                "bookings",
                "usage",
            ):
                for headers in (bearer(credential), cookie(credential)):
                    async with http.get(f"api/v1/{path}", headers=headers) as response:
                        answers.append(response.status)
            for path in ("bookings", "accounts", "account/tokens"):
                async with http.post(f"api/v1/{path}", json={}, headers=bearer(credential)) as response:
                    answers.append(response.status)
            tally.add("node's credential used for the API", tries=len(answers), held=answers.count(401))
            assert set(answers) == {401}

    asyncio.run(story())


@pytest.mark.attack
@pytest.mark.promise("unfinished-message-ends-link")
def test_a_message_without_an_end_ends_the_link(tmp_path: Path, tally: Tally) -> None:
    nodes = 4 * SOAK
    stopped: list[int] = []

    async def attack(hub: Hub, number: int) -> None:
        async with node_client(hub, f"n{number}") as client:
            connection = client.connection
            assert connection is not None

            async def pieces() -> AsyncIterator[bytes]:
                for piece in range(60):
                    stopped[number] = piece
                    yield bytes(MIB)
                await connection.wait_closed()
                yield b""

            with pytest.raises(ConnectionClosed):
                await connection.send(pieces())

    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "calm") as calm:
            stopped.extend([0] * nodes)
            hub._unfinished._grown_bytes = -1
            await asyncio.gather(*(attack(hub, number) for number in range(nodes)))
            held = sum(refused(hub)[f"n{number}"] == {"frame_too_large": 1} for number in range(nodes))
            figure = f"at most {max(stopped)} MiB of 60 sent"
            tally.add("message without an end", tries=nodes, held=held, figure=figure)
            assert held == nodes
            await calm.wait_acked(await calm.sample())
            await eventually(lambda: hub.links.open_count == 1)

    asyncio.run(story())
