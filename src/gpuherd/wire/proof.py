"""Before a hub that dials and an agent that listens talk: each proves that it knows the node's secret.

The secret itself never travels. The agent opens with a fresh nonce and says nothing else; the hub answers with its own
nonce and a MAC over both; only then does the agent answer with its MAC, and frames follow. Each side's MAC names its
role, so that an echo proves nothing; both nonces are fresh, so that a recording proves nothing; the protocol version
and, with TLS, the agent's certificate are in it, so that nobody in between can pass proofs on.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from gpuherd.model.errors import Refused
from gpuherd.wire.frames import SUBPROTOCOL

__all__ = [
    "LINK_PATH",
    "MAX_PROOF_BYTES",
    "PROOF_SECONDS",
    "REPLACED",
    "UNPROVEN",
    "AgentProof",
    "Challenge",
    "HubProof",
    "channel_of",
    "decode_proof",
    "is_proof",
    "new_nonce",
    "proof",
]

LINK_PATH = "/link"
"""Where a listening agent takes a hub's WebSocket."""
PROOF_SECONDS = 5.0
"""From the first byte to the last proof; whoever takes longer is cut off."""
MAX_PROOF_BYTES = 256
UNPROVEN = 4401
"""WebSocket close code: the other side's proof was not believed."""
REPLACED = 4409
"""WebSocket close code: another hub has proven itself and is served instead."""
NO_TLS = bytes(32)

Role = Literal["hub", "agent"]
Bytes32 = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Challenge(Struct, frozen=True, kw_only=True, tag="challenge", tag_field="type"):
    """The agent's first message: prove that you are my hub."""

    nonce: Bytes32


class HubProof(Struct, frozen=True, kw_only=True, tag="hub_proof", tag_field="type"):
    """The hub's answer, and its own challenge."""

    nonce: Bytes32
    proof: Bytes32


class AgentProof(Struct, frozen=True, kw_only=True, tag="agent_proof", tag_field="type"):
    """The agent's answer; its frames follow."""

    proof: Bytes32


T = TypeVar("T", bound=Struct)


def new_nonce() -> bytes:
    """Give 256 random bits."""
    return secrets.token_bytes(32)


def channel_of(certificate: bytes | None) -> bytes:
    """Name the channel by the agent's certificate (DER); none without TLS."""
    return NO_TLS if certificate is None else hashlib.sha256(certificate).digest()


def proof(secret: str, role: Role, *, hub_nonce: bytes, agent_nonce: bytes, channel: bytes = NO_TLS) -> bytes:
    """Make a side's proof. Every part but the role has a fixed length, so that no two readings are possible."""
    told = b"\0".join((SUBPROTOCOL.encode(), role.encode(), hub_nonce + agent_nonce + channel))
    return hmac.digest(secret.encode(), told, "sha256")


def is_proof(
    given: bytes, secret: str, role: Role, *, hub_nonce: bytes, agent_nonce: bytes, channel: bytes = NO_TLS
) -> bool:
    """Check the other side's proof in constant time."""
    wanted = proof(secret, role, hub_nonce=hub_nonce, agent_nonce=agent_nonce, channel=channel)
    return hmac.compare_digest(given, wanted)


def decode_proof(message: bytes | str, kind: type[T]) -> T:
    """Decode a message of the handshake; ``Refused`` ``proof_malformed`` for anything else."""
    if isinstance(message, str) or len(message) > MAX_PROOF_BYTES:
        raise Refused("proof_malformed", "the message is not part of the mutual authentication")
    try:
        return msgspec.msgpack.decode(message, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError) as error:
        raise Refused("proof_malformed", "the message is not part of the mutual authentication") from error
