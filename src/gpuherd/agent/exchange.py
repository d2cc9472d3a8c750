"""What parent and probe say to each other: length-prefixed msgpack over a socket pair."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Problem
from gpuherd.wire.frames import SampleFrame

__all__ = [
    "LENGTH",
    "MAX_MESSAGE_BYTES",
    "FromProbe",
    "Orders",
    "Read",
    "Reading",
    "Skip",
    "Started",
    "Trouble",
    "prefixed",
]

LENGTH = struct.Struct("<I")
MAX_MESSAGE_BYTES = 16 * 1024 * 1024

_encoder = msgspec.msgpack.Encoder()


class Skip(Struct, frozen=True):
    """A GPU that must not be touched: the collector's name and its index there."""

    collector: str
    device: int


class Orders(Struct, frozen=True, kw_only=True):
    """The first message to a probe: what to run, what to leave alone, and what to say in its place.

    ``kept`` are the last known facts of GPUs that are not read; ``remembered`` those of every GPU, for when the
    driver as a whole does not answer; ``problems`` goes out with every sample.
    """

    spec: ProbeSpec
    skips: tuple[Skip, ...] = ()
    kept: tuple[DeviceFacts, ...] = ()
    remembered: tuple[DeviceFacts, ...] = ()
    problems: tuple[Problem, ...] = ()


class Read(Struct, frozen=True, tag="read"):
    """Asks for one reading; ``problems``, if given, replaces those of the orders."""

    problems: tuple[Problem, ...] | None = None


class Started(Struct, frozen=True, tag="started"):
    """The probe has loaded its collectors and waits to be asked."""


class Reading(Struct, frozen=True, kw_only=True, tag="reading", omit_defaults=True):
    """One reading. Facts and table only when they changed; the sample is packed, its numbers are not yet set."""

    facts: NodeFacts | None = None
    table: ProcessTable | None = None
    sample: SampleFrame


class Trouble(Struct, frozen=True, kw_only=True, tag="trouble"):
    """Nothing could be read. ``is_final``: the probe ends and a new one would meet the same."""

    message: str
    is_final: bool = False


FromProbe = Started | Reading | Trouble


def prefixed(message: Any) -> bytes:
    """Encode a message with its length before it."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body
