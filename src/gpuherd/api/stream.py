"""The live stream: every tick is encoded once, and compressed once, for all viewers.

A viewer waits for the next tick, sends it, and waits again. One that is still sending when a tick comes misses it
and gets a snapshot instead of the changes: nothing queues up, however slow a viewer is.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Any, Literal, Protocol

import msgspec

from gpuherd.api.asgi import Receive, Scope, Send, header
from gpuherd.api.errors import HttpError
from gpuherd.api.health import ViewerHealth
from gpuherd.fleet.changes import FleetChange

__all__ = ["LiveStream", "StreamedFleet"]

HEARTBEAT_SECONDS = 15.0
STUCK_SECONDS = 60.0
"""A viewer that takes none of its data for this long is dropped."""
COMPRESSION_LEVEL = 3

# A gzip stream may be put together from blocks compressed on their own, as long as each ends on a byte boundary and
# refers to nothing before it, which is what a full flush gives. So one block serves every viewer.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_HEARTBEAT = b": still here\n\n"
_encode = msgspec.json.Encoder().encode


class StreamedFleet(Protocol):
    """What the stream needs of the fleet."""

    def snapshot(self) -> FleetChange:
        """Everything, as of the last tick."""

    def change(self) -> FleetChange | None:
        """What the last tick changed."""


def _event(name: Literal["snapshot", "change"], change: FleetChange) -> bytes:
    return b"event: %b\nid: %d\ndata: %b\n\n" % (name.encode(), change.tick, _encode(change))


def _deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


class _Block:
    """One event in the forms viewers want it, each made when first asked for."""

    def __init__(self, plain: bytes) -> None:
        self._plain = plain
        self._deflated: bytes | None = None

    def content(self, is_deflated: bool) -> bytes:
        if not is_deflated:
            return self._plain
        if self._deflated is None:
            self._deflated = _deflate(self._plain)
        return self._deflated


class LiveStream:
    """All viewers. ``publish`` is called after every tick, on the same event loop."""

    def __init__(self, fleet: StreamedFleet, *, max_viewers: int) -> None:
        self._fleet = fleet
        self._max_viewers = max_viewers
        self._viewers: set[asyncio.Task[Any]] = set()
        self._ticked = asyncio.Event()
        self._tick = -1
        self._after_tick: int | None = None
        self._change: _Block | None = None
        self._snapshot: _Block | None = None
        self._heartbeat = _Block(_HEARTBEAT)
        self._resyncs = 0
        self._is_closing = False

    def health(self) -> ViewerHealth:
        """Tell how many are looking."""
        return ViewerHealth(open=len(self._viewers), limit=self._max_viewers, resyncs=self._resyncs)

    def publish(self) -> None:
        """Make the last tick's changes known; no work if nobody looks."""
        self._snapshot = self._change = None
        if not self._viewers:
            self._tick = -1
            return
        change = self._fleet.change()
        if change is not None:
            self._tick, self._after_tick = change.tick, change.after_tick
            self._change = _Block(_event("change", change))
            self._wake()

    def _wake(self) -> None:
        self._ticked.set()
        self._ticked = asyncio.Event()

    def _snapshot_block(self) -> _Block:
        if self._snapshot is None:
            snapshot = self._fleet.snapshot()
            self._tick = snapshot.tick
            self._snapshot = _Block(_event("snapshot", snapshot))
        return self._snapshot

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one viewer until it leaves. Raises ``HttpError`` before anything was sent."""
        if scope["method"] != "GET":
            raise HttpError(
                405, "method_not_allowed", "the stream is read with GET", headers={"Allow": "GET"}
            )
        if len(self._viewers) >= self._max_viewers:
            raise HttpError(
                503,
                "too_many_viewers",
                "too many live views are open; try again later",
                headers={"Retry-After": "30"},
            )
        viewer = asyncio.current_task()
        if viewer is None:
            raise RuntimeError("a viewer is served in a task")
        self._viewers.add(viewer)
        watch = asyncio.get_running_loop().create_task(_leave_with(receive, viewer))
        try:
            await self._send_all(send, is_deflated=_takes_gzip(scope))
        except asyncio.CancelledError:
            if not (watch.done() or self._is_closing) or viewer.uncancel() > 0:
                raise
        except TimeoutError:
            pass
        finally:
            self._viewers.discard(viewer)
            watch.cancel()

    async def _send_all(self, send: Send, *, is_deflated: bool) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store, no-transform"),
            (b"vary", b"accept-encoding"),
            (b"x-accel-buffering", b"no"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if is_deflated:
            headers.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        content = _GZIP_HEADER if is_deflated else b""
        content += self._snapshot_block().content(is_deflated)
        seen = self._tick
        while not self._is_closing:
            ticked = self._ticked
            async with asyncio.timeout(STUCK_SECONDS):
                await send({"type": "http.response.body", "body": content, "more_body": True})
            if self._ticked is ticked:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await ticked.wait()
                except TimeoutError:
                    content = self._heartbeat.content(is_deflated)
                    continue
            if self._change is not None and self._after_tick == seen:
                content = self._change.content(is_deflated)
            else:
                self._resyncs += 1
                content = self._snapshot_block().content(is_deflated)
            seen = self._tick
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def close(self) -> None:
        """End every stream: viewers connect again by themselves."""
        self._is_closing = True
        self._wake()
        if self._viewers:
            _, stuck = await asyncio.wait(self._viewers, timeout=1.0)
            for viewer in stuck:
                viewer.cancel()


def _takes_gzip(scope: Scope) -> bool:
    accepted = header(scope, b"accept-encoding") or ""
    return any(part.split(";")[0].strip() == "gzip" for part in accepted.lower().split(","))


async def _leave_with(receive: Receive, viewer: asyncio.Task[Any]) -> None:
    while True:
        if (await receive())["type"] == "http.disconnect":
            viewer.cancel()
            return
