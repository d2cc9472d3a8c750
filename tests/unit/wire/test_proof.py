"""The mutual proof: what each side can and cannot conclude."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.model.errors import Refused
from gpuherd.wire.codec import encode
from gpuherd.wire.proof import (
    MAX_PROOF_BYTES,
    AgentProof,
    Challenge,
    HubProof,
    channel_of,
    decode_proof,
    is_proof,
    new_nonce,
    proof,
)

A, B = bytes(range(32)), bytes(range(32, 64))
SECRET = "ghl_secret"


def test_a_proof_is_for_one_secret_role_pair_of_nonces_and_channel() -> None:
    good = proof(SECRET, "hub", hub_nonce=A, agent_nonce=B)
    assert is_proof(good, SECRET, "hub", hub_nonce=A, agent_nonce=B)
    assert not is_proof(good, SECRET + "x", "hub", hub_nonce=A, agent_nonce=B)
    assert not is_proof(good, SECRET, "agent", hub_nonce=A, agent_nonce=B), "an echo"
    assert not is_proof(good, SECRET, "hub", hub_nonce=B, agent_nonce=A), "turned round"
    assert not is_proof(good, SECRET, "hub", hub_nonce=A, agent_nonce=new_nonce()), "a recording"
    assert not is_proof(good, SECRET, "hub", hub_nonce=A, agent_nonce=B, channel=channel_of(b"der"))
    assert not is_proof(good[:-1], SECRET, "hub", hub_nonce=A, agent_nonce=B)
    assert not is_proof(b"", SECRET, "hub", hub_nonce=A, agent_nonce=B)


def test_the_computation_is_the_documented_one() -> None:
    """Held for ever: an agent in another language computes the same."""
    assert proof("ghl_test", "hub", hub_nonce=A, agent_nonce=B).hex() == (
        "c61d2a68f36602b3dfbc3fbe7bfc1e6b7d95ad187a16449967b36fe80a4d7319"
    )


def test_nonces_are_fresh() -> None:
    assert len({new_nonce() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "message",
    [Challenge(nonce=A), HubProof(nonce=A, proof=B), AgentProof(proof=B)],
    ids=lambda m: type(m).__name__,
)
def test_messages_survive_the_way(message: Challenge | HubProof | AgentProof) -> None:
    encoded = encode(message)
    assert len(encoded) < MAX_PROOF_BYTES
    assert decode_proof(encoded, type(message)) == message
    for cut in range(len(encoded)):
        with pytest.raises(Refused):
            decode_proof(encoded[:cut], type(message))


@given(st.binary(max_size=400) | st.text(max_size=20))
def test_anything_else_is_refused(message: bytes | str) -> None:
    for kind in (Challenge, HubProof, AgentProof):
        with pytest.raises(Refused):
            decode_proof(message, kind)


def test_nonces_of_another_length_are_refused() -> None:
    for nonce in (b"", A[:-1], A + b"x"):
        with pytest.raises(Refused):
            decode_proof(encode(Challenge(nonce=nonce)), Challenge)
