"""The body of a Prometheus remote-write request, written by hand: a protobuf of three small messages, in snappy.

The spec lets a snappy block consist of literals alone. That is valid for every receiver and needs no library; the price
is a body about eight times as long, 200 kB/s for 800 GPUs every 10 seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from gpuherd.history.batch import SeriesKey
from gpuherd.history.outside.names import labels_of

__all__ = ["literal_snappy", "series_head", "varint"]

_LITERAL_BYTES = 1 << 16
_SAMPLE_BYTES = 16
"""Of a sample: two tags, a double, and a time in milliseconds, which takes six bytes from 2004 until 2109."""


def varint(number: int) -> bytes:
    """Write a number as protobuf does."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _label(name: str, value: str) -> bytes:
    name_bytes, value_bytes = name.encode(), value.encode()
    pair = b"\x0a" + varint(len(name_bytes)) + name_bytes + b"\x12" + varint(len(value_bytes)) + value_bytes
    return b"\x0a" + varint(len(pair)) + pair


def series_head(name: str, key: SeriesKey) -> bytes:
    """Write a series with one sample up to the sample's number: then come a double, ``\\x10`` and a six-byte time."""
    labels = (("__name__", name), *labels_of(key))  # in the order of their names, as is asked for
    written = b"".join(_label(*label) for label in labels) + b"\x12" + varint(_SAMPLE_BYTES)
    return b"\x0a" + varint(len(written) + _SAMPLE_BYTES) + written + b"\x09"


def literal_snappy(pieces: Iterable[bytes]) -> bytes:
    """Pack bytes as a snappy block of literals."""
    body = b"".join(pieces)
    out = [varint(len(body))]
    for start in range(0, len(body), _LITERAL_BYTES):
        piece = body[start : start + _LITERAL_BYTES]
        out += (b"\xf4" + struct.pack("<H", len(piece) - 1), piece)
    return b"".join(out)
