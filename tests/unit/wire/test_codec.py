"""Any bytes give a frame, an unknown frame or a refusal, and nothing gets past the caps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.model.errors import Refused
from gpuherd.wire.codec import MAX_FRAME_BYTES, FrameDecoder, UnknownFrame, agent_decoder, encode, hub_decoder
from gpuherd.wire.frames import (
    Ack,
    FactsFrame,
    FromAgent,
    FromHub,
    Hello,
    Notice,
    PastFrames,
    SampleFrame,
    TableFrame,
    Welcome,
)
from support.wire_strategies import from_agent, from_hub

AGENT_FRAMES = (Hello, FactsFrame, TableFrame, SampleFrame, PastFrames)
HUB_FRAMES = (Welcome, Ack, Notice)
CODES = {"frame_too_large", "frame_malformed", "frame_invalid"}

FACTS: dict[str, Any] = {"type": "facts", "seq": 1, "revision": 1, "facts": {"host": {"hostname": "n"}}}
SAMPLE: dict[str, Any] = {
    "type": "sample",
    "seq": 2,
    "time": 1.0,
    "facts_revision": 1,
    "table_revision": 1,
    "host": b"",
}
HELLO: dict[str, Any] = {
    "type": "hello",
    "boot_id": "b",
    "layout": {"host": [], "devices": [], "processes": [], "uses": []},
    "time": 1.0,
    "interval_seconds": 1.0,
}


def pack(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def outcome(decoder: FrameDecoder[Any], message: bytes) -> object:
    """What comes of a message: a frame or the refusal; any other exception is a failure."""
    try:
        return decoder.decode(message)
    except Refused as refused:
        return refused


def refusal(message: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        agent_decoder().decode(message)
    return caught.value


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=300))
@pytest.mark.promise("hostile-input-is-bounded")
def test_any_bytes_are_a_frame_or_refused(message: bytes) -> None:
    for decoder, frames in ((agent_decoder(), AGENT_FRAMES), (hub_decoder(), HUB_FRAMES)):
        result = outcome(decoder, message)
        assert isinstance(result, (*frames, UnknownFrame, Refused))
        if isinstance(result, Refused):
            assert result.code in CODES
            assert str(result).isprintable()
            assert len(str(result)) < 400


@given(st.sampled_from([FACTS, SAMPLE, HELLO]), st.text(max_size=10), plain, st.data())
def test_any_field_with_any_value_is_a_frame_or_refused(
    base: dict[str, Any], name: str, value: Any, data: st.DataObject
) -> None:
    """Closer to the mark than random bytes: a good frame with one thing wrong or more in it."""
    name = data.draw(st.sampled_from(sorted(base)) | st.just(name))
    result = outcome(agent_decoder(), pack({**base, name: value}))
    assert isinstance(result, (*AGENT_FRAMES, UnknownFrame, Refused))


@given(st.sampled_from([FACTS, SAMPLE, HELLO]), st.integers(0, 200))
def test_a_frame_cut_short_is_refused(base: dict[str, Any], length: int) -> None:
    message = pack(base)
    if length < len(message):
        assert refusal(message[:length]).code in ("frame_malformed", "frame_invalid")


@given(from_agent)
def test_frames_from_an_agent_come_back_as_they_were(frame: FromAgent) -> None:
    assert agent_decoder().decode(encode(frame)) == frame


@given(from_hub)
def test_frames_from_a_hub_come_back_as_they_were(frame: FromHub) -> None:
    assert hub_decoder().decode(encode(frame)) == frame


def test_the_two_directions_are_apart() -> None:
    assert isinstance(agent_decoder().decode(encode(Ack(seq=1))), UnknownFrame)
    assert isinstance(hub_decoder().decode(pack(SAMPLE)), UnknownFrame)


# --- caps -------------------------------------------------------------------------------------------------------


def test_a_frame_over_the_size_cap_is_refused_unread() -> None:
    assert refusal(b"\xc1" * (MAX_FRAME_BYTES + 1)).code == "frame_too_large"


@pytest.mark.parametrize("depth", [200, 5_000, 200_000])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"])
@pytest.mark.promise("hostile-input-is-bounded")
def test_deep_nesting_is_refused(depth: int, opening: bytes) -> None:
    assert refusal(opening * depth + b"\xc0").code in ("frame_malformed", "frame_invalid")
    head = pack({**SAMPLE, "novelty": None})[:-1]
    # In a field nobody knows it is skipped, if it can be.
    result = outcome(agent_decoder(), head + opening * depth + b"\xc0")
    assert isinstance(result, SampleFrame | Refused)


def test_lengths_that_lie_are_refused_without_taking_the_memory() -> None:
    for message in (
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
    ):
        assert refusal(message).code in ("frame_malformed", "frame_invalid")


def _device(number: int) -> dict[str, Any]:
    return {"uuid": f"GPU-{number}", "index": 0, "name": "n"}


@pytest.mark.parametrize(
    ("base", "path", "good", "bad"),
    [
        (FACTS, ("facts", "devices"), [_device(n) for n in range(512)], [_device(n) for n in range(513)]),
        (FACTS, ("facts", "host", "hostname"), "x" * 128, "x" * 129),
        (FACTS, ("seq",), 2**62, 2**62 + 1),
        (FACTS, ("seq",), 0, -1),
        (SAMPLE, ("devices",), b"x" * 524_288, b"x" * 524_289),
        (
            SAMPLE,
            ("problems",),
            [{"code": "c", "message": "m"}] * 1024,
            [{"code": "c", "message": "m"}] * 1025,
        ),
        (SAMPLE, ("problems",), [{"code": "c", "message": "m" * 512}], [{"code": "c", "message": "m" * 513}]),
        (SAMPLE, ("time",), 0.0, -1.0),
        (SAMPLE, ("time",), 1e11, 1e12),
        (SAMPLE, ("time",), 1.0, float("nan")),
        (SAMPLE, ("time",), 1.0, float("inf")),
        (SAMPLE, ("time",), 1.0, "1.0"),
        (SAMPLE, ("seq",), 1, True),
        (HELLO, ("boot_id",), "x" * 96, "x" * 97),
        (HELLO, ("boot_id",), "x", ""),
        (HELLO, ("interval_seconds",), 0.001, 0.0),
        (HELLO, ("interval_seconds",), 3600.0, float("nan")),
        (HELLO, ("layout", "host"), ["c"] * 128, ["c"] * 129),
    ],
)
@pytest.mark.promise("hostile-input-is-bounded")
def test_caps_and_types_hold(base: dict[str, Any], path: tuple[str, ...], good: Any, bad: Any) -> None:
    assert not isinstance(agent_decoder().decode(pack(_with(base, path, good))), UnknownFrame)
    refused = refusal(pack(_with(base, path, bad)))
    assert refused.code == "frame_invalid"
    assert path[-1] in str(refused), "the complaint names the place"


def test_a_table_has_its_caps() -> None:
    process = {"pid": 1, "command": "x" * 100}
    table = {
        "type": "table",
        "seq": 1,
        "revision": 1,
        "facts_revision": 1,
        "table": {"processes": [process] * 4096},
    }
    assert isinstance(agent_decoder().decode(pack(table)), TableFrame)
    table["table"] = {"processes": [process] * 4097}
    assert refusal(pack(table)).code == "frame_invalid"
    table["table"] = {"processes": [{"pid": 1, "command": "x" * 513}]}
    assert refusal(pack(table)).code == "frame_invalid"


def _with(base: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, rest = path[0], path[1:]
    return {**base, first: _with(base[first], rest, value) if rest else value}


# --- versions ---------------------------------------------------------------------------------------------------


def test_a_newer_peer_may_add_fields_everywhere() -> None:
    message = pack(
        {**FACTS, "novelty": {"a": [1]}, "facts": {"host": {"hostname": "n", "cooling": "water"}, "racks": 3}}
    )
    assert agent_decoder().decode(message) == agent_decoder().decode(pack(FACTS))


@given(st.text(min_size=1, max_size=30), st.none() | st.integers(0, 2**62))
def test_a_newer_peer_may_add_frame_types(tag: str, seq: int | None) -> None:
    frame = agent_decoder().decode(pack({"type": f"new-{tag}", "seq": seq, "payload": [1, 2]}))
    assert isinstance(frame, UnknownFrame)
    assert frame.seq == seq


def test_an_older_peer_may_lack_optional_fields() -> None:
    hello = agent_decoder().decode(pack(HELLO))
    assert isinstance(hello, Hello)
    assert (hello.live_from_seq, hello.dropped_frames, hello.agent_version) == (0, 0, None)
    welcome = hub_decoder().decode(pack({"type": "welcome", "node_id": "n"}))
    assert welcome == Welcome(node_id="n")


@pytest.mark.parametrize("missing", ["boot_id", "layout", "time", "interval_seconds"])
def test_a_required_field_is_required(missing: str) -> None:
    refused = refusal(pack({name: value for name, value in HELLO.items() if name != missing}))
    assert refused.code == "frame_invalid"
    assert missing in str(refused)
