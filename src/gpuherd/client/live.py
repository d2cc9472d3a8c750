"""Following a herd: a thread reads what changes, whoever draws takes it when there is time.

The live stream first. Where it cannot be had, such as behind a proxy that holds it back, the whole picture is asked for
every few seconds instead, and that is said. A hub that is away, or whose stream never lasts, is tried again with
growing pauses: each try is a whole snapshot for the hub to send.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from gpuherd.client.errors import HubRefused, HubSilent
from gpuherd.client.events import Event, EventReader
from gpuherd.client.herd_views import Herd
from gpuherd.client.hub import HubClient
from gpuherd.client.line import OpenAnswer
from gpuherd.client.live_messages import HerdChange, OwnProcesses
from gpuherd.client.live_picture import Pictures
from gpuherd.client.views import HubError, Session
from gpuherd.model.errors import Failed, GpuherdError

__all__ = ["Condition", "Feed", "HerdFeed", "News", "PictureFeed", "Shut"]

T = TypeVar("T")
Look = Callable[[], Herd]

MOST_WAITING = 8
"""Messages that wait to be taken; then the hub has to wait, and sends a snapshot later instead of what was missed."""
FIRST_EVENT_SECONDS = 10.0
LEAST_SILENCE_SECONDS = 10.0
MOST_SILENCE_SECONDS = 40.0
"""The hub sends at least a comment every 15 s."""
POLL_SECONDS = 5.0
POLL_ROUNDS = 12
"""Then the stream is tried again."""
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 15.0
STEADY_SECONDS = 10.0
"""A stream that has gone on for so long is good; the pauses begin anew after it."""


class Condition(Struct, frozen=True):
    """How the data comes: live, asked for every few seconds, not yet, or not any more."""

    phase: Literal["connecting", "live", "polling", "away"]
    reason: str = ""


class Shut(Struct, frozen=True):
    """Nothing more will come: the hub lets this viewer see nothing, or what is asked for cannot be had at all."""

    error: GpuherdError


News = HerdChange | OwnProcesses | Condition | Session | Shut


class Feed:
    """A thread that brings news. ``start``, then ``take`` after each wake; ``stop`` at the end."""

    def __init__(self, place: str) -> None:
        self.place = place
        """Whom is asked, for people."""
        self._room = threading.Condition()
        self._waiting: list[News] = []
        self._nudge = threading.Event()
        self._is_stopped = False
        self._is_paused = False
        self._wake: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None

    def start(self, wake: Callable[[], object]) -> None:
        """Begin; ``wake`` is called in the thread whenever there is something to take."""
        self._wake = wake
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def take(self) -> list[News]:
        """Give what came since the last time, oldest first."""
        with self._room:
            taken, self._waiting = self._waiting, []
            self._room.notify_all()
        return taken

    def retry(self) -> None:
        """Connect anew, at once."""
        self._nudge.set()

    def reject(self, reason: str) -> None:
        """Say that what came cannot be used: it is asked for anew, in due time."""

    def pause(self) -> None:
        """Ask for nothing until ``resume``."""
        self._is_paused = True
        self.retry()

    def resume(self) -> None:
        """Go on; everything is told anew."""
        self._is_paused = False
        self._nudge.set()

    def stop(self) -> None:
        """End, soon: what hangs in the network is left behind and dies with the process."""
        self._is_stopped = True
        with self._room:
            self._room.notify_all()
        self.retry()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    @property
    def _is_wanted(self) -> bool:
        return not (self._is_stopped or self._is_paused)

    def _run(self) -> None:
        while not self._is_stopped:
            if self._is_paused:
                self._wait(3600.0)
                continue
            try:
                self._bring()
            except GpuherdError as error:
                self._put(Shut(error))
                return

    def _bring(self) -> None:
        """Bring news until nothing more comes; called again and again. What it raises is the end."""
        raise NotImplementedError

    def _put(self, news: News) -> None:
        with self._room:
            while len(self._waiting) >= MOST_WAITING and self._is_wanted:
                self._room.wait(1.0)
            self._waiting.append(news)
        if not self._is_stopped:
            self._wake()

    def _wait(self, seconds: float) -> bool:
        """Wait; true if someone does not want to."""
        is_nudged = self._nudge.wait(seconds)
        self._nudge.clear()
        return is_nudged


class PictureFeed(Feed):
    """Looks anew every few seconds, such as at this machine alone."""

    def __init__(
        self, place: str, looking: Callable[[], AbstractContextManager[Look]], *, every_seconds: float
    ) -> None:
        """``looking`` is opened once, in the thread that looks, and gives what each look is taken with."""
        super().__init__(place)
        self._looking = looking
        self._every_seconds = every_seconds
        self._pictures = Pictures()

    def _bring(self) -> None:
        with self._looking() as look:
            while not self._is_stopped:
                if self._is_paused:
                    self._wait(3600.0)
                    continue
                began = time.monotonic()
                try:
                    herd = look()
                except Failed as error:
                    self._put(Condition("away", str(error)))
                else:
                    self._put(self._pictures.snapshot(herd, self._every_seconds))
                    self._put(Condition("live"))
                self._wait(max(0.1, self._every_seconds - (time.monotonic() - began)))


class _Course:
    """How one stream went."""

    def __init__(self) -> None:
        self.first_at: float | None = None
        self.heard_at = 0.0
        self.break_reason: str | None = None

    @property
    def is_steady(self) -> bool:
        return self.first_at is not None and self.heard_at - self.first_at >= STEADY_SECONDS


class HerdFeed(Feed):
    """Follows a hub's live stream."""

    def __init__(self, hub: HubClient, *, poll_seconds: float = POLL_SECONDS) -> None:
        super().__init__(str(hub.line.url))
        self._hub = hub
        self._poll_seconds = poll_seconds
        self._answer: OpenAnswer | None = None
        self._rejected: tuple[OpenAnswer | None, str] = (None, "")
        self._failures = 0
        self._has_said_who = False
        self._pictures = Pictures()

    def retry(self) -> None:
        """Connect anew, at once."""
        # The thread must find the nudge when its stream breaks, and must not lose the next one by it.
        answer = self._answer
        super().retry()
        if answer is not None:
            answer.close()

    def reject(self, reason: str) -> None:
        """Say that what came cannot be used: the stream is ended, and tried again after a pause."""
        answer = self._answer
        self._rejected = (answer, reason)
        if answer is not None:
            answer.close()

    def _bring(self) -> None:
        """One connection: the session, then the stream; polling, or a pause, if that cannot be had."""
        self._nudge.clear()  # it asks for a new connection, and this is one
        self._put(Condition("connecting"))
        try:
            self._say_who()
            why = self._follow()
            if why is None:
                return
            self._poll(why)
        except HubSilent as error:
            self._rest(str(error))
        except HubRefused as error:
            if error.status in (401, 403):
                raise
            self._rest(str(error))

    def _rest(self, reason: str) -> None:
        if not self._is_wanted:
            return
        self._put(Condition("away", reason))
        longest = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(self._failures, 8))
        self._failures += 1
        if self._wait(longest * (0.5 + random.random() / 2)):  # noqa: S311 - spreads many viewers, no secret
            self._failures = 0

    def _say_who(self) -> None:
        if self._has_said_who:
            return
        try:
            session = self._hub.session()
        except HubRefused as error:
            if error.status in (401, 403):
                raise
            session = Session()  # an older hub; what is whose is then told by names alone
        else:
            if session.account is None and self._hub.line.has_token:
                told = HubError(code="unknown_token", message=f"{self.place} no longer accepts your token")
                raise HubRefused(401, told)
        self._has_said_who = True
        self._put(session)

    def _follow(self) -> str | None:
        """Read the stream until it ends or is not wanted; gives why it cannot be had, if it cannot."""
        try:
            answer = self._hub.line.follow("stream", silence_seconds=FIRST_EVENT_SECONDS)
        except HubRefused as error:
            if error.status in (401, 403):
                raise
            return str(error)
        self._answer = answer
        course = _Course()
        try:
            if not self._is_wanted:
                return None
            if answer.kind != "text/event-stream":
                return "the server there sends no live stream"
            self._read(answer, course)
        except HubSilent as error:
            course.break_reason = str(error)
        finally:
            self._answer = None
            with contextlib.suppress(OSError):
                answer.release()
        return self._after(answer, course)

    def _read(self, answer: OpenAnswer, course: _Course) -> None:
        reader = EventReader(is_gzip=answer.is_gzip)
        while came := answer.read():
            course.heard_at = time.monotonic()
            for event in reader.feed(came):
                self._hear(event, answer, course)
            if course.is_steady:
                self._failures = 0

    def _after(self, answer: OpenAnswer, course: _Course) -> str | None:
        """Tell what follows a stream: another at once (none), polling (why), or a pause (``HubSilent``)."""
        if not self._is_wanted or self._nudge.is_set():
            return None
        rejected, reason = self._rejected
        if rejected is answer:
            self._drop_changes()
            raise HubSilent(reason)
        if course.first_at is None:
            if course.break_reason is None:
                return "the hub's live stream ended before any data arrived"
            return "a proxy between here and the hub buffers the live stream; turn buffering off"
        if course.break_reason is not None:
            raise HubSilent(course.break_reason)
        if course.is_steady:  # as some proxies end whatever has gone on for a while
            return None
        raise HubSilent("the hub or a proxy in front of it closes the live stream soon after it starts")

    def _drop_changes(self) -> None:
        """Forget changes that follow what was not taken: rejected in their turn, they would end the next stream."""
        with self._room:
            self._waiting = [news for news in self._waiting if not isinstance(news, HerdChange)]
            self._room.notify_all()

    def _hear(self, event: Event, answer: OpenAnswer, course: _Course) -> None:
        match event.name:
            case "snapshot" | "change":
                change = _decoded(event.content, HerdChange)
                self._put(change)
                if course.first_at is None:
                    course.first_at = time.monotonic()
                    silence = max(LEAST_SILENCE_SECONDS, 4 * change.tick_seconds)
                    answer.be_patient(min(silence, MOST_SILENCE_SECONDS))
                    self._put(Condition("live"))
            case "own":
                self._put(_decoded(event.content, OwnProcesses))

    def _poll(self, why: str) -> None:
        """Ask for the whole picture now and then, until it is time to try the stream again."""
        for _ in range(POLL_ROUNDS):
            herd = self._hub.herd()
            self._put(self._pictures.snapshot(herd, self._poll_seconds))
            self._put(Condition("polling", why))
            self._failures = 0
            if not self._is_wanted or self._wait(self._poll_seconds):
                return


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise HubSilent(
            "the hub's live stream has an unknown format; use the same version of gpuherd as the hub"
        ) from None
