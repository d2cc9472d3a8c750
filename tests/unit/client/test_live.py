"""Feeds: what they bring, and that they end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gpuherd.client import live
from gpuherd.client.errors import HubSilent
from gpuherd.client.herd_views import Herd
from gpuherd.client.live import MOST_WAITING, Condition, Feed, HerdFeed, News, PictureFeed, Shut
from gpuherd.client.live_messages import HerdChange
from gpuherd.client.views import Session
from gpuherd.model.errors import Failed, Misconfigured
from support.running import PATIENCE_SECONDS
from support.watched_herd import made_up_herd


class Lens:
    """Something to look through, which tells how it was used."""

    def __init__(self, *looks: Herd | Exception) -> None:
        self._looks = iter(looks)
        self.log: list[str] = []

    @contextmanager
    def open(self) -> Iterator[Callable[[], Herd]]:
        self.log.append("open")
        try:
            yield self._look
        finally:
            self.log.append("closed")

    def _look(self) -> Herd:
        seen = next(self._looks)
        self.log.append("look")
        if isinstance(seen, Exception):
            raise seen
        return seen


def brought(feed: Feed, count: int) -> list[News]:
    """Start a feed and take so much news, then stop it."""
    came: queue.Queue[News] = queue.Queue()

    def wake() -> None:
        for news in feed.take():
            came.put(news)

    feed.start(wake)
    taken = [came.get(timeout=PATIENCE_SECONDS) for _ in range(count)]
    feed.stop()
    assert feed._thread is not None
    feed._thread.join(PATIENCE_SECONDS)
    assert not feed._thread.is_alive()
    return taken


def test_it_is_opened_once_and_what_fails_now_may_work_later() -> None:
    herd = made_up_herd()
    lens = Lens(herd, Failed("the driver hangs"), herd, *[herd] * 50)
    feed = PictureFeed("here", lens.open, every_seconds=0.01)
    news = brought(feed, 5)
    assert [type(each) for each in news] == [HerdChange, Condition, Condition, HerdChange, Condition]
    assert [each.phase for each in news if isinstance(each, Condition)] == ["live", "away", "live"]
    assert isinstance(news[2], Condition)
    assert news[2].reason == "the driver hangs"
    assert (lens.log[0], lens.log[-1], lens.log.count("open")) == ("open", "closed", 1)


def test_what_can_never_work_is_the_end() -> None:
    error = Misconfigured("gpuherd.toml line 3: no such key")
    lens = Lens(error)
    assert brought(PictureFeed("here", lens.open, every_seconds=0.01), 1) == [Shut(error)]
    assert lens.log == ["open", "look", "closed"]


def test_nobody_looks_while_it_is_paused() -> None:
    lens = Lens(*[made_up_herd()] * 1000)
    feed = PictureFeed("here", lens.open, every_seconds=0.01)
    feed.pause()
    resumed = threading.Timer(0.05, feed.resume)
    resumed.start()
    assert lens.log == []
    assert isinstance(brought(feed, 1)[0], HerdChange)
    resumed.join()


def test_what_nobody_takes_does_not_pile_up() -> None:
    lens = Lens(*[made_up_herd()] * 1000)
    feed = PictureFeed("here", lens.open, every_seconds=0.0)
    full = threading.Event()
    feed.start(lambda: full.set() if len(feed._waiting) >= MOST_WAITING else None)
    assert full.wait(PATIENCE_SECONDS)
    feed.stop()
    assert feed._thread is not None
    feed._thread.join(PATIENCE_SECONDS)
    assert not feed._thread.is_alive()
    assert len(feed.take()) <= MOST_WAITING + 2


# -- a hub's stream ------------------------------------------------------------------------------------------------

SNAPSHOT = b'event: snapshot\ndata: {"tick":1,"time":1.0,"tick_seconds":1.0,"after_tick":null,"nodes":[]}\n\n'
CHANGE = b'event: change\ndata: {"tick":2,"time":2.0,"tick_seconds":1.0,"after_tick":1}\n\n'


class Stream:
    """An answer of a hub: what it sends, and whether it ends then or goes on until it is closed."""

    kind = "text/event-stream"
    is_gzip = False

    def __init__(self, *sent: bytes, ends: bool = True) -> None:
        self._left = list(sent)
        self._ends = ends
        self._closed = threading.Event()
        self._released = threading.Event()

    def read(self) -> bytes:
        if self._left:
            return self._left.pop(0)
        if self._ends:
            return b""
        assert self._closed.wait(PATIENCE_SECONDS)
        raise HubSilent("the connection broke")

    def be_patient(self, silence_seconds: float) -> None:
        pass

    def close(self) -> None:
        """Give whoever reads the time to notice, as if this thread had been slow."""
        self._closed.set()
        assert self._released.wait(PATIENCE_SECONDS)

    def release(self) -> None:
        self._released.set()


class StreamingHub:
    """Sends one stream after the other, made anew for each connection."""

    url = "http://hub"
    has_token = False

    def __init__(self, stream: Callable[[], Stream]) -> None:
        self.line = self
        self._stream = stream

    def session(self) -> Session:
        return Session()

    def follow(self, path: str, *, silence_seconds: float) -> Any:
        assert path == "stream"
        return self._stream()


class Pauses(HerdFeed):
    """Follows a hub, and remembers for how long it wanted to rest instead of resting."""

    def __init__(self, hub: StreamingHub, *, rests: int = 0) -> None:
        super().__init__(hub)  # type: ignore[arg-type]
        self.rests: list[float] = []
        self._most_rests = rests

    def _wait(self, seconds: float) -> bool:
        self.rests.append(seconds)
        if len(self.rests) <= self._most_rests:
            return False
        return super()._wait(PATIENCE_SECONDS)


def told(news: list[News]) -> list[str]:
    """How the data came, by the words that are shown."""
    return [f"{each.phase} {each.reason}".strip() for each in news if isinstance(each, Condition)]


ENDS_SOON = "away the hub or a proxy in front of it closes the live stream soon after it starts"


def test_a_stream_that_never_lasts_is_tried_ever_more_seldom_and_that_is_said() -> None:
    feed = Pauses(StreamingHub(lambda: Stream(SNAPSHOT)), rests=3)
    news = brought(feed, 17)
    assert told(news) == ["connecting", "live", ENDS_SOON] * 4
    first, second, third, fourth = feed.rests
    assert 0.2 < first < second < third < fourth


def test_a_stream_that_breaks_at_once_is_tried_ever_more_seldom() -> None:
    def stream() -> Stream:
        made = Stream(SNAPSHOT, ends=False)
        made._closed.set()
        return made

    feed = Pauses(StreamingHub(stream), rests=2)
    assert told(brought(feed, 13)) == ["connecting", "live", "away the connection broke"] * 3
    assert feed.rests == sorted(feed.rests)
    assert feed.rests[2] > 2 * feed.rests[0]


def test_a_good_stream_that_ends_is_asked_for_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STEADY_SECONDS", 0.0)
    feed = Pauses(StreamingHub(lambda: Stream(SNAPSHOT, CHANGE)))
    assert told(brought(feed, 13)) == ["connecting", "live"] * 3
    assert feed.rests == []


def told_while(feed: Pauses, on_live: Callable[[], None], count: int) -> list[str]:
    """Follow until so many conditions were told, and do something whenever the stream is there."""
    came: queue.Queue[News] = queue.Queue()

    def wake() -> None:
        for news in feed.take():
            came.put(news)

    feed.start(wake)
    taken: list[News] = []
    while len(told(taken)) < count:
        taken.append(came.get(timeout=PATIENCE_SECONDS))
        if taken[-1] == Condition("live"):
            on_live()
    feed.stop()
    return told(taken)


def test_what_is_rejected_comes_again_after_a_pause_and_the_reason_is_said() -> None:
    feed = Pauses(StreamingHub(lambda: Stream(SNAPSHOT, ends=False)), rests=2)

    def reject_all_that_came() -> None:
        for _ in range(2):
            feed.reject("invalid rows")

    assert told_while(feed, reject_all_that_came, 9) == ["connecting", "live", "away invalid rows"] * 3
    first, second, third = feed.rests
    assert 0.2 < first < second < third


def test_who_connects_anew_is_not_told_that_the_hub_is_away() -> None:
    feed = Pauses(StreamingHub(lambda: Stream(SNAPSHOT, ends=False)))
    assert told_while(feed, feed.retry, 6) == ["connecting", "live"] * 3
    assert feed.rests == []
