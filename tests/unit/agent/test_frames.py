"""WebSocket frames, held against the library that knows all of the standard."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import SERVER, State
from websockets.protocol import Protocol as LibraryProtocol

from gpuherd.agent.frames import BINARY, CLOSE, PING, PONG, BadFrame, FrameReader, masked

LIMIT = 70_000


def from_server(opcode: Opcode, content: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, content, fin=fin).serialize(mask=False)


def read(*chunks: bytes) -> list[tuple[int, bytes]]:
    reader = FrameReader(LIMIT)
    return [frame for chunk in chunks for frame in reader.feed(chunk)]


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 125, 126, 127, 65_535, 65_536, 300_001])
def test_a_server_reads_what_we_mask(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    server = LibraryProtocol(SERVER, state=State.OPEN)
    server.receive_data(masked(BINARY, content))
    (frame,) = server.events_received()
    assert isinstance(frame, Frame)
    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.BINARY, True, content)


def test_every_frame_has_a_mask_of_its_own() -> None:
    assert len({masked(BINARY, b"the same") for _ in range(20)}) > 1


@given(
    st.lists(st.binary(max_size=200) | st.just(b"x" * 40_000), max_size=4),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_messages_are_read_however_the_bytes_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(from_server(Opcode.BINARY, message) for message in messages)
    places = sorted({min(cut, len(stream)) for cut in cuts})
    chunks = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    assert read(*chunks) == [(BINARY, message) for message in messages]


def test_parts_are_put_together_with_control_frames_between_them() -> None:
    stream = (
        from_server(Opcode.TEXT, b"one ", fin=False)
        + from_server(Opcode.PING, b"p")
        + from_server(Opcode.CONT, b"two ", fin=False)
        + from_server(Opcode.CONT, b"three")
        + from_server(Opcode.PONG, b"")
        + from_server(Opcode.CLOSE, b"\x03\xe9bye")
    )
    assert read(stream) == [(PING, b"p"), (BINARY, b"one two three"), (PONG, b""), (CLOSE, b"\x03\xe9bye")]


@pytest.mark.parametrize(
    "stream",
    {
        "masked": masked(BINARY, b"x"),
        "reserved bit": b"\xc2\x00",
        "unknown opcode": b"\x83\x00",
        "unknown control frame": b"\x8b\x00",
        "nothing to go on with": from_server(Opcode.CONT, b"x"),
        "a second beginning": from_server(Opcode.BINARY, b"x", fin=False) * 2,
        "control frame in parts": b"\x09\x00",
        "large control frame": b"\x89\x7e\x00\x80" + b"x" * 128,
        "too large": b"\x82\x7f" + (LIMIT + 1).to_bytes(8, "big"),
        "too large in parts": from_server(Opcode.BINARY, b"x" * LIMIT, fin=False)
        + from_server(Opcode.CONT, b"x"),
    }.values(),
)
def test_what_no_server_may_send_is_refused(stream: bytes) -> None:
    with pytest.raises(BadFrame, match="the hub sent"):
        read(stream)


@given(st.binary(max_size=100))
def test_any_bytes_are_frames_or_refused(stream: bytes) -> None:
    with contextlib.suppress(BadFrame):
        read(stream)
