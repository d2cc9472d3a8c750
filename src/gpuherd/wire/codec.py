"""Bytes to frames and back: strict types, hard caps, one kind of error."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from gpuherd.model.errors import Refused
from gpuherd.model.text import clean
from gpuherd.wire.frames import FromAgent, FromHub

__all__ = ["MAX_FRAME_BYTES", "FrameDecoder", "UnknownFrame", "agent_decoder", "encode", "hub_decoder"]

MAX_FRAME_BYTES = 1_048_576
"""The largest message either side reads; a full table of 4,096 processes stays below the half of it in practice."""

T = TypeVar("T")
_encoder = msgspec.msgpack.Encoder()


class UnknownFrame(Struct, frozen=True, kw_only=True):
    """A well-formed frame of a type that a newer minor version has added; to be counted and ignored."""

    type: str
    seq: int | None = None


class _Envelope(Struct, frozen=True):
    type: str
    seq: int | None = None


class FrameDecoder(Generic[T]):
    """Decodes one direction's frames. Any bytes give a frame, an ``UnknownFrame`` or ``Refused``."""

    def __init__(self, frame_type: Any, known_tags: frozenset[str]) -> None:
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(frame_type)
        self._envelope = msgspec.msgpack.Decoder(_Envelope)
        self._known_tags = known_tags

    def decode(self, message: bytes) -> T | UnknownFrame:
        """Decode one message.

        Raises ``Refused`` with code ``frame_too_large``, ``frame_malformed`` (not msgpack), or ``frame_invalid``
        (wrong type, missing field, over a cap), naming the path of the offending field.
        """
        if len(message) > MAX_FRAME_BYTES:
            raise Refused(
                "frame_too_large",
                f"a frame of {len(message)} bytes exceeds the limit of {MAX_FRAME_BYTES} bytes",
            )
        try:
            return self._decoder.decode(message)
        except msgspec.ValidationError as error:
            return self._newer_or_refuse(message, error)
        except RecursionError as error:
            raise Refused("frame_malformed", "the frame is nested too deeply") from error
        except (msgspec.DecodeError, UnicodeDecodeError, OverflowError) as error:
            raise Refused(
                "frame_malformed", f"the frame is not valid msgpack: {clean(str(error), 200)}"
            ) from error

    def _newer_or_refuse(self, message: bytes, error: msgspec.ValidationError) -> UnknownFrame:
        try:
            envelope = self._envelope.decode(message)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError):
            envelope = None
        if envelope is not None and envelope.type not in self._known_tags:
            return UnknownFrame(type=clean(envelope.type), seq=envelope.seq)
        raise Refused(
            "frame_invalid", f"the frame violates the protocol: {clean(str(error), 300)}"
        ) from error


def _tags(*frames: type[Struct]) -> frozenset[str]:
    return frozenset(str(frame.__struct_config__.tag) for frame in frames)


def agent_decoder() -> FrameDecoder[FromAgent]:
    """Make the hub's decoder of what agents send."""
    return FrameDecoder(FromAgent, _tags(*FromAgent.__args__))


def hub_decoder() -> FrameDecoder[FromHub]:
    """Make the agent's decoder of what the hub sends."""
    return FrameDecoder(FromHub, _tags(*FromHub.__args__))


def encode(frame: Struct) -> bytes:
    """Encode a frame as one message."""
    return _encoder.encode(frame)
