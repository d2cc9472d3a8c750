"""Glances at the herd as bytes, plain and compressed: made once per tick for each privacy class, however many ask."""

from __future__ import annotations

import asyncio
import zlib

import msgspec

from gpuherd.fleet.fleet import Fleet
from gpuherd.model.people import PrivacyClass

__all__ = ["Glances", "SentGlance"]

NODES_AT_ONCE = 25
"""Looked at anew without a pause: some 3 ms."""
COMPRESSED_FROM_BYTES = 65_536
"""What is smaller arrives before it would be compressed: some 600 GPUs."""
COMPRESSION_LEVEL = 1
"""Half of what is left are UUIDs, which no level makes smaller; the next one takes a third longer."""
_GZIP = 31
_encode = msgspec.json.Encoder().encode


class SentGlance:
    """One glance, in the forms in which it is asked for."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self._compressing: asyncio.Task[bytes] | None = None

    async def compressed(self) -> bytes | None:
        """Give it as gzip, made beside the loop; none where that is not worth it."""
        if len(self.plain) < COMPRESSED_FROM_BYTES:
            return None
        if self._compressing is None:
            self._compressing = asyncio.create_task(
                asyncio.to_thread(zlib.compress, self.plain, COMPRESSION_LEVEL, _GZIP)
            )
        return await asyncio.shield(self._compressing)


class Glances:
    """The glances of the last tick."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._made: dict[PrivacyClass, SentGlance] = {}
        self._making: dict[tuple[PrivacyClass, int], asyncio.Task[SentGlance]] = {}
        self._editions = 0

    def renew(self) -> None:
        """Forget what was made; to be called at each tick, and when nodes come or go."""
        self._made.clear()
        self._editions += 1

    async def glance(self, privacy: PrivacyClass) -> SentGlance:
        """Give what a class sees of the last tick."""
        made = self._made.get(privacy)
        if made is not None:
            return made
        edition = privacy, self._editions
        making = self._making.get(edition)
        if making is None:
            making = self._making[edition] = asyncio.create_task(self._make(privacy))
            making.add_done_callback(lambda _: self._making.pop(edition, None))
        # Who gives up waiting does not take it away from the others.
        return await asyncio.shield(making)

    async def _make(self, privacy: PrivacyClass) -> SentGlance:
        for number, _ in enumerate(self._fleet.glancer(privacy).prepare(), 1):
            if number % NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
        editions, glance = self._editions, self._fleet.glance(privacy)
        await asyncio.sleep(0)
        made = SentGlance(_encode(glance))
        if editions == self._editions:
            self._made[privacy] = made
        return made
