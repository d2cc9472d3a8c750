"""What has waited for the hub, sent beside what is live: a batch at a time, the next when the hub has saved it.

So it takes no more of the line than one batch, goes slower when the hub is busy and stops while the hub cannot save.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from gpuherd.agent.numbering import Entry
from gpuherd.agent.outbox import OlderRun, Outbox, Run
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import PROTOCOL_MINOR, Hello, PastFrames

__all__ = ["Backlog", "hello_of"]

BATCH_BYTES = 128 * 1024
"""What is live waits for as much: one second on a line of 1 Mbit/s."""
BATCH_FRAMES = 256
PAUSE_SECONDS = 0.2
"""Between batches, however fast the hub is."""

Send = Callable[[bytes], Awaitable[None]]


def hello_of(run: Run, node_time: float) -> Hello:
    """Make the hello of a run whose frames so far are history."""
    facts = run.facts
    return Hello(
        boot_id=facts.boot_id,
        layout=facts.layout,
        time=node_time,
        interval_seconds=facts.interval_seconds,
        live_from_seq=run.next_seq,
        dropped_frames=facts.dropped_frames,
        protocol_minor=PROTOCOL_MINOR,
        agent_version=facts.agent_version,
    )


class Backlog:
    """Sends the older runs of an outbox."""

    def __init__(self, send: Send, outbox: Outbox, node_time: Callable[[], float]) -> None:
        self._send = send
        self._outbox = outbox
        self._node_time = node_time

    async def run(self) -> None:
        """Send all there is, oldest first."""
        while (run := self._outbox.older_run()) is not None:
            await self._send_run(run)
            self._outbox.finish(run)

    async def _send_run(self, run: OlderRun) -> None:
        dropped_frames = await self._greet(run)
        cursor = run.acked_seq
        is_context_due = True
        while True:
            entries, context = run.batch(cursor)
            if run.facts.dropped_frames != dropped_frames:
                # A damaged file was found: report the new count first. To the hub this hello starts the run again.
                dropped_frames = await self._greet(run)
                is_context_due = True
            if not entries:
                return
            if is_context_due or entries[0].seq != cursor + 1:
                entries = (*context, *entries)
                is_context_due = False
            for batch in _batches(entries):
                await self._send_past([entry.message for entry in batch])
                cursor = max(cursor, batch[-1].seq)
                await run.wait_acked(cursor)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _greet(self, run: OlderRun) -> int:
        """Say hello for a run, and return how many lost frames the hello has reported."""
        hello = hello_of(run, self._node_time())
        await self._send_past([encode(hello)])
        return hello.dropped_frames

    async def _send_past(self, messages: list[bytes]) -> None:
        await self._send(encode(PastFrames(frames=tuple(messages))))


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Cut into pieces of bounded size; a frame that is larger goes alone."""
    batch: list[Entry] = []
    size_bytes = 0
    for entry in entries:
        if batch and (size_bytes + len(entry.message) > BATCH_BYTES or len(batch) >= BATCH_FRAMES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(entry)
        size_bytes += len(entry.message)
    if batch:
        yield batch
