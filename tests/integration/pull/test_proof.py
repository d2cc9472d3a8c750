"""Who does not know the secret learns nothing and is not believed, in either direction."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gpuherd.agent.listen import Listener
from gpuherd.agent.spec import ProbeSpec
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import SUBPROTOCOL, Hello
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wire.proof import UNPROVEN, AgentProof, Challenge, HubProof, decode_proof, new_nonce, proof
from support.pulling import NODE_ID, listening, secret_of, small_hub
from support.running import PATIENCE_SECONDS, until

SECRET = secret_of(NODE_ID)


def dialled(port: int, subprotocol: str = SUBPROTOCOL) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/link",
        subprotocols=[subprotocol],  # type: ignore[list-item]
        compression=None,
        proxy=None,
        close_timeout=1,
    )


async def received(connection: ClientConnection) -> list[bytes]:
    """Give all that the agent says until it hangs up."""
    messages = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            message = await asyncio.wait_for(connection.recv(), PATIENCE_SECONDS)
            assert isinstance(message, bytes)
            messages.append(message)
    return messages


def test_a_hub_with_another_secret_gets_nothing(
    spec: ProbeSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with (
            listening(spec, tmp_path / "agent") as (_, port),
            small_hub(secret=secret_of("gpu02")) as wrong,
        ):
            failure = await wrong.failure(port)
            assert (failure.code, failure.needs_person) == ("hub_refused", True)
            assert "gpuherd node secret gpu01" in str(failure)
            assert SECRET not in str(failure)
            assert not wrong.hellos
            async with dialled(port) as stranger:
                challenge = decode_proof(await stranger.recv(), Challenge)
                await stranger.send(encode(HubProof(nonce=new_nonce(), proof=new_nonce())))
                assert await received(stranger) == [], "not even the host name"
                assert stranger.close_code == UNPROVEN
                assert socket.gethostname().encode() not in encode(challenge)

    asyncio.run(main())
    assert "failed to authenticate" in caplog.text
    assert SECRET not in caplog.text


Answer = Callable[[ClientConnection, Challenge], Awaitable[None]]


def mac(challenge: Challenge, hub_nonce: bytes, role: str = "hub", secret: str = SECRET) -> bytes:
    return proof(secret, role, hub_nonce=hub_nonce, agent_nonce=challenge.nonce)  # type: ignore[arg-type]


async def echo(connection: ClientConnection, challenge: Challenge) -> None:
    await connection.send(encode(challenge))


async def own_role(connection: ClientConnection, challenge: Challenge) -> None:
    nonce = new_nonce()
    await connection.send(encode(HubProof(nonce=nonce, proof=mac(challenge, nonce, "agent"))))


async def cut_short(connection: ClientConnection, challenge: Challenge) -> None:
    nonce = new_nonce()
    await connection.send(encode(HubProof(nonce=nonce, proof=mac(challenge, nonce)))[:-1])


async def too_long(connection: ClientConnection, challenge: Challenge) -> None:
    await connection.send(bytes(60_000))


async def huge(connection: ClientConnection, challenge: Challenge) -> None:
    await connection.send(bytes(10_000_000))


async def text(connection: ClientConnection, challenge: Challenge) -> None:
    await connection.send("let me in")


async def frames_at_once(connection: ClientConnection, challenge: Challenge) -> None:
    await connection.send(encode(Hello(boot_id="b", layout=LAYOUT, time=1.0, interval_seconds=1.0)))


@pytest.mark.parametrize("answer", [echo, own_role, cut_short, too_long, huge, text, frames_at_once])
def test_what_is_no_proof_is_refused(spec: ProbeSpec, tmp_path: Path, answer: Answer) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port), dialled(port) as stranger:
            challenge = decode_proof(await stranger.recv(), Challenge)
            with contextlib.suppress(ConnectionClosed):
                await answer(stranger, challenge)
            assert await received(stranger) == []

    asyncio.run(main())


def test_a_recorded_proof_proves_nothing(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port):
            async with dialled(port) as hub:
                challenge = decode_proof(await hub.recv(), Challenge)
                nonce = new_nonce()
                recorded = encode(HubProof(nonce=nonce, proof=mac(challenge, nonce)))
                await hub.send(recorded)
                answer = decode_proof(await hub.recv(), AgentProof)
                assert answer.proof == mac(challenge, nonce, "agent"), "a good proof is answered with one"
            async with dialled(port) as thief:
                assert decode_proof(await thief.recv(), Challenge).nonce != challenge.nonce
                await thief.send(recorded)
                assert await received(thief) == []

    asyncio.run(main())


def test_another_version_or_path_is_told_so(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port):
            with pytest.raises(InvalidStatus) as refused:
                await dialled(port, "gpuherd.v2")
            assert refused.value.response.status_code == 426
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://127.0.0.1:{port}/api/v1/agent", proxy=None)
            assert refused.value.response.status_code == 404

    asyncio.run(main())


def test_a_slow_handshake_is_cut_off(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (agent, port):
            assert isinstance(agent.link, Listener)
            agent.link.door._stranger_seconds = 0.3
            async with dialled(port) as stranger:
                decode_proof(await stranger.recv(), Challenge)
                assert await received(stranger) == []
            assert agent.link.door.strangers == 0

    asyncio.run(main())


# --- a false agent ----------------------------------------------------------------------------------------------

Act = Callable[[ServerConnection], Awaitable[None]]


@contextlib.asynccontextmanager
async def false_agent(act: Act) -> AsyncIterator[int]:
    async with serve(
        act,
        "127.0.0.1",
        0,
        subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
        compression=None,
        close_timeout=1,
    ) as server:
        yield next(iter(server.sockets)).getsockname()[1]


async def knows_nothing(connection: ServerConnection) -> None:
    await connection.send(encode(Challenge(nonce=new_nonce())))
    await connection.recv()
    await connection.send(encode(AgentProof(proof=new_nonce())))
    await connection.send(encode(Hello(boot_id="b", layout=LAYOUT, time=1.0, interval_seconds=1.0)))
    await connection.wait_closed()


async def returns_the_hubs_proof(connection: ServerConnection) -> None:
    await connection.send(encode(Challenge(nonce=new_nonce())))
    theirs = decode_proof(await connection.recv(), HubProof)
    await connection.send(encode(AgentProof(proof=theirs.proof)))
    await connection.wait_closed()


async def skips_the_proof(connection: ServerConnection) -> None:
    await connection.send(encode(Hello(boot_id="b", layout=LAYOUT, time=1.0, interval_seconds=1.0)))
    await connection.wait_closed()


async def says_nothing(connection: ServerConnection) -> None:
    await connection.wait_closed()


async def says_too_much(connection: ServerConnection) -> None:
    await connection.send(bytes(2_000_000))
    await connection.wait_closed()


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (knows_nothing, "node_unproven"),
        (returns_the_hubs_proof, "node_unproven"),
        (skips_the_proof, "garbled"),
        (says_nothing, "timeout"),
        (says_too_much, "link_lost"),
    ],
)
def test_an_agent_without_the_secret_is_not_believed(act: Act, code: str) -> None:
    async def main() -> None:
        async with false_agent(act) as port, small_hub() as hub:
            failure = await hub.failure(port)
            assert failure.code == code
            assert str(failure).startswith(f"gpu01 (127.0.0.1:{port}): ")
            assert not hub.hellos
            assert SECRET not in str(failure)
            await until(lambda: hub.links.open_count == 0, "no link is left")

    asyncio.run(main())
