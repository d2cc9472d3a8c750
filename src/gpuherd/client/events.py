"""Server-sent events out of the bytes of an answer, plain or compressed, with a cap on what one may grow to."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from msgspec import Struct

from gpuherd.client.errors import HubSilent

__all__ = ["MAX_EVENT_BYTES", "Event", "EventReader"]

MAX_EVENT_BYTES = 256 * 2**20
"""A snapshot of 40,000 GPUs has about 40 MiB."""
_STEP_BYTES = 4 * 2**20


class Event(Struct, frozen=True):
    """One event."""

    name: str
    content: bytes


class EventReader:
    """Takes bytes as they come and gives the events that are whole."""

    def __init__(self, *, is_gzip: bool, most_bytes: int = MAX_EVENT_BYTES) -> None:
        self._unpack = zlib.decompressobj(31) if is_gzip else None
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self._searched = 0

    def feed(self, came: bytes) -> Iterator[Event]:
        """Give the events that end within these bytes; ``HubSilent`` if they are not what they should be."""
        if self._unpack is None:
            yield from self._take(came)
            return
        try:
            # In steps, so that a little that unpacks to a lot is noticed before it is all there.
            yield from self._take(self._unpack.decompress(came, _STEP_BYTES))
            while self._unpack.unconsumed_tail:
                yield from self._take(self._unpack.decompress(self._unpack.unconsumed_tail, _STEP_BYTES))
        except zlib.error:
            raise HubSilent("the hub's live stream arrived damaged") from None

    def _take(self, came: bytes) -> Iterator[Event]:
        kept = self._kept
        kept += came
        while (end := kept.find(b"\n\n", self._searched)) >= 0:
            block = bytes(kept[:end])
            del kept[: end + 2]
            self._searched = 0
            event = _event(block)
            if event is not None:
                yield event
        self._searched = max(0, len(kept) - 1)
        if len(kept) > self._most_bytes:
            raise HubSilent(f"the hub's live stream has an event of more than {self._most_bytes >> 20} MiB")


def _event(block: bytes) -> Event | None:
    """Read one block of lines; none for a comment alone, by which the hub says that it is still there."""
    name, content = "message", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value.decode("ascii", "replace")
        elif field == b"data":
            content.append(value)
    return Event(name, b"\n".join(content)) if content else None
