"""The live stream: every tick is encoded once, and compressed once, for all viewers of a privacy class.

A viewer waits for the next tick, sends it, and waits again. One that is still sending when a tick comes misses it
and gets a snapshot instead of the changes: nothing queues up, however slow a viewer is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any, Protocol

from gpuherd.api.asgi import Receive, Scope, Send, header, takes_gzip
from gpuherd.api.errors import HttpError
from gpuherd.api.health import ViewerHealth
from gpuherd.api.sender import place_of
from gpuherd.api.stream_blocks import GZIP_HEADER, Block, Issue, own_block
from gpuherd.fleet.changes import FleetChange, OwnCommands
from gpuherd.fleet.editions import CountsEditor, Editor, FaceEditor
from gpuherd.fleet.privacy import Face
from gpuherd.model.people import PrivacyClass, Viewer

__all__ = ["LiveStream", "StreamedFleet"]

HEARTBEAT_SECONDS = 15.0
STUCK_SECONDS = 60.0
"""A viewer that takes none of its data for this long is dropped."""
SLOWEST_BYTES_PER_SECOND = 16_384
"""So that a slow viewer can take the first message, which has the whole herd."""
PARTING_SECONDS = 1.0
ADMINS_PART = 20
"""One in this many live views is reserved for admins."""
PLACES_PART = 16
"""Without a login, one address (with IPv6 one /64) can have one in this many live views,"""
LEAST_SHARE = 16
"""but at least this many."""

_HEARTBEAT = Block(b": still here\n\n")


class StreamedFleet(Protocol):
    """What the stream needs of the fleet."""

    def snapshot(self) -> FleetChange:
        """Everything, as of the last tick."""

    def change(self) -> FleetChange | None:
        """What the last tick changed."""

    def face(self, privacy: PrivacyClass) -> Face:
        """What a privacy class is shown."""

    def own_commands(self, users: Collection[str]) -> OwnCommands:
        """The processes of these users."""

    def take_changed_users(self) -> set[str]:
        """Of whom a process came or went since the last call."""


class _OwnNews:
    """What is told to one person alone, in however many tabs."""

    def __init__(self, users: frozenset[str], block: Block) -> None:
        self.users = users
        self.block = block
        self.watchers = 1


class _Watcher:
    """One open stream."""

    def __init__(
        self, task: asyncio.Task[Any], viewer: Viewer, privacy: PrivacyClass, *, is_deflated: bool
    ) -> None:
        self.task = task
        self.viewer = viewer
        self.place = place_of(viewer.peer) if _is_stranger(viewer) else None
        self.privacy = privacy
        self.is_deflated = is_deflated
        self.own: _OwnNews | None = None
        self.has_begun = False
        self.has_left = False
        self._is_ended = False

    def end(self) -> None:
        """End the stream at once, whatever it is about to send."""
        if not self._is_ended:
            self._is_ended = True
            self.task.cancel()

    def was_ended(self) -> bool:
        """Take back our own cancellation; false if someone else cancelled the task as well."""
        return self._is_ended and self.task.uncancel() == 0


class LiveStream:
    """All viewers. ``publish`` is called after every tick, on the same event loop."""

    def __init__(
        self,
        fleet: StreamedFleet,
        *,
        max_viewers: int,
        max_viewers_per_account: int = 50,
        wall: Callable[[], float],
        note_watching: Callable[[Viewer], None] = lambda viewer: None,
    ) -> None:
        """``note_watching`` is told who watches with an account, when that begins and at every tick."""
        self._fleet = fleet
        self._max_viewers = max_viewers
        self._max_per_account = max_viewers_per_account
        self._wall = wall
        self._note_watching = note_watching
        self._watchers: set[_Watcher] = set()
        self._editors: dict[PrivacyClass, Editor] = {}
        self._own: dict[tuple[str, frozenset[str]], _OwnNews] = {}
        self._ticked = asyncio.Event()
        self._change: Issue | None = None
        self._snapshot: Issue | None = None
        self._resyncs = 0
        self._is_closing = False

    def health(self) -> ViewerHealth:
        """Tell how many are looking."""
        return ViewerHealth(open=len(self._watchers), limit=self._max_viewers, resyncs=self._resyncs)

    def publish(self) -> None:
        """Make the last tick's changes known; no work if nobody looks."""
        self._snapshot = self._change = None
        changed_users = self._fleet.take_changed_users()
        now = self._wall()
        self.drop(lambda viewer: viewer.expires_at is not None and viewer.expires_at <= now)
        if not self._watchers:
            return
        for own in self._own.values():
            if not own.users.isdisjoint(changed_users):
                block = own_block(self._fleet.own_commands(own.users))
                if block.plain != own.block.plain:
                    own.block = block
        for watcher in self._watchers:
            if watcher.viewer.account is not None:
                self._note_watching(watcher.viewer)
        change = self._fleet.change()
        if change is not None:
            self._change = Issue("change", change)
            self._wake()

    def drop(self, is_over: Callable[[Viewer], bool]) -> int:
        """End at once the streams of the viewers for whom this is so; gives how many."""
        dropped = [watcher for watcher in self._watchers if is_over(watcher.viewer)]
        for watcher in dropped:
            watcher.end()
        return len(dropped)

    def _wake(self) -> None:
        self._ticked.set()
        self._ticked = asyncio.Event()

    def _last_snapshot(self) -> Issue:
        if self._snapshot is None:
            self._snapshot = Issue("snapshot", self._fleet.snapshot())
        return self._snapshot

    def _editor(self, privacy: PrivacyClass) -> Editor:
        editor = self._editors.get(privacy)
        if editor is None:
            editor = CountsEditor() if privacy == "counts" else FaceEditor(self._fleet.face(privacy))
            self._editors[privacy] = editor
        return editor

    # -- one viewer --------------------------------------------------------------------------------------------

    async def serve(self, scope: Scope, receive: Receive, send: Send, viewer: Viewer) -> None:
        """Serve one viewer until it leaves or may look no more. Raises ``HttpError`` before anything was sent."""
        if scope["method"] != "GET":
            raise HttpError(
                405, "method_not_allowed", "the stream is read with GET", headers={"Allow": "GET"}
            )
        if viewer.privacy is None:
            raise HttpError(401, "login_needed", "log in first")
        self._check_room(viewer)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a viewer is served in a task")
        watcher = _Watcher(
            task, viewer, viewer.privacy, is_deflated=takes_gzip(header(scope, b"accept-encoding"))
        )
        self._watchers.add(watcher)
        self._enter_own(watcher)
        if viewer.account is not None:
            self._note_watching(viewer)
        watch = asyncio.get_running_loop().create_task(_leave_with(receive, watcher))
        try:
            await self._send_all(send, watcher)
        except asyncio.CancelledError:
            if not watcher.was_ended():
                raise
            if watcher.has_begun and not watcher.has_left:
                await _end(send)
        except TimeoutError:
            pass
        finally:
            self._leave(watcher)
            watch.cancel()

    def _check_room(self, viewer: Viewer) -> None:
        """Raise ``HttpError`` 503 if there is no room for one more.

        Half of the room is reserved for viewers who are logged in, and some of that for admins. An account or, without
        a login, an address can use only a share of it, and a token half of an account's, so that its owner can still
        open the page.
        """
        others = [watcher.viewer for watcher in self._watchers]
        room = self._max_viewers - (0 if _is_admin(viewer) else self._max_viewers // ADMINS_PART)
        if len(others) >= room or (
            _is_stranger(viewer) and sum(map(_is_stranger, others)) >= (self._max_viewers + 1) // 2
        ):
            raise _too_many("too many live streams are open; try again later")
        if viewer.account is None:
            self._check_place(viewer)
            return
        own = [other for other in others if other.account and other.account.id == viewer.account.id]
        if len(own) >= self._max_per_account:
            raise _too_many(
                f"your account has {len(own)} live streams open, the limit for one account "
                "(hub.max_viewers_per_account); close some"
            )
        of_token = sum(other.via == "token" and other.key == viewer.key for other in own)
        if viewer.via == "token" and of_token >= (self._max_per_account + 1) // 2:
            raise _too_many(
                f"this token has {of_token} live streams open, the limit for one token (half of "
                "hub.max_viewers_per_account); close some"
            )

    def _check_place(self, viewer: Viewer) -> None:
        """Raise ``HttpError`` 503 if the address of a stranger has its share of live views."""
        place, share = place_of(viewer.peer), max(LEAST_SHARE, self._max_viewers // PLACES_PART)
        if _is_stranger(viewer) and sum(other.place == place for other in self._watchers) >= share:
            raise _too_many(
                f"your address has {share} live streams open, the limit for one address without a login; "
                "log in, or close some"
            )

    def _enter_own(self, watcher: _Watcher) -> None:
        account = watcher.viewer.account
        if account is None or not account.linux_names:
            return
        users = frozenset(account.linux_names)
        own = self._own.get((account.id, users))
        if own is None:
            own = _OwnNews(users, own_block(self._fleet.own_commands(users)))
            self._own[account.id, users] = own
        else:
            own.watchers += 1
        watcher.own = own

    def _leave(self, watcher: _Watcher) -> None:
        self._watchers.discard(watcher)
        if all(other.privacy != watcher.privacy for other in self._watchers):
            self._editors.pop(watcher.privacy, None)
        account, own = watcher.viewer.account, watcher.own
        if account is not None and own is not None:
            own.watchers -= 1
            if own.watchers == 0:
                del self._own[account.id, own.users]

    async def _send_all(self, send: Send, watcher: _Watcher) -> None:
        privacy, is_deflated, own = watcher.privacy, watcher.is_deflated, watcher.own
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store, no-transform"),
            (b"vary", b"accept-encoding, authorization, cookie"),
            (b"x-accel-buffering", b"no"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if is_deflated:
            headers.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        watcher.has_begun = True
        issue = self._last_snapshot()
        content = GZIP_HEADER if is_deflated else b""
        content += issue.content(privacy, self._editor(privacy), is_deflated)
        own_told: Block | None = None
        while not self._is_closing:
            ticked = self._ticked
            if own is not None and own.block is not own_told:
                own_told = own.block
                content += own_told.content(is_deflated)
            async with asyncio.timeout(STUCK_SECONDS + len(content) / SLOWEST_BYTES_PER_SECOND):
                await send({"type": "http.response.body", "body": content, "more_body": True})
            if self._ticked is ticked:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await ticked.wait()
                except TimeoutError:
                    content = _HEARTBEAT.content(is_deflated)
                    continue
            change = self._change
            if change is not None and change.after_tick == issue.tick:
                issue = change
            else:
                self._resyncs += 1
                issue, own_told = self._last_snapshot(), None
            content = issue.content(privacy, self._editor(privacy), is_deflated)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def close(self) -> None:
        """End every stream: viewers connect again by themselves."""
        self._is_closing = True
        self._wake()
        if self._watchers:
            await asyncio.wait({watcher.task for watcher in self._watchers}, timeout=1.0)
            for stuck in self._watchers:
                stuck.end()


def _is_stranger(viewer: Viewer) -> bool:
    """Tell whether someone is neither logged in nor a program of the hub's own machine, which has its key."""
    return viewer.account is None and viewer.privacy != "admin"


def _is_admin(viewer: Viewer) -> bool:
    """Tell whether a viewer is an admin, by role or by the key of the hub's own machine."""
    return viewer.privacy == "admin"


def _too_many(message: str) -> HttpError:
    return HttpError(503, "too_many_viewers", message, headers={"Retry-After": "30"})


async def _leave_with(receive: Receive, watcher: _Watcher) -> None:
    while True:
        if (await receive())["type"] == "http.disconnect":
            watcher.has_left = True
            watcher.end()
            return


async def _end(send: Send) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PARTING_SECONDS):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
