"""Nodes on real WebSockets: hello, frames, durable acks, replacement, removal, bad frames."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gpuherd.model.reports import NodeFacts
from gpuherd.wire.codec import MAX_FRAME_BYTES, encode
from gpuherd.wire.frames import FactsFrame, Welcome
from support.herd import IDLE, WORKING
from support.hub import NodeClient, eventually, node_client, running_hub


def test_a_sample_becomes_a_live_device_and_is_acknowledged(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "Node One") as client:
            seq = await client.sample(WORKING)
            await client.wait_acked(seq)
            await eventually(lambda: [n.state for n in hub.fleet.view().nodes] == ["live"])
            assert [(n.id, n.name) for n in hub.fleet.view().nodes] == [("node-one", "Node One")]
            await eventually(lambda: [d.availability.state for d in hub.fleet.devices()] == ["busy", "busy"])

    asyncio.run(story())


def test_frames_are_acknowledged_only_after_they_are_saved(tmp_path: Path) -> None:
    from gpuherd.records.last_reports import LastReports

    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "a") as client:
            seq = await client.sample()
            await client.wait_acked(seq)
            # Another reader of the same file sees exactly what a restarted hub would see.
            (kept,) = LastReports(tmp_path / "state.sqlite").load_all()
            assert kept.runs == {"boot-1": seq}

    asyncio.run(story())


def test_a_welcome_names_only_what_is_saved_and_repeated_frames_count_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            enrolled = await hub.admit("a")
            async with node_client(hub, enrolled) as client:
                first = await client.sample()
                await client.wait_acked(first)
                for _ in range(5):
                    await client.sample()
                await eventually(lambda: hub.fleet.node_health()[0].accepted == 6)
                again = NodeClient(hub.url, enrolled.credential)
                welcome = await again.open()
                assert first <= welcome.resume_after_seq <= client.seq
                # The agent sends again whatever it was not told to be safe.
                await again.send(again.facts_message(1))
                await again.send(again.table_message(2))
                for seq in range(welcome.resume_after_seq + 1, client.seq + 1):
                    await again.send(again.sample_message(seq))
                again.acked = welcome.resume_after_seq
                await again.send(again.sample_message(client.seq + 1))
                await again.wait_acked(client.seq + 1)
                assert hub.fleet.node_health()[0].accepted == 7
                await again.close()

    asyncio.run(story())


def test_the_newer_link_of_a_node_wins_and_a_cloned_disk_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            enrolled = await hub.admit("a")
            older = NodeClient(hub.url, enrolled.credential)
            await older.open()
            for _ in range(5):
                newer = NodeClient(hub.url, enrolled.credential)
                await newer.open()
                notice = await older.notice()
                assert (notice.code, notice.is_final) == ("replaced", True)
                with pytest.raises(ConnectionClosed):
                    await older.receive()
                older = newer
            health = hub.health()
            assert health.links.open == 1
            assert health.links.replaced == 5
            assert health.links.flapping == ("a",)
            assert health.status == "degraded"
            assert "two machines use the credential" in health.reasons[0]
            await older.close()

    asyncio.run(story())


@pytest.mark.promise("node-speaks-for-itself")
def test_a_node_speaks_only_for_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path) as hub,
            node_client(hub, "b") as other,
            node_client(hub, "a") as client,
        ):
            await other.sample(IDLE)
            # Node a says it is b in its facts: shown as what it calls itself, filed under its credential.
            host = msgspec.structs.replace(client.facts.host, hostname="b")
            lie = NodeFacts(host=host, devices=client.facts.devices)
            await client.send(encode(FactsFrame(seq=client.next_seq(), revision=1, facts=lie)))
            await client.wait_acked(await client.sample(WORKING))
            await eventually(
                lambda: (
                    {(d.node_id, d.availability.state) for d in hub.fleet.devices()}
                    == {("a", "busy"), ("b", "free")}
                )
            )

    asyncio.run(story())


@pytest.mark.parametrize("credential", ["", "ghn_wrong", "x" * 5000, "ghn_\xff"])
def test_an_unknown_credential_is_turned_away_at_the_door(tmp_path: Path, credential: str) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            await hub.admit("a")
            with pytest.raises(InvalidStatus) as caught:
                await NodeClient(hub.url, credential).dial()
            assert caught.value.response.status_code == 401
            assert b'"unauthorized"' in caught.value.response.body
            assert hub.health().links.refused_credentials == 1

    asyncio.run(story())


def test_another_major_version_is_told_so(tmp_path: Path) -> None:
    from websockets.asyncio.client import connect

    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            enrolled = await hub.admit("a")
            address = hub.url.replace("http", "ws") + "api/v1/agent"
            headers = {"Authorization": f"Bearer {enrolled.credential}"}
            for subprotocols in (None, ["gpuherd.v2"]):
                with pytest.raises(InvalidStatus) as caught:
                    await connect(address, subprotocols=subprotocols, additional_headers=headers, proxy=None)  # type: ignore[arg-type]
                assert caught.value.response.status_code == 400
                assert b"unsupported_protocol" in caught.value.response.body

    asyncio.run(story())


_deep = b"\x82\xa4type\xa5facts\xa1x" + b"\x91" * 100_000
BAD_FRAMES: dict[str, tuple[bytes | str, str | None]] = {
    "garbage": (b"\xc1", "frame_malformed"),
    "empty": (b"", "frame_malformed"),
    "deep": (_deep, "frame_malformed"),
    "wrong type": (msgspec.msgpack.encode({"type": "sample", "seq": "one"}), "frame_invalid"),
    "missing fields": (msgspec.msgpack.encode({"type": "sample", "seq": 1}), "frame_invalid"),
    "a list": (msgspec.msgpack.encode([1, 2]), "frame_invalid"),
    "nan time": (
        msgspec.msgpack.encode(
            {
                "type": "sample",
                "seq": 9,
                "time": float("nan"),
                "facts_revision": 1,
                "table_revision": 1,
                "host": b"",
            }
        ),
        None,
    ),
    "misshapen": (
        msgspec.msgpack.encode(
            {
                "type": "sample",
                "seq": 10,
                "time": 1.0,
                "facts_revision": 1,
                "table_revision": 1,
                "host": b"12345678",
            }
        ),
        "matrix_misshapen",
    ),
    "text": ("hello", None),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_bad_frame_is_answered_counted_and_harms_nobody(tmp_path: Path, name: str) -> None:
    message, code = BAD_FRAMES[name]

    async def story() -> None:
        async with (
            running_hub(tmp_path) as hub,
            node_client(hub, "good") as good,
            node_client(hub, "bad") as bad,
        ):
            await bad.send(message)
            notice = await bad.notice()
            assert not notice.is_final
            assert code is None or notice.code == code
            (health,) = (node for node in hub.fleet.node_health() if node.node_id == "bad")
            assert health.refused == {notice.code: 1}
            assert health.last_error == notice.message
            # The same link goes on, and so does everyone else's.
            bad.seq = 20
            await bad.wait_acked(await bad.sample())
            await good.wait_acked(await good.sample())
            assert len(hub.fleet.view().nodes) == 2

    asyncio.run(story())


@pytest.mark.promise("hostile-input-is-bounded")
def test_an_oversized_frame_ends_the_link(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "a") as client:
            await client.send(b"x" * (MAX_FRAME_BYTES + 1))
            notice = await client.notice()
            assert (notice.code, notice.is_final) == ("frame_too_large", True)
            with pytest.raises(ConnectionClosed):
                await client.receive()
            await eventually(lambda: hub.links.open_count == 0)

    asyncio.run(story())


def test_a_link_is_closed_after_twenty_bad_frames(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "a") as client:
            for _ in range(20):
                await client.send(b"\xc1")
            notices = [await client.notice() for _ in range(20)]
            assert [notice.is_final for notice in notices] == [False] * 19 + [True]
            with pytest.raises(ConnectionClosed):
                await client.receive()
            assert hub.fleet.node_health()[0].refused == {"frame_malformed": 20}

    asyncio.run(story())


def test_the_first_frame_must_be_a_hello(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            enrolled = await hub.admit("a")
            client = NodeClient(hub.url, enrolled.credential)
            await client.dial()
            await client.sample()
            notice = await client.notice()
            assert (notice.code, notice.is_final) == ("hello_missing", True)
            await client.close()

    asyncio.run(story())


def test_frames_of_a_newer_minor_version_are_ignored_but_acknowledged(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "a") as client:
            seq = client.next_seq()
            await client.send(msgspec.msgpack.encode({"type": "weather", "seq": seq, "rain": True}))
            await client.wait_acked(seq)
            assert hub.fleet.node_health()[0].unknown_frames == 1

    asyncio.run(story())


@pytest.mark.promise("removed-node-is-out")
def test_removing_a_node_closes_its_link_and_voids_its_credential(tmp_path: Path) -> None:
    from gpuherd.api.enrolling import open_enrolment

    async def story() -> None:
        async with (
            running_hub(tmp_path) as hub,
            node_client(hub, "a") as client,
            node_client(hub, "b") as other,
        ):
            await client.wait_acked(await client.sample())
            # As the command line does it: another process, the same records.
            await asyncio.to_thread(open_enrolment(hub.settings).remove, "a", now=hub.clock.wall())
            notice = await client.notice()
            assert (notice.code, notice.is_final) == ("removed", True)
            with pytest.raises(InvalidStatus):
                await client.dial()
            await eventually(lambda: [node.id for node in hub.fleet.view().nodes] == ["b"])
            await other.wait_acked(await other.sample())

    asyncio.run(story())


def test_a_link_whose_other_side_is_dead_is_given_up(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            enrolled = await hub.admit("a")
            client = NodeClient(hub.url, enrolled.credential)
            await client.open()
            assert client.connection is not None
            client.connection.transport.pause_reading()
            newer = NodeClient(hub.url, enrolled.credential)
            assert isinstance(await newer.open(), Welcome)
            assert hub.links.open_count == 1
            client.connection.transport.abort()
            await newer.close()
            await eventually(lambda: hub.links.open_count == 0)

    asyncio.run(story())


@pytest.mark.promise("flooding-node-is-shut-out")
def test_a_node_that_floods_is_shut_out_with_the_reason_and_its_neighbour_is_not_harmed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path) as hub,
            node_client(hub, "calm") as calm,
            node_client(hub, "loud") as loud,
        ):
            now = hub.links.monotonic()
            hub.links.monotonic = lambda: (
                now
            )  # no allowance comes meanwhile: a slow machine would flood nobody
            hearing = asyncio.create_task(loud.notice())  # what nobody reads is lost when the link is closed
            with contextlib.suppress(ConnectionClosed):
                for _ in range(20_000):
                    await loud.sample()
            notice = await hearing
            assert (notice.code, notice.is_final) == ("too_many_frames", True)
            shown = hub.fleet.node("loud")
            assert shown is not None
            assert [problem.code for problem in shown.notes] == ["too_many_frames"]
            assert hub.fleet.node_health()[1].refused == {"too_many_frames": 1}
            await calm.wait_acked(await calm.sample())

    asyncio.run(story())
